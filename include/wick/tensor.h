/* wick/tensor.h: tensors: views over reference-counted device memory.
 *
 * Shapes are row-major, rank 0 to 6. Views share storage and cost nothing. Functions that return a
 * tensor return NULL on failure and leave the reason with the device (wick_device_error); NULL
 * given to them gives NULL, so a chain needs one check at its end. */
#ifndef WICK_TENSOR_H
#define WICK_TENSOR_H

#include <wick/device.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WICK_MAX_RANK 6

/* The block types are those of GGML files and are accepted as weights only. The two of 8-bit floats
 * store numbers (Micikevicius et al., "FP8 formats for deep learning", 2022): they are read,
 * written, copied, shown by views and cast, and no other operation takes them. Casts to them round
 * to nearest even; what is too large becomes infinity in f8_e5m2, NaN in f8_e4m3. */
typedef enum wick_dtype {
    WICK_F32,
    WICK_F16,
    WICK_BF16,
    WICK_F64,
    WICK_I64,
    WICK_I32,
    WICK_I16,
    WICK_I8,
    WICK_U32,
    WICK_U8,
    WICK_BOOL, /* one byte, 0 or 1 */
    WICK_Q4_0,
    WICK_Q4_1,
    WICK_Q5_0,
    WICK_Q5_1,
    WICK_Q8_0,
    WICK_Q8_1,
    WICK_Q2_K,
    WICK_Q3_K,
    WICK_Q4_K,
    WICK_Q5_K,
    WICK_Q6_K,
    WICK_Q8_K,
    WICK_IQ2_XXS,
    WICK_IQ2_XS,
    WICK_IQ3_XXS,
    WICK_IQ1_S,
    WICK_IQ4_NL,
    WICK_IQ3_S,
    WICK_IQ2_S,
    WICK_IQ4_XS,
    WICK_IQ1_M,
    WICK_TQ1_0,
    WICK_TQ2_0,
    WICK_MXFP4,
    WICK_NVFP4,
    WICK_Q1_0,
    WICK_Q2_0,
    WICK_F8_E4M3, /* without infinities: 448 is the largest, NaN has all bits but the sign set */
    WICK_F8_E5M2, /* as IEEE 754 would have it: 57344 is the largest */
    WICK_DTYPE_COUNT_,
} wick_dtype;

/* "f32", "q4_k". Static storage, never NULL. */
WICK_API const char *wick_dtype_name(wick_dtype dtype);

typedef struct wick_tensor wick_tensor;

typedef struct wick_shape {
    int rank;
    int64_t extent[WICK_MAX_RANK];
} wick_shape;

/* WICK_SHAPE(2, n) is a wick_shape of rank 2; at least one extent, of any integer type. WICK_SCALAR
 * has rank 0. */
WICK_API wick_shape wick_shape_of(int rank, const int64_t *extent);
#define WICK_SCALAR (wick_shape_of(0, NULL))
#ifdef __cplusplus
#define WICK_SHAPE(...) (wick_shape_of_extents(__VA_ARGS__))
extern "C++" { /* C++ has no compound literals */
template <typename... Extents> inline wick_shape wick_shape_of_extents(Extents... extents) {
    const int64_t extent[] = {static_cast<int64_t>(extents)...};
    return wick_shape_of(static_cast<int>(sizeof...(extents)), extent);
}
}
#else
#define WICK_SHAPE(...)                                                                            \
    (wick_shape_of((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                      \
                   (const int64_t[]){__VA_ARGS__}))
#endif

/* A scope frees, at its end, the tensors made on its device since its beginning, except those that
 * wick_retain() was called for. Scopes nest: ending one ends those inside it. Without a scope the
 * caller releases every tensor. */
typedef struct wick_scope {
    wick_device *device;
    uint32_t depth;
} wick_scope;

WICK_API wick_scope wick_scope_begin(wick_device *device);
WICK_API void wick_scope_end(wick_scope scope);
/* Ends scope, but keeps one tensor that was made in it: from then on it belongs to the scope
 * around, or else to the caller. For functions that compute: return wick_scope_result(scope, y).
 * Returns tensor, which may be NULL. */
WICK_API wick_tensor *wick_scope_result(wick_scope scope, wick_tensor *tensor);

/* One more reference: the caller must release it. Returns tensor. */
WICK_API wick_tensor *wick_retain(wick_tensor *tensor);
/* Gives one reference back. NULL is allowed. */
WICK_API void wick_release(wick_tensor *tensor);

/* A copy of data (size bytes, dense, row-major; must be exactly the tensor's size). */
WICK_API wick_tensor *wick_tensor_from_data(wick_device *device, wick_dtype dtype, wick_shape shape,
                                            const void *data, size_t size);
/* Wraps the caller's memory where the device can use it in place (the CPU: memory aligned to 8
 * bytes), else copies. Until deleter (may be NULL) is called the memory must not be touched: an
 * operation in place writes to it. deleter is called once, when the memory is not needed any more
 * (operations that are queued included), also on failure. */
WICK_API wick_tensor *wick_tensor_from_memory(wick_device *device, wick_dtype dtype,
                                              wick_shape shape, void *memory, size_t size,
                                              void (*deleter)(void *user), void *user);
/* Contents undefined. */
WICK_API wick_tensor *wick_empty(wick_device *device, wick_dtype dtype, wick_shape shape);
/* Overwrites a tensor with data (dense, row-major, exactly its size; the tensor must be dense). */
WICK_API wick_status wick_write(wick_tensor *tensor, const void *data, size_t size);

/* NULL looks like an empty f32 tensor of rank 1 on no device. */
WICK_API wick_dtype wick_tensor_dtype(const wick_tensor *tensor);
WICK_API wick_shape wick_tensor_shape(const wick_tensor *tensor);
WICK_API wick_device *wick_tensor_device(const wick_tensor *tensor);
/* Elements; 1 for rank 0. */
WICK_API int64_t wick_tensor_size(const wick_tensor *tensor);
/* Bytes of the dense contents, what wick_read writes. */
WICK_API size_t wick_tensor_bytes(const wick_tensor *tensor);

/* Reads the contents, dense and row-major; size is wick_tensor_bytes(). Blocks; native only.
 *
 * An operation that fails while it is computed (an index out of range: WICK_ERR_INDEX, no memory)
 * spoils what it writes and what is computed from that: every read of those fails, and no other
 * one. A tensor is sound again once all of it has been written again. The error of a call that was
 * refused comes back here until wick_device_error() has taken it. */
WICK_API wick_status wick_read(wick_tensor *tensor, void *data, size_t size);

/* The value of a tensor that has one element, of any shape; 64-bit integers lose what a double
 * cannot hold. Blocks; native only. WICK_ERR_SHAPE: it has more elements, or none. */
WICK_API wick_status wick_read_scalar(wick_tensor *tensor, double *value);

/* The values as text in the manner of NumPy, then the dtype and the shape: "[1.  2.5] f32[2]".
 * Of more than 1000 elements only three at each end of a dimension are read and shown. Writes at
 * most capacity bytes, the terminating zero among them, and sets *length (may be NULL) to the
 * length of the whole text, as snprintf does. Blocks; native only. WICK_ERR_DTYPE: block types. */
WICK_API wick_status wick_read_text(wick_tensor *tensor, char *text, size_t capacity,
                                    size_t *length);

/* wick_read without blocking: start, wick_read_poll until it is not WICK_PENDING, finish copies
 * into data and frees the reading in any case. finish before poll is done is WICK_ERR_STATE; with
 * data NULL it gives the read up at any time (WICK_ERR_CANCELLED).
 *
 * What is read is what the tensor holds at the start or, while wick_flush gives WICK_PENDING, at
 * the first poll after that has ended. Natively, start waits for kernels of earlier operations that
 * still compile. */
typedef struct wick_reading wick_reading;
WICK_API wick_status wick_read_start(wick_tensor *tensor, wick_reading **reading);
WICK_API wick_status wick_read_poll(wick_reading *reading);
WICK_API wick_status wick_read_finish(wick_reading *reading, void *data, size_t size);

#ifdef __cplusplus
}
#endif

#endif
