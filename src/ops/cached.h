/* ops/cached.h: attention over the paged cache of a model, and writing to it. Not public: both read
 * the batch descriptor (backend/op.h, wk_batch_layout). */
#ifndef WK_OPS_CACHED_H
#define WK_OPS_CACHED_H

#include "tensor/tensor.h"

/* Caches [blocks, g, block_size, d or e]; descriptor [n_words] u32; params->cached is read. On
 * failure the device holds the sentence; NULL in, NULL out as in wick/ops.h. */

/* q [rows, h, d]: [rows, h, e], a new tensor. slopes and sinks [h] or NULL. */
typedef struct wk_kv_seen {
    wick_tensor *k_cache, *v_cache, *slopes, *sinks;
} wk_kv_seen;
wick_tensor *wk_attention_cached(wick_tensor *q, const wk_kv_seen *seen, wick_tensor *descriptor,
                                 const wk_params *params);
/* k [rows, g, d] and v [rows, g, e] go to their slots. */
typedef struct wk_kv_rows {
    wick_tensor *k, *v;
} wk_kv_rows;
wick_status wk_kv_append_cached(wick_tensor *k_cache, wick_tensor *v_cache, wk_kv_rows fresh,
                                wick_tensor *descriptor, const wk_params *params);

#endif
