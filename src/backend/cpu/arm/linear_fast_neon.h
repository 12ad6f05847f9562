/* arm/linear_fast_neon.h: sums of whole numbers by 16 rows, for simd/linear_bytes.h. */
#ifndef WK_ARM_LINEAR_FAST_NEON_H
#define WK_ARM_LINEAR_FAST_NEON_H

#include "backend/cpu/arm/linear_simd_neon.h"
#include "backend/cpu/cpu_kernel.h"

/* A tile of 4 columns has 16 registers of sums; a column of 2 panels 8, to hide the latency. */
enum { FAST_COLUMNS = 4, FAST_PANELS = 2, FAST_HOLDS = 0, FAST_OFFSETS = 1 };

typedef struct w16 {
    int32x4_t part[SIMD_PARTS];
} w16;

WK_INLINE w16 w16_set(int32_t word) {
    const int32x4_t all = vdupq_n_s32(word);
    return (w16){{all, all, all, all}};
}
WK_INLINE w16 w16_add(w16 a, w16 b) {
    for (int i = 0; i < SIMD_PARTS; i++) a.part[i] = vaddq_s32(a.part[i], b.part[i]);
    return a;
}
WK_INLINE v16 w16_float(w16 sum) {
    return v16_of(vcvtq_f32_s32(sum.part[0]), vcvtq_f32_s32(sum.part[1]),
                  vcvtq_f32_s32(sum.part[2]), vcvtq_f32_s32(sum.part[3]));
}
WK_INLINE v16 w16_as_float(w16 sum) {
    return v16_of(vreinterpretq_f32_s32(sum.part[0]), vreinterpretq_f32_s32(sum.part[1]),
                  vreinterpretq_f32_s32(sum.part[2]), vreinterpretq_f32_s32(sum.part[3]));
}

#endif
