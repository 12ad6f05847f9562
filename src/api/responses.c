/* api/responses.c: OpenAI's responses (platform.openai.com/docs/api-reference/responses), without a
 * store. A request becomes one of the chat; what is generated becomes items. See api.h. */
#include "api/api.h"

#include <stdio.h>
#include <string.h>

/* ---- The request ---- */

/* The text that a custom tool is given is its only argument. */
static void write_call_item(wk_strbuf *to, const wk_json *item, bool is_custom) {
    wk_write_raw(to, "{\"role\":\"assistant\",\"tool_calls\":[{\"type\":\"function\"");
    wk_write_put_value(to, "id", wk_json_get(item, "call_id"));
    wk_write_key(to, "function");
    wk_write_open(to, '{');
    wk_write_function_name(to, wk_json_get(item, "namespace"), wk_json_get(item, "name"));
    if (is_custom) wk_write_raw(to, "\"arguments\":{");
    wk_write_put_value(to, is_custom ? "input" : "arguments",
                       wk_json_get(item, is_custom ? "input" : "arguments"));
    wk_strbuf_text(to, is_custom ? "}}}]}" : "}}]}");
}

/* Templates decide of which turns they show it. It may be encrypted, without a text. */
static void write_reasoning(wk_strbuf *to, const wk_json *item) {
    const wk_json *said = wk_json_get(item, "content");
    if (!said || !said->child) said = wk_json_get(item, "summary");
    if (!said || !said->child) return;
    wk_write_raw(to, "{\"role\":\"assistant\",\"reasoning_content\":[");
    for (const wk_json *part = said->child; part; part = part->next)
        wk_write_text_of(to, wk_json_get(part, "text"));
    wk_strbuf_text(to, "]}");
}

/* Calls of tools that only OpenAI's server has, and their results: they are left out. */
static bool is_foreign(const wk_json *type) {
    static const char *const patterns[] = {"*_call*", "mcp_*", "tool_search_output", "program*"};
    bool is_found = false;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        is_found = is_found || (type && type->kind == WK_JSON_STRING &&
                                wk_str_matches(wk_str_of(patterns[i]), type->string));
    return is_found;
}

static void write_item(wk_strbuf *to, const wk_json *item) {
    const wk_json *const type = wk_json_get(item, "type");
    const bool is_custom = wk_json_is(type, "custom_tool_call");
    if (wk_json_is(type, "reasoning")) {
        write_reasoning(to, item);
    } else if (is_custom || wk_json_is(type, "function_call")) {
        write_call_item(to, item, is_custom);
    } else if (wk_json_is(type, "function_call_output") ||
               wk_json_is(type, "custom_tool_call_output")) {
        wk_write_raw(to, "{\"role\":\"tool\"");
        wk_write_put_value(to, "tool_call_id", wk_json_get(item, "call_id"));
        wk_write_put_value(to, "content", wk_json_get(item, "output"));
        wk_write_close(to, '}');
    } else if (!is_foreign(type)) {
        wk_write_value(to, item);
    }
}

static void write_messages(wk_strbuf *to, const wk_json *body) {
    const wk_json *const instructions = wk_json_get(body, "instructions");
    const wk_json *const input = wk_json_get(body, "input");
    wk_write_key(to, "messages");
    wk_write_open(to, '[');
    if (instructions && instructions->kind != WK_JSON_NULL) {
        wk_write_raw(to, "{\"role\":\"system\"");
        wk_write_put_value(to, "content", instructions);
        wk_write_close(to, '}');
    }
    if (input && input->kind == WK_JSON_STRING) {
        wk_write_raw(to, "{\"role\":\"user\"");
        wk_write_put_value(to, "content", input);
        wk_write_close(to, '}');
    } else {
        for (const wk_json *item = input ? input->child : NULL; item; item = item->next)
            write_item(to, item);
    }
    wk_write_close(to, ']');
}

static void write_request(wk_strbuf *to, const wk_json *body) {
    static const char *const same[] = {
        "temperature", "top_p",  "top_k",       "min_p",
        "seed",        "stream", "tool_choice", "parallel_tool_calls"};
    const wk_json *const include = wk_json_get(body, "include");
    wk_write_open(to, '{');
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        wk_write_put_value(to, same[i], wk_json_get(body, same[i]));
    wk_write_put_value(to, "max_tokens", wk_json_get(body, "max_output_tokens"));
    wk_write_put_value(to, "response_format", wk_json_get(wk_json_get(body, "text"), "format"));
    wk_write_functions(to, wk_json_get(body, "tools"), "function", "parameters");
    wk_write_put_value(to, "reasoning_effort",
                       wk_json_get(wk_json_get(body, "reasoning"), "effort"));
    for (const wk_json *item = include ? include->child : NULL; item; item = item->next) {
        if (!wk_json_is(item, "message.output_text.logprobs")) continue;
        wk_write_raw(to, "\"logprobs\":true");
        wk_write_put_value(to, "top_logprobs", wk_json_get(body, "top_logprobs"));
    }
    write_messages(to, body);
    wk_write_close(to, '}');
}

/* ---- The response as an object ---- */

static void write_usage(wick_exchange *x) {
    const wk_api_choice *const choice = x->choices;
    const uint64_t n_read = choice->prompt->n, n_generated = choice->stats.n_generated;
    wk_strbuf *const to = &x->part;
    wk_write_key(to, "usage");
    wk_write_open(to, '{');
    wk_write_put_whole(to, "input_tokens", n_read);
    wk_write_raw(to, "\"input_tokens_details\":{\"cache_write_tokens\":0");
    wk_write_put_whole(to, "cached_tokens", choice->stats.n_reused);
    wk_write_close(to, '}');
    wk_write_put_whole(to, "output_tokens", n_generated);
    wk_write_raw(to, "\"output_tokens_details\":{");
    wk_write_put_whole(to, "reasoning_tokens", choice->n_reasoning);
    wk_write_close(to, '}');
    wk_write_put_whole(to, "total_tokens", n_read + n_generated);
    wk_write_close(to, '}');
}

static bool is_cut(const wk_api_choice *choice) {
    return choice->reason == WICK_END_MAX_TOKENS || choice->reason == WICK_END_CONTEXT_FULL;
}

/* What the request said, as the response repeats it. */
static void write_settings(wick_exchange *x) {
    wk_strbuf *const to = &x->part;
    static const char *const settings[][2] = {
        {"instructions", "null"}, {"max_output_tokens", "null"},
        {"metadata", "{}"},       {"parallel_tool_calls", "true"},
        {"reasoning", "null"},    {"tool_choice", "\"auto\""},
        {"tools", "[]"},          {"truncation", "\"disabled\""},
    };
    const wick_sampler_desc *const sampler = &x->desc.sampler;
    const wk_json *const format = wk_json_get(x->body, "response_format");
    const wk_json *const top_p = wk_request_field(x, "top_p");
    wk_write_raw(to, "\"access_programs\":null,\"background\":false,\"error\":null,"
                     "\"previous_response_id\":null,\"store\":false");
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const wk_json *const given = wk_json_get(x->given, settings[i][0]);
        wk_write_key(to, settings[i][0]);
        if (given && given->kind != WK_JSON_NULL)
            wk_write_value(to, given);
        else
            wk_write_raw(to, settings[i][1]);
    }
    wk_write_key(to, "temperature");
    wk_write_number(to, sampler->temperature);
    wk_write_key(to, "top_p");
    wk_write_number(to, top_p ? top_p->number : sampler->top_p > 0 ? sampler->top_p : 1);
    wk_write_raw(to, "\"text\":{\"format\":");
    if (format)
        wk_write_value(to, format);
    else
        wk_write_raw(to, "{\"type\":\"text\"}");
    wk_write_close(to, '}');
}

static const char in_progress[] = "in_progress", completed[] = "completed",
                  incomplete[] = "incomplete";

static void write_response(wick_exchange *x, const char *status) {
    const wk_api_choice *const choice = x->choices;
    wk_strbuf *const to = &x->part;
    wk_write_open(to, '{');
    wk_write_put(to, "id", x->id);
    wk_write_put(to, "object", "response");
    wk_write_put_whole(to, "created_at", (uint64_t)x->time);
    wk_write_put(to, "status", status);
    wk_write_put(to, "model", x->api->name);
    if (x->has_tools_in_words) wk_write_put(to, "tool_format", "generic");
    wk_write_key(to, "incomplete_details");
    wk_write_raw(to, status == incomplete ? "{\"reason\":\"max_output_tokens\"}" : "null");
    wk_write_key(to, "output");
    wk_write_open(to, '[');
    wk_strbuf_append(to, choice->calls.data, choice->calls.size);
    wk_write_close(to, ']');
    write_settings(x);
    if (choice->is_over) write_usage(x);
    wk_write_close(to, '}');
}

/* ---- Events ---- */

static wk_strbuf *open_event(wick_exchange *x, const char *type) {
    wk_write_open(&x->part, '{');
    wk_write_put(&x->part, "type", type);
    wk_write_put_whole(&x->part, "sequence_number", x->n_events++);
    return &x->part;
}

static void close_event(wick_exchange *x, const char *type) {
    wk_write_close(&x->part, '}');
    wk_exchange_event(x, type);
}

static void send_response(wick_exchange *x, const char *type, const char *status) {
    wk_write_key(open_event(x, type), "response");
    write_response(x, status);
    close_event(x, type);
}

static void begin(wick_exchange *x) {
    send_response(x, "response.created", in_progress);
    send_response(x, "response.in_progress", in_progress);
}

/* The id of the item that is being written. */
static void write_id(wk_strbuf *to, const char *key, const wk_api_choice *choice) {
    static const char *const kinds[] = {
        [WK_BLOCK_TEXT] = "msg", [WK_BLOCK_REASONING] = "rs", [WK_BLOCK_CALL] = "fc"};
    char id[80];
    snprintf(id, sizeof id, "%s_%s_%u", kinds[choice->block], choice->exchange->number,
             choice->n_blocks);
    wk_write_put(to, key, id);
}

/* An event about the item, up to what it alone has. */
static wk_strbuf *open_item_event(wk_api_choice *choice, const char *type, bool is_of_part) {
    wk_strbuf *const to = open_event(choice->exchange, type);
    write_id(to, "item_id", choice);
    wk_write_put_whole(to, "output_index", choice->n_blocks);
    if (is_of_part) wk_write_put_whole(to, "content_index", 0);
    return to;
}

/* The log probabilities that wait for a part of the text; the item keeps them. */
static void write_waiting(wk_strbuf *to, wk_api_choice *choice) {
    wk_write_raw(to, "\"logprobs\":[");
    const size_t before = to->size;
    wk_write_logprob_items(choice, false);
    if (to->size > before) {
        wk_write_raw(&choice->tokens, "");
        wk_strbuf_append(&choice->tokens, to->data + before, to->size - before);
    }
    wk_write_close(to, ']');
}

/* Those of the item so far. */
static void write_logprobs(wk_strbuf *to, const wk_api_choice *choice) {
    wk_write_raw(to, "\"logprobs\":[");
    wk_strbuf_append(to, choice->tokens.data, choice->tokens.size);
    wk_write_close(to, ']');
}

/* The part that holds the text of the item so far, without an array around it. */
static void write_part(wk_strbuf *to, const wk_api_choice *choice) {
    const bool is_reasoning = choice->block == WK_BLOCK_REASONING;
    wk_write_open(to, '{');
    wk_write_put(to, "type", is_reasoning ? "reasoning_text" : "output_text");
    wk_write_put_string(to, "text", (wk_str){choice->content.data, choice->content.size});
    if (!is_reasoning) wk_write_raw(to, "\"annotations\":[]");
    if (!is_reasoning) write_logprobs(to, choice);
    wk_write_close(to, '}');
}

/* Whether the name of a call is that of a function in a namespace. */
static bool is_in_space(wk_str name, const wk_json *space, const wk_json *own) {
    static const char between[] = WK_IN_SPACE;
    enum { N_BETWEEN = sizeof between - 1 };
    if (!space || space->kind != WK_JSON_STRING || !own || own->kind != WK_JSON_STRING)
        return false;
    const size_t n = space->string.size;
    return name.size == n + N_BETWEEN + own->string.size &&
           memcmp(name.text, space->string.text, n) == 0 &&
           memcmp(name.text + n, between, N_BETWEEN) == 0 &&
           memcmp(name.text + n + N_BETWEEN, own->string.text, own->string.size) == 0;
}

/* The namespace of the function that a call names, NULL: none; name becomes the one it has there.
 */
static const wk_json *find_space(const wick_exchange *x, wk_str *name) {
    const wk_json *const tools = wk_json_get(x->given, "tools");
    for (const wk_json *tool = tools ? tools->child : NULL; tool; tool = tool->next) {
        const wk_json *const space = wk_json_get(tool, "name");
        const wk_json *const inner = wk_json_get(tool, "tools");
        if (!wk_json_is(wk_json_get(tool, "type"), "namespace")) continue;
        for (const wk_json *item = inner ? inner->child : NULL; item; item = item->next) {
            const wk_json *const own = wk_json_get(item, "name");
            if (!is_in_space(*name, space, own)) continue;
            *name = own->string;
            return space;
        }
    }
    return NULL;
}

/* The item that is being written, as far as it has come. */
static void write_output(wk_strbuf *to, const wk_api_choice *choice, const wk_tool_call *call,
                         const char *status) {
    const bool is_over = status != in_progress;
    char id[WK_CALL_ID];
    wk_call_id(choice, id);
    wk_write_open(to, '{');
    write_id(to, "id", choice);
    wk_write_put(to, "status", status);
    if (choice->block == WK_BLOCK_CALL) {
        wk_write_put(to, "type", "function_call");
        wk_write_put(to, "call_id", id);
        wk_str name = call->name;
        wk_write_put_value(to, "namespace", find_space(choice->exchange, &name));
        wk_write_put_string(to, "name", name);
        wk_write_put_string(to, "arguments", is_over ? call->arguments : wk_str_of(""));
        wk_write_close(to, '}');
        return;
    }
    const bool is_reasoning = choice->block == WK_BLOCK_REASONING;
    wk_write_put(to, "type", is_reasoning ? "reasoning" : "message");
    wk_write_raw(to, is_reasoning ? "\"summary\":[]" : "\"role\":\"assistant\"");
    wk_write_key(to, "content");
    wk_write_open(to, '[');
    if (is_over) write_part(to, choice);
    wk_write_close(to, ']');
    wk_write_close(to, '}');
}

static void send_item(wk_api_choice *choice, const char *type, const wk_tool_call *call,
                      const char *status) {
    wk_strbuf *const to = open_event(choice->exchange, type);
    wk_write_put_whole(to, "output_index", choice->n_blocks);
    wk_write_key(to, "item");
    write_output(to, choice, call, status);
    close_event(choice->exchange, type);
}

static void send_part(wk_api_choice *choice, const char *type) {
    wk_strbuf *const to = open_item_event(choice, type, true);
    wk_write_key(to, "part");
    write_part(to, choice);
    close_event(choice->exchange, type);
}

/* text of the kind of the item: "delta" of it, or all of it. */
static void send_text(wk_api_choice *choice, const char *type, const char *key, wk_str text) {
    wk_strbuf *const to = open_item_event(choice, type, choice->block != WK_BLOCK_CALL);
    wk_write_put_string(to, key, text);
    if (choice->block == WK_BLOCK_TEXT && strcmp(key, "delta") == 0)
        write_waiting(to, choice);
    else if (choice->block == WK_BLOCK_TEXT)
        write_logprobs(to, choice);
    close_event(choice->exchange, type);
}

/* ---- What is generated ---- */

static void keep_item(wk_api_choice *choice, const wk_tool_call *call, const char *status) {
    write_output(&choice->calls, choice, call, status);
    choice->block = WK_BLOCK_NONE;
    choice->n_blocks++;
}

static void end_item_as(wk_api_choice *choice, const char *status) {
    const bool is_reasoning = choice->block == WK_BLOCK_REASONING;
    if (choice->block == WK_BLOCK_NONE) return;
    if (choice->exchange->is_stream) {
        send_text(choice,
                  is_reasoning ? "response.reasoning_text.done" : "response.output_text.done",
                  "text", (wk_str){choice->content.data, choice->content.size});
        send_part(choice, "response.content_part.done");
        send_item(choice, "response.output_item.done", NULL, status);
    }
    keep_item(choice, NULL, status);
    choice->calls.failed |= choice->content.failed || choice->tokens.failed;
    wk_strbuf_clear(&choice->content);
    wk_strbuf_clear(&choice->tokens);
}

static void write_end(wk_api_choice *choice) {
    end_item_as(choice, is_cut(choice) ? incomplete : completed);
}

static void write_text(wk_api_choice *choice, bool is_reasoning, wk_str text) {
    const wk_block_kind kind = is_reasoning ? WK_BLOCK_REASONING : WK_BLOCK_TEXT;
    const bool is_stream = choice->exchange->is_stream;
    if (choice->block != kind) {
        end_item_as(choice, completed);
        choice->block = kind;
        if (is_stream) send_item(choice, "response.output_item.added", NULL, in_progress);
        if (is_stream) send_part(choice, "response.content_part.added");
    }
    wk_strbuf_append(&choice->content, text.text, text.size);
    if (is_reasoning) wk_strbuf_clear(&choice->logprobs); /* which has none */
    if (!is_stream && !is_reasoning) {
        wk_strbuf *const part = &choice->exchange->part;
        write_waiting(part, choice);
        choice->tokens.failed |= part->failed;
        wk_strbuf_clear(part);
    }
    if (is_stream)
        send_text(choice,
                  is_reasoning ? "response.reasoning_text.delta" : "response.output_text.delta",
                  "delta", text);
}

static void write_call(wk_api_choice *choice, const wk_tool_call *call) {
    static const char done[] = "response.function_call_arguments.done";
    end_item_as(choice, completed);
    wk_strbuf_clear(&choice->logprobs);
    choice->block = WK_BLOCK_CALL;
    if (choice->exchange->is_stream) {
        send_item(choice, "response.output_item.added", call, in_progress);
        send_text(choice, "response.function_call_arguments.delta", "delta", call->arguments);
        wk_strbuf *const to = open_item_event(choice, done, false);
        wk_str name = call->name;
        (void)find_space(choice->exchange, &name);
        wk_write_put_string(to, "name", name);
        wk_write_put_string(to, "arguments", call->arguments);
        close_event(choice->exchange, done);
        send_item(choice, "response.output_item.done", call, completed);
    }
    keep_item(choice, call, completed);
}

static void finish(wick_exchange *x) {
    const bool is_incomplete = is_cut(x->choices);
    const char *const status = is_incomplete ? incomplete : completed;
    if (x->is_stream)
        send_response(x, is_incomplete ? "response.incomplete" : "response.completed", status);
    else
        write_response(x, status);
    wk_exchange_end(x, 200);
}

/* In a stream it is an event like any other. */
static void write_event_error(wick_exchange *x, int status, const char *message) {
    wk_strbuf *const to = open_event(x, "error");
    wk_write_put(to, "code", status == 503 ? "server_is_overloaded" : "server_error");
    wk_write_put(to, "message", message);
    wk_write_raw(to, "\"param\":null}");
}

static const char *const names[][2] = {{"max_tokens", "max_output_tokens"},
                                       {"messages", "input"},
                                       {"response_format", "text.format"},
                                       {"reasoning_effort", "reasoning.effort"},
                                       {NULL}};

const wk_style wk_responses_style = {.is_chat = true,
                                     .has_blocks = true,
                                     .names = names,
                                     .begin = begin,
                                     .text = write_text,
                                     .call = write_call,
                                     .end = write_end,
                                     .finish = finish,
                                     .event_error = write_event_error};

static wick_status take_request(wick_exchange *x, wick_error *err) {
    static const char *const stored[] = {"previous_response_id", "conversation", "prompt"};
    const wk_json *const input = wk_request_field(x, "input");
    const wk_json *const instructions = wk_request_field(x, "instructions");
    bool is_background = false;
    for (size_t i = 0; i < sizeof stored / sizeof *stored; i++)
        if (wk_request_field(x, stored[i]))
            return wk_fail(err, WICK_ERR_UNSUPPORTED,
                           "%s: this server stores nothing; send the earlier items as input",
                           stored[i]);
    for (const wk_json *item = input ? input->child : NULL; item; item = item->next)
        if (wk_json_is(wk_json_get(item, "type"), "item_reference"))
            return wk_fail(err, WICK_ERR_UNSUPPORTED,
                           "input: an item_reference: this server stores nothing; send the item");
    WK_TRY(wk_request_bool(x, "background", &is_background, err));
    if (is_background)
        return wk_fail(err, WICK_ERR_UNSUPPORTED, "background: this server stores no responses");
    if (!input ||
        (input->kind != WK_JSON_STRING && (input->kind != WK_JSON_ARRAY || !input->child)))
        return wk_fail(err, WICK_ERR_VALUE, "input must be a text or an array of items");
    if (instructions && instructions->kind != WK_JSON_STRING)
        return wk_fail(err, WICK_ERR_VALUE, "instructions must be a text");
    x->given = x->body;
    wk_exchange_name(x, "resp_");
    WK_TRY(wk_request_translate(x, write_request, err));
    return wk_turns_join(x, err);
}

wick_status wk_answer_responses(wick_exchange *x, wick_error *err) {
    WK_TRY(take_request(x, err));
    WK_TRY(wk_request_generation(x, err));
    WK_TRY(wk_request_logprobs(x, err));
    WK_TRY(wk_request_chat(x, err));
    return wk_prompt_of_chat(x, err);
}

wick_status wk_answer_input_tokens(wick_exchange *x, wick_error *err) {
    WK_TRY(take_request(x, err));
    return wk_answer_count(x, "response.input_tokens", err);
}
