/* Operations of the user's in C: results, strided and empty operands, failures, gradients, and the
 * fallback of a device that is not a CPU. */
#include "ops_fixture.h"

#include <wick/grad.h>
#include <wick/operation.h>

#include <stdio.h>

/* y = x^3 of f32; fails for a number above 100. */
static wick_status infer(void *user, const wick_host_view *inputs, wick_host_view *outputs,
                         wick_error *error) {
    (void)user;
    outputs[0] = inputs[0];
    if (inputs[0].dtype == WICK_F32) return WICK_OK;
    snprintf(error->message, sizeof error->message, "takes f32");
    return WICK_ERR_DTYPE;
}

static wick_status compute(void *user, const wick_host_view *inputs, const wick_host_view *outputs,
                           wick_error *error) {
    const float *const x = inputs[0].data;
    float *const y = outputs[0].data;
    int64_t n = 1;
    ++*(int *)user;
    for (int d = 0; d < inputs[0].shape.rank; d++) n *= inputs[0].shape.extent[d];
    for (int64_t i = 0; i < n; i++) {
        if (x[i] > 100) {
            snprintf(error->message, sizeof error->message, "%g is too large", (double)x[i]);
            return WICK_ERR_VALUE;
        }
        y[i] = x[i] * x[i] * x[i];
    }
    return WICK_OK;
}

static void gradient(void *user, wick_tensor *const *inputs, wick_tensor *output,
                     wick_tensor *grad_output, wick_tensor **grads) {
    (void)user, (void)output;
    grads[0] = wick_mul(grad_output, wick_affine(wick_sqr(inputs[0]), 3, 0));
}

static void wrong_gradient(void *user, wick_tensor *const *inputs, wick_tensor *output,
                           wick_tensor *grad_output, wick_tensor **grads) {
    (void)user, (void)inputs, (void)output;
    grads[0] = wick_sum(grad_output, 0, NULL, false);
}

static int n_calls;

static wick_operation_desc cube_desc(void) {
    return (wick_operation_desc){.name = "cube",
                                 .n_inputs = 1,
                                 .n_outputs = 1,
                                 .infer = infer,
                                 .compute = compute,
                                 .gradient = gradient,
                                 .user = &n_calls};
}

static wick_operation *make(wick_device *device, const wick_operation_desc *desc) {
    wick_operation *operation = NULL;
    wick_error error = {0};
    assert_int_equal(wick_operation_make(device, desc, &operation, &error), WICK_OK);
    return operation;
}

static void values(void **state) {
    wick_device *const device = device_of(state);
    const wick_operation_desc desc = cube_desc();
    wick_operation *const cube = make(device, &desc);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = wick_transpose(count_up(device, WICK_SHAPE(2, 2)), 0, 1), *y, *z;
    assert_int_equal(wick_operation_run(cube, &x, &y), WICK_OK);
    wick_tensor *const more = wick_affine(y, 1, 1); /* queued after it */
    wick_operation_release(cube);                   /* its run is queued still */
    wick_fill(x, 5);
    ASSERT_FLOATS(wick_retain(more), 1, 9, 2, 28);
    wick_operation *const again = make(device, &desc);
    wick_tensor *const none = wick_zeros(device, WICK_F32, WICK_SHAPE(0, 3));
    n_calls = 0;
    assert_int_equal(wick_operation_run(again, &none, &z), WICK_OK);
    assert_shape(z, WICK_SHAPE(0, 3));
    assert_int_equal(wick_synchronize(device), WICK_OK);
    assert_int_equal(n_calls, 0);
    wick_operation_release(again);
    wick_scope_end(scope);
}

static wick_status infer_nothing(void *user, const wick_host_view *inputs, wick_host_view *outputs,
                                 wick_error *error) {
    (void)user, (void)inputs, (void)outputs, (void)error;
    return WICK_OK;
}

static void shape_that_is_not_set(void **state) {
    wick_device *const device = device_of(state);
    wick_operation_desc desc = cube_desc();
    desc.infer = infer_nothing;
    wick_operation *const forgetful = make(device, &desc);
    wick_tensor *const x = wick_ones(device, WICK_F32, WICK_SHAPE(2)), *y;
    assert_int_equal(wick_operation_run(forgetful, &x, &y), WICK_ERR_SHAPE);
    assert_refused(device, y, WICK_ERR_SHAPE);
    wick_release(x);
    wick_operation_release(forgetful);
}

static void failures(void **state) {
    wick_device *const device = device_of(state);
    const wick_operation_desc desc = cube_desc();
    wick_operation *const cube = make(device, &desc);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = wick_full(device, WICK_F32, WICK_SHAPE(2), 101), *y, *none = NULL;
    wick_tensor *const whole = wick_ones(device, WICK_I32, WICK_SHAPE(2));
    wick_error error;
    float got[2];
    assert_int_equal(wick_operation_run(cube, &x, &y), WICK_OK);
    wick_tensor *const after = wick_neg(y);
    assert_int_equal(wick_read(after, got, sizeof got), WICK_ERR_VALUE);
    assert_int_equal(wick_device_error(device, &error), WICK_ERR_VALUE);
    assert_string_equal(error.message, "cube: 101 is too large");
    assert_int_equal(wick_read(x, got, sizeof got), WICK_OK);
    assert_int_equal(wick_operation_run(cube, &whole, &y), WICK_ERR_DTYPE);
    assert_null(y);
    assert_int_equal(wick_device_error(device, &error), WICK_ERR_DTYPE);
    assert_string_equal(error.message, "cube: takes f32");
    assert_int_equal(wick_operation_run(cube, &none, &y), WICK_ERR_ARGUMENT);
    assert_refused(device, y, WICK_ERR_ARGUMENT);
    y = x;
    assert_int_equal(wick_operation_run(NULL, &x, &y), WICK_ERR_ARGUMENT);
    assert_null(y);
    y = x;
    assert_int_equal(wick_operation_run(cube, NULL, &y), WICK_ERR_ARGUMENT);
    assert_null(y);
    assert_int_equal(wick_device_error(device, &error), WICK_ERR_ARGUMENT);
    assert_string_equal(error.message, "cube: inputs is NULL");
    assert_int_equal(wick_operation_run(cube, &x, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_device_error(device, &error), WICK_ERR_ARGUMENT);
    assert_string_equal(error.message, "cube: outputs is NULL");
    wick_scope_end(scope);
    wick_operation_release(cube);

    wick_operation *bad;
    wick_operation_desc wrong = cube_desc();
    wrong.n_outputs = 2;
    assert_int_equal(wick_operation_make(device, &wrong, &bad, &error), WICK_ERR_VALUE);
    assert_null(bad);
    wrong = cube_desc();
    wrong.compute = NULL;
    assert_int_equal(wick_operation_make(device, &wrong, &bad, NULL), WICK_ERR_VALUE);
    wrong = cube_desc();
    wrong.n_inputs = 8;
    assert_int_equal(wick_operation_make(device, &wrong, &bad, NULL), WICK_ERR_VALUE);
    wrong.name = NULL;
    assert_int_equal(wick_operation_make(device, &wrong, &bad, NULL), WICK_ERR_ARGUMENT);
}

/* Status of the gradient of the cube of 2, which is to be 12. */
static wick_status slope_of(wick_device *device, const wick_operation_desc *desc) {
    wick_operation *const cube = make(device, desc);
    const wick_scope scope = wick_scope_begin(device);
    wick_tape *tape = NULL;
    wick_tensor *const x = wick_full(device, WICK_F32, WICK_SHAPE(2), 2), *y, *grad;
    assert_int_equal(wick_tape_begin(device, &tape), WICK_OK);
    assert_int_equal(wick_tape_watch(tape, x), WICK_OK);
    assert_int_equal(wick_operation_run(cube, &x, &y), WICK_OK);
    wick_tensor *const sum = wick_sum(y, 0, NULL, false);
    const wick_status status = wick_grad(tape, sum, NULL, &x, 1, &grad);
    wick_operation_release(cube);
    if (status == WICK_OK)
        ASSERT_FLOATS(wick_retain(grad), 12, 12);
    else
        assert_refused(device, grad, status);
    wick_tape_end(tape);
    wick_scope_end(scope);
    return status;
}

static void gradients(void **state) {
    wick_device *const device = device_of(state);
    wick_operation_desc desc = cube_desc();
    assert_int_equal(slope_of(device, &desc), WICK_OK);
    desc.gradient = wrong_gradient;
    assert_int_equal(slope_of(device, &desc), WICK_ERR_SHAPE);
    desc.gradient = NULL;
    assert_int_equal(slope_of(device, &desc), WICK_ERR_UNSUPPORTED);
}

/* Elsewhere it is a fallback, which is counted and, where the device is strict, refused. */
static void other_devices(void **state) {
    static const wick_device_desc descs[] = {
        {.backend = WICK_BACKEND_NULL, .null_flags = WICK_NULL_LATE},
        {.backend = WICK_BACKEND_NULL, .strict = true},
        {.backend = WICK_BACKEND_CPU, .strict = true},
        {.backend = WICK_BACKEND_CPU, .verify = true}};
    for (int i = 0; i < 4; i++) {
        wick_device *device = NULL;
        wick_device_stats stats;
        float got[2] = {0};
        assert_int_equal(wick_device_open(&descs[i], &device, NULL), WICK_OK);
        const wick_operation_desc desc = cube_desc();
        wick_operation *const cube = make(device, &desc);
        const wick_scope scope = wick_scope_begin(device);
        wick_tensor *const x = wick_full(device, WICK_F32, WICK_SHAPE(2), 3), *y;
        assert_int_equal(wick_operation_run(cube, &x, &y), WICK_OK);
        const wick_status status = wick_read(y, got, sizeof got);
        assert_int_equal(status, i == 1 ? WICK_ERR_UNSUPPORTED : WICK_OK);
        if (status == WICK_OK) assert_float_equal(got[1], 27, 0);
        wick_device_get_stats(device, &stats);
        assert_int_equal(stats.n_fallbacks, i == 0);
        (void)wick_device_error(device, NULL);
        wick_tensor *foreign = wick_ones(device_of(state), WICK_F32, WICK_SHAPE(2));
        assert_int_equal(wick_operation_run(cube, &foreign, &y), WICK_ERR_ARGUMENT);
        assert_refused(device, y, WICK_ERR_ARGUMENT);
        wick_release(foreign);
        wick_scope_end(scope);
        wick_operation_release(cube);
        wick_device_close(device);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(values), TEST(shape_that_is_not_set), TEST(failures),
                                       TEST(gradients), TEST(other_devices)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
