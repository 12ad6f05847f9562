/* ops/response_norm.c: division by the squares around: local_response_norm, normalize. */
#include <wick/nn.h>

#include "core/shape.h"
#include "ops/compose.h"

#include <inttypes.h>

wick_tensor *wick_local_response_norm(wick_tensor *x, int64_t size, double alpha, double beta,
                                      double k) {
    static const char name[] = "local_response_norm";
    if (!wk_operands_are_floats(name, &x, 1, 1) || !wk_operand_rank(name, "x", x, 2, WICK_MAX_RANK))
        return NULL;
    if (size < 1 || size > INT32_MAX) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "%s: size %" PRId64, name, size);
        return NULL;
    }
    const wick_shape shape = wk_tensor_shape_of(x);
    const wick_scope scope = wk_operation_begin(x->device, name);
    if (wk_tensor_is_empty(x))
        return wick_scope_result(scope, wick_empty(x->device, x->view.dtype, shape));
    wick_tensor *const rows =
        wick_reshape(wk_widened(x), WICK_SHAPE(shape.extent[0], shape.extent[1], -1));
    const int64_t before = (size - 1) / 2, after = size / 2;
    wick_tensor *const squares = wk_padded(wick_sqr(rows), 1, 1, &before, &after, 0);
    wick_tensor *const sums =
        wick_sum(wk_windows(squares, 1, size, 1, 1), 1, (const int[]){-1}, false);
    wick_tensor *const divisor = wick_powf(wick_affine(sums, alpha / (double)size, k), beta);
    wick_tensor *const y = wick_reshape(wick_div(rows, divisor), shape);
    return wick_scope_result(scope, wk_promoted(y, x->view.dtype));
}

wick_tensor *wick_normalize(wick_tensor *x, int dim, double eps) {
    static const char name[] = "normalize";
    int resolved;
    if (!wk_operands_are_floats(name, &x, 1, 1) || !wk_operand_dim(name, x, dim, &resolved))
        return NULL;
    if (!(eps >= 0)) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "%s: eps %g", name, eps);
        return NULL;
    }
    const wick_scope scope = wk_operation_begin(x->device, name);
    wick_tensor *const wide = wk_widened(x);
    wick_tensor *const y = wick_div(wide, wk_norm_along(wide, resolved, eps));
    return wick_scope_result(scope, wk_promoted(y, x->view.dtype));
}
