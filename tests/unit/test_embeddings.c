/* Sessions that read rows of embeddings: what is refused, what is forgotten, saving, the tokens
 * that they show, and a device that is lost. What rows give is compared in
 * golden/test_given_rows.c. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/null/null.h"
#include "llm/llm.h"
#include "loss.h"
#include "model/model_struct.h"

#include <wick/ops.h>

#include <math.h>

enum { N = 12, N_EMBD = 64 };

static const uint32_t ids[N] = {1, 403, 407, 261, 378, 400, 5, 17, 99, 12, 300, 7};

typedef struct fixture {
    wick_device *device;
    wick_model *model;
    float rows[N * N_EMBD]; /* of ids */
} fixture;

static int open_on(fixture *f, const wick_device_desc *desc) {
    if (wick_device_open(desc, &f->device, NULL) != WICK_OK ||
        wick_model_open(f->device, stories_path(), NULL, &f->model, NULL) != WICK_OK)
        return -1;
    wick_tensor *const table = f->model->model->stage_weights[0].weight[WK_TOKEN_EMBEDDING];
    const wick_scope scope = wick_scope_begin(f->device);
    wick_tensor *const at =
        wick_tensor_from_data(f->device, WICK_U32, WICK_SHAPE(N), ids, sizeof ids);
    wick_tensor *const rows = wick_cast(wick_embedding(table, at), WICK_F32);
    const wick_status status = wick_read(rows, f->rows, sizeof f->rows);
    wick_scope_end(scope);
    return status == WICK_OK ? 0 : -1;
}

static int setup(void **state) {
    static fixture f;
    *state = &f;
    return open_on(&f, &(wick_device_desc){.backend = WICK_BACKEND_CPU, .n_threads = 1});
}

static int teardown(void **state) {
    fixture *const f = *state;
    wick_device_stats stats;
    wick_model_close(f->model);
    wick_device_get_stats(f->device, &stats);
    wick_device_close(f->device);
    return stats.buffer_bytes != 0;
}

static wick_session *open_session(const fixture *f, const wick_session_desc *desc) {
    wick_session *session;
    wick_error error = {.status = WICK_OK};
    if (wick_session_open(f->model, desc, &session, &error) != WICK_OK)
        fail_msg("%s", error.message);
    return session;
}

static void tell(wick_session *session, told *out) {
    wick_event event;
    *out = (told){.size = 0};
    do {
        if (wick_session_next(session, &event) != WICK_OK) {
            wick_error error = {.status = WICK_OK};
            (void)wick_session_error(session, &error);
            fail_msg("%s", error.message);
        }
        hear(out, &event);
    } while (event.kind != WICK_EVENT_END);
}

static void assert_same(const told *a, const told *b) {
    assert_int_equal(a->n_tokens, b->n_tokens);
    assert_int_equal(a->size, b->size);
    assert_memory_equal(a->text, b->text, a->size);
}

static void expect(wick_session *session, wick_status status, wick_status wanted,
                   const char *text) {
    wick_error error = {.status = WICK_OK};
    assert_int_equal(status, wanted);
    assert_int_equal(wick_session_error(session, &error), wanted);
    if (strstr(error.message, text) == NULL) fail_msg("'%s' lacks '%s'", error.message, text);
}

/* Rows as a prompt give what its tokens give, by every way to choose: those that look back at
 * tokens find none there, so that only greedy choices can be compared. */
static void test_generates(void **state) {
    const fixture *const f = *state;
    static told by_tokens, by_rows, again;
    for (size_t i = 0; i < N_TELLERS; i++) {
        wick_session *const session = open_session(f, &tellers[i]);
        assert_int_equal(wick_session_append_embeddings(session, f->rows, N), WICK_OK);
        tell(session, &by_rows);
        assert_int_equal(by_rows.n_tokens, 200);
        size_t n;
        const uint32_t *const tokens = wick_session_tokens(session, &n);
        assert_int_equal(n, N + 200);
        for (size_t k = 0; k < n; k++) assert_true((tokens[k] == WICK_NO_TOKEN) == (k < N));
        wick_session_reset(session);
        assert_int_equal(wick_session_append_tokens(session, ids, N), WICK_OK);
        tell(session, &by_tokens);
        if (i == 0) assert_same(&by_rows, &by_tokens);
        if (i == 0) {
            wick_session_reset(session);
            assert_int_equal(wick_session_append_tokens(session, ids, 3), WICK_OK);
            assert_int_equal(wick_session_append_embeddings(session, f->rows + 3 * N_EMBD, 1),
                             WICK_OK);
            assert_int_equal(wick_session_append_embeddings(session, NULL, 0), WICK_OK);
            assert_int_equal(wick_session_append_tokens(session, ids + 4, N - 4), WICK_OK);
            tell(session, &again);
            assert_same(&again, &by_tokens);
        }
        wick_session_close(session);
    }
}

static void test_refusals(void **state) {
    const fixture *const f = *state;
    wick_session *const session = open_session(f, &(wick_session_desc){.context_length = N});
    assert_int_equal(wick_session_append_embeddings(NULL, f->rows, 1), WICK_ERR_ARGUMENT);
    expect(session, wick_session_append_embeddings(session, NULL, 1), WICK_ERR_ARGUMENT, "rows");
    assert_int_equal(wick_session_append_tokens(session, ids, 1), WICK_OK);
    expect(session, wick_session_append_embeddings(session, f->rows, N), WICK_ERR_STATE,
           "12 tokens do not fit: 11");
    expect(session, wick_session_append_embeddings(session, f->rows, SIZE_MAX), WICK_ERR_STATE,
           "do not fit");
    size_t n;
    (void)wick_session_tokens(session, &n);
    assert_int_equal(n, 1);
    /* Rows are not told apart by ids: none of them may be taken for the same. */
    assert_int_equal(wick_session_append_embeddings(session, f->rows + N_EMBD, 3), WICK_OK);
    uint32_t copy[4];
    memcpy(copy, wick_session_tokens(session, &n), sizeof copy);
    expect(session, wick_session_sync_tokens(session, copy, 4), WICK_ERR_INDEX, "vocabulary");
    assert_memory_equal(wick_session_tokens(session, &n), copy, sizeof copy);
    assert_int_equal(n, 4);
    wick_session_close(session);
}

/* Rows that are not finite are taken; what cannot be chosen from says so, and a reset forgets it.
 */
static void test_any_numbers(void **state) {
    const fixture *const f = *state;
    static const float odd[N_EMBD] = {NAN, INFINITY, -1e38F};
    static told want, got;
    const wick_session_desc desc = {.max_tokens = 9, .ignore_end = true};
    wick_session *const session = open_session(f, &desc);
    assert_int_equal(wick_session_append_tokens(session, ids, 2), WICK_OK);
    tell(session, &want);
    wick_session_reset(session);
    assert_int_equal(wick_session_append_tokens(session, ids, 2), WICK_OK);
    assert_int_equal(wick_session_append_embeddings(session, odd, 1), WICK_OK);
    wick_event event;
    wick_status status;
    while ((status = wick_session_next(session, &event)) == WICK_OK)
        assert_int_not_equal(event.kind, WICK_EVENT_TOKEN);
    expect(session, status, WICK_ERR_DEVICE, "no finite number");
    wick_session_reset(session);
    assert_int_equal(wick_session_append_tokens(session, ids, 2), WICK_OK);
    tell(session, &got);
    assert_same(&got, &want);
    wick_session_close(session);
}

/* What is in front of the rows is kept, and nothing else. */
static void test_sync(void **state) {
    const fixture *const f = *state;
    static told want, got;
    const wick_session_desc desc = {.max_tokens = 20, .ignore_end = true};
    wick_session *const session = open_session(f, &desc);
    assert_int_equal(wick_session_append_tokens(session, ids, N), WICK_OK);
    tell(session, &want);
    wick_session_reset(session);
    assert_int_equal(wick_session_append_tokens(session, ids, 4), WICK_OK);
    assert_int_equal(wick_session_append_embeddings(session, f->rows, 3), WICK_OK); /* others */
    tell(session, &got);
    assert_int_equal(wick_session_sync_tokens(session, ids, N), WICK_OK);
    wick_session_stats stats;
    wick_session_get_stats(session, &stats);
    assert_int_equal(stats.n_reused, 4 + 4); /* after the reset, and now */
    tell(session, &got);
    assert_same(&got, &want);
    /* Its rows are gone: those that are appended now are the first. */
    wick_session_reset(session);
    assert_int_equal(wick_session_append_tokens(session, ids, N - 1), WICK_OK);
    assert_int_equal(wick_session_append_embeddings(session, f->rows + (N - 1) * N_EMBD, 1),
                     WICK_OK);
    tell(session, &got);
    assert_same(&got, &want);
    wick_session_close(session);
}

static wick_status write_nothing(void *user, const void *bytes, size_t size, wick_error *error) {
    (void)user, (void)bytes, (void)size, (void)error;
    return WICK_OK;
}

static wick_status save(wick_session *session, wick_error *error) {
    wick_session_saving *saving;
    assert_int_equal(wick_session_save_start(session, write_nothing, NULL, &saving, error),
                     WICK_OK);
    while (wick_session_save_poll(saving) == WICK_PENDING) {
    }
    return wick_session_save_finish(saving, error);
}

static void test_saving_is_refused(void **state) {
    const fixture *const f = *state;
    static told out;
    wick_error error = {.status = WICK_OK};
    wick_session *const session =
        open_session(f, &(wick_session_desc){.max_tokens = 2, .ignore_end = true});
    assert_int_equal(wick_session_append_embeddings(session, f->rows, 2), WICK_OK);
    tell(session, &out);
    assert_int_equal(save(session, &error), WICK_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "rows of embeddings (2)"));
    assert_int_equal(wick_session_append_tokens(session, ids, 1), WICK_OK); /* it goes on */
    tell(session, &out);
    wick_session_reset(session);
    assert_int_equal(wick_session_append_tokens(session, ids, 2), WICK_OK);
    tell(session, &out);
    assert_int_equal(save(session, NULL), WICK_OK);
    wick_session_close(session);
}

/* Rows come back with the tokens, wherever the device is lost; device_layers 2: the first layers,
 * which read them, are on the host. */
static void lose_device(const float *rows, int32_t device_layers) {
    fixture f;
    static told want, got;
    const wick_device_desc desc = {.backend = WICK_BACKEND_NULL, .null_flags = WICK_NULL_LATE};
    const wick_model_desc placed = {.device_layers = device_layers};
    assert_int_equal(wick_device_open(&desc, &f.device, NULL), WICK_OK);
    assert_int_equal(wick_model_open(f.device, stories_path(), &placed, &f.model, NULL), WICK_OK);
    const wick_session_desc teller = {
        .context_length = 64, .chunk_length = 4, .max_tokens = 12, .ignore_end = true};
    wick_session *const session = open_session(&f, &teller);
    assert_int_equal(wick_session_append_tokens(session, ids, N), WICK_OK);
    tell(session, &want);
    for (uint32_t at = 0; at < 40; at += 3) {
        wick_session_reset(session);
        assert_int_equal(wick_session_append_tokens(session, ids, 3), WICK_OK);
        assert_int_equal(wick_session_append_embeddings(session, rows + 3 * N_EMBD, 6), WICK_OK);
        assert_int_equal(wick_session_append_tokens(session, ids + 9, N - 9), WICK_OK);
        wick_event event;
        got = (told){.size = 0};
        uint32_t n_steps = 0;
        do {
            if (n_steps++ == at) wk_null_lose_after(f.device->handle, 1 + at % 5);
            assert_int_equal(wick_session_step(session, &event), WICK_OK);
            if (event.kind == WICK_EVENT_PENDING) wick_pause(f.device);
            hear(&got, &event);
        } while (event.kind != WICK_EVENT_END);
        assert_same(&got, &want);
    }
    wick_device_stats stats;
    wick_device_get_stats(f.device, &stats);
    assert_true(stats.n_losses > 8);
    wick_session_close(session);
    wick_model_close(f.model);
    wick_device_close(f.device);
}

static void test_lost_device(void **state) {
    const fixture *const f = *state;
    lose_device(f->rows, 0);
    lose_device(f->rows, 2);
}

/* There is no memory for the rows, or for a batch with them: a sentence, and nothing leaks. */
static void test_no_memory(void **state) {
    (void)state;
    static fixture f;
    static told got, want;
    checked_heap heap;
    checked_heap_init(&heap, UINT64_MAX);
    const wick_device_desc desc = {
        .backend = WICK_BACKEND_CPU, .n_threads = 1, .allocator = heap.heap.hook};
    assert_int_equal(open_on(&f, &desc), 0);
    const wick_session_desc teller = {
        .context_length = 64, .chunk_length = 4, .max_tokens = 3, .ignore_end = true};
    bool was_refused = true;
    for (uint64_t n = 0; was_refused; n++) {
        wick_session *const session = open_session(&f, &teller);
        assert_int_equal(wick_session_append_tokens(session, ids, 2), WICK_OK);
        tell(session, &want);
        wick_session_reset(session);
        assert_int_equal(wick_session_append_tokens(session, ids, 1), WICK_OK);
        heap.n_allowed = n;
        heap.n_refused = 0;
        wick_status status = wick_session_append_embeddings(session, f.rows + N_EMBD, 1);
        wick_event event = {.kind = WICK_EVENT_PENDING};
        while (status == WICK_OK && event.kind != WICK_EVENT_END)
            status = wick_session_next(session, &event);
        heap.n_allowed = UINT64_MAX;
        was_refused = heap.n_refused > 0;
        if (status != WICK_OK)
            expect(session, WICK_ERR_OUT_OF_MEMORY, WICK_ERR_OUT_OF_MEMORY, "");
        else
            assert_false(was_refused);
        wick_session_reset(session);
        assert_int_equal(wick_session_append_tokens(session, ids, 1), WICK_OK);
        assert_int_equal(wick_session_append_embeddings(session, f.rows + N_EMBD, 1), WICK_OK);
        tell(session, &got);
        assert_same(&got, &want);
        wick_session_close(session);
    }
    wick_model_close(f.model);
    wick_device_close(f.device);
    assert_true(checked_heap_is_clean(&heap));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_generates),         cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_any_numbers),       cmocka_unit_test(test_sync),
        cmocka_unit_test(test_saving_is_refused), cmocka_unit_test(test_lost_device),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests_name("embeddings", tests, setup, teardown);
}
