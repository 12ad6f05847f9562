/* simd/linear_pack.h: the rows of x in scratch memory, quantized for the fast forms of linear. */
#ifndef WK_SIMD_LINEAR_PACK_H
#define WK_SIMD_LINEAR_PACK_H

#include "backend/cpu/simd/linear_bytes.h"
#include "backend/cpu/simd/linear_groups.h"

/* Rows that share their x have one packed row. */
static int64_t packed_row(const linear_operands *a, int64_t row) {
    return a->u > 1 && a->x.step == 0 ? row / a->u : row;
}

static int64_t packed_rows(const wk_op *op) {
    const wk_view *const x = wk_src(op, 0);
    return x->rank > 2 && x->extent[1] > 1 && x->stride[1] == 0 ? x->extent[0] : wk_view_rows(x);
}

/* All of them, [packed_rows][n_blocks]. */
typedef struct fast_packed {
    fast_block *blocks;
    fast_low *low; /* NULL where there is one plane */
    int64_t n_blocks;
} fast_packed;

static uint64_t packed_bytes(const wk_op *op) {
    const uint64_t n = (uint64_t)(packed_rows(op) * (linear_k(op) / QUANT_BLOCK));
    return n * (sizeof(fast_block) + (FAST_PLANES > 1 ? sizeof(fast_low) : 0));
}

static fast_packed packed_in(const wk_op *op, void *memory) {
    const int64_t n_blocks = linear_k(op) / QUANT_BLOCK;
    fast_block *const blocks = memory;
    void *const low = blocks + packed_rows(op) * n_blocks;
    return (fast_packed){blocks, FAST_PLANES > 1 ? low : NULL, n_blocks};
}

static fast_row row_of_packed(const fast_packed *packed, int64_t row) {
    const int64_t first = row * packed->n_blocks;
    return (fast_row){packed->blocks + first, FAST_PLANES > 1 ? packed->low + first : NULL};
}

/* For a weight of f's layout. */
static void pack_row(const linear_operands *a, const tile_form *f, int64_t row,
                     const fast_packed *packed) {
    const bool is_shared = a->u > 1 && a->x.step == 0;
    const float *const x = linear_at(a, &a->x, is_shared ? row * a->u : row);
    const int64_t n = packed->n_blocks;
    fast_block *const blocks = packed->blocks + row * n;
    float sum = 0;
    for (int64_t b = 0; b < n; b++)
        sum += blocks[b].scale = quant_largest(x + b * QUANT_BLOCK); /* until it is packed */
    const float fine_above = FAST_PLANES > 1 ? quant_fine_above(sum, n) : 0;
    for (int64_t b = 0; b < n; b++)
        pack_block(f, x + b * QUANT_BLOCK, blocks[b].scale, fine_above, blocks + b,
                   FAST_PLANES > 1 ? packed->low + row * n + b : NULL);
}

#endif
