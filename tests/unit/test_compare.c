/* The tensors of two files side by side: sums worked out by hand, formats, what is refused. */
#define _POSIX_C_SOURCE 200809L /* mkdtemp */

#include <wick/wick.h>

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64], path_a[96], path_b[96];

static int begin(void **state) {
    (void)state;
    strcpy(folder, "/tmp/wick-compare-XXXXXX");
    if (mkdtemp(folder) == NULL) return -1;
    snprintf(path_a, sizeof path_a, "%s/a", folder);
    snprintf(path_b, sizeof path_b, "%s/b", folder);
    return 0;
}

static int end(void **state) {
    (void)state;
    remove(path_a);
    remove(path_b);
    return rmdir(folder);
}

static void write_npy(const char *path, wick_dtype dtype, wick_shape shape, const void *data,
                      size_t size) {
    wick_npy_writer *writer;
    assert_int_equal(wick_npy_start(path, dtype, shape, &writer, NULL), WICK_OK);
    assert_int_equal(wick_npy_write(writer, data, size, NULL), WICK_OK);
    assert_int_equal(wick_npy_finish(writer, true, NULL), WICK_OK);
}

static void write_bytes(const char *path, const void *header, size_t header_size, const void *data,
                        size_t size) {
    FILE *const file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(header, 1, header_size, file), header_size);
    if (size > 0) assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void write_safetensors(const char *path, const char *json, const void *data, size_t size) {
    char header[512];
    const uint64_t length = strlen(json);
    memcpy(header, &length, sizeof length);
    memcpy(header + sizeof length, json, (size_t)length);
    write_bytes(path, header, sizeof length + (size_t)length, data, size);
}

static wick_comparison *open_both(void) {
    wick_comparison *comparison;
    wick_error error = {0};
    if (wick_compare_open(path_a, path_b, &comparison, &error) != WICK_OK)
        fail_msg("%s", error.message);
    return comparison;
}

static wick_compared compare(wick_comparison *comparison, size_t index, double tolerance) {
    wick_compared compared;
    wick_error error = {0};
    if (wick_compare_tensor(comparison, index, tolerance, &compared, &error) != WICK_OK)
        fail_msg("%s", error.message);
    return compared;
}

static bool is_near(double got, double expected) { return fabs(got - expected) < 1e-12; }

static void test_sums(void **state) {
    (void)state;
    const float a[] = {1, 2, 3, 4}, b[] = {1, 2.5F, 3, 2};
    write_npy(path_a, WICK_F32, WICK_SHAPE(2, 2), a, sizeof a);
    write_npy(path_b, WICK_F32, WICK_SHAPE(2, 2), b, sizeof b);
    wick_comparison *const comparison = open_both();
    assert_int_equal(wick_compare_count(comparison), 1);
    wick_compared c = compare(comparison, 0, 0);
    assert_true(c.is_in_a && c.is_in_b && c.is_compared);
    assert_string_equal(c.name, "");
    assert_int_equal(c.n_elements, 4);
    assert_int_equal(c.n_different, 2);
    assert_int_equal(c.first, 1);
    assert_true(c.first_a == 2 && c.first_b == 2.5 && c.largest == 2);
    assert_true(is_near(c.rms, sqrt(4.25 / 4))); /* 0.25 + 4 */
    assert_true(is_near(c.cosine, 23 / sqrt(30 * 20.25)));
    c = compare(comparison, 0, 0.5);
    assert_int_equal(c.n_different, 1);
    assert_int_equal(c.first, 3);
    assert_int_equal(compare(comparison, 0, 2).n_different, 0);
    wick_error error = {0};
    assert_int_equal(wick_compare_tensor(comparison, 1, 0, &c, NULL), WICK_ERR_INDEX);
    assert_int_equal(wick_compare_tensor(comparison, 0, -1, &c, &error), WICK_ERR_VALUE);
    assert_int_equal(wick_compare_tensor(comparison, 0, NAN, &c, NULL), WICK_ERR_VALUE);
    wick_compare_close(comparison);
}

static void test_no_numbers(void **state) {
    (void)state;
    const double a[] = {NAN, INFINITY, 1}, b[] = {NAN, INFINITY, NAN}, zeros[3] = {0};
    write_npy(path_a, WICK_F64, WICK_SHAPE(3), a, sizeof a);
    write_npy(path_b, WICK_F64, WICK_SHAPE(3), b, sizeof b);
    wick_comparison *comparison = open_both();
    wick_compared c = compare(comparison, 0, 1e30);
    assert_true(c.n_different == 1 && c.first == 2 && c.largest == INFINITY && c.rms == INFINITY);
    wick_compare_close(comparison);
    write_npy(path_a, WICK_F64, WICK_SHAPE(3), zeros, sizeof zeros);
    write_npy(path_b, WICK_F64, WICK_SHAPE(3), zeros, sizeof zeros);
    comparison = open_both();
    assert_true(compare(comparison, 0, 0).cosine == 1);
    wick_compare_close(comparison);
}

/* More than a piece; the one that differs is in the last. Another order of the same array. */
static void test_large(void **state) {
    (void)state;
    enum { N = 10000 };
    static int16_t a[N];
    static float b[N];
    for (int i = 0; i < N; i++) b[i] = (float)(a[i] = (int16_t)(i - 5000));
    b[N - 1] += 1;
    write_npy(path_a, WICK_I16, WICK_SHAPE(N), a, sizeof a);
    write_npy(path_b, WICK_F32, WICK_SHAPE(N), b, sizeof b);
    wick_comparison *comparison = open_both();
    const wick_compared c = compare(comparison, 0, 0);
    assert_true(c.n_different == 1 && c.first == N - 1 && c.largest == 1);
    assert_true(c.dtype_a == WICK_I16 && c.dtype_b == WICK_F32);
    wick_compare_close(comparison);

    static const char fortran[] = "\x93NUMPY\x01\x00\x76\x00{'descr': '>i2', 'fortran_order': True,"
                                  " 'shape': (2, 2)}";
    const uint8_t columns[] = {0, 1, 0, 3, 0, 2, 0, 4};
    const int16_t rows[] = {1, 2, 3, 4};
    char header[128];
    memset(header, ' ', sizeof header);
    memcpy(header, fortran, sizeof fortran - 1);
    header[127] = '\n';
    write_bytes(path_a, header, sizeof header, columns, sizeof columns);
    write_npy(path_b, WICK_I16, WICK_SHAPE(2, 2), rows, sizeof rows);
    comparison = open_both();
    assert_int_equal(compare(comparison, 0, 0).n_different, 0);
    wick_compare_close(comparison);
}

static void write_gguf(const char *path, const wick_file_tensor *tensors, size_t n,
                       const void *data, size_t size) {
    wick_file_writer *writer;
    const wick_file_desc desc = {.tensors = tensors, .n_tensors = n, .replace = true};
    assert_int_equal(wick_file_write_start(path, &desc, &writer, NULL), WICK_OK);
    assert_int_equal(wick_file_write(writer, data, size, NULL), WICK_OK);
    assert_int_equal(wick_file_write_finish(writer, true, NULL), WICK_OK);
}

/* Blocks of q8_0 in a GGUF file: a scale (float16 1) and 32 bytes, against their values in
 * safetensors; names and shapes that differ. */
static void test_files(void **state) {
    (void)state;
    uint8_t blocks[34 + 16] = {0x00, 0x3C};
    float values[32 + 4] = {0};
    for (int i = 0; i < 32; i++) {
        blocks[2 + i] = (uint8_t)i;
        values[i] = (float)i;
    }
    const wick_file_tensor tensors[] = {
        {.name = {"blocks", 6}, .dtype = WICK_Q8_0, .shape = WICK_SHAPE(1, 32)},
        {.name = {"shape", 5}, .dtype = WICK_F32, .shape = WICK_SHAPE(2, 2)}};
    write_gguf(path_a, tensors, 2, blocks, sizeof blocks);
    write_safetensors(path_b,
                      "{\"more\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[144,144]},"
                      "\"shape\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[128,144]},"
                      "\"blocks\":{\"dtype\":\"F32\",\"shape\":[1,32],\"data_offsets\":[0,128]}}",
                      values, sizeof values);
    wick_comparison *const comparison = open_both();
    assert_int_equal(wick_compare_count(comparison), 3);
    const wick_compared same = compare(comparison, 0, 0);
    assert_string_equal(same.name, "blocks");
    assert_true(same.is_compared && same.n_different == 0 && same.n_elements == 32);
    assert_true(same.dtype_a == WICK_Q8_0 && same.dtype_b == WICK_F32);
    const wick_compared shape = compare(comparison, 1, 0);
    assert_true(shape.is_in_a && shape.is_in_b && !shape.is_compared);
    assert_true(shape.shape_a.rank == 2 && shape.shape_b.rank == 1);
    const wick_compared more = compare(comparison, 2, 0);
    assert_string_equal(more.name, "more");
    assert_true(!more.is_in_a && more.is_in_b && !more.is_compared);
    wick_compare_close(comparison);
}

static void refuse(wick_status status, const char *word) {
    wick_comparison *comparison;
    wick_error error = {0};
    assert_int_equal(wick_compare_open(path_a, path_b, &comparison, &error), status);
    assert_null(comparison);
    if (strstr(error.message, word) == NULL) fail_msg("%s", error.message);
}

static void test_refusals(void **state) {
    (void)state;
    const float number = 1;
    remove(path_a);
    write_npy(path_b, WICK_F32, WICK_SHAPE(1), &number, sizeof number);
    refuse(WICK_ERR_NOT_FOUND, path_a);
    write_safetensors(path_a, "{}", NULL, 0);
    refuse(WICK_ERR_VALUE, "has no name");
    write_bytes(path_a, "", 0, NULL, 0);
    refuse(WICK_ERR_FORMAT, path_a);
    write_bytes(path_a, "GGUF", 4, NULL, 0);
    refuse(WICK_ERR_FORMAT, path_a);
    write_bytes(path_a, "\x93NUMPY", 6, NULL, 0);
    refuse(WICK_ERR_FORMAT, path_a);
    write_bytes(path_a, "some text, longer than a length", 31, NULL, 0);
    refuse(WICK_ERR_FORMAT, path_a);
    wick_comparison *comparison;
    assert_int_equal(wick_compare_open(NULL, path_b, &comparison, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_compare_open(path_a, path_b, NULL, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_compare_tensor(NULL, 0, 0, NULL, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_compare_count(NULL), 0);
    wick_compare_close(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),     cmocka_unit_test(test_no_numbers),
        cmocka_unit_test(test_large),    cmocka_unit_test(test_files),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
