/* ops/reduce.c: argmax and softmax along one dimension, whichever it is: the views that the kernels
 * see have it last. */
#include <wick/ops.h>

#include "ops/operand.h"
#include "ops/view.h"

wick_tensor *wick_argmax(wick_tensor *x, int dim, bool keepdim) {
    if (!x) return NULL;
    int resolved;
    if (!wk_operand_is_number("argmax", x) || !wk_operand_is_strided("argmax", x)) return NULL;
    if (!wk_operand_dim("argmax", x, dim, &resolved)) return NULL;
    if (x->view.extent[resolved] == 0) {
        wk_device_fail(x->device, WICK_ERR_SHAPE, "argmax: dim %d is empty", dim);
        return NULL;
    }
    wk_view view;
    wk_view_move_last(&x->view, resolved, &view);
    wick_shape shape = {.rank = view.rank - 1};
    for (int i = 0; i < shape.rank; i++) shape.extent[i] = view.extent[i];
    wick_tensor *y = wk_tensor_new(x->device, WICK_U32, &shape);
    wk_call call;
    wk_call_begin(&call, WK_OP_REDUCE);
    wk_call_add(&call, y, NULL);
    wk_call_add(&call, x, &view);
    call.op.p.reduce.fn = WK_REDUCE_ARGMAX;
    y = wk_queue_result(&call, y);
    /* Nobody else has seen the new tensor yet. */
    if (y && keepdim) wk_view_insert(&y->view, resolved, &y->view);
    return y;
}

wick_tensor *wick_softmax(wick_tensor *x, int dim) {
    if (!x) return NULL;
    int resolved;
    if (!wk_operand_is_float("softmax", x) || !wk_operand_is_strided("softmax", x)) return NULL;
    if (!wk_operand_dim("softmax", x, dim, &resolved)) return NULL;
    const wick_shape shape = wk_tensor_shape_of(x);
    wick_tensor *y = wk_tensor_new(x->device, x->view.dtype, &shape);
    if (!y) return NULL;
    wk_view view_x, view_y;
    wk_view_move_last(&x->view, resolved, &view_x);
    wk_view_move_last(&y->view, resolved, &view_y);
    wk_call call;
    wk_call_begin(&call, WK_OP_SOFTMAX);
    wk_call_add(&call, y, &view_y);
    wk_call_add(&call, x, &view_x);
    return wk_queue_result(&call, y);
}
