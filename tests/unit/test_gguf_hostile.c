/* GGUF headers that are damaged or lie: always a status and a sentence that begins with the place,
 * and never more memory than a small multiple of the header. All in one process, for the
 * sanitizers. */
#include "format/gguf_parse.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "checked_heap.h"
#include "fixture_file.h"
#include "gguf_bytes.h"

#include <string.h>

static fixture_file model;    /* stories260K.gguf: a small real model */
static uint64_t model_header; /* bytes before its data */

static int load_model(void **state) {
    (void)state;
    if (!fixture_read("WICK_TEST_DATA", "stories260K.gguf", &model)) return -1;
    checked_heap checked;
    checked_heap_init(&checked, UINT64_MAX);
    wk_gguf_parser *parser;
    wick_status status = wk_gguf_parser_make(&checked.heap, model.size, &parser, NULL);
    if (status == WICK_OK) status = wk_gguf_parser_feed(parser, model.data, model.size, NULL, NULL);
    if (status == WICK_OK) model_header = wk_gguf_parser_result(parser)->data_offset;
    wk_gguf_parser_free(parser);
    return status;
}

static int free_model(void **state) {
    (void)state;
    free(model.data);
    return 0;
}

/* Most memory that a parse may take for the bytes that it was given: the densest headers are those
 * of test_dense_headers; a list that grows is there twice for a moment. */
static uint64_t bound(uint64_t bytes) { return 20 * bytes + 16384; }

/* Parses size bytes of a file of file_size bytes and checks all that must hold whatever they are.
 */
static wick_status check_parse(const uint8_t *data, size_t size, uint64_t file_size) {
    checked_heap checked;
    checked_heap_init(&checked, UINT64_MAX);
    wk_gguf_parser *parser;
    wick_error error = {.status = WICK_OK};
    assert_int_equal(wk_gguf_parser_make(&checked.heap, file_size, &parser, &error), WICK_OK);
    size_t used;
    wick_status status = wk_gguf_parser_feed(parser, data, size, &used, &error);
    if (status == WICK_PENDING) status = wk_gguf_parser_end(parser, &error);
    assert_int_equal(status, error.status);
    if (status != WICK_OK) {
        assert_true(status == WICK_ERR_FORMAT || status == WICK_ERR_UNSUPPORTED);
        assert_memory_equal(error.message, "byte ", 5);
        assert_in_range(error.message[5], '0', '9');
        assert_non_null(strstr(error.message, ": "));
    }
    assert_true(checked.heap.peak_bytes <= bound(used));
    wk_gguf_parser_free(parser);
    assert_true(checked_heap_is_clean(&checked));
    return status;
}

static void test_truncated(void **state) {
    (void)state;
    for (size_t size = 0; size < model.size; size += size < model_header ? 7 : 1024) {
        assert_int_equal(check_parse(model.data, size, size), WICK_ERR_FORMAT);
        /* A stream of unknown size ends: only a cut in the header shows. */
        const wick_status status = check_parse(model.data, size, WICK_SIZE_UNKNOWN);
        if (size + 31 < model_header) assert_int_equal(status, WICK_ERR_FORMAT);
        if (size >= model_header) assert_int_equal(status, WICK_OK);
    }
    assert_int_equal(check_parse(model.data, model.size, model.size), WICK_OK);
}

static void test_bit_flips(void **state) {
    (void)state;
    unsigned n_refused = 0;
    for (size_t bit = 0; bit < 4096 * 8; bit++) {
        const uint8_t mask = (uint8_t)(1u << (bit % 8));
        model.data[bit / 8] ^= mask;
        n_refused += check_parse(model.data, model.size, model.size) != WICK_OK;
        model.data[bit / 8] ^= mask;
    }
    assert_true(n_refused > 4096);
}

/* A reader of its own that finds where the numbers of the model's header are. */
typedef struct field_walk {
    size_t at;
    void (*visit)(size_t at, size_t width);
} field_walk;

static uint64_t next_field(field_walk *walk, size_t width) {
    uint64_t value = 0;
    memcpy(&value, model.data + walk->at, width);
    walk->visit(walk->at, width);
    walk->at += width;
    return value;
}

static void walk_text(field_walk *walk) { walk->at += next_field(walk, 8); }

static void walk_value(field_walk *walk, uint64_t type) {
    static const uint8_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type == WICK_VALUE_STRING) {
        walk_text(walk);
    } else if (type == WICK_VALUE_ARRAY) {
        const uint64_t element_type = next_field(walk, 4);
        const uint64_t count = next_field(walk, 8);
        for (uint64_t i = 0; i < count; i++) {
            /* Of the vocabulary's hundreds of lengths, some are enough. */
            if (element_type == WICK_VALUE_STRING && i % 16 == 0) {
                walk_text(walk);
            } else if (element_type == WICK_VALUE_STRING) {
                uint64_t length;
                memcpy(&length, model.data + walk->at, sizeof length);
                walk->at += 8 + length;
            } else {
                walk->at += sizes[element_type];
            }
        }
    } else {
        next_field(walk, sizes[type]);
    }
}

static void walk_fields(void (*visit)(size_t at, size_t width)) {
    field_walk walk = {.visit = visit};
    next_field(&walk, 4); /* magic */
    next_field(&walk, 4); /* version */
    const uint64_t n_tensors = next_field(&walk, 8);
    const uint64_t n_values = next_field(&walk, 8);
    for (uint64_t i = 0; i < n_values; i++) {
        walk_text(&walk);
        walk_value(&walk, next_field(&walk, 4));
    }
    for (uint64_t i = 0; i < n_tensors; i++) {
        walk_text(&walk);
        const uint64_t rank = next_field(&walk, 4);
        for (uint64_t j = 0; j < rank; j++) next_field(&walk, 8);
        next_field(&walk, 4); /* type */
        next_field(&walk, 8); /* offset */
    }
    assert_true(walk.at <= model_header && model_header - walk.at < 32);
}

static unsigned n_fields;

static void set_field(size_t at, size_t width) {
    static const uint64_t values[] = {
        0, 1, UINT64_C(1) << 31, UINT32_MAX, UINT64_C(1) << 63, UINT64_MAX, UINT64_MAX - 7,
    };
    uint64_t kept = 0;
    memcpy(&kept, model.data + at, width);
    n_fields++;
    for (size_t i = 0; i < WK_COUNT(values); i++) {
        memcpy(model.data + at, &values[i], width);
        check_parse(model.data, model.size, model.size);
        check_parse(model.data, model.size, WICK_SIZE_UNKNOWN);
    }
    memcpy(model.data + at, &kept, width);
}

static void test_fields(void **state) {
    (void)state;
    walk_fields(set_field);
    assert_true(n_fields > 300);
    assert_int_equal(check_parse(model.data, model.size, model.size), WICK_OK);
}

/* What memory is needed for the densest headers there are: tensors and entries with short names. */
static void test_dense_headers(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        gguf_bytes file;
        const uint64_t n = kind == 0 ? 250 : 400;
        put_start(&file, 1, kind == 0 ? n : 0, kind == 0 ? 0 : n);
        for (uint64_t i = 0; i < n; i++) {
            char name[3] = {(char)('a' + i % 16), (char)('a' + i / 16), 0};
            if (kind == 0) {
                put_tensor(&file, name, 0, NULL, 0, 32 * i);
            } else {
                put_key(&file, name, WICK_VALUE_U8);
                put_bytes(&file, "", 1);
            }
        }
        checked_heap checked;
        checked_heap_init(&checked, UINT64_MAX);
        wk_gguf_parser *parser;
        assert_int_equal(wk_gguf_parser_make(&checked.heap, WICK_SIZE_UNKNOWN, &parser, NULL), 0);
        assert_int_equal(wk_gguf_parser_feed(parser, file.data, file.size, NULL, NULL), WICK_OK);
        assert_true(checked.heap.peak_bytes <= bound(file.size));
        wk_gguf_parser_free(parser);
    }
}

/* Allocation number n fails: out of memory, nothing leaks. Returns whether the parse got through.
 */
static bool parse_with_failure(const gguf_bytes *file, size_t chunk, uint64_t n) {
    checked_heap checked;
    checked_heap_init(&checked, n);
    wick_error error = {.status = WICK_OK};
    wk_gguf_parser *parser;
    wick_status status = wk_gguf_parser_make(&checked.heap, file->size, &parser, &error);
    for (size_t at = 0; at < file->size && status != WICK_ERR_OUT_OF_MEMORY; at += chunk) {
        const size_t size = file->size - at < chunk ? file->size - at : chunk;
        status = wk_gguf_parser_feed(parser, file->data + at, size, NULL, &error);
        assert_true(status >= 0 || status == WICK_ERR_OUT_OF_MEMORY);
    }
    if (status != WICK_OK) {
        assert_int_equal(error.status, WICK_ERR_OUT_OF_MEMORY);
        assert_true(error.bytes_requested > 0);
    }
    wk_gguf_parser_free(parser);
    assert_true(checked_heap_is_clean(&checked));
    return status == WICK_OK;
}

static void test_out_of_memory(void **state) {
    (void)state;
    static uint8_t long_text[3000];
    gguf_bytes file;
    put_start(&file, 3, 20, 21);
    for (uint64_t i = 0; i < 20; i++) {
        const char key[3] = {'k', (char)('a' + i), 0};
        put_array(&file, key, i % 2 ? WICK_VALUE_U16 : WICK_VALUE_STRING, 10);
        for (int j = 0; j < 10; j++) i % 2 ? put_bytes(&file, "ab", 2) : put_text(&file, "token");
    }
    put_key(&file, "long", WICK_VALUE_STRING);
    put_count(&file, sizeof long_text);
    put_bytes(&file, long_text, sizeof long_text);
    for (uint64_t i = 0; i < 20; i++) {
        const char name[3] = {'t', (char)('a' + i), 0};
        put_tensor(&file, name, 0, NULL, 0, 32 * i);
    }
    put_data(&file, 32, 20 * 32);
    for (size_t chunk = 1; chunk < 10000; chunk = chunk * 3 + 1) {
        uint64_t n = 0;
        while (!parse_with_failure(&file, chunk, n)) n++;
        assert_true(n > 20);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truncated),     cmocka_unit_test(test_bit_flips),
        cmocka_unit_test(test_fields),        cmocka_unit_test(test_dense_headers),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests_name("gguf_hostile", tests, load_model, free_model);
}
