/* model/mixer_convolution.c: gated short convolution (LFM2: Liquid AI, 2025). */
#include "model/model_struct.h"
#include "model/recurrent.h"

#include <wick/ops.h>

wick_tensor *wk_mixer_convolution(const wk_pass *pass, uint32_t index, wick_tensor *x) {
    const wk_layer *const layer = &pass->model->layers[index];
    const int64_t n = layer->spec.recurrent.n_channels;
    wick_tensor *const all = wk_project(pass, layer, WK_SHORTCONV_IN, x);
    wick_tensor *const before = wick_narrow(all, 1, 0, n), *const after = wick_narrow(all, 1, n, n);
    wick_tensor *const input = wick_mul(before, wick_narrow(all, 1, 2 * n, n));
    wick_tensor *const y = wk_convolve(pass, index, input, layer->weight[WK_SHORTCONV_CONV], NULL);
    return wk_project(pass, layer, WK_SHORTCONV_OUT, wick_mul(after, y));
}
