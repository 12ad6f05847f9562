/* ops/reorder.c: elements in another order: roll, flip, movedim. */
#include <wick/ops.h>

#include "ops/operand.h"

/* The last `shift` elements of dim come first. */
static wick_tensor *roll_dim(wick_tensor *x, int dim, int64_t shift) {
    const int64_t n = wick_tensor_shape(x).extent[dim];
    if (!x || n == 0) return x;
    const int64_t first = (shift % n + n) % n;
    if (first == 0) return x;
    wick_tensor *const parts[] = {wick_narrow(x, dim, n - first, first),
                                  wick_narrow(x, dim, 0, n - first)};
    return wick_cat(parts, WK_COUNT(parts), dim);
}

/* Through the elements in row-major order. */
static wick_tensor *roll_flat(wick_tensor *x, int64_t shift) {
    wick_tensor *const flat = wick_reshape(x, WICK_SHAPE(-1));
    return wick_reshape(roll_dim(flat, 0, shift), wk_tensor_shape_of(x));
}

wick_tensor *wick_roll(wick_tensor *x, int n, const int64_t *shifts, const int *dims) {
    if (!x || !wk_operand_is_scalars("roll", x)) return NULL;
    if (n < 0 || (n > 0 && !shifts) || (!dims && n != 1)) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "roll: %d shifts%s", n,
                       dims ? "" : " without dims, where one is expected");
        return NULL;
    }
    int d;
    for (int i = 0; dims && i < n; i++) {
        if (!wk_operand_dim("roll", x, dims[i], &d)) return NULL;
    }
    const wick_scope scope = wk_operation_begin(x->device, "roll");
    wick_tensor *y = x;
    for (int i = 0; dims && i < n; i++) {
        (void)wk_operand_dim("roll", x, dims[i], &d);
        y = roll_dim(y, d, shifts[i]);
    }
    if (!dims) y = roll_flat(x, shifts[0]);
    return wick_scope_result(scope, wk_fresh(y, x));
}

wick_tensor *wick_flip(wick_tensor *x, int n_dims, const int *dims) {
    if (!x || !wk_operand_is_scalars("flip", x)) return NULL;
    bool named[WICK_MAX_RANK];
    if (!wk_operand_dims("flip", x, n_dims, dims, named)) return NULL;
    const wick_scope scope = wk_operation_begin(x->device, "flip");
    wick_tensor *y = x;
    for (int i = 0; i < x->view.rank; i++) {
        const double n = (double)x->view.extent[i];
        if (!named[i] || n < 2) continue;
        const wick_dtype dtype = n <= UINT32_MAX ? WICK_U32 : WICK_I64;
        y = wick_index_select(y, i, wick_arange(x->device, dtype, n - 1, -1, -1));
    }
    return wick_scope_result(scope, wk_fresh(y, x));
}

wick_tensor *wick_movedim(wick_tensor *x, int n, const int *from, const int *to) {
    if (!x) return NULL;
    const int rank = x->view.rank;
    if (n < 0 || (n > 0 && (!from || !to))) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "movedim: %d dims", from && to ? n : 0);
        return NULL;
    }
    bool is_taken[WICK_MAX_RANK] = {false}, is_filled[WICK_MAX_RANK] = {false};
    static const int none = 0; /* an empty list, which NULL is not */
    if (!wk_operand_dims("movedim", x, n, n > 0 ? from : &none, is_taken)) return NULL;
    if (!wk_operand_dims("movedim", x, n, n > 0 ? to : &none, is_filled)) return NULL;
    int order[WICK_MAX_RANK] = {0};
    for (int i = 0; i < n; i++) {
        int source, target;
        (void)wk_operand_dim("movedim", x, from[i], &source);
        (void)wk_operand_dim("movedim", x, to[i], &target);
        order[target] = source;
    }
    for (int i = 0, next = 0; i < rank; i++) { /* the others keep their order */
        if (is_filled[i]) continue;
        while (is_taken[next]) next++;
        order[i] = next++;
    }
    return wick_permute(x, rank, order);
}
