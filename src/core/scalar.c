/* core/scalar.c: see scalar.h. */
#include "core/scalar.h"

#include "core/half.h"

#include <string.h>

#define LOAD(type)                                                                                 \
    do {                                                                                           \
        type value;                                                                                \
        memcpy(&value, (const unsigned char *)data + (size_t)element * sizeof value,               \
               sizeof value);                                                                      \
        return (double)value;                                                                      \
    } while (0)

static uint16_t load_u16(const void *data, int64_t element) {
    uint16_t bits;
    memcpy(&bits, (const unsigned char *)data + (size_t)element * sizeof bits, sizeof bits);
    return bits;
}

double wk_scalar_load(wick_dtype dtype, const void *data, int64_t element) {
    switch (dtype) {
    case WICK_F32: LOAD(float);
    case WICK_F64: LOAD(double);
    case WICK_F16: return (double)wk_f16_to_f32(load_u16(data, element));
    case WICK_BF16: return (double)wk_bf16_to_f32(load_u16(data, element));
    case WICK_I64: LOAD(int64_t);
    case WICK_I32: LOAD(int32_t);
    case WICK_I16: LOAD(int16_t);
    case WICK_I8: LOAD(int8_t);
    case WICK_U32: LOAD(uint32_t);
    case WICK_F8_E4M3: return (double)wk_f8_e4m3_to_f32(((const uint8_t *)data)[element]);
    case WICK_F8_E5M2: return (double)wk_f8_e5m2_to_f32(((const uint8_t *)data)[element]);
    default: LOAD(uint8_t); /* u8, bool */
    }
}

/* INT64_MAX becomes 2^63 as a double, which is already out of range. */
int64_t wk_f64_to_i64(double value) {
    if (value != value) return 0;
    if (value <= (double)INT64_MIN) return INT64_MIN;
    return value >= (double)INT64_MAX ? INT64_MAX : (int64_t)value;
}
