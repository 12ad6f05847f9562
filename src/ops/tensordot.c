/* ops/tensordot.c: the sum of products over chosen dims, as a product of matrices. */
#include <wick/ops.h>

#include "core/shape.h"
#include "ops/operand.h"

/* One operand: which dims the sum goes over, and how they are ordered for a matrix product. */
typedef struct side {
    int summed[WICK_MAX_RANK], n_summed;
    int kept[WICK_MAX_RANK], n_kept;
    int64_t rows, columns; /* elements of those kept, and of those summed */
} side;

static bool make_side(const wick_tensor *x, int n, const int *dims, side *out) {
    bool is_summed[WICK_MAX_RANK];
    static const int none = 0;
    if (n > x->view.rank) {
        wk_device_fail(x->device, WICK_ERR_DIM, "tensordot: %d dims for a tensor of rank %d", n,
                       x->view.rank);
        return false;
    }
    if (!wk_operand_dims("tensordot", x, n, n > 0 ? dims : &none, is_summed)) return false;
    *out = (side){.n_summed = n, .rows = 1, .columns = 1};
    for (int i = 0; i < n; i++) {
        (void)wk_operand_dim("tensordot", x, dims[i], &out->summed[i]);
        out->columns *= x->view.extent[out->summed[i]];
    }
    for (int i = 0; i < x->view.rank; i++) {
        if (is_summed[i]) continue;
        out->kept[out->n_kept++] = i;
        out->rows *= x->view.extent[i];
    }
    return true;
}

/* x as [rows, columns], or as [columns, rows]. */
static wick_tensor *as_matrix(wick_tensor *x, const side *s, bool is_transposed) {
    int order[WICK_MAX_RANK];
    for (int i = 0; i < s->n_kept; i++) order[i + (is_transposed ? s->n_summed : 0)] = s->kept[i];
    for (int i = 0; i < s->n_summed; i++) order[i + (is_transposed ? 0 : s->n_kept)] = s->summed[i];
    wick_tensor *const y = wick_permute(x, s->n_kept + s->n_summed, order);
    return wick_reshape(y, is_transposed ? WICK_SHAPE(s->columns, s->rows)
                                         : WICK_SHAPE(s->rows, s->columns));
}

static bool result_shape(const wick_tensor *a, const side *of_a, const wick_tensor *b,
                         const side *of_b, wick_shape *out) {
    for (int i = 0; i < of_a->n_summed; i++) {
        const int d = of_a->summed[i], e = of_b->summed[i];
        if (a->view.extent[d] == b->view.extent[e]) continue;
        wk_device_fail(a->device, WICK_ERR_SHAPE,
                       "tensordot: dim %d of a and dim %d of b differ in extent", d, e);
        return false;
    }
    *out = (wick_shape){.rank = of_a->n_kept + of_b->n_kept};
    if (out->rank > WICK_MAX_RANK) {
        wk_device_fail(a->device, WICK_ERR_SHAPE, "tensordot: the rank %d exceeds %d", out->rank,
                       WICK_MAX_RANK);
        return false;
    }
    for (int i = 0; i < of_a->n_kept; i++) out->extent[i] = a->view.extent[of_a->kept[i]];
    for (int i = 0; i < of_b->n_kept; i++) {
        out->extent[of_a->n_kept + i] = b->view.extent[of_b->kept[i]];
    }
    return true;
}

wick_tensor *wick_tensordot(wick_tensor *a, wick_tensor *b, int n, const int *dims_a,
                            const int *dims_b) {
    static const char op[] = "tensordot";
    if (!wk_operands_present(op, (wick_tensor *[]){a, b}, 2)) return NULL;
    if (!wk_operand_is_float(op, a) || !wk_operands_same_dtype(op, a, b)) return NULL;
    if (!wk_operand_is_scalars(op, a) || !wk_operand_is_scalars(op, b)) return NULL;
    if (n < 0 || (n > 0 && (!dims_a || !dims_b))) {
        wk_device_fail(a->device, WICK_ERR_VALUE, "tensordot: %d dims", dims_a && dims_b ? n : 0);
        return NULL;
    }
    side of_a, of_b;
    wick_shape shape;
    if (!make_side(a, n, dims_a, &of_a) || !make_side(b, n, dims_b, &of_b)) return NULL;
    if (!result_shape(a, &of_a, b, &of_b, &shape)) return NULL;
    const wick_scope scope = wk_operation_begin(a->device, op);
    wick_tensor *const y = wick_matmul(as_matrix(a, &of_a, false), as_matrix(b, &of_b, true));
    return wick_scope_result(scope, wick_reshape(y, shape));
}
