/* ops/assign.c: copies in which a part has been replaced. */
#include <wick/ops.h>

#include "core/shape.h"
#include "ops/operand.h"
#include "ops/view.h"

#include <inttypes.h>

static bool check_operands(const char *op, wick_tensor *x, wick_tensor *src) {
    return wk_operands_present(op, (wick_tensor *[]){x, src}, 2) && wk_operand_is_scalars(op, x) &&
           wk_operand_is_scalars(op, src) && wk_operands_same_dtype(op, x, src);
}

/* Elements start to stop of dim. */
static bool check_range(const char *op, const wick_tensor *x, int dim, int64_t start,
                        int64_t stop) {
    const int64_t extent = x->view.extent[dim];
    if (0 <= start && start <= stop && stop <= extent) return true;
    wk_device_fail(x->device, WICK_ERR_INDEX,
                   "%s: %" PRId64 " to %" PRId64 " is not a part of dim %d of %" PRId64, op, start,
                   stop, dim, extent);
    return false;
}

/* A copy of x with src in the part that starts there, of the shape of src and inside of x. */
static wick_tensor *assign(const char *op, wick_tensor *x, const int64_t *start, wick_tensor *src) {
    const wick_scope scope = wk_operation_begin(x->device, op);
    wick_tensor *y = wk_dense_copy(x, x->view.dtype);
    if (y) {
        wk_view part = y->view;
        for (int i = 0; i < part.rank; i++) {
            wk_view_slice(&part, i, start[i], src->view.extent[i], 1, &part);
        }
        if (wk_queue_copy(y, &part, src, &src->view) != WICK_OK) y = NULL;
    }
    return wick_scope_result(scope, y);
}

static wick_tensor *does_not_fit(const char *op, const wick_tensor *src, const wick_shape *part) {
    const wick_shape shape = wk_tensor_shape_of(src);
    char text[2][WK_SHAPE_TEXT];
    wk_device_fail(src->device, WICK_ERR_SHAPE, "%s: src is %s, expected %s", op,
                   wk_shape_text(&shape, text[0], sizeof text[0]),
                   wk_shape_text(part, text[1], sizeof text[1]));
    return NULL;
}

wick_tensor *wick_slice_assign(wick_tensor *x, const int64_t *start, const int64_t *stop,
                               wick_tensor *src) {
    if (!check_operands("slice_assign", x, src)) return NULL;
    wick_shape part = {.rank = x->view.rank};
    if (part.rank > 0 && (!start || !stop)) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "slice_assign: there are no ranges");
        return NULL;
    }
    for (int i = 0; i < part.rank; i++) {
        if (!check_range("slice_assign", x, i, start[i], stop[i])) return NULL;
        part.extent[i] = stop[i] - start[i];
    }
    const wick_shape shape = wk_tensor_shape_of(src);
    if (!wk_shape_equal(&shape, &part)) return does_not_fit("slice_assign", src, &part);
    return assign("slice_assign", x, start, src);
}

wick_tensor *wick_slice_scatter(wick_tensor *x, wick_tensor *src, int dim, int64_t start) {
    int d;
    if (!check_operands("slice_scatter", x, src)) return NULL;
    if (!wk_operand_dim("slice_scatter", x, dim, &d)) return NULL;
    const wick_shape shape = wk_tensor_shape_of(src);
    wick_shape part = wk_tensor_shape_of(x);
    if (shape.rank == part.rank) part.extent[d] = shape.extent[d];
    if (!wk_shape_equal(&shape, &part)) return does_not_fit("slice_scatter", src, &part);
    const int64_t n = part.extent[d];
    if (!check_range("slice_scatter", x, d, start, start <= INT64_MAX - n ? start + n : -1)) {
        return NULL;
    }
    int64_t starts[WICK_MAX_RANK] = {0};
    starts[d] = start;
    return assign("slice_scatter", x, starts, src);
}
