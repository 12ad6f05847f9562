/* llm/grammar.c: see grammar.h. */
#include "llm/grammar.h"

#include "grammar/gbnf.h"
#include "grammar/json_schema.h"

#include <string.h>

/* Some of what can be wrong is found by parsers of more than schemas: of JSON, of patterns. */
static wick_status name_schema(wick_status status, const wick_error *found, wick_error *err) {
    static const char name[] = "the JSON schema";
    const bool is_named = strncmp(found->message, name, sizeof name - 1) == 0;
    if (status == WICK_ERR_OUT_OF_MEMORY) {
        if (err && err->status == WICK_OK) *err = *found;
        return status;
    }
    return wk_fail(err, status, "%s%s%s", is_named ? "" : name, is_named ? "" : ": ",
                   found->message);
}

static wick_status read_rules(const wick_model *model, const wick_sampler_desc *desc,
                              wk_rules *rules, wick_error *err) {
    if (desc->grammar) return wk_gbnf_parse(rules, model->tokenizer, wk_str_of(desc->grammar), err);
    wick_error found = {.status = WICK_OK};
    const wick_status status = wk_json_schema_parse(rules, wk_str_of(desc->json_schema), &found);
    return status == WICK_OK ? WICK_OK : name_schema(status, &found, err);
}

static wick_status make_matcher(wick_model *model, const wk_rules *rules, wk_matcher **out,
                                wick_error *err) {
    wk_token_trie *const trie = &model->trie;
    if (!trie->heap && wk_token_trie_make(model->heap, model->tokenizer, trie) != WICK_OK)
        return wk_fail_memory(err, 0, "a grammar");
    const wk_matcher_desc desc = {.tokenizer = model->tokenizer,
                                  .trie = trie,
                                  .n_vocab = wk_model_hparams(model->model)->n_vocab};
    return wk_matcher_make(model->heap, &desc, rules, out, err);
}

wick_status wk_grammar_open(wick_model *model, const wick_sampler_desc *desc, wk_matcher **out,
                            wick_error *err) {
    *out = NULL;
    if (!desc->grammar && !desc->json_schema) return WICK_OK;
    if (desc->grammar && desc->json_schema)
        return wk_fail(err, WICK_ERR_VALUE, "a grammar and a JSON schema exclude each other");
    wk_arena arena;
    wk_arena_init(&arena, model->heap, 0);
    wk_rules rules = {.arena = &arena};
    wick_status status = read_rules(model, desc, &rules, err);
    if (status == WICK_OK) status = make_matcher(model, &rules, out, err);
    wk_arena_release(&arena);
    return status;
}
