/* format/tensor_names.h: whether tensors can be written to a file under their names. */
#ifndef WK_FORMAT_TENSOR_NAMES_H
#define WK_FORMAT_TENSOR_NAMES_H

#include "core/alloc.h"
#include "core/status.h"

#include <wick/file.h>

/* Most bytes of a name: a zip archive has room for twice as many. */
enum { WK_MAX_TENSOR_NAME = 32768 };

/* Names are UTF-8, each is there once, none is `reserved` (NULL: all are free), and type_of knows
 * every dtype. format, "safetensors", is for sentences. WICK_ERR_VALUE, WICK_ERR_DTYPE,
 * WICK_ERR_OUT_OF_MEMORY. */
wick_status wk_tensor_names_check(wk_heap *heap, const wick_file_tensor *tensors, size_t n,
                                  const char *format, const char *reserved,
                                  const char *(*type_of)(wick_dtype dtype), wick_error *err);

#endif
