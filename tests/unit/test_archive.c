/* The tensors of zip archives: NumPy's .npz and PyTorch's .pt files, read and written. */
#define _POSIX_C_SOURCE 200809L /* symlink */
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
#include "source/tensor_file.h"

#include <wick/wick.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* One array, in an order and with bytes that have to be turned. */
static void test_npy(void **state) {
    (void)state;
    wick_device *const device = open_device();
    wick_tensor_file *file = open_fixture("npy/fortran_i2.npy");
    assert_string_equal(wick_tensor_file_format(file), "npy");
    assert_int_equal(wick_tensor_file_count(file), 1);
    check_tensor(device, file, "", WICK_I16, WICK_SHAPE(2, 3, 4), NULL);
    wick_tensor_file_close(file);
    file = open_fixture("npy/big_f8.npy");
    check_tensor(device, file, "", WICK_F64, WICK_SHAPE(2, 3), NULL);
    wick_tensor_file_close(file);
    wick_device_close(device);
}

static void test_npz(void **state) {
    (void)state;
    static const char *const names[] = {"archives/stored.npz", "archives/deflated.npz"};
    wick_device *const device = open_device();
    for (size_t i = 0; i < WK_COUNT(names); i++) {
        wick_tensor_file *const file = open_fixture(names[i]);
        assert_int_equal(wick_tensor_file_count(file), 9);
        assert_string_equal(wick_tensor_file_format(file), "npz");
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

/* Tensors of an archive in pieces, of two in turn: the same bytes as all at once. */
static void test_pieces(void **state) {
    (void)state;
    static const char *const names[] = {"archives/stored.npz", "archives/deflated.npz"};
    for (size_t i = 0; i < WK_COUNT(names); i++) {
        wick_tensor_file *const file = open_fixture(names[i]);
        const wick_file_tensor *const tensors[] = {wick_tensor_file_get(file, 7),
                                                   wick_tensor_file_get(file, 8)};
        static unsigned char want[2][8000], got[2][8000];
        wick_error error = {.status = WICK_OK};
        size_t at[2] = {0};
        for (int k = 0; k < 2; k++) {
            assert_in_range(tensors[k]->size, 300, sizeof want[k]);
            assert_int_equal(
                wk_tensor_file_read(file, tensors[k], 0, want[k], (size_t)tensors[k]->size, &error),
                WICK_OK);
        }
        for (int k = 0; at[0] < tensors[0]->size || at[1] < tensors[1]->size; k = !k) {
            const size_t left = (size_t)tensors[k]->size - at[k], n = left < 111 ? left : 111;
            for (size_t part = 0; part < 2; part++) { /* the second was unpacked before */
                const size_t from = part * n / 2, to = part == 0 ? n / 2 : n;
                assert_int_equal(wk_tensor_file_read(file, tensors[k], at[k] + from,
                                                     got[k] + at[k] + from, to - from, &error),
                                 WICK_OK);
            }
            at[k] += n;
        }
        assert_memory_equal(got, want, sizeof got);
        wick_tensor_file_close(file);
    }
}

/* Bytes in memory, and a source that cannot be used. */
static void test_source(void **state) {
    (void)state;
    fixture_file bytes;
    wick_tensor_file *file;
    if (!fixture_read("WICK_TEST_DATA", "archives/single.pt", &bytes)) skip();
    wick_device *const device = open_device();
    assert_int_equal(
        wick_tensor_file_open_source(wick_source_memory(bytes.data, bytes.size), &file, NULL),
        WICK_OK);
    check_tensor(device, file, "", WICK_F32, WICK_SHAPE(2, 3), NULL);
    wick_tensor_file_close(file);
    wick_error error = {.status = WICK_OK};
    assert_int_equal(wick_tensor_file_open_source((wick_source){.size = 1}, &file, &error),
                     WICK_ERR_ARGUMENT);
    assert_null(file);
    error = (wick_error){.status = WICK_OK};
    wick_source pushed;
    wick_push_source *push;
    assert_int_equal(wick_source_push_make(bytes.size, &pushed, &push), WICK_OK);
    assert_int_equal(wick_tensor_file_open_source(pushed, &file, &error), WICK_ERR_UNSUPPORTED);
    wick_source_push_finish(push);
    error = (wick_error){.status = WICK_OK};
    assert_int_equal(wick_tensor_file_open_source(wick_source_memory("", 0), &file, &error),
                     WICK_ERR_FORMAT);
    assert_non_null(strstr(error.message, "not a GGUF"));
    free(bytes.data);
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
        assert_string_equal(wick_tensor_file_format(file), "PyTorch");
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

static const char *out_path(const char *ending) {
    static char path[64];
    snprintf(path, sizeof path, "test_archive_out%s", ending);
    return path;
}

enum { N_TYPES = 11 };

/* As many tensors as there are types that NumPy has, and then bf16. */
static void make_tensors(wick_device *device, char (*names)[16], const char **list,
                         wick_tensor **tensors, const unsigned char *bytes) {
    static const wick_dtype dtypes[N_TYPES] = {WICK_F32, WICK_F16,  WICK_F64, WICK_I64,
                                               WICK_I32, WICK_I16,  WICK_I8,  WICK_U32,
                                               WICK_U8,  WICK_BOOL, WICK_BF16};
    const wick_shape shapes[] = {WICK_SHAPE(2, 3), WICK_SCALAR, WICK_SHAPE(0, 5),
                                 WICK_SHAPE(1, 1, 2, 1, 1, 3), WICK_SHAPE(70000)};
    for (size_t i = 0; i < N_TYPES; i++) {
        snprintf(names[i], sizeof names[i], "a/b.\xC3\xA9 %d", (int)i);
        list[i] = names[i];
        tensors[i] = wick_empty(device, dtypes[i], shapes[i % WK_COUNT(shapes)]);
        assert_int_equal(wick_write(tensors[i], bytes, wick_tensor_bytes(tensors[i])), WICK_OK);
    }
}

static void check_round_trip(wick_device *device, const char *path, const char **list,
                             wick_tensor **tensors, size_t n, const unsigned char *bytes) {
    static unsigned char back[70000 * 8];
    wick_error error = {.status = WICK_OK};
    wick_tensor_file *file;
    if (wick_tensor_file_save(path, list, tensors, n, &error) != WICK_OK ||
        wick_tensor_file_open(path, &file, &error) != WICK_OK)
        fail_msg("%s", error.message);
    assert_int_equal(wick_tensor_file_count(file), n);
    for (size_t i = 0; i < n; i++) {
        wick_tensor *const found = wick_tensor_file_load(file, device, list[i]);
        const size_t size = wick_tensor_bytes(tensors[i]);
        assert_int_equal(wick_tensor_dtype(found), wick_tensor_dtype(tensors[i]));
        assert_int_equal(wick_tensor_shape(found).rank, wick_tensor_shape(tensors[i]).rank);
        assert_int_equal(wick_tensor_bytes(found), size);
        assert_int_equal(wick_read(found, back, size), WICK_OK);
        assert_memory_equal(back, bytes, size);
        wick_release(found);
    }
    wick_tensor_file_close(file);
    assert_int_equal(wick_tensor_file_save(path, NULL, NULL, 0, &error), WICK_OK);
    assert_int_equal(wick_tensor_file_open(path, &file, &error), WICK_OK);
    assert_int_equal(wick_tensor_file_count(file), 0);
    wick_tensor_file_close(file);
    assert_int_equal(remove(path), 0);
}

static void test_round_trip(void **state) {
    (void)state;
    static const char *const endings[] = {".npz", ".pt", ".pth", ".safetensors"};
    static unsigned char bytes[70000 * 8];
    char names[N_TYPES][16];
    const char *list[N_TYPES];
    wick_tensor *tensors[N_TYPES];
    wick_device *const device = open_device();
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = i % 3 == 0;
    make_tensors(device, names, list, tensors, bytes);
    for (size_t k = 0; k < WK_COUNT(endings); k++) {
        const bool is_npz = k == 0; /* NumPy has no bf16 */
        check_round_trip(device, out_path(endings[k]), list, tensors,
                         is_npz ? N_TYPES - 1 : N_TYPES, bytes);
    }
    for (size_t i = 0; i < N_TYPES; i++) wick_release(tensors[i]);
    wick_device_close(device);
}

/* What is written can be read: the longest name, and one byte more is refused. */
static void test_long_names(void **state) {
    (void)state;
    static const char *const endings[] = {".npz", ".pt"};
    enum { LONGEST = 32768 };
    static char name[LONGEST + 2];
    const char *const names[] = {name};
    wick_device *const device = open_device();
    wick_tensor *const x = wick_zeros(device, WICK_U8, WICK_SHAPE(3));
    for (size_t i = 0; i < WK_COUNT(endings); i++) {
        wick_error error = {.status = WICK_OK};
        wick_tensor_file *file;
        const char *const path = out_path(endings[i]);
        memset(name, 'n', LONGEST);
        name[LONGEST] = '\0';
        assert_int_equal(wick_tensor_file_save(path, names, &x, 1, &error), WICK_OK);
        if (wick_tensor_file_open(path, &file, &error) != WICK_OK) fail_msg("%s", error.message);
        assert_string_equal(wick_tensor_file_get(file, 0)->name.text, name);
        wick_tensor_file_close(file);
        assert_int_equal(remove(path), 0);
        name[LONGEST] = 'n';
        assert_int_equal(wick_tensor_file_save(path, names, &x, 1, &error), WICK_ERR_VALUE);
    }
    wick_release(x);
    wick_device_close(device);
}

/* A tensor without a name is the entry ".npy". */
static void test_no_name(void **state) {
    (void)state;
    wick_tensor_file *file;
    wick_device *const device = open_device();
    wick_tensor *const x = wick_zeros(device, WICK_U8, WICK_SHAPE(3));
    const char *const path = out_path(".npz");
    assert_int_equal(wick_tensor_file_save(path, (const char *[]){""}, &x, 1, NULL), WICK_OK);
    assert_int_equal(wick_tensor_file_open(path, &file, NULL), WICK_OK);
    assert_int_equal(wick_tensor_file_count(file), 1);
    assert_string_equal(wick_tensor_file_get(file, 0)->name.text, "");
    wick_tensor_file_close(file);
    assert_int_equal(remove(path), 0);
    wick_release(x);
    wick_device_close(device);
}

/* What cannot be written leaves no file. */
static void test_save_refused(void **state) {
    (void)state;
    wick_device *const device = open_device();
    wick_tensor *const u = wick_zeros(device, WICK_U8, WICK_SHAPE(3));
    wick_tensor *const b = wick_zeros(device, WICK_BF16, WICK_SHAPE(3));
    const struct {
        const char *ending;
        const char *names[2];
        wick_tensor *tensors[2];
        size_t n;
        wick_status status;
        const char *words;
    } wrong[] = {
        {".npz", {"a", "a"}, {u, u}, 2, WICK_ERR_VALUE, "two tensors have the name 'a'"},
        {".pt", {"a", "a"}, {u, u}, 2, WICK_ERR_VALUE, "two tensors have the name 'a'"},
        {".npz", {"a", "\xFF"}, {u, u}, 2, WICK_ERR_VALUE, "can be called"},
        {".npz", {"a", "b"}, {u, b}, 2, WICK_ERR_DTYPE, "'b' is bf16, which npz files do not"},
        {".npz", {"a", NULL}, {u, u}, 2, WICK_ERR_ARGUMENT, "wick_tensor_file_save: tensor 1"},
        {".pt", {"a", "b"}, {u, NULL}, 2, WICK_ERR_ARGUMENT, "tensor 1"},
        {".npy", {"a"}, {u}, 1, WICK_ERR_VALUE, "one tensor"},
        {".npy", {"", "b"}, {u, u}, 2, WICK_ERR_VALUE, "one tensor"},
        {".gguf", {"a"}, {u}, 1, WICK_ERR_VALUE, "ends neither"},
    };
    for (size_t i = 0; i < WK_COUNT(wrong); i++) {
        wick_error error = {.status = WICK_OK};
        const char *const path = out_path(wrong[i].ending);
        assert_int_equal(
            wick_tensor_file_save(path, wrong[i].names, wrong[i].tensors, wrong[i].n, &error),
            wrong[i].status);
        if (strstr(error.message, wrong[i].words) == NULL)
            fail_msg("'%s' lacks '%s'", error.message, wrong[i].words);
        assert_null(fopen(path, "rb"));
    }
    wick_error error = {.status = WICK_OK};
    assert_int_equal(wick_tensor_file_save(NULL, NULL, NULL, 0, &error), WICK_ERR_ARGUMENT);
    error = (wick_error){.status = WICK_OK};
    /* A full disk. */
    FILE *const full = fopen("/dev/full", "wb");
    if (full != NULL) {
        fclose(full);
        const char *const path = out_path(".npz");
        if (symlink("/dev/full", path) == 0) {
            assert_int_equal(wick_tensor_file_save(path, (const char *[]){"a"}, &u, 1, &error),
                             WICK_ERR_IO);
            assert_int_equal(remove(path), 0);
        }
    }
    wick_release(u);
    wick_release(b);
    wick_device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_name),    cmocka_unit_test(test_npy),
        cmocka_unit_test(test_npz),        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_source),     cmocka_unit_test(test_state_dict),
        cmocka_unit_test(test_checkpoint), cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_long_names), cmocka_unit_test(test_save_refused)};
    return cmocka_run_group_tests_name("archive", tests, NULL, NULL);
}
