/* tests/stories_session.h: the device and the model (stories260K) of a test group, and sessions on
 * them. */
#ifndef STORIES_SESSION_H
#define STORIES_SESSION_H

#include <wick/wick.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static wick_device *device;
static wick_model *model;

static int setup(void **state) {
    (void)state;
    char path[1024];
    snprintf(path, sizeof path, "%s/stories260K.gguf", getenv("WICK_TEST_DATA"));
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .n_threads = 2};
    if (wick_device_open(&desc, &device, NULL) != WICK_OK) return 1;
    return wick_model_open(device, path, NULL, &model, NULL) != WICK_OK;
}

static int teardown(void **state) {
    (void)state;
    wick_device_stats stats;
    wick_model_close(model);
    wick_device_get_stats(device, &stats);
    wick_device_close(device);
    return stats.buffer_bytes != 0;
}

static inline wick_session *open_session(const wick_session_desc *desc) {
    wick_session *session;
    wick_error error = {0};
    if (wick_session_open(model, desc, &session, &error) != WICK_OK) fail_msg("%s", error.message);
    return session;
}

/* Everything up to the end, which is returned: its text into out. */
static inline wick_event run(wick_session *session, char *out, size_t size) {
    wick_event event;
    size_t used = 0;
    do {
        assert_int_equal(wick_session_next(session, &event), WICK_OK);
        assert_true(used + event.text_size < size);
        memcpy(out + used, event.text, event.text_size);
        used += event.text_size;
    } while (event.kind != WICK_EVENT_END);
    out[used] = 0;
    return event;
}

#endif
