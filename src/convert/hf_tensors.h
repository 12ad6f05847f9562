/* convert/hf_tensors.h: which tensors a GGUF file gets of a checkpoint, and their rows. */
#ifndef WK_CONVERT_HF_TENSORS_H
#define WK_CONVERT_HF_TENSORS_H

#include "convert/checkpoint.h"
#include "convert/hf_family.h"
#include "convert/hf_keys.h"

/* Where a tensor of the new file comes from. */
typedef struct wk_hf_source {
    const wk_checkpoint_tensor **parts; /* [n_parts], one after the other */
    uint32_t n_parts;
    bool is_stacked; /* parts along an axis of their own, like experts; else there is one */
    wk_hf_change change;
    const float *scales; /* of rows; NULL: 1 */
    float scale;         /* of all; 0: 1 */
} wk_hf_source;

typedef struct wk_hf_plan {
    wick_file_tensor *tensors; /* [n]; dtype: as it is in the checkpoint, yet */
    wk_hf_source *sources;     /* [n] */
    size_t n;
    uint64_t total_bytes; /* of the checkpoint */
    wk_hf_heads heads;
    uint32_t n_groups; /* of a state space; 0: not said */
} wk_hf_plan;

/* All of the checkpoint, in its order, in the arena, and what else config.json asks for. The error
 * names a tensor that is not known, or does not fit the others or the heads. */
wick_status wk_hf_plan_make(const wk_checkpoint *checkpoint, const wk_hf_family *family,
                            wk_json *config, wk_arena *arena, wk_hf_plan *out, wick_error *err);

/* Rows of a part of tensor index, and the numbers in each; those of a vector may be rows of one. */
typedef struct wk_hf_rows {
    int64_t n, width;
} wk_hf_rows;
wk_hf_rows wk_hf_count_rows(const wk_hf_plan *plan, size_t index);
/* One of them, decoded, as it is in the new file. */
void wk_hf_read_row(const wk_hf_plan *plan, size_t index, uint32_t part, int64_t row, float *out);

#endif
