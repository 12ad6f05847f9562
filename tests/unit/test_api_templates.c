/* What templates are given of requests: variables, messages, tools, and where the answer begins. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "api_requests.h"

static void test_variables(void **state) {
    static const char says[] = "[{{ enable_thinking }}|{{ x }}|{{ reasoning_effort }}]";
    const wick_api_desc unsaid = {.chat_template = says},
                        yes = {.chat_template = says, .thinking = 1},
                        no = {.chat_template = says, .thinking = -1};
    (void)state;
    renders(unsaid, chat, "{" CHAT "}", "[||]");
    renders(yes, chat, "{" CHAT "}", "[True||]");
    renders(no, chat, "{" CHAT "}", "[False||]");
    renders(no, chat, "{" CHAT ",\"chat_template_kwargs\":{\"x\":\"y\",\"enable_thinking\":true}}",
            "[True|y|]");
    renders(yes, chat, "{" CHAT ",\"chat_template_kwargs\":{\"x\":5}}", "[True|5|]");
    renders(yes, "/api/chat", "{" CHAT ",\"think\":false}", "[False||]");
    renders(no, "/api/chat", "{" CHAT ",\"think\":true}", "[True||]");
    renders(no, "/api/chat", "{" CHAT ",\"think\":\"high\"}", "[True||high]");
    renders(yes, chat, "{" CHAT ",\"reasoning_effort\":\"low\"}", "[True||low]");
    renders(yes, chat, "{" CHAT ",\"reasoning_effort\":\"none\"}", "[False||none]");
    renders(unsaid, chat,
            "{" CHAT ",\"reasoning_effort\":\"low\",\"chat_template_kwargs\":{"
            "\"reasoning_effort\":\"high\"}}",
            "[||high]");
    renders(unsaid, "/v1/messages",
            "{" CHAT ",\"max_tokens\":5,\"output_config\":{\"effort\":\"low\"}}", "[||low]");
    renders(yes, "/v1/messages", "{" CHAT ",\"max_tokens\":5,\"thinking\":{\"type\":\"disabled\"}}",
            "[False||]");
    renders(no, "/v1/messages", "{" CHAT ",\"max_tokens\":5,\"thinking\":{\"type\":\"enabled\"}}",
            "[True||]");
    renders(unsaid, "/v1/responses", "{\"input\":\"a\",\"reasoning\":{\"effort\":\"low\"}}",
            "[||low]");
}

#define CALLED                                                                                     \
    "{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":"         \
    "\"{\\\"a\\\": 1}\"}}]}"

/* Arguments are objects, or texts for templates that cannot do with that. */
static void test_arguments(void **state) {
    static const char of[] = "{% for m in messages %}{{ m.content + '.' }}"
                             "{% for c in m.tool_calls or [] %}{{ %s }}{% endfor %}{% endfor %}";
    char text[256];
    (void)state;
    snprintf(text, sizeof text, "%.*s%s%s", (int)(strstr(of, "%s") - of), of,
             "c.function.arguments.a + 1", strstr(of, "%s") + 2);
    renders((wick_api_desc){.chat_template = text}, chat, "{\"messages\":[" CALLED "]}", ".2");
    snprintf(text, sizeof text, "%.*s%s%s", (int)(strstr(of, "%s") - of), of,
             "'<' + c.function.arguments + '>'", strstr(of, "%s") + 2);
    renders((wick_api_desc){.chat_template = text}, chat, "{\"messages\":[" CALLED "]}",
            ".<{\"a\":1}>");
}

/* Empty and broken arguments, and lists of no calls, which templates stumble over. */
static void test_history(void **state) {
    static const char says[] =
        "{% for m in messages %}{% if 'tool_calls' in m %}"
        "{% for c in m.tool_calls %}{% for k, v in c.function.arguments|items %}{{ k }}={{ v }}"
        "{% endfor %}.{% endfor %}{% else %}{{ m.content }}{% endif %}{% endfor %}";
    static const char *const cases[][2] = {
        {"\"\"", "."},
        {"null", "."},
        {"\"{\\\"a\\\": 1}\"", "a=1."},
        {"\"{\\\"a\\\": \"", "arguments={\"a\": ."},
        {"\"[5]\"", "arguments=[5]."},
    };
    char body[512];
    (void)state;
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        snprintf(body, sizeof body,
                 "{\"messages\":[{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{"
                 "\"name\":\"f\",\"arguments\":%s}}]}]}",
                 cases[i][0]);
        renders((wick_api_desc){.chat_template = says}, chat, body, cases[i][1]);
    }
    renders((wick_api_desc){.chat_template = says}, chat,
            "{\"messages\":[{\"role\":\"assistant\",\"content\":\"Yes\",\"tool_calls\":[]},"
            "{\"role\":\"user\",\"content\":\"No\"}]}",
            "YesNo");
}

/* Templates that refuse messages get others, which say the same. */
static void test_fits(void **state) {
    static const char alternating[] =
        "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no') }}{% endif %}"
        "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('no') }}"
        "{% endif %}[{{ m.role }}: {{ m.content }}]{% endfor %}";
    static const char own[] =
        "{% for m in messages %}{% if m.role == 'user' and loop.index0 > 0 and "
        "messages[loop.index0 - 1].role == 'tool' %}{{ raise_exception('no') }}{% endif %}"
        "[{{ m.role }}: {{ m.content }}{% for c in m.tool_calls or [] %} {{ c.function.name }}"
        "{{ c.function.arguments|tojson }}{% endfor %}]{% endfor %}";
#define TURN                                                                                       \
    "{\"role\":\"user\",\"content\":\"Hi\"}," CALLED ",{\"role\":\"tool\",\"content\":\"5\"}"
#define SYSTEM "{\"role\":\"system\",\"content\":\"Be.\"}"
    const wick_api_desc strict = {.chat_template = alternating}, tools = {.chat_template = own};
    (void)state;
    renders(strict, chat, "{\"messages\":[" SYSTEM "," TURN "]}",
            "[user: Be.\n\nHi][assistant: {\"name\":\"f\",\"arguments\":{\"a\":1}}][user: 5]");
    renders(strict, chat,
            "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},"
            "{\"role\":\"user\",\"content\":\"b\"}]}",
            "[user: a\n\nb]");
    renders(strict, chat, "{\"messages\":[" SYSTEM "]}", "[user: Be.]");
    char *const text =
        rendered(strict, chat, "{\"messages\":[" SYSTEM "," TURN "],\"tools\":[" TOOL "]}");
    assert_int_equal(strncmp(text, "[user: Be.\n\nYou can call functions.", 35), 0);
    expect_text(text, "\n\nHi][assistant: {\"name\":\"f\",\"arguments\":{\"a\":1}}][user: 5]");
    free(text);
    renders(tools, chat,
            "{\"messages\":[" SYSTEM "," TURN ",{\"role\":\"user\",\"content\":\"b\"}]}",
            "[system: Be.][user: Hi][assistant:  f{\"a\": 1}][tool: 5\n\nb]");
    renders(strict, chat, "{\"messages\":[" TURN "," CALLED "," CALLED "]}",
            "[user: Hi][assistant: {\"name\":\"f\",\"arguments\":{\"a\":1}}][user: 5]"
            "[assistant: {\"name\":\"f\",\"arguments\":{\"a\":1}}\n\n"
            "{\"name\":\"f\",\"arguments\":{\"a\":1}}]");
}

/* Where a template says nothing of tools, the messages do: the first one, which is the system's if
 * the template takes one. */
static void test_tools_in_words(void **state) {
    static const char all[] = "{% for m in messages %}[{{ m.role }}: {{ m.content }}]{% endfor %}";
    static const char strict[] =
        "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no') }}{% endif %}"
        "[{{ m.role }}: {{ m.content }}]{% endfor %}";
    static const char tells[] = "{{ tools[0].function.name }}";
    static const char shows[] = "{% for m in messages %}{{ m.content }}{% if m.tool_calls %}<call>"
                                "{% endif %}{% endfor %}";
    static const char body[] = "{" CHAT ",\"tools\":[" TOOL "]}";
    (void)state;
    char *text = rendered((wick_api_desc){.chat_template = all}, chat, body);
    assert_int_equal(strncmp(text, "[system: You can call functions.", 32), 0);
    expect_text(text, "\n{\"name\":\"f\"}][user: Hi]");
    free(text);
    text = rendered((wick_api_desc){.chat_template = strict}, chat, body);
    assert_int_equal(strncmp(text, "[user: You can call functions.", 30), 0);
    expect_text(text, "\n{\"name\":\"f\"}\n\nHi]");
    free(text);
    renders((wick_api_desc){.chat_template = tells}, chat, body, "f");
    text = rendered((wick_api_desc){.chat_template = shows}, chat,
                    "{\"messages\":[" CALLED "],\"tools\":[" TOOL "]}");
    expect_text(text, "{\"name\":\"f\",\"arguments\":{\"a\":1}}");
    assert_null(strstr(text, "<call>")); /* which would be the same a second time */
    free(text);
    renders((wick_api_desc){.chat_template = all}, chat,
            "{" CHAT ",\"tools\":[" TOOL "],\"tool_choice\":\"none\"}", "[user: Hi]");
}

/* An answer that goes on with the last message, and what ends the thinking that a template began.
 */
static void test_prefill(void **state) {
#define BEGUN "{\"role\":\"user\",\"content\":\"Hi\"},{\"role\":\"assistant\",\"content\":\"Yes\"}"
    static const char plain[] = "{% for m in messages %}[{{ m.content }}]{% endfor %}"
                                "{% if add_generation_prompt %}>{% endif %}";
    static const char thinks[] = "{% if add_generation_prompt %}<think> \n\n{% endif %}";
    static const char only[] = "{% if add_generation_prompt %}<think>{% endif %}";
    static const char space[] = "{% if add_generation_prompt %} \n{% endif %}";
    const wick_api_desc desc = {.chat_template = plain};
    (void)state;
    renders(desc, chat, "{\"messages\":[" BEGUN "]}", "[Hi]>Yes");
    renders(desc, chat, "{\"messages\":[" BEGUN "],\"continue_final_message\":false}",
            "[Hi][Yes]>");
    renders(desc, chat, "{\"messages\":[" BEGUN "],\"add_generation_prompt\":true}", "[Hi][Yes]>");
    renders(desc, chat, "{\"messages\":[" BEGUN "],\"add_generation_prompt\":false}", "[Hi][Yes]");
    renders(desc, chat,
            "{\"messages\":[" BEGUN "],\"add_generation_prompt\":false,"
            "\"continue_final_message\":\"content\"}",
            "[Hi]>Yes");
    renders((wick_api_desc){.chat_template = thinks}, chat, "{\"messages\":[" BEGUN "]}",
            "<think> \n\n</think>\n\nYes");
    renders((wick_api_desc){.chat_template = only}, chat, "{\"messages\":[" BEGUN "]}",
            "<think></think>\n\nYes");
    renders((wick_api_desc){.chat_template = "<|start|>assistant"}, chat,
            "{\"messages\":[" BEGUN "]}", "<|start|>assistant<|channel|>final<|message|>Yes");
    renders((wick_api_desc){.chat_template = "<|start|>assistant<|channel|>"}, chat,
            "{\"messages\":[" BEGUN "]}", "<|start|>assistant<|channel|>final<|message|>Yes");
    renders((wick_api_desc){.chat_template = space}, chat, "{\"messages\":[" BEGUN "]}", " \nYes");
    renders(desc, chat, "{\"messages\":[{\"role\":\"assistant\",\"content\":\"Yes\"}]}", ">Yes");
    wick_api *const api = open_api(desc);
    expect_text(answer(api, chat,
                       "{\"messages\":[" BEGUN ",{\"role\":\"assistant\",\"content\":\"No\"}]}",
                       400),
                "the last two are the assistant's");
    expect_text(answer(api, chat,
                       "{\"messages\":[" BEGUN "],\"add_generation_prompt\":true,"
                       "\"continue_final_message\":true}",
                       400),
                "exclude each other");
    wick_api_close(api);
}

/* Messages of other APIs. */
static void test_translated(void **state) {
    static const char all[] =
        "{% for m in messages %}[{{ m.role }}: {{ m.content }}"
        "{% if m.reasoning_content %}, thought {{ m.reasoning_content }}{% endif %}]{% endfor %}";
    const wick_api_desc desc = {.chat_template = all};
    (void)state;
    renders(desc, "/v1/responses", "{\"instructions\":\"Be.\",\"input\":\"Hi\"}",
            "[system: Be.][user: Hi]");
    renders(desc, "/v1/messages", "{\"system\":null," CHAT ",\"max_tokens\":5}", "[user: Hi]");
    renders(desc, "/v1/responses", "{\"instructions\":null,\"input\":\"Hi\"}", "[user: Hi]");
    renders(desc, "/v1/messages",
            "{\"max_tokens\":5,\"system\":\"Be.\",\"messages\":["
            "{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"hm\"},"
            "{\"type\":\"text\",\"text\":\"Yes\"}]},"
            "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"1\"},"
            "{\"type\":\"text\",\"text\":\"No\"}]}]}",
            "[system: Be.][assistant: Yes, thought hm][tool: ][user: No]");
    renders(desc, "/api/generate", "{\"system\":\"Be.\",\"prompt\":\"Hi\"}",
            "[system: Be.][user: Hi]");
    renders(desc, chat,
            "{\"messages\":[{\"role\":\"developer\",\"content\":[{\"type\":\"text\",\"text\":"
            "\"a\"},\"b\"]},{\"role\":\"function\",\"content\":\"c\"}]}",
            "[system: a\nb][tool: c]");
}

/* Templates show the date of the wall's clock; a day begins and ends elsewhere. */
static void test_local_date(void **state) {
    static const struct {
        int32_t offset;
        const char *date;
    } cases[] = {{0, "2026-01-01 00:30"}, {-1801, "2025-12-31 23:59"}, {49500, "2026-01-01 14:15"}};
    static const char body[] = "{" CHAT "}";
    (void)state;
    wick_api *const api = open_api(
        (wick_api_desc){.n_parallel = 1, .chat_template = "{{ strftime_now('%Y-%m-%d %H:%M') }}"});
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        const wick_request request = {.method = "POST",
                                      .path = "/apply-template",
                                      .body = body,
                                      .body_size = strlen(body),
                                      .time = 1767227400, /* 2026-01-01 00:30 in UTC */
                                      .utc_offset = cases[i].offset};
        wick_exchange *x;
        assert_int_equal(wick_exchange_open(api, &request, &x, NULL), WICK_OK);
        expect_text(finish(api, x, 200), cases[i].date);
    }
    wick_api_close(api);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variables),      cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_history),        cmocka_unit_test(test_fits),
        cmocka_unit_test(test_tools_in_words), cmocka_unit_test(test_prefill),
        cmocka_unit_test(test_translated),     cmocka_unit_test(test_local_date),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
