/* quant/decode.c: rows of weights to float32, one element order and one rounding order per type.
 *
 * Blocks are packed bytes without alignment, so every multi-byte field is read with memcpy (which
 * is a plain load once compiled). Hosts are little-endian, as the files are. The arithmetic must
 * stay in float32 and in the order written: products and sums that a compiler contracts to a fused
 * multiply-add would differ in the last bit. */
#include "quant/block.h"

#include "core/half.h"

#include <assert.h>
#include <string.h>

static uint16_t load_u16(const uint8_t *bytes) {
    uint16_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static float load_f16(const uint8_t *bytes) { return wk_f16_to_f32(load_u16(bytes)); }

static void decode_f32(const void *src, float *dst, int64_t n) {
    if (n > 0) memcpy(dst, src, (size_t)n * sizeof *dst);
}

/* wk_f16_to_f32 in a form that compilers vectorise. The product moves the exponent's bias from 15
 * to 127 and normalises subnormals, exactly; infinity and NaN (2^16 and more) need the top
 * exponent. */
static void decode_f16(const void *src, float *dst, int64_t n) {
    const uint8_t *from = src;
    for (int64_t i = 0; i < n; i++) {
        const uint32_t h = load_u16(from + 2 * i);
        const uint32_t magnitude = wk_f32_bits(wk_f32_from_bits((h & 0x7FFF) << 13) * 0x1p112F);
        const uint32_t special = magnitude >= 0x47800000 ? 0x7F800000 : 0;
        dst[i] = wk_f32_from_bits(magnitude | special | (h & 0x8000) << 16);
    }
}

static void decode_bf16(const void *src, float *dst, int64_t n) {
    const uint8_t *from = src;
    for (int64_t i = 0; i < n; i++) dst[i] = wk_bf16_to_f32(load_u16(from + 2 * i));
}

/* Block of 32: f16 scale d, then 16 bytes; byte j holds element j (low half) and element j + 16
 * (high half), each stored with 8 added. */
static void decode_q4_0(const void *src, float *dst, int64_t n) {
    enum { BYTES = 2 + WK_QK_SMALL / 2, HALF = WK_QK_SMALL / 2 };
    const uint8_t *block = src;
    for (int64_t i = 0; i < n; i += WK_QK_SMALL, block += BYTES, dst += WK_QK_SMALL) {
        const float d = load_f16(block);
        const uint8_t *const q = block + 2;
        for (int j = 0; j < HALF; j++) {
            dst[j] = (float)((q[j] & 15) - 8) * d;
            dst[j + HALF] = (float)((q[j] >> 4) - 8) * d;
        }
    }
}

/* Block of 32: f16 scale d, f16 minimum m, then halves as in q4_0, stored as they are. */
static void decode_q4_1(const void *src, float *dst, int64_t n) {
    enum { BYTES = 4 + WK_QK_SMALL / 2, HALF = WK_QK_SMALL / 2 };
    const uint8_t *block = src;
    for (int64_t i = 0; i < n; i += WK_QK_SMALL, block += BYTES, dst += WK_QK_SMALL) {
        const float d = load_f16(block);
        const float m = load_f16(block + 2);
        const uint8_t *const q = block + 4;
        for (int j = 0; j < HALF; j++) {
            dst[j] = (float)(q[j] & 15) * d + m;
            dst[j + HALF] = (float)(q[j] >> 4) * d + m;
        }
    }
}

/* Block of 32: f16 scale d, then 32 signed bytes. */
static void decode_q8_0(const void *src, float *dst, int64_t n) {
    enum { BYTES = 2 + WK_QK_SMALL };
    const uint8_t *block = src;
    for (int64_t i = 0; i < n; i += WK_QK_SMALL, block += BYTES, dst += WK_QK_SMALL) {
        const float d = load_f16(block);
        for (int j = 0; j < WK_QK_SMALL; j++) dst[j] = (float)(int8_t)block[2 + j] * d;
    }
}

/* The 12 bytes that hold eight 6-bit scales and eight 6-bit minima: bytes 0-3 and 4-7 carry the low
 * 6 bits of numbers 0-3; numbers 4-7 have their low 4 bits in bytes 8-11 (scale low half, minimum
 * high half) and their top 2 bits in the top bits of the first 8 bytes. */
static void unpack_k_scales(const uint8_t packed[12], uint8_t scale[8], uint8_t minimum[8]) {
    for (int j = 0; j < 4; j++) {
        scale[j] = packed[j] & 63;
        minimum[j] = packed[j + 4] & 63;
        scale[j + 4] = (uint8_t)((packed[j + 8] & 15) | ((packed[j] >> 6) << 4));
        minimum[j + 4] = (uint8_t)((packed[j + 8] >> 4) | ((packed[j + 4] >> 6) << 4));
    }
}

/* Block of 256: f16 d, f16 dmin, 12 packed bytes of sub-block scales and minima, 128 bytes of
 * halves. Sub-block s of 32 elements: x = (d scale[s]) q - dmin minimum[s]. 32 bytes hold two
 * sub-blocks, the first in the low halves. */
static void decode_q4_k(const void *src, float *dst, int64_t n) {
    enum { BYTES = 4 + 12 + WK_QK_K / 2, SUB = 32 };
    const uint8_t *block = src;
    for (int64_t i = 0; i < n; i += WK_QK_K, block += BYTES) {
        const float d = load_f16(block);
        const float dmin = load_f16(block + 2);
        uint8_t scale[8], minimum[8];
        unpack_k_scales(block + 4, scale, minimum);
        const uint8_t *q = block + 16;
        for (int s = 0; s < 8; s += 2, q += SUB, dst += 2 * SUB) {
            const float d0 = d * (float)scale[s], m0 = dmin * (float)minimum[s];
            const float d1 = d * (float)scale[s + 1], m1 = dmin * (float)minimum[s + 1];
            for (int j = 0; j < SUB; j++) {
                dst[j] = d0 * (float)(q[j] & 15) - m0;
                dst[j + SUB] = d1 * (float)(q[j] >> 4) - m1;
            }
        }
    }
}

/* Half a q6_k block, 128 elements as four runs of 32: low holds the low 4 bits (64 bytes: runs 0, 1
 * in the low halves, 2, 3 in the high ones), high the upper 2 bits (32 bytes, run r at bit 2r).
 * Runs have a signed scale for every 16 elements. */
static void decode_q6_k_half(const uint8_t *low, const uint8_t *high, const uint8_t *scale, float d,
                             float *dst) {
    float step[8];
    for (int s = 0; s < 8; s++) step[s] = d * (float)(int8_t)scale[s];
    for (int j = 0; j < 32; j++) {
        const int s = j >> 4, h = high[j];
        dst[j] = step[s] * (float)(((low[j] & 15) | ((h & 3) << 4)) - 32);
        dst[j + 32] = step[s + 2] * (float)(((low[j + 32] & 15) | ((h & 12) << 2)) - 32);
        dst[j + 64] = step[s + 4] * (float)(((low[j] >> 4) | (h & 48)) - 32);
        dst[j + 96] = step[s + 6] * (float)(((low[j + 32] >> 4) | ((h & 192) >> 2)) - 32);
    }
}

/* Block of 256: 128 bytes of low bits, 64 of high bits, 16 signed scales, f16 d. */
static void decode_q6_k(const void *src, float *dst, int64_t n) {
    enum { LOW = WK_QK_K / 2, HIGH = WK_QK_K / 4, BYTES = LOW + HIGH + 16 + 2 };
    const uint8_t *block = src;
    for (int64_t i = 0; i < n; i += WK_QK_K, block += BYTES, dst += WK_QK_K) {
        const uint8_t *const high = block + LOW;
        const uint8_t *const scale = high + HIGH;
        const float d = load_f16(scale + 16);
        decode_q6_k_half(block, high, scale, d, dst);
        decode_q6_k_half(block + LOW / 2, high + HIGH / 2, scale + 8, d, dst + WK_QK_K / 2);
    }
}

wk_decode_fn wk_decoder(wick_dtype dtype) {
    static const wk_decode_fn decoders[WICK_DTYPE_COUNT_] = {
        [WICK_F32] = decode_f32,   [WICK_F16] = decode_f16,   [WICK_BF16] = decode_bf16,
        [WICK_Q4_0] = decode_q4_0, [WICK_Q4_1] = decode_q4_1, [WICK_Q8_0] = decode_q8_0,
        [WICK_Q4_K] = decode_q4_k, [WICK_Q6_K] = decode_q6_k,
    };
    assert((unsigned)dtype < WICK_DTYPE_COUNT_);
    return decoders[dtype];
}
