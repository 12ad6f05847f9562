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

#include "session_bench.h"

#include <string.h>

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
    const double slow = median(without, s->n_rounds), fast = median(with, s->n_rounds);
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

static bool parse_own(void *given, const char *name, const char *text) {
    setup *const s = given;
    if (strcmp(name, "-f") == 0)
        s->file = text;
    else if (strcmp(name, "-w") == 0)
        s->n_words = number_in(text, 1, 4096);
    else if (strcmp(name, "-n") == 0)
        s->n_tokens = number_in(text, 1, 4096);
    else if (strcmp(name, "-r") == 0)
        s->n_rounds = number_in(text, 1, MOST_ROUNDS);
    else
        return false;
    return true;
}

int main(int argc, char **argv) {
    setup s = {.file = "docs/architecture.md", .n_words = 1000, .n_tokens = 512, .n_rounds = 3};
    s.model = open_model(argc, argv, parse_own, &s, "[-f FILE] [-w WORDS] [-n TOKENS] [-r ROUNDS]");
    const bool is_same = run(&s);
    close_model(s.model);
    return is_same ? 0 : 1;
}
