/* ops/gated.c: gated units: a function of one tensor times another. */
#include <wick/ops.h>

#include "core/shape.h"
#include "ops/operand.h"

#include <math.h>

static wick_tensor *gated(const char *op, const wk_params *params, wick_tensor *gate,
                          wick_tensor *up) {
    if (!wk_operands_present(op, (wick_tensor *[]){gate, up}, 2)) return NULL;
    if (!wk_operand_is_float(op, gate) || !wk_operands_same_dtype(op, gate, up)) return NULL;
    if (!wk_operand_is_strided(op, gate) || !wk_operand_is_strided(op, up)) return NULL;
    const wick_shape shape = wk_tensor_shape_of(gate), shape_up = wk_tensor_shape_of(up);
    if (!wk_shape_equal(&shape, &shape_up)) {
        char text[2][WK_SHAPE_TEXT];
        wk_device_fail(gate->device, WICK_ERR_SHAPE, "%s: gate is %s, but up is %s", op,
                       wk_shape_text(&shape, text[0], sizeof text[0]),
                       wk_shape_text(&shape_up, text[1], sizeof text[1]));
        return NULL;
    }
    wick_tensor *y = wk_tensor_new(gate->device, gate->view.dtype, &shape);
    wk_call call;
    wk_call_begin(&call, WK_OP_GATED, op);
    wk_call_add(&call, y, NULL);
    wk_call_add(&call, gate, NULL);
    wk_call_add(&call, up, NULL);
    call.op.p = *params;
    return wk_queue_result(&call, y);
}

wick_tensor *wick_swiglu(wick_tensor *gate, wick_tensor *up) {
    return gated("swiglu", &(wk_params){.gated.fn = WK_GATED_SWIGLU}, gate, up);
}

wick_tensor *wick_geglu(wick_tensor *gate, wick_tensor *up) {
    return gated("geglu", &(wk_params){.gated.fn = WK_GATED_GEGLU}, gate, up);
}

wick_tensor *wick_geglu_erf(wick_tensor *gate, wick_tensor *up) {
    return gated("geglu_erf", &(wk_params){.gated.fn = WK_GATED_GEGLU_ERF}, gate, up);
}

wick_tensor *wick_reglu(wick_tensor *gate, wick_tensor *up) {
    return gated("reglu", &(wk_params){.gated.fn = WK_GATED_REGLU}, gate, up);
}

wick_tensor *wick_swiglu_clamped(wick_tensor *gate, wick_tensor *up, double alpha, double limit) {
    if (gate && (!isfinite(alpha) || !(limit >= 0))) {
        wk_device_fail(gate->device, WICK_ERR_VALUE, "swiglu_clamped: alpha %g, limit %g", alpha,
                       limit);
        return NULL;
    }
    const wk_params params = {
        .gated = {.fn = WK_GATED_SWIGLU_CLAMPED, .alpha = alpha, .limit = limit}};
    return gated("swiglu_clamped", &params, gate, up);
}
