/* ops/norm.c: normalisation over the last dimension. */
#include <wick/ops.h>

#include "core/shape.h"
#include "ops/operand.h"

#include <math.h>

static bool check_weight(const wick_tensor *x, const wick_tensor *weight) {
    if (!wk_operand_is_float("rms_norm", weight)) return false;
    if (!wk_operand_is_strided("rms_norm", weight)) return false;
    if (weight->view.rank == 1 && weight->view.extent[0] == x->view.extent[x->view.rank - 1]) {
        return true;
    }
    const wick_shape shape_x = wk_tensor_shape_of(x), shape = wk_tensor_shape_of(weight);
    char text[2][WK_SHAPE_TEXT];
    wk_device_fail(x->device, WICK_ERR_SHAPE, "rms_norm: weight %s does not fit x %s",
                   wk_shape_text(&shape, text[0], sizeof text[0]),
                   wk_shape_text(&shape_x, text[1], sizeof text[1]));
    return false;
}

wick_tensor *wick_rms_norm(wick_tensor *x, wick_tensor *weight, float eps) {
    if (!wk_operands_present("rms_norm", (wick_tensor *[]){x, weight}, weight ? 2 : 1)) {
        return NULL;
    }
    if (!wk_operand_is_float("rms_norm", x) || !wk_operand_is_strided("rms_norm", x)) return NULL;
    if (x->view.rank == 0) {
        wk_device_fail(x->device, WICK_ERR_SHAPE, "rms_norm: x has rank 0");
        return NULL;
    }
    if (weight && !check_weight(x, weight)) return NULL;
    if (!(eps >= 0) || isinf(eps)) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "rms_norm: eps %g", (double)eps);
        return NULL;
    }
    const wick_shape shape = wk_tensor_shape_of(x);
    wick_tensor *y = wk_tensor_new(x->device, x->view.dtype, &shape);
    wk_call call;
    wk_call_begin(&call, WK_OP_RMS_NORM);
    wk_call_add(&call, y, NULL);
    wk_call_add(&call, x, NULL);
    wk_call_add(&call, weight, NULL);
    call.op.p.norm.eps = eps;
    return wk_queue_result(&call, y);
}
