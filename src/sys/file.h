/* sys/file.h: files: read at an offset, map, write whole. Paths are UTF-8. */
#ifndef WK_SYS_FILE_H
#define WK_SYS_FILE_H

#include "core/alloc.h"
#include "core/status.h"

typedef struct wk_file wk_file;

/* Opens for reading; a directory or a missing file is WICK_ERR_NOT_FOUND / WICK_ERR_IO with the
 * path. */
wick_status wk_file_open(wk_heap *heap, const char *path, wk_file **out, wick_error *err);
void wk_file_close(wk_heap *heap, wk_file *file);
uint64_t wk_file_size(const wk_file *file);
/* Exactly size bytes, or WICK_ERR_IO (end of file included). */
wick_status wk_file_read_at(wk_file *file, uint64_t offset, void *dst, size_t size,
                            wick_error *err);

/* A regular file is there, whether it can be read or not. */
bool wk_file_exists(const char *path);
/* Both paths lead to one file. False also where one of them cannot be looked at. */
bool wk_file_is_same(const char *a, const char *b);

/* The whole file, read-only; stays valid until wk_file_close. An empty file maps to NULL, WICK_OK.
 * A failing map is WICK_ERR_UNSUPPORTED: read instead. */
wick_status wk_file_map(wk_file *file, const void **data, wick_error *err);
/* Tells the system that the pages of this range are not needed any more. */
void wk_file_drop(wk_file *file, uint64_t offset, uint64_t size);

/* Writes to a temporary name beside path, flushes, renames: path never holds half a file. A link
 * stays: the file that it leads to is written. */
typedef struct wk_file_writer wk_file_writer;
wick_status wk_file_write_start(wk_heap *heap, const char *path, wk_file_writer **out,
                                wick_error *err);
wick_status wk_file_write(wk_file_writer *writer, const void *data, size_t size, wick_error *err);
/* The same as a wick_write_fn (wick/saving.h). */
static inline wick_status wk_file_sink(void *writer, const void *data, size_t size,
                                       wick_error *err) {
    return wk_file_write(writer, data, size, err);
}
/* commit false: throws it away. Frees the writer regardless of the result. */
wick_status wk_file_write_finish(wk_heap *heap, wk_file_writer *writer, bool commit,
                                 wick_error *err);
/* Whether a write of path could begin now: the file is begun and thrown away. A device or a pipe is
 * not opened, since its reader would see that it is closed again. */
wick_status wk_file_try_write(wk_heap *heap, const char *path, wick_error *err);

#endif
