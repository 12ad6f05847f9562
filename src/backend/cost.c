/* backend/cost.c: what an op moves and computes, however it is done. */
#include "backend/backend.h"

static double count_of(const wk_view *view) { return view->buf ? (double)wk_view_count(view) : 0; }

static double bytes_of(const wk_view *view) {
    uint64_t begin, end;
    if (!view->buf) return 0;
    wk_view_range(view, &begin, &end);
    return (double)(end - begin);
}

/* Keys that a query sees, on the average, where the rows of a sequence are its last ones. */
static double keys_seen(double n_keys, double n_rows, bool is_causal) {
    const double unseen = is_causal && n_rows > 1 ? (n_rows - 1) / 2 : 0;
    return n_keys > unseen ? n_keys - unseen : n_keys;
}

static double attention_flops(const wk_op *op) {
    const double n_rows = (double)wk_src(op, 0)->extent[2];
    const double seen = keys_seen((double)wk_src(op, 1)->extent[2], n_rows, op->p.attention.causal);
    return 2 * (count_of(wk_src(op, 0)) + count_of(wk_dst(op, 0))) * seen;
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

static seen seen_of(const wk_op *op, const uint32_t *batch) {
    return batch ? seen_by(op, batch) : seen_at_most(op);
}

static double cached_flops(const wk_op *op, const uint32_t *batch) {
    const wk_view *const q = wk_src(op, 0), *const y = wk_dst(op, 0);
    const double rows = (double)q->extent[0];
    if (rows == 0) return 0;
    return 2 * (count_of(q) + count_of(y)) / rows * seen_of(op, batch).pairs;
}

/* A number fades, is added to and is summed up; the delta rule sums it up twice. */
static double scan_flops(const wk_op *op) {
    const double n = (double)wk_src(op, 3)->extent[3];
    return (op->p.scan.fn == WK_SCAN_DELTA ? 7 : 5) * count_of(wk_dst(op, 0)) * n;
}

static double flops_of(const wk_op *op, const uint32_t *batch) {
    const wk_view *const x = wk_src(op, 0);
    switch (op->code) {
    case WK_OP_LINEAR:
    case WK_OP_LINEAR_EXPERTS:
    case WK_OP_MATMUL: return 2 * count_of(wk_dst(op, 0)) * (double)x->extent[x->rank - 1];
    case WK_OP_ATTENTION: return attention_flops(op);
    case WK_OP_ATTENTION_CACHED: return cached_flops(op, batch);
    case WK_OP_CAUSAL_CONV: return 2 * count_of(x) * (double)wk_src(op, 1)->extent[1];
    case WK_OP_SCAN: return scan_flops(op);
    default: return 0;
    }
}

/* Of a cache [blocks, g, block_size, d], the keys that are looked at. */
static double cache_bytes(const wk_op *op, const wk_view *cache, const uint32_t *batch) {
    const double wanted = seen_of(op, batch).keys;
    const double there = (double)cache->extent[0] * op->p.cached.batch.block_size;
    return wanted < there ? bytes_of(cache) * (wanted / there) : bytes_of(cache);
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

/* Of a view whose first dimension is looked into by index, n times. */
static double bytes_looked_up(const wk_view *view, double n) {
    const double all = (double)view->extent[0];
    return n < all ? bytes_of(view) * (n / all) : bytes_of(view);
}

static double bytes_read(const wk_op *op, int i, const uint32_t *batch) {
    const wk_view *const view = wk_src(op, i);
    if (op->code == WK_OP_EMBEDDING && i == 0 && wk_dst(op, 0)->buf)
        return bytes_looked_up(view, (double)wk_dst(op, 0)->extent[0]);
    if (op->code == WK_OP_LINEAR_EXPERTS && i == 1 && wk_dst(op, 0)->buf)
        return bytes_looked_up(view, (double)wk_view_rows(wk_dst(op, 0)));
    if (op->code != WK_OP_ATTENTION_CACHED) return bytes_of(view);
    if (i == 1 || i == 2) return cache_bytes(op, view, batch);
    return i == 3 ? descriptor_bytes(op, view, batch) : bytes_of(view);
}

/* Of the slots of recurrent state, those of the batch's sequences. */
static double state_bytes(const wk_op *op) {
    int operand;
    const double wanted = wk_op_batch(op, &operand)->n_sequences;
    const double all = bytes_of(wk_dst(op, 1)), there = (double)wk_dst(op, 1)->extent[0];
    return there > 0 && wanted < there ? all * (wanted / there) : all;
}

wk_cost wk_op_cost(const wk_op *op, const uint32_t *batch) {
    const bool has_state = op->code == WK_OP_CAUSAL_CONV || op->code == WK_OP_SCAN;
    wk_cost cost = {.flops = flops_of(op, batch)};
    for (int i = 0; i < op->n_src; i++) cost.bytes_read += bytes_read(op, i, batch);
    for (int i = 0; i < op->n_dst; i++) {
        /* New keys and values go to a few places of their caches. */
        const wk_view *const written = op->code == WK_OP_KV_APPEND ? wk_src(op, i) : wk_dst(op, i);
        cost.bytes_written += has_state && i == 1 ? state_bytes(op) : bytes_of(written);
    }
    if (has_state) cost.bytes_read += state_bytes(op);
    return cost;
}
