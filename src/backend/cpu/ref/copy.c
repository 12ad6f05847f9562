/* backend/cpu/ref/copy.c: copies and conversions between all dtypes. The same dtype is moved bit
 * for bit; blocks are decoded. */
#include "backend/cpu/ref/ref.h"

#include "core/dtype.h"
#include "quant/block.h"

#include <string.h>

enum { ROUNDS_OF_BLOCKS = WK_REF_CHUNK / WK_QK_K };
_Static_assert(ROUNDS_OF_BLOCKS >= 1, "a chunk holds whole blocks of every type");

static void move_row(const wk_row *y, const wk_row *x) {
    const int64_t size = wk_dtype_get(y->dtype)->block_bytes;
    if (y->stride == 1 && x->stride == 1 && y->n > 0) {
        memcpy(y->data, x->data, (size_t)(y->n * size));
        return;
    }
    for (int64_t i = 0; i < y->n; i++) {
        memcpy(y->data + i * y->stride * size, x->data + i * x->stride * size, (size_t)size);
    }
}

static void convert_row(const wk_row *y, const wk_row *x) {
    double real[WK_REF_CHUNK];
    int64_t integer[WK_REF_CHUNK];
    for (int64_t i = 0; i < y->n; i += WK_REF_CHUNK) {
        const int64_t n = y->n - i < WK_REF_CHUNK ? y->n - i : WK_REF_CHUNK;
        if (wk_dtype_is_real(x->dtype)) {
            wk_row_load(x, i, n, real);
            wk_row_store(y, i, n, real);
        } else {
            wk_row_load_integer(x, i, n, integer);
            wk_row_store_integer(y, i, n, integer);
        }
    }
}

static void store_floats(const wk_row *y, int64_t at, int64_t n, const float *values) {
    double real[WK_REF_CHUNK];
    for (int64_t i = 0; i < n; i++) real[i] = (double)values[i];
    wk_row_store(y, at, n, real);
}

/* x: first block of a dense row. */
static void decode_row(const wk_row *y, wick_dtype dtype, const unsigned char *x) {
    const wk_dtype_info *info = wk_dtype_get(dtype);
    const wk_decode_fn decode = wk_decoder(dtype);
    float decoded[WK_REF_CHUNK];
    for (int64_t i = 0; i < y->n; i += WK_REF_CHUNK) {
        const int64_t n = y->n - i < WK_REF_CHUNK ? y->n - i : WK_REF_CHUNK;
        decode(x + i / info->block_elements * info->block_bytes, decoded, n);
        store_floats(y, i, n, decoded);
    }
}

/* Strides of block types count elements, and rows begin with a block. */
static const unsigned char *block_row(const wk_view *view, int64_t index) {
    const wk_dtype_info *info = wk_dtype_get(view->dtype);
    int64_t offset = 0;
    for (int i = view->rank - 2; i >= 0; i--) {
        offset += index % view->extent[i] * view->stride[i];
        index /= view->extent[i];
    }
    return (const unsigned char *)wk_view_data(view) +
           offset / info->block_elements * info->block_bytes;
}

static void run_copy(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_view *from = wk_src(run->op, 0);
    for (int64_t r = begin; r < end; r++) {
        const wk_row y = wk_row_at(wk_dst(run->op, 0), r);
        if (wk_dtype_is_block(from->dtype)) {
            decode_row(&y, from->dtype, block_row(from, r));
            continue;
        }
        const wk_row x = wk_row_at(from, r);
        if (x.dtype == y.dtype) {
            move_row(&y, &x);
        } else {
            convert_row(&y, &x);
        }
    }
}

/* Rows of blocks must hold whole ones. */
static bool accepts_copy(const wk_op *op) {
    const wk_view *x = wk_src(op, 0);
    if (wk_dtype_is_block(wk_dst(op, 0)->dtype) || x->layout != WK_LAYOUT_RAW) return false;
    if (!wk_dtype_is_block(x->dtype)) return true;
    if (!wk_decoder(x->dtype) || x->rank == 0) return false;
    const int64_t block = wk_dtype_get(x->dtype)->block_elements;
    if (x->extent[x->rank - 1] % block != 0 || x->stride[x->rank - 1] != 1) return false;
    for (int i = 0; i + 1 < x->rank; i++) {
        if (x->stride[i] % block != 0) return false;
    }
    return true;
}

const wk_cpu_kernel wk_copy_ref = {
    .base.name = "copy_ref",
    .base.code = WK_OP_COPY,
    .base.is_reference = true,
    .base.accepts = accepts_copy,
    .n_phases = 1,
    .items = wk_ref_dst_rows,
    .run = run_copy,
};
