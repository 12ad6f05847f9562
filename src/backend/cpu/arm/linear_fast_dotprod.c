/* arm/linear_fast_dotprod.c: linear with activations as integers, by dot products of signed bytes.
 */
#include "backend/cpu/arm/linear_fast_neon.h"

#include <stdbool.h>

enum { WIDE_BIAS = 0 };

WK_INLINE w16 w16_dot(w16 sum, b64 quants, w16 x, const bool is_wide) {
    for (int i = 0; i < SIMD_PARTS; i++) {
        /* Wide quants become signed by less 128, a flip of the sign; others are below 128. */
        uint8x16_t q = quants.part[i];
        if (is_wide) q = veorq_u8(q, vdupq_n_u8(128));
        const int8x16_t bytes = vreinterpretq_s8_s32(x.part[i]);
        sum.part[i] = vdotq_s32(sum.part[i], vreinterpretq_s8_u8(q), bytes);
    }
    return sum;
}

#include "backend/cpu/simd/linear_bytes.h"
#include "backend/cpu/simd/linear_fast.h"

#define FAST_KERNEL(layout, type)                                                                  \
    const wk_cpu_kernel wk_linear_##type##_fast_dotprod = {                                        \
        .base = {.name = "linear_" #type "_fast_dotprod", .is_fast = true},                        \
        .code = WK_OP_LINEAR,                                                                      \
        .needs = SIMD_NEEDS | WK_CPU_DOTPROD,                                                      \
        .accepts = accepts_##type,                                                                 \
        .n_phases = 2,                                                                             \
        .items = items,                                                                            \
        .grain = grain,                                                                            \
        .scratch_bytes = scratch_bytes,                                                            \
        .worker_bytes = worker_bytes,                                                              \
        .run = run_##type,                                                                         \
    };
WK_PANEL_FORMATS(FAST_KERNEL)
#undef FAST_KERNEL
