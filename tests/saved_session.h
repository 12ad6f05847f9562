/* tests/saved_session.h: sessions on stories260K saved to memory and loaded from it. */
#ifndef SAVED_SESSION_H
#define SAVED_SESSION_H

#include "core/checksum.h"
#include "llm/session_image.h"
#include "stories_session.h"

#include <string.h>

typedef struct image {
    unsigned char data[1 << 20];
    size_t size, limit; /* limit > 0: what is beyond it is refused */
} image;

static image whole, other;

static inline wick_status write_bytes(void *user, const void *bytes, size_t size,
                                      wick_error *error) {
    image *const to = user;
    (void)error;
    if (to->limit > 0 && to->size + size > to->limit) return WICK_ERR_IO;
    assert_true(to->size + size <= sizeof to->data);
    memcpy(to->data + to->size, bytes, size);
    to->size += size;
    return WICK_OK;
}

static inline wick_status save(wick_session *session, image *to, wick_error *error) {
    wick_session_saving *saving;
    to->size = 0;
    assert_int_equal(wick_session_save_start(session, write_bytes, to, &saving, error), WICK_OK);
    while (wick_session_save_poll(saving) == WICK_PENDING) {
    }
    return wick_session_save_finish(saving, error);
}

static inline wick_status load_bytes(wick_session *session, const unsigned char *bytes, size_t size,
                                     wick_error *error) {
    wick_session_loading *loading;
    assert_int_equal(
        wick_session_load_start(session, wick_source_memory(bytes, size), &loading, error),
        WICK_OK);
    while (wick_session_load_poll(loading) == WICK_PENDING) {
    }
    return wick_session_load_finish(loading, error);
}

static inline wick_status load(wick_session *session, const image *from, wick_error *error) {
    return load_bytes(session, from->data, from->size, error);
}

static inline wick_session *saved_session(const wick_session_desc *desc, image *to,
                                          uint32_t n_events) {
    wick_session *const session = open_session(desc);
    wick_event event;
    assert_int_equal(wick_session_append_text(session, "Once upon a time"), WICK_OK);
    for (uint32_t i = 0; i < n_events; i++)
        assert_int_equal(wick_session_next(session, &event), WICK_OK);
    assert_int_equal(save(session, to, NULL), WICK_OK);
    return session;
}

static inline size_t n_tokens(const wick_session *session) {
    size_t n;
    (void)wick_session_tokens(session, &n);
    return n;
}

static inline void check_refused(wick_session *session, const image *from, wick_status status,
                                 const char *reason) {
    wick_error error = {0};
    assert_int_equal(load(session, from, &error), status);
    assert_int_equal(error.status, status);
    if (strstr(error.message, reason) == NULL) fail_msg("%s: %s", reason, error.message);
    assert_int_equal(n_tokens(session), 0);
    assert_int_equal(wick_device_error(device, NULL), WICK_OK);
}

/* The same lie with the checksum that belongs to it. */
static inline void set_field(image *to, wk_image_field which, uint64_t value) {
    memcpy(to->data + 8 + 8 * (size_t)which, &value, sizeof value);
    const uint64_t sum = wk_checksum(WK_CHECKSUM_BEGIN, to->data, to->size - 8);
    memcpy(to->data + to->size - 8, &sum, sizeof sum);
}

static const wick_session_desc greedy = {.context_length = 64, .max_tokens = 10};

#endif
