/* quant/decode_ternary.c: the types with two to four values under one f16 scale: tq1_0 and tq2_0
 * (-1, 0, 1), q1_0 (-1, 1), q2_0 (-1, 0, 1, 2). */
#include "quant/decode.h"

/* n bytes of digits in base 3, n_digits each, the fraction's way: a byte b is the smallest with
 * b / 256 >= 0.d0 d1 d2 ... Multiplying by 3 pushes a digit out at the top. Digit i of all bytes
 * comes before digit i + 1 of any. Returns the end of what it wrote. */
static float *decode_base_3(const uint8_t *restrict bytes, int n, int n_digits, float d,
                            float *restrict dst) {
    unsigned power = 1;
    for (int i = 0; i < n_digits; i++, power *= 3, dst += n) {
        for (int j = 0; j < n; j++) {
            const int digit = (int)((bytes[j] * power & 255) * 3 >> 8);
            dst[j] = (float)(digit - 1) * d;
        }
    }
    return dst;
}

/* 48 bytes of 5 digits (32 bytes and 16 on their own), 4 bytes of 4 digits, f16 d. */
void wk_decode_block_tq1_0(const uint8_t *restrict block, float *restrict dst) {
    const float d = wk_load_f16(block + 52);
    dst = decode_base_3(block, 32, 5, d, dst);
    dst = decode_base_3(block + 32, 16, 5, d, dst);
    decode_base_3(block + 48, 4, 4, d, dst);
}

/* 64 bytes of 2-bit numbers, stored with 1 added, f16 d. 32 bytes hold 4 runs of 32, run r at bit
 * 2r. */
void wk_decode_block_tq2_0(const uint8_t *restrict block, float *restrict dst) {
    enum { RUN = 32 };
    const float d = wk_load_f16(block + 64);
    for (int r = 0; r < WK_QK_K / RUN; r++, dst += RUN) {
        const uint8_t *const q = block + r / 4 * RUN;
        const int shift = r % 4 * 2;
        for (int j = 0; j < RUN; j++) dst[j] = (float)((q[j] >> shift & 3) - 1) * d;
    }
}

/* f16 d, 16 bytes: bit j % 8 of byte j / 8 chooses between d and -d. */
void wk_decode_block_q1_0(const uint8_t *restrict block, float *restrict dst) {
    enum { N_ELEMENTS = 128 };
    const float d = wk_load_f16(block);
    uint64_t bits[N_ELEMENTS / 8];
    for (int i = 0; i < N_ELEMENTS / 8; i++) bits[i] = wk_spread_bits(block[2 + i]);
    uint8_t q[N_ELEMENTS];
    memcpy(q, bits, sizeof q);
    for (int j = 0; j < N_ELEMENTS; j++) dst[j] = (float)(2 * q[j] - 1) * d;
}

/* f16 d, 16 bytes of 2-bit numbers in order, stored with 1 added. */
void wk_decode_block_q2_0(const uint8_t *restrict block, float *restrict dst) {
    const float d = wk_load_f16(block);
    for (int i = 0; i < 16; i++, dst += 4)
        for (int j = 0; j < 4; j++) dst[j] = (float)((block[2 + i] >> 2 * j & 3) - 1) * d;
}
