/* backend/webgpu/kernels/kernel_random.c: random numbers of Philox 4x32-10, by element. */
#include "backend/webgpu/kernels/strided.h"

#include "core/half.h"

static bool accepts_random(const wk_op *op) {
    return op->p.random.fn == WK_RANDOM_BITS || wk_webgpu_is_float(wk_dst(op, 0)->dtype);
}

static uint32_t bits_of(double value) { return wk_f32_bits((float)value); }

static wick_status encode_random(wk_encoder *e, const wk_op *op) {
    static const wk_source floats = {.name = "random",
                                     .parts = {wk_wgsl_strided, wk_wgsl_wide, wk_wgsl_functions,
                                               wk_wgsl_trigonometry, wk_wgsl_random_float,
                                               wk_wgsl_random},
                                     .operands = {"y", "state"},
                                     .constants = {"LANES", "THREADS", "FN"}};
    static const wk_source bits = {
        .name = "random_bits",
        .parts = {wk_wgsl_strided, wk_wgsl_wide, wk_wgsl_random_bits, wk_wgsl_random},
        .operands = {"y", "state"},
        .constants = {"LANES", "THREADS", "FN"}};
    const bool is_bits = op->p.random.fn == WK_RANDOM_BITS;
    const wk_view *const y = wk_dst(op, 0);
    /* Its first word for every element: a thread reads the words after it by itself. */
    wk_view state = *wk_src(op, 0);
    state.rank = y->rank;
    for (int d = 0; d < y->rank; d++) {
        state.extent[d] = y->extent[d];
        state.stride[d] = 0;
    }
    wk_random_scaling scaling = {0};
    if (!is_bits) (void)wk_random_scale(y->dtype, &op->p, &scaling);
    const uint64_t first = op->p.random.first;
    const wk_strided s = {.source = is_bits ? &bits : &floats,
                          .views = {y, &state},
                          .n = 2,
                          .constants = {(int32_t)op->p.random.fn},
                          .a = bits_of(scaling.shift),
                          .b = bits_of(scaling.scale),
                          .own = {bits_of(scaling.least), bits_of(scaling.most), (uint32_t)first,
                                  (uint32_t)(first >> 32)}};
    return wk_strided_run(e, &s);
}

const wk_webgpu_kernel wk_webgpu_random = {
    .base.name = "random_wgsl",
    .base.code = WK_OP_RANDOM,
    .base.accepts = accepts_random,
    .encode = encode_random,
};
