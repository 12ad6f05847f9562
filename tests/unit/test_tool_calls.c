/* What a model's calls of tools say, in the form of each family. */
#include "chat/call.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "checked_heap.h"

static const char tools_text[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"find\",\"parameters\":{\"type\":\"object\","
    "\"properties\":{\"text\":{\"type\":\"string\"},\"n\":{\"type\":\"integer\"},"
    "\"flag\":{\"type\":\"boolean\"},\"list\":{\"type\":\"array\"},\"map\":{\"type\":\"object\"},"
    "\"any\":{},\"other\":{\"type\":\"what\"},\"texts\":{\"type\":[\"string\",\"null\"]},"
    "\"opt\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]},"
    "\"both\":{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}]},"
    "\"word\":{\"enum\":[\"1\",\"2\",null]},\"one\":{\"const\":\"1\"},"
    "\"some\":{\"anyOf\":[{\"type\":\"string\"},{}]}}}}},{\"name\":\"a\"}]";

typedef struct place {
    wk_heap heap;
    wk_arena arena;
    const wk_json *tools;
} place;

static int set_up(void **state) {
    static place made;
    wk_json *tools = NULL;
    wk_heap_init(&made.heap, NULL);
    wk_arena_init(&made.arena, &made.heap, 1024);
    assert_int_equal(wk_json_parse(&made.arena, tools_text, strlen(tools_text), &tools, NULL),
                     WICK_OK);
    made.tools = tools;
    *state = &made;
    return 0;
}

static int tear_down(void **state) {
    place *const p = *state;
    wk_arena_release(&p->arena);
    assert_int_equal(p->heap.live_bytes, 0);
    return 0;
}

/* A call for which memory is short is not one that makes no sense. */
static void check_memory(wick_call_format format, const char *text, const wk_json *tools) {
    wick_status status = WICK_ERR_OUT_OF_MEMORY;
    for (uint64_t n = 0; status != WICK_OK; n++) {
        checked_heap checked;
        wk_arena arena;
        wk_tool_call *calls;
        checked_heap_init(&checked, n);
        checked.refuses_once = true;
        wk_arena_init(&arena, &checked.heap, 1);
        status = wk_tool_calls_read(&arena, format, wk_str_of(text), tools, &calls);
        assert_int_equal(status, checked.n_refused > 0 ? WICK_ERR_OUT_OF_MEMORY : WICK_OK);
        wk_arena_release(&arena);
        assert_true(checked_heap_is_clean(&checked));
    }
}

/* "NAME ARGUMENTS" of each call, with ; between them; "": none. */
static void check(void **state, wick_call_format format, const char *text, const char *expected) {
    place *const p = *state;
    wk_tool_call *calls;
    char got[512] = "";
    if (expected[0] != '\0') check_memory(format, text, p->tools);
    if (wk_tool_calls_read(&p->arena, format, wk_str_of(text), p->tools, &calls) == WICK_OK)
        for (; calls; calls = calls->next) {
            const size_t n = strlen(got);
            snprintf(got + n, sizeof got - n, "%s%.*s %.*s", n > 0 ? ";" : "",
                     (int)calls->name.size, calls->name.text, (int)calls->arguments.size,
                     calls->arguments.text);
        }
    assert_string_equal(got, expected);
}

static void reads_json(void **state) {
    const char *const one = "{\"name\": \"find\", \"arguments\": {\"n\": 1}}";
    const wick_call_format formats[] = {WICK_CALL_JSON, WICK_CALL_HERMES, WICK_CALL_PIPES,
                                        WICK_CALL_PYTHON_TAG};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        check(state, formats[i], one, "find {\"n\":1}");
    check(state, WICK_CALL_HERMES, "\n{\"name\":\"a\",\"parameters\":{\"x\":[1,\"}\"]}}\n",
          "a {\"x\":[1,\"}\"]}");
    check(state, WICK_CALL_JSON, "{\"name\":\"a\"}", "a {}");
    check(state, WICK_CALL_JSON, "{\"name\":\"a\",\"arguments\":\"{\\\"x\\\":1}\"}", "a {\"x\":1}");
    check(state, WICK_CALL_JSON, "{\"type\":\"function\",\"function\":{\"name\":\"a\"}}", "a {}");
    check(state, WICK_CALL_JSON, "{\"name\":\"a\",\"x\":1,\"arguments\":null}", "a {}");
    check(state, WICK_CALL_HERMES, "{\"name\":\"b\",\"x\":1}", "b {}");
    check(state, WICK_CALL_PIPES, "[{\"name\":\"a\"},{\"name\":\"b\",\"arguments\":{\"y\":2}}]",
          "a {};b {\"y\":2}");
    check(state, WICK_CALL_PYTHON_TAG, "{\"name\":\"a\"}; {\"name\":\"b\"}", "a {};b {}");
}

/* Bytes of values stay, except for blanks and what JSON has no number for. */
static void keeps_values(void **state) {
    check(state, WICK_CALL_JSON,
          "{\"arguments\": {\"n\": 12345678901234567890, \"x\": [1.0, 1e2], \"s\": \" \\\" "
          "\\u00e4\"},"
          " \"name\": \"a\", \"other\": [{\"arguments\": 1}]}",
          "a {\"n\":12345678901234567890,\"x\":[1.0,1e2],\"s\":\" \\\" \\u00e4\"}");
    check(state, WICK_CALL_HERMES,
          "<function=find><parameter=n>12345678901234567890</parameter></function>",
          "find {\"n\":12345678901234567890}");
    check(state, WICK_CALL_JSON, "{\"name\":\"a\",\"parameters\":{\"x\":[NaN,-Infinity,\"NaN\"]}}",
          "a {\"x\":[null,null,\"NaN\"]}");
    check(state, WICK_CALL_JSON,
          "{\"name\":\"a\",\"arguments\":{\"x\":1},\"arguments\":{\"x\":2.50}}", "a {\"x\":2.50}");
}

static void reads_other_json(void **state) {
    check(state, WICK_CALL_PIPES,
          "[\n {\"tool_call_id\": \"0\", \"tool_name\": \"a\", \"parameters\": {\"x\": 1}}\n]",
          "a {\"x\":1}");
    check(state, WICK_CALL_KEYED, "[{\"a\": {\"x\": 1}}, {\"b\": {}}]", "a {\"x\":1};b {}");
    check(state, WICK_CALL_KEYED, "[{\"a\": 1}]", "");
    check(state, WICK_CALL_KEYED, "[1]", "");
    check(state, WICK_CALL_FUNCTOOLS, "{\"name\": \"a\", \"arguments\": {}}, {\"name\": \"b\"}]",
          "a {};b {}");
    check(state, WICK_CALL_FUNCTOOLS, "]", "");
}

static void refuses_json(void **state) {
    const char *const texts[] = {"", "{", "[]", "{}", "7", "{\"name\":7}", "{\"name\":\"\"}",
                                 "{\"name\":\"a\",\"arguments\":7}",
                                 "{\"name\":\"a\",\"arguments\":\"x\"}",
                                 "{\"name\":\"a\"} and more",
                                 /* without tags: another tool, and other members */
                                 "{\"name\":\"b\",\"arguments\":{}}", "{\"name\":\"a\",\"x\":1}",
                                 "{\"name\":\"a\"},{\"name\":\"b\"}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check(state, WICK_CALL_JSON, texts[i], "");
    check(state, WICK_CALL_NONE, "{\"name\":\"a\"}", "");
    check(state, WICK_CALL_PIPES, "[{\"name\":\"a\"},{\"name\":\"a\",\"arguments\":\"x\"}]", "");
}

#define DSML                                                                                       \
    "\xEF\xBD\x9C"                                                                                 \
    "DSML\xEF\xBD\x9C"

static void reads_tags(void **state) {
    check(state, WICK_CALL_HERMES,
          "\n<function=find>\n<parameter=text>\n12\n</parameter>\n<parameter=n>\n3\n</parameter>\n"
          "</function>\n",
          "find {\"text\":\"12\",\"n\":3}");
    check(state, WICK_CALL_HERMES,
          "find\n<arg_key>text</arg_key>\n<arg_value>two words</arg_value>\n"
          "<arg_key>n</arg_key><arg_value>3</arg_value>",
          "find {\"text\":\"two words\",\"n\":3}");
    check(state, WICK_CALL_HERMES, "now", "now {}");
    check(state, WICK_CALL_HERMES, "now<tool_sep>", "now {}");
    check(state, WICK_CALL_HERMES,
          "find<tool_sep>\n<arg_key>n</arg_key>\n<arg_value>3</arg_value>\n", "find {\"n\":3}");
    check(state, WICK_CALL_INVOKE,
          "\n<invoke name=\"find\">\n<parameter name=\"text\">12</parameter>\n"
          "<parameter name=\"n\">3</parameter>\n</invoke>\n<invoke name=\"b\">\n</invoke>\n",
          "find {\"text\":\"12\",\"n\":3};b {}");
    check(state, WICK_CALL_INVOKE,
          "<" DSML "invoke name=\"b\">\n<" DSML "parameter name=\"x\" string=\"true\">1</" DSML
          "parameter>\n<" DSML "parameter name=\"y\" string=\"false\">[1.0]</" DSML
          "parameter>\n</" DSML "invoke>\n",
          "b {\"x\":\"1\",\"y\":[1.0]}");
    check(state, WICK_CALL_INVOKE, "<invoke name=\"b\"><parameter name=\"x\">1", "");
    check(state, WICK_CALL_SEED, "<function=other><parameter=x>{\"y\":[1]}</parameter></function>",
          "other {\"x\":{\"y\":[1]}}");
    check(state, WICK_CALL_FUNCTION, "find>{\"n\":1}", "find {\"n\":1}");
    check(state, WICK_CALL_FUNCTION,
          "find>\n<parameter=text>\n12\n</parameter>\n<parameter=n>\n3\n</parameter>\n",
          "find {\"text\":\"12\",\"n\":3}");
    check(state, WICK_CALL_FUNCTION, "now>\n", "now {}");
    check(state, WICK_CALL_FUNCTION, "find>\n<parameter=text>\n12", "");
    check(state, WICK_CALL_FUNCTION, "find", "");
    check(state, WICK_CALL_HERMES, "<function=find><parameter=n>3", "");
    check(state, WICK_CALL_HERMES, "<function=find><parameter=n>3</parameter>", "");
    /* JSON does not begin with a byte order mark. */
    check(state, WICK_CALL_HERMES,
          "<function=find><parameter=n>\xEF\xBB\xBF"
          "3</parameter></function>",
          "find {\"n\":\"\xEF\xBB\xBF"
          "3\"}");
    check(state, WICK_CALL_HERMES, "find<arg_key>n</arg_key>3", "");
}

/* What a parameter in tags is, by its schema. */
static void reads_by_schema(void **state) {
    static const struct {
        const char *key, *text, *value;
    } cases[] = {
        {"flag", "True", "true"},
        {"flag", " False", "false"},
        {"flag", "true", "true"},
        {"flag", "Truely", "\"Truely\""},
        {"n", "None", "null"},
        {"n", "5 or 6", "\"5 or 6\""},
        {"n", "01", "\"01\""},
        {"n", "", "\"\""},
        {"list", "[\"it's\", 'a\"b', (1, None)]", "[\"it's\",\"a\\\"b\",[1,null]]"},
        {"map", "{'k': [True, 1.50], 'z': {}}", "{\"k\":[true,1.50],\"z\":{}}"},
        {"map", "{'k': [True, 1.50}", "\"{'k': [True, 1.50}\""},
        {"text", "None", "\"None\""},
        {"text", "null", "\"null\""},
        {"any", "True", "\"True\""},
        {"any", "12", "12"},
        {"any", "\"a\"", "\"a\""},
        {"other", "12", "12"},
        {"unknown", "12", "12"},
        {"opt", "12345", "\"12345\""},
        {"opt", "[1]", "\"[1]\""},
        {"opt", "\"a\"", "\"\\\"a\\\"\""},
        {"opt", "True", "\"True\""},
        {"opt", "None", "null"},
        {"opt", "null", "null"},
        {"texts", "007", "\"007\""},
        {"texts", "42", "\"42\""},
        {"texts", "null", "null"},
        {"both", "42", "42"},
        {"both", "true", "\"true\""},
        {"both", "None", "\"None\""},
        {"word", "1", "\"1\""},
        {"word", "None", "null"},
        {"one", "1", "\"1\""},
        {"some", "1", "1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256], expected[256];
        snprintf(expected, sizeof expected, "find {\"%s\":%s}", cases[i].key, cases[i].value);
        snprintf(text, sizeof text,
                 "<function=find>\n<parameter=%s>\n%s\n</parameter>\n</function>", cases[i].key,
                 cases[i].text);
        check(state, WICK_CALL_HERMES, text, expected);
        snprintf(text, sizeof text, "<function=find>\n<parameter=%s>%s</parameter>\n</function>",
                 cases[i].key, cases[i].text);
        check(state, WICK_CALL_SEED, text, expected);
        snprintf(text, sizeof text, "find\n<arg_key>%s</arg_key>\n<arg_value>%s</arg_value>",
                 cases[i].key, cases[i].text);
        check(state, WICK_CALL_HERMES, text, expected);
        snprintf(text, sizeof text,
                 "<invoke name=\"find\"><parameter name=\"%s\">%s</parameter></invoke>",
                 cases[i].key, cases[i].text);
        check(state, WICK_CALL_INVOKE, text, expected);
    }
}

/* Where tags stand on lines of their own, the line ends are not the value's. */
static void keeps_lines(void **state) {
    const char *const text = "<function=find><parameter=text>\n\na\n\n</parameter></function>";
    check(state, WICK_CALL_HERMES, text, "find {\"text\":\"\\na\\n\"}");
    check(state, WICK_CALL_SEED, text, "find {\"text\":\"\\n\\na\\n\\n\"}");
    check(state, WICK_CALL_HERMES, "<function=find><parameter=text>\n</parameter></function>",
          "find {\"text\":\"\"}");
    check(state, WICK_CALL_SEED, "{\"name\":\"find\",\"arguments\":{\"n\":1}}", "find {\"n\":1}");
}

static void reads_names(void **state) {
    check(state, WICK_CALL_MISTRAL, "[{\"name\":\"a\",\"arguments\":{}}]", "a {}");
    check(state, WICK_CALL_MISTRAL, "a[ARGS]{\"x\":1}", "a {\"x\":1}");
    check(state, WICK_CALL_MISTRAL, "a{\"x\":1}[TOOL_CALLS]b[CALL_ID]123456789[ARGS]{\"y\":\"{\"}",
          "a {\"x\":1};b {\"y\":\"{\"}");
    check(state, WICK_CALL_CHANNEL, "functions.find <|constrain|>json<|message|>{\"n\":1}",
          "find {\"n\":1}");
    check(state, WICK_CALL_CHANNEL, "functions.find", "");
    check(state, WICK_CALL_KIMI,
          "<|tool_call_begin|>functions.find:0<|tool_call_argument_begin|>{\"n\":1}"
          "<|tool_call_end|><|tool_call_begin|>functions.b:1<|tool_call_argument_begin|>{}"
          "<|tool_call_end|>",
          "find {\"n\":1};b {}");
#define MARK(words) "<\xEF\xBD\x9Ctool\xE2\x96\x81" words "\xEF\xBD\x9C>"
#define BEGIN                                                                                      \
    MARK("call\xE2\x96\x81"                                                                        \
         "begin")
#define END                                                                                        \
    MARK("call\xE2\x96\x81"                                                                        \
         "end")
    check(state, WICK_CALL_DEEPSEEK,
          BEGIN "function" MARK("sep") "find\n```json\n{\"n\":1}\n```" END, "find {\"n\":1}");
    check(state, WICK_CALL_DEEPSEEK,
          BEGIN "function" MARK("sep") "find\n```json\n{\"text\":\"```json\\n{}\\n```\"}\n```" END,
          "find {\"text\":\"```json\\n{}\\n```\"}");
    check(state, WICK_CALL_DEEPSEEK,
          BEGIN "function" MARK("sep") "find\n```json\n{\"text\":\"```\"}\n" END,
          "find {\"text\":\"```\"}");
    check(state, WICK_CALL_DEEPSEEK, BEGIN "function" MARK("sep") "find\n```json\n```" END,
          "find {}");
    check(state, WICK_CALL_DEEPSEEK,
          BEGIN "find" MARK("sep") "{\"n\":1}" END BEGIN "b" MARK("sep") "{}" END,
          "find {\"n\":1};b {}");
}

static void reads_python(void **state) {
    check(state, WICK_CALL_LIST, "[find(text=\"a, (b)\", n=-1.5e3), b()]",
          "find {\"text\":\"a, (b)\",\"n\":-1.5e3};b {}");
    check(state, WICK_CALL_LIST, " [{\"name\":\"b\",\"arguments\":{\"x\":1}}]", "b {\"x\":1}");
    check(state, WICK_CALL_LIST, "[\n  {\"name\": \"b\"},\n  {\"name\": \"f\"}\n]\n", "b {};f {}");
    check(state, WICK_CALL_LIST, "[ b( ) ]", "b {}");
    check(state, WICK_CALL_LIST, "{\"name\":\"b\",\"arguments\":{}}", "b {}");
    check(state, WICK_CALL_LIST, "\nfind(n=1)\nb()\n", "find {\"n\":1};b {}");
    check(state, WICK_CALL_LIST, "[f(a='it\\'s \"x\"', b=[1, {'k': None}], c=True)]",
          "f {\"a\":\"it's \\\"x\\\"\",\"b\":[1,{\"k\":null}],\"c\":true}");
    check(state, WICK_CALL_PYTHON_TAG, "search.call(query=\"x\")", "search {\"query\":\"x\"}");
    check(state, WICK_CALL_LIST, "f(a=\"t\tb\", b='\\x41\\d\\n')",
          "f {\"a\":\"t\\u0009b\",\"b\":\"\\u0041\\\\d\\n\"}");
    check(state, WICK_CALL_BRACES,
          "call:f{k:<|\"|>a \"b\"\n{<|\"|>,l:[1.50,true],m:{x_1:None},<|\"|>o<|\"|>:<|\"|><|\"|>}",
          "f {\"k\":\"a \\\"b\\\"\\n{\",\"l\":[1.50,true],\"m\":{\"x_1\":null},\"o\":\"\"}");
    check(state, WICK_CALL_BRACES, "call:f{}", "f {}");
    check(state, WICK_CALL_BRACES, "f{}", "");
    check(state, WICK_CALL_BRACES, "call:f{k}", "");
    check(state, WICK_CALL_BRACES, "call:f{k:<|\"|>}", "");
    check(state, WICK_CALL_LIST, "f(a='\\xg1')", "");
    const char *const texts[] = {"[",       "[f",        "[f(",         "[f(a",
                                 "[f(a=",   "[f(a=)]",   "[f(a='x]",    "[f(a=01)]",
                                 "[f(a=1]", "[f(a=[1)]", "[f(a={1:2})]"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check(state, WICK_CALL_LIST, texts[i], "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads_json, set_up, tear_down),
        cmocka_unit_test_setup_teardown(keeps_values, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reads_other_json, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_json, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reads_tags, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reads_by_schema, set_up, tear_down),
        cmocka_unit_test_setup_teardown(keeps_lines, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reads_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reads_python, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
