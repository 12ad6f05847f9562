/* Requests of the APIs: what their fields become, which of them are refused and how. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "small_model.h"

#include "api_requests.h"

#include <math.h>

#define TIMES_4(text) text text text text
#define TIMES_256(text) TIMES_4(TIMES_4(TIMES_4(TIMES_4(text))))

static const char completion[] = "/v1/completions";

/* ---- What is refused ---- */

static const struct {
    const char *path, *body, *sentence;
} refusals[] = {
    {completion, "[]", "the body must be a JSON object"},
    {completion, "{}", "there is no prompt"},
    {completion, "{\"prompt\":5}", "prompt must be a text, an array of token ids, or several"},
    {completion, "{\"prompt\":[]}", "token ids must be an array of at least one"},
    {completion, "{\"prompt\":[512]}", "a token id must be a number below 512"},
    {completion, "{\"prompt\":[1,-1]}", "a token id must be a number below 512"},
    {completion, "{\"prompt\":[1.5]}", "a token id must be a number below 512"},
    {completion, "{\"prompt\":[1,true]}", "a token id must be a number below 512"},
    {completion, "{\"prompt\":\"a\",\"n\":1.5}", "n must be a whole number"},
    {completion, "{\"prompt\":\"a\",\"n\":0}", "n must be a number from 1 to 128"},
    {completion, "{\"prompt\":\"a\",\"n\":129}", "n must be a number from 1 to 128"},
    {completion, "{\"prompt\":\"a\",\"n\":\"1\"}", "n must be a number from 1 to 128"},
    {completion, "{\"prompt\":\"a\",\"top_p\":1.5}", "top_p must be a number from 0 to 1"},
    {completion, "{\"prompt\":\"a\",\"stream\":1}", "stream must be true or false"},
    {completion, "{\"prompt\":\"a\",\"mirostat\":1}", "version 1 is not supported"},
    {completion, "{\"prompt\":\"a\",\"mirostat\":3}", "mirostat must be a number from 0 to 2"},
    {completion, "{\"prompt\":\"a\",\"seed\":1.5}", "seed must be a whole number"},
    {completion, "{\"prompt\":\"a\",\"seed\":\"1\"}", "seed must be a whole number"},
    {completion, "{\"prompt\":\"a\",\"max_tokens\":-2}", "max_tokens must be a whole number"},
    {completion, "{\"prompt\":\"a\",\"n_predict\":1.5}", "n_predict must be a whole number"},
    {completion, "{\"prompt\":\"a\",\"logit_bias\":5}", "must be an object or an array"},
    {completion, "{\"prompt\":\"a\",\"logit_bias\":{\"5\":\"a\"}}", "a number or false for each"},
    {completion, "{\"prompt\":\"a\",\"logit_bias\":[[5,true]]}", "a number or false for each"},
    {completion, "{\"prompt\":\"a\",\"logit_bias\":[[5]]}", "a number or false for each"},
    {completion, "{\"prompt\":\"a\",\"logit_bias\":[[-1,1]]}", "tokens by their ids or texts"},
    {completion, "{\"prompt\":\"a\",\"logit_bias\":[[1.5,1]]}", "tokens by their ids or texts"},
    {completion, "{\"prompt\":\"a\",\"logit_bias\":[[true,1]]}", "tokens by their ids or texts"},
    {completion, "{\"prompt\":\"a\",\"logit_bias\":[[4294967296,1]]}", "by their ids or texts"},
    {completion, "{\"prompt\":\"a\",\"grammar\":5}", "grammar must be a text"},
    {completion, "{\"prompt\":\"a\",\"stop\":5}", "stop must be a text or an array of texts"},
    {completion, "{\"prompt\":\"a\",\"stop\":[\"b\",5]}", "stop must be a text or an array"},
    {completion, "{\"prompt\":\"a\",\"stream_options\":5}", "stream_options must be an object"},
    {completion, "{\"prompt\":\"a\",\"id_slot\":4}", "id_slot must be -1 or a number below 4"},
    {completion, "{\"prompt\":\"a\",\"id_slot\":-2}", "id_slot must be -1 or a number below 4"},
    {completion, "{\"prompt\":\"a\",\"id_slot\":\"0\"}", "must be -1 or a number below 4"},
    {chat, "{}", "messages must be an array of at least one message"},
    {chat, "{\"messages\":[]}", "messages must be an array of at least one message"},
    {chat, "{\"messages\":[{\"content\":\"\"}]}", "each must be an object with a role"},
    {chat, "{\"messages\":[{\"role\":\"user\"}]}", "a message has no content"},
    {chat, "{\"messages\":[{\"role\":\"user\",\"content\":5}]}", "a text or an array of parts"},
    {chat, "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\"}]}]}",
     "a content part must be a text, not of type image_url: this model cannot read images"},
    {chat, "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\"}]}]}",
     "a content part must be a text\""},
    {chat, "{\"messages\":[{\"role\":\"assistant\",\"tool_calls\":5}]}", "must be an array"},
    {chat, "{" CHAT ",\"tools\":5}", "tools must be an array"},
    {chat, "{" CHAT ",\"tools\":[{\"type\":\"function\"}]}", "must be a function with a name"},
    {chat, "{" CHAT ",\"tools\":[" TOOL ",{\"type\":\"custom\",\"custom\":{\"name\":\"g\"}}]}",
     "tools[1] is of type custom"},
    {"/v1/responses",
     "{\"input\":\"a\",\"tools\":[{\"type\":\"web_search\"}],"
     "\"tool_choice\":{\"type\":\"web_search\"}}",
     "auto, none, required, the name"},
    {"/v1/responses",
     "{\"input\":\"a\",\"tools\":[{\"type\":\"custom\",\"name\":\"g\"}],"
     "\"tool_choice\":{\"type\":\"custom\",\"name\":\"g\"}}",
     "there is no such tool"},
    {"/v1/responses", "{\"input\":[{\"type\":\"item_reference\",\"id\":\"msg_1\"}]}",
     "input: an item_reference: this server stores nothing"},
    {chat, "{" CHAT ",\"tools\":[" TOOL "],\"tool_choice\":{\"type\":\"allowed_tools\"}}",
     "allowed_tools has no tools"},
    {chat,
     "{" CHAT ",\"tools\":[" TOOL "],\"tool_choice\":{\"type\":\"allowed_tools\",\"tools\":["
     "0" TIMES_256(",0") "]}}",
     "at most 256 allowed tools"},
    {chat, "{" CHAT ",\"tools\":[{\"function\":{\"name\":5}}]}", "a function with a name"},
    {chat, "{" CHAT ",\"tool_choice\":\"any\"}", "auto, none, required, the name"},
    {chat, "{" CHAT ",\"tool_choice\":\"required\"}", "there are no tools"},
    {chat, "{" CHAT ",\"tools\":[" TOOL "],\"tool_choice\":{\"function\":{\"name\":\"g\"}}}",
     "there is no such tool"},
    {chat, "{" CHAT ",\"response_format\":{\"type\":\"xml\"}}", "text, json_object or json_schema"},
    {chat, "{" CHAT ",\"response_format\":{\"type\":\"json_schema\"}}", "has no schema"},
    {chat, "{" CHAT ",\"chat_template_kwargs\":5}", "chat_template_kwargs must be an object"},
    {chat, "{" CHAT ",\"add_generation_prompt\":5}", "must be true or false"},
    {chat, "{" CHAT ",\"continue_final_message\":5}", "must be true, false or content"},
    {chat, "{" CHAT ",\"continue_final_message\":true}", "must be the assistant's"},
    {"/infill", "{\"input_prefix\":\"a\"}", "no tokens that mark a gap in a text"},
    {"/tokenize", "{\"content\":5}", "content must be a text"},
    {"/detokenize", "{}", "tokens must be an array of token ids"},
    {"/detokenize", "{\"tokens\":5}", "tokens must be an array of token ids"},
    {"/detokenize", "{\"tokens\":[512]}", "one is not in the vocabulary"},
    {"/detokenize", "{\"tokens\":[1.5]}", "one is not in the vocabulary"},
    {"/v1/messages", "{" CHAT "}", "max_tokens: field required"},
    {"/v1/messages", "{" CHAT ",\"max_tokens\":null}", "max_tokens: field required"},
    {"/v1/messages", "{\"system\":\"a\",\"max_tokens\":5}", "messages must be an array"},
    {"/v1/messages", "{\"messages\":{\"role\":\"user\"},\"max_tokens\":5}", "must be an array"},
    {"/v1/messages/count_tokens", "{\"system\":\"a\"}", "messages must be an array"},
    {"/v1/responses", "{\"input\":5}", "input must be a text or an array of items"},
    {"/v1/responses", "{\"instructions\":\"a\"}", "input must be a text or an array of items"},
    {"/v1/responses", "{\"input\":{\"role\":\"user\",\"content\":\"a\"}}", "input must be a text"},
    {"/v1/responses", "{\"input\":\"a\",\"background\":true}", "stores no responses"},
    {"/v1/responses", "{\"input\":\"a\",\"conversation\":\"c\"}", "conversation: this server"},
    {completion, "{\"prompt\":\"a\",\"best_of\":2}", "best_of must not be more than n"},
    {completion, "{\"prompt\":\"a\",\"suffix\":\"b\"}", "no tokens that mark a gap in a text"},
    {"/api/generate", "{\"prompt\":\"a\",\"suffix\":\"b\"}", "no tokens that mark a gap in a text"},
    {"/api/generate", "{\"prompt\":\"a\",\"images\":[\"aGk=\"]}", "this model cannot read images"},
    {"/api/chat", "{\"messages\":[{\"role\":\"user\",\"content\":\"a\",\"images\":[\"aGk=\"]}]}",
     "this model cannot read images"},
    {chat, "{" CHAT ",\"functions\":[{\"name\":\"f\"}]}",
     "functions and function_call are not known"},
    {chat, "{" CHAT ",\"function_call\":\"auto\"}", "functions and function_call are not known"},
    {chat, "{" CHAT ",\"reasoning_effort\":5}", "reasoning_effort must be a text"},
    {"/v1/messages", "{" CHAT ",\"max_tokens\":5,\"stop_sequences\":5}",
     "\"stop_sequences must be"},
    {"/v1/responses", "{\"input\":\"a\",\"max_output_tokens\":-2}", "\"max_output_tokens must be"},
    {"/v1/responses", "{\"input\":\"a\",\"instructions\":5}", "instructions must be a text"},
    {"/v1/messages", "{" CHAT ",\"max_tokens\":5,\"system\":5}", "system must be a text"},
    {"/api/generate", "{\"prompt\":5}", "{\"error\":\"prompt must be a text"},
    {"/v1/responses", "{\"input\":[5]}", "\"input: each must be an object with a role"},
    {"/api/chat", "{" CHAT ",\"options\":{\"num_predict\":-3}}",
     "{\"error\":\"num_predict must be"},
    {"/api/generate", "{\"prompt\":\"a\",\"raw\":true,\"options\":{\"num_predict\":-3}}",
     "{\"error\":\"num_predict must be"},
    {"/api/generate", "{\"prompt\":\"a\",\"options\":1.5}",
     "{\"error\":\"options must be an object"},
    {"/v1/responses", "{\"input\":[{\"type\":\"compaction\",\"encrypted_content\":\"a\"}]}",
     "\"input: an item of type compaction cannot be read"},
    {"/api/embed", "{\"input\":5}", "{\"error\":\"input must be"},
    {"/api/embed", "{\"input\":\"a\",\"truncate\":5}",
     "{\"error\":\"truncate must be true or false"},
};

static void test_refusals(void **state) {
    (void)state;
    wick_api *const api = open_api((wick_api_desc){.n_parallel = 4});
    for (size_t i = 0; i < WK_COUNT(refusals); i++)
        expect_text(answer(api, refusals[i].path, refusals[i].body, 400), refusals[i].sentence);
    expect_text(answer(api, "/v1/models/x", "", 405), "error");
    wick_api_close(api);
}

/* An array of n things. */
static void repeat(char *to, size_t size, const char *before, const char *thing, int n) {
    size_t used = (size_t)snprintf(to, size, "%s", before);
    for (int i = 0; i < n; i++) {
        assert_true(used + strlen(thing) + 4 < size);
        used += (size_t)snprintf(to + used, size - used, "%s%s", i > 0 ? "," : "", thing);
    }
    snprintf(to + used, size - used, "]}");
}

static void test_limits(void **state) {
    static const struct {
        const char *before, *thing, *sentence;
        int most;
    } cases[] = {
        {"{\"prompt\":[", "\"a\"", "prompt: at most 128 prompts in a request", 128},
        {"{\"prompt\":\"a\",\"stop\":[", "\"b\"", "stop: at most 256 texts", 256},
        {"{\"prompt\":\"a\",\"logit_bias\":[", "[5,1]", "logit_bias: at most 4096 tokens", 4096},
    };
    static char body[1 << 16];
    (void)state;
    wick_api *const api = open_api((wick_api_desc){.n_parallel = 1});
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        repeat(body, sizeof body, cases[i].before, cases[i].thing, cases[i].most);
        wick_exchange *const exchange = ask(api, completion, body);
        assert_int_equal(wick_exchange_status(exchange), 0); /* it waits */
        wick_exchange_close(exchange);
        repeat(body, sizeof body, cases[i].before, cases[i].thing, cases[i].most + 1);
        expect_text(answer(api, completion, body, 400), cases[i].sentence);
    }
    wick_api_close(api);
}

/* ---- What fields become ---- */

static void test_sampling(void **state) {
    (void)state;
    const wick_sampler_desc penalties = {.repeat_penalty = 2,
                                         .frequency_penalty = 3,
                                         .presence_penalty = 4,
                                         .dry_multiplier = 5,
                                         .seed = 9};
    wick_api *const api =
        open_api((wick_api_desc){.n_parallel = 4, .session = {.sampler = penalties}});
    wick_exchange *x = ask(api, completion, "{\"prompt\":\"a\"}");
    assert_true(x->desc.sampler.repeat_penalty == 2 && x->desc.sampler.dry_multiplier == 5);
    assert_true(x->desc.sampler.seed == 9 && x->desc.sampler.mirostat_tau == 0);
    assert_true(x->slot == -1 && x->n == 1 && !x->includes_usage && !x->has_no_tokens);
    wick_exchange_close(x);

    x = ask(api, completion,
            "{\"prompt\":\"a\",\"repeat_last_n\":0,\"seed\":0,\"mirostat\":2,\"id_slot\":3,"
            "\"max_tokens\":0,\"n_predict\":7,\"stream_options\":{\"include_usage\":true},"
            "\"top_p\":0,\"best_of\":1,\"suffix\":\"\"}");
    assert_int_equal(x->desc.sampler.top_k, 1);
    assert_true(x->desc.sampler.repeat_penalty == 0 && x->desc.sampler.frequency_penalty == 0 &&
                x->desc.sampler.presence_penalty == 0);
    assert_true(x->desc.sampler.dry_multiplier == 5);
    assert_true(x->desc.sampler.seed == UINT64_MAX && x->desc.sampler.mirostat_tau == 5);
    assert_true(x->slot == 3 && x->has_no_tokens && x->includes_usage);
    wick_exchange_close(x);

    x = ask(api, completion,
            "{\"prompt\":\"a\",\"repeat_last_n\":-1,\"top_k\":-1,\"dry_penalty_last_n\":0,"
            "\"seed\":-1,\"mirostat\":2,\"mirostat_tau\":7,\"n_predict\":-1,\"id_slot\":-1,"
            "\"logit_bias\":[[5,-2],[6,false]],\"stop\":[\"x\",\"\",\"y\"]}");
    assert_int_equal(x->desc.sampler.repeat_last, CONTEXT);
    assert_int_equal(x->desc.sampler.top_k, 0);
    assert_true(x->desc.sampler.repeat_penalty == 2 && x->desc.sampler.dry_multiplier == 0);
    assert_true(x->desc.sampler.seed == 9 && x->desc.sampler.mirostat_tau == 7);
    assert_true(x->desc.max_tokens == 0 && !x->has_no_tokens && x->slot == -1);
    assert_int_equal(x->desc.sampler.n_bias, 2);
    assert_true(x->desc.sampler.bias[0].id == 5 && x->desc.sampler.bias[0].bias == -2);
    assert_true(x->desc.sampler.bias[1].id == 6 && isinf(x->desc.sampler.bias[1].bias));
    assert_int_equal(x->desc.n_stop, 2); /* an empty text would stop everything */
    assert_string_equal(x->desc.stop[1], "y");
    wick_exchange_close(x);

    x = ask(api, completion, "{\"prompt\":\"a\",\"seed\":7.0,\"max_tokens\":2.0,\"id_slot\":1e0}");
    assert_true(x->desc.sampler.seed == 7 && x->desc.max_tokens == 2 && x->slot == 1);
    wick_exchange_close(x);

    x = ask(api, completion,
            "{\"prompt\":\"a\",\"seed\":18446744073709551,\"logit_bias\":{\"511\":1.5},"
            "\"grammar\":\"\",\"json_schema\":{\"type\":\"null\"}}");
    assert_true(x->desc.sampler.seed == 18446744073709551U);
    assert_true(x->desc.sampler.bias[0].id == 511 && x->desc.sampler.bias[0].bias == 1.5F);
    assert_null(x->desc.sampler.grammar);
    assert_string_equal(x->desc.sampler.json_schema, "{\"type\":\"null\"}");
    wick_exchange_close(x);
    wick_api_close(api);
}

/* Ids, and texts between them, as llama-server takes them. */
static void test_prompts(void **state) {
    (void)state;
    wick_api *const api = open_api((wick_api_desc){.n_parallel = 4});
    const wick_tokenizer *const tokenizer = wick_model_tokenizer(model);
    uint32_t day[16];
    size_t n_day, n;
    assert_int_equal(wick_tokenize(tokenizer, "One day", 7, WICK_TOKENIZE_PARSE_SPECIAL, day,
                                   WK_COUNT(day), &n_day),
                     WICK_OK);
    assert_true(n_day > 1 && n_day < 16);
    wick_exchange *x = ask(api, completion, "{\"prompt\":[5,\"One day\",511]}");
    assert_int_equal(x->n_prompts, 1);
    assert_int_equal(x->prompts[0].n, n_day + 2);
    assert_int_equal(x->prompts[0].ids[0], 5);
    assert_memory_equal(x->prompts[0].ids + 1, day, n_day * sizeof *day);
    assert_int_equal(x->prompts[0].ids[n_day + 1], 511);
    wick_exchange_close(x);

    uint32_t begun[16];
    assert_int_equal(
        wick_tokenize(tokenizer, "One day", 7, WICK_TOKENIZE_ADD_BEGIN, begun, WK_COUNT(begun), &n),
        WICK_OK);
    assert_int_equal(n, n_day + 1);
    x = ask(api, completion, "{\"prompt\":[\"One day\",[7,8],{\"prompt_string\":\"One day\"}]}");
    assert_int_equal(x->n_prompts, 3);
    for (uint32_t i = 0; i < 3; i += 2) {
        assert_int_equal(x->prompts[i].n, n);
        assert_memory_equal(x->prompts[i].ids, begun, n * sizeof *begun);
    }
    assert_int_equal(x->prompts[1].n, 2);
    assert_int_equal(x->prompts[1].ids[1], 8);
    wick_exchange_close(x);
    wick_api_close(api);
}

/* The tokens of a chat of n words. */
static unsigned count_words(wick_api *api, char *body, int n) {
    unsigned count = 0;
    int size = snprintf(body, 64, "{\"input\":\"");
    for (int i = 0; i < n; i++, size += 2) memcpy(body + size, "b ", 2);
    memcpy(body + size, "\"}", 3);
    const char *const text = answer(api, "/v1/responses/input_tokens", body, 200);
    const char *const at = strstr(text, "\"input_tokens\":");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "\"input_tokens\":%u", &count), 1);
    return count;
}

/* A text of many more tokens than the context is counted by its beginning. */
static void test_too_long(void **state) {
    enum { SIZE = 2 * (65536 + 8 * CONTEXT) };
    (void)state;
    wick_api *const api = open_api((wick_api_desc){.n_parallel = 1});
    char *const body = malloc(SIZE + 64);
    assert_non_null(body);
    for (int less = 0; less < 2; less++) { /* just as long, and a byte shorter: read whole */
        const int before = snprintf(body, 64, "{\"prompt\":\"");
        memset(body + before, 'b', (size_t)(SIZE - less));
        snprintf(body + before + SIZE - less, 8, "\"}");
        const wick_request request = {
            .method = "POST", .path = completion, .body = body, .body_size = strlen(body)};
        wick_exchange *x;
        assert_int_equal(wick_exchange_open(api, &request, &x, NULL), WICK_OK);
        if (less)
            assert_true(x->prompts[0].n_estimated == 0 && x->prompts[0].n > CONTEXT);
        else
            assert_true(x->prompts[0].n_estimated > CONTEXT && x->prompts[0].n == 0);
        expect_text(finish(api, x, 400), "exceed_context_size_error");
    }
    /* Where the number is all that is asked for, it is that of the whole text. */
    const unsigned one = count_words(api, body, 1), two = count_words(api, body, 2);
    assert_int_equal(count_words(api, body, SIZE / 2), one + (two - one) * (SIZE / 2 - 1));
    free(body);
    wick_api_close(api);
}

static wick_model *open_small(small_model *small) {
    static gguf_bytes file;
    wick_model_loading *loading;
    wick_model *opened;
    wick_error error = {.status = WICK_OK};
    small_set_u32(small, "llama.context_length", 128);
    small_write(small, true, &file);
    const wick_source source = wick_source_memory(file.data, file.size);
    assert_int_equal(wick_model_open_start(device, source, NULL, &loading, NULL), WICK_OK);
    while (wick_model_open_poll(loading, NULL) == WICK_PENDING) wick_pause(device);
    if (wick_model_open_finish(loading, &opened, &error) != WICK_OK) fail_msg("%s", error.message);
    return opened;
}

/* Nothing to go on from: without a token that begins texts, an empty prompt has none. */
static void test_no_prompt(void **state) {
    (void)state;
    small_model small = small_model_make();
    small_set(&small, "tokenizer.ggml.add_bos_token", WICK_VALUE_BOOL, 0);
    wick_model *const opened = open_small(&small);
    wick_api *api;
    const wick_api_desc desc = {.name = "m", .session = {.context_length = 128}};
    assert_int_equal(wick_api_open(opened, &desc, &api, NULL), WICK_OK);
    expect_text(answer(api, completion,
                       "{\"prompt\":\"\",\"echo\":true,\"logprobs\":1,\"max_tokens\":2}", 200),
                "\"text\":\"\",\"logprobs\":null");
    wick_api_close(api);
    wick_model_close(opened);
}

/* A model of 8 tokens, of which some mark gaps. */
static wick_model *open_marked(bool has_files) {
    small_model small = small_model_make();
    small.n_tokens = 8;
    small_find_tensor(&small, "token_embd.weight")->extents[1] = 8;
    small_set_u32(&small, "tokenizer.ggml.fim_pre_token_id", 2);
    small_set_u32(&small, "tokenizer.ggml.fim_suf_token_id", 7);
    small_set_u32(&small, "tokenizer.ggml.fim_mid_token_id", 6);
    if (has_files) small_set_u32(&small, "tokenizer.ggml.fim_rep_token_id", 5);
    if (has_files) small_set_u32(&small, "tokenizer.ggml.fim_sep_token_id", 0);
    return open_small(&small);
}

/* parts: texts, and "#3" for the id 3. */
static size_t ids_of_parts(const wick_model *of, const char *const *parts, uint32_t *ids) {
    size_t n = 0, more;
    for (; *parts; parts++) {
        if ((*parts)[0] == '#') {
            ids[n++] = (uint32_t)((*parts)[1] - '0');
            continue;
        }
        assert_int_equal(wick_tokenize(wick_model_tokenizer(of), *parts, strlen(*parts), 0, ids + n,
                                       128 - n, &more),
                         WICK_OK);
        n += more;
    }
    return n;
}

/* What stands before and after a gap, and files around it. */
static void test_infill(void **state) {
    static const struct {
        bool has_files;
        const char *body, *parts[16];
    } cases[] = {
        {false,
         "{\"input_prefix\":\"a\",\"input_suffix\":\"b\"}",
         {"#1", "#2", "a", "#7", "b", "#6"}},
        {true, "{\"input_prefix\":\"a\",\"prompt\":\"c\"}", {"#1", "#2", "a", "#7", "#6", "c"}},
        {false,
         "{\"input_extra\":[{\"text\":\"ab\"}],\"input_suffix\":\"b\"}",
         {"#1", "\n", "ab", "#2", "#7", "b", "#6"}},
        {true,
         "{\"input_extra\":[{\"text\":\"ab\",\"filename\":\"c\"},{\"text\":\"b\"}]}",
         {"#1", "#5", "project\n", "#0", "c", "\n", "ab", "#0", "file", "\n", "b", "#0",
          "filename\n", "#2", "#7", "#6"}},
    };
    static const char *const refused[][2] = {
        {"{\"input_prefix\":5}", "input_prefix must be a text"},
        {"{\"input_suffix\":5}", "input_suffix must be a text"},
        {"{\"prompt\":5}", "prompt must be a text"},
        {"{\"input_extra\":5}", "input_extra must be an array"},
        {"{\"input_extra\":[{}]}", "each must have a text"},
        {"{\"input_extra\":[{\"text\":\"a\",\"filename\":5}]}", "its filename must be a text"}};
    (void)state;
    for (int has_files = 0; has_files < 2; has_files++) {
        wick_model *const marked = open_marked(has_files == 1);
        wick_api *api;
        const wick_api_desc desc = {.name = "m", .session = {.context_length = 128}};
        assert_int_equal(wick_api_open(marked, &desc, &api, NULL), WICK_OK);
        for (size_t i = 0; i < WK_COUNT(cases); i++) {
            uint32_t ids[128];
            const char *parts[17] = {NULL};
            if (cases[i].has_files != (has_files == 1)) continue;
            for (size_t k = 0; k < 16; k++) parts[k] = cases[i].parts[k];
            const size_t n = ids_of_parts(marked, parts, ids);
            const char *const paths[] = {"/infill", completion, "/api/generate"};
            const char *const as_suffix = "{\"prompt\":\"a\",\"suffix\":\"b\"}";
            for (size_t k = 0; k < (i == 0 ? WK_COUNT(paths) : 1); k++) {
                wick_exchange *const x = ask(api, paths[k], k == 0 ? cases[i].body : as_suffix);
                assert_int_equal(x->n_prompts, 1);
                assert_int_equal(x->prompts[0].n, n);
                assert_memory_equal(x->prompts[0].ids, ids, n * sizeof *ids);
                wick_exchange_close(x);
            }
        }
        for (size_t i = 0; i < WK_COUNT(refused); i++)
            expect_text(answer(api, "/infill", refused[i][0], 400), refused[i][1]);
        wick_api_close(api);
        wick_model_close(marked);
    }
}

/* ---- What schemas become ---- */

static void has_schema(const char *path, const char *body, const char *schema) {
    wick_api *const api = open_api((wick_api_desc){.name = "m"});
    wick_exchange *const x = ask(api, path, body);
    assert_int_equal(wick_exchange_status(x), 0);
    if (schema)
        assert_string_equal(x->desc.sampler.json_schema, schema);
    else
        assert_null(x->desc.sampler.json_schema);
    wick_exchange_close(x);
    wick_api_close(api);
}

/* What an answer must look like. */
static void test_schemas(void **state) {
#define CALL_OF(name, arguments)                                                                   \
    "{\"type\":\"object\",\"properties\":{\"name\":{\"const\":\"" name                             \
    "\"},\"arguments\":" arguments                                                                 \
    "},\"required\":[\"name\",\"arguments\"],\"additionalProperties\":false}"
    static const char tools[] =
        "\"tools\":[" TOOL ",{\"function\":{\"name\":\"g\",\"parameters\":{\"type\":\"null\"}}}]";
    static const char given[] =
        "\"tools\":[{\"name\":\"f\"},{\"name\":\"g\",\"input_schema\":{\"type\":\"null\"}}]";
    static const char object[] = "{\"type\":\"object\"}";
    char body[512];
    (void)state;
    has_schema(chat, "{" CHAT ",\"response_format\":{\"type\":\"text\"}}", NULL);
    has_schema(chat, "{" CHAT ",\"response_format\":{\"type\":\"json_object\"}}", object);
    has_schema(chat,
               "{" CHAT ",\"response_format\":{\"type\":\"json_object\",\"value\":{\"type\":"
               "\"null\"}}}",
               "{\"type\":\"null\"}");
    has_schema(chat,
               "{" CHAT ",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{"
               "\"schema\":{\"type\":\"null\"}}}}",
               "{\"type\":\"null\"}");
    has_schema("/v1/responses",
               "{\"input\":\"a\",\"text\":{\"format\":{\"type\":\"json_schema\",\"schema\":{"
               "\"type\":\"null\"}}}}",
               "{\"type\":\"null\"}");
    has_schema("/v1/messages",
               "{" CHAT ",\"max_tokens\":5,\"output_config\":{\"format\":{\"type\":\"json_schema\","
               "\"schema\":{\"type\":\"null\"}}}}",
               "{\"type\":\"null\"}");
    has_schema("/api/chat", "{" CHAT ",\"format\":\"json\"}", object);
    has_schema("/api/chat", "{" CHAT ",\"format\":\"\"}", NULL);
    has_schema("/api/chat", "{" CHAT ",\"format\":{\"type\":\"null\"}}", "{\"type\":\"null\"}");
    snprintf(body, sizeof body, "{" CHAT ",%s,\"tool_choice\":\"auto\"}", tools);
    has_schema(chat, body, NULL);
    snprintf(body, sizeof body, "{" CHAT ",%s,\"tool_choice\":\"required\"}", tools);
    has_schema(
        chat, body,
        "{\"anyOf\":[" CALL_OF(
            "f",
            "{\"type\":\"object\",\"additionalProperties\":false}") "," CALL_OF("g",
                                                                                "{\"type\":"
                                                                                "\"null\"}") "]}");
    snprintf(body, sizeof body, "{" CHAT ",%s,\"tool_choice\":{\"function\":{\"name\":\"g\"}}}",
             tools);
    has_schema(chat, body, "{\"anyOf\":[" CALL_OF("g", "{\"type\":\"null\"}") "]}");
    snprintf(body, sizeof body,
             "{" CHAT ",\"max_tokens\":5,%s,\"tool_choice\":{\"type\":\"tool\",\"name\":\"g\"}}",
             given);
    has_schema("/v1/messages", body, "{\"anyOf\":[" CALL_OF("g", "{\"type\":\"null\"}") "]}");
    snprintf(body, sizeof body,
             "{" CHAT ",\"max_tokens\":5,%s,\"tool_choice\":{\"type\":\"none\"}}", given);
    has_schema("/v1/messages", body, NULL);
    snprintf(body, sizeof body,
             "{" CHAT ",%s,\"tool_choice\":{\"type\":\"allowed_tools\",\"allowed_tools\":{\"mode\":"
             "\"required\",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"g\"}}]}}}",
             tools);
    has_schema(chat, body, "{\"anyOf\":[" CALL_OF("g", "{\"type\":\"null\"}") "]}");
}

/* References in the schemas of arguments, which stand inside another schema. */
static void test_references(void **state) {
    static const char *const cases[][2] = {
        {"{}", "{\"type\":\"object\"}"},
        {"{\"properties\":{\"p\":{\"$ref\":\"#/$defs/P\"}},\"$defs\":{\"P\":{\"enum\":[1]}}}",
         "{\"type\":\"object\",\"properties\":{\"p\":{\"$ref\":\"#/anyOf/0/properties/arguments/"
         "$defs/P\"}},\"$defs\":{\"P\":{\"enum\":[1]}}}"},
        {"{\"type\":\"object\",\"items\":[{\"$ref\":\"#\"}],\"default\":{\"$ref\":\"#\"}}",
         "{\"type\":\"object\",\"items\":[{\"$ref\":\"#/anyOf/0/properties/arguments\"}],"
         "\"default\":{\"$ref\":\"#\"}}"},
        {"{\"type\":\"object\",\"properties\":{\"enum\":{\"$ref\":\"#\"},\"$ref\":{}}}",
         "{\"type\":\"object\",\"properties\":{\"enum\":{\"$ref\":"
         "\"#/anyOf/0/properties/arguments\"},\"$ref\":{}}}"},
    };
    char body[512], schema[512];
    (void)state;
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        snprintf(body, sizeof body,
                 "{" CHAT ",\"tool_choice\":\"required\",\"tools\":[{\"function\":{\"name\":\"f\","
                 "\"parameters\":%s}}]}",
                 cases[i][0]);
        snprintf(schema, sizeof schema,
                 "{\"anyOf\":[{\"type\":\"object\",\"properties\":{\"name\":{\"const\":\"f\"},"
                 "\"arguments\":%s},\"required\":[\"name\",\"arguments\"],"
                 "\"additionalProperties\":false}]}",
                 cases[i][1]);
        has_schema(chat, body, schema);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),   cmocka_unit_test(test_limits),
        cmocka_unit_test(test_sampling),   cmocka_unit_test(test_prompts),
        cmocka_unit_test(test_too_long),   cmocka_unit_test(test_infill),
        cmocka_unit_test(test_schemas),    cmocka_unit_test(test_no_prompt),
        cmocka_unit_test(test_references),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
