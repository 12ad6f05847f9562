/* What templates are given of the items and messages of other APIs than OpenAI's chat. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "api_requests.h"

/* Tools that only the API's own server has are left out, and so are their calls. */
static void test_other_tools(void **state) {
    static const char all[] =
        "{% for t in tools or [] %}<{{ t.function.name }}>{% endfor %}{% for m in messages %}"
        "[{{ m.role }}: {{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function.name }}"
        "{{ c.function.arguments|tojson }}{% endfor %}]{% endfor %}";
    const wick_api_desc desc = {.chat_template = all};
    (void)state;
    renders(desc, "/v1/responses",
            "{\"tools\":[{\"type\":\"web_search\"},{\"type\":\"function\",\"name\":\"f\"},"
            "{\"type\":\"custom\",\"name\":\"g\"}],\"input\":["
            "{\"type\":\"message\",\"role\":\"user\",\"content\":\"Hi\"},"
            "{\"type\":\"web_search_call\",\"id\":\"ws_1\",\"status\":\"completed\"},"
            "{\"type\":\"mcp_list_tools\",\"id\":\"m\",\"server_label\":\"s\",\"tools\":[]},"
            "{\"type\":\"tool_search_call\",\"call_id\":\"t\",\"arguments\":{}},"
            "{\"type\":\"tool_search_output\",\"call_id\":\"t\",\"tools\":[]},"
            "{\"type\":\"program\",\"code\":\"c\"},{\"type\":\"program_output\",\"result\":\"r\"},"
            "{\"type\":\"custom_tool_call\",\"call_id\":\"1\",\"name\":\"g\",\"input\":\"a b\"},"
            "{\"type\":\"custom_tool_call_output\",\"call_id\":\"1\",\"output\":\"5\"}]}",
            "<f>[user: Hi][assistant: g{\"input\": \"a b\"}][tool: 5]");
    renders(desc, "/v1/messages",
            "{" CHAT ",\"max_tokens\":5,\"tools\":[{\"type\":\"web_search_20250305\",\"name\":"
            "\"web_search\"},{\"name\":\"f\"},{\"type\":\"custom\",\"name\":\"g\"}]}",
            "<f><g>[user: Hi]");
#define USED "{\"type\":\"server_tool_use\",\"id\":\"s\",\"name\":\"web_search\",\"input\":{}}"
#define FOUND "{\"type\":\"web_search_tool_result\",\"tool_use_id\":\"s\",\"content\":[]}"
    renders(desc, "/v1/messages",
            "{\"max_tokens\":5,\"tools\":[{\"type\":null,\"name\":\"f\"}],\"messages\":["
            "{\"role\":\"user\",\"content\":\"Hi\"},"
            "{\"role\":\"assistant\",\"content\":[" USED "," FOUND
            ",{\"type\":\"text\",\"text\":\"a\"}]},"
            "{\"role\":\"assistant\",\"content\":[" USED "," FOUND "]},"
            "{\"role\":\"user\",\"content\":\"b\"}]}",
            "<f>[user: Hi][assistant: a][user: b]");
}

/* Functions of a namespace have its name before theirs. */
static void test_namespaces(void **state) {
    static const char all[] =
        "{% for t in tools or [] %}<{{ t.function.name }}>{% endfor %}{% for m in messages %}"
        "[{{ m.role }}: {{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function.name }}"
        "{% endfor %}]{% endfor %}";
    const wick_api_desc desc = {.chat_template = all};
    (void)state;
    renders(desc, "/v1/responses",
            "{\"tools\":[{\"type\":\"namespace\",\"name\":\"sky\",\"description\":\"d\",\"tools\":["
            "{\"type\":\"function\",\"name\":\"f\"},{\"type\":\"custom\",\"name\":\"g\"}]},"
            "{\"type\":\"function\",\"name\":\"f\"},{\"type\":\"namespace\",\"name\":\"sea\"}],"
            "\"input\":[{\"role\":\"user\",\"content\":\"Hi\"},"
            "{\"type\":\"function_call\",\"call_id\":\"1\",\"namespace\":\"sky\",\"name\":\"f\","
            "\"arguments\":\"{}\"},"
            "{\"type\":\"function_call_output\",\"call_id\":\"1\",\"output\":\"5\"}]}",
            "<sky__f><f>[user: Hi][assistant: sky__f][tool: 5]");
}

/* What the assistant said in a row, in items of a response. */
static void test_turns(void **state) {
    static const char all[] =
        "{% for m in messages %}[{{ m.role }}: {% if m.reasoning_content %}({{ m.reasoning_content "
        "}}){% endif %}{{ m.content }}{% for c in m.tool_calls or [] %}<{{ c.function.name }}>"
        "{% endfor %}]{% endfor %}{% if add_generation_prompt %}>{% endif %}";
#define ITEM(call) "{\"type\":\"function_call\",\"call_id\":\"" call "\",\"name\":\"" call "\"},"
#define SAID(text) "{\"role\":\"assistant\",\"content\":" text "},"
#define THOUGHT(member, text)                                                                      \
    "{\"type\":\"reasoning\",\"summary\":[],\"" member "\":[{\"text\":\"" text "\"}]},"
#define OUTPUT "{\"type\":\"function_call_output\",\"call_id\":\"f\",\"output\":\"5\"},"
#define END "{\"role\":\"user\",\"content\":\"Hi\"}]}"
    static const char *const cases[][2] = {
        {SAID("[{\"type\":\"output_text\",\"text\":\"Let me\"}]") ITEM("f") ITEM("g") OUTPUT OUTPUT,
         "[assistant: Let me<f><g>][tool: 5][tool: 5]"},
        {ITEM("f") SAID("\"a\"") SAID("\"b\""), "[assistant: a\nb<f>]"},
        {SAID("null") SAID("\"a\"") SAID("null"), "[assistant: a]"},
        {THOUGHT("content", "hm") THOUGHT("summary", "oh") ITEM("f") OUTPUT SAID("\"a\""),
         "[assistant: (hm\noh)<f>][tool: 5][assistant: a]"},
        {"{\"type\":\"reasoning\",\"summary\":[],\"encrypted_content\":\"x\"},", ""},
    };
    const wick_api_desc desc = {.chat_template = all};
    char body[512], expected[128];
    (void)state;
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        snprintf(body, sizeof body, "{\"input\":[%s" END, cases[i][0]);
        snprintf(expected, sizeof expected, "%s[user: Hi]>", cases[i][1]);
        renders(desc, "/v1/responses", body, expected);
    }
    renders(desc, "/v1/responses",
            "{\"input\":[" SAID("\"a\"") "{\"role\":\"assistant\",\"content\":\"b\"}]}", ">a\nb");
}

/* Blocks of Anthropic's messages. */
static void test_blocks(void **state) {
    static const char all[] =
        "{% for m in messages %}[{{ m.role }}: {% if m.reasoning_content %}({{ m.reasoning_content "
        "}}){% endif %}{{ m.content }}{% for c in m.tool_calls or [] %}<{{ c.function.name }}>"
        "{% endfor %}]{% endfor %}{% if add_generation_prompt %}>{% endif %}";
#define TEXT(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define THINKING(text) "{\"type\":\"thinking\",\"thinking\":\"" text "\"},"
    static const char *const cases[][2] = {
        {"{\"role\":\"assistant\",\"content\":\"a\"},"
         "{\"role\":\"assistant\",\"content\":[" TEXT("b") "]}",
         ">a\nb"},
        {"{\"role\":\"assistant\",\"content\":[" THINKING("hm") THINKING("oh")
             TEXT("a") "]},"
                       "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"name\":\"f\","
                       "\"input\":{}}]}",
         "[assistant: (hm\noh)a<f>]>"},
        {"{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"content\":null}]}",
         "[tool: ]>"},
        {"{\"role\":\"user\",\"content\":[{\"type\":\"document\",\"title\":\"T\",\"context\":null,"
         "\"source\":{\"type\":\"text\",\"media_type\":\"text/plain\",\"data\":\"ab\"}}," TEXT(
             "c") "]}",
         "[user: T\nab\nc]>"},
        {"{\"role\":\"user\",\"content\":[{\"type\":\"document\",\"source\":{\"type\":\"content\","
         "\"content\":[" TEXT("a") "," TEXT("b") "]}},{\"type\":\"document\",\"source\":{"
                                                 "\"type\":\"content\",\"content\":\"c\"}}]}",
         "[user: a\nb\nc]>"},
        {"{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"content\":[{"
         "\"type\":\"search_result\",\"source\":\"http://a\",\"title\":\"T\",\"content\":[" TEXT(
             "b") "]}]}]}",
         "[tool: T\nhttp://a\nb]>"},
    };
    const wick_api_desc desc = {.chat_template = all};
    char body[512];
    (void)state;
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        snprintf(body, sizeof body, "{\"max_tokens\":5,\"messages\":[%s]}", cases[i][0]);
        renders(desc, "/v1/messages", body, cases[i][1]);
    }
    wick_api *const api = open_api(desc);
    expect_text(answer(api, "/v1/messages",
                       "{\"max_tokens\":5,\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":"
                       "\"document\",\"source\":{\"type\":\"base64\",\"data\":\"JVBERi0=\"}}]}]}",
                       400),
                "this model cannot read images");
    wick_api_close(api);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_tools),
        cmocka_unit_test(test_namespaces),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_blocks),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
