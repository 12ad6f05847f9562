/* Loading the vocabulary and its table of embeddings: keys that are wrong or do not fit, other
 * types, and a tokenizer without its model. */
#include "llm/llm.h"

#include <wick/session.h>

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "small_model.h"

#include <math.h>
#include <stdlib.h>

static wick_device *device;
static char path[1024];

static int begin(void **state) {
    (void)state;
    const char *const build = getenv("WICK_BUILD_DIR");
    snprintf(path, sizeof path, "%s/test_load_vocabulary.gguf", build != NULL ? build : ".");
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .n_threads = 1};
    return wick_device_open(&desc, &device, NULL) == WICK_OK ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    wick_device_close(device);
    remove(path);
    return 0;
}

static void write_path(const uint8_t *data, size_t size) {
    FILE *const out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(data, 1, size, out), size);
    assert_int_equal(fclose(out), 0);
}

static wick_status load(const gguf_bytes *file, wick_model **model, wick_error *error) {
    const wick_source source = wick_source_memory(file->data, file->size);
    wick_model_loading *loading;
    *error = (wick_error){.status = WICK_OK};
    *model = NULL;
    WK_TRY(wick_model_open_start(device, source, NULL, &loading, error));
    while (wick_model_open_poll(loading, NULL) == WICK_PENDING) continue;
    return wick_model_open_finish(loading, model, error);
}

static void expect(const small_model *small, wick_status status, const char *text) {
    static gguf_bytes file;
    small_write(small, true, &file);
    wick_model *model;
    wick_error error;
    const wick_status found = load(&file, &model, &error);
    if (found != status || strstr(error.message, text) == NULL)
        fail_msg("expected status %d and '%s', got %d: %s", (int)status, text, (int)found,
                 error.message);
    wick_model_close(model);
}

static void test_vocabulary(void **state) {
    (void)state;
    small_model small = small_model_make();
    small.n_tokens = SMALL_VOCAB + 1;
    expect(&small, WICK_ERR_FORMAT, "has 7 tokens, but the tensor 'token_embd.weight' has 6 rows");
    small.has_no_vocabulary = true;
    expect(&small, WICK_ERR_FORMAT, "tokenizer.ggml.tokens");
    small_set_u32(&small, "tokenizer.ggml.tokens", 5);
    expect(&small, WICK_ERR_FORMAT, "tokenizer.ggml.tokens");

    small = small_model_make();
    small_remove(&small, "tokenizer.ggml.model");
    expect(&small, WICK_ERR_FORMAT, "tokenizer.ggml.model");
    small_set_text(&small, "tokenizer.ggml.model", "words");
    expect(&small, WICK_ERR_UNSUPPORTED, "words");
    small_set_u32(&small, "tokenizer.ggml.model", 1);
    expect(&small, WICK_ERR_FORMAT, "tokenizer.ggml.model");

    static const char *const ids[] = {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id",
                                      "tokenizer.ggml.unknown_token_id",
                                      "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"};
    for (size_t i = 0; i < WK_COUNT(ids); i++) {
        small = small_model_make();
        small_set_u32(&small, ids[i], SMALL_VOCAB);
        expect(&small, WICK_ERR_FORMAT, ids[i]);
        small_set_text(&small, ids[i], "1");
        expect(&small, WICK_ERR_FORMAT, ids[i]);
        small_set(&small, ids[i], WICK_VALUE_I32, UINT32_MAX);
        expect(&small, WICK_OK, "");
    }
    static const char *const flags[] = {"tokenizer.ggml.add_bos_token",
                                        "tokenizer.ggml.add_eos_token",
                                        "tokenizer.ggml.add_space_prefix"};
    for (size_t i = 0; i < WK_COUNT(flags); i++) {
        small = small_model_make();
        small_set(&small, flags[i], WICK_VALUE_BOOL, 1);
        expect(&small, WICK_OK, "");
        small_set_u32(&small, flags[i], 1);
        expect(&small, WICK_ERR_FORMAT, flags[i]);
    }
    small = small_model_make();
    small_entry *const merges = small_find(&small, "tokenizer.ggml.merges");
    merges->type = WICK_VALUE_ARRAY;
    merges->n = 3;
    expect(&small, WICK_ERR_FORMAT, "'tokenizer.ggml.merges' must be an array of texts");

    static const char *const numbers[] = {"tokenizer.ggml.scores", "tokenizer.ggml.token_type"};
    for (size_t i = 0; i < WK_COUNT(numbers); i++) {
        small = small_model_make();
        small.has_only_tokens = true;
        expect(&small, WICK_ERR_FORMAT, "tokenizer.ggml.scores");
        small_entry *const array = small_find(&small, numbers[i]);
        array->type = WICK_VALUE_U32;
        expect(&small, WICK_ERR_FORMAT, numbers[i]);
        array->type = WICK_VALUE_ARRAY;
        array->n = SMALL_VOCAB - 1;
        expect(&small, WICK_ERR_FORMAT, numbers[i]);
    }
}

/* Each key that names an end names one more of them. */
static void test_ends(void **state) {
    (void)state;
    static const char *const keys[] = {
        "tokenizer.ggml.eos_token_id",     "tokenizer.ggml.eot_token_id",
        "tokenizer.ggml.eom_token_id",     "tokenizer.ggml.fim_pad_token_id",
        "tokenizer.ggml.fim_rep_token_id", "tokenizer.ggml.fim_sep_token_id"};
    enum { ID = SMALL_VOCAB - 1 };
    for (size_t i = 0; i <= WK_COUNT(keys); i++) { /* without any of them at last */
        static gguf_bytes file;
        small_model small = small_model_make();
        if (i < WK_COUNT(keys)) small_set_u32(&small, keys[i], ID);
        small_write(&small, true, &file);
        wick_model *model;
        wick_error error;
        assert_int_equal(load(&file, &model, &error), WICK_OK);
        assert_int_equal(wick_token_ends_generation(model->tokenizer, ID), i < WK_COUNT(keys));
        wick_model_close(model);
    }
    small_model small = small_model_make();
    small_set_u32(&small, "tokenizer.ggml.fim_sep_token_id", SMALL_VOCAB);
    expect(&small, WICK_OK, "");
}

/* The first token that a session of the model chooses. */
static uint32_t choose(const small_model *small, const wick_session_desc *desc) {
    static gguf_bytes file;
    small_write(small, true, &file);
    wick_model *model;
    wick_session *session;
    wick_error error;
    wick_event event;
    assert_int_equal(load(&file, &model, &error), WICK_OK);
    assert_int_equal(wick_session_open(model, desc, &session, NULL), WICK_OK);
    assert_int_equal(wick_session_append_tokens(session, (const uint32_t[]){1, 3}, 2), WICK_OK);
    do assert_int_equal(wick_session_next(session, &event), WICK_OK);
    while (event.kind != WICK_EVENT_TOKEN);
    const uint32_t token = event.token;
    wick_session_close(session);
    wick_model_close(model);
    return token;
}

/* Tokens that the file suppresses are never chosen, by any sampler. */
static void test_suppressed(void **state) {
    (void)state;
    static const char key[] = "tokenizer.ggml.suppress_tokens";
    small_model small = small_model_make();
    wick_session_desc desc = {.max_tokens = 1, .ignore_end = true};
    const uint32_t best = choose(&small, &desc);
    small_entry *const array = small_find(&small, key);
    array->type = WICK_VALUE_ARRAY;
    array->n = 2;
    array->number = best;
    const uint32_t next = choose(&small, &desc);
    assert_true(next != best);
    const wick_logit_bias wants_best = {best, 100.0F};
    desc.sampler = (wick_sampler_desc){
        .temperature = 1.0F, .top_k = 1, .seed = 1, .bias = &wants_best, .n_bias = 1};
    assert_int_equal(choose(&small, &desc), next);

    array->n = 0;
    assert_int_equal(choose(&small, &desc), best);
    array->n = 1;
    array->number = SMALL_VOCAB - 1;
    expect(&small, WICK_OK, "");
    array->number = SMALL_VOCAB;
    expect(&small, WICK_ERR_FORMAT, key);
    array->number = UINT32_MAX;
    expect(&small, WICK_ERR_FORMAT, key);
    small_set_u32(&small, key, 1);
    expect(&small, WICK_ERR_FORMAT, "'tokenizer.ggml.suppress_tokens' must be an array of i32");
}

/* An embedding of f16 gives f16 rows, which the forward pass turns into f32. */
static void test_half_embedding(void **state) {
    (void)state;
    small_model small = small_model_make();
    small_find_tensor(&small, "token_embd.weight")->type = 1;
    static gguf_bytes file;
    small_write(&small, false, &file);
    const size_t first = (file.size + 31) / 32 * 32; /* token_embd.weight comes first */
    small_write(&small, true, &file);
    for (uint16_t i = 0; i < SMALL_VOCAB * SMALL_EMBD; i++) {
        const uint16_t half = (uint16_t)(0x2e00 + 16 * i); /* about 0.1 */
        memcpy(file.data + first + 2 * i, &half, sizeof half);
    }
    wick_model *model;
    wick_session *session;
    wick_error error;
    wick_event event;
    assert_int_equal(load(&file, &model, &error), WICK_OK);
    assert_string_equal(model->info.types, "f32 19, f16 1");
    const wick_session_desc desc = {.logits = WICK_LOGITS_ALL};
    assert_int_equal(wick_session_open(model, &desc, &session, NULL), WICK_OK);
    assert_int_equal(wick_session_append_tokens(session, (const uint32_t[]){1, 3}, 2), WICK_OK);
    uint32_t n_logits = 0;
    do {
        assert_int_equal(wick_session_next(session, &event), WICK_OK);
        if (event.kind != WICK_EVENT_LOGITS) continue;
        for (int i = 0; i < SMALL_VOCAB; i++) assert_true(isfinite(event.logits[i]));
        n_logits++;
    } while (event.kind != WICK_EVENT_END);
    assert_int_equal(n_logits, 2);
    wick_session_close(session);
    wick_model_close(model);
}

static void test_tokenizer_of_file(void **state) {
    (void)state;
    static gguf_bytes good, bad;
    small_model small = small_model_make();
    small_write(&small, true, &good);
    write_path(good.data, good.size);
    wick_file *file;
    wick_tokenizer *tokenizer;
    wick_error error = {.status = WICK_OK};
    assert_int_equal(wick_file_open(path, &file, &error), WICK_OK);
    assert_int_equal(wick_tokenizer_open(file, &tokenizer, &error), WICK_OK);
    assert_int_equal(wick_tokenizer_size(tokenizer), SMALL_VOCAB);
    assert_int_equal(wick_token_end(tokenizer), 2);
    wick_tokenizer_close(tokenizer);
    assert_int_equal(wick_tokenizer_open(file, NULL, &error), WICK_ERR_ARGUMENT);
    wick_file_close(file);
    wick_tokenizer_close(NULL);

    small.has_no_vocabulary = true;
    small_write(&small, true, &bad);
    write_path(bad.data, bad.size);
    error = (wick_error){.status = WICK_OK};
    assert_int_equal(wick_file_open(path, &file, &error), WICK_OK);
    assert_int_equal(wick_tokenizer_open(file, &tokenizer, &error), WICK_ERR_FORMAT);
    assert_null(tokenizer);
    wick_file_close(file);
}

/* By the name of the model, </s> takes the space after it. */
static void test_name_of_model(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        static gguf_bytes bytes;
        small_model small = small_model_make();
        if (i == 1) small_set_text(&small, "general.name", "Phi-3 mini");
        small_write(&small, true, &bytes);
        write_path(bytes.data, bytes.size);
        wick_file *file;
        wick_tokenizer *tokenizer;
        uint32_t ids[8];
        size_t n;
        assert_int_equal(wick_file_open(path, &file, NULL), WICK_OK);
        assert_int_equal(wick_tokenizer_open(file, &tokenizer, NULL), WICK_OK);
        assert_int_equal(wick_tokenize(tokenizer, "</s>\n", 5, WICK_TOKENIZE_PARSE_SPECIAL, ids,
                                       WK_COUNT(ids), &n),
                         WICK_OK);
        assert_int_equal(ids[0], 2);
        assert_int_equal(n == 1, i == 1);
        wick_tokenizer_close(tokenizer);
        wick_file_close(file);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vocabulary),    cmocka_unit_test(test_ends),
        cmocka_unit_test(test_suppressed),    cmocka_unit_test(test_half_embedding),
        cmocka_unit_test(test_name_of_model), cmocka_unit_test(test_tokenizer_of_file),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
