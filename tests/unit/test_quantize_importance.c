/* Quantizing by an importance matrix: what it changes, and which ones are refused. */
#define _POSIX_C_SOURCE 200809L /* mkdtemp, symlink */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "convert/importance.h"
#include "quant/block.h"
#include "quantized_model.h"

#include <math.h>

/* An importance matrix for blk.0.attn_q.weight of n channels. */
static void write_importance(const char *path, const char *type, int64_t n, float value) {
    contents c = {.values = {{.key = text_of("general.type"),
                              .type = WICK_VALUE_STRING,
                              .string = text_of(type)},
                             number(WK_IMATRIX_CHUNKS, 3)},
                  .n_values = 2};
    add(&c, "blk.0.attn_q.weight.in_sum2", WICK_SHAPE(1, n));
    add(&c, "blk.0.attn_q.weight.counts", WICK_SHAPE(1, 1));
    write_model(path, &c, value);
}

/* The sum of squared errors of blk.0.attn_q.weight over the channels [begin, end). */
static double error_of(const char *path, int begin, int end) {
    double sum = 0;
    wick_file *files[2] = {NULL};
    float x[2][2 * K];
    const char *const paths[] = {in, path};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(wick_file_open(paths[i], &files[i], NULL), WICK_OK);
        const wick_file_tensor *const tensor = wick_file_get_tensor(files[i], 1);
        uint8_t blocks[sizeof x[0]];
        assert_int_equal(wick_file_read(files[i], tensor->offset, blocks, tensor->size, NULL),
                         WICK_OK);
        wk_decoder(tensor->dtype)(blocks, x[i], 2 * K);
        wick_file_close(files[i]);
    }
    for (int j = 0; j < 2 * K; j++) {
        if (j % K < begin || j % K >= end) continue;
        const double e = (double)x[0][j] - (double)x[1][j];
        sum += e * e;
    }
    return sum;
}

static void read_decoded(const char *path, const char *name, float *x, int64_t n) {
    wick_file *file = NULL;
    assert_int_equal(wick_file_open(path, &file, NULL), WICK_OK);
    for (size_t i = 0; i < wick_file_tensor_count(file); i++) {
        const wick_file_tensor *const tensor = wick_file_get_tensor(file, i);
        if (strcmp(tensor->name.text, name) != 0) continue;
        assert_int_equal(count_of(tensor), n);
        void *const blocks = malloc((size_t)tensor->size);
        assert_non_null(blocks);
        assert_int_equal(wick_file_read(file, tensor->offset, blocks, (size_t)tensor->size, NULL),
                         WICK_OK);
        wk_decoder(tensor->dtype)(blocks, x, n);
        free(blocks);
    }
    wick_file_close(file);
}

static void test_importance(void **state) {
    (void)state;
    char matrix[128];
    snprintf(matrix, sizeof matrix, "%s/imatrix.gguf", folder);
    assert_int_equal(quantize(&(wick_quantize_desc){.type = "Q4_0"}, NULL), WICK_OK);
    const double before = error_of(out, K - 1, K);
    write_importance(matrix, "imatrix", K, 1e4F); /* the last channel, and the count */
    /* Sums of squares cannot be negative. */
    wick_error error = {0};
    const wick_quantize_desc desc = {.type = "Q4_0", .imatrix = matrix, .replace = true};
    assert_int_equal(quantize(&desc, &error), WICK_ERR_FORMAT);
    assert_non_null(strstr(error.message, "is negative or not finite"));

    contents c = {.values = {{.key = text_of("general.type"),
                              .type = WICK_VALUE_STRING,
                              .string = text_of("imatrix")},
                             number(WK_IMATRIX_CHUNKS, 3)},
                  .n_values = 2};
    add(&c, "blk.0.attn_q.weight.in_sum2", WICK_SHAPE(1, K));
    add(&c, "blk.0.attn_q.weight.counts", WICK_SHAPE(1, 1));
    const wick_file_desc file = {.values = c.values,
                                 .n_values = c.n_values,
                                 .tensors = c.tensors,
                                 .n_tensors = c.n_tensors,
                                 .replace = true};
    float sums[K + 1];
    for (int i = 0; i < K; i++) sums[i] = i < K - 1 ? 1e-3F : 1e3F;
    sums[K] = 7;
    wick_file_writer *writer = NULL;
    assert_int_equal(wick_file_write_start(matrix, &file, &writer, NULL), WICK_OK);
    assert_int_equal(wick_file_write(writer, sums, sizeof sums, NULL), WICK_OK);
    assert_int_equal(wick_file_write_finish(writer, true, NULL), WICK_OK);
    assert_int_equal(quantize(&desc, NULL), WICK_OK);
    assert_true(error_of(out, K - 1, K) < 0.1 * before);
    wick_file *made = NULL;
    assert_int_equal(wick_file_open(out, &made, NULL), WICK_OK);
    assert_int_equal(wick_file_find_value(made, "quantize.imatrix.chunks_count")->u, 3);
    assert_int_equal(wick_file_find_value(made, "quantize.imatrix.entries_count")->u, 1);
    assert_string_equal(wick_file_find_value(made, "quantize.imatrix.file")->string.text, matrix);
    wick_file_close(made);
}

/* Every expert has channels of its own that matter, also those after the first 2^20 elements,
 * which are in memory at once. */
static void test_importance_of_experts(void **state) {
    (void)state;
    enum { EXPERTS = 3, ROWS = 2048, N = EXPERTS * ROWS * K };
    static const char name[] = "blk.0.ffn_up_exps.weight";
    char matrix[128];
    snprintf(matrix, sizeof matrix, "%s/imatrix.gguf", folder);
    contents c, m = {.values = {{.key = text_of("general.type"),
                                 .type = WICK_VALUE_STRING,
                                 .string = text_of("imatrix")}},
                     .n_values = 1};
    describe_llama(&c, K);
    add(&c, name, WICK_SHAPE(EXPERTS, ROWS, K));
    write_model(in, &c, 0);
    add(&m, "blk.0.ffn_up_exps.weight.in_sum2", WICK_SHAPE(EXPERTS, K));
    add(&m, "blk.0.ffn_up_exps.weight.counts", WICK_SHAPE(EXPERTS, 1));
    const wick_file_desc desc = {
        .values = m.values, .n_values = m.n_values, .tensors = m.tensors, .n_tensors = m.n_tensors};
    static float sums[EXPERTS * K + EXPERTS];
    for (int i = 0; i < EXPERTS * K; i++) sums[i] = i % K == i / K ? 1e3F : 1e-3F;
    for (int i = 0; i < EXPERTS; i++) sums[EXPERTS * K + i] = 1;
    wick_file_writer *writer = NULL;
    assert_int_equal(wick_file_write_start(matrix, &desc, &writer, NULL), WICK_OK);
    assert_int_equal(wick_file_write(writer, sums, sizeof sums, NULL), WICK_OK);
    assert_int_equal(wick_file_write_finish(writer, true, NULL), WICK_OK);
    const wick_quantize_desc guided = {.type = "Q4_0", .imatrix = matrix};
    assert_int_equal(quantize(&guided, NULL), WICK_OK);

    float *const x = malloc(N * sizeof *x), *const y = malloc(N * sizeof *y);
    assert_true(x != NULL && y != NULL);
    read_decoded(in, name, x, N);
    read_decoded(out, name, y, N);
    for (int i = 0; i < EXPERTS; i++) {
        double own = 0, others = 0;
        for (int j = i * ROWS * K; j < (i + 1) * ROWS * K; j++) {
            const double e = (double)x[j] - (double)y[j];
            *(j % K == i ? &own : &others) += e * e;
        }
        assert_true(own < 0.1 * others / (K - 1));
    }
    free(x);
    free(y);
}

/* Reads an importance matrix of n matrices, each used `count` times, for a tensor of four; the mean
 * squares of the last one into values. */
static wick_status read_squares(int64_t n, float sum, float count, float values[K]) {
    char matrix[128];
    snprintf(matrix, sizeof matrix, "%s/imatrix.gguf", folder);
    contents m = {.values = {{.key = text_of("general.type"),
                              .type = WICK_VALUE_STRING,
                              .string = text_of("imatrix")}},
                  .n_values = 1};
    add(&m, "w.in_sum2", WICK_SHAPE(n, K));
    add(&m, "w.counts", WICK_SHAPE(n, 1));
    const wick_file_desc desc = {
        .values = m.values, .n_values = m.n_values, .tensors = m.tensors, .n_tensors = m.n_tensors};
    float sums[5 * K + 5];
    for (int64_t i = 0; i < n * K; i++) sums[i] = sum;
    for (int64_t i = 0; i < n; i++) sums[n * K + i] = count;
    wick_file_writer *writer = NULL;
    assert_int_equal(wick_file_write_start(matrix, &desc, &writer, NULL), WICK_OK);
    assert_int_equal(wick_file_write(writer, sums, (size_t)(n * K + n) * sizeof *sums, NULL),
                     WICK_OK);
    assert_int_equal(wick_file_write_finish(writer, true, NULL), WICK_OK);
    const wick_file_tensor tensor = {.name = text_of("w"), .shape = WICK_SHAPE(4, 2, K)};
    wk_heap heap;
    wk_importance *importance;
    const float *squares;
    bool is_known;
    int64_t n_matrices;
    wk_heap_init(&heap, NULL);
    assert_int_equal(wk_importance_open(&heap, matrix, &importance, NULL), WICK_OK);
    wick_status status = wk_importance_check(importance, &tensor, &is_known, NULL);
    if (status == WICK_OK)
        status = wk_importance_read(importance, &tensor, &squares, &n_matrices, NULL);
    if (status == WICK_OK) memcpy(values, squares + (n - 1) * K, K * sizeof *values);
    wk_importance_close(importance);
    assert_int_equal(unlink(matrix), 0);
    return status;
}

/* For one matrix, or for each of four; where none was ever used all channels are alike. */
static void test_mean_squares(void **state) {
    (void)state;
    float values[K];
    for (int64_t n = 1; n <= 5; n++)
        assert_int_equal(read_squares(n, 6, 2, values),
                         n == 1 || n == 4 ? WICK_OK : WICK_ERR_FORMAT);
    assert_int_equal(read_squares(4, 6, 2, values), WICK_OK);
    assert_true(values[0] == 3 && values[K - 1] == 3);
    assert_int_equal(read_squares(4, 0, 0, values), WICK_OK);
    assert_true(values[0] == 1 && values[K - 1] == 1);
    assert_int_equal(read_squares(4, INFINITY, 2, values), WICK_ERR_FORMAT);
}

static void test_wrong_importance(void **state) {
    (void)state;
    char matrix[128];
    snprintf(matrix, sizeof matrix, "%s/imatrix.gguf", folder);
    write_importance(matrix, "imatrix", K / 2, 1);
    const wick_quantize_desc desc = {.type = "Q4_0", .imatrix = matrix};
    refuse(in, out, &desc, WICK_ERR_FORMAT, "does not fit tensor 'blk.0.attn_q.weight'");
    /* As of an expert for each row, of which a matrix of two dimensions has none. */
    contents of_rows = {.values = {{.key = text_of("general.type"),
                                    .type = WICK_VALUE_STRING,
                                    .string = text_of("imatrix")}},
                        .n_values = 1};
    add(&of_rows, "blk.0.attn_q.weight.in_sum2", WICK_SHAPE(2, K));
    add(&of_rows, "blk.0.attn_q.weight.counts", WICK_SHAPE(2, 1));
    write_model(matrix, &of_rows, 1);
    refuse(in, out, &desc, WICK_ERR_FORMAT, "does not fit tensor 'blk.0.attn_q.weight'");
    contents other = {.values = {{.key = text_of("general.type"),
                                  .type = WICK_VALUE_STRING,
                                  .string = text_of("imatrix")}},
                      .n_values = 1};
    add(&other, "blk.0.ssm_in.weight.in_sum2", WICK_SHAPE(1, K));
    add(&other, "blk.0.ssm_in.weight.counts", WICK_SHAPE(1, 1));
    write_model(matrix, &other, 1);
    refuse(in, out, &desc, WICK_ERR_FORMAT, "it knows no tensor of this one");
    FILE *const damaged = fopen(matrix, "wb");
    assert_non_null(damaged);
    fclose(damaged);
    refuse(in, out, &desc, WICK_ERR_FORMAT, "imatrix.gguf': byte 0");
    refuse(in, out, &desc, WICK_ERR_FORMAT, "the importance matrix '");
    write_importance(matrix, "model", K, 1);
    refuse(in, out, &desc, WICK_ERR_FORMAT, "not an importance matrix");
    refuse(in, out, &(wick_quantize_desc){.type = "Q4_0", .imatrix = in}, WICK_ERR_FORMAT,
           "not an importance matrix");
    refuse(in, out, &(wick_quantize_desc){.type = "Q4_0", .imatrix = "/nowhere"},
           WICK_ERR_NOT_FOUND, "/nowhere");
    assert_int_equal(count_files(false), 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_importance),
        IN_FOLDER(test_importance_of_experts),
        IN_FOLDER(test_mean_squares),
        IN_FOLDER(test_wrong_importance),
    };
    return cmocka_run_group_tests_name("quantize by importance", tests, NULL, NULL);
}
