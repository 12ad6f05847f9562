/* .npy files: headers written, files read, tensors through them; tensors of any file by name. */
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
#include <stdlib.h>
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
    assert_int_equal(wk_npy_header(&buf, WICK_DTYPE_COUNT_, &(wick_shape){1, {2}}), WICK_ERR_DTYPE);
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

/* The other byte order is nothing to elements of 1 byte and is undone for those of 2 and more. */
static void test_byte_order(void **state) {
    (void)state;
    static const struct {
        const char *type;
        bool is_plain;
        size_t size;
        unsigned char plain[8]; /* of an element whose bytes in the file are 1, 2, 3 ... */
    } cases[] = {
        {">i1", true, 1, {1}},
        {">i2", false, 2, {2, 1}},
        {">f2", false, 2, {2, 1}},
        {">f4", false, 4, {4, 3, 2, 1}},
        {">i8", false, 8, {8, 7, 6, 5, 4, 3, 2, 1}},
    };
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        unsigned char bytes[128] = "\x93NUMPY\x01", plain[8];
        const int length =
            snprintf((char *)bytes + 10, sizeof bytes - 10,
                     "{'descr':'%s','fortran_order':False,'shape':(1,)}", cases[i].type);
        bytes[8] = (unsigned char)length;
        const size_t begin = 10 + (size_t)length;
        for (size_t j = 0; j < cases[i].size; j++) bytes[begin + j] = (unsigned char)(j + 1);
        wk_npy npy;
        wick_error error = {.status = WICK_OK};
        assert_int_equal(wk_npy_parse(bytes, begin + cases[i].size, &npy, &error), WICK_OK);
        assert_int_equal(wk_npy_is_plain(&npy), cases[i].is_plain);
        wk_npy_unpack(&npy, plain);
        assert_memory_equal(plain, cases[i].plain, cases[i].size);
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
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 2}", 1, 8, WICK_ERR_FORMAT, "a tuple"},
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
         "something after"},
        {"[]", 1, 4, WICK_ERR_FORMAT, "is not a dict"},
    };
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        wick_error error;
        assert_int_equal(parse(cases[i].dict, cases[i].version, cases[i].n_data, &error),
                         cases[i].status);
        if (strstr(error.message, cases[i].words) == NULL)
            fail_msg("'%s' lacks '%s'", error.message, cases[i].words);
    }
    static const char whole[] =
        "\x93NUMPY\2\0\x2f\0\0\0{'descr':'|i1','fortran_order':False,'shape':()}";
    for (size_t size = 10; size < 12 + 0x2f; size++) {
        wick_error error = {.status = WICK_OK};
        wk_npy cut;
        char *const bytes = malloc(size); /* the address sanitizer sees its end */
        assert_non_null(bytes);
        memcpy(bytes, whole, size);
        assert_int_equal(wk_npy_parse(bytes, size, &cut, &error), WICK_ERR_FORMAT);
        assert_non_null(strstr(error.message, "the npy file ends inside its header"));
        free(bytes);
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
    assert_null(wick_npy_load(device, "CMakeLists.txt"));
    wick_device_error(device, &error);
    assert_string_equal(error.message, "'CMakeLists.txt': byte 0: not an npy file");
    assert_null(wick_npy_parse(NULL, "x", 1));
    assert_null(wick_npy_parse(device, NULL, 1));
    assert_null(wick_npy_load(NULL, path));
    assert_int_equal(wick_npy_save(NULL, path, NULL), WICK_ERR_ARGUMENT);

    /* The reason of a tensor that cannot be read goes to the caller alone. */
    wick_device_error(device, NULL);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const outside = wick_full(device, WICK_U32, WICK_SHAPE(1), 9);
    error = (wick_error){.status = WICK_OK};
    assert_int_equal(wick_npy_save(wick_embedding(made, outside), path, &error), WICK_ERR_INDEX);
    assert_true(strlen(error.message) > 0);
    assert_int_equal(wick_device_error(device, NULL), WICK_OK);
    wick_scope_end(scope);
    wick_device_error(device, NULL);
    wick_release(loaded);
    wick_release(turned);
    wick_release(made);
    wick_device_close(device);
}

/* ---- Tensors of files by name ---- */

static wick_device *open_device(void) {
    wick_device *device = NULL;
    assert_int_equal(wick_device_open(NULL, &device, NULL), WICK_OK);
    return device;
}

static const char *out_path(void) {
    static char path[1024];
    const char *const build = getenv("WICK_BUILD_DIR");
    snprintf(path, sizeof path, "%s/test_npy.safetensors", build != NULL ? build : ".");
    return path;
}

static void check_failed(wick_device *device, const void *result, wick_status status,
                         const char *words) {
    wick_error error = {.status = WICK_OK};
    assert_null(result);
    assert_int_equal(wick_device_error(device, &error), status);
    if (strstr(error.message, words) == NULL) fail_msg("'%s' lacks '%s'", error.message, words);
}

static void check_same(wick_tensor *found, wick_dtype dtype, const wick_shape *shape,
                       const void *bytes, size_t size) {
    static unsigned char contents[1 << 18];
    assert_non_null(found);
    const wick_shape found_shape = wick_tensor_shape(found);
    assert_int_equal(wick_tensor_dtype(found), dtype);
    assert_true(wk_shape_equal(&found_shape, shape));
    assert_int_equal(wick_tensor_bytes(found), size);
    assert_true(size <= sizeof contents);
    assert_int_equal(wick_read(found, contents, size), WICK_OK);
    assert_memory_equal(contents, bytes, size);
}

/* Every allocation refused in turn, of an array whose bytes have to be turned round, from memory
 * and from a file: no tensor, a status, and nothing left behind. */
static void test_memory_runs_out(void **state) {
    (void)state;
    char bytes[128] = "\x93NUMPY\x01", path[1024];
    const int length = snprintf(bytes + 10, sizeof bytes - 10,
                                "{'descr':'>f4','fortran_order':False,'shape':(2,)}");
    bytes[8] = (char)length;
    memcpy(bytes + 10 + length, "\x3f\x80\0\0\xc0\0\0\0", 8); /* 1, -2 */
    const size_t size = 10 + (size_t)length + 8;
    const char *const build = getenv("WICK_BUILD_DIR");
    snprintf(path, sizeof path, "%s/test_npy_memory.npy", build != NULL ? build : ".");
    FILE *const file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
    for (uint64_t n = 0, n_loaded = 0; n_loaded < 2; n++) {
        checked_heap checked = {.n_allowed = UINT64_MAX};
        const wick_device_desc desc = {.backend = WICK_BACKEND_CPU,
                                       .n_threads = 1,
                                       .allocator = {.allocate = checked_allocate,
                                                     .release = checked_release,
                                                     .user = &checked}};
        wick_device *device = NULL;
        assert_int_equal(wick_device_open(&desc, &device, NULL), WICK_OK);
        n_loaded = 0;
        for (int from_file = 0; from_file < 2; from_file++) {
            float got[2];
            checked.n_allowed = n;
            wick_tensor *const x =
                from_file ? wick_npy_load(device, path) : wick_npy_parse(device, bytes, size);
            checked.n_allowed = UINT64_MAX;
            if (x == NULL) {
                assert_int_equal(wick_device_error(device, NULL), WICK_ERR_OUT_OF_MEMORY);
                continue;
            }
            n_loaded++;
            assert_int_equal(wick_read(x, got, sizeof got), WICK_OK);
            assert_true(got[0] == 1 && got[1] == -2);
            wick_release(x);
        }
        wick_device_close(device);
        assert_true(checked.n_live == 0 && checked.n_wrong_sizes == 0);
    }
    assert_int_equal(remove(path), 0);
}

static void test_gguf_by_name(void **state) {
    (void)state;
    static unsigned char bytes[1 << 18];
    char path[1024];
    wick_file *file;
    wick_tensor_file *tensors;
    if (!fixture_path("WICK_TEST_DATA", "stories260K.gguf", path, sizeof path)) skip();
    wick_device *const device = open_device();
    assert_int_equal(wick_file_open(path, &file, NULL), WICK_OK);
    assert_int_equal(wick_tensor_file_open(path, &tensors, NULL), WICK_OK);
    const size_t n = wick_tensor_file_count(tensors);
    assert_int_equal(n, wick_file_tensor_count(file));
    assert_null(wick_tensor_file_get(tensors, n));
    for (size_t i = 0; i < n; i += 7) {
        const wick_file_tensor *const tensor = wick_tensor_file_get(tensors, i);
        assert_true(tensor->size <= sizeof bytes);
        assert_int_equal(wick_file_read(file, tensor->offset, bytes, (size_t)tensor->size, NULL),
                         WICK_OK);
        wick_tensor *const one = wick_tensor_load(device, path, tensor->name.text);
        wick_tensor *const other = wick_tensor_file_load(tensors, device, tensor->name.text);
        check_same(one, tensor->dtype, &tensor->shape, bytes, (size_t)tensor->size);
        check_same(other, tensor->dtype, &tensor->shape, bytes, (size_t)tensor->size);
        wick_release(one);
        wick_release(other);
    }
    check_failed(device, wick_tensor_load(device, path, "blk.9.x"), WICK_ERR_NOT_FOUND,
                 "stories260K.gguf' has no tensor 'blk.9.x'");
    check_failed(device, wick_tensor_load(device, path, NULL), WICK_ERR_ARGUMENT, "is needed");
    check_failed(device, wick_tensor_load(device, NULL, "x"), WICK_ERR_ARGUMENT, "path is NULL");
    check_failed(device, wick_tensor_load(device, "nowhere", "x"), WICK_ERR_NOT_FOUND, "nowhere");
    check_failed(device, wick_tensor_load(device, "CMakeLists.txt", "x"), WICK_ERR_FORMAT,
                 "not a GGUF, safetensors, .npy, .npz or PyTorch (.pt) file");
    assert_null(wick_tensor_load(NULL, path, "x"));
    wick_tensor_file_close(tensors);
    wick_file_close(file);
    wick_device_close(device);
}

/* An array is whole, or not there. */
static void test_writer(void **state) {
    const char *const path = out_path();
    static const unsigned char bytes[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    (void)state;
    wick_npy_writer *writer = (wick_npy_writer *)(uintptr_t)1;
    wick_error error = {.status = WICK_OK};
#define SAYS(call, wanted, text)                                                                   \
    do {                                                                                           \
        error = (wick_error){.status = WICK_OK};                                                   \
        assert_int_equal(call, wanted);                                                            \
        assert_string_equal(error.message, text);                                                  \
    } while (0)
    SAYS(wick_npy_start(path, WICK_F32, WICK_SHAPE(1), NULL, &error), WICK_ERR_ARGUMENT,
         "wick_npy_start: writer is NULL");
    SAYS(wick_npy_start(NULL, WICK_F32, WICK_SHAPE(1), &writer, &error), WICK_ERR_ARGUMENT,
         "wick_npy_start: no path or no such dtype");
    assert_null(writer);
    SAYS(wick_npy_start(path, WICK_DTYPE_COUNT_, WICK_SHAPE(1), &writer, &error), WICK_ERR_ARGUMENT,
         "wick_npy_start: no path or no such dtype");
    SAYS(wick_npy_start(path, WICK_F32, WICK_SHAPE(INT64_MAX, 2), &writer, &error), WICK_ERR_SHAPE,
         "no array of f32 can have this shape");
    SAYS(wick_npy_start(path, WICK_F64, WICK_SHAPE(INT64_MAX / 2), &writer, &error), WICK_ERR_SHAPE,
         "no array of f64 can have this shape");
    SAYS(wick_npy_start(path, WICK_BF16, WICK_SHAPE(1), &writer, &error), WICK_ERR_DTYPE,
         "NumPy has no type for bf16: convert to f32");
    assert_null(fopen(path, "rb"));

    assert_int_equal(wick_npy_start(path, WICK_F32, WICK_SHAPE(3), &writer, &error), WICK_OK);
    SAYS(wick_npy_write(NULL, bytes, 4, &error), WICK_ERR_ARGUMENT,
         "wick_npy_write: an argument is NULL");
    SAYS(wick_npy_write(writer, NULL, 4, &error), WICK_ERR_ARGUMENT,
         "wick_npy_write: an argument is NULL");
    assert_int_equal(wick_npy_write(writer, bytes, 8, &error), WICK_OK);
    SAYS(wick_npy_write(writer, bytes, 5, &error), WICK_ERR_ARGUMENT,
         "wick_npy_write: 5 bytes, the array has room for 4 more");
    SAYS(wick_npy_finish(writer, true, &error), WICK_ERR_STATE,
         "the array is not complete: 4 bytes are missing");
    assert_null(fopen(path, "rb"));
    SAYS(wick_npy_finish(NULL, true, &error), WICK_ERR_ARGUMENT, "wick_npy_finish: writer is NULL");

    for (int is_kept = 0; is_kept < 2; is_kept++) {
        error = (wick_error){.status = WICK_OK};
        assert_int_equal(wick_npy_start(path, WICK_F32, WICK_SHAPE(3), &writer, &error), WICK_OK);
        assert_int_equal(wick_npy_write(writer, bytes, 8, &error), WICK_OK);
        assert_int_equal(wick_npy_write(writer, bytes + 8, 4, &error), WICK_OK);
        assert_int_equal(wick_npy_finish(writer, is_kept == 1, &error), WICK_OK);
        assert_int_equal(remove(path) == 0, is_kept);
    }
    SAYS(wick_bytes_save(NULL, bytes, 1, &error), WICK_ERR_ARGUMENT,
         "wick_bytes_save: an argument is NULL");
    SAYS(wick_bytes_save(path, NULL, 1, &error), WICK_ERR_ARGUMENT,
         "wick_bytes_save: an argument is NULL");
    assert_null(fopen(path, "rb"));
#undef SAYS
}

/* The array of a .npy file has no name; it becomes row-major and little-endian. */
static void test_npy_by_name(void **state) {
    (void)state;
    static const char *const names[] = {
        "big_f8",     "bool",      "c_f2",    "c_i1_rank6", "fortran_i2",       "empty_u4",
        "fortran_u1", "scalar_i8", "c_f8_v2", "c_f4",       "fortran_big_i4_v3"};
    wick_device *const device = open_device();
    for (size_t i = 0; i < WK_COUNT(names); i++) {
        static unsigned char bytes[1 << 16];
        char name[64], path[1024];
        snprintf(name, sizeof name, "npy/%s.npy", names[i]);
        if (!fixture_path("WICK_TEST_DATA", name, path, sizeof path)) skip();
        wick_tensor *const want = wick_npy_load(device, path);
        const wick_shape shape = wick_tensor_shape(want);
        const size_t size = wick_tensor_bytes(want);
        assert_true(want != NULL && size <= sizeof bytes);
        assert_int_equal(wick_read(want, bytes, size), WICK_OK);
        wick_tensor *const found = wick_tensor_load(device, path, "");
        check_same(found, wick_tensor_dtype(want), &shape, bytes, size);
        wick_tensor *const only = wick_tensor_load(device, path, NULL);
        check_same(only, wick_tensor_dtype(want), &shape, bytes, size);
        wick_release(only);
        check_failed(device, wick_tensor_load(device, path, "x"), WICK_ERR_NOT_FOUND, "'x'");
        wick_release(found);
        wick_release(want);
    }
    wick_device_close(device);
}

/* Every type, any rank, views; names that JSON has to escape. */
static void test_safetensors_round_trip(void **state) {
    (void)state;
    enum { N = WICK_BOOL + 1 };
    static unsigned char bytes[6 * 8]; /* of each the same, as long as they are */
    const wick_shape shapes[] = {WICK_SHAPE(2, 3), WICK_SCALAR, WICK_SHAPE(0, 5),
                                 WICK_SHAPE(1, 1, 2, 1, 1, 3)};
    char names[N][16];
    const char *list[N];
    wick_tensor *tensors[N];
    wick_device *const device = open_device();
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = i % 3 == 0;
    for (int i = 0; i < N; i++) {
        const wick_shape *const shape = &shapes[i % 4];
        snprintf(names[i], sizeof names[i], "\"\\\n\x01\xC3\xA9 %d", i);
        list[i] = names[i];
        tensors[i] = wick_empty(device, (wick_dtype)i, *shape);
        const size_t size = wick_tensor_bytes(tensors[i]);
        assert_int_equal(wick_write(tensors[i], bytes, size), WICK_OK);
    }
    wick_error error = {.status = WICK_OK};
    if (wick_safetensors_save(out_path(), list, tensors, N, &error) != WICK_OK)
        fail_msg("%s", error.message);
    wick_tensor_file *file;
    if (wick_tensor_file_open(out_path(), &file, &error) != WICK_OK) fail_msg("%s", error.message);
    assert_int_equal(wick_tensor_file_count(file), N);
    for (int i = 0; i < N; i++) {
        const wick_file_tensor *const at = wick_tensor_file_get(file, (size_t)i);
        assert_int_equal(at->offset % (uint64_t)wk_dtype_get(at->dtype)->block_bytes, 0);
        wick_tensor *const found = wick_tensor_file_load(file, device, names[i]);
        check_same(found, (wick_dtype)i, &shapes[i % 4], bytes, wick_tensor_bytes(tensors[i]));
        wick_release(found);
        wick_release(tensors[i]);
    }
    wick_tensor_file_close(file);
    assert_int_equal(wick_safetensors_save(out_path(), NULL, NULL, 0, &error), WICK_OK);
    assert_int_equal(wick_tensor_file_open(out_path(), &file, &error), WICK_OK);
    assert_int_equal(wick_tensor_file_count(file), 0);
    wick_tensor_file_close(file);
    assert_int_equal(remove(out_path()), 0);
    wick_device_close(device);
}

/* Byte by byte; what cannot be written leaves no file. */
static void test_safetensors_bytes(void **state) {
    (void)state;
    static const char want[] = "\x70\0\0\0\0\0\0\0"
                               "{\"f\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[0,8]},"
                               "\"u\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[8,11]}}   "
                               "\0\0\x80\x3F\0\0\0\x40\1\2\3";
    static const float f[] = {1, 2};
    static const unsigned char u[] = {1, 2, 3}, blocks[18] = {0};
    wick_device *const device = open_device();
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const tensors[] = {
        wick_tensor_from_data(device, WICK_U8, WICK_SHAPE(3), u, sizeof u),
        wick_transpose(wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(1, 2), f, sizeof f), 0,
                       1),
        wick_tensor_from_data(device, WICK_Q4_0, WICK_SHAPE(1, 32), blocks, sizeof blocks), NULL};
    char found[256];
    assert_int_equal(
        wick_safetensors_save(out_path(), (const char *const[]){"u", "f"}, tensors, 2, NULL),
        WICK_OK);
    FILE *const file = fopen(out_path(), "rb");
    assert_non_null(file);
    assert_int_equal(fread(found, 1, sizeof found, file), sizeof want - 1);
    fclose(file);
    assert_memory_equal(found, want, sizeof want - 1);
    assert_int_equal(remove(out_path()), 0);

    static const struct {
        const char *names[2];
        size_t first;
        wick_status status;
        const char *words;
    } wrong[] = {
        {{"a", "a"}, 0, WICK_ERR_VALUE, "two tensors have the name 'a'"},
        {{"a", "__metadata__"}, 0, WICK_ERR_VALUE, "'__metadata__'"},
        {{"a", "\xFF"}, 0, WICK_ERR_VALUE, "can be called"},
        {{"a", NULL}, 0, WICK_ERR_ARGUMENT, "tensor 1"},
        {{"a", "b"}, 1, WICK_ERR_DTYPE, "'b' is q4_0"},
        {{"a", "b"}, 2, WICK_ERR_ARGUMENT, "tensor 1"},
    };
    for (size_t i = 0; i < WK_COUNT(wrong); i++) {
        wick_error error = {.status = WICK_OK};
        assert_int_equal(
            wick_safetensors_save(out_path(), wrong[i].names, tensors + wrong[i].first, 2, &error),
            wrong[i].status);
        if (strstr(error.message, wrong[i].words) == NULL)
            fail_msg("'%s' lacks '%s'", error.message, wrong[i].words);
        assert_null(fopen(out_path(), "rb"));
    }
    wick_scope_end(scope);
    wick_device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_padding),
        cmocka_unit_test(test_appends),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_numpy_files),
        cmocka_unit_test(test_byte_order),
        cmocka_unit_test(test_other_writers),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_gguf_by_name),
        cmocka_unit_test(test_npy_by_name),
        cmocka_unit_test(test_writer),
        cmocka_unit_test(test_safetensors_round_trip),
        cmocka_unit_test(test_safetensors_bytes),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests_name("npy", tests, NULL, NULL);
}
