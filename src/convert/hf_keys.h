/* convert/hf_keys.h: reading config.json, whose keys have several names. Each of these notes in the
 * tree what it has read; see hf_unread.h. */
#ifndef WK_CONVERT_HF_KEYS_H
#define WK_CONVERT_HF_KEYS_H

#include "core/json.h"

#include <wick/base.h>

/* A member of an object. */
wk_json *wk_hf_get(wk_json *object, const char *key);
/* rope_parameters, where newer configs have what concerns positions; of layers of several kinds,
 * those without a window. NULL: an older config, with rope_theta and rope_scaling beside all else.
 */
wk_json *wk_hf_rope_parameters(wk_json *config);
/* A key, or the first of several that mean the same, with | between them, of config or of its
 * rope_parameters, where newer files have some of them; NULL: null, or not there. */
const wk_json *wk_hf_find(wk_json *config, const char *keys);
/* Copies the first of the keys "a|b|c" to out. Returns the rest, NULL after the last one. */
const char *wk_hf_split_keys(const char *keys, char out[64]);
wick_status wk_hf_read_u32(wk_json *config, const char *keys, uint32_t *out, wick_error *err);
wick_status wk_hf_read_f64(wk_json *config, const char *keys, double *out, wick_error *err);
/* WICK_ERR_FORMAT: the number is missing, or of this kind ("not positive"). */
wick_status wk_hf_fail_number(wick_error *err, const char *keys, const char *kind);

#define WK_HF_N_HEADS "num_attention_heads|n_head"
#define WK_HF_N_EMBD "hidden_size|n_embd"
/* Of q, and of k and v; 0: config.json does not say, or nonsense. */
typedef struct wk_hf_heads {
    uint32_t n_q, n_kv;
} wk_hf_heads;
wk_hf_heads wk_hf_read_heads(wk_json *config);
/* Channels of a head of q and k. */
wick_status wk_hf_head_dim(wk_json *config, uint32_t *out, wick_error *err);

#endif
