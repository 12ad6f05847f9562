/* source/header.h: the header of a GGUF file, in steps or in one go. */
#ifndef WK_SOURCE_HEADER_H
#define WK_SOURCE_HEADER_H

#include "format/gguf_parse.h"

#include <wick/source.h>

/* header.c: the header of the file that source holds, in steps: start, poll while it is
 * WICK_PENDING, then parser has it; release in any case. */
typedef struct wk_header {
    wk_heap *heap;
    wick_source *source;
    wk_gguf_parser *parser;
    void *chunk;
    uint64_t offset; /* of the chunk that comes next */
    bool is_reading;
} wk_header;
wick_status wk_header_start(wk_heap *heap, wick_source *source, wk_header *header, wick_error *err);
wick_status wk_header_poll(wk_header *header, wick_error *err);
void wk_header_release(wk_header *header);
/* The same in one go from a source that answers at once, as files and memory do; *out is for the
 * caller to free, NULL on failure. */
wick_status wk_read_header(wk_heap *heap, wick_source *source, wk_gguf_parser **out,
                           wick_error *err);

#endif
