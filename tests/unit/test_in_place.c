/* Functions in place: results, parts of tensors, operands that overlap, what is refused, gradients.
 */
#include "ops_fixture.h"

#include <math.h>

#include <wick/grad.h>

static void values(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const x = count_up(device, WICK_SHAPE(2, 3));
    wick_tensor *const row = count_up(device, WICK_SHAPE(3));
    assert_ptr_equal(wick_add_in_place(x, row), x);
    assert_ptr_equal(wick_affine_in_place(x, 2, -4), x);
    assert_ptr_equal(wick_relu_in_place(x), x);
    assert_ptr_equal(wick_clamp_in_place(x, 1, 7), x);
    ASSERT_FLOATS(x, 1, 1, 4, 2, 6, 7);
    wick_release(row);
}

static void parts_and_overlap(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const x = count_up(device, WICK_SHAPE(4));
    wick_tensor *const low = wick_narrow(x, 0, 0, 3), *const high = wick_narrow(x, 0, 1, 3);
    assert_ptr_equal(wick_add_in_place(high, low), high); /* 0 1 3 5 */
    assert_ptr_equal(wick_mul_in_place(low, low), low);   /* 0 1 9 5 */
    wick_release(low);
    wick_release(high);
    ASSERT_FLOATS(x, 0, 1, 9, 5);
    wick_tensor *const none = wick_zeros(device, WICK_F32, WICK_SHAPE(0, 2));
    assert_ptr_equal(wick_exp_in_place(none), none);
    assert_ptr_equal(wick_sub_in_place(none, none), none);
    wick_release(none);
}

static void refusals(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = wick_ones(device, WICK_F32, WICK_SHAPE(1, 3));
    wick_tensor *const twice = wick_expand(x, WICK_SHAPE(2, 3));
    wick_tensor *const whole = wick_ones(device, WICK_I32, WICK_SHAPE(2, 3));
    assert_refused(device, wick_neg_in_place(twice), WICK_ERR_ARGUMENT);
    assert_refused(device, wick_add_in_place(twice, x), WICK_ERR_ARGUMENT);
    assert_refused(device, wick_add_in_place(x, twice), WICK_ERR_SHAPE);
    assert_refused(device, wick_add_in_place(whole, x), WICK_ERR_DTYPE);
    assert_refused(device, wick_exp_in_place(whole), WICK_ERR_DTYPE);
    assert_refused(device, wick_clamp_in_place(x, (double)NAN, 1), WICK_ERR_VALUE);
    assert_null(wick_exp_in_place(NULL));
    assert_null(wick_add_in_place(x, NULL));
    wick_scope_end(scope);
}

/* Of the result alone it is known; the factor of a product is not there any more. */
static void gradients(void **state) {
    wick_device *const device = device_of(state);
    for (int is_lost = 0; is_lost < 2; is_lost++) {
        const wick_scope scope = wick_scope_begin(device);
        wick_tape *tape = NULL;
        wick_tensor *const x = wick_full(device, WICK_F32, WICK_SHAPE(2), 3), *grad = NULL;
        assert_int_equal(wick_tape_begin(device, &tape), WICK_OK);
        assert_int_equal(wick_tape_watch(tape, x), WICK_OK);
        wick_tensor *const y = is_lost ? wick_sqr(x) : wick_affine(x, 2, 0);
        wick_affine_in_place(x, 4, 0);
        wick_tensor *const sum = wick_sum(wick_mul(y, wick_full_like(x, 2)), 0, NULL, false);
        const wick_status status = wick_grad(tape, sum, NULL, &x, 1, &grad);
        assert_int_equal(status, is_lost ? WICK_ERR_STATE : WICK_OK);
        if (is_lost) {
            assert_refused(device, grad, WICK_ERR_STATE);
        } else {
            wick_retain(grad);
            ASSERT_FLOATS(grad, 4, 4);
        }
        wick_tape_end(tape);
        wick_scope_end(scope);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(values), TEST(parts_and_overlap), TEST(refusals),
                                       TEST(gradients)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
