/* ops/vector_products.c: products of vectors: dot, vecdot, mv, outer, cross, kron. */
#include <wick/ops.h>

#include "core/dtype.h"
#include "core/shape.h"
#include "ops/operand.h"

static bool check(const char *op, wick_tensor *a, wick_tensor *b) {
    return wk_operands_present(op, (wick_tensor *[]){a, b}, 2) && wk_operand_is_number(op, a) &&
           wk_operands_same_dtype(op, a, b) && wk_operand_is_scalars(op, a) &&
           wk_operand_is_scalars(op, b);
}

static wick_tensor *do_not_fit(const char *op, const wick_tensor *a, const wick_tensor *b) {
    const wick_shape shape_a = wk_tensor_shape_of(a), shape_b = wk_tensor_shape_of(b);
    char text[2][WK_SHAPE_TEXT];
    wk_device_fail(a->device, WICK_ERR_SHAPE, "%s: %s and %s do not fit", op,
                   wk_shape_text(&shape_a, text[0], sizeof text[0]),
                   wk_shape_text(&shape_b, text[1], sizeof text[1]));
    return NULL;
}

/* The sum of a b over dim; they broadcast. */
static wick_tensor *sum_of_products(const char *op, wick_tensor *a, wick_tensor *b, int dim) {
    const wick_scope scope = wk_operation_begin(a->device, op);
    wick_tensor *const product = wick_mul(wk_widened(a), wk_widened(b));
    wick_tensor *const sum = wick_sum(product, 1, &dim, false);
    return wick_scope_result(scope, wk_promoted(sum, a->view.dtype));
}

wick_tensor *wick_dot(wick_tensor *a, wick_tensor *b) {
    if (!check("dot", a, b)) return NULL;
    if (a->view.rank != 1 || b->view.rank != 1 || a->view.extent[0] != b->view.extent[0]) {
        return do_not_fit("dot", a, b);
    }
    return sum_of_products("dot", a, b, 0);
}

/* The shape of the operands together and the dim, from its end; of it both have the same extent. */
static bool common_dim(const char *op, wick_tensor *a, wick_tensor *b, int dim, int *from_end,
                       wick_shape *shape) {
    const wick_shape shape_a = wk_tensor_shape_of(a), shape_b = wk_tensor_shape_of(b);
    int d;
    if (!wk_shape_broadcast(&shape_a, &shape_b, shape)) return do_not_fit(op, a, b) != NULL;
    if (!wk_operand_dim(op, shape_a.rank >= shape_b.rank ? a : b, dim, &d)) return false;
    *from_end = d - shape->rank;
    const int in_a = shape_a.rank + *from_end, in_b = shape_b.rank + *from_end;
    if (in_a >= 0 && in_b >= 0 && shape_a.extent[in_a] == shape_b.extent[in_b]) return true;
    return do_not_fit(op, a, b) != NULL;
}

wick_tensor *wick_vecdot(wick_tensor *a, wick_tensor *b, int dim) {
    int from_end;
    wick_shape shape;
    if (!check("vecdot", a, b)) return NULL;
    if (!common_dim("vecdot", a, b, dim, &from_end, &shape)) return NULL;
    return sum_of_products("vecdot", a, b, from_end);
}

wick_tensor *wick_mv(wick_tensor *m, wick_tensor *v) {
    if (!check("mv", m, v)) return NULL;
    if (m->view.rank != 2 || v->view.rank != 1 || m->view.extent[1] != v->view.extent[0]) {
        return do_not_fit("mv", m, v);
    }
    const wick_scope scope = wk_operation_begin(m->device, "mv");
    wick_tensor *const y =
        wk_dtype_is_float(m->view.dtype) ? wick_matmul(m, v) : sum_of_products("mv", m, v, 1);
    return wick_scope_result(scope, y);
}

wick_tensor *wick_outer(wick_tensor *a, wick_tensor *b) {
    if (!check("outer", a, b)) return NULL;
    if (a->view.rank != 1 || b->view.rank != 1) return do_not_fit("outer", a, b);
    const wick_scope scope = wk_operation_begin(a->device, "outer");
    return wick_scope_result(scope, wick_mul(wick_unsqueeze(a, 1), b));
}

/* Elements first, first + 1, ... of dim (of three), counted round. */
static wick_tensor *turned(wick_tensor *x, int dim, int64_t first) {
    return wick_roll(x, 1, &(int64_t){-first}, &dim);
}

/* Element i is a[i + 1] b[i + 2] - a[i + 2] b[i + 1]. */
wick_tensor *wick_cross(wick_tensor *a, wick_tensor *b, int dim) {
    int d;
    wick_shape shape;
    if (!check("cross", a, b) || !common_dim("cross", a, b, dim, &d, &shape)) return NULL;
    if (shape.extent[shape.rank + d] != 3) return do_not_fit("cross", a, b);
    const wick_scope scope = wk_operation_begin(a->device, "cross");
    wick_tensor *const x = wk_widened(a), *const y = wk_widened(b);
    wick_tensor *const left = wick_mul(turned(x, d, 1), turned(y, d, 2));
    wick_tensor *const right = wick_mul(turned(x, d, 2), turned(y, d, 1));
    wick_tensor *const z = wick_sub(left, right);
    return wick_scope_result(scope, wk_promoted(z, a->view.dtype));
}

/* Element i of a and j of b meet in dims of their own, [m, 1] and [1, p], which then become one. */
wick_tensor *wick_kron(wick_tensor *a, wick_tensor *b) {
    if (!check("kron", a, b)) return NULL;
    const int rank = a->view.rank;
    if (b->view.rank != rank || 2 * rank > WICK_MAX_RANK) return do_not_fit("kron", a, b);
    wick_shape left = {.rank = 2 * rank}, right = left, both = {.rank = rank};
    for (int d = 0; d < rank; d++) {
        left.extent[2 * d] = a->view.extent[d];
        right.extent[2 * d + 1] = b->view.extent[d];
        left.extent[2 * d + 1] = right.extent[2 * d] = 1;
    }
    const wick_scope scope = wk_operation_begin(a->device, "kron");
    wick_tensor *const y = wick_mul(wick_reshape(a, left), wick_reshape(b, right));
    for (int d = 0; y && d < rank; d++) /* of a tensor that there is: no overflow */
        both.extent[d] = y->view.extent[2 * d] * y->view.extent[2 * d + 1];
    return wick_scope_result(scope, wick_reshape(y, both));
}
