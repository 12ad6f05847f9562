/* tests/unit/test_layout.c: compute layouts hold exactly what the raw blocks hold. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "quant/layout.h"

#include "core/rng.h"
#include "quant/block.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    wk_layout layout;
    wick_dtype dtype;
    int64_t k_step;
    int64_t panel_bytes; /* of k_step elements */
} kinds[] = {
    {WK_LAYOUT_PANEL_F32, WICK_F32, 5, 5 * 16 * 4},
    {WK_LAYOUT_PANEL_F16, WICK_F16, 5, 5 * 16 * 2},
    {WK_LAYOUT_PANEL_BF16, WICK_BF16, 5, 5 * 16 * 2},
    {WK_LAYOUT_PANEL_Q8_0, WICK_Q8_0, 32, 16 * 34},
    {WK_LAYOUT_PANEL_Q4_0, WICK_Q4_0, 32, 16 * 18},
    {WK_LAYOUT_PANEL_Q4_1, WICK_Q4_1, 32, 16 * 20},
    {WK_LAYOUT_PANEL_Q5_0, WICK_Q5_0, 32, 16 * 22},
    {WK_LAYOUT_PANEL_Q5_1, WICK_Q5_1, 32, 16 * 24},
    {WK_LAYOUT_PANEL_Q2_K, WICK_Q2_K, 256, 16 * 84},
    {WK_LAYOUT_PANEL_Q3_K, WICK_Q3_K, 256, 16 * 114},
    {WK_LAYOUT_PANEL_Q4_K, WICK_Q4_K, 256, 16 * 148},
    {WK_LAYOUT_PANEL_Q5_K, WICK_Q5_K, 256, 16 * 180},
    {WK_LAYOUT_PANEL_Q6_K, WICK_Q6_K, 256, 16 * 210},
    {WK_LAYOUT_PANEL_IQ1_S, WICK_IQ1_S, 256, 16 * 50},
    {WK_LAYOUT_PANEL_IQ1_M, WICK_IQ1_M, 256, 16 * 58},
    {WK_LAYOUT_PANEL_IQ2_XXS, WICK_IQ2_XXS, 256, 16 * 74},
    {WK_LAYOUT_PANEL_IQ2_XS, WICK_IQ2_XS, 256, 16 * 82},
    {WK_LAYOUT_PANEL_IQ2_S, WICK_IQ2_S, 256, 16 * 82},
    {WK_LAYOUT_PANEL_IQ3_XXS, WICK_IQ3_XXS, 256, 16 * 106},
    {WK_LAYOUT_PANEL_IQ3_S, WICK_IQ3_S, 256, 16 * 114},
    {WK_LAYOUT_PANEL_IQ4_NL, WICK_IQ4_NL, 32, 16 * 18},
    {WK_LAYOUT_PANEL_IQ4_XS, WICK_IQ4_XS, 256, 16 * 138},
    {WK_LAYOUT_PANEL_TQ1_0, WICK_TQ1_0, 256, 16 * 58},
    {WK_LAYOUT_PANEL_TQ2_0, WICK_TQ2_0, 256, 16 * 66},
    {WK_LAYOUT_PANEL_MXFP4, WICK_MXFP4, 32, 16 * 18},
    {WK_LAYOUT_PANEL_NVFP4, WICK_NVFP4, 64, 16 * 40},
    {WK_LAYOUT_PANEL_Q1_0, WICK_Q1_0, 128, 16 * 18},
    {WK_LAYOUT_PANEL_Q2_0, WICK_Q2_0, 64, 16 * 18},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static unsigned char *random_bytes(uint64_t size) {
    unsigned char *const bytes = malloc(size + 1);
    assert_non_null(bytes);
    wk_rng rng = {.seed = 3, .stream = size};
    for (uint64_t i = 0; i < size; i++) bytes[i] = (unsigned char)(wk_rng_u32(&rng) >> 24);
    return bytes;
}

/* Random bytes give every bit pattern of scales, infinities and NaN included. Compared as bits, but
 * for NaN, of which two operands may give either. */
static void round_trip(int kind, int64_t n, int64_t k) {
    const wk_layout layout = kinds[kind].layout;
    const wick_dtype dtype = kinds[kind].dtype;
    uint64_t raw_size = 0, size = 0;
    assert_true(wk_layout_bytes(WK_LAYOUT_RAW, dtype, n, k, &raw_size));
    assert_true(wk_layout_bytes(layout, dtype, n, k, &size));
    unsigned char *const raw = random_bytes(raw_size), *const weight = random_bytes(size);
    for (int64_t row = 0; row < n; row += 64)
        wk_layout_store(layout, dtype, n, k, row, n - row < 64 ? n - row : 64,
                        raw + raw_size / (uint64_t)n * (uint64_t)row, weight);
    float *const want = malloc((size_t)(k + 1) * sizeof(float));
    float *const got = malloc((size_t)(k + 1) * sizeof(float));
    assert_true(want != NULL && got != NULL);
    for (int64_t row = 0; row < n; row++) {
        wk_layout_decode_row(WK_LAYOUT_RAW, dtype, n, k, row, raw, want);
        wk_layout_decode_row(layout, dtype, n, k, row, weight, got);
        for (int64_t i = 0; i < k; i++)
            if (!isnan(want[i]) || !isnan(got[i]))
                assert_memory_equal(want + i, got + i, sizeof *got);
    }
    free(raw);
    free(weight);
    free(want);
    free(got);
}

static void test_round_trip(void **state) {
    (void)state;
    static const int64_t sizes[] = {1, 15, 16, 17, 64, 65, 130, 200};
    for (int kind = 0; kind < N_KINDS; kind++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (int64_t blocks = 1; blocks <= 5; blocks += 2)
                round_trip(kind, sizes[i], blocks * kinds[kind].k_step);
}

/* Rows past n are zeros: their scales are, or their elements. */
static void test_padding_is_zero(void **state) {
    (void)state;
    enum { N = 3, K = 256 };
    for (int kind = 0; kind < N_KINDS; kind++) {
        const wk_layout layout = kinds[kind].layout;
        const wick_dtype dtype = kinds[kind].dtype;
        uint64_t raw_size = 0, size = 0;
        assert_true(wk_layout_bytes(WK_LAYOUT_RAW, dtype, N, K, &raw_size));
        assert_true(wk_layout_bytes(layout, dtype, N, K, &size));
        unsigned char *const raw = random_bytes(raw_size), *const weight = random_bytes(size);
        wk_layout_store(layout, dtype, N, K, 0, N, raw, weight);
        float row[K];
        for (int64_t r = N; r < WK_PANEL_ROWS; r++) {
            wk_layout_decode_row(layout, dtype, WK_PANEL_ROWS, K, r, weight, row);
            for (int i = 0; i < K; i++) assert_true(row[i] == 0);
        }
        free(raw);
        free(weight);
    }
}

/* A layout is for one type, and whole blocks of it. */
static void test_accepts(void **state) {
    (void)state;
    for (int kind = 0; kind < N_KINDS; kind++) {
        const wk_layout layout = kinds[kind].layout;
        const int64_t k = kinds[kind].k_step;
        for (int other = 0; other < N_KINDS; other++)
            assert_int_equal(wk_layout_accepts(layout, kinds[other].dtype, 5, 256), kind == other);
        assert_false(wk_layout_accepts(layout, WICK_Q8_K, 5, 256));
        assert_true(wk_layout_accepts(layout, kinds[kind].dtype, 5, 3 * k));
        if (k > 5) assert_false(wk_layout_accepts(layout, kinds[kind].dtype, 5, k + 16));
    }
}

static void test_bytes(void **state) {
    (void)state;
    uint64_t bytes = 0;
    for (int kind = 0; kind < N_KINDS; kind++) {
        const wick_dtype dtype = kinds[kind].dtype;
        assert_true(wk_layout_bytes(kinds[kind].layout, dtype, 17, 3 * kinds[kind].k_step, &bytes));
        assert_int_equal(bytes, 2 * 3 * kinds[kind].panel_bytes);
        uint64_t raw = 0; /* of a panel's rows; nothing grows by more than 15 % */
        assert_true(wk_layout_bytes(WK_LAYOUT_RAW, dtype, 32, 3 * kinds[kind].k_step, &raw));
        assert_true(20 * bytes <= 23 * raw);
    }
    assert_false(wk_layout_bytes(WK_LAYOUT_PANEL_F32, WICK_F32, INT64_MAX / 4, 1024, &bytes));
    assert_false(wk_layout_bytes(WK_LAYOUT_PANEL_F32, WICK_F32, 1, INT64_MAX, &bytes));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_padding_is_zero),
        cmocka_unit_test(test_accepts),
        cmocka_unit_test(test_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
