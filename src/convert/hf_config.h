/* convert/hf_config.h: the numbers of config.json as GGUF metadata. */
#ifndef WK_CONVERT_HF_CONFIG_H
#define WK_CONVERT_HF_CONFIG_H

#include "convert/hf_family.h"
#include "convert/value_list.h"

/* Adds the hyper-parameters of config.json to values, whose prefix is the architecture. Numbers
 * that are missing are WICK_ERR_FORMAT (hf_defaults.h has added those that may be), settings that
 * GGUF or Wick does not know WICK_ERR_UNSUPPORTED. */
wick_status wk_hf_describe(const wk_hf_family *family, wk_json *config, wk_value_list *values,
                           wick_error *err);

/* Of q, and of k and v; 0: config.json does not say, or nonsense. */
typedef struct wk_hf_heads {
    uint32_t n_q, n_kv;
} wk_hf_heads;
wk_hf_heads wk_hf_read_heads(wk_json *config);

/* Each of these notes in the tree what it has read; see hf_unread.h. A member of an object: */
wk_json *wk_hf_get(wk_json *object, const char *key);
/* A key, or the first of several that mean the same, with | between them, of config or of its
 * rope_parameters, where newer files have some of them; NULL: null, or not there. */
const wk_json *wk_hf_find(wk_json *config, const char *keys);
wick_status wk_hf_read_u32(wk_json *config, const char *keys, uint32_t *out, wick_error *err);
wick_status wk_hf_read_f64(wk_json *config, const char *keys, double *out, wick_error *err);
/* Channels of a head of q and k. */
wick_status wk_hf_head_dim(wk_json *config, uint32_t *out, wick_error *err);

#endif
