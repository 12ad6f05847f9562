/* ops/diagonal.c: the diagonals of matrices: diagonal, diag, trace. */
#include <wick/ops.h>

#include "ops/operand.h"
#include "ops/view.h"

#include <inttypes.h>

/* The diagonal of dims d0 and d1, resolved and not the same. */
static wick_tensor *diagonal(const char *op, wick_tensor *x, int64_t offset, int d0, int d1) {
    const int64_t m = x->view.extent[d0], n = x->view.extent[d1];
    const int64_t row = offset >= 0 ? 0 : offset > -m ? -offset : m; /* where it begins */
    const int64_t column = offset <= 0 ? 0 : offset < n ? offset : n;
    const wick_scope scope = wk_operation_begin(x->device, op);
    wick_tensor *y = x;
    if (row > 0) y = wick_narrow(y, d0, row, m - row);
    if (column > 0) y = wick_narrow(y, d1, column, n - column);
    if (y) {
        const wk_view_step step = {.kind = WK_VIEW_DIAGONAL, .diagonal.dim = {d0, d1}};
        wk_view view;
        wk_view_diagonal(&y->view, d0, d1, &view);
        y = wk_tensor_view(y, &view, &step);
    }
    return wick_scope_result(scope, y);
}

wick_tensor *wick_diagonal(wick_tensor *x, int64_t offset, int dim0, int dim1) {
    int d0, d1;
    if (!x || !wk_operand_is_scalars("diagonal", x)) return NULL;
    if (!wk_operand_dim("diagonal", x, dim0, &d0)) return NULL;
    if (!wk_operand_dim("diagonal", x, dim1, &d1)) return NULL;
    if (d0 != d1) return diagonal("diagonal", x, offset, d0, d1);
    wk_device_fail(x->device, WICK_ERR_DIM, "diagonal: dim %d is named twice", dim1);
    return NULL;
}

/* [n, n] with x [..] on a diagonal, zeros elsewhere. */
static wick_tensor *matrix_of(wick_tensor *x, int64_t offset) {
    const int64_t most = INT64_C(1) << 31; /* whose square is too large */
    const int64_t moved = offset < -most || offset > most ? most : offset < 0 ? -offset : offset;
    if (x->view.extent[0] > most - moved) {
        wk_device_fail(x->device, WICK_ERR_SHAPE,
                       "diag: no matrix with %" PRId64 " elements on diagonal %" PRId64,
                       x->view.extent[0], offset);
        return NULL;
    }
    const int64_t n = x->view.extent[0] + moved;
    const wick_scope scope = wk_operation_begin(x->device, "diag");
    wick_tensor *y = wick_zeros(x->device, x->view.dtype, WICK_SHAPE(n, n));
    if (y) {
        const int64_t length = x->view.extent[0];
        wk_view view;
        wk_view_slice(&y->view, offset < 0 ? 0 : 1, moved, length, 1, &view);
        wk_view_diagonal(&view, 0, 1, &view);
        if (wk_queue_copy(y, &view, x, &x->view) != WICK_OK) y = NULL;
    }
    return wick_scope_result(scope, y);
}

wick_tensor *wick_diag(wick_tensor *x, int64_t offset) {
    if (!x || !wk_operand_is_scalars("diag", x)) return NULL;
    if (x->view.rank == 2) return diagonal("diag", x, offset, 0, 1);
    if (x->view.rank == 1) return matrix_of(x, offset);
    wk_device_fail(x->device, WICK_ERR_SHAPE, "diag: x has rank %d, not 1 or 2", x->view.rank);
    return NULL;
}

wick_tensor *wick_trace(wick_tensor *x, int64_t offset) {
    if (!x || !wk_operand_is_scalars("trace", x) || !wk_operand_is_number("trace", x)) return NULL;
    const int rank = x->view.rank;
    if (rank < 2) {
        wk_device_fail(x->device, WICK_ERR_SHAPE, "trace: x has rank %d, not 2 or more", rank);
        return NULL;
    }
    const int last = rank - 2; /* of the diagonals */
    const wick_scope scope = wk_operation_begin(x->device, "trace");
    wick_tensor *const elements = diagonal("trace", x, offset, rank - 2, rank - 1);
    return wick_scope_result(scope, wick_sum(elements, 1, &last, false));
}
