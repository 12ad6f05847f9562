/* grammar/token_trie.h: the texts of a vocabulary as a tree of bytes, in the order of a walk from
 * the root down: the nodes below a node come right after it. */
#ifndef WK_GRAMMAR_TOKEN_TRIE_H
#define WK_GRAMMAR_TOKEN_TRIE_H

#include "core/alloc.h"
#include "core/status.h"

#include <wick/text.h>

typedef struct wk_token_trie {
    wk_heap *heap;
    uint32_t n_vocab; /* of the tokenizer */
    uint32_t n_nodes, n_tokens;
    uint32_t depth;   /* bytes of the longest token */
    uint8_t *bytes;   /* [n_nodes] */
    uint16_t *depths; /* [n_nodes] bytes before it: 0 for those below the root */
    uint32_t *skips;  /* [n_nodes] the first node after those below it */
    uint32_t *firsts; /* [n_nodes + 1] tokens that end here: firsts[i] to firsts[i + 1] of ids */
    uint32_t *ids;    /* [n_tokens] by their texts */
    uint32_t *ends;   /* [n_ends] tokens that end a generation; not in the tree */
    uint32_t n_ends;
} wk_token_trie;

/* The tree has the tokens that write text and do not end a generation, except for those of more
 * than 65534 bytes. WICK_ERR_OUT_OF_MEMORY. */
wick_status wk_token_trie_make(wk_heap *heap, const wick_tokenizer *tokenizer, wk_token_trie *out);
void wk_token_trie_free(wk_token_trie *trie);

#endif
