/* How answers are shown: thinking, tool calls, tags that arrive in pieces. */
#define _XOPEN_SOURCE 700
#include "../../cli/answer.c"
#include "../../cli/highlight.c"
#include "../../cli/markdown.c"
#include "../../cli/table.c"
#include "../../cli/text_out.c"
#include "../../cli/wrap.c"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <unistd.h>

bool cli_is_terminal(int fd) { return fd == STDOUT_FILENO; }
bool cli_has_colors(int fd) { return fd < 0; }
size_t cli_columns(int fd) { return fd == STDOUT_FILENO ? 9 : 0; }

/* What an answer looks like that comes in pieces of this many bytes. Freed by the caller. */
static char *shown(const char *text, size_t piece, cli_answer answer, bool begins_thinking) {
    FILE *const file = tmpfile();
    assert_non_null(file);
    fflush(stdout);
    const int before = dup(STDOUT_FILENO);
    dup2(fileno(file), STDOUT_FILENO);
    cli_answer_begin(&answer, begins_thinking ? "<think>\n" : NULL, begins_thinking ? 8 : 0);
    for (size_t at = 0, size = strlen(text); at < size; at += piece)
        assert_true(cli_answer_add(&answer, text + at, size - at < piece ? size - at : piece));
    cli_answer_end(&answer);
    fflush(stdout);
    dup2(before, STDOUT_FILENO);
    close(before);
    char *const out = calloc(1, 1024);
    assert_non_null(out);
    rewind(file);
    assert_true(fread(out, 1, 1023, file) < 1023);
    fclose(file);
    return out;
}

static void looks(const char *text, cli_answer answer, bool begins_thinking, const char *expected) {
    for (size_t piece = 1; piece < 40; piece += 3) {
        char *const out = shown(text, piece, answer, begins_thinking);
        assert_string_equal(out, expected);
        free(out);
    }
}

static const cli_answer plain = {.has_colors = false}, colored = {.has_colors = true};

static void test_text(void **state) {
    (void)state;
    looks("a < b, <thin>, [TOOL", plain, false, "a < b, <thin>, [TOOL");
    looks("", plain, false, "");
}

static void test_thinking(void **state) {
    (void)state;
    looks("<think>\nhm\n</think>\nYes", colored, false, "\033[2m\nhm\n\033[0m\nYes");
    looks("hm</think>Yes", colored, true, "\033[2mhm\033[0mYes");
    looks("[THINK]a[/THINK]b", plain, false, "[THINK]a[/THINK]b");
    looks("hm</think>Yes", plain, true, "<think>hm</think>Yes");
    looks("<think>hm", plain, false, "<think>hm");
    looks("<think>never ends </thi", colored, false, "\033[2mnever ends </thi\033[0m");
}

/* Words are wrapped at the edge of a terminal; without colours Markdown stays as it is. */
static void test_terminal(void **state) {
    (void)state;
    const cli_answer terminal = {.is_terminal = true, .has_colors = true};
    const cli_answer no_color = {.is_terminal = true, .has_tools = true};
    looks("<think>a *b*</think>\n**one** two\nthree four", terminal, false,
          "\033[2ma *b*\033[0m\n\033[1mone\033[0m two\nthree\nfour");
    looks("<think>a</think> **one** two", no_color, false, "<think>a</think>\n**one**\ntwo");
    looks("**a** <tool_call>{\"name\": \"f\"}</tool_call>*b*", colored, false,
          "\033[1ma\033[0m\n\033[36m[tool call f]\033[0m {\"name\": \"f\"}\n\033[3mb\033[0m");
}

/* The terminal breaks a word that is wider than a line; the words after it are wrapped again. */
static void test_long_words(void **state) {
    (void)state;
    const cli_answer terminal = {.is_terminal = true};
    looks("ab cdefghijklmnopqrstuvw", terminal, false, "ab\ncdefghijklmnopqrstuvw");
    looks("ab cdefghijklmnop qrst", terminal, false, "ab\ncdefghijklmnop\nqrst");
    looks("abcdefghijkl\n日本語日本語", terminal, false, "abcdefghijkl\n日本語日\n本語");
}

/* gpt-oss says in which channel it speaks. */
static void test_channels(void **state) {
    (void)state;
    looks("<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Yes",
          colored, false, "\033[2mhm\033[0mYes");
    looks("<|channel|>commentary<|message|>I look.<|start|>assistant<|channel|>commentary "
          "to=functions.f <|message|>{}<|call|>",
          plain, false, "I look.\n[tool call] functions.f <|message|>{}\n");
    looks("<|channel|>fin", plain, false, "<|channel|>fin");
}

/* What a model writes steers no terminal, and comes as it is anywhere else. */
static void test_control_characters(void **state) {
    (void)state;
    looks("a\033[31m\n\tb\a", colored, false, "a\\x1B[31m\n\tb\\x07");
    looks("a\033[31m\n\tb\a", plain, false, "a\033[31m\n\tb\a");
}

static void test_calls(void **state) {
    (void)state;
    looks("I look.<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>", plain, false,
          "I look.\n[tool call f] {\"name\": \"f\", \"arguments\": {}}\n");
    looks("[TOOL_CALLS][{\"name\": \"g\"}]", plain, false, "[tool call g] [{\"name\": \"g\"}]\n");
    looks("<function=h>{}</function>.", plain, false, "[tool call] h>{}\n.");
    looks("<tool_call>cut off", plain, false, "[tool call] cut off\n");
    looks("{\"name\": \"f\"}", (cli_answer){.has_tools = true}, false,
          "[tool call f] {\"name\": \"f\"}\n");
    looks("{\"name\": \"f\"}", plain, false, "{\"name\": \"f\"}");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),     cmocka_unit_test(test_thinking),
        cmocka_unit_test(test_terminal), cmocka_unit_test(test_long_words),
        cmocka_unit_test(test_channels), cmocka_unit_test(test_control_characters),
        cmocka_unit_test(test_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
