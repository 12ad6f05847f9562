/* verify/cases.c: random ops: shapes with every remainder, strides of every kind, operands present
 * or absent, in place or not. */
#include "verify/random_view.h"

#include "core/compiler.h"
#include "core/dtype.h"
#include "quant/block.h"

#include <math.h>
#include <string.h>

uint64_t wk_case_next_seed(uint64_t seed) {
    const uint32_t counter[4] = {0x5EED, 0, 0, 0};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t words[4];
    wk_philox(counter, key, words);
    return ((uint64_t)words[0] << 32 | words[1]) >> 16; /* short enough to be typed */
}

/* --- Weights --- */

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

/* All operands of one shape and dtype. */
static void same_shape(wk_case *c, wick_dtype dtype) {
    int64_t extent[WICK_MAX_RANK];
    const int rank = wk_case_shape(c, 0, extent);
    for (int i = 0; i < 1 + c->op.n_src; i++) (void)wk_case_add(c, i, dtype, rank, extent);
    for (int i = 1; i < 1 + c->op.n_src; i++) wk_case_maybe_in_place(c, i);
}

static void random_unary(wk_case *c) {
    const wk_unary_fn fn = (wk_unary_fn)wk_case_below(c, WK_UNARY_COUNT_);
    const bool is_integer =
        fn == WK_UNARY_NOT || (wk_unary_takes(fn, WICK_I32) && wk_case_chance(c, 20));
    same_shape(c, is_integer ? wk_case_integer(c) : wk_case_float(c));
    c->op.p.unary.fn = fn;
    /* Exact in float32, or not. */
    c->op.p.unary.a = wk_case_chance(c, 70) ? (double)wk_case_below(c, 8) / 4 - 1 : 0.1;
    if (is_integer) c->op.p.unary.a = fabs(c->op.p.unary.a); /* a bound of unsigned types, too */
    c->op.p.unary.b = c->op.p.unary.a + (double)wk_case_below(c, 3);
}

static void random_binary(wk_case *c) {
    const wk_binary_fn fn = (wk_binary_fn)wk_case_below(c, WK_BINARY_COUNT_);
    const bool is_either = wk_binary_takes(fn, WICK_F32) && wk_binary_takes(fn, WICK_I32);
    const bool is_float = is_either ? wk_case_chance(c, 80) : wk_binary_takes(fn, WICK_F32);
    same_shape(c, is_float ? wk_case_float(c) : wk_case_integer(c));
    c->op.p.binary = fn;
}

/* No gelu: infinity times a gelu near 0 depends on whether the kernel rounds it to 0. */
static void random_gated(wk_case *c) {
    static const wk_gated_fn not_finite[] = {WK_GATED_SWIGLU, WK_GATED_REGLU};
    same_shape(c, wk_case_float(c));
    c->op.p.gated.fn = c->values == WK_VALUES_NOT_FINITE
                           ? not_finite[wk_case_below(c, WK_COUNT(not_finite))]
                           : (wk_gated_fn)wk_case_below(c, WK_GATED_COUNT_);
    c->op.p.gated.alpha = 1.5;
    c->op.p.gated.limit = 1;
}

static void random_softmax(wk_case *c) {
    same_shape(c, wk_case_float(c));
    c->op.p.softmax.is_log = wk_case_chance(c, 30);
}

static void random_compare(wk_case *c) {
    int64_t extent[WICK_MAX_RANK];
    const int rank = wk_case_shape(c, 0, extent);
    const wick_dtype dtype = wk_case_scalar(c);
    (void)wk_case_add(c, 0, WICK_U8, rank, extent);
    (void)wk_case_add(c, 1, dtype, rank, extent);
    (void)wk_case_add(c, 2, dtype, rank, extent);
    c->op.p.compare = (wk_compare_fn)wk_case_below(c, WK_COMPARE_COUNT_);
}

static void random_where(wk_case *c) {
    static const wick_dtype conditions[] = {WICK_U8, WICK_U8, WICK_BOOL, WICK_I64};
    int64_t extent[WICK_MAX_RANK];
    const int rank = wk_case_shape(c, 0, extent);
    const wick_dtype dtype = wk_case_scalar(c);
    (void)wk_case_add(c, 0, dtype, rank, extent);
    (void)wk_case_add(c, 1, conditions[wk_case_below(c, WK_COUNT(conditions))], rank, extent);
    (void)wk_case_add(c, 2, dtype, rank, extent);
    (void)wk_case_add(c, 3, dtype, rank, extent);
    wk_case_maybe_in_place(c, 2 + (int)wk_case_below(c, 2));
}

/* Returns the rank: sometimes a few rows that are long enough to be taken in parts. */
static int reduced_shape(wk_case *c, int64_t extent[WICK_MAX_RANK]) {
    if (!wk_case_chance(c, 4)) return wk_case_shape(c, 1, extent);
    extent[0] = wk_case_extent(c, 2);
    extent[1] = 32760 + wk_case_below(c, 9000);
    return 2;
}

static void random_reduce(wk_case *c) {
    int64_t extent[WICK_MAX_RANK];
    const int rank = reduced_shape(c, extent);
    const wk_reduce_fn fn = (wk_reduce_fn)wk_case_below(c, WK_REDUCE_COUNT_);
    const bool is_index = fn == WK_REDUCE_ARGMAX || fn == WK_REDUCE_ARGMIN;
    const int kept = is_index ? rank - 1 : (int)wk_case_below(c, rank);
    for (int d = kept; d < rank; d++) extent[d] = wk_at_least_one(extent[d]);
    const bool is_integer = wk_reduce_takes_integers(fn) && wk_case_chance(c, 20);
    const wick_dtype dtype = is_integer ? wk_case_integer(c) : wk_case_float(c);
    (void)wk_case_add(c, 0, is_index ? WICK_U32 : dtype, kept, extent);
    (void)wk_case_add(c, 1, dtype, rank, extent);
    c->op.p.reduce.fn = fn;
    if (fn == WK_REDUCE_VAR) c->op.p.reduce.correction = (double)wk_case_below(c, 2);
}

/* Also what is only stored. */
static wick_dtype moved(wk_case *c) {
    if (wk_case_chance(c, 10)) return wk_case_chance(c, 50) ? WICK_F8_E4M3 : WICK_F8_E5M2;
    return wk_case_scalar(c);
}

static void random_copy(wk_case *c) {
    static const wick_dtype blocks[] = {WICK_Q4_0, WICK_Q4_1, WICK_Q8_0, WICK_Q4_K, WICK_Q6_K};
    int64_t extent[WICK_MAX_RANK];
    if (wk_case_chance(c, 10)) {
        const wick_dtype dtype = blocks[wk_case_below(c, WK_COUNT(blocks))];
        extent[0] = wk_case_extent(c, 20);
        extent[1] = wk_case_extent(c, 4) * WK_QK_K;
        (void)wk_case_add(c, 0, wk_case_float(c), 2, extent);
        (void)wk_case_dense(c, 1, dtype, 2, extent);
        return;
    }
    const int rank = wk_case_shape(c, 0, extent);
    const wick_dtype dtype = moved(c);
    (void)wk_case_add(c, 0, dtype, rank, extent);
    (void)wk_case_add(c, 1, wk_case_chance(c, 50) ? dtype : moved(c), rank, extent);
}

static void random_fill(wk_case *c) {
    int64_t extent[WICK_MAX_RANK];
    const int rank = wk_case_shape(c, 0, extent);
    (void)wk_case_add(c, 0, wk_case_scalar(c), rank, extent);
    c->op.p.fill.real = 100 * wk_case_signed(c);
    c->op.p.fill.integer = wk_case_below(c, 200) - 100;
}

static void random_arange(wk_case *c) {
    const int64_t n = wk_case_extent(c, 1000);
    (void)wk_case_add(c, 0, wk_case_scalar(c), 1, &n);
    c->op.p.arange.start = 100 * wk_case_signed(c);
    c->op.p.arange.step = 10 * wk_case_signed(c);
    c->op.p.arange.integer_start = wk_case_below(c, 200) - 100;
    c->op.p.arange.integer_step = wk_case_below(c, 20) - 10;
}

/* Also where a word of the counter ends, and where blocks of four begin between elements. */
static void random_random(wk_case *c) {
    int64_t extent[WICK_MAX_RANK];
    const int rank = wk_case_shape(c, 0, extent);
    const int64_t n_words = 4;
    const bool is_plain = wk_case_chance(c, 40);
    c->op.p.random.fn = (wk_random_fn)wk_case_below(c, WK_RANDOM_COUNT_);
    const wick_dtype dtype = c->op.p.random.fn == WK_RANDOM_BITS ? WICK_U32 : wk_case_float(c);
    (void)wk_case_add(c, 0, dtype, rank, extent);
    (void)wk_case_dense(c, 1, WICK_U32, 1, &n_words);
    c->op.p.random.first = (uint64_t)wk_case_below(c, 1000);
    if (wk_case_chance(c, 30)) c->op.p.random.first += (UINT64_C(1) << 34) - 1000;
    if (wk_case_chance(c, 50)) c->op.p.random.first &= ~UINT64_C(3);
    c->op.p.random.a = is_plain ? 0 : 10 * wk_case_signed(c);
    c->op.p.random.b = is_plain ? 1 : 0.5 + (double)wk_rng_uniform(&c->rng);
    if (!is_plain && c->op.p.random.fn == WK_RANDOM_UNIFORM) c->op.p.random.b += c->op.p.random.a;
}

static void random_draw(wk_case *c) {
    const int64_t n = 1 + wk_case_below(c, 200), one = 1;
    (void)wk_case_add(c, 1, WICK_F32, 1, &n);
    (void)wk_case_add(c, 2, WICK_U32, 1, &n);
    (void)wk_case_add(c, 0, WICK_U32, 1, &one);
    c->op.p.draw = (wk_draw){
        .temperature = wk_case_chance(c, 10) ? 0 : (float)(0.3 + fabs(wk_case_signed(c))),
        .top_p = wk_case_chance(c, 50) ? 1 : (float)fabs(wk_case_signed(c)),
        .min_p = wk_case_chance(c, 50) ? 0 : (float)fabs(wk_case_signed(c)) / 4,
        .u = (float)wk_case_below(c, 1 << 24) / (1 << 24),
        .k = 1 + (uint32_t)wk_case_below(c, n),
    };
}

/* Rows of every kind, now and then one as long as a vocabulary's. */
static void random_top_k(wk_case *c) {
    int64_t extent[WICK_MAX_RANK];
    const bool is_long = wk_case_chance(c, 5);
    const int rank = is_long ? 1 : wk_case_shape(c, 1, extent);
    int64_t *const last = &extent[rank - 1];
    if (is_long) *last = 1 + wk_case_below(c, 3 * WK_CASE_ELEMENTS);
    const int64_t n = *last, few = n < 40 ? n : 40;
    const wick_dtype dtype = wk_case_float(c);
    (void)wk_case_add(c, 2, dtype, rank, extent);
    *last = wk_case_chance(c, 60) ? wk_case_below(c, few + 1) : wk_case_below(c, n + 1);
    (void)wk_case_add(c, 0, dtype, rank, extent);
    (void)wk_case_add(c, 1, WICK_U32, rank, extent);
}

/* y and index [.., m], x [.., n]: which operands these are. Now and then m is as long as a GPU
 * sorts first. */
static wk_view *random_indexed(wk_case *c, int of_m, int index, int of_n) {
    int64_t extent[WICK_MAX_RANK];
    const int rank = wk_case_shape(c, 1, extent);
    int64_t rows = 1;
    for (int d = 0; d < rank - 1; d++) rows *= extent[d];
    if (rows <= 4 && wk_case_chance(c, 30)) extent[rank - 1] = 100 + wk_case_below(c, 5000);
    const wick_dtype dtype = wk_case_scalar(c), id = wk_case_index(c);
    (void)wk_case_add(c, of_m, dtype, rank, extent);
    (void)wk_case_add(c, index, id, rank, extent);
    extent[rank - 1] = 1 + wk_case_below(c, id == WICK_U8 ? 256 : 400);
    c->has_bad_index = wk_case_chance(c, 20);
    return wk_case_add(c, of_n, dtype, rank, extent);
}

static void random_gather(wk_case *c) { (void)random_indexed(c, 0, 2, 1); }

static void random_scatter(wk_case *c) {
    const wick_dtype dtype = random_indexed(c, 1, 2, 0)->dtype;
    if (dtype != WICK_BOOL) c->op.p.scatter = (wk_scatter_fn)wk_case_below(c, WK_SCATTER_COUNT_);
}

static void random_cumulate(wk_case *c) {
    int64_t extent[WICK_MAX_RANK];
    const int rank = wk_case_shape(c, 1, extent);
    const wick_dtype dtype = wk_case_chance(c, 30) ? wk_case_integer(c) : wk_case_float(c);
    for (int i = 0; i < 2; i++)
        (void)wk_case_add(c, i, dtype == WICK_BOOL ? WICK_U8 : dtype, rank, extent);
    c->op.p.cumulate = (wk_cumulate_fn)wk_case_below(c, WK_CUMULATE_COUNT_);
}

/* Now and then a row of several tiles. */
static void random_argsort(wk_case *c) {
    int64_t extent[WICK_MAX_RANK];
    const bool is_long = wk_case_chance(c, 5);
    const int rank = is_long ? 1 : wk_case_shape(c, 1, extent);
    if (is_long) extent[0] = 1 + wk_case_below(c, 3 * WK_CASE_ELEMENTS);
    (void)wk_case_add(c, 0, WICK_U32, rank, extent);
    (void)wk_case_add(c, 1, wk_case_scalar(c), rank, extent);
    c->op.p.argsort.is_descending = wk_case_chance(c, 50);
}

static void random_norm(wk_case *c) {
    int64_t extent[WICK_MAX_RANK];
    const int rank = wk_case_shape(c, 1, extent);
    const wick_dtype dtype = wk_case_float(c);
    (void)wk_case_add(c, 0, dtype, rank, extent);
    (void)wk_case_add(c, 1, dtype, rank, extent);
    wk_case_maybe_in_place(c, 1);
    for (int i = 2; i <= c->op.n_src; i++)
        wk_case_add_optional(c, i, wk_case_chance(c, 50) ? dtype : WICK_F32, 1, &extent[rank - 1]);
    c->op.p.norm.eps = wk_case_chance(c, 50) ? 1e-5 : 1e-6;
}

/* x and y [b, t, h, d]; half of the channels that are turned. */
static int64_t random_heads(wk_case *c) {
    const int64_t x[4] = {wk_case_extent(c, 3), wk_case_extent(c, 9), wk_case_extent(c, 9),
                          wk_case_extent(c, 160)};
    const wick_dtype dtype = wk_case_float(c);
    (void)wk_case_add(c, 0, dtype, 4, x);
    (void)wk_case_add(c, 1, dtype, 4, x);
    wk_case_maybe_in_place(c, 1);
    return wk_case_chance(c, 70) ? x[3] / 2 : wk_case_below(c, x[3] / 2 + 1);
}

static void random_rope(wk_case *c) {
    const int64_t half = random_heads(c);
    (void)wk_case_add(c, 2, wk_case_index(c), 2, c->op.view[0].extent);
    c->op.p.rope.theta = wk_case_chance(c, 50) ? 10000 : 100000;
    c->op.p.rope.scale_factor = wk_case_chance(c, 70) ? 1 : 4;
    c->op.p.rope.rotary_dim = (int)(2 * half);
    c->op.p.rope.interleaved = wk_case_chance(c, 50);
}

static void random_rope_table(wk_case *c) {
    const int64_t half = random_heads(c), *const x = c->op.view[0].extent;
    for (int i = 2; i < 4; i++)
        (void)wk_case_add(c, i, WICK_F32, 3, (const int64_t[]){x[0], x[1], half});
    c->op.p.rope_table.interleaved = wk_case_chance(c, 50);
}

static void random_matmul(wk_case *c) {
    const int n_leading = (int)wk_case_below(c, 3), rank = n_leading + 2;
    int64_t m = wk_case_extent(c, 70), n = wk_case_extent(c, 200), k = wk_case_extent(c, 1600);
    int64_t shape[WICK_MAX_RANK];
    for (int d = 0; d < n_leading; d++) {
        shape[d] = wk_case_extent(c, 3);
        m = shape[d] > 1 ? (m + 1) / 2 : m;
    }
    wk_case_limit(c, &m, &n, &k, 1);
    const wick_dtype dtype = wk_case_float(c);
    const int64_t last[3][2] = {{m, n}, {m, k}, {k, n}};
    for (int i = 0; i < 3; i++) {
        shape[n_leading] = last[i][0];
        shape[n_leading + 1] = last[i][1];
        (void)wk_case_add(c, i, dtype, rank, shape);
    }
}

static void random_linear(wk_case *c) {
    const int64_t kind = wk_case_below(c, WK_COUNT(weights));
    const wick_dtype weight = weights[kind].dtype;
    const int64_t block = wk_dtype_get(weight)->block_elements;
    int64_t m = wk_case_extent(c, wk_case_chance(c, 70) ? 13 : 100);
    int64_t n = wk_case_extent(c, 700), k = wk_case_extent(c, 1600);
    k = (k + block - 1) / block * block;
    wk_case_limit(c, &m, &n, &k, block);
    const wick_dtype dtype = wk_case_float(c);
    (void)wk_case_add(c, 0, dtype, 2, (const int64_t[]){m, n});
    (void)wk_case_add(c, 1, dtype, 2, (const int64_t[]){m, k});
    wk_case_dense(c, 2, weight, 2, (const int64_t[]){n, k})->layout = (uint8_t)weights[kind].layout;
    wk_case_add_optional(c, 3, dtype, 1, &n);
}

/* Panels of an expert are whole. A token's experts mostly share its x. */
static void random_experts(wk_case *c) {
    const int64_t kind = wk_case_below(c, WK_COUNT(weights));
    const wick_dtype weight = weights[kind].dtype;
    const int64_t block = wk_dtype_get(weight)->block_elements;
    const int64_t m = wk_case_extent(c, wk_case_chance(c, 70) ? 3 : 40), u = wk_case_extent(c, 5);
    const int64_t n_experts = 1 + wk_case_below(c, wk_case_chance(c, 70) ? 5 : 40);
    int64_t rows = wk_at_least_one(m * u) + n_experts, n = wk_case_extent(c, 200);
    int64_t k = (wk_case_extent(c, 700) + block - 1) / block * block;
    wk_case_limit(c, &rows, &n, &k, block);
    if (weights[kind].layout != WK_LAYOUT_RAW)
        n = (n + WK_PANEL_ROWS - 1) / WK_PANEL_ROWS * WK_PANEL_ROWS;
    const wick_dtype dtype = wk_case_float(c);
    (void)wk_case_add(c, 0, dtype, 3, (const int64_t[]){m, u, n});
    wk_view *const x = wk_case_add(c, 1, dtype, 3, (const int64_t[]){m, u, k});
    if (wk_case_chance(c, 60)) x->stride[1] = 0;
    wk_case_dense(c, 2, weight, 3, (const int64_t[]){n_experts, n, k})->layout =
        (uint8_t)weights[kind].layout;
    if (wk_case_chance(c, 50)) (void)wk_case_dense(c, 3, dtype, 2, (const int64_t[]){n_experts, n});
    (void)wk_case_add(c, 4, WICK_U32, 2, (const int64_t[]){m, u});
    c->has_bad_index = wk_case_chance(c, 20);
}

static void random_embedding(wk_case *c) {
    const int64_t kind = wk_case_below(c, WK_COUNT(weights));
    const wick_dtype weight = weights[kind].dtype;
    const int64_t block = wk_dtype_get(weight)->block_elements;
    const int64_t m = wk_case_extent(c, 40), n = 1 + wk_case_below(c, 60);
    const int64_t k = (wk_case_extent(c, 600) + block - 1) / block * block;
    (void)wk_case_add(c, 0, wk_case_float(c), 2, (const int64_t[]){m, k});
    wk_case_dense(c, 1, weight, 2, (const int64_t[]){n, k})->layout = (uint8_t)weights[kind].layout;
    (void)wk_case_add(c, 2, wk_case_index(c), 1, &m);
    c->has_bad_index = wk_case_chance(c, 20);
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
    wk_case_place(c, keys, is_source);
    if (!is_transposed) return;
    exchange(&keys->extent[2]);
    exchange(&keys->stride[2]);
}

static void random_attention(wk_case *c) {
    const int64_t b = wk_case_extent(c, 2), g = 1 + wk_case_below(c, 3);
    const int64_t h = g * (1 + wk_case_below(c, 3)), t = wk_case_extent(c, 20);
    const int64_t s = wk_case_extent(c, wk_case_chance(c, 90) ? 90 : 1200),
                  d = wk_case_extent(c, 80), e = wk_case_extent(c, 80);
    const wick_dtype dtype = wk_case_float(c);
    (void)wk_case_add(c, 0, dtype, 4, (const int64_t[]){b, h, t, e});
    (void)wk_case_add(c, 1, dtype, 4, (const int64_t[]){b, h, t, d});
    place_keys(c, wk_case_operand(c, 2, dtype, 4, (const int64_t[]){b, g, s, d}), true);
    (void)wk_case_add(c, 3, dtype, 4, (const int64_t[]){b, g, s, e});
    wk_case_add_optional(c, 4, wk_case_chance(c, 50) ? WICK_U8 : WICK_BOOL, 4,
                         (const int64_t[]){b, h, t, s});
    wk_case_add_optional(c, 5, dtype, 4, (const int64_t[]){b, h, t, s});
    wk_case_add_optional(c, 6, dtype, 1, &h);
    wk_case_add_optional(c, 7, dtype, 1, &h);
    c->op.p.attention.scale = 1 / sqrt((double)wk_at_least_one(d));
    c->op.p.attention.softcap =
        wk_case_chance(c, 30) ? 5 + 20 * (double)wk_rng_uniform(&c->rng) : 0;
    c->op.p.attention.window = wk_case_chance(c, 30) ? 1 + (int32_t)wk_case_below(c, 60) : 0;
    c->op.p.attention.causal = wk_case_chance(c, 50);
}

/* 1 to 130 channels, whole blocks of dtype. */
static int64_t random_head(wk_case *c, wick_dtype dtype) {
    const int64_t block = wk_dtype_get(dtype)->block_elements;
    return (wk_at_least_one(wk_case_extent(c, 130)) + block - 1) / block * block;
}

/* Of the ops over the paged cache: [blocks, g, block_size, d] and [.., e]. places: the operand that
 * is the first of the two. */
typedef struct cached {
    wick_dtype dtype;
    int64_t rows, g, h, d, e;
    int64_t k[4], v[4], words;
} cached;

static cached random_cache(wk_case *c, int places) {
    static const wick_dtype types[] = {WICK_F32, WICK_F16, WICK_Q8_0, WICK_Q4_0};
    wk_batch_layout *const batch = &c->op.p.batch;
    cached a = {.rows = wk_case_extent(c, wk_case_chance(c, 60) ? 6 : 40)};
    wk_case_plan_batch(c, batch, a.rows);
    a.g = 1 + wk_case_below(c, 3);
    a.h = a.g * (1 + wk_case_below(c, 4));
    a.dtype = types[wk_case_below(c, WK_COUNT(types))];
    a.d = random_head(c, a.dtype);
    a.e = random_head(c, a.dtype);
    a.words = batch->n_words;
    a.k[0] = a.v[0] = (int64_t)batch->n_sequences * batch->n_blocks + wk_case_below(c, 5);
    a.k[1] = a.v[1] = a.g;
    a.k[2] = a.v[2] = batch->block_size;
    a.k[3] = a.d;
    a.v[3] = a.e;
    c->has_bad_index = wk_case_chance(c, 20);
    c->places = places;
    return a;
}

static void random_append(wk_case *c) {
    const cached a = random_cache(c, 0);
    place_keys(c, wk_case_operand(c, 0, a.dtype, 4, a.k), false);
    (void)wk_case_add(c, 1, a.dtype, 4, a.v);
    (void)wk_case_add(c, 2, WICK_F32, 3, (const int64_t[]){a.rows, a.g, a.d});
    (void)wk_case_add(c, 3, WICK_F32, 3, (const int64_t[]){a.rows, a.g, a.e});
    (void)wk_case_dense(c, 4, WICK_U32, 1, &a.words);
}

static void random_cached(wk_case *c) {
    const cached a = random_cache(c, 2);
    (void)wk_case_add(c, 0, WICK_F32, 3, (const int64_t[]){a.rows, a.h, a.e});
    (void)wk_case_add(c, 1, WICK_F32, 3, (const int64_t[]){a.rows, a.h, a.d});
    /* A repeated cache could not hold what the batch says. */
    place_keys(c, wk_case_operand(c, 2, a.dtype, 4, a.k), false);
    wk_case_place(c, wk_case_operand(c, 3, a.dtype, 4, a.v), false);
    (void)wk_case_dense(c, 4, WICK_U32, 1, &a.words);
    if (wk_case_chance(c, 30)) wk_case_add_optional(c, 5, WICK_F32, 1, &a.h);
    if (wk_case_chance(c, 30)) wk_case_add_optional(c, 6, WICK_F32, 1, &a.h);
    c->op.p.cached.scale = 1 / sqrtf((float)a.d);
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
    c->has_bad_index = wk_case_chance(c, 20);
    c->places = 1;
    c->has_states = true;
    return batch->n_sequences + wk_case_below(c, 3);
}

static void random_causal_conv(wk_case *c) {
    wk_batch_layout *const batch = &c->op.p.conv.batch;
    const int64_t rows = wk_case_extent(c, wk_case_chance(c, 60) ? 6 : 40);
    const int64_t n = wk_case_extent(c, 200), k = 2 + wk_case_below(c, 6);
    const int64_t state[3] = {plan_states(c, batch, rows), k - 1, n};
    const int64_t x[2] = {rows, n}, weight[2] = {n, k}, words = batch->n_words;
    (void)wk_case_add(c, 0, WICK_F32, 2, x);
    (void)wk_case_add(c, 1, WICK_F32, 3, state);
    (void)wk_case_add(c, 2, WICK_F32, 2, x);
    (void)wk_case_add(c, 3, WICK_F32, 2, weight);
    wk_case_add_optional(c, 4, WICK_F32, 1, &n);
    (void)wk_case_dense(c, 5, WICK_U32, 1, &words);
}

static void random_scan(wk_case *c) {
    wk_batch_layout *const batch = &c->op.p.scan.batch;
    const int64_t rows = wk_case_extent(c, wk_case_chance(c, 60) ? 6 : 40);
    const int64_t g = 1 + wk_case_below(c, 3), h = g * (1 + wk_case_below(c, 3));
    const int64_t n = wk_case_extent(c, 130),
                  p = wk_case_extent(c, wk_case_chance(c, 50) ? 20 : 130);
    const int64_t state[4] = {plan_states(c, batch, rows), h, n, p};
    const int64_t x[3] = {rows, h, p}, rates[3] = {h, p, n}, bc[4] = {rows, 2, g, n};
    const int64_t words = batch->n_words;
    const bool is_delta = wk_case_chance(c, 50);
    c->op.p.scan.fn = is_delta ? WK_SCAN_DELTA : WK_SCAN_SELECTIVE;
    c->op.p.scan.is_tiled = wk_case_chance(c, 50);
    c->op.p.scan.scale = 1 / sqrtf((float)wk_at_least_one(n));
    (void)wk_case_add(c, 0, WICK_F32, 3, x);
    (void)wk_case_add(c, 1, WICK_F32, 4, state);
    (void)wk_case_add(c, 2, WICK_F32, 3, x);
    repeat_last(c, wk_case_add(c, 3, WICK_F32, 3, x), 1);
    repeat_last(c, wk_case_add(c, 4, WICK_F32, 3, is_delta ? x : rates), is_delta ? 1 : 2);
    (void)wk_case_add(c, 5, WICK_F32, 4, bc);
    (void)wk_case_dense(c, 6, WICK_U32, 1, &words);
}

/* Windows of a dimension whose extent in y is *out: its extent in x. */
static int64_t random_window(wk_case *c, wk_window_shape *w, int d, int64_t most_kernel,
                             int64_t *out) {
    w->kernel[d] = 1 + wk_case_below(c, most_kernel);
    w->stride[d] = 1 + wk_case_below(c, 3);
    w->dilation[d] = wk_case_chance(c, 70) ? 1 : 1 + wk_case_below(c, 3);
    const int64_t span = w->dilation[d] * (w->kernel[d] - 1) + 1;
    const int64_t spare = wk_case_below(c, w->stride[d]);
    w->before[d] = wk_case_below(c, span);
    w->after[d] = wk_case_below(c, span);
    int64_t in = (*out - 1) * w->stride[d] + span + spare - w->before[d] - w->after[d];
    while (in < 1) {
        in += w->stride[d];
        ++*out;
    }
    return in;
}

static void random_pool(wk_case *c) {
    const bool is_deep = wk_case_chance(c, 20);
    int64_t y[WK_WINDOW_RANK] = {wk_case_extent(c, 2), wk_case_extent(c, 3), 1,
                                 1 + wk_case_below(c, 9),
                                 wk_at_least_one(wk_case_extent(c, is_deep ? 20 : 70))};
    if (is_deep) y[2] = 1 + wk_case_below(c, 3);
    int64_t x[WK_WINDOW_RANK] = {y[0], y[1]};
    wk_window_shape *const w = &c->op.p.pool.windows;
    for (int d = 0; d < WK_WINDOW_DIMS; d++)
        x[2 + d] = random_window(c, w, d, d > 0 ? 5 : is_deep ? 3 : 1, &y[2 + d]);
    c->op.p.pool.fn = (wk_window_fn)wk_case_below(c, WK_WINDOW_COUNT_);
    c->op.p.pool.counts_padding = wk_case_chance(c, 50);
    const bool is_integer = c->op.p.pool.fn == WK_WINDOW_MAX && wk_case_chance(c, 20);
    const wick_dtype dtype = is_integer ? wk_case_integer(c) : wk_case_float(c);
    (void)wk_case_add(c, 0, dtype, WK_WINDOW_RANK, y);
    (void)wk_case_add(c, 1, dtype, WK_WINDOW_RANK, x);
}

static void random_convolution(wk_case *c) {
    const bool is_deep = wk_case_chance(c, 15), is_depthwise = wk_case_chance(c, 30);
    const int64_t groups = is_depthwise ? 1 + wk_case_below(c, 5) : 1 + wk_case_below(c, 2);
    const int64_t channels = is_depthwise ? 1 : wk_at_least_one(wk_case_extent(c, 20));
    const bool is_tall = !is_depthwise && wk_case_chance(c, 4); /* more filters than an item has */
    const int64_t filters =
        is_tall ? 1300 : wk_at_least_one(wk_case_extent(c, is_depthwise ? 6 : 30));
    const int64_t height = is_tall ? 1 : 1 + wk_case_below(c, 9);
    const int64_t width = wk_at_least_one(wk_case_extent(c, is_deep || is_tall ? 10 : 70));
    int64_t y[WK_WINDOW_RANK] = {wk_case_extent(c, 3), groups * filters, 1, height, width};
    if (is_deep) y[2] = 1 + wk_case_below(c, 3);
    int64_t x[WK_WINDOW_RANK] = {y[0], groups * channels};
    wk_window_shape *const w = &c->op.p.windows;
    for (int d = 0; d < WK_WINDOW_DIMS; d++)
        x[2 + d] = random_window(c, w, d, d > 0 ? 4 : is_deep ? 3 : 1, &y[2 + d]);
    const int64_t weight[WK_WINDOW_RANK] = {y[1], channels, w->kernel[0], w->kernel[1],
                                            w->kernel[2]};
    const wick_dtype dtype = wk_case_float(c);
    (void)wk_case_add(c, 0, dtype, WK_WINDOW_RANK, y);
    (void)wk_case_add(c, 1, dtype, WK_WINDOW_RANK, x);
    (void)wk_case_add(c, 2, dtype, WK_WINDOW_RANK, weight);
    wk_case_add_optional(c, 3, dtype, 1, &y[1]);
}

static void random_chain(wk_case *c) { wk_case_describe_chain(c); }

/* Infinities and NaN only where op and specification say what comes of them. */
static wk_case_values random_values(wk_case *c, bool may_be_any) {
    const int64_t kind = wk_case_below(c, 100);
    if (kind < 60) return WK_VALUES_PLAIN;
    return may_be_any && kind >= 90 ? WK_VALUES_NOT_FINITE : WK_VALUES_SPECIAL;
}

static const struct {
    void (*describe)(wk_case *c);
    bool may_be_any;
} kinds[] = {
#define ANY true
#define FINITE false
#define WK_TRAITS(code, rows, cost, tolerance, cuts, gradient, cases, values, ...)                 \
    [WK_OP_##code] = {random_##cases, values},
#include "backend/op_traits.def"
#undef WK_TRAITS
#undef FINITE
#undef ANY
};

void wk_case_describe(wk_case *c, uint64_t seed, wk_opcode code, bool fast) {
    const wk_op_info *const info = wk_op_get_info(code);
    *c = (wk_case){
        .op = {.code = code, .n_dst = info->n_dst, .n_src = info->n_src},
        .rng = {.seed = seed, .stream = (uint64_t)code},
    };
    c->is_wild = wk_case_chance(c, 15);
    if (wk_op_is_linear(&c->op)) c->op.p.linear.fast = fast;
    c->values = random_values(c, kinds[code].may_be_any);
    kinds[code].describe(c);
}
