/* backend/row.c: elements of every dtype as float64 and int64, and back. */
#include "backend/row.h"

#include "core/dtype.h"
#include "core/half.h"
#include "quant/block.h"
#include "quant/encode.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* X(DTYPE, C type): the integers. */
#define INTEGERS(X)                                                                                \
    X(I64, int64_t) X(I32, int32_t) X(I16, int16_t) X(I8, int8_t) X(U32, uint32_t) X(U8, uint8_t)

/* --- Rows --- */

int64_t wk_row_count(const wk_view *view) {
    int64_t n = 1;
    if (view->rank > 0 && view->extent[view->rank - 1] == 0) return 0;
    for (int i = 0; i + 1 < view->rank; i++) n *= view->extent[i];
    return n;
}

static wk_row make_row(const wk_view *view, int64_t offset) {
    const int last = view->rank - 1;
    const wk_dtype_info *const info = wk_dtype_get(view->dtype);
    return (wk_row){
        .data =
            (unsigned char *)wk_view_data(view) + offset / info->block_elements * info->block_bytes,
        .dtype = view->dtype,
        .stride = last >= 0 ? view->stride[last] : 0,
        .n = last >= 0 ? view->extent[last] : 1,
    };
}

wk_row wk_row_at(const wk_view *view, int64_t index) {
    assert(index >= 0 && index < wk_view_rows(view));
    int64_t offset = 0;
    for (int i = view->rank - 2; i >= 0; i--) {
        offset += index % view->extent[i] * view->stride[i];
        index /= view->extent[i];
    }
    return make_row(view, offset);
}

wk_row wk_row_of(const wk_view *view, const int64_t *at) {
    int64_t offset = 0;
    for (int i = 0; i + 1 < view->rank; i++) {
        assert(at[i] >= 0 && at[i] < view->extent[i]);
        offset += at[i] * view->stride[i];
    }
    return make_row(view, offset);
}

/* --- One element --- */

static double load_f64(const unsigned char *at) {
    double value;
    memcpy(&value, at, sizeof value);
    return value;
}

static double load_f32(const unsigned char *at) {
    float value;
    memcpy(&value, at, sizeof value);
    return (double)value;
}

static double load_f16(const unsigned char *at) {
    uint16_t value;
    memcpy(&value, at, sizeof value);
    return (double)wk_f16_to_f32(value);
}

static double load_bf16(const unsigned char *at) {
    uint16_t value;
    memcpy(&value, at, sizeof value);
    return (double)wk_bf16_to_f32(value);
}

static double load_f8(const unsigned char *at, wick_dtype dtype) {
    return (double)(dtype == WICK_F8_E4M3 ? wk_f8_e4m3_to_f32(*at) : wk_f8_e5m2_to_f32(*at));
}

static int64_t load_integer(const unsigned char *at, wick_dtype dtype) {
    switch (dtype) {
#define LOAD(name, type)                                                                           \
    case WICK_##name: {                                                                            \
        type value;                                                                                \
        memcpy(&value, at, sizeof value);                                                          \
        return (int64_t)value;                                                                     \
    }
        INTEGERS(LOAD)
#undef LOAD
    case WICK_BOOL: return *at != 0;
    default: break;
    }
    assert(false);
    return 0;
}

static void store_float(unsigned char *at, wick_dtype dtype, double value) {
    uint16_t half;
    const float single = (float)value;
    switch (dtype) {
    case WICK_F64: memcpy(at, &value, sizeof value); return;
    case WICK_F32: memcpy(at, &single, sizeof single); return;
    case WICK_F16: half = wk_f64_to_f16(value); break;
    case WICK_BF16: half = wk_f64_to_bf16(value); break;
    case WICK_F8_E4M3: *at = wk_f64_to_f8_e4m3(value); return;
    case WICK_F8_E5M2: *at = wk_f64_to_f8_e5m2(value); return;
    default: assert(false); return;
    }
    memcpy(at, &half, sizeof half);
}

static void store_integer(unsigned char *at, wick_dtype dtype, int64_t value) {
    switch (dtype) {
#define STORE(name, type)                                                                          \
    case WICK_##name: {                                                                            \
        const type narrow = (type)value;                                                           \
        memcpy(at, &narrow, sizeof narrow);                                                        \
        return;                                                                                    \
    }
        INTEGERS(STORE)
#undef STORE
    case WICK_BOOL: *at = value != 0; return;
    default: assert(false);
    }
}

/* --- Conversion --- */

/* Truncates to [least, largest]; NaN gives 0. */
static int64_t saturate(double value, int64_t least, int64_t largest) {
    if (isnan(value)) return 0;
    if (value <= (double)least) return least;
    /* (double)INT64_MAX is 2^63, one more than fits; the other limits are exact. */
    if (value >= (double)largest) return largest;
    return (int64_t)value;
}

static int64_t to_integer(double value, wick_dtype dtype) {
    switch (dtype) {
    case WICK_I64: return saturate(value, INT64_MIN, INT64_MAX);
    case WICK_I32: return saturate(value, INT32_MIN, INT32_MAX);
    case WICK_I16: return saturate(value, INT16_MIN, INT16_MAX);
    case WICK_I8: return saturate(value, INT8_MIN, INT8_MAX);
    case WICK_U32: return saturate(value, 0, UINT32_MAX);
    case WICK_U8: return saturate(value, 0, UINT8_MAX);
    default: return !(value == 0);
    }
}

/* A float64 that every narrower float type rounds as it would value itself: above 2^53 the bits
 * that are lost are gathered in the last one that stays (rounding to odd; Boldo and Melquiond,
 * 2008). */
static double to_odd_double(int64_t value) {
    enum { SHIFT = 11 };
    const uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    if (magnitude < UINT64_C(1) << 53) return (double)value;
    const uint64_t lost = magnitude & ((UINT64_C(1) << SHIFT) - 1);
    const uint64_t kept = (magnitude >> SHIFT) | (lost != 0);
    const double wide = (double)kept * (double)(1 << SHIFT);
    return value < 0 ? -wide : wide;
}

static double from_integer(int64_t value, wick_dtype dtype) {
    return dtype == WICK_F64 ? (double)value : to_odd_double(value);
}

/* --- Parts of rows --- */

static int64_t byte_stride(const wk_row *row) {
    return row->stride * wk_dtype_get(row->dtype)->block_bytes;
}

/* Rows of blocks, whole or not. */
static void load_blocks(const wk_row *row, int64_t begin, int64_t n, double *dst) {
    const wk_dtype_info *const info = wk_dtype_get(row->dtype);
    const int size = info->block_elements;
    float values[WK_QK_K];
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = begin + i;
        if (i == 0 || at % size == 0)
            wk_decoder(row->dtype)(row->data + at / size * info->block_bytes, values, size);
        dst[i] = (double)values[at % size];
    }
}

/* Whole blocks of the types of the cache. */
static void store_blocks(const wk_row *row, int64_t begin, int64_t n, const double *src) {
    const wk_dtype_info *const info = wk_dtype_get(row->dtype);
    float values[WK_QK_SMALL];
    assert(begin % WK_QK_SMALL == 0 && n % WK_QK_SMALL == 0);
    for (int64_t i = 0; i < n; i += WK_QK_SMALL) {
        for (int j = 0; j < WK_QK_SMALL; j++) values[j] = (float)src[i + j];
        wk_encode_quickly(row->dtype, values,
                          row->data + (begin + i) / WK_QK_SMALL * info->block_bytes, WK_QK_SMALL);
    }
}

/* The loops are apart since nearly everything that cpu/ref reads comes through here. */
void wk_row_load(const wk_row *row, int64_t begin, int64_t n, double *dst) {
    if (wk_dtype_is_block(row->dtype)) {
        load_blocks(row, begin, n, dst);
        return;
    }
    const int64_t step = byte_stride(row);
    const unsigned char *at = row->data + begin * step;
    switch (row->dtype) {
    case WICK_F64:
        for (int64_t i = 0; i < n; i++) dst[i] = load_f64(at + i * step);
        break;
    case WICK_F32:
        for (int64_t i = 0; i < n; i++) dst[i] = load_f32(at + i * step);
        break;
    case WICK_F16:
        for (int64_t i = 0; i < n; i++) dst[i] = load_f16(at + i * step);
        break;
    case WICK_BF16:
        for (int64_t i = 0; i < n; i++) dst[i] = load_bf16(at + i * step);
        break;
    case WICK_F8_E4M3:
    case WICK_F8_E5M2:
        for (int64_t i = 0; i < n; i++) dst[i] = load_f8(at + i * step, row->dtype);
        break;
    default:
        for (int64_t i = 0; i < n; i++) dst[i] = (double)load_integer(at + i * step, row->dtype);
    }
}

void wk_row_load_integer(const wk_row *row, int64_t begin, int64_t n, int64_t *dst) {
    const int64_t step = byte_stride(row);
    const unsigned char *at = row->data + begin * step;
    for (int64_t i = 0; i < n; i++) dst[i] = load_integer(at + i * step, row->dtype);
}

void wk_row_store(const wk_row *row, int64_t begin, int64_t n, const double *src) {
    assert(begin >= 0 && n >= 0 && n <= row->n - begin);
    if (wk_dtype_is_block(row->dtype)) {
        store_blocks(row, begin, n, src);
        return;
    }
    const int64_t step = byte_stride(row);
    const wick_dtype dtype = row->dtype;
    unsigned char *at = row->data + begin * step;
    if (wk_dtype_is_real(dtype)) {
        for (int64_t i = 0; i < n; i++) store_float(at + i * step, dtype, src[i]);
    } else {
        for (int64_t i = 0; i < n; i++) {
            store_integer(at + i * step, dtype, to_integer(src[i], dtype));
        }
    }
}

void wk_row_store_integer(const wk_row *row, int64_t begin, int64_t n, const int64_t *src) {
    const int64_t step = byte_stride(row);
    const wick_dtype dtype = row->dtype;
    unsigned char *at = row->data + begin * step;
    if (wk_dtype_is_real(dtype)) {
        for (int64_t i = 0; i < n; i++) {
            store_float(at + i * step, dtype, from_integer(src[i], dtype));
        }
    } else {
        for (int64_t i = 0; i < n; i++) store_integer(at + i * step, dtype, src[i]);
    }
}

int64_t wk_row_integer_at(const wk_row *row, int64_t i) {
    assert(i >= 0 && i < row->n);
    return load_integer(row->data + i * byte_stride(row), row->dtype);
}
