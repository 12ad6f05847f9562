/* wick_answer: content, reasoning and calls of every format, wherever the text is cut. */
#include "chat/answer.h"
#include "core/str.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char no_prompt[] = "<|im_start|>assistant\n";

typedef struct written {
    char text[1024];
    size_t size;
} written;

static void put(written *out, const char *text, size_t size) {
    assert_true(out->size + size < sizeof out->text);
    memcpy(out->text + out->size, text, size);
    out->size += size;
    out->text[out->size] = '\0';
}

static void put_text(written *out, const char *text) { put(out, text, strlen(text)); }

/* As |content|, {open:reasoning:close} and (format:call:close). */
static void put_spans(written *out, wick_answer *answer) {
    wick_answer_span span;
    while (wick_answer_next(answer, &span)) {
        const bool is_content = span.kind == WICK_ANSWER_CONTENT;
        char format[16];
        (void)snprintf(format, sizeof format, "(%d:", (int)span.format);
        assert_true(wk_str_is_utf8((wk_str){span.text, span.size}, &(size_t){0}));
        assert_true(span.size > 0 || span.open != NULL || span.close != NULL);
        assert_true(!is_content || (span.open == NULL && span.close == NULL));
        assert_int_equal(span.format != WICK_CALL_NONE, span.kind == WICK_ANSWER_CALL);
        if (span.kind == WICK_ANSWER_CALL) {
            assert_true(span.open != NULL && span.close != NULL);
            put_text(out, format);
        } else if (span.open != NULL) {
            put_text(out, "{");
            put_text(out, span.open);
            put_text(out, ":");
        }
        put(out, span.text, span.size);
        if (span.close == NULL) continue;
        put_text(out, ":");
        put_text(out, span.close);
        put_text(out, span.kind == WICK_ANSWER_CALL ? ")" : "}");
    }
}

static void feed(written *out, wick_answer *answer, const char *text, size_t size) {
    char *const copy = malloc(size + 1); /* what a span points into is not this */
    assert_non_null(copy);
    memcpy(copy, text, size);
    assert_int_equal(wick_answer_feed(answer, copy, size), WICK_OK);
    free(copy);
    put_spans(out, answer);
}

/* The first piece, and the rest in pieces of step bytes. */
static void check(const char *text, size_t first, size_t step, const wick_answer_desc *desc,
                  const char *expected) {
    written out = {.size = 0};
    wick_answer *answer = NULL;
    const size_t size = strlen(text);
    assert_int_equal(wick_answer_open(desc, &answer), WICK_OK);
    put_spans(&out, answer);
    feed(&out, answer, text, first);
    for (size_t at = first; at < size; at += step)
        feed(&out, answer, text + at, size - at < step ? size - at : step);
    wick_answer_finish(answer);
    put_spans(&out, answer);
    assert_string_equal(out.text, expected);
    assert_int_equal(wick_answer_feed(answer, "a", 1), WICK_ERR_STATE);
    wick_answer_close(answer);
}

static void splits_as(const char *text, const char *prompt, bool has_tools, const char *expected) {
    const wick_answer_desc desc = {.prompt = prompt,
                                   .prompt_size = prompt != NULL ? strlen(prompt) : 0,
                                   .has_tools = has_tools};
    const size_t size = strlen(text);
    for (size_t cut = 0; cut <= size; cut++) check(text, cut, SIZE_MAX / 2, &desc, expected);
    for (size_t step = 1; step < 4; step++) check(text, 0, step, &desc, expected);
}

static void splits(const char *text, const char *expected) {
    splits_as(text, NULL, false, expected);
    splits_as(text, no_prompt, true, expected);
}

/* Each row of the table, between content, and without its end; thinking begins after blanks. */
static void test_every_format(void **state) {
    (void)state;
    const char *const inside = "\xC3\xA4{\"a\": [1, \"<b>\"]}\xF0\x9F\x99\x82";
    for (size_t i = 0; i < WK_N_MARKS; i++) {
        const wk_mark *const mark = &wk_marks[i];
        if (mark->kind == WK_MARK_HEADER) continue;
        const char *const close = mark->close != NULL ? mark->close : "";
        const char *const after = mark->close != NULL ? "\xE2\x82\xAC z" : "";
        char text[256], expected[256], begin[64]; /* %.0d shows nothing of a zero */
        (void)snprintf(begin, sizeof begin,
                       mark->kind == WK_MARK_CALL ? "(%d:" : "{%.0d%s:", (int)mark->format,
                       mark->open);
        if (mark->kind == WK_MARK_FRAME) begin[0] = '\0';
        const char *const end = mark->kind == WK_MARK_FRAME  ? ""
                                : mark->kind == WK_MARK_CALL ? ")"
                                                             : "}";
        const char *const colon = *end != '\0' ? ":" : "";
        const char *const before = mark->kind == WK_MARK_REASONING ? " \r\n" : "a\xC3\xA4 ";
        (void)snprintf(text, sizeof text, "%s%s%s%s%s", before, mark->open, inside, close, after);
        (void)snprintf(expected, sizeof expected, "%s%s%s%s%s%s%s", before, begin, inside, colon,
                       close, end, after);
        splits(text, expected);
        (void)snprintf(text, sizeof text, "%s%s%.*s", mark->open, inside,
                       (int)(close[0] != '\0' ? strlen(close) - 1 : 0), close);
        (void)snprintf(expected, sizeof expected, "%s%s%.*s%s%s", begin, inside,
                       (int)(close[0] != '\0' ? strlen(close) - 1 : 0), close, colon, end);
        splits(text, expected);
        (void)snprintf(text, sizeof text, "x%.*s", (int)strlen(mark->open) - 1, mark->open);
        splits(text, text); /* never became a tag */
    }
}

/* Else what a span is would depend on where the text is cut. */
static void test_tags_are_apart(void **state) {
    (void)state;
    for (size_t i = 0; i < WK_N_MARKS; i++) {
        for (size_t j = 0; j < WK_N_MARKS; j++)
            assert_true(i == j || strstr(wk_marks[i].open, wk_marks[j].open) == NULL ||
                        (j < i && wk_marks[j].kind == WK_MARK_HEADER));
    }
}

static void test_content(void **state) {
    (void)state;
    splits("", "");
    splits("Just text.", "Just text.");
    splits("a < b, <thin>, <<think, [TOOL", "a < b, <thin>, <<think, [TOOL");
    splits("<<think>a</think>", "<<think>a</think>");
}

static void test_reasoning(void **state) {
    (void)state;
    splits("<think>\nhm\n</think>\n\nYes", "{<think>:\nhm\n:</think>}\n\nYes");
    splits("<think></think>Yes", "{<think>::</think>}Yes");
    splits("<think>", "{<think>::}");
    splits("<think>a</think><think>b</think>", "{<think>:a:</think>}{<think>:b:</think>}");
    /* Tags inside it are its text, as are those of the others. */
    splits("<think>a<think>b</think>c</think>d", "{<think>:a<think>b:</think>}c</think>d");
    splits("<think>[/THINK]<tool_call>1</tool_call></thin</think>",
           "{<think>:[/THINK]<tool_call>1</tool_call></thin:</think>}");
    splits("stray</think> and </tool_call>", "stray</think> and </tool_call>");
}

/* A tag that the text is about; and models that think again. */
static void test_reasoning_in_content(void **state) {
    (void)state;
    splits("Like `<think>` here, [THINK] too. <think>",
           "Like `<think>` here, [THINK] too. <think>");
    splits("<think>a</think>\n\nb <think>c</think>", "{<think>:a:</think>}\n\nb <think>c</think>");
    splits("[\"use <think> tags\"].", "[\"use <think> tags\"].");
    splits_as("a</think>b<think>c", "<think>", true, "{<think>:a:</think>}b<think>c");
    splits("<think>a</think>\n<tool_call>1</tool_call>\n<think></think>",
           "{<think>:a:</think>}\n(2:1:</tool_call>)\n{<think>::</think>}");
    splits("a<tool_call>1</tool_call>\n<think>b</think>c",
           "a(2:1:</tool_call>)\n{<think>:b:</think>}c");
    splits("a<tool_call>1</tool_call>.<think>b", "a(2:1:</tool_call>).<think>b");
    splits("a<|channel|>analysis<|message|><|end|>b<think>",
           "a{<|channel|>analysis<|message|>::<|end|>}b<think>");
    splits("\xE2\x82\xAC<think>", "\xE2\x82\xAC<think>");
}

static void test_opened_by_the_prompt(void **state) {
    (void)state;
    splits_as("hm</think>Yes", "<|im_start|>assistant\n<think>\n", true,
              "{<think>:hm:</think>}Yes");
    splits_as("", "<think>", true, "{<think>::}");
    splits_as("</think>{}", "[THINK] <think> \n", true, "{<think>::</think>}(1:{}:)");
    splits_as("</think>{}", "[THINK] <think> \n", false, "{<think>::</think>}{}");
    splits_as("{}[/THINK]", "[THINK]", true, "{[THINK]:{}:[/THINK]}");
    splits_as("Yes", "<think>\n\n</think>\n\n", true, "Yes");
    splits_as("Yes", ">", false, "Yes");
}

static void test_calls(void **state) {
    (void)state;
    splits("I look.<tool_call>\n{}\n</tool_call>\n<tool_call>2</tool_call>",
           "I look.(2:\n{}\n:</tool_call>)\n(2:2:</tool_call>)");
    splits("<tool_call></tool_call>", "(2::</tool_call>)");
    splits("<tool_call>{\"a\": \"<think>\"}", "(2:{\"a\": \"<think>\"}:)");
    splits("[TOOL_CALLS]f[ARGS]{}[TOOL_CALLS]g[ARGS]{}", "(6:f[ARGS]{}[TOOL_CALLS]g[ARGS]{}:)");
    splits("<function=h>{}</function>.", "(7:h>{}:</function>).");
    splits("A.\n<function=h>\n</function>\n</tool_call>", "A.\n(7:h>\n:</function>)");
    splits("<function=h></function></tool_call> B", "(7:h>:</function>) B");
    splits("<function=h></function> B </tool_call>", "(7:h>:</function>) B </tool_call>");
    splits("<function=h></function>\n", "(7:h>:</function>)\n");
    splits("<function=h></function></tool_", "(7:h>:</function>)</tool_");
    splits("<function=h></function>\n<function=ab>{}</function>",
           "(7:h>:</function>)\n(7:ab>{}:</function>)");
    splits("<function=h></function> <b>bold text</b>", "(7:h>:</function>) <b>bold text</b>");
    splits("<function_calls>f()</function_calls>.", "(8:f():</function_calls>).");
    splits_as("{\"name\": \"<tool_call>\"}\n", no_prompt, true,
              "(1:{\"name\": \"<tool_call>\"}\n:)");
    splits_as("{\"name\": \"f\"}", no_prompt, false, "{\"name\": \"f\"}");
    splits_as(" \n{\"name\": \"f\"}", no_prompt, true, "(1:{\"name\": \"f\"}:)");
    splits_as(" \n", no_prompt, true, " \n");
    splits_as("<think>hm</think>\n{}", no_prompt, true, "{<think>:hm:</think>}(1:{}:)");
    splits_as("So: {}", no_prompt, true, "So: {}");
    splits_as("<think>hm</think>So: {}", no_prompt, true, "{<think>:hm:</think>}So: {}");
}

static void test_channels(void **state) {
    (void)state;
    splits("<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Y",
           "{<|channel|>analysis<|message|>:hm:<|end|>}Y");
    splits("<|channel|>commentary<|message|>I look.<|end|><|start|>assistant<|channel|>commentary "
           "to=functions.f <|message|>{}<|call|>",
           "I look.(11:functions.f <|message|>{}:<|call|>)");
}

/* In the order of OpenAI's renderer, and in others that the model writes. */
static void test_headers(void **state) {
    (void)state;
    const char *const prompt = "<|start|>user<|message|>Hi<|end|><|start|>assistant";
    splits_as(" to=functions.f<|channel|>commentary json<|message|>{}<|call|>", prompt, true,
              "(11:functions.f<|channel|>commentary json<|message|>{}:<|call|>)");
    splits_as("<|channel|>analysis<|message|>hm<|end|>", prompt, true,
              "{<|channel|>analysis<|message|>:hm:<|end|>}");
    splits("<|channel|>analysis to=functions.f code<|message|>{}<|call|>.",
           "(11:functions.f code<|message|>{}:<|call|>).");
    splits("a<|start|>assistant to=functions.f<|channel|>commentary<|message|>{}",
           "a(11:functions.f<|channel|>commentary<|message|>{}:)");
    splits("<|channel|>final <|constrain|>json<|message|>{}<|end|>", "{}");
    splits("<|start|>assistant<|message|>a", "a");
    /* None, and parts */
    splits("<|channel|>\n<|channel|>!", "<|channel|>\n<|channel|>!");
    splits("a<|channel|>final", "a<|channel|>final");
    splits_as("Hi to=you", prompt, true, "Hi to=you");
    splits_as(" to", prompt, true, " to");
    splits_as(" to=f", prompt, true, " to=f");
    splits_as("{\"name\": \"f\"}", prompt, true, "(1:{\"name\": \"f\"}:)");
    splits_as("<think>a</think>", prompt, true, "{<think>:a:</think>}");
}

/* Text goes out as soon as it can be neither a tag nor half a character. */
static void test_what_is_held_back(void **state) {
    (void)state;
    wick_answer *answer = NULL;
    written out = {.size = 0};
    assert_int_equal(wick_answer_open(NULL, &answer), WICK_OK);
    feed(&out, answer, " <thi", 5);
    assert_string_equal(out.text, " ");
    feed(&out, answer, "nk>b", 4);
    assert_string_equal(out.text, " {<think>:b");
    feed(&out, answer, "c</", 3);
    assert_string_equal(out.text, " {<think>:bc");
    feed(&out, answer, "think>a <to", 11);
    assert_string_equal(out.text, " {<think>:bc:</think>}a ");
    feed(&out, answer, "s\xE2\x82", 3);
    assert_string_equal(out.text, " {<think>:bc:</think>}a <tos");
    feed(&out, answer, "\xAC<thi", 5); /* which opens nothing here */
    assert_string_equal(out.text, " {<think>:bc:</think>}a <tos\xE2\x82\xAC<thi");
    feed(&out, answer, "[TOOL_CALLS]x", 13);
    assert_string_equal(out.text, " {<think>:bc:</think>}a <tos\xE2\x82\xAC<thi");
    wick_answer_close(answer);
}

/* The calls of the only span, without their tools or with them; NULL: there are none. */
static void check_calls(const char *text, const wick_json *tools, const char *want) {
    wick_answer *answer = NULL;
    wick_answer_span span;
    size_t size = 1;
    const wick_answer_desc desc = {.has_tools = true, .tools = tools};
    assert_int_equal(wick_answer_open(&desc, &answer), WICK_OK);
    assert_null(wick_answer_calls(answer, &size));
    assert_int_equal(size, 0);
    assert_int_equal(wick_answer_feed(answer, text, strlen(text)), WICK_OK);
    wick_answer_finish(answer);
    assert_true(wick_answer_next(answer, &span));
    for (int i = 0; i < 2; i++) { /* again gives the same */
        const char *const calls = wick_answer_calls(answer, &size);
        if (want == NULL) {
            assert_null(calls);
            continue;
        }
        assert_non_null(calls);
        assert_string_equal(calls, want);
        assert_int_equal(size, strlen(want));
    }
    wick_answer_close(answer);
}

/* Before more text, which may move the span. */
static void test_calls_before_more(void **state) {
    (void)state;
    wick_answer *answer = NULL;
    wick_answer_span span;
    static const char call[] = "[TOOL_CALLS]f{}";
    assert_int_equal(wick_answer_open(NULL, &answer), WICK_OK);
    assert_int_equal(wick_answer_feed(answer, "<tool_call>{\"name\":\"f\"}</tool_call>", 35),
                     WICK_OK);
    assert_true(wick_answer_next(answer, &span));
    assert_non_null(wick_answer_calls(answer, NULL));
    assert_int_equal(wick_answer_feed(answer, call, sizeof call - 1), WICK_OK);
    assert_null(wick_answer_calls(answer, NULL));
    wick_answer_finish(answer);
    assert_true(wick_answer_next(answer, &span));
    assert_string_equal(wick_answer_calls(answer, NULL), "[{\"name\":\"f\",\"arguments\":{}}]");
    wick_answer_close(answer);
}

static void test_calls_as_json(void **state) {
    static const char tools[] =
        "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {\"type\": "
        "\"object\", \"properties\": {\"a\": {\"type\": \"string\"}}}}}]";
    (void)state;
    wick_json_document *document = NULL;
    assert_int_equal(wick_json_parse(tools, sizeof tools - 1, &document, NULL), WICK_OK);
    const wick_json *const known = wick_json_root(document);
    const char *const tagged = "<tool_call><function=f><parameter=a>1</parameter>"
                               "</function></tool_call>";
    check_calls(tagged, NULL, "[{\"name\":\"f\",\"arguments\":{\"a\":1}}]");
    check_calls(tagged, known, "[{\"name\":\"f\",\"arguments\":{\"a\":\"1\"}}]");
    check_calls("[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {}}, {\"name\": \"g\", "
                "\"arguments\": {\"b\": [0.10]}}]",
                known,
                "[{\"name\":\"f\",\"arguments\":{}},"
                "{\"name\":\"g\",\"arguments\":{\"b\":[0.10]}}]");
    check_calls("{\"name\": \"f\", \"arguments\": {}}", known,
                "[{\"name\":\"f\",\"arguments\":{}}]");
    check_calls("{\"name\": \"Bob\", \"age\": 5}", known, NULL);
    check_calls("<tool_call>{\"name\": \"f\"", known, NULL); /* cut off */
    check_calls("f", known, NULL);
    wick_json_free(document);
    assert_null(wick_answer_calls(NULL, NULL));
}

/* Invalid UTF-8 passes unchanged. */
static void test_broken_characters(void **state) {
    (void)state;
    static const char *const texts[] = {"\xE2", "\x80\x80\x80\x80", "a\xF0\x9F", "\xFF\xC3"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        wick_answer *answer = NULL;
        wick_answer_span span;
        char all[8] = "";
        assert_int_equal(wick_answer_open(NULL, &answer), WICK_OK);
        for (const char *at = texts[i]; *at != '\0'; at++) {
            assert_int_equal(wick_answer_feed(answer, at, 1), WICK_OK);
            while (wick_answer_next(answer, &span)) strncat(all, span.text, span.size);
        }
        wick_answer_finish(answer);
        while (wick_answer_next(answer, &span)) strncat(all, span.text, span.size);
        assert_string_equal(all, texts[i]);
        wick_answer_close(answer);
    }
}

/* A long call in small pieces is looked at once: in time that grows with its size. */
static void test_long_call(void **state) {
    (void)state;
    enum { N = 1 << 20 };
    wick_answer *answer = NULL;
    wick_answer_span span;
    assert_int_equal(wick_answer_open(NULL, &answer), WICK_OK);
    assert_int_equal(wick_answer_feed(answer, "<tool_call>", 11), WICK_OK);
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(wick_answer_feed(answer, "<", 1), WICK_OK);
        assert_false(wick_answer_next(answer, &span));
    }
    assert_int_equal(wick_answer_feed(answer, "</tool_call>.", 13), WICK_OK);
    assert_true(wick_answer_next(answer, &span));
    assert_int_equal(span.size, N);
    assert_true(wick_answer_next(answer, &span));
    assert_int_equal(span.size, 1);
    assert_false(wick_answer_next(answer, &span));
    wick_answer_close(answer);
}

static void test_misuse(void **state) {
    (void)state;
    wick_answer *answer = NULL;
    wick_answer_span span;
    assert_int_equal(wick_answer_open(NULL, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_answer_feed(NULL, "a", 1), WICK_ERR_ARGUMENT);
    assert_false(wick_answer_next(NULL, &span));
    wick_answer_finish(NULL);
    wick_answer_close(NULL);
    assert_int_equal(wick_answer_open(NULL, &answer), WICK_OK);
    assert_int_equal(wick_answer_feed(answer, NULL, 1), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_answer_feed(answer, NULL, 0), WICK_OK);
    assert_false(wick_answer_next(answer, NULL));
    wick_answer_close(answer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_format),
        cmocka_unit_test(test_tags_are_apart),
        cmocka_unit_test(test_content),
        cmocka_unit_test(test_reasoning),
        cmocka_unit_test(test_reasoning_in_content),
        cmocka_unit_test(test_opened_by_the_prompt),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_channels),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_what_is_held_back),
        cmocka_unit_test(test_calls_before_more),
        cmocka_unit_test(test_calls_as_json),
        cmocka_unit_test(test_broken_characters),
        cmocka_unit_test(test_long_call),
        cmocka_unit_test(test_misuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
