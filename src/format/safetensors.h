/* format/safetensors.h: the header of a safetensors file (Hugging Face) held in memory. */
#ifndef WK_FORMAT_SAFETENSORS_H
#define WK_FORMAT_SAFETENSORS_H

#include "core/arena.h"
#include "core/map.h"
#include "core/status.h"
#include "core/str.h"

#include <wick/file.h>

typedef struct wk_safetensors {
    size_t n_tensors;
    const wick_file_tensor *tensors; /* in header order; offsets from the file's beginning */
    wk_map index;                    /* by name */
} wk_safetensors;

/* Whether a file may be one at all: a text, say, is not. */
bool wk_safetensors_begins(const void *data, uint64_t size);
/* Parses the header of the file data[0, size). Names live in the arena, the index on heap (release
 * it with wk_map_release(&out->index)). Lying lengths, overlapping or out-of-range tensors and
 * shapes that do not match their bytes are WICK_ERR_FORMAT. */
wick_status wk_safetensors_parse(wk_heap *heap, wk_arena *arena, const void *data, uint64_t size,
                                 wk_safetensors *out, wick_error *err);
/* Appends the header of a file of these n tensors (names, types, shapes), whose data follows it
 * directly in the order of order[n], which is set: larger elements first, so that all are aligned.
 * WICK_ERR_DTYPE, WICK_ERR_VALUE (a name), WICK_ERR_OUT_OF_MEMORY. */
wick_status wk_safetensors_header(wk_strbuf *buf, const wick_file_tensor *tensors, size_t n,
                                  uint32_t *order, wick_error *err);
const wick_file_tensor *wk_safetensors_find(const wk_safetensors *file, wk_str name);

#endif
