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

#include "session_bench.h"

#include <string.h>

enum { MOST_SESSIONS = 256, MOST_ROUNDS = 64 };

typedef struct setup {
    wick_model *model;
    wick_session *sessions[MOST_SESSIONS];
    const char *counts; /* of sessions, with commas */
    uint32_t n_sessions, n_prompt, n_tokens, n_rounds;
} setup;

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

static void run(setup *s) {
    double one = 0;
    printf("sessions   tokens/s   of one   ms a step\n");
    for (const char *at = s->counts; *at; at += strspn(at, ",")) {
        char *end;
        const unsigned long n = strtoul(at, &end, 10);
        if (end == at || n < 1 || n > MOST_SESSIONS) {
            fprintf(stderr, "sessions: -s takes numbers from 1 to %d\n", MOST_SESSIONS);
            exit(1);
        }
        at = end;
        double rates[MOST_ROUNDS];
        s->n_sessions = (uint32_t)n;
        for (uint32_t i = 0; i < s->n_rounds; i++) rates[i] = measure(s);
        const double rate = median(rates, s->n_rounds);
        if (one == 0) one = rate / (double)n;
        printf("%8lu %10.1f %8.2f %11.2f\n", n, rate, rate / one, 1e3 * (double)n / rate);
        fflush(stdout);
    }
}

static bool parse_own(void *given, const char *name, const char *text) {
    setup *const s = given;
    if (strcmp(name, "-s") == 0)
        s->counts = text;
    else if (strcmp(name, "-p") == 0)
        s->n_prompt = number_in(text, 1, 4096);
    else if (strcmp(name, "-n") == 0)
        s->n_tokens = number_in(text, 1, 4096);
    else if (strcmp(name, "-r") == 0)
        s->n_rounds = number_in(text, 1, MOST_ROUNDS);
    else
        return false;
    return true;
}

int main(int argc, char **argv) {
    setup s = {.n_prompt = 16, .n_tokens = 64, .n_rounds = 3, .counts = "1,2,4,8,16,32"};
    s.model =
        open_model(argc, argv, parse_own, &s, "[-s 1,2,4] [-p PROMPT] [-n TOKENS] [-r ROUNDS]");
    run(&s);
    close_model(s.model);
    return 0;
}
