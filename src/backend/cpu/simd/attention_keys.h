/* simd/attention_keys.h: the keys and values of one step, where they lie or as floats in scratch.
 *
 * A dense operand [b, g, s, d] is read as a cache of b blocks of s keys. */
#ifndef WK_SIMD_ATTENTION_KEYS_H
#define WK_SIMD_ATTENTION_KEYS_H

#include "backend/cpu/simd/attention_softmax.h"
#include "quant/block.h"
#include "quant/encode.h"

#include <assert.h>

/* Keys [first, end) of a sequence and key head. */
typedef struct seen_keys {
    const uint32_t *table; /* the sequence's blocks */
    int64_t group, first, end;
} seen_keys;

/* 64 keys: element l of 16 keys side by side is at keys[i] + l * key_stride, the elements of a
 * value side by side at values[i] + (key % 16) * value_stride. Strides in bytes. */
typedef struct step_keys {
    const unsigned char *keys[VECTORS], *values[VECTORS];
    int64_t key_stride, value_stride;
    bool has_half_keys, has_half_values;
    int64_t begin, end; /* keys of the step that are seen: the others have no values */
} step_keys;

/* Scratch for the floats of a step. */
typedef struct step_floats {
    float *keys;   /* [d][STEP] */
    float *values; /* [STEP][width] */
} step_floats;

/* Of q8_0 and q4_0: an f16 scale and the quants of 32 elements. */
enum { Q8_BYTES = 34, Q4_BYTES = 18 };

static bool lies_in_blocks(const wk_view *view) { return wk_can_encode_quickly(view->dtype); }

/* Bytes of n elements: whole blocks, where there are blocks. */
WK_INLINE int64_t bytes_of(wick_dtype dtype, int64_t n) {
    switch (dtype) {
    case WICK_F16: return 2 * n;
    case WICK_Q8_0: return n / WK_QK_SMALL * Q8_BYTES;
    case WICK_Q4_0: return n / WK_QK_SMALL * Q4_BYTES;
    default: return 4 * n;
    }
}

/* Rows of a type that is read here. */
static bool is_dense_last(const wk_view *view) {
    const int last = view->rank - 1;
    return (view->dtype == WICK_F32 || view->dtype == WICK_F16 || lies_in_blocks(view)) &&
           (view->stride[last] == 1 || view->extent[last] <= 1);
}

/* Whether 16 keys lie side by side, element by element: the layout that model/state.c chooses. */
static bool lies_transposed(const wk_view *keys) {
    return (keys->dtype == WICK_F32 || keys->dtype == WICK_F16) && keys->stride[2] == 1 &&
           keys->stride[3] != 1 && keys->extent[2] % 16 == 0;
}

static bool accepts_keys(const wk_view *keys) {
    return is_dense_last(keys) || lies_transposed(keys);
}

static const unsigned char *row_of_key(const wk_view *view, const seen_keys *seen, int64_t key) {
    assert(key >= 0 && key < seen->end);
    const int64_t block_size = view->extent[2];
    const int64_t at = (int64_t)seen->table[key / block_size] * view->stride[0] +
                       seen->group * view->stride[1] + key % block_size * view->stride[2];
    return (const unsigned char *)wk_view_data(view) + bytes_of(view->dtype, at);
}

WK_INLINE v16 load_lanes(const unsigned char *p, const bool is_half) {
    return is_half ? v16_load_f16((const uint16_t *)(const void *)p)
                   : v16_load((const float *)(const void *)p);
}

/* Either half of a block; d and q have few bits, their products are exact. */
WK_INLINE v16 load_q8_0(const unsigned char *block, int64_t i) {
    uint16_t d;
    memcpy(&d, block, sizeof d);
    return v16_mul(v16_load_i8(block + 2 + i), v16_set_f16(d));
}

WK_INLINE v16 load_q4_0(const unsigned char *block, int64_t i) {
    uint16_t d;
    uint8_t quants[16];
    memcpy(&d, block, sizeof d);
    const int shift = i == 0 ? 0 : 4; /* written so that compilers vectorise the loop */
    for (int j = 0; j < 16; j++) quants[j] = (uint8_t)(block[2 + j] >> shift & 15);
    return v16_mul(v16_sub(v16_load_i8(quants), v16_set(8)), v16_set_f16(d));
}

/* 16 elements from i on, a multiple of 16, of a row of n; the missing ones are zeros. */
WK_INLINE v16 load_elements(const unsigned char *row, wick_dtype dtype, int64_t i, int64_t n) {
    const int64_t half = i % WK_QK_SMALL;
    if (dtype == WICK_Q8_0) return load_q8_0(row + bytes_of(dtype, i - half), half);
    if (dtype == WICK_Q4_0) return load_q4_0(row + bytes_of(dtype, i - half), half);
    if (dtype == WICK_F32) return v16_load_rows((const float *)(const void *)row + i, n - i);
    const uint16_t *const halves = (const uint16_t *)(const void *)row + i;
    if (n - i >= 16) return v16_load_f16(halves);
    uint16_t padded[16] = {0};
    memcpy(padded, halves, (size_t)(n - i) * sizeof *padded);
    return v16_load_f16(padded);
}

/* ---- Keys. ---- */

/* Keys in rows, transposed; those that are not seen are zeros, for their blocks may be gone. */
static void convert_keys(const attention *a, const seen_keys *seen, int64_t step, float *to,
                         step_keys *out) {
    const wick_dtype dtype = a->k->dtype;
    for (int64_t j = 0; j < STEP; j += 16) {
        const unsigned char *rows[16];
        for (int i = 0; i < 16; i++) {
            const int64_t key = step + j + i;
            const bool is_seen = key >= seen->first && key < seen->end;
            rows[i] = is_seen ? row_of_key(a->k, seen, key) : NULL;
        }
        for (int64_t at = 0; at < a->d; at += 16) {
            v16 tile[16];
            for (int i = 0; i < 16; i++)
                tile[i] = rows[i] == NULL ? v16_zero() : load_elements(rows[i], dtype, at, a->d);
            v16_transpose(tile);
            for (int i = 0; i < 16; i++) v16_store(to + (at + i) * STEP + j, tile[i]);
        }
        out->keys[j / 16] = (const unsigned char *)(to + j);
    }
    out->key_stride = STEP * sizeof *to;
    out->has_half_keys = false;
}

/* Keys that are stored transposed. In place of 16 keys that no query sees, the first 16 seen ones
 * are read; the results are masked, like those of the other hidden keys of a block. */
static void find_keys_in_place(const attention *a, const seen_keys *seen, int64_t step,
                               step_keys *out) {
    out->key_stride = bytes_of(a->k->dtype, a->k->stride[3]);
    out->has_half_keys = a->k->dtype == WICK_F16;
    const int64_t first = step + out->begin / 16 * 16;
    for (int i = 0; i < VECTORS; i++) {
        const int64_t key = step + 16 * i;
        out->keys[i] = row_of_key(a->k, seen, key > first && key < seen->end ? key : first);
    }
}

/* Keys in place, halves made floats. */
static void widen_keys(const attention *a, float *to, step_keys *out) {
    for (int i = 0; i < VECTORS; i++) {
        const unsigned char *const from = out->keys[i];
        for (int64_t l = 0; l < a->d; l++)
            v16_store(to + l * STEP + 16 * i, load_lanes(from + l * out->key_stride, true));
        out->keys[i] = (const unsigned char *)(to + 16 * i);
    }
    out->key_stride = STEP * sizeof *to;
    out->has_half_keys = false;
}

/* ---- Values. ---- */

static void find_values_in_place(const attention *a, const seen_keys *seen, int64_t step,
                                 step_keys *out) {
    out->value_stride = bytes_of(a->v->dtype, a->v->stride[2]);
    out->has_half_values = a->v->dtype == WICK_F16;
    for (int64_t j = out->begin / 16 * 16; j < out->end; j += 16)
        out->values[j / 16] = row_of_key(a->v, seen, step + j);
}

static void convert_values(const attention *a, const seen_keys *seen, int64_t step, float *to,
                           step_keys *out) {
    for (int64_t j = out->begin; j < out->end; j++) {
        const unsigned char *const row = row_of_key(a->v, seen, step + j);
        for (int64_t at = 0; at < a->e; at += 16)
            v16_store(to + j * a->width + at, load_elements(row, a->v->dtype, at, a->e));
    }
    for (int i = 0; i < VECTORS; i++)
        out->values[i] = (const unsigned char *)(const void *)(to + 16 * i * a->width);
    out->value_stride = a->width * (int64_t)sizeof *to;
    out->has_half_values = false;
}

/* The step that begins at key step, of which something is seen. widens: halves become floats. */
static step_keys load_step(const attention *a, const seen_keys *seen, int64_t step, bool widens,
                           const step_floats *to) {
    assert(step % STEP == 0 && seen->first < step + STEP && seen->end > step);
    step_keys out = {
        .begin = seen->first > step ? seen->first - step : 0,
        .end = seen->end - step < STEP ? seen->end - step : STEP,
    };
    if (lies_transposed(a->k))
        find_keys_in_place(a, seen, step, &out);
    else
        convert_keys(a, seen, step, to->keys, &out);
    if (widens && out.has_half_keys) widen_keys(a, to->keys, &out);
    const bool has_runs = a->v->extent[2] % 16 == 0 || seen->end <= a->v->extent[2];
    const bool is_wide = !widens || a->v->dtype != WICK_F16;
    if (has_runs && a->e == a->width && !lies_in_blocks(a->v) && is_wide)
        find_values_in_place(a, seen, step, &out);
    else
        convert_values(a, seen, step, to->values, &out);
    return out;
}

#endif
