/* Fuzzes saved sessions: any bytes are refused with a sentence and leave the
 * session empty, or make one that can be stepped and saved again.
 *
 * The first byte of an input says whether the checksums of the model, the size and the checksum of
 * all of it are put right, so that the code after those checks is reached. */
#include "core/checksum.h"
#include "llm/session_image.h"
#include "small_model.h"

#include <wick/wick.h>

#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 16 };

static void require(bool is_true) {
    if (!is_true) abort();
}

static wick_session *open_session(void) {
    static gguf_bytes file; /* the model reads it as long as it lives */
    wick_device *device;
    wick_model_loading *loading;
    wick_model *model;
    wick_session *session;
    const wick_device_desc on = {.backend = WICK_BACKEND_CPU, .n_threads = 1};
    const small_model small = small_model_make();
    small_write(&small, true, &file);
    require(wick_device_open(&on, &device, NULL) == WICK_OK);
    const wick_source source = wick_source_memory(file.data, file.size);
    require(wick_model_open_start(device, source, NULL, &loading, NULL) == WICK_OK);
    while (wick_model_open_poll(loading, NULL) == WICK_PENDING) {
    }
    require(wick_model_open_finish(loading, &model, NULL) == WICK_OK);
    const wick_session_desc desc = {.context_length = 80, .max_tokens = 3};
    require(wick_session_open(model, &desc, &session, NULL) == WICK_OK);
    return session;
}

static wick_status count_bytes(void *user, const void *bytes, size_t size, wick_error *error) {
    (void)bytes;
    (void)error;
    *(size_t *)user += size;
    return WICK_OK;
}

/* What is right by itself is of no interest: the first byte's bits say what is made so. */
static void put_right(const wick_session *session, uint8_t what, uint8_t *image, size_t size) {
    wk_image_header own;
    wk_image_describe(session, &own);
    wk_image_header *const header = (wk_image_header *)(void *)image;
    if (what & 1) memcpy(header->magic, own.magic, sizeof own.magic);
    if (what & 1) header->fields[WK_IMAGE_FORMAT] = WK_IMAGE_VERSION;
    if (what & 2) header->fields[WK_IMAGE_MODEL] = own.fields[WK_IMAGE_MODEL];
    if (what & 2) header->fields[WK_IMAGE_WEIGHTS] = own.fields[WK_IMAGE_WEIGHTS];
    if (what & 4) header->fields[WK_IMAGE_BYTES] = size;
    const uint64_t sum = wk_checksum(WK_CHECKSUM_BEGIN, image, size - sizeof sum);
    if (what & 8) memcpy(image + size - sizeof sum, &sum, sizeof sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static wick_session *session;
    static _Alignas(8) uint8_t image[MOST];
    if (session == NULL) session = open_session();
    if (size < 1 || size - 1 > MOST) return 0;
    memcpy(image, data + 1, size - 1);
    wick_session_reset(session);
    if (size - 1 >= sizeof(wk_image_header) + 8) put_right(session, data[0], image, size - 1);

    wick_session_loading *loading;
    wick_error error = {.status = WICK_OK};
    const wick_source source = wick_source_memory(image, size - 1);
    require(wick_session_load_start(session, source, &loading, &error) == WICK_OK);
    while (wick_session_load_poll(loading) == WICK_PENDING) {
    }
    const wick_status status = wick_session_load_finish(loading, &error);
    require(status == error.status && (status == WICK_OK) == (error.message[0] == '\0'));
    size_t n, n_saved = 0;
    (void)wick_session_tokens(session, &n);
    require(status == WICK_OK || n == 0);
    if (status != WICK_OK) return 0;

    wick_session_saving *saving;
    require(wick_session_save_start(session, count_bytes, &n_saved, &saving, NULL) == WICK_OK);
    while (wick_session_save_poll(saving) == WICK_PENDING) {
    }
    require(wick_session_save_finish(saving, NULL) == WICK_OK && n_saved == size - 1);
    wick_event event = {.kind = WICK_EVENT_PENDING};
    while (event.kind != WICK_EVENT_END && wick_session_next(session, &event) == WICK_OK) {
    }
    return 0;
}
