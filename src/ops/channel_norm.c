/* ops/channel_norm.c: normalisation of x [n, c, ..] by channels or groups of them. */
#include <wick/nn.h>

#include "core/shape.h"
#include "ops/compose.h"

#include <inttypes.h>
#include <math.h>

/* x [n, c, ..] and the vectors [c] after it, which may be absent. */
static bool check(const char *op, wick_tensor *const *operands, const char *const *names,
                  size_t n_required, size_t n, double eps) {
    if (!wk_operands_are_floats(op, operands, n_required, n)) return false;
    const wick_tensor *const x = operands[0];
    if (!wk_operand_rank(op, "x", x, 2, WICK_MAX_RANK)) return false;
    for (size_t i = 1; i < n; i++)
        if (!wk_operand_is_vector(op, names[i], operands[i], x->view.extent[1])) return false;
    if (eps >= 0 && !isinf(eps)) return true;
    wk_device_fail(x->device, WICK_ERR_VALUE, "%s: eps %g", op, eps);
    return false;
}

/* A vector [c] in x's place of it. */
static wick_tensor *by_channel(wick_tensor *vector, const wick_tensor *x) {
    return vector ? wk_along(wk_widened(vector), x->view.rank - 2) : NULL;
}

/* y * weight + bias; y itself where both are absent. */
static wick_tensor *scaled(wick_tensor *y, const wick_tensor *x, wick_tensor *weight,
                           wick_tensor *bias) {
    if (weight) y = wick_mul(y, by_channel(weight, x));
    if (bias) y = wick_add(y, by_channel(bias, x));
    return y;
}

/* --- Groups --- */

static wick_tensor *normalize_groups(const char *op, wick_tensor *x, int64_t groups,
                                     wick_tensor *weight, wick_tensor *bias, double eps) {
    static const char *const names[] = {"x", "weight", "bias"};
    if (!check(op, (wick_tensor *[]){x, weight, bias}, names, 1, 3, eps)) return NULL;
    if (groups < 1) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "%s: %" PRId64 " groups", op, groups);
        return NULL;
    }
    const wick_shape shape = wk_tensor_shape_of(x);
    if (shape.extent[1] % groups != 0) {
        wk_device_fail(x->device, WICK_ERR_SHAPE,
                       "%s: %" PRId64 " groups do not divide %" PRId64 " channels", op, groups,
                       shape.extent[1]);
        return NULL;
    }
    const wick_scope scope = wk_operation_begin(x->device, op);
    if (wk_tensor_is_empty(x))
        return wick_scope_result(scope, wick_empty(x->device, x->view.dtype, shape));
    wick_tensor *const rows = wick_reshape(wk_widened(x), WICK_SHAPE(shape.extent[0] * groups, -1));
    wick_tensor *const y = wick_reshape(wick_layer_norm(rows, NULL, NULL, eps), shape);
    return wick_scope_result(scope, wk_promoted(scaled(y, x, weight, bias), x->view.dtype));
}

wick_tensor *wick_group_norm(wick_tensor *x, int64_t groups, wick_tensor *weight, wick_tensor *bias,
                             double eps) {
    return normalize_groups("group_norm", x, groups, weight, bias, eps);
}

wick_tensor *wick_instance_norm(wick_tensor *x, wick_tensor *weight, wick_tensor *bias,
                                double eps) {
    if (!x) return NULL;
    const int64_t c = x->view.rank > 1 ? x->view.extent[1] : 1;
    return normalize_groups("instance_norm", x, c > 0 ? c : 1, weight, bias, eps);
}

/* --- Batches --- */

static const char *const batch_names[] = {"x", "mean", "variance", "weight", "bias"};

/* x, and mean and variance [1, c, 1, ..], widened. */
static wick_tensor *standardized(wick_tensor *x, wick_tensor *mean, wick_tensor *variance,
                                 double eps) {
    wick_tensor *const deviation = wick_sqrt(wick_affine(variance, 1, eps));
    return wick_div(wick_sub(x, mean), deviation);
}

wick_tensor *wick_batch_norm(wick_tensor *x, wick_tensor *mean, wick_tensor *variance,
                             wick_tensor *weight, wick_tensor *bias, double eps) {
    wick_tensor *const operands[] = {x, mean, variance, weight, bias};
    if (!check("batch_norm", operands, batch_names, 3, 5, eps)) return NULL;
    const wick_scope scope = wk_operation_begin(x->device, "batch_norm");
    wick_tensor *const y =
        standardized(wk_widened(x), by_channel(mean, x), by_channel(variance, x), eps);
    return wick_scope_result(scope, wk_promoted(scaled(y, x, weight, bias), x->view.dtype));
}

/* running = (1 - momentum) running + momentum * factor * batch, in place. */
static bool update(wick_tensor *running, wick_tensor *batch, double momentum, double factor) {
    if (!running) return true;
    wick_tensor *const old = wick_affine(wk_widened(running), 1 - momentum, 0);
    wick_tensor *const flat = wick_reshape(batch, wk_tensor_shape_of(running));
    return wick_copy(running, wick_add(old, wick_affine(flat, momentum * factor, 0))) != NULL;
}

static bool check_train(wick_tensor *const operands[5], double momentum, double eps) {
    static const char op[] = "batch_norm_train";
    if (!check(op, operands, batch_names, 1, 5, eps)) return false;
    const wick_tensor *const x = operands[0];
    const int64_t c = x->view.extent[1];
    for (int i = 1; i <= 2; i++)
        if (operands[i] && !wk_operand_is_writable(op, operands[i])) return false;
    if (!(momentum >= 0 && momentum <= 1)) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "%s: momentum %g is not from 0 to 1", op,
                       momentum);
        return false;
    }
    if (c == 0 || wk_view_count(&x->view) / c > 1) return true;
    wk_device_fail(x->device, WICK_ERR_VALUE, "%s: needs more than one element per channel", op);
    return false;
}

wick_tensor *wick_batch_norm_train(wick_tensor *x, wick_tensor *running_mean,
                                   wick_tensor *running_variance, wick_tensor *weight,
                                   wick_tensor *bias, double momentum, double eps) {
    wick_tensor *const operands[] = {x, running_mean, running_variance, weight, bias};
    if (!check_train(operands, momentum, eps)) return NULL;
    const wick_scope scope = wk_operation_begin(x->device, "batch_norm_train");
    int dims[WICK_MAX_RANK], n_dims = 0;
    for (int i = 0; i < x->view.rank; i++)
        if (i != 1) dims[n_dims++] = i;
    const int64_t c = x->view.extent[1];
    const double n = c > 0 ? (double)(wk_view_count(&x->view) / c) : 2;
    wick_tensor *const wide = wk_widened(x);
    wick_tensor *const mean = wick_mean(wide, n_dims, dims, true);
    wick_tensor *const variance = wick_var(wide, n_dims, dims, true, 0);
    wick_tensor *y = standardized(wide, mean, variance, eps);
    y = wk_promoted(scaled(y, x, weight, bias), x->view.dtype);
    if (y && (!update(running_mean, mean, momentum, 1) ||
              !update(running_variance, variance, momentum, n / (n - 1))))
        y = NULL;
    return wick_scope_result(scope, y);
}
