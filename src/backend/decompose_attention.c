/* backend/decompose_attention.c: attention as products, masks and a softmax over a score matrix.
 *
 * Scores are kept in float32 (float64 for float64 operands). A sink is one more column after the
 * scores: softmax counts it, the product with the values leaves it out. */
#include "backend/op.h"

#include <math.h>

enum { Q, K, V, MASK, BIAS, SINKS, SLOPES };

typedef struct attention {
    const wk_op *op;
    const wk_decomposition *to;
    wick_dtype dtype; /* of the scores */
    int64_t g, t, s;
    wk_view logits; /* [b, h, t, s], and s + 1 with sinks */
    wk_view scores; /* [b, h, t, s] of it */
    wk_view keys;   /* [t, s]: position of each key */
    wk_view low;    /* [b, h, t, s]: -infinity everywhere */
} attention;

static wick_status emit(const attention *a, wk_opcode code, wk_params params, int n_views,
                        const wk_view *const *views) {
    wk_op op = {.code = code, .n_dst = 1, .n_src = (uint8_t)(n_views - 1), .p = params};
    for (int i = 0; i < n_views; i++) op.view[i] = *views[i];
    return a->to->emit(a->to->user, &op);
}

static wick_status emit_binary(const attention *a, wk_binary_fn fn, const wk_view *y,
                               const wk_view *left, const wk_view *right) {
    return emit(a, WK_OP_BINARY, (wk_params){.binary = fn}, 3, (const wk_view *[]){y, left, right});
}

static wick_status emit_affine(const attention *a, double factor, const wk_view *y) {
    const wk_params params = {.unary = {.fn = WK_UNARY_AFFINE, .a = factor}};
    return emit(a, WK_OP_UNARY, params, 2, (const wk_view *[]){y, y});
}

/* --- Views --- */

/* [b, h, ..] as [b, g, h / g, ..]. */
static wk_view split_heads(const wk_view *x, int64_t g) {
    wk_view out = *x;
    const int64_t n = g > 0 ? x->extent[1] / g : 0;
    out.rank = 5;
    out.extent[1] = g;
    out.stride[1] = x->stride[1] * n;
    for (int d = 2; d < 5; d++) {
        out.extent[d] = d == 2 ? n : x->extent[d - 1];
        out.stride[d] = x->stride[d - 1];
    }
    return out;
}

/* [b, g, m, n] as [b, g, repeats, m, n], or with m and n exchanged. */
static wk_view repeat_groups(const wk_view *x, int64_t repeats, bool is_transposed) {
    wk_view out = *x;
    out.rank = 5;
    out.extent[2] = repeats;
    out.stride[2] = 0;
    for (int d = 2; d < 4; d++) {
        const int to = is_transposed ? 6 - d : 1 + d;
        out.extent[to] = x->extent[d];
        out.stride[to] = x->stride[d];
    }
    return out;
}

/* A vector along dimension dim of scores or another view, repeated along the others. */
static wk_view repeat_along(const wk_view *vector, const wk_view *like, int dim) {
    wk_view out = *vector;
    out.rank = like->rank;
    for (int d = 0; d < like->rank; d++) {
        out.extent[d] = like->extent[d];
        out.stride[d] = d == dim && vector->rank > 0 ? vector->stride[0] : 0;
    }
    return out;
}

/* [t, s] or [b, h, t] for all of [b, h, t, s]; first: the dimension that its first one is. */
static wk_view repeat_part(const wk_view *part, const wk_view *like, int first) {
    wk_view out = repeat_along(part, like, -1);
    for (int d = 0; d < part->rank; d++) out.stride[first + d] = part->stride[d];
    return out;
}

/* --- Parts --- */

/* x in the dtype of the scores. */
static wick_status convert(const attention *a, const wk_view *x, wk_view *out) {
    *out = *x;
    if (x->dtype == a->dtype) return WICK_OK;
    WK_TRY(a->to->temp(a->to->user, a->dtype, x->rank, x->extent, out));
    return emit(a, WK_OP_COPY, (wk_params){0}, 2, (const wk_view *[]){out, x});
}

static wick_status multiply(const attention *a) {
    const int64_t repeats = wk_src(a->op, Q)->extent[1] / a->g;
    wk_view q, k;
    WK_TRY(convert(a, wk_src(a->op, Q), &q));
    WK_TRY(convert(a, wk_src(a->op, K), &k));
    const wk_view left = split_heads(&q, a->g), right = repeat_groups(&k, repeats, true);
    const wk_view y = split_heads(&a->scores, a->g);
    WK_TRY(emit(a, WK_OP_MATMUL, (wk_params){0}, 3, (const wk_view *[]){&y, &left, &right}));
    const double cap = a->op->p.attention.softcap;
    const double scale = a->op->p.attention.scale;
    WK_TRY(emit_affine(a, cap > 0 ? scale / cap : scale, &a->scores));
    if (cap <= 0) return WICK_OK;
    const wk_params tanh_of = {.unary.fn = WK_UNARY_TANH};
    WK_TRY(emit(a, WK_OP_UNARY, tanh_of, 2, (const wk_view *[]){&a->scores, &a->scores}));
    return emit_affine(a, cap, &a->scores);
}

/* start, start + 1, ... along dim of [t, s]. */
static wick_status count_along(const attention *a, int dim, int64_t start, wk_view *out) {
    const int64_t extent[2] = {a->t, a->s};
    wk_view line, like = {.rank = 2, .extent = {a->t, a->s}};
    WK_TRY(a->to->temp(a->to->user, a->dtype, 1, &extent[dim], &line));
    const wk_params params = {.arange = {.start = (double)start, .step = 1}};
    WK_TRY(emit(a, WK_OP_ARANGE, params, 1, (const wk_view *[]){&line}));
    *out = repeat_along(&line, &like, dim);
    return WICK_OK;
}

/* slope * (key - query). */
static wick_status add_slopes(const attention *a) {
    const wk_view *const slopes = wk_src(a->op, SLOPES);
    const int64_t extent[2] = {a->t, a->s};
    wk_view queries, distance, slope, added;
    WK_TRY(count_along(a, 0, a->s - a->t, &queries));
    WK_TRY(a->to->temp(a->to->user, a->dtype, 2, extent, &distance));
    WK_TRY(emit_binary(a, WK_BINARY_SUB, &distance, &a->keys, &queries));
    WK_TRY(convert(a, slopes, &slope));
    WK_TRY(a->to->temp(a->to->user, a->dtype, 4, a->scores.extent, &added));
    const wk_view left = repeat_along(&slope, &added, 1), right = repeat_part(&distance, &added, 2);
    WK_TRY(emit_binary(a, WK_BINARY_MUL, &added, &left, &right));
    return emit_binary(a, WK_BINARY_ADD, &a->scores, &a->scores, &added);
}

/* Scores become -infinity where seen is 0. */
static wick_status hide(const attention *a, const wk_view *seen) {
    return emit(a, WK_OP_WHERE, (wk_params){0}, 4,
                (const wk_view *[]){&a->scores, seen, &a->scores, &a->low});
}

/* Keys that fn lets through, against positions that begin with start for the first query. */
static wick_status hide_unless(const attention *a, wk_compare_fn fn, int64_t start) {
    const int64_t extent[2] = {a->t, a->s};
    wk_view bound, seen;
    WK_TRY(count_along(a, 0, start, &bound));
    WK_TRY(a->to->temp(a->to->user, WICK_U8, 2, extent, &seen));
    WK_TRY(emit(a, WK_OP_COMPARE, (wk_params){.compare = fn}, 3,
                (const wk_view *[]){&seen, &a->keys, &bound}));
    const wk_view everywhere = repeat_part(&seen, &a->scores, 2);
    return hide(a, &everywhere);
}

static wick_status fill_scalar(const attention *a, double value, wk_view *out) {
    wk_view scalar;
    WK_TRY(a->to->temp(a->to->user, a->dtype, 0, NULL, &scalar));
    *out = repeat_along(&scalar, &a->scores, -1);
    return emit(a, WK_OP_FILL, (wk_params){.fill.real = value}, 1, (const wk_view *[]){&scalar});
}

static wick_status hide_keys(attention *a) {
    const wk_params *const p = &a->op->p;
    const wk_view *const mask = wk_src(a->op, MASK);
    const int64_t first = a->s - a->t; /* position of query 0 */
    WK_TRY(fill_scalar(a, -(double)INFINITY, &a->low));
    if (p->attention.causal) WK_TRY(hide_unless(a, WK_COMPARE_LE, first));
    if (p->attention.window > 0) WK_TRY(hide_unless(a, WK_COMPARE_GT, first - p->attention.window));
    return mask->buf ? hide(a, mask) : WICK_OK;
}

/* Rows that see no key get weights of zero. They are found before softmax: their largest logit is
 * -infinity. */
static wick_status weigh(const attention *a) {
    wk_view largest, seen, zero;
    WK_TRY(a->to->temp(a->to->user, a->dtype, 3, a->logits.extent, &largest));
    WK_TRY(a->to->temp(a->to->user, WICK_U8, 3, a->logits.extent, &seen));
    WK_TRY(fill_scalar(a, 0, &zero));
    const wk_params max = {.reduce.fn = WK_REDUCE_MAX}, differs = {.compare = WK_COMPARE_NE};
    const wk_view low = repeat_along(&a->low, &largest, -1);
    WK_TRY(emit(a, WK_OP_REDUCE, max, 2, (const wk_view *[]){&largest, &a->logits}));
    WK_TRY(emit(a, WK_OP_COMPARE, differs, 3, (const wk_view *[]){&seen, &largest, &low}));
    WK_TRY(emit(a, WK_OP_SOFTMAX, (wk_params){0}, 2, (const wk_view *[]){&a->logits, &a->logits}));
    const wk_view rows = repeat_part(&seen, &a->scores, 0);
    return emit(a, WK_OP_WHERE, (wk_params){0}, 4,
                (const wk_view *[]){&a->scores, &rows, &a->scores, &zero});
}

static wick_status sum_values(const attention *a) {
    const wk_view *const y = wk_dst(a->op, 0);
    wk_view v, sum = *y;
    WK_TRY(convert(a, wk_src(a->op, V), &v));
    if (y->dtype != a->dtype) WK_TRY(a->to->temp(a->to->user, a->dtype, y->rank, y->extent, &sum));
    const wk_view weights = split_heads(&a->scores, a->g), to = split_heads(&sum, a->g);
    const wk_view values = repeat_groups(&v, y->extent[1] / a->g, false);
    WK_TRY(emit(a, WK_OP_MATMUL, (wk_params){0}, 3, (const wk_view *[]){&to, &weights, &values}));
    if (y->dtype == a->dtype) return WICK_OK;
    return emit(a, WK_OP_COPY, (wk_params){0}, 2, (const wk_view *[]){y, &sum});
}

static wick_status make_scores(attention *a) {
    const wk_view *const q = wk_src(a->op, Q), *const sinks = wk_src(a->op, SINKS);
    const int64_t columns = a->s + (sinks->buf ? 1 : 0);
    const int64_t extent[4] = {q->extent[0], q->extent[1], a->t, columns};
    WK_TRY(a->to->temp(a->to->user, a->dtype, 4, extent, &a->logits));
    a->scores = a->logits;
    a->scores.extent[3] = a->s;
    if (!sinks->buf) return WICK_OK;
    wk_view column = a->logits;
    column.rank = 3;
    column.offset += (uint64_t)a->s * (a->dtype == WICK_F64 ? sizeof(double) : sizeof(float));
    const wk_view sink = repeat_along(sinks, &column, 1);
    return emit(a, WK_OP_COPY, (wk_params){0}, 2, (const wk_view *[]){&column, &sink});
}

wick_status wk_decompose_attention(const wk_op *op, const wk_decomposition *to) {
    const wk_view *const q = wk_src(op, Q), *const k = wk_src(op, K), *const y = wk_dst(op, 0);
    attention a = {.op = op,
                   .to = to,
                   .dtype = q->dtype == WICK_F64 ? WICK_F64 : WICK_F32,
                   .g = k->extent[1],
                   .t = q->extent[2],
                   .s = k->extent[2]};
    if (a.g == 0 || a.s == 0)
        return emit(&a, WK_OP_FILL, (wk_params){0}, 1, (const wk_view *[]){y});
    WK_TRY(make_scores(&a));
    WK_TRY(count_along(&a, 1, 0, &a.keys));
    WK_TRY(multiply(&a));
    if (wk_src(op, SLOPES)->buf) WK_TRY(add_slopes(&a));
    if (wk_src(op, BIAS)->buf) {
        wk_view bias;
        WK_TRY(convert(&a, wk_src(op, BIAS), &bias));
        WK_TRY(emit_binary(&a, WK_BINARY_ADD, &a.scores, &a.scores, &bias));
    }
    WK_TRY(hide_keys(&a));
    WK_TRY(weigh(&a));
    return sum_values(&a);
}
