/* bench/gpu/model.c: whole models of random weights: how fast they read prompts and generate. */
#include "gpu_bench.h"

#include <stdio.h>
#include <stdlib.h>

enum { SHORT = 4096, LONG = 32768, ROOM = 64, ROUNDS = 3, N_DECODED = 24, N_PROFILED = 4 };

typedef struct timer {
    bench *bench;
    const model_shape *shape;
    wick_model *model;
    wick_session *session;
    uint32_t n_context;         /* tokens in it */
    double seconds_of_a_prompt; /* per token, of the last one */
} timer;

/* ---- Steps ---- */

static void next_token(timer *t) {
    wick_event event = {0};
    while (event.kind != WICK_EVENT_TOKEN) {
        wick_error error = {0};
        const wick_status status = wick_session_step(t->session, &event);
        if (status != WICK_OK) (void)wick_session_error(t->session, &error);
        check(status, &error);
        if (event.kind == WICK_EVENT_PENDING) wick_pause(t->bench->device);
    }
    t->n_context++;
}

/* Reads n more tokens and chooses the next one; seconds. */
static double read_prompt(timer *t, uint32_t n) {
    uint32_t *const ids = malloc(n * sizeof *ids), state = 1 + t->n_context;
    if (ids == NULL) check(WICK_ERR_OUT_OF_MEMORY, &(wick_error){.message = "out of memory"});
    uint32_t random = state;
    for (uint32_t i = 0; i < n; i++) {
        random = random * 1664525U + 1013904223U; /* Numerical Recipes */
        ids[i] = (uint32_t)(((uint64_t)random * t->shape->n_vocab) >> 32);
    }
    const double begin = wick_time();
    const wick_status status = wick_session_append_tokens(t->session, ids, n);
    wick_error error = {0};
    if (status != WICK_OK) (void)wick_session_error(t->session, &error);
    check(status, &error);
    t->n_context += n;
    next_token(t);
    const double seconds = wick_time() - begin;
    t->seconds_of_a_prompt = seconds / n;
    free(ids);
    return seconds;
}

static void reset(timer *t) {
    wick_session_reset(t->session);
    t->n_context = 0;
}

/* ---- Results ---- */

static double profiled_seconds(const bench *b) {
    wick_kernel_stats kernels[256];
    const size_t n = wick_device_get_profile(b->device, kernels, 256);
    double sum = 0;
    for (size_t i = 0; i < n && i < 256; i++) sum += kernels[i].seconds;
    return sum;
}

static void begin_result(timer *t, const char *test, uint32_t n) {
    begin_line(t->bench);
    wk_write_put(&t->bench->line, "model", t->shape->name);
    wk_write_put(&t->bench->line, "types", wick_dtype_name(t->shape->matrices));
    wk_write_put(&t->bench->line, "test", test);
    wk_write_put_whole(&t->bench->line, "n_tokens", n);
}

static void leave_model_out(timer *t, const char *test, uint32_t n, const char *reason) {
    char what[64];
    snprintf(what, sizeof what, "%s %s %u", t->shape->name, test, (unsigned)n);
    leave_out(t->bench, what, reason);
}

/* Whether another n tokens are likely to fit into the time. */
static bool has_time(const timer *t, uint32_t n) {
    return wick_time() + 1.2 * n * t->seconds_of_a_prompt < t->bench->deadline;
}

static void put_profile(timer *t, double before, uint32_t n) {
    if (t->bench->is_profiled)
        put_number(t->bench, "gpu_seconds_per_token", (profiled_seconds(t->bench) - before) / n);
}

static void prefill(timer *t, uint32_t n) {
    double rates[ROUNDS];
    int n_rounds = 0;
    if (!has_time(t, n)) {
        leave_model_out(t, "prefill", n, "no time was left");
        return;
    }
    const double profiled = profiled_seconds(t->bench);
    do {
        reset(t);
        rates[n_rounds++] = n / read_prompt(t, n);
    } while (n_rounds < (t->bench->is_profiled ? 1 : ROUNDS) && has_time(t, 2 * n));
    begin_result(t, "prefill", n);
    put_number(t->bench, "tokens_per_second", median(rates, n_rounds));
    put_profile(t, profiled, n * (uint32_t)n_rounds);
    end_line(t->bench);
}

/* What generating one token came to, on average. */
static void put_counts(timer *t, const wick_device_stats *before, uint32_t n) {
    wick_device_stats after;
    wick_session_stats session;
    wick_model_info info;
    bench *const b = t->bench;
    wick_device_get_stats(b->device, &after);
    wick_session_get_stats(t->session, &session);
    wick_model_get_info(t->model, &info);
    put_number(b, "dispatches_per_token", (double)(after.n_dispatches - before->n_dispatches) / n);
    put_number(b, "submits_per_token", (double)(after.n_submits - before->n_submits) / n);
    put_number(b, "reads_per_token", (double)(after.n_reads - before->n_reads) / n);
    put_number(b, "fallbacks_per_token", (double)(after.n_fallbacks - before->n_fallbacks) / n);
    put_number(b, "encode_us_on_critical_path",
               1e6 * (after.encode_seconds - before->encode_seconds) / n);
    /* Every weight once, the keys and values in use. */
    const double cached = (double)session.cache_bytes / session.context_length * t->n_context;
    put_number(b, "bytes_per_token", (double)info.weight_bytes + cached);
}

static void decode(timer *t, uint32_t depth) {
    const uint32_t n = t->bench->is_profiled ? N_PROFILED : N_DECODED;
    double seconds[N_DECODED];
    uint32_t n_done = 0;
    wick_device_stats before;
    next_token(t); /* warms up */
    wick_device_get_stats(t->bench->device, &before);
    const double profiled = profiled_seconds(t->bench);
    while (n_done < n && (n_done < 2 || !is_late(t->bench))) {
        const double begin = wick_time();
        next_token(t);
        seconds[n_done++] = wick_time() - begin;
    }
    begin_result(t, "decode", depth);
    put_profile(t, profiled, n_done);
    put_counts(t, &before, n_done);
    put_number(t->bench, "tokens_per_second", 1 / median(seconds, (int)n_done));
    end_line(t->bench);
}

/* ---- The model ---- */

static bool open_session(timer *t, uint32_t context) {
    const wick_session_desc desc = {.context_length = context + ROOM,
                                    .ignore_end = true,
                                    .speculate = WICK_SPECULATE_NONE,
                                    .no_reuse = true};
    wick_error error = {0};
    t->n_context = 0;
    const wick_status status = wick_session_open(t->model, &desc, &t->session, &error);
    if (status != WICK_ERR_OUT_OF_MEMORY) check(status, &error);
    return status == WICK_OK;
}

static bool load(timer *t) {
    wick_error error = {0};
    wick_model_loading *loading = NULL;
    wick_progress progress;
    const wick_session_desc sessions = {.context_length = SHORT + ROOM};
    const wick_model_desc desc = {.sessions = &sessions, .device_layers = INT32_MAX};
    check(wick_model_open_start(t->bench->device, make_random_model(t->shape), &desc, &loading,
                                &error),
          &error);
    while (!is_late(t->bench) && wick_model_open_poll(loading, &progress) == WICK_PENDING)
        wick_pause(t->bench->device);
    const wick_status status = wick_model_open_finish(loading, &t->model, &error);
    if (status == WICK_ERR_CANCELLED)
        leave_out(t->bench, t->shape->name, "no time was left to load it");
    else if (status == WICK_ERR_OUT_OF_MEMORY)
        leave_out(t->bench, t->shape->name, "the device has no room for it");
    else
        check(status, &error);
    return status == WICK_OK;
}

/* The short tests first. */
static void measure_short(timer *t) {
    if (!open_session(t, SHORT)) {
        leave_out(t->bench, t->shape->name, "no room for a session");
        return;
    }
    (void)read_prompt(t, 128); /* warms up */
    decode(t, 128);
    prefill(t, 512);
    if (!t->bench->is_profiled) {
        prefill(t, SHORT);
        if (t->n_context > SHORT)
            decode(t, SHORT);
        else
            leave_model_out(t, "decode", SHORT, "no time was left");
    }
    wick_session_close(t->session);
}

static void measure_long(timer *t) {
    if (!has_time(t, 2 * LONG)) {
        leave_model_out(t, "decode", LONG, "no time was left");
        return;
    }
    if (!open_session(t, LONG)) {
        leave_model_out(t, "decode", LONG, "no room for its cache");
        return;
    }
    (void)read_prompt(t, LONG);
    decode(t, LONG);
    wick_session_close(t->session);
}

void measure_model(bench *b) {
    timer t = {.bench = b, .shape = find_shape(b->model)};
    if (!load(&t)) return;
    measure_short(&t);
    if (!b->is_profiled) measure_long(&t);
    wick_model_close(t.model);
}
