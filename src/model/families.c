/* model/families.c: the table of families, and what most of them have in common. */
#include "model/families.h"

#include "core/status.h"
#include "model/rope.h"

#include <math.h>

static const wk_family *const families[] = {
    &wk_family_llama,
    &wk_family_qwen2,
    &wk_family_qwen3,
};

wick_status wk_family_find(wk_str architecture, const wk_family **out, wick_error *err) {
    for (size_t i = 0; i < WK_COUNT(families); i++) {
        if (!wk_str_is(architecture, families[i]->architecture)) continue;
        *out = families[i];
        return WICK_OK;
    }
    return wk_fail(err, WICK_ERR_UNSUPPORTED,
                   "models of the architecture '%s' are not supported yet",
                   wk_str_show(architecture).text);
}

static wick_status refuse_experts(const wk_metadata *meta) {
    const uint32_t none = 0;
    uint32_t n_experts;
    WK_TRY(wk_metadata_u32(meta, "expert_count", (wk_u32_rule){0, UINT32_MAX, &none}, &n_experts));
    if (n_experts == 0) return WICK_OK;
    return wk_fail(meta->err, WICK_ERR_UNSUPPORTED,
                   "the model is a mixture of experts (%s is %u), which is not supported yet",
                   wk_metadata_key(meta, "expert_count").text, (unsigned)n_experts);
}

wick_status wk_family_describe_dense(const wk_metadata *meta, wk_hparams *hparams,
                                     wk_layer_spec *layers) {
    uint32_t n_ff;
    WK_TRY(refuse_experts(meta));
    WK_TRY(wk_metadata_u32_per_layer(meta, "feed_forward_length",
                                     (wk_u32_rule){1, WK_MAX_CHANNELS, NULL}, hparams->n_layers,
                                     &n_ff));
    WK_TRY(wk_rope_add(meta, hparams));
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        layers[i] = (wk_layer_spec){
            .attention.scale = (float)(1.0 / sqrt((double)hparams->head_dim)),
            .mlp.n_ff = n_ff,
        };
    }
    return WICK_OK;
}
