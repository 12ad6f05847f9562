/* sys/wasm/file.c: a page has no files: bytes come by sources that JavaScript fills. */
#include "sys/file.h"

static wick_status no_files(const char *path, wick_error *err) {
    return wk_fail(err, WICK_ERR_UNSUPPORTED,
                   "cannot open '%s': there are no files here, only sources in memory", path);
}

wick_status wk_file_open(wk_heap *heap, const char *path, wk_file **out, wick_error *err) {
    (void)heap;
    *out = NULL;
    return no_files(path, err);
}

wick_status wk_file_write_start(wk_heap *heap, const char *path, wk_file_writer **out,
                                wick_error *err) {
    (void)heap;
    *out = NULL;
    return no_files(path, err);
}

wick_status wk_file_try_write(wk_heap *heap, const char *path, wick_error *err) {
    (void)heap;
    return no_files(path, err);
}

bool wk_file_exists(const char *path) {
    (void)path;
    return false;
}

bool wk_file_is_same(const char *a, const char *b) {
    (void)a, (void)b;
    return false;
}

/* No file can be opened, so these are never called. */
void wk_file_close(wk_heap *heap, wk_file *file) { (void)heap, (void)file; }

uint64_t wk_file_size(const wk_file *file) {
    (void)file;
    return 0;
}

wick_status wk_file_read_at(wk_file *file, uint64_t offset, void *dst, size_t size,
                            wick_error *err) {
    (void)file, (void)offset, (void)dst, (void)size;
    return no_files("", err);
}

wick_status wk_file_map(wk_file *file, const void **data, wick_error *err) {
    (void)file;
    *data = NULL;
    return no_files("", err);
}

void wk_file_drop(wk_file *file, uint64_t offset, uint64_t size) {
    (void)file, (void)offset, (void)size;
}

wick_status wk_file_write(wk_file_writer *writer, const void *data, size_t size, wick_error *err) {
    (void)writer, (void)data, (void)size;
    return no_files("", err);
}

wick_status wk_file_write_finish(wk_heap *heap, wk_file_writer *writer, bool commit,
                                 wick_error *err) {
    (void)heap, (void)writer, (void)commit;
    return no_files("", err);
}
