/* bench/turns.c: how long a session waits where others have been before it: for the first token of
 * a second turn, and, while it generates, for a long prompt of another session.
 *
 * usage: turns MODEL.gguf [-p PROMPT] [-l LONG] [-r ROUNDS] [options of device_options.h]
 *
 * A prompt of p arbitrary tokens (1500) is answered with 16; a second turn, in another session, has
 * all of these and 16 more. Then one session generates while another one reads l tokens (4000): the
 * longest time between two of its tokens, over the longest one of a chunk of that prompt alone. All
 * times are medians of the rounds (3). */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */

#include "session_bench.h"

#include <string.h>

enum { N_ANSWER = 16, N_NEW = 16, MOST_ROUNDS = 64, MOST_TOKENS = 65536 };

typedef struct setup {
    wick_model *model;
    uint32_t n_prompt, n_long, n_rounds, n_vocab;
} setup;

static void check_session(const wick_session *session, wick_status status) {
    wick_error error = {0};
    if (status < 0) (void)wick_session_error(session, &error);
    check(status, &error);
}

static wick_session *open_session(const setup *s, uint32_t n, bool no_reuse) {
    wick_session *session = NULL;
    wick_error error = {0};
    const wick_session_desc desc = {.context_length = n + 4 * N_ANSWER,
                                    .max_tokens = N_ANSWER,
                                    .ignore_end = true,
                                    .speculate = WICK_SPECULATE_NONE,
                                    .no_reuse = no_reuse};
    check(wick_session_open(s->model, &desc, &session, &error), &error);
    return session;
}

/* Different in every round: nothing of it is known. */
static uint32_t *make_ids(const setup *s, uint32_t n, uint32_t round) {
    uint32_t *const ids = malloc((n + N_ANSWER + N_NEW) * sizeof *ids);
    if (!ids) exit(1);
    for (uint32_t i = 0; i < n + N_ANSWER + N_NEW; i++)
        ids[i] = (1000 + 7919 * round + 104729 * i + 31 * (i / 7)) % s->n_vocab;
    return ids;
}

static wick_event next(wick_session *session) {
    wick_event event;
    check_session(session, wick_session_next(session, &event));
    return event;
}

/* Of n ids; what it generates follows them. */
static wick_session_stats run_turn(const setup *s, uint32_t *ids, uint32_t n) {
    wick_session *const session = open_session(s, n, false);
    check_session(session, wick_session_append_tokens(session, ids, n));
    while (next(session).kind != WICK_EVENT_END) continue;
    size_t n_all;
    const uint32_t *const all = wick_session_tokens(session, &n_all);
    memcpy(ids, all, n_all * sizeof *ids);
    wick_session_stats stats;
    wick_session_get_stats(session, &stats);
    wick_session_close(session);
    return stats;
}

static void measure_turns(const setup *s) {
    double first[MOST_ROUNDS], second[MOST_ROUNDS];
    uint32_t n_reused = 0;
    for (uint32_t i = 0; i < s->n_rounds; i++) {
        uint32_t *const ids = make_ids(s, s->n_prompt, i);
        first[i] = run_turn(s, ids, s->n_prompt).first_token_seconds;
        uint32_t *const more = realloc(ids, (s->n_prompt + 3 * N_ANSWER + N_NEW) * sizeof *ids);
        if (!more) exit(1);
        const wick_session_stats stats = run_turn(s, more, s->n_prompt + N_ANSWER + N_NEW);
        second[i] = stats.first_token_seconds;
        n_reused = stats.n_reused;
        free(more);
    }
    const double a = median(first, s->n_rounds), b = median(second, s->n_rounds);
    printf("first token after %u tokens: %.1f ms; second turn, %u of %u tokens reused: %.1f ms, "
           "%.1f %%\n",
           s->n_prompt, 1e3 * a, n_reused, s->n_prompt + N_ANSWER + N_NEW, 1e3 * b, 100 * b / a);
}

/* The longest time of a chunk of a prompt that is read alone. */
static double measure_chunk(const setup *s, const uint32_t *ids) {
    wick_session *const session = open_session(s, s->n_long, true);
    check_session(session, wick_session_append_tokens(session, ids, s->n_long));
    double longest = 0, before = seconds();
    while (next(session).kind == WICK_EVENT_PROMPT) {
        const double now = seconds();
        if (now - before > longest) longest = now - before;
        before = now;
    }
    wick_session_close(session);
    return longest;
}

/* The longest time between two tokens of a session, while another one reads a prompt. */
static double measure_gap(const setup *s, const uint32_t *ids) {
    wick_error error = {0};
    wick_session *talker = NULL;
    const wick_session_desc desc = {.context_length = s->n_long,
                                    .ignore_end = true,
                                    .speculate = WICK_SPECULATE_NONE,
                                    .no_reuse = true};
    wick_session *const reader = open_session(s, s->n_long, true);
    check(wick_session_open(s->model, &desc, &talker, &error), &error);
    check_session(talker, wick_session_append_tokens(talker, ids, 16));
    for (uint32_t i = 0; i < 8;) i += next(talker).kind == WICK_EVENT_TOKEN;
    check_session(reader, wick_session_append_tokens(reader, ids, s->n_long));
    double longest = 0, before = seconds();
    for (bool is_read = false; !is_read;) {
        wick_event event;
        check_session(talker, wick_session_step(talker, &event));
        if (event.kind == WICK_EVENT_TOKEN) {
            const double now = seconds();
            if (now - before > longest) longest = now - before;
            before = now;
        }
        check_session(reader, wick_session_step(reader, &event));
        is_read = event.kind == WICK_EVENT_TOKEN;
    }
    wick_session_close(reader);
    wick_session_close(talker);
    return longest;
}

static void measure_gaps(const setup *s) {
    double chunks[MOST_ROUNDS], gaps[MOST_ROUNDS];
    uint32_t *const ids = make_ids(s, s->n_long, 0);
    for (uint32_t i = 0; i < s->n_rounds; i++) {
        chunks[i] = measure_chunk(s, ids);
        gaps[i] = measure_gap(s, ids);
    }
    free(ids);
    const double chunk = median(chunks, s->n_rounds), gap = median(gaps, s->n_rounds);
    printf("while another session reads %u tokens: longest gap %.1f ms, longest chunk alone %.1f "
           "ms, %.2f\n",
           s->n_long, 1e3 * gap, 1e3 * chunk, gap / chunk);
}

static bool parse_own(void *given, const char *name, const char *text) {
    setup *const s = given;
    if (strcmp(name, "-p") == 0)
        s->n_prompt = number_in(text, 0, MOST_TOKENS);
    else if (strcmp(name, "-l") == 0)
        s->n_long = number_in(text, 0, MOST_TOKENS);
    else if (strcmp(name, "-r") == 0)
        s->n_rounds = number_in(text, 1, MOST_ROUNDS);
    else
        return false;
    return true;
}

int main(int argc, char **argv) {
    setup s = {.n_prompt = 1500, .n_long = 4000, .n_rounds = 3};
    wick_model_info info;
    s.model = open_model(argc, argv, parse_own, &s, "[-p PROMPT] [-l LONG] [-r ROUNDS]");
    wick_model_get_info(s.model, &info);
    s.n_vocab = info.n_vocab;
    if (s.n_prompt > 0) measure_turns(&s);
    if (s.n_long > 16) measure_gaps(&s);
    close_model(s.model);
    return 0;
}
