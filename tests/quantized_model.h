/* tests/quantized_model.h: a folder with a model to be quantized, which tests write. They define
 * _POSIX_C_SOURCE 200809L. */
#ifndef QUANTIZED_MODEL_H
#define QUANTIZED_MODEL_H

#include <wick/convert.h>

#include "core/compiler.h"
#include "core/rng.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LAYERS = 16, MAX_TENSORS = 80, K = 256, ODD_K = 96 };

static char folder[64], in[96], out[96];

static inline wick_string text_of(const char *text) { return (wick_string){text, strlen(text)}; }

static inline wick_value number(const char *key, uint32_t value) {
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

static inline void add(contents *c, const char *name, wick_shape shape) {
    assert_true(c->n_tensors < MAX_TENSORS);
    char *const copy = c->names[c->n_tensors];
    snprintf(copy, sizeof c->names[0], "%s", name);
    c->tensors[c->n_tensors++] =
        (wick_file_tensor){.name = text_of(copy), .dtype = WICK_F32, .shape = shape};
}

/* What a llama has, one row or two of everything. Names lie in *c. */
static inline void describe_llama(contents *c, int64_t k) {
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

static inline int64_t count_of(const wick_file_tensor *tensor) {
    int64_t n = 1;
    for (int i = 0; i < tensor->shape.rank; i++) n *= tensor->shape.extent[i];
    return n;
}

/* bad: put into the last element of every tensor; 0: nothing is. */
static inline void write_model(const char *path, const contents *c, float bad) {
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

static inline int make_folder(void **state) {
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
static inline int count_files(bool remove_them) {
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

static inline int remove_folder(void **state) {
    (void)state;
    (void)count_files(true);
    return rmdir(folder);
}

static inline wick_status quantize(const wick_quantize_desc *desc, wick_error *error) {
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

/* What cannot be begun, with a sentence that has these words. */
static inline void refuse(const char *from, const char *to, const wick_quantize_desc *desc,
                          wick_status status, const char *words) {
    wick_error error = {0};
    wick_quantizing *q = NULL;
    assert_int_equal(wick_quantize_start(from, to, desc, &q, &error), status);
    assert_null(q);
    assert_non_null(strstr(error.message, words));
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

#endif
