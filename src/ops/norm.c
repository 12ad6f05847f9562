/* ops/norm.c: normalisation over the last dimension. */
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
static bool check_norm(const char *op, wick_tensor *const *operands, size_t n, float eps) {
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
    wk_device_fail(x->device, WICK_ERR_VALUE, "%s: eps %g", op, (double)eps);
    return false;
}

static wick_tensor *normalize(const char *op, wk_opcode code, wick_tensor *const *operands,
                              size_t n, float eps) {
    if (!check_norm(op, operands, n, eps)) return NULL;
    wick_tensor *const x = operands[0];
    const wick_shape shape = wk_tensor_shape_of(x);
    wick_tensor *y = wk_tensor_new(x->device, x->view.dtype, &shape);
    wk_call call;
    wk_call_begin(&call, code);
    wk_call_add(&call, y, NULL);
    for (size_t i = 0; i < n; i++) wk_call_add(&call, operands[i], NULL);
    call.op.p.norm.eps = eps;
    return wk_queue_result(&call, y);
}

wick_tensor *wick_rms_norm(wick_tensor *x, wick_tensor *weight, float eps) {
    return normalize("rms_norm", WK_OP_RMS_NORM, (wick_tensor *[]){x, weight}, 2, eps);
}

wick_tensor *wick_layer_norm(wick_tensor *x, wick_tensor *weight, wick_tensor *bias, float eps) {
    return normalize("layer_norm", WK_OP_LAYER_NORM, (wick_tensor *[]){x, weight, bias}, 3, eps);
}
