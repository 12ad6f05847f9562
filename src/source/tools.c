/* source/tools.c: helpers for programs built on the library: files, time, memory. */
#include <wick/tools.h>

#include "core/dtype.h"
#include "core/shape.h"
#include "format/npy.h"
#include "sys/clock.h"
#include "sys/file.h"

#include <inttypes.h>

struct wick_npy_writer {
    wk_heap heap;
    wk_file_writer *file;
    uint64_t n_left; /* bytes that the array still needs */
};

static wick_status write_header(wick_npy_writer *writer, wick_dtype dtype, const wick_shape *shape,
                                wick_error *error) {
    wk_strbuf header;
    wk_strbuf_init(&header, &writer->heap);
    wick_status status = wk_npy_header(&header, dtype, shape);
    if (status == WICK_OK)
        status = wk_file_write(writer->file, header.data, header.size, error);
    else if (status == WICK_ERR_DTYPE)
        wk_fail(error, status, "NumPy has no type for %s: convert to f32", wick_dtype_name(dtype));
    else
        wk_fail_memory(error, header.size, "the header of an npy file");
    wk_strbuf_release(&header);
    return status;
}

static void free_writer(wick_npy_writer *writer) {
    wk_heap heap = writer->heap; /* the writer lies in it */
    wk_free(&heap, writer, sizeof *writer);
}

wick_status wick_npy_start(const char *path, wick_dtype dtype, wick_shape shape,
                           wick_npy_writer **writer, wick_error *error) {
    if (writer == NULL) return wk_fail(error, WICK_ERR_ARGUMENT, "wick_npy_start: writer is NULL");
    *writer = NULL;
    if (path == NULL || (unsigned)dtype >= WICK_DTYPE_COUNT_)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_npy_start: no path or no such dtype");
    int64_t n_elements = 0;
    uint64_t size = 0;
    if (!wk_shape_count(&shape, &n_elements) || !wk_dtype_bytes(dtype, n_elements, &size))
        return wk_fail(error, WICK_ERR_SHAPE, "no array of %s can have this shape",
                       wick_dtype_name(dtype));

    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wick_npy_writer *const made = wk_alloc_zeroed(&heap, sizeof *made);
    if (made == NULL) return wk_fail_memory(error, sizeof *made, "a writer of an npy file");
    made->heap = heap;
    made->n_left = size;
    wick_status status = wk_file_write_start(&made->heap, path, &made->file, error);
    if (status == WICK_OK) {
        status = write_header(made, dtype, &shape, error);
        if (status != WICK_OK) wk_file_write_finish(&made->heap, made->file, false, NULL);
    }
    if (status != WICK_OK) {
        free_writer(made);
        return status;
    }
    *writer = made;
    return WICK_OK;
}

wick_status wick_npy_write(wick_npy_writer *writer, const void *data, size_t size,
                           wick_error *error) {
    if (writer == NULL || (data == NULL && size > 0))
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_npy_write: an argument is NULL");
    if (size > writer->n_left)
        return wk_fail(error, WICK_ERR_ARGUMENT,
                       "wick_npy_write: %zu bytes, the array has room for %" PRIu64 " more", size,
                       writer->n_left);
    WK_TRY(wk_file_write(writer->file, data, size, error));
    writer->n_left -= size;
    return WICK_OK;
}

wick_status wick_npy_finish(wick_npy_writer *writer, bool commit, wick_error *error) {
    if (writer == NULL) return wk_fail(error, WICK_ERR_ARGUMENT, "wick_npy_finish: writer is NULL");
    wick_status status = WICK_OK;
    if (commit && writer->n_left > 0)
        status =
            wk_fail(error, WICK_ERR_STATE,
                    "the array is not complete: %" PRIu64 " bytes are missing", writer->n_left);
    const bool is_kept = commit && status == WICK_OK;
    const wick_status finished = wk_file_write_finish(&writer->heap, writer->file, is_kept, error);
    free_writer(writer);
    return status != WICK_OK ? status : finished;
}

wick_status wick_bytes_save(const char *path, const void *bytes, size_t size, wick_error *error) {
    if (path == NULL || (bytes == NULL && size > 0))
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_bytes_save: an argument is NULL");
    wk_heap heap;
    wk_file_writer *file;
    wk_heap_init(&heap, NULL);
    WK_TRY(wk_file_write_start(&heap, path, &file, error));
    const wick_status status = wk_file_write(file, bytes, size, error);
    const wick_status finished = wk_file_write_finish(&heap, file, status == WICK_OK, error);
    return status != WICK_OK ? status : finished;
}

double wick_time(void) { return (double)wk_clock_ns() * 1e-9; }

uint64_t wick_peak_memory(void) { return wk_process_peak_bytes(); }
