/* core/half.c: binary16, bfloat16 and 8-bit floats, bit by bit. */
#include "core/half.h"

float wk_f16_to_f32(uint16_t h) {
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    const uint32_t exponent = (h >> 10) & 31;
    const uint32_t fraction = h & 0x3FFU;
    if (exponent == 31) return wk_f32_from_bits(sign | 0x7F800000 | fraction << 13);
    if (exponent != 0) return wk_f32_from_bits(sign | (exponent + 112) << 23 | fraction << 13);
    /* Subnormal: a whole number of 2^-24, exact in float. */
    return wk_f32_from_bits(sign | wk_f32_bits((float)fraction * 0x1p-24F));
}

uint16_t wk_f32_to_f16(float f) {
    const uint32_t bits = wk_f32_bits(f);
    const uint32_t sign = bits >> 16 & 0x8000;
    const uint32_t magnitude = bits & 0x7FFFFFFF;
    uint32_t half;
    if (magnitude > 0x7F800000) { /* NaN: the upper bits of its payload, made quiet */
        half = 0x7E00 | (magnitude >> 13 & 0x1FF);
    } else if (magnitude >= 0x47800000) { /* 2^16 and more; 65520 to 2^16 overflow by rounding */
        half = 0x7C00;
    } else if (magnitude >= 0x38800000) { /* 2^-14 and more: normal, exponent bias 127 to 15 */
        const uint32_t rebased = magnitude - (112U << 23);
        half = (rebased + 0xFFF + (rebased >> 13 & 1)) >> 13;
    } else if (magnitude > 0x33000000) { /* above 2^-25: a subnormal, counted in units of 2^-24 */
        const uint32_t significand = (magnitude & 0x7FFFFF) | 0x800000;
        const uint32_t shift = 126 - (magnitude >> 23); /* 14 to 24 */
        half = (significand + (1U << (shift - 1)) - 1 + (significand >> shift & 1)) >> shift;
    } else {
        half = 0;
    }
    return (uint16_t)(sign | half);
}

/* To float by rounding to odd: an inexact value goes to the neighbour whose last bit is 1. It then
 * lies on the same side of every 16-bit midpoint as d, and rounding it again rounds d once (Boldo
 * and Melquiond, "When double rounding is odd", 2005; float has more than 2 bits to spare). */
static float round_to_odd(double d) {
    const float nearest = (float)d;
    const uint32_t bits = wk_f32_bits(nearest);
    const double back = (double)nearest;
    if (d != d || back == d || (bits & 1)) return nearest;
    const double magnitude = d < 0 ? -d : d;
    const double back_magnitude = d < 0 ? -back : back;
    return wk_f32_from_bits(back_magnitude > magnitude ? bits - 1 : bits + 1);
}

uint16_t wk_f64_to_f16(double d) { return wk_f32_to_f16(round_to_odd(d)); }

uint16_t wk_f32_to_bf16(float f) {
    const uint32_t bits = wk_f32_bits(f);
    if ((bits & 0x7FFFFFFF) > 0x7F800000) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

uint16_t wk_f64_to_bf16(double d) { return wk_f32_to_bf16(round_to_odd(d)); }

/* ---- 8-bit floats: `fraction` bits of it, 7 - fraction of the exponent ---- */

static float from_f8(uint8_t b, int fraction) {
    const uint32_t sign = (uint32_t)(b & 0x80) << 24, magnitude = b & 0x7F;
    const uint32_t bias = (1U << (6 - fraction)) - 1;
    const uint32_t exponent = magnitude >> fraction;
    if (exponent > 0)
        return wk_f32_from_bits(sign | ((magnitude << (23 - fraction)) + ((127 - bias) << 23)));
    /* Subnormal: a whole number of units, exact in float. */
    const float unit = wk_f32_from_bits((128 - bias - (uint32_t)fraction) << 23);
    return wk_f32_from_bits(sign | wk_f32_bits((float)magnitude * unit));
}

float wk_f8_e4m3_to_f32(uint8_t b) {
    return (b & 0x7F) == 0x7F ? wk_f32_from_bits(0x7FC00000 | (uint32_t)(b & 0x80) << 24)
                              : from_f8(b, 3);
}

float wk_f8_e5m2_to_f32(uint8_t b) {
    const uint32_t sign = (uint32_t)(b & 0x80) << 24, magnitude = b & 0x7F;
    if (magnitude > 0x7C) return wk_f32_from_bits(sign | 0x7FC00000);
    return magnitude == 0x7C ? wk_f32_from_bits(sign | 0x7F800000) : from_f8(b, 2);
}

/* Rounded to nearest even, to at most `most`; what f is must not be NaN. */
static uint8_t to_f8(float f, int fraction, uint32_t most) {
    const uint32_t magnitude = wk_f32_bits(f) & 0x7FFFFFFF;
    const uint32_t least = 127 - ((1U << (6 - fraction)) - 1) + 1; /* exponent of normal numbers */
    const uint32_t exponent = magnitude >> 23, rebased = (least - 1) << 23;
    uint32_t shift = 23 - (uint32_t)fraction, value = magnitude - rebased;
    if (exponent < least) { /* a subnormal, or nothing */
        shift += least - exponent;
        value = (magnitude & 0x7FFFFF) | 0x800000;
        if (exponent == 0 || shift > 24) return 0;
    }
    const uint32_t rounded = (value + (1U << (shift - 1)) - 1 + (value >> shift & 1)) >> shift;
    return (uint8_t)(rounded < most ? rounded : most);
}

static uint8_t sign_of(float f) { return (uint8_t)(wk_f32_bits(f) >> 24 & 0x80); }

uint8_t wk_f64_to_f8_e4m3(double d) {
    const float f = round_to_odd(d);
    return (uint8_t)(sign_of(f) | (f != f ? 0x7F : to_f8(f, 3, 0x7F)));
}

uint8_t wk_f64_to_f8_e5m2(double d) {
    const float f = round_to_odd(d);
    return (uint8_t)(sign_of(f) | (f != f ? 0x7F : to_f8(f, 2, 0x7C)));
}
