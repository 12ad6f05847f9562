/* What a program may do wrong: pointers that are missing, ops that mean nothing, sizes at the end
 * of arithmetic, values at their limits. Each is refused with a status, or harmless. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backend/backend.h"
#include "sys/thread.h"

#include <wick/wick.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static wick_device *open_device(int n_threads) {
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .n_threads = n_threads};
    wick_device *device = NULL;
    assert_int_equal(wick_device_open(&desc, &device, NULL), WICK_OK);
    return device;
}

/* --- Pointers --- */

static void test_missing_pointers(void **state) {
    (void)state;
    wick_device *device = NULL;
    wick_device_limits limits;
    wick_device_info info = {.n_threads = 7};
    wick_device_stats stats = {.n_ops = 7};
    wick_model_info model = {.n_layers = 7};
    assert_int_equal(wick_device_open_start(NULL, NULL, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_device_open_poll(NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_device_open_finish(NULL, &device, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_device_measure(NULL, &limits, NULL), WICK_ERR_ARGUMENT);
    wick_device_get_info(NULL, &info);
    wick_device_get_stats(NULL, &stats);
    wick_model_get_info(NULL, &model);
    assert_true(info.n_threads == 0 && stats.n_ops == 0 && model.n_layers == 0);
    assert_int_equal(wick_device_get_profile(NULL, NULL, 0), 0);
    assert_int_equal(wick_device_math(NULL), WICK_MATH_EXACT);
    wick_device_set_math(NULL, WICK_MATH_FAST);
    assert_null(wick_model_tokenizer(NULL));
    assert_null(wick_model_device(NULL));
    device = open_device(1);
    wick_device_get_info(device, NULL);
    wick_device_get_stats(device, NULL);
    wick_device_set_math(device, (wick_math)77);
    assert_int_equal(wick_device_math(device), WICK_MATH_EXACT);
    wick_device_close(device);
}

static void test_no_file(void **state) {
    (void)state;
    assert_int_equal(wick_file_version(NULL), 0);
    assert_int_equal(wick_file_size(NULL), 0);
    assert_int_equal(wick_file_value_count(NULL), 0);
    assert_int_equal(wick_file_tensor_count(NULL), 0);
    assert_null(wick_file_value(NULL, 0));
    assert_null(wick_file_find_value(NULL, "general.name"));
    assert_null(wick_file_get_tensor(NULL, 0));
    assert_int_equal(wick_file_read(NULL, 0, NULL, 0, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_file_open(NULL, NULL, NULL), WICK_ERR_ARGUMENT);
    wick_file_close(NULL);
    assert_int_equal(wick_file_write_start("x.gguf", NULL, NULL, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_file_write(NULL, NULL, 0, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_file_write_finish(NULL, true, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_npy_start(NULL, WICK_F32, WICK_SHAPE(1), NULL, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_npy_write(NULL, NULL, 0, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_npy_finish(NULL, true, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_npy_save(NULL, "x.npy", NULL), WICK_ERR_ARGUMENT);
    assert_null(wick_npy_parse(NULL, "", 0));
    assert_null(wick_npy_load(NULL, "x.npy"));
}

static void test_missing_texts(void **state) {
    (void)state;
    const wick_string none = {NULL, 3}, key = {"a", 1};
    const wick_value values[] = {
        {.key = none, .type = WICK_VALUE_U32},
        {.key = key, .type = WICK_VALUE_STRING, .string = none},
        {.key = key, .type = WICK_VALUE_ARRAY, .array = {WICK_VALUE_STRING, 1, &none}},
    };
    const wick_file_tensor tensor = {.name = none};
    wick_file_desc desc = {.tensors = &tensor, .n_tensors = 1};
    wick_file_writer *writer;
    assert_int_equal(wick_file_write_start("x.gguf", &desc, &writer, NULL), WICK_ERR_ARGUMENT);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        desc = (wick_file_desc){.values = &values[i], .n_values = 1};
        assert_int_equal(wick_file_write_start("x.gguf", &desc, &writer, NULL), WICK_ERR_ARGUMENT);
        assert_null(writer);
    }
}

static void test_no_tokenizer(void **state) {
    (void)state;
    wick_tokenizer *tokenizer = NULL;
    wick_detokenizer text = {.tokenizer = NULL};
    size_t size = 7;
    uint32_t id;
    char buf[4];
    assert_int_equal(wick_tokenizer_open(NULL, &tokenizer, NULL), WICK_ERR_ARGUMENT);
    wick_tokenizer_close(NULL);
    assert_int_equal(wick_tokenizer_size(NULL), 0);
    assert_true(wick_token_begin(NULL) == WICK_NO_TOKEN && wick_token_end(NULL) == WICK_NO_TOKEN);
    assert_false(wick_token_ends_generation(NULL, 0));
    assert_false(wick_token_is_special(NULL, 0));
    assert_null(wick_token_bytes(NULL, 0, false, &size));
    assert_int_equal(size, 0);
    assert_null(wick_token_bytes(NULL, 0, false, NULL));
    assert_int_equal(wick_tokenize(NULL, "a", 1, 0, &id, 1, &size), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_detokenize(NULL, 0, buf, sizeof buf, &size), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_detokenize(&text, 0, buf, sizeof buf, &size), WICK_ERR_ARGUMENT);
    size = 7;
    wick_detokenize_flush(NULL, buf, &size);
    assert_int_equal(size, 0);
    wick_detokenize_flush(&text, NULL, NULL);
    assert_int_equal(wick_detokenize_bound(NULL), 0);
}

static void test_no_model(void **state) {
    (void)state;
    wick_model *model = NULL;
    wick_session *session = NULL;
    wick_prediction prediction;
    wick_event event;
    wick_session_stats stats = {.n_prompt = 7};
    assert_int_equal(wick_model_open(NULL, "x.gguf", NULL, &model, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_model_open_poll(NULL, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_model_open_finish(NULL, &model, NULL), WICK_ERR_ARGUMENT);
    wick_model_close(NULL);
    assert_int_equal(wick_predict(NULL, NULL, NULL, &prediction, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_session_open(NULL, NULL, &session, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_session_append_text(NULL, "a"), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_session_append_tokens(NULL, NULL, 0), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_session_sync_tokens(NULL, NULL, 0), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_session_step(NULL, &event), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_session_next(NULL, &event), WICK_ERR_ARGUMENT);
    wick_session_get_stats(NULL, &stats);
    assert_int_equal(stats.n_prompt, 0);
    assert_null(wick_session_tokens(NULL, NULL));
    wick_session_reset(NULL);
    wick_session_close(NULL);
}

/* A finish frees what it ends, also where it has no place for the result. */
static void test_finish_without_a_place(void **state) {
    (void)state;
    wick_device_opening *opening = NULL;
    wick_model_loading *loading = NULL;
    wick_error error = {.status = WICK_OK};
    assert_int_equal(wick_device_open_start(NULL, &opening, NULL), WICK_OK);
    assert_int_equal(wick_device_open_finish(opening, NULL, &error), WICK_ERR_ARGUMENT);
    assert_true(error.message[0] != '\0');
    wick_device *const device = open_device(1);
    error = (wick_error){.status = WICK_OK};
    const wick_source source = wick_source_memory("GGUF", 4);
    assert_int_equal(wick_model_open_start(device, source, NULL, &loading, NULL), WICK_OK);
    assert_int_equal(wick_model_open_finish(loading, NULL, &error), WICK_ERR_ARGUMENT);
    assert_int_equal(error.status, WICK_ERR_ARGUMENT);
    wick_device_close(device);
}

/* --- Devices --- */

static void test_too_many_threads(void **state) {
    (void)state;
    wick_device *const device = open_device(1024);
    wick_device_info info;
    wick_device_get_info(device, &info);
    assert_int_equal(info.n_threads, wk_cpu_count());
    wick_device_close(device);
}

/* --- Tensors --- */

static void test_impossible_shapes(void **state) {
    (void)state;
    wick_device *const device = open_device(1);
    const int64_t huge = INT64_C(1) << 62;
    assert_null(wick_empty(device, WICK_F32, WICK_SHAPE(huge, 8)));
    assert_int_not_equal(wick_device_error(device, NULL), WICK_OK);
    assert_null(wick_empty(device, WICK_F32, WICK_SHAPE(-1)));
    assert_int_not_equal(wick_device_error(device, NULL), WICK_OK);
    assert_null(wick_empty(device, (wick_dtype)999, WICK_SHAPE(1)));
    assert_int_not_equal(wick_device_error(device, NULL), WICK_OK);
    assert_null(wick_empty(device, WICK_Q4_0, WICK_SHAPE(31)));
    assert_int_not_equal(wick_device_error(device, NULL), WICK_OK);
    wick_device_close(device);
}

/* Rows without elements cost no work, however many there are. */
static void test_huge_and_empty(void **state) {
    (void)state;
    wick_device *const device = open_device(1);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = wick_empty(device, WICK_F32, WICK_SHAPE(INT64_C(1) << 50, 0));
    wick_tensor *const y = wick_softmax(wick_add(x, x), -1);
    assert_non_null(y);
    assert_int_equal(wick_read(y, NULL, 0), WICK_OK);
    wick_scope_end(scope);
    wick_device_close(device);
}

/* Rows of blocks are decoded as they lie: one that is repeated would be read past its end. */
static void test_repeated_blocks(void **state) {
    (void)state;
    wick_device *const device = open_device(1);
    const wick_scope scope = wick_scope_begin(device);
    unsigned char blocks[34] = {0};
    const uint32_t ids[] = {0, 3};
    wick_tensor *const row =
        wick_tensor_from_data(device, WICK_Q8_0, WICK_SHAPE(1, 32), blocks, sizeof blocks);
    wick_tensor *const rows = wick_expand(row, WICK_SHAPE(1 << 20, 32));
    wick_tensor *const x = wick_fill(wick_empty(device, WICK_F32, WICK_SHAPE(2, 32)), 1);
    wick_tensor *const chosen =
        wick_tensor_from_data(device, WICK_U32, WICK_SHAPE(2), ids, sizeof ids);
    assert_non_null(x);
    assert_null(wick_linear(x, rows, NULL));
    assert_int_not_equal(wick_device_error(device, NULL), WICK_OK);
    assert_null(wick_embedding(rows, chosen));
    assert_int_not_equal(wick_device_error(device, NULL), WICK_OK);
    wick_scope_end(scope);
    wick_device_close(device);
}

/* --- Op records --- */

static float memory[64];
static wk_buffer buffers[] = {{.size = sizeof memory / 2, .data = memory},
                              {.size = sizeof memory / 2, .data = memory + 32}};

static wk_view dense(int buffer) {
    return (wk_view){.buf = &buffers[buffer], .rank = 2, .extent = {4, 8}, .stride = {8, 1}};
}

static wk_op silu(void) {
    return (wk_op){.code = WK_OP_UNARY, .n_dst = 1, .n_src = 1, .view = {dense(0), dense(1)}};
}

static void expect_refused(const wk_op *op) {
    wick_error err = {.status = WICK_OK};
    assert_int_not_equal(wk_op_check(op, &err), WICK_OK);
    assert_true(err.message[0] != '\0');
}

static void test_views_that_are_none(void **state) {
    (void)state;
    wk_op op = silu();
    assert_int_equal(wk_op_check(&op, NULL), WICK_OK);
    static const int64_t bad[] = {-1, INT64_MIN, INT64_MAX, INT64_C(1) << 61, 9};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        for (int d = 0; d < 2; d++) {
            op = silu();
            op.view[1].extent[d] = op.view[0].extent[d] = bad[i];
            expect_refused(&op);
            op = silu();
            op.view[1].stride[d] = bad[i];
            expect_refused(&op);
        }
    }
    static const int ranks[] = {-1, 7, INT32_MAX};
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        op = silu();
        op.view[1].rank = ranks[i];
        expect_refused(&op);
    }
    static const uint64_t offsets[] = {2, 4, UINT64_MAX, UINT64_MAX - 127};
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        op = silu();
        op.view[1].offset = offsets[i];
        expect_refused(&op);
    }
}

static void test_ops_that_are_none(void **state) {
    (void)state;
    wk_op op = silu();
    op.view[1].dtype = (wick_dtype)1000;
    expect_refused(&op);
    op = silu();
    op.view[1].layout = WK_LAYOUT_PANEL_F32;
    expect_refused(&op);
    op = silu();
    op.p.unary.fn = WK_UNARY_COUNT_;
    expect_refused(&op);
    op = silu();
    op.n_src = 3;
    expect_refused(&op);
    op = silu();
    op.view[1].buf = NULL;
    expect_refused(&op);
    op = silu(); /* elements that share memory */
    op.view[0].stride[0] = 4;
    expect_refused(&op);
    op = silu(); /* in place, but shifted */
    op.view[1] = op.view[0];
    assert_int_equal(wk_op_check(&op, NULL), WICK_OK);
    op.view[0].extent[0] = op.view[1].extent[0] = 3;
    op.view[1].offset = 32;
    expect_refused(&op);
}

/* x may be y; weight may not. */
static void test_norm_over_its_weight(void **state) {
    (void)state;
    const wk_view row = {.buf = &buffers[0], .rank = 1, .extent = {32}, .stride = {1}};
    wk_op op = {.code = WK_OP_RMS_NORM, .n_dst = 1, .n_src = 2, .view = {row, row, row}};
    expect_refused(&op);
    op.view[2].buf = &buffers[1];
    assert_int_equal(wk_op_check(&op, NULL), WICK_OK);
    op.view[2] = (wk_view){.buf = NULL, .dtype = (wick_dtype)99};
    expect_refused(&op);
    op.view[2] = (wk_view){.buf = NULL};
    assert_int_equal(wk_op_check(&op, NULL), WICK_OK);
}

/* --- Sessions --- */

static void test_session_limits(void **state) {
    (void)state;
    wick_device *const device = open_device(1);
    wick_model *model = NULL;
    char path[1024];
    snprintf(path, sizeof path, "%s/stories260K.gguf", getenv("WICK_TEST_DATA"));
    assert_int_equal(wick_model_open(device, path, NULL, &model, NULL), WICK_OK);
    static const wick_session_desc bad[] = {
        {.context_length = UINT32_MAX},
        {.context_length = INT32_MAX},
        {.chunk_length = 8193},
        {.n_logprobs = 1025},
        {.cache = (wick_cache)9},
        {.logits = (wick_logits_mode)9},
        {.n_stop = 1},
        {.sampler = {.temperature = NAN}},
        {.sampler = {.temperature = -1}},
        {.sampler = {.temperature = INFINITY}},
        {.sampler = {.temperature = 1, .top_p = 2}},
        {.sampler = {.temperature = 1, .min_p = NAN}},
        {.sampler = {.n_bias = 3}},
        {.sampler = {.repeat_penalty = -1}},
        {.sampler = {.frequency_penalty = 101}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        wick_session *session = NULL;
        wick_error error = {.status = WICK_OK};
        if (wick_session_open(model, &bad[i], &session, &error) == WICK_OK)
            fail_msg("desc %zu was accepted", i);
        assert_null(session);
        assert_true(error.message[0] != '\0');
    }
    wick_session *session = NULL;
    const wick_session_desc tiny = {.context_length = 1, .chunk_length = 1};
    assert_int_equal(wick_session_open(model, &tiny, &session, NULL), WICK_OK);
    assert_int_equal(wick_session_append_text(session, "too long"), WICK_ERR_STATE);
    assert_int_equal(wick_session_append_tokens(session, (const uint32_t[]){1}, 1), WICK_OK);
    wick_event event;
    do {
        assert_int_equal(wick_session_next(session, &event), WICK_OK);
    } while (event.kind != WICK_EVENT_END);
    assert_int_equal(event.reason, WICK_END_CONTEXT_FULL);
    wick_session_close(session);
    wick_model_close(model);
    wick_device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missing_pointers),
        cmocka_unit_test(test_no_file),
        cmocka_unit_test(test_missing_texts),
        cmocka_unit_test(test_no_tokenizer),
        cmocka_unit_test(test_no_model),
        cmocka_unit_test(test_finish_without_a_place),
        cmocka_unit_test(test_too_many_threads),
        cmocka_unit_test(test_impossible_shapes),
        cmocka_unit_test(test_huge_and_empty),
        cmocka_unit_test(test_repeated_blocks),
        cmocka_unit_test(test_views_that_are_none),
        cmocka_unit_test(test_ops_that_are_none),
        cmocka_unit_test(test_norm_over_its_weight),
        cmocka_unit_test(test_session_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
