/* backend/random.c: the numbers that the distributions of random ops come to in each dtype. */
#include "backend/op.h"

#include "core/half.h"

#include <float.h>
#include <math.h>

static uint16_t to_half(wick_dtype dtype, double value) {
    return dtype == WICK_F16 ? wk_f64_to_f16(value) : wk_f64_to_bf16(value);
}

static double of_half(wick_dtype dtype, uint16_t bits) {
    return (double)(dtype == WICK_F16 ? wk_f16_to_f32(bits) : wk_bf16_to_f32(bits));
}

/* The nearest number of dtype. */
static double rounded(wick_dtype dtype, double value) {
    switch (dtype) {
    case WICK_F64: return value;
    case WICK_F32: return (double)(float)value;
    default: return of_half(dtype, to_half(dtype, value));
    }
}

/* The number of dtype next to one of them, above or below; zeros count as one. */
static double next_half(wick_dtype dtype, double value, bool is_up) {
    const uint16_t sign = 0x8000, bits = to_half(dtype, value);
    if (value == 0) return of_half(dtype, is_up ? 1 : sign | 1);
    const bool grows = (value > 0) == is_up;
    return of_half(dtype, (uint16_t)(grows ? bits + 1 : bits - 1));
}

static double next(wick_dtype dtype, double value, bool is_up) {
    switch (dtype) {
    case WICK_F64: return nextafter(value, is_up ? DBL_MAX : -DBL_MAX);
    case WICK_F32: return (double)nextafterf((float)value, is_up ? FLT_MAX : -FLT_MAX);
    default: return next_half(dtype, value, is_up);
    }
}

/* The least number of dtype in [low, high) and the largest one. */
static bool find_ends(wick_dtype dtype, double low, double high, double *least, double *most) {
    *least = rounded(dtype, low);
    *most = rounded(dtype, high);
    if (!isfinite(*least) || !isfinite(*most)) return false;
    if (*least < low) *least = next(dtype, *least, true);
    if (*most >= high) *most = next(dtype, *most, false);
    return *least <= *most;
}

/* The computation is in float32, except for float64. */
static bool is_computable(wick_dtype dtype, double value) {
    return isfinite(dtype == WICK_F64 ? value : (double)(float)value);
}

bool wk_random_scale(wick_dtype dtype, const wk_params *params, wk_random_scaling *out) {
    const double a = params->random.a, b = params->random.b;
    const bool is_uniform = params->random.fn == WK_RANDOM_UNIFORM;
    *out = (wk_random_scaling){.shift = a, .scale = is_uniform ? b - a : b};
    if (!is_computable(dtype, out->shift) || !is_computable(dtype, out->scale)) return false;
    if (!is_uniform) return b >= 0;
    return a < b && find_ends(dtype, a, b, &out->least, &out->most);
}
