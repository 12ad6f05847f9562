/* simd/kv_append.h: rows of keys and values to their slots of the paged cache. */
#ifndef WK_SIMD_KV_APPEND_H
#define WK_SIMD_KV_APPEND_H

#include "backend/cpu/simd/attention_cached.h"

#include <assert.h>

static int64_t append_items(const wk_op *op, int phase) {
    (void)phase;
    return wk_src(op, 0)->extent[0];
}

static bool accepts_fresh(const wk_view *rows) {
    return rows->dtype == WICK_F32 && is_dense_last(rows);
}

static bool accepts_append(const wk_op *op) {
    return accepts_fresh(wk_src(op, 0)) && accepts_fresh(wk_src(op, 1)) &&
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

static const float *fresh_row(const wk_view *view, int64_t row, int64_t head) {
    return (const float *)wk_view_data(view) + row * view->stride[0] + head * view->stride[1];
}

static void append(const wk_view *cache, const wk_view *rows, int64_t row, int64_t slot) {
    assert(slot >= 0 && slot / cache->extent[2] < cache->extent[0]);
    const bool is_half = cache->dtype == WICK_F16;
    const int64_t block_size = cache->extent[2], n = cache->extent[3];
    for (int64_t g = 0; g < cache->extent[1]; g++) {
        const int64_t to = slot / block_size * cache->stride[0] + g * cache->stride[1] +
                           slot % block_size * cache->stride[2];
        unsigned char *const at = (unsigned char *)wk_view_data(cache) + bytes_of(cache->dtype, to);
        if (lies_in_blocks(cache))
            wk_encode_quickly(cache->dtype, fresh_row(rows, row, g), at, n);
        else if (lies_transposed(cache))
            store_column(at, is_half, cache->stride[3], fresh_row(rows, row, g), n);
        else
            store_cached(at, is_half, fresh_row(rows, row, g), n);
    }
}

static void run_append(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_op *const op = run->op;
    const wk_batch_layout *const b = &op->p.cached.batch;
    const uint32_t *const words = wk_view_data(wk_src(op, 2));
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
