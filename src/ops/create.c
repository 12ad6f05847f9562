/* ops/create.c: tensors from nothing: zeros, ones, full, arange; and fill, which they share. */
#include <wick/ops.h>

#include "core/dtype.h"
#include "ops/operand.h"

#include <math.h>

static wick_tensor *full(const char *op, wick_device *device, wick_dtype dtype,
                         const wick_shape *shape, double value) {
    if (!device || !wk_dtype_is_writable(op, device, dtype)) return NULL;
    const wick_scope scope = wk_operation_begin(device, op);
    wick_tensor *y = wk_tensor_new(device, dtype, shape);
    if (y && !wk_tensor_is_empty(y) && wk_queue_fill(y, value) != WICK_OK) y = NULL;
    return wick_scope_result(scope, y);
}

wick_tensor *wick_full(wick_device *device, wick_dtype dtype, wick_shape shape, double value) {
    return full("full", device, dtype, &shape, value);
}

wick_tensor *wick_zeros(wick_device *device, wick_dtype dtype, wick_shape shape) {
    return full("zeros", device, dtype, &shape, 0);
}

wick_tensor *wick_ones(wick_device *device, wick_dtype dtype, wick_shape shape) {
    return full("ones", device, dtype, &shape, 1);
}

wick_tensor *wick_fill(wick_tensor *x, double value) {
    if (!x || !wk_operand_is_writable("fill", x)) return NULL;
    if (!wk_dtype_is_writable("fill", x->device, x->view.dtype)) return NULL;
    if (wk_tensor_is_empty(x)) return x;
    return wk_queue_fill(x, value) == WICK_OK ? x : NULL;
}

/* Whether the first and the last element of an integer range are whole and fit the type. */
static bool range_fits(wick_dtype dtype, double start, double step, double count) {
    if (wk_dtype_is_float(dtype)) return true;
    const double last = start + (count - 1) * step;
    return floor(start) == start && floor(step) == step && fabs(step) < 0x1p63 &&
           (double)wk_integer_of(dtype, start) == start &&
           (double)wk_integer_of(dtype, last) == last && fabs(start) < 0x1p63 &&
           fabs(last) < 0x1p63;
}

wick_tensor *wick_arange(wick_device *device, wick_dtype dtype, double start, double end,
                         double step) {
    if (!device || !wk_dtype_is_writable("arange", device, dtype)) return NULL;
    if (dtype == WICK_BOOL) {
        wk_device_fail(device, WICK_ERR_DTYPE, "arange: makes numbers, not bool");
        return NULL;
    }
    const double count = ceil((end - start) / step);
    const bool is_finite = isfinite(start) && isfinite(end) && isfinite(step) && step != 0;
    if (!is_finite || !(count >= 0)) {
        wk_device_fail(device, WICK_ERR_VALUE, "arange: step %g does not lead from %g to %g", step,
                       start, end);
        return NULL;
    }
    if (count >= 0x1p62) {
        wk_device_fail(device, WICK_ERR_VALUE, "arange: %g to %g by %g are too many elements",
                       start, end, step);
        return NULL;
    }
    if (count > 0 && !range_fits(dtype, start, step, count)) {
        wk_device_fail(device, WICK_ERR_VALUE, "arange: %g to %g by %g does not fit %s", start, end,
                       step, wick_dtype_name(dtype));
        return NULL;
    }
    const wick_shape shape = {.rank = 1, .extent = {(int64_t)count}};
    wick_tensor *y = wk_tensor_new(device, dtype, &shape);
    wk_call call;
    wk_call_begin(&call, WK_OP_ARANGE, "arange");
    wk_call_add(&call, y, NULL);
    call.op.p.arange.start = start;
    call.op.p.arange.step = step;
    call.op.p.arange.integer_start = wk_integer_of(WICK_I64, start);
    call.op.p.arange.integer_step = wk_integer_of(WICK_I64, step);
    return wk_queue_result(&call, y);
}
