/* reductions, softmax and rms_norm of cpu/ref. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "ref_case.h"

#include <math.h>

static void argmax_takes_the_first(void **state) {
    (void)state;
    float x[] = {1, 3, 3, 2, -0.0f, 0, -1, -5, -2, -INFINITY, -2, -7};
    uint32_t y[3];
    ref_case c;
    ref_begin(&c, WK_OP_REDUCE);
    REF_ADD(&c, y, WICK_U32, 3);
    REF_ADD(&c, x, WICK_F32, 3, 4);
    assert_false(ref_run(&c));
    ASSERT_BYTES(y, ((uint32_t[]){1, 0, 0}));

    uint32_t y2[4]; /* along the columns, y strided */
    ref_begin(&c, WK_OP_REDUCE);
    wk_view *view = REF_ADD(&c, y2, WICK_U32, 2, 2);
    view->stride[0] = 1;
    view->stride[1] = 2;
    view = REF_ADD(&c, x, WICK_F32, 2, 2, 3);
    view->stride[0] = 2;
    view->stride[1] = 1;
    view->stride[2] = 4;
    ref_run(&c);
    ASSERT_BYTES(y2, ((uint32_t[]){0, 0, 0, 0}));

    int64_t x64[] = {INT64_MAX - 1, INT64_MAX, INT64_MIN};
    uint32_t y0[1];
    ref_begin(&c, WK_OP_REDUCE);
    ref_add(&c, y0, sizeof y0, WICK_U32, WICK_SCALAR);
    REF_ADD(&c, x64, WICK_I64, 3);
    ref_run(&c);
    assert_int_equal(y0[0], 1);
}

static void reduces_several_strided_dims(void **state) {
    (void)state;
    float x[12], y[2];
    for (int i = 0; i < 12; i++) x[i] = (float)i;
    ref_case c;
    ref_begin(&c, WK_OP_REDUCE);
    REF_ADD(&c, y, WICK_F32, 2);
    wk_view *view = REF_ADD(&c, x, WICK_F32, 2, 3, 2); /* x [2, 3, 2], dims 1, 0, 2 */
    view->stride[0] = 1;
    view->stride[1] = 2;
    view->stride[2] = 6;
    static const float expected[][2] = {
        [WK_REDUCE_SUM] = {30, 36}, [WK_REDUCE_MEAN] = {5, 6},  [WK_REDUCE_MAX] = {10, 11},
        [WK_REDUCE_MIN] = {0, 1},   [WK_REDUCE_VAR] = {14, 14}, [WK_REDUCE_PROD] = {0, 10395}};
    c.op.p.reduce.correction = 1;
    for (int fn = WK_REDUCE_SUM; fn < WK_REDUCE_COUNT_; fn++) {
        c.op.p.reduce.fn = (wk_reduce_fn)fn;
        assert_false(ref_run(&c));
        ASSERT_BYTES(y, expected[fn]);
    }
}

static void log_softmax_of_rows(void **state) {
    (void)state;
    double x[] = {1000, 999, -INFINITY}, y[3];
    ref_case c;
    ref_begin(&c, WK_OP_SOFTMAX);
    REF_ADD(&c, y, WICK_F64, 3);
    REF_ADD(&c, x, WICK_F64, 3);
    c.op.p.softmax.is_log = true;
    ref_run(&c);
    assert_true(fabs(y[0] + log1p(exp(-1))) < 1e-15 && fabs(y[0] - y[1] - 1) < 1e-15);
    assert_true(y[2] == -(double)INFINITY);
}

static void softmax_of_rows(void **state) {
    (void)state;
    float x[] = {0, 1, 2, 1000, 999, -1000, -INFINITY, 0, 0}, y[9];
    ref_case c;
    ref_begin(&c, WK_OP_SOFTMAX);
    REF_ADD(&c, y, WICK_F32, 3, 3);
    REF_ADD(&c, x, WICK_F32, 3, 3);
    ref_run(&c);
    const double sum = 1 + exp(1) + exp(2);
    for (int i = 0; i < 3; i++) assert_true(fabs((double)y[i] - exp(i) / sum) < 1e-7);
    assert_true(fabs((double)y[3] - 1 / (1 + exp(-1))) < 1e-7);
    assert_true(y[5] == 0 && y[6] == 0 && y[7] == 0.5f && y[8] == 0.5f);
}

static void softmax_of_nothing_and_nan(void **state) {
    (void)state;
    float x[] = {-INFINITY, -INFINITY, NAN, 1, INFINITY, 1}, y[6];
    ref_case c;
    ref_begin(&c, WK_OP_SOFTMAX);
    REF_ADD(&c, y, WICK_F32, 3, 2);
    REF_ADD(&c, x, WICK_F32, 3, 2);
    ref_run(&c);
    for (int i = 0; i < 6; i++) assert_true(isnan(y[i]));
}

static void rms_norm_with_and_without_weight(void **state) {
    (void)state;
    double x[] = {3, 4, 0, 0, 1, 1, 1, 1}, y[8];
    float weight[] = {1, 2, 3, 4};
    ref_case c;
    ref_begin(&c, WK_OP_RMS_NORM);
    REF_ADD(&c, y, WICK_F64, 2, 4);
    REF_ADD(&c, x, WICK_F64, 2, 4);
    ref_skip(&c);
    c.op.p.norm.eps = 0.75f;
    ref_run(&c); /* the mean square is 6.25, and 1 */
    for (int i = 0; i < 4; i++) assert_true(fabs(y[i] - x[i] / sqrt(7)) < 1e-15);
    for (int i = 4; i < 8; i++) assert_true(fabs(y[i] - 1 / sqrt(1.75)) < 1e-15);

    ref_begin(&c, WK_OP_RMS_NORM);
    REF_ADD(&c, x, WICK_F64, 2, 4);
    REF_ADD(&c, x, WICK_F64, 2, 4);
    c.op.view[1].buf = c.op.view[0].buf;
    REF_ADD(&c, weight, WICK_F32, 4);
    c.op.p.norm.eps = 0.75f;
    ref_run(&c); /* in place */
    assert_true(fabs(x[1] - 8 / sqrt(7)) < 1e-15);
    assert_true(fabs(x[7] - 4 / sqrt(1.75)) < 1e-15);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(argmax_takes_the_first),
        cmocka_unit_test(reduces_several_strided_dims),
        cmocka_unit_test(log_softmax_of_rows),
        cmocka_unit_test(softmax_of_rows),
        cmocka_unit_test(softmax_of_nothing_and_nan),
        cmocka_unit_test(rms_norm_with_and_without_weight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
