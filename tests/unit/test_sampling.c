/* Sampling, boxes and Fourier transforms: what recorded cases (tests/data/ops) do not show: empty
 * results, ends of the range, and what is refused. */
#include "nn_fixture.h"

static wick_tensor *ramp(wick_device *device, wick_shape shape) {
    int64_t n;
    assert_true(wk_shape_count(&shape, &n));
    return wick_reshape(wick_arange(device, WICK_F32, 0, (double)n, 1), shape);
}

static void test_grid(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = ramp(device, WICK_SHAPE(1, 1, 2, 2));
    /* Places far outside, infinite ones among them, and one that is not a number. */
    const double places[] = {-1e30, 1e30, INFINITY, 0, -1, -1};
    wick_tensor *const grid = tensor_of(device, WICK_F32, WICK_SHAPE(1, 1, 3, 2), places);
    assert_close(wick_grid_sample(x, grid, WICK_RESIZE_CUBIC, WICK_PAD_CONSTANT, true),
                 (const double[]){0, 0, 0}, 1e-6);
    assert_close(wick_grid_sample(x, grid, WICK_RESIZE_LINEAR, WICK_PAD_REPLICATE, true),
                 (const double[]){2, 2, 0}, 1e-6);
    wick_tensor *const none = wick_zeros(device, WICK_F32, WICK_SHAPE(1, 0, 3, 2));
    assert_int_equal(
        wick_tensor_size(wick_grid_sample(x, none, WICK_RESIZE_LINEAR, WICK_PAD_CONSTANT, false)),
        0);
    /* One element: a mirror on either side of it. */
    wick_tensor *const one = wick_ones(device, WICK_F32, WICK_SHAPE(1, 1, 1, 1));
    assert_close(wick_grid_sample(one, grid, WICK_RESIZE_NEAREST, WICK_PAD_REPLICATE, true),
                 (const double[]){1, 1, 1}, 0);
    assert_close(
        wick_grid_sample(one, wick_clamp(grid, -9, 9), WICK_RESIZE_LINEAR, WICK_PAD_REFLECT, true),
        (const double[]){1, 1, 1}, 0);

    assert_refused(device, wick_grid_sample(x, grid, WICK_RESIZE_LINEAR, WICK_PAD_CIRCULAR, true),
                   WICK_ERR_VALUE);
    assert_refused(device, wick_grid_sample(x, grid, (wick_resize_mode)3, WICK_PAD_CONSTANT, true),
                   WICK_ERR_VALUE);
    assert_refused(device,
                   wick_grid_sample(x, wick_transpose(grid, 2, 3), WICK_RESIZE_LINEAR,
                                    WICK_PAD_CONSTANT, true),
                   WICK_ERR_SHAPE);
    assert_refused(
        device,
        wick_grid_sample(x, wick_cast(grid, WICK_F16), WICK_RESIZE_LINEAR, WICK_PAD_CONSTANT, true),
        WICK_ERR_DTYPE);
    wick_scope_end(scope);
}

static void test_boxes(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = ramp(device, WICK_SHAPE(1, 1, 4, 4));
    const double corners[] = {0, 0, 4, 4, 9, 9, 5, 5};
    wick_tensor *const boxes = tensor_of(device, WICK_F32, WICK_SHAPE(2, 4), corners);
    wick_tensor *const batch = wick_zeros(device, WICK_I64, WICK_SHAPE(2));
    /* The second box has no elements, whichever number of places would be its own. */
    for (int i = 0; i < 2; i++)
        assert_close(wick_roi_align(x, boxes, batch,
                                    &(wick_roi_align_desc){.size = {1, 2}, .is_largest = i}),
                     i ? (const double[]){13, 15, 0, 0} : (const double[]){6.5, 8.5, 0, 0}, 1e-5);
    wick_tensor *const none = wick_zeros(device, WICK_F32, WICK_SHAPE(0, 4));
    wick_tensor *const no_batch = wick_zeros(device, WICK_U32, WICK_SHAPE(0));
    const wick_roi_align_desc one = {.size = {1, 1}};
    assert_int_equal(wick_tensor_size(wick_roi_align(x, none, no_batch, &one)), 0);
    assert_refused(device, wick_roi_align(x, boxes, no_batch, &one), WICK_ERR_SHAPE);
    assert_refused(device, wick_roi_align(x, boxes, batch, NULL), WICK_ERR_ARGUMENT);
    assert_refused(device, wick_roi_align(x, boxes, batch, &(wick_roi_align_desc){.size = {-1, 1}}),
                   WICK_ERR_VALUE);
    assert_refused(device, wick_roi_align(x, boxes, wick_cast(batch, WICK_F32), &one),
                   WICK_ERR_DTYPE);

    /* Two equal boxes, the second of which is as good: that of the lower number stays. */
    const double both[] = {0, 0, 2, 2, 2, 2, 0, 0, 5, 5, 6, 6};
    wick_tensor *const three = tensor_of(device, WICK_F32, WICK_SHAPE(1, 3, 4), both);
    const double points[] = {0.5, 0.5, NAN};
    wick_tensor *const scores = tensor_of(device, WICK_F32, WICK_SHAPE(1, 1, 3), points);
    wick_tensor *const kept = wick_non_max_suppression(three, scores, NULL);
    assert_int_equal(wick_tensor_dtype(kept), WICK_U32);
    assert_close(kept, (const double[]){0, 0, 0}, 0);
    assert_int_equal(wick_tensor_size(kept), 3);
    wick_tensor *const empty = wick_zeros(device, WICK_F32, WICK_SHAPE(1, 0, 4));
    wick_tensor *const no_scores = wick_zeros(device, WICK_F32, WICK_SHAPE(1, 2, 0));
    assert_int_equal(wick_tensor_size(wick_non_max_suppression(empty, no_scores, NULL)), 0);
    assert_refused(device, wick_non_max_suppression(three, no_scores, NULL), WICK_ERR_SHAPE);
    wick_scope_end(scope);
}

static void test_transforms(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    /* A round trip of a length with factors, in float64. */
    wick_tensor *const x = random_tensor(device, WICK_F64, WICK_SHAPE(3, 1000, 2), 7);
    wick_tensor *const back = wick_dft(wick_dft(x, 1, 0, false, false), 1, 0, true, false);
    double *const wanted = contents(x);
    assert_close(back, wanted, 1e-12);
    free(wanted);
    assert_refused(device, wick_dft(x, 2, 0, false, false), WICK_ERR_DIM);
    assert_refused(device, wick_dft(x, 1, -1, false, false), WICK_ERR_VALUE);
    assert_refused(device, wick_dft(x, 1, 0, true, true), WICK_ERR_VALUE);
    assert_refused(device, wick_dft(wick_transpose(x, 0, 2), 1, 0, false, false), WICK_ERR_SHAPE);
    wick_scope_end(scope);
}

static void test_resizing(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = ramp(device, WICK_SHAPE(1, 8));
    const int64_t size = 2, none = 0;
    /* A triangle of 8 elements around 1.5 and 5.5. */
    assert_close(wick_resize_antialiased(x, 1, &size, WICK_RESIZE_LINEAR, 0, false),
                 (const double[]){6.625 / 3.5, 7 - 6.625 / 3.5}, 1e-5);
    assert_refused(device, wick_resize_antialiased(x, 1, &size, WICK_RESIZE_NEAREST, 0, false),
                   WICK_ERR_VALUE);
    assert_refused(device, wick_resize_antialiased(x, 1, &size, WICK_RESIZE_CUBIC, NAN, false),
                   WICK_ERR_VALUE);
    assert_refused(device, wick_resize_antialiased(x, 1, &none, WICK_RESIZE_LINEAR, 0, false),
                   WICK_ERR_VALUE);
    wick_scope_end(scope);
}

static void test_cells(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = ramp(device, WICK_SHAPE(1, 1, 2));
    const wick_rnn_weights weights = {.w_ih = ramp(device, WICK_SHAPE(8, 2)),
                                      .w_hh = ramp(device, WICK_SHAPE(8, 2)),
                                      .peepholes = ramp(device, WICK_SHAPE(5))};
    assert_refused(device, wick_lstm(x, &weights, NULL, NULL, NULL, NULL), WICK_ERR_SHAPE);
    wick_scope_end(scope);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_grid, setup, teardown),
        cmocka_unit_test_setup_teardown(test_boxes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_transforms, setup, teardown),
        cmocka_unit_test_setup_teardown(test_resizing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cells, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
