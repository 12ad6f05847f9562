/* ops/archive_save.h: tensors into zip archives. */
#ifndef WK_OPS_ARCHIVE_SAVE_H
#define WK_OPS_ARCHIVE_SAVE_H

#include <wick/tools.h>

#include "core/alloc.h"

/* Writes a .npz file, or is_torch a .pt file, whole or not at all; described: names, dtypes and
 * shapes of the tensors. The rest as wick_tensor_file_save says. */
wick_status wk_archive_save(wk_heap *heap, const char *path, bool is_torch,
                            const wick_file_tensor *described, wick_tensor *const *tensors,
                            size_t n, wick_error *err);

#endif
