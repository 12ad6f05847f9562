/* format/safetensors.h: the header of a safetensors file (Hugging Face) held in memory. */
#ifndef WK_FORMAT_SAFETENSORS_H
#define WK_FORMAT_SAFETENSORS_H

#include "core/arena.h"
#include "core/map.h"
#include "core/status.h"

#include <wick/file.h>

typedef struct wk_safetensors {
    size_t n_tensors;
    const wick_file_tensor *tensors; /* in header order; offsets from the file's beginning */
    wk_map index;                    /* by name */
} wk_safetensors;

/* Parses the header of the file data[0, size). Names live in the arena, the index on heap (release
 * it with wk_map_release(&out->index)). Lying lengths, overlapping or out-of-range tensors and
 * shapes that do not match their bytes are WICK_ERR_FORMAT. */
wick_status wk_safetensors_parse(wk_heap *heap, wk_arena *arena, const void *data, uint64_t size,
                                 wk_safetensors *out, wick_error *err);
const wick_file_tensor *wk_safetensors_find(const wk_safetensors *file, wk_str name);

#endif
