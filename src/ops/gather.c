/* ops/gather.c: elements and slices by index. */
#include <wick/ops.h>

#include "core/dtype.h"
#include "core/shape.h"
#include "ops/indices.h"
#include "ops/operand.h"
#include "ops/view.h"

#include <inttypes.h>

bool wk_operand_is_index(const char *op, const wick_tensor *index) {
    if (wk_dtype_get(index->view.dtype)->dtype_class == WK_CLASS_INTEGER)
        return wk_operand_is_strided(op, index);
    wk_device_fail(index->device, WICK_ERR_DTYPE, "%s: indices are integers, not %s", op,
                   wick_dtype_name(index->view.dtype));
    return false;
}

wick_tensor *wk_as_index(wick_tensor *index) {
    if (!index) return NULL;
    const wick_dtype dtype = index->view.dtype;
    return dtype == WICK_U32 || dtype == WICK_U8 ? index : wk_promoted(index, WICK_I64);
}

static bool misfit(const char *op, const wick_tensor *x, int dim, const wick_tensor *index) {
    const wick_shape shape_x = wk_tensor_shape_of(x), shape = wk_tensor_shape_of(index);
    char text[2][WK_SHAPE_TEXT];
    wk_device_fail(x->device, WICK_ERR_SHAPE, "%s: index %s does not fit x %s along dim %d", op,
                   wk_shape_text(&shape, text[0], sizeof text[0]),
                   wk_shape_text(&shape_x, text[1], sizeof text[1]), dim);
    return false;
}

bool wk_indexed_fits(const char *op, const wick_tensor *x, int dim, const wick_tensor *index) {
    bool fits = index->view.rank == x->view.rank;
    for (int i = 0; fits && i < x->view.rank; i++)
        fits = i == dim || index->view.extent[i] <= x->view.extent[i];
    return fits || misfit(op, x, dim, index);
}

bool wk_vector_is_index(const char *op, const wick_tensor *index) {
    if (!wk_operand_is_index(op, index)) return false;
    if (index->view.rank == 1) return true;
    wk_device_fail(index->device, WICK_ERR_SHAPE, "%s: index has rank %d, not 1", op,
                   index->view.rank);
    return false;
}

void wk_view_cut_to(wk_view *view, const wk_view *other, int dim) {
    for (int i = 0; i < view->rank; i++)
        if (i != dim) view->extent[i] = other->extent[i];
}

wk_view wk_view_of_vector(const wk_view *vector, const wick_shape *shape, int dim) {
    wk_view view = *vector;
    view.rank = shape->rank;
    for (int i = 0; i < shape->rank; i++) {
        view.extent[i] = shape->extent[i];
        view.stride[i] = i == dim ? vector->stride[0] : 0;
    }
    view.extent[dim] = vector->extent[0];
    return view;
}

static bool check(const char *op, const wick_tensor *x, int dim, int *resolved) {
    if (!wk_operand_is_strided(op, x) || !wk_dtype_is_writable(op, x->device, x->view.dtype))
        return false;
    return wk_operand_dim(op, x, dim, resolved);
}

/* index: a view of its tensor of the result's shape; x is no smaller in the other dims. */
static wick_tensor *gather(wick_tensor *x, int dim, wick_tensor *index, const wk_view *at) {
    wick_shape shape = {.rank = at->rank};
    for (int i = 0; i < at->rank; i++) shape.extent[i] = at->extent[i];
    wick_tensor *const y = wk_tensor_new(x->device, x->view.dtype, &shape);
    if (!y) return NULL;
    wk_view view[3] = {y->view, x->view, *at};
    wk_view_cut_to(&view[1], at, dim);
    for (int i = 0; i < 3; i++) wk_view_move_last(&view[i], dim, &view[i]);
    wk_call call;
    wk_call_begin(&call, WK_OP_GATHER, "gather");
    wk_call_add(&call, y, &view[0]);
    wk_call_add(&call, x, &view[1]);
    wk_call_add(&call, index, &view[2]);
    return wk_queue_result(&call, y);
}

wick_tensor *wick_gather(wick_tensor *x, int dim, wick_tensor *index) {
    int resolved;
    if (!wk_operands_present("gather", (wick_tensor *[]){x, index}, 2)) return NULL;
    if (!check("gather", x, dim, &resolved) || !wk_operand_is_index("gather", index)) return NULL;
    if (!wk_indexed_fits("gather", x, resolved, index)) return NULL;
    const wick_scope scope = wk_operation_begin(x->device, "gather");
    wick_tensor *const at = wk_as_index(index);
    return wick_scope_result(scope, at ? gather(x, resolved, at, &at->view) : NULL);
}

wick_tensor *wick_take_along_dim(wick_tensor *x, int dim, wick_tensor *index) {
    static const char name[] = "take_along_dim";
    int resolved;
    if (!wk_operands_present(name, (wick_tensor *[]){x, index}, 2)) return NULL;
    if (!check(name, x, dim, &resolved) || !wk_operand_is_index(name, index)) return NULL;
    wick_shape of_x = wk_tensor_shape_of(x), of_index = wk_tensor_shape_of(index), shape;
    bool fits = of_x.rank == of_index.rank;
    if (fits) of_x.extent[resolved] = of_index.extent[resolved] = 1;
    fits = fits && wk_shape_broadcast(&of_x, &of_index, &shape);
    if (!fits) {
        (void)misfit(name, x, resolved, index);
        return NULL;
    }
    const wick_scope scope = wk_operation_begin(x->device, name);
    wick_shape to = shape;
    to.extent[resolved] = index->view.extent[resolved];
    wick_tensor *const at = wick_expand(wk_as_index(index), to);
    to.extent[resolved] = x->view.extent[resolved];
    wick_tensor *const wide = wick_expand(x, to);
    return wick_scope_result(scope, wide && at ? gather(wide, resolved, at, &at->view) : NULL);
}

wick_tensor *wick_index_select(wick_tensor *x, int dim, wick_tensor *index) {
    int resolved;
    if (!wk_operands_present("index_select", (wick_tensor *[]){x, index}, 2)) return NULL;
    if (!check("index_select", x, dim, &resolved)) return NULL;
    if (!wk_vector_is_index("index_select", index)) return NULL;
    const wick_shape shape = wk_tensor_shape_of(x);
    const wick_scope scope = wk_operation_begin(x->device, "index_select");
    wick_tensor *const places = wk_as_index(index);
    if (!places) return wick_scope_result(scope, NULL);
    const wk_view at = wk_view_of_vector(&places->view, &shape, resolved);
    return wick_scope_result(scope, gather(x, resolved, places, &at));
}
