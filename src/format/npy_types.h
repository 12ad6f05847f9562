/* format/npy_types.h: NumPy's names of types, for reading and writing. */
#ifndef WK_FORMAT_NPY_TYPES_H
#define WK_FORMAT_NPY_TYPES_H

#include <wick/tensor.h>

/* "<f4"; NULL where NumPy has no such type (bf16 and the block types). */
const char *wk_npy_type_name(wick_dtype dtype);

#endif
