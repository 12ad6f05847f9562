/* api/native.c: llama-server's own completion
 * (github.com/ggml-org/llama.cpp/tree/master/tools/server). See api.h. */
#include "api/api.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Timings ---- */

/* n_steps: of the n tokens, those that took the seconds. */
static void write_rate(wk_strbuf *to, const char *name, uint64_t n, uint64_t n_steps,
                       double seconds) {
    char key[40];
    snprintf(key, sizeof key, "%s_n", name);
    wk_write_put_whole(to, key, n);
    snprintf(key, sizeof key, "%s_ms", name);
    wk_write_key(to, key);
    wk_write_number(to, 1000 * seconds);
    snprintf(key, sizeof key, "%s_per_token_ms", name);
    wk_write_key(to, key);
    wk_write_number(to, n_steps > 0 ? 1000 * seconds / (double)n_steps : 0);
    snprintf(key, sizeof key, "%s_per_second", name);
    wk_write_key(to, key);
    wk_write_number(to, seconds > 0 ? (double)n_steps / seconds : 0);
}

void wk_write_timings(wk_strbuf *to, const wk_api_choice *choice) {
    const wick_session_stats *const stats = &choice->stats;
    const uint64_t n_read = stats->n_prompt - stats->n_reused, n = stats->n_generated;
    wk_write_key(to, "timings");
    wk_write_open(to, '{');
    wk_write_put_whole(to, "cache_n", stats->n_reused);
    write_rate(to, "prompt", n_read, n_read, stats->prompt_seconds);
    /* The first token comes with the end of the prompt. */
    write_rate(to, "predicted", n, n > 0 ? n - 1 : 0, stats->generate_seconds);
    if (stats->n_drafted > 0) {
        wk_write_put_whole(to, "draft_n", stats->n_drafted);
        wk_write_put_whole(to, "draft_n_accepted", stats->n_accepted);
    }
    wk_write_close(to, '}');
}

/* ---- The completion ---- */

static const char *stop_type(const wk_api_choice *choice) {
    switch (choice->reason) {
    case WICK_END_TOKEN:
    case WICK_END_GRAMMAR: return "eos";
    case WICK_END_STOP_STRING: return "word";
    case WICK_END_MAX_TOKENS:
    case WICK_END_CONTEXT_FULL: return "limit";
    default: return "none";
    }
}

static void write_probabilities(wk_api_choice *choice) {
    wk_strbuf *const to = &choice->exchange->part;
    if (!choice->exchange->has_logprobs) return;
    wk_write_key(to, "completion_probabilities");
    wk_write_open(to, '[');
    wk_write_logprob_items(choice, true);
    wk_write_close(to, ']');
}

/* Those that have come since the last time. */
static void write_tokens(wk_api_choice *choice) {
    wk_strbuf *const to = &choice->exchange->part;
    wk_write_key(to, "tokens");
    wk_write_open(to, '[');
    wk_strbuf_append(to, choice->tokens.data, choice->tokens.size);
    wk_write_close(to, ']');
    wk_strbuf_clear(&choice->tokens);
}

static void put_number(wk_strbuf *to, const char *key, double value) {
    wk_write_key(to, key);
    wk_write_number(to, value);
}

/* A limit, as llama-server has it: -1 for none. */
static void put_limit(wk_strbuf *to, const char *key, uint32_t limit) {
    put_number(to, key, limit > 0 ? (double)limit : -1);
}

static void write_samplers(wk_strbuf *to, const wick_sampler_desc *s) {
    wk_write_put_whole(to, "seed", s->seed);
    put_number(to, "temperature", s->temperature);
    wk_write_put_whole(to, "top_k", s->top_k);
    put_number(to, "top_p", s->top_p > 0 ? s->top_p : 1);
    put_number(to, "min_p", s->min_p);
    put_number(to, "typical_p", s->typical_p > 0 ? s->typical_p : 1);
    wk_write_put_whole(to, "repeat_last_n", s->repeat_last > 0 ? s->repeat_last : 64);
    put_number(to, "repeat_penalty", s->repeat_penalty > 0 ? s->repeat_penalty : 1);
    put_number(to, "presence_penalty", s->presence_penalty);
    put_number(to, "frequency_penalty", s->frequency_penalty);
    put_number(to, "dry_multiplier", s->dry_multiplier);
    put_number(to, "xtc_probability", s->xtc_probability);
    wk_write_put_whole(to, "mirostat", s->mirostat_tau > 0 ? 2 : 0);
}

static void write_bias(wk_strbuf *to, uint32_t token, double bias) {
    wk_write_open(to, '{');
    wk_write_put_whole(to, "token", token);
    put_number(to, "bias", bias); /* null: never */
    wk_write_close(to, '}');
}

/* Also of the tokens that end a text, where they are never taken. */
static void write_biases(wk_strbuf *to, const wick_api *api, const wick_session_desc *desc) {
    const wick_tokenizer *const tokenizer = api->model->tokenizer;
    const uint32_t n = desc->ignore_end ? wick_tokenizer_size(tokenizer) : 0;
    wk_write_key(to, "logit_bias");
    wk_write_open(to, '[');
    for (size_t i = 0; i < desc->sampler.n_bias; i++)
        write_bias(to, desc->sampler.bias[i].id, desc->sampler.bias[i].bias);
    for (uint32_t id = 0; id < n; id++)
        if (wick_token_ends_generation(tokenizer, id)) write_bias(to, id, -INFINITY);
    wk_write_close(to, ']');
}

void wk_write_settings(wk_strbuf *to, const wick_api *api, const wick_session_desc *desc,
                       bool is_stream) {
    wk_write_open(to, '{');
    write_samplers(to, &desc->sampler);
    write_biases(to, api, desc);
    put_limit(to, "n_predict", desc->max_tokens);
    put_limit(to, "max_tokens", desc->max_tokens);
    wk_write_put_whole(to, "n_probs", desc->n_logprobs);
    wk_write_key(to, "post_sampling_probs");
    wk_write_bool(to, desc->drawn_logprobs);
    wk_write_key(to, "ignore_eos");
    wk_write_bool(to, desc->ignore_end);
    wk_write_key(to, "stop");
    wk_write_open(to, '[');
    for (size_t i = 0; i < desc->n_stop; i++) wk_write_string(to, wk_str_of(desc->stop[i]));
    wk_write_close(to, ']');
    wk_write_put(to, "grammar", desc->sampler.grammar ? desc->sampler.grammar : "");
    wk_write_key(to, "stream");
    wk_write_bool(to, is_stream);
    wk_write_close(to, '}');
}

static void open_text(wick_exchange *x, wk_api_choice *choice, wk_str text) {
    wk_write_open(&x->part, '{');
    wk_write_put_whole(&x->part, "index", choice->index);
    wk_write_put_string(&x->part, "content", text);
    write_tokens(choice);
}

/* As the model reads it. */
static void write_prompt(const wk_api_choice *choice) {
    wick_exchange *const x = choice->exchange;
    wk_strbuf text;
    wk_strbuf_init(&text, x->heap);
    wk_append_tokens(x->api, choice->prompt, true, &text);
    wk_write_put_string(&x->part, "prompt", (wk_str){text.data, text.size});
    x->part.failed |= text.failed;
    wk_strbuf_release(&text);
}

void wk_write_native(wk_api_choice *choice, wk_str text) {
    wick_exchange *const x = choice->exchange;
    wk_strbuf *const to = &x->part;
    open_text(x, choice, text);
    wk_write_put_whole(to, "id_slot", choice->place);
    wk_write_raw(to, "\"stop\":true,\"has_new_line\":");
    wk_strbuf_text(to, choice->has_newline ? "true" : "false");
    wk_write_put(to, "model", x->api->name);
    write_prompt(choice);
    wk_write_put_whole(to, "tokens_predicted", choice->stats.n_generated);
    wk_write_put_whole(to, "tokens_evaluated", choice->prompt->n);
    wk_write_put_whole(to, "tokens_cached", choice->stats.n_context);
    wk_write_put(to, "stop_type", stop_type(choice));
    wk_write_put(to, "stopping_word",
                 choice->reason == WICK_END_STOP_STRING ? x->desc.stop[choice->stop] : "");
    wk_write_key(to, "truncated");
    wk_write_bool(to, choice->reason == WICK_END_CONTEXT_FULL ||
                          choice->stats.n_prompt + choice->stats.n_generated >
                              choice->stats.context_length);
    wk_write_key(to, "generation_settings");
    wk_write_settings(to, x->api, &x->desc, x->is_stream);
    if (!x->is_stream) write_probabilities(choice);
    wk_write_timings(to, choice);
    wk_write_close(to, '}');
}

/* ---- Of an answer, the fields that were asked for ---- */

/* "timings/predicted_n": a member of a member. */
static const wk_json *find_field(const wk_json *from, wk_str path) {
    for (size_t at = 0; from && at <= path.size;) {
        const char *const slash = memchr(path.text + at, '/', path.size - at);
        const size_t end = slash ? (size_t)(slash - path.text) : path.size;
        const wk_json *found = NULL;
        const wk_str name = {path.text + at, end - at};
        for (const wk_json *item = from->kind == WK_JSON_OBJECT ? from->child : NULL; item;
             item = item->next)
            if (item->key.size == name.size && memcmp(item->key.text, name.text, name.size) == 0)
                found = item;
        from = found;
        at = end + 1;
    }
    return from;
}

/* The object from byte [start] of part on becomes one of those fields. */
static void keep_fields(wick_exchange *x, size_t start) {
    wk_strbuf *const to = &x->part;
    wick_error ignored = {.status = WICK_OK};
    wk_json *whole = NULL;
    if (to->failed) return;
    start += to->data[start] == ',';
    if (wk_json_parse(&x->arena, to->data + start, to->size - start, &whole, &ignored) != WICK_OK)
        to->failed = true;
    to->size = start;
    wk_strbuf_text(to, "{");
    for (const wk_json *item = x->fields->child; item && whole; item = item->next) {
        const wk_json *const found = find_field(whole, item->string);
        if (!found) continue;
        wk_write_key_of(to, item->string);
        wk_write_value(to, found);
    }
    wk_write_close(to, '}');
}

static void write_end_of(wk_api_choice *choice, wk_str text) {
    const size_t start = choice->exchange->part.size;
    wk_write_native(choice, text);
    if (choice->exchange->fields) keep_fields(choice->exchange, start);
}

static wick_status read_fields(wick_exchange *x, wick_error *err) {
    const wk_json *const given = wk_request_field(x, "response_fields");
    bool are_names = !given || given->kind == WK_JSON_ARRAY;
    for (const wk_json *item = given ? given->child : NULL; item; item = item->next)
        are_names = are_names && item->kind == WK_JSON_STRING;
    if (!are_names)
        return wk_fail(err, WICK_ERR_VALUE, "response_fields must be an array of names");
    x->fields = given && given->count > 0 ? given : NULL;
    return WICK_OK;
}

/* ---- Streams ---- */

/* Of a stream, up to what it has besides. */
static void open_event(wk_api_choice *choice, wk_str text) {
    wick_exchange *const x = choice->exchange;
    wk_strbuf *const to = &x->part;
    open_text(x, choice, text);
    wk_write_raw(to, "\"stop\":false");
    wk_write_put_whole(to, "id_slot", choice->place);
    wk_write_put_whole(to, "tokens_evaluated", choice->prompt->n);
    if (!x->shows_timings) return;
    wk_write_put_whole(to, "tokens_predicted", choice->stats.n_generated);
    wk_write_timings(to, choice);
}

void wk_write_progress(wk_api_choice *choice, uint64_t processed, uint64_t total) {
    wk_strbuf *const to = &choice->exchange->part;
    wk_write_key(to, "prompt_progress");
    wk_write_open(to, '{');
    wk_write_put_whole(to, "total", total);
    wk_write_put_whole(to, "cache", choice->stats.n_reused);
    wk_write_put_whole(to, "processed", processed);
    put_number(to, "time_ms", 1000 * choice->stats.prompt_seconds);
    wk_write_close(to, '}');
}

static void write_progress(wk_api_choice *choice, uint64_t processed, uint64_t total) {
    open_event(choice, (wk_str){.size = 0});
    wk_write_progress(choice, processed, total);
    wk_write_close(&choice->exchange->part, '}');
    wk_exchange_event(choice->exchange, NULL);
}

static void write_text(wk_api_choice *choice, bool is_reasoning, wk_str text) {
    wick_exchange *const x = choice->exchange;
    if (text.size > 0 && memchr(text.text, '\n', text.size)) choice->has_newline = true;
    if (!x->is_stream) {
        wk_choice_keep_text(choice, is_reasoning, text);
        return;
    }
    if (x->shows_timings && choice->session) wk_choice_get_stats(choice, &choice->stats);
    open_event(choice, text);
    write_probabilities(choice);
    wk_write_close(&x->part, '}');
    wk_exchange_event(x, NULL);
}

static void write_end(wk_api_choice *choice) {
    if (!choice->exchange->is_stream) return;
    write_end_of(choice, (wk_str){.size = 0});
    wk_exchange_event(choice->exchange, NULL);
}

/* One answer, or an array where there were several prompts. */
static void finish(wick_exchange *x) {
    const bool is_list = x->n_choices > 1 && !x->is_stream;
    if (is_list) wk_write_open(&x->part, '[');
    for (uint32_t i = 0; i < x->n_choices && !x->is_stream; i++) {
        const wk_strbuf *const content = &x->choices[i].content;
        write_end_of(&x->choices[i], (wk_str){content->data, content->size});
    }
    if (is_list) wk_write_close(&x->part, ']');
    wk_exchange_end(x, 200);
}

const wk_style wk_native_style = {
    .text = write_text, .end = write_end, .progress = write_progress, .finish = finish};

static wick_status read_request(wick_exchange *x, wick_error *err) {
    enum { MOST_PROBABILITIES = 1024 };
    WK_TRY(wk_request_generation(x, err));
    WK_TRY(read_fields(x, err));
    WK_TRY(wk_request_whole(x, "n_probs", 0, MOST_PROBABILITIES, &x->n_top, err));
    WK_TRY(wk_request_bool(x, "post_sampling_probs", &x->desc.drawn_logprobs, err));
    x->desc.n_logprobs = x->n_top;
    x->has_logprobs = x->n_top > 0;
    x->keeps_tokens = x->keeps_tokens || x->is_stream;
    return WICK_OK;
}

wick_status wk_answer_native(wick_exchange *x, wick_error *err) {
    WK_TRY(read_request(x, err));
    return wk_prompts_of_texts(x, wk_json_get(x->body, "prompt"), err);
}

wick_status wk_answer_infill(wick_exchange *x, wick_error *err) {
    WK_TRY(read_request(x, err));
    return wk_prompt_of_infill(x, "input_prefix", "input_suffix", "prompt", err);
}
