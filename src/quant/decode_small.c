/* quant/decode_small.c: the types with blocks of 32 (nvfp4: 64) elements and one scale for each, or
 * one for 16: q4_0 to q8_1, and the two formats of 4-bit floats.
 *
 * 4-bit numbers lie as halves of bytes: byte j of a group of n elements holds element j in its low
 * half and element j + n / 2 in its high half. */
#include "quant/decode.h"
#include "quant/levels.h"

enum { HALF = WK_QK_SMALL / 2 };

/* f16 scale d, halves, each stored with 8 added. */
void wk_decode_block_q4_0(const uint8_t *restrict block, float *restrict dst) {
    const float d = wk_load_f16(block);
    const uint8_t *const q = block + 2;
    for (int j = 0; j < HALF; j++) {
        dst[j] = (float)((q[j] & 15) - 8) * d;
        dst[j + HALF] = (float)((q[j] >> 4) - 8) * d;
    }
}

/* f16 scale d, f16 minimum m, halves as they are. */
void wk_decode_block_q4_1(const uint8_t *restrict block, float *restrict dst) {
    const float d = wk_load_f16(block);
    const float m = wk_load_f16(block + 2);
    const uint8_t *const q = block + 4;
    for (int j = 0; j < HALF; j++) {
        dst[j] = (float)(q[j] & 15) * d + m;
        dst[j + HALF] = (float)(q[j] >> 4) * d + m;
    }
}

/* 4 bytes of fifth bits (bit j is element j's) and 16 bytes of halves to 32 numbers below 32. Bits
 * are tested rather than shifted down: vectors of old instruction sets have one shift for all. */
static void join_5_bits(const uint8_t *restrict fifth, const uint8_t *restrict halves,
                        uint16_t q[WK_QK_SMALL]) {
    static const uint16_t bit[HALF] = {0x1,   0x2,   0x4,   0x8,   0x10,   0x20,   0x40,   0x80,
                                       0x100, 0x200, 0x400, 0x800, 0x1000, 0x2000, 0x4000, 0x8000};
    const uint16_t first = wk_load_u16(fifth), second = wk_load_u16(fifth + 2);
    for (int j = 0; j < HALF; j++) {
        q[j] = (uint16_t)((halves[j] & 15) + ((first & bit[j]) != 0 ? 16 : 0));
        q[j + HALF] = (uint16_t)((halves[j] >> 4) + ((second & bit[j]) != 0 ? 16 : 0));
    }
}

/* f16 scale d, 4 bytes of fifth bits, halves; numbers are stored with 16 added. */
void wk_decode_block_q5_0(const uint8_t *restrict block, float *restrict dst) {
    const float d = wk_load_f16(block);
    uint16_t q[WK_QK_SMALL];
    join_5_bits(block + 2, block + 6, q);
    for (int j = 0; j < WK_QK_SMALL; j++) dst[j] = (float)(q[j] - 16) * d;
}

/* f16 scale d, f16 minimum m, 4 bytes of fifth bits, halves. */
void wk_decode_block_q5_1(const uint8_t *restrict block, float *restrict dst) {
    const float d = wk_load_f16(block);
    const float m = wk_load_f16(block + 2);
    uint16_t q[WK_QK_SMALL];
    join_5_bits(block + 4, block + 8, q);
    for (int j = 0; j < WK_QK_SMALL; j++) dst[j] = (float)q[j] * d + m;
}

/* f16 scale d, 32 signed bytes. */
void wk_decode_block_q8_0(const uint8_t *restrict block, float *restrict dst) {
    const float d = wk_load_f16(block);
    for (int j = 0; j < WK_QK_SMALL; j++) dst[j] = (float)(int8_t)block[2 + j] * d;
}

/* f16 scale d, f16 sum (of d times the bytes: for products, nothing to decode), 32 signed bytes. */
void wk_decode_block_q8_1(const uint8_t *restrict block, float *restrict dst) {
    const float d = wk_load_f16(block);
    for (int j = 0; j < WK_QK_SMALL; j++) dst[j] = (float)(int8_t)block[4 + j] * d;
}

/* An exponent e (E8M0) stands for 2^(e - 127); here the half of it, as wk_twice_e2m1 doubles. The
 * format's NaN, 255, is taken for the next power of two. */
static float half_e8m0(unsigned e) {
    const uint32_t bits = e < 2 ? UINT32_C(0x00200000) << e : (uint32_t)(e - 1) << 23;
    return wk_f32_from_bits(bits);
}

/* An unsigned byte of E4M3 stands for (8 + low 3 bits) 2^(e - 10), e = 0 for low 2^-9; here the
 * half of it. Bit 7 is ignored, except that only the byte 127 (bit 7 is 0) is NaN, and counts as 0.
 */
static float half_ue4m3(unsigned byte) {
    if (byte == 127) return 0;
    const unsigned e = byte >> 3 & 15, low = byte & 7;
    if (e == 0) return (float)low * 0x1p-10F;
    return (float)(8 + low) * wk_f32_from_bits((e + 127 - 11) << 23);
}

/* Exponent of the scale, halves. */
void wk_decode_block_mxfp4(const uint8_t *restrict block, float *restrict dst) {
    wk_decode_levels(block + 1, WK_QK_SMALL, wk_twice_e2m1, half_e8m0(block[0]), dst);
}

/* 4 scales, one for each group of 16 elements, then 4 times 8 bytes of halves. */
void wk_decode_block_nvfp4(const uint8_t *restrict block, float *restrict dst) {
    for (int i = 0; i < 4; i++)
        wk_decode_levels(block + 4 + 8 * i, 16, wk_twice_e2m1, half_ue4m3(block[i]), dst + 16 * i);
}
