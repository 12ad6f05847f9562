/* JSON in and out. */
#include "core/json.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "checked_heap.h"
#include "core/half.h"
#include "core/json_write.h"
#include "core/rng.h"

#include <wick/json.h>

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct fixture {
    checked_heap checked;
    wk_arena arena;
} fixture;

static int set_up(void **state) {
    static fixture f;
    checked_heap_init(&f.checked, UINT64_MAX);
    wk_arena_init(&f.arena, &f.checked.heap, 0);
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    fixture *const f = *state;
    wk_arena_release(&f->arena);
    return checked_heap_is_clean(&f->checked) ? 0 : 1;
}

static const wk_json *parse_size(fixture *f, const char *text, size_t size) {
    /* A block of exactly the text's size, so that the address sanitizer sees a read after it. */
    char *const copy = malloc(size + !size);
    assert_non_null(copy);
    memcpy(copy, text, size);
    wk_json *value;
    wick_error err = {0};
    const wick_status status = wk_json_parse(&f->arena, copy, size, &value, &err);
    free(copy);
    if (status != WICK_OK) print_message("%s\n", err.message);
    assert_int_equal(status, WICK_OK);
    return value;
}

static const wk_json *parse(fixture *f, const char *text) {
    return parse_size(f, text, strlen(text));
}

static void refuse(fixture *f, const char *text, size_t size, size_t byte) {
    char *const copy = malloc(size + !size);
    assert_non_null(copy);
    memcpy(copy, text, size);
    wk_json *value = (wk_json *)copy;
    wick_error err = {0};
    assert_int_equal(wk_json_parse(&f->arena, copy, size, &value, &err), WICK_ERR_FORMAT);
    free(copy);
    assert_null(value);
    char expected[32];
    snprintf(expected, sizeof expected, "JSON, byte %zu: ", byte);
    if (strncmp(err.message, expected, strlen(expected)) != 0) {
        fail_msg("%s gives \"%s\", expected byte %zu", text, err.message, byte);
    }
}

static void test_structure(void **state) {
    const wk_json *const value = parse(
        *state, " {\"a\": [1, -2.5, true, false, null, {}], \"b\" :{\"c\":\"d\"},\r\n\t\"\":[]} ");
    assert_int_equal(value->kind, WK_JSON_OBJECT);
    assert_int_equal(value->count, 3);
    const wk_json *const a = wk_json_get(value, "a");
    assert_int_equal(a->kind, WK_JSON_ARRAY);
    assert_int_equal(a->count, 6);
    const wk_json *item = a->child;
    assert_true(item->kind == WK_JSON_NUMBER && item->is_integer && item->integer == 1);
    item = item->next;
    assert_true(item->kind == WK_JSON_NUMBER && !item->is_integer && item->number == -2.5);
    item = item->next;
    assert_true(item->kind == WK_JSON_BOOL && item->boolean);
    item = item->next;
    assert_true(item->kind == WK_JSON_BOOL && !item->boolean);
    item = item->next;
    assert_int_equal(item->kind, WK_JSON_NULL);
    item = item->next;
    assert_true(item->kind == WK_JSON_OBJECT && item->count == 0 && !item->child && !item->next);
    assert_true(wk_str_is(wk_json_get(wk_json_get(value, "b"), "c")->string, "d"));
    assert_int_equal(wk_json_get(value, "")->count, 0);
    assert_null(wk_json_get(value, "absent"));
    assert_null(wk_json_get(a, "a"));
    assert_null(wk_json_get(NULL, "a"));
    assert_int_equal(parse(*state, "\xEF\xBB\xBF 1")->integer, 1);
    const wk_json *const twice = parse(*state, "{\"k\":1,\"k\":2}");
    assert_int_equal(twice->count, 2);
    assert_int_equal(wk_json_get(twice, "k")->integer, 2);
}

static void check_string(void **state, const char *text, const char *expected, size_t size) {
    const wk_json *const value = parse(*state, text);
    assert_int_equal(value->kind, WK_JSON_STRING);
    assert_int_equal(value->string.size, size);
    assert_memory_equal(value->string.text, expected, size + 1); /* terminated */
}

static void test_strings(void **state) {
    check_string(state, "\"\"", "", 0);
    check_string(state, "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8);
    check_string(state, "\"a\\u0000b\"", "a\0b", 3);
    check_string(state, "\"\\ud83da\\udE00\\ud83d\"", "\uFFFDa\uFFFD\uFFFD", 10);
    check_string(state, "\"\\ud83d\\ud83d\\uDE00\\ud800\\n\"", "\uFFFD\U0001F600\uFFFD\n", 11);
    check_string(state, "\"\\u00e9\\u20AC\\ud83d\\uDE00\"", "\u00e9\u20ac\U0001F600", 9);
    check_string(state, "\"\u00e9\u20ac\U0001F600\x7F\"", "\u00e9\u20ac\U0001F600\x7F", 10);
    check_string(state, "\"\xF4\x8F\xBF\xBF\xEE\x80\x80\xED\x9F\xBF\"",
                 "\xF4\x8F\xBF\xBF\xEE\x80\x80\xED\x9F\xBF", 10);
}

static void test_numbers(void **state) {
    static const struct {
        const char *text;
        double number;
        int64_t integer;
        bool is_integer;
    } cases[] = {
        {"0", 0.0, 0, true},
        {"-0", -0.0, 0, true},
        {"9223372036854775807", 0x1p63, INT64_MAX, true},
        {"-9223372036854775808", -0x1p63, INT64_MIN, true},
        {"9223372036854775808", 0x1p63, 0, false},
        {"-9223372036854775809", -0x1p63, 0, false},
        {"100000000000000000000", 1e20, 0, false},
        {"1.0", 1.0, 0, false},
        {"1e2", 100.0, 0, false},
        {"1E+2", 100.0, 0, false},
        {"12.5e-1", 1.25, 0, false},
        {"0.000", 0.0, 0, false},
        {"0e999999999999999999999", 0.0, 0, false},
        {"1e999999999999999999999", (double)INFINITY, 0, false},
        {"-1e-999999999999999999999", -0.0, 0, false},
        {"1.7976931348623157e308", DBL_MAX, 0, false},
        {"4.9406564584124654e-324", 0x1p-1074, 0, false},
        {"2.4703282292062327e-324", 0.0, 0, false},
        {"2.4703282292062328e-324", 0x1p-1074, 0, false},
        {"9007199254740993", 9007199254740992.0, 9007199254740993, true},
        {"9007199254740993.0000000000000000000000000000000000001", 9007199254740994.0, 0, false},
        {"Infinity", (double)INFINITY, 0, false},
        {"-Infinity", -(double)INFINITY, 0, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const wk_json *const value = parse(*state, cases[i].text);
        assert_int_equal(value->kind, WK_JSON_NUMBER);
        assert_int_equal(value->is_integer, cases[i].is_integer);
        assert_true(value->integer == cases[i].integer);
        assert_memory_equal(&value->number, &cases[i].number, sizeof(double));
    }
    const wk_json *const value = parse(*state, "NaN");
    assert_true(value->kind == WK_JSON_NUMBER && isnan(value->number));
}

/* Numbers are written as they were read. */
static void test_written_numbers(void **state) {
    const char *const text = "[0,-12,0.1,1.0,-1.50E+3,12345678901234567890,1e-400]";
    wk_strbuf out;
    wk_strbuf_init(&out, &((fixture *)*state)->checked.heap);
    wk_write_value(&out, parse(*state, text));
    assert_string_equal(out.data, text);
    wk_strbuf_clear(&out);
    wk_write_value(&out, parse(*state, "[1e999,NaN]"));
    assert_string_equal(out.data, "[1e999,null]");
    wk_strbuf_release(&out);
}

/* 2^53 + 1 lies halfway between two doubles: a digit 900 places after it decides. */
static void test_long_number(void **state) {
    char text[2000];
    const int whole = snprintf(text, sizeof text, "9007199254740993.");
    memset(text + whole, '0', 1000);
    text[whole + 900] = '1';
    text[whole + 1000] = '\0';
    assert_true(parse(*state, text)->number == 9007199254740994.0);
    text[whole + 900] = '0';
    assert_true(parse(*state, text)->number == 9007199254740992.0);
    memset(text, '0', 1500);
    memcpy(text, "0.", 2);
    memcpy(text + 1500, "1e1500", 7);
    assert_true(parse(*state, text)->number == 10.0);
    text[0] = '1';
    memset(text + 1, '0', 1499);
    memcpy(text + 1500, "e-1499", 7);
    assert_true(parse(*state, text)->number == 1.0);
}

static void test_random_numbers(void **state) {
    wk_rng rng = {.seed = 5};
    for (int i = 0; i < 20000; i++) {
        const uint64_t low = wk_rng_u32(&rng);
        const uint64_t bits = (uint64_t)wk_rng_u32(&rng) << 32 | low;
        double d;
        memcpy(&d, &bits, sizeof d);
        if (isnan(d) || isinf(d)) continue;
        char text[64];
        snprintf(text, sizeof text, "%.17g", d);
        assert_true(parse(*state, text)->number == d);
        const float f = wk_f32_from_bits((wk_rng_u32(&rng) & 0x807FFFFF) | 0x3F000000);
        snprintf(text, sizeof text, "%.9g", (double)f); /* the short way */
        assert_true((float)parse(*state, text)->number == f);
    }
}

static void test_refusals(void **state) {
    static const struct {
        const char *text;
        size_t byte;
    } cases[] = {
        {"", 0},
        {"  ", 2},
        {"nul", 0},
        {"truex", 4},
        {"1 2", 2},
        {"[1,]", 3},
        {"[1 2]", 3},
        {"[", 1},
        {"[1", 2},
        {"{", 1},
        {"{\"a\"}", 4},
        {"{\"a\":}", 5},
        {"{\"a\":1,}", 7},
        {"{a:1}", 1},
        {"01", 0},
        {"-", 0},
        {"-01", 0},
        {"+1", 0},
        {".5", 0},
        {"1.", 2},
        {"1.e5", 2},
        {"1e", 2},
        {"1e+", 3},
        {"0x10", 1},
        {"\"abc", 0},
        {"\"a\\\"", 0},
        {"\"a\tb\"", 2},
        {"\"\\x\"", 1},
        {"\"\\u12g4\"", 1},
        {"\"\\u123\"", 1},
        {"\"\\ud800\\u12\"", 7},
        {"\"\xFF\"", 1},
        {"\"x\xC3\"", 2},
        {"\"\xC0\x80\"", 1},
        {"\"\xE0\x80\x80\"", 1},
        {"\"\xED\xA0\x80\"", 1},
        {"\"\xF4\x90\x80\x80\"", 1},
        {"\"\xF0\x9F\x98\"", 1},
        {"'a'", 0},
        {"nan", 0},
        {"]", 0},
        {"\xEF\xBB\xBF", 3},
        {"\xEF\xBB", 0},
        {" \xEF\xBB\xBF"
         "1",
         1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        refuse(*state, cases[i].text, strlen(cases[i].text), cases[i].byte);
    }
    refuse(*state, "1\0", 2, 1);
    refuse(*state, "\"\\\0\"", 4, 1);
}

static void test_depth(void **state) {
    char text[400];
    memset(text, '[', 150);
    memset(text + 128, ']', 128);
    assert_int_equal(parse_size(*state, text, 256)->count, 1);
    memset(text, '[', 150);
    refuse(*state, text, 150, 128);
    for (size_t i = 0; i < 80; i++) memcpy(text + 5 * i, "{\"\":[", 5);
    refuse(*state, text, 400, 128 / 2 * 5);
}

/* Every allocation in turn is refused. */
static void test_memory(void **state) {
    (void)state;
    const char *const text = "{\"key\": [\"value\", 1, {\"k\": null}]}";
    for (uint64_t n = 0;; n++) {
        checked_heap checked;
        checked_heap_init(&checked, n);
        wk_arena arena;
        wk_arena_init(&arena, &checked.heap, 1);
        wk_json *value;
        wick_error err = {0};
        const wick_status status = wk_json_parse(&arena, text, strlen(text), &value, &err);
        wk_arena_release(&arena);
        assert_true(checked_heap_is_clean(&checked));
        if (status == WICK_OK) break;
        assert_int_equal(status, WICK_ERR_OUT_OF_MEMORY);
        assert_null(value);
        assert_int_equal(err.status, WICK_ERR_OUT_OF_MEMORY);
    }
}

/* A copy needs nothing of what it was made from, at every refused allocation. */
static void test_copy(void **state) {
    static const char text[] = "{\"a\":[0.10,7,\"\",{\"b\":\"x\",\"c\":null}],\"d\":true}";
    fixture *const f = *state;
    wk_json copy;
    wk_strbuf out;
    wk_arena to;
    for (uint64_t allowed = 0;; allowed++) {
        wk_arena from;
        wk_json *read;
        wk_arena_init(&from, &f->checked.heap, 64);
        wk_arena_init(&to, &f->checked.heap, 1);
        assert_int_equal(wk_json_parse(&from, text, sizeof text - 1, &read, NULL), WICK_OK);
        f->checked.n_allowed = allowed;
        const bool is_copied = wk_json_copy(&to, read, &copy);
        f->checked.n_allowed = UINT64_MAX;
        wk_arena_release(&from);
        if (is_copied) break;
        wk_arena_release(&to);
    }
    wk_strbuf_init(&out, &f->checked.heap);
    wk_write_value(&out, &copy);
    assert_string_equal(out.data, text);
    wk_strbuf_release(&out);
    wk_arena_release(&to);
}

/* wick/json.h: what is not there is NULL, and everything takes that. */
static void test_document(void **state) {
    (void)state;
    static const char text[] =
        "{\"a\": [1, [], {\"b\": \"]\\u0000}\"}, 22], \"c\": true, \"d\": -3,"
        " \"e\": 1.5, \"f\": 18446744073709551616, \"z\": 0}";
    wick_json_document *document;
    uint64_t number = 7;
    size_t size;
    assert_int_equal(wick_json_parse(text, strlen(text), &document, NULL), WICK_OK);
    const wick_json *const root = wick_json_root(document);
    const wick_json *item = wick_json_first(wick_json_get(root, "a"));
    double value = 0;
    assert_true(wick_json_get_whole(item, &number));
    assert_true(wick_json_get_number(item, &value));
    assert_true(value == (double)number);
    assert_false(wick_json_get_number(NULL, &value));
    assert_int_equal(number, 1);
    item = wick_json_next(item);
    assert_null(wick_json_first(item));
    item = wick_json_next(item);
    assert_non_null(wick_json_text(wick_json_get(item, "b"), &size));
    assert_int_equal(size, 3);
    assert_true(wick_json_get_whole(wick_json_next(item), &number));
    assert_null(wick_json_next(wick_json_next(item)));
    assert_true(wick_json_is_true(wick_json_get(root, "c")));
    for (const char *key = "acdefx"; *key != '\0'; key++)
        assert_false(wick_json_get_whole(wick_json_get(root, (char[]){*key, '\0'}), &number));
    assert_int_equal(number, 22);
    assert_true(wick_json_get_whole(wick_json_get(root, "z"), &number) && number == 0);
    assert_null(wick_json_text(wick_json_get(wick_json_get(root, "x"), "b"), &size));
    assert_int_equal(wick_json_kind_of(wick_json_next(NULL)), WICK_JSON_NULL);
    wick_json_free(document);
    assert_int_equal(wick_json_parse(NULL, 0, &document, NULL), WICK_ERR_FORMAT);
    assert_int_equal(wick_json_parse(NULL, 1, &document, NULL), WICK_ERR_ARGUMENT);
    assert_null(document);
    wick_json_free(document);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_structure, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_strings, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_numbers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_written_numbers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_long_number, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_random_numbers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refusals, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_depth, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_copy, set_up, tear_down),
        cmocka_unit_test(test_document),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
