/* tests/conversation.h: conversations with the small model, which has no template of its own: tests
 * give one. */
#ifndef CONVERSATION_H
#define CONVERSATION_H

#include "stories_session.h"

#include <stdbool.h>

/* "[system]Be kind.[user]Hello[assistant]" */
static const char plain[] = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
                            "{% if add_generation_prompt %}[assistant]{% endif %}";

static inline wick_chat *open_chat(const wick_chat_desc *given) {
    wick_chat *chat = NULL;
    wick_error error = {0};
    wick_chat_desc desc = *given;
    if (desc.chat_template == NULL) desc.chat_template = plain;
    if (wick_chat_open(model, &desc, &chat, &error) != WICK_OK) fail_msg("%s", error.message);
    return chat;
}

static inline wick_chat *open_short(uint32_t context, uint32_t max_tokens) {
    return open_chat(&(wick_chat_desc){
        .session = {.context_length = context, .max_tokens = max_tokens, .ignore_end = true}});
}

static uint32_t answered[2048]; /* tokens of the last answer */
static size_t n_answered;

/* To its end; text may be NULL. Messages that were left out are counted in *n_left_out. */
static inline wick_end_reason answer(wick_chat *chat, char *text, size_t capacity,
                                     uint32_t *n_left_out) {
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

static inline void send(wick_chat *chat, const char *text) {
    wick_error error = {0};
    if (wick_chat_send(chat, text) == WICK_OK) return;
    wick_chat_error(chat, &error);
    fail_msg("%s", error.message);
}

static inline size_t count(const wick_chat *chat) {
    size_t n = 0;
    const wick_json *m = wick_json_first(wick_chat_messages(chat));
    for (; m != NULL; m = wick_json_next(m)) n++;
    return n;
}

/* "role:content" of message i. */
static inline const char *message(const wick_chat *chat, size_t i) {
    static char text[2048];
    const wick_json *m = wick_json_first(wick_chat_messages(chat));
    while (i-- > 0) m = wick_json_next(m);
    snprintf(text, sizeof text, "%s:%s", wick_json_text(wick_json_get(m, "role"), NULL),
             wick_json_text(wick_json_get(m, "content"), NULL));
    return text;
}

static inline const char *prompt(const wick_chat *chat) { return wick_chat_prompt(chat, NULL); }

static inline size_t n_used(wick_chat *chat) {
    size_t n = 0;
    (void)wick_session_tokens(wick_chat_session(chat), &n);
    return n;
}

static inline size_t count_tokens(const char *text) {
    size_t n = 0;
    assert_int_equal(wick_tokenize(wick_model_tokenizer(model), text, strlen(text),
                                   WICK_TOKENIZE_ADD_BEGIN, NULL, 0, &n),
                     WICK_OK);
    return n;
}

static inline wick_json_document *parse(const char *text) {
    wick_json_document *json;
    assert_int_equal(wick_json_parse(text, strlen(text), &json, NULL), WICK_OK);
    return json;
}

#endif
