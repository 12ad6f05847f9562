/* The table of data types. */
#include "core/dtype.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static void test_table(void **state) {
    (void)state;
    for (int i = 0; i < WICK_DTYPE_COUNT_; i++) {
        const wick_dtype dtype = (wick_dtype)i;
        const wk_dtype_info *const info = wk_dtype_get(dtype);
        assert_non_null(info->name);
        assert_ptr_equal(wick_dtype_name(dtype), info->name);
        assert_true(info->block_elements >= 1 && info->block_bytes >= 1);
        assert_int_equal(wk_dtype_is_block(dtype), info->block_elements > 1);
        wick_dtype found;
        if (info->ggml_type < 0) continue;
        assert_true(wk_dtype_from_ggml((uint32_t)info->ggml_type, &found));
        assert_int_equal(found, dtype); /* no number twice */
    }
    assert_string_equal(wick_dtype_name((wick_dtype)-1), "unknown");
    assert_string_equal(wick_dtype_name(WICK_DTYPE_COUNT_), "unknown");
}

static void test_numbers(void **state) {
    (void)state;
    static const struct {
        uint32_t ggml_type;
        const char *name;
    } known[] = {{0, "f32"},      {1, "f16"},     {8, "q8_0"},   {12, "q4_k"},
                 {16, "iq2_xxs"}, {23, "iq4_xs"}, {28, "f64"},   {30, "bf16"},
                 {35, "tq2_0"},   {39, "mxfp4"},  {40, "nvfp4"}, {42, "q2_0"}};
    wick_dtype dtype;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        assert_true(wk_dtype_from_ggml(known[i].ggml_type, &dtype));
        assert_string_equal(wick_dtype_name(dtype), known[i].name);
    }
    /* The gaps are types that were removed from the format. */
    static const uint32_t unknown[] = {4, 5, 31, 33, 36, 38, 43, 1000, UINT32_MAX};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        assert_false(wk_dtype_from_ggml(unknown[i], &dtype));
    }
}

static void test_classes(void **state) {
    (void)state;
    assert_true(wk_dtype_is_float(WICK_BF16) && wk_dtype_is_float(WICK_F64));
    assert_false(wk_dtype_is_float(WICK_I32) || wk_dtype_is_float(WICK_Q4_0));
    assert_true(wk_dtype_is_block(WICK_Q2_0));
    assert_false(wk_dtype_is_block(WICK_BOOL));
    assert_false(wk_dtype_is_scalar(WICK_F8_E4M3) || wk_dtype_is_float(WICK_F8_E5M2));
    assert_true(wk_dtype_is_real(WICK_F8_E4M3) && wk_dtype_is_real(WICK_F16));
    assert_true(wk_dtype_is_scalar(WICK_BOOL) && !wk_dtype_is_scalar(WICK_Q4_0));
    assert_int_equal(wk_dtype_get(WICK_U8)->dtype_class, WK_CLASS_INTEGER);
}

static void test_bytes(void **state) {
    (void)state;
    uint64_t bytes = 0;
    assert_true(wk_dtype_bytes(WICK_F32, 10, &bytes) && bytes == 40);
    assert_true(wk_dtype_bytes(WICK_Q4_K, 1024, &bytes) && bytes == 576);
    assert_true(wk_dtype_bytes(WICK_Q8_0, 0, &bytes) && bytes == 0);
    assert_false(wk_dtype_bytes(WICK_Q8_0, 33, &bytes));
    assert_false(wk_dtype_bytes(WICK_F32, -4, &bytes));
    assert_false(wk_dtype_bytes(WICK_F64, INT64_MAX, &bytes));
    assert_true(wk_dtype_bytes(WICK_I8, INT64_MAX, &bytes) && bytes == INT64_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
