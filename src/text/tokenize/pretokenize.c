/* text/tokenize/pretokenize.c: the pre-tokenizers by name, and the walk through what they cut. */
#include "text/tokenize/pretokenize.h"

#include "text/tokenize/cut.h"

#include <string.h>

static const wk_pretokenizer kinds[] = {
    {.names = "gpt-2 phi-2 mpt olmo jais trillion granite-docling exaone4 gigachat "
              "a.x-4.0 mellum modern-bert roberta-bpe jina-es jina-de jina-v1-en "
              "jina-v2-es jina-v2-de jina-v2-code",
     .cuts = {wk_cut_gpt2}},
    {.names = "smollm starcoder refact codeshell command-r exaone minerva-7b mellum2",
     .cuts = {wk_cut_number, wk_cut_gpt2}},
    /* What files say whose converter did not know the model. */
    {.names = "default",
     .cuts = {wk_cut_punctuation, wk_cut_gpt2, wk_cut_numbers, wk_cut_three_digits}},
    {.names = "falcon", .cuts = {wk_cut_punctuation_falcon, wk_cut_gpt2, wk_cut_three_digits}},
    {.names = "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 "
              "jina-v5-nano",
     .cuts = {wk_cut_llama3},
     .takes_whole = true,
     .adds_begin = true},
    {.names = "dbrx smaug-bpe chatglm-bpe glm4", .cuts = {wk_cut_llama3}},
    {.names = "qwen2 deepseek-r1-qwen kormo f2llmv2 megrez stablelm2 hunyuan "
              "solar-open grok-2 bailingmoe bailingmoe2 llada-moe",
     .cuts = {wk_cut_qwen2}},
    {.names = "qwen35", .cuts = {wk_cut_qwen35}},
    {.names = "seed-coder", .cuts = {wk_cut_seed_coder}},
    {.names = "gpt-4o llama4 kanana2 minimax-m2 talkie", .cuts = {wk_cut_gpt4o}},
    {.names = "tekken", .cuts = {wk_cut_tekken}, .takes_whole = true, .adds_begin = true},
    {.names = "deepseek-llm",
     .cuts = {wk_cut_line_end, wk_cut_cased_word, wk_cut_ascii_punctuation, wk_cut_last_space,
              wk_cut_cjk_hangul, wk_cut_number}},
    {.names = "deepseek-coder",
     .cuts = {wk_cut_line_end, wk_cut_spaced_word, wk_cut_spaced_punctuation, wk_cut_cjk_hangul,
              wk_cut_number}},
    {.names = "deepseek-v3 hunyuan-dense joyai-llm",
     .cuts = {wk_cut_three_numbers, wk_cut_cjk_kana, wk_cut_deepseek_v3}},
    {.names = "kimi-k2", .cuts = {wk_cut_kimi_k2}},
    {.names = "laguna", .cuts = {wk_cut_lines, wk_cut_qwen2}},
    /* \p{N}+ in the place of \p{N}{1,3} makes no difference to pieces of three. */
    {.names = "minicpm5", .cuts = {wk_cut_three_numbers, wk_cut_llama3}, .takes_whole = true},
    {.names = "ufakzeka", .cuts = {wk_cut_ufakzeka}},
    {.names = "jais-2", .cuts = {wk_cut_llama3, wk_cut_halved_space}},
    {.names = "youtu", .cuts = {wk_cut_youtu_scripts, wk_cut_youtu}, .takes_whole = true},
    {.names = "afmoe",
     .cuts = {wk_cut_numbers, wk_cut_thousands, wk_cut_asian, wk_cut_deepseek_v3}},
    {.names = "chameleon",
     .cuts = {wk_cut_tab_or_spaces, wk_cut_number, wk_cut_sign, wk_cut_gpt2},
     .adds_begin = true},
    {.names = "exaone-moe", .cuts = {wk_cut_exaone_moe}},
    {.names = "granite-embed-multi-97m", .cuts = {wk_cut_gpt4o}, .takes_whole = true},
    {.names = "tiny_aya cohere2moe", .cuts = {wk_cut_last_digits, wk_cut_thousands, wk_cut_gpt4o}},
    {.names = "superbpe", .cuts = {wk_cut_numbers, wk_cut_thousands}},
    {.names = "bloom poro-chat gpt3-finnish", .cuts = {wk_cut_bloom}},
    {.names = "viking", .cuts = {wk_cut_bloom, wk_cut_number}},
};

const wk_pretokenizer *wk_pretokenizer_find(wk_str name) {
    for (size_t i = 0; i < WK_COUNT(kinds); i++) {
        for (const char *word = kinds[i].names; *word != '\0'; word += *word == ' ') {
            const size_t size = strcspn(word, " ");
            if (wk_str_equal(name, (wk_str){word, size})) return &kinds[i];
            word += size;
        }
    }
    return NULL;
}

void wk_pieces_begin(wk_pieces *pieces, const wk_pretokenizer *kind, wk_str text) {
    *pieces = (wk_pieces){.kind = kind, .rest = text};
    for (int i = 0; i < WK_MAX_CUTS; i++) pieces->ends[i] = text.text;
}

/* Only cuts whose fragment is used up look at the text again: what is left of the others is as they
 * said. */
bool wk_pieces_next(wk_pieces *pieces, wk_str *piece) {
    wk_str fragment = pieces->rest;
    if (fragment.size == 0) return false;
    for (int i = 0; i < WK_MAX_CUTS && pieces->kind->cuts[i]; i++) {
        const char **const end = &pieces->ends[i];
        if (*end == fragment.text) *end += pieces->kind->cuts[i](fragment);
        fragment.size = (size_t)(*end - fragment.text);
    }
    *piece = fragment;
    pieces->rest.text += fragment.size;
    pieces->rest.size -= fragment.size;
    return true;
}
