/* convert/hf_family.h: what a model is called at Hugging Face and what in GGUF: architecture,
 * numbers, tensors. */
#ifndef WK_CONVERT_HF_FAMILY_H
#define WK_CONVERT_HF_FAMILY_H

#include "convert/value_list.h"
#include "core/json.h"

/* What happens to the rows of a tensor on the way. */
typedef enum wk_hf_change {
    WK_HF_AS_IT_IS,
    WK_HF_PERMUTE_Q, /* rotary pairs (i, i + dim / 2) of each head become neighbours */
    WK_HF_PERMUTE_K,
    WK_HF_LEFT_OUT,
} wk_hf_change;

typedef struct wk_hf_family wk_hf_family;

/* By model_type of config.json. WICK_ERR_UNSUPPORTED names it and lists what is known. */
wick_status wk_hf_family_find(const wk_json *config, const wk_hf_family **out, wick_error *err);
const char *wk_hf_architecture(const wk_hf_family *family);
/* Adds the hyper-parameters of config.json to values, whose prefix is the architecture. Numbers
 * that are missing are WICK_ERR_FORMAT, settings that GGUF or Wick does not know
 * WICK_ERR_UNSUPPORTED. */
wick_status wk_hf_describe(const wk_hf_family *family, const wk_json *config, wk_value_list *values,
                           wick_error *err);

/* What divides the rotary frequencies, one number for each pair of a head, where config.json scales
 * them unevenly (llama 3); *n is 0 where it does not. */
wick_status wk_hf_rope_divisors(const wk_json *config, wk_arena *arena, const float **divisors,
                                uint32_t *n, wick_error *err);

enum { WK_HF_NAME = 96 };
/* The name in GGUF of a tensor of the checkpoint, and what happens to it. False: not known. */
bool wk_hf_rename(const wk_hf_family *family, wk_str name, char out[WK_HF_NAME],
                  wk_hf_change *change);
/* Heads whose rows are permuted. */
uint32_t wk_hf_heads(const wk_json *config, wk_hf_change change);

#endif
