/* Quantizing files: which tensor gets which type, what is written, and what is refused. */
#define _POSIX_C_SOURCE 200809L /* mkdtemp, symlink */

#include <wick/convert.h>

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "convert/importance.h"
#include "core/compiler.h"
#include "core/rng.h"
#include "quant/block.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LAYERS = 16, MAX_TENSORS = 80, K = 256, ODD_K = 96 };

static char folder[64], in[96], out[96];

static wick_string text_of(const char *text) { return (wick_string){text, strlen(text)}; }

static wick_value number(const char *key, uint32_t value) {
    return (wick_value){.key = text_of(key), .type = WICK_VALUE_U32, .u = value};
}

/* A file that is being described: f32 tensors of random numbers. */
typedef struct contents {
    wick_value values[8];
    size_t n_values;
    char names[MAX_TENSORS][40];
    wick_file_tensor tensors[MAX_TENSORS];
    size_t n_tensors;
} contents;

static void add(contents *c, const char *name, wick_shape shape) {
    assert_true(c->n_tensors < MAX_TENSORS);
    char *const copy = c->names[c->n_tensors];
    snprintf(copy, sizeof c->names[0], "%s", name);
    c->tensors[c->n_tensors++] =
        (wick_file_tensor){.name = text_of(copy), .dtype = WICK_F32, .shape = shape};
}

/* What a llama has, one row or two of everything. Names lie in *c. */
static void describe_llama(contents *c, int64_t k) {
    static const char *const matrices[] = {"attn_q", "attn_v", "ffn_down", "ffn_gate_inp"};
    *c = (contents){.values = {{.key = text_of("general.architecture"),
                                .type = WICK_VALUE_STRING,
                                .string = text_of("llama")},
                               number("llama.block_count", LAYERS),
                               number("llama.attention.head_count", 8),
                               number("llama.attention.head_count_kv", 2),
                               number("general.file_type", 0)},
                    .n_values = 5};
    add(c, "token_embd.weight", WICK_SHAPE(4, k));
    for (int layer = 0; layer < LAYERS; layer++) {
        char name[40];
        for (size_t i = 0; i < WK_COUNT(matrices); i++) {
            snprintf(name, sizeof name, "blk.%d.%s.weight", layer, matrices[i]);
            add(c, name, WICK_SHAPE(2, k));
        }
    }
    add(c, "output_norm.weight", WICK_SHAPE(k));
    add(c, "output.weight", WICK_SHAPE(4, k));
}

static int64_t count_of(const wick_file_tensor *tensor) {
    int64_t n = 1;
    for (int i = 0; i < tensor->shape.rank; i++) n *= tensor->shape.extent[i];
    return n;
}

/* bad: put into the last element of every tensor; 0: nothing is. */
static void write_model(const char *path, const contents *c, float bad) {
    const wick_file_desc desc = {.values = c->values,
                                 .n_values = c->n_values,
                                 .tensors = c->tensors,
                                 .n_tensors = c->n_tensors,
                                 .replace = true};
    wick_file_writer *writer = NULL;
    assert_int_equal(wick_file_write_start(path, &desc, &writer, NULL), WICK_OK);
    wk_rng rng = {.seed = 5};
    for (size_t i = 0; i < c->n_tensors; i++) {
        const int64_t n = count_of(&c->tensors[i]);
        for (int64_t j = 0; j < n; j++) {
            float x = wk_rng_uniform(&rng) - 0.5F;
            if (j == n - 1 && bad != 0) x = bad;
            assert_int_equal(wick_file_write(writer, &x, sizeof x, NULL), WICK_OK);
        }
    }
    assert_int_equal(wick_file_write_finish(writer, true, NULL), WICK_OK);
}

static int make_folder(void **state) {
    (void)state;
    strcpy(folder, "/tmp/wick-quantize-XXXXXX");
    if (mkdtemp(folder) == NULL) return -1;
    snprintf(in, sizeof in, "%s/in.gguf", folder);
    snprintf(out, sizeof out, "%s/out.gguf", folder);
    contents c;
    describe_llama(&c, K);
    write_model(in, &c, 0);
    return 0;
}

/* What is left in the folder; removes it all. */
static int count_files(bool remove_them) {
    DIR *const dir = opendir(folder);
    int n = 0;
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        char path[400];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (remove_them) remove(path);
        n++;
    }
    closedir(dir);
    return n;
}

static int remove_folder(void **state) {
    (void)state;
    (void)count_files(true);
    return rmdir(folder);
}

static wick_status quantize(const wick_quantize_desc *desc, wick_error *error) {
    wick_quantizing *q = NULL;
    wick_status status = wick_quantize_start(in, out, desc, &q, error);
    if (status != WICK_OK) return status;
    wick_progress progress = {0};
    do {
        const uint64_t before = progress.done;
        status = wick_quantize_poll(q, &progress, error);
        assert_true(progress.done >= before && progress.done <= progress.total);
    } while (status == WICK_PENDING);
    assert_true(status != WICK_OK || progress.done == progress.total);
    const wick_status finished = wick_quantize_finish(q, status == WICK_OK, error);
    return status != WICK_OK ? status : finished;
}

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
        {"Q3_K_M", "blk.9.ffn_down.weight", WICK_Q4_K},
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

static void refuse(const char *from, const char *to, const wick_quantize_desc *desc,
                   wick_status status, const char *words) {
    wick_error error = {0};
    wick_quantizing *q = NULL;
    assert_int_equal(wick_quantize_start(from, to, desc, &q, &error), status);
    assert_null(q);
    assert_non_null(strstr(error.message, words));
}

static void test_refusals(void **state) {
    (void)state;
    const wick_quantize_desc desc = {.type = "Q8_0"}, forced = {.type = "Q8_0", .replace = true};
    refuse(in, in, &forced, WICK_ERR_ARGUMENT, "is a file that is read");
    assert_int_equal(symlink(in, out), 0);
    refuse(in, out, &forced, WICK_ERR_ARGUMENT, "is a file that is read");
    assert_int_equal(remove(out), 0);
    refuse(in, out, &(wick_quantize_desc){.type = "Q9_K"}, WICK_ERR_VALUE, "Q4_K_M");
    refuse(in, out, &(wick_quantize_desc){.type = "Q8"}, WICK_ERR_VALUE, "'Q8' is no type");
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
    assert_non_null(strstr(error.message, "no mean of squares"));

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

/* Every expert has channels of its own that matter, also those behind the first 2^20 elements,
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
    refuse(in, out, &desc, WICK_ERR_FORMAT, "no importance matrix");
    refuse(in, out, &(wick_quantize_desc){.type = "Q4_0", .imatrix = in}, WICK_ERR_FORMAT,
           "no importance matrix");
    refuse(in, out, &(wick_quantize_desc){.type = "Q4_0", .imatrix = "/nowhere"},
           WICK_ERR_NOT_FOUND, "/nowhere");
    assert_int_equal(count_files(false), 2);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_mixes),
        IN_FOLDER(test_mixes_of_families),
        IN_FOLDER(test_all_types),
        IN_FOLDER(test_fallbacks),
        IN_FOLDER(test_contents),
        IN_FOLDER(test_bad_elements),
        IN_FOLDER(test_refusals),
        IN_FOLDER(test_unfinished),
        IN_FOLDER(test_importance),
        IN_FOLDER(test_importance_of_experts),
        IN_FOLDER(test_wrong_importance),
    };
    return cmocka_run_group_tests_name("quantize", tests, NULL, NULL);
}
