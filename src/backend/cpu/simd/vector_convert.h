/* simd/vector_convert.h: runs of elements a stride apart, as floats and back. */
#ifndef WK_SIMD_VECTOR_CONVERT_H
#define WK_SIMD_VECTOR_CONVERT_H

#include "backend/cpu/cpu_kernel.h"
#include "core/dtype.h"

#include <assert.h>
#include <string.h>

/* Lanes of the vector at i that exist. */
WK_INLINE v16 load_at(const float *x, int64_t i, int64_t n) { return v16_load_rows(x + i, n - i); }
WK_INLINE void store_at(float *y, int64_t i, int64_t n, v16 value) {
    v16_store_rows(y + i, value, n - i);
}

enum { READ_AHEAD = 2048 }; /* bytes: the processor asks for less by itself than memory can give */

/* load_at where x is read once, from its beginning on. */
WK_INLINE v16 load_next(const float *x, int64_t i, int64_t n) {
    wk_prefetch((const char *)(x + i) + READ_AHEAD);
    return load_at(x, i, n);
}

/* Dtypes that C converts: X(DTYPE, type, least, largest), where float32 holds the limits or the
 * number above the largest. */
#define WALK_INTEGERS(X)                                                                           \
    X(I64, int64_t, INT64_MIN, INT64_MAX)                                                          \
    X(I32, int32_t, INT32_MIN, INT32_MAX)                                                          \
    X(I16, int16_t, INT16_MIN, INT16_MAX)                                                          \
    X(I8, int8_t, INT8_MIN, INT8_MAX)                                                              \
    X(U32, uint32_t, 0, UINT32_MAX)                                                                \
    X(U8, uint8_t, 0, UINT8_MAX)

/* Floats of 16 bits, 16 at a time: from memory where they lie side by side, else gathered. */
static void load_halves(float *to, const uint16_t *from, int64_t stride, wick_dtype dtype,
                        int64_t n) {
    for (int64_t i = 0; i < n; i += 16) {
        uint16_t gathered[16] = {0};
        const uint16_t *at = from + i;
        if (stride != 1 || n - i < 16) {
            for (int64_t j = 0; j < 16 && j < n - i; j++) gathered[j] = from[(i + j) * stride];
            at = gathered;
        }
        v16_store_rows(to + i, dtype == WICK_F16 ? v16_load_f16(at) : v16_load_bf16(at), n - i);
    }
}

static void store_halves(uint16_t *to, int64_t stride, wick_dtype dtype, const float *from,
                         int64_t n) {
    for (int64_t i = 0; i < n; i += 16) {
        uint16_t halves[16];
        const bool is_whole = stride == 1 && n - i >= 16;
        uint16_t *const at = is_whole ? to + i : halves;
        const v16 values = v16_load_rows(from + i, n - i);
        if (dtype == WICK_F16) {
            v16_store_f16(at, values);
        } else {
            v16_store_bf16(at, values);
        }
        for (int64_t j = 0; !is_whole && j < 16 && j < n - i; j++) to[(i + j) * stride] = halves[j];
    }
}

static void load_f32(float *to, const float *from, int64_t stride, int64_t n) {
    if (stride == 1) {
        memcpy(to, from, (size_t)n * sizeof *to);
    } else if (stride == 0) {
        for (int64_t i = 0; i < n; i += 16) store_at(to, i, n, v16_set(*from));
    } else {
        for (int64_t i = 0; i < n; i++) to[i] = from[i * stride];
    }
}

static void load_run(float *to, const void *from, int64_t stride, wick_dtype dtype, int64_t n) {
    switch (dtype) {
    case WICK_F16:
    case WICK_BF16: load_halves(to, from, stride, dtype, n); break;
#define LOAD(name, type, least, largest)                                                           \
    case WICK_##name:                                                                              \
        for (int64_t i = 0; i < n; i++) to[i] = (float)((const type *)from)[i * stride];           \
        break;
        LOAD(F64, double, 0, 0)
        WALK_INTEGERS(LOAD)
#undef LOAD
    case WICK_BOOL:
        for (int64_t i = 0; i < n; i++) to[i] = ((const uint8_t *)from)[i * stride] != 0;
        break;
    default: load_f32(to, from, stride, n);
    }
}

/* Integers truncate and saturate, NaN is 0; bool: what is not zero is 1. */
static void store_run(void *to, int64_t stride, wick_dtype dtype, const float *from, int64_t n) {
    switch (dtype) {
    case WICK_F16:
    case WICK_BF16: store_halves(to, stride, dtype, from, n); break;
    case WICK_F64:
        for (int64_t i = 0; i < n; i++) ((double *)to)[i * stride] = (double)from[i];
        break;
#define STORE(name, type, least, largest)                                                          \
    case WICK_##name:                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const float value = from[i];                                                           \
            type *const at = (type *)to + i * stride;                                              \
            *at = value > (float)(least) ? largest : least;                                        \
            if (value > (float)(least) && value < (float)(largest)) *at = (type)value;             \
            if (value != value) *at = 0;                                                           \
        }                                                                                          \
        break;
        WALK_INTEGERS(STORE)
#undef STORE
    case WICK_BOOL:
        for (int64_t i = 0; i < n; i++) ((uint8_t *)to)[i * stride] = !(from[i] == 0);
        break;
    default:
        for (int64_t i = 0; i < n; i++) ((float *)to)[i * stride] = from[i];
    }
}

/* f32, f16 or bf16. */
static bool is_narrow_float(const wk_view *view) {
    return view->layout == WK_LAYOUT_RAW &&
           (view->dtype == WICK_F32 || view->dtype == WICK_F16 || view->dtype == WICK_BF16);
}

/* Absent operands are all zero bytes, which is f32. */
static bool accepts_floats(const wk_op *op) {
    for (int i = 0; i < op->n_dst + op->n_src; i++)
        if (!is_narrow_float(&op->view[i])) return false;
    return true;
}

#endif
