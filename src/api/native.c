/* api/native.c: llama-server's own completion, and what it shows of its work: slots and metrics
 * (github.com/ggml-org/llama.cpp/tree/master/tools/server). See api.h. */
#include "api/api.h"

#include <stdio.h>
#include <string.h>

/* ---- Timings ---- */

static void write_rate(wk_strbuf *to, const char *name, uint64_t n, double seconds) {
    char key[40];
    snprintf(key, sizeof key, "%s_n", name);
    wk_write_put_whole(to, key, n);
    snprintf(key, sizeof key, "%s_ms", name);
    wk_write_key(to, key);
    wk_write_number(to, 1000 * seconds);
    snprintf(key, sizeof key, "%s_per_token_ms", name);
    wk_write_key(to, key);
    wk_write_number(to, n > 0 ? 1000 * seconds / (double)n : 0);
    snprintf(key, sizeof key, "%s_per_second", name);
    wk_write_key(to, key);
    wk_write_number(to, seconds > 0 ? (double)n / seconds : 0);
}

void wk_write_timings(wk_strbuf *to, const wk_choice *choice) {
    const wick_session_stats *const stats = &choice->stats;
    wk_write_key(to, "timings");
    wk_write_open(to, '{');
    wk_write_put_whole(to, "cache_n", stats->n_reused);
    write_rate(to, "prompt", stats->n_prompt - stats->n_reused, stats->prompt_seconds);
    write_rate(to, "predicted", stats->n_generated, stats->generate_seconds);
    wk_write_close(to, '}');
}

/* ---- The completion ---- */

static const char *stop_type(const wk_choice *choice) {
    switch (choice->reason) {
    case WICK_END_TOKEN:
    case WICK_END_GRAMMAR: return "eos";
    case WICK_END_STOP_STRING: return "word";
    case WICK_END_MAX_TOKENS:
    case WICK_END_CONTEXT_FULL: return "limit";
    default: return "none";
    }
}

static void write_probabilities(wk_strbuf *to, wk_choice *choice) {
    if (!choice->exchange->has_logprobs) return;
    wk_write_key(to, "completion_probabilities");
    wk_write_open(to, '[');
    wk_strbuf_append(to, choice->logprobs.data, choice->logprobs.size);
    wk_write_close(to, ']');
    wk_strbuf_clear(&choice->logprobs);
}

static void write_settings(wk_strbuf *to, const wick_exchange *x) {
    const wick_sampler_desc *const sampler = &x->desc.sampler;
    wk_write_key(to, "generation_settings");
    wk_write_open(to, '{');
    wk_write_put_whole(to, "seed", sampler->seed);
    wk_write_key(to, "temperature");
    wk_write_number(to, sampler->temperature);
    wk_write_put_whole(to, "top_k", sampler->top_k);
    wk_write_key(to, "top_p");
    wk_write_number(to, sampler->top_p);
    wk_write_key(to, "min_p");
    wk_write_number(to, sampler->min_p);
    wk_write_put_whole(to, "n_predict", x->desc.max_tokens);
    wk_write_key(to, "stream");
    wk_write_bool(to, x->is_stream);
    wk_write_close(to, '}');
}

/* The last event of a stream, or the answer; text: what it holds. */
static void write_end_of(wk_choice *choice, wk_str text) {
    wick_exchange *const x = choice->exchange;
    wk_strbuf *const to = &x->part;
    wk_write_open(to, '{');
    wk_write_put_whole(to, "index", choice->index);
    wk_write_put_string(to, "content", text);
    wk_write_raw(to, "\"tokens\":[],\"id_slot\":0,\"stop\":true,\"has_new_line\":");
    wk_strbuf_text(to, text.size > 0 && memchr(text.text, '\n', text.size) ? "true" : "false");
    wk_write_put(to, "model", x->api->name);
    wk_write_put_whole(to, "tokens_predicted", choice->stats.n_generated);
    wk_write_put_whole(to, "tokens_evaluated", choice->prompt->n);
    wk_write_put_whole(to, "tokens_cached", choice->stats.n_context);
    wk_write_put(to, "stop_type", stop_type(choice));
    wk_write_put(to, "stopping_word",
                 choice->reason == WICK_END_STOP_STRING && x->desc.n_stop == 1 ? x->desc.stop[0]
                                                                               : "");
    wk_write_key(to, "truncated");
    wk_write_bool(to, choice->reason == WICK_END_CONTEXT_FULL);
    write_settings(to, x);
    if (!x->is_stream) write_probabilities(to, choice);
    wk_write_timings(to, choice);
    wk_write_close(to, '}');
}

static void write_text(wk_choice *choice, bool is_reasoning, wk_str text) {
    wick_exchange *const x = choice->exchange;
    if (!x->is_stream) {
        wk_choice_keep_text(choice, is_reasoning, text);
        return;
    }
    wk_write_open(&x->part, '{');
    wk_write_put_whole(&x->part, "index", choice->index);
    wk_write_put_string(&x->part, "content", text);
    wk_write_raw(&x->part, "\"tokens\":[],\"stop\":false,\"id_slot\":0");
    wk_write_put_whole(&x->part, "tokens_evaluated", choice->prompt->n);
    write_probabilities(&x->part, choice);
    wk_write_close(&x->part, '}');
    wk_exchange_event(x, NULL);
}

static void write_end(wk_choice *choice) {
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

const wk_style wk_native_style = {.text = write_text, .end = write_end, .finish = finish};

wick_status wk_answer_native(wick_exchange *x, wick_error *err) {
    enum { MOST_PROBABILITIES = 1024 };
    WK_TRY(wk_request_generation(x, err));
    WK_TRY(wk_request_whole(x, "n_probs", 0, MOST_PROBABILITIES, &x->n_top, err));
    x->desc.n_logprobs = x->n_top;
    x->has_logprobs = x->n_top > 0;
    return wk_prompts_of_texts(x, wk_json_get(x->body, "prompt"), err);
}

/* ---- Metrics (prometheus.io/docs/instrumenting/exposition_formats) ---- */

/* Upper bounds in seconds; the last bucket has none. */
static const double bounds[WK_N_BUCKETS - 1] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                0.25,  0.5,    1,     2.5,  5,     10,   60};

void wk_histogram_add(wk_histogram *histogram, double seconds) {
    int i = 0;
    while (i < WK_N_BUCKETS - 1 && seconds > bounds[i]) i++;
    histogram->counts[i]++;
    histogram->sum += seconds;
}

static void write_histogram(wk_strbuf *to, const char *name, const char *help,
                            const wk_histogram *histogram) {
    uint64_t n = 0;
    wk_strbuf_format(to, "# HELP %s %s\n# TYPE %s histogram\n", name, help, name);
    for (int i = 0; i < WK_N_BUCKETS; i++) {
        n += histogram->counts[i];
        if (i < WK_N_BUCKETS - 1)
            wk_strbuf_format(to, "%s_bucket{le=\"%g\"} %llu\n", name, bounds[i],
                             (unsigned long long)n);
    }
    wk_strbuf_format(to, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.9g\n%s_count %llu\n", name,
                     (unsigned long long)n, name, histogram->sum, name, (unsigned long long)n);
}

static void write_metric(wk_strbuf *to, const char *name, const char *type, const char *help,
                         double value) {
    wk_strbuf_format(to, "# HELP llamacpp:%s %s\n# TYPE llamacpp:%s %s\nllamacpp:%s %.17g\n", name,
                     help, name, type, name, value);
}

wick_status wk_answer_metrics(wick_exchange *x, wick_error *err) {
    const wick_api *const api = x->api;
    const wk_totals *const t = &api->totals;
    wk_strbuf *const to = &x->part;
    (void)err;
    write_metric(to, "prompt_tokens_total", "counter", "Tokens of prompts that were computed.",
                 (double)t->n_prompt);
    write_metric(to, "prompt_seconds_total", "counter", "Seconds spent on prompts.",
                 t->prompt_seconds);
    write_metric(to, "tokens_predicted_total", "counter", "Tokens generated.",
                 (double)t->n_generated);
    write_metric(to, "tokens_predicted_seconds_total", "counter", "Seconds spent on generating.",
                 t->generate_seconds);
    write_metric(to, "prompt_tokens_seconds", "gauge", "Tokens of prompts a second.",
                 t->prompt_seconds > 0 ? (double)t->n_prompt / t->prompt_seconds : 0);
    write_metric(to, "predicted_tokens_seconds", "gauge", "Tokens generated a second.",
                 t->generate_seconds > 0 ? (double)t->n_generated / t->generate_seconds : 0);
    write_metric(to, "requests_processing", "gauge", "Texts that are being generated.",
                 api->n_running);
    write_metric(to, "requests_deferred", "gauge", "Requests that wait.", api->queued.n);
    write_histogram(to, "vllm:time_to_first_token_seconds", "Time to the first token.", &t->first);
    write_histogram(to, "vllm:inter_token_latency_seconds", "Time between tokens.", &t->between);
    write_histogram(to, "vllm:request_queue_time_seconds", "Time in the queue.", &t->queued);
    x->type = "text/plain; version=0.0.4";
    wk_exchange_end(x, 200);
    return WICK_OK;
}

/* ---- Slots ---- */

static void write_slot(wk_strbuf *to, uint32_t id, const wk_choice *choice) {
    wk_write_open(to, '{');
    wk_write_put_whole(to, "id", id);
    wk_write_put_whole(to, "n_ctx", choice ? choice->exchange->api->session.context_length : 0);
    wk_write_key(to, "is_processing");
    wk_write_bool(to, choice != NULL);
    if (choice) {
        wick_session_stats stats;
        wick_session_get_stats(choice->session, &stats);
        wk_write_put_whole(to, "n_prompt_tokens", choice->prompt->n);
        wk_write_put_whole(to, "n_prompt_tokens_cache", stats.n_reused);
        wk_write_put_whole(to, "n_decoded", stats.n_generated);
    }
    wk_write_close(to, '}');
}

/* Texts that are being generated, then places that are free. */
wick_status wk_answer_slots(wick_exchange *x, wick_error *err) {
    uint32_t id = 0;
    (void)err;
    wk_write_open(&x->part, '[');
    for (const wick_exchange *other = x->api->running.first; other; other = other->next)
        for (uint32_t i = 0; i < other->n_choices; i++)
            if (other->choices[i].session) write_slot(&x->part, id++, &other->choices[i]);
    while (id < x->api->n_parallel) write_slot(&x->part, id++, NULL);
    wk_write_close(&x->part, ']');
    wk_exchange_end(x, 200);
    return WICK_OK;
}
