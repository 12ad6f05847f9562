/* grammar/matcher.h: which tokens may come next, by a grammar. */
#ifndef WK_GRAMMAR_MATCHER_H
#define WK_GRAMMAR_MATCHER_H

#include "grammar/expr.h"
#include "grammar/token_trie.h"

typedef struct wk_matcher wk_matcher;

/* tokenizer and trie must outlive it; rules need not. n_vocab: of the logits. What
 * wk_program_make refuses, is refused. */
typedef struct wk_matcher_desc {
    const wick_tokenizer *tokenizer;
    const wk_token_trie *trie;
    uint32_t n_vocab;
} wk_matcher_desc;
wick_status wk_matcher_make(wk_heap *heap, const wk_matcher_desc *desc, const wk_rules *rules,
                            wk_matcher **out, wick_error *err);
void wk_matcher_free(wk_matcher *matcher);

/* At the beginning of a text again. */
void wk_matcher_reset(wk_matcher *matcher);
/* Works out ahead of time what wk_matcher_apply needs. Both: WICK_ERR_OUT_OF_MEMORY,
 * WICK_ERR_VALUE: the grammar is too ambiguous. */
wick_status wk_matcher_prepare(wk_matcher *matcher, wick_error *err);
/* logits [n_vocab]: -INFINITY for what must not come next. */
wick_status wk_matcher_apply(wk_matcher *matcher, float *logits, wick_error *err);
/* The token comes next. WICK_ERR_VALUE also when it must not. */
wick_status wk_matcher_accept(wk_matcher *matcher, uint32_t id, wick_error *err);
/* Whether the text may end here. */
bool wk_matcher_may_end(const wk_matcher *matcher);

#endif
