/* llm/session_save and session_load: what is refused, and that the session is empty and good
 * afterwards; cuts, flips and lies; sources and sinks that fail; files; other samplers. On the
 * small model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/checksum.h"
#include "llm/session_image.h"
#include "small_model.h"
#include "stories_session.h"

#include <string.h>
#include <unistd.h>

/* --- Bytes in memory --- */

typedef struct image {
    unsigned char data[1 << 20];
    size_t size, limit; /* limit > 0: what is beyond it is refused */
} image;

static image whole, other;

static wick_status write_bytes(void *user, const void *bytes, size_t size, wick_error *error) {
    image *const to = user;
    (void)error;
    if (to->limit > 0 && to->size + size > to->limit) return WICK_ERR_IO;
    assert_true(to->size + size <= sizeof to->data);
    memcpy(to->data + to->size, bytes, size);
    to->size += size;
    return WICK_OK;
}

static wick_status save(wick_session *session, image *to, wick_error *error) {
    wick_session_saving *saving;
    to->size = 0;
    assert_int_equal(wick_session_save_start(session, write_bytes, to, &saving, error), WICK_OK);
    while (wick_session_save_poll(saving) == WICK_PENDING) {
    }
    return wick_session_save_finish(saving, error);
}

static wick_status load_bytes(wick_session *session, const unsigned char *bytes, size_t size,
                              wick_error *error) {
    wick_session_loading *loading;
    assert_int_equal(
        wick_session_load_start(session, wick_source_memory(bytes, size), &loading, error),
        WICK_OK);
    while (wick_session_load_poll(loading) == WICK_PENDING) {
    }
    return wick_session_load_finish(loading, error);
}

static wick_status load(wick_session *session, const image *from, wick_error *error) {
    return load_bytes(session, from->data, from->size, error);
}

static wick_session *saved_session(const wick_session_desc *desc, image *to, uint32_t n_events) {
    wick_session *const session = open_session(desc);
    wick_event event;
    assert_int_equal(wick_session_append_text(session, "Once upon a time"), WICK_OK);
    for (uint32_t i = 0; i < n_events; i++)
        assert_int_equal(wick_session_next(session, &event), WICK_OK);
    assert_int_equal(save(session, to, NULL), WICK_OK);
    return session;
}

static size_t n_tokens(const wick_session *session) {
    size_t n;
    (void)wick_session_tokens(session, &n);
    return n;
}

static void check_refused(wick_session *session, const image *from, wick_status status,
                          const char *reason) {
    wick_error error = {0};
    assert_int_equal(load(session, from, &error), status);
    assert_int_equal(error.status, status);
    if (strstr(error.message, reason) == NULL) fail_msg("%s: %s", reason, error.message);
    assert_int_equal(n_tokens(session), 0);
    assert_int_equal(wick_device_error(device, NULL), WICK_OK);
}

/* The same lie with the checksum that belongs to it. */
static void set_field(image *to, wk_image_field which, uint64_t value) {
    memcpy(to->data + 8 + 8 * (size_t)which, &value, sizeof value);
    const uint64_t sum = wk_checksum(WK_CHECKSUM_BEGIN, to->data, to->size - 8);
    memcpy(to->data + to->size - 8, &sum, sizeof sum);
}

static const wick_session_desc greedy = {.context_length = 64, .max_tokens = 10};

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
    check_refused(session, &other, WICK_ERR_FORMAT, "no saved session");
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

static wick_model *open_small(const small_model *small) {
    static gguf_bytes file;
    wick_model_loading *loading;
    wick_model *opened;
    wick_error error = {0};
    small_write(small, true, &file);
    assert_int_equal(wick_model_open_start(device, wick_source_memory(file.data, file.size), NULL,
                                           &loading, &error),
                     WICK_OK);
    while (wick_model_open_poll(loading, NULL) == WICK_PENDING) {
    }
    if (wick_model_open_finish(loading, &opened, &error) != WICK_OK) fail_msg("%s", error.message);
    return opened;
}

static uint64_t bytes_of(const wick_session *session, const wk_image_header *header) {
    uint64_t bytes = sizeof *header + sizeof(uint64_t) + 4 * header->fields[WK_IMAGE_TOKENS] +
                     4 * header->fields[WK_IMAGE_LOGITS];
    wk_image_cursor cursor = {.layer = 0};
    wk_image_run run;
    while (wk_image_next(session, header, &cursor, &run)) bytes += wk_image_run_bytes(&run);
    return bytes;
}

/* What the next token sees through a window of 8 has to be there: after 10 tokens positions 3 to
 * 9, and itself. */
static void test_window_bound(void **state) {
    (void)state;
    wick_session *session;
    small_model small = small_model_make();
    small_set_u32(&small, "llama.attention.sliding_window", 8);
    wick_model *const windowed = open_small(&small);
    assert_int_equal(wick_session_open(windowed, NULL, &session, NULL), WICK_OK);
    for (uint32_t begin = 0; begin <= 11; begin++) {
        wk_image_header header;
        wk_image_describe(session, &header);
        header.fields[WK_IMAGE_TOKENS] = header.fields[WK_IMAGE_COMPUTED] = 10;
        header.fields[WK_IMAGE_CACHED] = 10;
        header.fields[WK_IMAGE_WINDOW_BEGIN] = begin;
        header.fields[WK_IMAGE_BYTES] = bytes_of(session, &header);
        assert_int_equal(wk_image_check(session, &header, NULL),
                         begin <= 3 ? WICK_OK : WICK_ERR_FORMAT);
    }
    wick_session_close(session);
    wick_model_close(windowed);
}

/* A model of the same shape but another name. */
static void test_other_model(void **state) {
    (void)state;
    wick_session *const session = saved_session(&greedy, &whole, 6);
    for (int i = 0; i < 2; i++) {
        small_model small = small_model_make();
        if (i == 1) small_set_text(&small, "general.name", "another");
        wick_session *of_tiny;
        wick_error error = {0};
        wick_model *const tiny = open_small(&small);
        assert_int_equal(wick_session_open(tiny, NULL, &of_tiny, &error), WICK_OK);
        check_refused(of_tiny, &whole, WICK_ERR_MISMATCH, "another model");
        if (i == 1) check_refused(of_tiny, &other, WICK_ERR_MISMATCH, "another model");
        assert_int_equal(wick_session_append_tokens(of_tiny, (const uint32_t[]){1}, 1), WICK_OK);
        assert_int_equal(save(of_tiny, &other, &error), WICK_OK);
        assert_int_equal(load(of_tiny, &other, &error), WICK_OK);
        wick_session_close(of_tiny);
        wick_model_close(tiny);
    }
    wick_session_close(session);
}

/* --- Weights --- */

/* The ways in which bytes come: mapped, where weights are used in place; read; pushed. */
typedef enum way { MAPPED, READ, PUSHED, WAY_COUNT } way;

static wick_model *open_bytes(const unsigned char *bytes, size_t size, way how) {
    const wick_model_desc desc = {.no_map = how == READ};
    wick_source source = wick_source_memory(bytes, size);
    wick_push_source *push = NULL;
    if (how == PUSHED) {
        assert_int_equal(wick_source_push_make(size, &source, &push), WICK_OK);
        for (size_t at = 0; at < size; at += 1000) {
            const size_t n = size - at < 1000 ? size - at : 1000;
            assert_int_equal(wick_source_push(push, bytes + at, n), WICK_OK);
        }
        wick_source_push_finish(push);
    }
    wick_model_loading *loading;
    wick_model *opened;
    wick_error error = {0};
    assert_int_equal(wick_model_open_start(device, source, &desc, &loading, &error), WICK_OK);
    while (wick_model_open_poll(loading, NULL) == WICK_PENDING) {
    }
    if (wick_model_open_finish(loading, &opened, &error) != WICK_OK) fail_msg("%s", error.message);
    return opened;
}

static wick_status load_into(wick_model *into, const image *from, wick_error *error) {
    wick_session *session;
    assert_int_equal(wick_session_open(into, &greedy, &session, error), WICK_OK);
    const wick_status status = load(session, from, error);
    wick_session_close(session);
    return status;
}

/* Only the model of the same weights takes it, whichever tensor differs, and however it comes. */
static void test_other_weights(void **state) {
    (void)state;
    static _Alignas(64) unsigned char bytes[2 << 20];
    char path[1024];
    snprintf(path, sizeof path, "%s/stories260K.gguf", getenv("WICK_TEST_DATA"));
    FILE *const stream = fopen(path, "rb");
    assert_non_null(stream);
    const size_t size = fread(bytes, 1, sizeof bytes, stream);
    fclose(stream);
    wick_session_close(saved_session(&greedy, &whole, 6));
    for (way how = MAPPED; how < WAY_COUNT; how++) {
        wick_model *const same = open_bytes(bytes, size, how);
        wick_error error = {0};
        if (load_into(same, &whole, &error) != WICK_OK) fail_msg("%s", error.message);
        wick_model_close(same);
    }
    wick_file *file;
    assert_int_equal(wick_file_open(path, &file, NULL), WICK_OK);
    const size_t n_tensors = wick_file_tensor_count(file);
    assert_true(n_tensors > 40);
    for (size_t i = 0; i < n_tensors; i++) {
        const wick_file_tensor *const tensor = wick_file_get_tensor(file, i);
        unsigned char *const byte = bytes + tensor->offset + (i % 2 ? tensor->size / 31 : 0);
        wick_error error = {0};
        *byte ^= 1;
        wick_model *const tuned = open_bytes(bytes, size, (way)(i % WAY_COUNT));
        if (load_into(tuned, &whole, &error) != WICK_ERR_MISMATCH)
            fail_msg("'%s' is not missed", tensor->name.text);
        assert_non_null(strstr(error.message, "other weights"));
        wick_model_close(tuned);
        *byte ^= 1;
    }
    wick_file_close(file);
}

/* --- Outputs --- */

/* Only sessions with the same output go on. One that chooses no tokens takes no logits to choose
 * from, also where the bytes are forged. */
static void test_other_outputs(void **state) {
    (void)state;
    for (int from = 0; from <= WICK_LOGITS_STATES; from++) {
        const wick_session_desc desc = {.context_length = 64, .logits = (wick_logits_mode)from};
        wick_session_close(saved_session(&desc, &whole, from == WICK_LOGITS_NONE ? 1 : 20));
        for (int to = 0; to <= WICK_LOGITS_STATES; to++) {
            const wick_session_desc other_desc = {.context_length = 64,
                                                  .logits = (wick_logits_mode)to};
            wick_session *const session = open_session(&other_desc);
            wick_event event;
            if (from != to) {
                check_refused(session, &whole, WICK_ERR_MISMATCH, "the saved session gives");
                other = whole;
                set_field(&other, WK_IMAGE_OUTPUT, (uint64_t)to);
                if (from == WICK_LOGITS_NONE)
                    check_refused(session, &other, WICK_ERR_FORMAT, "do not fit");
            } else {
                assert_int_equal(load(session, &whole, NULL), WICK_OK);
                assert_int_equal(wick_session_next(session, &event), WICK_OK);
                assert_int_equal(wick_session_append_text(session, " there"), WICK_OK);
                assert_int_equal(wick_session_next(session, &event), WICK_OK);
            }
            wick_session_close(session);
        }
    }
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

/* A batch that is being computed is waited for: what was saved goes on behind it. */
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

/* --- What goes on --- */

static void finish(wick_session *session, char *text, size_t capacity) {
    wick_event event;
    size_t size = 0;
    do {
        assert_int_equal(wick_session_next(session, &event), WICK_OK);
        assert_true(size + event.text_size < capacity);
        memcpy(text + size, event.text, event.text_size);
        size += event.text_size;
    } while (event.kind != WICK_EVENT_END);
    text[size] = '\0';
}

/* Draws, text that is held back, a grammar: whenever it is saved, the same text comes. */
static void test_text(void **state) {
    (void)state;
    static const char *const stops[] = {"Lily went to the park and never came back"};
    const wick_session_desc descs[] = {
        {.context_length = 128, .max_tokens = 40, .sampler = {.temperature = 1, .seed = 3}},
        {.context_length = 128,
         .max_tokens = 40,
         .stop = stops,
         .n_stop = 1,
         .sampler = {.temperature = 0.8F, .mirostat_tau = 3, .seed = 4, .xtc_probability = 0.3F}},
        {.context_length = 128,
         .max_tokens = 40,
         .sampler = {.temperature = 1, .seed = 5, .grammar = "root ::= [a-z ]+ \".\""}},
    };
    for (size_t d = 0; d < WK_COUNT(descs); d++) {
        for (uint32_t n_events = 0; n_events < 20; n_events += 3) {
            char want[1024], found[1024];
            wick_session *const session = saved_session(&descs[d], &whole, n_events);
            wick_session_desc desc = descs[d];
            if (n_events % 2 == 0) desc.sampler.seed = 0; /* it takes the generator over */
            wick_session *const loaded = open_session(&desc);
            assert_int_equal(load(loaded, &whole, NULL), WICK_OK);
            finish(session, want, sizeof want);
            finish(loaded, found, sizeof found);
            assert_string_equal(found, want);
            wick_session_stats stats;
            wick_session_get_stats(loaded, &stats);
            assert_int_equal(stats.seed, descs[d].sampler.seed);
            wick_session_close(session);
            wick_session_close(loaded);
        }
    }
}

/* Of a sequence that was taken back whole nothing is saved, its logits neither. */
static void test_taken_back(void **state) {
    (void)state;
    wick_session *const session = saved_session(&greedy, &whole, 1);
    assert_int_equal(wick_session_sync_tokens(session, NULL, 0), WICK_OK);
    assert_int_equal(save(session, &whole, NULL), WICK_OK);
    assert_int_equal(load(session, &whole, NULL), WICK_OK);
    assert_int_equal(n_tokens(session), 0);
    wick_session_close(session);
}

static void test_other_seed(void **state) {
    (void)state;
    wick_session_desc desc = {
        .context_length = 128, .max_tokens = 40, .sampler = {.temperature = 2, .seed = 3}};
    char want[1024], found[1024];
    wick_session *const session = saved_session(&desc, &whole, 8);
    desc.sampler.seed = 4;
    wick_session *const loaded = open_session(&desc);
    assert_int_equal(load(loaded, &whole, NULL), WICK_OK);
    finish(session, want, sizeof want);
    finish(loaded, found, sizeof found);
    assert_string_not_equal(found, want);
    wick_session_close(session);
    wick_session_close(loaded);
}

/* What was let out stays so; what comes is looked at. */
static void test_other_stop(void **state) {
    (void)state;
    static const char *const stops[] = {"there", "girl"};
    wick_session *const session = saved_session(&greedy, &whole, 6);
    wick_session_desc desc = greedy;
    desc.max_tokens = 30;
    desc.stop = stops;
    desc.n_stop = 2;
    char text[1024];
    wick_session *const loaded = open_session(&desc);
    assert_int_equal(load(loaded, &whole, NULL), WICK_OK);
    finish(loaded, text, sizeof text);
    wick_session_close(session);
    wick_session_close(loaded);
}

static void test_other_grammar(void **state) {
    (void)state;
    wick_session *const session = saved_session(&greedy, &whole, 8);
    wick_session_desc desc = greedy;
    desc.sampler.grammar = "root ::= \"0\"";
    wick_session *const loaded = open_session(&desc);
    check_refused(loaded, &whole, WICK_ERR_VALUE, "the grammar does not allow");
    wick_session_close(session);
    wick_session_close(loaded);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lies),          cmocka_unit_test(test_damage),
        cmocka_unit_test(test_stream),        cmocka_unit_test(test_other_model),
        cmocka_unit_test(test_misuse),        cmocka_unit_test(test_running),
        cmocka_unit_test(test_logits_mode),   cmocka_unit_test(test_sink),
        cmocka_unit_test(test_files),         cmocka_unit_test(test_text),
        cmocka_unit_test(test_other_seed),    cmocka_unit_test(test_other_grammar),
        cmocka_unit_test(test_other_stop),    cmocka_unit_test(test_taken_back),
        cmocka_unit_test(test_other_weights), cmocka_unit_test(test_other_outputs),
        cmocka_unit_test(test_window_bound),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
