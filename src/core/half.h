/* core/half.h: IEEE binary16, bfloat16 and 8-bit float conversion, scalar, exact, round to nearest
 * even. */
#ifndef WK_CORE_HALF_H
#define WK_CORE_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t wk_f32_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float wk_f32_from_bits(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

float wk_f16_to_f32(uint16_t h);  /* subnormals, infinities and NaN kept */
uint16_t wk_f32_to_f16(float f);  /* overflow to infinity, NaN stays NaN (quiet) */
uint16_t wk_f64_to_f16(double d); /* rounds once */

static inline float wk_bf16_to_f32(uint16_t b) { return wk_f32_from_bits((uint32_t)b << 16); }
uint16_t wk_f32_to_bf16(float f);
uint16_t wk_f64_to_bf16(double d); /* rounds once */

/* e4m3 has no infinities: what rounds to more than 448 is NaN. NaN keeps its sign alone. */
float wk_f8_e4m3_to_f32(uint8_t b);
float wk_f8_e5m2_to_f32(uint8_t b);
uint8_t wk_f64_to_f8_e4m3(double d); /* rounds once */
uint8_t wk_f64_to_f8_e5m2(double d);

#endif
