/* What the answers of each API are made of. A grammar of the API makes the model say what a test is
 * about. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "api_requests.h"

/* ---- Answers ---- */

/* The model says this and nothing else. */
static wick_api *open_saying(const char *literal, wick_reasoning_place place) {
    static char grammar[512];
    snprintf(grammar, sizeof grammar, "root ::= \"%s\"", literal);
    return open_api((wick_api_desc){
        .n_parallel = 1,
        .reasoning = place,
        .session = {.sampler = {.grammar = grammar}},
    });
}

/* parts, in this order, one after the other. */
static void says(const char *literal, wick_reasoning_place place, const char *path,
                 const char *body, const char *const *parts) {
    wick_api *const api = open_saying(literal, place);
    const char *at = answer(api, path, body, 200);
    for (; *parts; parts++) {
        const char *const found = strstr(at, *parts);
        if (!found) fail_msg("'%s' is not in '%s'", *parts, at);
        at = found + strlen(*parts);
    }
    wick_api_close(api);
}

#define SAYS(literal, place, path, body, ...)                                                      \
    says(literal, place, path, body, (const char *const[]){__VA_ARGS__, NULL})

static void test_thinking(void **state) {
    static const char said[] = "<think>hm</think>Yes";
    static const char whole[] = "{" CHAT ",\"max_tokens\":99}";
    static const char stream[] = "{" CHAT ",\"max_tokens\":99,\"stream\":true}";
    (void)state;
    SAYS(said, WICK_REASONING_APART, chat, whole, "\"content\":\"Yes\"",
         "\"reasoning_content\":\"hm\"");
    SAYS(said, WICK_REASONING_IN_CONTENT, chat, whole, "\"content\":\"<think>hm</think>Yes\"");
    SAYS(said, WICK_REASONING_APART, chat, "{" CHAT ",\"reasoning_format\":\"none\"}",
         "\"content\":\"<think>hm</think>Yes\"");
    SAYS(said, WICK_REASONING_IN_CONTENT, chat, "{" CHAT ",\"reasoning_format\":\"auto\"}",
         "\"content\":\"Yes\"", "\"reasoning_content\":\"hm\"");
    SAYS(said, WICK_REASONING_APART, "/v1/messages", whole,
         "{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"\"}",
         "{\"type\":\"text\",\"text\":\"Yes\"}", "\"stop_reason\":\"end_turn\"");
    SAYS(said, WICK_REASONING_APART, "/v1/messages", stream, "\"content_block_start\",\"index\":0",
         "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}", "\"thinking_delta\"",
         "\"content_block_stop\",\"index\":0", "\"content_block_start\",\"index\":1",
         "{\"type\":\"text\",\"text\":\"\"}", "\"text_delta\"",
         "\"content_block_stop\",\"index\":1", "\"message_stop\"");
    SAYS(said, WICK_REASONING_APART, "/api/chat", "{" CHAT ",\"stream\":false}",
         "\"content\":\"Yes\",\"thinking\":\"hm\"", "\"done_reason\":\"stop\"");
}

static void test_calls(void **state) {
    static const char said[] =
        "<tool_call>{\\\"name\\\": \\\"f\\\", \\\"arguments\\\": {\\\"a\\\": 1}}</tool_call>";
    static const char broken[] = "<tool_call>{\\\"name\\\": 5}</tool_call>";
    static const char tools[] = "{" CHAT ",\"stream\":%s,\"tools\":[" TOOL "]}";
    char whole[256], stream[256];
    (void)state;
    snprintf(whole, sizeof whole, tools, "false");
    snprintf(stream, sizeof stream, tools, "true");
    SAYS(said, WICK_REASONING_APART, chat, whole, "\"name\":\"f\"",
         "\"arguments\":\"{\\\"a\\\":1}\"", "\"finish_reason\":\"tool_calls\"");
    SAYS(broken, WICK_REASONING_APART, chat, whole,
         "\"content\":\"<tool_call>{\\\"name\\\": 5}</tool_call>\"", "\"finish_reason\":\"stop\"");
    SAYS(said, WICK_REASONING_APART, "/api/chat", whole, "\"content\":\"\"",
         "\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{\"a\":1}}}]");
    SAYS(said, WICK_REASONING_APART, "/api/chat", stream, "\"content\":\"\"",
         "\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{\"a\":1}}}]",
         "\"done\":false", "\"content\":\"\"}", "\"done\":true");
    SAYS(said, WICK_REASONING_APART, "/v1/responses",
         "{\"input\":\"a\",\"stream\":true,\"tools\":[{\"type\":\"function\",\"name\":\"f\"}]}",
         "event: response.output_item.added", "\"type\":\"function_call\"",
         "event: response.function_call_arguments.delta", "\"delta\":\"{\\\"a\\\":1}\"",
         "event: response.function_call_arguments.done",
         "\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"", "event: response.output_item.done",
         "event: response.completed");
}

/* JSON by a schema is content or a call, also where the template begins a thought. */
static void test_json_after_thinking(void **state) {
#define NULL_FORMAT "\"schema\":{\"type\":\"null\"}}"
    static const struct {
        const char *path, *body, *part;
    } cases[] = {
        {chat, "{" CHAT ",\"response_format\":{\"type\":\"json_schema\"," NULL_FORMAT "}",
         "\"content\":\"null\",\"refusal\":null}"},
        {"/v1/responses",
         "{\"input\":\"a\",\"text\":{\"format\":{\"type\":\"json_schema\"," NULL_FORMAT "}}",
         "\"output\":[{\"id\":\"msg_"},
        {"/v1/messages",
         "{" CHAT
         ",\"max_tokens\":50,\"output_config\":{\"format\":{\"type\":\"json_schema\"," NULL_FORMAT
         "}}",
         "\"content\":[{\"type\":\"text\",\"text\":\"null\"}]"},
        {"/api/chat", "{" CHAT ",\"stream\":false,\"format\":{\"type\":\"null\"}}",
         "\"content\":\"null\"}"},
        {chat,
         "{" CHAT ",\"tool_choice\":\"required\",\"tools\":[{\"function\":{\"name\":\"f\","
         "\"parameters\":{\"additionalProperties\":false}}}]}",
         "\"content\":null,\"refusal\":null,\"tool_calls\":[{"},
    };
    (void)state;
    wick_api *api = open_api((wick_api_desc){.n_parallel = 1, .chat_template = "Hi<think>"});
    for (size_t i = 0; i < WK_COUNT(cases); i++)
        expect_text(answer(api, cases[i].path, cases[i].body, 200), cases[i].part);
    const char *const text = answer(
        api, "/apply-template", "{" CHAT ",\"response_format\":{\"type\":\"json_object\"}}", 200);
    expect_text(text, "\"prompt\":\"Hi<think></think>\\n\\n\"");
    wick_api_close(api);
    api = open_api((wick_api_desc){.n_parallel = 1, .chat_template = "Hi<|start|>assistant"});
    for (size_t i = 0; i < WK_COUNT(cases); i++)
        expect_text(answer(api, cases[i].path, cases[i].body, 200), cases[i].part);
    wick_api_close(api);
}

/* Who gives no tools may read calls in the text. */
static void test_calls_without_tools(void **state) {
#define WRITTEN(quote) "Sure.<tool_call>{" quote "name" quote ": " quote "f" quote "}</tool_call>"
    static const char said[] = WRITTEN("\\\""), content[] = "\"content\":\"" WRITTEN("\\\"") "\"";
    (void)state;
    SAYS(said, WICK_REASONING_APART, chat, "{" CHAT "}", content, "\"finish_reason\":\"stop\"");
    SAYS(said, WICK_REASONING_APART, chat,
         "{" CHAT ",\"tools\":[" TOOL "],\"tool_choice\":\"none\"}", content);
    SAYS(said, WICK_REASONING_APART, "/api/chat", "{" CHAT ",\"stream\":false}", content);
    SAYS(said, WICK_REASONING_APART, "/api/generate", "{\"prompt\":\"Hi\",\"stream\":false}",
         "\"response\":\"" WRITTEN("\\\"") "\"");
}

/* Those around thoughts and calls are not content; in plain answers they are. */
static void test_blanks(void **state) {
#define CALLS                                                                                      \
    "<tool_call>\\n{\\\"name\\\": \\\"f\\\"}\\n</tool_call>\\n<tool_call>{\\\"name\\\": "          \
    "\\\"f\\\"}</tool_call>\\n"
    static const char thought[] = "\\n<think>\\nhm\\n</think>\\n\\n";
    static const char calls[] = "<think>hm</think>\\n\\nI  look.\\n" CALLS;
    static const char only_calls[] = "<think></think>\\n\\n" CALLS;
    static const char both[] = "\\nI look.\\n" CALLS "\\nDone. \\n";
    static const char apart[] = "See:\\n<tool_call>{\\\"name\\\": \\\"f\\\"}</tool_call>Done";
    static const char tools[] = "{" CHAT ",\"tools\":[" TOOL "]}";
    static const char stream[] = "{" CHAT ",\"stream\":true,\"tools\":[" TOOL "]}";
    (void)state;
    SAYS("\\n Yes\\n\\tNo\\n", WICK_REASONING_APART, chat, tools,
         "\"content\":\"\\n Yes\\n\\tNo\\n\"");
    SAYS("\\n Yes\\n\\tNo\\n", WICK_REASONING_APART, chat, "{" CHAT "}",
         "\"content\":\"\\n Yes\\n\\tNo\\n\"");
    SAYS(" \\n", WICK_REASONING_APART, chat, tools, "\"content\":\" \\n\"");
    SAYS(thought, WICK_REASONING_APART, chat, tools, "\"content\":\"\"",
         "\"reasoning_content\":\"\\nhm\\n\"");
    SAYS(thought, WICK_REASONING_IN_CONTENT, chat, tools,
         "\"content\":\"\\n<think>\\nhm\\n</think>\\n\\n\"");
    SAYS("<think>hm</think>\\n\\nYes.\\n", WICK_REASONING_APART, chat, tools,
         "\"content\":\"Yes.\\n\"");
    SAYS(calls, WICK_REASONING_APART, chat, tools, "\"content\":\"I  look.\"", "\"tool_calls\"");
    SAYS(both, WICK_REASONING_APART, chat, tools, "\"content\":\"\\nI look.\\n\\n\\nDone.\"");
    SAYS(apart, WICK_REASONING_APART, chat, tools, "\"content\":\"See:\\nDone\"");
    SAYS(apart, WICK_REASONING_APART, "/v1/messages",
         "{" CHAT ",\"max_tokens\":200,\"tools\":[{\"name\":\"f\"}]}", "\"text\":\"See:\"},",
         "\"input\":{}},{\"type\":\"text\",\"text\":\"Done\"}]");
    SAYS(both, WICK_REASONING_APART, "/v1/messages",
         "{" CHAT ",\"max_tokens\":200,\"tools\":[{\"name\":\"f\"}]}", "\"text\":\"\\nI look.\"},",
         "\"input\":{}},{\"type\":\"text\",\"text\":\"Done.\"}]");
    SAYS(only_calls, WICK_REASONING_APART, chat, tools, "\"content\":null", "\"tool_calls\"");
    SAYS(calls, WICK_REASONING_APART, "/v1/messages",
         "{" CHAT ",\"max_tokens\":200,\"stream\":true,\"tools\":[{\"name\":\"f\"}]}",
         "\"index\":0,\"content_block\":{\"type\":\"thinking\"",
         "\"index\":1,\"content_block\":{\"type\":\"text\"",
         "\"index\":2,\"content_block\":{\"type\":\"tool_use\"",
         "\"index\":3,\"content_block\":{\"type\":\"tool_use\"",
         "\"index\":3}\n\nevent: message_delta");
    SAYS(calls, WICK_REASONING_APART, "/v1/responses",
         "{\"input\":\"a\",\"tools\":[{\"type\":\"function\",\"name\":\"f\"}]}", "\"id\":\"rs_",
         "_0\"", "\"id\":\"msg_", "_1\"", "\"text\":\"I  look.\"", "\"id\":\"fc_", "_2\"",
         "\"id\":\"fc_", "_3\"", "\"arguments\":\"{}\"}],");
    SAYS("Yes\\n\\n<|channel|>analysis<|message|>hm<|end|>.", WICK_REASONING_APART, chat,
         "{" CHAT "}", "\"content\":\"Yes\\n.\"");
    wick_api *const api = open_saying(only_calls, WICK_REASONING_APART);
    assert_null(strstr(answer(api, chat, stream, 200), "\"content\":\""));
    wick_api_close(api);
}

/* An object with a name is a call where it names one of the tools, and has arguments or nothing
 * else. */
static void test_json_that_is_no_call(void **state) {
    static const char person[] = "{\\\"name\\\": \\\"Bob\\\", \\\"age\\\": 5}";
    static const char likeness[] = "{\\\"name\\\": \\\"f\\\", \\\"age\\\": 5}";
    static const char call[] = "{\\\"name\\\": \\\"f\\\", \\\"parameters\\\": {}}";
    static const char tools[] = "{" CHAT ",\"tools\":[" TOOL "]}";
    (void)state;
    SAYS(person, WICK_REASONING_APART, chat, tools,
         "\"content\":\"{\\\"name\\\": \\\"Bob\\\", \\\"age\\\": 5}\"",
         "\"finish_reason\":\"stop\"");
    SAYS(likeness, WICK_REASONING_APART, chat, tools,
         "\"content\":\"{\\\"name\\\": \\\"f\\\", \\\"age\\\": 5}\"", "\"finish_reason\":\"stop\"");
    SAYS(call, WICK_REASONING_APART, chat, tools, "\"content\":null", "\"name\":\"f\"",
         "\"finish_reason\":\"tool_calls\"");
    wick_api *const api = open_api((wick_api_desc){.n_parallel = 1});
    const char *const text =
        answer(api, chat,
               "{" CHAT ",\"tools\":[" TOOL "],\"response_format\":{\"type\":\"json_schema\","
               "\"schema\":{\"const\":{\"name\":\"f\",\"arguments\":{\"a\":\"<think>\"}}}}}",
               200);
    expect_text(text, "\\\"<think>\\\"");
    expect_text(text, "\"finish_reason\":\"stop\"");
    wick_api_close(api);
}

/* Blocks of a whole answer are in the order in which they were written. */
static void test_blocks(void **state) {
    static const char said[] = "<think>hm</think>a<tool_call>{\\\"name\\\": \\\"f\\\", "
                               "\\\"arguments\\\": {}}</tool_call>b";
    (void)state;
    SAYS(said, WICK_REASONING_APART, "/v1/messages",
         "{" CHAT ",\"max_tokens\":99,\"tools\":[{\"name\":\"f\"}]}",
         "\"content\":[{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"\"},"
         "{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"tool_use\",",
         "\"input\":{}},"
         "{\"type\":\"text\",\"text\":\"b\"}],\"stop_reason\":\"tool_use\"");
    SAYS(said, WICK_REASONING_APART, "/v1/messages",
         "{" CHAT ",\"max_tokens\":99,\"tools\":[{\"name\":\"f\"}],\"stop_sequences\":[\"b\"]}",
         "\"input\":{}}]", "\"stop_reason\":\"tool_use\",\"stop_sequence\":null");
}

/* A call that must come of a tool without parameters has no arguments. */
static void test_no_parameters(void **state) {
    static const char body[] = "{" CHAT ",\"tools\":[" TOOL "],\"tool_choice\":\"required\"}";
    (void)state;
    wick_api *const api = open_api((wick_api_desc){.n_parallel = 1});
    const char *const text = answer(api, chat, body, 200);
    expect_text(text, "\"arguments\":\"{}\"");
    expect_text(text, "\"system_fingerprint\":\"wick-");
    wick_api_close(api);
}

/* parallel_tool_calls is false: what comes after the first one is left out. */
static void test_one_call(void **state) {
    static const char said[] =
        "<tool_call>{\\\"name\\\": \\\"f\\\", \\\"arguments\\\": {}}</tool_call>"
        "<tool_call>{\\\"name\\\": \\\"g\\\", \\\"arguments\\\": {}}</tool_call>";
    static const char tools[] = "{" CHAT ",\"parallel_tool_calls\":%s,\"tools\":[" TOOL
                                ",{\"function\":{\"name\":\"g\"}}]}";
    char body[512];
    (void)state;
    snprintf(body, sizeof body, tools, "true");
    SAYS(said, WICK_REASONING_APART, chat, body, "\"name\":\"f\"", "\"name\":\"g\"");
    snprintf(body, sizeof body, tools, "false");
    SAYS(said, WICK_REASONING_APART, chat, body, "\"name\":\"f\"", "}}]}",
         "\"finish_reason\":\"tool_calls\"");
    snprintf(body, sizeof body,
             "{" CHAT ",\"max_tokens\":99,\"tools\":[{\"name\":\"f\"},{\"name\":\"g\"}],"
             "\"tool_choice\":{\"type\":\"auto\",\"disable_parallel_tool_use\":true}}");
    SAYS(said, WICK_REASONING_APART, "/v1/messages", body, "\"name\":\"f\",\"input\":{}}]",
         "\"stop_reason\":\"tool_use\"");
}

/* What ollama's clients leave open. */
static void test_ollama(void **state) {
    static const char *const nothing[][3] = {
        {"/api/embed", "{\"input\":\"\"}", "\"embeddings\":[]"},
        {"/api/embed", "{\"input\":[]}", "\"embeddings\":[]"},
        {"/api/embed", "{}", "\"embeddings\":[]"},
        {"/api/embeddings", "{\"prompt\":\"\"}", "{\"embedding\":[]}"},
        {"/api/embeddings", "{\"input\":[]}", "{\"embedding\":[]}"},
    };
    (void)state;
    SAYS("Yes", WICK_REASONING_APART, "/api/chat", "{" CHAT ",\"stream\":null}",
         "\"done\":false}\n", "\"done\":true}\n");
    wick_api *const api = open_api((wick_api_desc){.n_parallel = 1});
    wick_exchange *const x = ask(api, "/api/chat", "{" CHAT ",\"options\":{\"num_predict\":-2}}");
    assert_true(wick_exchange_status(x) == 0 && x->desc.max_tokens == 0 && !x->has_no_tokens);
    wick_exchange_close(x);
    expect_text(answer(api, "/api/generate",
                       "{\"prompt\":\"a\",\"stream\":false,\"options\":{\"num_predict\":1}}", 200),
                "\"eval_count\":1,\"eval_duration\":1,");
    for (size_t i = 0; i < WK_COUNT(nothing); i++)
        expect_text(answer(api, nothing[i][0], nothing[i][1], 200), nothing[i][2]);
    wick_api_close(api);
}

/* The same seed gives the same texts, each of them another one: 0, too. */
static void test_seeds(void **state) {
    static const char body[] =
        "{\"prompt\":\"Once\",\"seed\":0,\"n\":2,\"max_tokens\":12,\"temperature\":2}";
    char first[4096];
    (void)state;
    wick_api *const api = open_api((wick_api_desc){.n_parallel = 2});
    for (int i = 0; i < 2; i++) {
        const char *const at = strstr(answer(api, "/v1/completions", body, 200), "\"choices\"");
        const char *const end = at ? strstr(at, "\"usage\"") : NULL;
        assert_non_null(end);
        if (i == 0) snprintf(first, sizeof first, "%.*s", (int)(end - at), at);
        if (i == 1) assert_memory_equal(first, at, (size_t)(end - at));
    }
    wick_api_close(api);
}

/* What the request said, and what is whole. */
static void test_responses(void **state) {
    (void)state;
    SAYS("Yes", WICK_REASONING_APART, "/v1/responses",
         "{\"input\":\"a\",\"instructions\":\"Be.\",\"metadata\":{\"k\":\"v\"},\"top_p\":0,"
         "\"parallel_tool_calls\":false,\"truncation\":\"auto\",\"max_output_tokens\":50}",
         "\"status\":\"completed\"", "\"output\":[{", "\"status\":\"completed\"",
         "\"instructions\":\"Be.\",\"max_output_tokens\":50,\"metadata\":{\"k\":\"v\"},"
         "\"parallel_tool_calls\":false,\"reasoning\":null,\"tool_choice\":\"auto\",\"tools\":[],"
         "\"truncation\":\"auto\"",
         "\"top_p\":0,");
    SAYS("Yes", WICK_REASONING_APART, "/v1/responses", "{\"input\":\"a\",\"max_output_tokens\":1}",
         "\"status\":\"incomplete\"", "\"output\":[{", "\"status\":\"incomplete\"",
         "\"instructions\":null", "\"metadata\":{}", "\"top_p\":1,");
}

/* A stream that cannot go on says so in an event, in the form of its API. */
static void fails_in_stream(const char *path, int status, const char *event) {
    wick_api *const api = open_api((wick_api_desc){.n_parallel = 1});
    char body[256];
    size_t size;
    snprintf(body, sizeof body, "{%s,\"max_tokens\":50,\"stream\":true}",
             strstr(path, "responses") ? "\"input\":\"Hi\"" : CHAT);
    wick_exchange *const x = ask(api, path, body);
    while (!x->has_events) (void)wick_api_step(api);
    (void)wick_exchange_take(x, &size);
    const wick_error why = {.message = "no \"room\""};
    if (status == 503)
        wick_exchange_end(x, why.message);
    else
        wk_exchange_break(x, WICK_ERR_INTERNAL, &why);
    expect_text(finish(api, x, 200), event); /* the headers have gone out */
    wick_api_close(api);
}

static void test_failing_streams(void **state) {
    (void)state;
    fails_in_stream("/v1/responses", 503,
                    "event: error\ndata: {\"type\":\"error\",\"sequence_number\":2,"
                    "\"code\":\"server_is_overloaded\",\"message\":\"no \\\"room\\\"\","
                    "\"param\":null}\n\n");
    fails_in_stream("/v1/responses", 500, "\"code\":\"server_error\"");
    fails_in_stream("/v1/messages", 503, "event: error\ndata: {\"type\":\"error\",\"error\":{");
    fails_in_stream(chat, 503,
                    "data: {\"error\":{\"code\":503,\"message\":\"no \\\"room\\\"\","
                    "\"type\":\"unavailable_error\",\"param\":null}}\n\n");
}

/* Tokens of reasoning are counted apart: those after the tag that opens it. */
static void test_reasoning_tokens(void **state) {
    static const char body[] =
        "{\"input\":\"a\",\"tools\":[{\"type\":\"function\",\"name\":\"f\"}]}";
    static const struct {
        const char *said;
        bool has_thought;
    } cases[] = {{"<think>hm</think>Yes", true},
                 {"Yes", false},
                 {"<think>hm</think>\\n<tool_call>{\\\"name\\\": \\\"f\\\"}</tool_call>", true}};
    (void)state;
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        unsigned n_all = 0, n_reasoning = 99;
        wick_api *const api = open_saying(cases[i].said, WICK_REASONING_APART);
        const char *const at =
            strstr(answer(api, "/v1/responses", body, 200), "\"output_tokens\":");
        assert_int_equal(sscanf(at ? at : "",
                                "\"output_tokens\":%u,\"output_tokens_details\":{"
                                "\"reasoning_tokens\":%u}",
                                &n_all, &n_reasoning),
                         2);
        assert_true(n_all > 0 && (n_reasoning > 0) == cases[i].has_thought);
        assert_true(n_reasoning < 13); /* of "hm</think>" */
        wick_api_close(api);
    }
}

/* Where each token begins in the text, in which the first one of the prompt is not. */
static void test_offsets(void **state) {
    static const char completion[] = "/v1/completions";
    static const char body[] = "{\"prompt\":\"Once upon\",\"echo\":true,\"logprobs\":1,"
                               "\"max_tokens\":1,\"temperature\":0}";
    (void)state;
    wick_api *const api = open_api((wick_api_desc){.n_parallel = 1});
    const char *const text = answer(api, completion, body, 200);
    expect_text(text, "\"tokens\":[\"<s>\",\" Once\",\" upon\"");
    expect_text(text, "\"text_offset\":[0,0,4,9]");
    expect_text(answer(api, completion, "{\"prompt\":\"a\",\"logprobs\":0,\"max_tokens\":2}", 200),
                "\"top_logprobs\":null,\"text_offset\":[0,");
    wick_api_close(api);
}

/* Mistral's templates take no others. */
static void test_call_ids(void **state) {
    static const char said[] =
        "<tool_call>{\\\"name\\\": \\\"f\\\", \\\"arguments\\\": {}}</tool_call>";
    static const char alphabet[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    static const struct {
        const char *path, *body, *before;
    } cases[] = {
        {chat, "{" CHAT ",\"tools\":[" TOOL "]}", "\"tool_calls\":[{\"id\":\""},
        {"/v1/messages",
         "{" CHAT
         ",\"max_tokens\":99,\"tools\":[{\"name\":\"f\",\"input_schema\":{\"type\":\"object\"}}]}",
         "\"type\":\"tool_use\",\"id\":\""},
        {"/v1/responses", "{\"input\":\"a\",\"tools\":[{\"type\":\"function\",\"name\":\"f\"}]}",
         "\"call_id\":\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wick_api *const api = open_saying(said, WICK_REASONING_APART);
        char first[10] = "";
        for (int n = 0; n < 2; n++) {
            const char *const text = answer(api, cases[i].path, cases[i].body, 200);
            const char *at = strstr(text, cases[i].before);
            if (!at) fail_msg("'%s' is not in '%s'", cases[i].before, text);
            at += strlen(cases[i].before);
            assert_int_equal(strspn(at, alphabet), 9);
            assert_int_equal(at[9], '"');
            assert_int_not_equal(memcmp(at, first, 9), 0);
            memcpy(first, at, 9);
        }
        wick_api_close(api);
    }
}

/* ---- What there is ---- */

static void test_health(void **state) {
    static const char *const aliases[] = {"one", "two"};
    static const struct {
        const char *path;
        int status;
    } cases[] = {{"/health", 200},        {"/v1/health", 200},     {"/v1/models/m", 200},
                 {"/v1/models/one", 200}, {"/v1/models/two", 200}, {"/v1/models/three", 404},
                 {"/v1/models/", 404},    {"/nowhere", 404}};
    (void)state;
    wick_api *const api = open_api((wick_api_desc){.aliases = aliases, .n_aliases = 2});
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        const wick_request request = {.method = "GET", .path = cases[i].path};
        wick_exchange *x;
        assert_int_equal(wick_exchange_open(api, &request, &x, NULL), WICK_OK);
        const char *const text = finish(api, x, cases[i].status);
        if (i < 2) assert_string_equal(text, "{\"status\":\"ok\"}");
    }
    expect_text(answer(api, "/slots/99", "", 404), "there is no such slot");
    wick_api_close(api);
}

static void test_arguments_of_calls(void **state) {
    (void)state;
    wick_api *api = open_api((wick_api_desc){.name = "m"}), *none = api;
    wick_exchange *x = (wick_exchange *)api;
    wick_error error = {.status = WICK_OK}, other = {.status = WICK_OK};
    const wick_request good = {.method = "GET", .path = "/health"};
    wick_request bad = good;
    assert_int_equal(wick_exchange_open(NULL, &good, &x, &error), WICK_ERR_ARGUMENT);
    assert_null(x);
    bad.method = NULL;
    assert_int_equal(wick_exchange_open(api, &bad, &x, &error), WICK_ERR_ARGUMENT);
    bad = good;
    bad.path = NULL;
    assert_int_equal(wick_exchange_open(api, &bad, &x, &error), WICK_ERR_ARGUMENT);
    bad = good;
    bad.body_size = 1;
    assert_int_equal(wick_exchange_open(api, &bad, &x, &error), WICK_ERR_ARGUMENT);
    assert_string_equal(error.message, "wick_exchange_open: an argument is NULL");
    assert_int_equal(wick_api_open(NULL, NULL, &none, &other), WICK_ERR_ARGUMENT);
    assert_string_equal(other.message, "wick_api_open: an argument is NULL");
    assert_null(none);
    wick_api_close(api);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_thinking),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_json_after_thinking),
        cmocka_unit_test(test_calls_without_tools),
        cmocka_unit_test(test_blanks),
        cmocka_unit_test(test_json_that_is_no_call),
        cmocka_unit_test(test_one_call),
        cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_responses),
        cmocka_unit_test(test_failing_streams),
        cmocka_unit_test(test_offsets),
        cmocka_unit_test(test_call_ids),
        cmocka_unit_test(test_health),
        cmocka_unit_test(test_arguments_of_calls),
        cmocka_unit_test(test_no_parameters),
        cmocka_unit_test(test_ollama),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_reasoning_tokens),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
