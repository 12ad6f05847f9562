/* simd/attention.h: attention over the paged cache, written once over simd_*.h.
 *
 * Keys are taken in steps of 64, counted from key 0 of the sequence: a step is converted to float
 * once (keys transposed, so that a register holds 16 of them) for all rows and heads of an item,
 * and the softmax is carried along (Milakov and Gimelshein, 2018), so no matrix of scores is kept.
 * What a row gets depends on its own steps alone: the same bits in a prefill, a single step or
 * another split. */
#ifndef WK_SIMD_ATTENTION_H
#define WK_SIMD_ATTENTION_H

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/simd/vector_math.h"
#include "core/half.h"

#include <math.h>
#include <string.h>

enum {
    Q,
    K_CACHE,
    V_CACHE,
    BATCH,
    SINKS,
    SLOPES,
    STEP = 64,
    VECTORS = STEP / 16,
    ITEM_ROWS = 16, /* rows that share the conversion of a step */
};

/* What the items of one op have in common. */
typedef struct cached_op {
    const wk_op *op;
    int64_t n_blocks, block_size; /* of the caches */
    int64_t d, e, e_padded;       /* e_padded: up to a multiple of 16 */
    int64_t heads;                /* query heads of one key head */
} cached_op;

/* One query: a row and a head, and its softmax so far. */
typedef struct query_state {
    const float *q;
    float *y;
    int64_t first, end; /* keys that it sees */
    float largest;      /* logit */
    float scores[STEP];
    float sums[16]; /* of the weights, by lane */
} query_state;

static int64_t round_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

static cached_op cached_get(const wk_op *op) {
    const wk_view *const k = wk_src(op, K_CACHE), *const v = wk_src(op, V_CACHE);
    return (cached_op){
        .op = op,
        .n_blocks = k->extent[0],
        .block_size = k->extent[2],
        .d = k->extent[3],
        .e = v->extent[3],
        .e_padded = round_up(v->extent[3], 16),
        .heads = wk_src(op, Q)->extent[1] / k->extent[1],
    };
}

/* Worker scratch, in floats: keys [d][STEP], values [STEP][e], then for each query its sum [e]; the
 * queries themselves come last. */
typedef struct cached_scratch {
    float *keys, *values, *sums;
    query_state *queries;
} cached_scratch;

static size_t cached_worker_bytes(const wk_op *op) {
    const cached_op c = cached_get(op);
    const int64_t queries = c.heads * ITEM_ROWS;
    const int64_t floats = STEP * (round_up(c.d, 16) + c.e_padded) + queries * c.e_padded;
    return (size_t)floats * sizeof(float) + (size_t)queries * sizeof(query_state);
}

static cached_scratch scratch_at(const cached_op *c, void *memory) {
    float *const keys = memory, *const values = keys + STEP * round_up(c->d, 16);
    float *const sums = values + STEP * c->e_padded;
    return (cached_scratch){keys, values, sums,
                            (query_state *)(void *)(sums + c->heads * ITEM_ROWS * c->e_padded)};
}

/* ---- Converting a step. ---- */

/* Keys [first, end) of a sequence. */
typedef struct seen_keys {
    const uint32_t *table; /* the sequence's blocks */
    int64_t first, end;
} seen_keys;

/* NULL for a key that is not seen, whose block may be gone. */
static const unsigned char *cache_row(const cached_op *c, const wk_view *cache,
                                      const seen_keys *seen, int64_t group, int64_t key) {
    if (key < seen->first || key >= seen->end) return NULL;
    const uint32_t *const table = seen->table;
    const int64_t size = cache->dtype == WICK_F16 ? 2 : 4;
    const int64_t element = (int64_t)table[key / c->block_size] * cache->stride[0] +
                            group * cache->stride[1] + key % c->block_size * cache->stride[2];
    return (const unsigned char *)wk_cpu_data(cache) + element * size;
}

/* 16 elements from i on of a row of n; the missing ones are zeros. */
WK_INLINE v16 load_cached(const unsigned char *row, bool is_half, int64_t i, int64_t n) {
    if (!is_half) return v16_load_rows((const float *)(const void *)row + i, n - i);
    const uint16_t *const halves = (const uint16_t *)(const void *)row + i;
    if (n - i >= 16) return v16_load_f16(halves);
    uint16_t padded[16] = {0};
    memcpy(padded, halves, (size_t)(n - i) * sizeof *padded);
    return v16_load_f16(padded);
}

/* Whether 16 keys lie side by side, element by element: the layout that model/state.c chooses. */
static bool lies_transposed(const wk_view *cache) {
    return cache->stride[2] == 1 && cache->stride[3] != 1 && cache->extent[2] % 16 == 0;
}

/* The same for a cache that lies transposed. Keys of a block that nobody sees may hold anything: a
 * key has its lane, and what it gives there is masked. */
static void load_keys(const cached_op *c, const seen_keys *seen, int64_t group, int64_t step,
                      float *keys) {
    const wk_view *const cache = wk_src(c->op, K_CACHE);
    const bool is_half = cache->dtype == WICK_F16;
    const int64_t size = is_half ? 2 : 4;
    for (int64_t j = 0; j < STEP; j += 16) {
        const int64_t key = step + j;
        const bool is_seen = key < seen->end && key + 16 > seen->first;
        const unsigned char *column = wk_cpu_data(cache);
        if (is_seen)
            column += ((int64_t)seen->table[key / c->block_size] * cache->stride[0] +
                       group * cache->stride[1] + key % c->block_size) *
                      size;
        for (int64_t l = 0; l < c->d; l++) {
            const v16 lanes = is_seen ? load_cached(column, is_half, 0, 16) : v16_zero();
            v16_store(keys + l * STEP + j, lanes);
            column += is_seen ? cache->stride[3] * size : 0;
        }
    }
}

/* The keys of the step that begins at key step, transposed; those that nobody sees are zeros. */
static void convert_keys(const cached_op *c, const seen_keys *seen, int64_t group, int64_t step,
                         float *keys) {
    const wk_view *const cache = wk_src(c->op, K_CACHE);
    for (int64_t j = 0; j < STEP; j += 16) {
        const unsigned char *rows[16];
        for (int i = 0; i < 16; i++) rows[i] = cache_row(c, cache, seen, group, step + j + i);
        for (int64_t at = 0; at < c->d; at += 16) {
            v16 tile[16];
            for (int i = 0; i < 16; i++)
                tile[i] = rows[i] == NULL
                              ? v16_zero()
                              : load_cached(rows[i], cache->dtype == WICK_F16, at, c->d);
            v16_transpose(tile);
            for (int i = 0; i < 16; i++) v16_store(keys + (at + i) * STEP + j, tile[i]);
        }
    }
}

static void convert_values(const cached_op *c, const seen_keys *seen, int64_t group, int64_t step,
                           float *values) {
    const wk_view *const cache = wk_src(c->op, V_CACHE);
    for (int64_t j = 0; j < STEP; j++, values += c->e_padded) {
        const unsigned char *const row = cache_row(c, cache, seen, group, step + j);
        if (row == NULL) {
            memset(values, 0, (size_t)c->e_padded * sizeof *values);
            continue;
        }
        for (int64_t at = 0; at < c->e; at += 16)
            v16_store(values + at, load_cached(row, cache->dtype == WICK_F16, at, c->e));
    }
}

/* ---- One step of n queries. ---- */

WK_INLINE void dot_keys(const cached_op *c, query_state *const queries[], const int n,
                        const float *keys) {
    v16 sum[ATTENTION_QUERIES][VECTORS];
    const float *q[ATTENTION_QUERIES];
    for (int i = 0; i < n; i++) {
        q[i] = queries[i]->q;
        for (int j = 0; j < VECTORS; j++) sum[i][j] = v16_zero();
    }
    for (int64_t l = 0; l < c->d; l++, keys += STEP) {
        v16 key[VECTORS];
        for (int j = 0; j < VECTORS; j++) key[j] = v16_load(keys + 16 * j);
        for (int i = 0; i < n; i++) {
            const v16 ql = v16_set(q[i][l]);
            for (int j = 0; j < VECTORS; j++) sum[i][j] = v16_fma(key[j], ql, sum[i][j]);
        }
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < VECTORS; j++) v16_store(queries[i]->scores + 16 * j, sum[i][j]);
}

/* Turns the scores of the step that begins at first into weights and scales what was summed before.
 */
static void weigh(const cached_op *c, query_state *query, int64_t first, float *sum) {
    const v16 scale = v16_set(c->op->p.cached.scale), none = v16_set(-INFINITY);
    v16 logit[VECTORS], most = none;
    for (int j = 0; j < VECTORS; j++) {
        const int64_t key = first + 16 * j;
        logit[j] = v16_mul(v16_load(query->scores + 16 * j), scale);
        logit[j] = v16_fill_from(logit[j], query->end - key, -INFINITY);
        if (key < query->first) { /* before the window: keep the lanes from query->first on */
            float lanes[16];
            v16_store(lanes, logit[j]);
            for (int64_t i = 0; i < 16 && key + i < query->first; i++) lanes[i] = -INFINITY;
            logit[j] = v16_load(lanes);
        }
        most = v16_max(logit[j], most);
    }
    const float largest = fmaxf(query->largest, v16_largest(most));
    /* Nothing but -infinity so far: any finite number keeps the weights zero. */
    const v16 base = v16_set(largest == -INFINITY ? 0 : largest);
    const v16 factor = v16_exp(v16_sub(v16_set(query->largest), base));
    v16 weights = v16_mul(v16_load(query->sums), factor);
    for (int j = 0; j < VECTORS; j++) {
        const v16 weight = v16_exp(v16_sub(logit[j], base));
        v16_store(query->scores + 16 * j, weight);
        weights = v16_add(weights, weight);
    }
    v16_store(query->sums, weights);
    query->largest = largest;
    for (int64_t l = 0; l < c->e_padded; l += 16)
        v16_store(sum + l, v16_mul(v16_load(sum + l), factor));
}

/* sum[i] [e_padded] += weights . values, vectors of 16 columns at a time. */
WK_INLINE void add_values(const cached_op *c, query_state *const queries[], float *const sums[],
                          const int n, const int vectors, const float *values) {
    v16 sum[ATTENTION_QUERIES][VECTORS];
    for (int i = 0; i < n; i++)
        for (int l = 0; l < vectors; l++) sum[i][l] = v16_load(sums[i] + 16 * l);
    for (int j = 0; j < STEP; j++, values += c->e_padded) {
        v16 value[VECTORS];
        for (int l = 0; l < vectors; l++) value[l] = v16_load(values + 16 * l);
        for (int i = 0; i < n; i++) {
            const v16 weight = v16_set(queries[i]->scores[j]);
            for (int l = 0; l < vectors; l++) sum[i][l] = v16_fma(value[l], weight, sum[i][l]);
        }
    }
    for (int i = 0; i < n; i++)
        for (int l = 0; l < vectors; l++) v16_store(sums[i] + 16 * l, sum[i][l]);
}

WK_INLINE void step_queries(const cached_op *c, const cached_scratch *s,
                            query_state *const queries[], const int n, int64_t first) {
    float *sums[ATTENTION_QUERIES];
    dot_keys(c, queries, n, s->keys);
    for (int i = 0; i < n; i++) {
        sums[i] = s->sums + (queries[i] - s->queries) * c->e_padded;
        weigh(c, queries[i], first, sums[i]);
    }
    int64_t at = 0;
    for (; at + 64 <= c->e_padded; at += 64) {
        add_values(c, queries, sums, n, 4, s->values + at);
        for (int i = 0; i < n; i++) sums[i] += 64;
    }
    for (; at < c->e_padded; at += 16) {
        add_values(c, queries, sums, n, 1, s->values + at);
        for (int i = 0; i < n; i++) sums[i] += 16;
    }
}

/* The queries that see a key of the step, a few at a time. */
static void step_all(const cached_op *c, const cached_scratch *s, int64_t n, int64_t first) {
    query_state *chosen[ATTENTION_QUERIES];
    int n_chosen = 0;
    for (int64_t i = 0; i < n; i++) {
        query_state *const query = &s->queries[i];
        if (query->end <= first || query->first >= first + STEP) continue;
        chosen[n_chosen++] = query;
        if (n_chosen < ATTENTION_QUERIES) continue;
        step_queries(c, s, chosen, ATTENTION_QUERIES, first);
        n_chosen = 0;
    }
    for (int i = 0; i < n_chosen; i++) step_queries(c, s, &chosen[i], 1, first);
}

/* ---- Rows. ---- */

typedef struct row_keys {
    seen_keys seen;
    bool is_padding, is_bad;
} row_keys;

/* Every number of the descriptor that leads to memory is checked here. */
static row_keys find_keys(const cached_op *c, const uint32_t *words, int64_t row) {
    const wk_batch_layout *const b = &c->op->p.cached.batch;
    const uint32_t sequence = words[b->sequences + row];
    if (sequence == WK_NO_ROW) return (row_keys){.is_padding = true};
    if (sequence >= b->n_sequences) return (row_keys){.is_bad = true};
    const int64_t position = words[b->positions + row], length = words[b->lengths + sequence];
    if (position >= length || length > (int64_t)b->n_blocks * c->block_size)
        return (row_keys){.is_bad = true};
    const int64_t window = c->op->p.cached.window;
    row_keys keys = {
        .seen.table = words + b->tables + (size_t)sequence * b->n_blocks,
        .seen.first = window > 0 && position >= window ? position - window + 1 : 0,
        .seen.end = position + 1,
    };
    for (int64_t i = keys.seen.first / c->block_size; i * c->block_size < keys.seen.end; i++)
        if (keys.seen.table[i] >= c->n_blocks) keys.is_bad = true;
    return keys;
}

static float *row_of(const wk_view *view, int64_t row, int64_t head) {
    return (float *)wk_cpu_data(view) + row * view->stride[0] + head * view->stride[1];
}

static void write_result(const cached_op *c, const query_state *query, const float *sum) {
    const float weights = v16_sum(v16_load(query->sums));
    const v16 total = v16_set(weights == 0 ? 1 : weights);
    for (int64_t l = 0; l < c->e; l += 16)
        v16_store_rows(query->y + l, v16_div(v16_load(sum + l), total), c->e - l);
}

static void add_queries(const cached_op *c, const cached_scratch *s, const seen_keys *seen,
                        int64_t row, int64_t group, int64_t *n) {
    for (int64_t i = 0; i < c->heads; i++, (*n)++) {
        const int64_t head = group * c->heads + i;
        s->queries[*n] = (query_state){
            .q = row_of(wk_src(c->op, Q), row, head),
            .y = row_of(wk_dst(c->op, 0), row, head),
            .first = seen->first,
            .end = seen->end,
            .largest = -INFINITY,
        };
        memset(s->sums + *n * c->e_padded, 0, (size_t)c->e_padded * sizeof(float));
    }
}

/* Queries of one sequence and key head; seen: what any of them sees. */
static void attend(const cached_op *c, const cached_scratch *s, const seen_keys *seen,
                   int64_t group, int64_t n) {
    for (int64_t step = seen->first / STEP * STEP; step < seen->end; step += STEP) {
        if (lies_transposed(wk_src(c->op, K_CACHE)))
            load_keys(c, seen, group, step, s->keys);
        else
            convert_keys(c, seen, group, step, s->keys);
        convert_values(c, seen, group, step, s->values);
        step_all(c, s, n, step);
    }
    for (int64_t i = 0; i < n; i++) write_result(c, &s->queries[i], s->sums + i * c->e_padded);
}

static void write_zeros(const cached_op *c, int64_t row, int64_t group) {
    for (int64_t i = 0; i < c->heads; i++)
        memset(row_of(wk_dst(c->op, 0), row, group * c->heads + i), 0,
               (size_t)c->e * sizeof(float));
}

/* Rows [row, end) for one key head, those of one sequence that follow each other at a time. */
static void run_rows(const wk_cpu_run *run, const cached_op *c, const cached_scratch *s,
                     const int64_t rows[2], int64_t group) {
    const uint32_t *const words = wk_cpu_data(wk_src(c->op, BATCH));
    seen_keys seen = {NULL, 0, 0};
    int64_t n = 0;
    for (int64_t row = rows[0]; row < rows[1]; row++) {
        const row_keys keys = find_keys(c, words, row);
        if (n > 0 && keys.seen.table != seen.table) {
            attend(c, s, &seen, group, n);
            n = 0;
        }
        if (keys.is_bad) wk_cpu_fault(run);
        if (keys.is_padding) write_zeros(c, row, group);
        if (keys.is_bad || keys.is_padding) continue;
        if (n == 0) seen = keys.seen;
        if (keys.seen.first < seen.first) seen.first = keys.seen.first;
        if (keys.seen.end > seen.end) seen.end = keys.seen.end;
        add_queries(c, s, &keys.seen, row, group, &n);
    }
    if (n > 0) attend(c, s, &seen, group, n);
}

static int64_t cached_items(const wk_op *op, int phase) {
    (void)phase;
    const int64_t rows = wk_src(op, Q)->extent[0], groups = wk_src(op, K_CACHE)->extent[1];
    return (rows + ITEM_ROWS - 1) / ITEM_ROWS * groups;
}

static void run_attention_cached(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const cached_op c = cached_get(run->op);
    const cached_scratch s = scratch_at(&c, run->worker_scratch);
    const int64_t n_rows = wk_src(run->op, Q)->extent[0];
    const int64_t groups = wk_src(run->op, K_CACHE)->extent[1];
    for (int64_t item = begin; item < end; item++) {
        const int64_t row = item / groups * ITEM_ROWS;
        const int64_t rows[2] = {row, row + ITEM_ROWS < n_rows ? row + ITEM_ROWS : n_rows};
        run_rows(run, &c, &s, rows, item % groups);
    }
}

/* Rows of floats of a type that is read here. */
static bool is_dense_last(const wk_view *view, bool may_be_half) {
    const int last = view->rank - 1;
    return (view->dtype == WICK_F32 || (may_be_half && view->dtype == WICK_F16)) &&
           (view->stride[last] == 1 || view->extent[last] <= 1);
}

static bool accepts_keys(const wk_view *cache) {
    if (is_dense_last(cache, true)) return true;
    return lies_transposed(cache) && (cache->dtype == WICK_F32 || cache->dtype == WICK_F16);
}

static bool accepts_batch(const wk_op *op, const wk_view *batch, const wk_view *k_cache,
                          const wk_view *v_cache) {
    const wk_batch_layout *const b = &op->p.cached.batch;
    return batch->dtype == WICK_U32 && batch->rank == 1 && wk_view_is_dense(batch) &&
           batch->extent[0] >= b->n_words && b->block_size > 0 && accepts_keys(k_cache) &&
           is_dense_last(v_cache, true) && k_cache->extent[2] == b->block_size &&
           v_cache->extent[2] == b->block_size && v_cache->extent[0] == k_cache->extent[0];
}

static bool accepts_attention_cached(const wk_op *op) {
    return op->p.cached.softcap == 0 && wk_src(op, SINKS)->rank == 0 &&
           wk_src(op, SLOPES)->rank == 0 && is_dense_last(wk_dst(op, 0), false) &&
           is_dense_last(wk_src(op, Q), false) &&
           accepts_batch(op, wk_src(op, BATCH), wk_src(op, K_CACHE), wk_src(op, V_CACHE));
}

/* ---- kv_append: rows of keys and values to their slots. ---- */

static int64_t append_items(const wk_op *op, int phase) {
    (void)phase;
    return wk_src(op, 0)->extent[0];
}

static bool accepts_append(const wk_op *op) {
    return is_dense_last(wk_src(op, 0), false) && is_dense_last(wk_src(op, 1), false) &&
           accepts_batch(op, wk_src(op, 2), wk_dst(op, 0), wk_dst(op, 1));
}

static void store_cached(unsigned char *row, bool is_half, const float *x, int64_t n) {
    if (!is_half) {
        memcpy(row, x, (size_t)n * sizeof *x);
        return;
    }
    uint16_t *const halves = (uint16_t *)(void *)row;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) v16_store_f16(halves + i, v16_load(x + i));
    for (; i < n; i++) halves[i] = wk_f32_to_f16(x[i]);
}

/* One element every stride elements. */
static void store_column(unsigned char *column, bool is_half, int64_t stride, const float *x,
                         int64_t n) {
    for (int64_t i = 0; i < n; i += 16) {
        const int64_t count = n - i < 16 ? n - i : 16;
        uint16_t halves[16];
        if (is_half) v16_store_f16(halves, v16_load_rows(x + i, count));
        for (int64_t k = 0; k < count; k++, column += stride * (is_half ? 2 : 4)) {
            if (is_half)
                memcpy(column, &halves[k], sizeof halves[k]);
            else
                memcpy(column, &x[i + k], sizeof x[i + k]);
        }
    }
}

static void append(const wk_view *cache, const wk_view *rows, int64_t row, int64_t slot) {
    const bool is_half = cache->dtype == WICK_F16;
    const int64_t block_size = cache->extent[2];
    for (int64_t g = 0; g < cache->extent[1]; g++) {
        const int64_t to = slot / block_size * cache->stride[0] + g * cache->stride[1] +
                           slot % block_size * cache->stride[2];
        unsigned char *const at = (unsigned char *)wk_cpu_data(cache) + to * (is_half ? 2 : 4);
        if (lies_transposed(cache))
            store_column(at, is_half, cache->stride[3], row_of(rows, row, g), cache->extent[3]);
        else
            store_cached(at, is_half, row_of(rows, row, g), cache->extent[3]);
    }
}

static void run_append(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_op *const op = run->op;
    const wk_batch_layout *const b = &op->p.cached.batch;
    const uint32_t *const words = wk_cpu_data(wk_src(op, 2));
    for (int64_t row = begin; row < end; row++) {
        const uint32_t sequence = words[b->sequences + row], slot = words[b->slots + row];
        if (sequence == WK_NO_ROW) continue;
        if (sequence >= b->n_sequences || slot / b->block_size >= wk_dst(op, 0)->extent[0]) {
            wk_cpu_fault(run);
            continue;
        }
        append(wk_dst(op, 0), wk_src(op, 0), row, slot);
        append(wk_dst(op, 1), wk_src(op, 1), row, slot);
    }
}

#endif
