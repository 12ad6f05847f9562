/* ops/matmul.c: products: matmul for floats of any strides, linear for weights of any layout. */
#include <wick/ops.h>

#include "core/shape.h"
#include "ops/operand.h"
#include "ops/view.h"

/* Shapes of the broadcast operands [.., m, k] and [.., k, n], and of the result [.., m, n]. */
typedef struct product_shapes {
    wick_shape a, b, c;
} product_shapes;

static bool product_shapes_of(const wick_shape *a, const wick_shape *b, product_shapes *out) {
    if (a->rank < 2 || b->rank < 2) return false;
    const int64_t m = a->extent[a->rank - 2], k = a->extent[a->rank - 1];
    const int64_t n = b->extent[b->rank - 1];
    if (b->extent[b->rank - 2] != k) return false;
    wick_shape batch_a = *a, batch_b = *b, batch;
    batch_a.rank -= 2;
    batch_b.rank -= 2;
    if (!wk_shape_broadcast(&batch_a, &batch_b, &batch)) return false;
    const int rank = batch.rank + 2;
    batch.rank = rank;
    batch.extent[rank - 2] = m;
    batch.extent[rank - 1] = n;
    *out = (product_shapes){.a = batch, .b = batch, .c = batch};
    out->a.extent[rank - 1] = k;
    out->b.extent[rank - 2] = k;
    return true;
}

/* Of operands of which one or both are vectors: a row or a column, whose dim then goes. */
static wick_tensor *product_with_vector(wick_tensor *a, wick_tensor *b) {
    const bool is_row = a->view.rank == 1, is_column = b->view.rank == 1;
    const wick_scope scope = wk_operation_begin(a->device, "matmul");
    wick_tensor *c =
        wick_matmul(is_row ? wick_unsqueeze(a, 0) : a, is_column ? wick_unsqueeze(b, 1) : b);
    if (is_column) c = wick_squeeze(c, -1);
    if (is_row) c = wick_squeeze(c, is_column ? -1 : -2);
    return wick_scope_result(scope, c);
}

/* A vector as it stands in a product: a row on the left, a column on the right. */
static wick_shape as_factor(const wick_tensor *x, bool is_left) {
    const wick_shape shape = wk_tensor_shape_of(x);
    if (shape.rank != 1) return shape;
    return is_left ? WICK_SHAPE(1, shape.extent[0]) : WICK_SHAPE(shape.extent[0], 1);
}

wick_tensor *wick_matmul(wick_tensor *a, wick_tensor *b) {
    if (!wk_operands_present("matmul", (wick_tensor *[]){a, b}, 2)) return NULL;
    if (!wk_operand_is_float("matmul", a) || !wk_operands_same_dtype("matmul", a, b)) return NULL;
    if (!wk_operand_is_strided("matmul", a) || !wk_operand_is_strided("matmul", b)) return NULL;
    const wick_shape shape_a = wk_tensor_shape_of(a), shape_b = wk_tensor_shape_of(b);
    const wick_shape left = as_factor(a, true), right = as_factor(b, false);
    product_shapes shapes;
    if (!product_shapes_of(&left, &right, &shapes)) {
        char text[2][WK_SHAPE_TEXT];
        wk_device_fail(a->device, WICK_ERR_SHAPE,
                       "matmul: %s and %s are not [.., m, k] and [.., k, n]",
                       wk_shape_text(&shape_a, text[0], sizeof text[0]),
                       wk_shape_text(&shape_b, text[1], sizeof text[1]));
        return NULL;
    }
    if (shape_a.rank == 1 || shape_b.rank == 1) return product_with_vector(a, b);
    /* Sums over nothing: kernels need not know about them. */
    if (shape_a.extent[shape_a.rank - 1] == 0) {
        const wick_scope scope = wk_operation_begin(a->device, "matmul");
        return wick_scope_result(scope, wick_zeros(a->device, a->view.dtype, shapes.c));
    }
    wk_view view_a, view_b;
    wk_view_expand(&a->view, &shapes.a, &view_a);
    wk_view_expand(&b->view, &shapes.b, &view_b);
    wick_tensor *c = wk_tensor_new(a->device, a->view.dtype, &shapes.c);
    wk_call call;
    wk_call_begin(&call, WK_OP_MATMUL, "matmul");
    wk_call_add(&call, c, NULL);
    wk_call_add(&call, a, &view_a);
    wk_call_add(&call, b, &view_b);
    return wk_queue_result(&call, c);
}

static bool check_linear(const wick_tensor *x, const wick_tensor *weight, const wick_tensor *bias) {
    if (!wk_operand_is_float("linear", x) || !wk_operand_is_strided("linear", x)) return false;
    if (!wk_operand_is_weight("linear", weight, 2)) return false;
    const wick_shape shape_x = wk_tensor_shape_of(x), shape = wk_tensor_shape_of(weight);
    char text[2][WK_SHAPE_TEXT];
    if (shape_x.rank == 0 || shape.extent[1] != shape_x.extent[shape_x.rank - 1]) {
        wk_device_fail(x->device, WICK_ERR_SHAPE,
                       "linear: weight %s and x %s are not [n, k] and [.., k]",
                       wk_shape_text(&shape, text[0], sizeof text[0]),
                       wk_shape_text(&shape_x, text[1], sizeof text[1]));
        return false;
    }
    if (!bias) return true;
    if (!wk_operand_is_float("linear", bias) || !wk_operand_is_strided("linear", bias)) {
        return false;
    }
    const wick_shape shape_bias = wk_tensor_shape_of(bias);
    if (shape_bias.rank == 1 && shape_bias.extent[0] == shape.extent[0]) return true;
    wk_device_fail(x->device, WICK_ERR_SHAPE,
                   "linear: bias %s and weight %s are not [n] and [n, k]",
                   wk_shape_text(&shape_bias, text[0], sizeof text[0]),
                   wk_shape_text(&shape, text[1], sizeof text[1]));
    return false;
}

/* x of any rank seen as [m, k]: a view of x, or of a copy in *temp where its strides force one. */
static bool as_rows(wick_tensor *x, wick_tensor **temp, wk_view *rows) {
    const int64_t k = x->view.extent[x->view.rank - 1];
    int64_t m = 1;
    for (int i = 0; i < x->view.rank - 1; i++) m *= x->view.extent[i];
    const wick_shape shape = {.rank = 2, .extent = {m, k}};
    *temp = NULL;
    if (wk_view_reshape(&x->view, &shape, rows)) return true;
    *temp = wk_dense_copy(x, x->view.dtype);
    return *temp && wk_view_reshape(&(*temp)->view, &shape, rows);
}

/* y [.., n] of a product over nothing: the bias, or zeros. */
static wick_tensor *empty_product(wick_tensor *x, wick_tensor *bias, wick_shape shape) {
    wick_tensor *const y = wick_zeros(x->device, x->view.dtype, shape);
    return !bias || wick_copy(y, bias) ? y : NULL;
}

wick_tensor *wick_linear(wick_tensor *x, wick_tensor *weight, wick_tensor *bias) {
    if (!wk_operands_present("linear", (wick_tensor *[]){x, weight, bias}, bias ? 3 : 2)) {
        return NULL;
    }
    if (!check_linear(x, weight, bias)) return NULL;
    wick_shape shape = wk_tensor_shape_of(x);
    shape.extent[shape.rank - 1] = weight->view.extent[0];
    const wick_scope scope = wk_operation_begin(x->device, "linear");
    if (weight->view.extent[1] == 0) return wick_scope_result(scope, empty_product(x, bias, shape));
    wick_tensor *temp, *y = NULL;
    wk_view rows;
    if (as_rows(x, &temp, &rows)) y = wk_tensor_new(x->device, x->view.dtype, &shape);
    if (y) {
        const wick_shape flat = {.rank = 2, .extent = {rows.extent[0], weight->view.extent[0]}};
        wk_view view_y;
        wk_view_reshape(&y->view, &flat, &view_y);
        wk_call call;
        wk_call_begin(&call, WK_OP_LINEAR, "linear");
        wk_call_add(&call, y, &view_y);
        wk_call_add(&call, temp ? temp : x, &rows);
        wk_call_add(&call, weight, NULL);
        wk_call_add(&call, bias, NULL);
        call.op.p.linear.fast = wick_device_math(x->device) == WICK_MATH_FAST;
        y = wk_queue_result(&call, y);
    }
    return wick_scope_result(scope, y);
}
