/* backend/webgpu/kernels/strided.h: elementwise kernels: operands of one shape, at any strides.
 * Goes with wgsl/strided.wgsl. */
#ifndef WK_BACKEND_WEBGPU_KERNELS_STRIDED_H
#define WK_BACKEND_WEBGPU_KERNELS_STRIDED_H

#include "backend/webgpu/kernels/webgpu_kernel.h"

enum {
    WK_STRIDED_OPERANDS = 4,
    WK_STRIDED_WIDE = 8,      /* operands of wgsl/strided_wide.wgsl */
    WK_STRIDED_OWN = 12,      /* words there; else 4 */
    WK_STRIDED_CONSTANTS = 2, /* LANES and THREADS, set here */
    WK_STRIDED_TUNINGS = 3,   /* threads of a workgroup; every kernel of this kind has them */
};

/* What a thread does: its source has these views, in their order, the destination first, and
 * params.a, params.b and params.own. Its first constant is LANES: the elements of a
 * thread, 4 where they lie side by side in whole words, else 1. 64-bit elements are bound as words,
 * the low one first, and always one at a time. */
typedef struct wk_strided {
    const wk_source *source;
    const wk_view *views[WK_STRIDED_WIDE];
    int n;
    bool is_wide;
    int n_dst; /* the first of them are written; 0: one */
    int fault; /* the number of a view that is a fault slot; 0: none. With one LANES is 1 */
    int32_t constants[WK_MAX_CONSTANTS - WK_STRIDED_CONSTANTS]; /* the others */
    uint32_t a, b, own[WK_STRIDED_OWN];
} wk_strided;

wick_status wk_strided_run(wk_encoder *e, const wk_strided *s);

static inline bool wk_is_wide(wick_dtype dtype) { return dtype == WICK_I64 || dtype == WICK_F64; }
/* The parameters of a unary function as shaders have them: bits of f32, or of integers. */
void wk_unary_scalars(wick_dtype dtype, const double scalars[2], uint32_t out[2]);
/* A view of the same elements as bits: unsigned or signed integers of their size. */
wk_view wk_view_bits(const wk_view *view);

#endif
