/* Sessions that share a cache: forks at every token, what is shared and what is not, saving while
 * others go on, prompts that wait for each other, one session's end that is no other's. */
#include "llm/runner_struct.h"
#include "llm/session_struct.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "stories_session.h"

#include "saved_session.h"

static const wick_session_desc twenty = {.max_tokens = 20};

static uint32_t blocks_in_use(const wick_session *session) {
    const wk_blocks *const pool = &session->sequence->runner->pools[WK_POOL_BLOCKS];
    return pool->n - pool->n_free;
}

/* Steps until n tokens have come or the text ends; their text into out. */
static void tell(wick_session *session, uint32_t n, char *out, size_t size) {
    wick_event event = {.kind = WICK_EVENT_PENDING};
    size_t used = strlen(out);
    while (n > 0 && event.kind != WICK_EVENT_END) {
        assert_int_equal(wick_session_next(session, &event), WICK_OK);
        if (event.kind != WICK_EVENT_TOKEN && event.kind != WICK_EVENT_END) continue;
        assert_true(used + event.text_size < size);
        memcpy(out + used, event.text, event.text_size);
        out[used += event.text_size] = 0;
        n--;
    }
}

static void test_every_token(void **state) {
    (void)state;
    char want[1024] = "";
    wick_session *const session = open_session(&twenty);
    assert_int_equal(wick_session_append_text(session, "Once upon a time"), WICK_OK);
    tell(session, UINT32_MAX, want, sizeof want);
    for (uint32_t n = 0; n <= 20; n++) {
        wick_session *fork;
        char text[1024] = "", forked[1024];
        wick_session_reset(session);
        assert_int_equal(wick_session_append_text(session, "Once upon a time"), WICK_OK);
        tell(session, n, text, sizeof text);
        assert_int_equal(wick_session_fork(session, &twenty, &fork, NULL), WICK_OK);
        strcpy(forked, text);
        tell(fork, UINT32_MAX, forked, sizeof forked);
        assert_string_equal(forked, want);
        tell(session, UINT32_MAX, text, sizeof text);
        assert_string_equal(text, want);
        wick_session_close(fork);
    }
    wick_session_close(session);
}

/* Two full blocks and a part of a third: the fork has the part of its own once it writes to it.
 * What both have had stays, for texts that begin like it. */
static void test_shared_blocks(void **state) {
    (void)state;
    enum { N = 2 * WK_BLOCK_SIZE + 5 };
    uint32_t ids[N];
    char text[1024] = "";
    wick_session *fork;
    for (uint32_t i = 0; i < N; i++) ids[i] = 300 + i % 100;
    wick_session *const session = open_session(&twenty);
    const uint32_t before = blocks_in_use(session);
    assert_int_equal(wick_session_append_tokens(session, ids, N), WICK_OK);
    tell(session, 1, text, sizeof text);
    assert_int_equal(blocks_in_use(session) - before, 3);
    assert_int_equal(wick_session_fork(session, &twenty, &fork, NULL), WICK_OK);
    assert_int_equal(wk_sequence_cached(fork->sequence), N); /* nothing is computed again */
    assert_int_equal(blocks_in_use(session) - before, 3);
    tell(fork, 3, text, sizeof text);
    assert_int_equal(blocks_in_use(session) - before, 4);
    wick_session_reset(session);
    assert_int_equal(blocks_in_use(session) - before, 4);
    wick_session_close(fork);
    assert_int_equal(blocks_in_use(session) - before, 4);
    wick_session_close(session);
}

/* The first n tokens of a text that another session has read are not read again, wherever the two
 * texts part. The last one always is: what comes next is chosen from its logits. */
static void test_found_again(void **state) {
    (void)state;
    enum { N = 2 * WK_BLOCK_SIZE + 5 };
    uint32_t ids[N];
    for (uint32_t i = 0; i < N; i++) ids[i] = 10 + i * 3 % 200;
    wick_session *const first = open_session(&twenty);
    char text[1024] = "";
    assert_int_equal(wick_session_append_tokens(first, ids, N), WICK_OK);
    tell(first, 1, text, sizeof text);
    wick_session_close(first);
    static const uint32_t lengths[] = {0,
                                       1,
                                       WK_BLOCK_SIZE - 1,
                                       WK_BLOCK_SIZE,
                                       WK_BLOCK_SIZE + 1,
                                       2 * WK_BLOCK_SIZE - 1,
                                       2 * WK_BLOCK_SIZE,
                                       2 * WK_BLOCK_SIZE + 1,
                                       N - 1,
                                       N};
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        const uint32_t n = lengths[l];
        char found[1024] = "", want[1024] = "";
        wick_session_stats stats;
        uint32_t like[N];
        for (uint32_t i = 0; i < N; i++) like[i] = i < n ? ids[i] : 250 + (n * 5 + i) % 200;
        wick_session *const session = open_session(&twenty);
        assert_int_equal(wick_session_append_tokens(session, like, N), WICK_OK);
        tell(session, 5, found, sizeof found);
        wick_session_get_stats(session, &stats);
        assert_int_equal(stats.n_reused, n < N ? n : N - 1);
        assert_int_equal(stats.n_prompt, N);
        wick_session_close(session);
        wk_runners_drop(model); /* alone: nothing is known */
        wick_session *const alone = open_session(&twenty);
        assert_int_equal(wick_session_append_tokens(alone, like, N), WICK_OK);
        tell(alone, 5, want, sizeof want);
        wick_session_get_stats(alone, &stats);
        assert_int_equal(stats.n_reused, 0);
        assert_string_equal(found, want);
        wick_session_reset(alone);
        assert_int_equal(wick_session_append_tokens(alone, ids, N), WICK_OK);
        tell(alone, 1, want, sizeof want);
        wick_session_close(alone);
    }
}

/* Of a text of which a session has a part itself, the rest is found: each token counts once. */
static void test_found_in_parts(void **state) {
    (void)state;
    enum { PART = WK_BLOCK_SIZE + 9, N = 3 * WK_BLOCK_SIZE };
    uint32_t ids[N];
    char text[1024] = "";
    wick_session_stats stats;
    for (uint32_t i = 0; i < N; i++) ids[i] = 300 + (i * 11) % 180;
    wick_session *const whole_text = open_session(&twenty);
    wick_session *const session = open_session(&twenty);
    assert_int_equal(wick_session_append_tokens(session, ids, PART), WICK_OK);
    tell(session, 1, text, sizeof text);
    assert_int_equal(wick_session_append_tokens(whole_text, ids, N), WICK_OK);
    tell(whole_text, 1, text, sizeof text);
    assert_int_equal(wick_session_sync_tokens(session, ids, N), WICK_OK);
    tell(session, 1, text, sizeof text);
    wick_session_get_stats(session, &stats);
    assert_int_equal(stats.n_reused, N - 1);
    wick_session_close(session);
    wick_session_close(whole_text);
}

/* Sessions that compute alike share a runner; those of another math have one of their own. */
static void test_kinds(void **state) {
    (void)state;
    const wick_math math = wick_device_math(device);
    const wick_session_desc desc = {.cache = WICK_CACHE_F32};
    wick_session *const first = open_session(&desc), *const alike = open_session(&desc);
    wick_device_set_math(device, math == WICK_MATH_EXACT ? WICK_MATH_FAST : WICK_MATH_EXACT);
    wick_session *const unlike = open_session(&desc);
    wick_device_set_math(device, math);
    assert_ptr_equal(alike->sequence->runner, first->sequence->runner);
    assert_ptr_not_equal(unlike->sequence->runner, first->sequence->runner);
    wick_session_close(unlike);
    wick_session_close(alike);
    wick_session_close(first);
}

static void test_refused(void **state) {
    (void)state;
    wick_error error = {0};
    wick_event event;
    wick_session *fork = NULL;
    wick_session *const session = open_session(&twenty);
    assert_int_equal(wick_session_fork(NULL, NULL, &fork, &error), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_session_fork(session, NULL, NULL, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_session_fork(session, &(wick_session_desc){.n_stop = 1}, &fork, NULL),
                     WICK_ERR_ARGUMENT);
    assert_null(fork);
    assert_int_equal(wick_session_append_text(session, "Once upon a time"), WICK_OK);
    assert_int_equal(wick_session_step(session, &event), WICK_OK);
    assert_int_equal(event.kind, WICK_EVENT_PENDING);
    assert_int_equal(wick_session_fork(session, NULL, &fork, &error), WICK_ERR_STATE);
    assert_null(fork);
    wick_session_close(session);
}

/* A prompt that others' steps have begun to read takes more text, and the tokens of the whole. */
static void test_read_by_others(void **state) {
    (void)state;
    char want[1024] = "", found[1024] = "", second[1024] = "";
    wick_event event;
    wick_session *const a = open_session(&twenty), *const b = open_session(&twenty);
    assert_int_equal(wick_session_append_text(a, "Once upon a time there was"), WICK_OK);
    tell(a, UINT32_MAX, want, sizeof want);
    wick_session_reset(a);
    assert_int_equal(wick_session_append_text(a, "Lily"), WICK_OK);
    assert_int_equal(wick_session_append_text(b, "Once upon a time"), WICK_OK);
    assert_int_equal(wick_session_step(a, &event), WICK_OK);
    assert_true(wk_sequence_running(b->sequence) > 0);
    assert_int_equal(wick_session_append_text(a, "Tom"), WICK_ERR_STATE);
    assert_int_equal(wick_session_append_text(b, " there was"), WICK_OK);
    tell(a, 5, second, sizeof second);
    tell(b, UINT32_MAX, found, sizeof found);
    assert_string_equal(found, want);
    wick_session_close(a);
    wick_session_close(b);
}

/* What is saved while others go on is what there was. */
static void test_saved_meanwhile(void **state) {
    (void)state;
    char text[1024] = "", want[1024] = "", found[1024] = "";
    wick_session_saving *saving;
    wick_session *const a = open_session(&twenty), *const b = open_session(&twenty);
    assert_int_equal(wick_session_append_text(a, "Once upon a time"), WICK_OK);
    assert_int_equal(wick_session_append_text(b, "Lily and Tom"), WICK_OK);
    tell(a, 5, text, sizeof text);
    assert_int_equal(save(a, &whole, NULL), WICK_OK);
    other = (image){.size = 0};
    assert_int_equal(wick_session_save_start(a, write_bytes, &other, &saving, NULL), WICK_OK);
    while (wick_session_save_poll(saving) == WICK_PENDING) {
        wick_event event;
        assert_int_equal(wick_session_step(b, &event), WICK_OK);
    }
    assert_int_equal(wick_session_save_finish(saving, NULL), WICK_OK);
    tell(a, UINT32_MAX, want, sizeof want);
    assert_int_equal(load(b, &other, NULL), WICK_OK);
    tell(b, 15, found, sizeof found);
    assert_string_equal(found, want);
    wick_session_close(a);
    wick_session_close(b);
}

/* A context that is full, a grammar that ends and a session that is closed end nothing else. */
static void test_ends_apart(void **state) {
    (void)state;
    char alone[1024] = "", found[1024] = "";
    wick_session *const a = open_session(&twenty);
    assert_int_equal(wick_session_append_text(a, "Once upon a time"), WICK_OK);
    tell(a, UINT32_MAX, alone, sizeof alone);
    wick_session_reset(a);
    wick_session *const small = open_session(&(wick_session_desc){.context_length = 8});
    wick_session *const grammar =
        open_session(&(wick_session_desc){.sampler.grammar = "root ::= \"a\"", .max_tokens = 20});
    wick_session *const closed = open_session(&twenty);
    wick_session *const all[] = {small, grammar, closed};
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(wick_session_append_text(all[i], "Once upon"), WICK_OK);
    assert_int_equal(wick_session_append_text(a, "Once upon a time"), WICK_OK);
    bool has_ended[3] = {false};
    wick_event event = {.kind = WICK_EVENT_PENDING};
    for (uint32_t n = 0; event.kind != WICK_EVENT_END; n++) {
        while (wick_model_step(model, NULL) == WICK_PENDING) continue;
        for (size_t i = 0; i < 3; i++) {
            if (has_ended[i]) continue;
            assert_int_equal(wick_session_step(all[i], &event), WICK_OK);
            has_ended[i] = event.kind == WICK_EVENT_END;
        }
        if (n == 3) wick_session_close(closed);
        if (n == 3) has_ended[2] = true;
        assert_int_equal(wick_session_step(a, &event), WICK_OK);
        if (event.kind != WICK_EVENT_TOKEN && event.kind != WICK_EVENT_END) continue;
        memcpy(found + strlen(found), event.text, event.text_size);
    }
    assert_string_equal(found, alone);
    assert_true(has_ended[0] && has_ended[1]);
    wick_session_close(small);
    wick_session_close(grammar);
    wick_session_close(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_token),    cmocka_unit_test(test_shared_blocks),
        cmocka_unit_test(test_found_again),    cmocka_unit_test(test_found_in_parts),
        cmocka_unit_test(test_kinds),          cmocka_unit_test(test_refused),
        cmocka_unit_test(test_read_by_others), cmocka_unit_test(test_saved_meanwhile),
        cmocka_unit_test(test_ends_apart),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
