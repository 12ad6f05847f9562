/* model/mixer_delta_net.c: gated delta net (Yang et al., 2024): linear attention that replaces what
 * its memory has under a key, and forgets. */
#include "model/model_struct.h"
#include "model/recurrent.h"

#include <wick/ops.h>

#include <math.h>

/* How much of a value is taken, and how fast the past fades: beta and alpha, [rows, n_heads] each,
 * before their functions. */
typedef struct gates {
    wick_tensor *beta, *alpha;
} gates;

/* Fused: for each key head those of its value heads, beta, then alpha. */
static gates project_gates(const wk_pass *pass, const wk_layer *layer, wick_tensor *x,
                           int64_t n_rows) {
    const wk_recurrent_spec *const spec = &layer->spec.recurrent;
    if (!spec->is_fused)
        return (gates){wk_project(pass, layer, WK_SSM_BETA, x),
                       wk_project(pass, layer, WK_SSM_ALPHA, x)};
    const int64_t n_groups = spec->n_groups, n_heads = spec->n_heads, ratio = n_heads / n_groups;
    wick_tensor *const both = wick_reshape(wk_project(pass, layer, WK_SSM_BA, x),
                                           WICK_SHAPE(n_rows, n_groups, 2 * ratio));
    const wick_shape heads = WICK_SHAPE(n_rows, n_heads);
    return (gates){wick_reshape(wick_narrow(both, 2, 0, ratio), heads),
                   wick_reshape(wick_narrow(both, 2, ratio, ratio), heads)};
}

/* x / sqrt(|x|^2 + 1e-6) of every query and key. */
static wick_tensor *normalize(wick_tensor *x, int64_t n) {
    const double eps = 1e-6;
    return wick_affine(wick_rms_norm(x, NULL, (float)(eps / (double)n)), 1 / sqrt((double)n), 0);
}

wick_tensor *wk_mixer_delta_net(const wk_pass *pass, uint32_t index, wick_tensor *x) {
    const wk_layer *const layer = &pass->model->layers[index];
    const wk_recurrent_spec *const spec = &layer->spec.recurrent;
    const int64_t n_rows = pass->batch->layout.n_rows, n_heads = spec->n_heads;
    const int64_t dim = spec->head_dim, n_groups = spec->n_groups, n = spec->n_numbers;
    const gates raw = project_gates(pass, layer, x, n_rows);
    wick_tensor *const qkv =
        wick_silu(wk_convolve(pass, index, wk_project(pass, layer, WK_DELTA_QKV, x),
                              layer->weight[WK_SSM_CONV], layer->weight[WK_SSM_CONV_BIAS]));
    wick_tensor *const qk =
        wick_reshape(wick_narrow(qkv, 1, 0, 2 * n_groups * n), WICK_SHAPE(n_rows, 2, n_groups, n));
    wick_tensor *const v = wick_narrow(qkv, 1, 2 * n_groups * n, n_heads * dim);
    wick_tensor *const decay = wick_mul(wk_head_steps(layer, raw.alpha), layer->weight[WK_SSM_A]);
    const wk_scan_rows rows = {
        .x = wick_reshape(v, WICK_SHAPE(n_rows, n_heads, dim)),
        .step = wick_unsqueeze(decay, 2),
        .gate = wick_unsqueeze(wick_sigmoid(raw.beta), 2),
        .bc = normalize(qk, n),
    };
    wick_tensor *const y =
        wk_scan_layer(pass, index, &rows, WK_SCAN_DELTA, (float)(1 / sqrt((double)n)));
    wick_tensor *const normed =
        wick_reshape(wick_rms_norm(y, layer->weight[WK_SSM_NORM], pass->model->hparams.norm_eps),
                     WICK_SHAPE(n_rows, n_heads * dim));
    return wk_project(pass, layer, WK_SSM_OUT,
                      wick_swiglu(wk_project(pass, layer, WK_DELTA_GATE, x), normed));
}
