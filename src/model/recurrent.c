/* model/recurrent.c: see recurrent.h. */
#include "model/recurrent.h"

#include "ops/recurrent.h"

#include <wick/ops.h>

wick_tensor *wk_convolve(const wk_pass *pass, uint32_t layer, wick_tensor *x, wick_tensor *weight,
                         wick_tensor *bias) {
    const wk_layer_cache *const cache = &pass->state->layers[layer - pass->state->first];
    const wk_params params = {.conv = {.batch = pass->batch->layout}};
    return wk_causal_conv(x, weight, bias, cache->inputs, pass->batch->descriptor, &params);
}

wick_tensor *wk_scan_layer(const wk_pass *pass, uint32_t layer, const wk_scan_rows *rows,
                           wk_scan_fn fn, float scale) {
    const wk_recurrent_spec *const spec = &pass->model->layers[layer].spec.recurrent;
    const wk_layer_cache *const cache = &pass->state->layers[layer - pass->state->first];
    const int64_t n_rows = pass->batch->layout.n_rows;
    const wick_shape channels = WICK_SHAPE(n_rows, spec->n_heads, spec->head_dim);
    const wick_shape rates = WICK_SHAPE(spec->n_heads, spec->head_dim, spec->n_numbers);
    const wk_scan_inputs inputs = {
        .x = rows->x,
        .step = wick_expand(rows->step, channels),
        .gate = wick_expand(rows->gate, fn == WK_SCAN_SELECTIVE ? rates : channels),
        .bc = rows->bc,
    };
    const wk_params params = {
        .scan = {
            .fn = fn, .is_tiled = spec->is_tiled, .scale = scale, .batch = pass->batch->layout}};
    return wk_scan(&inputs, cache->numbers, pass->batch->descriptor, &params);
}

wick_tensor *wk_head_steps(const wk_layer *layer, wick_tensor *x) {
    return wick_softplus(wick_add(x, layer->weight[WK_SSM_DT_BIAS]));
}
