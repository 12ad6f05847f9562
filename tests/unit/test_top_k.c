/* The k largest elements: against a full sort, equal elements, NaN, dimensions, bad input. */
#include "ops_fixture.h"

#include "core/rng.h"
#include "ref_case.h"

#include <math.h>

/* --- Against a full sort --- */

typedef struct element {
    float value;
    uint32_t index;
} element;

/* NaN first, then from the largest down, equal ones in their order. */
static int compare(const void *a, const void *b) {
    const element *const p = a, *const q = b;
    const int p_nan = p->value != p->value, q_nan = q->value != q->value;
    if (p_nan != q_nan) return q_nan - p_nan;
    if (!p_nan && p->value != q->value) return p->value > q->value ? -1 : 1;
    return p->index < q->index ? -1 : 1;
}

static void assert_row(const float *x, int64_t n, const float *values, const uint32_t *indices,
                       int64_t k) {
    element *const all = malloc((size_t)n * sizeof *all);
    assert_non_null(all);
    for (int64_t i = 0; i < n; i++) all[i] = (element){x[i], (uint32_t)i};
    qsort(all, (size_t)n, sizeof *all, compare);
    for (int64_t i = 0; i < k; i++) {
        assert_int_equal(indices[i], all[i].index);
        assert_memory_equal(&values[i], &x[all[i].index], sizeof *values);
    }
    free(all);
}

/* rows of n numbers, of so few kinds that many are equal. */
static float *random_rows(int64_t count, uint64_t seed, int64_t n_kinds) {
    wk_rng rng = {.seed = seed};
    float *const x = malloc((size_t)count * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)(wk_rng_u32(&rng) % (uint64_t)n_kinds) - (float)n_kinds / 2;
    return x;
}

static void check_rows(wick_device *device, int64_t rows, int64_t n, int64_t k, int64_t n_kinds) {
    float *const x = random_rows(rows * n, (uint64_t)(n + k), n_kinds);
    float *const got = malloc((size_t)(rows * k) * sizeof *got);
    uint32_t *const places = malloc((size_t)(rows * k) * sizeof *places);
    assert_true(got && places);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const t = wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(rows, n), x,
                                                 (size_t)(rows * n) * sizeof *x);
    wick_tensor *indices, *const values = wick_top_k(t, k, -1, &indices);
    assert_true(values && indices);
    assert_int_equal(wick_tensor_dtype(indices), WICK_U32);
    assert_int_equal(wick_read(values, got, (size_t)(rows * k) * sizeof *got), WICK_OK);
    assert_int_equal(wick_read(indices, places, (size_t)(rows * k) * sizeof *places), WICK_OK);
    for (int64_t r = 0; r < rows; r++) assert_row(x + r * n, n, got + r * k, places + r * k, k);
    wick_scope_end(scope);
    free(x);
    free(got);
    free(places);
}

static void rows_as_a_sort_has_them(void **state) {
    static const int64_t sizes[][3] = {{1, 1, 1},      {7, 8, 2},      {5, 64, 8},
                                       {3, 100, 100},  {2, 1000, 999}, {1, 49152, 40},
                                       {2, 3000, 1500}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        check_rows(device_of(state), sizes[i][0], sizes[i][1], sizes[i][2], 1 << 22);
        check_rows(device_of(state), sizes[i][0], sizes[i][1], sizes[i][2], 7);
    }
    check_rows(device_of(state), 1, 262144, 1000, 1 << 22);
    check_rows(device_of(state), 1, 262144, 262144, 1000);
}

static void rows_of_other_devices(void **state) {
    static const wick_device_desc descs[] = {
        {.backend = WICK_BACKEND_CPU, .n_threads = 3},
        {.backend = WICK_BACKEND_CPU, .n_threads = 2, .verify = true},
        {.backend = WICK_BACKEND_NULL, .null_flags = WICK_NULL_LATE | WICK_NULL_OUT_OF_ORDER},
        {.backend = WICK_BACKEND_NULL, .null_flags = WICK_NULL_NO_KERNELS},
    };
    (void)state;
    for (size_t i = 0; i < sizeof descs / sizeof *descs; i++) {
        wick_device *device;
        assert_int_equal(wick_device_open(&descs[i], &device, NULL), WICK_OK);
        check_rows(device, 40, 60, 6, 20);
        wick_device_close(device);
    }
}

/* --- What is special --- */

static void nan_is_the_largest(void **state) {
    wick_device *const device = device_of(state);
    const float x[] = {1, NAN, -INFINITY, INFINITY, NAN, -0.0F, 0};
    float got[7];
    uint32_t places[7];
    wick_tensor *const t = wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(7), x, sizeof x);
    wick_tensor *indices, *const values = wick_top_k(t, 7, 0, &indices);
    assert_int_equal(wick_read(values, got, sizeof got), WICK_OK);
    assert_int_equal(wick_read(indices, places, sizeof places), WICK_OK);
    ASSERT_BYTES(places, ((uint32_t[]){1, 4, 3, 0, 5, 6, 2}));
    assert_true(isnan(got[0]) && isnan(got[1]) && isinf(got[2]));
    assert_true(signbit(got[4]) && !signbit(got[5])); /* moved as they are */
    wick_release(t);
    wick_release(values);
    wick_release(indices);
}

/* Along the first of two dimensions; the indices are not wanted. */
static void any_dimension(void **state) {
    wick_device *const device = device_of(state);
    const float x[] = {3, 1, 2, 9, 8, 7, 4, 6, 5};
    wick_tensor *const t = wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(3, 3), x, sizeof x);
    wick_tensor *const values = wick_top_k(t, 2, 0, NULL);
    assert_shape(values, WICK_SHAPE(2, 3));
    ASSERT_FLOATS(values, 9, 8, 7, 4, 6, 5);
    wick_release(t);
}

static void other_floats(void **state) {
    static const wick_dtype dtypes[] = {WICK_F16, WICK_BF16, WICK_F64};
    wick_device *const device = device_of(state);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        const wick_scope scope = wick_scope_begin(device);
        wick_tensor *const x = wick_cast(count_up(device, WICK_SHAPE(5)), dtypes[i]);
        wick_tensor *const values = wick_top_k(x, 3, 0, NULL);
        assert_int_equal(wick_tensor_dtype(values), dtypes[i]);
        ASSERT_FLOATS(wick_retain(wick_cast(values, WICK_F32)), 4, 3, 2);
        wick_scope_end(scope);
    }
}

/* --- Bad input --- */

static void impossible_calls(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const x = count_up(device, WICK_SHAPE(2, 5));
    wick_tensor *const whole = wick_arange(device, WICK_I32, 0, 5, 1);
    wick_tensor *const none = wick_zeros(device, WICK_F32, WICK_SHAPE(0, 5));
    wick_tensor *indices = x;
    static const int64_t counts[] = {0, -1, 6, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        assert_refused(device, wick_top_k(x, counts[i], 1, &indices), WICK_ERR_VALUE);
        assert_null(indices);
    }
    assert_refused(device, wick_top_k(x, 1, 2, NULL), WICK_ERR_DIM);
    assert_refused(device, wick_top_k(whole, 1, 0, NULL), WICK_ERR_DTYPE);
    assert_refused(device, wick_top_k(none, 1, 0, NULL), WICK_ERR_VALUE);
    indices = x;
    assert_null(wick_top_k(NULL, 1, 0, &indices));
    assert_null(indices);
    wick_tensor *const nothing = wick_top_k(none, 2, 1, &indices);
    assert_shape(nothing, WICK_SHAPE(0, 2));
    assert_shape(indices, WICK_SHAPE(0, 2));
    wick_release(nothing);
    wick_release(indices);
    wick_release(x);
    wick_release(whole);
    wick_release(none);
}

static void impossible_ops(void **state) {
    (void)state;
    float x[12], values[12];
    uint32_t indices[12];
    for (int i = 0; i < 6; i++) {
        wick_error err = {0};
        ref_case c;
        ref_begin(&c, WK_OP_TOP_K);
        wk_view *const y = REF_ADD(&c, values, i == 0 ? WICK_U32 : WICK_F32, 3, 2);
        wk_view *const z = REF_ADD(&c, indices, i == 1 ? WICK_I32 : WICK_U32, 3, 2);
        REF_ADD(&c, x, WICK_F32, 3, 4);
        if (i == 2) y->extent[1] = z->extent[1] = 5;
        if (i == 3) z->extent[1] = 1;
        if (i == 4) y->extent[0] = z->extent[0] = 2;
        if (i == 5) y->rank = z->rank = 1;
        assert_true(wk_op_check(&c.op, &err) < 0);
        assert_true(strlen(err.message) > 10);
    }
}

static void out_of_memory(void **state) {
    fixture *const f = *state;
    wick_tensor *const x = count_up(f->device, WICK_SHAPE(100));
    for (uint64_t allowed = 0;; allowed++) {
        wick_tensor *indices;
        f->allowed = allowed;
        wick_tensor *const y = wick_top_k(x, 50, 0, &indices);
        const wick_status status = y ? wick_synchronize(f->device) : WICK_ERR_OUT_OF_MEMORY;
        f->allowed = UINT64_MAX;
        (void)wick_device_error(f->device, NULL);
        wick_release(y);
        wick_release(indices);
        if (status == WICK_OK) break;
        assert_int_equal(status, WICK_ERR_OUT_OF_MEMORY);
    }
    wick_release(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(rows_as_a_sort_has_them), TEST(rows_of_other_devices), TEST(nan_is_the_largest),
        TEST(any_dimension),           TEST(other_floats),          TEST(impossible_calls),
        TEST(impossible_ops),          TEST(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
