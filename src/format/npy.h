/* format/npy.h: NumPy's .npy files: headers written, files in memory read. */
#ifndef WK_FORMAT_NPY_H
#define WK_FORMAT_NPY_H

#include "core/status.h"
#include "core/str.h"

#include <wick/tensor.h>

/* Appends the header of a C-order array, format version 1.0; the data follows it directly.
 * WICK_ERR_DTYPE for types that NumPy has no name for. */
wick_status wk_npy_header(wk_strbuf *buf, wick_dtype dtype, const wick_shape *shape);

typedef struct wk_npy {
    wick_dtype dtype;
    wick_shape shape;
    bool is_fortran; /* the first index runs fastest */
    bool is_swapped; /* big-endian */
    const unsigned char *data;
    uint64_t size; /* bytes of data */
} wk_npy;

/* The file bytes[0, size), format versions 1 to 3; out points into it. WICK_ERR_FORMAT with the
 * byte offset and the reason, WICK_ERR_UNSUPPORTED for types and versions that are not known. */
wick_status wk_npy_parse(const void *bytes, size_t size, wk_npy *out, wick_error *err);
/* The same of a file of size bytes whose first `held` are there, its header among them; the data,
 * and whether its bools are any, is not looked at. */
wick_status wk_npy_parse_header(const void *bytes, size_t held, uint64_t size, wk_npy *out,
                                wick_error *err);
/* Whether the data lies as a tensor's does: row-major and little-endian. */
bool wk_npy_is_plain(const wk_npy *npy);
/* Copies the data to dst, npy->size bytes, in that way. */
void wk_npy_unpack(const wk_npy *npy, void *dst);

#endif
