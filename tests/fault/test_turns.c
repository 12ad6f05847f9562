/* Nothing waits inside a call: on a null device that answers nothing before the next wick_pause, as
 * a page's GPU answers nothing before the page's code returns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backend/null/null.h"
#include "loss.h"

enum { N_SUMS = 400, N_NUMBERS = 6 }; /* more sums than the queue gathers */

static wick_device *device;
static wick_model *model;
static uint64_t n_turns;

static void begin_turn(void) {
    wick_pause(device);
    n_turns = wk_null_turns(device->handle);
}

/* Passes the status of a call on, which must not have begun a turn of its own. */
static wick_status at_once(wick_status status) {
    assert_true(wk_null_turns(device->handle) == n_turns);
    return status;
}

static void load_model(void) {
    wick_model_loading *loading;
    wick_error error = {.status = WICK_OK};
    wick_source source;
    assert_int_equal(wick_source_file(stories_path(), &source, &error), WICK_OK);
    begin_turn();
    assert_int_equal(at_once(wick_model_open_start(device, source, NULL, &loading, &error)),
                     WICK_OK);
    while (at_once(wick_model_open_poll(loading, NULL)) == WICK_PENDING) begin_turn();
    if (at_once(wick_model_open_finish(loading, &model, &error)) != WICK_OK)
        fail_msg("%s", error.message);
}

static void open_place(wick_device_desc desc) {
    wick_error error = {.status = WICK_OK};
    desc.backend = WICK_BACKEND_NULL;
    desc.null_flags |= WICK_NULL_TURNS;
    desc.n_threads = 1;
    if (wick_device_open(&desc, &device, &error) != WICK_OK) fail_msg("%s", error.message);
    load_model();
}

static void close_place(void) {
    wick_model_close(model);
    wick_device_close(device);
}

/* --- Sessions --- */

static wick_session *begin_session(void) {
    const wick_session_desc desc = {
        .context_length = 64, .max_tokens = 8, .ignore_end = true, .chunk_length = 8};
    wick_session *session;
    wick_error error = {.status = WICK_OK};
    if (at_once(wick_session_open(model, &desc, &session, &error)) != WICK_OK)
        fail_msg("%s", error.message);
    assert_int_equal(at_once(wick_session_append_text(session, prompt)), WICK_OK);
    return session;
}

/* False: it was the last event. */
static bool step(wick_session *session, told *it) {
    wick_event event;
    wick_error error = {.status = WICK_OK};
    if (at_once(wick_session_step(session, &event)) != WICK_OK) {
        (void)wick_session_error(session, &error);
        fail_msg("%s", error.message);
    }
    hear(it, &event);
    return event.kind != WICK_EVENT_END;
}

static const told *wanted(void) {
    static told want;
    if (want.n_tokens > 0) return &want;
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .n_threads = 1};
    wick_event event;
    wick_device *cpu;
    wick_session *session;
    assert_int_equal(wick_device_open(&desc, &cpu, NULL), WICK_OK);
    assert_int_equal(wick_model_open(cpu, stories_path(), NULL, &model, NULL), WICK_OK);
    const wick_session_desc text = {.context_length = 64, .max_tokens = 8, .ignore_end = true};
    assert_int_equal(wick_session_open(model, &text, &session, NULL), WICK_OK);
    assert_int_equal(wick_session_append_text(session, prompt), WICK_OK);
    do {
        assert_int_equal(wick_session_next(session, &event), WICK_OK);
        hear(&want, &event);
    } while (event.kind != WICK_EVENT_END);
    wick_session_close(session);
    wick_model_close(model);
    wick_device_close(cpu);
    return &want;
}

static void check_text(const told *got) {
    assert_int_equal(got->n_tokens, wanted()->n_tokens);
    assert_int_equal(got->size, wanted()->size);
    assert_memory_equal(got->text, wanted()->text, got->size);
}

/* As on a GPU, without fused kernels, without any kernel, and with each result compared. */
static const wick_device_desc devices[] = {
    {.null_flags = 0},
    {.null_flags = WICK_NULL_NO_FUSED | WICK_NULL_OUT_OF_ORDER},
    {.null_flags = WICK_NULL_NO_KERNELS},
    {.null_flags = 0, .verify = true},
    {.null_flags = WICK_NULL_LATE, .profile = true},
};
enum { N_DEVICES = sizeof devices / sizeof *devices };

/* Where they are timed: which kernels have run, and for how many calls. */
static void check_profile(bool is_profiled) {
    wick_kernel_stats kernels[64];
    const size_t n = wick_device_get_profile(device, kernels, 64);
    assert_int_equal(n > 0, is_profiled);
    assert_true(n < 64);
    uint64_t n_attentions = 0;
    for (size_t i = 0; i < n; i++) {
        assert_true(kernels[i].calls > 0 && kernels[i].seconds > 0);
        if (strncmp(kernels[i].name, "attention_cached", 16) == 0) n_attentions += kernels[i].calls;
    }
    /* One of each of 5 layers, in a batch for each of 8 tokens and those of the prompt. */
    assert_true(!is_profiled || (n_attentions % 5 == 0 && n_attentions >= 5 * 8));
}

static void test_sessions(void **state) {
    (void)state;
    (void)wanted();
    for (int i = 0; i < N_DEVICES; i++) {
        told got = {.size = 0};
        open_place(devices[i]);
        wick_session *const session = begin_session();
        while (step(session, &got)) begin_turn();
        check_text(&got);
        check_profile(devices[i].profile);
        wick_session_close(session);
        close_place();
    }
}

typedef struct image {
    unsigned char data[1 << 20];
    size_t size;
} image;

static wick_status write_bytes(void *user, const void *bytes, size_t size, wick_error *error) {
    image *const to = user;
    if (to->size + size > sizeof to->data) return WICK_ERR_IO;
    (void)error;
    memcpy(to->data + to->size, bytes, size);
    to->size += size;
    return WICK_OK;
}

static void test_saving(void **state) {
    static image saved;
    (void)state;
    open_place((wick_device_desc){.null_flags = 0});
    told got = {.size = 0};
    wick_session *session = begin_session();
    while (got.n_tokens < 4 && step(session, &got)) begin_turn();

    wick_error error = {.status = WICK_OK};
    wick_session_saving *saving;
    wick_session_loading *loading;
    assert_int_equal(
        at_once(wick_session_save_start(session, write_bytes, &saved, &saving, &error)), WICK_OK);
    while (at_once(wick_session_save_poll(saving)) == WICK_PENDING) begin_turn();
    if (at_once(wick_session_save_finish(saving, &error)) != WICK_OK) fail_msg("%s", error.message);
    wick_session_close(session);

    session = begin_session();
    wick_session_reset(session);
    const wick_source source = wick_source_memory(saved.data, saved.size);
    assert_int_equal(at_once(wick_session_load_start(session, source, &loading, &error)), WICK_OK);
    while (at_once(wick_session_load_poll(loading)) == WICK_PENDING) begin_turn();
    if (at_once(wick_session_load_finish(loading, &error)) != WICK_OK)
        fail_msg("%s", error.message);
    while (step(session, &got)) begin_turn();
    check_text(&got);
    wick_session_close(session);
    close_place();
}

/* --- Tensors beside a session --- */

/* The sum of N_SUMS ones, in a type that no GPU computes with. */
static wick_reading *begin_sums(wick_tensor **sum) {
    const double zeros[N_NUMBERS] = {0};
    wick_reading *reading;
    *sum = wick_empty(device, WICK_F64, WICK_SHAPE(N_NUMBERS));
    assert_int_equal(at_once(wick_write(*sum, zeros, sizeof zeros)), WICK_OK);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const one = wick_full(device, WICK_F64, WICK_SHAPE(1), 1.0);
    wick_tensor *x = *sum;
    for (int i = 0; i < N_SUMS; i++) x = wick_add(x, one);
    assert_ptr_equal(wick_copy(*sum, x), *sum);
    wick_scope_end(scope);
    assert_int_equal(at_once(wick_read_start(*sum, &reading)), WICK_OK);
    /* Written after the read was asked for: it must not see this. */
    assert_int_equal(at_once(wick_write(*sum, zeros, sizeof zeros)), WICK_OK);
    return reading;
}

static void test_tensors(void **state) {
    (void)state;
    (void)wanted();
    for (int i = 0; i < N_DEVICES; i++) {
        told got = {.size = 0};
        double sums[N_NUMBERS];
        wick_tensor *sum;
        open_place(devices[i]);
        wick_session *const session = begin_session();
        wick_reading *const reading = begin_sums(&sum);
        bool is_going = true, is_pending = true;
        while (is_going || is_pending) {
            begin_turn();
            if (is_going) is_going = step(session, &got);
            is_pending = at_once(wick_read_poll(reading)) == WICK_PENDING;
        }
        assert_int_equal(at_once(wick_read_finish(reading, sums, sizeof sums)), WICK_OK);
        for (int k = 0; k < N_NUMBERS; k++) assert_float_equal(sums[k], N_SUMS, 0);
        check_text(&got);
        wick_release(sum);
        wick_session_close(session);
        close_place();
    }
}

/* --- Blocking calls begin turns, and so come to an end --- */

static void test_blocking(void **state) {
    (void)state;
    open_place((wick_device_desc){.null_flags = 0});
    const float two[2] = {1, 2};
    float sum[2];
    wick_tensor *const x = wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(2), two, sizeof two);
    wick_tensor *const y = wick_add(x, x);
    assert_int_equal(wick_read(y, sum, sizeof sum), WICK_OK);
    assert_float_equal(sum[1], 4, 0);
    assert_int_equal(wick_synchronize(device), WICK_OK);
    wick_release(x);
    wick_release(y);
    close_place();
}

/* A caller that polls without a pause gets an error. */
static void test_waiting(void **state) {
    (void)state;
    open_place((wick_device_desc){.null_flags = 0});
    wick_tensor *const x = wick_full(device, WICK_F32, WICK_SHAPE(2), 1.0);
    wick_reading *reading;
    wick_status status;
    assert_int_equal(wick_read_start(x, &reading), WICK_OK);
    do status = wick_read_poll(reading);
    while (status == WICK_PENDING);
    assert_int_equal(status, WICK_ERR_INTERNAL);
    assert_int_not_equal(wick_read_finish(reading, NULL, 0), WICK_PENDING);
    wick_error error = {.status = WICK_OK};
    (void)wick_device_error(device, &error);
    assert_non_null(strstr(error.message, "waits"));
    wick_release(x);
    close_place();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sessions), cmocka_unit_test(test_saving),
        cmocka_unit_test(test_tensors),  cmocka_unit_test(test_blocking),
        cmocka_unit_test(test_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
