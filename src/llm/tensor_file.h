/* llm/tensor_file.h: the tensors of a GGUF, safetensors or .npy file, for the files of this
 * folder. See wick/tools.h. */
#ifndef WK_LLM_TENSOR_FILE_H
#define WK_LLM_TENSOR_FILE_H

#include <wick/tools.h>

#include "core/status.h"

/* The array of a .npy file has no name. */
bool wk_tensor_file_is_npy(const wick_tensor_file *file);
/* size bytes of a tensor of the file, from its byte `at` on. */
wick_status wk_tensor_file_read(wick_tensor_file *file, const wick_file_tensor *tensor, uint64_t at,
                                void *dst, size_t size, wick_error *err);

#endif
