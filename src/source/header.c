/* source/header.c: see header.h. */
#include "source/header.h"

#include "core/status.h"

enum { CHUNK = 256 << 10 };

wick_status wk_header_start(wk_heap *heap, wick_source *source, wk_header *header,
                            wick_error *err) {
    *header = (wk_header){.heap = heap, .source = source};
    header->chunk = wk_alloc(heap, CHUNK);
    if (header->chunk == NULL) return wk_fail_memory(err, CHUNK, "a chunk of the file");
    return wk_gguf_parser_make(heap, source->size, &header->parser, err);
}

static void free_chunk(wk_header *header) {
    wk_free(header->heap, header->chunk, CHUNK);
    header->chunk = NULL;
}

wick_status wk_header_poll(wk_header *header, wick_error *err) {
    wick_source *const source = header->source;
    if (!header->is_reading)
        WK_TRY(source->read_at(source, header->offset, CHUNK, header->chunk, err));
    header->is_reading = true;
    size_t got = 0;
    WK_TRY(source->poll(source, &got, err));
    header->is_reading = false;
    header->offset += got;
    wick_status status = wk_gguf_parser_feed(header->parser, header->chunk, got, NULL, err);
    if (status == WICK_PENDING && got < CHUNK) status = wk_gguf_parser_end(header->parser, err);
    if (status != WICK_PENDING) free_chunk(header); /* an open file keeps the parser alone */
    return status;
}

void wk_header_release(wk_header *header) {
    free_chunk(header);
    wk_gguf_parser_free(header->parser);
    *header = (wk_header){.heap = header->heap};
}

wick_status wk_read_header(wk_heap *heap, wick_source *source, wk_gguf_parser **out,
                           wick_error *err) {
    *out = NULL;
    wk_header header;
    wick_status status = wk_header_start(heap, source, &header, err);
    if (status == WICK_OK) status = WICK_PENDING;
    while (status == WICK_PENDING) status = wk_header_poll(&header, err);
    if (status == WICK_OK) {
        *out = header.parser;
        header.parser = NULL;
    }
    wk_header_release(&header);
    return status;
}
