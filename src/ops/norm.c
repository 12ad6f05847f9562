/* ops/norm.c: normalisation over the last dimension, or the last ones together. */
#include <wick/ops.h>

#include "core/shape.h"
#include "ops/operand.h"

#include <math.h>

/* name: weight or bias. */
static bool check_vector(const char *op, const char *name, const wick_tensor *x,
                         const wick_tensor *vector) {
    if (!wk_operand_is_float(op, vector) || !wk_operand_is_strided(op, vector)) return false;
    if (vector->view.rank == 1 && vector->view.extent[0] == x->view.extent[x->view.rank - 1]) {
        return true;
    }
    const wick_shape shape_x = wk_tensor_shape_of(x), shape = wk_tensor_shape_of(vector);
    char text[2][WK_SHAPE_TEXT];
    wk_device_fail(x->device, WICK_ERR_SHAPE, "%s: %s %s does not fit x %s", op, name,
                   wk_shape_text(&shape, text[0], sizeof text[0]),
                   wk_shape_text(&shape_x, text[1], sizeof text[1]));
    return false;
}

/* The operands that are there are on one device, and x can be normalized. */
static bool check_norm(const char *op, wick_tensor *const *operands, size_t n, double eps) {
    wick_tensor *present[3];
    size_t n_present = 0;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || operands[i]) present[n_present++] = operands[i];
    }
    if (!wk_operands_present(op, present, n_present)) return false;
    wick_tensor *const x = operands[0];
    if (!wk_operand_is_float(op, x) || !wk_operand_is_strided(op, x)) return false;
    if (x->view.rank == 0) {
        wk_device_fail(x->device, WICK_ERR_SHAPE, "%s: x has rank 0", op);
        return false;
    }
    static const char *const names[] = {"x", "weight", "bias"};
    for (size_t i = 1; i < n; i++) {
        if (operands[i] && !check_vector(op, names[i], x, operands[i])) return false;
    }
    if (eps >= 0 && !isinf(eps)) return true;
    wk_device_fail(x->device, WICK_ERR_VALUE, "%s: eps %g", op, eps);
    return false;
}

static wick_tensor *normalize(const char *op, wk_opcode code, wick_tensor *const *operands,
                              size_t n, double eps) {
    if (!check_norm(op, operands, n, eps)) return NULL;
    wick_tensor *const x = operands[0];
    const wick_shape shape = wk_tensor_shape_of(x);
    wick_tensor *y = wk_tensor_new(x->device, x->view.dtype, &shape);
    wk_call call;
    wk_call_begin(&call, code, op);
    wk_call_add(&call, y, NULL);
    for (size_t i = 0; i < n; i++) wk_call_add(&call, operands[i], NULL);
    call.op.p.norm.eps = eps;
    return wk_queue_result(&call, y);
}

wick_tensor *wick_rms_norm(wick_tensor *x, wick_tensor *weight, double eps) {
    return normalize("rms_norm", WK_OP_RMS_NORM, (wick_tensor *[]){x, weight}, 2, eps);
}

wick_tensor *wick_layer_norm(wick_tensor *x, wick_tensor *weight, wick_tensor *bias, double eps) {
    return normalize("layer_norm", WK_OP_LAYER_NORM, (wick_tensor *[]){x, weight, bias}, 3, eps);
}

/* --- Over several dims: seen as one --- */

/* x's last n dims, 1 to all of them, hold elements that weight and bias, where they are there, have
 * the shape of. */
static bool check_over(const char *op, const wick_tensor *x, int n, wick_tensor *const *vectors,
                       size_t n_vectors) {
    if (n < 1 || n > x->view.rank) {
        wk_device_fail(x->device, WICK_ERR_DIM, "%s: %d dims of rank %d", op, n, x->view.rank);
        return false;
    }
    const wick_shape shape = wick_shape_of(n, x->view.extent + x->view.rank - n);
    for (size_t i = 0; i < n_vectors; i++) {
        if (!vectors[i]) continue;
        const wick_shape got = wk_tensor_shape_of(vectors[i]);
        if (wk_shape_equal(&got, &shape)) continue;
        char text[2][WK_SHAPE_TEXT];
        wk_device_fail(x->device, WICK_ERR_SHAPE, "%s: weight or bias is %s, not %s", op,
                       wk_shape_text(&got, text[0], sizeof text[0]),
                       wk_shape_text(&shape, text[1], sizeof text[1]));
        return false;
    }
    return true;
}

static wick_tensor *normalize_over(const char *op, wk_opcode code, int n_dims,
                                   wick_tensor *const *operands, size_t n, double eps) {
    wick_tensor *const x = operands[0], *flat[3] = {NULL};
    if (!x || !check_over(op, x, n_dims, operands + 1, n - 1)) return NULL;
    const wick_shape shape = wk_tensor_shape_of(x);
    wick_shape rows = {.rank = shape.rank - n_dims + 1};
    int64_t length = 1;
    for (int i = 0; i < shape.rank; i++) {
        if (i < rows.rank - 1) rows.extent[i] = shape.extent[i];
        if (i >= rows.rank - 1) length *= shape.extent[i];
    }
    rows.extent[rows.rank - 1] = length;
    const wick_scope scope = wk_operation_begin(x->device, op);
    for (size_t i = 0; i < n; i++)
        flat[i] = wick_reshape(operands[i], i == 0 ? rows : WICK_SHAPE(length));
    wick_tensor *const y = flat[0] ? normalize(op, code, flat, n, eps) : NULL;
    return wick_scope_result(scope, wick_reshape(y, shape));
}

wick_tensor *wick_rms_norm_over(wick_tensor *x, int n, wick_tensor *weight, double eps) {
    return normalize_over("rms_norm_over", WK_OP_RMS_NORM, n, (wick_tensor *[]){x, weight}, 2, eps);
}

wick_tensor *wick_layer_norm_over(wick_tensor *x, int n, wick_tensor *weight, wick_tensor *bias,
                                  double eps) {
    return normalize_over("layer_norm_over", WK_OP_LAYER_NORM, n,
                          (wick_tensor *[]){x, weight, bias}, 3, eps);
}
