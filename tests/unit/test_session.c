/* llm/session and sample/stop: the step machine on the small model: stops, limits, reuse, refusals.
 * stories_session.h sets n_threads to 2: these tests run under the thread sanitizer, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sample/stop.h"
#include "stories_session.h"

#include <wick/wick.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_VOCAB = 512, N_TOKENS = 512 };

static void test_text(void **state) {
    (void)state;
    char text[4096];
    wick_session *const session = open_session(&(wick_session_desc){.max_tokens = 20});
    assert_int_equal(wick_session_append_text(session, "Once upon a time"), WICK_OK);
    const wick_event end = run(session, text, sizeof text);
    assert_int_equal(end.reason, WICK_END_MAX_TOKENS);
    assert_string_equal(text, ", there was a little girl named Lily. She loved to play outsid");
    wick_session_stats stats;
    wick_session_get_stats(session, &stats);
    assert_int_equal(stats.n_prompt, 5);
    assert_int_equal(stats.n_generated, 20);
    assert_true(stats.first_token_seconds > 0 && stats.prompt_seconds > 0);
    assert_true(stats.first_token_seconds >= stats.prompt_seconds); /* which computes it */
    /* The end stays the end until something is appended. */
    wick_event event;
    assert_int_equal(wick_session_step(session, &event), WICK_OK);
    assert_int_equal(event.kind, WICK_EVENT_END);
    assert_int_equal(event.text_size, 0);
    wick_session_reset(session);
    wick_session_get_stats(session, &stats);
    assert_int_equal(stats.n_prompt + stats.n_generated + stats.n_reused, 0);
    assert_true(stats.prompt_seconds == 0 && stats.generate_seconds == 0);
    wick_session_close(session);
}

static void assert_same_tokens(const char *const *parts, const char *whole) {
    size_t n, n_whole;
    wick_session *const a = open_session(NULL), *const b = open_session(NULL);
    for (; *parts; parts++) assert_int_equal(wick_session_append_text(a, *parts), WICK_OK);
    assert_int_equal(wick_session_append_text(b, whole), WICK_OK);
    const uint32_t *const tokens = wick_session_tokens(a, &n);
    const uint32_t *const expected = wick_session_tokens(b, &n_whole);
    assert_int_equal(n, n_whole);
    assert_memory_equal(tokens, expected, n * sizeof *tokens);
    wick_session_close(a);
    wick_session_close(b);
}

/* SentencePiece puts a space before text, but not before text that goes on. */
static void test_text_goes_on(void **state) {
    (void)state;
    assert_same_tokens((const char *const[]){"Once", " upon", " a time", NULL}, "Once upon a time");
    assert_same_tokens((const char *const[]){"Once", "-", "upon", NULL}, "Once-upon");
    assert_same_tokens((const char *const[]){"Once</s>", "upon", NULL}, "Once</s>upon");
}

static void test_no_text_goes_on(void **state) {
    (void)state;
    char text[4096], whole[4096];
    wick_session *const halves = open_session(&(wick_session_desc){.max_tokens = 10});
    wick_session *const all = open_session(&(wick_session_desc){.max_tokens = 20});
    assert_int_equal(wick_session_append_text(halves, "Once upon a time"), WICK_OK);
    run(halves, text, sizeof text);
    const size_t n = strlen(text);
    assert_int_equal(wick_session_append_text(halves, ""), WICK_OK);
    assert_int_equal(run(halves, text + n, sizeof text - n).reason, WICK_END_MAX_TOKENS);
    assert_int_equal(wick_session_append_text(all, "Once upon a time"), WICK_OK);
    run(all, whole, sizeof whole);
    assert_string_equal(text, whole);
    wick_session_close(halves);
    wick_session_close(all);
}

static void test_stop_strings(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {" girl named", ", there was a little"},
        {"Lily", ", there was a little girl named "},
        {"y. S", ", there was a little girl named Lil"}, /* ends inside of tokens */
        {",", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[4096];
        const char *const stop[] = {"never", cases[i][0]};
        wick_session *const session =
            open_session(&(wick_session_desc){.max_tokens = 60, .stop = stop, .n_stop = 2});
        assert_int_equal(wick_session_append_text(session, "Once upon a time"), WICK_OK);
        assert_int_equal(run(session, text, sizeof text).reason, WICK_END_STOP_STRING);
        assert_string_equal(text, cases[i][1]);
        wick_session_close(session);
    }
    wick_session *session;
    wick_error error = {0};
    const char *const empty[] = {"a", ""};
    assert_int_equal(wick_session_open(model, &(wick_session_desc){.stop = empty, .n_stop = 2},
                                       &session, &error),
                     WICK_ERR_VALUE);
    assert_string_equal(error.message, "stop string 2 is empty");
    assert_null(session);
}

/* Text cut at every place gives the same as in one piece. */
static void test_stop_holds_back(void **state) {
    (void)state;
    static const char whole[] = "ababab abc stop stopp end";
    const char *const strings[] = {"abc", "stopping", "p e"};
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    for (size_t piece = 1; piece < sizeof whole; piece++) {
        wk_stop stop;
        assert_int_equal(wk_stop_make(&heap, strings + 1, 2, sizeof whole, &stop, NULL), WICK_OK);
        char out[64];
        size_t used = 0;
        bool stopped = false;
        for (size_t at = 0; at < sizeof whole - 1 && !stopped; at += piece) {
            const size_t left = sizeof whole - 1 - at;
            const size_t n =
                wk_stop_feed(&stop, whole + at, left < piece ? left : piece, false, &stopped);
            memcpy(out + used, stop.held, n);
            used += n;
            wk_stop_release(&stop, n);
        }
        out[used] = 0;
        assert_true(stopped);
        assert_string_equal(out, "ababab abc stop stop");
        wk_stop_free(&heap, &stop);
    }
    assert_int_equal(heap.live_bytes, 0);
}

static void test_context_full_is_an_event(void **state) {
    (void)state;
    char text[4096];
    wick_session *const session = open_session(&(wick_session_desc){.context_length = 16});
    assert_int_equal(wick_session_append_text(session, "Once upon a time"), WICK_OK);
    assert_int_equal(run(session, text, sizeof text).reason, WICK_END_CONTEXT_FULL);
    size_t n;
    (void)wick_session_tokens(session, &n);
    assert_int_equal(n, 16);
    assert_int_equal(wick_session_append_text(session, " more"), WICK_ERR_STATE);
    wick_error error;
    (void)wick_session_error(session, &error);
    assert_non_null(strstr(error.message, "16"));
    wick_session_reset(session);
    assert_int_equal(wick_session_append_text(session, "Once"), WICK_OK);
    assert_int_equal(run(session, text, sizeof text).reason, WICK_END_CONTEXT_FULL);
    wick_session_close(session);
}

static void test_a_prefix_is_reused(void **state) {
    (void)state;
    static const uint32_t first[] = {1, 403, 407, 261, 378},
                          longer[] = {1, 403, 407, 261, 378, 432}, other[] = {1, 403, 407, 300};
    char text[4096], again[4096];
    wick_session_stats stats;
    wick_session *const session = open_session(&(wick_session_desc){.max_tokens = 8});
    assert_int_equal(wick_session_sync_tokens(session, first, 5), WICK_OK);
    run(session, text, sizeof text);
    wick_session_get_stats(session, &stats);
    const uint32_t before = stats.n_reused; /* of texts that sessions before had in the cache */
    assert_int_equal(wick_session_sync_tokens(session, longer, 6), WICK_OK);
    wick_session_get_stats(session, &stats);
    /* The first generated token is 432: the sequence already holds what is longer than the prompt.
     */
    assert_int_equal(stats.n_reused - before, 5);
    run(session, again, sizeof again);
    assert_memory_equal(text + 1, again, strlen(text) - 1);
    assert_int_equal(wick_session_sync_tokens(session, other, 4), WICK_OK);
    wick_session_get_stats(session, &stats);
    assert_int_equal(stats.n_reused - before, 5 + 3);
    run(session, again, sizeof again);
    wick_session *const fresh = open_session(&(wick_session_desc){.max_tokens = 8});
    assert_int_equal(wick_session_append_tokens(fresh, other, 4), WICK_OK);
    run(fresh, text, sizeof text);
    assert_string_equal(text, again);
    wick_session_close(fresh);
    wick_session_close(session);
}

/* Reads n tokens in parts of `step` and returns the logits after the last one. */
static void read_in_parts(uint32_t n, uint32_t step, uint32_t context_length, float *logits) {
    enum { BEGIN = 1, KINDS = 400 };
    const wick_session_desc desc = {.context_length = context_length, .logits = WICK_LOGITS_ALL};
    wick_session *const session = open_session(&desc);
    uint32_t seen = 0;
    while (seen < n) {
        uint32_t tokens[N_TOKENS];
        const uint32_t n_part = n - seen < step ? n - seen : step;
        for (uint32_t i = 0; i < n_part; i++)
            tokens[i] = seen + i == 0 ? BEGIN : 3 + (seen + i) * 7919 % KINDS;
        assert_int_equal(wick_session_append_tokens(session, tokens, n_part), WICK_OK);
        wick_event event = {.kind = WICK_EVENT_PENDING};
        for (uint32_t i = 0; i < n_part;) {
            assert_int_equal(wick_session_next(session, &event), WICK_OK);
            if (event.kind != WICK_EVENT_LOGITS) continue;
            if (++i == n_part) memcpy(logits, event.logits, N_VOCAB * sizeof *logits);
        }
        seen += n_part;
    }
    wick_session_close(session);
}

/* Plans are made for 256 keys, 512, ...: which one a batch has, and how long it could be, changes
 * nothing. */
static void test_lengths_of_keys(void **state) {
    (void)state;
    static const uint32_t lengths[] = {255, 256, 257, 511, 512};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        static float whole[N_VOCAB], parts[N_VOCAB], last[N_VOCAB];
        read_in_parts(lengths[i], N_TOKENS, 512, whole);
        read_in_parts(lengths[i], 60, 512, parts);
        read_in_parts(lengths[i], lengths[i] - 1, 2048, last);
        assert_memory_equal(whole, parts, sizeof whole);
        assert_memory_equal(whole, last, sizeof whole);
    }
}

static void test_refusals(void **state) {
    (void)state;
    wick_session *session = open_session(NULL);
    const uint32_t bad[] = {1, 512};
    assert_int_equal(wick_session_append_tokens(session, bad, 2), WICK_ERR_INDEX);
    assert_int_equal(wick_session_error(session, NULL), WICK_ERR_INDEX);
    wick_event event;
    assert_int_equal(wick_session_step(session, &event), WICK_OK);
    assert_int_equal(event.kind, WICK_EVENT_END);
    /* Nothing may be appended while a batch runs. */
    assert_int_equal(wick_session_append_tokens(session, bad, 1), WICK_OK);
    assert_int_equal(wick_session_step(session, &event), WICK_OK);
    assert_int_equal(event.kind, WICK_EVENT_PENDING);
    assert_int_equal(wick_session_append_tokens(session, bad, 1), WICK_ERR_STATE);
    assert_int_equal(wick_session_error(session, NULL), WICK_ERR_STATE);
    wick_session_close(session); /* also in the middle of a batch */
    const wick_session_desc wide = {.chunk_length = 1u << 30};
    wick_error error = {0};
    assert_int_equal(wick_session_open(model, &wide, &session, &error), WICK_ERR_VALUE);
    const wick_session_desc endless = {.context_length = UINT32_MAX};
    assert_int_equal(wick_session_open(model, &endless, &session, NULL), WICK_ERR_VALUE);
    const wick_session_desc hot = {.sampler.temperature = -1};
    assert_int_equal(wick_session_open(model, &hot, &session, NULL), WICK_ERR_VALUE);
}

/* What was refused, read or not, does not spoil what is accepted next. */
static void test_goes_on_after_a_refusal(void **state) {
    (void)state;
    char text[4096], again[4096];
    wick_session *const session = open_session(&(wick_session_desc){.context_length = 16});
    assert_int_equal(wick_session_append_tokens(session, &(uint32_t){512}, 1), WICK_ERR_INDEX);
    assert_int_equal(wick_session_append_text(session, "Once upon a time"), WICK_OK);
    assert_int_equal(run(session, text, sizeof text).reason, WICK_END_CONTEXT_FULL);
    assert_int_equal(wick_session_append_text(session, " more"), WICK_ERR_STATE);
    wick_session_reset(session);
    assert_int_equal(wick_session_append_text(session, "Once upon a time"), WICK_OK);
    wick_event event;
    do {
        assert_int_equal(wick_session_next(session, &event), WICK_OK);
    } while (event.kind != WICK_EVENT_TOKEN);
    assert_int_equal(wick_session_append_tokens(session, &(uint32_t){512}, 1), WICK_ERR_INDEX);
    memcpy(again, event.text, event.text_size);
    const wick_event end = run(session, again + event.text_size, sizeof again - event.text_size);
    assert_int_equal(end.reason, WICK_END_CONTEXT_FULL);
    assert_string_equal(text, again);
    assert_int_equal(wick_session_append_text(session, ""), WICK_OK); /* as full as before */
    assert_int_equal(run(session, again, sizeof again).reason, WICK_END_CONTEXT_FULL);
    wick_session_close(session);
}

static void test_reset_in_the_middle_of_a_batch(void **state) {
    (void)state;
    char text[4096], again[4096];
    wick_event event;
    wick_session *const session = open_session(&(wick_session_desc){.max_tokens = 8});
    assert_int_equal(wick_session_append_text(session, "The dog"), WICK_OK);
    run(session, text, sizeof text);
    for (int n_prompts = 0; n_prompts < 2; n_prompts++) {
        wick_session_reset(session);
        assert_int_equal(wick_session_append_text(session, "Once upon a time"), WICK_OK);
        assert_int_equal(wick_session_step(session, &event), WICK_OK);
        assert_int_equal(event.kind, WICK_EVENT_PENDING);
        wick_session_reset(session);
        if (n_prompts == 1) wick_session_reset(session);
        assert_int_equal(wick_session_append_text(session, "The dog"), WICK_OK);
        run(session, again, sizeof again);
        assert_string_equal(text, again);
    }
    assert_int_equal(wick_session_append_text(session, "Once"), WICK_OK);
    assert_int_equal(wick_session_step(session, &event), WICK_OK);
    wick_session_reset(session); /* and nothing after it */
    assert_int_equal(wick_session_next(session, &event), WICK_OK);
    assert_int_equal(event.kind, WICK_EVENT_END);
    wick_session_close(session);
}

/* What was appended or chosen stays, and is computed when the session goes on. */
static void test_cancel(void **state) {
    (void)state;
    char text[4096], again[4096] = "";
    wick_event event;
    wick_session *const session = open_session(&(wick_session_desc){.max_tokens = 20});
    assert_int_equal(wick_session_append_text(session, "Once upon a time"), WICK_OK);
    run(session, text, sizeof text);
    wick_session_reset(session);
    assert_int_equal(wick_session_append_text(session, "Once upon"), WICK_OK);
    assert_int_equal(wick_session_step(session, &event), WICK_OK);
    assert_int_equal(event.kind, WICK_EVENT_PENDING);
    assert_int_equal(wick_session_append_text(session, " a time"), WICK_ERR_STATE);
    wick_session_cancel(session);
    assert_int_equal(wick_session_append_text(session, " a time"), WICK_OK);
    do {
        assert_int_equal(wick_session_step(session, &event), WICK_OK);
        const bool is_pending = event.kind == WICK_EVENT_PENDING;
        wick_session_cancel(session); /* every batch, once */
        if (is_pending) assert_int_equal(wick_session_next(session, &event), WICK_OK);
        strncat(again, event.text, event.text_size);
    } while (event.kind != WICK_EVENT_END);
    assert_string_equal(text, again);
    wick_session_cancel(session);
    wick_session_cancel(NULL);
    wick_session_close(session);
}

/* Up to the next event that says something; what comes after it is prepared n_calls times. */
static wick_event next_prepared(wick_session *session, int n_calls) {
    wick_event event;
    for (int i = 0; i < n_calls; i++) assert_true(wick_session_prepare(session) >= 0);
    do {
        assert_int_equal(wick_session_next(session, &event), WICK_OK);
    } while (event.kind == WICK_EVENT_PROMPT);
    return event;
}

/* However much of it: the same tokens, and none before it is asked for. */
static void test_prepare(void **state) {
    (void)state;
    char text[4096], again[4096] = "";
    size_t n, n_after;
    wick_session *const session = open_session(&(wick_session_desc){.max_tokens = 20});
    assert_int_equal(wick_session_append_text(session, "Once upon a time"), WICK_OK);
    assert_int_equal(wick_session_prepare(session), WICK_OK); /* a prompt is for steps */
    run(session, text, sizeof text);
    assert_int_equal(wick_session_prepare(session), WICK_OK);
    wick_session_reset(session);
    assert_int_equal(wick_session_append_text(session, "Once upon a time"), WICK_OK);
    wick_event event = {0};
    for (int n_calls = 0; event.kind != WICK_EVENT_END; n_calls = (n_calls + 1) % 4) {
        event = next_prepared(session, n_calls);
        strncat(again, event.text, event.text_size);
    }
    assert_string_equal(text, again);
    /* Left off in the middle, it goes on elsewhere. */
    wick_session_reset(session);
    assert_int_equal(wick_session_append_text(session, "Once upon a time"), WICK_OK);
    (void)next_prepared(session, 0);
    (void)wick_session_tokens(session, &n);
    assert_int_equal(wick_session_prepare(session), WICK_PENDING);
    assert_int_equal(wick_session_append_text(session, " The"), WICK_ERR_STATE);
    assert_int_equal(wick_session_error(session, NULL), WICK_ERR_STATE);
    while (wick_session_prepare(session) == WICK_PENDING) wick_pause(device);
    (void)wick_session_tokens(session, &n_after);
    assert_int_equal(n, n_after);
    assert_int_equal(wick_session_append_text(session, " The"), WICK_OK);
    assert_int_equal(next_prepared(session, 0).kind, WICK_EVENT_TOKEN);
    assert_int_equal(wick_session_prepare(session), WICK_PENDING);
    wick_session_reset(session);
    assert_int_equal(wick_session_prepare(session), WICK_OK);
    assert_int_equal(wick_session_append_text(session, "Once upon a time"), WICK_OK);
    run(session, again, sizeof again);
    assert_string_equal(text, again);
    assert_int_equal(wick_session_prepare(NULL), WICK_ERR_ARGUMENT);
    wick_session_close(session);
}

static void test_configure(void **state) {
    (void)state;
    char text[4096];
    wick_error error = {0};
    wick_event event;
    wick_session *const session = open_session(&(wick_session_desc){.max_tokens = 3});
    assert_int_equal(wick_session_append_text(session, "Once upon a time"), WICK_OK);
    run(session, text, sizeof text);
    const wick_session_desc shorter = {.stop = (const char *const[]){" girl"}, .n_stop = 1};
    wick_session_reset(session);
    assert_int_equal(wick_session_configure(session, &shorter, &error), WICK_OK);
    assert_int_equal(wick_session_append_text(session, "Once upon a time"), WICK_OK);
    assert_int_equal(run(session, text, sizeof text).reason, WICK_END_STOP_STRING);
    assert_string_equal(text, ", there was a little");
    /* What is refused changes nothing. */
    const wick_session_desc wrong = {.max_tokens = 1, .sampler.top_p = -1};
    assert_int_equal(wick_session_configure(session, &wrong, &error), WICK_ERR_VALUE);
    assert_non_null(strstr(error.message, "top_p"));
    const wick_session_desc missing = {.n_stop = 1};
    assert_int_equal(wick_session_configure(session, &missing, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_session_configure(NULL, &shorter, NULL), WICK_ERR_ARGUMENT);
    wick_session_reset(session);
    assert_int_equal(wick_session_append_text(session, "Once upon a time"), WICK_OK);
    assert_int_equal(wick_session_step(session, &event), WICK_OK);
    assert_int_equal(wick_session_configure(session, &shorter, NULL), WICK_ERR_STATE);
    run(session, text, sizeof text);
    assert_string_equal(text, ", there was a little");
    /* The defaults again; a grammar takes its place and leaves it. */
    const wick_session_desc bound = {.sampler.grammar = "root ::= \" cat\" \" cat\""};
    assert_int_equal(wick_session_configure(session, &bound, NULL), WICK_OK);
    assert_int_equal(wick_session_append_text(session, "The"), WICK_OK);
    run(session, text, sizeof text);
    assert_string_equal(text, " cat cat");
    assert_int_equal(wick_session_configure(session, NULL, NULL), WICK_OK);
    wick_session_close(session);
}

/* The sequence is cut back while rows of logits have not been shown yet. */
static void test_sync_forgets_logits(void **state) {
    (void)state;
    static const uint32_t ids[] = {1, 403, 407, 261, 378};
    wick_event event = {0};
    size_t n;
    wick_session *const session = open_session(&(wick_session_desc){.logits = WICK_LOGITS_ALL});
    assert_int_equal(wick_session_append_tokens(session, ids, 5), WICK_OK);
    while (event.kind != WICK_EVENT_LOGITS)
        assert_int_equal(wick_session_next(session, &event), WICK_OK);
    assert_int_equal(event.position, 0);
    /* Its own tokens, except for the last two. */
    assert_int_equal(wick_session_sync_tokens(session, wick_session_tokens(session, &n), 3),
                     WICK_OK);
    for (event.kind = WICK_EVENT_PENDING; event.kind != WICK_EVENT_LOGITS;)
        assert_int_equal(wick_session_next(session, &event), WICK_OK);
    assert_int_equal(event.position, 2);
    assert_int_equal(wick_session_next(session, &event), WICK_OK);
    assert_int_equal(event.kind, WICK_EVENT_END);
    wick_session_close(session);
}

/* The allocation that fails, counted from now; 0: none. */
static int failing;

static void *allocate(void *user, size_t size) {
    (void)user;
    return failing > 0 && --failing == 0 ? NULL : malloc(size);
}

static void deallocate(void *user, void *memory, size_t size) {
    (void)user, (void)size;
    free(memory);
}

/* Every allocation of the first steps fails once: the session says so and goes on after a reset, or
 * the device gives back what it kept and does without. */
static void test_no_memory_for_a_step(void **state) {
    (void)state;
    wick_device *const outer_device = device;
    wick_model *const outer_model = model;
    char text[4096], path[1024];
    snprintf(path, sizeof path, "%s/stories260K.gguf", getenv("WICK_TEST_DATA"));
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU,
                                   .n_threads = 1,
                                   .allocator = {.allocate = allocate, .release = deallocate}};
    assert_int_equal(wick_device_open(&desc, &device, NULL), WICK_OK);
    assert_int_equal(wick_model_open(device, path, NULL, &model, NULL), WICK_OK);
    bool has_run = false;
    int n_failures = 0;
    for (int n = 1; !has_run; n++) {
        wick_event event = {0};
        wick_model_trim(model); /* each begins with nothing */
        assert_int_equal(wick_device_trim(device, NULL, NULL), WICK_OK);
        wick_session *const session = open_session(&(wick_session_desc){.max_tokens = 3});
        failing = n;
        wick_status status = wick_session_append_text(session, "Once");
        while (status == WICK_OK && event.kind != WICK_EVENT_END)
            status = wick_session_next(session, &event);
        has_run = failing > 0;
        failing = 0;
        if (status != WICK_OK) assert_int_equal(status, WICK_ERR_OUT_OF_MEMORY);
        if (status != WICK_OK) n_failures++;
        wick_session_reset(session);
        assert_int_equal(wick_session_append_text(session, "Once upon a time"), WICK_OK);
        assert_int_equal(run(session, text, sizeof text).reason, WICK_END_MAX_TOKENS);
        assert_string_equal(text, ", there was");
        wick_session_close(session);
        assert_true(n < 1000);
    }
    assert_true(n_failures > 10);
    wick_model_close(model);
    wick_device_close(device);
    device = outer_device;
    model = outer_model;
}

static void test_two_sessions_interleave(void **state) {
    (void)state;
    char alone[2][4096], together[2][4096] = {{0}};
    static const char *const prompts[] = {"Once upon a time", "The dog"};
    wick_session *sessions[2];
    for (int i = 0; i < 2; i++) {
        sessions[i] = open_session(&(wick_session_desc){.max_tokens = 30});
        assert_int_equal(wick_session_append_text(sessions[i], prompts[i]), WICK_OK);
        run(sessions[i], alone[i], sizeof alone[i]);
        wick_session_reset(sessions[i]);
        assert_int_equal(wick_session_append_text(sessions[i], prompts[i]), WICK_OK);
    }
    for (int ended = 0; ended < 2;) {
        ended = 0;
        for (int i = 0; i < 2; i++) {
            wick_event event;
            assert_int_equal(wick_session_step(sessions[i], &event), WICK_OK);
            strncat(together[i], event.text, event.text_size);
            ended += event.kind == WICK_EVENT_END;
        }
    }
    for (int i = 0; i < 2; i++) {
        assert_string_equal(alone[i], together[i]);
        wick_session_close(sessions[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_text_goes_on),
        cmocka_unit_test(test_no_text_goes_on),
        cmocka_unit_test(test_stop_strings),
        cmocka_unit_test(test_stop_holds_back),
        cmocka_unit_test(test_context_full_is_an_event),
        cmocka_unit_test(test_a_prefix_is_reused),
        cmocka_unit_test(test_lengths_of_keys),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_goes_on_after_a_refusal),
        cmocka_unit_test(test_reset_in_the_middle_of_a_batch),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_prepare),
        cmocka_unit_test(test_configure),
        cmocka_unit_test(test_sync_forgets_logits),
        cmocka_unit_test(test_no_memory_for_a_step),
        cmocka_unit_test(test_two_sessions_interleave),
    };
    return cmocka_run_group_tests_name("session", tests, setup, teardown);
}
