/* llm/chat and llm/chat_messages: conversations with the small model, which has no template of its
 * own: the test gives one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "checked_heap.h"
#include "llm/chat_messages.h"
#include "stories_session.h"

#include <stdbool.h>
#include <string.h>

/* "[system]Be kind.[user]Hello[assistant]" */
static const char plain[] = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
                            "{% if add_generation_prompt %}[assistant]{% endif %}";

static wick_chat *open_chat(const wick_chat_desc *given) {
    wick_chat *chat = NULL;
    wick_error error = {0};
    wick_chat_desc desc = *given;
    if (desc.chat_template == NULL) desc.chat_template = plain;
    if (wick_chat_open(model, &desc, &chat, &error) != WICK_OK) fail_msg("%s", error.message);
    return chat;
}

static wick_chat *open_short(uint32_t context, uint32_t max_tokens) {
    return open_chat(&(wick_chat_desc){
        .session = {.context_length = context, .max_tokens = max_tokens, .ignore_end = true}});
}

static uint32_t answered[2048]; /* tokens of the last answer */
static size_t n_answered;

/* To its end; text may be NULL. Messages that were left out are counted in *n_left_out. */
static wick_end_reason answer(wick_chat *chat, char *text, size_t capacity, uint32_t *n_left_out) {
    wick_event event = {0};
    size_t size = 0;
    n_answered = 0;
    if (n_left_out != NULL) *n_left_out = 0;
    while (event.kind != WICK_EVENT_END) {
        assert_int_equal(wick_chat_next(chat, &event), WICK_OK);
        if (event.kind == WICK_EVENT_LEFT_OUT && n_left_out != NULL) *n_left_out += event.done;
        if (event.kind == WICK_EVENT_TOKEN) answered[n_answered++] = event.token;
        if (text == NULL) continue;
        assert_true(size + event.text_size < capacity);
        memcpy(text + size, event.text, event.text_size);
        size += event.text_size;
    }
    if (text != NULL) text[size] = '\0';
    return event.reason;
}

static void send(wick_chat *chat, const char *text) {
    wick_error error = {0};
    if (wick_chat_send(chat, text) == WICK_OK) return;
    wick_chat_error(chat, &error);
    fail_msg("%s", error.message);
}

static size_t count(const wick_chat *chat) {
    size_t n = 0;
    const wick_json *m = wick_json_first(wick_chat_messages(chat));
    for (; m != NULL; m = wick_json_next(m)) n++;
    return n;
}

/* "role:content" of message i. */
static const char *message(const wick_chat *chat, size_t i) {
    static char text[2048];
    const wick_json *m = wick_json_first(wick_chat_messages(chat));
    while (i-- > 0) m = wick_json_next(m);
    snprintf(text, sizeof text, "%s:%s", wick_json_text(wick_json_get(m, "role"), NULL),
             wick_json_text(wick_json_get(m, "content"), NULL));
    return text;
}

static const char *prompt(const wick_chat *chat) { return wick_chat_prompt(chat, NULL); }

static size_t n_used(wick_chat *chat) {
    size_t n = 0;
    (void)wick_session_tokens(wick_chat_session(chat), &n);
    return n;
}

static size_t count_tokens(const char *text) {
    size_t n = 0;
    assert_int_equal(wick_tokenize(wick_model_tokenizer(model), text, strlen(text),
                                   WICK_TOKENIZE_ADD_BEGIN, NULL, 0, &n),
                     WICK_OK);
    return n;
}

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

static wick_json_document *parse(const char *text) {
    wick_json_document *json;
    assert_int_equal(wick_json_parse(text, strlen(text), &json, NULL), WICK_OK);
    return json;
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

/* ---- A full context ---- */

/* Two turns, the second of which is asked with a context of n tokens: how many messages are left
 * out; the prompt's tokens. */
static uint32_t left_out_at(uint32_t context, uint32_t max_tokens, size_t *n_prompt) {
    uint32_t n_left_out = 0;
    wick_chat *const chat = open_chat(&(wick_chat_desc){
        .system = "S", .session = {.context_length = context, .max_tokens = max_tokens}});
    assert_int_equal(wick_chat_add(chat, "user", "Once upon a time", 16), WICK_OK);
    assert_int_equal(wick_chat_add(chat, "assistant", "there was", 9), WICK_OK);
    send(chat, "a cat");
    *n_prompt = n_used(chat);
    wick_event event = {0};
    assert_int_equal(wick_chat_next(chat, &event), WICK_OK);
    if (event.kind == WICK_EVENT_LEFT_OUT) {
        n_left_out = event.done;
        assert_int_equal(event.total, event.done);
        assert_string_equal(prompt(chat), "[system]S[user]a cat[assistant]");
    } else {
        assert_non_null(strstr(prompt(chat), "[user]Once upon a time[assistant]there was"));
    }
    assert_int_equal(count(chat), 5); /* the list keeps them */
    wick_chat_close(chat);
    return n_left_out;
}

static void test_room_at_its_boundaries(void **state) {
    (void)state;
    size_t n, now;
    assert_int_equal(left_out_at(1024, 4, &n), 0);
    /* max_tokens is the room that is wanted ... */
    assert_int_equal(left_out_at((uint32_t)n + 5, 4, &now), 0);
    assert_int_equal(left_out_at((uint32_t)n + 4, 4, &now), 0);
    assert_int_equal(now, n);
    assert_int_equal(left_out_at((uint32_t)n + 3, 4, &now), 2);
    assert_true(now < n);
    /* ... up to a quarter of the context. */
    uint32_t context = (uint32_t)n;
    while (context - context / 4 < n) context++;
    assert_int_equal(left_out_at(context + 1, 0, &now), 0);
    assert_int_equal(left_out_at(context, 0, &now), 0);
    assert_int_equal(left_out_at(context - 1, 0, &now), 2);
    assert_int_equal(left_out_at(context - 1, 1000, &now), 2);
}

/* A conversation of n_turns with all but the first `skipped` of them, the last one just asked. */
static wick_chat *open_turns(uint32_t context, int n_turns, int skipped) {
    wick_chat *const chat = open_chat(
        &(wick_chat_desc){.system = "S", .session = {.context_length = context, .max_tokens = 4}});
    for (int i = skipped; i < n_turns; i++) {
        const char text[] = {"abcdefghij"[i], ' ', 'i', 's', '\0'};
        if (i + 1 == n_turns) {
            send(chat, text);
            break;
        }
        assert_int_equal(wick_chat_add(chat, "user", text, 4), WICK_OK);
        assert_int_equal(wick_chat_add(chat, "assistant", "Once upon", (size_t)i % 3 * 3), WICK_OK);
    }
    return chat;
}

/* With every context length, as few turns are dropped as possible. */
static void test_fewest_turns(void **state) {
    (void)state;
    enum { TURNS = 7, ROOM = 4 };
    size_t n[TURNS];
    for (int skipped = 0; skipped < TURNS; skipped++) {
        wick_chat *const chat = open_turns(1024, TURNS, skipped);
        n[skipped] = n_used(chat);
        wick_chat_close(chat);
    }
    for (size_t context = n[TURNS - 1] + ROOM; context < n[0] + ROOM + 2; context++) {
        uint32_t expected = 0;
        while (n[expected] + ROOM > context) expected++;
        wick_chat *const chat = open_turns((uint32_t)context, TURNS, 0);
        assert_int_equal(n_used(chat), n[expected]);
        wick_event event;
        assert_int_equal(wick_chat_next(chat, &event), WICK_OK);
        assert_int_equal(event.kind == WICK_EVENT_LEFT_OUT ? event.done : 0, 2 * expected);
        wick_chat_close(chat);
    }
}

/* A message that does not fit is refused, and the conversation goes on. */
static void test_single_message(void **state) {
    (void)state;
    wick_chat *chat = open_short(1024, 0);
    send(chat, "Once upon a time there was a little cat");
    const uint32_t n = (uint32_t)n_used(chat);
    wick_chat_close(chat);
    for (uint32_t context = n - 1; context <= n + 1; context++) {
        wick_error error = {0};
        char sentence[64];
        chat = open_short(context, 0);
        send(chat, "Hi");
        answer(chat, NULL, 0, NULL);
        const wick_status status = wick_chat_send(chat, "Once upon a time there was a little cat");
        if (context == n + 1) {
            assert_int_equal(status, WICK_OK);
            assert_int_equal(answer(chat, NULL, 0, NULL), WICK_END_CONTEXT_FULL);
            wick_chat_close(chat);
            continue;
        }
        assert_int_equal(status, WICK_ERR_STATE);
        wick_chat_error(chat, &error);
        snprintf(sentence, sizeof sentence, "takes %u tokens", n);
        assert_non_null(strstr(error.message, sentence));
        snprintf(sentence, sizeof sentence, "holds %u,", context);
        assert_non_null(strstr(error.message, sentence));
        assert_int_equal(count(chat), 2);
        send(chat, "Ho");
        answer(chat, NULL, 0, NULL);
        assert_int_equal(count(chat), 4);
        wick_chat_close(chat);
    }
}

/* What the model says depends on what it sees alone. */
static void test_same_as_shorter(void **state) {
    (void)state;
    char text[512], expected[512];
    uint32_t n_left_out;
    wick_chat *const chat = open_short(96, 16), *const other = open_short(96, 16);
    for (int i = 0; i < 6; i++) {
        send(chat, "Once upon a time there was a cat");
        answer(chat, text, sizeof text, &n_left_out);
    }
    assert_true(n_left_out > 0);
    assert_int_equal(count(chat), 12);
    const char *const seen = prompt(chat);
    size_t n_turns = 0;
    for (const char *at = seen; (at = strstr(at, "[user]")) != NULL; at++) n_turns++;
    assert_in_range(n_turns, 1, 5);
    const wick_json *m = wick_json_first(wick_chat_messages(chat));
    for (size_t i = 0; i < 11; i++, m = wick_json_next(m)) {
        size_t size;
        const char *const content = wick_json_text(wick_json_get(m, "content"), &size);
        const char *const role = wick_json_text(wick_json_get(m, "role"), NULL);
        if (i >= 12 - 2 * n_turns)
            assert_int_equal(wick_chat_add(other, role, content, size), WICK_OK);
    }
    send(other, NULL);
    assert_string_equal(prompt(other), seen);
    answer(other, expected, sizeof expected, NULL);
    assert_string_equal(text, expected);
    wick_chat_close(other);
    /* Other messages are seen again. */
    wick_json_document *const json = parse("[{\"role\":\"user\",\"content\":\"Hi\"}]");
    assert_int_equal(wick_chat_set_messages(chat, wick_json_root(json)), WICK_OK);
    send(chat, NULL);
    assert_string_equal(prompt(chat), "[user]Hi[assistant]");
    for (int i = 0; i < 6; i++) {
        send(chat, "Once upon a time there was a cat");
        answer(chat, NULL, 0, &n_left_out);
    }
    assert_true(n_left_out > 0);
    wick_chat_cut(chat, 2);
    send(chat, "Ho");
    assert_non_null(strstr(prompt(chat), "[user]Hi[assistant]"));
    wick_json_free(json);
    wick_chat_close(chat);
}

/* The tokens [first, n) of the answer are what the model says after the shorter prompt and the
 * answer so far: nothing of the longer prompt is left in the cache. */
static void check_continuation(size_t first, size_t n) {
    wick_session *const session =
        open_session(&(wick_session_desc){.context_length = 64, .ignore_end = true});
    wick_event event = {0};
    assert_true(first < n);
    assert_int_equal(wick_session_append_text(session, "[user]Hi[assistant]"), WICK_OK);
    assert_int_equal(wick_session_append_tokens(session, answered, first), WICK_OK);
    for (size_t i = first; i < n;) {
        assert_int_equal(wick_session_next(session, &event), WICK_OK);
        if (event.kind == WICK_EVENT_TOKEN) assert_int_equal(event.token, answered[i++]);
    }
    wick_session_close(session);
}

/* An answer that fills the context goes on when older turns can go, and ends when none is left. */
static void test_full_in_the_middle(void **state) {
    (void)state;
    char text[2048], content[2100];
    uint32_t n_left_out;
    wick_chat *const chat = open_short(64, 0);
    assert_int_equal(wick_chat_add(chat, "user", "Ho", 2), WICK_OK);
    assert_int_equal(wick_chat_add(chat, "assistant", "Hi", 2), WICK_OK);
    send(chat, "Hi");
    const size_t n_prompt = n_used(chat);
    assert_true(n_prompt < 48);
    wick_session_stats stats;
    assert_int_equal(answer(chat, text, sizeof text, &n_left_out), WICK_END_CONTEXT_FULL);
    assert_int_equal(n_left_out, 2);
    assert_int_equal(n_used(chat), 64);
    /* The model has gone on from what it had said. */
    const size_t n_kept = 64 - count_tokens("[user]Hi[assistant]");
    assert_int_equal(n_answered, n_kept);
    assert_memory_equal(wick_session_tokens(wick_chat_session(chat), NULL) + 64 - n_kept, answered,
                        n_kept * sizeof *answered);
    wick_session_get_stats(wick_chat_session(chat), &stats);
    assert_true(stats.n_generated > 64 - n_prompt); /* longer than there was room at first */
    assert_string_equal(prompt(chat), "[user]Hi[assistant]");
    snprintf(content, sizeof content, "assistant:%s", text);
    assert_string_equal(message(chat, 3), content);
    check_continuation(64 - n_prompt, n_kept);
    wick_chat_close(chat);
}

/* The same where the template refuses the shorter conversation: the answer stays, and ends. */
static void test_no_room_in_the_middle(void **state) {
    (void)state;
    char text[2048] = "", content[2100];
    wick_event event = {0};
    wick_error error = {0};
    wick_status status = WICK_OK;
    wick_chat *const chat = open_chat(&(wick_chat_desc){
        .session = {.context_length = 64, .ignore_end = true},
        .chat_template = "{% if messages|length < 3 %}{{ raise_exception('too few') }}{% endif %}"
                         "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"});
    assert_int_equal(wick_chat_add(chat, "user", "Hi", 2), WICK_OK);
    assert_int_equal(wick_chat_add(chat, "assistant", "Ho", 2), WICK_OK);
    send(chat, "Hi");
    for (size_t size = 0; status == WICK_OK && event.kind != WICK_EVENT_END;) {
        status = wick_chat_next(chat, &event);
        assert_true(size + event.text_size < sizeof text);
        memcpy(text + size, event.text, event.text_size);
        size += event.text_size;
    }
    assert_int_equal(status, WICK_ERR_VALUE);
    assert_int_equal(wick_chat_error(chat, &error), WICK_ERR_VALUE);
    assert_non_null(strstr(error.message, "the answer has filled the context"));
    assert_non_null(strstr(error.message, "too few"));
    assert_true(strlen(text) > 20);
    assert_int_equal(count(chat), 4);
    snprintf(content, sizeof content, "assistant:%s", text);
    assert_string_equal(message(chat, 3), content);
    assert_int_equal(wick_chat_next(chat, &event), WICK_OK);
    assert_int_equal(event.kind, WICK_EVENT_END);
    assert_int_equal(event.reason, WICK_END_CONTEXT_FULL);
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

/* What grammar and limits have seen of an answer is not forgotten meanwhile. */
static void test_limits_in_the_middle(void **state) {
    (void)state;
    enum { CONTEXT = 64, MOST = 30 };
    char text[2048];
    uint32_t n_left_out;
    wick_chat *const chat = open_chat(
        &(wick_chat_desc){.session = {.context_length = CONTEXT,
                                      .max_tokens = MOST,
                                      .sampler = {.grammar = "root ::= \"Once upon \" [A-Z]+"}}});
    assert_int_equal(wick_chat_add(chat, "user", "Hi", 2), WICK_OK);
    assert_int_equal(wick_chat_add(chat, "assistant", "Ho, ho", 6), WICK_OK);
    send(chat, "Hi");
    assert_in_range(n_used(chat), CONTEXT - MOST + 1, CONTEXT - CONTEXT / 4);
    assert_int_equal(answer(chat, text, sizeof text, &n_left_out), WICK_END_MAX_TOKENS);
    assert_int_equal(n_left_out, 2);
    wick_session_stats stats;
    wick_session_get_stats(wick_chat_session(chat), &stats);
    assert_int_equal(stats.n_generated, MOST);
    assert_int_equal(strncmp(text, "Once upon ", 10), 0);
    assert_int_equal(strspn(text + 10, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"), strlen(text) - 10);
    wick_chat_close(chat);
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
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_own_messages),
        cmocka_unit_test(test_json_messages),
        cmocka_unit_test(test_variables),
        cmocka_unit_test(test_cut_answer),
        cmocka_unit_test(test_refusing_template),
        cmocka_unit_test(test_configure),
        cmocka_unit_test(test_room_at_its_boundaries),
        cmocka_unit_test(test_fewest_turns),
        cmocka_unit_test(test_single_message),
        cmocka_unit_test(test_same_as_shorter),
        cmocka_unit_test(test_full_in_the_middle),
        cmocka_unit_test(test_no_room_in_the_middle),
        cmocka_unit_test(test_message_without_memory),
        cmocka_unit_test(test_limits_in_the_middle),
        cmocka_unit_test(test_open_refuses),
        cmocka_unit_test(test_null),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
