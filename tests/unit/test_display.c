/* Tensors as text, as NumPy 2.4 printed the same arrays (np.array2string), and single values. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "checked_heap.h"

#include "core/compiler.h"
#include "tensor/device.h"

#include <wick/ops.h>

#include <string.h>

static int open_device(void **state) {
    wick_device *device;
    wick_error error = {0};
    if (wick_device_open(NULL, &device, &error) != WICK_OK) fail_msg("%s", error.message);
    *state = device;
    return 0;
}

static int close_device(void **state) {
    wick_device_close(*state);
    return 0;
}

/* Takes the tensor. */
static void expect_text(wick_tensor *tensor, const char *expected) {
    char text[2048];
    size_t length;
    assert_int_equal(wick_read_text(tensor, text, sizeof text, &length), WICK_OK);
    assert_string_equal(text, expected);
    assert_int_equal(length, strlen(expected));
    wick_release(tensor);
}

#define EXPECT(device, dtype, shape, data, expected)                                               \
    expect_text(wick_tensor_from_data(device, dtype, shape, data, sizeof(data)), expected)

static void test_floats(void **state) {
    wick_device *const device = *state;
    const float small[6] = {1, 2, 3, 4, 5.5F, -6.25F}, wide[3] = {1e-4F, 1, 12345.5F};
    const float thirds[2] = {0.1F, 1.0F / 3};
    const double holes[3] = {1.5, NAN, -INFINITY}, tiny[2] = {1e-300, 1}, nothing[1] = {NAN};
    const uint16_t halves[3] = {0x2e66, 0x7bff, 0x0002}, brains[3] = {0x3f80, 0xbf00, 0x8000};
    EXPECT(device, WICK_F32, WICK_SHAPE(2, 3), small,
           "[[ 1.    2.    3.  ]\n [ 4.    5.5  -6.25]] f32[2, 3]");
    EXPECT(device, WICK_F32, WICK_SHAPE(3), wide, "[1.00000e-04 1.00000e+00 1.23455e+04] f32[3]");
    EXPECT(device, WICK_F32, WICK_SHAPE(2), thirds, "[0.1        0.33333334] f32[2]");
    EXPECT(device, WICK_F64, WICK_SHAPE(3), holes, "[ 1.5  nan -inf] f64[3]");
    EXPECT(device, WICK_F64, WICK_SHAPE(2), tiny, "[1.e-300 1.e+000] f64[2]");
    EXPECT(device, WICK_F64, WICK_SHAPE(1), nothing, "[nan] f64[1]");
    EXPECT(device, WICK_F16, WICK_SHAPE(3), halves, "[1.00e-01 6.55e+04 1.19e-07] f16[3]");
    EXPECT(device, WICK_BF16, WICK_SHAPE(3), brains, "[ 1.  -0.5 -0. ] bf16[3]");
}

static void test_integers_and_bools(void **state) {
    wick_device *const device = *state;
    const int64_t ends[2] = {INT64_MAX, INT64_MIN};
    const int32_t i32[1] = {INT32_MIN};
    const int16_t i16[2] = {-300, 7};
    const int8_t i8[2] = {-128, 127};
    const uint32_t u32[2] = {UINT32_MAX, 0};
    uint8_t u8[12];
    for (int i = 0; i < 12; i++) u8[i] = (uint8_t)i;
    const uint8_t bools[4] = {1, 0, 1, 1};
    EXPECT(device, WICK_I64, WICK_SHAPE(2), ends,
           "[ 9223372036854775807 -9223372036854775808] i64[2]");
    EXPECT(device, WICK_I32, WICK_SHAPE(1), i32, "[-2147483648] i32[1]");
    EXPECT(device, WICK_I16, WICK_SHAPE(2), i16, "[-300    7] i16[2]");
    EXPECT(device, WICK_I8, WICK_SHAPE(2), i8, "[-128  127] i8[2]");
    EXPECT(device, WICK_U32, WICK_SHAPE(2), u32, "[4294967295          0] u32[2]");
    EXPECT(device, WICK_U8, WICK_SHAPE(2, 3, 2), u8,
           "[[[ 0  1]\n  [ 2  3]\n  [ 4  5]]\n\n [[ 6  7]\n  [ 8  9]\n  [10 11]]] u8[2, 3, 2]");
    EXPECT(device, WICK_BOOL, WICK_SHAPE(2, 2), bools,
           "[[ True False]\n [ True  True]] bool[2, 2]");
}

static void test_single_and_empty(void **state) {
    wick_device *const device = *state;
    const float half[1] = {-0.5F};
    const uint8_t yes[1] = {1};
    EXPECT(device, WICK_F32, WICK_SCALAR, half, "-0.5 f32[]");
    EXPECT(device, WICK_BOOL, WICK_SCALAR, yes, "True bool[]");
    expect_text(wick_empty(device, WICK_F32, WICK_SHAPE(0)), "[] f32[0]");
    expect_text(wick_empty(device, WICK_I64, WICK_SHAPE(5000, 0)), "[] i64[5000, 0]");
}

static void test_long_rows_are_wrapped(void **state) {
    wick_device *const device = *state;
    double sevenths[20];
    for (int i = 0; i < 20; i++) sevenths[i] = i / 7.0;
    EXPECT(device, WICK_F64, WICK_SHAPE(20), sevenths,
           "[0.         0.14285714 0.28571429 0.42857143 0.57142857 0.71428571\n"
           " 0.85714286 1.         1.14285714 1.28571429 1.42857143 1.57142857\n"
           " 1.71428571 1.85714286 2.         2.14285714 2.28571429 2.42857143\n"
           " 2.57142857 2.71428571] f64[20]");
}

static const char long_text[] = "[[[   0    1    2 ...   97   98   99]\n"
                                "  [ 100  101  102 ...  197  198  199]\n"
                                "  [ 200  201  202 ...  297  298  299]\n"
                                "  ...\n"
                                "  [ 700  701  702 ...  797  798  799]\n"
                                "  [ 800  801  802 ...  897  898  899]\n"
                                "  [ 900  901  902 ...  997  998  999]]\n"
                                "\n"
                                " [[1000 1001 1002 ... 1097 1098 1099]\n"
                                "  [1100 1101 1102 ... 1197 1198 1199]\n"
                                "  [1200 1201 1202 ... 1297 1298 1299]\n"
                                "  ...\n"
                                "  [1700 1701 1702 ... 1797 1798 1799]\n"
                                "  [1800 1801 1802 ... 1897 1898 1899]\n"
                                "  [1900 1901 1902 ... 1997 1998 1999]]] i32[2, 10, 100]";

static wick_tensor *make_long(wick_device *device) {
    int32_t numbers[2000];
    for (int i = 0; i < 2000; i++) numbers[i] = i;
    return wick_tensor_from_data(device, WICK_I32, WICK_SHAPE(2, 10, 100), numbers, sizeof numbers);
}

static void test_many_elements_are_cut(void **state) {
    wick_device *const device = *state;
    float numbers[1001];
    for (int i = 0; i < 1001; i++) numbers[i] = (float)i;
    EXPECT(device, WICK_F32, WICK_SHAPE(1001), numbers,
           "[   0.    1.    2. ...  998.  999. 1000.] f32[1001]");
    char text[2048];
    for (int64_t n = 5; n <= 7; n++) { /* as many as are left of longer ones, or about */
        wick_tensor *const rows = wick_zeros(device, WICK_U8, WICK_SHAPE(n, 300));
        assert_int_equal(wick_read_text(rows, text, sizeof text, NULL), WICK_OK);
        assert_true((strstr(text, "\n ...\n") != NULL) == (n == 7));
        wick_release(rows);
    }
    for (int64_t n = 999; n <= 1001; n++) {
        wick_tensor *const row = wick_zeros(device, WICK_U8, WICK_SHAPE(n));
        assert_int_equal(wick_read_text(row, text, sizeof text, NULL), WICK_OK);
        assert_true((strstr(text, "...") != NULL) == (n == 1001));
        wick_release(row);
    }
    wick_device_stats before, after;
    wick_device_get_stats(device, &before);
    expect_text(make_long(device), long_text);
    wick_device_get_stats(device, &after);
    assert_int_equal(after.bytes_read - before.bytes_read, 2 * 6 * 6 * 4);
}

static void test_views(void **state) {
    wick_device *const device = *state;
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const all = make_long(device);
    expect_text(wick_retain(wick_permute(all, 3, (const int[]){0, 2, 1})),
                "[[[   0  100  200 ...  700  800  900]\n"
                "  [   1  101  201 ...  701  801  901]\n"
                "  [   2  102  202 ...  702  802  902]\n"
                "  ...\n"
                "  [  97  197  297 ...  797  897  997]\n"
                "  [  98  198  298 ...  798  898  998]\n"
                "  [  99  199  299 ...  799  899  999]]\n"
                "\n"
                " [[1000 1100 1200 ... 1700 1800 1900]\n"
                "  [1001 1101 1201 ... 1701 1801 1901]\n"
                "  [1002 1102 1202 ... 1702 1802 1902]\n"
                "  ...\n"
                "  [1097 1197 1297 ... 1797 1897 1997]\n"
                "  [1098 1198 1298 ... 1798 1898 1998]\n"
                "  [1099 1199 1299 ... 1799 1899 1999]]] i32[2, 100, 10]");
    expect_text(wick_retain(wick_slice(wick_slice(all, 1, 3, 4, 1), 2, 10, 13, 1)),
                "[[[ 310  311  312]]\n\n [[1310 1311 1312]]] i32[2, 1, 3]");
    wick_scope_end(scope);
}

static void test_room(void **state) {
    wick_device *const device = *state;
    const uint8_t numbers[3] = {1, 2, 3};
    wick_tensor *const x =
        wick_tensor_from_data(device, WICK_U8, WICK_SHAPE(3), numbers, sizeof numbers);
    const char whole[] = "[1 2 3] u8[3]";
    size_t length;
    assert_int_equal(wick_read_text(x, NULL, 0, &length), WICK_OK);
    assert_int_equal(length, sizeof whole - 1);
    for (size_t capacity = 1; capacity <= sizeof whole; capacity++) {
        char text[sizeof whole + 1];
        memset(text, '#', sizeof text);
        assert_int_equal(wick_read_text(x, text, capacity, NULL), WICK_OK);
        assert_int_equal(strlen(text), capacity - 1);
        assert_memory_equal(text, whole, capacity - 1);
        assert_int_equal(text[capacity], '#');
    }
    wick_release(x);
}

/* A weight that the device keeps in its own order has no rows to show. */
static void test_layout(void **state) {
    wick_device *const device = *state;
    const float numbers[1] = {1};
    char text[64];
    wick_tensor *const x =
        wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(1), numbers, sizeof numbers);
    x->view.layout = WK_LAYOUT_PANEL_F32;
    assert_int_equal(wick_read_text(x, text, sizeof text, NULL), WICK_ERR_DTYPE);
    assert_string_equal(text, "");
    x->view.layout = WK_LAYOUT_RAW;
    (void)wick_device_error(device, NULL);
    expect_text(x, "[1.] f32[1]");
}

static void test_scalars(void **state) {
    wick_device *const device = *state;
    const int16_t number[1] = {-7};
    const uint16_t half[1] = {0x3e00};
    const float two[2] = {1, 2};
    double value = 0;
    wick_tensor *const x =
        wick_tensor_from_data(device, WICK_I16, WICK_SHAPE(1, 1), number, sizeof number);
    wick_tensor *const y = wick_tensor_from_data(device, WICK_F16, WICK_SCALAR, half, sizeof half);
    wick_tensor *const z = wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(2), two, sizeof two);
    assert_int_equal(wick_read_scalar(x, &value), WICK_OK);
    assert_float_equal(value, -7, 0);
    assert_int_equal(wick_read_scalar(y, &value), WICK_OK);
    assert_float_equal(value, 1.5, 0);
    assert_int_equal(wick_read_scalar(z, &value), WICK_ERR_SHAPE);
    wick_error error = {0};
    assert_int_equal(wick_device_error(device, &error), WICK_ERR_SHAPE);
    assert_string_equal(error.message, "a tensor of 2 elements is not one number");
    wick_tensor *const part = wick_slice(z, 0, 1, 2, 1);
    assert_int_equal(wick_read_scalar(part, &value), WICK_OK);
    assert_float_equal(value, 2, 0);
    wick_tensor *const tensors[] = {x, y, z, part};
    for (size_t i = 0; i < WK_COUNT(tensors); i++) wick_release(tensors[i]);
}

static void test_refusals(void **state) {
    wick_device *const device = *state;
    char text[8] = "before";
    size_t length = 1;
    assert_int_equal(wick_read_text(NULL, text, sizeof text, &length), WICK_ERR_ARGUMENT);
    assert_string_equal(text, "");
    assert_int_equal(length, 0);
    assert_int_equal(wick_read_scalar(NULL, &(double){0}), WICK_ERR_ARGUMENT);
    wick_tensor *const blocks = wick_empty(device, WICK_Q8_0, WICK_SHAPE(1, 32));
    assert_int_equal(wick_read_text(blocks, text, sizeof text, &length), WICK_ERR_DTYPE);
    wick_error error = {0};
    assert_int_equal(wick_device_error(device, &error), WICK_ERR_DTYPE);
    assert_string_equal(error.message, "a weight of type q8_0 has no text form");
    wick_release(blocks);
}

/* Whatever cannot be had: a status, a sentence, nothing left behind. */
static void test_out_of_memory(void **state) {
    (void)state;
    checked_heap checked;
    checked_heap_init(&checked, UINT64_MAX);
    wick_device *device;
    const wick_device_desc desc = {.n_threads = 1, .allocator = checked.heap.hook};
    assert_int_equal(wick_device_open(&desc, &device, NULL), WICK_OK);
    wick_tensor *const x = make_long(device);
    char text[sizeof long_text];
    wick_status status = WICK_ERR_OUT_OF_MEMORY;
    for (uint64_t n = 0; status != WICK_OK; n++) {
        assert_true(n < 100);
        checked.n_allowed = n;
        status = wick_read_text(x, text, sizeof text, NULL);
        checked.n_allowed = UINT64_MAX;
        assert_int_equal(wick_device_error(device, NULL), status);
        if (status == WICK_OK) continue;
        assert_int_equal(status, WICK_ERR_OUT_OF_MEMORY);
        assert_string_equal(text, "");
    }
    assert_string_equal(text, long_text);
    assert_true(checked.n_refused > 1);
    wick_release(x);
    wick_device_close(device);
    assert_int_equal(checked.n_live, 0);
    assert_int_equal(checked.n_wrong_sizes, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_floats, open_device, close_device),
        cmocka_unit_test_setup_teardown(test_integers_and_bools, open_device, close_device),
        cmocka_unit_test_setup_teardown(test_single_and_empty, open_device, close_device),
        cmocka_unit_test_setup_teardown(test_long_rows_are_wrapped, open_device, close_device),
        cmocka_unit_test_setup_teardown(test_many_elements_are_cut, open_device, close_device),
        cmocka_unit_test_setup_teardown(test_views, open_device, close_device),
        cmocka_unit_test_setup_teardown(test_layout, open_device, close_device),
        cmocka_unit_test_setup_teardown(test_room, open_device, close_device),
        cmocka_unit_test_setup_teardown(test_scalars, open_device, close_device),
        cmocka_unit_test_setup_teardown(test_refusals, open_device, close_device),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
