/* text/tokenize/merge.h: the loop that all kinds of BPE share: join the best pair of neighbours
 * until none is left.
 *
 * A text is merged in windows, and what a window says is kept only up to where the next window
 * begins, so that time is linear in the text and all memory stays in the cache. That is exact: a
 * pair of tokens side by side is right when merging the text of both gives the two again, and a
 * sequence is right when all its pairs are. (Were a pair first joined across a token boundary in
 * the whole text, everything before would have happened inside the tokens, in the same order as
 * when the two tokens around that boundary are merged alone.) The windows overlap; where the next
 * one begins with the token that the one before has there, the pair at the seam was in the window
 * before. Where it does not, the window before was too narrow: it is merged again, wider. */
#ifndef WK_TEXT_TOKENIZE_MERGE_H
#define WK_TEXT_TOKENIZE_MERGE_H

#include "core/alloc.h"
#include "core/str.h"
#include "text/tokenize/id_sink.h"

#define WK_NO_SYMBOL UINT32_MAX

typedef struct wk_symbol {
    const char *text;
    uint32_t size;       /* of text; 0: joined to the symbol before it */
    uint32_t id;         /* its token, or WICK_NO_TOKEN */
    uint32_t prev, next; /* indices, WK_NO_SYMBOL at the ends */
    uint32_t rank;       /* of joining it to the next */
    uint32_t joined;     /* what that gives, or WICK_NO_TOKEN */
} wk_symbol;

/* What the kinds differ in. */
typedef struct wk_merge_rule {
    const void *context;
    /* Bytes of the symbol that text (size > 0) begins with, and its token or WICK_NO_TOKEN. */
    size_t (*begin)(const void *context, wk_str text, uint32_t *id);
    /* False when the two may not be joined. Otherwise their token, and its rank: least first, equal
     * ones from the left. */
    bool (*join)(const void *context, const wk_symbol *left, const wk_symbol *right, uint32_t *rank,
                 uint32_t *id);
    /* Puts what stands for a symbol without a token. */
    wick_status (*spell)(const void *context, wk_str text, wk_id_sink *out);
} wk_merge_rule;

enum { WK_CACHED_BYTES = 22, WK_CACHED_IDS = 6 };

/* The ids of a short piece of text. */
typedef struct wk_cached_piece {
    uint8_t size, n; /* size 0: none */
    char text[WK_CACHED_BYTES];
    uint32_t ids[WK_CACHED_IDS];
} wk_cached_piece;

/* Scratch memory that is used for one piece of text after the other. */
typedef struct wk_merger {
    wk_heap *heap;
    wk_symbol *symbols; /* symbols[0] is the first one of the list */
    uint64_t *queue;    /* rank << 32 | symbol, a heap of which the least is first */
    size_t n_symbols, n_queue;
    size_t capacity; /* of symbols; queue has twice that */
    wk_cached_piece *cache;
    size_t cache_capacity; /* a power of two */
} wk_merger;

/* For a text of text_size bytes. WICK_ERR_OUT_OF_MEMORY; to be released in any case. */
wick_status wk_merger_init(wk_merger *merger, wk_heap *heap, size_t text_size);
void wk_merger_release(wk_merger *merger);

/* Appends the ids of a piece of text, less than 2^31 bytes. One merger serves one rule.
 * WICK_ERR_OUT_OF_MEMORY, or what rule->spell says. */
wick_status wk_merge(wk_merger *merger, const wk_merge_rule *rule, wk_str piece, wk_id_sink *out);

#endif
