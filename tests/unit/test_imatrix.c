/* Importance matrices: the sums of a layer's inputs against ones made by hand, and what is refused.
 */
#define _POSIX_C_SOURCE 200809L /* mkdtemp */

#include <wick/convert.h>

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "fixture_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N_EMBD = 64, N_IDS = 100, CHUNK = 32 };

static char model_path[1024], folder[64], out[96];
static wick_device *device;
static wick_model *model;
static uint32_t ids[N_IDS];

static int open_model(void **state) {
    (void)state;
    strcpy(folder, "/tmp/wick-imatrix-XXXXXX");
    if (mkdtemp(folder) == NULL) return -1;
    snprintf(out, sizeof out, "%s/imatrix.gguf", folder);
    if (!fixture_path("WICK_TEST_DATA", "stories260K.gguf", model_path, sizeof model_path))
        return -1;
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .math = WICK_MATH_EXACT};
    if (wick_device_open(&desc, &device, NULL) != WICK_OK) return -1;
    for (uint32_t i = 0; i < N_IDS; i++) ids[i] = 3 + i * 37 % 500;
    ids[0] = 1; /* the begin token */
    return wick_model_open(device, model_path, NULL, &model, NULL);
}

static int close_model(void **state) {
    (void)state;
    wick_model_close(model);
    wick_device_close(device);
    remove(out);
    return rmdir(folder);
}

static void read_tensor(wick_file *file, const char *name, float *data, size_t n) {
    for (size_t i = 0; i < wick_file_tensor_count(file); i++) {
        const wick_file_tensor *const tensor = wick_file_get_tensor(file, i);
        if (strcmp(tensor->name.text, name) != 0) continue;
        assert_int_equal(tensor->dtype, WICK_F32);
        assert_int_equal(tensor->size, n * sizeof *data);
        assert_int_equal(wick_file_read(file, tensor->offset, data, n * sizeof *data, NULL),
                         WICK_OK);
        return;
    }
    fail_msg("no tensor %s", name);
}

/* What goes into the first layer's attention: embeddings after their norm. */
static void expected_sums(double sums[N_EMBD]) {
    static float table[512 * N_EMBD];
    float norm[N_EMBD];
    wick_file *file = NULL;
    assert_int_equal(wick_file_open(model_path, &file, NULL), WICK_OK);
    read_tensor(file, "token_embd.weight", table, 512 * N_EMBD);
    read_tensor(file, "blk.0.attn_norm.weight", norm, N_EMBD);
    wick_file_close(file);
    memset(sums, 0, N_EMBD * sizeof *sums);
    for (int i = 0; i < N_IDS / CHUNK * CHUNK; i++) {
        const float *const row = table + (i % CHUNK == 0 ? 1 : ids[i]) * N_EMBD;
        double square = 0;
        for (int c = 0; c < N_EMBD; c++) square += (double)row[c] * (double)row[c];
        for (int c = 0; c < N_EMBD; c++) {
            const double x =
                (double)row[c] * (double)norm[c] / sqrt(square / (double)N_EMBD + 1e-5);
            sums[c] += x * x;
        }
    }
}

static wick_status make(const wick_imatrix_desc *desc, size_t n, wick_error *error) {
    wick_imatrix *imatrix = NULL;
    wick_progress progress = {0};
    wick_status status = wick_imatrix_start(model, ids, n, desc, &imatrix, error);
    if (status != WICK_OK) return status;
    while ((status = wick_imatrix_poll(imatrix, &progress, error)) == WICK_PENDING) {
    }
    assert_int_equal(status, WICK_OK);
    assert_true(progress.done == progress.total && progress.total == n / CHUNK * CHUNK);
    return wick_imatrix_finish(imatrix, true, error);
}

static void test_sums(void **state) {
    (void)state;
    const wick_imatrix_desc desc = {
        .path = out, .dataset = "tales", .chunk_length = CHUNK, .replace = true};
    for (int run = 0; run < 2; run++) assert_int_equal(make(&desc, N_IDS, NULL), WICK_OK);
    wick_file *file = NULL;
    assert_int_equal(wick_file_open(out, &file, NULL), WICK_OK);
    double expected[N_EMBD];
    expected_sums(expected);
    static const char *const inputs[] = {"attn_q", "attn_k", "attn_v"};
    for (size_t i = 0; i < 3; i++) {
        char name[64];
        float sums[N_EMBD], count;
        snprintf(name, sizeof name, "blk.0.%s.weight.in_sum2", inputs[i]);
        read_tensor(file, name, sums, N_EMBD);
        for (int c = 0; c < N_EMBD; c++)
            assert_true(fabs((double)sums[c] - expected[c]) <= 1e-4 * expected[c]);
        snprintf(name, sizeof name, "blk.0.%s.weight.counts", inputs[i]);
        read_tensor(file, name, &count, 1);
        assert_true(count == N_IDS / CHUNK * CHUNK);
    }
    wick_model_info info;
    wick_model_get_info(model, &info);
    assert_int_equal(wick_file_tensor_count(file), 2 * 7 * info.n_layers);
    assert_int_equal(wick_file_find_value(file, "imatrix.chunk_count")->u, N_IDS / CHUNK);
    assert_int_equal(wick_file_find_value(file, "imatrix.chunk_size")->u, CHUNK);
    const wick_value *const sets = wick_file_find_value(file, "imatrix.datasets");
    assert_int_equal(sets->array.count, 1);
    assert_string_equal(((const wick_string *)sets->array.values)->text, "tales");
    wick_file_close(file);
}

/* What was made fits the model that it was made with. */
static void test_quantizing_with_it(void **state) {
    (void)state;
    char quantized[128];
    snprintf(quantized, sizeof quantized, "%s/quantized.gguf", folder);
    const wick_imatrix_desc made = {.path = out, .chunk_length = CHUNK, .replace = true};
    assert_int_equal(make(&made, N_IDS, NULL), WICK_OK);
    const wick_quantize_desc desc = {.type = "Q4_0", .imatrix = out};
    wick_quantizing *q = NULL;
    assert_int_equal(wick_quantize_start(model_path, quantized, &desc, &q, NULL), WICK_OK);
    size_t n = 0, n_weighted = 0;
    const wick_quantize_tensor *const plan = wick_quantize_plan(q, &n);
    for (size_t i = 0; i < n; i++) n_weighted += plan[i].has_importance;
    wick_model_info info;
    wick_model_get_info(model, &info);
    assert_int_equal(n_weighted, 6 * info.n_layers); /* rows of ffn_down fill no block */
    wick_status status;
    while ((status = wick_quantize_poll(q, NULL, NULL)) == WICK_PENDING) {
    }
    assert_int_equal(status, WICK_OK);
    assert_int_equal(wick_quantize_finish(q, true, NULL), WICK_OK);
    assert_int_equal(remove(quantized), 0);
}

static void refuse(const wick_imatrix_desc *desc, size_t n, wick_status status, const char *words) {
    wick_error error = {0};
    assert_int_equal(make(desc, n, &error), status);
    assert_non_null(strstr(error.message, words));
}

static void test_refusals(void **state) {
    (void)state;
    remove(out);
    const wick_imatrix_desc desc = {.path = out, .chunk_length = CHUNK};
    refuse(&desc, CHUNK - 1, WICK_ERR_VALUE, "31 of the 32 tokens");
    for (uint32_t length = 1; length < 34; length += 32)
        refuse(&(wick_imatrix_desc){.path = out, .chunk_length = length}, N_IDS, WICK_ERR_VALUE,
               "power of two");
    refuse(&(wick_imatrix_desc){.path = out}, N_IDS, WICK_ERR_VALUE, "that one chunk needs");
    refuse(&(wick_imatrix_desc){.path = NULL}, N_IDS, WICK_ERR_ARGUMENT, "NULL");
    refuse(&(wick_imatrix_desc){.path = "/nowhere/x", .chunk_length = CHUNK}, N_IDS,
           WICK_ERR_NOT_FOUND, "/nowhere/x");
    /* Before the work, not after it. */
    wick_imatrix *early = NULL;
    assert_int_equal(make(&desc, N_IDS, NULL), WICK_OK);
    assert_int_equal(wick_imatrix_start(model, ids, N_IDS, &desc, &early, NULL), WICK_ERR_STATE);
    assert_null(early);
    assert_int_equal(remove(out), 0);
    assert_int_equal(wick_imatrix_start(model, ids, N_IDS, &desc, NULL, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_imatrix_poll(NULL, NULL, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_imatrix_finish(NULL, false, NULL), WICK_ERR_ARGUMENT);

    wick_imatrix *imatrix = NULL;
    wick_error error = {0};
    assert_int_equal(wick_imatrix_start(model, ids, N_IDS, &desc, &imatrix, NULL), WICK_OK);
    assert_int_equal(wick_imatrix_finish(imatrix, true, &error), WICK_ERR_STATE);
    assert_non_null(strstr(error.message, "no chunk has been read"));

    ids[40] = 100000; /* in the second chunk */
    error = (wick_error){0};
    assert_int_equal(wick_imatrix_start(model, ids, N_IDS, &desc, &imatrix, NULL), WICK_OK);
    wick_status status;
    while ((status = wick_imatrix_poll(imatrix, NULL, &error)) == WICK_PENDING) {
    }
    ids[40] = 4;
    assert_int_equal(status, WICK_ERR_INDEX);
    assert_non_null(strstr(error.message, "100000"));
    assert_int_equal(wick_imatrix_finish(imatrix, false, NULL), WICK_OK);
    assert_int_not_equal(access(out, F_OK), 0);
    assert_int_equal(wick_device_error(device, NULL), WICK_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_quantizing_with_it),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests_name("imatrix", tests, open_model, close_model);
}
