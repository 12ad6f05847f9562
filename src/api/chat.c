/* api/chat.c: OpenAI's chat completions (platform.openai.com/docs/api-reference/chat). See api.h.
 */
#include "api/api.h"

static const char chunk[] = "chat.completion.chunk";
/* Of the object of log probabilities. */
static const char chat_end[] = ",\"refusal\":null}";

/* ---- Streams ---- */

/* Up to the members of delta. */
static wk_strbuf *open_delta(const wk_api_choice *choice) {
    wk_strbuf *const to = &choice->exchange->part;
    wk_write_head(choice->exchange, chunk);
    wk_write_open(to, '{');
    wk_write_put_whole(to, "index", choice->index);
    wk_write_key(to, "delta");
    wk_write_open(to, '{');
    return to;
}

/* Also takes the log probabilities that wait for a chunk. */
static void close_delta(wk_api_choice *choice, const char *reason) {
    wick_exchange *const x = choice->exchange;
    wk_strbuf *const to = &x->part;
    wk_write_close(to, '}');
    wk_write_logprobs(choice, choice->has_text && choice->logprobs.size > 0, chat_end);
    wk_write_put(to, "finish_reason", reason);
    wk_write_close(to, '}');
    wk_write_close(to, ']');
    if (x->shows_timings && choice->has_text && choice->session) {
        wk_choice_get_stats(choice, &choice->stats);
        wk_write_timings(to, choice);
    }
    wk_write_close(to, '}');
    wk_exchange_event(x, NULL);
}

/* The first chunk says whose text it is, and nothing else. */
static void write_role(wk_api_choice *choice) {
    if (choice->has_text) return;
    wk_strbuf *const to = open_delta(choice);
    wk_write_put(to, "role", "assistant");
    wk_write_put(to, "content", NULL);
    close_delta(choice, NULL);
    choice->has_text = true;
}

static void write_text(wk_api_choice *choice, bool is_reasoning, wk_str text) {
    if (!choice->exchange->is_stream) {
        wk_choice_keep_text(choice, is_reasoning, text);
        return;
    }
    write_role(choice);
    wk_strbuf *const to = open_delta(choice);
    wk_write_put_string(to, is_reasoning ? "reasoning_content" : "content", text);
    close_delta(choice, NULL);
}

static void write_progress(wk_api_choice *choice, uint64_t processed, uint64_t total) {
    wick_exchange *const x = choice->exchange;
    wk_write_head(x, chunk);
    wk_write_close(&x->part, ']');
    wk_write_progress(choice, processed, total);
    wk_write_close(&x->part, '}');
    wk_exchange_event(x, NULL);
}

/* A call, which in a stream has its place among the others. */
static void write_call_item(wk_strbuf *to, const wk_api_choice *choice, const wk_tool_call *call,
                            bool has_index) {
    char id[WK_CALL_ID];
    wk_call_id(choice, id);
    wk_write_open(to, '{');
    if (has_index) wk_write_put_whole(to, "index", choice->n_calls);
    wk_write_put(to, "id", id);
    wk_write_put(to, "type", "function");
    wk_write_key(to, "function");
    wk_write_open(to, '{');
    wk_write_put_string(to, "name", call->name);
    wk_write_put_string(to, "arguments", call->arguments);
    wk_write_close(to, '}');
    wk_write_close(to, '}');
}

static void write_call(wk_api_choice *choice, const wk_tool_call *call) {
    if (!choice->exchange->is_stream) {
        write_call_item(&choice->calls, choice, call, false);
        return;
    }
    write_role(choice);
    wk_strbuf *const to = open_delta(choice);
    wk_write_key(to, "tool_calls");
    wk_write_open(to, '[');
    write_call_item(to, choice, call, true);
    wk_write_close(to, ']');
    close_delta(choice, NULL);
}

static void write_end(wk_api_choice *choice) {
    if (!choice->exchange->is_stream) return;
    write_role(choice);
    (void)open_delta(choice);
    close_delta(choice, wk_finish_reason(choice));
}

/* ---- Whole answers ---- */

static void write_message(wk_api_choice *choice) {
    wk_strbuf *const to = &choice->exchange->part;
    const wk_str content = {choice->content.data, choice->content.size};
    wk_write_key(to, "message");
    wk_write_open(to, '{');
    wk_write_put(to, "role", "assistant");
    wk_write_key(to, "content");
    if (content.size == 0 && choice->n_calls > 0)
        wk_write_null(to);
    else
        wk_write_string(to, content);
    wk_write_put(to, "refusal", NULL);
    if (choice->reasoning.size > 0) {
        wk_write_put_string(to, "reasoning_content",
                            (wk_str){choice->reasoning.data, choice->reasoning.size});
    }
    if (choice->n_calls > 0) {
        wk_write_key(to, "tool_calls");
        wk_write_open(to, '[');
        wk_strbuf_append(to, choice->calls.data, choice->calls.size);
        wk_write_close(to, ']');
    }
    wk_write_close(to, '}');
}

static void write_choice(wk_api_choice *choice) {
    wk_strbuf *const to = &choice->exchange->part;
    wk_write_open(to, '{');
    wk_write_put_whole(to, "index", choice->index);
    write_message(choice);
    wk_write_logprobs(choice, choice->exchange->has_logprobs, chat_end);
    wk_write_put(to, "finish_reason", wk_finish_reason(choice));
    wk_write_close(to, '}');
}

static void finish_whole(wick_exchange *x) {
    wk_strbuf *const to = &x->part;
    wk_write_head(x, "chat.completion");
    for (uint32_t i = 0; i < x->n_choices; i++) write_choice(&x->choices[i]);
    wk_write_close(to, ']');
    wk_write_usage(x);
    wk_write_timings(to, x->choices);
    if (x->is_verbose) {
        const wk_strbuf *const content = &x->choices->content;
        wk_write_key(to, "__verbose");
        wk_write_native(x->choices, (wk_str){content->data, content->size});
    }
    wk_write_close(to, '}');
    wk_exchange_end(x, 200);
}

static void finish(wick_exchange *x) {
    if (!x->is_stream) {
        finish_whole(x);
        return;
    }
    if (x->includes_usage) {
        wk_write_head(x, chunk);
        wk_write_close(&x->part, ']');
        wk_write_usage(x);
        wk_write_timings(&x->part, x->choices);
        wk_write_close(&x->part, '}');
        wk_exchange_event(x, NULL);
    }
    wk_strbuf_text(&x->part, "[DONE]");
    wk_exchange_event(x, NULL);
    wk_exchange_end(x, 200);
}

const wk_style wk_chat_style = {.is_chat = true,
                                .text = write_text,
                                .call = write_call,
                                .end = write_end,
                                .progress = write_progress,
                                .finish = finish};

wick_status wk_request_logprobs(wick_exchange *x, wick_error *err) {
    enum { MOST = 20 };
    WK_TRY(wk_request_bool(x, "logprobs", &x->has_logprobs, err));
    WK_TRY(wk_request_whole(x, "top_logprobs", 0, MOST, &x->n_top, err));
    if (x->n_top > 0 && !x->has_logprobs)
        return wk_fail(err, WICK_ERR_VALUE, "top_logprobs needs logprobs: true");
    WK_TRY(wk_request_bool(x, "post_sampling_probs", &x->desc.drawn_logprobs, err));
    x->desc.n_logprobs = x->has_logprobs && x->n_top == 0 ? 1 : x->n_top;
    return WICK_OK;
}

wick_status wk_answer_chat(wick_exchange *x, wick_error *err) {
    wk_exchange_name(x, "chatcmpl-");
    WK_TRY(wk_request_generation(x, err));
    WK_TRY(wk_request_logprobs(x, err));
    WK_TRY(wk_request_chat(x, err));
    return wk_prompt_of_chat(x, err);
}
