/* Headers of .npy files. */
#include "format/npy.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "checked_heap.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The header of shape: its dictionary must be dict, its size a multiple of 64. */
static void check_header(wick_dtype dtype, wick_shape shape, const char *dict) {
    checked_heap checked;
    checked_heap_init(&checked, 100);
    wk_strbuf buf;
    wk_strbuf_init(&buf, &checked.heap);
    assert_int_equal(wk_npy_header(&buf, dtype, &shape), WICK_OK);
    assert_int_equal(buf.size % 64, 0);
    assert_memory_equal(buf.data, "\x93NUMPY\x01\x00", 8);
    assert_int_equal((uint8_t)buf.data[8] + 256 * (uint8_t)buf.data[9], buf.size - 10);
    assert_memory_equal(buf.data + 10, dict, strlen(dict));
    for (size_t i = 10 + strlen(dict); i + 1 < buf.size; i++) assert_int_equal(buf.data[i], ' ');
    assert_int_equal(buf.data[buf.size - 1], '\n');
    wk_strbuf_release(&buf);
    assert_true(checked_heap_is_clean(&checked));
}

static void test_headers(void **state) {
    (void)state;
    check_header(WICK_F32, WICK_SHAPE(3, 32000),
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 32000), }");
    check_header(WICK_I64, WICK_SHAPE(7),
                 "{'descr': '<i8', 'fortran_order': False, 'shape': (7,), }");
    check_header(WICK_BOOL, WICK_SCALAR, "{'descr': '|b1', 'fortran_order': False, 'shape': (), }");
    check_header(WICK_F16, WICK_SHAPE(0, 2),
                 "{'descr': '<f2', 'fortran_order': False, 'shape': (0, 2), }");
    const int64_t most = INT64_MAX;
    check_header(WICK_U8, WICK_SHAPE(most, most, most, most, most, most),
                 "{'descr': '|u1', 'fortran_order': False, 'shape': (9223372036854775807, "
                 "9223372036854775807, 9223372036854775807, 9223372036854775807, "
                 "9223372036854775807, 9223372036854775807), }");
}

/* Every digit more moves the padding: 64 stays the divisor. */
static void test_padding(void **state) {
    (void)state;
    for (int64_t extent = 1; extent < INT64_MAX / 10; extent *= 10) {
        char dict[100];
        snprintf(dict, sizeof dict,
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (%" PRId64 ", 1), }", extent);
        check_header(WICK_F32, WICK_SHAPE(extent, 1), dict);
    }
}

static void test_appends(void **state) {
    (void)state;
    checked_heap checked;
    checked_heap_init(&checked, 100);
    wk_strbuf buf;
    wk_strbuf_init(&buf, &checked.heap);
    wk_strbuf_text(&buf, "front");
    assert_int_equal(wk_npy_header(&buf, WICK_F64, &(wick_shape){1, {2}}), WICK_OK);
    assert_memory_equal(buf.data, "front\x93NUMPY", 11);
    assert_int_equal((buf.size - 5) % 64, 0);
    wk_strbuf_release(&buf);
}

static void test_refused(void **state) {
    (void)state;
    checked_heap checked;
    checked_heap_init(&checked, 0);
    wk_strbuf buf;
    wk_strbuf_init(&buf, &checked.heap);
    assert_int_equal(wk_npy_header(&buf, WICK_BF16, &(wick_shape){1, {2}}), WICK_ERR_DTYPE);
    assert_int_equal(wk_npy_header(&buf, WICK_Q8_0, &(wick_shape){1, {32}}), WICK_ERR_DTYPE);
    assert_int_equal(wk_npy_header(&buf, WICK_F32, &(wick_shape){1, {2}}), WICK_ERR_OUT_OF_MEMORY);
    wk_strbuf_release(&buf);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_padding),
        cmocka_unit_test(test_appends),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests_name("npy", tests, NULL, NULL);
}
