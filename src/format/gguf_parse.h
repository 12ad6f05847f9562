/* format/gguf_parse.h: GGUF v1 to v3 headers from chunks of any size.
 *
 * Reference: the GGUF specification in ggml's repository (docs/gguf.md). All counts and lengths are
 * checked before they are believed: against the limits below, and against the file's size where it
 * is known. Memory grows with the bytes that have arrived, never with what a header promises. */
#ifndef WK_FORMAT_GGUF_PARSE_H
#define WK_FORMAT_GGUF_PARSE_H

#include "core/arena.h"
#include "core/map.h"
#include "core/status.h"

#include <wick/file.h>

/* Limits: of the specification, except that names may have 255 bytes instead of 64, as some writers
 * exceed that, and that the header is bounded, to keep a lying stream from growing without end. */
enum {
    WK_GGUF_MAX_KEY = 65535,
    WK_GGUF_MAX_NAME = 255,
    WK_GGUF_MAX_RANK = 4,
    WK_GGUF_MAX_HEADER = 1 << 30, /* bytes up to the end of the last tensor's description */
};

typedef struct wk_gguf_parser wk_gguf_parser;

/* The result. Belongs to the parser. */
typedef struct wk_gguf {
    uint32_t version, alignment;
    uint64_t data_offset; /* of the first tensor's section, from the file's beginning */
    size_t n_values, n_tensors;
    const wick_value *values;         /* in file order; keys are unique */
    const wick_file_tensor *tensors;  /* in file order; names are unique; offsets are absolute */
    wk_map value_index, tensor_index; /* by key, by name */
} wk_gguf;

/* file_size: WICK_SIZE_UNKNOWN for streams; when known, tensor data must lie inside it. Everything
 * the result points to is allocated from heap and lives until wk_gguf_parser_free. */
wick_status wk_gguf_parser_make(wk_heap *heap, uint64_t file_size, wk_gguf_parser **out,
                                wick_error *err);
void wk_gguf_parser_free(wk_gguf_parser *parser);

/* Feeds the next size bytes of the file. WICK_PENDING: it wants more. WICK_OK: the header is
 * complete; *used (may be NULL) tells how many of these bytes belonged to it. An error is final:
 * WICK_ERR_FORMAT names the byte offset and the reason, WICK_ERR_UNSUPPORTED a version, byte order
 * or tensor type that is not known. */
wick_status wk_gguf_parser_feed(wk_gguf_parser *parser, const void *bytes, size_t size,
                                size_t *used, wick_error *err);
/* The stream ended: WICK_ERR_FORMAT unless the header was complete. */
wick_status wk_gguf_parser_end(wk_gguf_parser *parser, wick_error *err);
/* NULL before the header is complete. */
const wk_gguf *wk_gguf_parser_result(const wk_gguf_parser *parser);

const wick_value *wk_gguf_find(const wk_gguf *gguf, const char *key);
const wick_file_tensor *wk_gguf_find_tensor(const wk_gguf *gguf, const char *name);

#endif
