/* source/file.h: GGUF files that are open for the public API, and which files may be written. */
#ifndef WK_SOURCE_FILE_H
#define WK_SOURCE_FILE_H

#include "core/alloc.h"
#include "format/gguf.h"

#include <wick/file.h>

/* file.c: source answers at once; it is the file's from now on, and closed on failure. */
wick_status wk_file_open_source(wick_source *source, wick_file **file, wick_error *err);
const wk_gguf *wk_file_gguf(const wick_file *file);
/* file_writer.c: WICK_ERR_STATE: path is there already, and not to be replaced. */
wick_status wk_file_check_new(const char *path, bool replace, wick_error *err);
/* file_target.c: WICK_ERR_ARGUMENT: path is one of reads or a part of one, see wick_file_desc. */
wick_status wk_file_check_unread(wk_heap *heap, const char *path, const char *const *reads,
                                 size_t n_reads, wick_error *err);

#endif
