/* text/tokenize/pretokenize.c: the pre-tokenizers by name, and the walk through what they cut. */
#include "text/tokenize/pretokenize.h"

#include "text/tokenize/cut.h"

static const wk_pretokenizer gpt2 = {.cuts = {wk_cut_gpt2}};
static const wk_pretokenizer smollm = {.cuts = {wk_cut_number, wk_cut_gpt2}};
/* What files say whose converter did not know the model. */
static const wk_pretokenizer unnamed = {
    .cuts = {wk_cut_punctuation, wk_cut_gpt2, wk_cut_numbers, wk_cut_three_digits}};
static const wk_pretokenizer falcon = {
    .cuts = {wk_cut_punctuation_falcon, wk_cut_gpt2, wk_cut_three_digits}};
static const wk_pretokenizer llama3 = {
    .cuts = {wk_cut_llama3}, .takes_whole = true, .adds_begin = true};
static const wk_pretokenizer dbrx = {.cuts = {wk_cut_llama3}};
static const wk_pretokenizer qwen2 = {.cuts = {wk_cut_qwen2}};
static const wk_pretokenizer qwen35 = {.cuts = {wk_cut_qwen35}};
static const wk_pretokenizer seed_coder = {.cuts = {wk_cut_seed_coder}};
static const wk_pretokenizer gpt4o = {.cuts = {wk_cut_gpt4o}};
static const wk_pretokenizer tekken = {
    .cuts = {wk_cut_tekken}, .takes_whole = true, .adds_begin = true};
static const wk_pretokenizer deepseek_llm = {.cuts = {wk_cut_line_end, wk_cut_cased_word,
                                                      wk_cut_ascii_punctuation, wk_cut_last_space,
                                                      wk_cut_cjk_hangul, wk_cut_number}};
static const wk_pretokenizer deepseek_coder = {.cuts = {wk_cut_line_end, wk_cut_spaced_word,
                                                        wk_cut_spaced_punctuation,
                                                        wk_cut_cjk_hangul, wk_cut_number}};
static const wk_pretokenizer deepseek_v3 = {
    .cuts = {wk_cut_three_numbers, wk_cut_cjk_kana, wk_cut_deepseek_v3}};
static const wk_pretokenizer kimi_k2 = {.cuts = {wk_cut_kimi_k2}};
static const wk_pretokenizer laguna = {.cuts = {wk_cut_lines, wk_cut_qwen2}};
/* \p{N}+ in the place of \p{N}{1,3} makes no difference to pieces of three. */
static const wk_pretokenizer minicpm5 = {.cuts = {wk_cut_three_numbers, wk_cut_llama3},
                                         .takes_whole = true};
static const wk_pretokenizer ufakzeka = {.cuts = {wk_cut_ufakzeka}};
static const wk_pretokenizer jais2 = {.cuts = {wk_cut_jais2}};
static const wk_pretokenizer exaone_moe = {.cuts = {wk_cut_exaone_moe}};
static const wk_pretokenizer youtu = {.cuts = {wk_cut_youtu_scripts, wk_cut_youtu},
                                      .takes_whole = true};
static const wk_pretokenizer granite_embed = {.cuts = {wk_cut_gpt4o}, .takes_whole = true};
static const wk_pretokenizer tiny_aya = {
    .cuts = {wk_cut_last_digits, wk_cut_thousands, wk_cut_gpt4o}};
static const wk_pretokenizer superbpe = {.cuts = {wk_cut_numbers, wk_cut_thousands}};
static const wk_pretokenizer afmoe = {
    .cuts = {wk_cut_numbers, wk_cut_thousands, wk_cut_asian, wk_cut_deepseek_v3}};
static const wk_pretokenizer bloom = {.cuts = {wk_cut_bloom}};
static const wk_pretokenizer viking = {.cuts = {wk_cut_bloom, wk_cut_number}};

static const struct {
    const char *name;
    const wk_pretokenizer *kind;
} names[] = {
    {"default", &unnamed},
    {"gpt-2", &gpt2},
    {"phi-2", &gpt2},
    {"mpt", &gpt2},
    {"olmo", &gpt2},
    {"jais", &gpt2},
    {"trillion", &gpt2},
    {"granite-docling", &gpt2},
    {"exaone4", &gpt2},
    {"gigachat", &gpt2},
    {"a.x-4.0", &gpt2},
    {"mellum", &gpt2},
    {"modern-bert", &gpt2},
    {"roberta-bpe", &gpt2},
    {"jina-es", &gpt2},
    {"jina-de", &gpt2},
    {"jina-v1-en", &gpt2},
    {"jina-v2-es", &gpt2},
    {"jina-v2-de", &gpt2},
    {"jina-v2-code", &gpt2},
    {"smollm", &smollm},
    {"starcoder", &smollm},
    {"refact", &smollm},
    {"codeshell", &smollm},
    {"command-r", &smollm},
    {"exaone", &smollm},
    {"minerva-7b", &smollm},
    {"mellum2", &smollm},
    {"falcon", &falcon},
    {"llama-bpe", &llama3},
    {"llama3", &llama3},
    {"llama-v3", &llama3},
    {"falcon3", &llama3},
    {"falcon-h1", &llama3},
    {"pixtral", &llama3},
    {"midm-2.0", &llama3},
    {"lfm2", &llama3},
    {"jina-v5-nano", &llama3},
    {"dbrx", &dbrx},
    {"smaug-bpe", &dbrx},
    {"chatglm-bpe", &dbrx},
    {"glm4", &dbrx},
    {"qwen2", &qwen2},
    {"deepseek-r1-qwen", &qwen2},
    {"kormo", &qwen2},
    {"f2llmv2", &qwen2},
    {"megrez", &qwen2},
    {"stablelm2", &qwen2},
    {"hunyuan", &qwen2},
    {"solar-open", &qwen2},
    {"grok-2", &qwen2},
    {"bailingmoe", &qwen2},
    {"bailingmoe2", &qwen2},
    {"llada-moe", &qwen2},
    {"qwen35", &qwen35},
    {"seed-coder", &seed_coder},
    {"gpt-4o", &gpt4o},
    {"llama4", &gpt4o},
    {"kanana2", &gpt4o},
    {"minimax-m2", &gpt4o},
    {"talkie", &gpt4o},
    {"tekken", &tekken},
    {"deepseek-llm", &deepseek_llm},
    {"deepseek-coder", &deepseek_coder},
    {"deepseek-v3", &deepseek_v3},
    {"hunyuan-dense", &deepseek_v3},
    {"joyai-llm", &deepseek_v3},
    {"kimi-k2", &kimi_k2},
    {"laguna", &laguna},
    {"minicpm5", &minicpm5},
    {"ufakzeka", &ufakzeka},
    {"jais-2", &jais2},
    {"exaone-moe", &exaone_moe},
    {"youtu", &youtu},
    {"granite-embed-multi-97m", &granite_embed},
    {"tiny_aya", &tiny_aya},
    {"cohere2moe", &tiny_aya},
    {"superbpe", &superbpe},
    {"afmoe", &afmoe},
    {"bloom", &bloom},
    {"poro-chat", &bloom},
    {"gpt3-finnish", &bloom},
    {"viking", &viking},
};

const wk_pretokenizer *wk_pretokenizer_find(wk_str name) {
    for (size_t i = 0; i < WK_COUNT(names); i++) {
        if (wk_str_is(name, names[i].name)) return names[i].kind;
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
