/* unary, binary, compare, where, gated, fill and arange of cpu/ref. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "ref_case.h"

#include <math.h>

static void silu_of_every_float(void **state) {
    (void)state;
    float x[] = {0, -0.0f, 1, -1, 50, -1000, INFINITY}, y[7];
    ref_case c;
    ref_begin(&c, WK_OP_UNARY);
    REF_ADD(&c, y, WICK_F32, 7);
    REF_ADD(&c, x, WICK_F32, 7);
    c.op.p.unary.fn = WK_UNARY_SILU;
    assert_false(ref_run(&c));
    ASSERT_BYTES(
        y, ((float[]){0, -0.0f, 0.7310585786300049f, -0.2689414213699951f, 50, -0.0f, INFINITY}));

    double x64[] = {1}, y64[1];
    ref_begin(&c, WK_OP_UNARY);
    REF_ADD(&c, y64, WICK_F64, 1);
    REF_ADD(&c, x64, WICK_F64, 1);
    ref_run(&c);
    assert_true(y64[0] == 1 / (1 + exp(-1.0)));

    uint16_t x16[] = {0x3c00}, y16[1]; /* 1 */
    ref_begin(&c, WK_OP_UNARY);
    REF_ADD(&c, y16, WICK_F16, 1);
    REF_ADD(&c, x16, WICK_F16, 1);
    ref_run(&c);
    assert_int_equal(y16[0], 0x39d9); /* 0.73095703125, the nearest one to 0.73105857863 */
}

static void adds_and_multiplies_strided(void **state) {
    (void)state;
    float a[] = {1, 2, 3, 4, 5, 6}, b[] = {10, 20}, y[6];
    ref_case c;
    ref_begin(&c, WK_OP_BINARY);
    REF_ADD(&c, y, WICK_F32, 2, 3);
    wk_view *view = REF_ADD(&c, a, WICK_F32, 2, 3); /* transposed: a[j][i] of [3, 2] */
    view->stride[0] = 1;
    view->stride[1] = 2;
    view = REF_ADD(&c, b, WICK_F32, 2, 3); /* broadcast along the rows */
    view->stride[0] = 1;
    view->stride[1] = 0;
    c.op.p.binary = WK_BINARY_ADD;
    ref_run(&c);
    ASSERT_BYTES(y, ((float[]){11, 13, 15, 22, 24, 26}));
    c.op.p.binary = WK_BINARY_MUL;
    ref_run(&c);
    ASSERT_BYTES(y, ((float[]){10, 30, 50, 40, 80, 120}));
}

static void keeps_special_values(void **state) {
    (void)state;
    float a[] = {-0.0f, 1e-45f, INFINITY, NAN, 3e38f}, b[] = {-0.0f, 1e-45f, -INFINITY, 1, 3e38f},
          y[5];
    ref_case c;
    ref_begin(&c, WK_OP_BINARY);
    REF_ADD(&c, y, WICK_F32, 5);
    REF_ADD(&c, a, WICK_F32, 5);
    REF_ADD(&c, b, WICK_F32, 5);
    c.op.p.binary = WK_BINARY_ADD;
    ref_run(&c);
    assert_true(y[0] == 0 && signbit(y[0]));
    assert_true(y[1] == 3e-45f);
    assert_true(isnan(y[2]) && isnan(y[3]));
    assert_true(y[4] == INFINITY);
}

static void integers_wrap(void **state) {
    (void)state;
    int32_t a[] = {INT32_MAX, -5}, b[] = {1, 7}, y[2];
    ref_case c;
    ref_begin(&c, WK_OP_BINARY);
    REF_ADD(&c, y, WICK_I32, 2);
    REF_ADD(&c, a, WICK_I32, 2);
    REF_ADD(&c, b, WICK_I32, 2);
    c.op.p.binary = WK_BINARY_ADD;
    ref_run(&c);
    ASSERT_BYTES(y, ((int32_t[]){INT32_MIN, 2}));

    int64_t a64[] = {INT64_MAX, (INT64_C(1) << 62) + 1}, b64[] = {2, 2}, y64[2];
    ref_begin(&c, WK_OP_BINARY);
    REF_ADD(&c, y64, WICK_I64, 2);
    REF_ADD(&c, a64, WICK_I64, 2);
    REF_ADD(&c, b64, WICK_I64, 2);
    c.op.p.binary = WK_BINARY_MUL;
    ref_run(&c);
    ASSERT_BYTES(y64, ((int64_t[]){-2, INT64_MIN + 2}));

    uint8_t a8[] = {200, 255}, b8[] = {100, 255}, y8[2];
    ref_begin(&c, WK_OP_BINARY);
    REF_ADD(&c, y8, WICK_U8, 2);
    REF_ADD(&c, a8, WICK_U8, 2);
    REF_ADD(&c, b8, WICK_U8, 2);
    c.op.p.binary = WK_BINARY_ADD;
    ref_run(&c);
    ASSERT_BYTES(y8, ((uint8_t[]){44, 254}));
}

static void half_rounds_once(void **state) {
    (void)state;
    uint16_t a[] = {0x3c00, 0x7bff, 0x0001}, b[] = {0x1000, 0x7bff, 0x0001}, y[3];
    ref_case c;
    ref_begin(&c, WK_OP_BINARY);
    REF_ADD(&c, y, WICK_F16, 3);
    REF_ADD(&c, a, WICK_F16, 3);
    REF_ADD(&c, b, WICK_F16, 3);
    c.op.p.binary = WK_BINARY_ADD;
    ref_run(&c); /* 1 + 2^-11 ties to even; 65504 twice is infinite; subnormals add up */
    ASSERT_BYTES(y, ((uint16_t[]){0x3c00, 0x7c00, 0x0002}));
}

static void swiglu_in_place(void **state) {
    (void)state;
    float gate[600], up[600];
    for (int i = 0; i < 600; i++) {
        gate[i] = (float)(i - 300) / 40;
        up[i] = (float)(i % 7) - 3;
    }
    float expected[600];
    for (int i = 0; i < 600; i++) {
        const double g = (double)gate[i];
        expected[i] = (float)(g / (1 + exp(-g)) * (double)up[i]);
    }
    ref_case c;
    ref_begin(&c, WK_OP_GATED);
    REF_ADD(&c, gate, WICK_F32, 600);
    REF_ADD(&c, gate, WICK_F32, 600);
    REF_ADD(&c, up, WICK_F32, 600);
    c.op.view[1].buf = c.op.view[0].buf;
    ref_run(&c);
    ASSERT_BYTES(gate, expected);
}

static void divides_integers_of_every_kind(void **state) {
    (void)state;
    int32_t a[] = {7, -7, 5, INT32_MIN}, b[] = {2, 2, 0, -1}, y[4];
    ref_case c;
    ref_begin(&c, WK_OP_BINARY);
    REF_ADD(&c, y, WICK_I32, 4);
    REF_ADD(&c, a, WICK_I32, 4);
    REF_ADD(&c, b, WICK_I32, 4);
    c.op.p.binary = WK_BINARY_DIV;
    ref_run(&c);
    ASSERT_BYTES(y, ((int32_t[]){3, -3, 5, INT32_MIN}));
}

static void compares_what_float64_cannot_tell_apart(void **state) {
    (void)state;
    int64_t a[] = {INT64_MAX, INT64_MAX - 1, -1}, b[] = {INT64_MAX - 1, INT64_MAX - 1, 0};
    uint8_t y[3];
    static const uint8_t expected[][3] = {{0, 1, 0}, {1, 0, 1}, {0, 0, 1},
                                          {0, 1, 1}, {1, 0, 0}, {1, 1, 0}};
    ref_case c;
    ref_begin(&c, WK_OP_COMPARE);
    REF_ADD(&c, y, WICK_U8, 3);
    REF_ADD(&c, a, WICK_I64, 3);
    REF_ADD(&c, b, WICK_I64, 3);
    for (int fn = 0; fn < WK_COMPARE_COUNT_; fn++) {
        c.op.p.compare = (wk_compare_fn)fn;
        ref_run(&c);
        ASSERT_BYTES(y, expected[fn]);
    }
}

static void where_moves_bits(void **state) {
    (void)state;
    uint32_t a[] = {0x7F800001, 2, 3}, b[] = {4, 0x80000000, 6}; /* a signalling NaN, -0 */
    int64_t cond[] = {INT64_C(1) << 40, 0, -1};
    ref_case c;
    ref_begin(&c, WK_OP_WHERE);
    REF_ADD(&c, a, WICK_F32, 3);
    REF_ADD(&c, cond, WICK_I64, 3);
    REF_ADD(&c, a, WICK_F32, 3);
    REF_ADD(&c, b, WICK_F32, 3);
    c.op.view[2].buf = c.op.view[0].buf; /* in place */
    ref_run(&c);
    ASSERT_BYTES(a, ((uint32_t[]){0x7F800001, 0x80000000, 3}));
}

static void fills_strided_and_scalars(void **state) {
    (void)state;
    float y[8] = {0};
    ref_case c;
    ref_begin(&c, WK_OP_FILL);
    wk_view *view = REF_ADD(&c, y, WICK_F32, 2, 2);
    view->offset = sizeof *y;
    view->stride[0] = 4;
    view->stride[1] = 2;
    c.op.p.fill.real = 2.5;
    c.op.p.fill.integer = 7;
    ref_run(&c);
    ASSERT_BYTES(y, ((float[]){0, 2.5f, 0, 2.5f, 0, 2.5f, 0, 2.5f}));

    uint32_t scalar[1];
    ref_begin(&c, WK_OP_FILL);
    ref_add(&c, scalar, sizeof scalar, WICK_U32, WICK_SCALAR);
    c.op.p.fill.integer = 4000000000;
    ref_run(&c);
    assert_true(scalar[0] == 4000000000);

    uint8_t flags[2];
    ref_begin(&c, WK_OP_FILL);
    REF_ADD(&c, flags, WICK_BOOL, 2);
    c.op.p.fill.integer = 256;
    ref_run(&c);
    ASSERT_BYTES(flags, ((uint8_t[]){1, 1}));
}

static void counts_up_and_down(void **state) {
    (void)state;
    float y[4];
    ref_case c;
    ref_begin(&c, WK_OP_ARANGE);
    REF_ADD(&c, y, WICK_F32, 4);
    c.op.p.arange.start = 1;
    c.op.p.arange.step = -0.25;
    ref_run(&c);
    ASSERT_BYTES(y, ((float[]){1, 0.75f, 0.5f, 0.25f}));

    int64_t y64[3];
    ref_begin(&c, WK_OP_ARANGE);
    REF_ADD(&c, y64, WICK_I64, 3);
    c.op.p.arange.integer_start = (INT64_C(1) << 60) + 1;
    c.op.p.arange.integer_step = -3;
    ref_run(&c);
    ASSERT_BYTES(
        y64, ((int64_t[]){(INT64_C(1) << 60) + 1, (INT64_C(1) << 60) - 2, (INT64_C(1) << 60) - 5}));
}

static void empty_tensors(void **state) {
    (void)state;
    float nothing[1] = {5};
    ref_case c;
    ref_begin(&c, WK_OP_BINARY);
    for (int i = 0; i < 3; i++) REF_ADD(&c, nothing, WICK_F32, 2, 0, 3);
    c.op.view[1].buf = c.op.view[2].buf = c.op.view[0].buf;
    assert_false(ref_run(&c));
    assert_true(nothing[0] == 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silu_of_every_float),
        cmocka_unit_test(adds_and_multiplies_strided),
        cmocka_unit_test(keeps_special_values),
        cmocka_unit_test(integers_wrap),
        cmocka_unit_test(half_rounds_once),
        cmocka_unit_test(swiglu_in_place),
        cmocka_unit_test(divides_integers_of_every_kind),
        cmocka_unit_test(compares_what_float64_cannot_tell_apart),
        cmocka_unit_test(where_moves_bits),
        cmocka_unit_test(fills_strided_and_scalars),
        cmocka_unit_test(counts_up_and_down),
        cmocka_unit_test(empty_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
