/* api/metrics.c: what a server has done, as Prometheus reads it
 * (prometheus.io/docs/instrumenting/exposition_formats). See api.h. */
#include "api/api.h"

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
    for (int i = 0; i < WK_N_BUCKETS - 1; i++) {
        n += histogram->counts[i];
        wk_strbuf_format(to, "%s_bucket{le=\"", name);
        wk_strbuf_number(to, bounds[i], 6);
        wk_strbuf_format(to, "\"} %llu\n", (unsigned long long)n);
    }
    n += histogram->counts[WK_N_BUCKETS - 1];
    wk_strbuf_format(to, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum ", name, (unsigned long long)n, name);
    wk_strbuf_number(to, histogram->sum, 9);
    wk_strbuf_format(to, "\n%s_count %llu\n", name, (unsigned long long)n);
}

static void write_metric(wk_strbuf *to, const char *name, const char *type, const char *help,
                         double value) {
    wk_strbuf_format(to, "# HELP llamacpp:%s %s\n# TYPE llamacpp:%s %s\nllamacpp:%s ", name, help,
                     name, type, name);
    wk_strbuf_number(to, value, 17);
    wk_strbuf_text(to, "\n");
}

wick_status wk_answer_metrics(wick_exchange *x, wick_error *err) {
    const wick_api *const api = x->api;
    const wk_totals *const t = &api->totals;
    wk_strbuf *const to = &x->part;
    wick_model_usage usage;
    (void)err;
    if (!api->has_metrics) {
        wk_exchange_fail(x, 501, "this server has no metrics (--metrics)");
        return WICK_OK;
    }
    wick_model_get_usage(api->model, &usage);
    write_metric(to, "prompt_tokens_total", "counter", "Tokens of prompts that were computed.",
                 (double)t->n_prompt);
    write_metric(to, "prompt_tokens_cached_total", "counter",
                 "Tokens of prompts that were in the cache.", (double)t->n_cached);
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
    write_metric(to, "n_decode_total", "counter", "Steps in which texts were generated.",
                 (double)t->n_batches);
    write_metric(to, "n_busy_slots_per_decode", "gauge", "Texts of such a step, on average.",
                 t->n_batches > 0 ? (double)t->n_in_batches / (double)t->n_batches : 0);
    write_metric(to, "n_tokens_max", "counter", "Tokens of the longest text.", (double)t->n_most);
    write_metric(to, "spec_decode_num_draft_tokens_total", "counter", "Tokens guessed.",
                 (double)t->n_drafted);
    write_metric(to, "spec_decode_num_accepted_tokens_total", "counter",
                 "Guessed tokens that were right.", (double)t->n_accepted);
    write_metric(to, "busy_seconds_total", "counter", "Seconds in which a batch was computed.",
                 usage.busy_seconds);
    write_histogram(to, "vllm:time_to_first_token_seconds", "Time to the first token.", &t->first);
    write_histogram(to, "vllm:inter_token_latency_seconds", "Time between tokens.", &t->between);
    write_histogram(to, "vllm:request_queue_time_seconds", "Time in the queue.", &t->queued);
    x->type = "text/plain; version=0.0.4";
    wk_exchange_end(x, 200);
    return WICK_OK;
}
