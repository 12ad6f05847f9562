/* model/families/apertus.c: Apertus (Swiss AI Initiative, 2025): Qwen3's attention, and an MLP of
 * xIELU (Huang and Schlag, 2025). */
#include "core/status.h"
#include "model/families.h"

#include <math.h>

static double softplus(double x) { return x > 40.0 ? x : log1p(exp(x)); }

/* The number of a layer: an array has one for each, else it is that of all. */
static wick_status read_number(const wk_metadata *meta, const char *key, wk_layer_index at,
                               double *out) {
    const wick_value *const value = wk_gguf_find(meta->gguf, key);
    const bool is_array = value != NULL && value->type == WICK_VALUE_ARRAY &&
                          value->array.element_type == WICK_VALUE_F32 &&
                          value->array.count == at.n_layers;
    if (!is_array && (value == NULL || value->type != WICK_VALUE_F32))
        return wk_fail(meta->err, WICK_ERR_FORMAT,
                       "the metadata key '%s' is missing, or not one f32 for each layer", key);
    *out = is_array ? (double)((const float *)value->array.values)[at.layer] : value->f;
    if (isfinite(*out)) return WICK_OK;
    return wk_fail(meta->err, WICK_ERR_FORMAT, "the metadata key '%s' is not finite", key);
}

static wick_status describe(const wk_metadata *meta, wk_hparams *hparams, wk_layer_spec *layers) {
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    wk_family_norm_heads(hparams, layers);
    wk_family_drop_gates(hparams, layers, WK_ACTIVATION_XIELU);
    /* xielu.eps, which keeps expm1 from 0 next to it, changes nothing that float32 shows. */
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        const wk_layer_index at = wk_family_layer(hparams, i);
        wk_mlp_spec *const mlp = &layers[i].mlp;
        double above, below, slope;
        WK_TRY(read_number(meta, "xielu.alpha_p", at, &above));
        WK_TRY(read_number(meta, "xielu.alpha_n", at, &below));
        WK_TRY(read_number(meta, "xielu.beta", at, &slope));
        mlp->above = softplus(above);
        mlp->below = slope + softplus(below);
        mlp->slope = slope;
    }
    return WICK_OK;
}

const wk_family wk_family_apertus = {
    .architecture = "apertus", .norm = WK_NORM_RMS, .describe = describe};
