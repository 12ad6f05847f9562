/* core/dtype.h: what is known about each data type, in one table. */
#ifndef WK_CORE_DTYPE_H
#define WK_CORE_DTYPE_H

#include <wick/tensor.h>

#include <assert.h>

typedef enum wk_dtype_class {
    WK_CLASS_FLOAT,
    WK_CLASS_INTEGER, /* signed and unsigned */
    WK_CLASS_BOOL,
    WK_CLASS_BLOCK,
    WK_CLASS_STORED, /* 8-bit floats: kept, moved and cast, not computed with */
} wk_dtype_class;

typedef struct wk_dtype_info {
    const char *name;
    int block_elements; /* 1 except for block types */
    int block_bytes;    /* bytes of one block (element) */
    int ggml_type;      /* its number in GGUF files; -1: none */
    wk_dtype_class dtype_class;
} wk_dtype_info;

extern const wk_dtype_info wk_dtypes[WICK_DTYPE_COUNT_];

/* dtype must be valid. */
static inline const wk_dtype_info *wk_dtype_get(wick_dtype dtype) {
    assert((unsigned)dtype < WICK_DTYPE_COUNT_);
    return &wk_dtypes[dtype];
}
/* False when no dtype has this number. */
bool wk_dtype_from_ggml(uint32_t ggml_type, wick_dtype *dtype);
/* f32 f16 bf16 f64 */
static inline bool wk_dtype_is_float(wick_dtype dtype) {
    return wk_dtype_get(dtype)->dtype_class == WK_CLASS_FLOAT;
}
static inline bool wk_dtype_is_block(wick_dtype dtype) {
    return wk_dtype_get(dtype)->dtype_class == WK_CLASS_BLOCK;
}
/* Elements that operations compute with: neither blocks nor 8-bit floats. */
static inline bool wk_dtype_is_scalar(wick_dtype dtype) {
    return wk_dtype_get(dtype)->dtype_class < WK_CLASS_BLOCK;
}
/* Elements are real numbers one by one: a float, of 8 bits or more. */
static inline bool wk_dtype_is_real(wick_dtype dtype) {
    const wk_dtype_class class = wk_dtype_get(dtype)->dtype_class;
    return class == WK_CLASS_FLOAT || class == WK_CLASS_STORED;
}

/* Bytes of n dense elements; n must be >= 0 and, for block types, a multiple of the block. False on
 * overflow or where n is not a multiple. */
bool wk_dtype_bytes(wick_dtype dtype, int64_t n, uint64_t *bytes);

#endif
