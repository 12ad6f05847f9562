/* Second derivatives: products of the Hessian with a direction, by a tape that records how another
 * one goes back, against central differences of gradients. */
#include "gradient_rules.h"

/* Of the sum of r: its gradients in the inputs, owned by the innermost scope; begins and ends a
 * tape. */
static void gradients_of(wick_device *device, const rule *r, wick_tensor *const *in,
                         wick_tensor **grads) {
    wick_tape *tape;
    assert_int_equal(wick_tape_begin(device, &tape), WICK_OK);
    for (int i = 0; i < r->n; i++) assert_int_equal(wick_tape_watch(tape, in[i]), WICK_OK);
    if (wick_grad(tape, weighted(r->fn(in)), NULL, in, (size_t)r->n, grads) != WICK_OK)
        fail_with_error(device, r->name);
    wick_tape_end(tape);
}

/* Gradients at x + step v. */
static void gradients_at(wick_device *device, const rule *r, double x[MOST_INPUTS][COUNT],
                         double v[MOST_INPUTS][COUNT], double step,
                         double out[MOST_INPUTS][COUNT]) {
    wick_tensor *in[MOST_INPUTS], *grads[MOST_INPUTS];
    const wick_scope scope = wick_scope_begin(device);
    for (int i = 0; i < r->n; i++) {
        double moved[COUNT];
        for (int k = 0; k < COUNT; k++) moved[k] = x[i][k] + step * v[i][k];
        in[i] = input(device, moved);
    }
    gradients_of(device, r, in, grads);
    for (int i = 0; i < r->n; i++)
        assert_int_equal(wick_read(grads[i], out[i], sizeof out[i]), WICK_OK);
    wick_scope_end(scope);
}

/* H v as the gradient of the sum of gradient times v. */
static void product(wick_device *device, const rule *r, double x[MOST_INPUTS][COUNT],
                    double v[MOST_INPUTS][COUNT], double out[MOST_INPUTS][COUNT]) {
    wick_tensor *in[MOST_INPUTS], *grads[MOST_INPUTS], *products[MOST_INPUTS];
    wick_tape *outer;
    const wick_scope scope = wick_scope_begin(device);
    assert_int_equal(wick_tape_begin(device, &outer), WICK_OK);
    for (int i = 0; i < r->n; i++) {
        in[i] = input(device, x[i]);
        assert_int_equal(wick_tape_watch(outer, in[i]), WICK_OK);
    }
    gradients_of(device, r, in, grads);
    wick_tensor *sum = wick_zeros(device, WICK_F64, WICK_SCALAR);
    for (int i = 0; i < r->n; i++)
        sum = wick_add(sum, wick_sum(wick_mul(grads[i], input(device, v[i])), 0, NULL, false));
    if (wick_grad(outer, sum, NULL, in, (size_t)r->n, products) != WICK_OK)
        fail_with_error(device, r->name);
    for (int i = 0; i < r->n; i++)
        assert_int_equal(wick_read(products[i], out[i], sizeof out[i]), WICK_OK);
    wick_tape_end(outer);
    wick_scope_end(scope);
}

/* Gives the largest element of the product. */
static double check_rule(wick_device *device, const rule *r, uint64_t seed) {
    const double h = 1e-5;
    double x[MOST_INPUTS][COUNT], v[MOST_INPUTS][COUNT], got[MOST_INPUTS][COUNT],
        above[MOST_INPUTS][COUNT], below[MOST_INPUTS][COUNT], largest = 0;
    wk_rng rng = {.seed = seed, .stream = 1};
    draw_inputs(r, seed, x);
    for (int i = 0; i < r->n; i++)
        for (int k = 0; k < COUNT; k++) v[i][k] = 2 * (double)wk_rng_uniform(&rng) - 1;
    product(device, r, x, v, got);
    gradients_at(device, r, x, v, h, above);
    gradients_at(device, r, x, v, -h, below);
    for (int i = 0; i < r->n; i++) {
        for (int k = 0; k < COUNT; k++) {
            const double want = (above[i][k] - below[i][k]) / (2 * h);
            largest = fmax(largest, fabs(want));
            if (!(fabs(got[i][k] - want) <= 1e-6 * (1 + fabs(want))))
                fail_msg("%s: element %d of input %d is %.9g, by differences %.9g", r->name, k, i,
                         got[i][k], want);
        }
    }
    return largest;
}

/* All rules: of those whose gradients do not depend on the input the product is 0. */
static void test_rules(void **state) {
    size_t n_curved = 0;
    for (size_t i = 0; i < WK_COUNT(rules); i++) {
        double largest = 0;
        for (uint64_t seed = 1; seed <= 3; seed++)
            largest = fmax(largest, check_rule(device_of(state), &rules[i], seed));
        n_curved += largest > 1e-3;
    }
    print_message("%zu of %zu functions are curved\n", n_curved, WK_COUNT(rules));
    assert_true(n_curved > WK_COUNT(rules) / 2);
}

static wick_tensor *product_of_all(wick_tensor *x) { return wick_prod(x, 0, NULL, false); }
static wick_tensor *running_product(wick_tensor *x) { return wick_cumprod(x, -1); }

/* Gives H v of the sum of fn(x), as an operation. */
static wick_tensor *curvature(wick_tensor *(*fn)(wick_tensor *x), wick_tensor *x, wick_tensor *v) {
    wick_tape *tapes[2];
    wick_tensor *slope, *got;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(wick_tape_begin(wick_tensor_device(x), &tapes[i]), WICK_OK);
        assert_int_equal(wick_tape_watch(tapes[i], x), WICK_OK);
    }
    wick_tensor *const y = wick_sum(fn(x), 0, NULL, false);
    assert_int_equal(wick_grad(tapes[1], y, NULL, &x, 1, &slope), WICK_OK);
    wick_tensor *const along = wick_sum(wick_mul(slope, v), 0, NULL, false);
    assert_int_equal(wick_grad(tapes[0], along, NULL, &x, 1, &got), WICK_OK);
    for (int i = 0; i < 2; i++) wick_tape_end(tapes[i]);
    return got;
}

/* Products have slopes at zeros that depend on the other factors. */
static void test_zeros(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(4),
                                                 (const float[]){0, 2, 3, 0}, 4 * sizeof(float));
    wick_tensor *const v = count_up(device, WICK_SHAPE(4));
    /* x0 x1 x2 x3: only the second derivative in x0 and x3 is not 0. */
    ASSERT_FLOATS(wick_retain(curvature(product_of_all, x, v)), 18, 0, 0, 0);
    /* Of x0 (1 + x1 (1 + x2 (1 + x3))), with v 0 1 2 3 */
    ASSERT_FLOATS(wick_retain(curvature(running_product, x, v)), 4 + 2 * 2 + 6 * 3, 0, 0, 0);
    wick_scope_end(scope);
}

/* The third derivative of x^4. */
static void test_third_order(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *x = wick_affine(count_up(device, WICK_SHAPE(3)), 1, 1);
    wick_tape *tapes[3];
    for (int i = 0; i < 3; i++) {
        assert_int_equal(wick_tape_begin(device, &tapes[i]), WICK_OK);
        assert_int_equal(wick_tape_watch(tapes[i], x), WICK_OK);
    }
    wick_tensor *y = wick_sqr(wick_sqr(x));
    for (int i = 0; i < 3; i++) {
        wick_tensor *slope;
        assert_int_equal(wick_grad(tapes[2 - i], y, NULL, &x, 1, &slope), WICK_OK);
        wick_tape_end(tapes[2 - i]);
        y = slope;
    }
    ASSERT_FLOATS(wick_retain(y), 24, 48, 72);
    wick_scope_end(scope);
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(test_rules), TEST(test_zeros), TEST(test_third_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
