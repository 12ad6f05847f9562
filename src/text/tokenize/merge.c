/* text/tokenize/merge.c: merging by priority, in windows. */
#include "text/tokenize/merge.h"

#include "core/hash.h"
#include "core/status.h"

#include <assert.h>
#include <string.h>

enum {
    WINDOW = 128, /* symbols merged at once; most of them stay in the nearest cache */
    LEAST_CAPACITY = 64,
    CACHE_MOST = 4096,     /* pieces: 192 KiB */
    CACHE_PIECE_BYTES = 8, /* of text for each piece of room */
    ARITY = 4,             /* of the heap: children lie side by side */
};

/* --- Scratch memory --- */

wick_status wk_merger_init(wk_merger *merger, wk_heap *heap, size_t text_size) {
    *merger = (wk_merger){.heap = heap, .cache_capacity = 1};
    while (merger->cache_capacity < CACHE_MOST &&
           merger->cache_capacity * CACHE_PIECE_BYTES < text_size) {
        merger->cache_capacity *= 2;
    }
    merger->cache = wk_alloc_array(heap, merger->cache_capacity, sizeof *merger->cache);
    return merger->cache ? WICK_OK : WICK_ERR_OUT_OF_MEMORY;
}

static void release_symbols(wk_merger *merger) {
    wk_free(merger->heap, merger->symbols, merger->capacity * sizeof *merger->symbols);
    wk_free(merger->heap, merger->queue, 2 * merger->capacity * sizeof *merger->queue);
    merger->symbols = NULL;
    merger->queue = NULL;
    merger->capacity = 0;
}

void wk_merger_release(wk_merger *merger) {
    release_symbols(merger);
    wk_free(merger->heap, merger->cache, merger->cache_capacity * sizeof *merger->cache);
    *merger = (wk_merger){.heap = merger->heap};
}

/* The queue never holds more than two candidates a symbol: it begins with one for each pair, and
 * every join takes one out and puts at most two in. */
static wick_status reserve(wk_merger *merger, size_t n_symbols) {
    if (n_symbols <= merger->capacity) return WICK_OK;
    size_t capacity = LEAST_CAPACITY;
    while (capacity < n_symbols) capacity *= 2;
    release_symbols(merger);
    merger->symbols = wk_alloc(merger->heap, capacity * sizeof *merger->symbols);
    merger->queue = wk_alloc(merger->heap, 2 * capacity * sizeof *merger->queue);
    merger->capacity = capacity;
    if (merger->symbols && merger->queue) return WICK_OK;
    release_symbols(merger);
    return WICK_ERR_OUT_OF_MEMORY;
}

/* --- The queue --- */

static void queue_push(wk_merger *merger, uint64_t key) {
    assert(merger->n_queue < 2 * merger->capacity);
    uint64_t *const queue = merger->queue;
    size_t at = merger->n_queue++;
    while (at > 0 && queue[(at - 1) / ARITY] > key) {
        queue[at] = queue[(at - 1) / ARITY];
        at = (at - 1) / ARITY;
    }
    queue[at] = key;
}

static uint64_t queue_pop(wk_merger *merger) {
    assert(merger->n_queue > 0);
    uint64_t *const queue = merger->queue;
    const uint64_t best = queue[0];
    const size_t n = --merger->n_queue;
    const uint64_t moved = queue[n];
    size_t at = 0;
    for (size_t child = 1; child < n; child = ARITY * at + 1) {
        const size_t end = child + ARITY < n ? child + ARITY : n;
        size_t least = child;
        for (size_t i = child + 1; i < end; i++) least = queue[i] < queue[least] ? i : least;
        if (queue[least] >= moved) break;
        queue[at] = queue[least];
        at = least;
    }
    queue[at] = moved;
    return best;
}

/* --- One window --- */

/* Queues left and the symbol after it, where they may be joined. */
static void consider(wk_merger *merger, const wk_merge_rule *rule, uint32_t left) {
    wk_symbol *const a = &merger->symbols[left];
    a->joined = WICK_NO_TOKEN;
    if (a->next == WK_NO_SYMBOL) return;
    if (!rule->join(rule->context, a, &merger->symbols[a->next], &a->rank, &a->joined)) return;
    queue_push(merger, (uint64_t)a->rank << 32 | left);
}

static void join_all(wk_merger *merger, const wk_merge_rule *rule) {
    wk_symbol *const symbols = merger->symbols;
    while (merger->n_queue > 0) {
        const uint64_t best = queue_pop(merger);
        const uint32_t at = (uint32_t)best;
        wk_symbol *const left = &symbols[at];
        /* Out of date: one of the two has grown since, or is gone. */
        if (left->joined == WICK_NO_TOKEN || left->rank != best >> 32) continue;
        assert(left->next != WK_NO_SYMBOL); /* it was joined to something */
        wk_symbol *const right = &symbols[left->next];
        left->size += right->size;
        left->id = left->joined;
        left->next = right->next;
        right->size = 0;
        right->joined = WICK_NO_TOKEN;
        if (left->next != WK_NO_SYMBOL) symbols[left->next].prev = at;
        if (left->prev != WK_NO_SYMBOL) consider(merger, rule, left->prev);
        consider(merger, rule, at);
    }
}

/* Merges at most n symbols from the beginning of text. Returns the bytes that they cover. */
static size_t merge_window(wk_merger *merger, const wk_merge_rule *rule, wk_str text, size_t n) {
    assert(text.size > 0 && n > 0);
    wk_symbol *const symbols = merger->symbols;
    size_t at = 0;
    uint32_t i = 0;
    for (; i < n && at < text.size; i++) {
        wk_symbol *const symbol = &symbols[i];
        assert(i < merger->capacity);
        *symbol = (wk_symbol){.text = text.text + at, .prev = i - 1, .next = i + 1};
        const wk_str rest = {text.text + at, text.size - at};
        symbol->size = (uint32_t)rule->begin(rule->context, rest, &symbol->id);
        assert(symbol->size > 0 && symbol->size <= rest.size);
        at += symbol->size;
    }
    symbols[0].prev = symbols[i - 1].next = WK_NO_SYMBOL;
    merger->n_symbols = i;
    merger->n_queue = 0;
    for (i = 0; i < merger->n_symbols; i++) consider(merger, rule, i);
    join_all(merger, rule);
    return at;
}

/* --- A piece of text --- */

/* Puts the symbols that begin before limit. *next is the one after them, or WK_NO_SYMBOL. */
static wick_status put_symbols(const wk_merger *merger, const wk_merge_rule *rule,
                               const char *limit, wk_id_sink *out, uint32_t *next) {
    uint32_t i = 0;
    for (; i != WK_NO_SYMBOL && merger->symbols[i].text < limit; i = merger->symbols[i].next) {
        const wk_symbol *const symbol = &merger->symbols[i];
        if (symbol->id != WICK_NO_TOKEN) {
            wk_id_sink_put(out, symbol->id);
        } else {
            WK_TRY(rule->spell(rule->context, (wk_str){symbol->text, symbol->size}, out));
        }
    }
    *next = i;
    return WICK_OK;
}

/* A place between two tokens, where merging of the text can start again. */
typedef struct seam {
    wk_str rest;
    size_t expected; /* bytes of the token that rest begins with; 0: not known */
    wk_id_sink out;  /* with all tokens before */
} seam;

/* Merges one window of `window` symbols from the seam, which moves on to the next one. *holds is
 * false where one of the two seams does not hold. */
static wick_status merge_to_seam(wk_merger *merger, const wk_merge_rule *rule, size_t window,
                                 seam *at, bool *holds) {
    WK_TRY(reserve(merger, at->rest.size < window ? at->rest.size : window));
    const size_t covered = merge_window(merger, rule, at->rest, window);
    *holds = at->expected == 0 || merger->symbols[0].size == at->expected;
    if (!*holds) return WICK_OK;
    const bool is_last = covered == at->rest.size;
    const char *const limit = at->rest.text + (is_last ? covered : covered - covered / 8);
    uint32_t next;
    WK_TRY(put_symbols(merger, rule, limit, &at->out, &next));
    *holds = is_last || next != WK_NO_SYMBOL;
    if (!*holds) return WICK_OK;
    const char *const to = is_last ? limit : merger->symbols[next].text;
    at->expected = is_last ? 0 : merger->symbols[next].size;
    at->rest.size -= (size_t)(to - at->rest.text);
    at->rest.text = to;
    return WICK_OK;
}

/* Where a seam does not hold, the window before it was too narrow: it is merged again, wider, and
 * if that breaks the seam before, everything is. */
static wick_status merge_text(wk_merger *merger, const wk_merge_rule *rule, wk_str text,
                              wk_id_sink *out) {
    const seam begin = {.rest = text, .out = *out};
    seam before = begin, at = begin;
    size_t window = WINDOW;
    while (at.rest.size > 0) {
        seam next = at;
        bool holds;
        WK_TRY(merge_to_seam(merger, rule, window, &next, &holds));
        if (holds) {
            before = at;
            at = next;
        } else {
            at = before;
            before = begin;
            if (window < text.size) window *= 2;
        }
    }
    *out = at.out;
    return WICK_OK;
}

/* Keeps what the piece in the only window became, if it is all tokens and not too many. */
static void remember(const wk_merger *merger, wk_str piece, wk_cached_piece *cached) {
    uint8_t n = 0;
    cached->size = 0;
    for (uint32_t i = 0; i != WK_NO_SYMBOL; i = merger->symbols[i].next) {
        if (n == WK_CACHED_IDS || merger->symbols[i].id == WICK_NO_TOKEN) return;
        cached->ids[n++] = merger->symbols[i].id;
    }
    assert(piece.size <= WK_CACHED_BYTES);
    cached->n = n;
    cached->size = (uint8_t)piece.size;
    memcpy(cached->text, piece.text, piece.size);
}

wick_status wk_merge(wk_merger *merger, const wk_merge_rule *rule, wk_str piece, wk_id_sink *out) {
    if (piece.size > WK_CACHED_BYTES) return merge_text(merger, rule, piece, out);
    const uint64_t hash = wk_hash(piece.text, piece.size);
    wk_cached_piece *const cached = &merger->cache[hash & (merger->cache_capacity - 1)];
    if (cached->size == piece.size && memcmp(cached->text, piece.text, piece.size) == 0) {
        for (size_t i = 0; i < cached->n; i++) wk_id_sink_put(out, cached->ids[i]);
        return WICK_OK;
    }
    WK_TRY(merge_text(merger, rule, piece, out));
    remember(merger, piece, cached);
    return WICK_OK;
}
