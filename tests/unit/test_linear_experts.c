/* Products with a weight for each row: against products with one weight, ids out of range, bad
 * input; what takes weights of several matrices. */
#include "ops_fixture.h"

#include "core/rng.h"
#include "tensor/device.h"

#include <wick/grad.h>

#include <math.h>

enum { EXPERTS = 5, N = 32, K = 64, M = 7, U = 3 };

static float weight[EXPERTS * N * K], bias[EXPERTS * N], x[M * U * K];
static uint32_t ids[M * U];

static void make_operands(void) {
    wk_rng rng = {.seed = 7};
    for (int i = 0; i < EXPERTS * N * K; i++) weight[i] = wk_rng_uniform(&rng) - 0.5F;
    for (int i = 0; i < EXPERTS * N; i++) bias[i] = wk_rng_uniform(&rng);
    for (int i = 0; i < M * U * K; i++) x[i] = wk_rng_uniform(&rng) - 0.5F;
    for (int i = 0; i < M * U; i++) ids[i] = wk_rng_u32(&rng) % EXPERTS;
}

static wick_tensor *floats(wick_device *device, wick_shape shape, const float *from, int64_t n) {
    return wick_tensor_from_data(device, WICK_F32, shape, from, (size_t)n * sizeof *from);
}

static wick_tensor *words(wick_device *device, wick_shape shape, const uint32_t *from, int64_t n) {
    return wick_tensor_from_data(device, WICK_U32, shape, from, (size_t)n * sizeof *from);
}

/* Row r of m * u rows, of which each has its own x or u share one. */
static void assert_row(const float *y, const float *own, uint32_t expert) {
    for (int i = 0; i < N; i++) {
        double sum = (double)bias[expert * N + (uint32_t)i];
        for (uint32_t k = 0; k < K; k++)
            sum += (double)own[k] * (double)weight[(expert * N + (uint32_t)i) * K + k];
        assert_true(fabs((double)y[i] - sum) < 1e-4);
    }
}

static void check_products(wick_device *device) {
    float y[M * U * N];
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const w = floats(device, WICK_SHAPE(EXPERTS, N, K), weight, EXPERTS * N * K);
    wick_tensor *const b = floats(device, WICK_SHAPE(EXPERTS, N), bias, EXPERTS * N);
    wick_tensor *const at = words(device, WICK_SHAPE(M, U), ids, M * U);
    wick_tensor *const own = floats(device, WICK_SHAPE(M, U, K), x, M * U * K);
    assert_int_equal(wick_read(wick_linear_experts(own, w, b, at), y, sizeof y), WICK_OK);
    for (int r = 0; r < M * U; r++) assert_row(y + r * N, x + r * K, ids[r]);
    wick_tensor *const shared = floats(device, WICK_SHAPE(M, K), x, M * K);
    assert_int_equal(wick_read(wick_linear_experts(shared, w, b, at), y, sizeof y), WICK_OK);
    for (int r = 0; r < M * U; r++) assert_row(y + r * N, x + r / U * K, ids[r]);
    wick_scope_end(scope);
}

static void products_by_chosen_weights(void **state) {
    static const wick_device_desc descs[] = {
        {.backend = WICK_BACKEND_CPU, .n_threads = 3},
        {.backend = WICK_BACKEND_CPU, .n_threads = 2, .verify = true},
        {.backend = WICK_BACKEND_CPU, .isa = WICK_ISA_REF},
        {.backend = WICK_BACKEND_NULL, .null_flags = WICK_NULL_LATE | WICK_NULL_OUT_OF_ORDER},
        {.backend = WICK_BACKEND_NULL, .null_flags = WICK_NULL_NO_KERNELS},
    };
    (void)state;
    make_operands();
    for (size_t i = 0; i < sizeof descs / sizeof *descs; i++) {
        wick_device *device;
        assert_int_equal(wick_device_open(&descs[i], &device, NULL), WICK_OK);
        check_products(device);
        wick_device_close(device);
    }
}

/* What only a bias, or only a weight, is watched for: of a bias the number of rows that took it. */
static void gradients_alone(void **state) {
    wick_device *const device = device_of(state);
    float of_bias[EXPERTS * N], of_weight[EXPERTS * N * K], counts[EXPERTS] = {0};
    make_operands();
    for (int r = 0; r < M * U; r++) counts[ids[r]]++;
    for (int watched = 0; watched < 2; watched++) {
        const wick_scope scope = wick_scope_begin(device);
        wick_tensor *const w = floats(device, WICK_SHAPE(EXPERTS, N, K), weight, EXPERTS * N * K);
        wick_tensor *const b = floats(device, WICK_SHAPE(EXPERTS, N), bias, EXPERTS * N);
        wick_tensor *const at = words(device, WICK_SHAPE(M, U), ids, M * U);
        wick_tensor *const own = floats(device, WICK_SHAPE(M, U, K), x, M * U * K);
        wick_tensor *in[] = {watched == 0 ? b : w}, *grad = NULL;
        wick_tape *tape;
        assert_int_equal(wick_tape_begin(device, &tape), WICK_OK);
        assert_int_equal(wick_tape_watch(tape, in[0]), WICK_OK);
        wick_tensor *const y = wick_sum(wick_linear_experts(own, w, b, at), 0, NULL, false);
        assert_int_equal(wick_grad(tape, y, NULL, in, 1, &grad), WICK_OK);
        void *const to = watched == 0 ? (void *)of_bias : of_weight;
        assert_int_equal(wick_read(grad, to, watched == 0 ? sizeof of_bias : sizeof of_weight),
                         WICK_OK);
        wick_tape_end(tape);
        wick_scope_end(scope);
    }
    for (int i = 0; i < EXPERTS * N; i++) {
        float sums[K] = {0};
        assert_true(of_bias[i] == counts[i / N]);
        for (int r = 0; r < M * U; r++)
            for (int k = 0; k < K && ids[r] == (uint32_t)(i / N); k++) sums[k] += x[r * K + k];
        for (int k = 0; k < K; k++) assert_true(fabsf(of_weight[i * K + k] - sums[k]) < 1e-5F);
    }
}

/* Weights as a model has them: in panels, uploaded row by row across the borders of experts. */
static void weights_in_panels(void **state) {
    wick_device *const device = device_of(state);
    wk_weight_store store = {.device = device};
    bool in_place;
    float y[M * U * N];
    make_operands();
    const wk_weight_desc desc = {
        .dtype = WICK_F32, .shape = WICK_SHAPE(EXPERTS, N, K), .uses = WK_USE_LINEAR};
    wick_tensor *const w = wk_weight_new(device, &desc, &store, &in_place);
    assert_non_null(w);
    assert_int_equal(w->view.rank, 3);
    for (int64_t row = 0; row < EXPERTS * N; row += 64) {
        const int64_t n = EXPERTS * N - row < 64 ? EXPERTS * N - row : 64;
        assert_int_equal(wk_weight_upload(w, row, n, weight + row * K), WICK_OK);
    }
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const b = floats(device, WICK_SHAPE(EXPERTS, N), bias, EXPERTS * N);
    wick_tensor *const own = floats(device, WICK_SHAPE(M, U, K), x, M * U * K);
    wick_tensor *const at = words(device, WICK_SHAPE(M, U), ids, M * U);
    assert_int_equal(wick_read(wick_linear_experts(own, w, b, at), y, sizeof y), WICK_OK);
    for (int r = 0; r < M * U; r++) assert_row(y + r * N, x + r * K, ids[r]);
    wick_scope_end(scope);
    wick_release(w);
}

static void ids_out_of_range(void **state) {
    wick_device *const device = device_of(state);
    const uint32_t bad[2] = {1, EXPERTS};
    float y[2 * N];
    make_operands();
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const w = floats(device, WICK_SHAPE(EXPERTS, N, K), weight, EXPERTS * N * K);
    wick_tensor *const own = floats(device, WICK_SHAPE(1, K), x, K);
    wick_tensor *const at = words(device, WICK_SHAPE(1, 2), bad, 2);
    assert_int_equal(wick_read(wick_linear_experts(own, w, NULL, at), y, sizeof y), WICK_ERR_INDEX);
    wick_scope_end(scope);
    assert_int_equal(wick_device_error(device, NULL), WICK_ERR_INDEX);
}

static void operands_that_do_not_fit(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const w = wick_zeros(device, WICK_F32, WICK_SHAPE(EXPERTS, N, K));
    wick_tensor *const flat = wick_zeros(device, WICK_F32, WICK_SHAPE(N, K));
    wick_tensor *const own = wick_zeros(device, WICK_F32, WICK_SHAPE(M, K));
    wick_tensor *const at = wick_zeros(device, WICK_U32, WICK_SHAPE(M, U));
    wick_tensor *const row = wick_zeros(device, WICK_F32, WICK_SHAPE(K));
    wick_tensor *const b = wick_zeros(device, WICK_F32, WICK_SHAPE(EXPERTS, N));
    assert_non_null(wick_linear_experts(own, w, b, at));
    assert_null(wick_linear_experts(NULL, w, b, at));
    assert_int_equal(wick_device_error(device, NULL), WICK_OK);
    assert_refused(device, wick_linear_experts(own, flat, NULL, at), WICK_ERR_SHAPE);
    assert_refused(device, wick_linear_experts(row, w, NULL, at), WICK_ERR_SHAPE);
    assert_refused(device, wick_linear_experts(b, w, NULL, at), WICK_ERR_SHAPE);
    assert_refused(device, wick_linear_experts(own, w, flat, at), WICK_ERR_SHAPE);
    assert_refused(device, wick_linear_experts(own, w, b, own), WICK_ERR_DTYPE);
    wick_tensor *const few = wick_zeros(device, WICK_U32, WICK_SHAPE(M - 1, U));
    assert_refused(device, wick_linear_experts(own, w, b, few), WICK_ERR_SHAPE);
    wick_tensor *const whole = wick_zeros(device, WICK_I64, WICK_SHAPE(M, K));
    assert_refused(device, wick_linear_experts(whole, w, b, at), WICK_ERR_DTYPE);
    wick_scope_end(scope);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(products_by_chosen_weights), TEST(gradients_alone),          TEST(weights_in_panels),
        TEST(ids_out_of_range),           TEST(operands_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
