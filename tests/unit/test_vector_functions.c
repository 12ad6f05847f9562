/* tests/unit/test_vector_functions.c: the vector kernels' functions against cpu/ref over the whole
 * range of floats, and the powers that C defines one by one; the same bits on every instruction
 * set. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "x86_case.h"

#include "core/half.h"

#include <math.h>
#include <stdio.h>

enum { N = 1 << 16 };

/* Floats of every sign, exponent and kind, in steps through their bits. */
static void fill_range(float *x) {
    for (uint32_t i = 0; i < N; i++) x[i] = wk_f32_from_bits(i * 65537);
    x[N / 2] = -0.0F;
}

static const wk_cpu_kernel *reference(wk_opcode code) {
    for (size_t i = 0;; i++) {
        const wk_cpu_kernel *const kernel = wk_cpu_kernel_at(i);
        assert_non_null(kernel);
        if (kernel->base.code == code && kernel->base.is_reference) return kernel;
    }
}

static void compare(const wk_op *op, const char *kernel, const float *want, const float *got) {
    const wk_tolerance tolerance = wk_op_tolerance(op, false);
    for (int i = 0; i < N; i++) {
        const bool has_sign = want[i] != 0 || got[i] != 0 || signbit(want[i]) == signbit(got[i]);
        if (has_sign && wk_tolerance_accepts(&tolerance, 0, (double)want[i], (double)got[i]))
            continue;
        const float *const a = wk_view_data(wk_src(op, 0));
        print_message("%s: function %d of %.9g is %.9g instead of %.9g\n", kernel,
                      (int)op->p.unary.fn, (double)a[i], (double)got[i], (double)want[i]);
        fail();
    }
}

/* NaN has many bits. */
static bool is_same(const float *a, const float *b) {
    for (int i = 0; i < N; i++)
        if (wk_f32_bits(a[i]) != wk_f32_bits(b[i]) && !(isnan(a[i]) && isnan(b[i]))) return false;
    return true;
}

/* op's result is memory[0]. Not all functions have vectors. */
static void check(const wk_op *op, const x86_memory *memory, bool has_vectors) {
    static float want[N], first[N];
    float *const y = x86_contents(memory);
    int n_run = 0;
    x86_run(reference(op->code), op, 1);
    memcpy(want, y, sizeof want);
    for (size_t at = 0; wk_cpu_kernel_at(at) != NULL; at++) {
        const wk_cpu_kernel *const k = wk_cpu_kernel_at(at);
        if (k->base.code != op->code || k->base.needs == 0 || !x86_can_run(k) ||
            !k->base.accepts(op))
            continue;
        memset(y, 0xFF, sizeof want);
        x86_run(k, op, 1);
        compare(op, k->base.name, want, y);
        if (n_run++ == 0) memcpy(first, y, sizeof first);
        assert_true(is_same(first, y));
    }
    if (wk_cpu_features() != 0 && has_vectors) assert_true(n_run > 0);
}

static void test_unary_range(void **state) {
    (void)state;
    static const double parameters[][2] = {{0.1, 0.3}, {-1, 2}, {3, 3}, {0.5, 1}};
    x86_memory memory[2];
    wk_op op = {.code = WK_OP_UNARY, .n_dst = 1, .n_src = 1};
    for (int i = 0; i < 2; i++) {
        x86_memory_make(&memory[i], N * sizeof(float));
        op.view[i] = x86_view(&memory[i], WICK_F32, 1, (const int64_t[]){N});
    }
    fill_range(x86_contents(&memory[1]));
    for (int fn = 0; fn < WK_UNARY_COUNT_; fn++) {
        for (size_t p = 0; p < sizeof parameters / sizeof *parameters; p++) {
            op.p.unary.fn = (wk_unary_fn)fn;
            op.p.unary.a = parameters[p][0];
            op.p.unary.b = parameters[p][1];
            check(&op, memory, fn != WK_UNARY_NOT);
        }
    }
    op.p.unary.fn = WK_UNARY_POW;
    op.p.unary.a = 1e-300; /* 0 as a float: no vectors */
    check(&op, memory, false);
    for (int i = 0; i < 2; i++) x86_memory_free(&memory[i]);
}

/* Every pair of these, then floats of the whole range. */
static void check_binary(wk_binary_fn fn) {
    static const float special[] = {
        0,     -0.0F,     1,        -1,     2,        -2,        3,    -3,          0.5F,
        -0.5F, 2.5F,      -2.5F,    1e-40F, -1e-40F,  150,       -151, 1e30F,       -1e30F,
        1e9F,  -16777215, 16777218, 0.1F,   INFINITY, -INFINITY, NAN,  0.99999994F, 1.0000001F};
    enum { N_SPECIAL = sizeof special / sizeof *special };
    x86_memory memory[3];
    wk_op op = {.code = WK_OP_BINARY, .n_dst = 1, .n_src = 2};
    op.p.binary = fn;
    for (int i = 0; i < 3; i++) {
        x86_memory_make(&memory[i], N * sizeof(float));
        op.view[i] = x86_view(&memory[i], WICK_F32, 1, (const int64_t[]){N});
    }
    float *const a = x86_contents(&memory[1]), *const b = x86_contents(&memory[2]);
    fill_range(a);
    wk_rng rng = {.seed = 1};
    for (int i = 0; i < N; i++) {
        b[i] = 20 * x86_random(&rng);
        if (i >= N_SPECIAL * N_SPECIAL) continue;
        a[i] = special[i / N_SPECIAL];
        b[i] = special[i % N_SPECIAL];
    }
    check(&op, memory, true);
    for (int i = 0; i < 3; i++) x86_memory_free(&memory[i]);
}

static void test_pow(void **state) {
    (void)state;
    check_binary(WK_BINARY_POW);
}

static void test_of_two(void **state) {
    (void)state;
    static const wk_binary_fn fns[] = {WK_BINARY_REMAINDER, WK_BINARY_FMOD,  WK_BINARY_FLOOR_DIVIDE,
                                       WK_BINARY_ATAN2,     WK_BINARY_HYPOT, WK_BINARY_COPYSIGN,
                                       WK_BINARY_LOGADDEXP, WK_BINARY_DIV,   WK_BINARY_MAXIMUM,
                                       WK_BINARY_NEXTAFTER};
    for (size_t i = 0; i < sizeof fns / sizeof *fns; i++) check_binary(fns[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unary_range),
        cmocka_unit_test(test_pow),
        cmocka_unit_test(test_of_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
