/* Quantizing files: which tensor gets which type, what is written, and what is refused. */
#define _POSIX_C_SOURCE 200809L /* mkdtemp, symlink */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "quant/block.h"
#include "quantized_model.h"

#include <math.h>

static wick_dtype dtype_in(wick_file *file, const char *name) {
    for (size_t i = 0; i < wick_file_tensor_count(file); i++) {
        const wick_file_tensor *const tensor = wick_file_get_tensor(file, i);
        if (strcmp(tensor->name.text, name) == 0) return tensor->dtype;
    }
    fail_msg("no tensor %s", name);
    return WICK_F32;
}

typedef struct expectation {
    const char *type, *tensor;
    wick_dtype dtype;
} expectation;

static void test_mixes(void **state) {
    (void)state;
    static const expectation expected[] = {
        {"Q4_K_M", "token_embd.weight", WICK_Q4_K},
        {"Q4_K_M", "output.weight", WICK_Q6_K},
        {"Q4_K_M", "output_norm.weight", WICK_F32},
        {"Q4_K_M", "blk.3.ffn_gate_inp.weight", WICK_F32},
        {"Q4_K_M", "blk.3.attn_q.weight", WICK_Q4_K},
        {"Q4_K_M", "blk.1.attn_v.weight", WICK_Q6_K}, /* the first eighth */
        {"Q4_K_M", "blk.2.attn_v.weight", WICK_Q4_K},
        {"Q4_K_M", "blk.4.ffn_down.weight", WICK_Q6_K}, /* a third one */
        {"Q4_K_M", "blk.12.ffn_down.weight", WICK_Q4_K},
        {"Q4_K_M", "blk.14.ffn_down.weight", WICK_Q6_K}, /* the last eighth */
        {"q4_k_s", "blk.3.attn_v.weight", WICK_Q5_K},
        {"q4_k_s", "blk.4.attn_v.weight", WICK_Q4_K},
        {"Q5_K_M", "blk.4.attn_v.weight", WICK_Q6_K},
        {"Q5_K_M", "blk.2.attn_v.weight", WICK_Q5_K},
        {"Q5_K_S", "blk.0.attn_v.weight", WICK_Q5_K},
        {"Q6_K", "blk.0.attn_v.weight", WICK_Q6_K},
        {"Q8_0", "output.weight", WICK_Q8_0},
        {"Q4_0", "output.weight", WICK_Q6_K},
        {"Q4_0", "blk.0.ffn_down.weight", WICK_Q4_0},
        {"Q3_K_M", "blk.0.ffn_down.weight", WICK_Q5_K},
        {"Q3_K_M", "blk.1.ffn_down.weight", WICK_Q4_K}, /* after the first sixteenth */
        {"Q3_K_M", "blk.1.attn_v.weight", WICK_Q5_K},   /* the first two */
        {"Q3_K_M", "blk.2.attn_v.weight", WICK_Q4_K},
        {"Q3_K_M", "blk.9.attn_q.weight", WICK_Q3_K},
        {"Q2_K", "blk.9.attn_v.weight", WICK_Q4_K}, /* 4 heads share it */
        {"Q2_K", "blk.9.attn_q.weight", WICK_Q2_K},
        {"IQ4_XS", "blk.9.attn_q.weight", WICK_IQ4_XS},
        {"IQ4_NL", "blk.9.attn_q.weight", WICK_IQ4_NL},
        {"MXFP4_MOE", "blk.9.attn_q.weight", WICK_Q8_0},
        {"F16", "output.weight", WICK_F16},
        {"BF16", "blk.0.attn_q.weight", WICK_BF16},
        {"F32", "blk.0.attn_q.weight", WICK_F32},
    };
    for (size_t i = 0; i < WK_COUNT(expected); i++) {
        const wick_quantize_desc desc = {.type = expected[i].type, .replace = true};
        assert_int_equal(quantize(&desc, NULL), WICK_OK);
        wick_file *file = NULL;
        assert_int_equal(wick_file_open(out, &file, NULL), WICK_OK);
        assert_int_equal(dtype_in(file, expected[i].tensor), expected[i].dtype);
        wick_file_close(file);
    }
}

/* The type that one tensor of a model gets. */
typedef struct variant {
    const char *architecture;
    uint32_t n_layers, n_heads_kv, n_experts; /* of 8 heads */
    const char *type, *tensor;
    wick_dtype dtype;
    bool is_guided;
} variant;

static void write_variant(const variant *v) {
    contents made = {.n_values = 5}, *const c = &made;
    char keys[4][64];
    static const char *const names[] = {"block_count", "attention.head_count",
                                        "attention.head_count_kv", "expert_count"};
    const uint32_t numbers[] = {v->n_layers, 8, v->n_heads_kv, v->n_experts};
    for (size_t i = 0; i < WK_COUNT(names); i++) {
        snprintf(keys[i], sizeof keys[i], "%s.%s", v->architecture, names[i]);
        c->values[i] = number(keys[i], numbers[i]);
    }
    c->values[4] = (wick_value){.key = text_of("general.architecture"),
                                .type = WICK_VALUE_STRING,
                                .string = text_of(v->architecture)};
    static const char *const matrices[] = {"attn_k", "attn_output", "ffn_down"};
    add(c, "token_embd.weight", WICK_SHAPE(2, K));
    add(c, "per_layer_token_embd.weight", WICK_SHAPE(2, K));
    add(c, "output_norm.weight", WICK_SHAPE(1, K));
    add(c, "blk.0.attn_gate.weight", WICK_SHAPE(1, K));
    add(c, "blk.0.attn_q_norm.weight", WICK_SHAPE(2, K));
    for (int layer = 0; layer < LAYERS; layer++) {
        char name[40];
        /* In every other layer, as in models that are recurrent between. */
        snprintf(name, sizeof name, "blk.%d.attn_v.weight", layer);
        if (layer % 2 == 1) add(c, name, WICK_SHAPE(2, K));
        for (size_t i = 0; i < WK_COUNT(matrices); i++) {
            snprintf(name, sizeof name, "blk.%d.%s.weight", layer, matrices[i]);
            add(c, name, WICK_SHAPE(2, K));
        }
    }
    write_model(in, c, 0);
}

/* As llama-quantize of September 2026 has it. */
static const variant variants[] = {
    {"llama", 16, 2, 0, "Q4_K_M", "token_embd.weight", WICK_Q6_K, false}, /* tied */
    {"llama", 16, 2, 0, "Q4_K_M", "per_layer_token_embd.weight", WICK_Q6_K, false},
    {"llama", 16, 2, 0, "Q4_K_M", "blk.0.attn_gate.weight", WICK_F32, false},   /* one row */
    {"llama", 16, 2, 0, "Q4_K_M", "blk.0.attn_q_norm.weight", WICK_F32, false}, /* of each head */
    {"llama", 16, 2, 0, "Q4_K_M", "blk.1.attn_v.weight", WICK_Q6_K, false},
    /* The second of eight. */
    {"llama", 16, 2, 0, "Q4_K_M", "blk.3.attn_v.weight", WICK_Q4_K, false},
    {"llama", 16, 2, 0, "Q4_K_M", "blk.7.attn_v.weight", WICK_Q6_K, false}, /* the fourth */
    {"llama", 16, 8, 8, "Q4_K_M", "blk.3.attn_v.weight", WICK_Q8_0, false},
    {"llama", 16, 8, 8, "Q4_K_M", "blk.3.attn_k.weight", WICK_Q8_0, false},
    {"llama", 16, 8, 8, "Q4_K_M", "blk.3.attn_output.weight", WICK_Q5_K, false},
    {"llama", 16, 8, 8, "Q3_K_L", "blk.3.attn_output.weight", WICK_Q3_K, false},
    {"llama", 16, 8, 0, "Q3_K_L", "blk.3.attn_output.weight", WICK_Q5_K, false},
    {"llama", 80, 2, 0, "Q4_K_M", "blk.3.attn_v.weight", WICK_Q5_K, false},
    {"llama", 80, 8, 0, "Q4_K_M", "blk.3.attn_v.weight", WICK_Q4_K, false},
    {"falcon", 16, 1, 0, "Q4_K_M", "blk.1.ffn_down.weight", WICK_Q5_K, false},
    {"falcon", 16, 1, 0, "Q4_K_M", "blk.0.ffn_down.weight", WICK_Q6_K, false},
    {"falcon", 16, 1, 0, "Q4_K_M", "token_embd.weight", WICK_Q8_0, false},
    {"llama", 16, 8, 0, "IQ4_XS", "blk.1.ffn_down.weight", WICK_Q5_K, false},
    {"llama", 16, 8, 0, "IQ4_XS", "blk.1.ffn_down.weight", WICK_IQ4_XS, true},
    {"llama", 16, 8, 0, "Q4_0", "blk.1.ffn_down.weight", WICK_Q4_0, false},
    {"llama", 16, 8, 0, "Q4_0", "blk.1.ffn_down.weight", WICK_Q4_1, true},
    {"llama", 16, 8, 0, "Q2_K_S", "blk.1.ffn_down.weight", WICK_Q4_K, false},
    {"llama", 16, 8, 0, "Q2_K_S", "blk.2.ffn_down.weight", WICK_Q2_K, false},
};

/* An importance matrix that knows blk.0.attn_k.weight. */
static void write_guide(const char *path) {
    contents c = {.values = {{.key = text_of("general.type"),
                              .type = WICK_VALUE_STRING,
                              .string = text_of("imatrix")}},
                  .n_values = 1};
    add(&c, "blk.0.attn_k.weight.in_sum2", WICK_SHAPE(1, K));
    add(&c, "blk.0.attn_k.weight.counts", WICK_SHAPE(1, 1));
    write_model(path, &c, 1);
}

static void test_mixes_of_families(void **state) {
    (void)state;
    char matrix[128];
    snprintf(matrix, sizeof matrix, "%s/imatrix.gguf", folder);
    write_guide(matrix);
    for (size_t i = 0; i < WK_COUNT(variants); i++) {
        const variant *const v = &variants[i];
        write_variant(v);
        wick_quantizing *q = NULL;
        const wick_quantize_desc desc = {.type = v->type, .imatrix = v->is_guided ? matrix : NULL};
        assert_int_equal(wick_quantize_start(in, out, &desc, &q, NULL), WICK_OK);
        size_t n = 0, j = 0;
        const wick_quantize_tensor *const plan = wick_quantize_plan(q, &n);
        while (j < n && strcmp(plan[j].tensor->name.text, v->tensor) != 0) j++;
        assert_true(j < n);
        if (plan[j].dtype != v->dtype)
            fail_msg("%s of %s (case %zu): %s", v->tensor, v->architecture, i,
                     wick_dtype_name(plan[j].dtype));
        assert_int_equal(wick_quantize_finish(q, false, NULL), WICK_OK);
    }
}

/* Every type there is, and its name found again. */
static void test_all_types(void **state) {
    (void)state;
    size_t n = 0;
    for (const char *type; (type = wick_quantize_type(n)) != NULL; n++)
        assert_int_equal(quantize(&(wick_quantize_desc){.type = type, .replace = true}, NULL),
                         WICK_OK);
    assert_int_equal(n, 21);
}

static void test_fallbacks(void **state) {
    (void)state;
    contents c;
    describe_llama(&c, ODD_K);
    write_model(in, &c, 0);
    static const expectation expected[] = {
        {"Q4_K_M", "blk.3.attn_q.weight", WICK_Q5_0},   {"Q4_K_M", "output.weight", WICK_Q8_0},
        {"Q5_K_M", "blk.3.attn_q.weight", WICK_Q5_1},   {"Q2_K", "blk.3.attn_q.weight", WICK_Q4_0},
        {"IQ4_XS", "blk.3.attn_q.weight", WICK_IQ4_NL}, {"Q8_0", "blk.3.attn_q.weight", WICK_Q8_0},
    };
    for (size_t i = 0; i < WK_COUNT(expected); i++) {
        const wick_quantize_desc desc = {.type = expected[i].type, .replace = true};
        wick_quantizing *q = NULL;
        assert_int_equal(wick_quantize_start(in, out, &desc, &q, NULL), WICK_OK);
        size_t n = 0;
        const wick_quantize_tensor *const plan = wick_quantize_plan(q, &n);
        assert_int_equal(n, c.n_tensors);
        for (size_t j = 0; j < n; j++) {
            if (strcmp(plan[j].tensor->name.text, expected[i].tensor) != 0) continue;
            assert_int_equal(plan[j].dtype, expected[i].dtype);
            assert_int_equal(plan[j].is_fallback, strcmp(expected[i].type, "Q8_0") != 0);
        }
        assert_int_equal(wick_quantize_finish(q, false, NULL), WICK_OK);
    }
    contents odder;
    describe_llama(&odder, 17); /* of no block at all */
    write_model(in, &odder, 0);
    assert_int_equal(quantize(&(wick_quantize_desc){.type = "Q4_K_M"}, NULL), WICK_OK);
    wick_file *file = NULL;
    assert_int_equal(wick_file_open(out, &file, NULL), WICK_OK);
    assert_int_equal(dtype_in(file, "blk.3.attn_q.weight"), WICK_F16);
    wick_file_close(file);
}

static void read_all(const char *path, uint8_t **data, size_t *size) {
    FILE *const file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    *data = malloc(*size);
    assert_int_equal(fread(*data, 1, *size, file), *size);
    fclose(file);
}

/* Metadata stays, values come back as near as the type allows, and threads change nothing. */
static void test_contents(void **state) {
    (void)state;
    uint8_t *first = NULL, *second = NULL;
    size_t n_first = 0, n_second = 0;
    const wick_quantize_desc desc = {.type = "Q8_0", .n_threads = 1, .replace = true};
    assert_int_equal(quantize(&desc, NULL), WICK_OK);
    read_all(out, &first, &n_first);
    const wick_quantize_desc threads = {.type = "Q8_0", .n_threads = 3, .replace = true};
    assert_int_equal(quantize(&threads, NULL), WICK_OK);
    read_all(out, &second, &n_second);
    assert_int_equal(n_first, n_second);
    assert_memory_equal(first, second, n_first);
    free(first);
    free(second);

    wick_file *before = NULL, *after = NULL;
    assert_int_equal(wick_file_open(in, &before, NULL), WICK_OK);
    assert_int_equal(wick_file_open(out, &after, NULL), WICK_OK);
    assert_int_equal(wick_file_find_value(after, "general.file_type")->u, 7);
    assert_int_equal(wick_file_find_value(after, "general.quantization_version")->u, 2);
    assert_int_equal(wick_file_find_value(after, "llama.block_count")->u, LAYERS);
    assert_int_equal(wick_file_value_count(after), wick_file_value_count(before) + 1);
    for (size_t i = 0; i < wick_file_tensor_count(after); i++) {
        const wick_file_tensor *const a = wick_file_get_tensor(before, i);
        const wick_file_tensor *const b = wick_file_get_tensor(after, i);
        float x[4 * K], y[4 * K];
        uint8_t blocks[sizeof y];
        assert_int_equal(wick_file_read(before, a->offset, x, a->size, NULL), WICK_OK);
        assert_int_equal(wick_file_read(after, b->offset, blocks, b->size, NULL), WICK_OK);
        wk_decoder(b->dtype)(blocks, y, count_of(b));
        for (int64_t j = 0; j < count_of(b); j++) assert_true(fabsf(x[j] - y[j]) < 0.003F);
    }
    wick_file_close(before);
    wick_file_close(after);
}

static void test_bad_elements(void **state) {
    (void)state;
    contents c;
    describe_llama(&c, K);
    static const struct {
        float value;
        const char *type, *shown;
    } cases[] = {{NAN, "Q4_K_M", "nan"}, {INFINITY, "Q8_0", "inf"}, {70000, "F16", "70000"}};
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        write_model(in, &c, cases[i].value);
        wick_error error = {0};
        assert_int_equal(quantize(&(wick_quantize_desc){.type = cases[i].type}, &error),
                         WICK_ERR_VALUE);
        assert_non_null(strstr(error.message, "'token_embd.weight', element 1023"));
        assert_non_null(strstr(error.message, cases[i].shown));
        assert_int_equal(count_files(false), 1); /* the model */
    }
    /* What is only copied may hold anything. */
    assert_int_equal(quantize(&(wick_quantize_desc){.type = "F32"}, NULL), WICK_OK);
}

static void test_refusals(void **state) {
    (void)state;
    const wick_quantize_desc desc = {.type = "Q8_0"}, forced = {.type = "Q8_0", .replace = true};
    refuse(in, in, &forced, WICK_ERR_ARGUMENT, "is a file that is read");
    assert_int_equal(symlink(in, out), 0);
    refuse(in, out, &forced, WICK_ERR_ARGUMENT, "is a file that is read");
    assert_int_equal(remove(out), 0);
    refuse(in, out, &(wick_quantize_desc){.type = "Q9_K"}, WICK_ERR_VALUE, "Q4_K_M");
    refuse(in, out, &(wick_quantize_desc){.type = "Q8"}, WICK_ERR_VALUE, "the type 'Q8'");
    refuse("/nowhere/x.gguf", out, &desc, WICK_ERR_NOT_FOUND, "/nowhere/x.gguf");
    refuse(in, "/nowhere/x.gguf", &desc, WICK_ERR_NOT_FOUND, "/nowhere/x.gguf");
    refuse(in, "", &desc, WICK_ERR_NOT_FOUND, "cannot write ''");
    refuse(in, NULL, &desc, WICK_ERR_ARGUMENT, "NULL");
    refuse(in, out, &(wick_quantize_desc){.type = NULL}, WICK_ERR_ARGUMENT, "NULL");
    assert_int_equal(quantize(&desc, NULL), WICK_OK);
    refuse(in, out, &desc, WICK_ERR_STATE, "is there already");
    assert_int_equal(wick_quantize_start(in, out, &desc, NULL, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_quantize_poll(NULL, NULL, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_quantize_finish(NULL, true, NULL), WICK_ERR_ARGUMENT);
    assert_null(wick_quantize_plan(NULL, NULL));
    assert_int_equal(count_files(false), 2);
}

/* Bytes of the source file: from none to all, never back, and of each tensor as it is read. */
static void test_progress(void **state) {
    (void)state;
    const wick_quantize_desc desc = {.type = "Q8_0", .replace = true};
    wick_quantizing *q = NULL;
    wick_progress progress = {0};
    wick_status status;
    uint64_t before = 0, total = 0;
    size_t n_tensors = 0;
    assert_int_equal(wick_quantize_start(in, out, &desc, &q, NULL), WICK_OK);
    const wick_quantize_tensor *const plan = wick_quantize_plan(q, &n_tensors);
    for (size_t i = 0; i < n_tensors; i++) total += plan[i].tensor->size;
    do {
        status = wick_quantize_poll(q, &progress, NULL);
        assert_true(progress.done > before && progress.total == total);
        before = progress.done;
    } while (status == WICK_PENDING);
    assert_int_equal(status, WICK_OK);
    assert_int_equal(progress.done, total);
    assert_int_equal(wick_quantize_finish(q, true, NULL), WICK_OK);
}

static void test_unfinished(void **state) {
    (void)state;
    const wick_quantize_desc desc = {.type = "Q8_0"};
    wick_quantizing *q = NULL;
    wick_error error = {0};
    assert_int_equal(wick_quantize_start(in, out, &desc, &q, NULL), WICK_OK);
    assert_int_equal(wick_quantize_poll(q, NULL, NULL), WICK_PENDING);
    assert_int_equal(wick_quantize_finish(q, true, &error), WICK_ERR_STATE);
    assert_non_null(strstr(error.message, "is not complete"));
    assert_int_equal(count_files(false), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_progress),     IN_FOLDER(test_mixes),     IN_FOLDER(test_mixes_of_families),
        IN_FOLDER(test_all_types),    IN_FOLDER(test_fallbacks), IN_FOLDER(test_contents),
        IN_FOLDER(test_bad_elements), IN_FOLDER(test_refusals),  IN_FOLDER(test_unfinished),
    };
    return cmocka_run_group_tests_name("quantize", tests, NULL, NULL);
}
