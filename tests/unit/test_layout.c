/* tests/unit/test_layout.c: compute layouts hold exactly what the raw blocks hold. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "quant/layout.h"

#include "core/rng.h"
#include "quant/block.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    wk_layout layout;
    wick_dtype dtype;
    int64_t k_step;
} kinds[] = {
    {WK_LAYOUT_PANEL_F32, WICK_F32, 5},
    {WK_LAYOUT_PANEL_Q8, WICK_Q8_0, 32},
    {WK_LAYOUT_PANEL_Q4, WICK_Q4_1, 32},
};

static unsigned char *random_bytes(uint64_t size) {
    unsigned char *const bytes = malloc(size + 1);
    assert_non_null(bytes);
    wk_rng rng = {.seed = 3, .stream = size};
    for (uint64_t i = 0; i < size; i++) bytes[i] = (unsigned char)(wk_rng_u32(&rng) >> 24);
    return bytes;
}

/* Random bytes give every bit pattern of scales, NaN included: compared as bits. */
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
        assert_memory_equal(want, got, (size_t)k * sizeof *got);
    }
    free(raw);
    free(weight);
    free(want);
    free(got);
}

static void test_round_trip(void **state) {
    (void)state;
    static const int64_t sizes[] = {1, 15, 16, 17, 64, 65, 130, 200};
    for (int kind = 0; kind < 3; kind++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (int64_t blocks = 1; blocks <= 5; blocks += 2)
                round_trip(kind, sizes[i], blocks * kinds[kind].k_step);
}

/* Rows past n are zeros: their scales are, or their elements. */
static void test_padding_is_zero(void **state) {
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        const wk_layout layout = kinds[kind].layout;
        uint64_t raw_size = 0, size = 0;
        assert_true(wk_layout_bytes(WK_LAYOUT_RAW, kinds[kind].dtype, 3, 64, &raw_size));
        assert_true(wk_layout_bytes(layout, kinds[kind].dtype, 3, 64, &size));
        unsigned char *const raw = random_bytes(raw_size), *const weight = random_bytes(size);
        wk_layout_store(layout, kinds[kind].dtype, 3, 64, 0, 3, raw, weight);
        float row[64];
        for (int64_t r = 3; r < 16; r++) {
            wk_layout_decode_row(layout, kinds[kind].dtype, 16, 64, r, weight, row);
            for (int i = 0; i < 64; i++) assert_true(row[i] == 0);
        }
        free(raw);
        free(weight);
    }
}

static void test_accepts(void **state) {
    (void)state;
    uint64_t bytes = 0;
    assert_true(wk_layout_accepts(WK_LAYOUT_PANEL_Q8, WICK_Q8_0, 5, 64));
    assert_false(wk_layout_accepts(WK_LAYOUT_PANEL_Q8, WICK_Q8_0, 5, 48));
    assert_false(wk_layout_accepts(WK_LAYOUT_PANEL_Q8, WICK_Q4_1, 5, 64));
    assert_false(wk_layout_accepts(WK_LAYOUT_PANEL_Q4, WICK_Q8_0, 5, 64));
    assert_false(wk_layout_accepts(WK_LAYOUT_PANEL_F32, WICK_F16, 5, 64));
    assert_false(wk_layout_bytes(WK_LAYOUT_PANEL_F32, WICK_F32, INT64_MAX / 4, 1024, &bytes));
    assert_false(wk_layout_bytes(WK_LAYOUT_PANEL_F32, WICK_F32, 1, INT64_MAX, &bytes));
    assert_true(wk_layout_bytes(WK_LAYOUT_PANEL_Q4, WICK_Q4_1, 17, 64, &bytes));
    assert_int_equal(bytes, 2 * 16 * 2 * 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_padding_is_zero),
        cmocka_unit_test(test_accepts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
