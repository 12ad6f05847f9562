/* Sentences of failures, texts of statuses, the version. */
#include "core/status.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static void test_texts(void **state) {
    (void)state;
    assert_string_equal(wick_status_text(WICK_OK), "ok");
    assert_string_equal(wick_status_text(WICK_ERR_INTERNAL), "internal error");
    assert_string_equal(wick_status_text((wick_status)-1000), "unknown status");
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", WICK_VERSION_MAJOR, WICK_VERSION_MINOR,
             WICK_VERSION_PATCH);
    assert_string_equal(wick_version(), version);
}

static void test_first_failure_stays(void **state) {
    (void)state;
    wick_error err = {0};
    assert_int_equal(wk_fail(&err, WICK_ERR_SHAPE, "rank %d", 7), WICK_ERR_SHAPE);
    assert_int_equal(wk_fail(&err, WICK_ERR_IO, "second"), WICK_ERR_IO);
    assert_int_equal(wk_fail_memory_of(&err, 10, 5, "a thing"), WICK_ERR_OUT_OF_MEMORY);
    const wick_error later = {.status = WICK_ERR_IO, .message = "later"};
    assert_int_equal(wk_pass_on(&err, WICK_ERR_IO, &later), WICK_ERR_IO);
    assert_int_equal(err.status, WICK_ERR_SHAPE);
    assert_string_equal(err.message, "rank 7");
    assert_int_equal(err.bytes_requested, 0);
    assert_int_equal(wk_fail(NULL, WICK_ERR_IO, "nobody listens"), WICK_ERR_IO);
}

static void test_failures_name_their_file(void **state) {
    (void)state;
    wick_error reason = {0}, err = {0};
    wk_fail_memory_of(&reason, 5000000000, 12, "a list");
    assert_int_equal(wk_fail_in_file(&err, "a/b.gguf", &reason), WICK_ERR_OUT_OF_MEMORY);
    assert_true(err.bytes_requested == 5000000000 && err.bytes_available == 12);
    assert_string_equal(
        err.message,
        "'a/b.gguf': not enough memory for a list: 4.7 GiB needed, 12 bytes available");
    wick_error other = {0}, named = {0};
    wk_fail(&other, WICK_ERR_IO, "cannot open 'a/b.gguf': gone");
    assert_int_equal(wk_fail_in_file(&err, "a/b.gguf", &other), WICK_ERR_IO);
    assert_int_equal(err.status, WICK_ERR_OUT_OF_MEMORY); /* the first one stays */
    assert_int_equal(wk_fail_in_file(&named, "a/b.gguf", &other), WICK_ERR_IO);
    assert_string_equal(named.message, other.message);
    assert_int_equal(wk_fail_in_file(NULL, "x", &other), WICK_ERR_IO);
    static const char *const parts[] = {"a", "b.gguf", "a/b", "cannot open "};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) { /* of the sentence, not the file */
        char expected[sizeof other.message + 16];
        wick_error part = {0};
        snprintf(expected, sizeof expected, "'%s': %s", parts[i], other.message);
        wk_fail_in_file(&part, parts[i], &other);
        assert_string_equal(part.message, expected);
    }
    wick_error nameless = {0};
    wk_fail_in_file(&nameless, "", &other);
    assert_string_equal(nameless.message, other.message);
}

static void test_memory(void **state) {
    (void)state;
    wick_error err = {0};
    assert_int_equal(wk_fail_memory_of(&err, 5000000000, 12, "the cache"), WICK_ERR_OUT_OF_MEMORY);
    assert_int_equal(err.status, WICK_ERR_OUT_OF_MEMORY);
    assert_true(err.bytes_requested == 5000000000 && err.bytes_available == 12);
    assert_string_equal(err.message,
                        "not enough memory for the cache: 4.7 GiB needed, 12 bytes available");
    wick_error unknown = {0};
    wk_fail_memory(&unknown, 7, "it");
    assert_string_equal(unknown.message, "not enough memory for it: 7 bytes needed");
    unknown = (wick_error){0};
    wk_fail_memory(&unknown, 1, "it");
    assert_string_equal(unknown.message, "not enough memory for it: 1 byte needed");
    unknown = (wick_error){0};
    wk_fail_memory(&unknown, 0, "it");
    assert_string_equal(unknown.message, "not enough memory for it");
}

static void test_sizes(void **state) {
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *up, *down;
    } cases[] = {
        {0, "0 bytes", "0 bytes"},
        {1, "1 byte", "1 byte"},
        {1023, "1023 bytes", "1023 bytes"},
        {1024, "1.0 KiB", "1.0 KiB"},
        {1025, "1.1 KiB", "1.0 KiB"},
        {1047552, "1023.0 KiB", "1023.0 KiB"},
        {1048473, "1023.9 KiB", "1023.8 KiB"}, /* the last byte below nine tenths */
        {1048474, "1.0 MiB", "1023.9 KiB"},    /* the first one above them */
        {(1 << 20) - 1, "1.0 MiB", "1023.9 KiB"},
        {1 << 20, "1.0 MiB", "1.0 MiB"},
        {(1 << 20) + 1, "1.1 MiB", "1.0 MiB"},
        {((uint64_t)1 << 60) - 1, "1.0 EiB", "1023.9 PiB"},
        {3 << 19, "1.5 MiB", "1.5 MiB"},
        {(1 << 30) + 1, "1.1 GiB", "1.0 GiB"}, /* one byte, two units below */
        {5046586573, "4.7 GiB", "4.6 GiB"},
        {UINT64_MAX, "16.0 EiB", "15.9 EiB"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_string_equal(wk_show_size(cases[i].bytes, true).text, cases[i].up);
        assert_string_equal(wk_show_size(cases[i].bytes, false).text, cases[i].down);
    }
}

static void test_long_message_is_cut(void **state) {
    (void)state;
    char text[1024];
    for (int shift = 0; shift < 2; shift++) { /* two-byte characters at both parities */
        memset(text, 'x', sizeof text);
        for (size_t i = (size_t)shift; i + 2 < sizeof text; i += 2) memcpy(text + i, "\xC3\xA9", 2);
        text[sizeof text - 1] = '\0';
        wick_error err = {0};
        wk_fail(&err, WICK_ERR_VALUE, "%s", text);
        const size_t length = strlen(err.message);
        assert_true(length < sizeof err.message && length > sizeof err.message - 4);
        assert_string_equal(err.message + length - 3, "...");
        assert_int_equal((unsigned char)err.message[length - 4], 0xA9);
    }
}

static wick_status pass_on(wick_status status) {
    WK_TRY(status);
    return WICK_ERR_INTERNAL;
}

static void test_try(void **state) {
    (void)state;
    assert_int_equal(pass_on(WICK_PENDING), WICK_PENDING);
    assert_int_equal(pass_on(WICK_ERR_IO), WICK_ERR_IO);
    assert_int_equal(pass_on(WICK_OK), WICK_ERR_INTERNAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_first_failure_stays),
        cmocka_unit_test(test_failures_name_their_file),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_long_message_is_cut),
        cmocka_unit_test(test_try),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
