/* quant/decode.h: what the decoders share: reading packed fields, and the list of all block types.
 *
 * Blocks are packed bytes without alignment, so every multi-byte field is read with memcpy (which
 * is a plain load once compiled). Hosts are little-endian, as the files are. The arithmetic must
 * stay in float32 and in the order written: products and sums that a compiler contracts to a fused
 * multiply-add would differ in the last bit. */
#ifndef WK_QUANT_DECODE_H
#define WK_QUANT_DECODE_H

#include "core/half.h"
#include "core/load.h"
#include "quant/block.h"

#include <string.h>

/* X(dtype, name, elements of a block, its bytes) */
#define WK_BLOCK_TYPES(X)                                                                          \
    X(WICK_Q4_0, q4_0, 32, 18)                                                                     \
    X(WICK_Q4_1, q4_1, 32, 20)                                                                     \
    X(WICK_Q5_0, q5_0, 32, 22)                                                                     \
    X(WICK_Q5_1, q5_1, 32, 24)                                                                     \
    X(WICK_Q8_0, q8_0, 32, 34)                                                                     \
    X(WICK_Q8_1, q8_1, 32, 36)                                                                     \
    X(WICK_Q2_K, q2_k, 256, 84)                                                                    \
    X(WICK_Q3_K, q3_k, 256, 110)                                                                   \
    X(WICK_Q4_K, q4_k, 256, 144)                                                                   \
    X(WICK_Q5_K, q5_k, 256, 176)                                                                   \
    X(WICK_Q6_K, q6_k, 256, 210)                                                                   \
    X(WICK_Q8_K, q8_k, 256, 292)                                                                   \
    X(WICK_IQ2_XXS, iq2_xxs, 256, 66)                                                              \
    X(WICK_IQ2_XS, iq2_xs, 256, 74)                                                                \
    X(WICK_IQ3_XXS, iq3_xxs, 256, 98)                                                              \
    X(WICK_IQ1_S, iq1_s, 256, 50)                                                                  \
    X(WICK_IQ4_NL, iq4_nl, 32, 18)                                                                 \
    X(WICK_IQ3_S, iq3_s, 256, 110)                                                                 \
    X(WICK_IQ2_S, iq2_s, 256, 82)                                                                  \
    X(WICK_IQ4_XS, iq4_xs, 256, 136)                                                               \
    X(WICK_IQ1_M, iq1_m, 256, 56)                                                                  \
    X(WICK_TQ1_0, tq1_0, 256, 54)                                                                  \
    X(WICK_TQ2_0, tq2_0, 256, 66)                                                                  \
    X(WICK_MXFP4, mxfp4, 32, 17)                                                                   \
    X(WICK_NVFP4, nvfp4, 64, 36)                                                                   \
    X(WICK_Q1_0, q1_0, 128, 18)                                                                    \
    X(WICK_Q2_0, q2_0, 64, 18)

/* Decodes one block. dst does not overlap block. */
#define WK_DECLARE_BLOCK(dtype, name, elements, bytes)                                             \
    void wk_decode_block_##name(const uint8_t *restrict block, float *restrict dst);
WK_BLOCK_TYPES(WK_DECLARE_BLOCK)
#undef WK_DECLARE_BLOCK

static inline float wk_load_f16(const uint8_t *bytes) { return wk_f16_to_f32(wk_load_u16(bytes)); }

/* Bit i of bits becomes byte i: 0 or 1. The product puts a copy of all bits into every byte, the
 * mask keeps one in each, and the sum carries it to the top of its byte. */
static inline uint64_t wk_spread_bits(uint8_t bits) {
    const uint64_t single = bits * UINT64_C(0x0101010101010101) & UINT64_C(0x8040201008040201);
    return (single + UINT64_C(0x7F7F7F7F7F7F7F7F)) >> 7 & UINT64_C(0x0101010101010101);
}

/* 7 signs, and an eighth that makes the number of set ones even. */
static inline uint8_t wk_even_signs(unsigned seven) {
    unsigned parity = seven ^ seven >> 4;
    parity ^= parity >> 2;
    parity ^= parity >> 1;
    return (uint8_t)(seven | (parity & 1) << 7);
}

/* n halves of bytes (n / 2 bytes) as indices into 16 levels of d, n a constant. The products are
 * made once for all elements that share d. */
static inline void wk_decode_levels(const uint8_t *restrict halves, int n, const int8_t levels[16],
                                    float d, float *restrict dst) {
    float value[16];
    for (int i = 0; i < 16; i++) value[i] = d * (float)levels[i];
    for (int j = 0; j < n / 2; j++) {
        dst[j] = value[halves[j] & 15];
        dst[j + n / 2] = value[halves[j] >> 4];
    }
}

#endif
