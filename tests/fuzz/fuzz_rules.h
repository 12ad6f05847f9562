/* tests/fuzz/fuzz_rules.h: rules that were read from any text, followed with a small vocabulary. */
#ifndef FUZZ_RULES_H
#define FUZZ_RULES_H

#include "checked_heap.h"
#include "core/compiler.h"
#include "grammar/matcher.h"
#include "unit/small_vocab.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct fuzz_rules {
    checked_heap checked;
    wk_arena arena;
    wk_rules rules;
    small_vocab vocab;
    wick_tokenizer *tokenizer;
} fuzz_rules;

static inline void require(bool is_true) {
    if (!is_true) abort();
}

static inline void fuzz_rules_begin(fuzz_rules *f) {
    checked_heap_init(&f->checked, UINT64_MAX);
    wk_arena_init(&f->arena, &f->checked.heap, 0);
    f->rules = (wk_rules){.arena = &f->arena};
    small_vocab_bpe(&f->vocab, "gpt-2");
    require(wk_tokenizer_make(&f->checked.heap, &f->vocab.desc, &f->tokenizer, NULL) == WICK_OK);
}

/* A token is accepted just where the mask lets it through. */
static inline void fuzz_try(wk_matcher *matcher, uint32_t n_vocab, uint32_t id) {
    float logits[SMALL_VOCAB_TOKENS] = {0};
    wick_error error = {.status = WICK_OK};
    if (wk_matcher_apply(matcher, logits, &error) != WICK_OK) {
        require(error.status == WICK_ERR_VALUE);
        return;
    }
    error = (wick_error){.status = WICK_OK};
    const wick_status status = wk_matcher_accept(matcher, id % n_vocab, &error);
    require(status == error.status && (status == WICK_OK || status == WICK_ERR_VALUE));
    require((status == WICK_OK) == (logits[id % n_vocab] > -INFINITY) ||
            strstr(error.message, "ambiguous"));
}

/* status: of reading the rules. Frees everything. */
static inline void fuzz_rules_follow(fuzz_rules *f, wick_status status, wick_error *error,
                                     const uint8_t *ids, size_t n) {
    wk_token_trie trie;
    wk_matcher *matcher = NULL;
    require(wk_token_trie_make(&f->checked.heap, f->tokenizer, &trie) == WICK_OK);
    const wk_matcher_desc desc = {f->tokenizer, &trie, wick_tokenizer_size(f->tokenizer)};
    if (status == WICK_OK)
        status = wk_matcher_make(&f->checked.heap, &desc, &f->rules, &matcher, error);
    require(status == error->status && (status == WICK_OK) == (error->message[0] == '\0'));
    require(status != WICK_ERR_OUT_OF_MEMORY);
    wk_arena_release(&f->arena);
    for (size_t i = 0; matcher && i < n && i < 64; i++) {
        fuzz_try(matcher, desc.n_vocab, ids[i]);
        fuzz_try(matcher, desc.n_vocab, 256u + ids[i]);
    }
    wk_matcher_free(matcher);
    wk_token_trie_free(&trie);
    wk_tokenizer_free(&f->checked.heap, f->tokenizer);
    require(checked_heap_is_clean(&f->checked));
}

#endif
