/* backend/cpu/ref/attention_cached.c: attention over the paged cache, and writing to that cache.
 *
 * The batch descriptor says where everything is (backend.h). Every number of it that leads to
 * memory is checked here before it is used: a row with a bad one writes nothing and sets the fault
 * word. */
#include "backend/cpu/ref/ref.h"

#include "core/dtype.h"
#include "quant/encode.h"

#include <assert.h>
#include <math.h>

/* --- The batch descriptor --- */

typedef struct batch_row {
    const uint32_t *blocks; /* of the row's sequence */
    int64_t position;
    int64_t first, end; /* keys that it sees */
    bool is_padding, is_bad;
} batch_row;

static batch_row find_row(const wk_op *op, const uint32_t *words, int64_t r) {
    const wk_batch_layout *b = &op->p.cached.batch;
    const uint32_t sequence = words[b->sequences + r];
    if (sequence == WK_NO_ROW) return (batch_row){.is_padding = true};
    if (sequence >= b->n_sequences) return (batch_row){.is_bad = true};
    const int64_t position = words[b->positions + r];
    const int64_t length = words[b->lengths + sequence];
    if (position >= length || length > (int64_t)b->n_blocks * b->block_size) {
        return (batch_row){.is_bad = true};
    }
    const wk_key_range seen = wk_cached_keys(&op->p, position, length);
    return (batch_row){
        .blocks = &words[b->tables + (size_t)sequence * b->n_blocks],
        .position = position,
        .first = seen.first,
        .end = seen.end,
    };
}

/* Whether all blocks that the row reads are in the cache. */
static bool has_blocks(const batch_row *row, int64_t block_size, int64_t n_blocks) {
    for (int64_t i = row->first / block_size; i * block_size < row->end; i++) {
        if (row->blocks[i] >= n_blocks) return false;
    }
    return true;
}

/* --- attention_cached: q [rows, h, d], k_cache [blocks, g, block_size, d], v_cache [.., e] --- */

enum { Q, K_CACHE, V_CACHE, BATCH, SINKS, SLOPES };

/* Scratch of a worker: q [d], sum [e], a key or a value [max(d, e)], logits [longest sequence]. */
typedef struct cached_scratch {
    double *q, *sum, *row, *logits;
} cached_scratch;

static int64_t row_room(const wk_op *op) {
    const int64_t d = wk_src(op, K_CACHE)->extent[3], e = wk_src(op, V_CACHE)->extent[3];
    return d > e ? d : e;
}

static uint64_t cached_worker_bytes(const wk_op *op) {
    const wk_batch_layout *b = &op->p.cached.batch;
    return (uint64_t)(3 * row_room(op) + (int64_t)b->n_blocks * b->block_size) * sizeof(double);
}

static wk_row cache_row(const wk_view *cache, const batch_row *row, int64_t group, int64_t j) {
    assert(j >= row->first && j < row->end);
    const int64_t block_size = cache->extent[2];
    return wk_row_of(cache, (const int64_t[3]){row->blocks[j / block_size], group, j % block_size});
}

/* at: row, head. */
static void attend(const wk_op *op, const int64_t at[2], const batch_row *row,
                   const cached_scratch *to) {
    const wk_view *k = wk_src(op, K_CACHE), *v = wk_src(op, V_CACHE);
    const wk_view *sinks = wk_src(op, SINKS), *slopes = wk_src(op, SLOPES);
    const int64_t group = at[1] / (wk_src(op, Q)->extent[1] / k->extent[1]);
    const double slope = slopes->buf ? wk_ref_of_head(slopes, at[1]) : 0;
    const wk_row q = wk_row_of(wk_src(op, Q), at);
    wk_row_load(&q, 0, q.n, to->q);
    for (int64_t j = row->first; j < row->end; j++) {
        const wk_row key = cache_row(k, row, group, j);
        wk_row_load(&key, 0, key.n, to->row);
        const double logit = (double)op->p.cached.scale * wk_ref_dot(to->q, to->row, key.n);
        to->logits[j - row->first] = wk_ref_softcap(logit, (double)op->p.cached.softcap) +
                                     slope * (double)(j - row->position);
    }
    double sink = 0;
    if (sinks->buf) sink = wk_ref_of_head(sinks, at[1]);
    wk_ref_attention_weights(to->logits, row->end - row->first, sinks->buf ? &sink : NULL);
    for (int64_t j = row->first; j < row->end; j++) {
        const wk_row value = cache_row(v, row, group, j);
        const double weight = to->logits[j - row->first];
        wk_row_load(&value, 0, value.n, to->row);
        for (int64_t l = 0; l < value.n; l++) to->sum[l] += weight * to->row[l];
    }
}

static void run_cached(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_op *op = run->op;
    const wk_view *y = wk_dst(op, 0), *cache = wk_src(op, K_CACHE);
    const uint32_t *words = wk_view_data(wk_src(op, BATCH));
    double *memory = run->worker_scratch;
    const int64_t room = row_room(op);
    const cached_scratch scratch = {memory, memory + room, memory + 2 * room, memory + 3 * room};
    for (int64_t r = begin; r < end; r++) {
        const int64_t at[2] = {r / y->extent[1], r % y->extent[1]};
        const batch_row row = find_row(op, words, at[0]);
        if (row.is_bad ||
            (!row.is_padding && !has_blocks(&row, cache->extent[2], cache->extent[0]))) {
            wk_cpu_fault(run);
            continue;
        }
        for (int64_t l = 0; l < y->extent[2]; l++) scratch.sum[l] = 0;
        if (!row.is_padding) attend(op, at, &row, &scratch);
        const wk_row to = wk_row_of(y, at);
        wk_row_store(&to, 0, to.n, scratch.sum);
    }
}

/* The descriptor as it is read here: dense words, blocks of the size that the caches have. */
static bool accepts_batch(const wk_op *op, const wk_view *batch, const wk_view *k_cache,
                          const wk_view *v_cache) {
    const wk_batch_layout *b = &op->p.cached.batch;
    return batch->dtype == WICK_U32 && batch->rank == 1 &&
           (batch->stride[0] == 1 || batch->extent[0] <= 1) && batch->extent[0] >= b->n_words &&
           b->block_size > 0 && k_cache->extent[2] == b->block_size &&
           v_cache->extent[2] == b->block_size && v_cache->extent[0] == k_cache->extent[0];
}

static bool is_readable(wick_dtype dtype) {
    return wk_dtype_is_float(dtype) || wk_can_encode_quickly(dtype);
}

static bool accepts_cached(const wk_op *op) {
    for (int i = 0; i < op->n_dst + op->n_src; i++) {
        const bool is_batch = i == op->n_dst + BATCH;
        if (!is_batch && !is_readable(op->view[i].dtype)) return false;
    }
    return accepts_batch(op, wk_src(op, BATCH), wk_src(op, K_CACHE), wk_src(op, V_CACHE));
}

const wk_cpu_kernel wk_attention_cached_ref = {
    .base.name = "attention_cached_ref",
    .base.code = WK_OP_ATTENTION_CACHED,
    .base.is_reference = true,
    .base.accepts = accepts_cached,
    .n_phases = 1,
    .items = wk_ref_dst_rows,
    .worker_bytes = cached_worker_bytes,
    .run = run_cached,
};

/* --- kv_append: k [rows, g, d], v [rows, g, e] --- */

static int64_t append_items(const wk_op *op, int phase) {
    (void)phase;
    return wk_src(op, 0)->extent[0];
}

/* new: k or v. */
static void append(const wk_view *cache, const wk_view *new, int64_t r, int64_t slot) {
    const int64_t block_size = cache->extent[2];
    double buf[WK_REF_CHUNK];
    for (int64_t g = 0; g < cache->extent[1]; g++) {
        const wk_row from = wk_row_of(new, (const int64_t[2]){r, g});
        const wk_row to =
            wk_row_of(cache, (const int64_t[3]){slot / block_size, g, slot % block_size});
        for (int64_t i = 0; i < to.n; i += WK_REF_CHUNK) {
            const int64_t n = to.n - i < WK_REF_CHUNK ? to.n - i : WK_REF_CHUNK;
            wk_row_load(&from, i, n, buf);
            wk_row_store(&to, i, n, buf);
        }
    }
}

static void run_append(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_op *op = run->op;
    const wk_batch_layout *b = &op->p.cached.batch;
    const wk_view *k_cache = wk_dst(op, 0), *v_cache = wk_dst(op, 1);
    const uint32_t *words = wk_view_data(wk_src(op, 2));
    for (int64_t r = begin; r < end; r++) {
        const uint32_t sequence = words[b->sequences + r];
        if (sequence == WK_NO_ROW) continue;
        const int64_t slot = words[b->slots + r];
        if (sequence >= b->n_sequences || slot / b->block_size >= k_cache->extent[0]) {
            wk_cpu_fault(run);
            continue;
        }
        append(k_cache, wk_src(op, 0), r, slot);
        append(v_cache, wk_src(op, 1), r, slot);
    }
}

static bool accepts_append(const wk_op *op) {
    for (int i = 0; i < op->n_dst + 2; i++) {
        if (!is_readable(op->view[i].dtype)) return false;
    }
    return accepts_batch(op, wk_src(op, 2), wk_dst(op, 0), wk_dst(op, 1));
}

const wk_cpu_kernel wk_kv_append_ref = {
    .base.name = "kv_append_ref",
    .base.code = WK_OP_KV_APPEND,
    .base.is_reference = true,
    .base.accepts = accepts_append,
    .n_phases = 1,
    .items = append_items,
    .run = run_append,
};
