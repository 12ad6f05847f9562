/* verify/cases.c: random ops: shapes with every remainder, strides of every kind, operands present
 * or absent, in place or not. */
#include "verify/case.h"

#include "core/compiler.h"
#include "core/dtype.h"
#include "quant/block.h"

#include <math.h>
#include <string.h>

enum {
    MAX_ELEMENTS = 20000,   /* of an elementwise operand */
    MAX_PRODUCTS = 1 << 18, /* of a sum of products; now and then 16 times as many */
};

uint64_t wk_case_next_seed(uint64_t seed) {
    const uint32_t counter[4] = {0x5EED, 0, 0, 0};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t words[4];
    wk_philox(counter, key, words);
    return ((uint64_t)words[0] << 32 | words[1]) >> 16; /* short enough to be typed */
}

/* --- Extents --- */

/* 1 ... most, or sometimes 0; vector widths and their neighbours more often. */
static int64_t random_extent(wk_case *c, int64_t most) {
    static const int64_t favourites[] = {1,   2,   3,   7,   8,   13,  15,  16,  17,  31,   32,
                                         33,  47,  48,  49,  63,  64,  65,  96,  127, 128,  129,
                                         160, 192, 255, 256, 257, 320, 511, 576, 577, 1024, 1536};
    if (wk_case_chance(c, 2)) return 0;
    const int64_t favourite = favourites[wk_case_below(c, WK_COUNT(favourites))];
    return favourite <= most && wk_case_chance(c, 60) ? favourite : 1 + wk_case_below(c, most);
}

static int64_t at_least_one(int64_t n) { return n > 0 ? n : 1; }

/* Leading dimensions small, the last one up to 1600. */
static int random_shape(wk_case *c, int least_rank, int64_t extent[WICK_MAX_RANK]) {
    static const int ranks[] = {1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 4, 4, 5, 6};
    int rank = ranks[wk_case_below(c, WK_COUNT(ranks))];
    if (least_rank == 0 && wk_case_chance(c, 3)) rank = 0;
    int64_t left = MAX_ELEMENTS;
    for (int d = rank - 1; d >= 0; d--) {
        int64_t most = d == rank - 1 ? 1600 : rank == 2 ? 70 : 7;
        if (most > left) most = left;
        extent[d] = random_extent(c, most);
        left /= at_least_one(extent[d]);
    }
    return rank;
}

/* Shrinks the extents in turn until their product is small enough for the reference. */
static void limit_products(wk_case *c, int64_t *a, int64_t *b, int64_t *k, int64_t block) {
    const int64_t most = wk_case_chance(c, 4) ? 16 * MAX_PRODUCTS : MAX_PRODUCTS;
    int64_t *const extents[3] = {a, b, k};
    while (*a * *b * *k > most) {
        int64_t *const chosen = extents[wk_case_below(c, 3)];
        const int64_t step = chosen == k ? block : 1;
        *chosen = at_least_one(*chosen / step / 2) * step;
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

/* Strides of a view whose extents are set. Plain layouts keep the last dimension dense, as blocks
 * must. */
static void place(wk_case *c, wk_view *view, bool is_source) {
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
        step *= at_least_one(view->extent[order[j]]);
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

static wk_view *set_operand(wk_case *c, int i, wick_dtype dtype, int rank, const int64_t *extent) {
    wk_view *const view = &c->op.view[i];
    *view = (wk_view){.buf = &c->buffer[i], .dtype = dtype, .rank = rank};
    for (int d = 0; d < rank; d++) view->extent[d] = extent[d];
    return view;
}

wk_view *wk_case_dense(wk_case *c, int i, wick_dtype dtype, int rank, const int64_t *extent) {
    wk_view *const view = set_operand(c, i, dtype, rank, extent);
    int64_t step = 1;
    for (int d = rank - 1; d >= 0; d--) {
        view->stride[d] = step;
        step *= at_least_one(extent[d]);
    }
    return view;
}

static wk_view *add(wk_case *c, int i, wick_dtype dtype, int rank, const int64_t *extent) {
    wk_view *const view = set_operand(c, i, dtype, rank, extent);
    place(c, view, i >= c->op.n_dst);
    return view;
}

static void add_optional(wk_case *c, int i, wick_dtype dtype, int rank, const int64_t *extent) {
    if (wk_case_chance(c, 50)) (void)add(c, i, dtype, rank, extent);
}

/* Sometimes destination 0 is the very view of operand i. */
static void maybe_in_place(wk_case *c, int i) {
    if (wk_case_chance(c, 25)) c->op.view[i] = c->op.view[0];
}

/* --- Types --- */

static wick_dtype random_float(wk_case *c) {
    static const wick_dtype others[] = {WICK_F16, WICK_BF16, WICK_F64};
    return wk_case_chance(c, 85) ? WICK_F32 : others[wk_case_below(c, WK_COUNT(others))];
}

/* Any type but those of blocks. */
static wick_dtype random_scalar(wk_case *c) {
    return wk_case_chance(c, 60) ? WICK_F32 : (wick_dtype)wk_case_below(c, WICK_BOOL + 1);
}

static wick_dtype random_index(wk_case *c) {
    static const wick_dtype dtypes[] = {WICK_U32, WICK_U32, WICK_I64, WICK_U8};
    return dtypes[wk_case_below(c, WK_COUNT(dtypes))];
}

static const struct {
    wick_dtype dtype;
    wk_layout layout;
} weights[] = {{WICK_F32, WK_LAYOUT_PANEL_F32},
               {WICK_F16, WK_LAYOUT_PANEL_F16},
               {WICK_BF16, WK_LAYOUT_PANEL_BF16},
#define PANEL(dtype, name) {WICK_##dtype, WK_LAYOUT_PANEL_##dtype},
               WK_PANEL_FORMATS(PANEL)
#undef PANEL
                   {WICK_F32, WK_LAYOUT_RAW},
               {WICK_F16, WK_LAYOUT_RAW},
               {WICK_BF16, WK_LAYOUT_RAW},
#define RAW(dtype, name) {WICK_##dtype, WK_LAYOUT_RAW},
               WK_PANEL_FORMATS(RAW)
#undef RAW
};

/* --- One function for each op --- */

static void random_unary(wk_case *c) {
    c->op.p.unary.fn = (wk_unary_fn)wk_case_below(c, WK_UNARY_COUNT_);
    /* Exact in float32, or not. */
    c->op.p.unary.a = wk_case_chance(c, 70) ? (double)wk_case_below(c, 8) / 4 - 1 : 0.1;
    c->op.p.unary.b = c->op.p.unary.a + (double)wk_case_below(c, 3);
}

static wk_binary_fn random_binary(wk_case *c, bool is_integer) {
    const wk_binary_fn fn = (wk_binary_fn)wk_case_below(c, WK_BINARY_COUNT_);
    return is_integer && !wk_binary_takes_integers(fn) ? WK_BINARY_ADD : fn;
}

/* No gelu: infinity times a gelu near 0 depends on whether the kernel rounds it to 0. */
static void random_gated(wk_case *c) {
    static const wk_gated_fn not_finite[] = {WK_GATED_SWIGLU, WK_GATED_REGLU};
    c->op.p.gated.fn = c->values == WK_VALUES_NOT_FINITE
                           ? not_finite[wk_case_below(c, WK_COUNT(not_finite))]
                           : (wk_gated_fn)wk_case_below(c, WK_GATED_COUNT_);
    c->op.p.gated.alpha = 1.5;
    c->op.p.gated.limit = 1;
}

static void describe_elementwise(wk_case *c) {
    int64_t extent[WICK_MAX_RANK];
    const int rank = random_shape(c, 0, extent);
    const bool is_integer = c->op.code == WK_OP_BINARY && wk_case_chance(c, 10);
    const wick_dtype dtype =
        is_integer ? (wick_dtype)(WICK_I64 + wk_case_below(c, 6)) : random_float(c);
    for (int i = 0; i < 1 + c->op.n_src; i++) (void)add(c, i, dtype, rank, extent);
    for (int i = 1; i < 1 + c->op.n_src; i++) maybe_in_place(c, i);
    if (c->op.code == WK_OP_BINARY) c->op.p.binary = random_binary(c, is_integer);
    if (c->op.code == WK_OP_UNARY) random_unary(c);
    if (c->op.code == WK_OP_GATED) random_gated(c);
    if (c->op.code == WK_OP_SOFTMAX) c->op.p.softmax.is_log = wk_case_chance(c, 30);
}

static void describe_compare(wk_case *c) {
    int64_t extent[WICK_MAX_RANK];
    const int rank = random_shape(c, 0, extent);
    const wick_dtype dtype = random_scalar(c);
    (void)add(c, 0, WICK_U8, rank, extent);
    (void)add(c, 1, dtype, rank, extent);
    (void)add(c, 2, dtype, rank, extent);
    c->op.p.compare = (wk_compare_fn)wk_case_below(c, WK_COMPARE_COUNT_);
}

static void describe_where(wk_case *c) {
    static const wick_dtype conditions[] = {WICK_U8, WICK_U8, WICK_BOOL, WICK_I64};
    int64_t extent[WICK_MAX_RANK];
    const int rank = random_shape(c, 0, extent);
    const wick_dtype dtype = random_scalar(c);
    (void)add(c, 0, dtype, rank, extent);
    (void)add(c, 1, conditions[wk_case_below(c, WK_COUNT(conditions))], rank, extent);
    (void)add(c, 2, dtype, rank, extent);
    (void)add(c, 3, dtype, rank, extent);
    maybe_in_place(c, 2 + (int)wk_case_below(c, 2));
}

static void describe_reduce(wk_case *c) {
    int64_t extent[WICK_MAX_RANK];
    const int rank = random_shape(c, 1, extent);
    const wk_reduce_fn fn = (wk_reduce_fn)wk_case_below(c, WK_REDUCE_COUNT_);
    const bool is_index = fn == WK_REDUCE_ARGMAX || fn == WK_REDUCE_ARGMIN;
    const int kept = is_index ? rank - 1 : (int)wk_case_below(c, rank);
    for (int d = kept; d < rank; d++) extent[d] = at_least_one(extent[d]);
    const bool is_integer = wk_reduce_takes_integers(fn) && wk_case_chance(c, 20);
    const wick_dtype dtype =
        is_integer ? (wick_dtype)(WICK_I64 + wk_case_below(c, 6)) : random_float(c);
    (void)add(c, 0, is_index ? WICK_U32 : dtype, kept, extent);
    (void)add(c, 1, dtype, rank, extent);
    c->op.p.reduce.fn = fn;
    c->op.p.reduce.correction = (double)wk_case_below(c, 2);
}

static void describe_copy(wk_case *c) {
    static const wick_dtype blocks[] = {WICK_Q4_0, WICK_Q4_1, WICK_Q8_0, WICK_Q4_K, WICK_Q6_K};
    int64_t extent[WICK_MAX_RANK];
    if (wk_case_chance(c, 10)) {
        const wick_dtype dtype = blocks[wk_case_below(c, WK_COUNT(blocks))];
        extent[0] = random_extent(c, 20);
        extent[1] = random_extent(c, 4) * WK_QK_K;
        (void)add(c, 0, random_float(c), 2, extent);
        (void)wk_case_dense(c, 1, dtype, 2, extent);
        return;
    }
    const int rank = random_shape(c, 0, extent);
    const wick_dtype dtype = random_scalar(c);
    (void)add(c, 0, dtype, rank, extent);
    (void)add(c, 1, wk_case_chance(c, 50) ? dtype : random_scalar(c), rank, extent);
}

static void describe_fill(wk_case *c) {
    int64_t extent[WICK_MAX_RANK];
    const int rank = random_shape(c, 0, extent);
    (void)add(c, 0, random_scalar(c), rank, extent);
    c->op.p.fill.real = 100 * wk_case_signed(c);
    c->op.p.fill.integer = wk_case_below(c, 200) - 100;
}

static void describe_arange(wk_case *c) {
    const int64_t n = random_extent(c, 1000);
    (void)add(c, 0, random_scalar(c), 1, &n);
    c->op.p.arange.start = 100 * wk_case_signed(c);
    c->op.p.arange.step = 10 * wk_case_signed(c);
    c->op.p.arange.integer_start = wk_case_below(c, 200) - 100;
    c->op.p.arange.integer_step = wk_case_below(c, 20) - 10;
}

/* Also where a word of the counter ends, and where blocks of four begin between elements. */
static void describe_random(wk_case *c) {
    int64_t extent[WICK_MAX_RANK];
    const int rank = random_shape(c, 0, extent);
    const int64_t n_words = 4;
    const bool is_plain = wk_case_chance(c, 40);
    (void)add(c, 0, random_float(c), rank, extent);
    (void)wk_case_dense(c, 1, WICK_U32, 1, &n_words);
    c->op.p.random.fn = (wk_random_fn)wk_case_below(c, WK_RANDOM_COUNT_);
    c->op.p.random.first = (uint64_t)wk_case_below(c, 1000);
    if (wk_case_chance(c, 30)) c->op.p.random.first += (UINT64_C(1) << 34) - 1000;
    if (wk_case_chance(c, 50)) c->op.p.random.first &= ~UINT64_C(3);
    c->op.p.random.a = is_plain ? 0 : 10 * wk_case_signed(c);
    c->op.p.random.b = is_plain ? 1 : 0.5 + (double)wk_rng_uniform(&c->rng);
    if (!is_plain && c->op.p.random.fn == WK_RANDOM_UNIFORM) c->op.p.random.b += c->op.p.random.a;
}

/* Rows of every kind, now and then one as long as a vocabulary's. */
static void describe_top_k(wk_case *c) {
    int64_t extent[WICK_MAX_RANK];
    const bool is_long = wk_case_chance(c, 5);
    const int rank = is_long ? 1 : random_shape(c, 1, extent);
    int64_t *const last = &extent[rank - 1];
    if (is_long) *last = 1 + wk_case_below(c, 3 * MAX_ELEMENTS);
    const int64_t n = *last, few = n < 40 ? n : 40;
    const wick_dtype dtype = random_float(c);
    (void)add(c, 2, dtype, rank, extent);
    *last = wk_case_chance(c, 60) ? wk_case_below(c, few + 1) : wk_case_below(c, n + 1);
    (void)add(c, 0, dtype, rank, extent);
    (void)add(c, 1, WICK_U32, rank, extent);
}

static void describe_norm(wk_case *c) {
    int64_t extent[WICK_MAX_RANK];
    const int rank = random_shape(c, 1, extent);
    const wick_dtype dtype = random_float(c);
    (void)add(c, 0, dtype, rank, extent);
    (void)add(c, 1, dtype, rank, extent);
    maybe_in_place(c, 1);
    for (int i = 2; i <= c->op.n_src; i++)
        add_optional(c, i, wk_case_chance(c, 50) ? dtype : WICK_F32, 1, &extent[rank - 1]);
    c->op.p.norm.eps = wk_case_chance(c, 50) ? 1e-5F : 1e-6F;
}

/* x and y [b, t, h, d]. */
static void describe_rotary(wk_case *c) {
    const int64_t x[4] = {random_extent(c, 3), random_extent(c, 9), random_extent(c, 9),
                          random_extent(c, 160)};
    const wick_dtype dtype = random_float(c);
    (void)add(c, 0, dtype, 4, x);
    (void)add(c, 1, dtype, 4, x);
    maybe_in_place(c, 1);
    const int64_t half = wk_case_chance(c, 70) ? x[3] / 2 : wk_case_below(c, x[3] / 2 + 1);
    if (c->op.code == WK_OP_ROPE_TABLE) {
        (void)add(c, 2, WICK_F32, 3, (const int64_t[]){x[0], x[1], half});
        (void)add(c, 3, WICK_F32, 3, (const int64_t[]){x[0], x[1], half});
        c->op.p.rope_table.interleaved = wk_case_chance(c, 50);
        return;
    }
    (void)add(c, 2, random_index(c), 2, x);
    c->op.p.rope.theta = wk_case_chance(c, 50) ? 10000 : 100000;
    c->op.p.rope.scale_factor = wk_case_chance(c, 70) ? 1 : 4;
    c->op.p.rope.rotary_dim = (int)(2 * half);
    c->op.p.rope.interleaved = wk_case_chance(c, 50);
}

static void describe_matmul(wk_case *c) {
    const int n_leading = (int)wk_case_below(c, 3), rank = n_leading + 2;
    int64_t m = random_extent(c, 70), n = random_extent(c, 200), k = random_extent(c, 1600);
    int64_t shape[WICK_MAX_RANK];
    for (int d = 0; d < n_leading; d++) {
        shape[d] = random_extent(c, 3);
        m = shape[d] > 1 ? (m + 1) / 2 : m;
    }
    limit_products(c, &m, &n, &k, 1);
    const wick_dtype dtype = random_float(c);
    const int64_t last[3][2] = {{m, n}, {m, k}, {k, n}};
    for (int i = 0; i < 3; i++) {
        shape[n_leading] = last[i][0];
        shape[n_leading + 1] = last[i][1];
        (void)add(c, i, dtype, rank, shape);
    }
}

static void describe_linear(wk_case *c) {
    const int64_t kind = wk_case_below(c, WK_COUNT(weights));
    const wick_dtype weight = weights[kind].dtype;
    const int64_t block = wk_dtype_get(weight)->block_elements;
    int64_t m = random_extent(c, wk_case_chance(c, 70) ? 13 : 100);
    int64_t n = random_extent(c, 700), k = random_extent(c, 1600);
    k = (k + block - 1) / block * block;
    limit_products(c, &m, &n, &k, block);
    const wick_dtype dtype = random_float(c);
    (void)add(c, 0, dtype, 2, (const int64_t[]){m, n});
    (void)add(c, 1, dtype, 2, (const int64_t[]){m, k});
    wk_case_dense(c, 2, weight, 2, (const int64_t[]){n, k})->layout = (uint8_t)weights[kind].layout;
    add_optional(c, 3, dtype, 1, &n);
}

/* Panels of an expert are whole. A token's experts mostly share its x. */
static void describe_experts(wk_case *c) {
    const int64_t kind = wk_case_below(c, WK_COUNT(weights));
    const wick_dtype weight = weights[kind].dtype;
    const int64_t block = wk_dtype_get(weight)->block_elements;
    const int64_t m = random_extent(c, wk_case_chance(c, 70) ? 3 : 40), u = random_extent(c, 5);
    const int64_t n_experts = 1 + wk_case_below(c, wk_case_chance(c, 70) ? 5 : 40);
    int64_t rows = at_least_one(m * u) + n_experts, n = random_extent(c, 200);
    int64_t k = (random_extent(c, 700) + block - 1) / block * block;
    limit_products(c, &rows, &n, &k, block);
    if (weights[kind].layout != WK_LAYOUT_RAW)
        n = (n + WK_PANEL_ROWS - 1) / WK_PANEL_ROWS * WK_PANEL_ROWS;
    const wick_dtype dtype = random_float(c);
    (void)add(c, 0, dtype, 3, (const int64_t[]){m, u, n});
    wk_view *const x = add(c, 1, dtype, 3, (const int64_t[]){m, u, k});
    if (wk_case_chance(c, 60)) x->stride[1] = 0;
    wk_case_dense(c, 2, weight, 3, (const int64_t[]){n_experts, n, k})->layout =
        (uint8_t)weights[kind].layout;
    if (wk_case_chance(c, 50)) (void)wk_case_dense(c, 3, dtype, 2, (const int64_t[]){n_experts, n});
    (void)add(c, 4, WICK_U32, 2, (const int64_t[]){m, u});
    c->has_bad_index = wk_case_chance(c, 5);
}

static void describe_embedding(wk_case *c) {
    const int64_t kind = wk_case_below(c, WK_COUNT(weights));
    const wick_dtype weight = weights[kind].dtype;
    const int64_t block = wk_dtype_get(weight)->block_elements;
    const int64_t m = random_extent(c, 40), n = 1 + wk_case_below(c, 60);
    const int64_t k = (random_extent(c, 600) + block - 1) / block * block;
    (void)add(c, 0, random_float(c), 2, (const int64_t[]){m, k});
    wk_case_dense(c, 1, weight, 2, (const int64_t[]){n, k})->layout = (uint8_t)weights[kind].layout;
    (void)add(c, 2, random_index(c), 1, &m);
    c->has_bad_index = wk_case_chance(c, 5);
}

static void exchange(int64_t pair[2]) {
    const int64_t first = pair[0];
    pair[0] = pair[1];
    pair[1] = first;
}

/* Keys [.., s, d]; mostly as the model lays them, the keys of a block side by side. */
static void place_keys(wk_case *c, wk_view *keys, bool is_source) {
    const bool is_transposed = !wk_dtype_is_block(keys->dtype) && wk_case_chance(c, 60);
    if (is_transposed) exchange(&keys->extent[2]);
    place(c, keys, is_source);
    if (!is_transposed) return;
    exchange(&keys->extent[2]);
    exchange(&keys->stride[2]);
}

static void describe_attention(wk_case *c) {
    const int64_t b = random_extent(c, 2), g = 1 + wk_case_below(c, 3);
    const int64_t h = g * (1 + wk_case_below(c, 3)), t = random_extent(c, 20);
    const int64_t s = random_extent(c, wk_case_chance(c, 90) ? 90 : 1200), d = random_extent(c, 80),
                  e = random_extent(c, 80);
    const wick_dtype dtype = random_float(c);
    (void)add(c, 0, dtype, 4, (const int64_t[]){b, h, t, e});
    (void)add(c, 1, dtype, 4, (const int64_t[]){b, h, t, d});
    place_keys(c, set_operand(c, 2, dtype, 4, (const int64_t[]){b, g, s, d}), true);
    (void)add(c, 3, dtype, 4, (const int64_t[]){b, g, s, e});
    add_optional(c, 4, wk_case_chance(c, 50) ? WICK_U8 : WICK_BOOL, 4,
                 (const int64_t[]){b, h, t, s});
    add_optional(c, 5, dtype, 4, (const int64_t[]){b, h, t, s});
    add_optional(c, 6, dtype, 1, &h);
    add_optional(c, 7, dtype, 1, &h);
    c->op.p.attention.scale = 1 / sqrtf((float)at_least_one(d));
    c->op.p.attention.softcap = wk_case_chance(c, 30) ? 5 + 20 * wk_rng_uniform(&c->rng) : 0;
    c->op.p.attention.window = wk_case_chance(c, 30) ? 1 + (int32_t)wk_case_below(c, 60) : 0;
    c->op.p.attention.causal = wk_case_chance(c, 50);
}

/* 1 to 130 channels, whole blocks of dtype. */
static int64_t random_head(wk_case *c, wick_dtype dtype) {
    const int64_t block = wk_dtype_get(dtype)->block_elements;
    return (at_least_one(random_extent(c, 130)) + block - 1) / block * block;
}

/* Both ops over the paged cache: [blocks, g, block_size, d] and [.., e]. */
static void describe_cached(wk_case *c) {
    static const wick_dtype types[] = {WICK_F32, WICK_F16, WICK_Q8_0, WICK_Q4_0};
    const int64_t rows = random_extent(c, wk_case_chance(c, 60) ? 6 : 40);
    wk_batch_layout *const batch = &c->op.p.cached.batch;
    wk_case_plan_batch(c, batch, rows);
    const int64_t g = 1 + wk_case_below(c, 3), h = g * (1 + wk_case_below(c, 4));
    const wick_dtype cache = types[wk_case_below(c, WK_COUNT(types))];
    const int64_t d = random_head(c, cache), e = random_head(c, cache);
    const int64_t n_blocks = (int64_t)batch->n_sequences * batch->n_blocks + wk_case_below(c, 5);
    const int64_t k_cache[4] = {n_blocks, g, batch->block_size, d};
    const int64_t v_cache[4] = {n_blocks, g, batch->block_size, e};
    const int64_t words = batch->n_words;
    c->has_bad_index = wk_case_chance(c, 5);
    if (c->op.code == WK_OP_KV_APPEND) {
        place_keys(c, set_operand(c, 0, cache, 4, k_cache), false);
        (void)add(c, 1, cache, 4, v_cache);
        (void)add(c, 2, WICK_F32, 3, (const int64_t[]){rows, g, d});
        (void)add(c, 3, WICK_F32, 3, (const int64_t[]){rows, g, e});
        (void)wk_case_dense(c, 4, WICK_U32, 1, &words);
        return;
    }
    (void)add(c, 0, WICK_F32, 3, (const int64_t[]){rows, h, e});
    (void)add(c, 1, WICK_F32, 3, (const int64_t[]){rows, h, d});
    /* A repeated cache could not hold what the batch says. */
    place_keys(c, set_operand(c, 2, cache, 4, k_cache), false);
    place(c, set_operand(c, 3, cache, 4, v_cache), false);
    (void)wk_case_dense(c, 4, WICK_U32, 1, &words);
    if (wk_case_chance(c, 30)) add_optional(c, 5, WICK_F32, 1, &h);
    if (wk_case_chance(c, 30)) add_optional(c, 6, WICK_F32, 1, &h);
    c->op.p.cached.scale = 1 / sqrtf((float)d);
    c->op.p.cached.softcap = wk_case_chance(c, 20) ? 5 + 20 * wk_rng_uniform(&c->rng) : 0;
    c->op.p.cached.window = wk_case_chance(c, 40) ? 1 + (int32_t)wk_case_below(c, 100) : 0;
    c->op.p.cached.is_bidirectional = wk_case_chance(c, 30);
}

/* Half of the time the last n dimensions are one number. */
static void repeat_last(wk_case *c, wk_view *view, int n) {
    if (wk_case_chance(c, 50)) return;
    for (int d = view->rank - n; d < view->rank; d++) view->stride[d] = 0;
}

/* Slots of the states of a batch. */
static int64_t plan_states(wk_case *c, wk_batch_layout *batch, int64_t n_rows) {
    wk_case_plan_batch(c, batch, n_rows);
    c->has_bad_index = wk_case_chance(c, 5);
    return batch->n_sequences + wk_case_below(c, 3);
}

static void describe_causal_conv(wk_case *c) {
    wk_batch_layout *const batch = &c->op.p.conv.batch;
    const int64_t rows = random_extent(c, wk_case_chance(c, 60) ? 6 : 40);
    const int64_t n = random_extent(c, 200), k = 2 + wk_case_below(c, 6);
    const int64_t state[3] = {plan_states(c, batch, rows), k - 1, n};
    const int64_t x[2] = {rows, n}, weight[2] = {n, k}, words = batch->n_words;
    (void)add(c, 0, WICK_F32, 2, x);
    (void)add(c, 1, WICK_F32, 3, state);
    (void)add(c, 2, WICK_F32, 2, x);
    (void)add(c, 3, WICK_F32, 2, weight);
    add_optional(c, 4, WICK_F32, 1, &n);
    (void)wk_case_dense(c, 5, WICK_U32, 1, &words);
}

static void describe_scan(wk_case *c) {
    wk_batch_layout *const batch = &c->op.p.scan.batch;
    const int64_t rows = random_extent(c, wk_case_chance(c, 60) ? 6 : 40);
    const int64_t g = 1 + wk_case_below(c, 3), h = g * (1 + wk_case_below(c, 3));
    const int64_t n = random_extent(c, 130), p = random_extent(c, wk_case_chance(c, 50) ? 20 : 130);
    const int64_t state[4] = {plan_states(c, batch, rows), h, n, p};
    const int64_t x[3] = {rows, h, p}, rates[3] = {h, p, n}, bc[4] = {rows, 2, g, n};
    const int64_t words = batch->n_words;
    const bool is_delta = wk_case_chance(c, 50);
    c->op.p.scan.fn = is_delta ? WK_SCAN_DELTA : WK_SCAN_SELECTIVE;
    c->op.p.scan.is_tiled = wk_case_chance(c, 50);
    c->op.p.scan.scale = 1 / sqrtf((float)at_least_one(n));
    (void)add(c, 0, WICK_F32, 3, x);
    (void)add(c, 1, WICK_F32, 4, state);
    (void)add(c, 2, WICK_F32, 3, x);
    repeat_last(c, add(c, 3, WICK_F32, 3, x), 1);
    repeat_last(c, add(c, 4, WICK_F32, 3, is_delta ? x : rates), is_delta ? 1 : 2);
    (void)add(c, 5, WICK_F32, 4, bc);
    (void)wk_case_dense(c, 6, WICK_U32, 1, &words);
}

/* Infinities and NaN only where op and specification say what comes of them. */
static wk_case_values random_values(wk_case *c) {
    const int64_t kind = wk_case_below(c, 100);
    if (kind < 60) return WK_VALUES_PLAIN;
    switch (c->op.code) {
    case WK_OP_UNARY:
    case WK_OP_BINARY:
    case WK_OP_GATED:
    case WK_OP_COPY:
    case WK_OP_SOFTMAX:
    case WK_OP_RMS_NORM:
    case WK_OP_LAYER_NORM:
    case WK_OP_COMPARE:
    case WK_OP_WHERE:
    case WK_OP_TOP_K:
    case WK_OP_ROPE_TABLE:
    case WK_OP_MATMUL:
    case WK_OP_LINEAR:
    case WK_OP_LINEAR_EXPERTS: return kind < 90 ? WK_VALUES_SPECIAL : WK_VALUES_NOT_FINITE;
    default: return WK_VALUES_SPECIAL;
    }
}

static void describe(wk_case *c) {
    switch (c->op.code) {
    case WK_OP_UNARY:
    case WK_OP_BINARY:
    case WK_OP_GATED:
    case WK_OP_SOFTMAX: describe_elementwise(c); break;
    case WK_OP_COMPARE: describe_compare(c); break;
    case WK_OP_WHERE: describe_where(c); break;
    case WK_OP_REDUCE: describe_reduce(c); break;
    case WK_OP_COPY: describe_copy(c); break;
    case WK_OP_FILL: describe_fill(c); break;
    case WK_OP_ARANGE: describe_arange(c); break;
    case WK_OP_RANDOM: describe_random(c); break;
    case WK_OP_TOP_K: describe_top_k(c); break;
    case WK_OP_RMS_NORM:
    case WK_OP_LAYER_NORM: describe_norm(c); break;
    case WK_OP_ROPE:
    case WK_OP_ROPE_TABLE: describe_rotary(c); break;
    case WK_OP_MATMUL: describe_matmul(c); break;
    case WK_OP_LINEAR: describe_linear(c); break;
    case WK_OP_LINEAR_EXPERTS: describe_experts(c); break;
    case WK_OP_EMBEDDING: describe_embedding(c); break;
    case WK_OP_ATTENTION: describe_attention(c); break;
    case WK_OP_ATTENTION_CACHED:
    case WK_OP_KV_APPEND: describe_cached(c); break;
    case WK_OP_CAUSAL_CONV: describe_causal_conv(c); break;
    case WK_OP_SCAN: describe_scan(c); break;
    case WK_OP_COUNT_: break;
    }
}

void wk_case_describe(wk_case *c, uint64_t seed, wk_opcode code, bool fast) {
    const wk_op_info *const info = wk_op_get_info(code);
    *c = (wk_case){
        .op = {.code = code, .n_dst = info->n_dst, .n_src = info->n_src},
        .rng = {.seed = seed, .stream = (uint64_t)code},
    };
    c->is_wild = wk_case_chance(c, 15);
    if (wk_op_is_linear(&c->op)) c->op.p.linear.fast = fast;
    c->values = random_values(c);
    describe(c);
}
