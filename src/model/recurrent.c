/* model/recurrent.c: see recurrent.h. */
#include "model/recurrent.h"

#include "ops/recurrent.h"

#include <wick/ops.h>

/* Of a layer; without a state one for these texts alone, which begin at position 0: what it holds
 * before does not matter. */
static wick_tensor *convolution_state(const wk_pass *pass, uint32_t layer) {
    const wk_recurrent_spec *const spec = &pass->model->layers[layer].spec.recurrent;
    if (pass->state != NULL) return pass->state->layers[layer - pass->state->first].inputs;
    return wick_empty(
        wick_tensor_device(pass->batch->descriptor), WICK_F32,
        WICK_SHAPE(pass->batch->layout.n_sequences, spec->n_taps - 1, spec->n_channels));
}

static wick_tensor *scan_state(const wk_pass *pass, uint32_t layer) {
    const wk_recurrent_spec *const spec = &pass->model->layers[layer].spec.recurrent;
    if (pass->state != NULL) return pass->state->layers[layer - pass->state->first].numbers;
    return wick_empty(wick_tensor_device(pass->batch->descriptor), WICK_F32,
                      WICK_SHAPE(pass->batch->layout.n_sequences, spec->n_heads, spec->n_numbers,
                                 spec->head_dim));
}

wick_tensor *wk_convolve(const wk_pass *pass, uint32_t layer, wick_tensor *x, wick_tensor *weight,
                         wick_tensor *bias) {
    const wk_params params = {
        .conv = {.batch = pass->batch->layout, .is_whole = pass->state == NULL}};
    return wk_causal_conv(x, weight, bias, convolution_state(pass, layer), pass->batch->descriptor,
                          &params);
}

wick_tensor *wk_scan_layer(const wk_pass *pass, uint32_t layer, const wk_scan_rows *rows,
                           wk_scan_fn fn, float scale) {
    const wk_recurrent_spec *const spec = &pass->model->layers[layer].spec.recurrent;
    const int64_t n_rows = pass->batch->layout.n_rows;
    const wick_shape channels = WICK_SHAPE(n_rows, spec->n_heads, spec->head_dim);
    const wick_shape rates = WICK_SHAPE(spec->n_heads, spec->head_dim, spec->n_numbers);
    const wk_scan_inputs inputs = {
        .x = rows->x,
        .step = wick_expand(rows->step, channels),
        .gate = wick_expand(rows->gate, fn == WK_SCAN_SELECTIVE ? rates : channels),
        .bc = rows->bc,
    };
    const wk_params params = {.scan = {.batch = pass->batch->layout,
                                       .is_whole = pass->state == NULL,
                                       .fn = fn,
                                       .is_tiled = spec->is_tiled,
                                       .scale = scale}};
    return wk_scan(&inputs, scan_state(pass, layer), pass->batch->descriptor, &params);
}

wick_tensor *wk_head_steps(const wk_layer *layer, wick_tensor *x) {
    return wick_softplus(wick_add(x, layer->weight[WK_SSM_DT_BIAS]));
}
