/* format/torch_types.h: PyTorch's names of types, for reading and writing. */
#ifndef WK_FORMAT_TORCH_TYPES_H
#define WK_FORMAT_TORCH_TYPES_H

#include "core/str.h"

#include <wick/file.h>

/* "torch.FloatStorage"; NULL where PyTorch has no storage of that type. */
const char *wk_torch_storage_name(wick_dtype dtype);
/* "torch.float32"; NULL where PyTorch has no such type. */
const char *wk_torch_type_name(wick_dtype dtype);

/* Appends the pickle, protocol 2, of a dict of these tensors, dense, in storages with the keys "0",
 * "1" and so on. */
void wk_torch_pickle(wk_strbuf *buf, const wick_file_tensor *tensors, size_t n);

#endif
