/* model/metadata.h: reading a family's numbers from a file's metadata, every one checked. */
#ifndef WK_MODEL_METADATA_H
#define WK_MODEL_METADATA_H

#include "core/arena.h"
#include "core/str.h"
#include "format/gguf.h"

typedef struct wk_metadata {
    const wk_gguf *gguf;
    wk_arena *arena;          /* of the model: what the description points to */
    const char *architecture; /* keys are ARCHITECTURE.suffix */
    wick_error *err;
} wk_metadata;

/* "llama.block_count", for lookups and sentences. */
typedef struct wk_key {
    char text[160];
} wk_key;
wk_key wk_metadata_key(const wk_metadata *meta, const char *suffix);

bool wk_metadata_has(const wk_metadata *meta, const char *suffix);

/* The number at suffix. NULL fallback: a missing key is WICK_ERR_FORMAT that names it. A wrong
 * type, a number out of [least, most], NaN and infinity are refused likewise. */
wick_status wk_metadata_f64(const wk_metadata *meta, const char *suffix, const double *fallback,
                            double *out);
typedef struct wk_u32_rule {
    uint32_t least, most;
    const uint32_t *fallback;
} wk_u32_rule;
wick_status wk_metadata_u32(const wk_metadata *meta, const char *suffix, wk_u32_rule rule,
                            uint32_t *out);
/* The same of one layer: may be an array of n_layers numbers. */
typedef struct wk_layer_index {
    uint32_t layer, n_layers, n_ahead; /* the last ones may lack in arrays */
} wk_layer_index;
wick_status wk_metadata_u32_of_layer(const wk_metadata *meta, const char *suffix, wk_u32_rule rule,
                                     wk_layer_index at, uint32_t *out);
/* Whether the key holds an array; a layer's bool in one: n_layers of them there must be, or numbers
 * that are 0 or 1. */
bool wk_metadata_is_array(const wk_metadata *meta, const char *suffix);
wick_status wk_metadata_bool_of_layer(const wk_metadata *meta, const char *suffix,
                                      wk_layer_index at, bool *out);
/* fallback where the key is missing. */
wick_status wk_metadata_bool(const wk_metadata *meta, const char *suffix, bool fallback, bool *out);
/* Whether the file has the tensor, "blk.N." in front of name. */
bool wk_metadata_layer_has(const wk_metadata *meta, uint32_t layer, const char *name);
/* The text at suffix; empty when the key is missing. */
wick_status wk_metadata_string(const wk_metadata *meta, const char *suffix, wk_str *out);
/* Without the architecture in front. WICK_ERR_FORMAT when missing and required. */
wick_status wk_metadata_general(const wk_gguf *gguf, const char *key, bool is_required, wk_str *out,
                                wick_error *err);

#endif
