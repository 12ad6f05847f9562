/* llm/session_save and session_load: what is refused, and that the session is empty and good
 * afterwards; cuts, flips and lies; sources and sinks that fail; calls out of order; files. On
 * stories260K. test_session_origin.c has what is saved in one session and loaded into another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "saved_session.h"

#include <unistd.h>

/* --- What is refused --- */

static void test_lies(void **state) {
    (void)state;
    static const struct {
        wk_image_field field;
        uint64_t value;
        wick_status status;
        const char *reason;
    } lies[] = {
        {WK_IMAGE_FORMAT, 1, WICK_ERR_UNSUPPORTED, "version 1"},
        {WK_IMAGE_FORMAT, 3, WICK_ERR_UNSUPPORTED, "version 3"},
        {WK_IMAGE_BYTES, 7, WICK_ERR_FORMAT, "do not fit"},
        {WK_IMAGE_MODEL, 1, WICK_ERR_MISMATCH, "another model"},
        {WK_IMAGE_CACHE_TYPE, 1, WICK_ERR_MISMATCH, "cache of f16, this one has f32"},
        {WK_IMAGE_CACHE_TYPE, UINT64_MAX, WICK_ERR_MISMATCH, "unknown type"},
        {WK_IMAGE_TOKENS, 65, WICK_ERR_STATE, "65 tokens, the context holds 64"},
        {WK_IMAGE_TOKENS, UINT64_MAX, WICK_ERR_STATE, "the context holds 64"},
        {WK_IMAGE_TOKENS, 1, WICK_ERR_FORMAT, "do not fit"},
        {WK_IMAGE_COMPUTED, 60, WICK_ERR_FORMAT, "do not fit"},
        {WK_IMAGE_CACHED, 60, WICK_ERR_FORMAT, "do not fit"},
        {WK_IMAGE_CACHED, 1, WICK_ERR_FORMAT, "do not fit"},
        {WK_IMAGE_CACHED, 0, WICK_ERR_FORMAT, "do not fit"},
        {WK_IMAGE_WINDOW_BEGIN, 1, WICK_ERR_FORMAT, "do not fit"},
        {WK_IMAGE_WINDOW_BEGIN, UINT64_MAX, WICK_ERR_FORMAT, "do not fit"},
        {WK_IMAGE_LOGITS, 1, WICK_ERR_FORMAT, "do not fit"},
        {WK_IMAGE_LOGITS, 512, WICK_ERR_FORMAT, "do not fit"},
        {WK_IMAGE_GENERATED, 64, WICK_ERR_FORMAT, "do not fit"},
        {WK_IMAGE_GENERATED, UINT64_MAX << 32 | 5, WICK_ERR_FORMAT, "do not fit"},
        {WK_IMAGE_ENDED, 100, WICK_ERR_FORMAT, "do not fit"},
        {WK_IMAGE_SURPRISE, UINT64_MAX, WICK_ERR_FORMAT, "do not fit"},
        {WK_IMAGE_WEIGHTS, 1, WICK_ERR_MISMATCH, "other weights"},
        {WK_IMAGE_OUTPUT, WICK_LOGITS_ALL, WICK_ERR_MISMATCH, "gives the logits of every token"},
        {WK_IMAGE_OUTPUT, UINT64_MAX, WICK_ERR_MISMATCH, "something unknown"},
    };
    wick_session *const session = saved_session(&greedy, &whole, 6);
    for (size_t i = 0; i < WK_COUNT(lies); i++) {
        other = whole;
        set_field(&other, lies[i].field, lies[i].value);
        check_refused(session, &other, lies[i].status, lies[i].reason);
    }
    other = whole;
    other.data[0] = 'W';
    check_refused(session, &other, WICK_ERR_FORMAT, "not a saved session");
    other = whole;
    for (uint32_t token = 511; token <= 513; token++) { /* of a vocabulary of 512 */
        memcpy(other.data + sizeof(wk_image_header), &token, sizeof token); /* the first one */
        set_field(&other, WK_IMAGE_FORMAT, WK_IMAGE_VERSION);
        if (token == 511)
            assert_int_equal(load(session, &other, NULL), WICK_OK);
        else
            check_refused(session, &other, WICK_ERR_FORMAT, "is not in the vocabulary of 512");
    }
    assert_int_equal(load(session, &whole, NULL), WICK_OK);
    wick_session_close(session);
}

static void test_contexts(void **state) {
    (void)state;
    wick_session *const saved = saved_session(&greedy, &whole, 6);
    const uint32_t n = (uint32_t)n_tokens(saved);
    for (uint32_t context = n - 1; context <= n + 1; context++) {
        wick_session *const session =
            open_session(&(wick_session_desc){.context_length = context, .max_tokens = 10});
        if (context < n) {
            check_refused(session, &whole, WICK_ERR_STATE, "the context holds");
        } else {
            assert_int_equal(load(session, &whole, NULL), WICK_OK);
            assert_int_equal(n_tokens(session), n);
        }
        wick_session_close(session);
    }
    wick_session_close(saved);
}

/* Every byte counts, and so does every one that is missing or too many. */
static void test_damage(void **state) {
    (void)state;
    wick_session *const session = saved_session(&greedy, &whole, 4);
    for (size_t size = 0; size < whole.size; size += size < 512 ? 1 : 997) {
        wick_error error = {0};
        assert_int_equal(load_bytes(session, whole.data, size, &error), WICK_ERR_FORMAT);
        assert_true(error.message[0] != '\0');
        assert_int_equal(n_tokens(session), 0);
    }
    assert_int_equal(load_bytes(session, whole.data, whole.size + 1, NULL), WICK_ERR_FORMAT);
    for (size_t i = 0; i < whole.size; i += i < 512 ? 1 : 499) {
        other = whole;
        other.data[i] ^= (unsigned char)(1U << i % 8);
        wick_error error = {0};
        const wick_status status = load(session, &other, &error);
        if (status >= 0 || error.message[0] == '\0') fail_msg("byte %zu is not missed", i);
        assert_int_equal(n_tokens(session), 0);
    }
    assert_int_equal(load(session, &whole, NULL), WICK_OK);
    wick_session_close(session);
}

/* A stream tells its size at its end only. */
static void test_stream(void **state) {
    (void)state;
    wick_session *const session = saved_session(&greedy, &whole, 6);
    for (size_t missing = 0; missing < 2; missing++) {
        wick_source source;
        wick_push_source *push;
        wick_session_loading *loading;
        assert_int_equal(wick_source_push_make(WICK_SIZE_UNKNOWN, &source, &push), WICK_OK);
        assert_int_equal(wick_session_load_start(session, source, &loading, NULL), WICK_OK);
        for (size_t i = 0; i < whole.size - missing; i++) {
            for (int k = 0; k < 3; k++)
                assert_int_equal(wick_session_load_poll(loading), WICK_PENDING);
            assert_int_equal(wick_source_push(push, whole.data + i, 1), WICK_OK);
            if (i > 512) { /* the rest at once */
                const size_t left = whole.size - missing - i - 1;
                assert_int_equal(wick_source_push(push, whole.data + i + 1, left), WICK_OK);
                break;
            }
        }
        wick_source_push_finish(push);
        while (wick_session_load_poll(loading) == WICK_PENDING) {
        }
        assert_int_equal(wick_session_load_finish(loading, NULL),
                         missing ? WICK_ERR_FORMAT : WICK_OK);
        assert_true(missing ? n_tokens(session) == 0 : n_tokens(session) > 0);
    }
    wick_session_close(session);
}

/* --- Calls --- */

static void test_misuse(void **state) {
    (void)state;
    wick_session *const session = saved_session(&greedy, &whole, 2);
    wick_session_saving *saving;
    wick_session_loading *loading;
    wick_event event;
    wick_error error = {0};
    const wick_source source = wick_source_memory(whole.data, whole.size);
    assert_int_equal(wick_session_save_start(NULL, write_bytes, NULL, &saving, NULL),
                     WICK_ERR_ARGUMENT);
    assert_int_equal(wick_session_save_start(session, NULL, NULL, &saving, NULL),
                     WICK_ERR_ARGUMENT);
    assert_int_equal(wick_session_save_poll(NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_session_save_finish(NULL, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_session_load_start(NULL, source, &loading, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_session_load_start(session, (wick_source){0}, &loading, NULL),
                     WICK_ERR_ARGUMENT);
    assert_int_equal(wick_session_load_poll(NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_session_load_finish(NULL, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_session_save(session, NULL, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_session_load(NULL, "x", NULL), WICK_ERR_ARGUMENT);

    /* Given up. */
    assert_int_equal(wick_session_save_start(session, write_bytes, &other, &saving, NULL), WICK_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(wick_session_save_poll(saving), WICK_PENDING); /* a read is under way */
    assert_int_equal(wick_session_save_finish(saving, &error), WICK_ERR_CANCELLED);
    assert_int_equal(wick_session_load_start(session, source, &loading, NULL), WICK_OK);
    assert_int_equal(wick_session_load_poll(loading), WICK_PENDING);
    assert_int_equal(wick_session_load_finish(loading, NULL), WICK_ERR_CANCELLED);
    assert_int_equal(n_tokens(session), 0);
    assert_int_equal(load(session, &whole, NULL), WICK_OK);

    /* Going on meanwhile. */
    other.size = 0;
    assert_int_equal(wick_session_save_start(session, write_bytes, &other, &saving, NULL), WICK_OK);
    assert_int_equal(wick_session_save_poll(saving), WICK_PENDING);
    assert_int_equal(wick_session_step(session, &event), WICK_OK);
    assert_int_equal(wick_session_save_poll(saving), WICK_ERR_STATE);
    assert_int_equal(wick_session_save_finish(saving, NULL), WICK_ERR_STATE);
    assert_int_equal(wick_session_load_start(session, source, &loading, NULL), WICK_OK);
    assert_int_equal(wick_session_append_text(session, "x"), WICK_OK);
    assert_int_equal(wick_session_load_poll(loading), WICK_ERR_STATE);
    assert_int_equal(wick_session_load_finish(loading, NULL), WICK_ERR_STATE);
    assert_int_equal(n_tokens(session), 0);
    wick_session_close(session);
}

/* A batch that is being computed is waited for: what was saved goes on after it. */
static void test_running(void **state) {
    (void)state;
    wick_session *const session = open_session(&greedy), *const loaded = open_session(&greedy);
    wick_event event;
    assert_int_equal(wick_session_append_text(session, "Once upon a time"), WICK_OK);
    assert_int_equal(wick_session_step(session, &event), WICK_OK);
    assert_int_equal(event.kind, WICK_EVENT_PENDING);
    assert_int_equal(wick_session_append_text(session, "x"), WICK_ERR_STATE); /* it runs */
    assert_int_equal(save(session, &whole, NULL), WICK_OK);
    assert_int_equal(wick_session_step(loaded, &event), WICK_OK);
    assert_int_equal(load(loaded, &whole, NULL), WICK_OK);
    assert_int_equal(wick_session_next(loaded, &event), WICK_OK);
    assert_int_equal(event.kind, WICK_EVENT_TOKEN); /* its logits were there */
    wick_session_close(session);

    /* One that a reset has left behind, too. */
    assert_int_equal(wick_session_append_text(loaded, "Once upon a time"), WICK_OK);
    assert_int_equal(wick_session_step(loaded, &event), WICK_OK);
    assert_int_equal(load(loaded, &whole, NULL), WICK_OK);
    wick_session_close(loaded);
}

static void test_logits_mode(void **state) {
    (void)state;
    const wick_session_desc desc = {.context_length = 64, .logits = WICK_LOGITS_ALL};
    wick_session *const session = open_session(&desc);
    wick_session_saving *saving;
    wick_event event;
    assert_int_equal(wick_session_append_text(session, "Once"), WICK_OK);
    do assert_int_equal(wick_session_next(session, &event), WICK_OK);
    while (event.kind != WICK_EVENT_LOGITS);
    assert_int_equal(wick_session_save_start(session, write_bytes, &whole, &saving, NULL),
                     WICK_ERR_STATE);
    do assert_int_equal(wick_session_next(session, &event), WICK_OK);
    while (event.kind != WICK_EVENT_END);
    assert_int_equal(save(session, &whole, NULL), WICK_OK);
    assert_int_equal(load(session, &whole, NULL), WICK_OK);
    wick_session_close(session);
}

static void test_sink(void **state) {
    (void)state;
    wick_session *const session = saved_session(&greedy, &whole, 6);
    for (size_t limit = 1; limit < whole.size; limit += 3001) {
        wick_error error = {0};
        other.limit = limit;
        assert_int_equal(save(session, &other, &error), WICK_ERR_IO);
        assert_true(error.message[0] != '\0');
    }
    other.limit = 0;
    wick_session_close(session);
}

static void test_files(void **state) {
    (void)state;
    char path[64];
    snprintf(path, sizeof path, "/tmp/wick_session_%ld", (long)getpid());
    wick_session *const session = saved_session(&greedy, &whole, 6);
    wick_error error = {0};
    assert_int_equal(wick_session_save(session, path, &error), WICK_OK);
    const size_t n = n_tokens(session);
    wick_session_reset(session);
    assert_int_equal(wick_session_load(session, path, &error), WICK_OK);
    assert_int_equal(n_tokens(session), n);
    FILE *const file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(whole.data, 1, 1000, file), 1000);
    fclose(file);
    assert_int_equal(wick_session_load(session, path, &error), WICK_ERR_FORMAT);
    assert_int_equal(n_tokens(session), 0);
    assert_int_equal(unlink(path), 0);
    error = (wick_error){0};
    assert_int_equal(wick_session_load(session, path, &error), WICK_ERR_NOT_FOUND);
    assert_true(strstr(error.message, path) != NULL);
    assert_true(wick_session_save(session, "/nowhere/there", NULL) < 0);
    wick_session_close(session);
}

/* A run moves the blocks that its rows are in, and no other: the next one may hold rows of a window
 * that are still wanted. */
static void test_blocks_of_runs(void **state) {
    (void)state;
    enum { CONTEXT = 256 }; /* several blocks */
    wick_session *const session = open_session(&(wick_session_desc){.context_length = CONTEXT});
    for (uint64_t n = 1; n <= CONTEXT; n++) {
        wk_image_header header;
        wk_image_cursor cursor = {0};
        wk_image_run run;
        uint64_t n_rows = 0, n_runs = 0;
        wk_image_describe(session, &header);
        header.fields[WK_IMAGE_CACHED] = n;
        assert_int_equal(wk_sequence_reserve(session->sequence, (uint32_t)n, NULL), WICK_OK);
        for (; wk_image_next(session, &header, &cursor, &run); n_runs++) {
            const uint32_t size = run.part.block_size;
            assert_true(2 * size <= CONTEXT);
            assert_int_equal(run.n_blocks, (run.n_before + run.n + size - 1) / size);
            n_rows += run.n;
        }
        assert_true(n_runs > 0);
        assert_int_equal(n_rows % n, 0);
    }
    wick_session_close(session);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lies),           cmocka_unit_test(test_damage),
        cmocka_unit_test(test_stream),         cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_running),        cmocka_unit_test(test_logits_mode),
        cmocka_unit_test(test_sink),           cmocka_unit_test(test_files),
        cmocka_unit_test(test_blocks_of_runs), cmocka_unit_test(test_contexts),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
