/* bench/gpu/random_model.c: models of random weights in real shapes, made while they are read: no
 * byte of them is ever on a disk.
 *
 * The header is that of a GGUF file. A tensor's data is a tile of small encoded numbers,
 * again and again: what a value is does not change how long it takes to compute with, as long as
 * all stay finite. */
#include "gpu_bench.h"

#include "core/compiler.h"
#include "core/dtype.h"
#include "core/rng.h"
#include "format/gguf_write.h"
#include "quant/encode.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TENSORS = 400, MOST_VALUES = 20, NAME = 40, TILE_ELEMENTS = 1 << 18, TOKEN = 12 };

const model_shape *find_shape(const char *name) {
    static const model_shape shapes[] = {
        {"smollm2-135m", "llama", 576, 30, 9, 3, 64, 1536, 49152, true, false, WICK_Q4_0,
         WICK_Q8_0},
        {"qwen3-0.6b", "qwen3", 1024, 28, 16, 8, 128, 3072, 151936, true, true, WICK_Q4_K,
         WICK_Q6_K},
        {"llama-3-8b", "llama", 4096, 32, 32, 8, 128, 14336, 128256, false, false, WICK_Q4_K,
         WICK_Q6_K},
    };
    for (size_t i = 0; i < WK_COUNT(shapes); i++)
        if (strcmp(shapes[i].name, name) == 0) return &shapes[i];
    return NULL;
}

typedef struct random_model {
    wk_heap heap;
    wk_strbuf header;
    wk_gguf_parser *parser;
    wick_value values[MOST_VALUES];
    char keys[MOST_VALUES][NAME];
    size_t n_values;
    wick_file_tensor tensors[MOST_TENSORS];
    char names[MOST_TENSORS][NAME];
    size_t n_tensors;
    unsigned char *tiles[WICK_DTYPE_COUNT_]; /* by dtype, made when they are first read */
    size_t got;                              /* bytes of the last read */
} random_model;

/* ---- The header ---- */

static wick_string text_of(const char *text) { return (wick_string){text, strlen(text)}; }

static wick_value *add_value(random_model *m, const char *prefix, const char *key,
                             wick_value_type type) {
    char *const name = m->keys[m->n_values];
    wick_value *const value = &m->values[m->n_values++];
    snprintf(name, NAME, "%s.%s", prefix, key);
    *value = (wick_value){.key = text_of(name), .type = type};
    return value;
}

static void add_list(random_model *m, const char *key, wick_value_type type, uint32_t n,
                     const void *values) {
    wick_value *const list = add_value(m, "tokenizer.ggml", key, WICK_VALUE_ARRAY);
    list->array.element_type = type;
    list->array.count = n;
    list->array.values = values;
}

static void add_values(random_model *m, const model_shape *s, const wick_string *tokens,
                       const float *scores) {
    const struct {
        const char *key;
        uint32_t number;
    } numbers[] = {
        {"block_count", s->n_layers},          {"context_length", 1 << 17},
        {"embedding_length", s->n_embd},       {"feed_forward_length", s->n_ff},
        {"attention.head_count", s->n_heads},  {"attention.head_count_kv", s->n_heads_kv},
        {"attention.key_length", s->head_dim}, {"attention.value_length", s->head_dim},
    };
    add_value(m, "general", "architecture", WICK_VALUE_STRING)->string = text_of(s->architecture);
    for (size_t i = 0; i < WK_COUNT(numbers); i++)
        add_value(m, s->architecture, numbers[i].key, WICK_VALUE_U32)->u = numbers[i].number;
    add_value(m, s->architecture, "attention.layer_norm_rms_epsilon", WICK_VALUE_F32)->f = 1e-5;
    add_value(m, s->architecture, "rope.freq_base", WICK_VALUE_F32)->f = 500000;
    add_value(m, "tokenizer.ggml", "model", WICK_VALUE_STRING)->string = text_of("llama");
    add_list(m, "tokens", WICK_VALUE_STRING, s->n_vocab, tokens);
    add_list(m, "scores", WICK_VALUE_F32, s->n_vocab, scores);
}

static void add_tensor(random_model *m, int layer, const char *name, wick_dtype dtype,
                       wick_shape shape) {
    char *const full = m->names[m->n_tensors];
    if (layer < 0)
        snprintf(full, NAME, "%s.weight", name);
    else
        snprintf(full, NAME, "blk.%d.%s.weight", layer, name);
    m->tensors[m->n_tensors++] =
        (wick_file_tensor){.name = text_of(full), .dtype = dtype, .shape = shape};
}

static void add_layer(random_model *m, const model_shape *s, int layer) {
    const int64_t embd = s->n_embd, ff = s->n_ff;
    const int64_t q = (int64_t)s->n_heads * s->head_dim, kv = (int64_t)s->n_heads_kv * s->head_dim;
    const struct {
        const char *name;
        int64_t n, k;
    } matrices[] = {{"attn_q", q, embd},      {"attn_k", kv, embd},   {"attn_v", kv, embd},
                    {"attn_output", embd, q}, {"ffn_gate", ff, embd}, {"ffn_up", ff, embd},
                    {"ffn_down", embd, ff}};
    add_tensor(m, layer, "attn_norm", WICK_F32, WICK_SHAPE(embd));
    add_tensor(m, layer, "ffn_norm", WICK_F32, WICK_SHAPE(embd));
    for (size_t i = 0; i < WK_COUNT(matrices); i++)
        add_tensor(m, layer, matrices[i].name, s->matrices,
                   WICK_SHAPE(matrices[i].n, matrices[i].k));
    if (!s->has_head_norms) return;
    add_tensor(m, layer, "attn_q_norm", WICK_F32, WICK_SHAPE(s->head_dim));
    add_tensor(m, layer, "attn_k_norm", WICK_F32, WICK_SHAPE(s->head_dim));
}

static void add_tensors(random_model *m, const model_shape *s) {
    const wick_shape table = WICK_SHAPE(s->n_vocab, s->n_embd);
    add_tensor(m, -1, "token_embd", s->table, table);
    for (uint32_t i = 0; i < s->n_layers; i++) add_layer(m, s, (int)i);
    add_tensor(m, -1, "output_norm", WICK_F32, WICK_SHAPE(s->n_embd));
    if (!s->is_tied) add_tensor(m, -1, "output", s->table, table);
}

/* ---- The data ---- */

static uint64_t tile_size(wick_dtype dtype) {
    const wk_dtype_info *const info = wk_dtype_get(dtype);
    return (uint64_t)TILE_ELEMENTS / (uint64_t)info->block_elements * (uint64_t)info->block_bytes;
}

/* Weights of norms are 1, the others small. NULL: memory was short. */
static const unsigned char *tile_of(random_model *m, wick_dtype dtype) {
    if (m->tiles[dtype] != NULL) return m->tiles[dtype];
    float *const values = malloc(TILE_ELEMENTS * sizeof *values);
    unsigned char *const tile = malloc(tile_size(dtype));
    wk_rng rng = {.seed = 1};
    for (int i = 0; values != NULL && i < TILE_ELEMENTS; i++)
        values[i] = dtype == WICK_F32 ? 1.0F : 0.04F * (wk_rng_uniform(&rng) - 0.5F);
    if (values != NULL && tile != NULL) wk_encode(dtype, values, NULL, tile, TILE_ELEMENTS);
    if (values == NULL) free(tile);
    m->tiles[dtype] = values != NULL ? tile : NULL;
    free(values);
    return m->tiles[dtype];
}

static bool copy_tensor(random_model *m, const wick_file_tensor *tensor, uint64_t offset,
                        size_t size, unsigned char *dst) {
    const uint64_t begin = offset > tensor->offset ? offset : tensor->offset;
    const uint64_t tensor_end = tensor->offset + tensor->size, end = offset + size;
    const unsigned char *const tile = tile_of(m, tensor->dtype);
    if (tile == NULL) return false;
    for (uint64_t at = begin; at < end && at < tensor_end;) {
        const uint64_t in_tile = (at - tensor->offset) % tile_size(tensor->dtype);
        uint64_t n = tile_size(tensor->dtype) - in_tile;
        if (n > end - at) n = end - at;
        if (n > tensor_end - at) n = tensor_end - at;
        memcpy(dst + (at - offset), tile + in_tile, n);
        at += n;
    }
    return true;
}

static wick_status read_at(wick_source *source, uint64_t offset, size_t size, void *dst,
                           wick_error *error) {
    random_model *const m = source->user;
    const wk_gguf *const gguf = wk_gguf_parser_result(m->parser);
    if (offset >= source->size) size = 0;
    if (size > source->size - offset) size = (size_t)(source->size - offset);
    m->got = size;
    memset(dst, 0, size);
    if (offset < m->header.size)
        memcpy(dst, m->header.data + offset,
               size < m->header.size - offset ? size : m->header.size - offset);
    for (size_t i = 0; i < gguf->n_tensors; i++) {
        const wick_file_tensor *const tensor = &gguf->tensors[i];
        if (tensor->offset >= offset + size || tensor->offset + tensor->size <= offset) continue;
        if (!copy_tensor(m, tensor, offset, size, dst))
            return wk_fail(error, WICK_ERR_OUT_OF_MEMORY, "out of memory for random weights");
    }
    return WICK_OK;
}

static wick_status poll(wick_source *source, size_t *got, wick_error *error) {
    (void)error;
    *got = ((random_model *)source->user)->got;
    return WICK_OK;
}

static void close_model(wick_source *source) {
    random_model *const m = source->user;
    for (size_t i = 0; i < WK_COUNT(m->tiles); i++) free(m->tiles[i]);
    wk_gguf_parser_free(m->parser);
    wk_strbuf_release(&m->header);
    free(m);
}

wick_source make_random_model(const model_shape *shape) {
    random_model *const m = calloc(1, sizeof *m);
    char(*const texts)[TOKEN] = calloc(shape->n_vocab, sizeof *texts);
    wick_string *const tokens = calloc(shape->n_vocab, sizeof *tokens);
    float *const scores = calloc(shape->n_vocab, sizeof *scores);
    wick_error error = {.message = "out of memory for the model"};
    if (m == NULL || texts == NULL || tokens == NULL || scores == NULL)
        check(WICK_ERR_OUT_OF_MEMORY, &error);
    for (uint32_t i = 0; i < shape->n_vocab; i++) {
        snprintf(texts[i], TOKEN, "t%u", (unsigned)i);
        tokens[i] = text_of(texts[i]);
    }
    wk_heap_init(&m->heap, NULL);
    wk_strbuf_init(&m->header, &m->heap);
    add_values(m, shape, tokens, scores);
    add_tensors(m, shape);
    const wk_gguf_contents contents = {m->values, m->n_values, m->tensors, m->n_tensors};
    check(wk_gguf_write_header(&m->header, &contents, &m->parser, &error), &error);
    const wk_gguf *const gguf = wk_gguf_parser_result(m->parser);
    const wick_file_tensor *const last = &gguf->tensors[gguf->n_tensors - 1];
    const wick_source source = {.user = m,
                                .size = wk_gguf_padded(last->offset + last->size, gguf->alignment),
                                .read_at = read_at,
                                .poll = poll,
                                .close = close_model};
    free(texts);
    free(tokens);
    free(scores);
    return source;
}
