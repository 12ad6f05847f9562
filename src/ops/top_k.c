/* ops/top_k.c: the largest elements along a dimension and where they are. */
#include <wick/ops.h>

#include "ops/operand.h"
#include "ops/view.h"

static wick_tensor *new_like(wick_tensor *x, wick_dtype dtype, int dim, int64_t k) {
    wick_shape shape = wk_tensor_shape_of(x);
    shape.extent[dim] = k;
    return wk_tensor_new(x->device, dtype, &shape);
}

static bool is_count(const wick_tensor *x, int dim, int64_t k) {
    if (k > 0 && k <= x->view.extent[dim]) return true;
    wk_device_fail(x->device, WICK_ERR_VALUE, "top_k: %lld of the %lld elements of dim %d",
                   (long long)k, (long long)x->view.extent[dim], dim);
    return false;
}

wick_tensor *wick_top_k(wick_tensor *x, int64_t k, int dim, wick_tensor **indices) {
    int resolved;
    if (indices) *indices = NULL;
    if (!x || !wk_operand_is_float("top_k", x) || !wk_operand_is_strided("top_k", x)) return NULL;
    if (!wk_operand_dim("top_k", x, dim, &resolved) || !is_count(x, resolved, k)) return NULL;
    wick_tensor *values = new_like(x, x->view.dtype, resolved, k);
    wick_tensor *const places = values ? new_like(x, WICK_U32, resolved, k) : NULL;
    if (!places) {
        wick_release(values);
        return NULL;
    }
    wk_view view[3];
    wk_view_move_last(&values->view, resolved, &view[0]);
    wk_view_move_last(&places->view, resolved, &view[1]);
    wk_view_move_last(&x->view, resolved, &view[2]);
    wk_call call;
    wk_call_begin(&call, WK_OP_TOP_K, "top_k");
    wk_call_add(&call, values, &view[0]);
    wk_call_add(&call, places, &view[1]);
    wk_call_add(&call, x, &view[2]);
    values = wk_queue_result(&call, values);
    if (values && indices)
        *indices = places;
    else
        wick_release(places);
    return values;
}
