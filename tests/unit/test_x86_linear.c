/* tests/unit/test_x86_linear.c: linear over panels against sums in float64, and the promise that
 * the number of columns, the split among threads and the instruction set do not change a bit. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "x86_case.h"

#include "core/half.h"

#include <math.h>
#include <stdio.h>

typedef struct fixture {
    wick_dtype dtype;
    wk_layout layout;
    int64_t m, n, k;
    x86_memory x, weight, bias;
    double *exact, *magnitude; /* [m, n]: result and sum of magnitudes */
} fixture;

static const struct {
    wick_dtype dtype;
    wk_layout layout;
    int block, block_bytes;
    int scale[2]; /* where the f16 scales of a block are, -1: nowhere */
} kinds[] = {
    {WICK_F32, WK_LAYOUT_PANEL_F32, 1, 4, {-1, -1}},
    {WICK_F16, WK_LAYOUT_PANEL_F16, 1, 2, {-1, -1}},
    {WICK_BF16, WK_LAYOUT_PANEL_BF16, 1, 2, {-1, -1}},
    {WICK_Q8_0, WK_LAYOUT_PANEL_Q8_0, 32, 34, {0, -1}},
    {WICK_Q4_0, WK_LAYOUT_PANEL_Q4_0, 32, 18, {0, -1}},
    {WICK_Q4_1, WK_LAYOUT_PANEL_Q4_1, 32, 20, {0, 2}},
    {WICK_Q5_0, WK_LAYOUT_PANEL_Q5_0, 32, 22, {0, -1}},
    {WICK_Q5_1, WK_LAYOUT_PANEL_Q5_1, 32, 24, {0, 2}},
    {WICK_Q2_K, WK_LAYOUT_PANEL_Q2_K, 256, 84, {80, 82}},
    {WICK_Q3_K, WK_LAYOUT_PANEL_Q3_K, 256, 110, {108, -1}},
    {WICK_Q4_K, WK_LAYOUT_PANEL_Q4_K, 256, 144, {0, 2}},
    {WICK_Q5_K, WK_LAYOUT_PANEL_Q5_K, 256, 176, {0, 2}},
    {WICK_Q6_K, WK_LAYOUT_PANEL_Q6_K, 256, 210, {208, -1}},
    {WICK_IQ1_S, WK_LAYOUT_PANEL_IQ1_S, 256, 50, {0, -1}},
    {WICK_IQ1_M, WK_LAYOUT_PANEL_IQ1_M, 256, 56, {-1, -1}},
    {WICK_IQ2_XXS, WK_LAYOUT_PANEL_IQ2_XXS, 256, 66, {0, -1}},
    {WICK_IQ2_XS, WK_LAYOUT_PANEL_IQ2_XS, 256, 74, {0, -1}},
    {WICK_IQ2_S, WK_LAYOUT_PANEL_IQ2_S, 256, 82, {0, -1}},
    {WICK_IQ3_XXS, WK_LAYOUT_PANEL_IQ3_XXS, 256, 98, {0, -1}},
    {WICK_IQ3_S, WK_LAYOUT_PANEL_IQ3_S, 256, 110, {0, -1}},
    {WICK_IQ4_NL, WK_LAYOUT_PANEL_IQ4_NL, 32, 18, {0, -1}},
    {WICK_IQ4_XS, WK_LAYOUT_PANEL_IQ4_XS, 256, 136, {0, -1}},
    {WICK_TQ1_0, WK_LAYOUT_PANEL_TQ1_0, 256, 54, {52, -1}},
    {WICK_TQ2_0, WK_LAYOUT_PANEL_TQ2_0, 256, 66, {64, -1}},
    {WICK_MXFP4, WK_LAYOUT_PANEL_MXFP4, 32, 17, {-1, -1}},
    {WICK_NVFP4, WK_LAYOUT_PANEL_NVFP4, 64, 36, {-1, -1}},
    {WICK_Q1_0, WK_LAYOUT_PANEL_Q1_0, 128, 18, {0, -1}},
    {WICK_Q2_0, WK_LAYOUT_PANEL_Q2_0, 64, 18, {0, -1}},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds, FIRST_QUANTS = 3 };

static void random_f16(wk_rng *rng, float scale, unsigned char *to) {
    const uint16_t half = wk_f32_to_f16(x86_random(rng) * scale);
    memcpy(to, &half, sizeof half);
}

static void random_element(wk_rng *rng, wick_dtype dtype, unsigned char *to) {
    const float value = x86_random(rng);
    const uint16_t half = dtype == WICK_F16 ? wk_f32_to_f16(value) : wk_f32_to_bf16(value);
    if (dtype == WICK_F32) {
        memcpy(to, &value, sizeof value);
    } else {
        memcpy(to, &half, sizeof half);
    }
}

/* Raw rows [n, k]: every quant, or where largest is not 0 the largest ones alone, and scales of
 * both signs. */
static unsigned char *random_rows(wk_rng *rng, int kind, int64_t n, int64_t k, float largest) {
    const wick_dtype dtype = kinds[kind].dtype;
    uint64_t size = 0;
    assert_true(wk_layout_bytes(WK_LAYOUT_RAW, dtype, n, k, &size));
    unsigned char *const rows = malloc(size + 1);
    assert_non_null(rows);
    for (uint64_t i = 0; i < size; i++)
        rows[i] = largest != 0 ? 255 : (unsigned char)(wk_rng_u32(rng) >> 24);
    for (uint64_t i = 0; i < size; i += (uint64_t)kinds[kind].block_bytes) {
        if (kinds[kind].block == 1) random_element(rng, dtype, rows + i);
        if (dtype == WICK_MXFP4) rows[i] = (unsigned char)(118 + rows[i] % 16); /* exponent */
        if (dtype == WICK_IQ1_M) rows[i + 55] = (rows[i + 55] & 0x8F) | 0x20;   /* exponent */
        if (kinds[kind].scale[0] >= 0) random_f16(rng, 0.01F, rows + i + kinds[kind].scale[0]);
        if (kinds[kind].scale[1] >= 0) random_f16(rng, 0.07F, rows + i + kinds[kind].scale[1]);
    }
    return rows;
}

/* k is rounded up to whole blocks. largest: 0, or what all of x is, with the largest quants. */
static void fixture_make_of(fixture *f, int kind, int64_t m, int64_t n, int64_t k, bool has_bias,
                            float largest) {
    k = (k + kinds[kind].block - 1) / kinds[kind].block * kinds[kind].block;
    wk_rng rng = {.seed = 7, .stream = (uint64_t)(m * 1000003 + n * 1009 + k)};
    *f = (fixture){kinds[kind].dtype, kinds[kind].layout, m, n, k, {0}, {0}, {0}, NULL, NULL};
    x86_memory_make(&f->x, (size_t)(m * k) * sizeof(float));
    float *const x = x86_contents(&f->x);
    for (int64_t i = 0; i < m * k; i++)
        x[i] = largest != 0 ? largest : x86_random(&rng) * (i % 97 == 5 ? 8.0F : 1.0F);
    uint64_t size = 0;
    assert_true(wk_layout_bytes(f->layout, f->dtype, n, k, &size));
    x86_memory_make(&f->weight, size);
    unsigned char *const rows = random_rows(&rng, kind, n, k, largest);
    wk_layout_store(f->layout, f->dtype, n, k, 0, n, rows, x86_contents(&f->weight));
    free(rows);
    if (has_bias) {
        x86_memory_make(&f->bias, (size_t)n * sizeof(float));
        for (int64_t i = 0; i < n; i++) ((float *)x86_contents(&f->bias))[i] = x86_random(&rng);
    }
    f->exact = calloc((size_t)(m * n), sizeof(double));
    f->magnitude = calloc((size_t)(m * n), sizeof(double));
    float *const row = malloc((size_t)k * sizeof(float) + 1);
    assert_true(f->exact != NULL && f->magnitude != NULL && row != NULL);
    for (int64_t r = 0; r < n; r++) {
        wk_layout_decode_row(f->layout, f->dtype, n, k, r, x86_contents(&f->weight), row);
        const double b = has_bias ? (double)((float *)x86_contents(&f->bias))[r] : 0;
        for (int64_t c = 0; c < m; c++) {
            double sum = b, magnitude = fabs(b);
            for (int64_t i = 0; i < k; i++) {
                sum += (double)row[i] * (double)x[c * k + i];
                magnitude += fabs((double)row[i] * (double)x[c * k + i]);
            }
            f->exact[c * n + r] = sum;
            f->magnitude[c * n + r] = magnitude;
        }
    }
    free(row);
}

static void fixture_make(fixture *f, int kind, int64_t m, int64_t n, int64_t k, bool has_bias) {
    fixture_make_of(f, kind, m, n, k, has_bias, 0);
}

static void fixture_free(fixture *f) {
    x86_memory_free(&f->x);
    x86_memory_free(&f->weight);
    if (f->bias.base != NULL) x86_memory_free(&f->bias);
    free(f->exact);
    free(f->magnitude);
}

/* y rows [first, first + m) of the fixture, [m, n] dense in *y; false where the kernel refuses. */
static bool fixture_run(fixture *f, const wk_cpu_kernel *kernel, int64_t first, int64_t m,
                        int64_t step, float *out) {
    x86_memory y;
    x86_memory_make(&y, (size_t)(m * f->n) * sizeof(float));
    wk_op op = {.code = WK_OP_LINEAR, .n_dst = 1, .n_src = 3};
    op.p.linear.fast = kernel->base.is_fast;
    op.view[0] = x86_view(&y, WICK_F32, 2, (const int64_t[]){m, f->n});
    op.view[1] = x86_view(&f->x, WICK_F32, 2, (const int64_t[]){m, f->k});
    op.view[1].offset += (uint64_t)(first * f->k) * sizeof(float);
    op.view[2] = x86_view(&f->weight, f->dtype, 2, (const int64_t[]){f->n, f->k});
    op.view[2].layout = (uint8_t)f->layout;
    if (f->bias.base != NULL) op.view[3] = x86_view(&f->bias, WICK_F32, 1, &f->n);
    const bool accepts = kernel->base.code == WK_OP_LINEAR && kernel->base.accepts(&op);
    if (accepts) {
        x86_run(kernel, &op, step);
        memcpy(out, x86_contents(&y), (size_t)(m * f->n) * sizeof(float));
    }
    x86_memory_free(&y);
    return accepts;
}

/* Calls with each kernel of x86 that this processor can run. */
static const wk_cpu_kernel *next_kernel(size_t *at) {
    for (;;) {
        const wk_cpu_kernel *const kernel = wk_cpu_kernel_at((*at)++);
        if (kernel == NULL) return NULL;
        if (kernel->base.code == WK_OP_LINEAR && kernel->base.needs != 0 && x86_can_run(kernel))
            return kernel;
    }
}

static void compare(const fixture *f, const wk_cpu_kernel *kernel, const float *y) {
    double square = 0, error_square = 0;
    for (int64_t i = 0; i < f->m * f->n; i++) {
        const double error = (double)y[i] - f->exact[i];
        const double bound = (kernel->base.is_fast ? 7e-2 : 4e-7) * f->magnitude[i] + 1e-30;
        if (!(fabs(error) <= bound)) {
            print_message("%s m %d n %d k %d element %d: %g instead of %g\n", kernel->base.name,
                          (int)f->m, (int)f->n, (int)f->k, (int)i, (double)y[i], f->exact[i]);
            fail();
        }
        square += f->exact[i] * f->exact[i];
        error_square += error * error;
    }
    if (f->m * f->n >= 500 &&
        !(sqrt(error_square / square) < (kernel->base.is_fast ? 2e-2 : 5e-7))) {
        print_message("%s: relative error %g\n", kernel->base.name, sqrt(error_square / square));
        fail();
    }
}

/* With every kernel that takes it, or every fast one. */
static void compare_all(fixture *f, int64_t n_parts, bool has_exact) {
    float *const y = malloc((size_t)(f->m * f->n) * sizeof(float));
    assert_non_null(y);
    int n_run = 0;
    size_t at = 0;
    for (const wk_cpu_kernel *k = next_kernel(&at); k != NULL; k = next_kernel(&at)) {
        if (!has_exact && !k->base.is_fast) continue;
        if (!fixture_run(f, k, 0, f->m, n_parts, y)) continue;
        compare(f, k, y);
        n_run++;
    }
    if (wk_cpu_features() & WK_CPU_AVX2) assert_true(n_run > 0);
    free(y);
}

static void test_against_double(void **state) {
    (void)state;
    static const int64_t cases[][3] = {
        {1, 1, 32},   {1, 16, 64},  {1, 100, 576},  {2, 17, 96},   {3, 33, 32},  {4, 64, 128},
        {5, 47, 160}, {6, 31, 576}, {7, 40, 1536},  {12, 15, 96},  {13, 48, 64}, {24, 33, 192},
        {25, 80, 32}, {31, 65, 96}, {37, 130, 576}, {70, 49, 288}, {8, 96, 64},  {11, 129, 96},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int kind = 0; kind < N_KINDS; kind++) {
            fixture f;
            fixture_make(&f, kind, cases[i][0], cases[i][1], cases[i][2], i % 2 == 1);
            compare_all(&f, 1 + (int64_t)i % 3, true);
            fixture_free(&f);
        }
    }
}

/* Sums of 16 bits hold the products of the largest numbers. */
static void test_largest(void **state) {
    (void)state;
    for (int kind = FIRST_QUANTS; kind < N_KINDS; kind++) {
        for (int64_t m = 1; m <= 5; m++) {
            for (float x = -1; x <= 1; x += 2) {
                fixture f;
                fixture_make_of(&f, kind, m, 33, 256, false, x);
                compare_all(&f, 1, false);
                fixture_free(&f);
            }
        }
    }
}

/* k that no block divides. */
static void test_float_any_k(void **state) {
    (void)state;
    for (int kind = 0; kind < FIRST_QUANTS; kind++) {
        for (int64_t k = 0; k <= 70; k += 7) {
            for (int64_t m = 1; m <= 14; m += 13) {
                fixture f;
                fixture_make(&f, kind, m, 21, k, true);
                float y[14 * 21];
                size_t at = 0;
                for (const wk_cpu_kernel *e = next_kernel(&at); e != NULL; e = next_kernel(&at))
                    if (fixture_run(&f, e, 0, m, 1, y)) compare(&f, e, y);
                fixture_free(&f);
            }
        }
    }
}

/* Each row alone, and the first 1 ... 40 rows together, on every instruction set; the exact kernels
 * among themselves and the fast ones among themselves. */
static void same_bits(fixture *f, bool is_fast) {
    const size_t row = (size_t)f->n * sizeof(float);
    char *const want = malloc((size_t)f->m * row);
    float *const y = malloc((size_t)f->m * row);
    assert_true(want != NULL && y != NULL);
    bool has_want = false;
    size_t at = 0;
    for (const wk_cpu_kernel *k = next_kernel(&at); k != NULL; k = next_kernel(&at)) {
        if (k->base.is_fast != is_fast || !fixture_run(f, k, 0, 1, 1, y)) continue;
        for (int64_t c = 0; c < f->m; c++) {
            assert_true(fixture_run(f, k, c, 1, 1, y));
            if (!has_want) memcpy(want + (size_t)c * row, y, row);
            assert_memory_equal(want + (size_t)c * row, y, row);
        }
        has_want = true;
        for (int64_t m = 1; m <= f->m; m++) {
            assert_true(fixture_run(f, k, 0, m, 1 + m % 2, y));
            assert_memory_equal(want, y, (size_t)m * row);
        }
    }
    free(want);
    free(y);
}

static void test_same_bits(void **state) {
    (void)state;
    for (int kind = 0; kind < N_KINDS; kind++) {
        fixture f;
        fixture_make(&f, kind, 40, 52, 224, true);
        same_bits(&f, false);
        same_bits(&f, true);
        fixture_free(&f);
    }
}

/* A NaN or an infinity in one row of x reaches all of its results and no other row. */
static void test_not_finite(void **state) {
    (void)state;
    enum { M = 9, N = 20, K = 256 };
    for (int kind = 0; kind < N_KINDS; kind++) {
        fixture f;
        fixture_make(&f, kind, M, N, K, false);
        ((float *)x86_contents(&f.x))[3 * K + 40] = kind % 2 == 1 ? INFINITY : NAN;
        float y[M * N];
        size_t at = 0;
        for (const wk_cpu_kernel *k = next_kernel(&at); k != NULL; k = next_kernel(&at)) {
            if (!fixture_run(&f, k, 0, M, 1, y)) continue;
            for (int i = 0; i < M * N; i++) assert_int_equal(isfinite(y[i]) != 0, i / N != 3);
        }
        fixture_free(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_double), cmocka_unit_test(test_largest),
        cmocka_unit_test(test_float_any_k),    cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
