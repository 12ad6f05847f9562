/* convert/header_file.c: see header_file.h. */
#include "convert/header_file.h"

#include "core/alloc.h"
#include "llm/llm.h"
#include "source/file.h"

#include <string.h>

typedef struct header_source {
    wk_heap heap;
    size_t size, got;
    unsigned char bytes[];
} header_source;

static wick_status read_header_at(wick_source *source, uint64_t offset, size_t size, void *dst,
                                  wick_error *error) {
    header_source *const from = source->user;
    if (offset >= from->size)
        return wk_fail(error, WICK_ERR_UNSUPPORTED,
                       "the file is not written: there are no bytes of its tensors");
    const size_t left = from->size - (size_t)offset;
    from->got = size < left ? size : left;
    memcpy(dst, from->bytes + offset, from->got);
    return WICK_OK;
}

static wick_status poll_header(wick_source *source, size_t *got, wick_error *error) {
    (void)error;
    *got = ((const header_source *)source->user)->got;
    return WICK_OK;
}

static void close_header(wick_source *source) {
    header_source *const from = source->user;
    wk_heap heap = from->heap; /* from lies in it */
    wk_free(&heap, from, sizeof *from + from->size);
}

wick_status wk_file_of_header(wk_str header, uint64_t size, wick_file **out, wick_error *err) {
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    header_source *const made = wk_alloc(&heap, sizeof *made + header.size);
    if (made == NULL) return wk_fail_memory(err, header.size, "the header of a file");
    *made = (header_source){.heap = heap, .size = header.size};
    memcpy(made->bytes, header.text, header.size);
    wick_source source = {.user = made,
                          .size = size,
                          .read_at = read_header_at,
                          .poll = poll_header,
                          .close = close_header};
    return wk_file_open_source(&source, out, err);
}
