/* Long contexts on the small model: every position is written and read, memory grows with the
 * tokens that are there, not with the room for them, and of a model whose layers have windows it
 * does not even grow with them. */
#include "llm/llm.h"
#include "sys/clock.h"

#include <wick/session.h>

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "fixture_file.h"
#include "small_model.h"

/* Without windows the time grows with the square of the length. */
enum { CONTEXT = 131072, WHOLE_CONTEXT = 16384, WINDOW = 64, MIB = 1 << 20 };

static wick_device *device;

static int begin(void **state) {
    (void)state;
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .n_threads = 1};
    return wick_device_open(&desc, &device, NULL) != WICK_OK;
}

static int end(void **state) {
    (void)state;
    wick_device_close(device);
    return 0;
}

/* window 0: none. bytes must stay. */
static wick_model *open_small(uint32_t context_length, uint32_t window, gguf_bytes *bytes) {
    small_model small = small_model_make();
    small_set_u32(&small, "llama.context_length", context_length);
    if (window > 0) small_set_u32(&small, "llama.attention.sliding_window", window);
    small_write(&small, true, bytes);
    wick_model_loading *loading;
    wick_model *model;
    const wick_source source = wick_source_memory(bytes->data, bytes->size);
    assert_int_equal(wick_model_open_start(device, source, NULL, &loading, NULL), WICK_OK);
    while (wick_model_open_poll(loading, NULL) == WICK_PENDING) continue;
    assert_int_equal(wick_model_open_finish(loading, &model, NULL), WICK_OK);
    return model;
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

/* The whole context at once and a token at its very end. Returns the bytes of the cache. */
static uint64_t fill(uint32_t context_length, uint32_t window) {
    gguf_bytes bytes = {0};
    wick_model *const model = open_small(context_length, window, &bytes);
    uint32_t *const ids = calloc(context_length, sizeof *ids);
    for (uint32_t i = 0; i < context_length; i++) ids[i] = 1 + i % (SMALL_VOCAB - 1);
    wick_session *session;
    const wick_session_desc desc = {.context_length = context_length, .ignore_end = true};
    assert_int_equal(wick_session_open(model, &desc, &session, NULL), WICK_OK);
    wick_session_stats stats;
    wick_session_get_stats(session, &stats);
    assert_int_equal(stats.context_length, context_length);

    assert_int_equal(wick_session_append_tokens(session, ids, context_length - 2), WICK_OK);
    assert_int_equal(read_to_end(session).reason, WICK_END_CONTEXT_FULL);
    size_t n;
    (void)wick_session_tokens(session, &n);
    assert_int_equal(n, context_length);
    wick_session_close(session);
    wick_model_close(model);
    free(ids);
    return stats.cache_bytes;
}

enum { POSITION_BYTES = SMALL_LAYERS * 8 * sizeof(float) };

static void test_full(void **state) {
    (void)state;
    assert_int_equal(fill(WHOLE_CONTEXT, 0), WHOLE_CONTEXT * POSITION_BYTES);
}

/* A window, and the longest chunk: 512. */
static void test_windows(void **state) {
    (void)state;
    const uint64_t bytes = fill(CONTEXT, WINDOW);
    assert_true(bytes >= (WINDOW + 512) * POSITION_BYTES);
    assert_true(bytes <= (WINDOW + 512 + 2 * 64) * POSITION_BYTES);
}

/* Where a family computes otherwise from some token on, no context is longer. */
static void test_end_of_family(void **state) {
    (void)state;
    static gguf_bytes bytes;
    wick_model *const small = open_small(200, 0, &bytes);
    wk_hparams *const hparams = (wk_hparams *)(uintptr_t)wk_model_hparams(small->model);
    hparams->most_context = 100;
    for (uint32_t length = 99; length <= 101; length++) {
        wick_session *session = NULL;
        wick_error error = {.status = WICK_OK};
        const wick_session_desc desc = {.context_length = length};
        const wick_status status = wick_session_open(small, &desc, &session, &error);
        assert_int_equal(status, length <= 100 ? WICK_OK : WICK_ERR_UNSUPPORTED);
        if (length > 100) assert_non_null(strstr(error.message, "after 100 this model"));
        wick_session_close(session);
    }
    hparams->most_context = 0;
    wick_model_close(small);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_grows),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_end_of_family),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
