/* Tests of text/unicode/unicode. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/str.h"
#include "text/unicode/unicode.h"
#include "text/unicode/unicode_case.h"

#include <string.h>

static bool is_scalar(uint32_t code) {
    return code <= 0x10FFFF && !(code >= 0xD800 && code <= 0xDFFF);
}

static void every_scalar_value_survives(void **state) {
    (void)state;
    for (uint32_t code = 0; code <= 0x10FFFF; code++) {
        if (!is_scalar(code)) continue;
        char text[4];
        uint32_t back;
        const size_t size = wk_utf8_encode(code, text);
        assert_int_equal(wk_utf8_decode(text, size, &back), size);
        assert_int_equal(back, code);
        for (size_t n = 1; n < size; n++) {
            assert_int_equal(wk_utf8_classify((const unsigned char *)text, n), WK_UTF8_PARTIAL);
        }
        assert_int_equal(wk_utf8_classify((const unsigned char *)text, size), WK_UTF8_COMPLETE);
    }
}

/* Every first two bytes: what the decoder takes is what encoding can give. */
static void only_scalar_values_decode(void **state) {
    (void)state;
    for (unsigned pair = 0; pair < 0x10000; pair++) {
        const char text[4] = {(char)(pair >> 8), (char)(pair & 255), '\xBF', '\xBF'};
        uint32_t code;
        const size_t size = wk_utf8_decode(text, 4, &code);
        if (code == WK_CHAR_INVALID) {
            assert_int_equal(size, 1);
            continue;
        }
        char again[4];
        assert_true(is_scalar(code));
        assert_int_equal(wk_utf8_encode(code, again), size);
        assert_memory_equal(again, text, size);
    }
}

static void cut_and_bad_sequences_stand_alone(void **state) {
    (void)state;
    static const char *const bad[] = {
        "\x80",
        "\xC3",
        "\xC0\x80",
        "\xE0\x80\x80",
        "\xED\xA0\x80",
        "\xF0\x80\x80\x80",
        "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80",
        "\xE2\x96",
        "\xF0\x9F\x98",
        "\xFF",
        "\xC3(",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint32_t code;
        assert_int_equal(wk_utf8_decode(bad[i], strlen(bad[i]), &code), 1);
        assert_int_equal(code, WK_CHAR_INVALID);
    }
    assert_int_equal(wk_char_class_of(WK_CHAR_INVALID), WK_CHAR_OTHER);
}

static void classes(void **state) {
    (void)state;
    static const struct {
        uint32_t code;
        wk_char_class expected;
    } cases[] = {
        {'a', WK_CHAR_LOWER},      {'Z', WK_CHAR_UPPER},       {0xE9, WK_CHAR_LOWER},
        {0x1C5, WK_CHAR_UPPER},    {0x43D, WK_CHAR_LOWER},     {0x6211, WK_CHAR_LETTER},
        {0x2B0, WK_CHAR_LETTER},   {0x1780, WK_CHAR_LETTER},   {0x2FA1D, WK_CHAR_LETTER},
        {0x3134A, WK_CHAR_LETTER}, {'0', WK_CHAR_NUMBER},      {0xBD, WK_CHAR_NUMBER},
        {0x2163, WK_CHAR_NUMBER},  {0x663, WK_CHAR_NUMBER},    {' ', WK_CHAR_SPACE},
        {'\n', WK_CHAR_SPACE},     {0x0B, WK_CHAR_SPACE},      {0x85, WK_CHAR_SPACE},
        {0xA0, WK_CHAR_SPACE},     {0x3000, WK_CHAR_SPACE},    {0x2028, WK_CHAR_SPACE},
        {0x1C, WK_CHAR_CONTROL},   {0x200B, WK_CHAR_CONTROL},  {0xE000, WK_CHAR_CONTROL},
        {0x180E, WK_CHAR_CONTROL}, {'!', WK_CHAR_PUNCTUATION}, {0x2026, WK_CHAR_PUNCTUATION},
        {'$', WK_CHAR_SYMBOL},     {0x1F999, WK_CHAR_SYMBOL},  {0x301, WK_CHAR_NONSPACING},
        {0x903, WK_CHAR_MARK},     {0x20DD, WK_CHAR_MARK},     {0x10FFFF, WK_CHAR_OTHER},
        {0x378, WK_CHAR_OTHER},    {0xD800, WK_CHAR_OTHER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(wk_char_class_of(cases[i].code), cases[i].expected);
    }
    size_t n_spaces = 0;
    for (uint32_t code = 0; code <= 0x10FFFF; code++) {
        n_spaces += wk_char_class_of(code) == WK_CHAR_SPACE;
    }
    assert_int_equal(n_spaces, 25); /* PropList.txt, White_Space */
}

static void assert_folded(uint32_t code, const uint32_t *expected, size_t n) {
    uint32_t folded[WK_FOLD_MOST];
    assert_int_equal(wk_char_fold(code, folded), n);
    for (size_t i = 0; i < n; i++) assert_int_equal(folded[i], expected[i]);
}

#define ASSERT_FOLDED(code, ...)                                                                   \
    assert_folded(code, (const uint32_t[]){__VA_ARGS__},                                           \
                  sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* Expected: unicodedata of Python: NFD, without Mn, in lower case. */
static void folding(void **state) {
    (void)state;
    ASSERT_FOLDED('a', 'a');
    ASSERT_FOLDED('Z', 'z');
    ASSERT_FOLDED(0xC4, 'a');              /* A with diaeresis */
    ASSERT_FOLDED(0x1EED, 'u');            /* u with horn and hook above */
    ASSERT_FOLDED(0x130, 'i');             /* I with dot above */
    ASSERT_FOLDED(0x416, 0x436);           /* Cyrillic */
    ASSERT_FOLDED(0x37E, ';');             /* Greek question mark */
    ASSERT_FOLDED(0x9CB, 0x9C7, 0x9BE);    /* a Bengali vowel of two spacing marks */
    ASSERT_FOLDED(0xAC00, 0x1100, 0x1161); /* Hangul */
    ASSERT_FOLDED(0xD7A3, 0x1112, 0x1175, 0x11C2);
    ASSERT_FOLDED(0xF900, 0x8C48); /* a compatibility ideograph */
    ASSERT_FOLDED(0x10FFFF, 0x10FFFF);
    uint32_t none[WK_FOLD_MOST];
    assert_int_equal(wk_char_fold(0x301, none), 0);
    for (uint32_t code = 0; code <= 0x10FFFF; code++) {
        uint32_t once[WK_FOLD_MOST];
        const size_t n = wk_char_fold(code, once);
        assert_in_range(n, 0, WK_FOLD_MOST);
        for (size_t i = 0; i < n; i++) ASSERT_FOLDED(once[i], once[i]);
    }
}

/* Every stretch of a property at its first and its last character, as its class and the lengths
 * say.
 */
static void properties(void **state) {
    (void)state;
    for (int p = WK_UNICODE_PRINTABLE; p <= WK_UNICODE_TITLE; p++) {
        const wk_unicode_set *const set = &wk_unicode_sets[p];
        uint32_t first = 0;
        bool is_exception = false;
        for (size_t i = 0; i < set->size; is_exception = !is_exception) {
            const uint32_t length = wk_unicode_stretch(set, &i), last = first + length - 1;
            for (int end = 0; end < 2 && length > 0; end++) {
                const uint32_t code = end ? last : first;
                const bool is_of_class = set->classes >> wk_char_class_of(code) & 1;
                assert_int_equal(wk_unicode_is(code, (wk_unicode_property)p),
                                 is_of_class != is_exception);
            }
            first += length;
        }
        assert_false(wk_unicode_is(0x10FFFF, (wk_unicode_property)p));
    }
}

/* Expected: Python's str; each differs from most of its class. */
static void exceptions(void **state) {
    (void)state;
    static const struct {
        uint32_t code;
        wk_unicode_property property;
        bool expected;
    } cases[] = {
        {' ', WK_UNICODE_PRINTABLE, true},    {0xA0, WK_UNICODE_PRINTABLE, false},
        {0x378, WK_UNICODE_PRINTABLE, false}, {0x301, WK_UNICODE_PRINTABLE, true},
        {0x2B0, WK_UNICODE_ALPHABETIC, true}, {0x2160, WK_UNICODE_ALPHABETIC, false},
        {0x664, WK_UNICODE_DECIMAL, true},    {0xB2, WK_UNICODE_DECIMAL, false},
        {0xB2, WK_UNICODE_DIGIT, true},       {0xBD, WK_UNICODE_DIGIT, false},
        {0xBD, WK_UNICODE_NUMERIC, true},     {0x4E00, WK_UNICODE_NUMERIC, true},
        {0x4E02, WK_UNICODE_NUMERIC, false},  {0xAA, WK_UNICODE_LOWER, true},
        {0x2170, WK_UNICODE_LOWER, true},     {0x1C5, WK_UNICODE_LOWER, false},
        {0x1C5, WK_UNICODE_UPPER, false},     {0x24B6, WK_UNICODE_UPPER, true},
        {0x1C5, WK_UNICODE_TITLE, true},      {0x1C4, WK_UNICODE_TITLE, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (wk_unicode_is(cases[i].code, cases[i].property) != cases[i].expected)
            fail_msg("U+%04X, property %d", (unsigned)cases[i].code, (int)cases[i].property);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_scalar_value_survives),
        cmocka_unit_test(only_scalar_values_decode),
        cmocka_unit_test(cut_and_bad_sequences_stand_alone),
        cmocka_unit_test(classes),
        cmocka_unit_test(folding),
        cmocka_unit_test(properties),
        cmocka_unit_test(exceptions),
    };
    return cmocka_run_group_tests_name("unicode", tests, NULL, NULL);
}
