/* GGUF headers: what is right is read right, in chunks of any size; what is wrong is refused with
 * its place and reason. Damaged files are in test_gguf_hostile.c. */
#include "format/gguf_parse.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "checked_heap.h"
#include "fixture_file.h"
#include "gguf_bytes.h"
#include "gguf_same.h"

#include <string.h>

static checked_heap checked;

static int begin(void **state) {
    (void)state;
    checked_heap_init(&checked, UINT64_MAX);
    return 0;
}

static int end(void **state) {
    (void)state;
    return checked_heap_is_clean(&checked) ? 0 : -1;
}

/* Feeds data in chunks of chunk bytes; *out is for the caller to free. */
static wick_status parse(const uint8_t *data, size_t size, uint64_t file_size, size_t chunk,
                         wk_gguf_parser **out, wick_error *error) {
    *error = (wick_error){.status = WICK_OK};
    assert_int_equal(wk_gguf_parser_make(&checked.heap, file_size, out, error), WICK_OK);
    wick_status status = WICK_PENDING;
    for (size_t at = 0; at < size && status == WICK_PENDING; at += chunk) {
        const size_t n = size - at < chunk ? size - at : chunk;
        size_t used = 0;
        status = wk_gguf_parser_feed(*out, data + at, n, &used, error);
        assert_true(used <= n);
        assert_true(status != WICK_PENDING || used == n);
    }
    return status == WICK_PENDING ? wk_gguf_parser_end(*out, error) : status;
}

/* One entry of every type, arrays included, and two tensors; alignment 8. */
static void put_everything(gguf_bytes *file, uint32_t version) {
    put_start(file, version, 2, 18);
    put_key(file, "general.alignment", WICK_VALUE_U32);
    put_u32(file, 8);
    put_key(file, "u8", WICK_VALUE_U8);
    put_bytes(file, "\xfe", 1);
    put_key(file, "i8", WICK_VALUE_I8);
    put_bytes(file, "\xfe", 1);
    put_key(file, "u16", WICK_VALUE_U16);
    put_bytes(file, "\xfe\xff", 2);
    put_key(file, "i16", WICK_VALUE_I16);
    put_bytes(file, "\xfe\xff", 2);
    put_key(file, "u32", WICK_VALUE_U32);
    put_u32(file, UINT32_MAX);
    put_key(file, "i32", WICK_VALUE_I32);
    put_u32(file, UINT32_MAX);
    put_key(file, "f32", WICK_VALUE_F32);
    put_u32(file, 0x3fc00000);
    put_key(file, "bool", WICK_VALUE_BOOL);
    put_bytes(file, "\1", 1);
    put_key(file, "string", WICK_VALUE_STRING);
    put_text(file, "h\xc3\xa9llo");
    put_key(file, "u64", WICK_VALUE_U64);
    put_u64(file, UINT64_MAX);
    put_key(file, "i64", WICK_VALUE_I64);
    put_u64(file, UINT64_MAX);
    put_key(file, "f64", WICK_VALUE_F64);
    put_u64(file, 0xbff8000000000000);
    put_array(file, "strings", WICK_VALUE_STRING, 3);
    put_text(file, "a");
    put_text(file, "");
    put_text(file, "ccc");
    put_array(file, "i16s", WICK_VALUE_I16, 2);
    put_bytes(file, "\1\0\xff\xff", 4);
    put_array(file, "bools", WICK_VALUE_BOOL, 3);
    put_bytes(file, "\1\0\1", 3);
    put_array(file, "no floats", WICK_VALUE_F32, 0);
    put_array(file, "no strings", WICK_VALUE_STRING, 0);
    put_tensor(file, "weight", 2, (const uint64_t[]){64, 3}, 2, 0); /* q4_0, 108 bytes */
    put_tensor(file, "bias", 1, (const uint64_t[]){3}, 0, 112);
    put_data(file, 8, 112 + 12);
}

static void check_scalars(const wk_gguf *gguf) {
    assert_int_equal(wk_gguf_find(gguf, "u8")->u, 254);
    assert_int_equal(wk_gguf_find(gguf, "i8")->i, -2);
    assert_int_equal(wk_gguf_find(gguf, "u16")->u, 65534);
    assert_int_equal(wk_gguf_find(gguf, "i16")->i, -2);
    assert_true(wk_gguf_find(gguf, "u32")->u == UINT32_MAX);
    assert_int_equal(wk_gguf_find(gguf, "i32")->i, -1);
    assert_true(wk_gguf_find(gguf, "f32")->f == 1.5);
    assert_int_equal(wk_gguf_find(gguf, "bool")->u, 1);
    assert_true(wk_gguf_find(gguf, "u64")->u == UINT64_MAX);
    assert_int_equal(wk_gguf_find(gguf, "i64")->i, -1);
    assert_true(wk_gguf_find(gguf, "f64")->f == -1.5);
    const wick_value *const string = wk_gguf_find(gguf, "string");
    assert_int_equal(string->type, WICK_VALUE_STRING);
    assert_int_equal(string->string.size, 6);
    assert_string_equal(string->string.text, "h\xc3\xa9llo");
    assert_null(wk_gguf_find(gguf, "absent"));
}

static void check_arrays(const wk_gguf *gguf) {
    const wick_value *const strings = wk_gguf_find(gguf, "strings");
    assert_int_equal(strings->type, WICK_VALUE_ARRAY);
    assert_int_equal(strings->array.element_type, WICK_VALUE_STRING);
    assert_int_equal(strings->array.count, 3);
    const wick_string *const texts = strings->array.values;
    assert_string_equal(texts[0].text, "a");
    assert_string_equal(texts[1].text, "");
    assert_string_equal(texts[2].text, "ccc");
    assert_int_equal(texts[2].size, 3);
    const int16_t *const numbers = wk_gguf_find(gguf, "i16s")->array.values;
    assert_true(numbers[0] == 1 && numbers[1] == -1);
    const bool *const bools = wk_gguf_find(gguf, "bools")->array.values;
    assert_true(bools[0] && !bools[1] && bools[2]);
    assert_int_equal(wk_gguf_find(gguf, "no floats")->array.count, 0);
    assert_int_equal(wk_gguf_find(gguf, "no strings")->array.count, 0);
}

static void check_tensors(const wk_gguf *gguf) {
    const wick_file_tensor *const weight = wk_gguf_find_tensor(gguf, "weight");
    assert_ptr_equal(weight, &gguf->tensors[0]);
    assert_int_equal(weight->dtype, WICK_Q4_0);
    assert_int_equal(weight->shape.rank, 2);
    assert_int_equal(weight->shape.extent[0], 3);
    assert_int_equal(weight->shape.extent[1], 64);
    assert_int_equal(weight->size, 108);
    assert_int_equal(weight->offset, gguf->data_offset);
    const wick_file_tensor *const bias = wk_gguf_find_tensor(gguf, "bias");
    assert_int_equal(bias->offset, gguf->data_offset + 112);
    assert_int_equal(bias->size, 12);
    assert_null(wk_gguf_find_tensor(gguf, "absent"));
}

static void test_everything(void **state) {
    (void)state;
    for (uint32_t version = 1; version <= 3; version++) {
        gguf_bytes file;
        put_everything(&file, version);
        wick_error error;
        wk_gguf_parser *whole;
        assert_int_equal(parse(file.data, file.size, file.size, file.size, &whole, &error),
                         WICK_OK);
        const wk_gguf *const gguf = wk_gguf_parser_result(whole);
        assert_int_equal(gguf->version, version);
        assert_int_equal(gguf->alignment, 8);
        assert_int_equal(gguf->data_offset, file.size - 124);
        assert_int_equal(gguf->n_values, 18);
        assert_int_equal(gguf->n_tensors, 2);
        check_scalars(gguf);
        check_arrays(gguf);
        check_tensors(gguf);

        for (size_t chunk = 1; chunk < 40; chunk++) {
            wk_gguf_parser *parser;
            const uint64_t file_size = chunk % 2 ? WICK_SIZE_UNKNOWN : file.size;
            assert_int_equal(parse(file.data, file.size, file_size, chunk, &parser, &error),
                             WICK_OK);
            assert_true(same_gguf(gguf, wk_gguf_parser_result(parser)));
            wk_gguf_parser_free(parser);
        }
        wk_gguf_parser_free(whole);
    }
}

/* The header ends with its last byte: what follows is not touched, nor waited for. */
static void test_used(void **state) {
    (void)state;
    gguf_bytes file;
    put_everything(&file, 3);
    wk_gguf_parser *parser;
    wk_gguf_parser_make(&checked.heap, WICK_SIZE_UNKNOWN, &parser, NULL);
    assert_int_equal(wk_gguf_parser_feed(parser, NULL, 0, NULL, NULL), WICK_PENDING);
    assert_int_equal(wk_gguf_parser_feed(parser, file.data, 100, NULL, NULL), WICK_PENDING);
    assert_null(wk_gguf_parser_result(parser));
    size_t used;
    assert_int_equal(wk_gguf_parser_feed(parser, file.data + 100, file.size - 100, &used, NULL),
                     WICK_OK);
    const wk_gguf *const gguf = wk_gguf_parser_result(parser);
    assert_true(100 + used <= gguf->data_offset && gguf->data_offset - used - 100 < 8);
    assert_int_equal(wk_gguf_parser_feed(parser, file.data, 1, &used, NULL), WICK_OK);
    assert_int_equal(used, 0);
    assert_int_equal(wk_gguf_parser_end(parser, NULL), WICK_OK);
    wk_gguf_parser_free(parser);
    wk_gguf_parser_free(NULL);
}

static void test_empty_file(void **state) {
    (void)state;
    wick_error error;
    wk_gguf_parser *parser;
    assert_int_equal(parse(NULL, 0, 0, 1, &parser, &error), WICK_ERR_FORMAT);
    assert_string_equal(error.message,
                        "byte 0: the file ends inside the letters 'GGUF': it is cut off");
    wk_gguf_parser_free(parser);
    gguf_bytes file;
    put_start(&file, 3, 0, 0);
    assert_int_equal(parse(file.data, file.size, file.size, 5, &parser, &error), WICK_OK);
    assert_int_equal(wk_gguf_parser_result(parser)->data_offset, 32);
    wk_gguf_parser_free(parser);
}

/* Parsing file as a whole gives this failure, also by single bytes, and every later call repeats
 * it. */
static void check_refused(const gguf_bytes *file, wick_status expected, const char *message) {
    wick_error error;
    wk_gguf_parser *parser;
    assert_int_equal(parse(file->data, file->size, file->size, file->size, &parser, &error),
                     expected);
    assert_string_equal(error.message, message);
    wick_error again = {.status = WICK_OK};
    assert_int_equal(wk_gguf_parser_feed(parser, "x", 1, NULL, &again), expected);
    assert_string_equal(again.message, message);
    assert_null(wk_gguf_parser_result(parser));
    wk_gguf_parser_free(parser);
    assert_int_equal(parse(file->data, file->size, file->size, 1, &parser, &error), expected);
    assert_string_equal(error.message, message);
    wk_gguf_parser_free(parser);
}

static void test_bad_beginnings(void **state) {
    (void)state;
    gguf_bytes file = {.size = 0};
    put_bytes(&file, "ggjt\3\0\0\0", 8);
    check_refused(&file, WICK_ERR_FORMAT,
                  "byte 0: not a GGUF file: it begins with the bytes 67 67 6a 74, not with 'GGUF'");
    put_start(&file, 4, 0, 0);
    check_refused(&file, WICK_ERR_UNSUPPORTED,
                  "byte 4: GGUF version 4 is not known, only 1, 2 and 3 are");
    put_start(&file, 0, 0, 0);
    check_refused(&file, WICK_ERR_UNSUPPORTED,
                  "byte 4: GGUF version 0 is not known, only 1, 2 and 3 are");
    put_start(&file, 0x03000000, 0, 0);
    check_refused(&file, WICK_ERR_UNSUPPORTED,
                  "byte 4: the file is big-endian (GGUF version 3), only little-endian files can "
                  "be read");
    put_start(&file, 3, UINT64_MAX, 0);
    check_refused(&file, WICK_ERR_FORMAT,
                  "byte 8: 18446744073709551615 tensors do not fit into the 0 bytes that are left "
                  "of the file: it is cut off or damaged");
    put_start(&file, 3, 0, 3);
    put_data(&file, 1, 38); /* three entries need 39 */
    check_refused(&file, WICK_ERR_FORMAT,
                  "byte 16: 3 metadata entries do not fit into the 38 bytes that are left of the "
                  "file: it is cut off or damaged");
}

static void test_bad_values(void **state) {
    (void)state;
    gguf_bytes file;
    put_start(&file, 3, 0, 1);
    put_u64(&file, UINT64_C(1) << 63);
    put_data(&file, 1, 20);
    check_refused(&file, WICK_ERR_FORMAT,
                  "byte 24: a key of 9223372036854775808 bytes does not fit into the 20 that are "
                  "left of the file: it is cut off or damaged");
    put_start(&file, 3, 0, 1);
    put_key(&file, "k", (wick_value_type)13);
    put_data(&file, 1, 20);
    check_refused(&file, WICK_ERR_FORMAT, "byte 33: 'k' is of the unknown type 13");
    put_start(&file, 3, 0, 1);
    put_array(&file, "k", (wick_value_type)99, 1);
    check_refused(&file, WICK_ERR_FORMAT, "byte 37: 'k' is an array of the unknown type 99");
    put_start(&file, 3, 0, 1);
    put_array(&file, "k", WICK_VALUE_ARRAY, 1);
    check_refused(&file, WICK_ERR_UNSUPPORTED,
                  "byte 37: 'k' is an array of arrays, which cannot be read");
    put_start(&file, 3, 0, 1);
    put_array(&file, "k", WICK_VALUE_U32, UINT64_C(0x4000000000000001));
    put_data(&file, 1, 20);
    check_refused(&file, WICK_ERR_FORMAT,
                  "byte 41: 4611686018427387905 elements of an array do not fit into the 20 bytes "
                  "that are left of the file: it is cut off or damaged");
    put_start(&file, 3, 0, 1);
    put_array(&file, "k\n", WICK_VALUE_BOOL, 2);
    put_bytes(&file, "\1\2", 2);
    check_refused(&file, WICK_ERR_FORMAT,
                  "byte 51: 'k?' has a bool of value 2, which is neither 0 nor 1");
    put_start(&file, 3, 0, 2);
    for (int i = 0; i < 2; i++) {
        put_key(&file, "twice", WICK_VALUE_BOOL);
        put_bytes(&file, "", 1);
    }
    check_refused(&file, WICK_ERR_FORMAT, "byte 50: the key 'twice' occurs twice");
}

static void test_long_names(void **state) {
    (void)state;
    gguf_bytes file;
    put_start(&file, 3, 1, 0);
    put_count(&file, 256);
    put_data(&file, 1, 300);
    check_refused(&file, WICK_ERR_FORMAT,
                  "byte 24: a tensor name of 256 bytes is longer than the 255 that are allowed");
    const size_t size = 70000;
    uint8_t *const data = calloc(1, size);
    assert_non_null(data);
    put_start(&file, 3, 0, 1);
    put_count(&file, 65536);
    memcpy(data, file.data, file.size);
    wick_error error;
    wk_gguf_parser *parser;
    assert_int_equal(parse(data, size, size, size, &parser, &error), WICK_ERR_FORMAT);
    assert_string_equal(error.message,
                        "byte 24: a key of 65536 bytes is longer than the 65535 that are allowed");
    wk_gguf_parser_free(parser);
    free(data);
}

static void test_alignment(void **state) {
    (void)state;
    static const uint32_t bad[] = {0, 4, 12, 33};
    static const char *const texts[] = {"0", "4", "12", "33"};
    for (size_t i = 0; i < WK_COUNT(bad); i++) {
        gguf_bytes file;
        put_start(&file, 3, 0, 1);
        put_key(&file, "general.alignment", WICK_VALUE_U32);
        put_u32(&file, bad[i]);
        char message[100];
        snprintf(message, sizeof message,
                 "byte 53: general.alignment is %s, it must be a multiple of 8", texts[i]);
        check_refused(&file, WICK_ERR_FORMAT, message);
    }
    gguf_bytes file;
    put_start(&file, 3, 0, 1);
    put_key(&file, "general.alignment", WICK_VALUE_U64);
    put_u64(&file, 32);
    check_refused(&file, WICK_ERR_FORMAT,
                  "byte 53: general.alignment is of type u64, it must be u32");
}

typedef struct tensor_case {
    int rank;
    uint64_t extents[5];
    uint32_t type;
    uint64_t offset;
    wick_status status;
    const char *message;
} tensor_case;

/* A file with one tensor 't': its description begins at byte 33. */
static const tensor_case tensor_cases[] = {
    {5,
     {1, 1, 1, 1, 1},
     0,
     0,
     WICK_ERR_FORMAT,
     "byte 33: tensor 't' has 5 dimensions, at most 4 are allowed"},
    {1,
     {UINT64_MAX},
     0,
     0,
     WICK_ERR_FORMAT,
     "byte 37: tensor 't' has an extent of 18446744073709551615, over 2^63"},
    {2,
     {UINT64_C(1) << 40, UINT64_C(1) << 40},
     0,
     0,
     WICK_ERR_FORMAT,
     "byte 37: tensor 't' has too many elements for 64 bits"},
    {1,
     {INT64_MAX},
     0,
     0,
     WICK_ERR_FORMAT,
     "byte 37: tensor 't' has too many elements for 64 bits"},
    {1,
     {UINT64_C(1) << 61},
     0,
     0,
     WICK_ERR_FORMAT,
     "byte 49: tensor 't' has 9223372036854775808 bytes at the offset 0, which ends beyond "
     "2^63"},
    {2,
     {48, 2},
     2,
     0,
     WICK_ERR_FORMAT,
     "byte 37: tensor 't' has rows of 48 elements, no multiple of the 32 in a block of q4_0"},
    {0,
     {0},
     2,
     0,
     WICK_ERR_FORMAT,
     "byte 37: tensor 't' has rows of 1 elements, no multiple of the 32 in a block of q4_0"},
    {1,
     {32},
     4,
     0,
     WICK_ERR_UNSUPPORTED,
     "byte 45: tensor 't' is of type 4 (q4_2), which was removed from GGUF"},
    {1,
     {32},
     37,
     0,
     WICK_ERR_UNSUPPORTED,
     "byte 45: tensor 't' is of type 37 (iq4_nl_4_8), which was removed from GGUF"},
    {1, {32}, 1000, 0, WICK_ERR_UNSUPPORTED, "byte 45: tensor 't' is of the unknown type 1000"},
    {1,
     {2},
     0,
     16,
     WICK_ERR_FORMAT,
     "byte 49: tensor 't' has the offset 16, no multiple of the alignment 32"},
    {1,
     {2},
     0,
     UINT64_C(1) << 63,
     WICK_ERR_FORMAT,
     "byte 49: tensor 't' has 8 bytes at the offset 9223372036854775808, which ends beyond "
     "2^63"},
    {1,
     {2},
     0,
     64,
     WICK_ERR_FORMAT,
     "byte 128: tensor 't' of 8 bytes begins here, but the file has only 128 bytes: it is cut off"},
    {1,
     {17},
     0,
     0,
     WICK_ERR_FORMAT,
     "byte 64: tensor 't' of 68 bytes begins here, but the file has only 128 bytes: it is cut off"},
    {1, {16}, 0, 0, WICK_OK, ""},
    {0, {0}, 0, 32, WICK_OK, ""},    /* a scalar */
    {2, {0, 7}, 2, 64, WICK_OK, ""}, /* no bytes */
};

static void test_bad_tensors(void **state) {
    (void)state;
    for (size_t i = 0; i < WK_COUNT(tensor_cases); i++) {
        const tensor_case *const c = &tensor_cases[i];
        gguf_bytes file;
        put_start(&file, 3, 1, 0);
        put_tensor(&file, "t", c->rank, c->extents, c->type, c->offset);
        put_data(&file, 64, 64);
        if (c->status != WICK_OK) {
            check_refused(&file, c->status, c->message);
            continue;
        }
        wick_error error;
        wk_gguf_parser *parser;
        assert_int_equal(parse(file.data, file.size, file.size, 3, &parser, &error), WICK_OK);
        wk_gguf_parser_free(parser);
    }
}

static void test_tensors_together(void **state) {
    (void)state;
    static const uint64_t extent[] = {9}; /* 36 bytes */
    gguf_bytes file;
    put_start(&file, 3, 2, 0);
    put_tensor(&file, "a", 1, extent, 0, 0);
    put_tensor(&file, "a", 1, extent, 0, 64);
    put_data(&file, 32, 128);
    check_refused(&file, WICK_ERR_FORMAT, "byte 65: two tensors have the name 'a'");
    put_start(&file, 3, 3, 0);
    put_tensor(&file, "a", 1, extent, 0, 64);
    put_tensor(&file, "b", 1, extent, 0, 0);
    put_tensor(&file, "c", 1, extent, 0, 32);
    put_data(&file, 32, 128);
    check_refused(&file, WICK_ERR_FORMAT, "byte 160: the tensors 'b' and 'c' overlap");

    /* Any order, gaps and empty tensors anywhere are right. */
    static const uint64_t none[] = {0};
    put_start(&file, 3, 3, 0);
    put_tensor(&file, "a", 1, extent, 0, 96);
    put_tensor(&file, "b", 1, none, 0, 32);
    put_tensor(&file, "c", 1, extent, 0, 0);
    put_data(&file, 32, 32 * 5);
    wick_error error;
    wk_gguf_parser *parser;
    assert_int_equal(parse(file.data, file.size, file.size, 1000, &parser, &error), WICK_OK);
    wk_gguf_parser_free(parser);
}

/* Offsets beyond 4 GB, known size; and that size wrong by one. */
static void test_over_4_gb(void **state) {
    (void)state;
    static const uint64_t extents[] = {UINT64_C(1) << 20, 1024}; /* 4 GiB */
    static const uint64_t small[] = {2};
    const uint64_t gib = UINT64_C(1) << 30;
    gguf_bytes file;
    put_start(&file, 3, 2, 0);
    put_tensor(&file, "large", 2, extents, 0, 0);
    put_tensor(&file, "small", 1, small, 0, 6 * gib);
    put_data(&file, 32, 0);
    const uint64_t file_size = file.size + 6 * gib + 8;
    wick_error error;
    wk_gguf_parser *parser;
    assert_int_equal(parse(file.data, file.size, file_size, 7, &parser, &error), WICK_OK);
    const wk_gguf *const gguf = wk_gguf_parser_result(parser);
    assert_true(gguf->tensors[0].size == 4 * gib);
    assert_true(gguf->tensors[1].offset == gguf->data_offset + 6 * gib);
    wk_gguf_parser_free(parser);
    assert_int_equal(parse(file.data, file.size, file_size - 1, 7, &parser, &error),
                     WICK_ERR_FORMAT);
    wk_gguf_parser_free(parser);
}

/* A stream that announces much: memory follows what arrives; the end is an error with its place. */
static void test_lying_stream(void **state) {
    (void)state;
    gguf_bytes file;
    put_start(&file, 3, 0, 1);
    put_array(&file, "k", WICK_VALUE_STRING, 100000000);
    put_count(&file, 900000000);
    put_data(&file, 1, 100);
    wick_error error;
    wk_gguf_parser *parser;
    assert_int_equal(parse(file.data, file.size, WICK_SIZE_UNKNOWN, 50, &parser, &error),
                     WICK_ERR_FORMAT);
    assert_string_equal(error.message, "byte 157: the file ends inside a string: it is cut off");
    assert_true(checked.heap.peak_bytes < 20000);
    wk_gguf_parser_free(parser);

    put_start(&file, 3, 0, 1);
    put_key(&file, "k", WICK_VALUE_STRING);
    put_count(&file, UINT64_C(1) << 30);
    assert_int_equal(parse(file.data, file.size, WICK_SIZE_UNKNOWN, 50, &parser, &error),
                     WICK_ERR_FORMAT);
    assert_string_equal(error.message,
                        "byte 37: a string of 1073741824 bytes does not fit into the 1073741779 "
                        "that are left of the 1 GiB that a header may have");
    wk_gguf_parser_free(parser);
}

/* Real vocabularies: whole and in chunks give the same, known size or not. */
static void test_vocabularies(void **state) {
    (void)state;
    static const char *const names[] = {"vocab/gpt-2.gguf", "vocab/llama-spm.gguf",
                                        "vocab/bert-bge.gguf"};
    for (size_t i = 0; i < WK_COUNT(names); i++) {
        fixture_file file;
        if (!fixture_read("WICK_SHARED_DATA", names[i], &file)) skip();
        wick_error error;
        wk_gguf_parser *whole, *chunks;
        assert_int_equal(parse(file.data, file.size, file.size, file.size, &whole, &error),
                         WICK_OK);
        static const size_t sizes[] = {1, 7, 4096};
        for (size_t j = 0; j < WK_COUNT(sizes); j++) {
            assert_int_equal(
                parse(file.data, file.size, WICK_SIZE_UNKNOWN, sizes[j], &chunks, &error), WICK_OK);
            assert_true(same_gguf(wk_gguf_parser_result(whole), wk_gguf_parser_result(chunks)));
            wk_gguf_parser_free(chunks);
        }
        const wick_value *const tokens =
            wk_gguf_find(wk_gguf_parser_result(whole), "tokenizer.ggml.tokens");
        assert_true(tokens->array.count > 30000);
        wk_gguf_parser_free(whole);
        free(file.data);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_everything, begin, end),
        cmocka_unit_test_setup_teardown(test_used, begin, end),
        cmocka_unit_test_setup_teardown(test_empty_file, begin, end),
        cmocka_unit_test_setup_teardown(test_bad_beginnings, begin, end),
        cmocka_unit_test_setup_teardown(test_bad_values, begin, end),
        cmocka_unit_test_setup_teardown(test_long_names, begin, end),
        cmocka_unit_test_setup_teardown(test_alignment, begin, end),
        cmocka_unit_test_setup_teardown(test_bad_tensors, begin, end),
        cmocka_unit_test_setup_teardown(test_tensors_together, begin, end),
        cmocka_unit_test_setup_teardown(test_over_4_gb, begin, end),
        cmocka_unit_test_setup_teardown(test_lying_stream, begin, end),
        cmocka_unit_test_setup_teardown(test_vocabularies, begin, end),
    };
    return cmocka_run_group_tests_name("gguf", tests, NULL, NULL);
}
