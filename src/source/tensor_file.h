/* source/tensor_file.h: the tensors of a GGUF, safetensors, .npy, .npz or PyTorch
 * file.
 * See wick/tools.h. */
#ifndef WK_SOURCE_TENSOR_FILE_H
#define WK_SOURCE_TENSOR_FILE_H

#include <wick/tools.h>

#include "core/status.h"

const char *wk_tensor_file_path(const wick_tensor_file *file); /* for sentences */
/* The array of a .npy file has no name. */
bool wk_tensor_file_is_npy(const wick_tensor_file *file);
/* NULL: there is none. Of a .npy file: "". */
const wick_file_tensor *wk_tensor_file_find(const wick_tensor_file *file, const char *name);
/* Where a tensor lies in memory; NULL: it has to be read. Fails where its bytes are wrong. */
wick_status wk_tensor_file_data(wick_tensor_file *file, const wick_file_tensor *tensor,
                                const uint8_t **data, wick_error *err);
/* size bytes of a tensor of the file, from its byte `at` on. */
wick_status wk_tensor_file_read(wick_tensor_file *file, const wick_file_tensor *tensor, uint64_t at,
                                void *dst, size_t size, wick_error *err);

#endif
