/* ops/like.c: tensors of values that are known: as another one is shaped, in even steps, one-hot;
 * and masked_fill. */
#include <wick/ops.h>

#include "core/dtype.h"
#include "core/shape.h"
#include "ops/indices.h"
#include "ops/operand.h"

#include <inttypes.h>
#include <math.h>

static wick_tensor *full_like(const char *op, wick_tensor *x, double value) {
    if (!x || !wk_dtype_is_writable(op, x->device, x->view.dtype)) return NULL;
    const wick_scope scope = wk_operation_begin(x->device, op);
    wick_tensor *const y = wick_full(x->device, x->view.dtype, wk_tensor_shape_of(x), value);
    return wick_scope_result(scope, y);
}

wick_tensor *wick_full_like(wick_tensor *x, double value) {
    return full_like("full_like", x, value);
}
wick_tensor *wick_zeros_like(wick_tensor *x) { return full_like("zeros_like", x, 0); }
wick_tensor *wick_ones_like(wick_tensor *x) { return full_like("ones_like", x, 1); }

wick_tensor *wick_empty_like(wick_tensor *x) {
    if (!x || !wk_dtype_is_storable("empty_like", x->device, x->view.dtype)) return NULL;
    return wick_empty(x->device, x->view.dtype, wk_tensor_shape_of(x));
}

/* The ends are exact; between them element i is start + i step. */
static wick_tensor *linspace(const char *op, wick_device *device, wick_dtype dtype, double start,
                             double end, int64_t count) {
    if (!wk_dtype_is_writable(op, device, dtype)) return NULL;
    if (!wk_dtype_is_float(dtype)) {
        wk_device_fail(device, WICK_ERR_DTYPE, "%s: makes floats, not %s", op,
                       wick_dtype_name(dtype));
        return NULL;
    }
    if (count < 0 || !isfinite(start) || !isfinite(end)) {
        wk_device_fail(device, WICK_ERR_VALUE, "%s: %" PRId64 " elements from %g to %g", op, count,
                       start, end);
        return NULL;
    }
    const wick_scope scope = wk_operation_begin(device, op);
    wick_tensor *y = wk_tensor_new(device, dtype, &(wick_shape){.rank = 1, .extent = {count}});
    wk_call call;
    wk_call_begin(&call, WK_OP_ARANGE, op);
    wk_call_add(&call, y, NULL);
    call.op.p.arange.start = start;
    call.op.p.arange.step = count > 1 ? (end - start) / (double)(count - 1) : 0;
    y = wk_queue_result(&call, y);
    if (y && count > 1) {
        wick_tensor *const last = wick_narrow(y, 0, count - 1, 1);
        if (!last || wk_queue_fill(last, end) != WICK_OK) y = NULL;
    }
    return wick_scope_result(scope, y);
}

wick_tensor *wick_linspace(wick_device *device, wick_dtype dtype, double start, double end,
                           int64_t count) {
    return device ? linspace("linspace", device, dtype, start, end, count) : NULL;
}

wick_tensor *wick_logspace(wick_device *device, wick_dtype dtype, double start, double end,
                           int64_t count, double base) {
    static const char op[] = "logspace";
    if (!device) return NULL;
    if (!(base > 0) || !isfinite(base)) {
        wk_device_fail(device, WICK_ERR_VALUE, "%s: base %g", op, base);
        return NULL;
    }
    const wick_scope scope = wk_operation_begin(device, op);
    wick_tensor *const powers = wk_widened(linspace(op, device, dtype, start, end, count));
    wick_tensor *const of =
        powers ? wick_full(device, powers->view.dtype, WICK_SCALAR, base) : NULL;
    return wick_scope_result(scope, wk_promoted(wick_pow(of, powers), dtype));
}

wick_tensor *wick_one_hot(wick_tensor *index, int64_t classes, wick_dtype dtype) {
    if (!index || !wk_dtype_is_writable("one_hot", index->device, dtype)) return NULL;
    if (!wk_operand_is_index("one_hot", index)) return NULL;
    if (classes < 1) {
        wk_device_fail(index->device, WICK_ERR_VALUE, "one_hot: %" PRId64 " classes", classes);
        return NULL;
    }
    wick_shape shape = wk_tensor_shape_of(index);
    if (shape.rank == WICK_MAX_RANK) {
        wk_device_fail(index->device, WICK_ERR_SHAPE, "one_hot: the rank cannot exceed %d",
                       WICK_MAX_RANK);
        return NULL;
    }
    shape.extent[shape.rank++] = classes;
    wick_shape alone = shape;
    alone.extent[alone.rank - 1] = 1;
    const wick_scope scope = wk_operation_begin(index->device, "one_hot");
    wick_tensor *const zeros = wick_zeros(index->device, dtype, shape);
    wick_tensor *const one = wick_expand(wick_ones(index->device, dtype, WICK_SCALAR), alone);
    wick_tensor *const at = wick_unsqueeze(index, -1);
    return wick_scope_result(scope, wick_scatter(zeros, -1, at, one, WICK_SCATTER_SET));
}

wick_tensor *wick_masked_fill(wick_tensor *x, wick_tensor *mask, double value) {
    if (!wk_operands_present("masked_fill", (wick_tensor *[]){x, mask}, 2)) return NULL;
    if (!wk_operand_is_scalars("masked_fill", x)) return NULL;
    if (!wk_operand_is_mask("masked_fill", mask)) return NULL;
    const wick_shape of_x = wk_tensor_shape_of(x), of_mask = wk_tensor_shape_of(mask);
    wick_shape both;
    if (!wk_shape_broadcast(&of_x, &of_mask, &both)) {
        char text[2][WK_SHAPE_TEXT];
        wk_device_fail(x->device, WICK_ERR_SHAPE,
                       "masked_fill: %s and a mask of %s do not broadcast",
                       wk_shape_text(&of_x, text[0], sizeof text[0]),
                       wk_shape_text(&of_mask, text[1], sizeof text[1]));
        return NULL;
    }
    const wick_scope scope = wk_operation_begin(x->device, "masked_fill");
    wick_tensor *const filling = wick_full(x->device, x->view.dtype, WICK_SCALAR, value);
    return wick_scope_result(scope, wick_where(mask, filling, x));
}
