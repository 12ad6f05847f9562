/* Headers of safetensors files. */
#include "format/safetensors.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "checked_heap.h"
#include "fixture_file.h"

#include <stdio.h>
#include <string.h>

static checked_heap checked;
static wk_arena arena;

static int begin(void **state) {
    (void)state;
    checked_heap_init(&checked, UINT64_MAX);
    wk_arena_init(&arena, &checked.heap, 1024);
    return 0;
}

static int end(void **state) {
    (void)state;
    wk_arena_release(&arena);
    return checked_heap_is_clean(&checked) ? 0 : -1;
}

/* Parses a file of this header and data_size bytes of data, in memory of exactly its size. */
static wick_status parse(const char *header, size_t data_size, wk_safetensors *out,
                         wick_error *error) {
    const uint64_t length = strlen(header);
    const size_t size = 8 + (size_t)length + data_size;
    uint8_t *const data = calloc(1, size);
    assert_non_null(data);
    memcpy(data, &length, 8);
    memcpy(data + 8, header, (size_t)length);
    *error = (wick_error){.status = WICK_OK};
    const wick_status status = wk_safetensors_parse(&checked.heap, &arena, data, size, out, error);
    free(data); /* names must not point into it */
    return status;
}

static void test_small_file(void **state) {
    (void)state;
    wk_safetensors file;
    wick_error error;
    const char *const header =
        "{\"__metadata__\": {\"format\": \"pt\"},"
        "\"b\": {\"dtype\": \"BF16\", \"shape\": [2, 3], \"data_offsets\": [4, 16]},"
        "\"a\": {\"dtype\": \"F32\", \"shape\": [], \"data_offsets\": [0, 4]},"
        "\"empty\": {\"dtype\": \"I8\", \"shape\": [0, 5], \"data_offsets\": [4, 4]}}   ";
    assert_int_equal(parse(header, 16, &file, &error), WICK_OK);
    assert_int_equal(file.n_tensors, 3);
    const wick_file_tensor *const b = wk_safetensors_find(&file, wk_str_of("b"));
    assert_ptr_equal(b, &file.tensors[0]);
    assert_int_equal(b->dtype, WICK_BF16);
    assert_int_equal(b->shape.rank, 2);
    assert_int_equal(b->shape.extent[0], 2);
    assert_int_equal(b->shape.extent[1], 3);
    assert_int_equal(b->offset, 8 + strlen(header) + 4);
    assert_int_equal(b->size, 12);
    assert_string_equal(b->name.text, "b");
    assert_int_equal(wk_safetensors_find(&file, wk_str_of("a"))->shape.rank, 0);
    assert_null(wk_safetensors_find(&file, wk_str_of("__metadata__")));
    wk_map_release(&file.index);
    assert_int_equal(parse("{}", 0, &file, &error), WICK_OK);
    assert_int_equal(file.n_tensors, 0);
    wk_map_release(&file.index);
}

static void test_dtypes(void **state) {
    (void)state;
    static const struct {
        const char *name;
        wick_dtype dtype;
        int bytes;
    } cases[] = {
        {"F64", WICK_F64, 8}, {"F32", WICK_F32, 4}, {"F16", WICK_F16, 2},   {"BF16", WICK_BF16, 2},
        {"I64", WICK_I64, 8}, {"I32", WICK_I32, 4}, {"I16", WICK_I16, 2},   {"I8", WICK_I8, 1},
        {"U32", WICK_U32, 4}, {"U8", WICK_U8, 1},   {"BOOL", WICK_BOOL, 1},
    };
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        char header[100];
        snprintf(header, sizeof header,
                 "{\"x\":{\"dtype\":\"%s\",\"shape\":[3],"
                 "\"data_offsets\":[0,%d]}}",
                 cases[i].name, 3 * cases[i].bytes);
        wk_safetensors file;
        wick_error error;
        assert_int_equal(parse(header, 3 * (size_t)cases[i].bytes, &file, &error), WICK_OK);
        assert_int_equal(file.tensors[0].dtype, cases[i].dtype);
        wk_map_release(&file.index);
    }
}

#define TENSOR(dtype, shape, range)                                                                \
    "{\"x\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" range "}}"

static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *header;
        size_t data_size;
        wick_status status;
        const char *part; /* of the message */
    } cases[] = {
        {"[]", 0, WICK_ERR_FORMAT, "not a JSON object"},
        {"{\"x\":", 0, WICK_ERR_FORMAT, "byte"},
        {"{\"x\":7}", 0, WICK_ERR_FORMAT, "'x' is not an object"},
        {"{\"x\":{}}", 0, WICK_ERR_FORMAT, "'x' has no dtype"},
        {TENSOR("7", "[]", "[0,4]"), 4, WICK_ERR_FORMAT, "'x' has no dtype"},
        {TENSOR("\"F8_E8M0\"", "[4]", "[0,4]"), 4, WICK_ERR_UNSUPPORTED, "'F8_E8M0'"},
        {TENSOR("\"F32\"", "1", "[0,4]"), 4, WICK_ERR_FORMAT, "no shape"},
        {TENSOR("\"F32\"", "[-1]", "[0,4]"), 4, WICK_ERR_FORMAT, "not an integer >= 0"},
        {TENSOR("\"F32\"", "[1.5]", "[0,4]"), 4, WICK_ERR_FORMAT, "not an integer >= 0"},
        {TENSOR("\"F32\"", "[1,1,1,1,1,1,1]", "[0,4]"), 4, WICK_ERR_UNSUPPORTED, "7 dimensions"},
        {TENSOR("\"F32\"", "[9223372036854775807,2]", "[0,4]"), 4, WICK_ERR_FORMAT, "too many"},
        {TENSOR("\"F32\"", "[9223372036854775807]", "[0,4]"), 4, WICK_ERR_FORMAT, "too many"},
        {TENSOR("\"F32\"", "[1]", "[0]"), 4, WICK_ERR_FORMAT, "no data_offsets"},
        {TENSOR("\"F32\"", "[1]", "[4,0]"), 4, WICK_ERR_FORMAT, "the file has 4 bytes of data"},
        {TENSOR("\"F32\"", "[2]", "[0,8]"), 4, WICK_ERR_FORMAT, "the file has 4 bytes of data"},
        {TENSOR("\"F32\"", "[1]", "[0,8]"), 8, WICK_ERR_FORMAT, "needs 4 bytes"},
        {TENSOR("\"F32\"", "[1]", "[0,4]"), 5, WICK_ERR_FORMAT, "the tensors end at 4"},
        {TENSOR("\"F32\"", "[1]", "[1,5]"), 5, WICK_ERR_FORMAT, "begins at 1"},
        {"{\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
         "\"y\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[2,6]}}",
         6, WICK_ERR_FORMAT, "'y' begins at 2"},
        {"{\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
         "\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}",
         8, WICK_ERR_FORMAT, "two tensors have the name 'x'"},
    };
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        wk_safetensors file;
        wick_error error;
        assert_int_equal(parse(cases[i].header, cases[i].data_size, &file, &error),
                         cases[i].status);
        assert_int_equal(file.n_tensors, 0);
        if (strstr(error.message, cases[i].part) == NULL)
            fail_msg("'%s' is not in '%s'", cases[i].part, error.message);
    }
}

static void test_lengths(void **state) {
    (void)state;
    static const uint64_t lengths[] = {0,         1, 9, 10, UINT64_C(1) << 31, UINT64_C(1) << 63,
                                       UINT64_MAX};
    for (size_t i = 0; i < WK_COUNT(lengths); i++) {
        uint8_t data[17] = "        {}       ";
        memcpy(data, &lengths[i], 8);
        for (size_t size = 0; size <= sizeof data; size++) {
            wk_safetensors file;
            wick_error error = {.status = WICK_OK};
            const wick_status status =
                wk_safetensors_parse(&checked.heap, &arena, data, size, &file, &error);
            const bool is_right = lengths[i] == 9 && size == 17;
            assert_int_equal(status, is_right ? WICK_OK : WICK_ERR_FORMAT);
            wk_map_release(&file.index);
        }
    }
}

static void test_out_of_memory(void **state) {
    (void)state;
    const char *const header = TENSOR("\"F32\"", "[1]", "[0,4]");
    for (uint64_t n = 0;; n++) {
        checked_heap_init(&checked, n);
        wk_arena_init(&arena, &checked.heap, 64);
        wk_safetensors file;
        wick_error error;
        const wick_status status = parse(header, 4, &file, &error);
        wk_map_release(&file.index);
        wk_arena_release(&arena);
        assert_true(checked_heap_is_clean(&checked));
        if (status == WICK_OK) break;
        assert_int_equal(status, WICK_ERR_OUT_OF_MEMORY);
    }
}

static void test_fixture(void **state) {
    (void)state;
    fixture_file fixture;
    if (!fixture_read("WICK_SHARED_DATA", "ops/data.safetensors", &fixture)) skip();
    wk_safetensors file;
    wick_error error = {.status = WICK_OK};
    assert_int_equal(
        wk_safetensors_parse(&checked.heap, &arena, fixture.data, fixture.size, &file, &error),
        WICK_OK);
    assert_true(file.n_tensors > 1000);
    uint64_t bytes = 0;
    for (size_t i = 0; i < file.n_tensors; i++) bytes += file.tensors[i].size;
    uint64_t length;
    memcpy(&length, fixture.data, sizeof length);
    assert_int_equal(8 + length + bytes, fixture.size);
    wk_map_release(&file.index);
    free(fixture.data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_small_file, begin, end),
        cmocka_unit_test_setup_teardown(test_dtypes, begin, end),
        cmocka_unit_test_setup_teardown(test_refused, begin, end),
        cmocka_unit_test_setup_teardown(test_lengths, begin, end),
        cmocka_unit_test_setup_teardown(test_out_of_memory, begin, end),
        cmocka_unit_test_setup_teardown(test_fixture, begin, end),
    };
    return cmocka_run_group_tests_name("safetensors", tests, NULL, NULL);
}
