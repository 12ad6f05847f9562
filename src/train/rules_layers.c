/* train/rules_layers.c: gradients of norms, products, rotations and attention. */
#include "train/rules.h"

#include "core/dtype.h"
#include "ops/compose.h"

#include <wick/ops.h>

#include <math.h>

static const int last = -1;

/* --- Gated units: of the functions they are made of --- */

static wick_tensor *rebuild_gated(const wk_back *b) {
    const wk_params *const p = &wk_back_op(b)->p;
    wick_tensor *const gate = wk_back_source(b, 0), *const up = wk_back_source(b, 1);
    const double limit = p->gated.limit;
    switch (p->gated.fn) {
    case WK_GATED_SWIGLU: return wick_mul(wick_silu(gate), up);
    case WK_GATED_GEGLU: return wick_mul(wick_gelu(gate), up);
    case WK_GATED_GEGLU_ERF: return wick_mul(wick_gelu_erf(gate), up);
    case WK_GATED_REGLU: return wick_mul(wick_relu(gate), up);
    default: break;
    }
    wick_tensor *const g = wick_clamp(gate, -(double)INFINITY, limit);
    wick_tensor *const swish = wick_mul(g, wick_sigmoid(wick_affine(g, p->gated.alpha, 0)));
    return wick_mul(swish, wick_affine(wick_clamp(up, -limit, limit), 1, 1));
}

void wk_grad_gated(const wk_back *b) { wk_back_through(b, rebuild_gated); }

/* --- Norms along the last dim --- */

/* The sum over all dims but the last. */
static wick_tensor *over_rows(wick_tensor *x) {
    int dims[WICK_MAX_RANK];
    if (!x || x->view.rank < 2) return x;
    for (int d = 0; d < x->view.rank - 1; d++) dims[d] = d;
    return wick_sum(x, x->view.rank - 1, dims, false);
}

/* x normalised, centred before that for a layer norm: n s, s = 1 / sqrt(mean of n^2 + eps). */
static void grad_norm(const wk_back *b, bool is_centred) {
    wick_tensor *const x = wk_back_source(b, 0);
    wick_tensor *const weight = wk_src(wk_back_op(b), 1)->buf ? wk_back_source(b, 1) : NULL;
    wick_tensor *const n = is_centred ? wick_sub(x, wick_mean(x, 1, &last, true)) : x;
    wick_tensor *const s = wick_rsqrt(
        wick_affine(wick_mean(wick_sqr(n), 1, &last, true), 1, wk_back_op(b)->p.norm.eps));
    wick_tensor *const y = wick_mul(n, s);
    if (wk_back_wants(b, 1)) wk_back_give(b, 1, over_rows(wick_mul(b->g, y)));
    if (is_centred && wk_back_wants(b, 2)) wk_back_give(b, 2, over_rows(b->g));
    if (!wk_back_wants(b, 0)) return;
    wick_tensor *const g = wk_src(wk_back_op(b), 1)->buf ? wick_mul(b->g, weight) : b->g;
    wick_tensor *const along = wick_mul(y, wick_mean(wick_mul(g, y), 1, &last, true));
    wick_tensor *const rest = is_centred ? wick_sub(g, wick_mean(g, 1, &last, true)) : g;
    wk_back_give(b, 0, wick_mul(s, wick_sub(rest, along)));
}

void wk_grad_rms_norm(const wk_back *b) { grad_norm(b, false); }
void wk_grad_layer_norm(const wk_back *b) { grad_norm(b, true); }

/* --- Rotations: turned back --- */

void wk_grad_rope(const wk_back *b) {
    const wk_op *const op = wk_back_op(b);
    wick_tensor *const positions = wk_back_source(b, 1);
    wick_tensor *const y = wick_empty(b->g->device, b->g->view.dtype,
                                      wick_shape_of(b->g->view.rank, b->g->view.extent));
    if (!positions || !y) return;
    wk_call call;
    wk_call_begin(&call, WK_OP_ROPE, NULL);
    wk_call_add(&call, y, NULL);
    wk_call_add(&call, b->g, NULL);
    wk_call_add(&call, positions, NULL);
    call.op.p = op->p;
    call.op.p.rope.scale_factor = -op->p.rope.scale_factor; /* the angles change their sign */
    if (wk_call_queue(y->device, &call) == WICK_OK) wk_back_give(b, 0, y);
}

/* One of each pair of the first 2 half elements of the last dim. */
static wick_tensor *of_pairs(const wk_back *b, wick_tensor *x, int which) {
    const int64_t half = wk_src(wk_back_op(b), 1)->extent[2];
    if (!wk_back_op(b)->p.rope_table.interleaved) return wick_narrow(x, -1, which ? half : 0, half);
    return wick_slice(x, -1, which, 2 * half, 2);
}

/* y0 = x0 cos - x1 sin, y1 = x0 sin + x1 cos. */
void wk_grad_rope_table(const wk_back *b) {
    const int rotated = 2;
    wick_tensor *const cosines = wk_back_source(b, 1), *const sines = wk_back_source(b, 2);
    if (wk_back_wants(b, 0))
        wk_back_give(b, 0,
                     wick_rope_table(b->g, cosines, wick_neg(sines),
                                     wk_back_op(b)->p.rope_table.interleaved, WICK_ROPE_BTHD));
    if (!wk_back_wants(b, 1) && !wk_back_wants(b, 2)) return;
    wick_tensor *const x = wk_back_source(b, 0);
    wick_tensor *const x0 = of_pairs(b, x, 0), *const x1 = of_pairs(b, x, 1);
    wick_tensor *const g0 = of_pairs(b, b->g, 0), *const g1 = of_pairs(b, b->g, 1);
    wk_back_give(b, 1, wick_sum(wick_add(wick_mul(g0, x0), wick_mul(g1, x1)), 1, &rotated, false));
    wk_back_give(b, 2, wick_sum(wick_sub(wick_mul(g1, x0), wick_mul(g0, x1)), 1, &rotated, false));
}

/* --- Products --- */

void wk_grad_matmul(const wk_back *b) {
    if (wk_back_wants(b, 0))
        wk_back_give(b, 0, wick_matmul(b->g, wick_transpose(wk_back_source(b, 1), -1, -2)));
    if (wk_back_wants(b, 1))
        wk_back_give(b, 1, wick_matmul(wick_transpose(wk_back_source(b, 0), -1, -2), b->g));
}

/* The rows of a weight as a matrix, which may lie in blocks and layouts: experts lie one after
 * another. */
static wick_tensor *all_rows(wick_tensor *weight) {
    if (!weight || weight->view.rank == 2) return weight;
    const wk_view *const from = &weight->view;
    const wick_shape shape = {.rank = 2,
                              .extent = {wk_view_rows(from), from->extent[from->rank - 1]}};
    wk_view view;
    uint64_t bytes;
    if (!wk_view_dense(from->dtype, &shape, &view, &bytes)) return NULL;
    view.buf = from->buf;
    view.offset = from->offset;
    view.layout = from->layout;
    return wk_tensor_of_view(weight->device, &view);
}

/* A weight [n, k] or [experts, n, k] as floats of g's dtype, out of blocks and layouts. */
static wick_tensor *decoded(const wk_back *b) {
    const wk_view *const w = wk_src(wk_back_op(b), 1);
    wick_tensor *weight = wk_back_source(b, 1);
    if (w->layout != WK_LAYOUT_RAW || !wk_dtype_is_float(w->dtype)) {
        wick_tensor *const rows =
            wick_arange(b->g->device, WICK_U32, 0, (double)wk_view_rows(w), 1);
        weight = wick_reshape(wk_widened(wick_embedding(all_rows(weight), rows)),
                              wick_shape_of(w->rank, w->extent));
    }
    return wk_promoted(weight, b->g->view.dtype);
}

void wk_grad_linear(const wk_back *b) {
    if (wk_back_wants(b, 0)) wk_back_give(b, 0, wick_matmul(b->g, decoded(b)));
    if (wk_back_wants(b, 1))
        wk_back_give(b, 1, wick_matmul(wick_transpose(b->g, 0, 1), wk_back_source(b, 0)));
    if (wk_back_wants(b, 2)) wk_back_give(b, 2, over_rows(b->g));
}

/* g [m, u, n], x [m, u, k], weight [experts, n, k]. */
void wk_grad_linear_experts(const wk_back *b) {
    const wk_view *const w = wk_src(wk_back_op(b), 1);
    wick_tensor *const ids = wk_back_source(b, 3);
    wick_tensor *const flat = wick_flatten(ids, 0, 1);
    wick_device *const device = b->g->device;
    const wick_dtype dtype = b->g->view.dtype;
    if (wk_back_wants(b, 0)) {
        wick_tensor *const turned = wick_contiguous(wick_transpose(decoded(b), 1, 2));
        wk_back_give(b, 0, wick_linear_experts(b->g, turned, NULL, ids));
    }
    wick_tensor *const g = wick_flatten(b->g, 0, 1);
    if (wk_back_wants(b, 1)) {
        wick_tensor *const x = wick_flatten(wk_back_source(b, 0), 0, 1);
        wick_tensor *const outer = wick_mul(wick_unsqueeze(g, 2), wick_unsqueeze(x, 1));
        wick_tensor *const zeros = wick_zeros(device, dtype, wick_shape_of(3, w->extent));
        wk_back_give(b, 1, wick_index_add(zeros, 0, flat, outer));
    }
    if (wk_back_wants(b, 2)) {
        wick_tensor *const zeros = wick_zeros(device, dtype, wick_shape_of(2, w->extent));
        wk_back_give(b, 2, wick_index_add(zeros, 0, flat, g));
    }
}

void wk_grad_embedding(const wk_back *b) {
    const wk_view *const w = wk_src(wk_back_op(b), 0);
    wick_tensor *const zeros =
        wick_zeros(b->g->device, b->g->view.dtype, wick_shape_of(2, w->extent));
    wk_back_give(b, 0, wick_index_add(zeros, 0, wk_back_source(b, 1), b->g));
}

/* --- Attention: once more, of products and a softmax --- */

enum { Q, K, V, MASK, BIAS, SINKS, SLOPES };

/* In g's dtype, in which all is computed; NULL: it is absent. */
static wick_tensor *optional(const wk_back *b, int i) {
    const wk_view *const view = wk_src(wk_back_op(b), i);
    wick_tensor *const x = view->buf ? wk_back_source(b, i) : NULL;
    return wk_dtype_is_float(view->dtype) ? wk_promoted(x, b->g->view.dtype) : x;
}

/* Keys or values [b, g, s, d] for each of h heads. */
static wick_tensor *repeated(wick_tensor *x, int64_t h) {
    if (!x || x->view.extent[1] == h) return x;
    const int64_t *const e = x->view.extent;
    const int64_t wide[5] = {e[0], e[1], h / e[1], e[2], e[3]}, flat[4] = {e[0], h, e[2], e[3]};
    return wick_reshape(wick_expand(wick_unsqueeze(x, 2), wick_shape_of(5, wide)),
                        wick_shape_of(4, flat));
}

/* [t, s]: the position of a key less that of its query. */
static wick_tensor *distances(const wk_back *b) {
    const int64_t t = wk_src(wk_back_op(b), Q)->extent[2], s = wk_src(wk_back_op(b), K)->extent[2];
    const wick_dtype dtype = b->g->view.dtype;
    wick_tensor *const keys = wick_arange(b->g->device, dtype, 0, (double)s, 1);
    wick_tensor *const rows = wick_arange(b->g->device, dtype, (double)(s - t), (double)s, 1);
    return wick_sub(keys, wick_unsqueeze(rows, 1));
}

/* x and y; either may be NULL. */
static wick_tensor *where_both(wick_tensor *x, wick_tensor *y) {
    return x && y ? wick_mul(x, y) : x ? x : y;
}

/* u8, NULL without that source: where it is not the value. */
static wick_tensor *differs(const wk_back *b, int i, double value) {
    wick_tensor *const x = optional(b, i);
    return x ? wick_ne(x, wick_full(b->g->device, x->view.dtype, WICK_SCALAR, value)) : NULL;
}

/* u8 [t, s] or [b, h, t, s], 1: the key is seen; NULL: all are. */
static wick_tensor *visible(const wk_back *b, wick_tensor *distance) {
    const wk_params *const p = &wk_back_op(b)->p;
    wick_tensor *seen = where_both(differs(b, MASK, 0), differs(b, BIAS, -(double)INFINITY));
    const double window = (double)p->attention.window;
    if (p->attention.causal || window > 0) {
        wick_tensor *const near =
            wick_eq(wick_clamp(distance, window > 0 ? 1 - window : -(double)INFINITY,
                               p->attention.causal ? 0 : (double)INFINITY),
                    distance);
        seen = where_both(seen, near);
    }
    return seen;
}

/* [h] as [h, 1, 1]. */
static wick_tensor *of_heads(wick_tensor *x) { return wk_along(x, 2); }

static wick_tensor *scores_of(const wk_back *b, wick_tensor *distance) {
    const wk_op *const op = wk_back_op(b);
    const double scale = op->p.attention.scale, cap = op->p.attention.softcap;
    wick_tensor *const keys = repeated(wk_back_source(b, K), wk_src(op, Q)->extent[1]);
    wick_tensor *scores =
        wick_affine(wick_matmul(wk_back_source(b, Q), wick_transpose(keys, 2, 3)), scale, 0);
    if (cap > 0) scores = wick_affine(wick_tanh(wick_affine(scores, 1 / cap, 0)), cap, 0);
    if (wk_src(op, SLOPES)->buf)
        scores = wick_add(scores, wick_mul(of_heads(optional(b, SLOPES)), distance));
    if (wk_src(op, BIAS)->buf) scores = wick_add(scores, optional(b, BIAS));
    return scores;
}

/* With the sink as one more column, whose weight is left out again. */
static wick_tensor *softmax_beside(wick_tensor *scores, wick_tensor *sinks) {
    if (!sinks || !scores) return wick_softmax(scores, -1);
    wick_shape shape = wk_tensor_shape_of(scores);
    const int64_t s = shape.extent[3];
    shape.extent[3] = 1;
    wick_tensor *const both[] = {scores, wick_expand(of_heads(sinks), shape)};
    return wick_narrow(wick_softmax(both[1] ? wick_cat(both, 2, 3) : NULL, -1), 3, 0, s);
}

/* Each query sees a key, by its position. */
static bool sees_some(const wk_op *op) {
    return !wk_src(op, MASK)->buf && !wk_src(op, BIAS)->buf &&
           wk_src(op, Q)->extent[2] <= wk_src(op, K)->extent[2];
}

static wick_tensor *rebuild_attention(const wk_back *b) {
    const wk_op *const op = wk_back_op(b);
    wick_device *const device = b->g->device;
    const wick_dtype dtype = b->g->view.dtype;
    wick_tensor *const zero = wick_zeros(device, dtype, WICK_SCALAR);
    wick_tensor *const never = wick_full(device, dtype, WICK_SCALAR, -(double)INFINITY);
    wick_tensor *const distance = distances(b);
    wick_tensor *const seen = visible(b, distance);
    wick_tensor *scores = scores_of(b, distance);
    if (seen && sees_some(op)) /* [t, s] is added: its gradient needs no choice of scores */
        scores = wick_add(scores, wick_where(seen, zero, never));
    else if (seen)
        scores = wick_where(seen, scores, never);
    wick_tensor *weights = softmax_beside(scores, optional(b, SINKS));
    if (seen && !sees_some(op)) /* rows that see nothing have no weights, and no NaN */
        weights = wick_where(seen, weights, zero);
    return wick_matmul(weights, repeated(wk_back_source(b, V), wk_src(op, Q)->extent[1]));
}

void wk_grad_attention(const wk_back *b) { wk_back_through(b, rebuild_attention); }
