/* What sessions of one model do to each other: one that is reset, closed, loaded, forked, saved or
 * trimmed while another one's batch runs or its result waits, on the CPU, on the null device, and
 * with layers on both. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/compiler.h"
#include "llm/runner_struct.h"
#include "llm/session_struct.h"

#include <wick/saving.h>
#include <wick/wick.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static wick_device *device;
static wick_model *model;

static void open_on(wick_backend backend, const char *name, int32_t device_layers) {
    const wick_device_desc desc = {.backend = backend,
                                   .null_flags = backend == WICK_BACKEND_NULL ? WICK_NULL_LATE : 0,
                                   .n_threads = 1};
    const wick_model_desc placed = {.device_layers = device_layers};
    char path[1024];
    wick_error error = {0};
    snprintf(path, sizeof path, "%s/%s.gguf", getenv("WICK_TEST_DATA"), name);
    if (wick_device_open(&desc, &device, &error) != WICK_OK ||
        wick_model_open(device, path, device_layers > 0 ? &placed : NULL, &model, &error) !=
            WICK_OK)
        fail_msg("%s", error.message);
}

static void close_all(void) {
    wick_device_stats stats;
    wick_model_close(model);
    assert_int_equal(wick_synchronize(device), WICK_OK); /* what still runs holds buffers */
    wick_device_get_stats(device, &stats);
    assert_int_equal(stats.buffer_bytes, 0);
    wick_device_close(device);
}

static wick_session *open_session(wick_session_desc desc) {
    wick_session *session;
    wick_error error = {0};
    if (wick_session_open(model, &desc, &session, &error) != WICK_OK) fail_msg("%s", error.message);
    return session;
}

/* Texts of n tokens, another for each step. */
static void append(wick_session *session, uint32_t n, uint32_t step) {
    uint32_t ids[2048];
    assert_true(n <= WK_COUNT(ids));
    for (uint32_t i = 0; i < n; i++) ids[i] = 5 + i * step % 40;
    assert_int_equal(wick_session_append_tokens(session, ids, n), WICK_OK);
}

static wick_event next(wick_session *session) {
    wick_event event;
    wick_error error = {0};
    if (wick_session_next(session, &event) == WICK_OK) return event;
    (void)wick_session_error(session, &error);
    fail_msg("%s", error.message);
    return event;
}

static void read_prompt(wick_session *session) {
    wick_event event;
    do event = next(session);
    while (event.kind != WICK_EVENT_PROMPT || event.done != event.total);
}

static void generate(wick_session *session, uint32_t *tokens, uint32_t n) {
    for (uint32_t i = 0; i < n;) {
        const wick_event event = next(session);
        assert_int_not_equal(event.kind, WICK_EVENT_END);
        if (event.kind == WICK_EVENT_TOKEN) tokens[i++] = event.token;
    }
}

/* Steps until its batch has begun. */
static void begin_batch(wick_session *session) {
    wick_event event;
    for (int i = 0; i < 1000 && wk_sequence_running(session->sequence) == 0; i++)
        assert_int_equal(wick_session_step(session, &event), WICK_OK);
    assert_true(wk_sequence_running(session->sequence) > 0);
}

static void compute_all(void) {
    while (wick_model_step(model, NULL) == WICK_PENDING) wick_pause(device);
}

typedef struct image {
    unsigned char *bytes;
    size_t size;
} image;

static wick_status write_bytes(void *user, const void *bytes, size_t size, wick_error *error) {
    image *const to = user;
    (void)error;
    to->bytes = realloc(to->bytes, to->size + size);
    assert_non_null(to->bytes);
    memcpy(to->bytes + to->size, bytes, size);
    to->size += size;
    return WICK_OK;
}

static wick_status save(wick_session *session, image *to) {
    wick_session_saving *saving;
    assert_int_equal(wick_session_save_start(session, write_bytes, to, &saving, NULL), WICK_OK);
    while (wick_session_save_poll(saving) == WICK_PENDING) wick_pause(device);
    return wick_session_save_finish(saving, NULL);
}

static wick_status load(wick_session *session, const image *from) {
    wick_session_loading *loading;
    const wick_source source = wick_source_memory(from->bytes, from->size);
    assert_int_equal(wick_session_load_start(session, source, &loading, NULL), WICK_OK);
    while (wick_session_load_poll(loading) == WICK_PENDING) wick_pause(device);
    return wick_session_load_finish(loading, NULL);
}

static const wick_session_desc endless = {
    .context_length = 256, .ignore_end = true, .no_reuse = true, .speculate = WICK_SPECULATE_NONE};

/* --- Between the stages of a batch --- */

enum { N_TEXT = 100, N_MORE = 30 };

/* A session is loaded while a batch that was given up, its own or that of a closed one, has a stage
 * to come, which writes to the blocks that they had. */
static void test_loaded_amid_batch(void **state) {
    (void)state;
    for (int is_other = 0; is_other < 2; is_other++) {
        uint32_t want[N_MORE], got[N_MORE];
        image saved = {.size = 0};
        open_on(WICK_BACKEND_NULL, "stories260K", 2);
        wick_session *const origin = open_session(endless), *const loaded = open_session(endless);
        append(origin, N_TEXT, 13);
        read_prompt(origin);
        assert_int_equal(save(origin, &saved), WICK_OK);
        generate(origin, want, N_MORE);
        wick_session_close(origin);
        wick_session *const busy = is_other ? open_session(endless) : loaded;
        append(busy, N_TEXT, 29);
        begin_batch(busy);
        if (is_other) wick_session_close(busy);
        assert_int_equal(load(loaded, &saved), WICK_OK);
        generate(loaded, got, N_MORE);
        assert_memory_equal(got, want, sizeof want);
        wick_session_close(loaded);
        free(saved.bytes);
        close_all();
    }
}

/* The same of a fork, whose states and blocks of windows are copies. */
static void test_forked_amid_batch(void **state) {
    static const char *const names[] = {"families/jamba", "families/falcon-h1", "families/cohere2",
                                        "families/smallthinker"};
    (void)state;
    for (size_t i = 0; i < WK_COUNT(names); i++) {
        uint32_t want[N_MORE], got[N_MORE];
        open_on(WICK_BACKEND_NULL, names[i], 1);
        wick_session *const origin = open_session(endless), *const busy = open_session(endless);
        wick_session *fork;
        append(origin, N_TEXT, 7);
        read_prompt(origin);
        append(busy, N_TEXT, 11);
        begin_batch(busy);
        wick_session_reset(busy);
        assert_int_equal(wick_session_fork(origin, &endless, &fork, NULL), WICK_OK);
        generate(origin, want, N_MORE);
        generate(fork, got, N_MORE);
        assert_memory_equal(got, want, sizeof want);
        wick_session_close(fork);
        wick_session_close(busy);
        wick_session_close(origin);
        close_all();
    }
}

/* --- Rows of logits --- */

/* The cache grows for one session while another has logits of which only the best are there. */
static void test_grown_beside_logits(void **state) {
    (void)state;
    image saved = {.size = 0};
    open_on(WICK_BACKEND_CPU, "stories260K", 0);
    const wick_session_desc large = {.context_length = 2048};
    wick_session *const origin = open_session(large);
    append(origin, 1200, 13);
    read_prompt(origin);
    assert_int_equal(save(origin, &saved), WICK_OK);
    wick_session_close(origin);
    close_all();
    open_on(WICK_BACKEND_NULL, "stories260K", 0);
    wick_session *const one = open_session(endless), *const other = open_session(large);
    append(one, 5, 13);
    read_prompt(one);
    assert_true(wk_sequence_is_short(one->sequence));
    assert_int_equal(load(other, &saved), WICK_OK);
    image also = {.size = 0};
    assert_int_equal(save(one, &also), WICK_OK);
    uint32_t want[N_MORE], got[N_MORE];
    generate(one, got, N_MORE);
    wick_session *const alone = open_session(endless);
    append(alone, 5, 13);
    generate(alone, want, N_MORE);
    assert_memory_equal(got, want, sizeof want);
    wick_session_close(alone);
    wick_session_close(one);
    wick_session_close(other);
    free(saved.bytes);
    free(also.bytes);
    close_all();
}

/* Who wants all logits gets them, whoever is first in the batch. */
static void test_all_logits_beside_best(void **state) {
    (void)state;
    open_on(WICK_BACKEND_NULL, "stories260K", 0);
    wick_session *const first = open_session((wick_session_desc){.chunk_length = 7});
    wick_session *const second =
        open_session((wick_session_desc){.chunk_length = 8, .logits = WICK_LOGITS_ALL});
    append(first, 20, 13);
    append(second, 8, 29);
    compute_all();
    wick_event event;
    do event = next(second);
    while (event.kind != WICK_EVENT_LOGITS);
    for (uint32_t i = 0; i < model->info.n_vocab; i++) assert_true(event.logits[i] != -INFINITY);
    wick_session_close(first);
    wick_session_close(second);
    close_all();
}

/* The logits of an event stay, and the rest of a text waits, until its session is stepped. */
static void test_logits_stay(void **state) {
    (void)state;
    open_on(WICK_BACKEND_CPU, "stories260K", 0);
    wick_session *const one =
        open_session((wick_session_desc){.chunk_length = 2, .logits = WICK_LOGITS_ALL});
    wick_session *const other = open_session(endless);
    append(one, 6, 13);
    append(other, 40, 29);
    wick_event event;
    do event = next(one);
    while (event.kind != WICK_EVENT_LOGITS || event.position != 1); /* the last one of a chunk */
    const size_t size = model->info.n_vocab * sizeof(float);
    float *const before = malloc(size);
    assert_non_null(before);
    memcpy(before, event.logits, size);
    uint32_t tokens[5];
    generate(other, tokens, WK_COUNT(tokens));
    compute_all();
    assert_memory_equal(event.logits, before, size);
    free(before);
    for (uint32_t position = 2; position < 6;) {
        event = next(one);
        if (event.kind != WICK_EVENT_LOGITS) continue;
        assert_int_equal(event.position, position);
        position++;
    }
    wick_session_close(one);
    wick_session_close(other);
    close_all();
}

/* Rows that wait to be shown would be lost in a saved session. */
static void test_rows_are_not_saved(void **state) {
    (void)state;
    image saved = {.size = 0};
    open_on(WICK_BACKEND_CPU, "stories260K", 0);
    wick_session *const session = open_session((wick_session_desc){.logits = WICK_LOGITS_ALL});
    append(session, 6, 13);
    compute_all(); /* its result waits */
    assert_int_equal(save(session, &saved), WICK_ERR_STATE);
    for (uint32_t i = 0; i < 6;) i += next(session).kind == WICK_EVENT_LOGITS;
    assert_int_equal(save(session, &saved), WICK_OK);
    wick_session_close(session);
    free(saved.bytes);
    close_all();
}

/* A text that is given up amid its second part: rows of the first one do not come again. */
static void test_cancelled_rows(void **state) {
    (void)state;
    open_on(WICK_BACKEND_CPU, "families/jamba", 0);
    wick_session *const session = open_session((wick_session_desc){.logits = WICK_LOGITS_ALL});
    append(session, 8, 7);
    while (next(session).kind != WICK_EVENT_END) continue;
    append(session, 8, 11);
    begin_batch(session);
    wick_session_cancel(session);
    wick_event event;
    for (uint32_t position = 8; (event = next(session)).kind != WICK_EVENT_END;)
        if (event.kind == WICK_EVENT_LOGITS) assert_int_equal(event.position, position++);
    wick_session_close(session);
    close_all();
}

/* --- Prefixes --- */

static wick_status go_on_with(wick_prefixes *prefixes) {
    wick_status status;
    while ((status = wick_prefixes_poll(prefixes)) == WICK_PENDING) wick_pause(device);
    return status;
}

/* What is saved goes while it is saved. */
static void test_trimmed_while_saved(void **state) {
    static const char *const names[] = {"families/jamba", "families/cohere2", "stories260K"};
    (void)state;
    for (size_t i = 0; i < WK_COUNT(names); i++) {
        image saved = {.size = 0};
        wick_prefixes *prefixes;
        open_on(WICK_BACKEND_CPU, names[i], 0);
        wick_session *const session = open_session((wick_session_desc){.context_length = 256});
        for (uint32_t k = 0; k < 3; k++) {
            append(session, 20 + k, 7);
            read_prompt(session);
        }
        assert_int_equal(wick_prefixes_save_start(model, write_bytes, &saved, &prefixes, NULL),
                         WICK_OK);
        for (int k = 0; k < 2; k++) assert_int_equal(wick_prefixes_poll(prefixes), WICK_PENDING);
        wick_session_close(session);
        wick_model_trim(model);
        assert_int_equal(go_on_with(prefixes), WICK_ERR_STATE);
        assert_int_equal(wick_prefixes_finish(prefixes, NULL), WICK_ERR_STATE);
        free(saved.bytes);
        close_all();
    }
}

/* A session goes on, or the cache is trimmed, while prefixes are loaded. */
static void test_going_on_while_loaded(void **state) {
    (void)state;
    image saved = {.size = 0};
    wick_prefixes *prefixes;
    open_on(WICK_BACKEND_CPU, "stories260K", 0);
    wick_session *session = open_session((wick_session_desc){.context_length = 2048});
    append(session, 1900, 13);
    read_prompt(session);
    wick_session_close(session);
    assert_int_equal(wick_prefixes_save_start(model, write_bytes, &saved, &prefixes, NULL),
                     WICK_OK);
    assert_int_equal(go_on_with(prefixes), WICK_OK);
    assert_int_equal(wick_prefixes_finish(prefixes, NULL), WICK_OK);
    close_all();
    for (int is_trimmed = 0; is_trimmed < 2; is_trimmed++) {
        open_on(WICK_BACKEND_CPU, "stories260K", 0);
        const wick_source source = wick_source_memory(saved.bytes, saved.size);
        assert_int_equal(wick_prefixes_load_start(model, source, &prefixes, NULL), WICK_OK);
        while (!model->runners || wk_prefix_count(&model->runners->prefixes) < 2)
            assert_int_equal(wick_prefixes_poll(prefixes), WICK_PENDING);
        uint32_t tokens[5];
        session = NULL;
        if (is_trimmed) {
            wick_model_trim(model); /* the runner has no sessions */
        } else {
            session = open_session(endless);
            append(session, 40, 29);
            begin_batch(session);
        }
        assert_int_equal(go_on_with(prefixes), WICK_ERR_STATE);
        assert_int_equal(wick_prefixes_finish(prefixes, NULL), WICK_ERR_STATE);
        if (session) generate(session, tokens, WK_COUNT(tokens));
        wick_session_close(session);
        close_all();
    }
    free(saved.bytes);
}

/* --- Turns and figures --- */

/* However many sessions generate, a prompt is read: where they fill the rows, and where there is
 * one. */
static void test_prompt_beside_generators(void **state) {
    (void)state;
    for (uint32_t chunk = 1; chunk <= 2; chunk++) {
        enum { N_PROMPT = 20, N_ROUNDS = 4 * N_PROMPT };
        wick_session_desc desc = endless;
        desc.chunk_length = chunk;
        open_on(WICK_BACKEND_CPU, "stories260K", 0);
        wick_session *const a = open_session(desc), *const b = open_session(desc);
        wick_session *const reader = open_session(desc);
        uint32_t n_generated = 0, token;
        append(a, 4, 3);
        append(b, 4, 11);
        generate(a, &token, 1);
        generate(b, &token, 1);
        append(reader, N_PROMPT, 13);
        for (int i = 0; i < N_ROUNDS && reader->n_computed < N_PROMPT; i++) {
            wick_event event;
            compute_all();
            wick_session *const all[] = {a, b, reader};
            for (size_t k = 0; k < WK_COUNT(all); k++) {
                assert_int_equal(wick_session_step(all[k], &event), WICK_OK);
                n_generated += event.kind == WICK_EVENT_TOKEN && k < 2;
            }
        }
        assert_int_equal(reader->n_computed, N_PROMPT);
        assert_true(n_generated >= N_PROMPT / 2); /* nor do they wait for it */
        wick_session_close(a);
        wick_session_close(b);
        wick_session_close(reader);
        close_all();
    }
}

/* Tokens that were found in the cache, and are given up before they come to anything. */
static void test_reuse_given_up(void **state) {
    (void)state;
    uint32_t ids[130], others[55];
    for (uint32_t i = 0; i < WK_COUNT(ids); i++) ids[i] = 5 + i * 13 % 40;
    memcpy(others, ids, sizeof others);
    for (uint32_t i = 50; i < WK_COUNT(others); i++) others[i] = 400 + i;
    open_on(WICK_BACKEND_CPU, "stories260K", 0);
    const wick_session_desc desc = {.context_length = 256};
    wick_session *const first = open_session(desc);
    append(first, 120, 13);
    read_prompt(first);
    wick_session_close(first);
    wick_session *const session = open_session(desc);
    assert_int_equal(wick_session_append_tokens(session, ids, 50), WICK_OK);
    read_prompt(session);
    wick_session_stats stats;
    wick_model_usage before, after;
    wick_session_get_stats(session, &stats);
    const uint32_t n_reused = stats.n_reused;
    wick_model_get_usage(model, &before);
    assert_int_equal(wick_session_append_tokens(session, ids + 50, 60), WICK_OK);
    begin_batch(session);
    wick_session_cancel(session);
    assert_int_equal(wick_session_sync_tokens(session, others, WK_COUNT(others)), WICK_OK);
    read_prompt(session);
    wick_session_get_stats(session, &stats);
    wick_model_get_usage(model, &after);
    assert_int_equal(stats.n_reused, n_reused + 50);
    assert_int_equal(after.n_prompt - before.n_prompt, 5);
    wick_session_close(session);
    close_all();
}

/* A fork's first token is timed from the fork on, and its description is checked. */
static void test_forks(void **state) {
    (void)state;
    open_on(WICK_BACKEND_CPU, "stories260K", 0);
    wick_session *const session = open_session(endless);
    wick_session *fork;
    uint32_t tokens[3];
    append(session, 5, 13);
    generate(session, tokens, WK_COUNT(tokens));
    const wick_session_desc bad = {.speculate = (wick_speculate)99};
    assert_int_equal(wick_session_fork(session, &bad, &fork, NULL), WICK_ERR_VALUE);
    assert_int_equal(wick_session_fork(session, NULL, &fork, NULL), WICK_OK);
    generate(fork, tokens, 1);
    wick_session_stats stats;
    wick_session_get_stats(fork, &stats);
    assert_true(stats.first_token_seconds < 60);
    wick_session_close(fork);
    wick_session_close(session);
    close_all();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loaded_amid_batch),
        cmocka_unit_test(test_forked_amid_batch),
        cmocka_unit_test(test_grown_beside_logits),
        cmocka_unit_test(test_all_logits_beside_best),
        cmocka_unit_test(test_logits_stay),
        cmocka_unit_test(test_rows_are_not_saved),
        cmocka_unit_test(test_cancelled_rows),
        cmocka_unit_test(test_trimmed_while_saved),
        cmocka_unit_test(test_going_on_while_loaded),
        cmocka_unit_test(test_prompt_beside_generators),
        cmocka_unit_test(test_reuse_given_up),
        cmocka_unit_test(test_forks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
