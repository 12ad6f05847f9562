/* The command's reader of JSON (cli/json_in.c, which belongs to no library). */
#include "../../cli/json_in.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* In memory of its own, so that a byte too much is seen. */
static char *copy;

static bool parse(const char *text, cli_json_value *value) {
    const size_t size = strlen(text);
    free(copy);
    copy = malloc(size + (size == 0));
    assert_non_null(copy);
    memcpy(copy, text, size);
    return cli_json_parse(copy, size, value);
}

static int tear_down(void **state) {
    (void)state;
    free(copy);
    copy = NULL;
    return 0;
}

static void assert_text(const char *json, const char *expected) {
    cli_json_value value;
    char text[32];
    assert_true(parse(json, &value));
    assert_int_equal(cli_json_get_text(value, text, sizeof text), expected != NULL);
    assert_string_equal(text, expected != NULL ? expected : "");
}

static void test_walk(void **state) {
    (void)state;
    cli_json_value root;
    uint64_t number = 0;
    assert_true(
        parse(" { \"a\" : [ 1 , [ ] , {\"b\":\"]}\"} ,22 ] , \"c\":{ }, \"d\" : 3 } ", &root));
    cli_json_value item = cli_json_first(cli_json_member(root, "a"));
    assert_true(cli_json_get_whole(item, &number));
    assert_int_equal(number, 1);
    item = cli_json_next(item);
    assert_null(cli_json_first(item).at);
    item = cli_json_next(item);
    char text[4];
    assert_true(cli_json_get_text(cli_json_member(item, "b"), text, sizeof text));
    assert_string_equal(text, "]}");
    assert_true(cli_json_get_whole(cli_json_next(item), &number));
    assert_int_equal(number, 22);
    assert_null(cli_json_next(cli_json_next(item)).at);
    assert_true(cli_json_get_whole(cli_json_member(root, "d"), &number));
    assert_int_equal(number, 3);
    assert_null(cli_json_member(root, "b").at);
    assert_null(cli_json_member(cli_json_member(root, "c"), "d").at);
    assert_null(cli_json_member(cli_json_member(root, "x"), "d").at);
    assert_null(cli_json_next(cli_json_member(root, "x")).at);
}

static void test_texts(void **state) {
    (void)state;
    assert_text("\"\"", "");
    assert_text("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t");
    assert_text("\"\\u0041\\u00e9\\u65E5\\ud83d\\ude00\"", "A\xC3\xA9\xE6\x97\xA5\xF0\x9F\x98\x80");
    assert_text("\"\\ud83d\"", NULL);
    assert_text("\"\\ud83dx\"", NULL);
    assert_text("\"\\ud83d\\u0041\"", NULL);
    assert_text("\"\\ude00\"", NULL);
    assert_text("\"a\\u0000b\"", NULL);
    assert_text("\"1234567890123456789012345678901\"", "1234567890123456789012345678901");
    assert_text("\"12345678901234567890123456789012\"", NULL);
    assert_text("12", NULL);
    assert_text("[\"x\"]", NULL);
}

static void test_numbers(void **state) {
    (void)state;
    static const char *const fractions[] = {"-1", "1.5", "1e3", "\"1\"", "18446744073709551616"};
    cli_json_value value;
    uint64_t number = 0;
    assert_true(parse("18446744073709551615", &value));
    assert_true(cli_json_get_whole(value, &number));
    assert_true(number == UINT64_MAX);
    for (size_t i = 0; i < sizeof fractions / sizeof *fractions; i++) {
        assert_true(parse(fractions[i], &value));
        assert_false(cli_json_get_whole(value, &number));
    }
}

static void test_what_is_none(void **state) {
    (void)state;
    static const char *const texts[] = {
        "",     " ",      "{",        "[",        "]",      "[1",         "[1,",       "[1,]",
        "[,1]", "{\"a\"", "{\"a\":",  "{\"a\":1", "{a:1}",  "{\"a\":1,}", "{\"a\" 1}", "\"",
        "\"\\", "\"\\\"", "\"\\u123", "\"\\x\"",  "\"\n\"", "01",         "-",         "1.",
        ".5",   "1e",     "1e+",      "+1",       "tru",    "nulll",      "1 2",       "NaN",
    };
    cli_json_value value;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_false(parse(texts[i], &value));
        assert_null(value.at);
    }
    char deep[2 * 65 + 3] = "";
    memset(deep, '[', 65);
    memset(deep + 65, ']', 65);
    assert_true(parse(deep, &value));
    memset(deep, '[', 66);
    memset(deep + 66, ']', 66);
    assert_false(parse(deep, &value));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_walk, tear_down),
        cmocka_unit_test_teardown(test_texts, tear_down),
        cmocka_unit_test_teardown(test_numbers, tear_down),
        cmocka_unit_test_teardown(test_what_is_none, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
