/* ops/dropout.c: elements that are left out at random. */
#include <wick/nn.h>

#include "ops/compose.h"

static wick_tensor *drop(wick_tensor *x, double p) {
    wick_device *const device = x->device;
    const wick_shape shape = wk_tensor_shape_of(x);
    wick_tensor *const wide = wk_widened(x);
    if (!wide) return NULL;
    const wick_dtype dtype = wide->view.dtype;
    wick_tensor *const number = wick_rand(device, WICK_F32, shape, 0, 1);
    wick_tensor *const is_kept = wick_ge(number, wick_full(device, WICK_F32, WICK_SCALAR, p));
    wick_tensor *const kept = wick_div(wide, wick_full(device, dtype, WICK_SCALAR, 1 - p));
    wick_tensor *const y = wick_where(is_kept, kept, wick_zeros(device, dtype, WICK_SCALAR));
    return wk_promoted(y, x->view.dtype);
}

wick_tensor *wick_dropout(wick_tensor *x, double p, bool train) {
    if (!wk_operands_are_floats("dropout", &x, 1, 1)) return NULL;
    if (!(p >= 0 && p <= 1)) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "dropout: p %g is not from 0 to 1", p);
        return NULL;
    }
    if (!train || p == 0) return wk_own(x, x);
    const wick_scope scope = wk_operation_begin(x->device, "dropout");
    const wick_shape shape = wk_tensor_shape_of(x);
    return wick_scope_result(scope,
                             p == 1 ? wick_zeros(x->device, x->view.dtype, shape) : drop(x, p));
}
