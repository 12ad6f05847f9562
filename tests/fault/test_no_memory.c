/* Memory that runs out in what is made beside a model: saved sessions, grammars, schemas,
 * templates, embedders, conversations, balancers, requests (no_memory.h). */
#include "no_memory.h"

/* --- Sessions --- */

static wick_session *saved; /* in the middle of a text */

static wick_status save_and_load(outcome *out, wick_error *error) {
    wick_session *loaded = NULL;
    wick_status status = wick_session_save(saved, out_path, error);
    if (status == WICK_OK) status = wick_session_open(model, &greedy, &loaded, error);
    if (status == WICK_OK) status = wick_session_load(loaded, out_path, error);
    if (status == WICK_OK) status = note_text(loaded, out, error);
    wick_session_close(loaded);
    (void)unlink(out_path);
    return status;
}

static wick_status generate(const wick_sampler_desc *sampler, outcome *out, wick_error *error) {
    const wick_session_desc desc = {.context_length = 64, .max_tokens = 8, .sampler = *sampler};
    wick_session *session = NULL;
    wick_status status = wick_session_open(model, &desc, &session, error);
    if (status == WICK_OK) status = keep(session, wick_session_append_text(session, "Once"), error);
    if (status == WICK_OK) status = note_text(session, out, error);
    wick_session_close(session);
    return status;
}

static wick_status follow_grammar(outcome *out, wick_error *error) {
    const wick_sampler_desc sampler = {
        .grammar =
            "root ::= name (\", \" name){1,3} \".\"\nname ::= [A-Z] [a-z]+ | \"no\" \" \" name"};
    return generate(&sampler, out, error);
}

static wick_status follow_schema(outcome *out, wick_error *error) {
    const wick_sampler_desc sampler = {
        .json_schema =
            "{\"type\": \"object\", \"required\": [\"a\"], \"properties\": {\"a\": {\"$ref\": "
            "\"#/$defs/n\"}, \"b\": {\"enum\": [\"x\", 1.5, null]}, \"c\": {\"type\": \"array\", "
            "\"items\": {\"type\": \"string\", \"pattern\": \"^[a-c]{2,5}$\"}, \"maxItems\": 3}}, "
            "\"$defs\": {\"n\": {\"type\": \"integer\", \"minimum\": 10, \"maximum\": 2345}}}"};
    return generate(&sampler, out, error);
}

static wick_status balance(outcome *out, wick_error *error) {
    wick_balancer *balancer = NULL;
    wick_session *session = NULL;
    wick_status status = wick_balancer_make(&model, 1, NULL, &balancer, error);
    if (status == WICK_OK) status = wick_balancer_open_session(balancer, &greedy, &session, error);
    if (status == WICK_OK) status = keep(session, wick_session_append_text(session, "Once"), error);
    if (status == WICK_OK) status = note_text(session, out, error);
    wick_session_close(session);
    wick_balancer_free(balancer);
    return status;
}

/* --- Texts --- */

static wick_status render(outcome *out, wick_error *error) {
    static const char text[] =
        "{%- macro show(m) %}<|{{ m.role | upper }}|>{{ m['content'] | trim }}{% endmacro %}"
        "{% set seen = namespace(n=0) %}{% for m in messages if m.content is string %}"
        "{{ show(m) ~ loop.index }}{% set seen.n = seen.n + 1 %}{% endfor %}"
        "{{ {'a': [1, 2.5], 'b': 'c' * 3} | tojson }}{{ messages | map(attribute='role') | "
        "join(',')"
        " }}{{ '%s-%d' | format('x', seen.n) }}{{ 'a,b'.split(',')[1:] }}";
    static const char chat[] = "[{\"role\": \"user\", \"content\": \" Hello <s> \"}, {\"role\": "
                               "\"assistant\", \"content\": \"Hi\"}]";
    wick_template *parsed = NULL;
    wick_json_document *messages = NULL;
    wick_prompt *prompt = NULL;
    uint32_t ids[256];
    size_t n = 0;
    wick_status status = wick_template_parse(text, sizeof text - 1, &parsed, error);
    if (status == WICK_OK) status = wick_json_parse(chat, sizeof chat - 1, &messages, error);
    const wick_conversation conversation = {.messages = wick_json_root(messages)};
    if (status == WICK_OK) status = wick_template_render(parsed, &conversation, &prompt, error);
    if (status == WICK_OK) {
        note(out, wick_prompt_text(prompt, &n), n);
        status = wick_prompt_tokenize(prompt, wick_model_tokenizer(model), ids, 256, &n);
        if (status == WICK_OK)
            note(out, ids, n * sizeof *ids);
        else
            *error = (wick_error){.status = status, .message = "tokenize has none"};
    }
    wick_prompt_free(prompt);
    wick_json_free(messages);
    wick_template_free(parsed);
    return status;
}

static wick_status embed_as(wick_pooling pooling, outcome *out, wick_error *error) {
    const wick_embedder_desc desc = {.max_tokens = 32, .pooling = pooling};
    wick_embedder *embedder = NULL;
    wick_status status = wick_embedder_open(model, &desc, &embedder, error);
    const bool is_open = status == WICK_OK;
    if (is_open) status = wick_embedder_start(embedder, "a little girl", 13);
    if (status == WICK_OK)
        while ((status = wick_embedder_poll(embedder)) == WICK_PENDING) continue;
    if (is_open && status != WICK_OK) (void)wick_embedder_error(embedder, error);
    size_t n_rows = 0;
    const float *const rows = wick_embedder_result(embedder, &n_rows);
    if (status == WICK_OK) note(out, rows, n_rows * 64 * sizeof *rows);
    wick_embedder_close(embedder);
    return status;
}

static wick_status embed(outcome *out, wick_error *error) {
    const wick_status status = embed_as(WICK_POOLING_NONE, out, error);
    return status == WICK_OK ? embed_as(WICK_POOLING_MEAN, out, error) : status;
}

/* --- Devices --- */

static wick_status use_null_device(outcome *out, wick_error *error) {
    const wick_device_desc desc = {.backend = WICK_BACKEND_NULL,
                                   .n_threads = 1,
                                   .null_flags = WICK_NULL_LATE | WICK_NULL_NO_FUSED};
    static const float numbers[] = {3, 1, 2, 5, 4, 6};
    wick_device *null = NULL;
    float got[6];
    wick_status status = wick_device_open(&desc, &null, error);
    if (status != WICK_OK) return status;
    const wick_scope scope = wick_scope_begin(null);
    wick_tensor *const a =
        wick_tensor_from_data(null, WICK_F32, WICK_SHAPE(2, 3), numbers, sizeof numbers);
    wick_tensor *const b = wick_rms_norm(wick_transpose(wick_mul(a, a), 0, 1), NULL, 1e-5F);
    status = wick_read(wick_softmax(b, -1), got, sizeof got);
    if (status == WICK_OK)
        note(out, got, sizeof got);
    else
        status = wick_device_error(null, error);
    wick_scope_end(scope);
    wick_device_close(null);
    return status;
}

/* --- Conversations --- */

static size_t count_messages(const wick_chat *chat) {
    size_t n = 0;
    const wick_json *m = wick_json_first(wick_chat_messages(chat));
    for (; m != NULL; m = wick_json_next(m)) n++;
    return n;
}

/* A failure leaves the messages as they were; an answer that cannot go on beyond the context stays,
 * and is taken back here. */
static wick_status ask(wick_chat *chat, const char *text, outcome *out) {
    const size_t n = count_messages(chat), size = out->size;
    wick_event event = {0};
    wick_status status = wick_chat_send(chat, text);
    while (status == WICK_OK && event.kind != WICK_EVENT_END) {
        status = wick_chat_next(chat, &event);
        if (event.kind == WICK_EVENT_LEFT_OUT) note(out, &event.total, sizeof event.total);
        note(out, event.text, event.text_size);
    }
    if (status == WICK_OK) return WICK_OK;
    const bool is_cut = text == NULL && count_messages(chat) == n + 1;
    if (is_cut) {
        wick_event end;
        assert_int_equal(wick_chat_step(chat, &end), WICK_OK);
        assert_int_equal(end.reason, WICK_END_CONTEXT_FULL);
        wick_chat_cut(chat, n);
    }
    assert_int_equal(count_messages(chat), n);
    out->size = size;
    return status;
}

/* Whatever fails does when it is done again, if memory is there again. */
static wick_status talk(wick_chat *chat, outcome *out) {
    wick_status status = ask(chat, "Once upon a time there was a cat", out);
    if (status != WICK_OK) status = ask(chat, "Once upon a time there was a cat", out);
    if (status == WICK_OK && wick_chat_set_system(chat, "Be kind.") != WICK_OK)
        status = wick_chat_set_system(chat, "Be kind.");
    if (status == WICK_OK && wick_chat_set_messages(chat, wick_chat_messages(chat)) != WICK_OK)
        status = wick_chat_set_messages(chat, wick_chat_messages(chat));
    if (status == WICK_OK && wick_chat_add(chat, "user", "Two", 3) != WICK_OK)
        status = wick_chat_add(chat, "user", "Two", 3);
    /* Its answer fills the context: the first turn goes in the middle. */
    if (status == WICK_OK && ask(chat, NULL, out) != WICK_OK) status = ask(chat, NULL, out);
    if (status == WICK_OK)
        assert_string_equal(wick_chat_prompt(chat, NULL), "[system]Be kind.[user]Two");
    return status;
}

static wick_status converse(outcome *out, wick_error *error) {
    wick_chat *chat = NULL;
    const wick_chat_desc desc = {
        .session = {.context_length = 64, .max_tokens = 12, .ignore_end = true},
        .system = "Be brief.",
        .tools = "[{\"name\": \"sum\"}]",
        .thinking = WICK_THINKING_OFF,
        .chat_template = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"};
    wick_status status = wick_chat_open(model, &desc, &chat, error);
    if (status == WICK_OK) {
        status = talk(chat, out);
        if (wick_chat_error(chat, error) != status) fail_msg("another error than the last one");
    }
    wick_chat_close(chat);
    return status;
}

/* --- Tests --- */

static void test_sessions(void **state) {
    (void)state;
    wick_event event;
    static outcome rest;
    assert_int_equal(wick_session_open(model, &greedy, &saved, NULL), WICK_OK);
    assert_int_equal(wick_session_append_text(saved, "Once upon"), WICK_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(wick_session_next(saved, &event), WICK_OK);
    fail_everywhere(save_and_load, 10);
    assert_int_equal(note_text(saved, &rest, NULL), WICK_OK); /* it is as before */
    assert_true(rest.size > 0);
    wick_session_close(saved);
}

TEST(test_grammar, follow_grammar, 20)
TEST(test_schema, follow_schema, 20)
TEST(test_balancer, balance, 10)
TEST(test_template, render, 5)
TEST(test_embedder, embed, 20)
TEST(test_null_device, use_null_device, 10)
TEST(test_conversation, converse, 40)

/* Of requests, the one that fails is answered by status 503 or by an event; the others are whole.
 */
static wick_status answer_one(wick_api *api, const char *path, const char *body, outcome *out,
                              wick_error *error) {
    const wick_request request = {
        .method = "POST", .path = path, .body = body, .body_size = strlen(body)};
    wick_exchange *exchange = NULL;
    wick_status status = wick_exchange_open(api, &request, &exchange, error);
    if (status != WICK_OK) return status;
    while (!wick_exchange_is_over(exchange)) (void)wick_api_step(api);
    size_t size;
    const char *const bytes = wick_exchange_take(exchange, &size);
    const bool is_refused = wick_exchange_status(exchange) == 503;
    const bool is_cut =
        size > 0 && (strstr(bytes, "\"error\":{") || strstr(bytes, "\"type\":\"error\""));
    if (!is_refused && !is_cut) assert_int_equal(wick_exchange_status(exchange), 200);
    if (is_refused || is_cut || size == 0) { /* 0: not even for that */
        status = WICK_ERR_OUT_OF_MEMORY;
        *error = (wick_error){.status = status};
        snprintf(error->message, sizeof error->message, "%s: %.200s", path, bytes ? bytes : "");
    } else {
        /* Where memory is short, less of a prompt is found in the cache. */
        const char *const usage = strstr(bytes, "\"usage\"");
        note(out, bytes, usage ? (size_t)(usage - bytes) : size);
    }
    wick_exchange_close(exchange);
    return status;
}

static wick_status answer_requests(outcome *out, wick_error *error) {
    static const struct {
        const char *path, *body;
    } asked[] = {
        {"/v1/chat/completions",
         "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Hi\"}]}],"
         "\"stream\":true,\"temperature\":0,\"max_tokens\":2,\"logprobs\":true,\"stop\":[\"x\"]}"},
        {"/v1/messages",
         "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"max_tokens\":40,"
         "\"temperature\":0,\"tool_choice\":{\"type\":\"any\"},\"tools\":[{\"name\":"
         "\"f\",\"input_schema\":{\"type\":\"object\",\"properties\":{},"
         "\"additionalProperties\":false}}]}"},
        {"/v1/responses", "{\"input\":\"Hi\",\"stream\":true,\"temperature\":0,"
                          "\"max_output_tokens\":2}"},
        {"/v1/completions", "{\"prompt\":[\"a\",[5,6]],\"echo\":true,\"temperature\":0,"
                            "\"max_tokens\":2}"},
        {"/v1/embeddings", "{\"input\":\"a\",\"dimensions\":2}"},
        {"/detokenize", "{\"tokens\":[300,301]}"},
    };
    const wick_api_desc desc = {.name = "m", .session = {.context_length = 512}};
    wick_api *api = NULL;
    wick_status status = wick_api_open(model, &desc, &api, error);
    for (size_t i = 0; i < sizeof asked / sizeof *asked && status == WICK_OK; i++)
        status = answer_one(api, asked[i].path, asked[i].body, out, error);
    wick_api_close(api);
    return status;
}

/* Thousands of allocations. */
static void test_api(void **state) {
    (void)state;
    fail_at_each(answer_requests, tests_all() ? 7 : 23 * failing_step(), 500);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sessions),    cmocka_unit_test(test_grammar),
        cmocka_unit_test(test_schema),      cmocka_unit_test(test_balancer),
        cmocka_unit_test(test_template),    cmocka_unit_test(test_embedder),
        cmocka_unit_test(test_null_device), cmocka_unit_test(test_conversation),
        cmocka_unit_test(test_api),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
