/* usage: webgpu_loss [--backend webgpu] --webgpu-lib LIBRARY
 * A GPU that is taken away in the middle of a text, as Dawn can do it on request: the text goes on
 * as if nothing had been. With the drivers that the environment names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "amount.h"
#include "backend/webgpu/gpu/gpu.h"
#include "backend/webgpu/webgpu.h"
#include "loss.h"

static const char *library;
static checked_heap heap;
static wick_device *device;
static wick_model *model;

static int open_with(int32_t device_layers) {
    wick_error error = {.status = WICK_OK};
    checked_heap_init(&heap, UINT64_MAX);
    const wick_device_desc desc = {
        .backend = WICK_BACKEND_WEBGPU, .allocator = heap.heap.hook, .webgpu.library = library};
    if (wick_device_open(&desc, &device, &error) != WICK_OK ||
        wick_model_open(device, stories_path(), &(wick_model_desc){.device_layers = device_layers},
                        &model, &error) != WICK_OK)
        fail_msg("%s", error.message);
    return 0;
}

static int set_up(void **state) {
    (void)state;
    return open_with(0);
}

/* The first layers are on the CPU, which is never lost. */
static int set_up_split(void **state) {
    (void)state;
    return open_with(2);
}

static int tear_down(void **state) {
    (void)state;
    wick_model_close(model);
    wick_device_close(device);
    assert_int_equal(heap.n_live, 0);
    assert_int_equal(heap.n_wrong_sizes, 0);
    return 0;
}

/* The whole text; each: tokens between two losses, 0: none. The loss comes after some steps of the
 * next token, so that it meets commands and reads on their way. */
static void tell(const wick_session_desc *desc, uint32_t each, told *it) {
    wick_session *session;
    assert_int_equal(wick_session_open(model, desc, &session, NULL), WICK_OK);
    assert_int_equal(wick_session_append_text(session, prompt), WICK_OK);
    uint32_t next = each, n_steps = 0;
    wick_event event;
    do {
        if (wick_session_step(session, &event) != WICK_OK) {
            wick_error error = {.status = WICK_OK};
            (void)wick_device_error(device, &error);
            fail_msg("%s", error.message);
        }
        hear(it, &event);
        if (event.kind == WICK_EVENT_PENDING) wick_pause(device);
        if (each == 0 || it->n_tokens < next) continue;
        if (n_steps++ < next % 4) continue;
        assert_true(wk_webgpu_lose(device->handle));
        next += each;
        n_steps = 0;
    } while (event.kind != WICK_EVENT_END);
    wick_session_close(session);
}

/* After each a driver in software compiles all kernels again. */
static void test_text_goes_on(void **state) {
    (void)state;
    const uint32_t n_losses = tests_all() ? 10 : 2;
    static told want, got;
    wick_device_stats stats;
    want = got = (told){.size = 0};
    tell(&tellers[1], 0, &want);
    tell(&tellers[1], tellers[1].max_tokens / (n_losses + 1), &got);
    assert_int_equal(got.n_tokens, want.n_tokens);
    if (got.size != want.size || memcmp(got.text, want.text, want.size) != 0)
        fail_msg("it goes '%.*s', not '%.*s'", (int)got.size, got.text, (int)want.size, want.text);
    wick_device_get_stats(device, &stats);
    assert_true(stats.n_losses >= n_losses);
    print_message("lost %u times\n", (unsigned)stats.n_losses);
}

static void test_text_of_some_layers_goes_on(void **state) {
    skip_unless_all();
    test_text_goes_on(state);
}

static void test_tensors_are_lost(void **state) {
    (void)state;
    float numbers[4] = {1, 2, 3, 4};
    wick_error error = {.status = WICK_OK};
    wick_tensor *const old = wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(4), numbers, 16);
    wick_reading *reading;
    assert_int_equal(wick_read_start(old, &reading), WICK_OK);
    (void)wick_read_poll(reading);
    assert_true(wk_webgpu_lose(device->handle));
    while (wick_read_poll(reading) == WICK_PENDING) continue;
    (void)wick_read_finish(reading, numbers, 16); /* may have been there already */
    while (wick_poll(device) >= 0) continue;
    (void)wick_device_error(device, &error);
    assert_int_equal(error.status, WICK_ERR_DEVICE_LOST);
    assert_int_equal(wick_read(old, numbers, 16), WICK_ERR_DEVICE_LOST);
    told it = {.size = 0};
    (void)wick_device_error(device, NULL);
    tell(&(wick_session_desc){.max_tokens = 3}, 0, &it);
    assert_int_equal(it.n_tokens, 3);
    assert_int_equal(wick_read(old, numbers, 16), WICK_ERR_DEVICE_LOST);
    (void)wick_device_error(device, NULL);
    wick_tensor *const fresh = wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(4), numbers, 16);
    assert_int_equal(wick_read(fresh, numbers, 16), WICK_OK);
    wick_release(fresh);
    wick_release(old);
}

/* Three tokens, then draws from whole rows of logits; is_lost: the row that the first of them needs
 * is lost past its shortlist. */
static void tell_wide(bool is_lost, told *it) {
    static const wick_session_desc wide = {
        .max_tokens = 20, .ignore_end = true, .sampler = {.temperature = 1, .seed = 5}};
    wick_session *session;
    wick_event event;
    *it = (told){.size = 0};
    assert_int_equal(wick_session_open(model, &tellers[0], &session, NULL), WICK_OK);
    assert_int_equal(wick_session_append_text(session, prompt), WICK_OK);
    while (it->n_tokens < 3) {
        assert_int_equal(wick_session_next(session, &event), WICK_OK);
        hear(it, &event);
    }
    while (wick_session_prepare(session) == WICK_PENDING) wick_pause(device);
    assert_int_equal(wick_session_configure(session, &wide, NULL), WICK_OK);
    if (is_lost) assert_true(wk_webgpu_lose(device->handle));
    do {
        assert_int_equal(wick_session_next(session, &event), WICK_OK);
        hear(it, &event);
    } while (event.kind != WICK_EVENT_END);
    wick_session_close(session);
}

static void test_row_is_lost_behind_its_shortlist(void **state) {
    (void)state;
    static told want, got;
    tell_wide(false, &want);
    tell_wide(true, &got);
    assert_int_equal(got.n_tokens, 20);
    assert_int_equal(got.size, want.size);
    assert_memory_equal(got.text, want.text, want.size);
    wick_device_stats stats;
    wick_device_get_stats(device, &stats);
    assert_int_equal(stats.n_losses, 1);
}

static void test_row_of_all_layers_is_lost(void **state) {
    skip_unless_all();
    test_row_is_lost_behind_its_shortlist(state);
}

/* Closing what is lost. */
static void test_closed_while_lost(void **state) {
    (void)state;
    wick_session *session;
    wick_event event;
    assert_int_equal(wick_session_open(model, &tellers[0], &session, NULL), WICK_OK);
    assert_int_equal(wick_session_append_text(session, prompt), WICK_OK);
    for (int i = 0; i < 5; i++) assert_int_equal(wick_session_step(session, &event), WICK_OK);
    assert_true(wk_webgpu_lose(device->handle));
    for (int i = 0; i < 5; i++) assert_int_equal(wick_session_step(session, &event), WICK_OK);
    wick_session_close(session);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_text_goes_on, set_up, tear_down),
    cmocka_unit_test_setup_teardown(test_text_of_some_layers_goes_on, set_up_split, tear_down),
    cmocka_unit_test_setup_teardown(test_row_of_all_layers_is_lost, set_up, tear_down),
    cmocka_unit_test_setup_teardown(test_row_is_lost_behind_its_shortlist, set_up_split, tear_down),
    cmocka_unit_test_setup_teardown(test_tensors_are_lost, set_up, tear_down),
    cmocka_unit_test_setup_teardown(test_closed_while_lost, set_up, tear_down),
};

/* Why this cannot be tested here, or NULL. */
static const char *why_not(wick_error *reason) {
    const wick_webgpu_desc webgpu = {.library = library};
    if (!library) return "no --webgpu-lib was given";
    if (wk_gpu_available(&webgpu, false, reason) != WICK_OK) return reason->message;
    const wick_device_desc desc = {.backend = WICK_BACKEND_WEBGPU, .webgpu.library = library};
    if (wick_device_open(&desc, &device, NULL) != WICK_OK) return NULL; /* as the tests will say */
    const bool can_lose = wk_webgpu_lose(device->handle);
    wick_device_close(device);
    return can_lose ? NULL : "this library takes no device away on request";
}

int main(int argc, char **argv) {
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], "--webgpu-lib") == 0) library = argv[i + 1];
    wick_error found = {0};
    const char *const reason = why_not(&found);
    if (!reason) return cmocka_run_group_tests(tests, NULL, NULL);
    printf("skipped: %s\n", reason);
    return 77;
}
