/* llm/chat and chat/messages: turns, messages, answers and refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "checked_heap.h"
#include "conversation.h"
#include "chat/messages.h"

/* ---- A conversation ---- */

static void test_turns(void **state) {
    (void)state;
    char first[256], second[256], expected[1024];
    wick_chat *const chat =
        open_chat(&(wick_chat_desc){.system = "Be kind.", .session = {.max_tokens = 8}});
    assert_null(prompt(chat));
    send(chat, "Once");
    assert_string_equal(prompt(chat), "[system]Be kind.[user]Once[assistant]");
    assert_int_equal(count(chat), 3);
    assert_int_equal(answer(chat, first, sizeof first, NULL), WICK_END_MAX_TOKENS);
    assert_true(first[0] != '\0');
    snprintf(expected, sizeof expected, "assistant:%s", first);
    assert_string_equal(message(chat, 2), expected);
    /* The end stays the end. */
    wick_event event;
    assert_int_equal(wick_chat_step(chat, &event), WICK_OK);
    assert_int_equal(event.kind, WICK_EVENT_END);
    assert_int_equal(event.reason, WICK_END_MAX_TOKENS);
    assert_string_equal(message(chat, 2), expected);

    wick_session_stats before, after;
    wick_session_get_stats(wick_chat_session(chat), &before);
    send(chat, "upon");
    snprintf(expected, sizeof expected,
             "[system]Be kind.[user]Once[assistant]%s[user]upon[assistant]", first);
    assert_string_equal(prompt(chat), expected);
    answer(chat, second, sizeof second, NULL);
    wick_session_get_stats(wick_chat_session(chat), &after);
    assert_true(after.n_reused > before.n_reused + 20); /* the first turn was not read again */
    assert_int_equal(count(chat), 5);
    /* To what came then there is no answer yet. */
    assert_int_equal(wick_chat_add(chat, "user", "a", 1), WICK_OK);
    assert_int_equal(wick_chat_step(chat, &event), WICK_OK);
    assert_int_equal(event.kind, WICK_EVENT_END);
    assert_int_equal(event.reason, WICK_END_NONE);
    wick_chat_close(chat);
}

static void test_own_messages(void **state) {
    (void)state;
    wick_chat *const chat = open_short(64, 2);
    assert_int_equal(wick_chat_send(chat, NULL), WICK_ERR_STATE);
    assert_int_equal(wick_chat_error(chat, NULL), WICK_ERR_STATE);
    assert_int_equal(wick_chat_add(chat, "user", "one\xFFtwo", 7), WICK_OK);
    assert_int_equal(wick_chat_error(chat, NULL), WICK_OK);
    assert_int_equal(wick_chat_add(chat, "tool", "42xyz", 2), WICK_OK);
    send(chat, NULL);
    assert_string_equal(prompt(chat), "[user]one\xEF\xBF\xBDtwo[tool]42[assistant]");
    answer(chat, NULL, 0, NULL);
    assert_int_equal(wick_chat_set_system(chat, "S"), WICK_OK);
    assert_string_equal(message(chat, 0), "system:S");
    assert_int_equal(wick_chat_set_system(chat, "T"), WICK_OK);
    assert_string_equal(message(chat, 0), "system:T");
    assert_int_equal(count(chat), 4);
    assert_int_equal(wick_chat_set_system(chat, ""), WICK_OK);
    assert_int_equal(count(chat), 3);
    /* The question again. */
    wick_chat_cut(chat, 2);
    send(chat, NULL);
    assert_string_equal(prompt(chat), "[user]one\xEF\xBF\xBDtwo[tool]42[assistant]");
    wick_chat_cut(chat, 0);
    assert_int_equal(count(chat), 0);
    wick_chat_cut(chat, 5);
    wick_chat_close(chat);
}

static void test_json_messages(void **state) {
    (void)state;
    static const char calls[] =
        "{% for m in messages %}[{{ m.role }}]{{ m.content or '' }}"
        "{% for c in m.tool_calls or [] %}<{{ c.name }} {{ c.n }}>{% endfor %}{% endfor %}";
    wick_chat *const chat = open_chat(&(wick_chat_desc){.chat_template = calls});
    wick_json_document *json = parse("[{\"role\":\"user\",\"content\":\"add\"},{\"role\":"
                                     "\"assistant\",\"content\":null,\"tool_calls\":[{\"name\":"
                                     "\"sum\",\"n\":7},{\"name\":\"mul\",\"n\":2}]}]");
    assert_int_equal(wick_chat_set_messages(chat, wick_json_root(json)), WICK_OK);
    wick_json_free(json); /* they are copies */
    json = parse("{\"role\":\"tool\",\"content\":\"9\"}");
    assert_int_equal(wick_chat_add_json(chat, wick_json_root(json)), WICK_OK);
    wick_json_free(json);
    send(chat, NULL);
    assert_string_equal(prompt(chat), "[user]add[assistant]<sum 7><mul 2>[tool]9");

    /* Its own messages, and what is none: all stays. */
    assert_int_equal(wick_chat_set_messages(chat, wick_chat_messages(chat)), WICK_OK);
    assert_int_equal(count(chat), 4);
    static const char *const wrong[] = {"[{\"role\":\"user\",\"content\":\"\"},{\"role\":1}]",
                                        "[7]", "{\"role\":\"user\"}", "[{}]"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        json = parse(wrong[i]);
        assert_int_equal(wick_chat_set_messages(chat, wick_json_root(json)), WICK_ERR_VALUE);
        assert_int_equal(count(chat), 4);
        wick_json_free(json);
    }
    assert_int_equal(wick_chat_set_messages(chat, NULL), WICK_ERR_VALUE);
    assert_int_equal(wick_chat_add_json(chat, NULL), WICK_ERR_VALUE);
    assert_int_equal(wick_chat_add_json(chat, wick_chat_messages(chat)), WICK_ERR_VALUE);
    assert_int_equal(count(chat), 4);
    wick_chat_close(chat);
}

static void test_variables(void **state) {
    (void)state;
    static const char shows[] = "{{ bos_token }}|{{ eos_token }}|{{ enable_thinking }}|"
                                "{{ tools[0].name }}|{{ strftime_now('%Y-%m') }}";
    wick_chat *chat = open_chat(&(wick_chat_desc){.chat_template = shows,
                                                  .tools = "[{\"name\": \"sum\"}]",
                                                  .thinking = WICK_THINKING_OFF,
                                                  .now = {2026, 11, 23, 0, 0, 0}});
    send(chat, "x");
    assert_string_equal(prompt(chat), "<s>|</s>|False|sum|2026-11");
    wick_chat_close(chat);
    chat = open_chat(
        &(wick_chat_desc){.chat_template = "{{ enable_thinking }}", .thinking = WICK_THINKING_ON});
    send(chat, "x");
    assert_string_equal(prompt(chat), "True");
    wick_chat_close(chat);
    chat = open_chat(
        &(wick_chat_desc){.chat_template = "{{ enable_thinking is defined }} {{ tools is none }}"});
    send(chat, "x");
    assert_string_equal(prompt(chat), "False True");
    wick_chat_close(chat);
}

/* ---- Answers that do not reach their end ---- */

static void test_cut_answer(void **state) {
    (void)state;
    char text[64] = "";
    wick_chat *const chat = open_short(256, 0);
    wick_event event = {0};
    send(chat, "Once upon a time");
    for (int n = 0; n < 3;) {
        assert_int_equal(wick_chat_next(chat, &event), WICK_OK);
        if (event.kind != WICK_EVENT_TOKEN) continue;
        strncat(text, event.text, event.text_size);
        n++;
    }
    assert_true(text[0] != '\0');
    send(chat, "more");
    char expected[256];
    snprintf(expected, sizeof expected, "[user]Once upon a time[assistant]%s[user]more[assistant]",
             text);
    assert_string_equal(prompt(chat), expected);
    /* In the middle of a batch, and before anything was computed. */
    assert_int_equal(wick_chat_step(chat, &event), WICK_OK);
    send(chat, "again");
    send(chat, "and again");
    assert_int_equal(count(chat), 8);
    assert_int_equal(wick_chat_add(chat, "user", "x", 1), WICK_OK);
    assert_int_equal(wick_chat_next(chat, &event), WICK_OK);
    assert_int_equal(event.kind, WICK_EVENT_END);
    assert_int_equal(event.reason, WICK_END_NONE);
    wick_chat_close(chat);
}

static void test_refusing_template(void **state) {
    (void)state;
    static const char picky[] = "{% for m in messages %}{% if m.content == 'no' %}"
                                "{{ raise_exception('I refuse') }}{% endif %}{{ m.content }}"
                                "{% endfor %}";
    wick_error error = {0};
    wick_chat *const chat =
        open_chat(&(wick_chat_desc){.chat_template = picky, .session = {.max_tokens = 2}});
    send(chat, "yes");
    answer(chat, NULL, 0, NULL);
    assert_int_equal(wick_chat_send(chat, "no"), WICK_ERR_VALUE);
    assert_int_equal(wick_chat_error(chat, &error), WICK_ERR_VALUE);
    assert_non_null(strstr(error.message, "I refuse"));
    assert_int_equal(wick_device_error(device, NULL), WICK_OK); /* the conversation's alone */
    assert_int_equal(count(chat), 2);
    send(chat, "well");
    answer(chat, NULL, 0, NULL);
    assert_int_equal(count(chat), 4);
    wick_chat_close(chat);
}

static bool count_questions(void *context) {
    int *const n = context;
    return ++*n == 3;
}

/* Who waits no longer ends a template that takes long; the conversation goes on. */
static void test_template_that_is_stopped(void **state) {
    (void)state;
    int n = 0;
    wick_error error = {0};
    wick_chat *const chat = open_chat(&(wick_chat_desc){
        .chat_template = "{% for m in messages if m.content == 'long' %}"
                         "{% for a in range(9999) %}{% for b in range(9999) %}{% set c = a %}"
                         "{% endfor %}{% endfor %}{% endfor %}Once upon",
        .session = {.max_tokens = 2},
        .stops = count_questions,
        .stop_context = &n});
    assert_int_equal(wick_chat_send(chat, "long"), WICK_ERR_CANCELLED);
    assert_int_equal(n, 3);
    assert_int_equal(wick_chat_error(chat, &error), WICK_ERR_CANCELLED);
    assert_int_not_equal(error.message[0], 0);
    assert_int_equal(count(chat), 0);
    send(chat, "short");
    assert_int_equal(answer(chat, NULL, 0, NULL), WICK_END_MAX_TOKENS);
    assert_int_equal(count(chat), 2);
    wick_chat_close(chat);
}

static void test_configure(void **state) {
    (void)state;
    wick_chat *const chat = open_short(256, 3);
    wick_error error = {0};
    wick_event event;
    send(chat, "Once upon a time");
    assert_int_equal(wick_chat_step(chat, &event), WICK_OK); /* a batch is running */
    assert_int_equal(
        wick_chat_configure(chat, &(wick_session_desc){.max_tokens = 5, .ignore_end = true}, NULL),
        WICK_OK);
    wick_session_stats before, after;
    wick_session_get_stats(wick_chat_session(chat), &before);
    send(chat, "there");
    answer(chat, NULL, 0, NULL);
    wick_session_get_stats(wick_chat_session(chat), &after);
    assert_int_equal(after.n_generated - before.n_generated, 5);
    assert_int_equal(
        wick_chat_configure(chat, &(wick_session_desc){.sampler = {.top_p = 2}}, &error),
        WICK_ERR_VALUE);
    wick_error own = {0};
    assert_int_equal(wick_chat_error(chat, &own), WICK_ERR_VALUE);
    assert_string_equal(own.message, error.message);
    send(chat, "there");
    answer(chat, NULL, 0, NULL);
    wick_session_get_stats(wick_chat_session(chat), &before);
    assert_int_equal(before.n_generated - after.n_generated, 5);
    wick_chat_close(chat);
}

/* A message that cannot grow is what it was, wherever its bytes are meanwhile. */
static void test_message_without_memory(void **state) {
    (void)state;
    for (uint64_t n = 0; n < 8; n++) { /* allocations before the one that fails */
        checked_heap checked;
        wick_error error = {0};
        char more[300];
        memset(more, 'x', sizeof more);
        more[100] = '\xFF'; /* so that it grows in pieces */
        checked_heap_init(&checked, UINT64_MAX);
        wk_chat_messages messages = wk_chat_messages_none(&checked.heap);
        assert_int_equal(wk_chat_messages_add(&messages, "user", wk_str_of("Hello"), &error),
                         WICK_OK);
        checked.n_allowed = n;
        const wick_status status =
            wk_chat_messages_grow(&messages, (wk_str){more, sizeof more}, &error);
        size_t size;
        const char *const text =
            wick_json_text(wick_json_get(messages.list.child, "content"), &size);
        assert_int_equal(size, status == WICK_OK ? 5 + sizeof more + 2 : 5);
        assert_memory_equal(text, "Hello", 5);
        assert_int_equal(text[size], 0);
        assert_int_equal(status, checked.n_refused > 0 ? WICK_ERR_OUT_OF_MEMORY : WICK_OK);
        checked.n_allowed = UINT64_MAX;
        assert_int_equal(wk_chat_messages_grow(&messages, wk_str_of("!"), &error), WICK_OK);
        wk_chat_messages_cut(&messages, 0);
        assert_true(checked_heap_is_clean(&checked));
    }
}

/* ---- Refusals ---- */

static void test_open_refuses(void **state) {
    (void)state;
    static const struct {
        wick_chat_desc desc;
        wick_status status;
        const char *word;
    } cases[] = {
        {{.system = "S"}, WICK_ERR_NOT_FOUND, "no chat template"},
        {{.chat_template = "{% if %}"}, WICK_ERR_FORMAT, "line 1"},
        {{.chat_template = plain, .tools = "["}, WICK_ERR_FORMAT, "tools: JSON"},
        {{.chat_template = plain, .tools = "{}"}, WICK_ERR_FORMAT, "array of functions"},
        {{.chat_template = plain, .tools = "[{}, 1]"}, WICK_ERR_FORMAT, "each an object"},
        {{.chat_template = plain, .thinking = (wick_thinking)3}, WICK_ERR_VALUE, "thinking"},
        {{.chat_template = plain, .session = {.logits = WICK_LOGITS_ALL}},
         WICK_ERR_VALUE,
         "logits"},
        {{.chat_template = plain, .session = {.sampler = {.top_p = 2}}}, WICK_ERR_VALUE, "top_p"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wick_error error = {0};
        wick_chat *chat = (wick_chat *)&error; /* is set to NULL */
        assert_int_equal(wick_chat_open(model, &cases[i].desc, &chat, &error), cases[i].status);
        assert_null(chat);
        if (strstr(error.message, cases[i].word) == NULL) fail_msg("%s", error.message);
    }
    wick_chat *chat;
    assert_int_equal(wick_chat_open(NULL, NULL, &chat, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_chat_open(model, NULL, NULL, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_chat_open(model, NULL, &chat, NULL), WICK_ERR_NOT_FOUND);
}

static void test_null(void **state) {
    (void)state;
    wick_event event;
    size_t size = 1;
    wick_chat_close(NULL);
    wick_chat_cut(NULL, 0);
    assert_int_equal(wick_chat_send(NULL, "x"), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_chat_step(NULL, &event), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_chat_next(NULL, &event), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_chat_add(NULL, "user", "", 0), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_chat_add_json(NULL, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_chat_set_messages(NULL, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_chat_set_system(NULL, "x"), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_chat_configure(NULL, NULL, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_chat_error(NULL, NULL), WICK_ERR_ARGUMENT);
    assert_null(wick_chat_messages(NULL));
    assert_null(wick_chat_session(NULL));
    assert_null(wick_chat_prompt(NULL, &size));
    assert_int_equal(size, 0);
    wick_chat *const chat = open_short(64, 1);
    assert_int_equal(wick_chat_step(chat, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_chat_next(chat, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_chat_add(chat, NULL, "", 0), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_chat_add(chat, "user", NULL, 1), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_chat_add(chat, "user", NULL, 0), WICK_OK);
    assert_string_equal(message(chat, 0), "user:");
    wick_chat_close(chat);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_template_that_is_stopped),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_own_messages),
        cmocka_unit_test(test_json_messages),
        cmocka_unit_test(test_variables),
        cmocka_unit_test(test_cut_answer),
        cmocka_unit_test(test_refusing_template),
        cmocka_unit_test(test_configure),
        cmocka_unit_test(test_message_without_memory),
        cmocka_unit_test(test_open_refuses),
        cmocka_unit_test(test_null),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
