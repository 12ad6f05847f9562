/* model/experts.c: mixtures of experts (Shazeer et al., 2017): a router chooses some of many
 * feed-forward parts for each row and weighs what they give; shared ones (Dai et al., 2024) see
 * every row. */
#include "model/model_struct.h"

#include <wick/ops.h>

#include <math.h>

/* [rows, experts] */
static wick_tensor *route(const wk_experts_spec *spec, wick_tensor *logits) {
    switch (spec->gating) {
    case WK_GATING_SOFTMAX: return wick_softmax(logits, 1);
    case WK_GATING_SIGMOID: return wick_sigmoid(logits);
    case WK_GATING_SOFTMAX_OF_CHOSEN: return logits;
    }
    return NULL;
}

/* Scores with -infinity for the experts outside the n_groups_used best groups; a group counts by
 * its best expert (DeepSeek-AI, 2024: V2), with a selection bias by its two best (V3). */
static wick_tensor *keep_best_groups(const wk_experts_spec *spec, wick_tensor *scores) {
    const int64_t n = spec->n_experts, n_groups = spec->n_groups, n_kept = spec->n_groups_used;
    if (n_kept >= n_groups) return scores;
    const int64_t size = n / n_groups, n_best = spec->has_selection_bias && size > 1 ? 2 : 1;
    wick_tensor *const grouped = wick_reshape(scores, WICK_SHAPE(-1, n_groups, size));
    wick_tensor *const sums =
        wick_sum(wick_top_k(grouped, n_best, 2, NULL), 1, (const int[]){2}, true);
    wick_tensor *const least = wick_narrow(wick_top_k(sums, n_kept, 1, NULL), 1, n_kept - 1, 1);
    wick_tensor *const none =
        sums ? wick_full(wick_tensor_device(sums), WICK_F32, WICK_SHAPE(1), -(double)INFINITY)
             : NULL;
    return wick_reshape(wick_where(wick_ge(sums, least), grouped, none), WICK_SHAPE(-1, n));
}

/* Elements ids [rows, n] of the rows of x [rows, experts]. */
static wick_tensor *pick(wick_tensor *x, wick_tensor *ids) {
    if (!x || !ids) return NULL;
    const wick_shape shape = wick_tensor_shape(x);
    const double n = (double)shape.extent[1], end = n * (double)shape.extent[0];
    wick_tensor *const begins = wick_arange(wick_tensor_device(x), WICK_U32, 0, end, n);
    wick_tensor *const at = wick_add(ids, wick_unsqueeze(begins, 1));
    return wick_squeeze(wick_embedding(wick_reshape(x, WICK_SHAPE(-1, 1)), at), 2);
}

static wick_tensor *divided_by_sum(wick_tensor *x) {
    return wick_div(x, wick_sum(x, 1, (const int[]){1}, true));
}

/* The experts of each row and their weights, both [rows, n_used]. */
static wick_tensor *choose(const wk_pass *pass, const wk_layer *layer, wick_tensor *x,
                           wick_tensor **ids) {
    const wk_experts_spec *const spec = &layer->spec.experts;
    wick_tensor *const gates = route(spec, wk_project(pass, layer, WK_FFN_GATE_INP, x));
    wick_tensor *scores = gates;
    if (spec->has_selection_bias) scores = wick_add(gates, layer->weight[WK_EXP_PROBS_BIAS]);
    scores = keep_best_groups(spec, scores);
    wick_tensor *weights = wick_top_k(scores, spec->n_used, 1, ids);
    if (spec->has_selection_bias) weights = pick(gates, *ids);
    if (spec->gating == WK_GATING_SOFTMAX_OF_CHOSEN) weights = wick_softmax(weights, 1);
    if (spec->is_normalized) weights = divided_by_sum(weights);
    return wk_scaled(weights, spec->scale);
}

static wick_tensor *product(const wk_layer *layer, wk_layer_weight weight, wick_tensor *x,
                            wick_tensor *ids) {
    return wick_linear_experts(x, layer->weight[weight], layer->bias[weight], ids);
}

/* Each row through its experts: [rows, n_used, n_embd]. */
static wick_tensor *run_chosen(const wk_layer *layer, wick_tensor *x, wick_tensor *ids) {
    const wk_experts_spec *const spec = &layer->spec.experts;
    wick_tensor *y;
    if (spec->is_fused) {
        wick_tensor *const both = product(layer, WK_FFN_GATE_UP_EXPS, x, ids);
        y = wk_activate_both(spec->activation, both, spec->n_ff);
    } else if (spec->is_ungated) {
        y = wk_activate(spec->activation, product(layer, WK_FFN_UP_EXPS, x, ids));
    } else {
        wick_tensor *const gate = product(layer, WK_FFN_GATE_EXPS, x, ids);
        y = wk_activate_gated(spec->activation, gate, product(layer, WK_FFN_UP_EXPS, x, ids));
    }
    return product(layer, WK_FFN_DOWN_EXPS, y, ids);
}

static wick_tensor *run_shared(const wk_pass *pass, const wk_layer *layer, wick_tensor *x) {
    const wk_experts_spec *const spec = &layer->spec.experts;
    const bool has_gate = !spec->is_ungated && !spec->is_shared_fused;
    wick_tensor *const gate = has_gate ? wk_project(pass, layer, WK_FFN_GATE_SHEXP, x) : NULL;
    wick_tensor *const up = wk_project(pass, layer, WK_FFN_UP_SHEXP, x);
    wick_tensor *y;
    if (spec->is_shared_fused)
        y = wk_activate_both(spec->activation, up, spec->n_ff_shared);
    else if (spec->is_ungated)
        y = wk_activate(spec->activation, up);
    else
        y = wk_activate_gated(spec->activation, gate, up);
    y = wk_project(pass, layer, WK_FFN_DOWN_SHEXP, y);
    if (!spec->is_shared_gated) return y;
    return wick_mul(y, wick_sigmoid(wk_project(pass, layer, WK_FFN_GATE_INP_SHEXP, x)));
}

wick_tensor *wk_experts(const wk_pass *pass, const wk_layer *layer, wick_tensor *x,
                        wick_tensor *begin) {
    const wk_experts_spec *const spec = &layer->spec.experts;
    wick_tensor *ids = NULL, *y;
    wick_tensor *const routed = spec->is_routed_early ? begin : x;
    wick_tensor *const weights = choose(pass, layer, routed, &ids);
    if (spec->is_input_weighted) {
        wick_tensor *const weighted = wick_mul(wick_unsqueeze(x, 1), wick_unsqueeze(weights, 2));
        y = wick_sum(run_chosen(layer, weighted, ids), 1, (const int[]){1}, false);
    } else {
        /* The weighted sum over the experts of a row is a product of its own. */
        y = wick_squeeze(wick_matmul(wick_unsqueeze(weights, 1), run_chosen(layer, x, ids)), 1);
    }
    if (spec->n_ff_shared == 0) return y;
    return wk_scaled(wick_add(y, run_shared(pass, layer, x)), spec->is_mean ? 0.5F : 1.0F);
}
