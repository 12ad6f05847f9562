/* Gradients: against central differences in float64, through views, copies and ops in place, of
 * gradients; what is refused. */
#include "gradient_rules.h"

/* --- Central differences --- */

static double value_of(wick_device *device, const rule *r, double x[MOST_INPUTS][COUNT]) {
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *in[MOST_INPUTS];
    double value = NAN;
    for (int i = 0; i < r->n; i++) in[i] = input(device, x[i]);
    assert_int_equal(wick_read_scalar(weighted(r->fn(in)), &value), WICK_OK);
    wick_scope_end(scope);
    return value;
}

/* The gradient of input i where it alone is watched: the one among those of all inputs. */
static void check_alone(wick_device *device, const rule *r, double x[MOST_INPUTS][COUNT], int i,
                        const double *want) {
    double got[COUNT];
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *in[MOST_INPUTS], *grad;
    wick_tape *tape;
    assert_int_equal(wick_tape_begin(device, &tape), WICK_OK);
    for (int k = 0; k < r->n; k++) in[k] = input(device, x[k]);
    assert_int_equal(wick_tape_watch(tape, in[i]), WICK_OK);
    if (wick_grad(tape, weighted(r->fn(in)), NULL, &in[i], 1, &grad) != WICK_OK)
        fail_with_error(device, r->name);
    assert_int_equal(wick_read(grad, got, sizeof got), WICK_OK);
    for (int k = 0; k < COUNT; k++)
        if (!(fabs(got[k] - want[k]) <= 1e-12 * (1 + fabs(want[k]))))
            fail_msg("%s: gradient %d of input %d alone is %.9g, among all %.9g", r->name, k, i,
                     got[k], want[k]);
    wick_tape_end(tape);
    wick_scope_end(scope);
}

static void check_rule(wick_device *device, const rule *r, uint64_t seed) {
    double x[MOST_INPUTS][COUNT], got[COUNT];
    draw_inputs(r, seed, x);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *in[MOST_INPUTS], *grads[MOST_INPUTS];
    wick_tape *tape;
    assert_int_equal(wick_tape_begin(device, &tape), WICK_OK);
    for (int i = 0; i < r->n; i++) {
        in[i] = input(device, x[i]);
        assert_int_equal(wick_tape_watch(tape, in[i]), WICK_OK);
    }
    wick_tensor *const y = weighted(r->fn(in));
    if (wick_grad(tape, y, NULL, in, (size_t)r->n, grads) != WICK_OK)
        fail_with_error(device, r->name);
    for (int i = 0; i < r->n; i++) {
        assert_int_equal(wick_read(grads[i], got, sizeof got), WICK_OK);
        check_alone(device, r, x, i, got);
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

/* The variance of one number is 0 or, divided by 0, NaN, for every rank. */
static void test_variance_of_one(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    for (int rank = 0; rank < 2; rank++) {
        wick_tensor *const x =
            wick_full(device, WICK_F32, (wick_shape){.rank = rank, .extent = {1}}, 3);
        wick_tape *const tape = begin(device, x);
        ASSERT_FLOATS(gradient(tape, total(wick_var(x, 0, NULL, false, 0)), x), 0);
        wick_tensor *const g = gradient(tape, total(wick_var(x, 0, NULL, false, 1)), x);
        ASSERT_FLOATS(wick_retain(wick_cast(wick_is_nan(g), WICK_F32)), 1);
        wick_release(g);
        wick_tape_end(tape);
    }
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

/* Weights may be of another float type than x: gradients are of each one's own. */
static void test_mixed_dtypes(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    for (int i = 0; i < 2; i++) {
        wick_tensor *const x =
            wick_cast(count_up(device, WICK_SHAPE(1, 2)), i == 0 ? WICK_F64 : WICK_F32);
        wick_tensor *const w =
            wick_cast(count_up(device, WICK_SHAPE(2, 2)), i == 0 ? WICK_F32 : WICK_F64);
        wick_tape *const tape = begin(device, x);
        assert_int_equal(wick_tape_watch(tape, w), WICK_OK);
        wick_tensor *const y = total(wick_linear(x, w, NULL));
        wick_tensor *const of_x = gradient(tape, y, x), *const of_w = gradient(tape, y, w);
        assert_int_equal(wick_tensor_dtype(of_x), wick_tensor_dtype(x));
        assert_int_equal(wick_tensor_dtype(of_w), wick_tensor_dtype(w));
        ASSERT_FLOATS(wick_retain(wick_cast(of_x, WICK_F32)), 2, 4);
        ASSERT_FLOATS(wick_retain(wick_cast(of_w, WICK_F32)), 0, 1, 0, 1);
        wick_release(of_w);
        wick_release(of_x);
        wick_tape_end(tape);
    }
    wick_scope_end(scope);
}

/* q [1, 2, 2, 2] over itself, with extras of dtype. */
static wick_tensor *gradient_of_attention(wick_device *device, wick_tensor *q, wick_dtype dtype) {
    const wick_attention_desc desc = {
        .bias = wick_cast(count_up(device, WICK_SHAPE(2, 2)), dtype),
        .sinks = wick_cast(count_up(device, WICK_SHAPE(2)), dtype),
        .slopes = wick_cast(count_up(device, WICK_SHAPE(2)), dtype),
    };
    wick_tape *const tape = begin(device, q);
    wick_tensor *const g = gradient(tape, total(wick_attention(q, q, q, &desc)), q);
    wick_tape_end(tape);
    return g;
}

static void test_mixed_attention(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const q = wick_affine(count_up(device, WICK_SHAPE(1, 2, 2, 2)), 0.25, -0.5);
    float wanted[8], got[8];
    wick_tensor *const same = gradient_of_attention(device, q, WICK_F32);
    wick_tensor *const mixed = gradient_of_attention(device, q, WICK_F64);
    assert_int_equal(wick_read(same, wanted, sizeof wanted), WICK_OK);
    assert_int_equal(wick_read(mixed, got, sizeof got), WICK_OK);
    assert_memory_equal(got, wanted, sizeof got);
    wick_release(mixed);
    wick_release(same);
    wick_scope_end(scope);
}

/* A bias of -infinity hides a key as a mask does: the first query sees nothing. */
static void test_hiding_bias(void **state) {
    const float none = -INFINITY;
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = count_up(device, WICK_SHAPE(1, 1, 2, 1));
    const wick_attention_desc desc = {
        .bias = wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(2, 2),
                                      (const float[]){none, none, 0, none}, 4 * sizeof(float))};
    wick_tape *const tape = begin(device, x);
    wick_tensor *const v = wick_affine(x, 1, 0);
    ASSERT_FLOATS(gradient(tape, total(wick_attention(x, x, v, &desc)), x), 1, 0);
    wick_tape_end(tape);
    wick_scope_end(scope);
}

/* The squares of these numbers overflow. */
static void test_large_numbers(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = wick_full(device, WICK_F32, WICK_SHAPE(1), 3e30);
    wick_tape *const tape = begin(device, x);
    wick_tensor *const y = wick_hypot(x, wick_full(device, WICK_F32, WICK_SHAPE(1), 4e30));
    ASSERT_FLOATS(gradient(tape, y, x), 0.6F);
    wick_tape_end(tape);
    wick_scope_end(scope);
}

typedef wick_tensor *two_fn(wick_tensor *a, wick_tensor *b);

static void check_of_two(wick_device *device, two_fn *fn, const float x[2], const float want[2]) {
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *in[2], *grads[2];
    wick_tape *tape;
    assert_int_equal(wick_tape_begin(device, &tape), WICK_OK);
    for (int i = 0; i < 2; i++) {
        in[i] = wick_full(device, WICK_F32, WICK_SCALAR, (double)x[i]);
        assert_int_equal(wick_tape_watch(tape, in[i]), WICK_OK);
    }
    if (wick_grad(tape, fn(in[0], in[1]), NULL, in, 2, grads) != WICK_OK)
        fail_with_error(device, "of two");
    for (int i = 0; i < 2; i++) {
        double got;
        assert_int_equal(wick_read_scalar(grads[i], &got), WICK_OK);
        if (isnan(want[i]) ? !isnan(got)
                           : !(fabs(got - (double)want[i]) <= 1e-5 * fabs((double)want[i])))
            fail_msg("gradient %d at %g, %g is %g, not %g", i, (double)x[0], (double)x[1], got,
                     (double)want[i]);
    }
    wick_tape_end(tape);
    wick_scope_end(scope);
}

static wick_tensor *infinite_pow(wick_tensor *a, wick_tensor *b) {
    return wick_affine(wick_pow(a, b), (double)INFINITY, 0);
}

/* Where squares of an operand are 0 or infinite; quotients next to a whole number; NaN. */
static void test_ends_of_two(void **state) {
    static const struct {
        two_fn *fn;
        float x[2], want[2];
    } cases[] = {
        {wick_div, {0, 1e-20F}, {1e20F, 0}},
        {wick_div, {1e-30F, 1e-20F}, {1e20F, -1e10F}},
        {wick_div, {1e37F, 1e23F}, {1e-23F, -1e-9F}},
        {wick_div, {1e25F, 1e25F}, {1e-25F, -1e-25F}},
        {wick_atan2, {1e-25F, 1e-25F}, {5e24F, -5e24F}},
        {wick_atan2, {1e25F, 1e25F}, {5e-26F, -5e-26F}},
        {wick_atan2, {0, 0}, {0, 0}},
        {wick_remainder, {1, 0.1F}, {1, -9}},
        {wick_remainder, {2.5F, 0.1F}, {1, -24}},
        {wick_remainder, {1, -INFINITY}, {1, 1}},
        {wick_fmod, {-2.5F, 1}, {1, 2}},
        {wick_maximum, {NAN, 1}, {1, 0}},
        {wick_minimum, {1, NAN}, {0, 1}},
        {infinite_pow, {0, 2}, {NAN, 0}},
    };
    for (size_t i = 0; i < WK_COUNT(cases); i++)
        check_of_two(device_of(state), cases[i].fn, cases[i].x, cases[i].want);
}

static wick_tensor *elu_of_one(wick_tensor *x) { return wick_elu(x, 1); }

/* Slopes at infinity, where a product with x would be NaN. */
static void test_ends(void **state) {
    static const struct {
        wick_tensor *(*fn)(wick_tensor *x);
        float want[4]; /* at -infinity, infinity, and two more */
    } cases[] = {
        {elu_of_one, {0, 1, 1, 1}},
        {wick_selu, {0, 1.0507010F, 1.0507010F, 1.0507010F}},
        {wick_hard_swish, {0, 1, 1, 0.5F + 1.0F / 3}},
    };
    wick_device *const device = device_of(state);
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        const wick_scope scope = wick_scope_begin(device);
        const float at[] = {-INFINITY, INFINITY, 3, 1}, *const want = cases[i].want;
        wick_tensor *const x =
            wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(4), at, sizeof at);
        wick_tape *const tape = begin(device, x);
        ASSERT_FLOATS(gradient(tape, total(cases[i].fn(x)), x), want[0], want[1], want[2], want[3]);
        wick_tape_end(tape);
        wick_scope_end(scope);
    }
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

/* What wick_write puts over a tensor has no gradient, as what a copy of constants does. */
static void test_written(void **state) {
    static const float numbers[3] = {7, 8, 9};
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    for (int is_part = 0; is_part < 2; is_part++) {
        wick_tensor *x = count_up(device, WICK_SHAPE(3)), *g;
        wick_tape *tape;
        assert_int_equal(wick_tape_begin(device, &tape), WICK_OK);
        assert_int_equal(wick_tape_watch(tape, x), WICK_OK);
        wick_tensor *const y = wick_affine(x, 2, 0);
        wick_tensor *const to = is_part ? wick_narrow(y, 0, 1, 1) : y;
        assert_int_equal(wick_write(to, numbers, wick_tensor_bytes(to)), WICK_OK);
        wick_tensor *const loss = wick_sum(y, 0, NULL, false);
        assert_int_equal(wick_grad(tape, loss, NULL, &x, 1, &g), WICK_OK);
        ASSERT_FLOATS(wick_retain(g), is_part ? 2 : 0, 0, is_part ? 2 : 0);
        wick_tape_end(tape);
    }
    wick_scope_end(scope);
}

/* A watched tensor may be given its values after it is watched. */
static void test_written_leaf(void **state) {
    static const float numbers[3] = {1, 2, 3};
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *x = wick_zeros(device, WICK_F32, WICK_SHAPE(3)), *g;
    wick_tape *tape;
    assert_int_equal(wick_tape_begin(device, &tape), WICK_OK);
    assert_int_equal(wick_tape_watch(tape, x), WICK_OK);
    assert_int_equal(wick_write(x, numbers, sizeof numbers), WICK_OK);
    assert_int_equal(wick_grad(tape, wick_sqr(x), NULL, &x, 1, &g), WICK_OK);
    ASSERT_FLOATS(wick_retain(g), 2, 4, 6);
    wick_tape_end(tape);
    wick_scope_end(scope);
}

/* Through floats of 8 bits, which are rounded, and pass on what comes. */
static void test_stored_in_bytes(void **state) {
    static const wick_dtype dtypes[] = {WICK_F8_E4M3, WICK_F8_E5M2};
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    for (size_t i = 0; i < WK_COUNT(dtypes); i++) {
        wick_tensor *x = count_up(device, WICK_SHAPE(3)), *g;
        wick_tape *tape;
        assert_int_equal(wick_tape_begin(device, &tape), WICK_OK);
        assert_int_equal(wick_tape_watch(tape, x), WICK_OK);
        wick_tensor *const y = wick_cast(wick_cast(wick_affine(x, 3, 0), dtypes[i]), WICK_F32);
        assert_int_equal(wick_grad(tape, wick_sqr(y), NULL, &x, 1, &g), WICK_OK);
        ASSERT_FLOATS(wick_retain(g), 0, 18, 36);
        wick_tape_end(tape);
    }
    wick_scope_end(scope);
}

/* Windows that lie in the padding alone: x has met none of them. */
static void test_windows_of_padding(void **state) {
    static const struct {
        int64_t n, padding, stride;
    } cases[] = {{2, 2, 6}, {1, 3, 100}, {1, 1, 3}, {2, 1, 4}};
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        wick_tensor *const x = wick_ones(device, WICK_F32, WICK_SHAPE(1, 1, cases[i].n));
        wick_tensor *const w = wick_ones(device, WICK_F32, WICK_SHAPE(1, 1, 1));
        wick_tensor *watched[] = {x, w}, *g[2];
        wick_tape *tape;
        assert_int_equal(wick_tape_begin(device, &tape), WICK_OK);
        for (int k = 0; k < 2; k++) assert_int_equal(wick_tape_watch(tape, watched[k]), WICK_OK);
        const wick_conv_desc desc = {.padding = {cases[i].padding}, .stride = {cases[i].stride}};
        wick_tensor *const y = wick_conv1d(x, w, NULL, &desc);
        double at_x, at_w;
        assert_int_equal(wick_grad(tape, y, NULL, watched, 2, g), WICK_OK);
        assert_int_equal(wick_read_scalar(wick_sum(g[0], 0, NULL, false), &at_x), WICK_OK);
        assert_int_equal(wick_read_scalar(wick_sum(g[1], 0, NULL, false), &at_w), WICK_OK);
        assert_true(at_x == 0 && at_w == 0);
        wick_tape_end(tape);
    }
    wick_scope_end(scope);
}

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
    wick_device *other;
    assert_int_equal(wick_device_open(NULL, &other, NULL), WICK_OK);
    static const wick_dtype dtypes[] = {WICK_F32, WICK_U32};
    for (int i = 0; i < 2; i++) {
        wick_tensor *const far = wick_ones(other, dtypes[i], WICK_SHAPE(3));
        assert_int_equal(wick_grad(tape, far, NULL, &x, 1, &g), WICK_ERR_ARGUMENT);
        assert_refused(device, g, WICK_ERR_ARGUMENT);
        assert_int_equal(wick_grad(tape, y, far, &x, 1, &g), WICK_ERR_ARGUMENT);
        assert_refused(device, g, WICK_ERR_ARGUMENT);
        wick_release(far);
    }
    wick_device_close(other);
    assert_int_equal(wick_tape_watch(tape, wick_argsort(x, 0, false)), WICK_ERR_DTYPE);
    assert_int_equal(wick_device_error(device, NULL), WICK_ERR_DTYPE);
    /* The square's gradient needs x, which is not there any more. */
    assert_non_null(wick_fill(x, 1));
    assert_int_equal(wick_grad(tape, y, NULL, &x, 1, &g), WICK_ERR_STATE);
    assert_refused(device, g, WICK_ERR_STATE);
    wick_tape_end(tape);
    wick_scope_end(scope);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rules, setup, teardown),
        cmocka_unit_test_setup_teardown(test_parts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_views, setup, teardown),
        cmocka_unit_test_setup_teardown(test_variance_of_one, setup, teardown),
        cmocka_unit_test_setup_teardown(test_second_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_given_weights, setup, teardown),
        cmocka_unit_test_setup_teardown(test_mixed_dtypes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_mixed_attention, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hiding_bias, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ends_of_two, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(test_large_numbers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_on_the_way, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_grad, setup, teardown),
        cmocka_unit_test_setup_teardown(test_written, setup, teardown),
        cmocka_unit_test_setup_teardown(test_written_leaf, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stored_in_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_windows_of_padding, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
