/* bench/sessions.c: tokens per second of many sessions of one model, which share each reading of
 * the weights.
 *
 * usage: sessions MODEL.gguf [-s 1,2,4,8,16,32] [-p PROMPT] [-n TOKENS] [-r ROUNDS] [options of
 *        device_options.h]
 *
 * Every session reads a prompt of its own (16 arbitrary tokens), then all of them generate n tokens
 * (64) together, greedily; the prompts' time is not counted. The rate is the median of the rounds
 * (3). */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */

#include "device_options.h"

#include <wick/wick.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_SESSIONS = 256, MOST_ROUNDS = 64 };

typedef struct setup {
    wick_model *model;
    wick_session *sessions[MOST_SESSIONS];
    uint32_t n_sessions, n_prompt, n_tokens;
} setup;

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void check(wick_status status, const wick_error *error) {
    if (status >= 0) return;
    fprintf(stderr, "sessions: %s\n", error->message);
    exit(1);
}

static void open_sessions(setup *s) {
    wick_model_info info;
    wick_model_get_info(s->model, &info);
    uint32_t *const ids = malloc(s->n_prompt * sizeof *ids);
    if (!ids) exit(1);
    for (uint32_t i = 0; i < s->n_sessions; i++) {
        wick_error error = {0};
        const wick_session_desc desc = {.context_length = s->n_prompt + s->n_tokens + 1,
                                        .max_tokens = s->n_tokens + 1,
                                        .ignore_end = true,
                                        .speculate = WICK_SPECULATE_NONE,
                                        .no_reuse = true};
        check(wick_session_open(s->model, &desc, &s->sessions[i], &error), &error);
        for (uint32_t k = 0; k < s->n_prompt; k++)
            ids[k] = (1000 + 7919 * i + 104729 * k) % info.n_vocab;
        check(wick_session_append_tokens(s->sessions[i], ids, s->n_prompt), &error);
    }
    free(ids);
}

/* Until every session has generated n tokens. */
static void generate(const setup *s, uint32_t n) {
    uint32_t n_left = s->n_sessions, counts[MOST_SESSIONS] = {0};
    wick_error error = {0};
    while (n_left > 0) {
        wick_status status = WICK_PENDING;
        while (status == WICK_PENDING) {
            status = wick_model_step(s->model, &error);
            if (status == WICK_PENDING) wick_pause(wick_model_device(s->model));
        }
        check(status, &error);
        for (uint32_t i = 0; i < s->n_sessions; i++) {
            wick_event event = {.kind = WICK_EVENT_PROMPT};
            while (counts[i] < n && event.kind == WICK_EVENT_PROMPT) {
                status = wick_session_step(s->sessions[i], &event);
                if (status < 0) (void)wick_session_error(s->sessions[i], &error);
                check(status, &error);
            }
            if (event.kind == WICK_EVENT_TOKEN && ++counts[i] == n) n_left--;
        }
    }
}

static double measure(setup *s) {
    open_sessions(s);
    generate(s, 1);
    const double begin = seconds();
    generate(s, s->n_tokens);
    const double spent = seconds() - begin;
    for (uint32_t i = 0; i < s->n_sessions; i++) wick_session_close(s->sessions[i]);
    return (double)s->n_sessions * s->n_tokens / spent;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void run(setup *s, uint32_t n_rounds, const char *counts) {
    double one = 0;
    printf("sessions   tokens/s   of one   ms a step\n");
    for (const char *at = counts; *at; at += strspn(at, ",")) {
        char *end;
        const unsigned long n = strtoul(at, &end, 10);
        if (end == at || n < 1 || n > MOST_SESSIONS) {
            fprintf(stderr, "sessions: -s takes numbers from 1 to %d\n", MOST_SESSIONS);
            exit(1);
        }
        at = end;
        double rates[MOST_ROUNDS];
        s->n_sessions = (uint32_t)n;
        for (uint32_t i = 0; i < n_rounds; i++) rates[i] = measure(s);
        qsort(rates, n_rounds, sizeof *rates, by_size);
        const double rate = rates[n_rounds / 2];
        if (one == 0) one = rate / (double)n;
        printf("%8lu %10.1f %8.2f %11.2f\n", n, rate, rate / one, 1e3 * (double)n / rate);
        fflush(stdout);
    }
}

static uint32_t number(const char *text) {
    const long n = atol(text);
    return n < 1 ? 1 : n > 4096 ? 4096 : (uint32_t)n;
}

static bool parse_own(setup *s, const char *name, const char *text, const char **counts,
                      uint32_t *n_rounds) {
    if (strcmp(name, "-s") == 0)
        *counts = text;
    else if (strcmp(name, "-p") == 0)
        s->n_prompt = number(text);
    else if (strcmp(name, "-n") == 0)
        s->n_tokens = number(text);
    else if (strcmp(name, "-r") == 0)
        *n_rounds = number(text) < MOST_ROUNDS ? number(text) : MOST_ROUNDS;
    else
        return false;
    return true;
}

int main(int argc, char **argv) {
    setup s = {.n_prompt = 16, .n_tokens = 64};
    const char *path = NULL, *counts = "1,2,4,8,16,32";
    uint32_t n_rounds = 3;
    wick_device_desc desc = {.math = WICK_MATH_FAST};
    for (int i = 1; i < argc; i++) {
        const bool is_pair = i + 1 < argc;
        if (parse_webgpu(argc, argv, &i, &desc.webgpu)) continue;
        if (argv[i][0] != '-' && !path)
            path = argv[i];
        else if (is_pair && (parse_own(&s, argv[i], argv[i + 1], &counts, &n_rounds) ||
                             parse_device_pair(&desc, argv[i], argv[i + 1])))
            i++;
        else
            path = NULL, i = argc;
    }
    if (!path)
        return fprintf(stderr,
                       "usage: sessions MODEL.gguf [-s 1,2,4] [-p PROMPT] [-n TOKENS] "
                       "[-r ROUNDS] [--backend NAME] [--isa NAME] [--threads N] " WEBGPU_USAGE
                       "\n"),
               2;
    wick_device *device = NULL;
    wick_error error = {0};
    check(wick_device_open(&desc, &device, &error), &error);
    check(wick_model_open(device, path, NULL, &s.model, &error), &error);
    run(&s, n_rounds, counts);
    wick_model_close(s.model);
    wick_device_close(device);
    return 0;
}
