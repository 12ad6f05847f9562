/* Elementwise functions, comparisons, choice, reductions and what is made of them: what the
 * recorded cases leave open, refusals, and that nothing is left behind. */
#include "ops_fixture.h"

#include <wick/nn.h>

#include <math.h>

static wick_tensor *floats(wick_device *device, const float *values, int64_t n) {
    return wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(n), values,
                                 (size_t)n * sizeof *values);
}

static void test_integers(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const x = wick_arange(device, WICK_I32, -3, 3, 1);
    wick_tensor *const zero = wick_zeros(device, WICK_I32, WICK_SCALAR);
    wick_tensor *made[] = {wick_abs(x),      wick_neg(x),          wick_sign(x),
                           wick_relu(x),     wick_clamp(x, -1, 2), wick_affine(x, 2.9, -1.9),
                           wick_div(x, zero)};
    static const float expected[][6] = {
        {3, 2, 1, 0, 1, 2},    {3, 2, 1, 0, -1, -2},   {-1, -1, -1, 0, 1, 1}, {0, 0, 0, 0, 1, 2},
        {-1, -1, -1, 0, 1, 2}, {-7, -5, -3, -1, 1, 3}, {-3, -2, -1, 0, 1, 2}};
    for (size_t i = 0; i < WK_COUNT(made); i++) {
        assert_int_equal(wick_tensor_dtype(made[i]), WICK_I32);
        assert_floats(wick_cast(made[i], WICK_F32), expected[i], sizeof expected[i]);
        wick_release(made[i]);
    }
    assert_refused(device, wick_exp(x), WICK_ERR_DTYPE);
    assert_refused(device, wick_pow(x, x), WICK_ERR_DTYPE);
    assert_refused(device, wick_mean(x, 0, NULL, false), WICK_ERR_DTYPE);
    wick_release(zero);
    wick_release(x);
}

/* Bounds that the type cannot hold are those that it can; upper ones below lower ones win. */
static void test_clamp_of_integers(void **state) {
    static const struct {
        wick_dtype dtype;
        double min, max;
        float expected[2];
    } rows[] = {
        {WICK_U8, -(double)INFINITY, -3, {0, 0}},
        {WICK_U32, 5, -3, {0, 0}},
        {WICK_I8, 200, 300, {127, 127}},
        {WICK_I32, -4e9, -3e9, {-0x1p31F, -0x1p31F}},
        {WICK_I16, -1e9, 1e9, {2, 100}},
        {WICK_I64, 3e30, (double)INFINITY, {0x1p63F, 0x1p63F}},
    };
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    for (size_t i = 0; i < WK_COUNT(rows); i++) {
        wick_tensor *const x = wick_cast(floats(device, (const float[]){2, 100}, 2), rows[i].dtype);
        wick_tensor *const y = wick_clamp(x, rows[i].min, rows[i].max);
        assert_floats(wick_retain(wick_cast(y, WICK_F32)), rows[i].expected, sizeof(float[2]));
        assert_ptr_equal(wick_clamp_in_place(x, rows[i].min, rows[i].max), x);
        assert_floats(wick_retain(wick_cast(x, WICK_F32)), rows[i].expected, sizeof(float[2]));
    }
    wick_scope_end(scope);
}

static void test_compare_and_where(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const x = floats(device, (const float[]){-1, 0, NAN}, 3);
    wick_tensor *const zero = wick_zeros(device, WICK_F32, WICK_SCALAR);
    wick_tensor *const less = wick_lt(x, zero);
    assert_int_equal(wick_tensor_dtype(less), WICK_U8);
    wick_tensor *const chosen = wick_where(less, zero, x);
    wick_tensor *const differs = wick_ne(x, zero);
    ASSERT_FLOATS(wick_cast(less, WICK_F32), 1, 0, 0);
    ASSERT_FLOATS(wick_cast(differs, WICK_F32), 1, 0, 1);
    ASSERT_FLOATS(wick_cast(chosen, WICK_F32), 0, 0, NAN);
    assert_refused(device, wick_where(x, x, x), WICK_ERR_DTYPE);
    assert_null(wick_where(less, NULL, x));
    wick_tensor *const two = wick_zeros(device, WICK_F32, WICK_SHAPE(2));
    assert_refused(device, wick_where(less, two, two), WICK_ERR_SHAPE);
    wick_tensor *const all[] = {x, zero, less, chosen, differs, two};
    for (size_t i = 0; i < WK_COUNT(all); i++) wick_release(all[i]);
}

typedef wick_tensor *two_fn(wick_tensor *a, wick_tensor *b);

static wick_tensor *celu_of_two(wick_tensor *x, wick_tensor *alpha) {
    double value = 0;
    assert_int_equal(wick_read_scalar(alpha, &value), WICK_OK);
    return wick_celu(x, value);
}
static wick_tensor *elu_of(wick_tensor *x, wick_tensor *unused) {
    (void)unused;
    return wick_elu(x, 1);
}
static wick_tensor *selu_of(wick_tensor *x, wick_tensor *unused) {
    (void)unused;
    return wick_selu(x);
}
static wick_tensor *sine_of(wick_tensor *x, wick_tensor *unused) {
    (void)unused;
    return wick_sin(x);
}

/* As IEEE 754 and the array API have them. */
static void test_signs_of_zero(void **state) {
    static const struct {
        two_fn *fn;
        wick_dtype dtype;
        double a, b;
        bool is_negative;
    } cases[] = {
        {wick_floor_divide, WICK_F64, -0.0, 106, true},
        {wick_floor_divide, WICK_F64, -0.5, -18966, false},
        {wick_floor_divide, WICK_F32, -0.0, 106, true},
        {wick_floor_divide, WICK_F32, -0.0005, -3e38, false},
        {wick_nextafter, WICK_F32, -0x1p-149, 1, true},
        {wick_nextafter, WICK_F16, -0x1p-24, 1, true},
        {wick_nextafter, WICK_BF16, -0x1p-133, 1, true},
        {wick_nextafter, WICK_F16, 0x1p-24, -1, false},
        {celu_of_two, WICK_F32, -0.0, 2, true},
        {elu_of, WICK_F32, -0.0, 1, true},
        {selu_of, WICK_F32, -0.0, 1, true},
        {selu_of, WICK_F32, 0, 1, false},
        {sine_of, WICK_BF16, -0.0, 1, true},
    };
    wick_device *const device = device_of(state);
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        const wick_scope scope = wick_scope_begin(device);
        wick_tensor *const a = wick_full(device, cases[i].dtype, WICK_SCALAR, cases[i].a);
        wick_tensor *const b = wick_full(device, cases[i].dtype, WICK_SCALAR, cases[i].b);
        double got = 1;
        assert_int_equal(wick_read_scalar(cases[i].fn(a, b), &got), WICK_OK);
        if (got != 0 || (signbit(got) != 0) != cases[i].is_negative)
            fail_msg("case %zu gives %g", i, got);
        wick_scope_end(scope);
    }
}

/* A length that is infinite is not cut to the largest number. */
static void test_normalize_infinite(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const x = floats(device, (const float[]){INFINITY, 1, 2}, 3);
    ASSERT_FLOATS(wick_normalize(x, 0, 1e-12), NAN, 0, 0);
    wick_release(x);
}

static void test_bad_values(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const x = count_up(device, WICK_SHAPE(2, 2));
    assert_refused(device, wick_clamp(x, 0, NAN), WICK_ERR_VALUE);
    assert_refused(device, wick_clamp(x, NAN, 0), WICK_ERR_VALUE);
    assert_refused(device, wick_swiglu_clamped(x, x, 1, -1), WICK_ERR_VALUE);
    assert_refused(device, wick_var(x, 0, NULL, false, NAN), WICK_ERR_VALUE);
    assert_refused(device, wick_eye(device, WICK_F32, -1), WICK_ERR_VALUE);
    assert_refused(device, wick_layer_norm(x, NULL, NULL, NAN), WICK_ERR_VALUE);
    assert_refused(device, wick_sum(x, 2, (const int[]){0, -2}, false), WICK_ERR_DIM);
    assert_refused(device, wick_sum(x, -1, (const int[]){0}, false), WICK_ERR_VALUE);
    assert_refused(device, wick_stack(&x, 1, 4), WICK_ERR_DIM);
    assert_null(wick_stack(NULL, 0, 0));
    wick_release(x);
}

static void test_reductions(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const x = count_up(device, WICK_SHAPE(2, 3, 2));
    wick_tensor *const kept = wick_sum(x, 2, (const int[]){-1, 0}, true);
    assert_shape(kept, WICK_SHAPE(1, 3, 1));
    ASSERT_FLOATS(wick_contiguous(kept), 0 + 1 + 6 + 7, 2 + 3 + 8 + 9, 4 + 5 + 10 + 11);
    ASSERT_FLOATS(wick_max(x, 1, (const int[]){1}, false), 4, 5, 10, 11);
    ASSERT_FLOATS(wick_mean(x, 0, NULL, false), 5.5F);
    wick_tensor *const one = wick_ones(device, WICK_F32, WICK_SHAPE(1));
    ASSERT_FLOATS(wick_var(one, 0, NULL, false, 1), NAN);
    ASSERT_FLOATS(wick_var(one, 0, NULL, false, 0), 0);
    wick_tensor *const none = wick_zeros(device, WICK_F32, WICK_SHAPE(2, 0));
    ASSERT_FLOATS(wick_sum(none, 1, (const int[]){1}, false), 0, 0);
    assert_refused(device, wick_min(none, 0, NULL, false), WICK_ERR_SHAPE);
    wick_tensor *const empty = wick_min(none, 1, (const int[]){0}, false);
    assert_shape(empty, WICK_SHAPE(0));
    wick_tensor *const all[] = {x, kept, one, none, empty};
    for (size_t i = 0; i < WK_COUNT(all); i++) wick_release(all[i]);
}

static void test_triangles(void **state) {
    wick_device *const device = device_of(state);
    ASSERT_FLOATS(wick_eye(device, WICK_F32, 2), 1, 0, 0, 1);
    wick_tensor *const x = wick_ones(device, WICK_F32, WICK_SHAPE(2, 3));
    ASSERT_FLOATS(wick_tril(x, 0), 1, 0, 0, 1, 1, 0);
    ASSERT_FLOATS(wick_triu(x, 1), 0, 1, 1, 0, 0, 1);
    ASSERT_FLOATS(wick_tril(x, INT64_MAX), 1, 1, 1, 1, 1, 1);
    ASSERT_FLOATS(wick_triu(x, INT64_MAX), 0, 0, 0, 0, 0, 0);
    ASSERT_FLOATS(wick_tril(x, INT64_MIN), 0, 0, 0, 0, 0, 0);
    wick_tensor *const flat = wick_ones(device, WICK_F32, WICK_SHAPE(3));
    assert_refused(device, wick_tril(flat, 0), WICK_ERR_SHAPE);
    wick_release(flat);
    wick_release(x);
}

static void test_chunk_and_stack(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const x = count_up(device, WICK_SHAPE(5));
    wick_tensor *part[4];
    assert_int_equal(wick_chunk(x, 3, 0, part), 3);
    ASSERT_FLOATS(wick_contiguous(part[2]), 4);
    wick_tensor *const pair = wick_stack(part, 2, -1);
    assert_shape(pair, WICK_SHAPE(2, 2));
    ASSERT_FLOATS(wick_contiguous(pair), 0, 2, 1, 3);
    for (int i = 0; i < 3; i++) wick_release(part[i]);
    assert_int_equal(wick_chunk(x, 4, 0, part), 3); /* of 2, 2 and 1 */
    for (int i = 0; i < 3; i++) wick_release(part[i]);
    wick_tensor *const none = wick_zeros(device, WICK_F32, WICK_SHAPE(0));
    assert_int_equal(wick_chunk(none, 4, 0, part), 4);
    for (int i = 0; i < 4; i++) {
        assert_shape(part[i], WICK_SHAPE(0));
        wick_release(part[i]);
    }
    wick_release(none);
    wick_release(pair);
    wick_release(x);
}

/* A query that sees no key, or for which there are none, gets zeros, by the kernel and taken apart.
 */
static void test_attention_taken_apart(void **state) {
    (void)state;
    for (int is_apart = 0; is_apart < 2; is_apart++) {
        wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .n_threads = 1, .strict = true};
        if (is_apart) desc.backend = WICK_BACKEND_NULL;
        if (is_apart) desc.null_flags = WICK_NULL_NO_FUSED;
        wick_device *device = NULL;
        assert_int_equal(wick_device_open(&desc, &device, NULL), WICK_OK);
        const wick_scope scope = wick_scope_begin(device);
        wick_tensor *const q = wick_ones(device, WICK_F32, WICK_SHAPE(1, 2, 2, 2));
        wick_tensor *const v = count_up(device, WICK_SHAPE(1, 1, 2, 2));
        const wick_shape scores = WICK_SHAPE(1, 2, 2, 2);
        wick_tensor *const rows = wick_arange(device, WICK_U8, 0, 2, 1);
        wick_tensor *const mask = wick_expand(wick_unsqueeze(rows, 1), scores);
        const wick_attention_desc attention = {.mask = mask};
        wick_tensor *const y = wick_attention(q, v, v, &attention);
        float got[8];
        assert_int_equal(wick_read(y, got, sizeof got), WICK_OK);
        const double late = 1 / (1 + exp(-4 / sqrt(2))); /* logits 1 and 5 over sqrt 2 */
        for (int i = 0; i < 8; i++) {
            const double expected = i % 4 < 2 ? 0 : 2 * late + i % 2;
            assert_true(fabs((double)got[i] - expected) < 1e-6);
        }
        wick_tensor *const none = wick_zeros(device, WICK_F32, WICK_SHAPE(1, 1, 0, 2));
        const wick_attention_desc plain = {.causal = false};
        assert_int_equal(wick_read(wick_attention(q, none, none, &plain), got, sizeof got),
                         WICK_OK);
        for (int i = 0; i < 8; i++) assert_true(got[i] == 0);
        wick_scope_end(scope);
        wick_device_close(device);
    }
}

/* Every allocation refused in turn: NULL, a status, and nothing left behind (teardown). */
static void test_out_of_memory(void **state) {
    fixture *const f = *state;
    wick_tensor *const x = count_up(f->device, WICK_SHAPE(2, 2));
    for (uint64_t n = 0;; n++) {
        wick_tensor *part[2] = {NULL};
        f->allowed = n;
        wick_tensor *const y = wick_tril(x, 0), *const z = wick_relu_squared(x);
        wick_tensor *const s = wick_stack((wick_tensor *[]){x, x}, 2, 0);
        const size_t n_parts = wick_chunk(x, 2, 0, part);
        const bool is_done = y != NULL && z != NULL && s != NULL && n_parts == 2;
        f->allowed = UINT64_MAX;
        wick_tensor *const all[] = {y, z, s, part[0], part[1]};
        for (size_t i = 0; i < WK_COUNT(all); i++) {
            if (i < 3 || n_parts == 2) wick_release(all[i]);
        }
        wick_error error = {0};
        wick_device_error(f->device, &error);
        if (is_done) break;
        assert_int_equal(error.status, WICK_ERR_OUT_OF_MEMORY);
    }
    wick_release(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_integers),          TEST(test_clamp_of_integers),
        TEST(test_compare_and_where), TEST(test_bad_values),
        TEST(test_signs_of_zero),     TEST(test_normalize_infinite),
        TEST(test_reductions),        TEST(test_triangles),
        TEST(test_chunk_and_stack),   TEST(test_attention_taken_apart),
        TEST(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
