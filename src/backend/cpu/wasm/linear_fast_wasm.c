/* wasm/linear_fast_wasm.c: linear with activations as integers, by sums of pairs of products of 16
 * bits: the even and the odd bytes of the words by themselves, so that every word of the result is
 * a row and nothing has to be sorted. */
#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/wasm/linear_simd_wasm.h"

#include <stdbool.h>

/* A tile has 8 registers of sums, of the 15 or so that a browser has on x86. */
enum {
    FAST_COLUMNS = 2,
    FAST_PANELS = 1,
    FAST_HOLDS = 0,
    FAST_PLANES = 1,
    FAST_SHARES = 1,
    FAST_OFFSETS = 0,
    WIDE_BIAS = 128,
    PANEL_IS_EXACT = 1, /* wk_linear_floats_wasm */
};

typedef struct w16 {
    v128_t part[SIMD_PARTS];
} w16;

WK_INLINE w16 w16_set(int32_t word) {
    const v128_t all = wasm_i32x4_splat(word);
    return (w16){{all, all, all, all}};
}
WK_INLINE w16 w16_add(w16 a, w16 b) {
    for (int i = 0; i < SIMD_PARTS; i++) a.part[i] = wasm_i32x4_add(a.part[i], b.part[i]);
    return a;
}
WK_INLINE v16 w16_float(w16 sum) {
    return v16_of(wasm_f32x4_convert_i32x4(sum.part[0]), wasm_f32x4_convert_i32x4(sum.part[1]),
                  wasm_f32x4_convert_i32x4(sum.part[2]), wasm_f32x4_convert_i32x4(sum.part[3]));
}
WK_INLINE v16 w16_as_float(w16 sum) {
    return v16_of(sum.part[0], sum.part[1], sum.part[2], sum.part[3]);
}

typedef int16_t fast_value;

/* Of 4 elements 0 and 2 are the first word, 1 and 3 the second. */
WK_INLINE int fast_place(int i) { return (i & ~3) | (i & 1) << 1 | (i >> 1 & 1); }
WK_INLINE b64 b64_unit(b64 quants, int i) {
    for (int p = 0; p < SIMD_PARTS; p++)
        quants.part[p] = i == 0 ? wasm_v128_and(quants.part[p], wasm_i16x8_splat(255))
                                : wasm_u16x8_shr(quants.part[p], 8);
    return quants;
}

WK_INLINE w16 w16_dot(w16 sum, b64 unit, w16 x, const bool is_wide) {
    (void)is_wide;
    for (int i = 0; i < SIMD_PARTS; i++)
        sum.part[i] = wasm_i32x4_add(sum.part[i], wasm_i32x4_dot_i16x8(unit.part[i], x.part[i]));
    return sum;
}

#define FAST_FORMATS WK_PANEL_FORMATS
#include "backend/cpu/simd/linear_no_pairs.h"

#include "backend/cpu/simd/linear_fast.h"

#define KERNEL(layout, type) FAST_KERNEL(type, wasm, SIMD_NEEDS)
FAST_FORMATS(KERNEL)
#undef KERNEL

static unpack_blocks_fn *unpack_of(wk_layout layout) {
    switch (layout) {
#define UNPACK(dtype, type)                                                                        \
    case WK_LAYOUT_PANEL_##dtype: return unpack_##type;
        FAST_FORMATS(UNPACK)
#undef UNPACK
    default: return NULL;
    }
}

/* Half a block, elements of four units: floats [16][16]. */
WK_INLINE void floats_of_half(const unpacked_block *block, int half, int part, float bias,
                              bool has_minimum, float *w) {
    const v16 step = block->step[part], addend = has_minimum ? block->addend[part] : v16_zero();
    for (int i = 0; i < GROUPS / 2; i++) {
        for (int e = 0; e < 4; e++, w += WK_PANEL_ROWS) { /* fast_place */
            const b64 unit = block->units[half * UNITS / 2 + 2 * i + (e & 1)];
            w16 word;
            for (int p = 0; p < SIMD_PARTS; p++)
                word.part[p] = e < 2 ? wasm_v128_and(unit.part[p], wasm_i32x4_splat(0xFFFF))
                                     : wasm_u32x4_shr(unit.part[p], 16);
            const v16 q = v16_sub(w16_float(word), v16_set(bias));
            v16_store(w, has_minimum ? v16_fma(q, step, addend) : v16_mul(q, step));
        }
    }
}

void wk_linear_floats_wasm(wk_layout layout, const uint8_t *panel, int64_t first, int64_t len,
                           float *w) {
    unpack_blocks_fn *const unpack = unpack_of(layout);
    const float bias = (float)wk_panel_get(layout)->bias;
    for (int64_t i = first; i < first + len; i += QUANT_BLOCK) {
        unpacked_block block;
        unpack(panel, i / QUANT_BLOCK, 1, &block);
        for (int half = 0; half < 2; half++, w += QUANT_BLOCK / 2 * WK_PANEL_ROWS) {
            const int part = block_parts(layout) == 1 ? 0 : half;
            if (wk_panel_has_minimum(layout))
                floats_of_half(&block, half, part, bias, true, w);
            else
                floats_of_half(&block, half, part, bias, false, w);
        }
    }
}
