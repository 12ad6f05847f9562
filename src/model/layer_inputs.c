/* model/layer_inputs.c: inputs that each layer has of its own, beside the residual stream (Gemma
 * Team, 2025: per-layer embeddings). */
#include "model/model_struct.h"

#include <wick/ops.h>

#include <math.h>

/* A row of a second table for each layer, and a projection of the embedded token. */
wick_tensor *wk_layer_inputs_make(const wk_pass *pass, wick_tensor *ids, wick_tensor *x) {
    const wk_hparams *const hparams = &pass->model->hparams;
    wick_tensor *const *const weight = pass->weights->weight;
    const uint32_t n = hparams->n_embd_layer;
    const wick_shape by_layer = WICK_SHAPE(-1, hparams->n_layers, n);
    wick_tensor *const rows = wick_affine(
        wick_cast(wick_embedding(weight[WK_LAYER_TABLE], ids), WICK_F32), sqrt((double)n), 0.0);
    wick_tensor *const projected = wick_affine(wick_linear(x, weight[WK_LAYER_PROJECTION], NULL),
                                               1.0 / sqrt((double)hparams->n_embd), 0.0);
    wick_tensor *const normed = wk_norm(pass->model, wick_reshape(projected, by_layer),
                                        weight[WK_LAYER_PROJECTION_NORM], NULL);
    return wick_affine(wick_add(normed, wick_reshape(rows, by_layer)), sqrt(0.5), 0.0);
}

wick_tensor *wk_layer_inputs_add(const wk_pass *pass, uint32_t index, wick_tensor *x) {
    const wk_layer *const layer = &pass->model->layers[index];
    wick_tensor *const own = wick_squeeze(wick_narrow(pass->layer_inputs, 1, index, 1), 1);
    wick_tensor *const gated = wick_geglu(wk_project(pass, layer, WK_INPUT_GATE, x), own);
    wick_tensor *const y = wk_project(pass, layer, WK_INPUT_PROJECTION, gated);
    return wick_add(x, wk_norm(pass->model, y, layer->weight[WK_INPUT_NORM], NULL));
}
