/* backend/cost.c: what an op moves and computes, however it is done, and how many rows it has. */
#include "backend/op.h"

#include "core/compiler.h"

#include <assert.h>

static double count_of(const wk_view *view) { return view->buf ? (double)wk_view_count(view) : 0; }

static double bytes_of(const wk_view *view) {
    uint64_t begin, end;
    if (!view->buf) return 0;
    wk_view_range(view, &begin, &end);
    return (double)(end - begin);
}

/* batch: see wk_op_cost. */
typedef wk_cost cost_fn(const wk_op *op, const uint32_t *batch);

/* Each operand once. */
static wk_cost cost_moves(const wk_op *op, const uint32_t *batch) {
    (void)batch;
    wk_cost cost = {0};
    for (int i = 0; i < op->n_src; i++) cost.bytes_read += bytes_of(wk_src(op, i));
    for (int i = 0; i < op->n_dst; i++) cost.bytes_written += bytes_of(wk_dst(op, i));
    return cost;
}

/* --- Products --- */

static wk_cost cost_product(const wk_op *op, const uint32_t *batch) {
    const wk_view *const x = wk_src(op, 0);
    wk_cost cost = cost_moves(op, batch);
    cost.flops = 2 * count_of(wk_dst(op, 0)) * (double)x->extent[x->rank - 1];
    return cost;
}

static wk_cost cost_convolution(const wk_op *op, const uint32_t *batch) {
    const wk_view *const weight = wk_src(op, 1);
    wk_cost cost = cost_moves(op, batch);
    cost.flops = 2 * count_of(wk_dst(op, 0));
    for (int d = 1; d < weight->rank; d++) cost.flops *= (double)weight->extent[d];
    return cost;
}

/* What n of all parts along the first dimension of a view are less than all of it. */
static double bytes_spared(const wk_view *view, double n) {
    assert(view->rank > 0);
    const double all = (double)view->extent[0];
    return n < all ? bytes_of(view) * (1 - n / all) : 0;
}

static wk_cost cost_experts(const wk_op *op, const uint32_t *batch) {
    const wk_view *const y = wk_dst(op, 0);
    wk_cost cost = cost_product(op, batch);
    if (y->buf) cost.bytes_read -= bytes_spared(wk_src(op, 1), (double)wk_view_rows(y));
    return cost;
}

static wk_cost cost_embedding(const wk_op *op, const uint32_t *batch) {
    const wk_view *const y = wk_dst(op, 0);
    wk_cost cost = cost_moves(op, batch);
    if (y->buf) cost.bytes_read -= bytes_spared(wk_src(op, 0), (double)y->extent[0]);
    return cost;
}

/* --- Attention --- */

/* Keys that a query sees, on the average, where the rows of a sequence are its last ones. */
static double keys_seen(double n_keys, double n_rows, bool is_causal) {
    const double unseen = is_causal && n_rows > 1 ? (n_rows - 1) / 2 : 0;
    return n_keys > unseen ? n_keys - unseen : n_keys;
}

static wk_cost cost_attention(const wk_op *op, const uint32_t *batch) {
    const double n_rows = (double)wk_src(op, 0)->extent[2];
    const double seen = keys_seen((double)wk_src(op, 1)->extent[2], n_rows, op->p.attention.causal);
    wk_cost cost = cost_moves(op, batch);
    cost.flops = 2 * (count_of(wk_src(op, 0)) + count_of(wk_dst(op, 0))) * seen;
    return cost;
}

/* What cached attention looks at: pairs of a row and a key, and keys that are read once. */
typedef struct seen {
    double pairs, keys;
} seen;

/* As much as there is room for, where the descriptor is not known yet. */
static seen seen_at_most(const wk_op *op) {
    const wk_batch_layout *const b = &op->p.cached.batch;
    const double room = (double)b->n_blocks * b->block_size;
    const double rows = b->n_sequences > 0 ? (double)b->n_rows / b->n_sequences : 0;
    return (seen){.pairs = b->n_rows * keys_seen(room, rows, true), .keys = b->n_sequences * room};
}

static seen seen_by(const wk_op *op, const uint32_t *batch) {
    const wk_batch_layout *const b = &op->p.cached.batch;
    seen sum = {0};
    for (uint32_t s = 0; s < b->n_sequences; s++) {
        int64_t first = INT64_MAX, end = 0;
        for (uint32_t i = 0; i < b->n_rows; i++) {
            if (batch[b->sequences + i] != s) continue;
            const wk_key_range keys =
                wk_cached_keys(&op->p, batch[b->positions + i], batch[b->lengths + s]);
            sum.pairs += (double)(keys.end - keys.first);
            if (keys.first < first) first = keys.first;
            if (keys.end > end) end = keys.end;
        }
        if (end > first) sum.keys += (double)(end - first);
    }
    return sum;
}

/* Of a cache [blocks, g, block_size, d], n keys that are looked at. */
static double cache_bytes(const wk_op *op, const wk_view *cache, double n) {
    const double there = (double)cache->extent[0] * op->p.cached.batch.block_size;
    return n < there ? bytes_of(cache) * (n / there) : bytes_of(cache);
}

/* Of the descriptor, whose block tables have room for the longest text, the part that is read. */
static double descriptor_bytes(const wk_op *op, const wk_view *descriptor, const uint32_t *batch) {
    const wk_batch_layout *const b = &op->p.cached.batch;
    double n_words = b->tables;
    if (!batch) return bytes_of(descriptor);
    for (uint32_t s = 0; s < b->n_sequences; s++)
        n_words += (batch[b->lengths + s] + b->block_size - 1) / b->block_size;
    return n_words * sizeof *batch;
}

static wk_cost cost_cached(const wk_op *op, const uint32_t *batch) {
    const wk_view *const q = wk_src(op, 0), *const y = wk_dst(op, 0);
    const seen of = batch ? seen_by(op, batch) : seen_at_most(op);
    const double rows = (double)q->extent[0];
    wk_cost cost = {.bytes_written = bytes_of(y)};
    cost.bytes_read = bytes_of(q) + cache_bytes(op, wk_src(op, 1), of.keys) +
                      cache_bytes(op, wk_src(op, 2), of.keys) +
                      descriptor_bytes(op, wk_src(op, 3), batch) + bytes_of(wk_src(op, 4)) +
                      bytes_of(wk_src(op, 5));
    if (rows > 0) cost.flops = 2 * (count_of(q) + count_of(y)) / rows * of.pairs;
    return cost;
}

/* New keys and values go to a few places of their caches. */
static wk_cost cost_append(const wk_op *op, const uint32_t *batch) {
    wk_cost cost = cost_moves(op, batch);
    cost.bytes_written = bytes_of(wk_src(op, 0)) + bytes_of(wk_src(op, 1));
    return cost;
}

/* --- States --- */

/* Of the slots of recurrent state, those of the batch's sequences are read and written. */
static wk_cost cost_states(const wk_op *op, const uint32_t *batch, double flops) {
    int operand;
    const wk_view *const states = wk_dst(op, 1);
    const double moved =
        bytes_of(states) - bytes_spared(states, (double)wk_op_batch(op, &operand)->n_sequences);
    wk_cost cost = cost_moves(op, batch);
    cost.bytes_read += moved;
    cost.bytes_written += moved - bytes_of(states);
    cost.flops = flops;
    return cost;
}

static wk_cost cost_conv(const wk_op *op, const uint32_t *batch) {
    return cost_states(op, batch, 2 * count_of(wk_src(op, 0)) * (double)wk_src(op, 1)->extent[1]);
}

/* A number fades, is added to and is summed up; the delta rule sums it up twice. */
static wk_cost cost_scan(const wk_op *op, const uint32_t *batch) {
    const double n = (double)wk_src(op, 3)->extent[3];
    const double of_number = op->p.scan.fn == WK_SCAN_DELTA ? 7 : 5;
    return cost_states(op, batch, of_number * count_of(wk_dst(op, 0)) * n);
}

wk_cost wk_op_cost(const wk_op *op, const uint32_t *batch) {
    static cost_fn *const costs[] = {
#define WK_TRAITS(code, rows, cost, ...) [WK_OP_##code] = cost_##cost,
#include "backend/op_traits.def"
#undef WK_TRAITS
        [WK_OP_CUSTOM] = cost_moves,
    };
    return costs[op->code](op, batch);
}

/* --- Rows --- */

static int64_t rows_last(const wk_op *op) {
    const wk_view *const y = wk_dst(op, 0);
    const int64_t length = y->rank > 0 ? y->extent[y->rank - 1] : 1;
    return length > 0 ? wk_view_count(y) / length : 0;
}

/* An element for each row. */
static int64_t rows_all(const wk_op *op) { return wk_view_count(wk_dst(op, 0)); }

static int64_t rows_matrix(const wk_op *op) {
    const wk_view *const y = wk_dst(op, 0);
    return y->extent[y->rank - 2];
}

static int64_t rows_queries(const wk_op *op) { return wk_dst(op, 0)->extent[2]; }

static int64_t rows_batch(const wk_op *op) {
    int operand;
    return wk_op_batch(op, &operand)->n_rows;
}

int64_t wk_op_rows(const wk_op *op) {
    static int64_t (*const rows[])(const wk_op *op) = {
#define WK_TRAITS(code, of, ...) [WK_OP_##code] = rows_##of,
#include "backend/op_traits.def"
#undef WK_TRAITS
        [WK_OP_CUSTOM] = rows_last,
    };
    return rows[op->code](op);
}
