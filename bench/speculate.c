/* bench/speculate.c: tokens per second with and without guesses at the tokens to come, on a text
 * that is repeated and on one that is free. Both runs must give the same tokens.
 *
 * usage: speculate MODEL.gguf [-f FILE] [-w WORDS] [-n TOKENS] [-r ROUNDS] [options of
 *        device_options.h]
 *
 * Repeated: the model reads the first words (1000) of FILE (docs/architecture.md) and goes on with
 * the text from its beginning, greedily. Free: a story, drawn at temperature 0.8. The prompts' time
 * is not counted; rates are medians of the rounds (3), whose runs alternate. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */

#include "device_options.h"

#include <wick/wick.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_ROUNDS = 64, N_BEGUN = 40 /* words of the repetition that the prompt has */ };

typedef struct setup {
    wick_model *model;
    const char *file;
    uint32_t n_words, n_tokens, n_rounds;
} setup;

typedef struct outcome {
    double rate;
    uint32_t n_drafted, n_accepted, *ids;
} outcome;

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void check(wick_status status, const wick_error *error) {
    if (status >= 0) return;
    fprintf(stderr, "speculate: %s\n", error->message);
    exit(1);
}

/* --- The texts --- */

/* Where word number n of the text ends. */
static size_t end_of(const char *text, uint32_t n) {
    const char *at = text;
    for (; n > 0; n--) {
        at += strspn(at, " \n\t");
        at += strcspn(at, " \n\t");
    }
    return (size_t)(at - text);
}

static char *make_prompt(const setup *s) {
    enum { MOST = 1 << 20 };
    static const char again[] = "\n\nThe same text again:\n\n";
    char *const text = calloc(1, MOST);
    FILE *const file = fopen(s->file, "rb");
    if (!text || !file || fread(text, 1, MOST - 1, file) == 0) {
        fprintf(stderr, "speculate: %s cannot be read\n", s->file);
        exit(1);
    }
    fclose(file);
    const size_t n = end_of(text, s->n_words), n_begun = end_of(text, N_BEGUN);
    char *const prompt = malloc(n + sizeof again + n_begun);
    if (!prompt) exit(1);
    memcpy(prompt, text, n);
    memcpy(prompt + n, again, sizeof again - 1);
    memcpy(prompt + n + sizeof again - 1, text, n_begun);
    prompt[n + sizeof again - 1 + n_begun] = 0;
    free(text);
    return prompt;
}

/* --- Runs --- */

static void next_token(wick_session *session, wick_device *device) {
    wick_event event = {.kind = WICK_EVENT_PENDING};
    while (event.kind != WICK_EVENT_TOKEN && event.kind != WICK_EVENT_END) {
        wick_error error = {0};
        const wick_status status = wick_session_step(session, &event);
        if (status < 0) (void)wick_session_error(session, &error);
        check(status, &error);
        if (event.kind == WICK_EVENT_PENDING) wick_pause(device);
    }
    if (event.kind == WICK_EVENT_TOKEN) return;
    fprintf(stderr, "speculate: the context is too short\n");
    exit(1);
}

static outcome generate(const setup *s, const char *prompt, wick_session_desc desc) {
    wick_session *session;
    wick_error error = {0};
    wick_session_stats stats;
    outcome found = {.ids = malloc(s->n_tokens * sizeof *found.ids)};
    if (!found.ids) exit(1);
    desc.ignore_end = desc.no_reuse = true;
    check(wick_session_open(s->model, &desc, &session, &error), &error);
    if (wick_session_append_text(session, prompt) < 0) (void)wick_session_error(session, &error);
    check(error.status, &error);
    next_token(session, wick_model_device(s->model));
    const double begin = seconds();
    for (uint32_t i = 0; i < s->n_tokens; i++) next_token(session, wick_model_device(s->model));
    found.rate = s->n_tokens / (seconds() - begin);
    size_t n;
    const uint32_t *const ids = wick_session_tokens(session, &n);
    memcpy(found.ids, ids + n - s->n_tokens, s->n_tokens * sizeof *ids);
    wick_session_get_stats(session, &stats);
    found.n_drafted = stats.n_drafted;
    found.n_accepted = stats.n_accepted;
    wick_session_close(session);
    return found;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Whether both gave the same tokens. */
static bool compare(const setup *s, const char *name, const char *prompt, wick_session_desc desc) {
    double without[MOST_ROUNDS], with[MOST_ROUNDS];
    uint32_t n_drafted = 0, n_accepted = 0;
    bool is_same = true;
    for (uint32_t i = 0; i < s->n_rounds; i++) {
        desc.speculate = WICK_SPECULATE_NONE;
        const outcome a = generate(s, prompt, desc);
        desc.speculate = WICK_SPECULATE_AUTO;
        const outcome b = generate(s, prompt, desc);
        is_same = is_same && memcmp(a.ids, b.ids, s->n_tokens * sizeof *a.ids) == 0;
        without[i] = a.rate;
        with[i] = b.rate;
        n_drafted += b.n_drafted;
        n_accepted += b.n_accepted;
        free(a.ids);
        free(b.ids);
    }
    qsort(without, s->n_rounds, sizeof *without, by_size);
    qsort(with, s->n_rounds, sizeof *with, by_size);
    const double slow = without[s->n_rounds / 2], fast = with[s->n_rounds / 2];
    printf("%-10s %10.1f %10.1f %8.2f %9u %9u   %s\n", name, slow, fast, fast / slow, n_drafted,
           n_accepted, is_same ? "same" : "DIFFERENT");
    fflush(stdout);
    return is_same;
}

static bool run(const setup *s) {
    char *const prompt = make_prompt(s);
    const wick_session_desc greedy = {.context_length = 4 * s->n_words + s->n_tokens + 512};
    const wick_session_desc drawn = {.context_length = s->n_tokens + 64,
                                     .sampler = {.temperature = 0.8F, .top_k = 40, .seed = 1}};
    printf("text         without       with    times   drafted  accepted   texts\n");
    const bool is_same = compare(s, "repeated", prompt, greedy) &
                         compare(s, "free", "Once upon a time, far from the sea,", drawn);
    free(prompt);
    return is_same;
}

static bool parse_own(setup *s, const char *name, const char *text) {
    const long n = atol(text);
    const uint32_t number = n < 1 ? 1 : n > 4096 ? 4096 : (uint32_t)n;
    if (strcmp(name, "-f") == 0)
        s->file = text;
    else if (strcmp(name, "-w") == 0)
        s->n_words = number;
    else if (strcmp(name, "-n") == 0)
        s->n_tokens = number;
    else if (strcmp(name, "-r") == 0)
        s->n_rounds = number < MOST_ROUNDS ? number : MOST_ROUNDS;
    else
        return false;
    return true;
}

int main(int argc, char **argv) {
    setup s = {.file = "docs/architecture.md", .n_words = 1000, .n_tokens = 512, .n_rounds = 3};
    const char *path = NULL;
    wick_device_desc desc = {.math = WICK_MATH_FAST};
    for (int i = 1; i < argc; i++) {
        const bool is_pair = i + 1 < argc;
        if (parse_webgpu(argc, argv, &i, &desc.webgpu)) continue;
        if (argv[i][0] != '-' && !path)
            path = argv[i];
        else if (is_pair && (parse_own(&s, argv[i], argv[i + 1]) ||
                             parse_device_pair(&desc, argv[i], argv[i + 1])))
            i++;
        else
            path = NULL, i = argc;
    }
    if (!path)
        return fprintf(stderr,
                       "usage: speculate MODEL.gguf [-f FILE] [-w WORDS] [-n TOKENS] [-r ROUNDS] "
                       "[--backend NAME] [--isa NAME] [--threads N] " WEBGPU_USAGE "\n"),
               2;
    wick_device *device = NULL;
    wick_error error = {0};
    check(wick_device_open(&desc, &device, &error), &error);
    check(wick_model_open(device, path, NULL, &s.model, &error), &error);
    const bool is_same = run(&s);
    wick_model_close(s.model);
    wick_device_close(device);
    return is_same ? 0 : 1;
}
