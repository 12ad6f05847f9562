/* ops/search.c: places of values in sorted ones: searchsorted, isin. */
#include "ops/search.h"

#include <wick/ops.h>

#include "core/dtype.h"
#include "core/shape.h"
#include "ops/operand.h"

#include <inttypes.h>

/* u8: where elements found come before values, which NaN (is_nan, or NULL) comes after. */
static wick_tensor *come_before(wick_tensor *found, wick_tensor *values, wick_tensor *is_nan,
                                bool right) {
    wick_tensor *const y = right ? wick_le(found, values) : wick_lt(found, values);
    return is_nan ? wick_maximum(y, is_nan) : y;
}

/* If element half - 1 after base comes before the value, the half elements up to it all do, and
 * base moves on by as many. What is left has the same length for every value, so that all of them
 * are searched at once:
 *
 *   n = 6: base += 3 or 0, 3 are left; base += 1 or 0, 2; base += 1 or 0, 1; base += 1 or 0 */
wick_tensor *wk_search_rows(wick_tensor *sorted, wick_tensor *values, bool right) {
    if (!sorted || !values) return NULL;
    const int last = sorted->view.rank - 1;
    const wick_shape shape = wk_tensor_shape_of(values);
    int64_t left = sorted->view.extent[last];
    const wick_scope scope = wk_operation_begin(sorted->device, "searchsorted");
    wick_tensor *const is_nan =
        wk_dtype_is_float(values->view.dtype) ? wick_ne(values, values) : NULL;
    wick_tensor *base = wick_zeros(sorted->device, WICK_U32, shape);
    while (base && left > 0) {
        const int64_t half = left > 1 ? left / 2 : 1;
        wick_tensor *const at = wick_affine(base, 1, (double)(half - 1));
        wick_tensor *const found = wick_gather(sorted, last, at);
        wick_tensor *const moves = come_before(found, values, is_nan, right);
        base = wick_where(moves, wick_affine(base, 1, (double)half), base);
        left -= half;
    }
    return wick_scope_result(scope, base);
}

bool wk_has_u32_places(const char *op, const wick_tensor *x, int64_t count) {
    if (count < UINT32_MAX) return true;
    wk_device_fail(x->device, WICK_ERR_SHAPE,
                   "%s: places among %" PRId64 " elements do not fit u32", op, count);
    return false;
}

static bool check_rows(const wick_tensor *sorted, const wick_tensor *values) {
    const wick_shape rows = wk_tensor_shape_of(sorted);
    wick_shape shape = wk_tensor_shape_of(values);
    if (rows.rank == 1) return true; /* for values of any shape */
    if (rows.rank > 0 && shape.rank == rows.rank) {
        shape.extent[rows.rank - 1] = rows.extent[rows.rank - 1];
        if (wk_shape_equal(&shape, &rows)) return true;
    }
    shape = wk_tensor_shape_of(values);
    char text[2][WK_SHAPE_TEXT];
    wk_device_fail(sorted->device, WICK_ERR_SHAPE,
                   "searchsorted: values %s do not fit sorted ones of %s",
                   wk_shape_text(&shape, text[0], sizeof text[0]),
                   wk_shape_text(&rows, text[1], sizeof text[1]));
    return false;
}

wick_tensor *wick_searchsorted(wick_tensor *sorted, wick_tensor *values, bool right) {
    static const char op[] = "searchsorted";
    if (!wk_operands_present(op, (wick_tensor *[]){sorted, values}, 2)) return NULL;
    if (!wk_operand_is_number(op, sorted) || !wk_operands_same_dtype(op, sorted, values)) {
        return NULL;
    }
    if (!wk_operand_is_scalars(op, sorted) || !wk_operand_is_scalars(op, values)) return NULL;
    if (!check_rows(sorted, values)) return NULL;
    const int rank = sorted->view.rank;
    if (!wk_has_u32_places(op, sorted, sorted->view.extent[rank - 1])) return NULL;
    if (rank > 1) return wk_search_rows(sorted, values, right);
    const wick_scope scope = wk_operation_begin(sorted->device, op);
    wick_tensor *const places = wk_search_rows(sorted, wick_reshape(values, WICK_SHAPE(-1)), right);
    return wick_scope_result(scope, wick_reshape(places, wk_tensor_shape_of(values)));
}

wick_tensor *wick_isin(wick_tensor *x, wick_tensor *set) {
    if (!wk_operands_present("isin", (wick_tensor *[]){x, set}, 2)) return NULL;
    if (!wk_operands_same_dtype("isin", x, set) || !wk_operand_is_number("isin", x)) return NULL;
    if (!wk_operand_is_scalars("isin", x) || !wk_operand_is_scalars("isin", set)) return NULL;
    const int64_t n = wick_tensor_size(set);
    if (!wk_has_u32_places("isin", set, n)) return NULL;
    const wick_shape shape = wk_tensor_shape_of(x);
    const wick_scope scope = wk_operation_begin(x->device, "isin");
    if (n == 0) return wick_scope_result(scope, wick_zeros(x->device, WICK_U8, shape));
    wick_tensor *const values = wick_reshape(x, WICK_SHAPE(-1));
    wick_tensor *const sorted = wick_sort(wick_reshape(set, WICK_SHAPE(-1)), 0, false, NULL);
    wick_tensor *const places = wk_search_rows(sorted, values, false);
    /* What is larger than all would stand after the last one. */
    wick_tensor *const nearest = wick_gather(sorted, 0, wick_clamp(places, 0, (double)(n - 1)));
    return wick_scope_result(scope, wick_reshape(wick_eq(nearest, values), shape));
}
