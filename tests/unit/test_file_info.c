/* wick_file_*: what is inside a model file, through the public interface. */
#include <wick/file.h>

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "fixture_file.h"
#include "gguf_bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char path[1024]; /* of a file that a test writes */

static int make_path(void **state) {
    (void)state;
    const char *const build = getenv("WICK_BUILD_DIR");
    snprintf(path, sizeof path, "%s/test_file_info.gguf", build != NULL ? build : ".");
    return 0;
}

/* Writes file to path, and one byte more that makes it file_size bytes long, if that is longer;
 * what lies between is a hole. */
static void write_file(const gguf_bytes *file, uint64_t file_size) {
    FILE *const out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(file->data, 1, file->size, out), file->size);
    if (file_size > file->size) {
        assert_int_equal(fseek(out, (long)file_size - 1, SEEK_SET), 0);
        assert_int_equal(fputc(0, out), 0);
    }
    assert_int_equal(fclose(out), 0);
}

static void test_model(void **state) {
    (void)state;
    char model[1024];
    if (!fixture_path("WICK_TEST_DATA", "stories260K.gguf", model, sizeof model)) skip();
    wick_file *file = NULL;
    wick_error error = {.status = WICK_OK};
    assert_int_equal(wick_file_open(model, &file, &error), WICK_OK);
    assert_int_equal(wick_file_version(file), 3);
    assert_int_equal(wick_file_size(file), 1054496);
    const wick_value *const architecture = wick_file_find_value(file, "general.architecture");
    assert_string_equal(architecture->string.text, "llama");
    assert_null(wick_file_find_value(file, "absent"));

    const size_t n_values = wick_file_value_count(file);
    assert_ptr_equal(wick_file_value(file, 0)->key.text,
                     wick_file_find_value(file, wick_file_value(file, 0)->key.text)->key.text);
    assert_non_null(wick_file_value(file, n_values - 1));
    assert_null(wick_file_value(file, n_values));

    const size_t n_tensors = wick_file_tensor_count(file);
    assert_int_equal(n_tensors, 47);
    for (size_t i = 0; i < n_tensors; i++) {
        const wick_file_tensor *const tensor = wick_file_get_tensor(file, i);
        assert_int_equal(tensor->dtype, WICK_F32);
        assert_true(tensor->offset + tensor->size <= wick_file_size(file));
    }
    assert_null(wick_file_get_tensor(file, n_tensors));
    wick_file_close(file);
    wick_file_close(NULL);
}

/* A header longer than a chunk of reading, and data beyond 4 GB (a hole in the file). */
static void test_large(void **state) {
    (void)state;
    static const uint64_t row[] = {1024};
    const uint64_t five_gib = UINT64_C(5) << 30;
    gguf_bytes bytes;
    put_start(&bytes, 3, 1, 0);
    put_tensor(&bytes, "far", 1, row, 0, five_gib);
    put_data(&bytes, 32, 0);
    write_file(&bytes, bytes.size + five_gib + 4096);
    wick_file *file = NULL;
    wick_error error = {.status = WICK_OK};
    assert_int_equal(wick_file_open(path, &file, &error), WICK_OK);
    assert_true(wick_file_get_tensor(file, 0)->offset == bytes.size + five_gib);
    wick_file_close(file);

    put_start(&bytes, 3, 0, 1);
    put_array(&bytes, "zeros", WICK_VALUE_U8, 3000000);
    write_file(&bytes, bytes.size + 3000000);
    assert_int_equal(wick_file_open(path, &file, &error), WICK_OK);
    assert_int_equal(wick_file_find_value(file, "zeros")->array.count, 3000000);
    wick_file_close(file);
    remove(path);
}

static void check_refused(const char *name, wick_status expected, const char *part) {
    wick_file *file = (wick_file *)path; /* must be overwritten */
    wick_error error = {.status = WICK_OK};
    assert_int_equal(wick_file_open(name, &file, &error), expected);
    assert_null(file);
    assert_int_equal(error.status, expected);
    if (strstr(error.message, part) == NULL) fail_msg("'%s' is not in '%s'", part, error.message);
    if (name != NULL && strstr(error.message, name) == NULL)
        fail_msg("'%s' is not in '%s'", name, error.message);
}

static void test_refused(void **state) {
    (void)state;
    check_refused("no/such/file.gguf", WICK_ERR_NOT_FOUND, "no/such/file.gguf");
    check_refused(NULL, WICK_ERR_ARGUMENT, "path");
    assert_int_equal(wick_file_open(path, NULL, NULL), WICK_ERR_ARGUMENT);
    gguf_bytes bytes = {.size = 0};
    write_file(&bytes, 0);
    check_refused(path, WICK_ERR_FORMAT, "byte 0: ");
    put_start(&bytes, 3, 0, 1);
    put_u64(&bytes, UINT64_C(1) << 63);
    write_file(&bytes, 0);
    check_refused(path, WICK_ERR_FORMAT, "byte 16: ");
    write_file(&bytes, 1000);
    check_refused(path, WICK_ERR_FORMAT, "byte 24: a key of 9223372036854775808 bytes");
    remove(path);
}

/* A header that arrives in small pieces, from a source that makes one wait. */
static void test_in_steps(void **state) {
    (void)state;
    char model[1024];
    snprintf(model, sizeof model, "%s/stories260K.gguf", getenv("WICK_TEST_DATA"));
    FILE *const in = fopen(model, "rb");
    assert_non_null(in);
    static char bytes[40000];
    wick_source source;
    wick_push_source *push = NULL;
    wick_file_opening *opening = NULL;
    wick_file *file = NULL;
    wick_error error = {0};
    assert_int_equal(wick_source_push_make(WICK_SIZE_UNKNOWN, &source, &push), WICK_OK);
    assert_int_equal(wick_file_open_start(source, &opening, &error), WICK_OK);
    assert_int_equal(wick_file_open_poll(opening), WICK_PENDING);
    size_t n;
    while ((n = fread(bytes, 1, sizeof bytes, in)) > 0) {
        (void)wick_source_push(push, bytes, n);
        if (wick_file_open_poll(opening) != WICK_PENDING) break;
    }
    fclose(in);
    assert_int_equal(wick_file_open_finish(opening, &file, &error), WICK_OK);
    assert_int_equal(wick_file_tensor_count(file), 47);
    assert_int_equal(wick_file_read(file, 256 << 10, bytes, sizeof bytes, &error),
                     WICK_ERR_UNSUPPORTED);
    wick_file_close(file);
    wick_source_push_finish(push);
}

static void test_steps_refused(void **state) {
    (void)state;
    wick_source source;
    wick_push_source *push = NULL;
    wick_file_opening *opening = NULL;
    wick_file *file = NULL;
    wick_error error = {0};
    assert_int_equal(wick_file_open_start((wick_source){0}, &opening, &error), WICK_ERR_ARGUMENT);
    assert_null(opening);
    assert_int_equal(wick_file_open_poll(NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_file_open_finish(NULL, &file, NULL), WICK_ERR_ARGUMENT);
    /* Given up. */
    assert_int_equal(wick_source_push_make(100, &source, &push), WICK_OK);
    assert_int_equal(wick_file_open_start(source, &opening, NULL), WICK_OK);
    assert_int_equal(wick_file_open_finish(opening, &file, NULL), WICK_ERR_CANCELLED);
    assert_int_equal(wick_source_push(push, "GGUF", 4), WICK_ERR_CANCELLED);
    wick_source_push_finish(push);
    /* No such file, and one that ends. */
    static const char *const cases[] = {"NOPE and more of it", "GGUF"};
    for (size_t i = 0; i < 2; i++) {
        error = (wick_error){0};
        source = wick_source_memory(cases[i], strlen(cases[i]));
        assert_int_equal(wick_file_open_start(source, &opening, NULL), WICK_OK);
        assert_int_equal(wick_file_open_poll(opening), WICK_ERR_FORMAT);
        assert_int_equal(wick_file_open_finish(opening, &file, &error), WICK_ERR_FORMAT);
        assert_null(file);
        assert_int_not_equal(error.message[0], '\0');
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model),         cmocka_unit_test(test_large),
        cmocka_unit_test(test_refused),       cmocka_unit_test(test_in_steps),
        cmocka_unit_test(test_steps_refused),
    };
    return cmocka_run_group_tests_name("file_info", tests, make_path, NULL);
}
