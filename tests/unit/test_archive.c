/* The tensors of zip archives: NumPy's .npz and PyTorch's .pt files, read and written. */
#include "format/archive.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "checked_heap.h"
#include "core/dtype.h"
#include "core/scalar.h"
#include "fixture_file.h"

#include <wick/wick.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static wick_device *open_device(void) {
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .n_threads = 1};
    wick_device *device = NULL;
    assert_int_equal(wick_device_open(&desc, &device, NULL), WICK_OK);
    return device;
}

static wick_tensor_file *open_fixture(const char *name) {
    char path[1024];
    wick_tensor_file *file = NULL;
    wick_error error = {.status = WICK_OK};
    if (!fixture_path("WICK_TEST_DATA", name, path, sizeof path)) skip();
    if (wick_tensor_file_open(path, &file, &error) != WICK_OK) fail_msg("%s", error.message);
    return file;
}

/* The tensor has this type and shape, and element i is value[i]; values NULL: i itself (bool: i
 * modulo 2). */
static void check_tensor(wick_device *device, wick_tensor_file *file, const char *name,
                         wick_dtype dtype, wick_shape shape, const double *values) {
    wick_tensor *const tensor = wick_tensor_file_load(file, device, name);
    wick_error error = {.status = WICK_OK};
    if (tensor == NULL) {
        (void)wick_device_error(device, &error);
        fail_msg("%s: %s", name, error.message);
    }
    const wick_shape found = wick_tensor_shape(tensor);
    assert_int_equal(wick_tensor_dtype(tensor), dtype);
    assert_int_equal(found.rank, shape.rank);
    for (int d = 0; d < shape.rank; d++) assert_int_equal(found.extent[d], shape.extent[d]);
    const size_t size = wick_tensor_bytes(tensor);
    unsigned char *const bytes = malloc(size + 1);
    assert_non_null(bytes);
    assert_int_equal(wick_read(tensor, bytes, size), WICK_OK);
    for (int64_t i = 0; i < wick_tensor_size(tensor); i++) {
        const double want = values != NULL       ? values[i]
                            : dtype == WICK_BOOL ? (double)(i % 2)
                            : dtype == WICK_U8   ? (double)(i % 256)
                                                 : (double)i;
        const double got = wk_scalar_load(dtype, bytes, i);
        if (got != want) fail_msg("%s[%d] is %g, not %g", name, (int)i, got, want);
    }
    free(bytes);
    wick_release(tensor);
}

static void test_npz(void **state) {
    (void)state;
    static const char *const names[] = {"archives/stored.npz", "archives/deflated.npz"};
    wick_device *const device = open_device();
    for (size_t i = 0; i < WK_COUNT(names); i++) {
        wick_tensor_file *const file = open_fixture(names[i]);
        assert_int_equal(wick_tensor_file_count(file), 9);
        assert_string_equal(wick_tensor_file_get(file, 0)->name.text, "f4");
        assert_string_equal(wick_tensor_file_get(file, 7)->name.text, "layer.0/weight");
        check_tensor(device, file, "f4", WICK_F32, WICK_SHAPE(2, 3), NULL);
        check_tensor(device, file, "f2", WICK_F16, WICK_SHAPE(5), NULL);
        check_tensor(device, file, "big", WICK_F64, WICK_SHAPE(2, 2), NULL);
        check_tensor(device, file, "fortran", WICK_I16, WICK_SHAPE(3, 4), NULL);
        check_tensor(device, file, "bool", WICK_BOOL, WICK_SHAPE(7), NULL);
        check_tensor(device, file, "scalar", WICK_I64, WICK_SCALAR, NULL);
        check_tensor(device, file, "empty", WICK_U32, WICK_SHAPE(0, 4), NULL);
        check_tensor(device, file, "layer.0/weight", WICK_F32, WICK_SHAPE(40, 50), NULL);
        check_tensor(device, file, "u1", WICK_U8, WICK_SHAPE(300), NULL);
        wick_tensor_file_close(file);
    }
    wick_device_close(device);
}

static void test_state_dict(void **state) {
    (void)state;
    static const char *const names[] = {"archives/state.pt", "archives/big_endian.pt",
                                        "archives/deflated.pt"};
    static const double transposed[] = {6, 9, 7, 10, 8, 11}, rows[] = {12, 13, 14, 12, 13, 14};
    static const struct {
        const char *name;
        wick_dtype dtype;
    } types[] = {{"FloatStorage", WICK_F32},  {"HalfStorage", WICK_F16},
                 {"DoubleStorage", WICK_F64}, {"LongStorage", WICK_I64},
                 {"IntStorage", WICK_I32},    {"ShortStorage", WICK_I16},
                 {"CharStorage", WICK_I8},    {"ByteStorage", WICK_U8},
                 {"BoolStorage", WICK_BOOL},  {"BFloat16Storage", WICK_BF16}};
    wick_device *const device = open_device();
    for (size_t i = 0; i < WK_COUNT(names); i++) {
        wick_tensor_file *const file = open_fixture(names[i]);
        assert_int_equal(wick_tensor_file_count(file), 16);
        check_tensor(device, file, "fc.weight", WICK_F32, WICK_SHAPE(2, 3), NULL);
        check_tensor(device, file, "tied", WICK_F32, WICK_SHAPE(2, 3), NULL);
        check_tensor(device, file, "fc.transposed", WICK_F32, WICK_SHAPE(3, 2), transposed);
        check_tensor(device, file, "fc.row", WICK_F32, WICK_SHAPE(2, 3), rows);
        check_tensor(device, file, "scalar", WICK_I64, WICK_SCALAR, NULL);
        check_tensor(device, file, "empty", WICK_F32, WICK_SHAPE(0, 4), NULL);
        for (size_t k = 0; k < WK_COUNT(types); k++)
            check_tensor(device, file, types[k].name, types[k].dtype, WICK_SHAPE(2, 3), NULL);
        wick_tensor_file_close(file);
    }
    wick_device_close(device);
}

static void test_checkpoint(void **state) {
    (void)state;
    static const char *const names[] = {"archives/checkpoint.pt", "archives/protocol5.pt"};
    wick_device *const device = open_device();
    for (size_t i = 0; i < WK_COUNT(names); i++) {
        wick_tensor_file *const file = open_fixture(names[i]);
        assert_int_equal(wick_tensor_file_count(file), 4);
        check_tensor(device, file, "state.0.step", WICK_F32, WICK_SCALAR, NULL);
        check_tensor(device, file, "state.0.exp_avg", WICK_F32, WICK_SHAPE(4), NULL);
        check_tensor(device, file, "list.0", WICK_F32, WICK_SHAPE(4), NULL);
        check_tensor(device, file, "list.1", WICK_I16, WICK_SHAPE(2), NULL);
        wick_tensor_file_close(file);
    }
    wick_tensor_file *const file = open_fixture("archives/single.pt");
    check_tensor(device, file, "", WICK_F32, WICK_SHAPE(2, 3), NULL);
    wick_tensor_file_close(file);
    wick_device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_npz),
                                       cmocka_unit_test(test_state_dict),
                                       cmocka_unit_test(test_checkpoint)};
    return cmocka_run_group_tests_name("archive", tests, NULL, NULL);
}
