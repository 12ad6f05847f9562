/* The language of chat templates: the short templates of tests/data, each with the text that the
 * reference makes of it, or the error. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "fixture_file.h"

#include <wick/chat.h>

#include <stdio.h>
#include <string.h>

static const char *text_of(const wick_json *row, const char *key, size_t *size) {
    return wick_json_text(wick_json_get(row, key), size);
}

/* "2026-01-15T12:34:56" */
static wick_time_of_day time_of(const wick_json *row) {
    wick_time_of_day t = {0};
    assert_int_equal(sscanf(text_of(row, "now", NULL), "%d-%d-%dT%d:%d:%d", &t.year, &t.month,
                            &t.day, &t.hour, &t.minute, &t.second),
                     6);
    return t;
}

static wick_status render(const wick_json *row, const wick_json *template, wick_prompt **prompt,
                          wick_error *error) {
    size_t size;
    wick_template *compiled = NULL;
    const char *const text = wick_json_text(template, &size);
    const wick_conversation conversation = {.variables = wick_json_get(row, "vars"),
                                            .generation_prompt = WICK_GENERATION_PROMPT_UNSET,
                                            .is_raw = true,
                                            .now = time_of(row)};
    wick_status status = wick_template_parse(text, size, &compiled, error);
    if (status == WICK_OK) status = wick_template_render(compiled, &conversation, prompt, error);
    wick_template_free(compiled);
    return status;
}

static bool is_text(const wick_json *row, const char *key, const wick_prompt *prompt) {
    size_t size = 0, n = 0;
    const char *const wanted = text_of(row, key, &size), *const got = wick_prompt_text(prompt, &n);
    return wanted != NULL && got != NULL && n == size && memcmp(wanted, got, n) == 0;
}

/* What the reference refuses may be or_text; the wording of an error matters where a template
 * raised it. */
static bool is_right(const wick_json *row, wick_status status, const wick_prompt *prompt,
                     const wick_error *error) {
    if (wick_json_get(row, "expected") != NULL) return is_text(row, "expected", prompt);
    if (status == WICK_OK) return is_text(row, "or_text", prompt);
    const wick_json *const required = wick_json_get(row, "message_required");
    const bool is_required = required == NULL || wick_json_is_true(required);
    return !is_required || strcmp(text_of(row, "error", NULL), error->message) == 0;
}

/* Templates of the row "refused" that are not; what they render is shown. */
static size_t count_accepted(const wick_json *row) {
    size_t n = 0;
    const wick_json *template = wick_json_first(wick_json_get(row, "refused"));
    for (; template != NULL; template = wick_json_next(template)) {
        wick_prompt *prompt = NULL;
        wick_error error = {.status = WICK_OK};
        if (render(row, template, &prompt, &error) == WICK_OK || error.message[0] == '\0') {
            print_message("%s: %s\n", text_of(row, "name", NULL), wick_json_text(template, NULL));
            n++;
        }
        wick_prompt_free(prompt);
    }
    return n;
}

static void check_file(const char *name, size_t n_rows) {
    fixture_file file;
    wick_json_document *rows = NULL;
    size_t n = 0, n_wrong = 0;
    assert_true(fixture_read("WICK_TEST_DATA", name, &file));
    assert_int_equal(wick_json_parse((const char *)file.data, file.size, &rows, NULL), WICK_OK);
    free(file.data);
    const wick_json *row = wick_json_first(wick_json_root(rows));
    for (; row != NULL; row = wick_json_next(row), n++) {
        wick_prompt *prompt = NULL;
        wick_error error = {.status = WICK_OK};
        n_wrong += count_accepted(row);
        if (wick_json_get(row, "template") == NULL) continue;
        const wick_status status = render(row, wick_json_get(row, "template"), &prompt, &error);
        if (!is_right(row, status, prompt, &error)) {
            print_message("%s: '%s' %s\n", text_of(row, "name", NULL),
                          prompt != NULL ? wick_prompt_text(prompt, NULL) : "", error.message);
            n_wrong++;
        }
        wick_prompt_free(prompt);
    }
    wick_json_free(rows);
    assert_int_equal(n_wrong, 0);
    assert_int_equal(n, n_rows);
}

static void test_language(void **state) {
    (void)state;
    check_file("jinja_language.json", 378);
}

static void test_more(void **state) {
    (void)state;
    check_file("jinja_more.json", 265);
}

/* Every method and filter at its bounds: counts, places and widths below, at and above what they
 * act on, every form of a format, methods of markup, and syntax that ends too early. */
static void test_bounds(void **state) {
    (void)state;
    check_file("jinja_bounds.json", 361);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_language),
        cmocka_unit_test(test_more),
        cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
