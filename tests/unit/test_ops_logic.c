/* Mixed dtypes, functions of integers and their edges, logic, and reductions made of others: what
 * the recorded cases leave open. */
#include "ops_fixture.h"

#include <float.h>
#include <math.h>

static wick_tensor *floats(wick_device *device, const float *values, int64_t n) {
    return wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(n), values,
                                 (size_t)n * sizeof *values);
}

/* values of f32 in a tensor of dtype. */
static wick_tensor *of_dtype(wick_device *device, wick_dtype dtype, const float *values,
                             int64_t n) {
    wick_tensor *const x = floats(device, values, n), *const y = wick_cast(x, dtype);
    wick_release(x);
    return y;
}
#define OF(dtype, ...)                                                                             \
    of_dtype(device, dtype, (const float[]){__VA_ARGS__},                                          \
             sizeof((const float[]){__VA_ARGS__}) / sizeof(float))

/* What ASSERT_FLOATS says, of a tensor of that dtype. */
#define ASSERT_VALUES(x, of, ...)                                                                  \
    do {                                                                                           \
        wick_tensor *const made = x;                                                               \
        assert_non_null(made);                                                                     \
        assert_int_equal(wick_tensor_dtype(made), of);                                             \
        ASSERT_FLOATS(wick_cast(made, WICK_F32), __VA_ARGS__);                                     \
        wick_release(made);                                                                        \
    } while (0)

/* --- Mixed dtypes --- */

static const wick_dtype scalars[] = {WICK_BOOL, WICK_U8,  WICK_I8,   WICK_I16, WICK_I32, WICK_I64,
                                     WICK_U32,  WICK_F16, WICK_BF16, WICK_F32, WICK_F64};

/* The table of the array API standard, with the float's dtype where only one is a float. */
static const char *const promoted[] = {"bool u8 i8 i16 i32 i64 u32 f16 bf16 f32 f64",
                                       "u8 u8 i16 i16 i32 i64 u32 f16 bf16 f32 f64",
                                       "i8 i16 i8 i16 i32 i64 i64 f16 bf16 f32 f64",
                                       "i16 i16 i16 i16 i32 i64 i64 f16 bf16 f32 f64",
                                       "i32 i32 i32 i32 i32 i64 i64 f16 bf16 f32 f64",
                                       "i64 i64 i64 i64 i64 i64 i64 f16 bf16 f32 f64",
                                       "u32 u32 i64 i64 i64 i64 u32 f16 bf16 f32 f64",
                                       "f16 f16 f16 f16 f16 f16 f16 f16 f32 f32 f64",
                                       "bf16 bf16 bf16 bf16 bf16 bf16 bf16 f32 bf16 f32 f64",
                                       "f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64",
                                       "f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64"};

static void test_promotion(void **state) {
    wick_device *const device = device_of(state);
    for (size_t i = 0; i < WK_COUNT(scalars); i++) {
        char row[64], *word = row;
        strcpy(row, promoted[i]);
        for (size_t j = 0; j < WK_COUNT(scalars); j++) {
            char *const end = word + strcspn(word, " ");
            const char *const name = word;
            word = *end != 0 ? end + 1 : end;
            *end = 0;
            wick_tensor *const a = wick_ones(device, scalars[i], WICK_SHAPE(2));
            wick_tensor *const b = wick_ones(device, scalars[j], WICK_SHAPE(2, 1));
            wick_tensor *const cond = wick_ones(device, WICK_U8, WICK_SCALAR);
            wick_tensor *const chosen = wick_where(cond, a, b);
            assert_string_equal(wick_dtype_name(wick_tensor_dtype(chosen)), name);
            ASSERT_VALUES(wick_le(a, b), WICK_U8, 1, 1, 1, 1);
            if (strcmp(name, "bool") != 0) {
                ASSERT_VALUES(wick_add(a, b), wick_tensor_dtype(chosen), 2, 2, 2, 2);
            } else {
                assert_refused(device, wick_add(a, b), WICK_ERR_DTYPE);
            }
            wick_tensor *const all[] = {a, b, cond, chosen};
            for (size_t k = 0; k < WK_COUNT(all); k++) wick_release(all[k]);
        }
    }
}

static void test_promoted_values(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const bytes = OF(WICK_U8, 200, 255), *const small = OF(WICK_I8, -128, 127);
    ASSERT_VALUES(wick_add(bytes, small), WICK_I16, 72, 382);
    ASSERT_VALUES(wick_lt(small, bytes), WICK_U8, 1, 1);
    ASSERT_VALUES(wick_bitwise_xor(small, bytes), WICK_I16, -128 ^ 200, 127 ^ 255);
    wick_tensor *const blocks = q8_weight(device);
    assert_refused(device, wick_add(bytes, blocks), WICK_ERR_DTYPE);
    assert_refused(device, wick_eq(blocks, blocks), WICK_ERR_DTYPE);
    assert_refused(device, wick_logical_and(bytes, blocks), WICK_ERR_DTYPE);
    wick_tensor *const all[] = {bytes, small, blocks};
    for (size_t i = 0; i < WK_COUNT(all); i++) wick_release(all[i]);
}

/* --- Integers --- */

static void test_integer_division(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const a = OF(WICK_I32, 7, -7, 7, -7, 5, -0x1p31F);
    wick_tensor *const b = OF(WICK_I32, 2, 2, -2, -2, 0, -1);
    ASSERT_VALUES(wick_div(a, b), WICK_I32, 3, -3, -3, 3, 5, -0x1p31F);
    ASSERT_VALUES(wick_floor_divide(a, b), WICK_I32, 3, -4, -4, 3, 5, -0x1p31F);
    ASSERT_VALUES(wick_remainder(a, b), WICK_I32, 1, 1, -1, -1, 0, 0);
    ASSERT_VALUES(wick_fmod(a, b), WICK_I32, 1, -1, 1, -1, 0, 0);
    assert_refused(device, wick_atan2(a, b), WICK_ERR_DTYPE);
    wick_release(a);
    wick_release(b);
    wick_tensor *const least = OF(WICK_I64, -0x1p63F, 9), *const minus = OF(WICK_I64, -1, 0);
    ASSERT_VALUES(wick_floor_divide(least, minus), WICK_I64, -0x1p63F, 9);
    ASSERT_VALUES(wick_remainder(least, minus), WICK_I64, 0, 0);
    wick_release(least);
    wick_release(minus);
}

static void test_bits(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const a = OF(WICK_I8, -128, 127, 85, -1), *const b = OF(WICK_I8, 1, 8, -1, 3);
    ASSERT_VALUES(wick_bitwise_and(a, b), WICK_I8, 0, 8, 85, 3);
    ASSERT_VALUES(wick_bitwise_or(a, b), WICK_I8, -127, 127, -1, -1);
    ASSERT_VALUES(wick_bitwise_not(a), WICK_I8, 127, -128, -86, 0);
    ASSERT_VALUES(wick_bitwise_left_shift(a, b), WICK_I8, 0, 0, 0, -8);
    ASSERT_VALUES(wick_bitwise_right_shift(a, b), WICK_I8, -64, 0, 0, -1);
    wick_tensor *const c = OF(WICK_BOOL, 1, 1, 0, 0), *const d = OF(WICK_BOOL, 1, 0, 1, 0);
    ASSERT_VALUES(wick_bitwise_and(c, d), WICK_BOOL, 1, 0, 0, 0);
    ASSERT_VALUES(wick_bitwise_or(c, d), WICK_BOOL, 1, 1, 1, 0);
    ASSERT_VALUES(wick_bitwise_xor(c, d), WICK_BOOL, 0, 1, 1, 0);
    ASSERT_VALUES(wick_bitwise_not(c), WICK_BOOL, 0, 0, 1, 1);
    wick_tensor *const x = count_up(device, WICK_SHAPE(4));
    assert_refused(device, wick_bitwise_not(x), WICK_ERR_DTYPE);
    assert_refused(device, wick_bitwise_and(x, a), WICK_ERR_DTYPE);
    assert_refused(device, wick_bitwise_left_shift(c, d), WICK_ERR_DTYPE);
    wick_tensor *const all[] = {a, b, c, d, x};
    for (size_t i = 0; i < WK_COUNT(all); i++) wick_release(all[i]);
}

/* --- Floats --- */

static void test_division_of_floats(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const a = floats(device, (const float[]){5.5F, -5.5F, 5.5F, -1, 1, -0.0F, 3}, 7);
    wick_tensor *const b = floats(device, (const float[]){2, 2, -2, INFINITY, 0, 2, NAN}, 7);
    ASSERT_FLOATS(wick_remainder(a, b), 1.5F, 0.5F, -0.5F, INFINITY, NAN, 0, NAN);
    ASSERT_FLOATS(wick_fmod(a, b), 1.5F, -1.5F, 1.5F, -1, NAN, 0, NAN);
    ASSERT_FLOATS(wick_floor_divide(a, b), 2, -3, -3, -1, INFINITY, 0, NAN);
    wick_tensor *const turned = wick_copysign(a, b);
    ASSERT_FLOATS(turned, 5.5F, 5.5F, -5.5F, 1, 1, 0, 3);
    wick_release(a);
    wick_release(b);
}

/* Neighbours of 1, 0, the largest number and infinity. */
static void test_nextafter(void **state) {
    wick_device *const device = device_of(state);
    static const struct {
        wick_dtype dtype;
        float step, least, most, last; /* above 1; above 0; the largest number, and its step */
    } kinds[] = {{WICK_F32, FLT_EPSILON, 0x1p-149F, FLT_MAX, 0x1p104F},
                 {WICK_F16, 0x1p-10F, 0x1p-24F, 65504, 32},
                 {WICK_BF16, 0x1p-7F, 0x1p-133F, 0x1.fep127F, 0x1p120F}};
    for (size_t k = 0; k < WK_COUNT(kinds); k++) {
        const float step = kinds[k].step, least = kinds[k].least, most = kinds[k].most;
        wick_tensor *const a = OF(kinds[k].dtype, 1, 1, 0, -least, most, INFINITY, -1, NAN);
        wick_tensor *const b = OF(kinds[k].dtype, 2, 0, -1, 1, 0, 0, -1, 0);
        wick_tensor *const y = wick_nextafter(a, b), *const wide = wick_cast(y, WICK_F32);
        const float want[] = {1 + step, 1 - step / 2, -least, 0, most - kinds[k].last,
                              most,     -1,           NAN};
        float got[8];
        assert_int_equal(wick_read(wide, got, sizeof got), WICK_OK);
        for (int i = 0; i < 8; i++) {
            if (!isnan(want[i]) && got[i] != want[i])
                fail_msg("%s, %d: %a, not %a", wick_dtype_name(kinds[k].dtype), i, (double)got[i],
                         (double)want[i]);
        }
        wick_tensor *const all[] = {a, b, y, wide};
        for (size_t i = 0; i < WK_COUNT(all); i++) wick_release(all[i]);
    }
}

static void test_edges_of_curves(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const x = floats(device, (const float[]){-INFINITY, -1, -0.0F, 1, INFINITY}, 5);
    ASSERT_FLOATS(wick_expm1(x), -1, -0.632120559F, 0, 1.71828183F, INFINITY);
    ASSERT_FLOATS(wick_log1p(x), NAN, -INFINITY, 0, 0.693147181F, INFINITY);
    ASSERT_FLOATS(wick_atanh(x), NAN, -INFINITY, 0, INFINITY, NAN);
    ASSERT_FLOATS(wick_acosh(x), NAN, NAN, NAN, 0, INFINITY);
    ASSERT_FLOATS(wick_trunc(x), -INFINITY, -1, 0, 1, INFINITY);
    ASSERT_FLOATS(wick_rsqrt(x), NAN, NAN, -INFINITY, 1, 0);
    ASSERT_FLOATS(wick_logaddexp(x, x), -INFINITY, -0.306852819F, 0.693147181F, 1.69314718F,
                  INFINITY);
    ASSERT_FLOATS(wick_log_sigmoid(x), -INFINITY, -1.31326169F, -0.693147181F, -0.313261688F, 0);
    ASSERT_FLOATS(wick_celu(x, 0.5), -0.5F, -0.432332358F, 0, 1, INFINITY);
    assert_refused(device, wick_celu(x, 0), WICK_ERR_VALUE);
    assert_refused(device, wick_celu(x, NAN), WICK_ERR_VALUE);
    wick_tensor *const whole = wick_cast(x, WICK_I32);
    assert_refused(device, wick_selu(whole), WICK_ERR_DTYPE);
    assert_refused(device, wick_tan(whole), WICK_ERR_DTYPE);
    wick_release(whole);
    wick_release(x);
}

/* --- Logic --- */

static void test_predicates(void **state) {
    wick_device *const device = device_of(state);
    static const wick_dtype kinds[] = {WICK_F32, WICK_F16, WICK_BF16, WICK_F64};
    for (size_t k = 0; k < WK_COUNT(kinds); k++) {
        wick_tensor *const x = OF(kinds[k], NAN, -INFINITY, INFINITY, -0.0F, 1, -2);
        ASSERT_VALUES(wick_is_nan(x), WICK_U8, 1, 0, 0, 0, 0, 0);
        ASSERT_VALUES(wick_is_inf(x), WICK_U8, 0, 1, 1, 0, 0, 0);
        ASSERT_VALUES(wick_is_finite(x), WICK_U8, 0, 0, 0, 1, 1, 1);
        ASSERT_VALUES(wick_logical_not(x), WICK_U8, 0, 0, 0, 1, 0, 0);
        wick_tensor *const sign = wick_signbit(x), *const known = wick_narrow(sign, 0, 1, 5);
        ASSERT_VALUES(known, WICK_U8, 1, 0, 1, 0, 1);
        wick_release(sign);
        wick_release(x);
    }
    static const wick_dtype whole[] = {WICK_BOOL, WICK_U8, WICK_I64, WICK_U32};
    for (size_t k = 0; k < WK_COUNT(whole); k++) {
        wick_tensor *const x = OF(whole[k], 0, 1);
        ASSERT_VALUES(wick_is_nan(x), WICK_U8, 0, 0);
        ASSERT_VALUES(wick_is_inf(x), WICK_U8, 0, 0);
        ASSERT_VALUES(wick_is_finite(x), WICK_U8, 1, 1);
        ASSERT_VALUES(wick_signbit(x), WICK_U8, 0, 0);
        ASSERT_VALUES(wick_logical_not(x), WICK_U8, 1, 0);
        wick_release(x);
    }
}

static void test_logic_of_two(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const a = OF(WICK_F16, 0, NAN, 2, -0.0F), *const b = OF(WICK_I64, 0, 3, 0, 256);
    ASSERT_VALUES(wick_logical_and(a, b), WICK_U8, 0, 1, 0, 0);
    ASSERT_VALUES(wick_logical_or(a, b), WICK_U8, 0, 1, 1, 1);
    ASSERT_VALUES(wick_logical_xor(a, b), WICK_U8, 0, 0, 1, 1);
    wick_tensor *const pair = count_up(device, WICK_SHAPE(2));
    assert_refused(device, wick_logical_or(a, pair), WICK_ERR_SHAPE);
    assert_null(wick_logical_or(a, NULL));
    wick_tensor *const all[] = {a, b, pair};
    for (size_t i = 0; i < WK_COUNT(all); i++) wick_release(all[i]);
}

static void test_closeness(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const a = floats(device, (const float[]){1, 1, INFINITY, INFINITY, NAN, 5}, 6);
    wick_tensor *const b =
        floats(device, (const float[]){1.05F, 1.2F, INFINITY, -INFINITY, NAN, INFINITY}, 6);
    ASSERT_VALUES(wick_is_close(a, b, 0.1, 0, false), WICK_U8, 1, 0, 1, 0, 0, 0);
    ASSERT_VALUES(wick_is_close(a, b, 0, 0.1, true), WICK_U8, 1, 0, 1, 0, 1, 0);
    ASSERT_VALUES(wick_all_close(a, b, 0.1, 0, true), WICK_U8, 0);
    ASSERT_VALUES(wick_all_close(a, a, 0, 0, true), WICK_U8, 1);
    ASSERT_VALUES(wick_all_close(a, a, 0, 0, false), WICK_U8, 0);
    wick_tensor *const none = wick_zeros(device, WICK_I32, WICK_SHAPE(0, 6));
    ASSERT_VALUES(wick_all_close(a, none, 0, 0, false), WICK_U8, 1);
    assert_refused(device, wick_is_close(a, b, -1, 0, false), WICK_ERR_VALUE);
    assert_refused(device, wick_all_close(a, b, 0, NAN, false), WICK_ERR_VALUE);
    wick_tensor *const all[] = {a, b, none};
    for (size_t i = 0; i < WK_COUNT(all); i++) wick_release(all[i]);
}

/* --- Of many --- */

static void test_truth_of_many(void **state) {
    wick_device *const device = device_of(state);
    const int last = -1, bad = 2;
    wick_tensor *const flat = floats(device, (const float[]){0, 0, 0, NAN, 1, 2}, 6);
    wick_tensor *const x = wick_reshape(flat, WICK_SHAPE(2, 3));
    wick_tensor *const y = wick_transpose(x, 0, 1);
    ASSERT_VALUES(wick_all(x, 1, &last, false), WICK_U8, 0, 1);
    ASSERT_VALUES(wick_any(x, 1, &last, true), WICK_U8, 0, 1);
    ASSERT_VALUES(wick_any(y, 1, &last, false), WICK_U8, 1, 1, 1);
    ASSERT_VALUES(wick_count_nonzero(y, 0, NULL, false), WICK_U32, 3);
    assert_refused(device, wick_all(x, 1, &bad, false), WICK_ERR_DIM);
    assert_refused(device, wick_any(x, -1, &bad, false), WICK_ERR_VALUE);
    wick_tensor *const none = wick_zeros(device, WICK_I64, WICK_SHAPE(2, 0));
    ASSERT_VALUES(wick_all(none, 1, &last, false), WICK_U8, 1, 1);
    ASSERT_VALUES(wick_any(none, 0, NULL, false), WICK_U8, 0);
    wick_tensor *const all[] = {flat, x, y, none};
    for (size_t i = 0; i < WK_COUNT(all); i++) wick_release(all[i]);
}

static void test_products(void **state) {
    wick_device *const device = device_of(state);
    const int first = 0;
    wick_tensor *const x = OF(WICK_I8, 100, 100, 3, -1);
    ASSERT_VALUES(wick_prod(x, 0, NULL, false), WICK_I8, -48); /* -30000 mod 256 */
    wick_tensor *const far = floats(device, (const float[]){1e30F, 1e30F, 1e-30F, 1e-30F}, 4);
    ASSERT_FLOATS(wick_prod(far, 1, &first, true), 1);
    wick_tensor *const none = wick_zeros(device, WICK_F16, WICK_SHAPE(0, 2));
    ASSERT_VALUES(wick_prod(none, 1, &first, false), WICK_F16, 1, 1);
    wick_tensor *const truth = wick_ones(device, WICK_BOOL, WICK_SHAPE(2));
    assert_refused(device, wick_prod(truth, 0, NULL, false), WICK_ERR_DTYPE);
    wick_tensor *const all[] = {x, far, none, truth};
    for (size_t i = 0; i < WK_COUNT(all); i++) wick_release(all[i]);
}

static void test_log_sum_exp(void **state) {
    wick_device *const device = device_of(state);
    const int last = -1;
    wick_tensor *const flat =
        floats(device, (const float[]){1000, 1000, -INFINITY, -INFINITY, INFINITY, 0, NAN, 0}, 8);
    wick_tensor *const x = wick_reshape(flat, WICK_SHAPE(4, 2));
    ASSERT_FLOATS(wick_log_sum_exp(x, 1, &last, false), 1000.69315F, -INFINITY, INFINITY, NAN);
    wick_tensor *const none = wick_zeros(device, WICK_F32, WICK_SHAPE(2, 0));
    ASSERT_FLOATS(wick_log_sum_exp(none, 1, &last, true), -INFINITY, -INFINITY);
    wick_tensor *const scalar = wick_full(device, WICK_BF16, WICK_SCALAR, 3);
    ASSERT_VALUES(wick_log_sum_exp(scalar, 0, NULL, false), WICK_BF16, 3);
    wick_tensor *const all[] = {flat, x, none, scalar};
    for (size_t i = 0; i < WK_COUNT(all); i++) wick_release(all[i]);
}

static void test_norms(void **state) {
    wick_device *const device = device_of(state);
    const int last = -1, dims[] = {0, 0};
    wick_tensor *const flat = floats(device, (const float[]){3, -4, 0, 0, 5, -12}, 6);
    wick_tensor *const x = wick_reshape(flat, WICK_SHAPE(2, 3));
    ASSERT_FLOATS(wick_norm(x, 2, 1, &last, false), 5, 13);
    ASSERT_FLOATS(wick_norm(x, 1, 1, &last, true), 7, 17);
    ASSERT_FLOATS(wick_norm(x, INFINITY, 1, &last, false), 4, 12);
    ASSERT_FLOATS(wick_norm(x, -INFINITY, 1, &last, false), 0, 0);
    ASSERT_FLOATS(wick_norm(x, 0, 1, &last, false), 2, 2);
    ASSERT_FLOATS(wick_norm(x, 3, 1, &last, false), 4.49794145F, 12.2826424F);
    assert_refused(device, wick_norm(x, NAN, 1, &last, false), WICK_ERR_VALUE);
    assert_refused(device, wick_norm(x, 2, 2, dims, false), WICK_ERR_DIM);
    assert_refused(device, wick_std(x, 0, NULL, false, INFINITY), WICK_ERR_VALUE);
    wick_tensor *const none = wick_zeros(device, WICK_F32, WICK_SHAPE(0));
    ASSERT_FLOATS(wick_norm(none, 2, 0, NULL, false), 0);
    assert_refused(device, wick_norm(none, INFINITY, 0, NULL, false), WICK_ERR_SHAPE);
    wick_tensor *const half = OF(WICK_F16, 300, 400); /* whose squares f16 does not have */
    ASSERT_VALUES(wick_norm(half, 2, 0, NULL, false), WICK_F16, 500);
    ASSERT_VALUES(wick_std(half, 0, NULL, false, 0), WICK_F16, 50);
    wick_tensor *const all[] = {flat, x, none, half};
    for (size_t i = 0; i < WK_COUNT(all); i++) wick_release(all[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_promotion),          TEST(test_promoted_values),
        TEST(test_integer_division),   TEST(test_bits),
        TEST(test_division_of_floats), TEST(test_nextafter),
        TEST(test_edges_of_curves),    TEST(test_predicates),
        TEST(test_logic_of_two),       TEST(test_closeness),
        TEST(test_truth_of_many),      TEST(test_products),
        TEST(test_log_sum_exp),        TEST(test_norms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
