/* Tests of text/tokenize/pretokenize. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/rng.h"
#include "text/tokenize/pretokenize.h"

#include <string.h>

/* Pieces of text with '|' between them. */
static void split(const wk_pretokenizer *kind, const char *text, char *out) {
    wk_pieces pieces;
    wk_str piece;
    size_t left = strlen(text);
    wk_pieces_begin(&pieces, kind, (wk_str){text, left});
    while (wk_pieces_next(&pieces, &piece)) {
        assert_ptr_equal(piece.text, text);
        assert_in_range(piece.size, 1, left);
        memcpy(out, text, piece.size);
        out += piece.size;
        text += piece.size;
        left -= piece.size;
        if (left > 0) *out++ = '|';
    }
    assert_int_equal(left, 0);
    *out = '\0';
}

typedef struct split_case {
    const char *text, *pieces;
} split_case;

static void check(const char *name, const split_case *cases, size_t n) {
    const wk_pretokenizer *const kind = wk_pretokenizer_find(wk_str_of(name));
    assert_non_null(kind);
    for (size_t i = 0; i < n; i++) {
        char pieces[256];
        split(kind, cases[i].text, pieces);
        assert_string_equal(pieces, cases[i].pieces);
    }
}

/* Expected pieces: the patterns in text/tokenize/cut.h, run by the Python module `regex`. */
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
    check("gpt-2", cases, WK_COUNT(cases));
}

static void llama3(void **state) {
    (void)state;
    static const split_case cases[] = {
        {"Hello world", "Hello| world"},
        {"I'VE 'told 'S", "I|'VE| '|told| '|S"},
        {"a'\xC5\xBF\xC5\xBF", "a|'\xC5\xBF|\xC5\xBF"}, /* the long s is one, too */
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
    check("llama-bpe", cases, WK_COUNT(cases));
}

static void qwen2(void **state) {
    (void)state;
    static const split_case cases[] = {
        {"I'VE x12 345", "I|'VE| x|1|2| |3|4|5"},
        {"a   1", "a|  | |1"},
        {"3.3\n", "3|.|3|\n"},
        {"!!\n\n\nx", "!!\n\n\n|x"},
    };
    check("qwen2", cases, WK_COUNT(cases));
}

static void smollm(void **state) {
    (void)state;
    static const split_case cases[] = {
        {"x 12", "x| |1|2"},         {"x   12", "x|   |1|2"}, {"x   y", "x|  | y"},
        {"\xC2\xBDx", "\xC2\xBD|x"}, {"'s1's", "'s|1|'s"},    {"3.3 3..3", "3|.|3| |3|..|3"},
        {" \n1", " \n|1"},
    };
    check("smollm", cases, WK_COUNT(cases));
}

static void qwen35(void **state) {
    (void)state;
    static const split_case cases[] = {
        {"e\xCC\x81"
         "a b",
         "e\xCC\x81"
         "a| b"},
        {"\xCC\x81x", "\xCC\x81x"},
        {"a\xCC\x81\xCC\x81 1", "a\xCC\x81\xCC\x81| |1"},
        {"!\xCC\x81!", "!\xCC\x81|!"},
    };
    check("qwen35", cases, WK_COUNT(cases));
}

static void seed_coder(void **state) {
    (void)state;
    static const split_case cases[] = {
        {"!!\n\nx", "!!|\n\n|x"},
        {"a  \n b", "a|  \n| b"},
        {"12", "1|2"},
    };
    check("seed-coder", cases, WK_COUNT(cases));
}

static void gpt_4o(void **state) {
    (void)state;
    static const split_case cases[] = {
        {"HelloWorld's XMLHttp", "Hello|World's| XMLHttp"},
        {"ABC DEf", "ABC| DEf"},
        {"\xE6\xBC\xA2"
         "A\xE6\xBC\xA2\xE5\xAD\x97"
         "b",
         "\xE6\xBC\xA2"
         "A\xE6\xBC\xA2\xE5\xAD\x97"
         "b"},
        {"it'LLx 'll", "it'LL|x| '|ll"},
        {"1234!/\n/a", "123|4|!/\n/|a"},
        {" \xCC\x81"
         "AB",
         " \xCC\x81|AB"},
        {"\xC7\x85"
         "a A\xCC\x81"
         "B",
         "\xC7\x85"
         "a| A\xCC\x81|B"},
    };
    check("gpt-4o", cases, WK_COUNT(cases));
}

static void tekken(void **state) {
    (void)state;
    static const split_case cases[] = {
        {"HelloWorld's", "Hello|World|'s"},
        {"12ab", "1|2|ab"},
        {"//\n/x", "//\n/|x"},
        {"\xE6\xBC\xA2"
         "AB",
         "\xE6\xBC\xA2|AB"},
    };
    check("tekken", cases, WK_COUNT(cases));
}

static void unnamed(void **state) {
    (void)state;
    static const split_case cases[] = {
        {"a12345 `x`<>=", "a|123|45| `|x|`|<>="},
        {"$5.00", "$|5|.|00"},
        {"I'm  1234", "I|'|m| | |123|4"},
    };
    check("default", cases, WK_COUNT(cases));
}

static void falcon(void **state) {
    (void)state;
    static const split_case cases[] = {
        {"a12345 `x`<>", "a|123|45| |`|x|`<>"},
        {"100000", "100|000"},
        {" 1234 ... x", " |123|4| |...| x"},
    };
    check("falcon", cases, WK_COUNT(cases));
}

static void deepseek_coder(void **state) {
    (void)state;
    static const split_case cases[] = {
        {"a1\n\n b!", "a|1|\n|\n| b|!"},
        {"x = \xE6\xBC\xA2\xE5\xAD\x97\xEA\xB0\x80"
         "a",
         "x| =| |\xE6\xBC\xA2\xE5\xAD\x97\xEA\xB0\x80|a"},
        {"\t\tfoo ()", "\t|\tfoo| ()"},
        {"\xE3\x80\x82\xE3\x80\x82 a", "\xE3\x80\x82\xE3\x80\x82| a"},
    };
    check("deepseek-coder", cases, WK_COUNT(cases));
}

static void deepseek_v3(void **state) {
    (void)state;
    static const split_case cases[] = {
        {"a1234567b", "a|123|456|7|b"},
        {"!important \?x", "!important| \?|x"},
        {"\xE6\xBC\xA2\xE5\xAD\x97\xE3\x81\xB2\xE3\x82\x89\xE3\x81\x8C\xE3\x81\xAA abc",
         "\xE6\xBC\xA2\xE5\xAD\x97\xE3\x81\xB2\xE3\x82\x89\xE3\x81\x8C\xE3\x81\xAA| abc"},
        {"\x01\x02"
         "a",
         "\x01|\x02"
         "a"},
        {"  !!\n\nb", " | !!\n\n|b"},
        {"\xC3\xA9\xCC\x81x", "\xC3\xA9\xCC\x81x"},
    };
    check("deepseek-v3", cases, WK_COUNT(cases));
}

static void bloom(void **state) {
    (void)state;
    static const split_case cases[] = {
        {"Hello, world  (x)", "Hello|,| world|  (|x|)"},
        {"a|b \xE3\x80\x82"
         "c",
         "a|||b| \xE3\x80\x82|c"},
    };
    check("bloom", cases, WK_COUNT(cases));
}

static void deepseek_llm(void **state) {
    (void)state;
    static const split_case cases[] = {
        {"Hello world!! 12", "Hello| world|!!| |1|2"},
        {"a  \n b  ", "a|  |\n| b|  "},
        {"\xE5\xAD\x97x\xE3\x80\x82 \xE3\x80\x82y", "\xE5\xAD\x97|x|\xE3\x80\x82| |\xE3\x80\x82|y"},
    };
    check("deepseek-llm", cases, WK_COUNT(cases));
}

static void viking(void **state) {
    (void)state;
    static const split_case cases[] = {
        {"a12 3,4", "a|1|2| |3|,|4"},
    };
    check("viking", cases, WK_COUNT(cases));
}

/* Expected pieces: the patterns in text/tokenize/cut.h, run by Hugging Face's tokenizers 0.23. */
static void later_names(void **state) {
    (void)state;
    static const struct {
        const char *name;
        split_case c;
    } cases[] = {
        {"kimi-k2", {"Hello world", "Hello| world"}},
        {"kimi-k2", {"  \xE4\xB8\xAD\xE6\x96\x87 a", " | |\xE4\xB8\xAD\xE6\x96\x87| a"}},
        {"kimi-k2",
         {"\xE4\xB8\xAD\xE6\x96\x87"
          "abc\xE4\xB8\xAD",
          "\xE4\xB8\xAD\xE6\x96\x87|abc|\xE4\xB8\xAD"}},
        {"kimi-k2", {"AbC'S d", "Ab|C'S| d"}},
        {"kimi-k2", {"a\xE4\xB8\xAD's", "a|\xE4\xB8\xAD|'s"}},
        {"kimi-k2",
         {"1234\xE3\x80\x87"
          "5",
          "123|4\xE3\x80\x87"
          "5"}},
        {"kimi-k2", {"!\xE2\xBA\x80\xE4\xB8\xAD\n/", "!\xE2\xBA\x80|\xE4\xB8\xAD|\n|/"}},
        {"kimi-k2", {"\xCC\x81\xE3\x80\x85x \n b", "\xCC\x81|\xE3\x80\x85|x| \n| b"}},
        {"laguna", {"a\n\nb c", "a|\n\n|b| c"}},
        {"laguna", {"I'm \n x", "I|'m| |\n| x"}},
        {"laguna", {"\r\n1 2", "\r|\n|1| |2"}},
        {"minicpm5", {"a12345 6", "a|123|45| |6"}},
        {"minicpm5", {"it's 1234", "it|'s| |123|4"}},
        {"ufakzeka", {"Ali'ye it's 12", "Ali|'ye| it|'s| |1|2"}},
        {"ufakzeka", {"a\n b", "a|\n| b"}},
        {"exaone-moe", {"Hello big world", "Hello big world"}},
        {"exaone-moe", {"a  b c", "a| | b c"}},
        {"exaone-moe", {"it's fine!\n\n", "it|'s| fine|!\n|\n"}},
        {"exaone-moe",
         {"\xED\x95\x9C\xEA\xB5\xAD \xEB\xA7\x90 12 x",
          "\xED\x95\x9C\xEA\xB5\xAD \xEB\xA7\x90| |1|2| x"}},
        {"exaone-moe", {"/\n/\n", "/\n|/\n"}},
        {"tiny_aya", {"1234567", "1|234|567"}},
        {"tiny_aya", {"x12345 6", "x|12|345| |6"}},
        {"tiny_aya", {"12345a", "123|45|a"}},
        {"tiny_aya", {"\xD9\xA3\xD9\xA3\xD9\xA3\xD9\xA3", "\xD9\xA3|\xD9\xA3\xD9\xA3\xD9\xA3"}},
        {"tiny_aya", {"AbC 1000.", "Ab|C| |1|000|."}},
        {"cohere2moe", {"1234567", "1|234|567"}},
        {"superbpe", {"by the way 12345 x", "by the way |12|345| x"}},
        {"superbpe", {"1234567", "1|234|567"}},
        {"superbpe", {"a b", "a b"}},
        {"granite-embed-multi-97m", {"Ab's 1234/\n", "Ab's| |123|4|/\n"}},
        {"mellum2", {"x123", "x|1|2|3"}},
        {"talkie", {"Ab's 1234", "Ab's| |123|4"}},
    };
    for (size_t i = 0; i < WK_COUNT(cases); i++) check(cases[i].name, &cases[i].c, 1);
}

static void rare_names(void **state) {
    (void)state;
    static const struct {
        const char *name;
        split_case c;
    } cases[] = {
        {"jais-2", {"a  b", "a| | b"}},
        {"jais-2", {"a       b", "a|    |  | b"}},
        {"jais-2", {"x         ", "x|        | "}},
        {"jais-2", {"a \n  b", "a| \n| | b"}},
        {"jais-2", {"don't 1234", "don|'t| |123|4"}},
        {"jais-2", {"  ", "  "}},
        {"jais-2", {" hello  ", " hello|  "}},
        {"chameleon", {"\tab     c", "\t|ab|    | c"}},
        {"chameleon", {"a   b\n12$x`!", "a|  | b|\n|1|2|$|x|`|!"}},
        {"chameleon", {"it's ~", "it|'|s| |~"}},
        {"youtu",
         {"\xED\x95\x9C\xEA\xB5\xAD\xE3\x84\xB1"
          "abc",
          "\xED\x95\x9C\xEA\xB5\xAD\xE3\x84\xB1|abc"}},
        {"youtu",
         {"a\xEF\xBC\x8C"
          "b\xE3\x80\x82"
          "c",
          "a|\xEF\xBC\x8C|b|\xE3\x80\x82|c"}},
        {"youtu",
         {"\xE4\xB8\xAD\xE6\x96\x87\xE3\x82\xAB"
          "1234",
          "\xE4\xB8\xAD\xE6\x96\x87\xE3\x82\xAB|1|2|3|4"}},
        {"youtu", {"Ab's \xE3\x84\x85\xE3\x84\x86", "Ab's| |\xE3\x84\x85\xE3\x84\x86"}},
        {"afmoe", {"12345 a", "12|345| a"}},
        {"afmoe",
         {"\xE4\xB8\xAD\xE6\x96\x87"
          "abc",
          "\xE4\xB8\xAD\xE6\x96\x87|abc"}},
        {"afmoe",
         {"\xE0\xB8\xA0\xE0\xB8\xB2\xE0\xB8\xA9\xE0\xB8\xB2 x",
          "\xE0\xB8\xA0\xE0\xB8\xB2\xE0\xB8\xA9\xE0\xB8\xB2| x"}},
        {"afmoe", {".abc 1234567\n", ".abc| |1|234|567|\n"}},
    };
    for (size_t i = 0; i < WK_COUNT(cases); i++) check(cases[i].name, &cases[i].c, 1);
}

static void names(void **state) {
    (void)state;
    const wk_pretokenizer *const llama3 = wk_pretokenizer_find(wk_str_of("llama-bpe"));
    assert_non_null(llama3);
    assert_true(llama3->takes_whole && llama3->adds_begin);
    assert_ptr_equal(wk_pretokenizer_find(wk_str_of("llama3")), llama3);
    const wk_pretokenizer *const smaug = wk_pretokenizer_find(wk_str_of("smaug-bpe"));
    assert_non_null(smaug);
    assert_false(smaug->takes_whole || smaug->adds_begin);
    assert_ptr_equal(smaug->cuts[0], llama3->cuts[0]);
    assert_null(wk_pretokenizer_find(wk_str_of("gpt-9")));
    assert_null(wk_pretokenizer_find(wk_str_of("")));
}

/* Any bytes are covered by pieces that are not empty. */
static void random_bytes_are_covered(void **state) {
    (void)state;
    static const char likely[] = " '\n\r1aS.$\xC3\xA9\xE2\x80\xA8\xE6\xBC\xA2";
    static const char *const kinds[] = {
        "default",    "gpt-2",  "smollm",   "falcon",       "llama-bpe",      "qwen2",
        "qwen35",     "gpt-4o", "tekken",   "deepseek-llm", "deepseek-coder", "deepseek-v3",
        "bloom",      "viking", "kimi-k2",  "laguna",       "minicpm5",       "jais-2",
        "exaone-moe", "youtu",  "tiny_aya", "superbpe",     "afmoe",          "chameleon",
    };
    wk_rng rng = {.seed = 7};
    for (int round = 0; round < 20000; round++) {
        char text[25] = {0}, pieces[64];
        const size_t size = 1 + wk_rng_u32(&rng) % (sizeof text - 1);
        for (size_t i = 0; i < size; i++) {
            const uint32_t r = wk_rng_u32(&rng);
            text[i] = r & 1 ? likely[(r >> 1) % (sizeof likely - 1)] : (char)((r >> 8 & 255) | 1);
        }
        for (size_t i = 0; i < WK_COUNT(kinds); i++) {
            split(wk_pretokenizer_find(wk_str_of(kinds[i])), text, pieces);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpt2),
        cmocka_unit_test(llama3),
        cmocka_unit_test(qwen2),
        cmocka_unit_test(smollm),
        cmocka_unit_test(qwen35),
        cmocka_unit_test(seed_coder),
        cmocka_unit_test(gpt_4o),
        cmocka_unit_test(tekken),
        cmocka_unit_test(unnamed),
        cmocka_unit_test(falcon),
        cmocka_unit_test(deepseek_coder),
        cmocka_unit_test(deepseek_v3),
        cmocka_unit_test(bloom),
        cmocka_unit_test(deepseek_llm),
        cmocka_unit_test(viking),
        cmocka_unit_test(later_names),
        cmocka_unit_test(rare_names),
        cmocka_unit_test(names),
        cmocka_unit_test(random_bytes_are_covered),
    };
    return cmocka_run_group_tests_name("pretokenize", tests, NULL, NULL);
}
