/* Strings and the growing buffer. */
#include "core/json_write.h"
#include "core/str.h"
#include "core/compiler.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "checked_heap.h"

#include <locale.h>
#include <math.h>
#include <string.h>

static void test_equal(void **state) {
    (void)state;
    assert_true(wk_str_equal(wk_str_of("abc"), (wk_str){"abcd", 3}));
    assert_false(wk_str_equal(wk_str_of("abc"), wk_str_of("abd")));
    assert_false(wk_str_equal(wk_str_of("abc"), wk_str_of("ab")));
    assert_true(wk_str_equal((wk_str){NULL, 0}, wk_str_of("")));
    assert_true(wk_str_is((wk_str){"xyz", 2}, "xy"));
    assert_false(wk_str_is((wk_str){"a\0b", 3}, "a"));
}

static void test_show(void **state) {
    (void)state;
    assert_string_equal(wk_str_show((wk_str){NULL, 0}).text, "");
    assert_string_equal(wk_str_show(wk_str_of("\x1B[2Jq\xC3\xA9")).text, "?[2Jq??");
    char text[200];
    memset(text, 'x', sizeof text);
    const wk_shown shown = wk_str_show((wk_str){text, sizeof text});
    assert_int_equal(strlen(shown.text), sizeof shown.text - 1);
    assert_string_equal(shown.text + sizeof shown.text - 5, "x...");
}

static void test_append(void **state) {
    (void)state;
    checked_heap checked;
    checked_heap_init(&checked, 1000);
    wk_strbuf buf;
    wk_strbuf_init(&buf, &checked.heap);
    assert_null(buf.data);
    char expected[5000];
    for (size_t i = 0; i < sizeof expected; i++) {
        expected[i] = (char)('a' + i % 26);
        wk_strbuf_append(&buf, &expected[i], 1);
        assert_int_equal(buf.data[buf.size], '\0');
    }
    assert_int_equal(buf.size, sizeof expected);
    assert_memory_equal(buf.data, expected, sizeof expected);
    assert_true(checked.heap.n_allocations < 10);
    wk_strbuf_clear(&buf);
    assert_string_equal(buf.data, "");
    wk_strbuf_text(&buf, "text");
    wk_strbuf_append(&buf, NULL, 0);
    wk_strbuf_format(&buf, " %d %s", 42, "more");
    assert_string_equal(buf.data, "text 42 more");
    wk_strbuf_format(&buf, "%400s", "");
    assert_int_equal(buf.size, 412);
    wk_strbuf_format(&buf, "%s", "");
    assert_int_equal(buf.size, 412);
    assert_false(buf.failed);
    wk_strbuf_release(&buf);
    assert_true(checked_heap_is_clean(&checked));
}

static void test_reserve(void **state) {
    (void)state;
    checked_heap checked;
    checked_heap_init(&checked, 1);
    wk_strbuf buf;
    wk_strbuf_init(&buf, &checked.heap);
    assert_true(wk_strbuf_reserve(&buf, 1000));
    assert_string_equal(buf.data, "");
    for (int i = 0; i < 1000; i++) wk_strbuf_append(&buf, "x", 1);
    assert_false(buf.failed);
    assert_int_equal(checked.heap.n_allocations, 1);
    wk_strbuf_release(&buf);
    assert_true(checked_heap_is_clean(&checked));
}

static void test_failure_sticks(void **state) {
    (void)state;
    checked_heap checked;
    checked_heap_init(&checked, 1);
    wk_strbuf buf;
    wk_strbuf_init(&buf, &checked.heap);
    wk_strbuf_text(&buf, "kept");
    assert_false(wk_strbuf_reserve(&buf, SIZE_MAX - 2));
    assert_true(buf.failed);
    wk_strbuf_text(&buf, "lost");
    wk_strbuf_format(&buf, "lost");
    assert_string_equal(buf.data, "kept");
    wk_strbuf_clear(&buf);
    wk_strbuf_text(&buf, "new");
    assert_false(buf.failed);
    wk_strbuf_format(&buf, "%1000s", "");
    assert_true(buf.failed);
    assert_string_equal(buf.data, "new");
    wk_strbuf_release(&buf);
    assert_true(checked_heap_is_clean(&checked));
}

static void test_utf8(void **state) {
    (void)state;
    size_t bad;
    assert_true(wk_str_is_utf8(wk_str_of(""), &bad));
    assert_true(wk_str_is_utf8(wk_str_of("a \xe2\x82\xac \xf0\x9f\x90\x88"), &bad));
    static const char *const wrong[] = {"ab\xff", "ab\xe2\x82", "ab\xc0\x80", "ab\xed\xa0\x80",
                                        "ab\x80"};
    for (size_t i = 0; i < WK_COUNT(wrong); i++) {
        assert_false(wk_str_is_utf8(wk_str_of(wrong[i]), &bad));
        assert_int_equal(bad, 2);
    }
}

static void test_globs(void **state) {
    (void)state;
    static const struct {
        const char *glob, *text;
        bool matches;
    } cases[] = {
        {"", "", true},
        {"", "a", false},
        {"*", "", true},
        {"*", "abc", true},
        {"a*", "abc", true},
        {"*c", "abc", true},
        {"a*c", "abc", true},
        {"a*d", "abc", false},
        {"?", "", false},
        {"a?c", "abc", true},
        {"a?", "abc", false},
        {"*b*", "abc", true},
        {"**", "abc", true},
        {"*ab*abc", "ababc", true},
        {"a*b*c", "aXbYbZc", true},
        {"abc", "ab", false},
        {"linear*", "linear_wgsl", true},
    };
    for (size_t i = 0; i < WK_COUNT(cases); i++)
        assert_int_equal(wk_str_matches(wk_str_of(cases[i].glob), wk_str_of(cases[i].text)),
                         cases[i].matches);
}

/* Linked with --wrap=localeconv. */
static struct lconv locale;
struct lconv *__wrap_localeconv(void);
struct lconv *__wrap_localeconv(void) { return &locale; }

/* Of locales that the test makes up. snprintf stays in C's, so that a digit as the point of one
 * shows what looks for it. */
static void test_decimal_point(void **state) {
    (void)state;
    static const struct {
        const char *point, *from, *want;
    } cases[] = {
        {",", "-12,5e-07", "-12.5e-07"},
        {",", "12", "12"},
        {",", "", ""},
        {"\xD9\xAB",
         "1\xD9\xAB"
         "5",
         "1.5"},
        {".", "1.5", "1.5"},
        {"", "1.5", "1.5"},
    };
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        char text[32], point[4];
        strcpy(text, cases[i].from);
        strcpy(point, cases[i].point);
        locale.decimal_point = point;
        wk_use_point(text);
        assert_string_equal(text, cases[i].want);
    }
    locale.decimal_point = (char[]){"3"};
    wk_strbuf to;
    checked_heap checked;
    checked_heap_init(&checked, UINT64_MAX);
    wk_strbuf_init(&to, &checked.heap);
    wk_strbuf_number(&to, 1.0 / 3, 2);
    wk_strbuf_text(&to, ":");
    wk_write_number(&to, 1.0 / 3);
    wk_write_double(&to, 1.0 / 3);
    wk_write_integer(&to, INT64_MIN);
    wk_write_number(&to, HUGE_VAL);
    wk_strbuf_append(&to, "", 1);
    assert_string_equal(to.data, "0..3:0..33333333,0..3333333333333331,-9223372036854775808,null");
    wk_strbuf_release(&to);
    assert_true(checked_heap_is_clean(&checked));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal),          cmocka_unit_test(test_show),
        cmocka_unit_test(test_append),         cmocka_unit_test(test_reserve),
        cmocka_unit_test(test_failure_sticks), cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_globs),          cmocka_unit_test(test_decimal_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
