/* tests/unit/gradient_rules.h: functions of tensors for tests of their derivatives: at least one
 * for each rule of a gradient. */
#ifndef GRADIENT_RULES_H
#define GRADIENT_RULES_H

#include "ops_fixture.h"

#include "core/compiler.h"
#include "core/rng.h"

#include <wick/array.h>
#include <wick/grad.h>
#include <wick/nn.h>

#include <math.h>

enum { MOST_INPUTS = 3 };

/* y of up to three f64 inputs [2, 3], values around 0.3 to 0.9 or as the row says. */
typedef struct rule {
    const char *name;
    wick_tensor *(*fn)(wick_tensor *const *x);
    int n;
    double least, most;
} rule;

#define OF_ONE(X)                                                                                  \
    X(silu, -2, 2)                                                                                 \
    X(exp, -2, 2)                                                                                  \
    X(log, 0.2, 2)                                                                                 \
    X(sin, -2, 2)                                                                                  \
    X(cos, -2, 2)                                                                                  \
    X(abs, 0.2, 2)                                                                                 \
    X(neg, -2, 2)                                                                                  \
    X(recip, 0.3, 2)                                                                               \
    X(sqr, -2, 2)                                                                                  \
    X(sqrt, 0.2, 2)                                                                                \
    X(erf, -2, 2)                                                                                  \
    X(tanh, -2, 2)                                                                                 \
    X(sigmoid, -2, 2)                                                                              \
    X(relu, 0.1, 2)                                                                                \
    X(gelu, -2, 2)                                                                                 \
    X(gelu_erf, -2, 2)                                                                             \
    X(quick_gelu, -2, 2)                                                                           \
    X(softplus, -2, 2)                                                                             \
    X(mish, -2, 2)                                                                                 \
    X(hard_sigmoid, -2, 2)                                                                         \
    X(hard_swish, -2.5, 2.5)                                                                       \
    X(relu6, 0.1, 5)                                                                               \
    X(relu_squared, -2, 2)                                                                         \
    X(tan, -1, 1)                                                                                  \
    X(asin, -0.9, 0.9)                                                                             \
    X(acos, -0.9, 0.9)                                                                             \
    X(atan, -2, 2)                                                                                 \
    X(sinh, -2, 2)                                                                                 \
    X(cosh, -2, 2)                                                                                 \
    X(asinh, -2, 2)                                                                                \
    X(acosh, 1.2, 3)                                                                               \
    X(atanh, -0.9, 0.9)                                                                            \
    X(expm1, -2, 2)                                                                                \
    X(exp2, -2, 2)                                                                                 \
    X(log1p, -0.5, 2)                                                                              \
    X(log2, 0.2, 2)                                                                                \
    X(log10, 0.2, 2)                                                                               \
    X(rsqrt, 0.2, 2)
#define OF_TWO(X)                                                                                  \
    X(add, -2, 2)                                                                                  \
    X(sub, -2, 2)                                                                                  \
    X(mul, -2, 2)                                                                                  \
    X(div, 0.3, 2)                                                                                 \
    X(pow, 0.3, 2)                                                                                 \
    X(maximum, -2, 2)                                                                              \
    X(minimum, -2, 2)                                                                              \
    X(atan2, 0.3, 2)                                                                               \
    X(hypot, 0.3, 2)                                                                               \
    X(logaddexp, -2, 2)                                                                            \
    X(copysign, 0.3, 2)                                                                            \
    X(swiglu, -2, 2)                                                                               \
    X(geglu, -2, 2)                                                                                \
    X(geglu_erf, -2, 2)                                                                            \
    X(reglu, 0.1, 2)

#define DEFINE(name, least, most)                                                                  \
    static wick_tensor *fn_##name(wick_tensor *const *x) { return wick_##name(x[0]); }
OF_ONE(DEFINE)
#undef DEFINE
#define DEFINE(name, least, most)                                                                  \
    static wick_tensor *fn_##name(wick_tensor *const *x) { return wick_##name(x[0], x[1]); }
OF_TWO(DEFINE)
#undef DEFINE

static const int last = -1;

static wick_tensor *fn_softmax(wick_tensor *const *x) { return wick_softmax(x[0], 0); }
static wick_tensor *fn_log_softmax(wick_tensor *const *x) { return wick_log_softmax(x[0], -1); }
static wick_tensor *fn_sum(wick_tensor *const *x) { return wick_sum(x[0], 1, &last, false); }
static wick_tensor *fn_mean(wick_tensor *const *x) { return wick_mean(x[0], 0, NULL, true); }
static wick_tensor *fn_max(wick_tensor *const *x) { return wick_max(x[0], 1, &last, true); }
static wick_tensor *fn_min(wick_tensor *const *x) { return wick_min(x[0], 0, NULL, false); }
static wick_tensor *fn_var(wick_tensor *const *x) { return wick_var(x[0], 1, &last, false, 1); }
static wick_tensor *fn_prod(wick_tensor *const *x) { return wick_prod(x[0], 1, &last, false); }
static wick_tensor *fn_cumsum(wick_tensor *const *x) { return wick_cumsum(x[0], 0); }
static wick_tensor *fn_cumprod(wick_tensor *const *x) { return wick_cumprod(x[0], 1); }
static wick_tensor *fn_sort(wick_tensor *const *x) { return wick_sort(x[0], 1, true, NULL); }
static wick_tensor *fn_top_k(wick_tensor *const *x) { return wick_top_k(x[0], 2, 1, NULL); }
static wick_tensor *fn_elu(wick_tensor *const *x) { return wick_elu(x[0], 0.7); }
static wick_tensor *fn_powf(wick_tensor *const *x) { return wick_powf(x[0], 2.5); }
static wick_tensor *fn_affine(wick_tensor *const *x) { return wick_affine(x[0], 3, 1); }
static wick_tensor *fn_clamp(wick_tensor *const *x) { return wick_clamp(x[0], -0.5, 0.5); }
static wick_tensor *fn_remainder(wick_tensor *const *x) { return wick_remainder(x[0], x[1]); }
static wick_tensor *fn_flip(wick_tensor *const *x) { return wick_flip(x[0], 1, &last); }
static wick_tensor *fn_unfold(wick_tensor *const *x) {
    return wick_sqr(wick_unfold(x[0], 1, 2, 1)); /* windows that overlap */
}
static wick_tensor *fn_diagonal(wick_tensor *const *x) {
    return wick_sqr(wick_diagonal(x[0], 0, 0, 1));
}
static wick_tensor *fn_cat(wick_tensor *const *x) {
    wick_tensor *const both[] = {x[0], wick_sqr(x[1]), x[0]};
    return wick_cat(both, 3, 0);
}
static wick_tensor *fn_broadcast(wick_tensor *const *x) {
    return wick_mul(x[0], wick_narrow(x[1], 0, 1, 1));
}
/* Two sources meet the first column, and none the others. */
static wick_tensor *fn_scatter_max(wick_tensor *const *x) {
    wick_tensor *const index = wick_zeros(wick_tensor_device(x[0]), WICK_U32, WICK_SHAPE(2, 2));
    return wick_sqr(wick_scatter(x[0], 1, index, wick_narrow(x[1], 1, 1, 2), WICK_SCATTER_MAX));
}
static wick_tensor *fn_where(wick_tensor *const *x) {
    return wick_where(wick_gt(x[0], x[1]), x[1], x[2]);
}
static wick_tensor *fn_rms_norm(wick_tensor *const *x) {
    return wick_rms_norm(x[0], wick_reshape(wick_narrow(x[1], 0, 0, 1), WICK_SHAPE(3)), 1e-3F);
}
static wick_tensor *fn_layer_norm(wick_tensor *const *x) {
    return wick_layer_norm(x[0], wick_reshape(wick_narrow(x[1], 0, 0, 1), WICK_SHAPE(3)),
                           wick_reshape(wick_narrow(x[2], 0, 0, 1), WICK_SHAPE(3)), 1e-3F);
}
static wick_tensor *fn_matmul(wick_tensor *const *x) {
    return wick_matmul(x[0], wick_transpose(x[1], 0, 1));
}
static wick_tensor *fn_linear(wick_tensor *const *x) {
    return wick_linear(x[0], x[1], wick_reshape(wick_narrow(x[2], 1, 0, 1), WICK_SHAPE(2)));
}
/* Queries, keys and values [1, 1, 2, 3]. */
static wick_tensor *fn_attention(wick_tensor *const *x) {
    wick_tensor *four[3];
    for (int i = 0; i < 3; i++) four[i] = wick_reshape(x[i], WICK_SHAPE(1, 1, 2, 3));
    return wick_attention(four[0], four[1], four[2],
                          &(wick_attention_desc){.causal = true, .softcap = 2});
}
static wick_tensor *fn_conv1d(wick_tensor *const *x) {
    return wick_conv1d(wick_unsqueeze(x[0], 0), wick_unsqueeze(x[1], 0), NULL,
                       &(wick_conv_desc){.padding = {1}, .stride = {2}});
}

/* Of each channel by its own kernels, two of them. */
static wick_tensor *fn_depthwise(wick_tensor *const *x) {
    wick_tensor *const kernels = wick_cat((wick_tensor *[]){x[1], x[2]}, 2, 0);
    return wick_conv1d(
        wick_unsqueeze(x[0], 0), wick_unsqueeze(kernels, 1), NULL,
        &(wick_conv_desc){.padding = {3}, .stride = {2}, .dilation = {2}, .groups = 2});
}
static wick_tensor *fn_pointwise(wick_tensor *const *x) {
    return wick_conv1d(wick_unsqueeze(x[0], 0), wick_unsqueeze(wick_narrow(x[1], 1, 0, 2), 2), NULL,
                       NULL);
}
/* Two windows of a row; elements of the padding are counted, or not. */
static wick_tensor *pool(wick_tensor *x, bool excludes_padding) {
    return wick_avg_pool1d(wick_unsqueeze(x, 0),
                           &(wick_pooling_desc){.kernel = {3},
                                                .stride = {3},
                                                .padding = {1},
                                                .ceil_mode = true,
                                                .excludes_padding = excludes_padding});
}
static wick_tensor *fn_avg_pool(wick_tensor *const *x) { return pool(x[0], false); }
static wick_tensor *fn_avg_pool_inside(wick_tensor *const *x) { return pool(x[0], true); }

static const rule rules[] = {
#define ROW(name, least, most) {#name, fn_##name, 1, least, most},
    OF_ONE(ROW)
#undef ROW
#define ROW(name, least, most) {#name, fn_##name, 2, least, most},
        OF_TWO(ROW)
#undef ROW
#define ROW(name, n) {#name, fn_##name, n, -2, 2}
            ROW(softmax, 1),
    ROW(log_softmax, 1),
    ROW(sum, 1),
    ROW(mean, 1),
    ROW(max, 1),
    ROW(min, 1),
    ROW(var, 1),
    ROW(prod, 1),
    ROW(cumsum, 1),
    ROW(cumprod, 1),
    ROW(sort, 1),
    ROW(top_k, 1),
    ROW(elu, 1),
    {"powf", fn_powf, 1, 0.3, 2},
    ROW(affine, 1),
    ROW(clamp, 1),
    {"remainder", fn_remainder, 2, 0.3, 2},
    ROW(flip, 1),
    ROW(unfold, 1),
    ROW(diagonal, 1),
    ROW(cat, 2),
    ROW(broadcast, 2),
    ROW(scatter_max, 2),
    ROW(where, 3),
    ROW(rms_norm, 2),
    ROW(layer_norm, 3),
    ROW(matmul, 2),
    ROW(linear, 3),
    ROW(attention, 3),
    ROW(conv1d, 2),
    ROW(depthwise, 3),
    ROW(pointwise, 2),
    ROW(avg_pool, 1),
    ROW(avg_pool_inside, 1),
#undef ROW
};

enum { COUNT = 6 };

static inline wick_tensor *input(wick_device *device, const double *values) {
    return wick_tensor_from_data(device, WICK_F64, WICK_SHAPE(2, 3), values,
                                 COUNT * sizeof *values);
}

/* Elements of y have weights 1, 2, 3 ... */
static inline wick_tensor *weighted(wick_tensor *y) {
    assert_non_null(y);
    const int64_t n = wick_tensor_size(y);
    wick_tensor *const weights = wick_reshape(
        wick_arange(wick_tensor_device(y), WICK_F64, 1, (double)n + 1, 1), wick_tensor_shape(y));
    return wick_sum(wick_mul(y, weights), 0, NULL, false);
}

/* Inputs in the rule's range. */
static inline void draw_inputs(const rule *r, uint64_t seed, double x[MOST_INPUTS][COUNT]) {
    wk_rng rng = {.seed = seed};
    for (int i = 0; i < r->n; i++)
        for (int k = 0; k < COUNT; k++)
            x[i][k] = r->least + (r->most - r->least) * (double)wk_rng_uniform(&rng);
}

static inline void fail_with_error(wick_device *device, const char *name) {
    wick_error error;
    (void)wick_device_error(device, &error);
    fail_msg("%s: %s", name, error.message);
}

#endif
