/* format/npy.h: headers of NumPy's .npy files (format version 1.0). */
#ifndef WK_FORMAT_NPY_H
#define WK_FORMAT_NPY_H

#include "core/str.h"

#include <wick/tensor.h>

/* Appends the header of a C-order array; the data follows it directly. WICK_ERR_DTYPE for types
 * that NumPy has no name for. */
wick_status wk_npy_header(wk_strbuf *buf, wick_dtype dtype, const wick_shape *shape);

#endif
