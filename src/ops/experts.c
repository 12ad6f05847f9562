/* ops/experts.c: products of rows with a weight chosen for each. */
#include <wick/ops.h>

#include "core/shape.h"
#include "ops/operand.h"

static const char name[] = "linear_experts";

static bool refuse(const wick_tensor *operand, const char *what, const wick_tensor *x,
                   const char *with) {
    const wick_shape shape_x = wk_tensor_shape_of(x), shape = wk_tensor_shape_of(operand);
    char text[2][WK_SHAPE_TEXT];
    wk_device_fail(x->device, WICK_ERR_SHAPE, "%s: %s %s does not fit %s %s", name, what,
                   wk_shape_text(&shape, text[0], sizeof text[0]), with,
                   wk_shape_text(&shape_x, text[1], sizeof text[1]));
    return false;
}

static bool check_x(const wick_tensor *x, const wick_tensor *weight) {
    if (!wk_operand_is_float(name, x) || !wk_operand_is_strided(name, x)) return false;
    if (!wk_operand_is_weight(name, weight, 3)) return false;
    const int rank = x->view.rank;
    const bool fits =
        (rank == 2 || rank == 3) && weight->view.extent[2] == x->view.extent[rank - 1];
    return fits || refuse(weight, "weight", x, "x");
}

static bool check_bias(const wick_tensor *weight, const wick_tensor *bias) {
    if (!bias) return true;
    if (!wk_operand_is_float(name, bias) || !wk_operand_is_strided(name, bias)) return false;
    const bool fits = bias->view.rank == 2 && bias->view.extent[0] == weight->view.extent[0] &&
                      bias->view.extent[1] == weight->view.extent[1];
    return fits || refuse(bias, "bias", weight, "weight");
}

static bool check_ids(const wick_tensor *x, const wick_tensor *ids) {
    const wk_view *const view = &ids->view;
    if (view->dtype != WICK_U32) {
        wk_device_fail(x->device, WICK_ERR_DTYPE, "%s: ids are u32, not %s", name,
                       wick_dtype_name(view->dtype));
        return false;
    }
    const bool fits = view->rank == 2 && view->extent[0] == x->view.extent[0] &&
                      (x->view.rank == 2 || view->extent[1] == x->view.extent[1]);
    return fits || refuse(ids, "ids", x, "x");
}

/* x as [m, u, k]: the same row for all u where it has none of its own. */
static wk_view with_uses(const wick_tensor *x, int64_t u) {
    wk_view view = x->view;
    if (view.rank == 3) return view;
    view.rank = 3;
    view.extent[2] = view.extent[1];
    view.stride[2] = view.stride[1];
    view.extent[1] = u;
    view.stride[1] = 0;
    return view;
}

wick_tensor *wick_linear_experts(wick_tensor *x, wick_tensor *weight, wick_tensor *bias,
                                 wick_tensor *ids) {
    if (!wk_operands_present(name, (wick_tensor *[]){x, weight, ids, bias}, bias ? 4 : 3))
        return NULL;
    if (!check_x(x, weight) || !check_bias(weight, bias) || !check_ids(x, ids)) return NULL;
    const int64_t u = ids->view.extent[1];
    const wick_shape shape = {.rank = 3, .extent = {x->view.extent[0], u, weight->view.extent[1]}};
    const wk_view rows = with_uses(x, u);
    wick_tensor *const y = wk_tensor_new(x->device, x->view.dtype, &shape);
    wk_call call;
    wk_call_begin(&call, WK_OP_LINEAR_EXPERTS, name);
    wk_call_add(&call, y, NULL);
    wk_call_add(&call, x, &rows);
    wk_call_add(&call, weight, NULL);
    wk_call_add(&call, bias, NULL);
    wk_call_add(&call, ids, NULL);
    call.op.p.linear.fast = wick_device_math(x->device) == WICK_MATH_FAST;
    return wk_queue_result(&call, y);
}
