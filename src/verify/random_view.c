/* verify/random_view.c: see random_view.h. */
#include "verify/random_view.h"

#include "core/compiler.h"
#include "core/dtype.h"

enum { MAX_PRODUCTS = 1 << 18 }; /* of a sum of products; now and then 16 times as many */

/* --- Extents --- */

int64_t wk_case_extent(wk_case *c, int64_t most) {
    static const int64_t favourites[] = {1,   2,   3,   7,   8,   13,  15,  16,  17,  31,   32,
                                         33,  47,  48,  49,  63,  64,  65,  96,  127, 128,  129,
                                         160, 192, 255, 256, 257, 320, 511, 576, 577, 1024, 1536};
    if (wk_case_chance(c, 2)) return 0;
    const int64_t favourite = favourites[wk_case_below(c, WK_COUNT(favourites))];
    return favourite <= most && wk_case_chance(c, 60) ? favourite : 1 + wk_case_below(c, most);
}

int wk_case_shape(wk_case *c, int least_rank, int64_t extent[WICK_MAX_RANK]) {
    static const int ranks[] = {1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 4, 4, 5, 6};
    int rank = ranks[wk_case_below(c, WK_COUNT(ranks))];
    if (least_rank == 0 && wk_case_chance(c, 3)) rank = 0;
    int64_t left = WK_CASE_ELEMENTS;
    for (int d = rank - 1; d >= 0; d--) {
        int64_t most = d == rank - 1 ? 1600 : rank == 2 ? 70 : 7;
        if (most > left) most = left;
        extent[d] = wk_case_extent(c, most);
        left /= wk_at_least_one(extent[d]);
    }
    return rank;
}

void wk_case_limit(wk_case *c, int64_t *a, int64_t *b, int64_t *k, int64_t block) {
    const int64_t most = wk_case_chance(c, 4) ? 16 * MAX_PRODUCTS : MAX_PRODUCTS;
    int64_t *const extents[3] = {a, b, k};
    while (*a * *b * *k > most) {
        int64_t *const chosen = extents[wk_case_below(c, 3)];
        const int64_t step = chosen == k ? block : 1;
        *chosen = wk_at_least_one(*chosen / step / 2) * step;
    }
}

/* --- Strides --- */

static void shuffle(wk_case *c, int *items, int n) {
    for (int i = n - 1; i > 0; i--) {
        const int j = (int)wk_case_below(c, i + 1), item = items[i];
        items[i] = items[j];
        items[j] = item;
    }
}

void wk_case_place(wk_case *c, wk_view *view, bool is_source) {
    const int64_t block = wk_dtype_get(view->dtype)->block_elements;
    const bool is_padded = wk_case_chance(c, 40);
    const bool is_permuted = c->is_wild && block == 1 && wk_case_chance(c, 40);
    const bool is_spaced = c->is_wild && block == 1 && wk_case_chance(c, 30);
    int order[WICK_MAX_RANK];
    for (int d = 0; d < view->rank; d++) order[d] = d;
    if (is_permuted) shuffle(c, order, view->rank);
    int64_t step = is_spaced ? 1 + wk_case_below(c, 3) : 1;
    for (int j = view->rank - 1; j >= 0; j--) {
        view->stride[order[j]] = step;
        step *= wk_at_least_one(view->extent[order[j]]);
        if (is_padded) step += wk_case_below(c, 20) * block;
    }
    const int n_repeatable = c->is_wild ? view->rank : view->rank - 1;
    const bool is_repeated = is_source && wk_case_chance(c, 20);
    for (int d = 0; d < n_repeatable; d++) {
        if (is_repeated && wk_case_chance(c, 50)) view->stride[d] = 0;
        /* The stride of a single element means nothing. */
        if (view->extent[d] == 1 && wk_case_chance(c, 20)) view->stride[d] = wk_case_below(c, 50);
    }
}

wk_view *wk_case_operand(wk_case *c, int i, wick_dtype dtype, int rank, const int64_t *extent) {
    wk_view *const view = &c->op.view[i];
    *view = (wk_view){.buf = &c->buffer[i], .dtype = dtype, .rank = rank};
    for (int d = 0; d < rank; d++) view->extent[d] = extent[d];
    return view;
}

wk_view *wk_case_dense(wk_case *c, int i, wick_dtype dtype, int rank, const int64_t *extent) {
    wk_view *const view = wk_case_operand(c, i, dtype, rank, extent);
    int64_t step = 1;
    for (int d = rank - 1; d >= 0; d--) {
        view->stride[d] = step;
        step *= wk_at_least_one(extent[d]);
    }
    return view;
}

wk_view *wk_case_add(wk_case *c, int i, wick_dtype dtype, int rank, const int64_t *extent) {
    wk_view *const view = wk_case_operand(c, i, dtype, rank, extent);
    wk_case_place(c, view, i >= c->op.n_dst);
    return view;
}

void wk_case_add_optional(wk_case *c, int i, wick_dtype dtype, int rank, const int64_t *extent) {
    if (wk_case_chance(c, 50)) (void)wk_case_add(c, i, dtype, rank, extent);
}

void wk_case_maybe_in_place(wk_case *c, int i) {
    if (wk_case_chance(c, 25)) c->op.view[i] = c->op.view[0];
}

/* --- Types --- */

wick_dtype wk_case_float(wk_case *c) {
    static const wick_dtype others[] = {WICK_F16, WICK_BF16, WICK_F64};
    return wk_case_chance(c, 85) ? WICK_F32 : others[wk_case_below(c, WK_COUNT(others))];
}

wick_dtype wk_case_integer(wk_case *c) { return (wick_dtype)(WICK_I64 + wk_case_below(c, 6)); }

wick_dtype wk_case_scalar(wk_case *c) {
    return wk_case_chance(c, 60) ? WICK_F32 : (wick_dtype)wk_case_below(c, WICK_BOOL + 1);
}

wick_dtype wk_case_index(wk_case *c) {
    static const wick_dtype dtypes[] = {WICK_U32, WICK_U32, WICK_I64, WICK_U8};
    return dtypes[wk_case_below(c, WK_COUNT(dtypes))];
}
