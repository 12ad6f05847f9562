/* Tests of text/unicode. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "text/unicode.h"

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
        {'a', WK_CHAR_LETTER},     {'Z', WK_CHAR_LETTER},     {0xE9, WK_CHAR_LETTER},
        {0x43D, WK_CHAR_LETTER},   {0x6211, WK_CHAR_LETTER},  {0x1780, WK_CHAR_LETTER},
        {0x2FA1D, WK_CHAR_LETTER}, {0x3134A, WK_CHAR_LETTER}, {'0', WK_CHAR_NUMBER},
        {0xBD, WK_CHAR_NUMBER},    {0x2163, WK_CHAR_NUMBER},  {0x663, WK_CHAR_NUMBER},
        {' ', WK_CHAR_SPACE},      {'\n', WK_CHAR_SPACE},     {0x0B, WK_CHAR_SPACE},
        {0x85, WK_CHAR_SPACE},     {0xA0, WK_CHAR_SPACE},     {0x3000, WK_CHAR_SPACE},
        {0x2028, WK_CHAR_SPACE},   {0x1C, WK_CHAR_OTHER},     {0x200B, WK_CHAR_OTHER},
        {'!', WK_CHAR_OTHER},      {0x301, WK_CHAR_OTHER},    {0x1F999, WK_CHAR_OTHER},
        {0xE000, WK_CHAR_OTHER},   {0x10FFFF, WK_CHAR_OTHER}, {0x180E, WK_CHAR_OTHER},
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_scalar_value_survives),
        cmocka_unit_test(only_scalar_values_decode),
        cmocka_unit_test(cut_and_bad_sequences_stand_alone),
        cmocka_unit_test(classes),
    };
    return cmocka_run_group_tests_name("unicode", tests, NULL, NULL);
}
