/* llm/file.c: a model file for the public API: its header, which is kept, and
 * bytes of its tensors. */
#include <wick/file.h>

#include "llm/llm.h"

#include <inttypes.h>

struct wick_file {
    wk_heap heap;
    wk_gguf_parser *parser;
    const wk_gguf *gguf;
    wick_source source; /* of files: answers at once */
};

wick_status wick_file_open(const char *path, wick_file **file, wick_error *error) {
    if (file == NULL) return wk_fail(error, WICK_ERR_ARGUMENT, "wick_file_open: file is NULL");
    *file = NULL;
    if (path == NULL) return wk_fail(error, WICK_ERR_ARGUMENT, "wick_file_open: path is NULL");

    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wick_file *const made = wk_alloc_zeroed(&heap, sizeof *made);
    if (made == NULL) return wk_fail_memory(error, sizeof *made, 0, "an open file");
    made->heap = heap;
    wick_status status = wick_source_files(&path, 1, &made->source, error);
    if (status == WICK_OK)
        status = wk_read_header(&made->heap, &made->source, &made->parser, error);
    if (status != WICK_OK) {
        wick_file_close(made);
        return status;
    }
    made->gguf = wk_gguf_parser_result(made->parser);
    *file = made;
    return WICK_OK;
}

void wick_file_close(wick_file *file) {
    if (file == NULL) return;
    wk_gguf_parser_free(file->parser);
    if (file->source.close != NULL) file->source.close(&file->source);
    wk_heap heap = file->heap; /* the file lies in it */
    wk_free(&heap, file, sizeof *file);
}

wick_status wick_file_read(wick_file *file, uint64_t offset, void *data, size_t size,
                           wick_error *error) {
    if (file == NULL || (data == NULL && size > 0))
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_file_read: an argument is NULL");
    wick_source *const source = &file->source;
    size_t got = 0;
    WK_TRY(source->read_at(source, offset, size, data, error));
    WK_TRY(source->poll(source, &got, error));
    if (got == size) return WICK_OK;
    return wk_fail(error, WICK_ERR_IO,
                   "%zu bytes at %" PRIu64 " go past the end of the file at %" PRIu64, size, offset,
                   source->size);
}

const wk_gguf *wk_file_gguf(const wick_file *file) { return file->gguf; }

uint32_t wick_file_version(const wick_file *file) { return file != NULL ? file->gguf->version : 0; }

uint64_t wick_file_size(const wick_file *file) { return file != NULL ? file->source.size : 0; }

size_t wick_file_value_count(const wick_file *file) {
    return file != NULL ? file->gguf->n_values : 0;
}

const wick_value *wick_file_value(const wick_file *file, size_t index) {
    return index < wick_file_value_count(file) ? &file->gguf->values[index] : NULL;
}

const wick_value *wick_file_find_value(const wick_file *file, const char *key) {
    return file != NULL && key != NULL ? wk_gguf_find(file->gguf, key) : NULL;
}

size_t wick_file_tensor_count(const wick_file *file) {
    return file != NULL ? file->gguf->n_tensors : 0;
}

const wick_file_tensor *wick_file_get_tensor(const wick_file *file, size_t index) {
    return index < wick_file_tensor_count(file) ? &file->gguf->tensors[index] : NULL;
}
