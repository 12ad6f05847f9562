/* quant/decode_k.c: ggml's k types: blocks of 256 elements in runs of 32 or 16, each with a small
 * integer scale (and, in some, a minimum) under the block's f16 scale d (and dmin). */
#include "quant/decode.h"

enum { RUN = 32, GROUP = 16 };

/* 16 bytes, a group's scale (low half) and minimum (high half); 64 bytes of 2-bit numbers; f16 d,
 * f16 dmin. x = (d scale) q - dmin minimum. Of 128 elements, run r of 32 lies in bits 2r of 32
 * bytes. */
void wk_decode_block_q2_k(const uint8_t *restrict block, float *restrict dst) {
    const float d = wk_load_f16(block + 80);
    const float dmin = wk_load_f16(block + 82);
    for (int g = 0; g < WK_QK_K / GROUP; g++, dst += GROUP) {
        const float step = d * (float)(block[g] & 15);
        const float minimum = dmin * (float)(block[g] >> 4);
        const uint8_t *const q = block + 16 + (g / 8) * RUN + (g % 2) * GROUP;
        const int shift = g / 2 % 4 * 2;
        for (int j = 0; j < GROUP; j++) dst[j] = step * (float)(q[j] >> shift & 3) - minimum;
    }
}

/* 32 bytes of third bits (bit r of byte j: element j of run r); 64 bytes of 2-bit numbers as in
 * q2_k; 12 bytes with sixteen 6-bit scales; f16 d. x = (d (scale - 32)) (q - 4). Scale g has its
 * low 4 bits in the halves of bytes 0-7 (the low ones first) and its top 2 in bytes 8-11, four
 * scales to each pair of bits. */
void wk_decode_block_q3_k(const uint8_t *restrict block, float *restrict dst) {
    const uint8_t *const packed = block + 96;
    const float d = wk_load_f16(block + 108);
    for (int g = 0; g < WK_QK_K / GROUP; g++, dst += GROUP) {
        const int low = packed[g % 8] >> (g / 8 * 4) & 15;
        const int high = packed[8 + g % 4] >> (g / 4 * 2) & 3;
        const float step = d * (float)((high << 4 | low) - 32);
        const uint8_t *const third = block + g % 2 * GROUP;
        const uint8_t *const q = block + 32 + g / 8 * RUN + g % 2 * GROUP;
        const int run = g / 2, shift = run % 4 * 2;
        for (int j = 0; j < GROUP; j++)
            dst[j] = step * (float)(((third[j] >> run & 1) << 2 | (q[j] >> shift & 3)) - 4);
    }
}

/* The 12 bytes that hold eight 6-bit scales and eight 6-bit minima: bytes 0-3 and 4-7 carry the low
 * 6 bits of numbers 0-3; numbers 4-7 have their low 4 bits in bytes 8-11 (scale low half, minimum
 * high half) and their top 2 bits in the top bits of the first 8 bytes. */
static void unpack_scales(const uint8_t packed[12], uint8_t scale[8], uint8_t minimum[8]) {
    for (int j = 0; j < 4; j++) {
        scale[j] = packed[j] & 63;
        minimum[j] = packed[j + 4] & 63;
        scale[j + 4] = (uint8_t)((packed[j + 8] & 15) | ((packed[j] >> 6) << 4));
        minimum[j + 4] = (uint8_t)((packed[j + 8] >> 4) | ((packed[j + 4] >> 6) << 4));
    }
}

/* f16 d, f16 dmin, 12 packed bytes of scales and minima, 128 bytes of halves. Run s:
 * x = (d scale[s]) q - dmin minimum[s]. 32 bytes hold two runs, the first in the low halves. */
void wk_decode_block_q4_k(const uint8_t *restrict block, float *restrict dst) {
    const float d = wk_load_f16(block);
    const float dmin = wk_load_f16(block + 2);
    uint8_t scale[8], minimum[8];
    unpack_scales(block + 4, scale, minimum);
    const uint8_t *q = block + 16;
    for (int s = 0; s < 8; s += 2, q += RUN, dst += 2 * RUN) {
        const float d0 = d * (float)scale[s], m0 = dmin * (float)minimum[s];
        const float d1 = d * (float)scale[s + 1], m1 = dmin * (float)minimum[s + 1];
        for (int j = 0; j < RUN; j++) {
            dst[j] = d0 * (float)(q[j] & 15) - m0;
            dst[j + RUN] = d1 * (float)(q[j] >> 4) - m1;
        }
    }
}

/* As q4_k, with 32 bytes of fifth bits before the halves: bit s of byte j is element j's of run
 * s. */
void wk_decode_block_q5_k(const uint8_t *restrict block, float *restrict dst) {
    const float d = wk_load_f16(block);
    const float dmin = wk_load_f16(block + 2);
    uint8_t scale[8], minimum[8];
    unpack_scales(block + 4, scale, minimum);
    const uint8_t *const fifth = block + 16;
    const uint8_t *q = block + 48;
    for (int s = 0; s < 8; s += 2, q += RUN, dst += 2 * RUN) {
        const float d0 = d * (float)scale[s], m0 = dmin * (float)minimum[s];
        const float d1 = d * (float)scale[s + 1], m1 = dmin * (float)minimum[s + 1];
        for (int j = 0; j < RUN; j++) {
            const int bits = fifth[j] >> s;
            dst[j] = d0 * (float)((q[j] & 15) | (bits & 1) << 4) - m0;
            dst[j + RUN] = d1 * (float)(q[j] >> 4 | (bits & 2) << 3) - m1;
        }
    }
}

/* Groups 0, 2, 4 and 6 of the 8 in half a q6_k block, or 1, 3, 5 and 7 where all pointers are moved
 * by one group: of each, 16 numbers of 4 low bits and 2 high ones, stored with 32 added. */
static void decode_q6_k_groups(const uint8_t *restrict low, const uint8_t *restrict high,
                               const uint8_t *restrict scale, float d, float *restrict dst) {
    float step[4];
    for (int r = 0; r < 4; r++) step[r] = d * (float)(int8_t)scale[2 * r];
    for (int j = 0; j < GROUP; j++) {
        const int h = high[j];
        dst[j] = step[0] * (float)(((low[j] & 15) | (h & 3) << 4) - 32);
        dst[j + RUN] = step[1] * (float)(((low[j + RUN] & 15) | (h & 12) << 2) - 32);
        dst[j + 2 * RUN] = step[2] * (float)((low[j] >> 4 | (h & 48)) - 32);
        dst[j + 3 * RUN] = step[3] * (float)((low[j + RUN] >> 4 | (h & 192) >> 2) - 32);
    }
}

/* 128 bytes of low bits, 64 of high bits, 16 signed scales, one for each group, f16 d. Four runs
 * share 64 bytes of low bits (runs 0, 1 in the low halves, 2, 3 in the high ones) and 32 bytes of
 * high bits (run r at bit 2r). */
void wk_decode_block_q6_k(const uint8_t *restrict block, float *restrict dst) {
    enum { LOW = WK_QK_K / 2, HIGH = WK_QK_K / 4 };
    const uint8_t *const scale = block + LOW + HIGH;
    const float d = wk_load_f16(scale + 16);
    for (int half = 0; half < 2; half++) {
        for (int g = 0; g < 2; g++) {
            const uint8_t *const low = block + half * LOW / 2 + g * GROUP;
            const uint8_t *const high = block + LOW + half * HIGH / 2 + g * GROUP;
            decode_q6_k_groups(low, high, scale + 8 * half + g, d,
                               dst + half * WK_QK_K / 2 + g * GROUP);
        }
    }
}

/* f32 d, 256 signed bytes, 16 sums of 16 of them (for products, nothing to decode). */
void wk_decode_block_q8_k(const uint8_t *restrict block, float *restrict dst) {
    const float d = wk_f32_from_bits(wk_load_u32(block));
    for (int j = 0; j < WK_QK_K; j++) dst[j] = d * (float)(int8_t)block[4 + j];
}
