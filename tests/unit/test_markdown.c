/* Answers on a terminal: words wrapped at its edge, Markdown and code in colour, in pieces of any
 * size. */
#define _XOPEN_SOURCE 700
#include "../../cli/highlight.c"
#include "../../cli/markdown.c"
#include "../../cli/table.c"
#include "../../cli/text_out.c"
#include "../../cli/wrap.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* What a text looks like that comes in pieces of n bytes. Freed by the caller. */
static char *shown(const char *text, size_t n, cli_markdown m) {
    char *out = NULL;
    size_t size = 0;
    m.wrap.out = open_memstream(&out, &size);
    assert_non_null(m.wrap.out);
    for (size_t at = 0, length = strlen(text); at < length; at += n)
        cli_markdown_put(&m, text + at, length - at < n ? length - at : n);
    cli_markdown_end(&m);
    fclose(m.wrap.out);
    return out;
}

static void looks(const char *text, cli_markdown m, const char *expected) {
    for (size_t n = 1; n < 40; n += 3) {
        char *const out = shown(text, n, m);
        if (strcmp(out, expected) != 0)
            fail_msg("in pieces of %zu:\n%s\nnot\n%s", n, out, expected);
        free(out);
    }
}

static cli_markdown plain(size_t columns) {
    return (cli_markdown){.is_plain = true, .wrap.columns = columns};
}

static cli_markdown colored(size_t columns) {
    return (cli_markdown){.wrap = {.has_styles = true, .columns = columns}};
}

/* ---- Wrapping ---- */

static void test_words(void **state) {
    (void)state;
    looks("one two three", plain(7), "one two\nthree");
    looks("one two three", plain(8), "one two\nthree");
    looks("one two three", plain(6), "one\ntwo\nthree");
    looks("one two three", plain(0), "one two three");
    looks("one two  \n  three ", plain(7), "one two\n  three ");
    looks("a\n\n\nb", plain(7), "a\n\n\nb");
    looks("1234567 1234567", plain(7), "1234567\n1234567");
    looks("ab 123456789012 cd", plain(7), "ab\n123456789012\ncd"); /* the terminal breaks it */
    looks("ab\tcd", plain(80), "ab\tcd");
    looks("", plain(7), "");
}

static void test_wide_characters(void **state) {
    (void)state;
    assert_int_equal(cli_char_columns(0x4E00, 0), 2);
    assert_int_equal(cli_char_columns(0x1F600, 0), 2);
    assert_int_equal(cli_char_columns('e', 0), 1);
    assert_int_equal(cli_char_columns(0x301, 'e'), 0);     /* an accent */
    assert_int_equal(cli_char_columns(0xFE0F, 0x2764), 1); /* a heart as emoji: two in all */
    assert_int_equal(cli_char_columns(0xFE0F, 0x1F600), 0);
    assert_int_equal(cli_char_columns(0xFE0F, '1'), 1); /* of a keycap, two in all with U+20E3 */
    assert_int_equal(cli_char_columns(0x20E3, 0xFE0F), 0);
    assert_int_equal(cli_char_columns(0xFE0F, 'a'), 0);
    assert_int_equal(cli_char_columns(0x1F3FD, 0x1F44D), 0); /* the colour of a thumb */
    assert_int_equal(cli_char_columns(0x200D, 0x1F468), 0);
    looks("\u4f60\u597d\u4f60\u597d", plain(5), "\u4f60\u597d\n\u4f60\u597d");
    looks("\u4f60\u597d\u4f60\u597d", plain(4), "\u4f60\u597d\n\u4f60\u597d");
    looks("\u4f60\u597d\u3002\u4f60", plain(4),
          "\u4f60\n\u597d\u3002\n\u4f60"); /* no line begins with it */
    looks("ab \U0001F600 cd", plain(5), "ab \U0001F600\ncd");
    looks("ab \U0001F600 cd", plain(4), "ab\n\U0001F600\ncd");
    looks("e\u0301e\u0301e\u0301 e\u0301", plain(5), "e\u0301e\u0301e\u0301 e\u0301");
    looks("e\u0301e\u0301e\u0301 e\u0301", plain(4), "e\u0301e\u0301e\u0301\ne\u0301");
}

/* What a model writes must not steer the terminal. */
static void test_control_characters(void **state) {
    (void)state;
    looks("a\033[31mb\a\r\x7F", plain(80), "a\\x1B[31mb\\x07\\x0D\\x7F");
    looks("\xC2\x9B"
          "31m",
          plain(80),
          "\\xC2\\x9B"
          "31m");
    looks("\xFF \xC3 \xE4\xBD", plain(80), "\\xFF \\xC3 \\xE4\\xBD");
    looks("\xED\xA0\x80", plain(80), "\\xED\\xA0\\x80"); /* a surrogate */
}

static void test_new_width(void **state) {
    (void)state;
    char *out = NULL;
    size_t size = 0;
    cli_markdown m = plain(20);
    m.wrap.out = open_memstream(&out, &size);
    cli_markdown_put(&m, "one two three ", 14);
    m.wrap.columns = 8; /* of which 5 are taken: the terminal has broken the line */
    cli_markdown_put(&m, "four five", 9);
    cli_markdown_end(&m);
    fclose(m.wrap.out);
    assert_string_equal(out, "one two three\nfour\nfive");
    free(out);
}

/* ---- Markdown ---- */

#define BOLD "\033[1m"
#define ITALIC "\033[3m"
#define DIM "\033[2m"
#define CYAN "\033[36m"
#define GREEN "\033[32m"
#define MAGENTA "\033[35m"
#define OFF "\033[0m"

static void test_spans(void **state) {
    (void)state;
    looks("a **b c** d", colored(0), "a " BOLD "b c" OFF " d");
    looks("*a* and _b_.", colored(0), ITALIC "a" OFF " and " ITALIC "b" OFF ".");
    looks("***a***", colored(0), "\033[1;3ma" OFF);
    looks("**a *b* c**", colored(0), BOLD "a \033[0;1;3mb\033[0;1m c" OFF);
    looks("`a*b*` c", colored(0), CYAN "a*b*" OFF " c");
    looks("``a`b``", colored(0), CYAN "a`b" OFF);
    looks("~~a~~ ~b~", colored(0), DIM "a" OFF " ~b~");
    looks("\u8fd9\u662f**\u91cd**\u7684", colored(0), "\u8fd9\u662f" BOLD "\u91cd" OFF "\u7684");
    looks("\\*a\\* \\( x \\)", colored(0), "*a* \\( x \\)");
}

/* What is not closed in its line, or stands within words, is shown as it is. */
static void test_no_spans(void **state) {
    (void)state;
    static const char *const texts[] = {"2 * 3 * 4",
                                        "2*3*4",
                                        "snake_case_name",
                                        "a ** b ** c",
                                        "f(**kwargs)",
                                        "*args\nb*",
                                        "**open\nline",
                                        "`open",
                                        "**",
                                        "a*",
                                        "x_1 + y_1",
                                        "~~",
                                        "#hash",
                                        "1.5 or 2)",
                                        "-5",
                                        "+1 -",
                                        "a > b # c - d",
                                        "\\",
                                        "````",
                                        "--"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(texts[i], "````") != 0) looks(texts[i], colored(0), texts[i]);
    char *const text = calloc(1, 2000); /* longer than what is held back */
    assert_non_null(text);
    memset(text, 'x', 1500);
    memcpy(text, "**", 2);
    looks(text, colored(0), text);
    memcpy(text + 1498, "**", 2);
    looks(text, colored(0), text);
    free(text);
}

static void test_blocks(void **state) {
    (void)state;
    looks("# Title\ntext", colored(0), "\033[1;4mTitle" OFF "\ntext");
    looks("## A `b`\n", colored(0), BOLD "A \033[0;1;36mb" OFF "\n");
    looks("- one\n* two\n  - three", colored(0),
          CYAN "- " OFF "one\n" CYAN "* " OFF "two\n" CYAN "  - " OFF "three");
    looks("12. one two\n", colored(9), CYAN "12. " OFF "one\n    two\n");
    looks("- one two three", colored(9), CYAN "- " OFF "one two\n  three");
    looks("> one two", colored(6), DIM "\u2502 one\n\u2502 two" OFF);
    looks("a\n---\nb", colored(4), "a\n" DIM "\u2500\u2500\u2500\u2500" OFF "\nb");
    looks("**bold** line", colored(0), BOLD "bold" OFF " line");
}

static void test_code(void **state) {
    (void)state;
    looks("```\na **b** c d\n```\nx", colored(5),
          DIM "```" OFF "\na **b** c d\n" DIM "```" OFF "\nx");
    looks("```python\ndef f(): # x\n  return \"a\\\"\" + 'b' # 1\n```", colored(0),
          DIM "```python" OFF "\n" MAGENTA "def" OFF " f(): " DIM "# x" OFF "\n  " MAGENTA
              "return" OFF " " GREEN "\"a\\\"\"" OFF " + " GREEN "'b'" OFF " " DIM "# 1" OFF
              "\n" DIM "```" OFF);
    looks("```py\n\"\"\"a\nb\"\"\" + \"\" + 12.5\n", colored(0),
          DIM "```py" OFF "\n" GREEN "\"\"\"a\nb\"\"\"" OFF " + " GREEN "\"\"" OFF " + " CYAN
              "12.5" OFF "\n");
    looks("```c\n#if 1 /* a\n* b */\na / b; // c\nx", colored(0),
          DIM "```c" OFF "\n" MAGENTA "#if" OFF " " CYAN "1" OFF " " DIM "/* a\n* b */" OFF
              "\na / b; " DIM "// c" OFF "\nx");
    looks("~~~~\n~~~\n```\n~~~~", colored(0), DIM "~~~~" OFF "\n~~~\n```\n" DIM "~~~~" OFF);
    looks("```sh\necho $#\n``` x\n```", colored(0),
          DIM "```sh" OFF "\necho $#\n``` x\n" DIM "```" OFF);
    looks("```none\nif 1\n", colored(0), DIM "```none" OFF "\nif 1\n");
}

/* Nothing is lost of a line after ``` that is longer than what is held back. */
static void test_long_fence_line(void **state) {
    (void)state;
    char text[CLI_SPAN_BYTES + 120] = "```", expected[sizeof text + 1];
    memset(text + 3, 'x', CLI_SPAN_BYTES + 100);
    strcat(text, "\ny\n```");
    snprintf(expected, sizeof expected, "%.*s\n%s", CLI_SPAN_BYTES, text, text + CLI_SPAN_BYTES);
    looks(text, (cli_markdown){.wrap.columns = 0}, expected);
}

/* Tables without their styles. */
static void looks_bare(const char *text, size_t columns, const char *expected) {
    for (size_t n = 1; n < 40; n += 3) {
        char *const out = shown(text, n, colored(columns));
        char *to = out;
        for (const char *from = out; *from != '\0'; from++) {
            if (*from != '\033')
                *to++ = *from;
            else
                from += strcspn(from, "m");
        }
        *to = '\0';
        if (strcmp(out, expected) != 0)
            fail_msg("in pieces of %zu:\n%s\nnot\n%s", n, out, expected);
        free(out);
    }
}

static void test_tables(void **state) {
    (void)state;
    static const char text[] = "a\n|name|size|\n|:--|--:|\n| a | **12** |\n| `b\\|` | 3 | c |\n\nx";
    static const char lines[] = "a\nname \u2502 size \u2502\n"
                                "\u2500\u2500\u2500\u2500\u2500\u253C\u2500\u2500\u2500\u2500"
                                "\u2500\u2500\u253C\u2500\u2500\n"
                                "a    \u2502   12 \u2502\nb|   \u2502    3 \u2502 c\n\nx";
    looks_bare(text, 0, lines);
    looks_bare(text, 15, lines); /* 4 + 3 + 4 + 3 + 1 columns */
    looks_bare(text, 14, "a\n|name|size|\n|:--|--:|\n| a | 12 |\n| b\\| | 3 | c\n|\n\nx");
    /* Columns, not bytes; the end of the answer is the end of the last row. */
    looks_bare("| \u4f60 | b |\n|:-:|---|\n| wxyz | \u00e9", 0,
               " \u4f60  \u2502 b\n\u2500\u2500\u2500\u2500\u2500\u253C\u2500\u2500\nwxyz "
               "\u2502 \u00e9");
    looks("|a|\n|-|\n|*b*|\n", colored(0),
          BOLD "a" OFF "\n" DIM "\u2500" OFF "\n" ITALIC "b" OFF "\n");
}

/* What does not become a table stays as it is, and nothing is lost. */
static void test_no_tables(void **state) {
    (void)state;
    static const char *const texts[] = {
        "| a | b |\n| c | d |\n", "|", "| a", "| a |\n", "|\n\n| b |\n", "| a | b |\ntext\n",
        "a | b\n--|--\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) looks(texts[i], colored(0), texts[i]);
    looks("| one two | three |\n|---|---|\n", colored(14), "| one two |\nthree |\n|---|---|\n");
    char *const rows = calloc(1, 100000); /* longer than what is held back */
    assert_non_null(rows);
    strcpy(rows, "| a |\n|---|\n");
    for (size_t i = 0; i < 9000; i++) strcat(rows + 10 * i, "| 234567 |\n");
    char *const out = shown(rows, 7, colored(0));
    size_t n = 0;
    for (const char *at = out; (at = strstr(at, "234567")) != NULL; at++) n++;
    assert_int_equal(n, 9000);
    free(out);
    free(rows);
}

/* A zero byte is not a mark of anything, and none is lost. */
static void test_zero_byte(void **state) {
    (void)state;
#define TEXT(text) text, sizeof text - 1
    static const struct {
        const char *text;
        size_t size;
        const char *expected;
    } cases[] = {
        {TEXT("\0 x\n\\\0"), "\\x00 x\n\\\\x00"},
        {TEXT("```c\n\0 if\n```"), DIM "```c" OFF "\n\\x00 " MAGENTA "if" OFF "\n" DIM "```" OFF},
        {TEXT("|a\0|\n|-|\n"),
         BOLD "a\\x00" OFF "\n" DIM "\u2500\u2500\u2500\u2500\u2500" OFF "\n"},
    };
#undef TEXT
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *out = NULL;
        size_t size = 0;
        cli_markdown m = colored(0);
        m.wrap.out = open_memstream(&out, &size);
        cli_markdown_put(&m, cases[i].text, cases[i].size);
        cli_markdown_end(&m);
        fclose(m.wrap.out);
        assert_string_equal(out, cases[i].expected);
        free(out);
    }
}

static void test_sizes(void **state) {
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {{1023, "1023 bytes"}, {1024, "1.0 KiB"},    {1048524, "1023.9 KiB"}, /* 1023.949 */
                 {1048525, "1.0 MiB"},                                                /* 1023.950 */
                 {1048575, "1.0 MiB"}, {1048576, "1.0 MiB"}, {UINT64_MAX, "16.0 EiB"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(cli_bytes_text(cases[i].bytes).text, cases[i].text);
}

static void test_without_styles(void **state) {
    (void)state;
    looks("# a **b**\n```c\nif\n```\n", plain(0), "# a **b**\n```c\nif\n```\n");
    cli_markdown thinking = {.is_plain = true, .base = CLI_STYLE_DIM, .wrap.has_styles = true};
    looks("a **b**", thinking, DIM "a **b**" OFF);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_wide_characters),
        cmocka_unit_test(test_control_characters),
        cmocka_unit_test(test_new_width),
        cmocka_unit_test(test_spans),
        cmocka_unit_test(test_no_spans),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_code),
        cmocka_unit_test(test_long_fence_line),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_no_tables),
        cmocka_unit_test(test_zero_byte),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_without_styles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
