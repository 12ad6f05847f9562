/* quant/decode_iq.c: ggml's iq types. iq1 to iq3 code 8 or 4 elements at once, as an entry of a
 * grid (quant/iq_tables.h) with signs; iq4 codes single elements on an uneven scale.
 *
 * Blocks have 256 elements (iq4_nl 32). Those of iq1 to iq3 become 32 words of 8 signed bytes, the
 * first element in a word's lowest byte, and a step for every 16 elements. Sums and products of
 * words act on all 8 bytes, as the numbers stay below 128 and never carry into the next. */
#include "quant/decode.h"
#include "quant/iq_tables.h"
#include "quant/levels.h"

enum { N_WORDS = WK_QK_K / 8, N_GROUPS = WK_QK_K / 16, N_RUNS = WK_QK_K / 32 };

static uint64_t eight_bytes(uint8_t value) { return value * UINT64_C(0x0101010101010101); }

/* 8 numbers of 2 bits to bytes: in three steps, the upper half of each packed group moves up. */
static uint64_t spread_2_bits(uint16_t packed) {
    uint64_t x = packed;
    x = (x | x << 24) & UINT64_C(0x000000FF000000FF);
    x = (x | x << 12) & UINT64_C(0x000F000F000F000F);
    return (x | x << 6) & eight_bytes(3);
}

/* 2 times 4 numbers of 3 bits to bytes. */
static uint64_t spread_3_bits(uint16_t first, uint16_t second) {
    uint64_t x = first | (uint64_t)second << 32;
    x = (x | x << 10) & UINT64_C(0x003F003F003F003F);
    return (x | x << 5) & eight_bytes(7);
}

/* Indices of a grid to its magnitudes: 8 25 43. */
static uint64_t iq2_magnitudes(uint16_t entry) {
    const uint64_t x = spread_2_bits(entry);
    return 17 * x + eight_bytes(8) + (x >> 1 & eight_bytes(1));
}

/* 4 12 20 28 36 44 52 62: the last lies off the line. */
static uint64_t iq3_xxs_magnitudes(uint16_t first, uint16_t second) {
    const uint64_t x = spread_3_bits(first, second);
    return 8 * x + eight_bytes(4) + 2 * (x & x >> 1 & x >> 2 & eight_bytes(1));
}

/* 1 3 5 ... 15 */
static uint64_t iq3_s_magnitudes(uint16_t first, uint16_t second) {
    return 2 * spread_3_bits(first, second) + eight_bytes(1);
}

/* Negates the bytes whose sign is set, in two's complement: ~x + 1, as no magnitude is 0. */
static uint64_t with_signs(uint64_t magnitudes, uint8_t signs) {
    const uint64_t one = wk_spread_bits(signs);
    return (magnitudes ^ one * 255) + one;
}

static void store_groups(const uint64_t words[N_WORDS], const float step[N_GROUPS],
                         float *restrict dst) {
    int8_t q[WK_QK_K];
    memcpy(q, words, sizeof q);
    for (int g = 0; g < N_GROUPS; g++)
        for (int j = 0; j < 16; j++) dst[16 * g + j] = step[g] * (float)q[16 * g + j];
}

/* f16 d; for each run of 32 elements 4 grid indices of a byte, then 32 bits: 4 times 7 signs, 4-bit
 * scale. */
void wk_decode_block_iq2_xxs(const uint8_t *restrict block, float *restrict dst) {
    const float d = wk_load_f16(block);
    const uint8_t *run = block + 2;
    uint64_t words[N_WORDS];
    float step[N_GROUPS];
    for (int r = 0; r < N_RUNS; r++, run += 8) {
        const uint32_t tail = wk_load_u32(run + 4);
        step[2 * r] = step[2 * r + 1] = d * (0.5F + (float)(tail >> 28)) * 0.25F;
        for (int i = 0; i < 4; i++)
            words[4 * r + i] = with_signs(iq2_magnitudes(wk_iq2_xxs_grid[run[i]]),
                                          wk_even_signs(tail >> 7 * i & 127));
    }
    store_groups(words, step, dst);
}

/* The scales of iq2_xs and iq2_s: a half of a byte for each group, the low half first. */
static void iq2_steps(const uint8_t *restrict scales, float d, float step[N_GROUPS]) {
    for (int i = 0; i < N_GROUPS / 2; i++) {
        step[2 * i] = d * (0.5F + (float)(scales[i] & 15)) * 0.25F;
        step[2 * i + 1] = d * (0.5F + (float)(scales[i] >> 4)) * 0.25F;
    }
}

/* f16 d; 32 times 9 bits of grid index and 7 signs; 8 bytes of scales. */
void wk_decode_block_iq2_xs(const uint8_t *restrict block, float *restrict dst) {
    uint64_t words[N_WORDS];
    float step[N_GROUPS];
    iq2_steps(block + 66, wk_load_f16(block), step);
    for (int i = 0; i < N_WORDS; i++) {
        const unsigned code = wk_load_u16(block + 2 + 2 * i);
        words[i] = with_signs(iq2_magnitudes(wk_iq2_xs_grid[code & 511]), wk_even_signs(code >> 9));
    }
    store_groups(words, step, dst);
}

/* f16 d; 32 bytes of grid indices; 32 bytes of 8 signs; 8 bytes, the indices' top 2 bits; 8 bytes
 * of scales. */
void wk_decode_block_iq2_s(const uint8_t *restrict block, float *restrict dst) {
    uint64_t words[N_WORDS];
    float step[N_GROUPS];
    iq2_steps(block + 74, wk_load_f16(block), step);
    for (int i = 0; i < N_WORDS; i++) {
        const int high = block[66 + i / 4] >> (i % 4 * 2) & 3;
        words[i] =
            with_signs(iq2_magnitudes(wk_iq2_s_grid[high << 8 | block[2 + i]]), block[34 + i]);
    }
    store_groups(words, step, dst);
}

/* f16 d; 64 grid indices of a byte; for each run 32 bits: 4 times 7 signs, 4-bit scale. */
void wk_decode_block_iq3_xxs(const uint8_t *restrict block, float *restrict dst) {
    const float d = wk_load_f16(block);
    const uint8_t *index = block + 2;
    uint64_t words[N_WORDS];
    float step[N_GROUPS];
    for (int r = 0; r < N_RUNS; r++) {
        const uint32_t tail = wk_load_u32(block + 66 + 4 * r);
        step[2 * r] = step[2 * r + 1] = d * (0.5F + (float)(tail >> 28)) * 0.5F;
        for (int i = 0; i < 4; i++, index += 2) {
            const uint64_t magnitudes =
                iq3_xxs_magnitudes(wk_iq3_xxs_grid[index[0]], wk_iq3_xxs_grid[index[1]]);
            words[4 * r + i] = with_signs(magnitudes, wk_even_signs(tail >> 7 * i & 127));
        }
    }
    store_groups(words, step, dst);
}

/* f16 d; 64 bytes of grid indices; 8 bytes, their top bits; 32 bytes of 8 signs; 4 bytes of scales,
 * a half for each run. */
void wk_decode_block_iq3_s(const uint8_t *restrict block, float *restrict dst) {
    const float d = wk_load_f16(block);
    uint64_t words[N_WORDS];
    float step[N_GROUPS];
    for (int i = 0; i < N_WORDS; i++) {
        const int high = block[66 + i / 4] >> (i % 4 * 2);
        const uint8_t *const low = block + 2 + 2 * i;
        const uint64_t magnitudes = iq3_s_magnitudes(wk_iq3_s_grid[(high & 1) << 8 | low[0]],
                                                     wk_iq3_s_grid[(high & 2) << 7 | low[1]]);
        words[i] = with_signs(magnitudes, block[74 + i]);
    }
    for (int g = 0; g < N_GROUPS; g++) {
        const int scale = block[106 + g / 4] >> (g / 2 % 2 * 4) & 15;
        step[g] = d * (float)(1 + 2 * scale);
    }
    store_groups(words, step, dst);
}

/* An element of iq1 is step (grid + 1/8) or step (grid - 1/8), the grid's values being -1, 0, 1:
 * here 8 times that, an integer from -9 to 9, and in iq1_step the eighth. Both are exact. Bytes are
 * kept above 0 until the last operation, which takes 128 away. */
static uint64_t iq1_eighths(int index, bool is_down) {
    const uint64_t x = spread_2_bits(wk_iq1_grid[index]);
    return (8 * x + eight_bytes(is_down ? 128 - 9 : 128 - 7)) ^ eight_bytes(128);
}

static float iq1_step(float d, int scale) { return d * (float)(2 * scale + 1) * 0.125F; }

/* f16 d; 32 bytes of grid indices; for each run 16 bits: the indices' top 3 bits, a 3-bit scale,
 * the sign of the eighth. */
void wk_decode_block_iq1_s(const uint8_t *restrict block, float *restrict dst) {
    const float d = wk_load_f16(block);
    uint64_t words[N_WORDS];
    float step[N_GROUPS];
    for (int r = 0; r < N_RUNS; r++) {
        const int run = wk_load_u16(block + 34 + 2 * r);
        step[2 * r] = step[2 * r + 1] = iq1_step(d, run >> 12 & 7);
        for (int i = 4 * r; i < 4 * r + 4; i++) {
            const int high = run >> (i % 4 * 3) & 7;
            words[i] = iq1_eighths(high << 8 | block[2 + i], (run & 0x8000) != 0);
        }
    }
    store_groups(words, step, dst);
}

/* 32 bytes of grid indices; 16 bytes of two halves, each an index's top 3 bits and the sign of its
 * eighth; 4 times 16 bits: four 3-bit scales, each for a group, and 4 bits of the f16 d. */
void wk_decode_block_iq1_m(const uint8_t *restrict block, float *restrict dst) {
    const uint8_t *const scales = block + 48;
    unsigned d_bits = 0;
    for (int i = 0; i < 4; i++) d_bits |= (unsigned)(scales[2 * i + 1] >> 4) << 4 * i;
    const float d = wk_f16_to_f32((uint16_t)d_bits);
    uint64_t words[N_WORDS];
    float step[N_GROUPS];
    for (int i = 0; i < N_WORDS; i++) {
        const int high = block[32 + i / 2] >> (i % 2 * 4);
        words[i] = iq1_eighths((high & 7) << 8 | block[i], (high & 8) != 0);
    }
    for (int g = 0; g < N_GROUPS; g++)
        step[g] = iq1_step(d, wk_load_u16(scales + g / 4 * 2) >> (g % 4 * 3) & 7);
    store_groups(words, step, dst);
}

/* f16 d, 16 bytes of halves as in q4_0. */
void wk_decode_block_iq4_nl(const uint8_t *restrict block, float *restrict dst) {
    wk_decode_levels(block + 2, WK_QK_SMALL, wk_iq4_levels, wk_load_f16(block), dst);
}

/* f16 d; 16 bits, the scales' top 2 bits; 4 bytes of halves, their low 4; for each run 16 bytes of
 * halves. Scales are stored with 32 added. */
void wk_decode_block_iq4_xs(const uint8_t *restrict block, float *restrict dst) {
    const float d = wk_load_f16(block);
    const int high = wk_load_u16(block + 2);
    for (int r = 0; r < N_RUNS; r++) {
        const int low = block[4 + r / 2] >> (r % 2 * 4) & 15;
        const int scale = (high >> 2 * r & 3) << 4 | low;
        wk_decode_levels(block + 8 + 16 * r, 32, wk_iq4_levels, d * (float)(scale - 32),
                         dst + 32 * r);
    }
}
