/* Memory that runs out: for every n the n-th allocation of a run fails, alone or with all that
 * follow. Then the status is WICK_ERR_OUT_OF_MEMORY with a sentence, nothing leaks, no file is
 * left, and where memory is there again the same does what it always did.
 *
 * Every heap of the library takes its memory from the one that refuses here: the program is linked
 * with --wrap=wk_heap_init. */
#ifndef NO_MEMORY_H
#define NO_MEMORY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "amount.h"
#include "checked_heap.h"

#include <wick/wick.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static checked_heap poor = {.n_allowed = UINT64_MAX};
static wick_device *device;
static wick_model *model;
static char folder[64], out_path[128];

void __real_wk_heap_init(wk_heap *heap, const wick_allocator *hook);
void __wrap_wk_heap_init(wk_heap *heap, const wick_allocator *hook);
void __wrap_wk_heap_init(wk_heap *heap, const wick_allocator *hook) {
    (void)hook;
    const wick_allocator refusing = {checked_allocate, checked_release, &poor};
    __real_wk_heap_init(heap, &refusing);
}

/* What a run gives: the same bytes each time. */
typedef struct outcome {
    unsigned char bytes[1 << 16];
    size_t size;
} outcome;

static void note(outcome *out, const void *bytes, size_t size) {
    const size_t room = sizeof out->bytes - out->size, n = size < room ? size : room;
    memcpy(out->bytes + out->size, bytes, n);
    out->size += n;
}

/* From nothing to nothing. A failure's sentence goes to error. */
typedef wick_status (*scenario)(outcome *out, wick_error *error);

/* The sentence of a failure of the session. */
static wick_status keep(const wick_session *session, wick_status status, wick_error *error) {
    return status == WICK_OK ? WICK_OK : wick_session_error(session, error);
}

static wick_status note_text(wick_session *session, outcome *out, wick_error *error) {
    wick_event event;
    do {
        const wick_status status = keep(session, wick_session_next(session, &event), error);
        if (status != WICK_OK) return status;
        note(out, event.text, event.text_size);
    } while (event.kind != WICK_EVENT_END);
    return WICK_OK;
}

static const wick_session_desc greedy = {.context_length = 64, .max_tokens = 4};

/* --- Failing --- */

/* Blocks in use, when device and model keep nothing for later: so that each run allocates the
 * same. */
static uint64_t count_live(void) {
    wick_model_trim(model);
    assert_int_equal(wick_device_trim(device, NULL, NULL), WICK_OK);
    return poor.n_live;
}

/* One run in which allocation n fails; false: there was none of that number. */
static bool fail_at(scenario run, uint64_t n, bool once, const outcome *want) {
    static outcome got;
    wick_error error = {.status = WICK_OK};
    got = (outcome){.size = 0};
    (void)count_live();
    poor.n_allowed = n, poor.refuses_once = once, poor.n_refused = 0;
    const wick_status status = run(&got, &error);
    const bool was_refused = poor.n_refused > 0;
    poor.n_allowed = UINT64_MAX;
    if (status != WICK_OK && (status != WICK_ERR_OUT_OF_MEMORY || error.status != status ||
                              error.message[0] == '\0' || !was_refused))
        fail_msg("allocation %u%s: status %d, %d: '%s'", (unsigned)n, once ? "" : " and all later",
                 (int)status, (int)error.status, error.message);
    if (status == WICK_OK) assert_memory_equal(&got, want, sizeof got);
    if (access(out_path, F_OK) == 0) fail_msg("allocation %u: a file is left", (unsigned)n);
    assert_int_equal(poor.n_wrong_sizes, 0);
    assert_int_equal(wick_device_error(device, NULL), WICK_OK);
    return was_refused;
}

/* step: from one allocation that fails to the next. */
static void fail_at_each(scenario run, uint64_t step, uint64_t n_at_least) {
    static outcome want, again;
    wick_error error = {.status = WICK_OK};
    want = again = (outcome){.size = 0};
    poor.n_wrong_sizes = 0;
    if (run(&want, &error) != WICK_OK) fail_msg("%s", error.message);
    assert_true(want.size > 0);
    const uint64_t n_live = count_live(); /* of the model and the device */
    uint64_t n = 0;
    while (fail_at(run, n, false, &want)) n += step;
    for (uint64_t i = 0; i < n; i += step) assert_true(fail_at(run, i, true, &want));
    assert_true(n >= n_at_least);
    if (run(&again, &error) != WICK_OK) fail_msg("and then: %s", error.message);
    assert_memory_equal(&again, &want, sizeof want);
    assert_int_equal(count_live(), n_live);
    print_message("%u allocations\n", (unsigned)n);
}

static void fail_everywhere(scenario run, uint64_t n_at_least) {
    fail_at_each(run, failing_step(), n_at_least);
}

#define TEST(name, run, n_at_least)                                                                \
    static void name(void **state) {                                                               \
        (void)state;                                                                               \
        fail_everywhere(run, n_at_least);                                                          \
    }

static int setup(void **state) {
    (void)state;
    char path[1024];
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .n_threads = 1};
    snprintf(path, sizeof path, "%s/stories260K.gguf", getenv("WICK_TEST_DATA"));
    const char *const top = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"; /* fsync is slow */
    snprintf(folder, sizeof folder, "%s/wick_no_memory_%ld", top, (long)getpid());
    snprintf(out_path, sizeof out_path, "%s/out", folder);
    if (mkdir(folder, 0700) != 0) return 1;
    if (wick_device_open(&desc, &device, NULL) != WICK_OK) return 1;
    return wick_model_open(device, path, NULL, &model, NULL) != WICK_OK;
}

static int teardown(void **state) {
    (void)state;
    wick_model_close(model);
    wick_device_close(device);
    /* It is empty: no temporary file is left. */
    return rmdir(folder) != 0 || poor.n_live != 0 || poor.n_wrong_sizes != 0;
}

#endif
