/* llm/session_save and session_load: what is saved in one session and loaded into another. Models,
 * weights, windows and outputs that differ are refused; of samplers that differ the text goes on.
 * On stories260K and the small model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "small_model.h"

#include "saved_session.h"

/* --- Models --- */

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
    assert_int_equal(wk_sequence_reserve(session->sequence, 10, NULL), WICK_OK);
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

/* --- What goes on --- */

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
            run(session, want, sizeof want);
            run(loaded, found, sizeof found);
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
    run(session, want, sizeof want);
    run(loaded, found, sizeof found);
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
    run(loaded, text, sizeof text);
    assert_string_equal(text, " ");
    run(session, text, sizeof text);
    assert_memory_equal(text, " girl", 5);
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

/* max_tokens counts what shifts have lost, also after loading. */
static void test_after_shifts(void **state) {
    static char left[1024], text[1024];
    static const wick_session_desc desc = {
        .context_length = 32, .max_tokens = 60, .context_shift = true, .ignore_end = true};
    (void)state;
    wick_session *const session = saved_session(&desc, &whole, 50);
    wick_session *const loaded = open_session(&desc);
    assert_int_equal(load(loaded, &whole, NULL), WICK_OK);
    assert_int_equal(run(session, left, sizeof left).reason, WICK_END_MAX_TOKENS);
    assert_int_equal(run(loaded, text, sizeof text).reason, WICK_END_MAX_TOKENS);
    assert_string_equal(text, left);
    wick_session_close(session);
    wick_session_close(loaded);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_model),   cmocka_unit_test(test_window_bound),
        cmocka_unit_test(test_other_weights), cmocka_unit_test(test_other_outputs),
        cmocka_unit_test(test_text),          cmocka_unit_test(test_taken_back),
        cmocka_unit_test(test_other_seed),    cmocka_unit_test(test_other_stop),
        cmocka_unit_test(test_other_grammar), cmocka_unit_test(test_after_shifts),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
