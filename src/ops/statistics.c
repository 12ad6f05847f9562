/* ops/statistics.c: covariances and correlations. */
#include <wick/ops.h>

#include "ops/compose.h"

#include <math.h>

/* x [variables, observations], centred; NULL: x is refused. */
static wick_tensor *centred(const char *op, wick_tensor *x) {
    if (!x || !wk_operand_is_float(op, x) || !wk_operand_is_strided(op, x) ||
        !wk_operand_rank(op, "x", x, 1, 2))
        return NULL;
    wick_tensor *const wide = wk_widened(x);
    wick_tensor *const rows = x->view.rank == 1 ? wick_unsqueeze(wide, 0) : wide;
    return wick_sub(rows, wick_mean(rows, 1, (const int[]){1}, true));
}

static wick_tensor *products(wick_tensor *rows) {
    return wick_matmul(rows, wick_transpose(rows, 0, 1));
}

/* A scalar for a single variable. */
static wick_tensor *finish(wick_scope scope, const wick_tensor *x, wick_tensor *y) {
    y = x->view.rank == 1 || x->view.extent[0] == 1 ? wick_reshape(y, WICK_SCALAR) : y;
    return wick_scope_result(scope, wk_promoted(y, x->view.dtype));
}

wick_tensor *wick_cov(wick_tensor *x, double correction) {
    if (!x) return NULL;
    if (!isfinite(correction)) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "cov: correction %g", correction);
        return NULL;
    }
    const wick_scope scope = wk_operation_begin(x->device, "cov");
    wick_tensor *const rows = centred("cov", x);
    if (!rows) return wick_scope_result(scope, NULL);
    const double free = (double)rows->view.extent[1] - correction;
    return finish(scope, x, wick_affine(products(rows), 1 / (free > 0 ? free : 0), 0));
}

wick_tensor *wick_corrcoef(wick_tensor *x) {
    if (!x) return NULL;
    const wick_scope scope = wk_operation_begin(x->device, "corrcoef");
    wick_tensor *const rows = centred("corrcoef", x);
    wick_tensor *const length = wick_norm(rows, 2, 1, (const int[]){1}, true);
    wick_tensor *const lengths = wick_mul(length, wick_transpose(length, 0, 1));
    wick_tensor *const y = rows ? wick_div(products(rows), lengths) : NULL;
    return y ? finish(scope, x, wick_clamp(y, -1, 1)) : wick_scope_result(scope, NULL);
}
