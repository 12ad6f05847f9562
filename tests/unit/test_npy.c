/* .npy files: headers written, files read, tensors through them. */
#include "format/npy.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "checked_heap.h"
#include "core/dtype.h"
#include "core/half.h"
#include "core/shape.h"
#include "fixture_file.h"

#include <wick/wick.h>

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

/* ---- Reading ---- */

/* Files that NumPy 2.4 wrote: element i in row-major order is i (of bools its last bit). */
static const struct {
    const char *name;
    wick_dtype dtype;
    wick_shape shape;
    bool is_plain;
} numpy_files[] = {
    {"c_f4", WICK_F32, {2, {3, 4}}, true},
    {"c_f2", WICK_F16, {1, {5}}, true},
    {"c_f8_v2", WICK_F64, {3, {2, 1, 3}}, true},
    {"fortran_i2", WICK_I16, {3, {2, 3, 4}}, false},
    {"fortran_big_i4_v3", WICK_I32, {2, {4, 2}}, false},
    {"big_f8", WICK_F64, {2, {2, 3}}, false},
    {"scalar_i8", WICK_I64, {0, {0}}, true},
    {"empty_u4", WICK_U32, {2, {0, 3}}, true},
    {"bool", WICK_BOOL, {2, {2, 3}}, true},
    {"fortran_u1", WICK_U8, {2, {3, 5}}, false},
    {"c_i1_rank6", WICK_I8, {6, {1, 2, 1, 2, 3, 1}}, true},
};

static double element(wick_dtype dtype, const unsigned char *data, size_t i) {
    union {
        float f4;
        double f8;
        int64_t i8;
        int32_t i4;
        int16_t i2;
        uint16_t f2;
    } value = {.i8 = 0};
    const size_t size = (size_t)wk_dtype_get(dtype)->block_bytes;
    memcpy(&value, data + i * size, size);
    switch (dtype) {
    case WICK_F32: return (double)value.f4;
    case WICK_F64: return value.f8;
    case WICK_F16: return (double)wk_f16_to_f32(value.f2);
    case WICK_I16: return value.i2;
    case WICK_I32: return value.i4;
    default: return (double)value.i8; /* unsigned ones: the rest is zero */
    }
}

static void test_numpy_files(void **state) {
    (void)state;
    for (size_t k = 0; k < WK_COUNT(numpy_files); k++) {
        char name[100];
        snprintf(name, sizeof name, "npy/%s.npy", numpy_files[k].name);
        fixture_file file;
        if (!fixture_read("WICK_TEST_DATA", name, &file)) skip();
        wk_npy npy;
        wick_error error = {.status = WICK_OK};
        assert_int_equal(wk_npy_parse(file.data, file.size, &npy, &error), WICK_OK);
        assert_int_equal(npy.dtype, numpy_files[k].dtype);
        assert_true(wk_shape_equal(&npy.shape, &numpy_files[k].shape));
        assert_int_equal(wk_npy_is_plain(&npy), numpy_files[k].is_plain);
        unsigned char plain[256];
        assert_true(npy.size <= sizeof plain);
        wk_npy_unpack(&npy, plain);
        const size_t n = (size_t)npy.size / (size_t)wk_dtype_get(npy.dtype)->block_bytes;
        for (size_t i = 0; i < n; i++) {
            const double expected = (double)(npy.dtype == WICK_BOOL ? i % 2 : i);
            assert_true(element(npy.dtype, plain, i) == expected);
        }
        free(file.data);
    }
}

static wick_status parse(const char *dict, int version, size_t n_data, wick_error *error) {
    unsigned char bytes[400] = "\x93NUMPY";
    const size_t length = strlen(dict), width = version == 1 ? 2 : 4;
    bytes[6] = (unsigned char)version;
    bytes[8] = (unsigned char)length;
    memcpy(bytes + 8 + width, dict, length);
    wk_npy npy;
    *error = (wick_error){.status = WICK_OK};
    return wk_npy_parse(bytes, 8 + width + length + n_data, &npy, error);
}

static void test_other_writers(void **state) {
    (void)state;
    wick_error error;
    static const char *const dicts[] = {
        "{'descr':'<f4','fortran_order':False,'shape':(2,)}",
        "{\"shape\": (1, 2), \"fortran_order\": True, \"descr\": \"=f4\"}\n",
        "  {'shape': (2L,), 'descr': '<f4', 'fortran_order': False, }   \n",
    };
    for (size_t i = 0; i < WK_COUNT(dicts); i++)
        assert_int_equal(parse(dicts[i], 1 + (int)i, 8, &error), WICK_OK);
}

static void test_bad_files(void **state) {
    (void)state;
    static const struct {
        const char *dict;
        int version;
        size_t n_data;
        wick_status status;
        const char *words;
    } cases[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 4, 8, WICK_ERR_UNSUPPORTED,
         "byte 6: version 4"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 1, 9, WICK_ERR_FORMAT,
         "has 8 bytes, but 9 follow"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 1, 7, WICK_ERR_FORMAT,
         "has 8 bytes, but 7 follow"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", 1, 8, WICK_ERR_UNSUPPORTED,
         "type '<c8'"},
        {"{'descr': '', 'fortran_order': False, 'shape': (1,)}", 1, 8, WICK_ERR_UNSUPPORTED,
         "type ''"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", 1, 4,
         WICK_ERR_UNSUPPORTED, "holds records"},
        {"{'descr': '<f4', 'fortran_order': None, 'shape': (2,)}", 1, 8, WICK_ERR_FORMAT,
         "neither True nor False"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", 1, 8, WICK_ERR_FORMAT,
         "lacks an extent"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 2}", 1, 8, WICK_ERR_FORMAT, "no tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2", 1, 8, WICK_ERR_FORMAT,
         "a shape that does not end"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1)}", 1, 4,
         WICK_ERR_UNSUPPORTED, "more than the 6 dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}", 1, 4,
         WICK_ERR_FORMAT, "over 2^63"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807,)}", 1, 4,
         WICK_ERR_FORMAT, "too many elements"},
        {"{'descr': '<f4', 'fortran_order': False}", 1, 4, WICK_ERR_FORMAT, "lacks descr"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}", 1, 4,
         WICK_ERR_FORMAT, "a key twice"},
        {"{'descr': '<f4', 'order': False, 'shape': ()}", 1, 4, WICK_ERR_FORMAT, "not known"},
        {"{'descr': '<f4", 1, 4, WICK_ERR_FORMAT, "ends inside a string"},
        {"{'descr': '<f4' 'shape': ()}", 1, 4, WICK_ERR_FORMAT, "does not end its dict"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': ()} x", 1, 4, WICK_ERR_FORMAT,
         "something behind"},
        {"[]", 1, 4, WICK_ERR_FORMAT, "is no dict"},
    };
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        wick_error error;
        assert_int_equal(parse(cases[i].dict, cases[i].version, cases[i].n_data, &error),
                         cases[i].status);
        if (strstr(error.message, cases[i].words) == NULL)
            fail_msg("'%s' lacks '%s'", error.message, cases[i].words);
    }
    wk_npy npy;
    assert_int_equal(wk_npy_parse("\x93NUMPX\1\0ab", 10, &npy, NULL), WICK_ERR_FORMAT);
    assert_int_equal(wk_npy_parse("", 0, &npy, NULL), WICK_ERR_FORMAT);
    assert_int_equal(wk_npy_parse("\x93NUMPY\1\0\3\0ab", 12, &npy, NULL), WICK_ERR_FORMAT);
}

/* ---- Tensors ---- */

/* Through a file and back; what a device cannot read stays told by the device. */
static void test_tensors(void **state) {
    (void)state;
    wick_device *device = NULL;
    assert_int_equal(wick_device_open(NULL, &device, NULL), WICK_OK);
    const char *const build = getenv("WICK_BUILD_DIR");
    char path[1024];
    snprintf(path, sizeof path, "%s/test_npy.npy", build != NULL ? build : ".");
    static const float values[6] = {1, -2, 3.5F, 0, 1e30F, -0.0F};
    wick_tensor *const made =
        wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(2, 3), values, sizeof values);
    wick_tensor *const turned = wick_transpose(made, 0, 1);
    assert_int_equal(wick_npy_save(turned, path, NULL), WICK_OK);
    wick_tensor *const loaded = wick_npy_load(device, path);
    assert_non_null(loaded);
    assert_int_equal(wick_tensor_shape(loaded).extent[0], 3);
    float found[6];
    assert_int_equal(wick_read(loaded, found, sizeof found), WICK_OK);
    for (size_t i = 0; i < 6; i++) assert_memory_equal(&found[i], &values[i % 2 * 3 + i / 2], 4);
    assert_int_equal(remove(path), 0);

    wick_error error = {.status = WICK_OK};
    assert_null(wick_npy_load(device, path));
    assert_int_equal(wick_device_error(device, NULL), WICK_ERR_NOT_FOUND);
    assert_null(wick_npy_parse(device, "x", 1));
    assert_int_equal(wick_device_error(device, &error), WICK_ERR_FORMAT);
    assert_string_equal(error.message, "byte 0: not an npy file");
    assert_null(wick_npy_parse(NULL, "x", 1));
    assert_null(wick_npy_parse(device, NULL, 1));
    assert_null(wick_npy_load(NULL, path));
    assert_int_equal(wick_npy_save(NULL, path, NULL), WICK_ERR_ARGUMENT);
    wick_device_error(device, NULL);
    wick_release(loaded);
    wick_release(turned);
    wick_release(made);
    wick_device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers),     cmocka_unit_test(test_padding),
        cmocka_unit_test(test_appends),     cmocka_unit_test(test_refused),
        cmocka_unit_test(test_numpy_files), cmocka_unit_test(test_other_writers),
        cmocka_unit_test(test_bad_files),   cmocka_unit_test(test_tensors),
    };
    return cmocka_run_group_tests_name("npy", tests, NULL, NULL);
}
