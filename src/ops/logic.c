/* ops/logic.c: what is true of elements, as u8, and of all of them or any. An element is true
 * unless it is zero. */
#include <wick/ops.h>

#include "core/dtype.h"
#include "core/shape.h"
#include "ops/operand.h"

#include <math.h>

typedef wick_tensor *of_two(wick_tensor *a, wick_tensor *b);

/* Elements of x beside a number. */
static wick_tensor *against(wick_tensor *x, of_two *compare, double value) {
    return x ? compare(x, wick_full(x->device, x->view.dtype, WICK_SCALAR, value)) : NULL;
}

static wick_tensor *truth(wick_tensor *x) { return against(x, wick_ne, 0); }

/* --- Of one element --- */

static wick_tensor *of_one(const char *op, wick_tensor *x,
                           wick_tensor *(*predicate)(wick_tensor *x)) {
    if (!x || !wk_operand_is_scalars(op, x)) return NULL;
    const wick_scope scope = wk_operation_begin(x->device, op);
    return wick_scope_result(scope, predicate(x));
}

static wick_tensor *is_zero(wick_tensor *x) { return against(x, wick_eq, 0); }
static wick_tensor *is_nan(wick_tensor *x) { return wick_ne(x, x); }

/* Integers and bools are never infinite, and equal to themselves. */
static wick_tensor *is_infinite(wick_tensor *x) {
    if (!wk_dtype_is_float(x->view.dtype)) return wick_ne(x, x);
    return against(wick_abs(x), wick_eq, (double)INFINITY);
}

static wick_tensor *is_finite(wick_tensor *x) {
    if (!wk_dtype_is_float(x->view.dtype)) return wick_eq(x, x);
    return against(wick_abs(x), wick_lt, (double)INFINITY);
}

static wick_tensor *has_sign(wick_tensor *x) {
    if (!wk_dtype_is_float(x->view.dtype)) return against(x, wick_lt, 0);
    wick_tensor *const one = wick_ones(x->device, x->view.dtype, WICK_SCALAR);
    return against(wick_copysign(one, x), wick_lt, 0);
}

wick_tensor *wick_logical_not(wick_tensor *x) { return of_one("logical_not", x, is_zero); }
wick_tensor *wick_is_nan(wick_tensor *x) { return of_one("is_nan", x, is_nan); }
wick_tensor *wick_is_inf(wick_tensor *x) { return of_one("is_inf", x, is_infinite); }
wick_tensor *wick_is_finite(wick_tensor *x) { return of_one("is_finite", x, is_finite); }
wick_tensor *wick_signbit(wick_tensor *x) { return of_one("signbit", x, has_sign); }

/* --- Of two --- */

static bool check_pair(const char *op, wick_tensor *a, wick_tensor *b) {
    if (!wk_operands_present(op, (wick_tensor *[]){a, b}, 2)) return false;
    if (!wk_operand_is_scalars(op, a) || !wk_operand_is_scalars(op, b)) return false;
    wick_shape shape;
    return wk_operands_broadcast(op, a, b, &shape);
}

static wick_tensor *logical(const char *op, of_two *join, wick_tensor *a, wick_tensor *b) {
    if (!check_pair(op, a, b)) return NULL;
    const wick_scope scope = wk_operation_begin(a->device, op);
    return wick_scope_result(scope, join(truth(a), truth(b)));
}

wick_tensor *wick_logical_and(wick_tensor *a, wick_tensor *b) {
    return logical("logical_and", wick_minimum, a, b);
}

wick_tensor *wick_logical_or(wick_tensor *a, wick_tensor *b) {
    return logical("logical_or", wick_maximum, a, b);
}

wick_tensor *wick_logical_xor(wick_tensor *a, wick_tensor *b) {
    return logical("logical_xor", wick_ne, a, b);
}

/* A float type in which both are compared: integers, which f32 may not hold, in f64. */
static wick_dtype dtype_of_both(const char *op, const wick_tensor *a, const wick_tensor *b) {
    wick_dtype dtype = WICK_F64;
    (void)wk_operands_promote(op, a, b, &dtype); /* cannot fail: they are scalars */
    if (!wk_dtype_is_float(dtype)) return WICK_F64;
    return dtype == WICK_F64 ? dtype : WICK_F32;
}

/* |a - b| <= atol + rtol |b| with a finite b, or both the same. */
static wick_tensor *close(wick_tensor *a, wick_tensor *b, double rtol, double atol,
                          bool equal_nan) {
    wick_tensor *const bound = wick_affine(wick_abs(b), rtol, atol);
    wick_tensor *const near = wick_le(wick_abs(wick_sub(a, b)), bound);
    wick_tensor *y = wick_maximum(wick_minimum(near, wick_is_finite(b)), wick_eq(a, b));
    if (equal_nan) y = wick_maximum(y, wick_minimum(wick_is_nan(a), wick_is_nan(b)));
    return y;
}

static bool check_tolerances(const char *op, wick_device *device, double rtol, double atol) {
    if (rtol >= 0 && atol >= 0 && isfinite(rtol) && isfinite(atol)) return true;
    wk_device_fail(device, WICK_ERR_VALUE, "%s: tolerances %g and %g must be >= 0 and finite", op,
                   rtol, atol);
    return false;
}

static wick_tensor *is_close(const char *op, wick_tensor *a, wick_tensor *b, double rtol,
                             double atol, bool equal_nan) {
    if (!check_pair(op, a, b) || !check_tolerances(op, a->device, rtol, atol)) return NULL;
    const wick_dtype dtype = dtype_of_both(op, a, b);
    const wick_scope scope = wk_operation_begin(a->device, op);
    return wick_scope_result(
        scope, close(wk_promoted(a, dtype), wk_promoted(b, dtype), rtol, atol, equal_nan));
}

wick_tensor *wick_is_close(wick_tensor *a, wick_tensor *b, double rtol, double atol,
                           bool equal_nan) {
    return is_close("is_close", a, b, rtol, atol, equal_nan);
}

wick_tensor *wick_all_close(wick_tensor *a, wick_tensor *b, double rtol, double atol,
                            bool equal_nan) {
    if (!a || !b) return NULL;
    const wick_scope scope = wk_operation_begin(a->device, "all_close");
    wick_tensor *const each = is_close("all_close", a, b, rtol, atol, equal_nan);
    return wick_scope_result(scope, wick_prod(each, 0, NULL, false));
}

/* --- Of many --- */

static bool check_many(const char *op, const wick_tensor *x, int n_dims, const int *dims) {
    bool unused[WICK_MAX_RANK];
    return x && wk_operand_is_scalars(op, x) && wk_operand_dims(op, x, n_dims, dims, unused);
}

/* A product, which is 1 of nothing at all. */
wick_tensor *wick_all(wick_tensor *x, int n_dims, const int *dims, bool keepdim) {
    if (!check_many("all", x, n_dims, dims)) return NULL;
    const wick_scope scope = wk_operation_begin(x->device, "all");
    return wick_scope_result(scope, wick_prod(truth(x), n_dims, dims, keepdim));
}

wick_tensor *wick_any(wick_tensor *x, int n_dims, const int *dims, bool keepdim) {
    if (!check_many("any", x, n_dims, dims)) return NULL;
    const wick_scope scope = wk_operation_begin(x->device, "any");
    return wick_scope_result(scope, is_zero(wick_prod(is_zero(x), n_dims, dims, keepdim)));
}

wick_tensor *wick_count_nonzero(wick_tensor *x, int n_dims, const int *dims, bool keepdim) {
    if (!check_many("count_nonzero", x, n_dims, dims)) return NULL;
    const wick_scope scope = wk_operation_begin(x->device, "count_nonzero");
    return wick_scope_result(scope, wick_sum(wick_cast(truth(x), WICK_U32), n_dims, dims, keepdim));
}
