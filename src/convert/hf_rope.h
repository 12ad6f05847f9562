/* convert/hf_rope.h: how positions are scaled for long contexts: in config.json, in GGUF. */
#ifndef WK_CONVERT_HF_ROPE_H
#define WK_CONVERT_HF_ROPE_H

#include "convert/hf_family.h"
#include "convert/value_list.h"

/* WICK_ERR_UNSUPPORTED: scaling that GGUF or Wick does not know. */
wick_status wk_hf_add_rope(const wk_hf_family *family, wk_json *config, wk_value_list *values,
                           wick_error *err);

/* Divisors of the rotary frequencies, one number for each pair of a head, which GGUF has as
 * tensors: llama 3's scaling and LongRoPE. */
typedef struct wk_hf_divisors {
    const char *name; /* of the tensor */
    const float *values;
    uint32_t n;
} wk_hf_divisors;
enum { WK_HF_MAX_DIVISORS = 2 };
wick_status wk_hf_rope_divisors(wk_json *config, wk_arena *arena,
                                wk_hf_divisors out[WK_HF_MAX_DIVISORS], size_t *n, wick_error *err);

#endif
