/* tests/random_program.h: random programs of public operations on a few tensors, of all dtypes and
 * shapes, with views of each other's memory and operations in place. What a program does depends on
 * its seed and on shapes and dtypes alone, so that it does the same on every device. */
#ifndef RANDOM_PROGRAM_H
#define RANDOM_PROGRAM_H

#include "core/compiler.h"
#include "core/rng.h"
#include "core/shape.h"

#include <wick/nn.h>
#include <wick/ops.h>

#include <stdlib.h>

enum { POOL = 6, MOST_ELEMENTS = 150 };

typedef struct program {
    wick_device *device;
    wk_rng rng;
    bool is_smooth;   /* floats of one dtype, with gradients */
    wick_dtype dtype; /* then */
    wick_tensor *pool[POOL];
    wick_tensor *unkept;
    const char *name; /* of the last step */
    bool is_tracing;  /* steps are printed */
} program;

/* --- Choices --- */

static inline int64_t below(program *p, int64_t n) { return wk_rng_below(&p->rng, n); }
static inline bool once_in(program *p, int64_t n) { return below(p, n) == 0; }

static inline bool is_float(const wick_tensor *x) {
    const wick_dtype dtype = wick_tensor_dtype(x);
    return dtype == WICK_F32 || dtype == WICK_F16 || dtype == WICK_BF16 || dtype == WICK_F64;
}

static inline wick_dtype random_dtype(program *p) {
    static const wick_dtype all[] = {WICK_F32,  WICK_F32, WICK_F32, WICK_F32, WICK_F16,
                                     WICK_BF16, WICK_F64, WICK_I64, WICK_I32, WICK_I16,
                                     WICK_I8,   WICK_U32, WICK_U8,  WICK_BOOL};
    return p->is_smooth ? p->dtype : all[below(p, (int64_t)WK_COUNT(all))];
}

static inline wick_shape random_shape(program *p) {
    wick_shape shape = {.rank = once_in(p, 12) ? 5 + (int)below(p, 2) : (int)below(p, 5)};
    for (int d = 0; d < shape.rank; d++) {
        shape.extent[d] = 1 + below(p, shape.rank > 4 ? 2 : 4);
        if (!p->is_smooth && once_in(p, 40)) shape.extent[d] = 0;
    }
    return shape;
}

/* Numbers from -2 to 2, or a few small integers. */
static inline wick_tensor *fresh(program *p, wick_dtype dtype, wick_shape shape) {
    int64_t n = 0;
    (void)wk_shape_count(&shape, &n);
    double *const values = calloc((size_t)n + 1, sizeof *values);
    const bool is_whole = dtype > WICK_F64, is_bool = dtype == WICK_BOOL;
    const int64_t least = dtype == WICK_U32 || dtype == WICK_U8 || is_bool ? 0 : -3;
    for (int64_t i = 0; values != NULL && i < n; i++)
        values[i] = is_whole ? (double)(least + below(p, is_bool ? 2 : 7))
                             : 4 * (double)wk_rng_uniform(&p->rng) - 2;
    wick_tensor *const x =
        wick_tensor_from_data(p->device, WICK_F64, shape, values, (size_t)n * sizeof *values);
    free(values);
    return wick_cast(x, dtype);
}

static inline wick_tensor *pick(program *p) { return p->pool[below(p, POOL)]; }

static inline wick_tensor *pick_float(program *p) {
    for (int i = 0; i < 4; i++) {
        wick_tensor *const x = pick(p);
        if (is_float(x)) return x;
    }
    return fresh(p, p->is_smooth ? p->dtype : WICK_F32, random_shape(p));
}

static inline bool broadcasts(const wick_tensor *a, const wick_tensor *b) {
    const wick_shape x = wick_tensor_shape(a), y = wick_tensor_shape(b);
    for (int i = 1; i <= x.rank && i <= y.rank; i++) {
        const int64_t m = x.extent[x.rank - i], n = y.extent[y.rank - i];
        if (m != n && m != 1 && n != 1) return false;
    }
    return true;
}

/* Its last dims, some of them 1. */
static inline wick_shape part_of_shape(program *p, const wick_tensor *x) {
    wick_shape shape = wick_tensor_shape(x);
    while (shape.rank > 0 && once_in(p, 4)) {
        for (int d = 1; d < shape.rank; d++) shape.extent[d - 1] = shape.extent[d];
        shape.rank--;
    }
    for (int d = 0; d < shape.rank; d++)
        if (once_in(p, 4)) shape.extent[d] = 1;
    return shape;
}

/* Something that broadcasts with x. */
static inline wick_tensor *mate(program *p, wick_tensor *x) {
    wick_tensor *const y = pick(p);
    if (!once_in(p, 3) && broadcasts(x, y) && is_float(x) == is_float(y)) return y;
    return fresh(p, wick_tensor_dtype(x), part_of_shape(p, x));
}

/* A dim, from either end. */
static inline int random_dim(program *p, const wick_tensor *x) {
    const int rank = wick_tensor_shape(x).rank;
    return rank > 0 ? (int)below(p, (int64_t)2 * rank) - rank : 0;
}

static inline int64_t extent_of(const wick_tensor *x, int dim) {
    const wick_shape shape = wick_tensor_shape(x);
    if (shape.rank == 0) return 1;
    return shape.extent[dim < 0 ? dim + shape.rank : dim];
}

static inline wick_tensor *like(program *p, const wick_tensor *x) {
    return fresh(p, wick_tensor_dtype(x), wick_tensor_shape(x));
}

/* --- Steps: elementwise --- */

typedef struct unary {
    const char *name;
    wick_tensor *(*fn)(wick_tensor *x);
    double least, most;
} unary;
typedef struct binary {
    const char *name;
    wick_tensor *(*fn)(wick_tensor *a, wick_tensor *b);
    double least, most;
} binary;
#define FN(name, ...) {#name, wick_##name, __VA_ARGS__}

/* Of floats in their domain. */
static inline wick_tensor *step_unary(program *p) {
    static const unary all[] = {
        FN(exp, -4, 3),       FN(log, 0.1, 9),     FN(sin, -9, 9),          FN(cos, -9, 9),
        FN(tan, -1, 1),       FN(asin, -0.9, 0.9), FN(acos, -0.9, 0.9),     FN(atan, -9, 9),
        FN(sinh, -3, 3),      FN(cosh, -3, 3),     FN(asinh, -9, 9),        FN(acosh, 1.1, 9),
        FN(atanh, -0.9, 0.9), FN(expm1, -4, 3),    FN(exp2, -4, 4),         FN(log1p, -0.8, 9),
        FN(log2, 0.1, 9),     FN(log10, 0.1, 9),   FN(recip, 0.3, 9),       FN(sqrt, 0.1, 9),
        FN(rsqrt, 0.1, 9),    FN(erf, -4, 4),      FN(tanh, -4, 4),         FN(sigmoid, -9, 9),
        FN(silu, -9, 9),      FN(gelu, -4, 4),     FN(gelu_erf, -4, 4),     FN(quick_gelu, -4, 4),
        FN(softplus, -9, 9),  FN(mish, -4, 4),     FN(hard_sigmoid, -9, 9), FN(hard_swish, -9, 9),
        FN(selu, -4, 4),      FN(softsign, -9, 9), FN(hard_tanh, -9, 9),    FN(log_sigmoid, -9, 9),
    };
    const unary *const u = &all[below(p, (int64_t)WK_COUNT(all))];
    p->name = u->name;
    return u->fn(wick_clamp(pick_float(p), u->least, u->most));
}

static inline wick_tensor *step_number(program *p) {
    static const unary all[] = {FN(abs, 0, 0),  FN(neg, 0, 0),   FN(sqr, 0, 0),
                                FN(relu, 0, 0), FN(relu6, 0, 0), FN(relu_squared, 0, 0)};
    wick_tensor *const x = pick(p);
    switch (below(p, 6)) {
    case 0: p->name = "affine"; return wick_affine(x, 1.5, -2);
    case 1: p->name = "clamp"; return wick_clamp(x, -1, 2.5);
    case 2: p->name = "elu"; return wick_elu(pick_float(p), 0.7);
    case 3: p->name = "leaky_relu"; return wick_leaky_relu(pick_float(p), 0.1);
    default: break;
    }
    const unary *const u = &all[below(p, (int64_t)WK_COUNT(all))];
    p->name = u->name;
    return u->fn(x);
}

static inline wick_tensor *step_binary(program *p) {
    static const binary all[] = {
        FN(div, 0.3, 4),   FN(pow, 0.3, 2),      FN(atan2, 0.3, 4),   FN(hypot, 0.3, 4),
        FN(swiglu, -4, 4), FN(logaddexp, -9, 9), FN(copysign, -4, 4), FN(reglu, -4, 4),
        FN(geglu, -4, 4),  FN(geglu_erf, -4, 4),
    };
    const binary *const b = &all[below(p, (int64_t)WK_COUNT(all))];
    wick_tensor *const x = pick_float(p), *y = mate(p, x);
    p->name = b->name;
    return b->fn(wick_clamp(x, b->least, b->most), wick_clamp(y, b->least, b->most));
}

static inline wick_tensor *step_arithmetic(program *p) {
    static const binary all[] = {FN(add, 0, 0), FN(sub, 0, 0), FN(mul, 0, 0), FN(maximum, 0, 0),
                                 FN(minimum, 0, 0)};
    const binary *const b = &all[below(p, (int64_t)WK_COUNT(all))];
    wick_tensor *const x = pick(p);
    p->name = b->name;
    return b->fn(x, mate(p, x));
}

/* What has steps, and what is of integers. */
static inline wick_tensor *step_discrete(program *p) {
    static const unary ones[] = {FN(sign, 0, 0),    FN(floor, 0, 0),      FN(ceil, 0, 0),
                                 FN(trunc, 0, 0),   FN(round, 0, 0),      FN(logical_not, 0, 0),
                                 FN(is_nan, 0, 0),  FN(is_finite, 0, 0),  FN(is_inf, 0, 0),
                                 FN(signbit, 0, 0), FN(bitwise_not, 0, 0)};
    static const binary twos[] = {FN(eq, 0, 0),
                                  FN(ne, 0, 0),
                                  FN(lt, 0, 0),
                                  FN(le, 0, 0),
                                  FN(gt, 0, 0),
                                  FN(ge, 0, 0),
                                  FN(floor_divide, 0, 0),
                                  FN(remainder, 0, 0),
                                  FN(fmod, 0, 0),
                                  FN(div, 0, 0),
                                  FN(nextafter, 0, 0),
                                  FN(logical_and, 0, 0),
                                  FN(logical_or, 0, 0),
                                  FN(logical_xor, 0, 0),
                                  FN(bitwise_and, 0, 0),
                                  FN(bitwise_or, 0, 0),
                                  FN(bitwise_xor, 0, 0),
                                  FN(bitwise_left_shift, 0, 0),
                                  FN(bitwise_right_shift, 0, 0)};
    wick_tensor *const x = pick(p);
    if (once_in(p, 3)) {
        const unary *const u = &ones[below(p, (int64_t)WK_COUNT(ones))];
        p->name = u->name;
        return u->fn(x);
    }
    const binary *const b = &twos[below(p, (int64_t)WK_COUNT(twos))];
    p->name = b->name;
    return b->fn(x, mate(p, x));
}

static inline wick_tensor *step_choose(program *p) {
    wick_tensor *const x = pick(p), *const y = mate(p, x);
    wick_tensor *const mask = fresh(p, once_in(p, 2) ? WICK_U8 : WICK_BOOL, part_of_shape(p, x));
    if (once_in(p, 2)) {
        p->name = "masked_fill";
        return wick_masked_fill(x, wick_gt(mask, wick_affine(mask, 0, 0)), 0.5);
    }
    p->name = "where";
    return wick_where(mask, x, y);
}

static inline wick_tensor *step_cast(program *p) {
    p->name = "cast";
    return wick_cast(pick(p), random_dtype(p));
}

/* --- Steps: reductions and what goes along a dim --- */

typedef wick_tensor *reduce_fn(wick_tensor *x, int n_dims, const int *dims, bool keepdim);

static inline wick_tensor *step_reduce(program *p) {
    static reduce_fn *const all[] = {wick_sum, wick_mean, wick_max, wick_min, wick_log_sum_exp};
    static reduce_fn *const discrete[] = {wick_prod, wick_all, wick_any, wick_count_nonzero};
    wick_tensor *const x = pick(p);
    const wick_shape shape = wick_tensor_shape(x);
    int dims[WICK_MAX_RANK], n = 0;
    for (int d = 0; d < shape.rank; d++)
        if (once_in(p, 2)) dims[n++] = once_in(p, 2) ? d : d - shape.rank;
    const bool keeps = once_in(p, 2);
    const int *const of = once_in(p, 6) ? NULL : dims;
    p->name = "a reduction";
    switch (below(p, p->is_smooth ? 4 : 6)) {
    case 0: p->name = "var"; return wick_var(x, n, of, keeps, (double)below(p, 2) / 2);
    case 1: p->name = "norm"; return wick_norm(x, once_in(p, 2) ? 2 : 1, n, of, keeps);
    case 4: return discrete[below(p, (int64_t)WK_COUNT(discrete))](x, n, of, keeps);
    case 5: {
        p->name = "argmax, argmin";
        const int dim = random_dim(p, x);
        return once_in(p, 2) ? wick_argmax(x, dim, keeps) : wick_argmin(x, dim, keeps);
    }
    default: return all[below(p, (int64_t)WK_COUNT(all))](x, n, of, keeps);
    }
}

static inline wick_tensor *step_along(program *p) {
    wick_tensor *const x = pick(p);
    const int dim = random_dim(p, x);
    switch (below(p, p->is_smooth ? 8 : 10)) {
    case 0: p->name = "softmax"; return wick_softmax(x, dim);
    case 1: p->name = "log_softmax"; return wick_log_softmax(x, dim);
    case 2: p->name = "cumsum"; return wick_cumsum(x, dim);
    case 3: p->name = "cumprod"; return wick_cumprod(wick_clamp(x, 0.5, 2), dim);
    case 4: p->name = "sort"; return wick_sort(x, dim, once_in(p, 2), NULL);
    case 5: p->name = "top_k"; return wick_top_k(x, 1 + below(p, extent_of(x, dim) + 1), dim, NULL);
    case 6: p->name = "diff"; return wick_diff(x, 1 + (int)below(p, 2), dim);
    case 7: p->name = "normalize"; return wick_normalize(x, dim, 0.1);
    case 8: p->name = "argsort"; return wick_argsort(x, dim, once_in(p, 2));
    default: p->name = "unique_inverse"; return wick_unique_inverse(x);
    }
}

static inline wick_tensor *step_norm(program *p) {
    wick_tensor *const x = pick_float(p);
    const wick_shape vector = WICK_SHAPE(extent_of(x, -1));
    wick_tensor *const weight = fresh(p, wick_tensor_dtype(x), vector);
    wick_tensor *const bias = fresh(p, wick_tensor_dtype(x), vector);
    switch (below(p, 4)) {
    case 0: p->name = "rms_norm"; return wick_rms_norm(x, weight, 0.1);
    case 1: p->name = "layer_norm"; return wick_layer_norm(x, weight, bias, 0.1);
    case 2: p->name = "instance_norm"; return wick_instance_norm(x, NULL, NULL, 0.1);
    default:
        p->name = "cosine_similarity";
        return wick_cosine_similarity(x, like(p, x), random_dim(p, x), 0.1);
    }
}

/* --- Steps: views and copies --- */

static inline wick_tensor *step_permute(program *p, wick_tensor *x) {
    const int rank = wick_tensor_shape(x).rank;
    int dims[WICK_MAX_RANK];
    for (int d = 0; d < rank; d++) {
        const int at = (int)below(p, d + 1);
        dims[d] = dims[at];
        dims[at] = d;
    }
    p->name = "permute";
    return wick_permute(x, rank, dims);
}

static inline wick_tensor *step_view(program *p) {
    wick_tensor *const x = pick(p);
    const int dim = random_dim(p, x), other = random_dim(p, x);
    const int64_t n = extent_of(x, dim), start = below(p, n + 1);
    switch (below(p, 11)) {
    case 0: return step_permute(p, x);
    case 1: p->name = "narrow"; return wick_narrow(x, dim, start, below(p, n - start + 1));
    case 2: p->name = "slice"; return wick_slice(x, dim, start / 2, n, 1 + below(p, 3));
    case 3: p->name = "flatten"; return wick_flatten(x, 0, -1);
    case 4: p->name = "unsqueeze"; return wick_unsqueeze(x, dim);
    case 5: p->name = "squeeze"; return wick_squeeze(x, dim);
    case 6: p->name = "unfold"; return wick_unfold(x, dim, 1 + below(p, 2), 1 + below(p, 2));
    case 7: p->name = "diagonal"; return wick_diagonal(x, below(p, 3) - 1, dim, other);
    case 8: {
        wick_shape shape = wick_tensor_shape(x);
        if (shape.rank == WICK_MAX_RANK) return wick_contiguous(x);
        shape.extent[shape.rank++] = 2;
        p->name = "expand";
        return wick_expand(wick_unsqueeze(x, -1), shape);
    }
    case 9: {
        p->name = "reshape";
        const int64_t size = wick_tensor_size(x), cut = size % 2 == 0 ? 2 : 1;
        return wick_reshape(x, WICK_SHAPE(cut, size / cut));
    }
    default: p->name = "transpose"; return wick_transpose(x, dim, other);
    }
}

static inline wick_tensor *step_pad(program *p, wick_tensor *x) {
    int64_t before[WICK_MAX_RANK], after[WICK_MAX_RANK];
    for (int d = 0; d < WICK_MAX_RANK; d++) {
        before[d] = once_in(p, 3) ? below(p, 3) - 1 : 0;
        after[d] = once_in(p, 3) ? below(p, 3) - 1 : 0;
    }
    p->name = "pad";
    return wick_pad(x, before, after, (wick_pad_mode)below(p, 4), 0.5);
}

static inline wick_tensor *step_copies(program *p) {
    wick_tensor *const x = pick(p);
    const int dim = random_dim(p, x);
    const int64_t n = extent_of(x, dim), shift = below(p, 7) - 3, two[] = {1, 2};
    wick_tensor *const parts[] = {x, like(p, x), x};
    switch (below(p, 11)) {
    case 0: p->name = "cat"; return wick_cat(parts, 2 + (size_t)below(p, 2), dim);
    case 1: p->name = "stack"; return wick_stack(parts, 2, dim);
    case 2: p->name = "tile"; return wick_tile(x, 1 + (int)below(p, 2), two);
    case 3: p->name = "repeat_interleave"; return wick_repeat_interleave(x, 2, dim);
    case 4: p->name = "roll"; return wick_roll(x, 1, &shift, once_in(p, 4) ? NULL : &dim);
    case 5: p->name = "flip"; return wick_flip(x, 1, once_in(p, 4) ? NULL : &dim);
    case 6: return step_pad(p, x);
    case 7: p->name = "tril"; return wick_tril(x, below(p, 3) - 1);
    case 8: p->name = "triu"; return wick_triu(x, below(p, 3) - 1);
    case 9: p->name = "contiguous"; return wick_contiguous(x);
    default: {
        const int64_t start = below(p, n + 1);
        wick_shape part = wick_tensor_shape(x);
        if (part.rank > 0) part.extent[dim < 0 ? dim + part.rank : dim] = below(p, n - start + 1);
        p->name = "slice_scatter";
        return wick_slice_scatter(x, fresh(p, wick_tensor_dtype(x), part), dim, start);
    }
    }
}

/* --- Steps: by index --- */

/* Indices of shape below n. */
static inline wick_tensor *indices(program *p, wick_shape shape, int64_t n) {
    static const wick_dtype dtypes[] = {WICK_I64, WICK_U32, WICK_U8, WICK_I32};
    int64_t count = 0;
    for (int d = 0; n == 0 && d < shape.rank; d++) shape.extent[d] = 0;
    (void)wk_shape_count(&shape, &count);
    int64_t *const values = calloc((size_t)count + 1, sizeof *values);
    for (int64_t i = 0; values != NULL && n > 0 && i < count; i++) values[i] = below(p, n);
    wick_tensor *const x =
        wick_tensor_from_data(p->device, WICK_I64, shape, values, (size_t)count * sizeof *values);
    free(values);
    return wick_cast(x, dtypes[below(p, (int64_t)WK_COUNT(dtypes))]);
}

static inline wick_tensor *step_index(program *p) {
    wick_tensor *const x = pick(p);
    const int dim = random_dim(p, x);
    const int64_t n = extent_of(x, dim), m = 1 + below(p, 4);
    wick_shape shape = wick_tensor_shape(x);
    if (shape.rank > 0) shape.extent[dim < 0 ? dim + shape.rank : dim] = m;
    wick_tensor *const all = indices(p, shape, n), *const some = indices(p, WICK_SHAPE(m), n);
    wick_tensor *const src = fresh(p, wick_tensor_dtype(x), shape);
    wick_tensor *const slices = wick_unsqueeze(indices(p, WICK_SHAPE(m), extent_of(x, 0)), 1);
    switch (below(p, 8)) {
    case 0: p->name = "gather"; return wick_gather(x, dim, all);
    case 1: p->name = "index_select"; return wick_index_select(x, dim, some);
    case 2: p->name = "index_add"; return wick_index_add(x, dim, some, src);
    case 3: p->name = "take"; return wick_take(x, indices(p, shape, wick_tensor_size(x)));
    case 4: p->name = "scatter_add"; return wick_scatter_add(x, dim, all, src);
    case 5: p->name = "gather_nd"; return wick_gather_nd(x, slices);
    case 6:
        p->name = "scatter_nd";
        return wick_scatter_nd(x, slices, wick_gather_nd(x, slices), WICK_SCATTER_ADD);
    default:
        p->name = "scatter";
        return wick_scatter(x, dim, all, src, (wick_scatter_fn)below(p, p->is_smooth ? 2 : 5));
    }
}

/* --- Steps: products, windows, losses --- */

static inline wick_tensor *step_product(program *p) {
    wick_tensor *const x = pick_float(p);
    const wick_dtype dtype = wick_tensor_dtype(x);
    const int64_t k = extent_of(x, -1), n = 1 + below(p, 4);
    switch (below(p, 8)) {
    case 0: p->name = "matmul"; return wick_matmul(x, fresh(p, dtype, WICK_SHAPE(k, n)));
    case 1:
        p->name = "linear";
        return wick_linear(x, fresh(p, dtype, WICK_SHAPE(n, k)), fresh(p, dtype, WICK_SHAPE(n)));
    case 2: p->name = "mv"; return wick_mv(x, fresh(p, dtype, WICK_SHAPE(k)));
    case 3: p->name = "vecdot"; return wick_vecdot(x, like(p, x), random_dim(p, x));
    case 4: p->name = "trace"; return wick_trace(x, below(p, 3) - 1);
    case 5: p->name = "lerp"; return wick_lerp(x, like(p, x), fresh(p, dtype, WICK_SCALAR));
    case 6: {
        wick_tensor *const both[] = {x, fresh(p, dtype, WICK_SHAPE(n, k))};
        p->name = "einsum";
        return wick_einsum("...i,ji->j...", both, 2);
    }
    default: p->name = "matmul, transposed"; return wick_matmul(x, wick_matrix_transpose(x));
    }
}

static inline wick_tensor *step_layer(program *p) {
    wick_tensor *const x = pick_float(p);
    const wick_dtype dtype = wick_tensor_dtype(x);
    const wick_shape shape = wick_tensor_shape(x);
    const wick_pooling_desc pooling = {.kernel = {2, 2}, .stride = {1}, .padding = {1}};
    switch (below(p, 5)) {
    case 0:
        p->name = "conv1d";
        return shape.rank != 3 ? wick_silu(x)
                               : wick_conv1d(x, fresh(p, dtype, WICK_SHAPE(2, shape.extent[1], 2)),
                                             NULL, &(wick_conv_desc){.padding = {1}});
    case 1: p->name = "avg_pool1d"; return wick_avg_pool1d(x, &pooling);
    case 2: p->name = "max_pool1d"; return wick_max_pool1d(x, &pooling, NULL);
    case 3: p->name = "mse"; return wick_mse(x, like(p, x), (wick_reduction)below(p, 3));
    default: p->name = "huber"; return wick_huber(x, like(p, x), 0.5, (wick_reduction)below(p, 3));
    }
}

/* --- Steps: in place --- */

/* A function in place. */
static inline wick_tensor *change(program *p, wick_tensor *x) {
    static const unary ones[] = {FN(abs_in_place, 0, 0), FN(neg_in_place, 0, 0),
                                 FN(relu_in_place, 0, 0), FN(tanh_in_place, 0, 0),
                                 FN(sigmoid_in_place, 0, 0)};
    static const binary twos[] = {FN(add_in_place, 0, 0), FN(sub_in_place, 0, 0),
                                  FN(mul_in_place, 0, 0), FN(maximum_in_place, 0, 0),
                                  FN(minimum_in_place, 0, 0)};
    if (once_in(p, 2)) {
        const unary *const u = &ones[below(p, (int64_t)WK_COUNT(ones))];
        p->name = u->name;
        return u->fn(x);
    }
    const binary *const b = &twos[below(p, (int64_t)WK_COUNT(twos))];
    p->name = b->name;
    x = b->fn(x, mate(p, x));
    return is_float(x) ? wick_clamp_in_place(x, -20, 20) : x;
}

static inline wick_tensor *step_in_place(program *p) {
    wick_tensor *const x = pick(p);
    const int dim = random_dim(p, x);
    const int64_t n = extent_of(x, dim), start = below(p, n + 1);
    const bool is_part = wick_tensor_shape(x).rank > 0 && once_in(p, 2);
    wick_tensor *const dst = is_part ? wick_narrow(x, dim, start, below(p, n - start + 1)) : x;
    if (once_in(p, 2)) return change(p, dst) ? x : NULL;
    if (once_in(p, 4)) {
        const int64_t m = 1 + below(p, 3), at = extent_of(x, 0);
        wick_shape shape = wick_tensor_shape(x);
        if (shape.rank > 0) shape.extent[0] = m;
        p->name = "index_add in place";
        return wick_index_add_in_place(x, 0, indices(p, WICK_SHAPE(m), at),
                                       fresh(p, wick_tensor_dtype(x), shape));
    }
    if (once_in(p, 4)) {
        p->name = "fill";
        return wick_fill(dst, 0.75) ? x : NULL;
    }
    p->name = "copy";
    return wick_copy(dst, broadcasts(dst, pick(p)) ? mate(p, dst) : like(p, dst)) ? x : NULL;
}

/* --- Programs --- */

/* Results stay small in both ways. */
static inline wick_tensor *tame(wick_tensor *y) {
    const int rank = wick_tensor_shape(y).rank;
    for (int d = 0; d < rank && wick_tensor_size(y) > MOST_ELEMENTS; d++)
        if (extent_of(y, d) > 2) y = wick_narrow(y, d, 0, 2);
    return y;
}

static inline wick_tensor *bounded(wick_tensor *y) {
    return y != NULL && is_float(y) ? wick_clamp(y, -20, 20) : y;
}

typedef struct step {
    wick_tensor *(*fn)(program *p);
    int weight;
    bool grows, is_discrete;
} step;

static const step steps[] = {
    {step_unary, 4, true, false},   {step_number, 2, true, false},
    {step_binary, 2, true, false},  {step_arithmetic, 4, true, false},
    {step_discrete, 3, true, true}, {step_choose, 1, true, false},
    {step_cast, 1, true, true},     {step_reduce, 2, true, false},
    {step_along, 2, true, false},   {step_norm, 1, true, false},
    {step_view, 6, false, false},   {step_copies, 3, false, false},
    {step_index, 2, true, false},   {step_product, 2, true, false},
    {step_layer, 1, true, false},   {step_in_place, 3, false, false},
};

/* Tensors to begin with; false: there is no memory for them. */
static inline bool program_begin(program *p) {
    const wick_scope scope = wick_scope_begin(p->device);
    bool is_there = true;
    for (int i = 0; i < POOL; i++) {
        const wick_dtype dtype = random_dtype(p);
        p->pool[i] = fresh(p, dtype, random_shape(p));
        if (p->pool[i] == NULL) is_there = false;
        wick_retain(p->pool[i]);
    }
    wick_scope_end(scope);
    p->name = "the beginning";
    return is_there;
}

/* Empty tensors give nothing but empty ones: few of them stay. */
static inline bool is_kept(program *p, const wick_tensor *y) {
    return wick_tensor_size(y) > 0 || (!p->is_smooth && once_in(p, 8));
}

/* Takes one step and gives its result, new or a tensor that was changed, which the program has
 * until a later step. NULL: it was refused, and the error is with the device. */
static inline wick_tensor *program_step(program *p) {
    const int slot = (int)below(p, POOL);
    const step *s;
    int64_t total = 0;
    for (size_t i = 0; i < WK_COUNT(steps); i++) total += steps[i].weight;
    do {
        int64_t left = below(p, total);
        for (s = steps; left >= s->weight; s++) left -= s->weight;
    } while (p->is_smooth && (s->is_discrete || (s->fn == step_in_place && !once_in(p, 4))));
    const wick_scope scope = wick_scope_begin(p->device);
    p->name = "an operation";
    wick_tensor *y = s->fn(p);
    if (y != NULL && s->grows) y = bounded(y);
    if (y != NULL) y = tame(y);
    if (y != NULL) wick_retain(y);
    wick_scope_end(scope);
    if (y == NULL) return NULL;
    wick_tensor **const place = is_kept(p, y) ? &p->pool[slot] : &p->unkept;
    wick_release(*place);
    *place = y;
    return y;
}

static inline void program_end(program *p) {
    for (int i = 0; i < POOL; i++) wick_release(p->pool[i]);
    wick_release(p->unkept);
}

#endif
