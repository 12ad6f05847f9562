/* ops/route.c: mixtures of experts: which expert a row goes to, and the rows through them. */
#include <wick/nn.h>

#include "core/shape.h"
#include "ops/compose.h"

#include <inttypes.h>

/* --- Routing --- */

static bool check_route(wick_tensor *logits, wick_tensor *bias, const wick_moe_route_desc *desc) {
    static const char name[] = "moe_route";
    if (!wk_operands_are_floats(name, (wick_tensor *[]){logits, bias}, 1, 2) ||
        !wk_operand_rank(name, "logits", logits, 2, 2) ||
        !wk_operand_is_vector(name, "bias", bias, logits->view.extent[1]))
        return false;
    const int64_t k = desc ? desc->top_k : 0;
    if (k < 1 || k > logits->view.extent[1]) {
        wk_device_fail(logits->device, WICK_ERR_VALUE,
                       "%s: top_k is %" PRId64 " of %" PRId64 " experts", name, k,
                       logits->view.extent[1]);
        return false;
    }
    if (!desc->is_topk_first || !desc->is_sigmoid) return true;
    wk_device_fail(logits->device, WICK_ERR_VALUE,
                   "%s: is_topk_first takes a softmax of the chosen logits: without is_sigmoid",
                   name);
    return false;
}

static wick_tensor *score_of(wick_tensor *logits, const wick_moe_route_desc *desc) {
    if (desc->is_topk_first) return logits;
    return desc->is_sigmoid ? wick_sigmoid(logits) : wick_softmax(logits, 1);
}

wick_tensor *wick_moe_route(wick_tensor *logits, wick_tensor *bias, const wick_moe_route_desc *desc,
                            wick_tensor **ids) {
    if (ids) *ids = NULL;
    if (!check_route(logits, bias, desc)) return NULL;
    const wick_scope scope = wk_operation_begin(logits->device, "moe_route");
    wick_tensor *const score = score_of(wk_widened(logits), desc);
    wick_tensor *const ranked = bias ? wick_add(score, wk_widened(bias)) : score;
    wick_tensor *chosen = NULL;
    wick_tensor *weights = wick_top_k(ranked, desc->top_k, 1, &chosen);
    if (bias) weights = wick_gather(score, 1, chosen);
    if (desc->is_topk_first) weights = wick_softmax(weights, 1);
    if (desc->renormalizes)
        weights = wick_div(weights, wick_sum(weights, 1, (const int[]){1}, true));
    if (desc->scale != 0 && desc->scale != 1 && weights)
        weights = wick_affine(weights, desc->scale, 0);
    weights = wk_promoted(weights, logits->view.dtype);
    if (ids && weights) *ids = wk_scope_keep(scope, chosen);
    return wick_scope_result(scope, weights);
}

/* --- Experts --- */

static const char ffn[] = "moe_ffn";

static bool misfit(const char *name, const wick_tensor *x, const wick_tensor *weight) {
    const wick_shape shape = wk_tensor_shape_of(weight), shape_x = wk_tensor_shape_of(x);
    char text[2][WK_SHAPE_TEXT];
    wk_device_fail(x->device, WICK_ERR_SHAPE, "%s: %s %s does not fit x %s and the others", ffn,
                   name, wk_shape_text(&shape, text[0], sizeof text[0]),
                   wk_shape_text(&shape_x, text[1], sizeof text[1]));
    return false;
}

/* weight [.., out, in], and experts of them where it has rank 3. */
static bool check_weight(const char *name, const wick_tensor *x, const wick_tensor *weight,
                         int rank, int64_t experts, int64_t out, int64_t in) {
    if (!wk_operand_is_weight(ffn, weight, rank)) return false;
    const int64_t *const extent = weight->view.extent;
    const bool fits =
        extent[rank - 2] == out && extent[rank - 1] == in && (rank == 2 || extent[0] == experts);
    return fits || misfit(name, x, weight);
}

/* The three weights of the experts (rank 3) or of the shared one (rank 2). */
static bool check_weights(const wick_tensor *x, const wick_tensor *gate, const wick_tensor *up,
                          const wick_tensor *down, int rank) {
    if (!wk_operand_is_weight(ffn, gate, rank)) return false;
    const int64_t d = x->view.extent[1], e = gate->view.extent[0];
    const int64_t inner = gate->view.extent[rank - 2];
    return check_weight("gate", x, gate, rank, e, inner, d) &&
           check_weight("up", x, up, rank, e, inner, d) &&
           check_weight("down", x, down, rank, e, d, inner);
}

static bool check_routes(const wick_tensor *x, const wick_tensor *route_weights,
                         const wick_tensor *ids) {
    if (ids->view.dtype != WICK_U32) {
        wk_device_fail(x->device, WICK_ERR_DTYPE, "%s: ids are u32, not %s", ffn,
                       wick_dtype_name(ids->view.dtype));
        return false;
    }
    if (!wk_operand_rank(ffn, "ids", ids, 2, 2)) return false;
    return ids->view.extent[0] == x->view.extent[0]
               ? wk_operands_same_shape(ffn, route_weights, ids)
               : misfit("ids", x, ids);
}

static bool check_ffn(wick_tensor *x, wick_tensor *route_weights, wick_tensor *ids,
                      const wick_moe_weights *w) {
    if (!wk_operands_are_floats(ffn, (wick_tensor *[]){x, route_weights}, 2, 2)) return false;
    if (!w) {
        wk_device_fail(x->device, WICK_ERR_ARGUMENT, "%s: there are no weights", ffn);
        return false;
    }
    const int n_shared = !!w->shared_gate + !!w->shared_up + !!w->shared_down;
    wick_tensor *const all[] = {
        x, ids, w->gate, w->up, w->down, w->shared_gate, w->shared_up, w->shared_down};
    if (n_shared % 3 != 0) {
        wk_device_fail(x->device, WICK_ERR_ARGUMENT,
                       "%s: a shared expert has three weights, not %d", ffn, n_shared);
        return false;
    }
    return wk_operands_present(ffn, all, n_shared > 0 ? 8 : 5) &&
           wk_operand_rank(ffn, "x", x, 2, 2) && check_routes(x, route_weights, ids) &&
           check_weights(x, w->gate, w->up, w->down, 3) &&
           (n_shared == 0 || check_weights(x, w->shared_gate, w->shared_up, w->shared_down, 2));
}

/* [t, d]: each row's experts, weighed. */
static wick_tensor *sum_of_experts(wick_tensor *x, wick_tensor *route_weights, wick_tensor *ids,
                                   const wick_moe_weights *w) {
    wick_tensor *const gate = wick_linear_experts(x, w->gate, NULL, ids);
    wick_tensor *const up = wick_linear_experts(x, w->up, NULL, ids);
    wick_tensor *const each = wick_linear_experts(wick_swiglu(gate, up), w->down, NULL, ids);
    wick_tensor *const weighed = wick_mul(each, wick_unsqueeze(route_weights, 2));
    return wick_sum(weighed, 1, (const int[]){1}, false);
}

wick_tensor *wick_moe_ffn(wick_tensor *x, wick_tensor *route_weights, wick_tensor *ids,
                          const wick_moe_weights *weights) {
    if (!check_ffn(x, route_weights, ids, weights)) return NULL;
    const wick_scope scope = wk_operation_begin(x->device, "moe_ffn");
    wick_tensor *const wide = wk_widened(x);
    wick_tensor *y = sum_of_experts(wide, wk_widened(route_weights), ids, weights);
    if (weights->shared_gate) {
        wick_tensor *const inner = wick_swiglu(wick_linear(wide, weights->shared_gate, NULL),
                                               wick_linear(wide, weights->shared_up, NULL));
        y = wick_add(y, wick_linear(inner, weights->shared_down, NULL));
    }
    return wick_scope_result(scope, wk_promoted(y, x->view.dtype));
}
