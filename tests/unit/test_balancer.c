/* llm/balancer: which device a session opens on, what happens where it refuses, and the figures.
 * By memory: tests/gpu/webgpu_devices. */
#include "llm/llm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <wick/wick.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 3 };

static wick_device *devices[N];
static wick_model *models[N];

/* All layers on the device, or an error. */
static wick_status open_model(const wick_device_desc *desc, wick_device **device,
                              wick_model **model) {
    static const wick_model_desc whole = {.device_layers = 5};
    char path[1024];
    snprintf(path, sizeof path, "%s/stories260K.gguf", getenv("WICK_TEST_DATA"));
    assert_int_equal(wick_device_open(desc, device, NULL), WICK_OK);
    return wick_model_open(*device, path, &whole, model, NULL);
}

static int setup(void **state) {
    (void)state;
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .n_threads = 1};
    for (int i = 0; i < N; i++)
        if (open_model(&desc, &devices[i], &models[i]) != WICK_OK) return 1;
    return 0;
}

static int teardown(void **state) {
    (void)state;
    for (int i = 0; i < N; i++) {
        wick_model_close(models[i]);
        wick_device_close(devices[i]);
    }
    return 0;
}

static const wick_session_desc small = {.context_length = 64, .max_tokens = 20};

static wick_balancer *make(wick_balance balance) {
    wick_balancer *balancer;
    wick_error error = {0};
    if (wick_balancer_make(models, N, &(wick_balancer_desc){.balance = balance}, &balancer,
                           &error) != WICK_OK)
        fail_msg("%s", error.message);
    return balancer;
}

static wick_session *open_session(wick_balancer *balancer) {
    wick_session *session;
    wick_error error = {0};
    if (wick_balancer_open_session(balancer, &small, &session, &error) != WICK_OK)
        fail_msg("%s", error.message);
    return session;
}

static void generate(wick_session *session) {
    wick_event event;
    assert_int_equal(wick_session_append_text(session, "Once upon a time"), WICK_OK);
    do assert_int_equal(wick_session_next(session, &event), WICK_OK);
    while (event.kind != WICK_EVENT_END);
}

static uint32_t n_sessions(const wick_balancer *balancer, size_t i) {
    wick_replica replicas[N];
    assert_int_equal(wick_balancer_replicas(balancer, replicas, N), N);
    return replicas[i].usage.n_sessions;
}

static void test_round_robin(void **state) {
    (void)state;
    wick_balancer *const balancer = make(WICK_BALANCE_ROUND_ROBIN);
    wick_session *sessions[2 * N];
    for (uint32_t k = 0; k < 2 * N; k++) {
        sessions[k] = open_session(balancer);
        assert_int_equal(n_sessions(balancer, k % N), k / N + 1);
    }
    for (int k = 0; k < 2 * N; k++) wick_session_close(sessions[k]);
    for (size_t i = 0; i < N; i++) assert_int_equal(n_sessions(balancer, i), 0);
    wick_balancer_free(balancer);
}

static void test_load(void **state) {
    (void)state;
    wick_balancer *const balancer = make(WICK_BALANCE_LOAD);
    wick_session *sessions[N];
    for (int i = 0; i < N; i++) sessions[i] = open_session(balancer);
    wick_session_close(sessions[1]);
    assert_int_equal(n_sessions(balancer, 1), 0);
    sessions[1] = open_session(balancer); /* where there was none */
    for (size_t i = 0; i < N; i++) assert_int_equal(n_sessions(balancer, i), 1);
    for (int i = 0; i < N; i++) wick_session_close(sessions[i]);
    wick_balancer_free(balancer);
}

/* The figures of a generation, and that a device that is slower for being shared is left alone. */
static void test_speed(void **state) {
    (void)state;
    wick_balancer *const balancer = make(WICK_BALANCE_SPEED);
    wick_replica replicas[N];
    wick_session *sessions[N];
    for (int i = 0; i < N; i++) { /* each is tried once */
        sessions[i] = open_session(balancer);
        assert_int_equal(n_sessions(balancer, (size_t)i), 1);
        generate(sessions[i]);
    }
    (void)wick_balancer_replicas(balancer, replicas, N);
    for (int i = 0; i < N; i++) {
        assert_int_equal(replicas[i].usage.n_generated, 20);
        assert_int_equal(replicas[i].usage.n_prompt, 5);
        assert_int_equal(replicas[i].usage.n_running, 0);
        assert_true(replicas[i].usage.busy_seconds > 0);
        assert_true(replicas[i].tokens_per_second == 25 / replicas[i].usage.busy_seconds);
        assert_true(replicas[i].memory_used > 0);
    }
    wick_session_close(sessions[2]);
    static const double n_sharing[N] = {2, 2, 1}; /* with the session that is to come */
    size_t best = 0;
    for (size_t i = 1; i < N; i++)
        if (replicas[i].tokens_per_second / n_sharing[i] >
            replicas[best].tokens_per_second / n_sharing[best])
            best = i;
    sessions[2] = open_session(balancer);
    assert_int_equal(n_sessions(balancer, best), best == 2 ? 1 : 2);
    for (int i = 0; i < N; i++) wick_session_close(sessions[i]);
    wick_balancer_free(balancer);
}

/* The first device alone at 10 tokens a second; of the second one a session has half already. */
static void test_shared_speed(void **state) {
    (void)state;
    static const uint64_t speeds[] = {19, 20, 21};
    wick_balancer *const balancer = make(WICK_BALANCE_SPEED);
    wick_model_usage before[N];
    wick_session *busy, *session;
    assert_int_equal(wick_session_open(models[1], &small, &busy, NULL), WICK_OK);
    for (int i = 0; i < N; i++) {
        before[i] = models[i]->usage;
        models[i]->usage.n_prompt = 0;
        models[i]->usage.n_generated = i == 0 ? 10 : 1;
        models[i]->usage.busy_seconds = 1;
    }
    for (size_t k = 0; k < sizeof speeds / sizeof *speeds; k++) {
        models[1]->usage.n_generated = speeds[k];
        session = open_session(balancer);
        assert_int_equal(n_sessions(balancer, 0), speeds[k] <= 20);
        assert_int_equal(n_sessions(balancer, 1), 1 + (speeds[k] > 20));
        wick_session_close(session);
    }
    wick_session_close(busy);
    for (int i = 0; i < N; i++) models[i]->usage = before[i];
    models[1]->usage.n_sessions = 0;
    wick_balancer_free(balancer);
}

static wick_session *open_for(wick_balancer *balancer, const uint32_t *ids, uint32_t n) {
    static const wick_session_desc desc = {.context_length = 256, .max_tokens = 1};
    wick_session *session;
    assert_int_equal(wick_balancer_open_session_for(balancer, ids, n, &desc, &session, NULL),
                     WICK_OK);
    return session;
}

/* A text goes on where half of it was read, though it is the turn of another one. */
static void test_prefix(void **state) {
    (void)state;
    uint32_t ids[205];
    wick_event event;
    wick_session_stats stats;
    wick_session *sessions[3];
    wick_balancer *const balancer = make(WICK_BALANCE_ROUND_ROBIN);
    for (uint32_t i = 0; i < 205; i++) ids[i] = 3 + i * 7 % 500;
    sessions[0] = open_for(balancer, ids, 100);
    assert_int_equal(n_sessions(balancer, 0), 1);
    assert_int_equal(wick_session_append_tokens(sessions[0], ids, 100), WICK_OK);
    do assert_int_equal(wick_session_next(sessions[0], &event), WICK_OK);
    while (event.kind != WICK_EVENT_END);
    wick_session_close(sessions[0]);
    sessions[0] = open_for(balancer, ids, 110);
    assert_int_equal(n_sessions(balancer, 0), 1);
    assert_int_equal(wick_session_append_tokens(sessions[0], ids, 110), WICK_OK);
    do assert_int_equal(wick_session_next(sessions[0], &event), WICK_OK);
    while (event.kind != WICK_EVENT_END);
    wick_session_get_stats(sessions[0], &stats);
    assert_int_equal(stats.n_reused, 100);
    wick_model_trim(models[0]);                     /* the 110 are those of an open session */
    sessions[1] = open_for(balancer, ids + 1, 100); /* of another text nothing is known */
    assert_int_equal(n_sessions(balancer, 1), 1);
    for (int i = 0; i < 2; i++) wick_session_close(sessions[i]);
    sessions[2] = open_for(balancer, ids, 205); /* half of it and more */
    assert_int_equal(n_sessions(balancer, 0), 1);
    wick_session_close(sessions[2]);
    wick_model_trim(models[0]);
    sessions[2] = open_for(balancer, ids, 110);
    assert_int_equal(n_sessions(balancer, 1), 1);
    wick_session_close(sessions[2]);
    wick_balancer_free(balancer);
}

static size_t choose_last(void *user, const wick_replica *replicas, size_t n) {
    *(size_t *)user += replicas[n - 1].usage.n_sessions;
    return n - 1;
}

static size_t choose_none(void *user, const wick_replica *replicas, size_t n) {
    (void)user;
    (void)replicas;
    return n;
}

static void test_custom(void **state) {
    (void)state;
    size_t seen = 0;
    wick_balancer *balancer;
    wick_session *sessions[2];
    const wick_balancer_desc desc = {.choose = choose_last, .user = &seen};
    assert_int_equal(wick_balancer_make(models, N, &desc, &balancer, NULL), WICK_OK);
    sessions[0] = open_session(balancer);
    sessions[1] = open_session(balancer);
    assert_int_equal(seen, 1);
    assert_int_equal(n_sessions(balancer, N - 1), 2);
    wick_session_close(sessions[0]);
    wick_session_close(sessions[1]);
    wick_balancer_free(balancer);

    wick_error error = {0};
    const wick_balancer_desc none = {.choose = choose_none};
    assert_int_equal(wick_balancer_make(models, N, &none, &balancer, NULL), WICK_OK);
    assert_int_equal(wick_balancer_open_session(balancer, &small, &sessions[0], &error),
                     WICK_ERR_CANCELLED);
    assert_null(sessions[0]);
    assert_non_null(strstr(error.message, "chosen"));
    wick_balancer_free(balancer);
}

/* A device that has no memory for the first buffer beyond the model's. */
static void open_full(wick_device **device, wick_model **model) {
    wick_device_desc desc = {.backend = WICK_BACKEND_NULL, .null_refused = 1};
    while (open_model(&desc, device, model) != WICK_OK) {
        wick_device_close(*device);
        assert_in_range(++desc.null_refused, 1, 1000);
    }
}

static void test_refusal(void **state) {
    (void)state;
    wick_device *device;
    wick_model *both[2] = {NULL, models[0]};
    wick_balancer *balancer;
    wick_session *session;
    wick_replica replicas[2];
    open_full(&device, &both[0]);
    assert_int_equal(wick_balancer_make(both, 2, NULL, &balancer, NULL), WICK_OK);
    session = open_session(balancer); /* the first one refuses, the other takes it */
    (void)wick_balancer_replicas(balancer, replicas, 2);
    assert_int_equal(replicas[0].n_refused, 1);
    assert_int_equal(replicas[0].usage.n_sessions, 0);
    assert_int_equal(replicas[1].usage.n_sessions, 1);
    generate(session);
    wick_session_close(session);
    wick_balancer_free(balancer);
    wick_model_close(both[0]);
    wick_device_close(device);

    wick_error error = {0};
    open_full(&device, &both[0]);
    assert_int_equal(wick_balancer_make(both, 1, NULL, &balancer, NULL), WICK_OK);
    assert_int_equal(wick_balancer_open_session(balancer, &small, &session, &error),
                     WICK_ERR_OUT_OF_MEMORY);
    assert_true(error.bytes_requested > 0);
    assert_null(session);
    wick_balancer_free(balancer);
    wick_model_close(both[0]);
    wick_device_close(device);
}

static void test_bad_input(void **state) {
    (void)state;
    wick_balancer *balancer;
    wick_session *session;
    wick_model *const holed[] = {models[0], NULL};
    const wick_balancer_desc unknown = {.balance = WICK_BALANCE_COUNT_};
    assert_int_equal(wick_balancer_make(models, N, NULL, NULL, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_balancer_make(NULL, 1, NULL, &balancer, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_balancer_make(holed, 2, NULL, &balancer, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_balancer_make(models, 0, NULL, &balancer, NULL), WICK_ERR_VALUE);
    assert_int_equal(wick_balancer_make(models, N, &unknown, &balancer, NULL), WICK_ERR_VALUE);
    assert_null(balancer);
    assert_int_equal(wick_balancer_open_session(NULL, NULL, &session, NULL), WICK_ERR_ARGUMENT);
    wick_balancer_free(NULL);
    assert_int_equal(wick_balancer_replicas(NULL, NULL, 0), 0);

    /* A session that no device would open is refused at once. */
    wick_error error = {0};
    balancer = make(WICK_BALANCE_ROUND_ROBIN);
    const wick_session_desc wrong = {.n_logprobs = 1 << 20};
    assert_int_equal(wick_balancer_open_session(balancer, &wrong, &session, &error),
                     WICK_ERR_VALUE);
    assert_null(session);
    assert_true(error.message[0] != '\0');
    wick_balancer_free(balancer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_robin), cmocka_unit_test(test_load),
        cmocka_unit_test(test_speed),       cmocka_unit_test(test_shared_speed),
        cmocka_unit_test(test_prefix),      cmocka_unit_test(test_custom),
        cmocka_unit_test(test_refusal),     cmocka_unit_test(test_bad_input),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
