/* simd/attention_cached.h: attention over the paged cache, written once over simd_*.h.
 *
 * Many rows: an item are 16 or 32 and a key head, which share what is made of the keys; rows of
 * many sequences share nothing, and are items of their own. Few rows (a step of decoding): an item
 * is a span of keys and a key head, and a second phase merges the parts that the spans gave. */
#ifndef WK_SIMD_ATTENTION_CACHED_H
#define WK_SIMD_ATTENTION_CACHED_H

#include "backend/cpu/simd/attention_step.h"

#include <assert.h>

enum { CACHED_Q, CACHED_K, CACHED_V, CACHED_BATCH, CACHED_SINKS, CACHED_SLOPES };

enum { MANY_ITEMS = 16 }; /* few threads share these evenly though each has other keys */

static attention cached_attention(const wk_op *op) {
    const wk_view *const k = wk_src(op, CACHED_K), *const v = wk_src(op, CACHED_V);
    return (attention){
        .k = k,
        .v = v,
        .d = k->extent[3],
        .e = v->extent[3],
        .width = round_up(v->extent[3], 16),
        .heads = wk_src(op, CACHED_Q)->extent[1] / k->extent[1],
        .scale = op->p.cached.scale,
        .softcap = op->p.cached.softcap,
        .result_dtype = WICK_F32,
    };
}

static int64_t cached_rows(const wk_op *op) { return wk_src(op, CACHED_Q)->extent[0]; }
static int64_t cached_groups(const wk_op *op) { return wk_src(op, CACHED_K)->extent[1]; }

/* Keys that a sequence can have: lengths are words. */
static int64_t key_capacity(const wk_op *op) {
    const wk_batch_layout *const b = &op->p.cached.batch;
    const uint64_t n = b->n_sequences > 0 ? (uint64_t)b->n_blocks * b->block_size : 0;
    return n < UINT32_MAX ? (int64_t)n : UINT32_MAX;
}

/* Spans of the longest sequence. */
static int64_t spans_in_use(const wk_op *op) {
    const wk_batch_layout *const b = &op->p.cached.batch;
    const uint32_t *const words = wk_view_data(wk_src(op, CACHED_BATCH));
    int64_t longest = 0;
    for (uint32_t i = 0; i < b->n_sequences; i++) {
        const int64_t length = words[b->lengths + i];
        if (length > longest && length <= key_capacity(op)) longest = length;
    }
    return count_spans(longest);
}

/* Rows of an item: about those of one sequence. More share what is made of the keys, where enough
 * items are left for all threads. */
static int64_t item_rows(const wk_op *op) {
    const uint32_t n = op->p.cached.batch.n_sequences;
    const int64_t rows = cached_rows(op), each = n > 0 ? (rows + n - 1) / n : rows;
    const int64_t most = each < MANY_ITEMS * ITEM_ROWS ? ITEM_ROWS : 2 * ITEM_ROWS;
    return each > most ? most : each > 0 ? each : 1;
}

/* Whole rows by a key head. */
static int64_t whole_items(const wk_op *op) {
    return (cached_rows(op) + item_rows(op) - 1) / item_rows(op) * cached_groups(op);
}

/* Whether the spans of a key head are items of their own. */
static bool is_split(const wk_op *op) {
    if (op->p.cached.batch.n_sequences > 1 && whole_items(op) >= MANY_ITEMS) return false;
    return cached_rows(op) <= ITEM_ROWS && spans_in_use(op) > 1;
}

/* Of an item at most. */
static int64_t cached_queries(const wk_op *op) {
    const int64_t each = item_rows(op), whole = cached_rows(op) < ITEM_ROWS ? cached_rows(op) : 0;
    return cached_attention(op).heads * (each > whole ? each : whole);
}

static uint64_t cached_worker_bytes(const wk_op *op) {
    const attention a = cached_attention(op);
    return worker_bytes(&a, cached_queries(op));
}

/* Parts [row][head][span], where the op may be split. */
static uint64_t cached_scratch_bytes(const wk_op *op) {
    const attention a = cached_attention(op);
    const int64_t n_spans = count_spans(key_capacity(op)), rows = cached_rows(op);
    if (rows > ITEM_ROWS || n_spans <= 1) return 0;
    const int64_t n_parts = rows * wk_src(op, CACHED_Q)->extent[1] * n_spans;
    return (uint64_t)(n_parts * part_floats(&a)) * sizeof(float);
}

/* ---- Rows. ---- */

typedef struct cached_run {
    const wk_cpu_run *run;
    attention a;
    attention_worker w;
    int64_t span; /* the item's, where the op is split, else -1 */
} cached_run;

static cached_run cached_run_get(const wk_cpu_run *run) {
    cached_run c = {.run = run, .a = cached_attention(run->op), .span = -1};
    c.w = worker_at(&c.a, run->worker_scratch, cached_queries(run->op));
    return c;
}

static float *shared_part(const cached_run *c, int64_t row, int64_t head, int64_t span) {
    assert(span >= 0 && span < count_spans(key_capacity(c->run->op)));
    const int64_t n_heads = wk_src(c->run->op, CACHED_Q)->extent[1];
    const int64_t at = (row * n_heads + head) * count_spans(key_capacity(c->run->op)) + span;
    return (float *)c->run->scratch + at * part_floats(&c->a);
}

typedef struct row_keys {
    seen_keys seen;
    int64_t position;
    bool is_padding, is_bad;
} row_keys;

/* What a row sees of the keys [begin, end). Every number of the descriptor that leads there is
 * checked here. */
static row_keys find_keys(const cached_run *c, int64_t row, int64_t begin, int64_t end) {
    const wk_op *const op = c->run->op;
    const wk_batch_layout *const b = &op->p.cached.batch;
    const uint32_t *const words = wk_view_data(wk_src(op, CACHED_BATCH));
    const uint32_t sequence = words[b->sequences + row];
    if (sequence == WK_NO_ROW) return (row_keys){.is_padding = true};
    if (sequence >= b->n_sequences) return (row_keys){.is_bad = true};
    const int64_t position = words[b->positions + row], length = words[b->lengths + sequence];
    if (position >= length || length > key_capacity(op)) return (row_keys){.is_bad = true};
    const wk_key_range range = wk_cached_keys(&op->p, position, length);
    row_keys keys = {
        .seen.table = words + b->tables + (size_t)sequence * b->n_blocks,
        .seen.first = range.first > begin ? range.first : begin,
        .seen.end = range.end < end ? range.end : end,
        .position = position,
    };
    for (int64_t i = keys.seen.first / b->block_size; i * b->block_size < keys.seen.end; i++)
        if (keys.seen.table[i] >= c->a.k->extent[0]) keys.is_bad = true;
    return keys;
}

static unsigned char *result_of(const wk_op *op, int64_t row, int64_t head) {
    const wk_view *const y = wk_dst(op, 0);
    return (unsigned char *)((float *)wk_view_data(y) + row * y->stride[0] + head * y->stride[1]);
}

static query_state cached_query(const cached_run *c, const row_keys *keys, int64_t row,
                                int64_t head) {
    const wk_op *const op = c->run->op;
    const wk_view *const q = wk_src(op, CACHED_Q);
    return (query_state){
        .q = (const float *)wk_view_data(q) + row * q->stride[0] + head * q->stride[1],
        .y = result_of(op, row, head),
        .first = keys->seen.first,
        .end = keys->seen.end,
        .position = keys->position,
        .slope = of_head(wk_src(op, CACHED_SLOPES), head, 0),
        .sink = of_head(wk_src(op, CACHED_SINKS), head, -INFINITY),
    };
}

static void write_zeros(const cached_run *c, int64_t row, int64_t group) {
    for (int64_t i = 0; i < c->a.heads; i++)
        memset(result_of(c->run->op, row, group * c->a.heads + i), 0,
               (size_t)c->a.e * sizeof(float));
}

static void add_queries(const cached_run *c, const row_keys *keys, int64_t row, int64_t *n) {
    for (int64_t i = 0; i < c->a.heads; i++, (*n)++) {
        const int64_t head = keys->seen.group * c->a.heads + i;
        assert(*n < cached_queries(c->run->op));
        query_state *const query = &c->w.queries[*n];
        *query = cached_query(c, keys, row, head);
        if (c->span < 0) continue;
        query->part = shared_part(c, row, head, c->span);
        clear_part(&c->a, query->part);
    }
}

static void attend_rows(const cached_run *c, const seen_keys *seen, int64_t n) {
    if (n == 0) return;
    if (c->span >= 0)
        attend_keys(&c->a, &c->w, seen, n);
    else
        attend(&c->a, &c->w, seen, n);
}

/* Rows [rows[0], rows[1]) for one key head, those of one sequence that follow each other at a time.
 * Where the op is split, what is written and reported is left to merge_rows. */
static void run_rows(const cached_run *c, const int64_t rows[2], int64_t group) {
    const bool is_whole = c->span < 0;
    const int64_t begin = is_whole ? 0 : span_begin(c->span);
    const int64_t end = is_whole ? INT64_MAX : span_begin(c->span + 1);
    seen_keys seen = {0};
    int64_t n = 0;
    for (int64_t row = rows[0]; row < rows[1]; row++) {
        row_keys keys = find_keys(c, row, begin, end);
        if (is_whole && keys.is_bad) wk_cpu_fault(c->run);
        if (is_whole && keys.is_padding) write_zeros(c, row, group);
        if (keys.is_bad || keys.is_padding || keys.seen.first >= keys.seen.end) continue;
        keys.seen.group = group;
        if (n > 0 && keys.seen.table != seen.table) {
            attend_rows(c, &seen, n);
            n = 0;
        }
        if (n == 0) seen = keys.seen;
        if (keys.seen.first < seen.first) seen.first = keys.seen.first;
        if (keys.seen.end > seen.end) seen.end = keys.seen.end;
        add_queries(c, &keys, row, &n);
    }
    attend_rows(c, &seen, n);
}

/* The second phase: the parts of all spans in order. */
static void merge_rows(const cached_run *c) {
    const wk_op *const op = c->run->op;
    for (int64_t row = 0; row < cached_rows(op); row++) {
        const row_keys keys = find_keys(c, row, 0, INT64_MAX);
        if (keys.is_bad) wk_cpu_fault(c->run);
        for (int64_t g = 0; keys.is_padding && g < cached_groups(op); g++) write_zeros(c, row, g);
        if (keys.is_bad || keys.is_padding) continue;
        for (int64_t head = 0; head < wk_src(op, CACHED_Q)->extent[1]; head++) {
            const query_state query = cached_query(c, &keys, row, head);
            clear_part(&c->a, c->w.totals);
            for (int64_t s = span_of(query.first); s <= span_of(query.end - 1); s++)
                merge_part(&c->a, c->w.totals, shared_part(c, row, head, s));
            write_result(&c->a, &query, c->w.totals);
        }
    }
}

/* ---- The kernel. ---- */

/* The second phase is one item: there is little to merge, and waking others would cost more. */
static int64_t cached_items(const wk_op *op, int phase) {
    if (is_split(op)) return phase == 0 ? spans_in_use(op) * cached_groups(op) : 1;
    return phase == 0 ? whole_items(op) : 0;
}

static void run_attention_cached(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    cached_run c = cached_run_get(run);
    const int64_t n_rows = cached_rows(run->op), groups = cached_groups(run->op);
    const bool has_spans = is_split(run->op);
    const int64_t each = has_spans ? n_rows : item_rows(run->op);
    if (phase == 1) {
        merge_rows(&c);
        return;
    }
    for (int64_t item = begin; item < end; item++) {
        const int64_t at = item / groups, row = has_spans ? 0 : at * each;
        const int64_t rows[2] = {row, row + each < n_rows ? row + each : n_rows};
        if (has_spans) c.span = at;
        run_rows(&c, rows, item % groups);
    }
}

static bool accepts_batch(const wk_op *op, const wk_view *batch, const wk_view *k_cache,
                          const wk_view *v_cache) {
    const wk_batch_layout *const b = &op->p.cached.batch;
    return batch->dtype == WICK_U32 && batch->rank == 1 && wk_view_is_dense(batch) &&
           batch->extent[0] >= b->n_words && b->block_size > 0 && accepts_keys(k_cache) &&
           is_dense_last(v_cache) && k_cache->extent[2] == b->block_size &&
           v_cache->extent[2] == b->block_size && v_cache->extent[0] == k_cache->extent[0];
}

static bool accepts_attention_cached(const wk_op *op) {
    const wk_view *const q = wk_src(op, CACHED_Q), *const y = wk_dst(op, 0);
    return q->dtype == WICK_F32 && is_dense_last(q) && y->dtype == WICK_F32 && is_dense_last(y) &&
           is_element_dtype(wk_src(op, CACHED_SINKS)->dtype) &&
           is_element_dtype(wk_src(op, CACHED_SLOPES)->dtype) &&
           accepts_batch(op, wk_src(op, CACHED_BATCH), wk_src(op, CACHED_K), wk_src(op, CACHED_V));
}

#endif
