/* ops/order.c: running sums and products, and sorting, along a dimension. */
#include <wick/ops.h>

#include "ops/operand.h"
#include "ops/view.h"

/* y = the call's op over x, the dimension last in both. */
static wick_tensor *along(wk_call *call, wick_tensor *x, int dim, wick_dtype dtype) {
    const wick_shape shape = wk_tensor_shape_of(x);
    wick_tensor *const y = wk_tensor_new(x->device, dtype, &shape);
    if (!y) return NULL;
    wk_view view_y, view_x;
    wk_view_move_last(&y->view, dim, &view_y);
    wk_view_move_last(&x->view, dim, &view_x);
    wk_call_add(call, y, &view_y);
    wk_call_add(call, x, &view_x);
    return wk_queue_result(call, y);
}

static wick_tensor *cumulate(const char *op, wick_tensor *x, int dim, wk_cumulate_fn fn) {
    int resolved;
    if (!x || !wk_operand_is_number(op, x) || !wk_operand_is_strided(op, x)) return NULL;
    if (!wk_operand_dim(op, x, dim, &resolved)) return NULL;
    wk_call call;
    wk_call_begin(&call, WK_OP_CUMULATE, op);
    call.op.p.cumulate = fn;
    return along(&call, x, resolved, x->view.dtype);
}

wick_tensor *wick_cumsum(wick_tensor *x, int dim) {
    return cumulate("cumsum", x, dim, WK_CUMULATE_SUM);
}

wick_tensor *wick_cumprod(wick_tensor *x, int dim) {
    return cumulate("cumprod", x, dim, WK_CUMULATE_PROD);
}

static wick_tensor *argsort(const char *op, wick_tensor *x, int dim, bool descending) {
    int resolved;
    if (!x || !wk_operand_is_strided(op, x)) return NULL;
    if (!wk_dtype_is_writable(op, x->device, x->view.dtype)) return NULL;
    if (!wk_operand_dim(op, x, dim, &resolved)) return NULL;
    wk_call call;
    wk_call_begin(&call, WK_OP_ARGSORT, op);
    call.op.p.argsort.is_descending = descending;
    return along(&call, x, resolved, WICK_U32);
}

wick_tensor *wick_argsort(wick_tensor *x, int dim, bool descending) {
    return argsort("argsort", x, dim, descending);
}

wick_tensor *wick_sort(wick_tensor *x, int dim, bool descending, wick_tensor **indices) {
    if (indices) *indices = NULL;
    if (!x) return NULL;
    const wick_scope scope = wk_operation_begin(x->device, "sort");
    wick_tensor *const order = argsort("sort", x, dim, descending);
    wick_tensor *const y = wick_gather(x, dim, order);
    if (y && indices) *indices = wk_scope_keep(scope, order);
    return wick_scope_result(scope, y);
}
