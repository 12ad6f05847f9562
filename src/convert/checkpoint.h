/* convert/checkpoint.h: a folder as Hugging Face has them: JSON files, and tensors in safetensors
 * files, one or several. */
#ifndef WK_CONVERT_CHECKPOINT_H
#define WK_CONVERT_CHECKPOINT_H

#include "core/json.h"
#include "core/map.h"

#include <wick/file.h>

typedef struct wk_checkpoint wk_checkpoint;

typedef struct wk_checkpoint_tensor {
    wick_string name;
    wick_dtype dtype;
    wick_shape shape;
    const void *data; /* in the file's mapping */
    uint64_t size;    /* bytes */
} wk_checkpoint_tensor;

/* Maps STEM.safetensors, or all files that STEM.safetensors.index.json names; stem: "model". target
 * is the file
 * that will be written, borrowed until the last wk_checkpoint_read: WICK_ERR_ARGUMENT there and
 * here where it is a file to read. NULL: none will be. */
wick_status wk_checkpoint_open(wk_heap *heap, const char *folder, const char *stem,
                               const char *target, wk_checkpoint **out, wick_error *err);
void wk_checkpoint_close(wk_checkpoint *checkpoint);
size_t wk_checkpoint_count(const wk_checkpoint *checkpoint);
const wk_checkpoint_tensor *wk_checkpoint_get(const wk_checkpoint *checkpoint, size_t index);

/* A file of the folder, into the arena. text NULL and WICK_OK: there is none, where it is not
 * required. */
wick_status wk_checkpoint_read(const wk_checkpoint *checkpoint, wk_arena *arena, const char *name,
                               bool is_required, wk_str *out, wick_error *err);
/* The same for JSON; NULL: there is none. */
wick_status wk_checkpoint_json(const wk_checkpoint *checkpoint, wk_arena *arena, const char *name,
                               bool is_required, wk_json **out, wick_error *err);

#endif
