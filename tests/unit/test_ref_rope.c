/* Rotary embedding of cpu/ref: as rotations of complex numbers, and the table against the angles.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "ref_case.h"

#include <math.h>

enum { B = 2, T = 3, H = 2, D = 6, R = 4, N = B * T * H * D };

static uint32_t positions[B * T] = {0, 1, 7, 131071, 5, 2};

static void fill(double *x) {
    for (int i = 0; i < N; i++) x[i] = sin(i * 1.7) * 3;
}

static void angles_are_of_float64(void **state) {
    (void)state;
    double x[N], y[N];
    fill(x);
    for (int interleaved = 0; interleaved < 2; interleaved++) {
        ref_case c;
        ref_begin(&c, WK_OP_ROPE);
        REF_ADD(&c, y, WICK_F64, B, T, H, D);
        REF_ADD(&c, x, WICK_F64, B, T, H, D);
        REF_ADD(&c, positions, WICK_U32, B, T);
        c.op.p.rope.theta = 10000;
        c.op.p.rope.scale_factor = 2;
        c.op.p.rope.rotary_dim = R;
        c.op.p.rope.interleaved = interleaved == 1;
        assert_false(ref_run(&c));
        for (int row = 0; row < B * T * H; row++) {
            const double *from = x + row * D, *to = y + row * D;
            for (int i = 0; i < R / 2; i++) {
                const int a = interleaved ? 2 * i : i, b = interleaved ? 2 * i + 1 : i + R / 2;
                const double angle = positions[row / H] / 2.0 / (i == 0 ? 1 : 100);
                const double turned = atan2(from[b], from[a]) + angle;
                const double length = hypot(from[a], from[b]);
                assert_true(fabs(to[a] - length * cos(turned)) < 1e-10);
                assert_true(fabs(to[b] - length * sin(turned)) < 1e-10);
            }
            for (int i = R; i < D; i++) assert_true(to[i] == from[i]);
        }
    }
}

static void table_equals_angles(void **state) {
    (void)state;
    double x[N], y[N], expected[N];
    float cosines[B * T * R / 2], sines[B * T * R / 2];
    fill(x);
    for (int i = 0; i < B * T * R / 2; i++) {
        const double angle = positions[i / 2] * (i % 2 == 0 ? 1 : 0.01);
        cosines[i] = (float)cos(angle);
        sines[i] = (float)sin(angle);
    }
    for (int interleaved = 0; interleaved < 2; interleaved++) {
        ref_case c;
        ref_begin(&c, WK_OP_ROPE);
        REF_ADD(&c, expected, WICK_F64, B, T, H, D);
        REF_ADD(&c, x, WICK_F64, B, T, H, D);
        REF_ADD(&c, positions, WICK_U32, B, T);
        c.op.p.rope.theta = 10000;
        c.op.p.rope.scale_factor = 1;
        c.op.p.rope.rotary_dim = R;
        c.op.p.rope.interleaved = interleaved == 1;
        ref_run(&c);
        memcpy(y, x, sizeof y);
        ref_begin(&c, WK_OP_ROPE_TABLE); /* in place */
        REF_ADD(&c, y, WICK_F64, B, T, H, D);
        REF_ADD(&c, y, WICK_F64, B, T, H, D);
        c.op.view[1].buf = c.op.view[0].buf;
        REF_ADD(&c, cosines, WICK_F32, B, T, R / 2);
        REF_ADD(&c, sines, WICK_F32, B, T, R / 2);
        c.op.p.rope_table.interleaved = interleaved == 1;
        ref_run(&c);
        for (int i = 0; i < N; i++) assert_true(fabs(y[i] - expected[i]) < 1e-6);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(angles_are_of_float64),
        cmocka_unit_test(table_equals_angles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
