/* ops/unique.c: the different values of a tensor. */
#include <wick/ops.h>

#include "ops/operand.h"
#include "ops/search.h"

/* The elements of x [n] in their order, and how many different ones there are up to each. */
typedef struct groups {
    wick_tensor *sorted, *order, *running;
} groups;

static bool check(const char *op, const wick_tensor *x) {
    return wk_operand_is_scalars(op, x) && wk_has_u32_places(op, x, wick_tensor_size(x));
}

static void find_groups(wick_tensor *x, groups *g) {
    wick_tensor *flat = wick_reshape(x, WICK_SHAPE(-1));
    if (x->view.dtype == WICK_BOOL) flat = wick_cast(flat, WICK_U8);
    g->sorted = wick_sort(flat, 0, false, &g->order);
    g->running = wick_cast(g->sorted, WICK_U32);
    const int64_t n = wick_tensor_size(x);
    if (n == 0 || !g->sorted) return;
    wick_tensor *const next = wick_narrow(g->sorted, 0, 1, n - 1);
    wick_tensor *const differs = wick_ne(next, wick_narrow(g->sorted, 0, 0, n - 1));
    wick_tensor *const first = wick_ones(x->device, WICK_U8, WICK_SHAPE(1));
    wick_tensor *const is_first = wick_cat((wick_tensor *[]){first, differs}, 2, 0);
    g->running = wick_cumsum(wick_cast(is_first, WICK_U32), 0);
}

/* The group of each element, in the shape of x. order[i] is the element that comes i-th, so what
 * sorts it says where each element went. */
static wick_tensor *inverse_of(wick_tensor *x, const groups *g) {
    wick_tensor *const group = wick_affine(g->running, 1, -1);
    wick_tensor *const place = wick_argsort(g->order, 0, false);
    return wick_reshape(wick_index_select(group, 0, place), wk_tensor_shape_of(x));
}

wick_tensor *wick_unique_inverse(wick_tensor *x) {
    if (!x || !check("unique_inverse", x)) return NULL;
    groups g;
    const wick_scope scope = wk_operation_begin(x->device, "unique_inverse");
    find_groups(x, &g);
    return wick_scope_result(scope, inverse_of(x, &g));
}

/* How far apart the groups begin, the last one ending at n. */
static wick_tensor *lengths(wick_tensor *starts, int64_t n) {
    if (!starts || wk_tensor_is_empty(starts)) return wick_contiguous(starts);
    const int64_t count = starts->view.extent[0];
    wick_tensor *const end = wick_full(starts->device, WICK_U32, WICK_SHAPE(1), (double)n);
    wick_tensor *const later = wick_narrow(starts, 0, 1, count - 1);
    wick_tensor *const ends = wick_cat((wick_tensor *[]){later, end}, 2, 0);
    return wick_sub(ends, starts);
}

wick_tensor *wick_unique(wick_tensor *x, int64_t count, wick_tensor **indices,
                         wick_tensor **inverse, wick_tensor **counts) {
    wick_tensor **const out[] = {indices, inverse, counts};
    for (size_t i = 0; i < WK_COUNT(out); i++) {
        if (out[i]) *out[i] = NULL;
    }
    if (!x || !check("unique", x)) return NULL;
    groups g;
    const wick_scope scope = wk_operation_begin(x->device, "unique");
    find_groups(x, &g);
    wick_tensor *const starts = wk_first_places(g.running, count);
    wick_tensor *const values = wick_index_select(g.sorted, 0, starts);
    wick_tensor *y = wk_promoted(values, x->view.dtype);
    wick_tensor *more[WK_COUNT(out)] = {NULL};
    if (indices) more[0] = wick_index_select(g.order, 0, starts);
    if (inverse) more[1] = inverse_of(x, &g);
    if (counts) more[2] = lengths(starts, wick_tensor_size(x));
    for (size_t i = 0; i < WK_COUNT(out); i++) {
        if (out[i] && !more[i]) y = NULL;
    }
    for (size_t i = 0; y && i < WK_COUNT(out); i++) {
        if (out[i]) *out[i] = wk_scope_keep(scope, more[i]);
    }
    return wick_scope_result(scope, y);
}
