/* convert/mix.h: which type each tensor of a model gets, by the mixes of types that users know. */
#ifndef WK_CONVERT_MIX_H
#define WK_CONVERT_MIX_H

#include "format/gguf.h"

typedef struct wk_mix wk_mix;

/* NULL: index is out of range, or there is none of this name (in any case). */
const wk_mix *wk_mix_get(size_t index);
const wk_mix *wk_mix_find(const char *name);
const char *wk_mix_name(const wk_mix *mix);
/* Its number in general.file_type. */
uint32_t wk_mix_file_type(const wk_mix *mix);

/* What the choice depends on beside the tensor itself. */
typedef struct wk_mix_model {
    const wk_gguf *gguf;
    uint32_t n_layers, n_experts;
    uint32_t heads_per_kv; /* query heads that share a key head; of the first layer */
    bool is_tied;          /* the embedding is the output, too */
    bool is_guided;        /* by an importance matrix */
    bool is_falcon;
    bool is_70b; /* or what has its shape */
} wk_mix_model;

wk_mix_model wk_mix_model_of(const wk_gguf *gguf, bool is_guided);

/* The tensor's type in the mix; its own type if it is not a matrix worth quantizing. *is_fallback:
 * its rows are not whole blocks of the wanted type, so it gets another one. */
wick_dtype wk_mix_dtype(const wk_mix *mix, const wk_mix_model *model,
                        const wick_file_tensor *tensor, bool *is_fallback);

#endif
