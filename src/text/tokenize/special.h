/* text/tokenize/special.h: finds the tokens that are matched in text as a whole, before it is cut
 * and merged. */
#ifndef WK_TEXT_TOKENIZE_SPECIAL_H
#define WK_TEXT_TOKENIZE_SPECIAL_H

#include "core/map.h"
#include "text/tokenize/token_table.h"

typedef struct wk_special_node {
    uint32_t id;       /* of the token that ends here, or WICK_NO_TOKEN */
    bool is_always_on; /* user-defined: text too */
} wk_special_node;

/* A trie whose edges lie in one map. */
typedef struct wk_special {
    wk_map64 edges;         /* node << 8 | byte -> node */
    wk_special_node *nodes; /* [capacity]; the first is the root */
    size_t n_nodes, capacity;
    uint8_t first[256]; /* which bytes begin a token: 1 an always-on one, 2 any */
} wk_special;

wick_status wk_special_make(wk_heap *heap, const wk_vocab_desc *desc, const wk_token_table *table,
                            wk_special *out, wick_error *err);
void wk_special_release(wk_heap *heap, wk_special *special);

/* text is exactly such a token. */
bool wk_special_is(const wk_special *special, wk_str text);

/* The first place in text where a token stands, the longest one there: its offset, with its id and
 * size. text.size and no id when there is none. all: control and unknown tokens as well as
 * user-defined ones. */
size_t wk_special_find(const wk_special *special, wk_str text, bool all, uint32_t *id,
                       size_t *size);

#endif
