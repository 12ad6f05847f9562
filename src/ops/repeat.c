/* ops/repeat.c: elements again: repeat, tile, repeat_interleave. */
#include <wick/ops.h>

#include "core/shape.h"
#include "ops/operand.h"

#include <inttypes.h>

/* x as [rows, columns], each row count times, in the shape y. */
static wick_tensor *repeat_rows(wick_tensor *x, int64_t rows, int64_t columns, int64_t count,
                                const wick_shape *y) {
    wick_tensor *const flat = wick_reshape(x, WICK_SHAPE(rows, 1, columns));
    return wick_reshape(wick_expand(flat, WICK_SHAPE(rows, count, columns)), *y);
}

/* Product of the extents [first, end) of shape. */
static int64_t extents(const wick_shape *shape, int first, int end) {
    int64_t product = 1;
    for (int i = first; i < end; i++) product *= shape->extent[i];
    return product;
}

/* shape becomes that of the result; false after reporting that there is none. */
static bool multiply(const char *op, const wick_tensor *x, wick_shape *shape, int dim,
                     int64_t count) {
    if (count < 0) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "%s: %" PRId64 " repeats", op, count);
        return false;
    }
    if (count == 0 || shape->extent[dim] <= INT64_MAX / count) {
        int64_t size;
        shape->extent[dim] *= count;
        if (wk_shape_count(shape, &size)) return true;
    }
    wk_device_fail(x->device, WICK_ERR_SHAPE, "%s: the result is too large", op);
    return false;
}

/* repeats [n]: for the last n dims, n >= the rank of x. */
static wick_tensor *repeat(const char *op, wick_tensor *x, int n, const int64_t *repeats) {
    const int added = n - x->view.rank;
    wick_shape shape = {.rank = n}, final;
    for (int i = 0; i < n; i++) shape.extent[i] = i < added ? 1 : x->view.extent[i - added];
    final = shape;
    for (int i = 0; i < n; i++) {
        if (!multiply(op, x, &final, i, repeats[i])) return NULL;
    }
    /* What stands between may be too large for 64 bits where the result is empty. */
    if (extents(&final, 0, n) == 0) return wick_empty(x->device, x->view.dtype, final);
    const wick_scope scope = wk_operation_begin(x->device, op);
    wick_tensor *y = wick_reshape(x, shape);
    for (int i = n - 1; i >= 0; i--) {
        if (repeats[i] == 1) continue;
        const int64_t rows = extents(&shape, 0, i), columns = extents(&shape, i, n);
        shape.extent[i] *= repeats[i];
        y = repeat_rows(y, rows, columns, repeats[i], &shape);
    }
    return wick_scope_result(scope, wk_fresh(y, x));
}

static bool check(const char *op, const wick_tensor *x, int n, const int64_t *repeats) {
    if (!wk_operand_is_scalars(op, x)) return false;
    if (n >= 0 && n <= WICK_MAX_RANK && (repeats || n == 0)) return true;
    wk_device_fail(x->device, WICK_ERR_SHAPE, "%s: %d repeats, where the rank cannot exceed %d", op,
                   repeats ? n : 0, WICK_MAX_RANK);
    return false;
}

wick_tensor *wick_repeat(wick_tensor *x, int n, const int64_t *repeats) {
    if (!x || !check("repeat", x, n, repeats)) return NULL;
    if (n >= x->view.rank) return repeat("repeat", x, n, repeats);
    wk_device_fail(x->device, WICK_ERR_SHAPE, "repeat: %d repeats for a tensor of rank %d", n,
                   x->view.rank);
    return NULL;
}

wick_tensor *wick_tile(wick_tensor *x, int n, const int64_t *repeats) {
    if (!x || !check("tile", x, n, repeats)) return NULL;
    if (n >= x->view.rank) return repeat("tile", x, n, repeats);
    int64_t all[WICK_MAX_RANK];
    const int missing = x->view.rank - n;
    for (int i = 0; i < x->view.rank; i++) all[i] = i < missing ? 1 : repeats[i - missing];
    return repeat("tile", x, x->view.rank, all);
}

wick_tensor *wick_repeat_interleave(wick_tensor *x, int64_t count, int dim) {
    static const char op[] = "repeat_interleave";
    int d;
    if (!x || !wk_operand_is_scalars(op, x) || !wk_operand_dim(op, x, dim, &d)) return NULL;
    const wick_shape from = wk_tensor_shape_of(x);
    wick_shape shape = from;
    if (!multiply(op, x, &shape, d, count)) return NULL;
    const wick_scope scope = wk_operation_begin(x->device, op);
    wick_tensor *const y =
        repeat_rows(x, extents(&from, 0, d + 1), extents(&from, d + 1, from.rank), count, &shape);
    return wick_scope_result(scope, wk_fresh(y, x));
}
