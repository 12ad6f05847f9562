/* api/completion.c: OpenAI's text completions (platform.openai.com/docs/api-reference/completions).
 * See api.h. */
#include "api/api.h"

static const char object[] = "text_completion";

static void write_item(wk_api_choice *choice, wk_str text, const char *reason) {
    wk_strbuf *const to = &choice->exchange->part;
    wk_write_open(to, '{');
    wk_write_put_whole(to, "index", choice->index);
    wk_write_put_string(to, "text", text);
    wk_write_text_logprobs(choice);
    wk_write_put(to, "finish_reason", reason);
    wk_write_close(to, '}');
}

static void write_chunk(wk_api_choice *choice, wk_str text, const char *reason) {
    wick_exchange *const x = choice->exchange;
    wk_write_head(x, object);
    write_item(choice, text, reason);
    wk_write_close(&x->part, ']');
    wk_write_close(&x->part, '}');
    wk_exchange_event(x, NULL);
}

static void put_text(wk_api_choice *choice, wk_str text) {
    if (choice->exchange->is_stream)
        write_chunk(choice, text, NULL);
    else
        wk_choice_keep_text(choice, false, text);
}

/* The prompt, before the first text. */
static void put_echo(wk_api_choice *choice) {
    const wk_ids *const prompt = choice->prompt;
    if (!choice->exchange->echoes || choice->has_text) return;
    choice->has_text = true;
    if (prompt->text.text) {
        put_text(choice, prompt->text);
        return;
    }
    wk_strbuf text;
    wk_strbuf_init(&text, choice->exchange->heap);
    wk_append_tokens(choice->exchange->api, prompt, false, &text);
    put_text(choice, (wk_str){text.data, text.size});
    choice->content.failed |= text.failed;
    wk_strbuf_release(&text);
}

static void write_text(wk_api_choice *choice, bool is_reasoning, wk_str text) {
    (void)is_reasoning; /* a completion has none */
    put_echo(choice);
    put_text(choice, text);
}

static void write_end(wk_api_choice *choice) {
    put_echo(choice);
    if (choice->exchange->is_stream)
        write_chunk(choice, (wk_str){.size = 0}, wk_finish_reason(choice));
}

static void finish(wick_exchange *x) {
    const bool is_stream = x->is_stream;
    if (!is_stream || x->includes_usage) {
        wk_write_head(x, object);
        for (uint32_t i = 0; i < x->n_choices && !is_stream; i++) {
            wk_api_choice *const choice = &x->choices[i];
            write_item(choice, (wk_str){choice->content.data, choice->content.size},
                       wk_finish_reason(choice));
        }
        wk_write_close(&x->part, ']');
        wk_write_usage(x);
        wk_write_close(&x->part, '}');
        if (is_stream) wk_exchange_event(x, NULL);
    }
    if (is_stream) {
        wk_strbuf_text(&x->part, "[DONE]");
        wk_exchange_event(x, NULL);
    }
    wk_exchange_end(x, 200);
}

const wk_style wk_completion_style = {.text = write_text, .end = write_end, .finish = finish};

wick_status wk_answer_completion(wick_exchange *x, wick_error *err) {
    enum { MOST_LOGPROBS = 20 };
    wk_exchange_name(x, "cmpl-");
    WK_TRY(wk_request_generation(x, err));
    WK_TRY(wk_request_bool(x, "echo", &x->echoes, err));
    WK_TRY(wk_request_whole(x, "logprobs", 0, MOST_LOGPROBS, &x->n_top, err));
    x->has_logprobs = wk_request_field(x, "logprobs") != NULL;
    x->desc.n_logprobs = x->has_logprobs && x->n_top == 0 ? 1 : x->n_top;
    uint32_t n_tried = x->n;
    WK_TRY(wk_request_whole(x, "best_of", 1, UINT32_MAX, &n_tried, err));
    if (n_tried > x->n)
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "best_of must not be more than n: no text is generated to be dropped");
    if (wk_request_has_suffix(x)) return wk_prompt_of_infill(x, "prompt", "suffix", NULL, err);
    return wk_prompts_of_texts(x, wk_json_get(x->body, "prompt"), err);
}
