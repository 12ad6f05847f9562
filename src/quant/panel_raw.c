/* quant/panel_raw.c: takes ggml's blocks apart, four quants to a word, for the panels.
 *
 * The formats are those of decode_small.c, decode_k.c and decode_iq.c. */
#include "quant/panel.h"

#include "quant/decode.h"

#include <assert.h>

enum {
    HALVES = 0x0F0F0F0F, /* of four bytes */
    HALF_GROUPS = WK_PANEL_GROUPS / 2,
};

/* 16 bytes that hold element j in the low half of byte j and j + 16 in the high one. */
static void take_halves(const uint8_t *halves, uint32_t word[WK_PANEL_GROUPS]) {
    for (int g = 0; g < HALF_GROUPS; g++) {
        const uint32_t both = wk_load_u32(halves + 4 * g);
        word[g] = both & HALVES;
        word[g + HALF_GROUPS] = both >> 4 & HALVES;
    }
}

/* Bit j of fifth is element j's. */
static void add_fifth_bits(uint32_t fifth, uint32_t word[WK_PANEL_GROUPS]) {
    for (int g = 0; g < WK_PANEL_GROUPS; g++) {
        const uint32_t bits = fifth >> 4 * g & 15;
        /* The product puts bit e at 8 e, and three copies of each elsewhere. */
        word[g] |= (bits * 0x00204081 & 0x01010101) << 4;
    }
}

/* d, minimum and 6-bit scales of q4_k and q5_k: see unpack_scales in decode_k.c. */
static void take_scales(const uint8_t *raw, int run, wk_panel_row *out) {
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
static void take_run(const uint8_t *halves, int run, uint32_t word[WK_PANEL_GROUPS]) {
    for (int g = 0; g < WK_PANEL_GROUPS; g++)
        word[g] = wk_load_u32(halves + run / 2 * 32 + 4 * g) >> run % 2 * 4 & HALVES;
}

static void take_q5_k(const uint8_t *raw, int run, wk_panel_row *out) {
    take_scales(raw, run, out);
    take_run(raw + 48, run, out->word);
    for (int g = 0; g < WK_PANEL_GROUPS; g++)
        out->word[g] |= (wk_load_u32(raw + 16 + 4 * g) >> run & 0x01010101) << 4;
}

static void take_q6_k(const uint8_t *raw, int run, wk_panel_row *out) {
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

static void take_iq4_xs(const uint8_t *raw, int run, wk_panel_row *out) {
    const int low = raw[4 + run / 2] >> run % 2 * 4 & 15;
    const int high = wk_load_u16(raw + 2) >> 2 * run & 3;
    memcpy(out->head, raw, 2);
    out->scale[0] = (uint8_t)((high << 4 | low) - 32);
    take_halves(raw + 8 + 16 * run, out->word);
}

/* An exponent (E8M0) as the bf16 of half its value: see half_e8m0 in decode_small.c. */
static void take_exponent(unsigned e, uint8_t head[2]) {
    const uint16_t bits = (uint16_t)(e < 2 ? 0x20U << e : (e - 1) << 7);
    memcpy(head, &bits, sizeof bits);
}

void wk_panel_from_raw(wick_dtype dtype, const uint8_t *raw, int64_t b, wk_panel_row *out) {
    const wk_dtype_info *const info = wk_dtype_get(dtype);
    const int per_block = info->block_elements / WK_PANEL_BLOCK, run = (int)(b % per_block);
    raw += b / per_block * info->block_bytes;
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
    default: assert(false && "a type without panels");
    }
}
