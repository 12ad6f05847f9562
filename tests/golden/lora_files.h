/* golden/lora_files.h: random adapters of a model, written as GGUF files or as PEFT has them. */
#ifndef WK_TESTS_GOLDEN_LORA_FILES_H
#define WK_TESTS_GOLDEN_LORA_FILES_H

#include "core/compiler.h"
#include "core/half.h"
#include "llm/llm.h"

#include "random_bits.h"

#include <wick/file.h>

enum { LORA_MOST = 512 };

/* Of one matrix of the model. */
typedef struct lora_pair {
    wick_string weight;
    int64_t n, k;
    float *a, *b; /* [rank, k], [n, rank] */
} lora_pair;
typedef struct lora_values {
    int64_t rank;
    size_t n;
    lora_pair pairs[LORA_MOST];
} lora_values;

static inline float *random_floats(int64_t n, double scale) {
    float *const values = malloc((size_t)n * sizeof *values);
    for (int64_t i = 0; i < n; i++)
        values[i] = (float)(scale * ((double)(random_bits() >> 40) * 0x1p-23 - 1.0));
    return values;
}

/* For every `step`-th matrix that can be adapted, from number first on. */
static inline void lora_make(const wick_model *model, int64_t rank, size_t first, size_t step,
                             lora_values *out) {
    *out = (lora_values){.rank = rank};
    size_t n = 0;
    for (size_t i = 0; i < model->gguf->n_tensors; i++) {
        const wick_string name = model->gguf->tensors[i].name;
        wick_shape shape;
        if (wk_model_can_adapt(model->model, name, &shape) == 0) continue;
        if (n++ % step != first || out->n == LORA_MOST) continue;
        const int64_t rows = shape.extent[0], k = shape.extent[1];
        out->pairs[out->n++] = (lora_pair){.weight = name,
                                           .n = rows,
                                           .k = k,
                                           .a = random_floats(rank * k, 0.5),
                                           .b = random_floats(rows * rank, 0.2)};
    }
    assert_true(out->n > 0);
}

static inline void lora_free(lora_values *values) {
    for (size_t i = 0; i < values->n; i++) {
        free(values->pairs[i].a);
        free(values->pairs[i].b);
    }
}

static inline wick_string lora_text(const char *text) { return (wick_string){text, strlen(text)}; }

static inline wick_value lora_text_value(const char *key, const char *text) {
    return (wick_value){
        .key = lora_text(key), .type = WICK_VALUE_STRING, .string = lora_text(text)};
}

static inline void lora_put(wick_file_writer *writer, wick_dtype dtype, const float *values,
                            int64_t n) {
    const size_t size = (size_t)n * (dtype == WICK_F16 || dtype == WICK_BF16 ? 2 : 4);
    uint16_t *const halves = malloc((size_t)n * sizeof *halves);
    for (int64_t i = 0; i < n; i++)
        halves[i] = dtype == WICK_F16 ? wk_f32_to_f16(values[i]) : wk_f32_to_bf16(values[i]);
    const void *const bytes = size / 2 == (size_t)n ? (const void *)halves : values;
    assert_int_equal(wick_file_write(writer, bytes, size, NULL), WICK_OK);
    free(halves);
}

/* alpha 0: none. more: another setting, or NULL. dtype: f16, bf16, or one of as many bytes as f32,
 * whose bits are written. */
static inline void lora_write_as(const wick_model *model, const lora_values *from, wick_dtype dtype,
                                 double alpha, const wick_value *more, const char *path) {
    static wick_file_tensor tensors[2 * LORA_MOST];
    static char names[2 * LORA_MOST][96];
    wick_value values[5] = {
        lora_text_value("general.type", "adapter"),
        lora_text_value("general.architecture", model->info.architecture),
        lora_text_value("adapter.type", "lora"),
    };
    size_t n_values = 3;
    if (alpha != 0)
        values[n_values++] = (wick_value){
            .key = lora_text("adapter.lora.alpha"), .type = WICK_VALUE_F32, .f = alpha};
    if (more != NULL) values[n_values++] = *more;
    for (size_t i = 0; i < 2 * from->n; i++) {
        const lora_pair *const pair = &from->pairs[i / 2];
        snprintf(names[i], sizeof names[i], "%s.lora_%c", pair->weight.text, i % 2 ? 'b' : 'a');
        tensors[i] = (wick_file_tensor){.name = lora_text(names[i]),
                                        .dtype = dtype,
                                        .shape = i % 2 ? WICK_SHAPE(pair->n, from->rank)
                                                       : WICK_SHAPE(from->rank, pair->k)};
    }
    const wick_file_desc desc = {.values = values,
                                 .n_values = n_values,
                                 .tensors = tensors,
                                 .n_tensors = 2 * from->n,
                                 .replace = true};
    wick_file_writer *writer;
    wick_error error = {.status = WICK_OK};
    if (wick_file_write_start(path, &desc, &writer, &error) != WICK_OK)
        fail_msg("%s", error.message);
    for (size_t i = 0; i < from->n; i++) {
        const lora_pair *const pair = &from->pairs[i];
        lora_put(writer, dtype, pair->a, pair->k * from->rank);
        lora_put(writer, dtype, pair->b, pair->n * from->rank);
    }
    assert_int_equal(wick_file_write_finish(writer, true, NULL), WICK_OK);
}

static inline void lora_write(const wick_model *model, const lora_values *from, double alpha,
                              const wick_value *more, const char *path) {
    lora_write_as(model, from, WICK_F32, alpha, more, path);
}

#endif
