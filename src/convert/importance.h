/* convert/importance.h: an importance matrix: how much each input channel of a linear matters, from
 * a GGUF file as `wick imatrix` and llama.cpp's llama-imatrix write it. */
#ifndef WK_CONVERT_IMPORTANCE_H
#define WK_CONVERT_IMPORTANCE_H

#include "core/alloc.h"
#include "core/status.h"

#include <wick/file.h>

/* Keys and names of such files, for a weight NAME: NAME.in_sum2 are sums of squared activations
 * [n_matrices, channels], NAME.counts how many were summed [n_matrices, 1]; f32. */
#define WK_IMATRIX_TYPE "imatrix"
#define WK_IMATRIX_SUMS ".in_sum2"
#define WK_IMATRIX_COUNTS ".counts"
#define WK_IMATRIX_DATASETS "imatrix.datasets"
#define WK_IMATRIX_CHUNKS "imatrix.chunk_count"
#define WK_IMATRIX_CHUNK_SIZE "imatrix.chunk_size"

typedef struct wk_importance wk_importance;

/* Opens the file; numbers are read when they are asked for. */
wick_status wk_importance_open(wk_heap *heap, const char *path, wk_importance **out,
                               wick_error *err);
void wk_importance_close(wk_importance *importance);
const wick_file *wk_importance_file(const wk_importance *importance);
/* Linears that it knows. */
uint32_t wk_importance_count(const wk_importance *importance);

/* *is_known: whether it has this tensor. WICK_ERR_FORMAT: it has one of another shape. */
wick_status wk_importance_check(const wk_importance *importance, const wick_file_tensor *tensor,
                                bool *is_known, wick_error *err);
/* Of a tensor that it has: mean squares [n_matrices, channels], 1 for a matrix that was never used,
 * valid until the next call. *n_matrices: 1, or the tensor's first extent. WICK_ERR_FORMAT: a
 * number is negative or not finite. */
wick_status wk_importance_read(wk_importance *importance, const wick_file_tensor *tensor,
                               const float **mean_squares, int64_t *n_matrices, wick_error *err);

#endif
