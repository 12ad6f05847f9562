/* llm/header.c: the header of a GGUF file, in one go. */
#include "llm/llm.h"

#include "core/status.h"

enum { CHUNK = 256 << 10 };

wick_status wk_read_header(wk_heap *heap, wick_source *source, wk_gguf_parser **out,
                           wick_error *err) {
    *out = NULL;
    wk_gguf_parser *parser = NULL;
    void *const chunk = wk_alloc(heap, CHUNK);
    if (chunk == NULL) return wk_fail_memory(err, CHUNK, 0, "a chunk of the file");
    wick_status status = wk_gguf_parser_make(heap, source->size, &parser, err);
    size_t got = CHUNK;
    if (status == WICK_OK) status = WICK_PENDING;
    for (uint64_t offset = 0; status == WICK_PENDING && got == CHUNK; offset += got) {
        status = source->read_at(source, offset, CHUNK, chunk, err);
        if (status == WICK_OK) status = source->poll(source, &got, err);
        if (status == WICK_OK) status = wk_gguf_parser_feed(parser, chunk, got, NULL, err);
    }
    if (status == WICK_PENDING) status = wk_gguf_parser_end(parser, err);
    wk_free(heap, chunk, CHUNK);
    if (status == WICK_OK)
        *out = parser;
    else
        wk_gguf_parser_free(parser);
    return status;
}
