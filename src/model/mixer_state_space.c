/* model/mixer_state_space.c: selective state spaces: Mamba (Gu and Dao, 2023), whose channels each
 * have a step and rates of their own, and Mamba 2 (Dao and Gu, 2024), whose heads have. */
#include "model/model_struct.h"
#include "model/recurrent.h"

#include <wick/ops.h>

static wick_tensor *convolved(const wk_pass *pass, uint32_t index, wick_tensor *x) {
    wick_tensor *const *const weight = pass->model->layers[index].weight;
    return wick_silu(wk_convolve(pass, index, x, weight[WK_SSM_CONV], weight[WK_SSM_CONV_BIAS]));
}

/* y + d x, d for each channel or head. */
static wick_tensor *add_input(const wk_layer *layer, wick_tensor *y, wick_tensor *x) {
    return wick_add(y, wick_mul(x, layer->weight[WK_SSM_D]));
}

/* Falcon Mamba and Jamba norm what a step, b and c are made of. weight: NULL: there is none. */
static wick_tensor *normed(const wk_pass *pass, uint32_t index, wick_tensor *x,
                           wick_tensor *weight) {
    if (!pass->model->layers[index].spec.recurrent.has_norms) return x;
    return wick_rms_norm(x, weight, pass->model->hparams.norm_eps);
}

static wick_tensor *scan_channels(const wk_pass *pass, uint32_t index, wick_tensor *x) {
    const wk_layer *const layer = &pass->model->layers[index];
    const wk_recurrent_spec *const spec = &layer->spec.recurrent;
    const int64_t n_rows = pass->batch->layout.n_rows, n_channels = spec->head_dim;
    const int64_t n = spec->n_numbers, rank = spec->step_rank;
    const wick_shape heads = WICK_SHAPE(n_rows, 1, n_channels);
    wick_tensor *const all = wk_project(pass, layer, WK_SSM_X, x);
    wick_tensor *const step = wk_project(
        pass, layer, WK_SSM_DT,
        normed(pass, index, wick_narrow(all, 1, 0, rank), layer->weight[WK_SSM_DT_NORM]));
    wick_tensor *bc =
        normed(pass, index,
               wick_reshape(wick_narrow(all, 1, rank, 2 * n), WICK_SHAPE(n_rows, 2, 1, n)), NULL);
    if (spec->has_norm_weights) {
        wick_tensor *const both[] = {layer->weight[WK_SSM_B_NORM], layer->weight[WK_SSM_C_NORM]};
        bc = wick_mul(bc, wick_reshape(wick_cat(both, 2, 0), WICK_SHAPE(2, 1, n)));
    }
    const wk_scan_rows rows = {
        .x = wick_reshape(x, heads),
        .step = wick_reshape(wick_softplus(step), heads),
        .gate = wick_unsqueeze(layer->weight[WK_SSM_A], 0),
        .bc = bc,
    };
    wick_tensor *const y = wk_scan_layer(pass, index, &rows, WK_SCAN_SELECTIVE, 1);
    return add_input(layer, wick_reshape(y, WICK_SHAPE(n_rows, n_channels)), x);
}

/* x: of all channels, then b and c. */
static wick_tensor *scan_heads(const wk_pass *pass, uint32_t index, wick_tensor *x,
                               wick_tensor *step) {
    const wk_layer *const layer = &pass->model->layers[index];
    const wk_recurrent_spec *const spec = &layer->spec.recurrent;
    const int64_t n_rows = pass->batch->layout.n_rows, n_heads = spec->n_heads;
    const int64_t dim = spec->head_dim, inner = n_heads * dim;
    const int64_t n_groups = spec->n_groups, n = spec->n_numbers;
    const wk_scan_rows rows = {
        .x = wick_reshape(wick_narrow(x, 1, 0, inner), WICK_SHAPE(n_rows, n_heads, dim)),
        .step = wick_unsqueeze(wk_head_steps(layer, step), 2),
        .gate = wick_unsqueeze(layer->weight[WK_SSM_A], 2),
        .bc = wick_reshape(wick_narrow(x, 1, inner, 2 * n_groups * n),
                           WICK_SHAPE(n_rows, 2, n_groups, n)),
    };
    wick_tensor *const y = wk_scan_layer(pass, index, &rows, WK_SCAN_SELECTIVE, 1);
    return wick_reshape(add_input(layer, y, rows.x), WICK_SHAPE(n_rows, inner));
}

/* The channels of each group are normed together. */
static wick_tensor *norm_groups(const wk_pass *pass, uint32_t index, wick_tensor *y) {
    const wk_layer *const layer = &pass->model->layers[index];
    const wk_recurrent_spec *const spec = &layer->spec.recurrent;
    const int64_t n_rows = pass->batch->layout.n_rows;
    const int64_t inner = (int64_t)spec->n_heads * spec->head_dim;
    wick_tensor *const groups =
        wick_reshape(y, WICK_SHAPE(n_rows, spec->n_groups, inner / spec->n_groups));
    wick_tensor *const normed = wick_rms_norm(groups, NULL, pass->model->hparams.norm_eps);
    return wick_reshape(wick_mul(normed, layer->weight[WK_SSM_NORM]), WICK_SHAPE(n_rows, inner));
}

wick_tensor *wk_mixer_state_space(const wk_pass *pass, uint32_t index, wick_tensor *x) {
    const wk_layer *const layer = &pass->model->layers[index];
    const wk_recurrent_spec *const spec = &layer->spec.recurrent;
    const int64_t inner = (int64_t)spec->n_heads * spec->head_dim, n_channels = spec->n_channels;
    wick_tensor *const all = wk_project(pass, layer, WK_SSM_IN, x);
    if (spec->step_rank > 0) {
        wick_tensor *const y =
            scan_channels(pass, index, convolved(pass, index, wick_narrow(all, 1, 0, inner)));
        return wk_project(pass, layer, WK_SSM_OUT,
                          wick_swiglu(wick_narrow(all, 1, inner, inner), y));
    }
    wick_tensor *const input = convolved(pass, index, wick_narrow(all, 1, inner, n_channels));
    wick_tensor *const y =
        scan_heads(pass, index, input, wick_narrow(all, 1, inner + n_channels, spec->n_heads));
    wick_tensor *const gated = wick_swiglu(wick_narrow(all, 1, 0, inner), y);
    return wk_project(pass, layer, WK_SSM_OUT,
                      spec->is_unnormed ? gated : norm_groups(pass, index, gated));
}
