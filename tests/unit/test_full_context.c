/* llm/chat: what becomes of a conversation that fills its context. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "conversation.h"

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_room_at_its_boundaries), cmocka_unit_test(test_fewest_turns),
        cmocka_unit_test(test_single_message),         cmocka_unit_test(test_same_as_shorter),
        cmocka_unit_test(test_full_in_the_middle),     cmocka_unit_test(test_no_room_in_the_middle),
        cmocka_unit_test(test_limits_in_the_middle),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
