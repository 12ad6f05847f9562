/* backend/cpu/ref/embedding.c: rows of a weight by index. */
#include "backend/cpu/ref/ref.h"

#include "core/dtype.h"
#include "quant/block.h"

#include <string.h>

static uint64_t embedding_worker_bytes(const wk_op *op) {
    return (uint64_t)wk_src(op, 0)->extent[1] * (sizeof(double) + sizeof(float));
}

/* Rows of the same scalar dtype are moved bit for bit, others go through float64. */
static void copy_row(const wk_row *y, const wk_view *weight, int64_t id, double *buf) {
    const int64_t n = weight->extent[0], k = weight->extent[1];
    float *decoded = (float *)(buf + k);
    if (weight->layout != WK_LAYOUT_RAW || wk_dtype_is_block(weight->dtype)) {
        wk_layout_decode_row((wk_layout)weight->layout, weight->dtype, n, k, id,
                             wk_view_data(weight), decoded);
        for (int64_t i = 0; i < k; i++) buf[i] = (double)decoded[i];
        wk_row_store(y, 0, k, buf);
        return;
    }
    const wk_row x = wk_row_at(weight, id);
    if (x.dtype != y->dtype) {
        wk_row_load(&x, 0, k, buf);
        wk_row_store(y, 0, k, buf);
        return;
    }
    const int64_t size = wk_dtype_get(x.dtype)->block_bytes;
    if (y->stride == 1 && x.stride == 1) {
        memcpy(y->data, x.data, (size_t)(k * size));
        return;
    }
    for (int64_t i = 0; i < k; i++) {
        memcpy(y->data + i * y->stride * size, x.data + i * x.stride * size, (size_t)size);
    }
}

static void run_embedding(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_view *weight = wk_src(run->op, 0);
    const wk_row ids = wk_row_at(wk_src(run->op, 1), 0);
    for (int64_t r = begin; r < end; r++) {
        const int64_t id = wk_row_integer_at(&ids, r);
        if (id < 0 || id >= weight->extent[0]) {
            wk_cpu_fault(run);
            continue;
        }
        const wk_row y = wk_row_at(wk_dst(run->op, 0), r);
        copy_row(&y, weight, id, run->worker_scratch);
    }
}

static bool accepts_embedding(const wk_op *op) {
    const wick_dtype y = wk_dst(op, 0)->dtype, weight = wk_src(op, 0)->dtype;
    const wick_dtype ids = wk_src(op, 1)->dtype;
    const bool is_number = wk_dtype_is_float(weight) || wk_decoder(weight);
    return (y == weight || (wk_dtype_is_float(y) && is_number)) && !wk_dtype_is_block(y) &&
           (ids == WICK_U32 || ids == WICK_I64 || ids == WICK_U8);
}

const wk_cpu_kernel wk_embedding_ref = {
    .base.name = "embedding_ref",
    .base.code = WK_OP_EMBEDDING,
    .base.is_reference = true,
    .base.accepts = accepts_embedding,
    .n_phases = 1,
    .items = wk_ref_dst_rows,
    .worker_bytes = embedding_worker_bytes,
    .run = run_embedding,
};
