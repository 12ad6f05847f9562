/* Many sessions of one model by counters: what their memory is, and that steady decode takes none;
 * what goes into a batch, and whose cache goes where there is no more room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "llm/runner_struct.h"
#include "stories_session.h"

enum { MOST = 64 };

static wick_session *sessions[MOST];

static void open_all(const wick_session_desc *desc, uint32_t n, uint32_t n_tokens) {
    uint32_t ids[256];
    for (uint32_t i = 0; i < n; i++) {
        sessions[i] = open_session(desc);
        /* No two begin alike. */
        for (uint32_t k = 0; k < n_tokens; k++) ids[k] = 3 + (i * 7 + k * (i + 11)) % 500;
        assert_int_equal(wick_session_append_tokens(sessions[i], ids, n_tokens), WICK_OK);
    }
}

static void close_all(uint32_t n) {
    for (uint32_t i = 0; i < n; i++) wick_session_close(sessions[i]);
}

/* As many tokens of each, in common batches. */
static void decode(uint32_t n, uint32_t n_tokens) {
    uint32_t n_told[MOST] = {0}, n_left = n;
    while (n_left > 0) {
        while (wick_model_step(model, NULL) == WICK_PENDING) wick_pause(device);
        for (uint32_t i = 0; i < n; i++) {
            wick_event event;
            if (n_told[i] == n_tokens) continue;
            assert_int_equal(wick_session_step(sessions[i], &event), WICK_OK);
            n_told[i] += event.kind == WICK_EVENT_TOKEN;
            n_left -= n_told[i] == n_tokens;
        }
    }
}

static wick_device_stats get_stats(void) {
    wick_device_stats stats;
    wick_device_get_stats(device, &stats);
    return stats;
}

/* Between the growths of the cache: each session begins a block at 64 tokens and at 128. */
static void test_no_allocations(void **state) {
    (void)state;
    static const wick_session_desc desc = {.context_length = 128, .ignore_end = true};
    open_all(&desc, 8, 60);
    for (int i = 0; i < 8; i++) decode(8, 1); /* prompts end in several batches */
    const wick_device_stats before = get_stats();
    decode(8, 50);
    const wick_device_stats after = get_stats();
    assert_int_equal(after.n_allocations, before.n_allocations);
    assert_int_equal(after.n_reads - before.n_reads, 50); /* a batch for each round */
    close_all(8);
}

/* 64 sessions of 200 tokens, each with room for 2048: what their blocks take, not their contexts.
 */
static void test_memory(void **state) {
    (void)state;
    static const wick_session_desc desc = {.context_length = 2048, .ignore_end = true};
    wick_model_trim(model);
    const wick_device_stats before = get_stats();
    open_all(&desc, MOST, 200);
    decode(MOST, 1);
    const wick_device_stats after = get_stats();
    wick_session_stats stats;
    wick_session_get_stats(sessions[0], &stats);
    const uint64_t tokens = MOST * UINT64_C(256); /* in whole blocks */
    const uint64_t wanted = tokens * (stats.cache_bytes / stats.context_length);
    const uint64_t taken = after.buffer_bytes - before.buffer_bytes;
    assert_true(taken >= wanted);
    assert_true(taken < wanted + wanted / 4);
    assert_true(taken < MOST * stats.cache_bytes / 4);
    close_all(MOST);
}

/* Two models, each on a device of its own, one of which answers late and out of order: stepped in
 * turn they compute at the same time, and each gives the text that it gives alone. */
static void test_two_devices(void **state) {
    (void)state;
    char path[1024], want[2][256], got[2][256];
    wick_device *second;
    wick_model *models[2] = {model};
    size_t n_got[2] = {0};
    const wick_device_desc desc = {.backend = WICK_BACKEND_NULL,
                                   .null_flags = WICK_NULL_LATE | WICK_NULL_OUT_OF_ORDER};
    const wick_session_desc on = {.context_length = 128, .max_tokens = 30};
    snprintf(path, sizeof path, "%s/stories260K.gguf", getenv("WICK_TEST_DATA"));
    assert_int_equal(wick_device_open(&desc, &second, NULL), WICK_OK);
    assert_int_equal(wick_model_open(second, path, NULL, &models[1], NULL), WICK_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(wick_session_open(models[i], &on, &sessions[i], NULL), WICK_OK);
        assert_int_equal(wick_session_append_text(sessions[i], i ? "Tom" : "Lily"), WICK_OK);
        (void)run(sessions[i], want[i], sizeof want[i]);
        wick_session_reset(sessions[i]);
        assert_int_equal(wick_session_append_text(sessions[i], i ? "Tom" : "Lily"), WICK_OK);
    }
    uint32_t n_ended = 0, n_both = 0;
    for (bool has_ended[2] = {false, false}; n_ended < 2;) {
        wick_model_usage usage[2];
        for (int i = 0; i < 2; i++) {
            wick_event event;
            assert_int_equal(wick_session_step(sessions[i], &event), WICK_OK);
            wick_model_get_usage(models[i], &usage[i]);
            if (has_ended[i]) continue;
            memcpy(got[i] + n_got[i], event.text, event.text_size);
            n_got[i] += event.text_size;
            has_ended[i] = event.kind == WICK_EVENT_END;
            n_ended += has_ended[i];
        }
        n_both += usage[0].n_running > 0 && usage[1].n_running > 0;
    }
    assert_true(n_both > 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(n_got[i], strlen(want[i]));
        assert_memory_equal(got[i], want[i], n_got[i]);
        wick_session_close(sessions[i]);
    }
    wick_model_close(models[1]);
    wick_device_close(second);
}

/* --- Sequences that want what a test says --- */

enum { ASKERS = 4, ROOM_FOR_OUTPUTS = 32 };

static wk_waiting wants[ASKERS];
static wk_sequence *sequences[ASKERS];

static wk_waiting what_it_wants(void *wanted) { return *(const wk_waiting *)wanted; }

static void open_askers(const wk_runner_desc *desc) {
    static const uint32_t ids[256]; /* which tokens makes no difference */
    for (int i = 0; i < ASKERS; i++) {
        wants[i] = (wk_waiting){.ids = ids, .outputs = desc->outputs, .no_reuse = true};
        assert_int_equal(
            wk_sequence_open(model, desc, what_it_wants, &wants[i], &sequences[i], NULL), WICK_OK);
    }
}

static void close_askers(void) {
    for (int i = 0; i < ASKERS; i++) wk_sequence_close(sequences[i]);
    wk_runners_drop(model);
}

typedef struct batch_case {
    uint32_t wanted[ASKERS], want[ASKERS]; /* tokens of each */
} batch_case;

/* Batches are chosen only, so that rows may be as long as they are said to be. */
static void check_batches(const wk_runner_desc *desc, const batch_case *cases, size_t n_cases) {
    open_askers(desc);
    wk_runner *const runner = sequences[0]->runner;
    const wk_hparams *const real = runner->hparams;
    wk_hparams wide = *real;
    wide.n_vocab = wide.n_embd = 16 * 1024 * 1024 / sizeof(float) / ROOM_FOR_OUTPUTS;
    runner->hparams = &wide;
    for (size_t c = 0; c < n_cases; c++) {
        uint32_t got[ASKERS] = {0};
        for (int i = 0; i < ASKERS; i++) wants[i].n = cases[c].wanted[i];
        assert_int_equal(wk_batch_choose(runner), WICK_OK);
        for (uint32_t p = 0; p < runner->n_parts; p++)
            for (int i = 0; i < ASKERS; i++)
                if (runner->parts[p].sequence == sequences[i]) got[i] = runner->parts[p].n;
        for (int i = 0; i < ASKERS; i++)
            if (got[i] != cases[c].want[i])
                fail_msg("case %zu: %u tokens of sequence %d, not %u", c, got[i], i,
                         cases[c].want[i]);
    }
    runner->hparams = real;
    runner->n_parts = 0; /* they do not run */
    close_askers();
}

/* Padding up to a power of two is a quarter of a batch at most; small ones cost the same. */
static void test_padding(void **state) {
    (void)state;
    static const wk_runner_desc desc = {
        .context_length = 256, .chunk_length = 128, .outputs = WK_OUTPUTS_LAST};
    static const batch_case cases[] = {
        {{31}, {31}}, {{32}, {32}}, {{33}, {32}}, {{47}, {32}}, {{48}, {48}}, {{49}, {49}},
        {{64}, {64}}, {{65}, {64}}, {{95}, {64}}, {{96}, {96}}, {{97}, {97}}, {{129}, {128}},
    };
    check_batches(&desc, cases, WK_COUNT(cases));
}

/* As many rows of outputs as there is memory for, in one text or several. */
static void test_rows_of_outputs(void **state) {
    (void)state;
    static const wk_runner_desc desc = {
        .context_length = 256, .chunk_length = 128, .outputs = WK_OUTPUTS_ALL};
    static const batch_case cases[] = {
        {{31}, {31}},
        {{32}, {32}},
        {{33}, {32}},
        {{20, 11, 20}, {20, 11, 1}},
        {{20, 12, 20}, {20, 12}},
        {{20, 13, 20}, {20, 12}},
    };
    check_batches(&desc, cases, WK_COUNT(cases));
    static const wk_runner_desc whole = {
        .context_length = 256, .chunk_length = 128, .is_whole = true, .outputs = WK_OUTPUTS_STATES};
    static const batch_case texts[] = {
        {{15, 15}, {15, 15}}, {{16, 16}, {16, 16}},         {{17, 17}, {17}},
        {{16, 8}, {16}},      {{16, 9}, {16, 9}},           {{16, 17}, {16}},
        {{9, 9, 9}, {9, 9}},  {{8, 8, 8, 8}, {8, 8, 8, 8}},
    };
    check_batches(&whole, texts, WK_COUNT(texts));
}

/* --- A cache that is full: four blocks, the context of one of the sequences --- */

static wick_model *roomy; /* the model of the other tests */

static void open_crowded(void) {
    static const wick_model_desc little = {.cache_limit = 1};
    static const wk_runner_desc desc = {
        .context_length = 4 * WK_BLOCK_SIZE, .chunk_length = 256, .outputs = WK_OUTPUTS_LAST};
    char path[1024];
    snprintf(path, sizeof path, "%s/stories260K.gguf", getenv("WICK_TEST_DATA"));
    roomy = model;
    assert_int_equal(wick_model_open(device, path, &little, &model, NULL), WICK_OK);
    open_askers(&desc);
}

static void close_crowded(void) {
    close_askers();
    wick_model_close(model);
    model = roomy;
}

/* A batch of what they want now, and what is in the cache of each then. They want nothing else. */
static void compute(const batch_case *of) {
    wk_result result;
    for (int i = 0; i < ASKERS; i++) wants[i].n = of->wanted[i];
    wick_status status;
    while ((status = wk_sequence_step(sequences[0])) == WICK_PENDING) wick_pause(device);
    assert_int_equal(status, WICK_OK);
    for (int i = 0; i < ASKERS; i++) {
        if (wk_sequence_take(sequences[i], &result)) assert_int_equal(result.status, WICK_OK);
        if (wk_sequence_cached(sequences[i]) != of->want[i])
            fail_msg("%u tokens of sequence %d are in the cache, not %u",
                     wk_sequence_cached(sequences[i]), i, of->want[i]);
        wants[i].n = 0;
    }
}

/* Of those with nothing to compute the one that was served longest ago gives up its cache. */
static void test_idle_victim(void **state) {
    (void)state;
    open_crowded();
    compute(&(batch_case){{48}, {48}});
    compute(&(batch_case){{0, 48}, {48, 48}});
    compute(&(batch_case){{0, 0, 48}, {48, 48, 48}});
    compute(&(batch_case){{5}, {53, 48, 48}});
    compute(&(batch_case){{0, 0, 0, 100}, {53, 0, 48, 100}});
    compute(&(batch_case){{0, 64}, {53, 64, 0, 100}});
    close_crowded();
}

/* Of those with something the youngest does; but none for a younger one, nor while others have
 * nothing to compute. */
static void test_waiting_victim(void **state) {
    (void)state;
    open_crowded();
    compute(&(batch_case){{64, 40, 40, 40}, {64, 40, 40, 40}});
    compute(&(batch_case){{1, 1, 1, 1}, {65, 41, 41, 0}});
    compute(&(batch_case){{0, 24, 2}, {0, 65, 43}});
    compute(&(batch_case){{0, 2, 2, 100}, {0, 67, 45}});
    close_crowded();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_allocations),  cmocka_unit_test(test_memory),
        cmocka_unit_test(test_two_devices),     cmocka_unit_test(test_padding),
        cmocka_unit_test(test_rows_of_outputs), cmocka_unit_test(test_idle_victim),
        cmocka_unit_test(test_waiting_victim),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
