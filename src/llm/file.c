/* llm/file.c: a model file's header for the public API: reads a file in chunks, parses, keeps it.
 */
#include <wick/file.h>

#include "llm/llm.h"
#include "sys/file.h"

enum { CHUNK = 256 << 10 };

struct wick_file {
    wk_heap heap;
    wk_gguf_parser *parser;
    const wk_gguf *gguf;
    uint64_t size;
};

/* Feeds the file to the parser until the header is complete. */
static wick_status read_header(wick_file *file, wk_file *source, wick_error *error) {
    void *const chunk = wk_alloc(&file->heap, CHUNK);
    if (chunk == NULL) return wk_fail_memory(error, CHUNK, 0, "a chunk of the file");
    wick_status status = WICK_PENDING;
    uint64_t offset = 0;
    while (status == WICK_PENDING && offset < file->size) {
        const uint64_t left = file->size - offset;
        const size_t size = left < CHUNK ? (size_t)left : CHUNK;
        status = wk_file_read_at(source, offset, chunk, size, error);
        if (status == WICK_OK) status = wk_gguf_parser_feed(file->parser, chunk, size, NULL, error);
        offset += size;
    }
    if (status == WICK_PENDING) status = wk_gguf_parser_end(file->parser, error);
    wk_free(&file->heap, chunk, CHUNK);
    return status;
}

wick_status wick_file_open(const char *path, wick_file **file, wick_error *error) {
    if (file == NULL) return wk_fail(error, WICK_ERR_ARGUMENT, "wick_file_open: file is NULL");
    *file = NULL;
    if (path == NULL) return wk_fail(error, WICK_ERR_ARGUMENT, "wick_file_open: path is NULL");

    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wick_file *const made = wk_alloc_zeroed(&heap, sizeof *made);
    if (made == NULL) return wk_fail_memory(error, sizeof *made, 0, "an open file");
    made->heap = heap;

    wk_file *source = NULL;
    wick_status status = wk_file_open(&made->heap, path, &source, error);
    if (status != WICK_OK) goto cleanup;
    made->size = wk_file_size(source);
    status = wk_gguf_parser_make(&made->heap, made->size, &made->parser, error);
    if (status != WICK_OK) goto cleanup;
    status = read_header(made, source, error);
    made->gguf = wk_gguf_parser_result(made->parser);
cleanup:
    if (source != NULL) wk_file_close(&made->heap, source);
    if (status != WICK_OK) {
        wick_file_close(made);
        return status;
    }
    *file = made;
    return WICK_OK;
}

void wick_file_close(wick_file *file) {
    if (file == NULL) return;
    wk_gguf_parser_free(file->parser);
    wk_heap heap = file->heap; /* the file lies in it */
    wk_free(&heap, file, sizeof *file);
}

const wk_gguf *wk_file_gguf(const wick_file *file) { return file->gguf; }

uint32_t wick_file_version(const wick_file *file) { return file->gguf->version; }

uint64_t wick_file_size(const wick_file *file) { return file->size; }

size_t wick_file_value_count(const wick_file *file) { return file->gguf->n_values; }

const wick_value *wick_file_value(const wick_file *file, size_t index) {
    return index < file->gguf->n_values ? &file->gguf->values[index] : NULL;
}

const wick_value *wick_file_find_value(const wick_file *file, const char *key) {
    return key ? wk_gguf_find(file->gguf, key) : NULL;
}

size_t wick_file_tensor_count(const wick_file *file) { return file->gguf->n_tensors; }

const wick_file_tensor *wick_file_get_tensor(const wick_file *file, size_t index) {
    return index < file->gguf->n_tensors ? &file->gguf->tensors[index] : NULL;
}
