/* format/npy.c: writes .npy headers.
 *
 * Reference: numpy/lib/format.py, format version 1.0: magic, version, 16-bit length, a Python dict
 * literal padded with spaces so that the data starts at a multiple of 64, and a newline. */
#include "format/npy.h"

#include "core/compiler.h"
#include "format/npy_types.h"

#include <inttypes.h>
#include <string.h>

enum { NPY_PREFIX = 10, NPY_ALIGNMENT = 64 };

const char *wk_npy_type_name(wick_dtype dtype) {
    static const char *const names[WICK_DTYPE_COUNT_] = {
        [WICK_F32] = "<f4", [WICK_F16] = "<f2",  [WICK_F64] = "<f8", [WICK_I64] = "<i8",
        [WICK_I32] = "<i4", [WICK_I16] = "<i2",  [WICK_I8] = "|i1",  [WICK_U32] = "<u4",
        [WICK_U8] = "|u1",  [WICK_BOOL] = "|b1",
    };
    return (unsigned)dtype < WK_COUNT(names) ? names[dtype] : NULL;
}

wick_status wk_npy_header(wk_strbuf *buf, wick_dtype dtype, const wick_shape *shape) {
    const char *const descr = wk_npy_type_name(dtype);
    if (descr == NULL) return WICK_ERR_DTYPE;
    if (shape->rank < 0 || shape->rank > WICK_MAX_RANK) return WICK_ERR_SHAPE;

    const size_t start = buf->size;
    wk_strbuf_append(buf, "\x93NUMPY\x01\x00\x00\x00", NPY_PREFIX);
    wk_strbuf_format(buf, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int i = 0; i < shape->rank; i++) {
        /* A tuple of one needs its comma. */
        const char *const separator = i + 1 < shape->rank ? ", " : shape->rank == 1 ? "," : "";
        wk_strbuf_format(buf, "%" PRId64 "%s", shape->extent[i], separator);
    }
    wk_strbuf_text(buf, "), }");
    while (!buf->failed && (buf->size - start + 1) % NPY_ALIGNMENT != 0) wk_strbuf_text(buf, " ");
    wk_strbuf_text(buf, "\n");
    if (buf->failed) return WICK_ERR_OUT_OF_MEMORY;

    const size_t length = buf->size - start - NPY_PREFIX;
    buf->data[start + 8] = (char)(length & 255);
    buf->data[start + 9] = (char)(length >> 8);
    return WICK_OK;
}
