/* Copies and conversions of cpu/ref. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "ref_case.h"

#include "core/half.h"
#include "quant/block.h"

#include <math.h>

static void convert(void *y, size_t y_size, wick_dtype to, void *x, size_t x_size, wick_dtype from,
                    int64_t n) {
    ref_case c;
    ref_begin(&c, WK_OP_COPY);
    ref_add(&c, y, y_size, to, WICK_SHAPE(n));
    ref_add(&c, x, x_size, from, WICK_SHAPE(n));
    assert_false(ref_run(&c));
}

#define CONVERT(y, to, x, from)                                                                    \
    convert(y, sizeof(y), to, x, sizeof(x), from, (int64_t)(sizeof(x) / sizeof *(x)))

static void float_to_integer_saturates(void **state) {
    (void)state;
    double x[] = {1.9, -1.9, -0.0, 1e30, -1e30, NAN, INFINITY, -INFINITY, 9223372036854775808.0};
    int64_t i64[9];
    CONVERT(i64, WICK_I64, x, WICK_F64);
    ASSERT_BYTES(i64,
                 ((int64_t[]){1, -1, 0, INT64_MAX, INT64_MIN, 0, INT64_MAX, INT64_MIN, INT64_MAX}));
    int32_t i32[9];
    CONVERT(i32, WICK_I32, x, WICK_F64);
    ASSERT_BYTES(i32,
                 ((int32_t[]){1, -1, 0, INT32_MAX, INT32_MIN, 0, INT32_MAX, INT32_MIN, INT32_MAX}));
    uint32_t u32[9];
    CONVERT(u32, WICK_U32, x, WICK_F64);
    ASSERT_BYTES(u32, ((uint32_t[]){1, 0, 0, UINT32_MAX, 0, 0, UINT32_MAX, 0, UINT32_MAX}));
    uint8_t u8[9];
    CONVERT(u8, WICK_U8, x, WICK_F64);
    ASSERT_BYTES(u8, ((uint8_t[]){1, 0, 0, 255, 0, 0, 255, 0, 255}));
    int8_t i8[9];
    CONVERT(i8, WICK_I8, x, WICK_F64);
    ASSERT_BYTES(i8, ((int8_t[]){1, -1, 0, 127, -128, 0, 127, -128, 127}));
    CONVERT(u8, WICK_BOOL, x, WICK_F64);
    ASSERT_BYTES(u8, ((uint8_t[]){1, 1, 0, 1, 1, 1, 1, 1, 1}));
}

static void integer_to_float_rounds_once(void **state) {
    (void)state;
    /* 2^60 + 2^52 is halfway between two bf16 numbers; one more is above it. So is 2^53 + 2^29 + 1
     * among f32. Both ones are lost on the way through a rounded float64. */
    int64_t x[] = {(INT64_C(1) << 60) + (INT64_C(1) << 52) + 1,
                   (INT64_C(1) << 60) + (INT64_C(1) << 52),
                   (INT64_C(1) << 54) + (INT64_C(1) << 30) + 1,
                   INT64_MIN,
                   INT64_MAX,
                   -3};
    uint16_t bf16[6];
    CONVERT(bf16, WICK_BF16, x, WICK_I64);
    ASSERT_BYTES(bf16, ((uint16_t[]){0x5d81, 0x5d80, 0x5a80, 0xdf00, 0x5f00, 0xc040}));
    float f32[6];
    CONVERT(f32, WICK_F32, x, WICK_I64);
    for (int i = 0; i < 6; i++) assert_true(f32[i] == (float)x[i]);
    double f64[6];
    CONVERT(f64, WICK_F64, x, WICK_I64);
    for (int i = 0; i < 6; i++) assert_true(f64[i] == (double)x[i]);
    uint16_t f16[6];
    CONVERT(f16, WICK_F16, x, WICK_I64);
    ASSERT_BYTES(f16, ((uint16_t[]){0x7c00, 0x7c00, 0x7c00, 0xfc00, 0x7c00, 0xc200}));
}

static void integers_keep_low_bits(void **state) {
    (void)state;
    int64_t x[] = {300, -1, 0x100000000, 65536 + 5};
    uint8_t u8[4];
    CONVERT(u8, WICK_U8, x, WICK_I64);
    ASSERT_BYTES(u8, ((uint8_t[]){44, 255, 0, 5}));
    int16_t i16[4];
    CONVERT(i16, WICK_I16, x, WICK_I64);
    ASSERT_BYTES(i16, ((int16_t[]){300, -1, 0, 5}));
    CONVERT(u8, WICK_BOOL, x, WICK_I64);
    ASSERT_BYTES(u8, ((uint8_t[]){1, 1, 1, 1}));
    uint32_t u32[] = {4294967295u};
    int64_t wide[1];
    CONVERT(wide, WICK_I64, u32, WICK_U32);
    assert_true(wide[0] == 4294967295);
    uint8_t flags[] = {0, 1};
    float f32[2];
    CONVERT(f32, WICK_F32, flags, WICK_BOOL);
    ASSERT_BYTES(f32, ((float[]){0, 1}));
}

static void between_floats(void **state) {
    (void)state;
    /* Rounded to f32 first, 1 + 2^-11 + 2^-40 would tie and go down. */
    double x[] = {1 + 0x1p-11 + 0x1p-40, -0.0, 0x1p-24, 65520, 1e300, NAN, 0x1.01p0 + 0x1p-40};
    uint16_t f16[7];
    CONVERT(f16, WICK_F16, x, WICK_F64);
    ASSERT_BYTES(f16, ((uint16_t[]){0x3c01, 0x8000, 0x0001, 0x7c00, 0x7c00, f16[5], f16[6]}));
    assert_true(isnan(wk_f16_to_f32(f16[5])));
    uint16_t bf16[7];
    CONVERT(bf16, WICK_BF16, x, WICK_F64);
    assert_int_equal(bf16[6], 0x3f81);
    float f32[7];
    CONVERT(f32, WICK_F32, x, WICK_F64);
    assert_true(f32[4] == INFINITY && signbit(f32[1]) && isnan(f32[5]));
}

static void same_dtype_is_moved_bit_for_bit(void **state) {
    (void)state;
    uint32_t x[] = {0x7f800001, 0x80000000, 1, 0xffc12345, 5, 6}, y[6]; /* a signalling NaN first */
    ref_case c;
    ref_begin(&c, WK_OP_COPY);
    REF_ADD(&c, y, WICK_F32, 3, 2);
    wk_view *view = REF_ADD(&c, x, WICK_F32, 3, 2);
    view->stride[0] = 1;
    view->stride[1] = 3;
    ref_run(&c);
    ASSERT_BYTES(y, ((uint32_t[]){0x7f800001, 0xffc12345, 0x80000000, 5, 1, 6}));
    int64_t wide[] = {INT64_MAX - 1}, copy[1];
    CONVERT(copy, WICK_I64, wide, WICK_I64);
    assert_true(copy[0] == wide[0]);
}

static void decodes_blocks(void **state) {
    (void)state;
    enum { K = 512, N = 3, BYTES = K / 32 * 34 };
    static uint8_t x[N * BYTES];
    for (size_t i = 0; i < sizeof x; i++) x[i] = (uint8_t)(i * 37 % 120);
    float expected[K];
    static float y[2][K];
    ref_case c;
    ref_begin(&c, WK_OP_COPY);
    REF_ADD(&c, y, WICK_F32, 2, K);
    wk_view *view = REF_ADD(&c, x, WICK_Q8_0, 2, K); /* rows 0 and 2 */
    view->stride[0] = 2 * K;
    ref_run(&c);
    for (int i = 0; i < 2; i++) {
        wk_decoder(WICK_Q8_0)(x + 2 * i * BYTES, expected, K);
        ASSERT_BYTES(y[i], expected);
    }
    view->stride[0] = K + 16; /* rows that start within a block */
    assert_null(wk_cpu_find_kernel(&c.op, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(float_to_integer_saturates),
        cmocka_unit_test(integer_to_float_rounds_once),
        cmocka_unit_test(integers_keep_low_bits),
        cmocka_unit_test(between_floats),
        cmocka_unit_test(same_dtype_is_moved_bit_for_bit),
        cmocka_unit_test(decodes_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
