/* format/torch_types.h: PyTorch's names of types, for reading and writing. */
#ifndef WK_FORMAT_TORCH_TYPES_H
#define WK_FORMAT_TORCH_TYPES_H

#include <wick/tensor.h>

/* "torch.FloatStorage"; NULL where PyTorch has no storage of that type. */
const char *wk_torch_storage_name(wick_dtype dtype);
/* "torch.float32"; NULL where PyTorch has no such type. */
const char *wk_torch_type_name(wick_dtype dtype);

#endif
