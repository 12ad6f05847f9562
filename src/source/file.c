/* source/file.c: a model file for the public API: its header, which is kept, and
 * bytes of its tensors. */
#include "source/file.h"

#include "source/header.h"

#include <inttypes.h>

struct wick_file {
    wk_heap heap;
    wk_header header;
    const wk_gguf *gguf; /* of header's parser */
    wick_source source;
};

struct wick_file_opening {
    wk_heap heap; /* it lies in it */
    wick_file *file;
    wick_status status;
    wick_error error;
};

/* Takes the source over where it succeeds. */
static wick_status start(const wick_source *source, wick_file **out, wick_error *err) {
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wick_file *const made = wk_alloc_zeroed(&heap, sizeof *made);
    if (made == NULL) return wk_fail_memory(err, sizeof *made, "an open file");
    made->heap = heap;
    made->source = *source;
    const wick_status status = wk_header_start(&made->heap, &made->source, &made->header, err);
    if (status == WICK_OK) {
        *out = made;
        return WICK_OK;
    }
    made->source.close = NULL;
    wick_file_close(made);
    return status;
}

static wick_status poll(wick_file *file, wick_error *err) {
    const wick_status status = wk_header_poll(&file->header, err);
    if (status == WICK_OK) file->gguf = wk_gguf_parser_result(file->header.parser);
    return status;
}

wick_status wk_file_open_source(wick_source *source, wick_file **file, wick_error *err) {
    wick_file *made;
    *file = NULL;
    wick_status status = start(source, &made, err);
    if (status != WICK_OK) {
        source->close(source);
        return status;
    }
    do status = poll(made, err);
    while (status == WICK_PENDING);
    if (status == WICK_OK)
        *file = made;
    else
        wick_file_close(made);
    return status;
}

wick_status wick_file_open(const char *path, wick_file **file, wick_error *error) {
    if (file == NULL) return wk_fail(error, WICK_ERR_ARGUMENT, "wick_file_open: file is NULL");
    *file = NULL;
    if (path == NULL) return wk_fail(error, WICK_ERR_ARGUMENT, "wick_file_open: path is NULL");

    wick_source source;
    wick_error reason = {.status = WICK_OK};
    WK_TRY(wick_source_files(&path, 1, &source, error));
    if (wk_file_open_source(&source, file, &reason) == WICK_OK) return WICK_OK;
    return wk_fail_in_file(error, path, &reason);
}

wick_status wick_file_open_start(wick_source source, wick_file_opening **opening,
                                 wick_error *error) {
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wick_status status = WICK_OK;
    wick_file_opening *made = NULL;
    if (opening == NULL || source.read_at == NULL || source.poll == NULL || source.close == NULL)
        status = wk_fail(error, WICK_ERR_ARGUMENT,
                         "wick_file_open_start: opening is NULL or the source is incomplete");
    else if ((made = wk_alloc_zeroed(&heap, sizeof *made)) == NULL)
        status = wk_fail_memory(error, sizeof *made, "opening a file");
    else
        status = start(&source, &made->file, error);
    if (opening != NULL) *opening = status == WICK_OK ? made : NULL;
    if (status == WICK_OK) {
        made->heap = heap;
        made->status = WICK_PENDING;
        return WICK_OK;
    }
    if (source.close != NULL) source.close(&source);
    wk_free(&heap, made, sizeof *made);
    return status;
}

wick_status wick_file_open_poll(wick_file_opening *opening) {
    if (opening == NULL) return WICK_ERR_ARGUMENT;
    if (opening->status == WICK_PENDING) opening->status = poll(opening->file, &opening->error);
    return opening->status;
}

wick_status wick_file_open_finish(wick_file_opening *opening, wick_file **file, wick_error *error) {
    if (file != NULL) *file = NULL;
    if (opening == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_file_open_finish: opening is NULL");
    wick_status status = opening->status;
    if (status == WICK_PENDING)
        status = wk_fail(error, WICK_ERR_CANCELLED, "the file was not opened: it was given up");
    else if (status == WICK_OK && file == NULL)
        status = wk_fail(error, WICK_ERR_ARGUMENT, "wick_file_open_finish: file is NULL");
    else if (status != WICK_OK && error != NULL && error->status == WICK_OK)
        *error = opening->error;
    if (status == WICK_OK)
        *file = opening->file;
    else
        wick_file_close(opening->file);
    wk_heap heap = opening->heap;
    wk_free(&heap, opening, sizeof *opening);
    return status;
}

void wick_file_close(wick_file *file) {
    if (file == NULL) return;
    wk_header_release(&file->header);
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
    const wick_status status = source->poll(source, &got, error);
    if (status == WICK_PENDING)
        return wk_fail(error, WICK_ERR_UNSUPPORTED,
                       "wick_file_read: the file's source does not answer at once");
    if (status != WICK_OK) return status;
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
