/* model/mlp.c: the feed-forward part of a layer, with a gate (Shazeer, 2020) or without. */
#include "model/model_struct.h"

#include <wick/ops.h>

wick_tensor *wk_activate(wk_activation activation, wick_tensor *x) {
    switch (activation) {
    case WK_ACTIVATION_SILU: return wick_silu(x);
    case WK_ACTIVATION_GELU: return wick_gelu(x);
    case WK_ACTIVATION_GELU_ERF: return wick_gelu_erf(x);
    case WK_ACTIVATION_RELU: return wick_relu(x);
    case WK_ACTIVATION_RELU_SQUARED: return wick_relu_squared(x);
    case WK_ACTIVATION_SILU_CLAMPED: /* of two operands only */
    case WK_ACTIVATION_XIELU: break; /* has numbers of its own */
    }
    return NULL;
}

wick_tensor *wk_activate_gated(wk_activation activation, wick_tensor *gate, wick_tensor *up) {
    switch (activation) {
    case WK_ACTIVATION_SILU: return wick_swiglu(gate, up);
    case WK_ACTIVATION_GELU: return wick_geglu(gate, up);
    case WK_ACTIVATION_GELU_ERF: return wick_geglu_erf(gate, up);
    case WK_ACTIVATION_RELU: return wick_reglu(gate, up);
    case WK_ACTIVATION_RELU_SQUARED: return wick_mul(wick_relu_squared(gate), up);
    case WK_ACTIVATION_SILU_CLAMPED: return wick_swiglu_clamped(gate, up, 1.702, 7);
    case WK_ACTIVATION_XIELU: break; /* of one operand only */
    }
    return NULL;
}

wick_tensor *wk_activate_both(wk_activation activation, wick_tensor *both, int64_t n) {
    return wk_activate_gated(activation, wick_narrow(both, -1, 0, n), wick_narrow(both, -1, n, n));
}

/* Above 0 elu(x) - x is 0. */
static wick_tensor *xielu(const wk_mlp_spec *spec, wick_tensor *x) {
    wick_tensor *const curved = wick_add(wick_affine(wick_relu_squared(x), spec->above, 0.0),
                                         wick_affine(wick_elu(x, 1.0), spec->below, 0.0));
    return wick_add(curved, wick_affine(x, spec->slope - spec->below, 0.0));
}

wick_tensor *wk_mlp(const wk_pass *pass, const wk_layer *layer, wick_tensor *x) {
    const wk_mlp_spec *const spec = &layer->spec.mlp;
    wick_tensor *const gate =
        spec->is_gated && !spec->is_fused ? wk_project(pass, layer, WK_FFN_GATE, x) : NULL;
    wick_tensor *const up = wk_project(pass, layer, WK_FFN_UP, x);
    wick_tensor *y;
    if (spec->is_fused)
        y = wk_activate_both(spec->activation, up, spec->n_ff);
    else if (spec->is_gated)
        y = wk_activate_gated(spec->activation, gate, up);
    else if (spec->activation == WK_ACTIVATION_XIELU)
        y = xielu(spec, up);
    else
        y = wk_activate(spec->activation, up);
    y = wk_norm_at(pass, layer, WK_CHANNELS_INNER, y);
    return wk_project(pass, layer, WK_FFN_DOWN, y);
}
