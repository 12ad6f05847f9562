/* model/mlp.c: the gated feed-forward part of a layer (SwiGLU: Shazeer, 2020). */
#include "model/model_struct.h"

#include <wick/ops.h>

wick_tensor *wk_mlp(const wk_model *model, const wk_layer *layer, wick_tensor *hidden) {
    wick_tensor *const *const weight = layer->weight;
    wick_tensor *const x = wick_rms_norm(hidden, weight[WK_FFN_NORM], model->hparams.norm_eps);
    wick_tensor *const gate = wick_linear(x, weight[WK_FFN_GATE], weight[WK_FFN_GATE_BIAS]);
    wick_tensor *const up = wick_linear(x, weight[WK_FFN_UP], weight[WK_FFN_UP_BIAS]);
    return wick_linear(wick_swiglu(gate, up), weight[WK_FFN_DOWN], weight[WK_FFN_DOWN_BIAS]);
}
