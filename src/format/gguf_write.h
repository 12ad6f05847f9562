/* format/gguf_write.h: the header of a GGUF file (version 3) from descriptions of its contents. */
#ifndef WK_FORMAT_GGUF_WRITE_H
#define WK_FORMAT_GGUF_WRITE_H

#include "core/str.h"
#include "format/gguf_parse.h"

typedef struct wk_gguf_contents {
    const wick_value *values;
    size_t n_values;
    const wick_file_tensor *tensors; /* name, dtype and shape; the rest is not looked at */
    size_t n_tensors;
} wk_gguf_contents;

/* Writes the header to buf, which must be empty. The tensors lie in their order, each of them and
 * the header padded to the alignment that the metadata names; that padding is not written here.
 * *out, for the caller to free, is the header as the parser reads it: whatever a file is refused
 * for is refused here with the parser's words, and the result tells where each tensor lies.
 * WICK_ERR_VALUE, WICK_ERR_DTYPE, WICK_ERR_SHAPE; *out is NULL then. */
wick_status wk_gguf_write_header(wk_strbuf *buf, const wk_gguf_contents *contents,
                                 wk_gguf_parser **out, wick_error *err);

/* Bytes that the description of a tensor takes in a header. */
uint64_t wk_gguf_description_bytes(const wick_file_tensor *tensor);
/* size plus the padding after it. */
uint64_t wk_gguf_padded(uint64_t size, uint32_t alignment);

#endif
