/* Writing GGUF headers and files: what is written is read back the same, what no one could read is
 * refused before there is a file. Whole files are in tests/cli/test_gguf_files.py. */
#include "format/gguf_write.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "checked_heap.h"
#include "gguf_same.h"

#include <dirent.h>
#include <stdio.h>

#define TEXT(literal) {(literal), sizeof(literal) - 1}
#define KEY(literal) .key = TEXT(literal)

static const int16_t numbers[] = {1, -1, 300};
static const bool bools[] = {true, false};
static const double doubles[] = {0.1, -2.5};
static const wick_string texts[] = {TEXT("a"), TEXT(""), TEXT("c\0c")};

/* One value of each type; arrays. */
static const wick_value everything[] = {
    {KEY("general.alignment"), .type = WICK_VALUE_U32, .u = 64},
    {KEY("u8"), .type = WICK_VALUE_U8, .u = 254},
    {KEY("i8"), .type = WICK_VALUE_I8, .i = -2},
    {KEY("u16"), .type = WICK_VALUE_U16, .u = 65534},
    {KEY("i16"), .type = WICK_VALUE_I16, .i = INT16_MIN},
    {KEY("u32"), .type = WICK_VALUE_U32, .u = UINT32_MAX},
    {KEY("i32"), .type = WICK_VALUE_I32, .i = -1},
    {KEY("f32"), .type = WICK_VALUE_F32, .f = 1.5},
    {KEY("bool"), .type = WICK_VALUE_BOOL, .u = 1},
    {KEY("string"), .type = WICK_VALUE_STRING, .string = TEXT("h\xc3\xa9llo")},
    {KEY("u64"), .type = WICK_VALUE_U64, .u = UINT64_MAX},
    {KEY("i64"), .type = WICK_VALUE_I64, .i = INT64_MIN},
    {KEY("f64"), .type = WICK_VALUE_F64, .f = -1.25e300},
    {KEY("numbers"), .type = WICK_VALUE_ARRAY, .array = {WICK_VALUE_I16, 3, numbers}},
    {KEY("bools"), .type = WICK_VALUE_ARRAY, .array = {WICK_VALUE_BOOL, 2, bools}},
    {KEY("doubles"), .type = WICK_VALUE_ARRAY, .array = {WICK_VALUE_F64, 2, doubles}},
    {KEY("texts"), .type = WICK_VALUE_ARRAY, .array = {WICK_VALUE_STRING, 3, texts}},
    {KEY("nothing"), .type = WICK_VALUE_ARRAY, .array = {WICK_VALUE_STRING, 0, NULL}},
};
static const wick_file_tensor tensors[] = {
    {.name = TEXT("weight"), .dtype = WICK_Q4_0, .shape = {2, {3, 64}}}, /* 108 bytes */
    {.name = TEXT("empty"), .dtype = WICK_F16, .shape = {2, {0, 7}}},
    {.name = TEXT("scalar"), .dtype = WICK_F64, .shape = {0, {0}}},
    {.name = TEXT("deep"), .dtype = WICK_I8, .shape = {4, {2, 3, 4, 5}}},
    {.name = TEXT("bias"), .dtype = WICK_F32, .shape = {1, {3}}},
};
static const uint64_t places[] = {0, 128, 128, 192, 320};

static const wk_gguf_contents contents = {everything, WK_COUNT(everything), tensors,
                                          WK_COUNT(tensors)};

static wick_status write_header(checked_heap *checked, const wk_gguf_contents *of, wk_strbuf *buf,
                                wk_gguf_parser **parser, wick_error *error) {
    wk_strbuf_init(buf, &checked->heap);
    *error = (wick_error){.status = WICK_OK};
    return wk_gguf_write_header(buf, of, parser, error);
}

static void test_everything(void **state) {
    (void)state;
    checked_heap checked;
    checked_heap_init(&checked, UINT64_MAX);
    wk_strbuf buf;
    wk_gguf_parser *parser;
    wick_error error;
    assert_int_equal(write_header(&checked, &contents, &buf, &parser, &error), WICK_OK);
    const wk_gguf *const gguf = wk_gguf_parser_result(parser);
    assert_int_equal(gguf->version, 3);
    assert_int_equal(gguf->alignment, 64);
    assert_int_equal(gguf->n_values, WK_COUNT(everything));
    assert_int_equal(gguf->n_tensors, WK_COUNT(tensors));
    for (size_t i = 0; i < gguf->n_values; i++)
        assert_true(same_value(&gguf->values[i], &everything[i]));
    for (size_t i = 0; i < gguf->n_tensors; i++) {
        assert_true(same_string(gguf->tensors[i].name, tensors[i].name));
        assert_int_equal(gguf->tensors[i].dtype, tensors[i].dtype);
        assert_true(wk_shape_equal(&gguf->tensors[i].shape, &tensors[i].shape));
        assert_int_equal(gguf->tensors[i].offset, gguf->data_offset + places[i]);
    }
    assert_int_equal(gguf->data_offset, (buf.size + 63) / 64 * 64);
    wk_gguf_parser_free(parser);
    wk_strbuf_release(&buf);
    assert_true(checked_heap_is_clean(&checked));
}

typedef struct refused_case {
    wick_value value;
    const char *words;
} refused_case;

static const refused_case refused_values[] = {
    {{KEY("k"), .type = WICK_VALUE_U8, .u = 256}, "'k' does not fit into 1 bytes"},
    {{KEY("k"), .type = WICK_VALUE_I16, .i = 32768}, "'k' does not fit into 2 bytes"},
    {{KEY("k"), .type = WICK_VALUE_I32, .i = INT64_MIN}, "'k' does not fit into 4 bytes"},
    {{KEY("k"), .type = WICK_VALUE_BOOL, .u = 2}, "has a bool of value 2"},
    {{KEY("k"), .type = (wick_value_type)13, .u = 2}, "'k' is of the unknown type 13"},
    {{KEY("k"), .type = WICK_VALUE_ARRAY, .array = {WICK_VALUE_ARRAY, 1, bools}},
     "'k' is an array of the type 9"},
    {{KEY("k"), .type = WICK_VALUE_ARRAY, .array = {WICK_VALUE_U64, UINT64_MAX, bools}},
     "that are not there"},
    {{KEY("k"), .type = WICK_VALUE_ARRAY, .array = {WICK_VALUE_U8, 1, NULL}},
     "1 values that are not there"},
    {{KEY("general.alignment"), .type = WICK_VALUE_U32, .u = 12}, "must be a multiple of 8"},
    {{KEY("general.alignment"), .type = WICK_VALUE_U64, .u = 32}, "it must be u32"},
    {{KEY("first"), .type = WICK_VALUE_U8, .u = 1}, "the key 'first' occurs twice"},
};

static const struct {
    wick_file_tensor tensor;
    wick_status status;
    const char *words;
} refused_tensors[] = {
    {{.name = TEXT("t"), .dtype = WICK_U32, .shape = {1, {2}}}, WICK_ERR_DTYPE, "type u32"},
    {{.name = TEXT("t"), .dtype = WICK_DTYPE_COUNT_, .shape = {1, {2}}}, WICK_ERR_DTYPE, "unknown"},
    {{.name = TEXT("t"), .dtype = WICK_F32, .shape = {1, {-2}}}, WICK_ERR_SHAPE, "its shape"},
    {{.name = TEXT("t"), .dtype = WICK_F32, .shape = {7, {1, 1, 1}}}, WICK_ERR_SHAPE, "its shape"},
    {{.name = TEXT("t"), .dtype = WICK_F32, .shape = {2, {INT64_MAX, 2}}},
     WICK_ERR_SHAPE,
     "its shape"},
    {{.name = TEXT("t"), .dtype = WICK_F32, .shape = {5, {1, 1, 1, 1, 1}}},
     WICK_ERR_VALUE,
     "5 dimensions, at most 4"},
    {{.name = TEXT("t"), .dtype = WICK_Q4_0, .shape = {2, {2, 48}}}, WICK_ERR_VALUE, "rows of 48"},
    {{.name = TEXT("before"), .dtype = WICK_F32, .shape = {1, {1}}},
     WICK_ERR_VALUE,
     "two tensors have the name 'before'"},
};

static void check_refused(const wk_gguf_contents *of, wick_status status, const char *words) {
    checked_heap checked;
    checked_heap_init(&checked, UINT64_MAX);
    wk_strbuf buf;
    wk_gguf_parser *parser;
    wick_error error;
    assert_int_equal(write_header(&checked, of, &buf, &parser, &error), status);
    if (strstr(error.message, words) == NULL) fail_msg("'%s' lacks '%s'", error.message, words);
    assert_null(parser);
    wk_strbuf_release(&buf);
    assert_true(checked_heap_is_clean(&checked));
}

static void test_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < WK_COUNT(refused_values); i++) {
        const wick_value values[] = {{KEY("first"), .type = WICK_VALUE_U8, .u = 1},
                                     refused_values[i].value};
        check_refused(&(wk_gguf_contents){values, 2, NULL, 0}, WICK_ERR_VALUE,
                      refused_values[i].words);
    }
    for (size_t i = 0; i < WK_COUNT(refused_tensors); i++) {
        const wick_file_tensor two[] = {
            {.name = TEXT("before"), .dtype = WICK_F32, .shape = {1, {1}}},
            refused_tensors[i].tensor};
        check_refused(&(wk_gguf_contents){NULL, 0, two, 2}, refused_tensors[i].status,
                      refused_tensors[i].words);
    }
}

/* Splitting counts on what each tensor adds to a header. */
static void test_description_bytes(void **state) {
    (void)state;
    size_t sizes[WK_COUNT(tensors) + 1];
    for (size_t n = 0; n <= WK_COUNT(tensors); n++) {
        checked_heap checked;
        wk_strbuf buf;
        wk_gguf_parser *parser;
        wick_error error;
        const wk_gguf_contents first = {everything, WK_COUNT(everything), tensors, n};
        checked_heap_init(&checked, UINT64_MAX);
        assert_int_equal(write_header(&checked, &first, &buf, &parser, &error), WICK_OK);
        sizes[n] = buf.size;
        wk_gguf_parser_free(parser);
        wk_strbuf_release(&buf);
        if (n > 0)
            assert_int_equal(sizes[n] - sizes[n - 1], wk_gguf_description_bytes(&tensors[n - 1]));
    }
}

static void test_short_memory(void **state) {
    (void)state;
    wick_status status = WICK_ERR_OUT_OF_MEMORY;
    uint64_t n = 0;
    for (; status != WICK_OK; n++) {
        checked_heap checked;
        checked_heap_init(&checked, n);
        wk_strbuf buf;
        wk_gguf_parser *parser;
        wick_error error;
        status = write_header(&checked, &contents, &buf, &parser, &error);
        assert_true(status == WICK_OK || status == WICK_ERR_OUT_OF_MEMORY);
        assert_int_equal(status, error.status);
        wk_gguf_parser_free(parser);
        wk_strbuf_release(&buf);
        assert_true(checked_heap_is_clean(&checked));
    }
    assert_true(n > 5);
}

/* ---- Files ---- */

static char folder[900], path[1024];

static int begin(void **state) {
    (void)state;
    const char *const build = getenv("WICK_BUILD_DIR");
    snprintf(folder, sizeof folder, "%s", build != NULL ? build : ".");
    snprintf(path, sizeof path, "%s/test_gguf_write.gguf", folder);
    return 0;
}

/* Files whose names begin like path's. */
static size_t count_files(void) {
    size_t n = 0;
    DIR *const dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        n += strncmp(entry->d_name, "test_gguf_write.gguf", 20) == 0 ||
             strncmp(entry->d_name, "test_gguf_write-", 16) == 0;
    closedir(dir);
    return n;
}

enum { DATA_SIZE = 108 + 8 + 120 + 12 };
static uint8_t data[DATA_SIZE];

static void write_in_pieces(wick_file_writer *writer, size_t piece) {
    for (size_t at = 0; at < DATA_SIZE; at += piece) {
        const size_t n = DATA_SIZE - at < piece ? DATA_SIZE - at : piece;
        assert_int_equal(wick_file_write(writer, data + at, n, NULL), WICK_OK);
    }
}

/* The tensors of the file at first hold data, and the metadata is everything. */
static void check_file(const char *first) {
    wick_file *file;
    wick_error error = {.status = WICK_OK};
    assert_int_equal(wick_file_open(first, &file, &error), WICK_OK);
    assert_int_equal(wick_file_value_count(file), WK_COUNT(everything));
    for (size_t i = 0; i < WK_COUNT(everything); i++)
        assert_true(same_value(wick_file_value(file, i), &everything[i]));
    size_t at = 0;
    for (size_t i = 0; i < WK_COUNT(tensors); i++) {
        const wick_file_tensor *const tensor = wick_file_get_tensor(file, i);
        uint8_t found[DATA_SIZE];
        assert_true(same_string(tensor->name, tensors[i].name));
        assert_true(tensor->offset % 64 == 0 && at + tensor->size <= DATA_SIZE);
        assert_int_equal(wick_file_read(file, tensor->offset, found, (size_t)tensor->size, &error),
                         WICK_OK);
        assert_memory_equal(found, data + at, (size_t)tensor->size);
        at += (size_t)tensor->size;
    }
    assert_int_equal(at, DATA_SIZE);
    assert_int_equal(wick_file_size(file) % 64, 0);
    assert_int_equal(wick_file_read(file, wick_file_size(file) - 1, data, 2, &error), WICK_ERR_IO);
    assert_int_equal(wick_file_read(file, 0, NULL, 0, NULL), WICK_OK);
    assert_int_equal(wick_file_read(file, 0, NULL, 1, NULL), WICK_ERR_ARGUMENT);
    wick_file_close(file);
}

static void test_file(void **state) {
    (void)state;
    for (size_t i = 0; i < DATA_SIZE; i++) data[i] = (uint8_t)(i * 7 + 1);
    const wick_file_desc desc = {.values = everything,
                                 .n_values = WK_COUNT(everything),
                                 .tensors = tensors,
                                 .n_tensors = WK_COUNT(tensors)};
    static const size_t pieces[] = {1, 7, 108, DATA_SIZE};
    for (size_t i = 0; i < WK_COUNT(pieces); i++) {
        wick_file_writer *writer;
        assert_int_equal(wick_file_write_start(path, &desc, &writer, NULL), WICK_OK);
        write_in_pieces(writer, pieces[i]);
        wick_error error = {.status = WICK_OK};
        assert_int_equal(wick_file_write(writer, data, 1, &error), WICK_ERR_ARGUMENT);
        assert_non_null(strstr(error.message, "1 bytes are too many"));
        assert_int_equal(wick_file_write_finish(writer, true, NULL), WICK_OK);
        check_file(path);
        assert_int_equal(count_files(), 1);
        assert_int_equal(remove(path), 0);
    }
}

static void part_path(char *text, size_t size, size_t part, size_t n_parts) {
    snprintf(text, size, "%s/test_gguf_write-%05zu-of-%05zu.gguf", folder, part, n_parts);
}

/* Removes it, too. */
static void check_part(size_t part, size_t n_parts, uint64_t limit) {
    char name[1100];
    part_path(name, sizeof name, part, n_parts);
    FILE *const file = fopen(name, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    if (limit > 1) assert_true((uint64_t)ftell(file) <= limit);
    fclose(file);
    assert_int_equal(remove(name), 0);
}

/* One part for each tensor; then all whose bytes fit. */
static void test_parts(void **state) {
    (void)state;
    static const struct {
        uint64_t bytes;
        size_t tensors, n_parts;
    } limits[] = {{0, 1, 5}, {0, 2, 3}, {0, 9, 1}, {1, 0, 5}, {1 << 20, 0, 1}, {1200, 0, 2}};
    for (size_t i = 0; i < WK_COUNT(limits); i++) {
        const wick_file_desc desc = {.values = everything,
                                     .n_values = WK_COUNT(everything),
                                     .tensors = tensors,
                                     .n_tensors = WK_COUNT(tensors),
                                     .part_bytes = limits[i].bytes,
                                     .part_tensors = limits[i].tensors};
        wick_file_writer *writer;
        assert_int_equal(wick_file_write_start(path, &desc, &writer, NULL), WICK_OK);
        write_in_pieces(writer, 100);
        assert_int_equal(wick_file_write_finish(writer, true, NULL), WICK_OK);
        assert_int_equal(count_files(), limits[i].n_parts);
        char first[1100];
        part_path(first, sizeof first, 1, limits[i].n_parts);
        if (limits[i].n_parts > 1) check_file(first);
        for (size_t k = 1; k <= limits[i].n_parts; k++)
            check_part(k, limits[i].n_parts, limits[i].bytes);
    }
}

static void test_incomplete(void **state) {
    (void)state;
    const wick_file_desc desc = {
        .tensors = tensors, .n_tensors = WK_COUNT(tensors), .part_tensors = 1};
    wick_file_writer *writer;
    wick_error error = {.status = WICK_OK};
    assert_int_equal(wick_file_write_start(path, &desc, &writer, &error), WICK_OK);
    assert_true(count_files() == 0 || count_files() == 5); /* without names, or temporary ones */
    assert_int_equal(wick_file_write(writer, data, 110, &error), WICK_OK);
    assert_int_equal(wick_file_write_finish(writer, true, &error), WICK_ERR_STATE);
    assert_string_equal(error.message,
                        "tensor 'scalar' is not complete: 6 of its bytes are missing");
    assert_int_equal(count_files(), 0);
    assert_int_equal(wick_file_write_start(path, &desc, &writer, &error), WICK_OK);
    assert_int_equal(wick_file_write_finish(writer, false, NULL), WICK_OK);
    assert_int_equal(count_files(), 0);
}

static void test_arguments(void **state) {
    (void)state;
    const wick_file_desc empty = {.n_values = 0}, lying = {.n_values = 1};
    wick_file_writer *writer;
    assert_int_equal(wick_file_write_start(NULL, &empty, &writer, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_file_write_start(path, NULL, &writer, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_file_write_start(path, &lying, &writer, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_file_write_start(path, &empty, NULL, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_file_write(NULL, data, 1, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_file_write_finish(NULL, true, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_file_write_start("/nonexistent/x.gguf", &empty, &writer, NULL),
                     WICK_ERR_NOT_FOUND);
    const wick_value bad = {KEY("k"), .type = WICK_VALUE_U8, .u = 256};
    const wick_file_desc refused = {.values = &bad, .n_values = 1};
    assert_int_equal(wick_file_write_start(path, &refused, &writer, NULL), WICK_ERR_VALUE);
    assert_int_equal(count_files(), 0);

    assert_int_equal(wick_file_write_start(path, &empty, &writer, NULL), WICK_OK);
    assert_int_equal(wick_file_write_finish(writer, true, NULL), WICK_OK);
    assert_int_equal(wick_file_write_start(path, &empty, &writer, NULL), WICK_ERR_STATE);
    const wick_file_desc again = {.replace = true};
    assert_int_equal(wick_file_write_start(path, &again, &writer, NULL), WICK_OK);
    assert_int_equal(wick_file_write_finish(writer, true, NULL), WICK_OK);
    assert_int_equal(remove(path), 0);
}

int main(void) {
    const struct CMUnitTest tests_[] = {
        cmocka_unit_test(test_everything),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_short_memory),
        cmocka_unit_test(test_description_bytes),
        cmocka_unit_test_setup(test_file, begin),
        cmocka_unit_test_setup(test_parts, begin),
        cmocka_unit_test_setup(test_incomplete, begin),
        cmocka_unit_test_setup(test_arguments, begin),
    };
    return cmocka_run_group_tests_name("gguf_write", tests_, NULL, NULL);
}
