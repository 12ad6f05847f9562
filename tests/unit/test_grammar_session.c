/* Grammars in a session: each prompt's text is one of the grammar, ends, what is refused and what
 * cannot go on. On the small model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stories_session.h"

#include <math.h>
#include <string.h>

static wick_session_desc desc_of(const char *grammar, const char *schema) {
    return (wick_session_desc){
        .max_tokens = 200,
        .sampler = {.temperature = 1, .seed = 7, .grammar = grammar, .json_schema = schema}};
}

/* The text after the prompt, if one is given, up to the end; the reason is returned. */
static wick_end_reason answer(wick_session *session, const char *prompt, char *text, size_t size) {
    if (prompt) assert_int_equal(wick_session_append_text(session, prompt), WICK_OK);
    return run(session, text, size).reason;
}

static void check_word(const char *text) {
    if (strcmp(text, " yes") != 0 && strcmp(text, " no") != 0) fail_msg("'%s'", text);
}

static void test_every_prompt_gets_a_text(void **state) {
    (void)state;
    char text[1024];
    char grammar[] = "root ::= \" yes\" | \" no\"";
    const wick_session_desc desc = desc_of(grammar, NULL);
    wick_session *const session = open_session(&desc);
    memset(grammar, '?', sizeof grammar - 1); /* it was copied */
    for (int i = 0; i < 4; i++) {
        assert_int_equal(answer(session, "Is it?", text, sizeof text), WICK_END_TOKEN);
        check_word(text);
    }
    size_t n;
    const uint32_t *const tokens = wick_session_tokens(session, &n);
    assert_int_equal(wick_session_sync_tokens(session, tokens, 5), WICK_OK);
    assert_int_equal(answer(session, NULL, text, sizeof text), WICK_END_TOKEN);
    check_word(text);
    wick_session_reset(session);
    assert_int_equal(answer(session, "Or not?", text, sizeof text), WICK_END_TOKEN);
    check_word(text);
    wick_session_close(session);
}

/* White space between the parts of JSON is the model's to choose. */
static void remove_blanks(char *text) {
    char *to = text;
    for (; *text; text++)
        if (!strchr(" \n", *text)) *to++ = *text;
    *to = '\0';
}

static void test_schema(void **state) {
    (void)state;
    char text[1024];
    const wick_session_desc desc = desc_of(NULL, "{\"const\":{\"a\":[1,\"\xC3\xA9\"]}}");
    wick_session *const session = open_session(&desc);
    assert_int_equal(answer(session, "x", text, sizeof text), WICK_END_TOKEN);
    remove_blanks(text);
    assert_string_equal(text, "{\"a\":[1,\"\xC3\xA9\"]}");
    wick_session_close(session);
}

static void test_ends(void **state) {
    (void)state;
    char text[1024];
    /* No token says that the text has ended. */
    const wick_logit_bias never = {wick_token_end(wick_model_tokenizer(model)), -INFINITY};
    wick_session_desc desc = desc_of("root ::= \"abc\"", NULL);
    desc.sampler.bias = &never;
    desc.sampler.n_bias = 1;
    wick_session *session = open_session(&desc);
    assert_int_equal(answer(session, "x", text, sizeof text), WICK_END_GRAMMAR);
    assert_string_equal(text, "abc");
    wick_session_close(session);
    /* The end is ignored: nothing else comes. */
    desc = desc_of("root ::= \"abc\"", NULL);
    desc.ignore_end = true;
    desc.max_tokens = 12;
    session = open_session(&desc);
    assert_int_equal(answer(session, "x", text, sizeof text), WICK_END_MAX_TOKENS);
    assert_string_equal(text, "abc");
    wick_session_close(session);
    /* It may go on for ever. */
    desc = desc_of("root ::= \"a\" root", NULL);
    desc.sampler.temperature = 0;
    session = open_session(&desc);
    assert_int_equal(answer(session, "x", text, sizeof text), WICK_END_MAX_TOKENS);
    assert_int_equal(strspn(text, "a"), strlen(text));
    wick_session_close(session);
}

static void test_nothing_is_left(void **state) {
    (void)state;
    wick_event event = {0};
    wick_error error = {0};
    wick_status status = WICK_OK;
    const wick_session_desc desc = desc_of("root ::= \"a\" []", NULL);
    wick_session *const session = open_session(&desc);
    assert_int_equal(wick_session_append_text(session, "x"), WICK_OK);
    while (status == WICK_OK && event.kind != WICK_EVENT_END)
        status = wick_session_next(session, &event);
    assert_int_equal(status, WICK_ERR_VALUE);
    assert_int_equal(wick_session_error(session, &error), WICK_ERR_VALUE);
    assert_non_null(strstr(error.message, "the grammar leaves no token"));
    wick_session_close(session);
}

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *grammar, *schema, *said;
        wick_status status;
    } bad[] = {
        {"root ::= ", "{}", "exclude each other", WICK_ERR_VALUE},
        {"root ::= (", NULL, "line 1, column 10", WICK_ERR_FORMAT},
        {"root ::= root", NULL, "left-recursive", WICK_ERR_VALUE},
        {"root ::= <[512]>", NULL, "no such token", WICK_ERR_FORMAT},
        {NULL, "{", "JSON, byte 1", WICK_ERR_FORMAT},
        {NULL, "{\"not\":{\"const\":1}}", "'not' is not supported", WICK_ERR_UNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        wick_session *session;
        wick_error error = {0};
        const wick_session_desc desc = desc_of(bad[i].grammar, bad[i].schema);
        assert_int_equal(wick_session_open(model, &desc, &session, &error), bad[i].status);
        assert_null(session);
        if (!strstr(error.message, bad[i].said)) fail_msg("%s", error.message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_prompt_gets_a_text),
        cmocka_unit_test(test_schema),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_nothing_is_left),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests_name("grammar_session", tests, setup, teardown);
}
