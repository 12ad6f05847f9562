/* Tests of text/pretokenize. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/rng.h"
#include "text/pretokenize.h"

#include <string.h>

/* Pieces of text with '|' between them. */
static void split(wk_pretokenizer kind, const char *text, char *out) {
    size_t left = strlen(text);
    while (left > 0) {
        const size_t size = wk_pretokenize(kind, text, left);
        assert_in_range(size, 1, left);
        memcpy(out, text, size);
        out += size;
        text += size;
        left -= size;
        if (left > 0) *out++ = '|';
    }
    *out = '\0';
}

typedef struct split_case {
    const char *text, *pieces;
} split_case;

static void check(wk_pretokenizer kind, const split_case *cases, size_t n) {
    for (size_t i = 0; i < n; i++) {
        char pieces[256];
        split(kind, cases[i].text, pieces);
        assert_string_equal(pieces, cases[i].pieces);
    }
}

/* Expected pieces: the patterns in pretokenize.h, run by the Python module `regex`. */
static void gpt2(void **state) {
    (void)state;
    static const split_case cases[] = {
        {"Hello world", "Hello| world"},
        {"  two", " | two"},
        {"two  ", "two|  "},
        {"a \n b", "a| \n| b"},
        {"a\tb", "a|\t|b"},
        {"a\n\nb", "a|\n|\n|b"},
        {"I've 'told 'S", "I|'ve| '|told| '|S"},
        {"it's'll'l", "it|'s|'ll|'|l"},
        {"x12345 678", "x|12345| 678"},
        {"a, b!! c", "a|,| b|!!| c"},
        {"\xC3\xA9t\xC3\xA9 \xC2\xBD", "\xC3\xA9t\xC3\xA9| \xC2\xBD"},
        {"a\xE3\x80\x80"
         "b",
         "a|\xE3\x80\x80|b"},
        {"a\x80\xFF"
         "b",
         "a|\x80\xFF|b"},
        {"'", "'"},
    };
    check(WK_PRETOKENIZER_GPT2, cases, WK_COUNT(cases));
}

static void llama3(void **state) {
    (void)state;
    static const split_case cases[] = {
        {"Hello world", "Hello| world"},
        {"I'VE 'told 'S", "I|'VE| '|told| '|S"},
        {"1234567 89", "123|456|7| |89"},
        {"a\tb", "a|\tb"},
        {"a\nb", "a|\n|b"},
        {"a \n \n  b", "a| \n \n| | b"},
        {"a  \n", "a|  \n"},
        {"!!\n\n\nx", "!!\n\n\n|x"},
        {" (x)", " (|x|)"},
        {"#x ##x", "#x| ##|x"},
        {"a\xE3\x80\x80"
         "b",
         "a|\xE3\x80\x80"
         "b"},
        {"a   1", "a|  | |1"},
        {"\r\n x", "\r\n| x"},
        {"a  ", "a|  "},
    };
    check(WK_PRETOKENIZER_LLAMA3, cases, WK_COUNT(cases));
}

static void qwen2(void **state) {
    (void)state;
    static const split_case cases[] = {
        {"I'VE x12 345", "I|'VE| x|1|2| |3|4|5"},
        {"a   1", "a|  | |1"},
        {"3.3\n", "3|.|3|\n"},
        {"!!\n\n\nx", "!!\n\n\n|x"},
    };
    check(WK_PRETOKENIZER_QWEN2, cases, WK_COUNT(cases));
}

static void smollm(void **state) {
    (void)state;
    static const split_case cases[] = {
        {"x 12", "x| |1|2"},         {"x   12", "x|   |1|2"}, {"x   y", "x|  | y"},
        {"\xC2\xBDx", "\xC2\xBD|x"}, {"'s1's", "'s|1|'s"},    {"3.3 3..3", "3|.|3| |3|..|3"},
        {" \n1", " \n|1"},
    };
    check(WK_PRETOKENIZER_SMOLLM, cases, WK_COUNT(cases));
}

static void names(void **state) {
    (void)state;
    wk_pretokenizer kind = WK_PRETOKENIZER_GPT2;
    assert_true(wk_pretokenizer_find(wk_str_of("llama-bpe"), &kind));
    assert_int_equal(kind, WK_PRETOKENIZER_LLAMA3);
    assert_true(wk_pretokenizer_find(wk_str_of("smollm"), &kind));
    assert_int_equal(kind, WK_PRETOKENIZER_SMOLLM);
    assert_true(wk_pretokenizer_find(wk_str_of("gpt-2"), &kind));
    assert_int_equal(kind, WK_PRETOKENIZER_GPT2);
    assert_true(wk_pretokenizer_find(wk_str_of("qwen2"), &kind));
    assert_int_equal(kind, WK_PRETOKENIZER_QWEN2);
    assert_false(wk_pretokenizer_find(wk_str_of("deepseek-coder"), &kind));
    assert_false(wk_pretokenizer_find(wk_str_of(""), &kind));
}

/* Any bytes are covered by pieces that are not empty. */
static void random_bytes_are_covered(void **state) {
    (void)state;
    static const char likely[] = " '\n\r1aS\xC3\xA9\xE2\x80\xA8";
    wk_rng rng = {.seed = 7};
    for (int round = 0; round < 20000; round++) {
        char text[24];
        const size_t size = 1 + wk_rng_u32(&rng) % sizeof text;
        for (size_t i = 0; i < size; i++) {
            const uint32_t r = wk_rng_u32(&rng);
            text[i] = r & 1 ? likely[(r >> 1) % (sizeof likely - 1)] : (char)(r >> 8 & 255);
        }
        for (int kind = WK_PRETOKENIZER_GPT2; kind <= WK_PRETOKENIZER_SMOLLM; kind++) {
            size_t at = 0;
            while (at < size) {
                const size_t n = wk_pretokenize((wk_pretokenizer)kind, text + at, size - at);
                assert_in_range(n, 1, size - at);
                at += n;
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpt2),  cmocka_unit_test(llama3),
        cmocka_unit_test(qwen2), cmocka_unit_test(smollm),
        cmocka_unit_test(names), cmocka_unit_test(random_bytes_are_covered),
    };
    return cmocka_run_group_tests_name("pretokenize", tests, NULL, NULL);
}
