/* quant/panel_take.h: takes ggml's blocks apart, 32 elements of a row at a time, for panel_store.c.
 *
 * The blocks' formats are those of decode_small.c, decode_k.c, decode_iq.c and decode_ternary.c. */
#ifndef WK_QUANT_PANEL_TAKE_H
#define WK_QUANT_PANEL_TAKE_H

#include "quant/decode.h"
#include "quant/panel.h"

#include <assert.h>

/* Out of any form. */
typedef struct block_row {
    uint32_t word[WK_PANEL_GROUPS]; /* of a group each: 4 quants or indices, the first one lowest */
    uint8_t head[4];                /* d and minimum */
    uint8_t scale[2];
    uint32_t upper;   /* with grids word[j] is the index of entry j, and these are its upper bits */
    uint8_t signs[4]; /* of 8 elements each */
} block_row;

enum {
    HALVES = 0x0F0F0F0F, /* of four bytes */
    HALF_GROUPS = WK_PANEL_GROUPS / 2,
};

/* 16 bytes that hold element j in the low half of byte j and j + 16 in the high one. */
WK_INLINE void take_halves(const uint8_t *halves, uint32_t word[WK_PANEL_GROUPS]) {
    for (int g = 0; g < HALF_GROUPS; g++) {
        const uint32_t both = wk_load_u32(halves + 4 * g);
        word[g] = both & HALVES;
        word[g + HALF_GROUPS] = both >> 4 & HALVES;
    }
}

/* Bit j of fifth is element j's. */
WK_INLINE void add_fifth_bits(uint32_t fifth, uint32_t word[WK_PANEL_GROUPS]) {
    for (int g = 0; g < WK_PANEL_GROUPS; g++) {
        const uint32_t bits = fifth >> 4 * g & 15;
        /* The product puts bit e at 8 e, and three copies of each elsewhere. */
        word[g] |= (bits * 0x00204081 & 0x01010101) << 4;
    }
}

/* d, minimum and 6-bit scales of q4_k and q5_k: see unpack_scales in decode_k.c. */
WK_INLINE void take_scales(const uint8_t *raw, int run, block_row *out) {
    const uint8_t *const packed = raw + 4;
    memcpy(out->head, raw, 4);
    if (run < 4) {
        out->scale[0] = packed[run] & 63;
        out->scale[1] = packed[run + 4] & 63;
        return;
    }
    out->scale[0] = (uint8_t)((packed[run + 4] & 15) | packed[run - 4] >> 6 << 4);
    out->scale[1] = (uint8_t)(packed[run + 4] >> 4 | packed[run] >> 6 << 4);
}

/* Two runs share 32 bytes, the first one in the low halves. */
WK_INLINE void take_run(const uint8_t *halves, int run, uint32_t word[WK_PANEL_GROUPS]) {
    for (int g = 0; g < WK_PANEL_GROUPS; g++)
        word[g] = wk_load_u32(halves + run / 2 * 32 + 4 * g) >> run % 2 * 4 & HALVES;
}

WK_INLINE void take_q5_k(const uint8_t *raw, int run, block_row *out) {
    take_scales(raw, run, out);
    take_run(raw + 48, run, out->word);
    for (int g = 0; g < WK_PANEL_GROUPS; g++)
        out->word[g] |= (wk_load_u32(raw + 16 + 4 * g) >> run & 0x01010101) << 4;
}

WK_INLINE void take_q6_k(const uint8_t *raw, int run, block_row *out) {
    enum { HIGH = WK_QK_K / 2, SCALES = HIGH + WK_QK_K / 4 };
    const int half = run / 4, r = run % 4;
    const uint8_t *const low = raw + half * 64 + r % 2 * 32;
    const uint8_t *const high = raw + HIGH + half * 32;
    memcpy(out->head, raw + SCALES + 16, 2);
    memcpy(out->scale, raw + SCALES + 2 * run, 2);
    for (int g = 0; g < WK_PANEL_GROUPS; g++) {
        const uint32_t top = wk_load_u32(high + 4 * g) >> 2 * r & 0x03030303;
        out->word[g] = (wk_load_u32(low + 4 * g) >> r / 2 * 4 & HALVES) | top << 4;
    }
}

WK_INLINE void take_iq4_xs(const uint8_t *raw, int run, block_row *out) {
    const int low = raw[4 + run / 2] >> run % 2 * 4 & 15;
    const int high = wk_load_u16(raw + 2) >> 2 * run & 3;
    memcpy(out->head, raw, 2);
    out->scale[0] = (uint8_t)((high << 4 | low) - 32);
    take_halves(raw + 8 + 16 * run, out->word);
}

/* An exponent (E8M0) as the bf16 of half its value: see half_e8m0 in decode_small.c. */
WK_INLINE void take_exponent(unsigned e, uint8_t head[2]) {
    const uint16_t bits = (uint16_t)(e < 2 ? 0x20U << e : (e - 1) << 7);
    memcpy(head, &bits, sizeof bits);
}

/* Runs of 32 elements with 2 bits each: four share 32 bytes. */
WK_INLINE void take_quarters(const uint8_t *quarters, int run, uint32_t word[WK_PANEL_GROUPS]) {
    for (int g = 0; g < WK_PANEL_GROUPS; g++)
        word[g] = wk_load_u32(quarters + run / 4 * 32 + 4 * g) >> 2 * (run % 4) & 0x03030303;
}

WK_INLINE void take_q2_k(const uint8_t *raw, int run, block_row *out) {
    memcpy(out->head, raw + 80, 4);
    memcpy(out->scale, raw + 2 * run, 2);
    take_quarters(raw + 16, run, out->word);
}

WK_INLINE void take_q3_k(const uint8_t *raw, int run, block_row *out) {
    const uint8_t *const packed = raw + 96;
    memcpy(out->head, raw + 108, 2);
    for (int i = 0; i < 2; i++) {
        const int g = 2 * run + i;
        const int low = packed[g % 8] >> g / 8 * 4 & 15, high = packed[8 + g % 4] >> g / 4 * 2 & 3;
        out->scale[i] = (uint8_t)((high << 4 | low) - 32);
    }
    take_quarters(raw + 32, run, out->word);
    for (int g = 0; g < WK_PANEL_GROUPS; g++)
        out->word[g] |= (wk_load_u32(raw + 4 * g) >> run & 0x01010101) << 2;
}

/* Element i of a block: see wk_decode_block_tq1_0. */
WK_INLINE uint32_t tq1_0_trit(const uint8_t *raw, int i) {
    static const unsigned powers[] = {1, 3, 9, 27, 81};
    enum { SECOND = 5 * 32, THIRD = SECOND + 5 * 16 };
    if (i < SECOND) return (raw[i % 32] * powers[i / 32] & 255) * 3 >> 8;
    if (i < THIRD) return (raw[32 + i % 16] * powers[(i - SECOND) / 16] & 255) * 3 >> 8;
    return (raw[48 + i % 4] * powers[(i - THIRD) / 4] & 255) * 3 >> 8;
}

WK_INLINE void take_tq1_0(const uint8_t *raw, int run, block_row *out) {
    memcpy(out->head, raw + 52, 2);
    for (int g = 0; g < WK_PANEL_GROUPS; g++) {
        out->word[g] = 0;
        for (int e = 0; e < 4; e++)
            out->word[g] |= tq1_0_trit(raw, run * WK_PANEL_BLOCK + 4 * g + e) << 8 * e;
    }
}

WK_INLINE void take_tq2_0(const uint8_t *raw, int run, block_row *out) {
    memcpy(out->head, raw + 64, 2);
    take_quarters(raw, run, out->word);
}

WK_INLINE void take_q1_0(const uint8_t *raw, int run, block_row *out) {
    const uint32_t bits = wk_load_u32(raw + 2 + 4 * run);
    memcpy(out->head, raw, 2);
    for (int g = 0; g < WK_PANEL_GROUPS; g++)
        out->word[g] = (bits >> 4 * g & 15) * 0x00204081 & 0x01010101;
}

WK_INLINE void take_q2_0(const uint8_t *raw, int run, block_row *out) {
    memcpy(out->head, raw, 2);
    for (int g = 0; g < WK_PANEL_GROUPS; g++)
        out->word[g] = wk_panel_spread(raw[2 + 8 * run + g], 2);
}

/* An unsigned byte of E4M3 as the f16 of half its value: see half_ue4m3 in decode_small.c. Its bits
 * as those of an f32 that begin at the same exponent bit stand for 2^-119 of that. */
WK_INLINE void take_e4m3(unsigned byte, uint8_t head[2]) {
    const uint32_t bits = byte == 127 ? 0 : (uint32_t)(byte & 127) << 20;
    const uint16_t half = wk_f32_to_f16(wk_f32_from_bits(bits) * 0x1p119F);
    memcpy(head, &half, sizeof half);
}

WK_INLINE void take_nvfp4(const uint8_t *raw, int run, block_row *out) {
    for (int i = 0; i < 2; i++) {
        const uint8_t *const halves = raw + 4 + 8 * (2 * run + i);
        take_e4m3(raw[2 * run + i], out->head + 2 * i);
        for (int g = 0; g < HALF_GROUPS; g++)
            out->word[HALF_GROUPS * i + g] = wk_load_u32(halves + g % 2 * 4) >> g / 2 * 4 & HALVES;
    }
}

/* ---- Grids: indices, their upper bits as wk_panel_grid says, signs ---- */

/* 32 bits: 4 times 7 signs, 4-bit scale. */
WK_INLINE void take_tail(uint32_t tail, block_row *out) {
    for (int i = 0; i < 4; i++) out->signs[i] = wk_even_signs(tail >> 7 * i & 127);
    out->scale[0] = (uint8_t)(tail >> 28);
}

WK_INLINE void take_indices(const uint8_t *indices, int n, block_row *out) {
    for (int i = 0; i < n; i++) out->word[i] = indices[i];
}

WK_INLINE void take_iq2_xxs(const uint8_t *raw, int run, block_row *out) {
    memcpy(out->head, raw, 2);
    take_indices(raw + 2 + 8 * run, 4, out);
    take_tail(wk_load_u32(raw + 6 + 8 * run), out);
}

WK_INLINE void take_iq2_xs(const uint8_t *raw, int run, block_row *out) {
    memcpy(out->head, raw, 2);
    out->scale[0] = raw[66 + run];
    out->upper = 0;
    for (int i = 0; i < 4; i++) {
        const unsigned code = wk_load_u16(raw + 2 + 8 * run + 2 * i);
        out->word[i] = code & 255;
        out->upper |= (code >> 8 & 1) << 2 * i;
        out->signs[i] = wk_even_signs(code >> 9);
    }
}

WK_INLINE void take_iq2_s(const uint8_t *raw, int run, block_row *out) {
    memcpy(out->head, raw, 2);
    memcpy(out->signs, raw + 34 + 4 * run, 4);
    take_indices(raw + 2 + 4 * run, 4, out);
    out->upper = raw[66 + run];
    out->scale[0] = raw[74 + run];
}

WK_INLINE void take_iq3_xxs(const uint8_t *raw, int run, block_row *out) {
    memcpy(out->head, raw, 2);
    take_indices(raw + 2 + 8 * run, 8, out);
    take_tail(wk_load_u32(raw + 66 + 4 * run), out);
}

WK_INLINE void take_iq3_s(const uint8_t *raw, int run, block_row *out) {
    memcpy(out->head, raw, 2);
    memcpy(out->signs, raw + 74 + 4 * run, 4);
    take_indices(raw + 2 + 8 * run, 8, out);
    out->upper = raw[66 + run];
    out->scale[0] = raw[106 + run / 2] >> run % 2 * 4 & 15;
}

WK_INLINE void take_iq1_s(const uint8_t *raw, int run, block_row *out) {
    memcpy(out->head, raw, 2);
    take_indices(raw + 2 + 4 * run, 4, out);
    out->upper = wk_load_u16(raw + 34 + 2 * run);
}

WK_INLINE void take_iq1_m(const uint8_t *raw, int run, block_row *out) {
    const uint8_t *const scales = raw + 48;
    for (int i = 0; i < 2; i++)
        out->head[i] = (uint8_t)(scales[4 * i + 1] >> 4 | (scales[4 * i + 3] & 0xF0));
    take_indices(raw + 4 * run, 4, out);
    out->upper = wk_load_u16(raw + 32 + 2 * run);
    const int both = wk_load_u16(scales + run / 2 * 2) >> run % 2 * 6;
    out->scale[0] = (uint8_t)((both & 7) | (both >> 3 & 7) << 4);
}

/* raw: a block of the file; run: which 32 of its elements. */
WK_INLINE void take_block(wick_dtype dtype, const uint8_t *raw, int run, block_row *out) {
    switch (dtype) {
    case WICK_Q8_0:
        memcpy(out->head, raw, 2);
        for (int g = 0; g < WK_PANEL_GROUPS; g++)
            out->word[g] = wk_load_u32(raw + 2 + 4 * g) ^ 0x80808080;
        break;
    case WICK_Q4_0:
    case WICK_IQ4_NL:
        memcpy(out->head, raw, 2);
        take_halves(raw + 2, out->word);
        break;
    case WICK_Q4_1:
        memcpy(out->head, raw, 4);
        take_halves(raw + 4, out->word);
        break;
    case WICK_Q5_0:
        memcpy(out->head, raw, 2);
        take_halves(raw + 6, out->word);
        add_fifth_bits(wk_load_u32(raw + 2), out->word);
        break;
    case WICK_Q5_1:
        memcpy(out->head, raw, 4);
        take_halves(raw + 8, out->word);
        add_fifth_bits(wk_load_u32(raw + 4), out->word);
        break;
    case WICK_Q4_K:
        take_scales(raw, run, out);
        take_run(raw + 16, run, out->word);
        break;
    case WICK_Q5_K: take_q5_k(raw, run, out); break;
    case WICK_Q6_K: take_q6_k(raw, run, out); break;
    case WICK_IQ4_XS: take_iq4_xs(raw, run, out); break;
    case WICK_MXFP4:
        take_exponent(raw[0], out->head);
        take_halves(raw + 1, out->word);
        break;
    case WICK_Q2_K: take_q2_k(raw, run, out); break;
    case WICK_Q3_K: take_q3_k(raw, run, out); break;
    case WICK_IQ1_S: take_iq1_s(raw, run, out); break;
    case WICK_IQ1_M: take_iq1_m(raw, run, out); break;
    case WICK_IQ2_XXS: take_iq2_xxs(raw, run, out); break;
    case WICK_IQ2_XS: take_iq2_xs(raw, run, out); break;
    case WICK_IQ2_S: take_iq2_s(raw, run, out); break;
    case WICK_IQ3_XXS: take_iq3_xxs(raw, run, out); break;
    case WICK_IQ3_S: take_iq3_s(raw, run, out); break;
    case WICK_TQ1_0: take_tq1_0(raw, run, out); break;
    case WICK_TQ2_0: take_tq2_0(raw, run, out); break;
    case WICK_NVFP4: take_nvfp4(raw, run, out); break;
    case WICK_Q1_0: take_q1_0(raw, run, out); break;
    case WICK_Q2_0: take_q2_0(raw, run, out); break;
    default: assert(false && "a type without panels");
    }
}

#endif
