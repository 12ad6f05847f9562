/* Gradients: against central differences in float64, through views, copies and ops in place, of
 * gradients; what is refused; memory that runs out. */
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
    ROW(where, 3),
    ROW(rms_norm, 2),
    ROW(layer_norm, 3),
    ROW(matmul, 2),
    ROW(linear, 3),
    ROW(attention, 3),
    ROW(conv1d, 2),
#undef ROW
};

/* --- Central differences --- */

enum { COUNT = 6 };

static wick_tensor *input(wick_device *device, const double *values) {
    return wick_tensor_from_data(device, WICK_F64, WICK_SHAPE(2, 3), values,
                                 COUNT * sizeof *values);
}

/* Elements of y have weights 1, 2, 3 ... */
static wick_tensor *weighted(wick_tensor *y) {
    assert_non_null(y);
    const int64_t n = wick_tensor_size(y);
    wick_tensor *const weights = wick_reshape(
        wick_arange(wick_tensor_device(y), WICK_F64, 1, (double)n + 1, 1), wick_tensor_shape(y));
    return wick_sum(wick_mul(y, weights), 0, NULL, false);
}

static double value_of(wick_device *device, const rule *r, double x[MOST_INPUTS][COUNT]) {
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *in[MOST_INPUTS];
    double value = NAN;
    for (int i = 0; i < r->n; i++) in[i] = input(device, x[i]);
    assert_int_equal(wick_read_scalar(weighted(r->fn(in)), &value), WICK_OK);
    wick_scope_end(scope);
    return value;
}

static void check_rule(wick_device *device, const rule *r, uint64_t seed) {
    wk_rng rng = {.seed = seed};
    double x[MOST_INPUTS][COUNT], got[COUNT];
    for (int i = 0; i < r->n; i++)
        for (int k = 0; k < COUNT; k++)
            x[i][k] = r->least + (r->most - r->least) * (double)wk_rng_uniform(&rng);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *in[MOST_INPUTS], *grads[MOST_INPUTS];
    wick_tape *tape;
    assert_int_equal(wick_tape_begin(device, &tape), WICK_OK);
    for (int i = 0; i < r->n; i++) {
        in[i] = input(device, x[i]);
        assert_int_equal(wick_tape_watch(tape, in[i]), WICK_OK);
    }
    wick_tensor *const y = weighted(r->fn(in));
    const wick_status status = wick_grad(tape, y, NULL, in, (size_t)r->n, grads);
    if (status != WICK_OK) {
        wick_error error;
        wick_device_error(device, &error);
        fail_msg("%s: %s", r->name, error.message);
    }
    for (int i = 0; i < r->n; i++) {
        assert_int_equal(wick_read(grads[i], got, sizeof got), WICK_OK);
        for (int k = 0; k < COUNT; k++) {
            const double h = 1e-5, at = x[i][k];
            x[i][k] = at + h;
            const double above = value_of(device, r, x);
            x[i][k] = at - h;
            const double slope = (above - value_of(device, r, x)) / (2 * h);
            x[i][k] = at;
            if (!(fabs(got[k] - slope) <= 1e-6 * (1 + fabs(slope))))
                fail_msg("%s: gradient %d of input %d is %.9g, by differences %.9g", r->name, k, i,
                         got[k], slope);
        }
    }
    wick_tape_end(tape);
    wick_scope_end(scope);
}

static void test_rules(void **state) {
    for (size_t i = 0; i < WK_COUNT(rules); i++)
        for (uint64_t seed = 1; seed <= 3; seed++) check_rule(device_of(state), &rules[i], seed);
}

/* --- Memory: views, parts, ops in place --- */

static wick_tape *begin(wick_device *device, wick_tensor *x) {
    wick_tape *tape;
    assert_int_equal(wick_tape_begin(device, &tape), WICK_OK);
    assert_int_equal(wick_tape_watch(tape, x), WICK_OK);
    return tape;
}

static wick_tensor *gradient(wick_tape *tape, wick_tensor *y, wick_tensor *x) {
    wick_tensor *g;
    assert_int_equal(wick_grad(tape, y, NULL, &x, 1, &g), WICK_OK);
    return wick_retain(g);
}

static wick_tensor *total(wick_tensor *x) { return wick_sum(x, 0, NULL, false); }

/* A part of y is written over: what stood there before has no gradient. */
static void test_parts(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = count_up(device, WICK_SHAPE(4));
    wick_tape *const tape = begin(device, x);
    wick_tensor *const y = wick_affine(x, 3, 0);
    assert_non_null(wick_copy(wick_narrow(y, 0, 1, 2), wick_sqr(wick_narrow(x, 0, 2, 2))));
    ASSERT_FLOATS(gradient(tape, total(y), x), 3, 0, 4, 9); /* 3 x0, x2^2, x3^2, 3 x3 */
    assert_non_null(wick_fill(wick_narrow(y, 0, 3, 1), 7));
    ASSERT_FLOATS(gradient(tape, total(y), x), 3, 0, 4, 6);
    wick_tape_end(tape);
    wick_scope_end(scope);
}

static void test_views(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = count_up(device, WICK_SHAPE(2, 3));
    wick_tape *const tape = begin(device, x);
    wick_tensor *const y = wick_mul(wick_transpose(x, 0, 1), wick_transpose(x, 0, 1));
    ASSERT_FLOATS(gradient(tape, total(wick_narrow(y, 0, 1, 2)), x), 0, 2, 4, 0, 8, 10);
    /* Of a view of a watched tensor. */
    ASSERT_FLOATS(gradient(tape, total(y), wick_slice(x, 1, 0, 3, 2)), 0, 4, 6, 10);
    /* A watched tensor itself. */
    ASSERT_FLOATS(gradient(tape, x, x), 1, 1, 1, 1, 1, 1);
    wick_tape_end(tape);
    wick_scope_end(scope);
}

/* The gradient of a gradient: a second tape sees what the first one does. */
static void test_second_order(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = wick_affine(count_up(device, WICK_SHAPE(3)), 1, 1);
    wick_tape *const outer = begin(device, x), *const inner = begin(device, x);
    wick_tensor *const y = wick_mul(wick_sqr(x), x); /* x^3 */
    wick_tensor *const slope = gradient(inner, total(y), x);
    ASSERT_FLOATS(gradient(outer, total(slope), x), 6, 12, 18);
    wick_release(slope);
    wick_tape_end(inner);
    wick_tape_end(outer);
    wick_scope_end(scope);
}

static void test_given_weights(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *x = count_up(device, WICK_SHAPE(3)), *g;
    wick_tape *const tape = begin(device, x);
    wick_tensor *const y = wick_sqr(x);
    assert_int_equal(wick_grad(tape, y, x, &x, 1, &g), WICK_OK);
    ASSERT_FLOATS(wick_retain(g), 0, 2, 8);
    /* What y does not depend on. */
    wick_tensor *const other = count_up(device, WICK_SHAPE(2));
    assert_int_equal(wick_tape_watch(tape, other), WICK_OK);
    ASSERT_FLOATS(gradient(tape, total(y), other), 0, 0);
    /* 16-bit floats: in f32. */
    wick_tensor *const half = wick_cast(x, WICK_F16);
    assert_int_equal(wick_tape_watch(tape, half), WICK_OK);
    ASSERT_FLOATS(gradient(tape, total(wick_sqr(half)), half), 0, 2, 4);
    wick_tape_end(tape);
    wick_scope_end(scope);
}

static void test_no_grad(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = count_up(device, WICK_SHAPE(2));
    wick_tape *const tape = begin(device, x);
    assert_false(wick_no_grad(tape, true));
    wick_tensor *const constant = wick_sqr(x);
    assert_true(wick_no_grad(tape, false));
    ASSERT_FLOATS(gradient(tape, total(wick_mul(x, constant)), x), 0, 1);
    wick_tape_end(tape);
    wick_scope_end(scope);
}

/* Of x as it was watched, though it is written over later, and of results on the way. */
static void test_on_the_way(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = count_up(device, WICK_SHAPE(3));
    wick_tape *const tape = begin(device, x);
    wick_tensor *const middle = wick_affine(x, 2, 0);
    wick_tensor *const y = wick_affine(middle, 5, 0);
    ASSERT_FLOATS(gradient(tape, total(y), middle), 5, 5, 5);
    assert_non_null(wick_copy(x, wick_affine(x, 7, 0))); /* in place, as it were */
    ASSERT_FLOATS(gradient(tape, total(x), x), 7, 7, 7);
    ASSERT_FLOATS(gradient(tape, total(wick_add(x, y)), x), 17, 17, 17);
    wick_tape_end(tape);
    wick_scope_end(scope);
}

/* --- What is refused --- */

static void test_refusals(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *x = count_up(device, WICK_SHAPE(3)), *g;
    wick_tape *const tape = begin(device, x);
    wick_tensor *const y = wick_sqr(x);
    assert_int_equal(wick_grad(tape, y, wick_ones(device, WICK_F32, WICK_SHAPE(2)), &x, 1, &g),
                     WICK_ERR_SHAPE);
    assert_refused(device, g, WICK_ERR_SHAPE);
    assert_int_equal(wick_grad(tape, wick_argsort(x, 0, false), NULL, &x, 1, &g), WICK_ERR_DTYPE);
    assert_refused(device, g, WICK_ERR_DTYPE);
    wick_tensor *stranger = count_up(device, WICK_SHAPE(3));
    assert_int_equal(wick_grad(tape, y, NULL, &stranger, 1, &g), WICK_ERR_ARGUMENT);
    assert_refused(device, g, WICK_ERR_ARGUMENT);
    wick_tensor *wide = wick_expand(x, WICK_SHAPE(2, 3));
    assert_int_equal(wick_grad(tape, y, NULL, &wide, 1, &g), WICK_ERR_ARGUMENT);
    assert_refused(device, g, WICK_ERR_ARGUMENT);
    assert_int_equal(wick_tape_watch(tape, wick_argsort(x, 0, false)), WICK_ERR_DTYPE);
    assert_int_equal(wick_device_error(device, NULL), WICK_ERR_DTYPE);
    /* The square's gradient needs x, which is not there any more. */
    assert_non_null(wick_fill(x, 1));
    assert_int_equal(wick_grad(tape, y, NULL, &x, 1, &g), WICK_ERR_STATE);
    assert_refused(device, g, WICK_ERR_STATE);
    wick_tape_end(tape);
    wick_scope_end(scope);
}

/* --- Memory that runs out, at every allocation --- */

static wick_status one_step(wick_device *device, wick_tensor *x, wick_tensor **g) {
    wick_tape *tape;
    WK_TRY(wick_tape_begin(device, &tape));
    wick_status status = wick_tape_watch(tape, x);
    wick_tensor *const loss = status == WICK_OK ? total(wick_softmax(wick_sqr(x), 0)) : NULL;
    if (loss)
        status = wick_grad(tape, loss, NULL, &x, 1, g);
    else if (status == WICK_OK)
        status = wick_device_error(device, NULL);
    wick_tape_end(tape);
    return status;
}

static void test_no_memory(void **state) {
    fixture *const f = *state;
    wick_device *const device = device_of(state);
    wick_tensor *const x = count_up(device, WICK_SHAPE(5));
    bool is_done = false;
    assert_int_equal(wick_synchronize(device), WICK_OK);
    for (uint64_t n = 0; !is_done && n < 2000; n++) {
        const wick_scope scope = wick_scope_begin(device);
        wick_tensor *g = NULL;
        f->allowed = n;
        const wick_status status = one_step(device, x, &g);
        f->allowed = UINT64_MAX;
        is_done = status == WICK_OK;
        assert_true(is_done || status == WICK_ERR_OUT_OF_MEMORY || status == WICK_ERR_STATE);
        assert_true(is_done == (g != NULL));
        wick_device_error(device, NULL);
        wick_scope_end(scope);
        (void)wick_synchronize(device);
    }
    assert_true(is_done);
    wick_release(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rules, setup, teardown),
        cmocka_unit_test_setup_teardown(test_parts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_views, setup, teardown),
        cmocka_unit_test_setup_teardown(test_second_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_given_weights, setup, teardown),
        cmocka_unit_test_setup_teardown(test_on_the_way, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_grad, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_memory, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
