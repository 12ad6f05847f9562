/* golden/head_file.h: writes a model with a prediction head, as a copy of one without: the head's
 * layer is the last one that attends, and what is its own is random. */
#ifndef WK_TESTS_GOLDEN_HEAD_FILE_H
#define WK_TESTS_GOLDEN_HEAD_FILE_H

#include "golden/model_path.h"
#include "random_bits.h"

#include <wick/file.h>

#include <stdlib.h>

/* Numbers of a head's own tensors, drawn again for each file. */
typedef struct head_numbers {
    uint32_t n_embd;
    float *projection, *embedding_norm, *state_norm,
        *output_norm; /* [n_embd, 2 n_embd], [n_embd] */
} head_numbers;

static inline float *draw(size_t n, float mean, float spread) {
    float *const numbers = malloc(n * sizeof *numbers);
    for (size_t i = 0; i < n; i++)
        numbers[i] = mean + spread * ((float)(random_bits() % 20001) / 10000 - 1);
    return numbers;
}

static inline head_numbers draw_head(uint32_t n_embd) {
    const size_t n = n_embd;
    return (head_numbers){n_embd, draw(2 * n * n, 0, 0.2F), draw(n, 1, 0.3F), draw(n, 1, 0.3F),
                          draw(n, 1, 0.3F)};
}

static inline void free_head_numbers(head_numbers *numbers) {
    free(numbers->projection);
    free(numbers->embedding_norm);
    free(numbers->state_norm);
    free(numbers->output_norm);
}

enum { MOST_FILE_VALUES = 96, MOST_FILE_TENSORS = 256 };

typedef struct head_file {
    wick_file *from;
    wick_value values[MOST_FILE_VALUES];
    size_t n_values;
    wick_file_tensor tensors[MOST_FILE_TENSORS];
    char names[MOST_FILE_TENSORS][64];
    const float *own[MOST_FILE_TENSORS]; /* NULL: as in the file from */
    size_t n_tensors;
} head_file;

static inline void add_file_tensor(head_file *f, const char *name, const wick_file_tensor *like,
                                   const float *own) {
    assert_true(f->n_tensors < MOST_FILE_TENSORS);
    char *const copy = f->names[f->n_tensors];
    snprintf(copy, sizeof f->names[0], "%s", name);
    f->own[f->n_tensors] = own;
    f->tensors[f->n_tensors] = *like;
    f->tensors[f->n_tensors++].name = (wick_string){copy, strlen(copy)};
}

static inline void add_own_tensor(head_file *f, uint32_t layer, const char *suffix,
                                  wick_shape shape, const float *numbers) {
    char name[64];
    snprintf(name, sizeof name, "blk.%u.%s", layer, suffix);
    const wick_file_tensor like = {.dtype = WICK_F32, .shape = shape};
    add_file_tensor(f, name, &like, numbers);
}

/* Those of layer `like` once more, as layer `as`. */
static inline void add_layer(head_file *f, uint32_t like, uint32_t as) {
    char prefix[24], name[64];
    const int n = snprintf(prefix, sizeof prefix, "blk.%u.", like);
    for (size_t i = 0; i < wick_file_tensor_count(f->from); i++) {
        const wick_file_tensor *const tensor = wick_file_get_tensor(f->from, i);
        if (strncmp(tensor->name.text, prefix, (size_t)n) != 0) continue;
        snprintf(name, sizeof name, "blk.%u.%s", as, tensor->name.text + n);
        add_file_tensor(f, name, tensor, NULL);
    }
}

static inline bool is_key(const wick_value *value, const char *end) {
    const size_t n = strlen(end);
    return value->key.size > n && strcmp(value->key.text + value->key.size - n, end) == 0;
}

static inline void write_file(head_file *f, const char *path) {
    wick_error error = {0};
    wick_file_writer *writer;
    const wick_file_desc desc = {.values = f->values,
                                 .n_values = f->n_values,
                                 .tensors = f->tensors,
                                 .n_tensors = f->n_tensors,
                                 .replace = true};
    if (wick_file_write_start(path, &desc, &writer, &error) != WICK_OK)
        fail_msg("%s", error.message);
    for (size_t i = 0; i < f->n_tensors; i++) {
        const wick_file_tensor *const tensor = &f->tensors[i];
        size_t size = tensor->size;
        for (int d = 0; f->own[i] && d < tensor->shape.rank; d++)
            size = (d == 0 ? sizeof(float) : size) * (size_t)tensor->shape.extent[d];
        void *const data = malloc(size);
        if (f->own[i])
            memcpy(data, f->own[i], size);
        else
            assert_int_equal(wick_file_read(f->from, tensor->offset, data, size, NULL), WICK_OK);
        assert_int_equal(wick_file_write(writer, data, size, NULL), WICK_OK);
        free(data);
    }
    if (wick_file_write_finish(writer, true, &error) != WICK_OK) fail_msg("%s", error.message);
}

/* Of the first key that ends so. */
static inline uint32_t file_number(const wick_file *file, const char *end) {
    for (size_t i = 0; i < wick_file_value_count(file); i++)
        if (is_key(wick_file_value(file, i), end)) return (uint32_t)wick_file_value(file, i)->u;
    fail_msg("the file has no key that ends with '%s'", end);
    return 0;
}

/* The last layer that attends; UINT32_MAX: none does. */
static inline uint32_t find_attention(const head_file *f) {
    uint32_t last = UINT32_MAX, layer;
    for (size_t i = 0; i < wick_file_tensor_count(f->from); i++) {
        char rest[48];
        const char *const name = wick_file_get_tensor(f->from, i)->name.text;
        if (sscanf(name, "blk.%u.%47s", &layer, rest) == 2 &&
            (strcmp(rest, "attn_k.weight") == 0 || strcmp(rest, "attn_kv_a_mqa.weight") == 0) &&
            (last == UINT32_MAX || layer > last))
            last = layer;
    }
    return last;
}

/* How a head's own last norm is called, and whether it has a table and an output of its own, which
 * are the model's. */
typedef enum head_form { HEAD_PLAIN, HEAD_LIKE_LING, HEAD_WITH_TABLES } head_form;

static inline const wick_file_tensor *find_file_tensor(const wick_file *file, const char *name) {
    for (size_t i = 0; i < wick_file_tensor_count(file); i++)
        if (strcmp(wick_file_get_tensor(file, i)->name.text, name) == 0)
            return wick_file_get_tensor(file, i);
    return NULL;
}

static inline void add_head_tables(head_file *f, uint32_t layer) {
    char name[64];
    const wick_file_tensor *const table = find_file_tensor(f->from, "token_embd.weight");
    const wick_file_tensor *const output = find_file_tensor(f->from, "output.weight");
    snprintf(name, sizeof name, "blk.%u.nextn.embed_tokens.weight", layer);
    add_file_tensor(f, name, table, NULL);
    snprintf(name, sizeof name, "blk.%u.nextn.shared_head_head.weight", layer);
    add_file_tensor(f, name, output ? output : table, NULL);
}

/* The model with a head. Lists with an entry for each layer get one more. */
static inline void write_model_with_head(const char *from, const char *to,
                                         const head_numbers *numbers, head_form form) {
    static head_file f;
    static int64_t lists[4][64];
    static char key[96];
    f = (head_file){.n_values = 0};
    assert_int_equal(wick_file_open(from, &f.from, NULL), WICK_OK);
    const uint32_t n_layers = file_number(f.from, ".block_count");
    size_t n_lists = 0;
    for (size_t i = 0; i < wick_file_value_count(f.from); i++) {
        wick_value value = *wick_file_value(f.from, i);
        if (is_key(&value, ".nextn_predict_layers")) continue;
        if (is_key(&value, ".block_count")) {
            value.u++;
            snprintf(key, sizeof key, "%.*s.nextn_predict_layers",
                     (int)(value.key.size - strlen(".block_count")), value.key.text);
        } else if (value.type == WICK_VALUE_ARRAY && value.array.count == n_layers &&
                   strncmp(value.key.text, "tokenizer", 9) != 0) {
            const wick_value_type type = value.array.element_type;
            const size_t size = type == WICK_VALUE_BOOL ? 1 : 4;
            unsigned char *const list = (unsigned char *)lists[n_lists++];
            assert_true(n_lists <= 4 && size * (n_layers + 1) <= sizeof lists[0]);
            memcpy(list, value.array.values, size * n_layers);
            memcpy(list + size * n_layers, list + size * (n_layers - 1), size);
            value.array.values = list;
            value.array.count++;
        }
        f.values[f.n_values++] = value;
    }
    f.values[f.n_values++] =
        (wick_value){.key = {key, strlen(key)}, .type = WICK_VALUE_U32, .u = 1};
    for (size_t i = 0; i < wick_file_tensor_count(f.from); i++) {
        const wick_file_tensor *const tensor = wick_file_get_tensor(f.from, i);
        add_file_tensor(&f, tensor->name.text, tensor, NULL);
    }
    const int64_t n = numbers->n_embd;
    add_layer(&f, find_attention(&f), n_layers);
    add_own_tensor(&f, n_layers, "nextn.eh_proj.weight", WICK_SHAPE(n, 2 * n), numbers->projection);
    add_own_tensor(&f, n_layers, "nextn.enorm.weight", WICK_SHAPE(n), numbers->embedding_norm);
    add_own_tensor(&f, n_layers, "nextn.hnorm.weight", WICK_SHAPE(n), numbers->state_norm);
    add_own_tensor(&f, n_layers,
                   form == HEAD_LIKE_LING ? "layer_output_norm.weight"
                                          : "nextn.shared_head_norm.weight",
                   WICK_SHAPE(n), numbers->output_norm);
    if (form == HEAD_WITH_TABLES) add_head_tables(&f, n_layers);
    write_file(&f, to);
    wick_file_close(f.from);
}

static inline uint32_t width_of(const char *path) {
    wick_file *file;
    assert_int_equal(wick_file_open(path, &file, NULL), WICK_OK);
    const uint32_t n_embd = file_number(file, ".embedding_length");
    wick_file_close(file);
    return n_embd;
}

static inline void write_random_head(const char *from, const char *to) {
    head_numbers numbers = draw_head(width_of(from));
    write_model_with_head(from, to, &numbers, HEAD_PLAIN);
    free_head_numbers(&numbers);
}

/* The head as a model of its own: what goes into its layer has to be given as rows. */
static inline void write_head_alone(const char *from, const char *to, const head_numbers *numbers) {
    static head_file f;
    f = (head_file){.n_values = 0};
    assert_int_equal(wick_file_open(from, &f.from, NULL), WICK_OK);
    for (size_t i = 0; i < wick_file_value_count(f.from); i++) {
        wick_value value = *wick_file_value(f.from, i);
        if (is_key(&value, ".block_count")) value.u = 1;
        f.values[f.n_values++] = value;
    }
    for (size_t i = 0; i < wick_file_tensor_count(f.from); i++) {
        const wick_file_tensor *const tensor = wick_file_get_tensor(f.from, i);
        const bool is_norm = strcmp(tensor->name.text, "output_norm.weight") == 0;
        if (strncmp(tensor->name.text, "blk.", 4) == 0) continue;
        add_file_tensor(&f, tensor->name.text, tensor, is_norm ? numbers->output_norm : NULL);
    }
    add_layer(&f, find_attention(&f), 0);
    write_file(&f, to);
    wick_file_close(f.from);
}

#endif
