/* format/gguf_parse.h: GGUF v1 to v3 headers from chunks of any size.
 *
 * Reference: the GGUF specification in ggml's repository (docs/gguf.md). All counts and lengths are
 * checked before they are believed: against limits (gguf_state.h), and against the file's size
 * where it is known. Memory grows with the bytes that have arrived, never with what a header
 * promises. */
#ifndef WK_FORMAT_GGUF_PARSE_H
#define WK_FORMAT_GGUF_PARSE_H

#include "core/alloc.h"
#include "core/status.h"
#include "format/gguf.h"

typedef struct wk_gguf_parser wk_gguf_parser;

/* file_size: WICK_SIZE_UNKNOWN for streams; when known, tensor data must lie inside it. Everything
 * the result points to is allocated from heap and lives until wk_gguf_parser_free. */
wick_status wk_gguf_parser_make(wk_heap *heap, uint64_t file_size, wk_gguf_parser **out,
                                wick_error *err);
void wk_gguf_parser_free(wk_gguf_parser *parser);

/* Feeds the next size bytes of the file. WICK_PENDING: it wants more. WICK_OK: the header is
 * complete; *used (may be NULL) is how many of these bytes belong to it. An error is final:
 * WICK_ERR_FORMAT names the byte offset and the reason, WICK_ERR_UNSUPPORTED a version, byte order
 * or tensor type that is not known. */
wick_status wk_gguf_parser_feed(wk_gguf_parser *parser, const void *bytes, size_t size,
                                size_t *used, wick_error *err);
/* The stream ended: WICK_ERR_FORMAT unless the header was complete. */
wick_status wk_gguf_parser_end(wk_gguf_parser *parser, wick_error *err);
/* NULL before the header is complete. */
const wk_gguf *wk_gguf_parser_result(const wk_gguf_parser *parser);

#endif
