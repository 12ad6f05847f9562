/* simd/attention_step.h: steps of 64 keys for all queries that share them, and spans of steps.
 *
 * Keys are taken in spans, counted from key 0 of the sequence: each gives a part, and parts are
 * merged in order, whoever computed them. So what a query gets depends on its own keys alone: the
 * same bits in a prefill, a single step, or on any number of threads. */
#ifndef WK_SIMD_ATTENTION_STEP_H
#define WK_SIMD_ATTENTION_STEP_H

#include "backend/cpu/simd/attention_keys.h"

#include <assert.h>

enum {
    ITEM_ROWS = 16, /* rows that share the conversion of a step */
    MAX_TILE_QUERIES = ATTENTION_SUMS < 4 ? ATTENTION_SUMS : 4,
    WIDE_QUERIES = 12, /* halves become floats once for as many or more */
    /* The first spans are short, so that threads can share a short context; the others are long, so
     * that a long context has few parts: 46 for 131072 keys (16 short, 30 long). */
    SHORT_SPAN = 512,
    N_SHORT_SPANS = 16,
    LONG_SPAN = 4096,
    SHORT_KEYS = SHORT_SPAN * N_SHORT_SPANS,
};

static int64_t span_of(int64_t key) {
    return key < SHORT_KEYS ? key / SHORT_SPAN : N_SHORT_SPANS + (key - SHORT_KEYS) / LONG_SPAN;
}

static int64_t span_begin(int64_t span) {
    return span < N_SHORT_SPANS ? span * SHORT_SPAN
                                : SHORT_KEYS + (span - N_SHORT_SPANS) * LONG_SPAN;
}

static int64_t count_spans(int64_t n_keys) { return n_keys > 0 ? span_of(n_keys - 1) + 1 : 0; }

/* Scratch of a worker. */
typedef struct attention_worker {
    step_floats step;
    float *parts, *totals; /* one of each query */
    query_state *queries;
} attention_worker;

static uint64_t worker_bytes(const attention *a, int64_t n_queries) {
    const int64_t floats = STEP * (round_up(a->d, 16) + a->width) + 2 * n_queries * part_floats(a);
    return (uint64_t)floats * sizeof(float) + (uint64_t)n_queries * sizeof(query_state);
}

static attention_worker worker_at(const attention *a, void *memory, int64_t n_queries) {
    float *const keys = memory, *const values = keys + STEP * round_up(a->d, 16);
    float *const parts = values + STEP * a->width;
    float *const totals = parts + n_queries * part_floats(a);
    void *const queries = totals + n_queries * part_floats(a);
    return (attention_worker){{keys, values}, parts, totals, queries};
}

/* ---- Tiles: n queries by tile_vectors(n) vectors of 16 keys, or of 16 elements of values. ---- */

WK_INLINE int tile_vectors(const int n) {
    return 4 * n <= ATTENTION_SUMS ? 4 : 2 * n <= ATTENTION_SUMS ? 2 : 1;
}

/* Scores of the keys from vector first on. */
WK_INLINE void dot_tile(const attention *a, const step_keys *s, query_state *const queries[],
                        const int n, const bool is_half, int first) {
    v16 sum[MAX_TILE_QUERIES][VECTORS];
    const int vectors = tile_vectors(n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < vectors; j++) sum[i][j] = v16_zero();
    int64_t at = 0;
    for (int64_t l = 0; l < a->d; l++, at += s->key_stride) {
        v16 key[VECTORS];
        for (int j = 0; j < vectors; j++) key[j] = load_lanes(s->keys[first + j] + at, is_half);
        for (int i = 0; i < n; i++) {
            const v16 ql = v16_set(queries[i]->q[l]);
            for (int j = 0; j < vectors; j++) sum[i][j] = v16_fma(key[j], ql, sum[i][j]);
        }
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < vectors; j++)
            v16_store(queries[i]->scores + 16 * (first + j), sum[i][j]);
}

/* Adds weights . values to the sums of the elements from at on. */
WK_INLINE void add_tile(const step_keys *s, query_state *const queries[], const int n,
                        const int vectors, const bool is_half, int64_t at) {
    v16 sum[MAX_TILE_QUERIES][VECTORS];
    const int size = is_half ? 2 : 4;
    for (int i = 0; i < n; i++)
        for (int l = 0; l < vectors; l++)
            sum[i][l] = v16_load(queries[i]->part + PART_SUMS + at + 16 * l);
    for (int64_t j = s->begin, end; j < s->end; j = end) {
        const unsigned char *row = s->values[j / 16] + j % 16 * s->value_stride + at * size;
        end = (j / 16 + 1) * 16 < s->end ? (j / 16 + 1) * 16 : s->end;
        for (int64_t k = j; k < end; k++, row += s->value_stride) {
            v16 value[VECTORS];
            for (int l = 0; l < vectors; l++) value[l] = load_lanes(row + 16 * l * size, is_half);
            for (int i = 0; i < n; i++) {
                const v16 weight = v16_set(queries[i]->scores[k]);
                for (int l = 0; l < vectors; l++) sum[i][l] = v16_fma(value[l], weight, sum[i][l]);
            }
        }
    }
    for (int i = 0; i < n; i++)
        for (int l = 0; l < vectors; l++)
            v16_store(queries[i]->part + PART_SUMS + at + 16 * l, sum[i][l]);
}

WK_INLINE void add_values(const attention *a, const step_keys *s, query_state *const queries[],
                          const int n, const bool is_half) {
    const int vectors = tile_vectors(n);
    int64_t at = 0;
    for (; at + 16 * vectors <= a->width; at += 16 * vectors)
        add_tile(s, queries, n, vectors, is_half, at);
    for (; at < a->width; at += 16) add_tile(s, queries, n, 1, is_half, at);
}

WK_INLINE void step_tile(const attention *a, const step_keys *s, query_state *const queries[],
                         const int n, int64_t step) {
    for (int j = 0; j < VECTORS; j += tile_vectors(n)) {
        if (!ATTENTION_WIDENS && s->has_half_keys)
            dot_tile(a, s, queries, n, true, j);
        else
            dot_tile(a, s, queries, n, false, j);
    }
    for (int i = 0; i < n; i++) weigh(a, queries[i], step);
    if (!ATTENTION_WIDENS && s->has_half_values)
        add_values(a, s, queries, n, true);
    else
        add_values(a, s, queries, n, false);
}

static void step_chosen(const attention *a, const step_keys *s, query_state *const queries[], int n,
                        int64_t step) {
    switch (n) {
    case 4:
        if (MAX_TILE_QUERIES >= 4) step_tile(a, s, queries, 4, step);
        break;
    case 3:
        if (MAX_TILE_QUERIES >= 3) step_tile(a, s, queries, 3, step);
        break;
    case 2: step_tile(a, s, queries, 2, step); break;
    case 1: step_tile(a, s, queries, 1, step); break;
    default: break;
    }
}

/* ---- All queries. ---- */

static bool sees_any(const query_state *query, int64_t begin, int64_t end) {
    return query->first < end && query->end > begin && query->first < query->end;
}

/* Adds the keys seen, which are within one span, to the parts of the first n queries. */
static void attend_keys(const attention *a, const attention_worker *w, const seen_keys *seen,
                        int64_t n) {
    assert(seen->first >= seen->end || span_of(seen->first) == span_of(seen->end - 1));
    const bool widens = ATTENTION_WIDENS || n >= WIDE_QUERIES;
    for (int64_t step = seen->first / STEP * STEP; step < seen->end; step += STEP) {
        const step_keys keys = load_step(a, seen, step, widens, &w->step);
        query_state *chosen[MAX_TILE_QUERIES];
        int n_chosen = 0;
        for (int64_t i = 0; i < n; i++) {
            if (!sees_any(&w->queries[i], step, step + STEP)) continue;
            chosen[n_chosen++] = &w->queries[i];
            if (n_chosen < MAX_TILE_QUERIES) continue;
            step_chosen(a, &keys, chosen, n_chosen, step);
            n_chosen = 0;
        }
        step_chosen(a, &keys, chosen, n_chosen, step);
    }
}

/* The first n queries from their first key to their result; seen: what any of them sees. */
static void attend(const attention *a, const attention_worker *w, const seen_keys *seen,
                   int64_t n) {
    const int64_t floats = part_floats(a);
    for (int64_t i = 0; i < n; i++) {
        w->queries[i].part = w->parts + i * floats;
        clear_part(a, w->totals + i * floats);
    }
    for (int64_t span = span_of(seen->first); span_begin(span) < seen->end; span++) {
        const int64_t begin = span_begin(span), end = span_begin(span + 1);
        seen_keys here = *seen;
        if (here.first < begin) here.first = begin;
        if (here.end > end) here.end = end;
        for (int64_t i = 0; i < n; i++) clear_part(a, w->queries[i].part);
        attend_keys(a, w, &here, n);
        for (int64_t i = 0; i < n; i++)
            if (sees_any(&w->queries[i], begin, end))
                merge_part(a, w->totals + i * floats, w->queries[i].part);
    }
    for (int64_t i = 0; i < n; i++) write_result(a, &w->queries[i], w->totals + i * floats);
}

#endif
