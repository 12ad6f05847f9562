/* ops/windows.c: windows along a dim as a view (unfold), and their sum (fold). */
#include "ops/windows.h"

#include <wick/ops.h>

#include "core/shape.h"
#include "ops/compose.h"
#include "ops/operand.h"
#include "ops/view.h"

#include <inttypes.h>

/* How many windows an extent has; -1 after reporting that it has none. */
static int64_t count_windows(const char *op, const wick_tensor *x, int64_t extent, int64_t size,
                             int64_t step) {
    if (size < 0 || step <= 0) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "%s: size %" PRId64 ", step %" PRId64, op, size,
                       step);
        return -1;
    }
    if (size <= extent) return (extent - size) / step + 1;
    wk_device_fail(x->device, WICK_ERR_SHAPE,
                   "%s: windows of %" PRId64 " elements do not fit an extent of %" PRId64, op, size,
                   extent);
    return -1;
}

wick_tensor *wick_unfold(wick_tensor *x, int dim, int64_t size, int64_t step) {
    int d;
    if (!x || !wk_operand_is_scalars("unfold", x)) return NULL;
    if (!wk_operand_dim("unfold", x, dim, &d)) return NULL;
    if (count_windows("unfold", x, x->view.extent[d], size, step) < 0) return NULL;
    if (x->view.rank == WICK_MAX_RANK) {
        wk_device_fail(x->device, WICK_ERR_SHAPE, "unfold: the rank cannot exceed %d",
                       WICK_MAX_RANK);
        return NULL;
    }
    return wk_windows(x, d, size, step, 1);
}

/* One addition for each place in a window: of one place no two windows share an element. */
wick_tensor *wk_fold(wick_tensor *x, int dim, int64_t extent, int64_t step, int64_t dilation) {
    if (!x) return NULL;
    wick_shape shape = wk_tensor_shape_of(x);
    const int last = --shape.rank;
    const int64_t size = shape.extent[last], count = shape.extent[dim];
    shape.extent[dim] = extent;
    const wick_scope scope = wick_scope_begin(x->device);
    wick_tensor *y = wick_zeros(x->device, x->view.dtype, shape);
    const bool is_empty = wk_tensor_is_empty(x); /* whose extents may be any numbers */
    for (int64_t j = 0; y && !is_empty && j < size; j++) {
        const int64_t first = j * dilation, end = first + (count - 1) * step + 1;
        wick_tensor *const part = wick_slice(y, dim, first, end, step);
        wick_tensor *const values = wick_squeeze(wick_narrow(x, last, j, 1), last);
        if (!wk_add_to(part, values)) y = NULL;
    }
    return wick_scope_result(scope, y);
}

wick_tensor *wick_fold(wick_tensor *x, int dim, int64_t extent, int64_t step) {
    if (!x || !wk_operand_is_scalars("fold", x) || !wk_operand_is_number("fold", x)) return NULL;
    const int last = x->view.rank - 1;
    if (last < 1) {
        wk_device_fail(x->device, WICK_ERR_SHAPE, "fold: x has rank %d, not 2 or more",
                       x->view.rank);
        return NULL;
    }
    int d;
    if (!wk_shape_dim(last, dim, &d)) { /* dim counts in the result */
        wk_device_fail(x->device, WICK_ERR_DIM, "fold: dim %d is out of range for rank %d", dim,
                       last);
        return NULL;
    }
    const int64_t count = count_windows("fold", x, extent, x->view.extent[last], step);
    if (count < 0) return NULL;
    if (count != x->view.extent[d]) {
        wk_device_fail(x->device, WICK_ERR_SHAPE,
                       "fold: %" PRId64 " windows, where an extent of %" PRId64 " has %" PRId64,
                       x->view.extent[d], extent, count);
        return NULL;
    }
    const wick_scope scope = wk_operation_begin(x->device, "fold");
    wick_tensor *const sum = wk_fold(wk_widened(x), d, extent, step, 1);
    return wick_scope_result(scope, wk_promoted(sum, x->view.dtype));
}
