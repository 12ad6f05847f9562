/* Many sessions of one model by counters: what their memory is, and that steady decode takes none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_allocations),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_two_devices),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
