/* A context of 128k tokens on the small model: every position is written and read, and memory grows
 * with the tokens that are there, not with the room for them. */
#include "llm/llm.h"
#include "sys/clock.h"

#include <wick/session.h>

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "fixture_file.h"
#include "small_model.h"

enum { CONTEXT = 131072, WINDOW = 64, MIB = 1 << 20 };

static wick_device *device;
static wick_model *model;

static int begin(void **state) {
    (void)state;
    static gguf_bytes bytes;
    small_model small = small_model_make();
    small_set_u32(&small, "llama.context_length", CONTEXT);
    /* Else the time would grow with the square of the length. */
    small_set_u32(&small, "llama.attention.sliding_window", WINDOW);
    small_write(&small, true, &bytes);
    wick_model_loading *loading;
    if (wick_device_open(&(wick_device_desc){.backend = WICK_BACKEND_CPU, .n_threads = 1}, &device,
                         NULL) != WICK_OK)
        return 1;
    const wick_source source = wick_source_memory(bytes.data, bytes.size);
    if (wick_model_open_start(device, source, NULL, &loading, NULL) != WICK_OK) return 1;
    while (wick_model_open_poll(loading, NULL) == WICK_PENDING) continue;
    return wick_model_open_finish(loading, &model, NULL) != WICK_OK;
}

static int end(void **state) {
    (void)state;
    wick_model_close(model);
    wick_device_close(device);
    return 0;
}

static wick_event read_to_end(wick_session *session) {
    wick_event event;
    do {
        assert_int_equal(wick_session_next(session, &event), WICK_OK);
    } while (event.kind != WICK_EVENT_END);
    return event;
}

/* Room for 128k tokens costs nothing before they are there. */
static void test_memory_grows(void **state) {
    (void)state;
    char path[1024];
    if (!fixture_path("WICK_TEST_DATA", "stories260K.gguf", path, sizeof path)) skip();
    wick_model *stories;
    assert_int_equal(wick_model_open(device, path, NULL, &stories, NULL), WICK_OK);
    const uint64_t before = wk_process_peak_bytes();
    wick_session *session;
    const wick_session_desc desc = {
        .context_length = CONTEXT, .max_tokens = 20, .ignore_end = true};
    assert_int_equal(wick_session_open(stories, &desc, &session, NULL), WICK_OK);
    wick_session_stats stats;
    wick_session_get_stats(session, &stats);
    assert_true(stats.cache_bytes > 150 * (uint64_t)MIB);
    assert_int_equal(wick_session_append_text(session, "Once upon a time"), WICK_OK);
    assert_int_equal(read_to_end(session).reason, WICK_END_MAX_TOKENS);
    const uint64_t grown = wk_process_peak_bytes() - before;
    print_message("%u of %u MiB\n", (unsigned)(grown / MIB), (unsigned)(stats.cache_bytes / MIB));
    assert_true(grown < 16 * (uint64_t)MIB);
    wick_session_close(session);
    wick_model_close(stories);
}

/* The whole context at once and a token at its very end. */
static void test_full(void **state) {
    (void)state;
    uint32_t *const ids = calloc(CONTEXT, sizeof *ids);
    for (uint32_t i = 0; i < CONTEXT; i++) ids[i] = 1 + i % (SMALL_VOCAB - 1);
    wick_session *session;
    const wick_session_desc desc = {.context_length = CONTEXT, .ignore_end = true};
    assert_int_equal(wick_session_open(model, &desc, &session, NULL), WICK_OK);
    wick_session_stats stats;
    wick_session_get_stats(session, &stats);
    assert_int_equal(stats.context_length, CONTEXT);
    assert_int_equal(stats.cache_bytes, (uint64_t)CONTEXT * SMALL_LAYERS * 8 * sizeof(float));

    assert_int_equal(wick_session_append_tokens(session, ids, CONTEXT - 2), WICK_OK);
    assert_int_equal(read_to_end(session).reason, WICK_END_CONTEXT_FULL);
    size_t n;
    (void)wick_session_tokens(session, &n);
    assert_int_equal(n, CONTEXT);
    wick_session_close(session);
    free(ids);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_grows),
        cmocka_unit_test(test_full),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
