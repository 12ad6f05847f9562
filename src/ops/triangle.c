/* ops/triangle.c: what a diagonal divides: eye, tril, triu. */
#include <wick/ops.h>

#include "ops/operand.h"

#include <inttypes.h>

wick_tensor *wick_eye(wick_device *device, wick_dtype dtype, int64_t n) {
    if (!device) return NULL;
    if (n < 0) {
        wk_device_fail(device, WICK_ERR_VALUE, "eye: n is %" PRId64, n);
        return NULL;
    }
    if (!wk_dtype_is_writable("eye", device, dtype)) return NULL;
    const wick_scope scope = wk_operation_begin(device, "eye");
    wick_tensor *const y = wick_zeros(device, dtype, WICK_SHAPE(n, n));
    if (!y || n == 0) return wick_scope_result(scope, y);
    wk_view diagonal = y->view;
    diagonal.rank = 1;
    diagonal.stride[0] = n + 1;
    wk_call call;
    wk_call_begin(&call, WK_OP_FILL, "eye");
    wk_call_add(&call, y, &diagonal);
    call.op.p.fill.real = 1;
    call.op.p.fill.integer = 1;
    return wick_scope_result(scope, wk_queue_result(&call, y));
}

/* x where row + diagonal stands in the order that compare says to the column, else 0. */
static wick_tensor *triangle(const char *op, wick_tensor *x, int64_t diagonal,
                             wick_tensor *(*compare)(wick_tensor *a, wick_tensor *b)) {
    if (!x) return NULL;
    const int rank = x->view.rank;
    if (!wk_operand_is_scalars(op, x)) return NULL;
    if (rank < 2) {
        wk_device_fail(x->device, WICK_ERR_SHAPE, "%s: x has rank %d, not 2 or more", op, rank);
        return NULL;
    }
    const int64_t m = x->view.extent[rank - 2], n = x->view.extent[rank - 1];
    /* Beyond these all or nothing is kept. */
    const wick_scope scope = wk_operation_begin(x->device, op);
    const double shift = (double)(diagonal < -m ? -m : diagonal > n ? n : diagonal);
    wick_tensor *const shifted = wick_arange(x->device, WICK_I64, shift, shift + (double)m, 1);
    wick_tensor *const rows = wick_unsqueeze(shifted, 1);
    wick_tensor *const columns = wick_arange(x->device, WICK_I64, 0, (double)n, 1);
    wick_tensor *const mask = compare(rows, columns);
    wick_tensor *const zero = wick_zeros(x->device, x->view.dtype, WICK_SCALAR);
    return wick_scope_result(scope, wick_where(mask, x, zero));
}

wick_tensor *wick_tril(wick_tensor *x, int64_t diagonal) {
    return triangle("tril", x, diagonal, wick_ge);
}

wick_tensor *wick_triu(wick_tensor *x, int64_t diagonal) {
    return triangle("triu", x, diagonal, wick_le);
}
