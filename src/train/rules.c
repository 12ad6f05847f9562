/* train/rules.c: gradients of elementwise operations, reductions and what moves elements. */
#include "train/rules.h"

#include "core/dtype.h"
#include "core/shape.h"
#include "ops/compose.h"
#include "tensor/custom.h"

#include <wick/ops.h>

#include <float.h>
#include <math.h>

static const double log_2 = 0.69314718055994530942, log_10 = 2.30258509299404568402,
                    root_of_half = 0.70710678118654752440, pi = 3.14159265358979323846;

/* No gradient goes on: what is written is a constant, or of whole steps. */
void wk_grad_zero(const wk_back *b) { (void)b; }

void wk_grad_none(const wk_back *b) {
    wk_device_fail(b->g->device, WICK_ERR_UNSUPPORTED, "%s has no gradient",
                   wk_op_name(wk_back_op(b)));
}

/* 1 where a comparison holds, else 0, as a float. */
static wick_tensor *indicator(wick_tensor *mask, const wick_tensor *like) {
    return wick_cast(mask, like->view.dtype);
}

/* --- Unary --- */

/* A number as x has them. */
static wick_tensor *scalar_like(const wick_tensor *x, double value) {
    return x ? wick_full(x->device, x->view.dtype, WICK_SCALAR, value) : NULL;
}

static wick_tensor *above(wick_tensor *x, double bound) {
    return x ? indicator(wick_gt(x, scalar_like(x, bound)), x) : NULL;
}

/* 1 between a and b; at them, where there is no gradient, 0. */
static wick_tensor *within(wick_tensor *x, double a, double b) {
    if (!x) return NULL;
    wick_tensor *const is_above = wick_gt(x, scalar_like(x, a));
    return indicator(wick_minimum(is_above, wick_lt(x, scalar_like(x, b))), x);
}

/* 1 - x^2. */
static wick_tensor *less_square(wick_tensor *x) { return wick_affine(wick_sqr(x), -1, 1); }

/* s (1 + c x (1 - s)), s = sigmoid(c x): of x s. */
static wick_tensor *slope_of_swish(wick_tensor *x, double c) {
    wick_tensor *const s = wick_sigmoid(wick_affine(x, c, 0));
    wick_tensor *const inner = wick_mul(wick_affine(x, c, 0), wick_affine(s, -1, 1));
    return wick_mul(s, wick_affine(inner, 1, 1));
}

/* x (1 + t) / 2, t = tanh(u), u = c (x + d x^3). */
static wick_tensor *slope_of_gelu(wick_tensor *x) {
    const double c = sqrt(2 / pi), d = 0.044715;
    wick_tensor *const square = wick_sqr(x);
    wick_tensor *const t = wick_tanh(wick_mul(x, wick_affine(square, c * d, c)));
    wick_tensor *const inner =
        wick_mul(wick_mul(x, less_square(t)), wick_affine(square, 1.5 * c * d, 0.5 * c));
    return wick_add(wick_affine(t, 0.5, 0.5), inner);
}

static wick_tensor *slope_of_gelu_erf(wick_tensor *x) {
    wick_tensor *const density = wick_exp(wick_affine(wick_sqr(x), -0.5, -0.5 * log(2 * pi)));
    wick_tensor *const share = wick_affine(wick_erf(wick_affine(x, root_of_half, 0)), 0.5, 0.5);
    return wick_add(share, wick_mul(x, density));
}

/* t + x (1 - t^2) sigmoid(x), t = tanh(softplus(x)). */
static wick_tensor *slope_of_mish(wick_tensor *x) {
    wick_tensor *const t = wick_tanh(wick_softplus(x));
    return wick_add(t, wick_mul(wick_mul(x, less_square(t)), wick_sigmoid(x)));
}

/* 0 up to -3, 1 from 3 on, between them (2 x + 3) / 6. */
static wick_tensor *slope_of_hard_swish(wick_tensor *x) {
    wick_tensor *const zero = scalar_like(x, 0), *const one = scalar_like(x, 1);
    wick_tensor *const inner = wick_affine(x, 2.0 / 6, 0.5);
    return wick_where(wick_ge(x, scalar_like(x, 3)), one,
                      wick_where(wick_le(x, scalar_like(x, -3)), zero, inner));
}

/* Below 0 `below`, else 1. */
static wick_tensor *or_one(wick_tensor *x, wick_tensor *below) {
    return wick_where(wick_gt(x, scalar_like(x, 0)), scalar_like(x, 1), below);
}

static wick_tensor *slope_of_elu(wick_tensor *x, double alpha) {
    return or_one(x, wick_affine(wick_exp(wick_minimum(x, scalar_like(x, 0))), alpha, 0));
}

static wick_tensor *slope_of_leaky(wick_tensor *x, double slope) {
    return or_one(x, scalar_like(x, slope));
}

/* Of x alone. */
static wick_tensor *slope_at(const wk_op *op, wick_tensor *x) {
    const double a = op->p.unary.a, c = op->p.unary.b;
    switch (op->p.unary.fn) {
    case WK_UNARY_SILU: return slope_of_swish(x, 1);
    case WK_UNARY_LOG: return wick_recip(x);
    case WK_UNARY_SIN: return wick_cos(x);
    case WK_UNARY_COS: return wick_neg(wick_sin(x));
    case WK_UNARY_ABS: return wick_sign(x);
    case WK_UNARY_SQR: return wick_affine(x, 2, 0);
    case WK_UNARY_ERF: return wick_affine(wick_exp(wick_neg(wick_sqr(x))), 2 / sqrt(pi), 0);
    case WK_UNARY_GELU: return slope_of_gelu(x);
    case WK_UNARY_GELU_ERF: return slope_of_gelu_erf(x);
    case WK_UNARY_GELU_QUICK: return slope_of_swish(x, 1.702);
    case WK_UNARY_SOFTPLUS: return wick_sigmoid(x);
    case WK_UNARY_MISH: return slope_of_mish(x);
    case WK_UNARY_HARD_SIGMOID: return wick_affine(within(x, -3, 3), 1.0 / 6, 0);
    case WK_UNARY_HARD_SWISH: return slope_of_hard_swish(x);
    case WK_UNARY_ELU: return slope_of_elu(x, a);
    case WK_UNARY_LEAKY_RELU: return slope_of_leaky(x, a);
    case WK_UNARY_POW: return wick_affine(wick_powf(x, a - 1), a, 0);
    case WK_UNARY_CLAMP: return within(x, a, c);
    case WK_UNARY_ASIN: return wick_rsqrt(less_square(x));
    case WK_UNARY_ACOS: return wick_neg(wick_rsqrt(less_square(x)));
    case WK_UNARY_ATAN: return wick_recip(wick_affine(wick_sqr(x), 1, 1));
    case WK_UNARY_SINH: return wick_cosh(x);
    case WK_UNARY_COSH: return wick_sinh(x);
    case WK_UNARY_ASINH: return wick_rsqrt(wick_affine(wick_sqr(x), 1, 1));
    case WK_UNARY_ACOSH: return wick_rsqrt(wick_affine(wick_sqr(x), 1, -1));
    case WK_UNARY_ATANH: return wick_recip(less_square(x));
    case WK_UNARY_LOG1P: return wick_recip(wick_affine(x, 1, 1));
    case WK_UNARY_LOG2: return wick_recip(wick_affine(x, log_2, 0));
    default: return wick_recip(wick_affine(x, log_10, 0)); /* LOG10 */
    }
}

/* Of the result alone, so that ops in place have gradients; NULL with *is_of_result false: it
 * takes x. */
static wick_tensor *slope_by_result(const wk_back *b, bool *is_of_result) {
    *is_of_result = true;
    switch (wk_back_op(b)->p.unary.fn) {
    case WK_UNARY_EXP: return wk_back_result(b, 0);
    case WK_UNARY_EXP2: return wick_affine(wk_back_result(b, 0), log_2, 0);
    case WK_UNARY_EXPM1: return wick_affine(wk_back_result(b, 0), 1, 1);
    case WK_UNARY_RECIP: return wick_neg(wick_sqr(wk_back_result(b, 0)));
    case WK_UNARY_SQRT: return wick_recip(wick_affine(wk_back_result(b, 0), 2, 0));
    case WK_UNARY_RSQRT: {
        wick_tensor *const y = wk_back_result(b, 0);
        return wick_mul(wick_sqr(y), wick_affine(y, -0.5, 0));
    }
    case WK_UNARY_TANH: return less_square(wk_back_result(b, 0));
    case WK_UNARY_TAN: return wick_affine(wick_sqr(wk_back_result(b, 0)), 1, 1);
    case WK_UNARY_SIGMOID: {
        wick_tensor *const y = wk_back_result(b, 0);
        return wick_mul(y, wick_affine(y, -1, 1));
    }
    case WK_UNARY_RELU: return above(wk_back_result(b, 0), 0);
    default: *is_of_result = false; return NULL;
    }
}

void wk_grad_unary(const wk_back *b) {
    const wk_op *const op = wk_back_op(b);
    switch (op->p.unary.fn) {
    case WK_UNARY_FLOOR:
    case WK_UNARY_CEIL:
    case WK_UNARY_ROUND:
    case WK_UNARY_TRUNC:
    case WK_UNARY_SIGN: return;
    case WK_UNARY_NEG: wk_back_give(b, 0, wick_neg(b->g)); return;
    case WK_UNARY_AFFINE: wk_back_give(b, 0, wick_affine(b->g, op->p.unary.a, 0)); return;
    case WK_UNARY_POW:
        if (op->p.unary.a == 0) return; /* a constant, at 0 as well */
        break;
    default: break;
    }
    bool is_of_result;
    wick_tensor *slope = slope_by_result(b, &is_of_result);
    if (!is_of_result) slope = slope_at(op, wk_back_source(b, 0));
    wk_back_give(b, 0, wick_mul(b->g, slope));
}

/* --- Binary --- */

static wick_tensor *operand_if(const wk_back *b, bool is_needed, int i) {
    return is_needed ? wk_back_source(b, i) : NULL;
}

/* The shares of a and b are g times these. */
static void give_shares(const wk_back *b, wick_tensor *of_a, wick_tensor *of_b) {
    if (wk_back_wants(b, 0)) wk_back_give(b, 0, wick_mul(b->g, of_a));
    if (wk_back_wants(b, 1)) wk_back_give(b, 1, wick_mul(b->g, of_b));
}

static wick_tensor *is_zero(wick_tensor *x) { return wick_eq(x, scalar_like(x, 0)); }

/* y, but 0 where the mask is not 0. */
static wick_tensor *zero_where(wick_tensor *mask, wick_tensor *y) {
    return wick_where(mask, scalar_like(y, 0), y);
}

/* x^y: y x^(y - 1), 0 where y is, and x^y log(x), 0 where x is and y is not negative. */
static void grad_pow(const wk_back *b) {
    wick_tensor *const x = wk_back_source(b, 0), *const y = wk_back_source(b, 1);
    if (wk_back_wants(b, 0)) {
        wick_tensor *const slope = wick_mul(y, wick_pow(x, wick_affine(y, 1, -1)));
        wk_back_give(b, 0, zero_where(is_zero(y), wick_mul(b->g, slope)));
    }
    if (!wk_back_wants(b, 1)) return;
    wick_tensor *const slope = wick_mul(wick_pow(x, y), wick_log(x));
    wick_tensor *const is_flat = wick_minimum(is_zero(x), wick_ge(y, scalar_like(y, 0)));
    wk_back_give(b, 1, zero_where(is_flat, wick_mul(b->g, slope)));
}

/* The larger (smaller) one has it all, as has the one that is NaN; equal ones a half each. */
static void grad_extreme(const wk_back *b, bool is_largest) {
    wick_tensor *const x = wk_back_source(b, 0), *const y = wk_back_source(b, 1);
    if (!x || !y) return;
    wick_tensor *const is_beyond = is_largest ? wick_gt(x, y) : wick_lt(x, y);
    wick_tensor *const is_x = indicator(wick_maximum(is_beyond, wick_is_nan(x)), x);
    wick_tensor *const is_both = indicator(wick_eq(x, y), x);
    wick_tensor *const share = wick_add(is_x, wick_affine(is_both, 0.5, 0));
    give_shares(b, share, wick_affine(share, -1, 1));
}

/* x - y floor(x / y), or trunc. */
static void grad_rest(const wk_back *b, bool is_floor) {
    wk_back_give(b, 0, b->g);
    if (!wk_back_wants(b, 1)) return;
    wick_tensor *const x = wk_back_source(b, 0), *const y = wk_back_source(b, 1);
    wick_tensor *const times = is_floor ? wick_floor_divide(x, y) : wick_trunc(wick_div(x, y));
    wk_back_give(b, 1, wick_neg(wick_mul(b->g, times)));
}

/* Of the angle of the point (b, a): b / (a^2 + b^2) and -a / (a^2 + b^2), 0 at (0, 0). The squares
 * might overflow, or be 0. */
static void grad_angle(const wk_back *b) {
    wick_tensor *const x = wk_back_source(b, 0), *const y = wk_back_source(b, 1);
    wick_tensor *const length = wick_hypot(x, y), *const is_flat = is_zero(length);
    wick_tensor *const of_x = wick_div(wick_div(y, length), length);
    wick_tensor *const of_y = wick_div(wick_div(x, length), length);
    give_shares(b, zero_where(is_flat, of_x), zero_where(is_flat, wick_neg(of_y)));
}

/* a and b over the length, whose square may overflow. */
static void grad_length(const wk_back *b) {
    wick_tensor *const length = wk_back_result(b, 0);
    give_shares(b, wick_div(wk_back_source(b, 0), length), wick_div(wk_back_source(b, 1), length));
}

static void grad_log_add_exp(const wk_back *b) {
    wick_tensor *const share = wick_sigmoid(wick_sub(wk_back_source(b, 0), wk_back_source(b, 1)));
    give_shares(b, share, wick_affine(share, -1, 1));
}

static void grad_product(const wk_back *b) {
    wick_tensor *const x = operand_if(b, wk_back_wants(b, 1), 0);
    wick_tensor *const y = operand_if(b, wk_back_wants(b, 0), 1);
    give_shares(b, y, x);
}

/* 1 / y and -x / y^2, whose square might overflow, or be 0. */
static void grad_quotient(const wk_back *b) {
    wick_tensor *const y = wk_back_source(b, 1);
    wick_tensor *const x = operand_if(b, wk_back_wants(b, 1), 0);
    give_shares(b, wick_recip(y), x ? wick_neg(wick_div(wick_div(x, y), y)) : NULL);
}

/* The sign of the result is that of the second operand. */
static void grad_copysign(const wk_back *b) {
    wick_tensor *const x = wk_back_source(b, 0), *const y = wk_back_result(b, 0);
    wk_back_give(b, 0, wick_mul(b->g, wick_mul(wick_sign(x), wick_sign(y))));
}

void wk_grad_binary(const wk_back *b) {
    switch (wk_back_op(b)->p.binary) {
    case WK_BINARY_ADD:
        wk_back_give(b, 0, b->g);
        wk_back_give(b, 1, b->g);
        return;
    case WK_BINARY_SUB:
        wk_back_give(b, 0, b->g);
        if (wk_back_wants(b, 1)) wk_back_give(b, 1, wick_neg(b->g));
        return;
    case WK_BINARY_MUL: grad_product(b); return;
    case WK_BINARY_DIV: grad_quotient(b); return;
    case WK_BINARY_POW: grad_pow(b); return;
    case WK_BINARY_MAXIMUM: grad_extreme(b, true); return;
    case WK_BINARY_MINIMUM: grad_extreme(b, false); return;
    case WK_BINARY_REMAINDER: grad_rest(b, true); return;
    case WK_BINARY_FMOD: grad_rest(b, false); return;
    case WK_BINARY_ATAN2: grad_angle(b); return;
    case WK_BINARY_HYPOT: grad_length(b); return;
    case WK_BINARY_LOGADDEXP: grad_log_add_exp(b); return;
    case WK_BINARY_COPYSIGN: grad_copysign(b); return;
    case WK_BINARY_FLOOR_DIVIDE: return;
    default: wk_grad_none(b); return;
    }
}

void wk_grad_where(const wk_back *b) {
    wick_tensor *const cond = wk_back_source(b, 0);
    wick_tensor *const zero = scalar_like(b->g, 0);
    if (wk_back_wants(b, 1)) wk_back_give(b, 1, wick_where(cond, b->g, zero));
    if (wk_back_wants(b, 2)) wk_back_give(b, 2, wick_where(cond, zero, b->g));
}

/* --- Reductions: the last dims of x are gone --- */

static wick_tensor *spread(wick_tensor *y, const wk_view *x) {
    if (!y) return NULL;
    wick_shape shape = {.rank = x->rank}, all = {.rank = x->rank};
    for (int d = 0; d < x->rank; d++) {
        shape.extent[d] = d < y->view.rank ? x->extent[d] : 1;
        all.extent[d] = x->extent[d];
    }
    return wick_expand(wick_reshape(y, shape), all);
}

static double reduced_count(const wk_op *op) {
    double n = 1;
    for (int d = wk_dst(op, 0)->rank; d < wk_src(op, 0)->rank; d++)
        n *= (double)wk_src(op, 0)->extent[d];
    return n;
}

/* Equal extremes share it. */
static void grad_reduced_extreme(const wk_back *b) {
    const wk_view *const of_x = wk_src(wk_back_op(b), 0);
    wick_tensor *const x = wk_back_source(b, 0);
    wick_tensor *const y = spread(wk_back_result(b, 0), of_x);
    if (!x || !y) return;
    wick_tensor *const mask = indicator(wick_eq(x, y), x);
    int dims[WICK_MAX_RANK], n = 0;
    for (int d = wk_dst(wk_back_op(b), 0)->rank; d < of_x->rank; d++) dims[n++] = d;
    wick_tensor *const share = wick_div(mask, n > 0 ? wick_sum(mask, n, dims, true) : mask);
    wk_back_give(b, 0, wick_mul(share, spread(b->g, of_x)));
}

/* The mean is taken away twice: of large numbers it was rounded. */
static void grad_variance(const wk_back *b) {
    const wk_op *const op = wk_back_op(b);
    const wk_view *const of_x = wk_src(op, 0);
    const double n = reduced_count(op), free = fmax(0, n - op->p.reduce.correction);
    wick_tensor *const x = wk_back_source(b, 0);
    int dims[WICK_MAX_RANK], n_dims = 0;
    for (int d = wk_dst(op, 0)->rank; d < of_x->rank; d++) dims[n_dims++] = d;
    wick_tensor *const near = wick_sub(x, wick_mean(x, n_dims, dims, true));
    wick_tensor *const centred = wick_sub(near, wick_mean(near, n_dims, dims, true));
    wk_back_give(b, 0, wick_mul(wick_affine(centred, 2 / free, 0), spread(b->g, of_x)));
}

/* x moved along its last dim, to its end by before or to its beginning by after; the value comes in
 * at the other end. */
static wick_tensor *shifted(wick_tensor *x, int64_t before, int64_t after, double value) {
    if (!x) return NULL;
    const int last = x->view.rank - 1;
    return wick_narrow(wk_padded(x, last, 1, &before, &after, value), last, after,
                       x->view.extent[last]);
}

/* x y, but 0 where one is 0 and the other an overflow. */
static wick_tensor *share_of(wick_tensor *x, wick_tensor *y) {
    if (!x || !y) return NULL;
    wick_tensor *const product = wick_mul(x, y);
    wick_tensor *const is_none = wick_maximum(is_zero(x), is_zero(y));
    return zero_where(wick_lt(wick_is_finite(product), is_none), product);
}

/* The products of the elements before each one. */
static wick_tensor *products_before(wick_tensor *x) {
    return wick_cumprod(shifted(x, 1, 0, 1), -1);
}

static wick_tensor *reversed(wick_tensor *x) { return wick_flip(x, 1, (const int[]){-1}); }

/* The product of the other factors, of those before and those after: nothing is divided, so that
 * zeros have gradients, also of gradients. */
static void grad_prod(const wk_back *b) {
    const wk_view *const of_x = wk_src(wk_back_op(b), 0);
    const int first = wk_dst(wk_back_op(b), 0)->rank;
    int64_t n = 1, rows = 1;
    for (int d = 0; d < of_x->rank; d++) *(d < first ? &rows : &n) *= of_x->extent[d];
    wick_tensor *const x = wick_reshape(wk_back_source(b, 0), WICK_SHAPE(rows, n));
    wick_tensor *const after = reversed(products_before(reversed(x)));
    wick_tensor *const others = share_of(products_before(x), after);
    wick_tensor *const flat = wick_reshape(others, wick_shape_of(of_x->rank, of_x->extent));
    wk_back_give(b, 0, wick_mul(spread(b->g, of_x), flat));
}

void wk_grad_reduce(const wk_back *b) {
    const wk_op *const op = wk_back_op(b);
    const wk_view *const x = wk_src(op, 0);
    switch (op->p.reduce.fn) {
    case WK_REDUCE_SUM: wk_back_give(b, 0, spread(b->g, x)); return;
    case WK_REDUCE_MEAN:
        wk_back_give(b, 0, spread(wick_affine(b->g, 1 / reduced_count(op), 0), x));
        return;
    case WK_REDUCE_MAX:
    case WK_REDUCE_MIN: grad_reduced_extreme(b); return;
    case WK_REDUCE_VAR: grad_variance(b); return;
    case WK_REDUCE_PROD: grad_prod(b); return;
    default: return; /* indices */
    }
}

/* y (g - sum of g y); of the logarithm g - e^y sum of g. */
void wk_grad_softmax(const wk_back *b) {
    wick_tensor *const y = wk_back_result(b, 0);
    const int last = -1;
    if (wk_back_op(b)->p.softmax.is_log) {
        wick_tensor *const sum = wick_sum(b->g, 1, &last, true);
        wk_back_give(b, 0, wick_sub(b->g, wick_mul(wick_exp(y), sum)));
        return;
    }
    wick_tensor *const sum = wick_sum(wick_mul(b->g, y), 1, &last, true);
    wk_back_give(b, 0, wick_mul(y, wick_sub(b->g, sum)));
}

/* --- What moves elements --- */

void wk_grad_copy(const wk_back *b) { wk_back_give(b, 0, b->g); }

/* A tensor of zeros of the shape of source i. */
static wick_tensor *zeros_like(const wk_back *b, int i) {
    const wk_view *const x = wk_src(wk_back_op(b), i);
    return wick_zeros(b->g->device, b->g->view.dtype, wick_shape_of(x->rank, x->extent));
}

void wk_grad_gather(const wk_back *b) {
    wk_back_give(b, 0, wick_scatter_add(zeros_like(b, 0), -1, wk_back_source(b, 1), b->g));
}

/* Of several sources that were set at one place the last one stayed. */
static wick_tensor *is_last(const wk_back *b, wick_tensor *index) {
    const wk_view *const src = wk_src(wk_back_op(b), 0);
    const wick_shape shape = wick_shape_of(src->rank, src->extent);
    wick_tensor *const order = wick_expand(
        wick_arange(b->g->device, WICK_I64, 0, (double)src->extent[src->rank - 1], 1), shape);
    wick_tensor *const none = wick_full(b->g->device, WICK_I64, wk_tensor_shape_of(b->g), -1);
    wick_tensor *const last = wick_scatter(none, -1, index, order, WICK_SCATTER_SET);
    wick_tensor *const mask = wick_eq(wick_gather(last, -1, index), order);
    return mask ? indicator(mask, b->g) : NULL;
}

/* y = before * the product of its sources; NaN for a source of 0. */
static void grad_scatter_product(const wk_back *b, wick_tensor *index) {
    wick_tensor *const src = wk_back_source(b, 0);
    if (wk_back_wants(b, 0)) {
        wick_tensor *const share = wick_mul(b->g, wk_back_result(b, 0));
        wk_back_give(b, 0, wick_div(wick_gather(share, -1, index), src));
    }
    wick_tensor *const ones = wick_affine(b->g, 0, 1);
    wick_tensor *const product = wick_scatter(ones, -1, index, src, WICK_SCATTER_MUL);
    wk_back_give_before(b, wick_mul(b->g, product));
}

/* Sources that are the extreme share it, else what stood there before has it. */
static void grad_scatter_extreme(const wk_back *b, wick_tensor *index) {
    wick_tensor *const src = wk_back_source(b, 0), *const y = wk_back_result(b, 0);
    if (!src || !y) return;
    wick_tensor *const chosen = indicator(wick_eq(src, wick_gather(y, -1, index)), b->g);
    wick_tensor *const none = wick_zeros(b->g->device, b->g->view.dtype, wk_tensor_shape_of(b->g));
    wick_tensor *const count = wick_scatter_add(none, -1, index, chosen);
    if (wk_back_wants(b, 0)) {
        /* Not by 0 where no source is: that is not read, but gradients of it would be NaN. */
        wick_tensor *const share = wick_div(b->g, wick_clamp(count, 1, DBL_MAX));
        wk_back_give(b, 0, zero_where(is_zero(chosen), wick_gather(share, -1, index)));
    }
    wk_back_give_before(b, wick_where(is_zero(count), b->g, none));
}

void wk_grad_scatter(const wk_back *b) {
    const wk_scatter_fn fn = wk_back_op(b)->p.scatter;
    wick_tensor *const index = wk_back_source(b, 1);
    if (fn == WK_SCATTER_ADD) {
        if (wk_back_wants(b, 0)) wk_back_give(b, 0, wick_gather(b->g, -1, index));
        wk_back_give_before(b, b->g);
    } else if (fn == WK_SCATTER_SET) {
        if (wk_back_wants(b, 0))
            wk_back_give(b, 0, wick_mul(wick_gather(b->g, -1, index), is_last(b, index)));
        wk_back_give_before(b, wick_scatter(b->g, -1, index, zeros_like(b, 0), WICK_SCATTER_SET));
    } else if (fn == WK_SCATTER_MUL) {
        grad_scatter_product(b, index);
    } else {
        grad_scatter_extreme(b, index);
    }
}

/* Sums along the last dim that begin at its end. */
static wick_tensor *sum_from_here(wick_tensor *x) { return reversed(wick_cumsum(reversed(x), -1)); }

/* x_i has the product of those before times s_i = g_i + x_(i+1) s_(i+1). That recurrence is made by
 * doubling: s holds the terms of as many elements as w multiplies, from the next one on (Kogge,
 * Stone, 1973). Nothing is divided, as in grad_prod. */
static void grad_cumprod(const wk_back *b) {
    wick_tensor *const x = wk_back_source(b, 0);
    if (!x) return;
    const int64_t n = x->view.extent[x->view.rank - 1];
    wick_tensor *s = b->g, *w = shifted(x, 0, 1, 1);
    for (int64_t step = 1; step < n; step *= 2) {
        s = wick_add(s, share_of(shifted(s, 0, step, 0), w));
        w = wick_mul(w, shifted(w, 0, step, 1));
    }
    wk_back_give(b, 0, share_of(s, products_before(x)));
}

void wk_grad_cumulate(const wk_back *b) {
    if (wk_back_op(b)->p.cumulate == WK_CUMULATE_SUM)
        wk_back_give(b, 0, sum_from_here(b->g));
    else
        grad_cumprod(b);
}

void wk_grad_top_k(const wk_back *b) {
    wk_back_give(b, 0, wick_scatter_add(zeros_like(b, 0), -1, wk_back_result(b, 1), b->g));
}

/* --- Operations of the user's --- */

static bool check_share(const wk_back *b, const wick_operation *operation, int i,
                        const wick_tensor *share) {
    const wick_shape got = wk_tensor_shape_of(share);
    const wk_view *const x = wk_src(wk_back_op(b), i);
    const wick_shape want = wick_shape_of(x->rank, x->extent);
    if (share->device == b->g->device && wk_dtype_is_float(share->view.dtype) &&
        wk_shape_equal(&got, &want))
        return true;
    char text[2][WK_SHAPE_TEXT];
    wk_device_fail(b->g->device, WICK_ERR_SHAPE,
                   "%s: the gradient of input %d is %s%s, expected floats %s", operation->desc.name,
                   i, wick_dtype_name(share->view.dtype),
                   wk_shape_text(&got, text[0], sizeof text[0]),
                   wk_shape_text(&want, text[1], sizeof text[1]));
    return false;
}

static void grad_custom(const wk_back *b) {
    const wk_op *const op = wk_back_op(b);
    const wick_operation *const operation = op->p.custom->operation;
    if (!operation || !operation->desc.gradient) {
        wk_device_fail(b->g->device, WICK_ERR_UNSUPPORTED, "%s has no gradient",
                       operation ? operation->desc.name : op->p.custom->kernel->desc.label);
        return;
    }
    wick_tensor *inputs[WICK_KERNEL_MAX_BUFFERS], *shares[WICK_KERNEL_MAX_BUFFERS] = {NULL};
    for (int i = 0; i < op->n_src; i++)
        if (!(inputs[i] = wk_back_source(b, i))) return;
    wick_tensor *const y = wk_back_result(b, 0);
    if (!y) return;
    operation->desc.gradient(operation->desc.user, inputs, y, b->g, shares);
    for (int i = 0; i < op->n_src; i++)
        if (shares[i] && check_share(b, operation, i, shares[i])) wk_back_give(b, i, shares[i]);
}

wk_gradient_fn *wk_gradient_of(wk_opcode code) {
    static wk_gradient_fn *const functions[] = {
#define WK_TRAITS(code, rows, cost, tolerance, cuts, gradient, ...)                                \
    [WK_OP_##code] = wk_grad_##gradient,
#include "backend/op_traits.def"
#undef WK_TRAITS
        [WK_OP_CUSTOM] = grad_custom,
    };
    return functions[code];
}
