/* api/messages.c: Anthropic's messages (docs.anthropic.com/en/api/messages). A request becomes one
 * of OpenAI's chat; what is generated becomes blocks of content. See api.h. */
#include "api/api.h"

#include <string.h>

/* ---- The request ---- */

/* Of a tool that only Anthropic's server has: it is left out. */
static bool is_foreign(const wk_json *block) {
    const wk_json *const type = wk_json_get(block, "type");
    return wk_json_is(type, "server_tool_use") || wk_json_is(type, "mcp_tool_use") ||
           wk_json_is(type, "container_upload") ||
           (type && type->kind == WK_JSON_STRING &&
            wk_str_matches(wk_str_of("*_tool_result"), type->string));
}

/* Blocks that have a place of their own; any other one is content, of text or refused later. */
static bool is_apart(const wk_json *block) {
    static const char *const types[] = {"tool_use", "tool_result", "thinking", "redacted_thinking"};
    const wk_json *const type = wk_json_get(block, "type");
    bool is_found = is_foreign(block);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        is_found = is_found || wk_json_is(type, types[i]);
    return is_found;
}

/* A document of text or a result of a search: what it is called, and what it says. */
static void write_document(wk_strbuf *to, const wk_json *block, const wk_json *said) {
    static const char *const names[] = {"title", "context", "source"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const wk_json *const name = wk_json_get(block, names[i]);
        if (name && name->kind == WK_JSON_STRING) wk_write_value(to, name);
    }
    const bool is_list = said->kind == WK_JSON_ARRAY;
    for (const wk_json *at = is_list ? said->child : said; at; at = is_list ? at->next : NULL)
        wk_write_value(to, at);
}

static void write_content(wk_strbuf *to, const wk_json *block) {
    const wk_json *const type = wk_json_get(block, "type");
    const wk_json *const source = wk_json_get(block, "source");
    const wk_json *said = NULL;
    if (wk_json_is(type, "search_result")) said = wk_json_get(block, "content");
    if (wk_json_is(type, "document"))
        said = wk_json_get(source,
                           wk_json_is(wk_json_get(source, "type"), "text") ? "data" : "content");
    if (said)
        write_document(to, block, said);
    else
        wk_write_value(to, block);
}

/* The blocks of an array that are content; else as it is. */
static void write_texts(wk_strbuf *to, const wk_json *content) {
    if (!content || content->kind != WK_JSON_ARRAY) {
        wk_write_value(to, content);
        return;
    }
    wk_write_open(to, '[');
    for (const wk_json *block = content->child; block; block = block->next)
        if (!is_apart(block)) write_content(to, block);
    wk_write_close(to, ']');
}

/* A result of a tool is a message of its own, before what the user says. */
static void write_result(wk_strbuf *to, const wk_json *block) {
    wk_write_open(to, '{');
    wk_write_put(to, "role", "tool");
    wk_write_key(to, "tool_call_id");
    wk_write_value(to, wk_json_get(block, "tool_use_id"));
    wk_write_key(to, "content");
    const wk_json *const content = wk_json_get(block, "content");
    if (content && content->kind != WK_JSON_NULL)
        write_texts(to, content);
    else
        wk_write_string(to, wk_str_of(""));
    wk_write_close(to, '}');
}

static void write_use(wk_strbuf *to, const wk_json *block) {
    wk_write_open(to, '{');
    wk_write_key(to, "id");
    wk_write_value(to, wk_json_get(block, "id"));
    wk_write_put(to, "type", "function");
    wk_write_key(to, "function");
    wk_write_open(to, '{');
    wk_write_key(to, "name");
    wk_write_value(to, wk_json_get(block, "name"));
    wk_write_key(to, "arguments");
    wk_write_value(to, wk_json_get(block, "input"));
    wk_write_close(to, '}');
    wk_write_close(to, '}');
}

static const wk_json *next_of(const wk_json *block, const char *type) {
    while (block && !wk_json_is(wk_json_get(block, "type"), type)) block = block->next;
    return block;
}

static void write_message(wk_strbuf *to, const wk_json *message) {
    const wk_json *const content = wk_json_get(message, "content");
    const wk_json *const blocks = content && content->kind == WK_JSON_ARRAY ? content->child : NULL;
    const wk_json *block = next_of(blocks, "tool_result");
    for (; block; block = next_of(block->next, "tool_result")) write_result(to, block);
    const wk_json *own = blocks;
    while (own && (is_foreign(own) || wk_json_is(wk_json_get(own, "type"), "tool_result")))
        own = own->next;
    if (blocks && !own) return;
    wk_write_open(to, '{');
    wk_write_key(to, "role");
    wk_write_value(to, wk_json_get(message, "role"));
    wk_write_key(to, "content");
    write_texts(to, content);
    const wk_json *thinking = next_of(blocks, "thinking");
    if (thinking) {
        wk_write_raw(to, "\"reasoning_content\":[");
        for (; thinking; thinking = next_of(thinking->next, "thinking"))
            wk_write_text_of(to, wk_json_get(thinking, "thinking"));
        wk_write_close(to, ']');
    }
    block = next_of(blocks, "tool_use");
    if (block) {
        wk_write_key(to, "tool_calls");
        wk_write_open(to, '[');
        for (; block; block = next_of(block->next, "tool_use")) write_use(to, block);
        wk_write_close(to, ']');
    }
    wk_write_close(to, '}');
}

static void write_tool_choice(wk_strbuf *to, const wk_json *choice) {
    const wk_json *const type = wk_json_get(choice, "type");
    const wk_json *const has_one = wk_json_get(choice, "disable_parallel_tool_use");
    if (has_one && has_one->boolean) wk_write_raw(to, "\"parallel_tool_calls\":false");
    if (wk_json_is(type, "tool")) {
        wk_write_raw(to, "\"tool_choice\":{\"type\":\"function\",\"function\":{");
        wk_write_put_value(to, "name", wk_json_get(choice, "name"));
        wk_strbuf_text(to, "}}");
    } else if (wk_json_is(type, "any")) {
        wk_write_put(to, "tool_choice", "required");
    } else {
        wk_write_put_value(to, "tool_choice", type ? type : choice);
    }
}

static void write_request(wk_strbuf *to, const wk_json *body) {
    static const char *const same[] = {"temperature", "top_p", "top_k", "max_tokens", "stream"};
    const wk_json *const system = wk_json_get(body, "system");
    const bool has_system = system && system->kind != WK_JSON_NULL;
    const wk_json *const choice = wk_json_get(body, "tool_choice");
    const wk_json *const thinking = wk_json_get(wk_json_get(body, "thinking"), "type");
    wk_write_open(to, '{');
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        wk_write_put_value(to, same[i], wk_json_get(body, same[i]));
    wk_write_put_value(to, "stop", wk_json_get(body, "stop_sequences"));
    wk_write_functions(to, wk_json_get(body, "tools"), "custom", "input_schema");
    write_tool_choice(to, choice);
    const wk_json *const output = wk_json_get(body, "output_config");
    const wk_json *const format = wk_json_get(output, "format");
    wk_write_put_value(to, "response_format", format ? format : wk_json_get(body, "output_format"));
    wk_write_put_value(to, "reasoning_effort", wk_json_get(output, "effort"));
    if (thinking) {
        wk_write_key(to, "chat_template_kwargs");
        wk_write_raw(to, "{\"enable_thinking\":");
        wk_write_bool(to, !wk_json_is(thinking, "disabled"));
        wk_write_close(to, '}');
    }
    wk_write_key(to, "messages");
    wk_write_open(to, '[');
    if (has_system) {
        wk_write_open(to, '{');
        wk_write_put(to, "role", "system");
        wk_write_key(to, "content");
        write_texts(to, system);
        wk_write_close(to, '}');
    }
    const wk_json *const messages = wk_json_get(body, "messages");
    for (const wk_json *item = messages ? messages->child : NULL; item; item = item->next)
        write_message(to, item);
    wk_write_close(to, ']');
    wk_write_close(to, '}');
}

/* ---- Errors ---- */

static void write_error(wk_strbuf *to, int status, const char *message) {
    const char *const type = status == 401   ? "authentication_error"
                             : status == 404 ? "not_found_error"
                             : status == 413 ? "request_too_large"
                             : status == 429 ? "rate_limit_error"
                             : status == 503 ? "overloaded_error"
                             : status == 500 ? "api_error"
                                             : "invalid_request_error";
    wk_write_open(to, '{');
    wk_write_put(to, "type", "error");
    wk_write_key(to, "error");
    wk_write_open(to, '{');
    wk_write_put(to, "type", type);
    wk_write_put(to, "message", message);
    wk_write_close(to, '}');
    wk_write_close(to, '}');
}

/* ---- The answer ---- */

static void write_usage(wick_exchange *x, uint64_t n_generated) {
    const wk_api_choice *const choice = x->choices;
    const uint64_t n_reused = choice->stats.n_reused;
    wk_strbuf *const to = &x->part;
    wk_write_key(to, "usage");
    wk_write_open(to, '{');
    wk_write_put_whole(to, "input_tokens", choice->prompt->n - n_reused);
    wk_write_put_whole(to, "cache_creation_input_tokens", 0);
    wk_write_put_whole(to, "cache_read_input_tokens", n_reused);
    wk_write_put_whole(to, "output_tokens", n_generated);
    wk_write_close(to, '}');
}

static const char by_sequence[] = "stop_sequence";

static const char *stop_reason(const wk_api_choice *choice) {
    if (choice->reason == WICK_END_MAX_TOKENS || choice->reason == WICK_END_CONTEXT_FULL)
        return "max_tokens";
    if (choice->n_calls > 0) return "tool_use";
    return choice->reason == WICK_END_STOP_STRING ? by_sequence : "end_turn";
}

/* The sequence is the one that ended the text. reason: NULL while it goes on. */
static void write_stop(wick_exchange *x, const char *reason) {
    const bool is_stopped = reason && strcmp(reason, by_sequence) == 0;
    wk_write_put(&x->part, "stop_reason", reason);
    wk_write_put(&x->part, "stop_sequence", is_stopped ? x->desc.stop[x->choices->stop] : NULL);
}

/* A message up to its content. */
static void open_message(wick_exchange *x) {
    wk_strbuf *const to = &x->part;
    wk_write_open(to, '{');
    wk_write_put(to, "id", x->id);
    wk_write_put(to, "type", "message");
    wk_write_put(to, "role", "assistant");
    wk_write_put(to, "model", x->api->name);
    wk_write_key(to, "content");
    wk_write_open(to, '[');
}

static void close_message(wick_exchange *x, const char *reason) {
    wk_strbuf *const to = &x->part;
    wk_write_close(to, ']');
    write_stop(x, reason);
    write_usage(x, x->choices->stats.n_generated);
    wk_write_close(to, '}');
}

/* An event of this type, up to its own members. */
static wk_strbuf *open_event(wick_exchange *x, const char *type) {
    wk_write_open(&x->part, '{');
    wk_write_put(&x->part, "type", type);
    return &x->part;
}

static void close_event(wick_exchange *x, const char *type) {
    wk_write_close(&x->part, '}');
    wk_exchange_event(x, type);
}

static void begin(wick_exchange *x) {
    static const char type[] = "message_start";
    wk_write_key(open_event(x, type), "message");
    open_message(x);
    close_message(x, NULL);
    close_event(x, type);
}

/* The content of the block that begins, without what comes later. */
static void write_block(wk_strbuf *to, wk_block_kind kind, const wk_api_choice *choice,
                        const wk_tool_call *call) {
    char id[WK_CALL_ID];
    wk_call_id(choice, id);
    wk_write_open(to, '{');
    switch (kind) {
    case WK_BLOCK_TEXT:
        wk_write_put(to, "type", "text");
        wk_write_put(to, "text", "");
        break;
    case WK_BLOCK_REASONING:
        wk_write_put(to, "type", "thinking");
        wk_write_put(to, "thinking", "");
        wk_write_put(to, "signature", "");
        break;
    default:
        wk_write_put(to, "type", "tool_use");
        wk_write_put(to, "id", id);
        wk_write_put_string(to, "name", call->name);
        wk_write_key(to, "input");
    }
}

static void end_block(wk_api_choice *choice) {
    static const char type[] = "content_block_stop";
    if (choice->block == WK_BLOCK_NONE) return;
    wk_write_put_whole(open_event(choice->exchange, type), "index", choice->n_blocks - 1);
    close_event(choice->exchange, type);
    choice->block = WK_BLOCK_NONE;
}

static void begin_block(wk_api_choice *choice, wk_block_kind kind, const wk_tool_call *call) {
    static const char type[] = "content_block_start";
    if (choice->block == kind && !call) return;
    end_block(choice);
    wk_strbuf *const to = open_event(choice->exchange, type);
    wk_write_put_whole(to, "index", choice->n_blocks++);
    wk_write_key(to, "content_block");
    write_block(to, kind, choice, call);
    if (call) wk_write_raw(to, "{}");
    wk_write_close(to, '}');
    close_event(choice->exchange, type);
    choice->block = kind;
}

static void write_delta(wk_api_choice *choice, const char *type, const char *key, wk_str text) {
    static const char event[] = "content_block_delta";
    wk_strbuf *const to = open_event(choice->exchange, event);
    wk_write_put_whole(to, "index", choice->n_blocks - 1);
    wk_write_key(to, "delta");
    wk_write_open(to, '{');
    wk_write_put(to, "type", type);
    wk_write_put_string(to, key, text);
    wk_write_close(to, '}');
    close_event(choice->exchange, event);
}

/* The text of a block of a whole answer, where there is one. */
static void keep_block(wk_api_choice *choice) {
    const bool is_text = choice->block == WK_BLOCK_TEXT;
    wk_strbuf *const to = &choice->calls, *const text = &choice->content;
    if (choice->block == WK_BLOCK_NONE) return;
    wk_write_open(to, '{');
    wk_write_put(to, "type", is_text ? "text" : "thinking");
    wk_write_put_string(to, is_text ? "text" : "thinking", (wk_str){text->data, text->size});
    if (!is_text) wk_write_put(to, "signature", "");
    wk_write_close(to, '}');
    to->failed |= text->failed;
    wk_strbuf_clear(text);
    choice->block = WK_BLOCK_NONE;
}

static void write_text(wk_api_choice *choice, bool is_reasoning, wk_str text) {
    const wk_block_kind kind = is_reasoning ? WK_BLOCK_REASONING : WK_BLOCK_TEXT;
    if (choice->exchange->is_stream) {
        begin_block(choice, kind, NULL);
        write_delta(choice, is_reasoning ? "thinking_delta" : "text_delta",
                    is_reasoning ? "thinking" : "text", text);
        return;
    }
    if (choice->block != kind) keep_block(choice);
    choice->block = kind;
    wk_choice_keep_text(choice, false, text);
}

static void write_call(wk_api_choice *choice, const wk_tool_call *call) {
    if (choice->exchange->is_stream) {
        begin_block(choice, WK_BLOCK_CALL, call);
        write_delta(choice, "input_json_delta", "partial_json", call->arguments);
        end_block(choice);
        return;
    }
    keep_block(choice);
    write_block(&choice->calls, WK_BLOCK_CALL, choice, call);
    wk_strbuf_append(&choice->calls, call->arguments.text, call->arguments.size);
    wk_write_close(&choice->calls, '}');
}

static void write_end(wk_api_choice *choice) {
    if (choice->exchange->is_stream)
        end_block(choice);
    else
        keep_block(choice);
}

static void finish_stream(wick_exchange *x) {
    static const char delta[] = "message_delta", stop[] = "message_stop";
    wk_strbuf *const to = open_event(x, delta);
    wk_write_key(to, "delta");
    wk_write_open(to, '{');
    write_stop(x, stop_reason(x->choices));
    wk_write_close(to, '}');
    write_usage(x, x->choices->stats.n_generated);
    close_event(x, delta);
    (void)open_event(x, stop);
    close_event(x, stop);
    wk_exchange_end(x, 200);
}

static void finish(wick_exchange *x) {
    const wk_api_choice *const choice = x->choices;
    if (x->is_stream) {
        finish_stream(x);
        return;
    }
    open_message(x);
    wk_strbuf_append(&x->part, choice->calls.data, choice->calls.size);
    close_message(x, stop_reason(choice));
    wk_exchange_end(x, 200);
}

static const char *const names[][2] = {
    {"stop", "stop_sequences"}, {"response_format", "output_config.format"}, {NULL}};

const wk_style wk_messages_style = {.is_chat = true,
                                    .has_blocks = true,
                                    .names = names,
                                    .begin = begin,
                                    .text = write_text,
                                    .call = write_call,
                                    .end = write_end,
                                    .finish = finish,
                                    .error = write_error};

static wick_status take_request(wick_exchange *x, wick_error *err) {
    const wk_json *const messages = wk_request_field(x, "messages");
    if (!messages || messages->kind != WK_JSON_ARRAY || !messages->child)
        return wk_fail(err, WICK_ERR_VALUE, "messages must be an array of at least one message");
    const wk_json *const system = wk_request_field(x, "system");
    if (system && system->kind != WK_JSON_STRING && system->kind != WK_JSON_ARRAY)
        return wk_fail(err, WICK_ERR_VALUE, "system must be a text or an array of them");
    wk_exchange_name(x, "msg_");
    WK_TRY(wk_request_translate(x, write_request, err));
    return wk_turns_join(x, err);
}

/* A thread is kept by the server, which keeps nothing. Clients that know the code send all of the
 * conversation instead. */
static bool refuses_thread(wick_exchange *x) {
    if (!wk_request_field(x, "thread")) return false;
    wk_write_raw(&x->part,
                 "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":"
                 "\"thread: this server stores nothing; send the whole conversation without it\","
                 "\"details\":{\"error_code\":\"thread_unsupported_request\"}}}");
    wk_exchange_end(x, 400);
    return true;
}

wick_status wk_answer_messages(wick_exchange *x, wick_error *err) {
    const bool has_limit = wk_request_field(x, "max_tokens") != NULL;
    if (refuses_thread(x)) return WICK_OK;
    WK_TRY(take_request(x, err));
    if (!has_limit) return wk_fail(err, WICK_ERR_VALUE, "max_tokens: field required");
    WK_TRY(wk_request_generation(x, err));
    WK_TRY(wk_request_chat(x, err));
    return wk_prompt_of_chat(x, err);
}

wick_status wk_answer_count_tokens(wick_exchange *x, wick_error *err) {
    WK_TRY(take_request(x, err));
    return wk_answer_count(x, NULL, err);
}
