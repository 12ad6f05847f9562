/* api/ollama.c: ollama's API (github.com/ollama/ollama/blob/main/docs/api.md), which editors look
 * for: a line of JSON for each event. See api.h. */
#include "api/api.h"

#include <stdio.h>
#include <string.h>

/* ---- The request ---- */

/* "json", or a schema. */
static void write_format(wk_strbuf *to, const wk_json *format) {
    if (!format || format->kind == WK_JSON_NULL) return;
    if (format->kind == WK_JSON_STRING && format->string.size == 0) return;
    wk_write_key(to, "response_format");
    if (format->kind != WK_JSON_OBJECT) {
        wk_write_raw(to, "{\"type\":\"json_object\"}");
        return;
    }
    wk_write_raw(to, "{\"type\":\"json_schema\"");
    wk_write_put_value(to, "schema", format);
    wk_write_close(to, '}');
}

static void write_settings(wk_strbuf *to, const wk_json *body) {
    static const char *const names[][2] = {
        {"temperature", "temperature"},
        {"top_k", "top_k"},
        {"top_p", "top_p"},
        {"min_p", "min_p"},
        {"seed", "seed"},
        {"stop", "stop"},
        {"num_predict", "n_predict"},
        {"repeat_penalty", "repeat_penalty"},
        {"repeat_last_n", "repeat_last_n"},
        {"presence_penalty", "presence_penalty"},
        {"typical_p", "typical_p"},
        {"frequency_penalty", "frequency_penalty"},
    };
    const wk_json *const options = wk_json_get(body, "options");
    const wk_json *const stream = wk_json_get(body, "stream");
    const wk_json *const think = wk_json_get(body, "think");
    wk_write_key(to, "stream");
    if (stream && stream->kind != WK_JSON_NULL)
        wk_write_value(to, stream);
    else
        wk_write_bool(to, true);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        wk_write_put_value(to, names[i][1], wk_json_get(options, names[i][0]));
    const wk_json *const limit = wk_json_get(options, "num_predict");
    if (limit && limit->number == -2) wk_write_raw(to, "\"n_predict\":-1"); /* the context's end */
    wk_write_put_value(to, "logprobs", wk_json_get(body, "logprobs"));
    wk_write_put_value(to, "top_logprobs", wk_json_get(body, "top_logprobs"));
    write_format(to, wk_json_get(body, "format"));
    if (!think || think->kind == WK_JSON_NULL) return;
    if (think->kind == WK_JSON_STRING) wk_write_put_value(to, "reasoning_effort", think);
    wk_write_raw(to, "\"chat_template_kwargs\":{\"enable_thinking\":");
    wk_write_bool(to, think->boolean || think->kind == WK_JSON_STRING);
    wk_write_close(to, '}');
}

static void write_chat(wk_strbuf *to, const wk_json *body) {
    wk_write_open(to, '{');
    write_settings(to, body);
    wk_write_put_value(to, "messages", wk_json_get(body, "messages"));
    wk_write_put_value(to, "tools", wk_json_get(body, "tools"));
    wk_write_close(to, '}');
}

static void write_message(wk_strbuf *to, const char *role, const wk_json *content,
                          const wk_json *images) {
    wk_write_open(to, '{');
    wk_write_put(to, "role", role);
    wk_write_put_value(to, "content", content);
    wk_write_put_value(to, "images", images);
    wk_write_close(to, '}');
}

/* A prompt is a message of the user; raw, it is the text to go on from. */
static void write_prompt(wk_strbuf *to, const wk_json *body) {
    const wk_json *const system = wk_json_get(body, "system");
    wk_write_open(to, '{');
    write_settings(to, body);
    wk_write_put_value(to, "prompt", wk_json_get(body, "prompt"));
    wk_write_put_value(to, "suffix", wk_json_get(body, "suffix"));
    wk_write_key(to, "messages");
    wk_write_open(to, '[');
    if (system && system->kind == WK_JSON_STRING && system->string.size > 0)
        write_message(to, "system", system, NULL);
    write_message(to, "user", wk_json_get(body, "prompt"), wk_json_get(body, "images"));
    wk_write_close(to, ']');
    wk_write_close(to, '}');
}

/* ---- The answer ---- */

static bool is_prompt(const wick_exchange *x) { return wk_str_is(x->path, "/api/generate"); }

/* An event up to what it says. */
static wk_strbuf *open_line(wick_exchange *x) {
    wk_strbuf *const to = &x->part;
    wk_write_open(to, '{');
    wk_write_put(to, "model", x->api->name);
    wk_write_time(to, "created_at", x->time);
    return to;
}

/* With the log probabilities that wait for an event. */
static void close_line(wick_exchange *x, bool is_done) {
    if (x->has_logprobs && x->choices->logprobs.size > 0) {
        wk_write_raw(&x->part, "\"logprobs\":[");
        wk_write_logprob_items(x->choices, false);
        wk_write_close(&x->part, ']');
    }
    wk_write_key(&x->part, "done");
    wk_write_bool(&x->part, is_done);
    wk_write_close(&x->part, '}');
}

static void write_said(wick_exchange *x, wk_str content, wk_str thinking, wk_str calls) {
    wk_strbuf *const to = &x->part;
    const bool is_message = !is_prompt(x);
    if (is_message) wk_write_raw(to, "\"message\":{\"role\":\"assistant\"");
    wk_write_put_string(to, is_message ? "content" : "response", content);
    if (thinking.size > 0) wk_write_put_string(to, "thinking", thinking);
    if (!is_message) return;
    if (calls.size > 0) {
        wk_write_raw(to, "\"tool_calls\":[");
        wk_strbuf_append(to, calls.text, calls.size);
        wk_write_close(to, ']');
    }
    wk_write_close(to, '}');
}

static void send_line(wick_exchange *x, wk_str content, wk_str thinking, wk_str calls) {
    (void)open_line(x);
    write_said(x, content, thinking, calls);
    close_line(x, false);
    wk_exchange_line(x);
}

static void write_text(wk_api_choice *choice, bool is_reasoning, wk_str text) {
    const wk_str none = {.size = 0};
    if (!choice->exchange->is_stream)
        wk_choice_keep_text(choice, is_reasoning, text);
    else
        send_line(choice->exchange, is_reasoning ? none : text, is_reasoning ? text : none, none);
}

static void write_call(wk_api_choice *choice, const wk_tool_call *call) {
    const wk_str none = {.size = 0};
    wk_strbuf *const to = &choice->calls;
    wk_write_raw(to, "{\"function\":{");
    wk_write_put_string(to, "name", call->name);
    wk_write_key(to, "arguments");
    wk_write_raw(to, "");
    wk_strbuf_append(to, call->arguments.text, call->arguments.size);
    wk_strbuf_text(to, "}}");
    if (!choice->exchange->is_stream) return;
    send_line(choice->exchange, none, none, (wk_str){to->data, to->size});
    wk_strbuf_clear(to);
}

static void write_end(wk_api_choice *choice) { (void)choice; }

/* At least 1: clients divide by it. */
static void put_ns(wk_strbuf *to, const char *key, double seconds) {
    wk_write_put_whole(to, key, seconds < 1e-9 ? 1 : (uint64_t)(seconds * 1e9));
}

static wk_str text_in(const wk_strbuf *buffer) { return (wk_str){buffer->data, buffer->size}; }

static void finish(wick_exchange *x) {
    const wk_api_choice *const choice = x->choices;
    const wick_session_stats *const stats = &choice->stats;
    const bool is_cut =
        choice->reason == WICK_END_MAX_TOKENS || choice->reason == WICK_END_CONTEXT_FULL;
    wk_strbuf *const to = open_line(x);
    write_said(x, text_in(&choice->content), text_in(&choice->reasoning), text_in(&choice->calls));
    if (x->has_tools_in_words) wk_write_put(to, "tool_format", "generic");
    wk_write_put(to, "done_reason", is_cut ? "length" : "stop");
    put_ns(to, "total_duration", stats->prompt_seconds + stats->generate_seconds);
    wk_write_put_whole(to, "load_duration", 0);
    wk_write_put_whole(to, "prompt_eval_count", choice->prompt->n);
    put_ns(to, "prompt_eval_duration", stats->prompt_seconds);
    wk_write_put_whole(to, "eval_count", stats->n_generated);
    put_ns(to, "eval_duration", stats->generate_seconds);
    close_line(x, true);
    if (x->is_stream) wk_exchange_line(x);
    wk_exchange_end(x, 200);
}

static void write_error(wk_strbuf *to, int status, const char *message) {
    (void)status;
    wk_write_open(to, '{');
    wk_write_put(to, "error", message);
    wk_write_close(to, '}');
}

static const char *const names[][2] = {
    {"n_predict", "num_predict"}, {"response_format", "format"}, {NULL}};

const wk_style wk_ollama_style = {.is_chat = true,
                                  .names = names,
                                  .stream_type = "application/x-ndjson",
                                  .text = write_text,
                                  .call = write_call,
                                  .end = write_end,
                                  .finish = finish,
                                  .error = write_error};
/* Of a raw prompt: tags of thinking and tools are text. */
static const wk_style raw_style = {.names = names,
                                   .stream_type = "application/x-ndjson",
                                   .text = write_text,
                                   .end = write_end,
                                   .finish = finish,
                                   .error = write_error};

static wick_status answer(wick_exchange *x, bool is_raw, wick_error *err) {
    WK_TRY(wk_request_translate(x, is_prompt(x) ? write_prompt : write_chat, err));
    WK_TRY(wk_request_generation(x, err));
    WK_TRY(wk_request_logprobs(x, err));
    WK_TRY(wk_request_chat(x, err)); /* also for response_format */
    if (wk_request_has_suffix(x)) return wk_prompt_of_infill(x, "prompt", "suffix", NULL, err);
    return is_raw ? wk_prompts_of_texts(x, wk_json_get(x->body, "prompt"), err)
                  : wk_prompt_of_chat(x, err);
}

/* A request that says nothing asks for the model to be there. */
static bool asks_to_load(const wick_exchange *x) {
    const wk_json *const said = wk_request_field(x, is_prompt(x) ? "prompt" : "messages");
    if (!said) return true;
    return is_prompt(x) ? said->string.size == 0 : said->kind == WK_JSON_ARRAY && !said->child;
}

static wick_status answer_load(wick_exchange *x, wick_error *err) {
    const wk_str none = {.size = 0};
    bool is_stream = true;
    WK_TRY(wk_request_bool(x, "stream", &is_stream, err));
    (void)open_line(x);
    write_said(x, none, none, none);
    wk_write_put(&x->part, "done_reason", "load");
    close_line(x, true);
    if (is_stream) x->type = wk_ollama_style.stream_type;
    if (is_stream) wk_exchange_line(x);
    wk_exchange_end(x, 200);
    return WICK_OK;
}

wick_status wk_answer_ollama(wick_exchange *x, wick_error *err) {
    const wk_json *const prompt = wk_request_field(x, "prompt");
    const wk_json *const options = wk_request_field(x, "options");
    bool is_raw = false;
    if (options && options->kind != WK_JSON_OBJECT)
        return wk_fail(err, WICK_ERR_VALUE, "options must be an object");
    if (is_prompt(x) && prompt && prompt->kind != WK_JSON_STRING)
        return wk_fail(err, WICK_ERR_VALUE, "prompt must be a text");
    if (asks_to_load(x)) return answer_load(x, err);
    WK_TRY(wk_request_bool(x, "raw", &is_raw, err));
    is_raw = is_prompt(x) && (is_raw || wk_request_has_suffix(x));
    if (is_raw) x->style = &raw_style;
    return answer(x, is_raw, err);
}

/* ---- What there is ---- */

/* With what it is while it is loaded: it stays, which clients have no other word for. */
static wick_status answer_list(wick_exchange *x, bool is_loaded) {
    enum { A_YEAR = 365 * 24 * 3600 };
    wick_model_info info;
    wick_model_get_info(x->api->model, &info);
    wk_write_raw(&x->part, "{\"models\":[{");
    wk_write_put(&x->part, "name", x->api->name);
    wk_write_put(&x->part, "model", x->api->name);
    wk_write_time(&x->part, "modified_at", x->api->modified > 0 ? x->api->modified : x->time);
    wk_write_put_whole(&x->part, "size", info.file_bytes);
    wk_write_details(&x->part, x->api->model->gguf);
    if (is_loaded) {
        wk_write_time(&x->part, "expires_at", x->time + A_YEAR);
        wk_write_put_whole(&x->part, "size_vram", info.weight_bytes);
        wk_write_put_whole(&x->part, "context_length", x->api->session.context_length);
    }
    wk_strbuf_text(&x->part, "}]}");
    wk_exchange_end(x, 200);
    return WICK_OK;
}

wick_status wk_answer_tags(wick_exchange *x, wick_error *err) {
    (void)err;
    return answer_list(x, false);
}

wick_status wk_answer_ps(wick_exchange *x, wick_error *err) {
    (void)err;
    return answer_list(x, true);
}

wick_status wk_answer_show(wick_exchange *x, wick_error *err) {
    (void)err;
    wk_write_show(&x->part, x->api->model->gguf);
    wk_exchange_end(x, 200);
    return WICK_OK;
}

wick_status wk_answer_version(wick_exchange *x, wick_error *err) {
    (void)err;
    wk_write_open(&x->part, '{');
    wk_write_put(&x->part, "version", WICK_OLLAMA_VERSION);
    wk_write_put(&x->part, "wick", wick_version());
    wk_write_close(&x->part, '}');
    wk_exchange_end(x, 200);
    return WICK_OK;
}
