/* tests/small_model.h: a complete llama model of a few KB, to be spoilt key by key. */
#ifndef SMALL_MODEL_H
#define SMALL_MODEL_H

#include "gguf_bytes.h"

#include <stdbool.h>
#include <stdio.h>

enum { SMALL_LAYERS = 2, SMALL_EMBD = 8, SMALL_FF = 12, SMALL_VOCAB = 6 };

typedef struct small_entry {
    char key[64];
    wick_value_type type; /* U32, I32, U64, F32, BOOL or STRING; ARRAY: u32, n copies of number */
    uint64_t number;      /* F32: its bits */
    uint64_t n;           /* elements of an array */
    const char *text;
} small_entry;

typedef struct small_tensor {
    char name[64];
    int rank;
    uint64_t extents[2]; /* fastest first */
    uint32_t type;       /* GGML's number */
} small_tensor;

typedef struct small_model {
    small_entry entries[40];
    small_tensor tensors[80];
    int n_entries, n_tensors;
    bool has_no_vocabulary, has_only_tokens; /* no scores and kinds */
    int n_tokens;
} small_model;

static inline small_entry *small_find(small_model *model, const char *key) {
    for (int i = 0; i < model->n_entries; i++) {
        if (strcmp(model->entries[i].key, key) == 0) return &model->entries[i];
    }
    small_entry *const entry = &model->entries[model->n_entries++];
    *entry = (small_entry){.number = 0};
    snprintf(entry->key, sizeof entry->key, "%s", key);
    return entry;
}

static inline void small_set(small_model *model, const char *key, wick_value_type type,
                             uint64_t number) {
    small_entry *const entry = small_find(model, key);
    entry->type = type;
    entry->number = number;
}

static inline void small_set_u32(small_model *model, const char *key, uint32_t number) {
    small_set(model, key, WICK_VALUE_U32, number);
}

static inline void small_set_f32(small_model *model, const char *key, float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    small_set(model, key, WICK_VALUE_F32, bits);
}

static inline void small_set_text(small_model *model, const char *key, const char *text) {
    small_find(model, key)->text = text;
    small_set(model, key, WICK_VALUE_STRING, 0);
}

static inline void small_remove(small_model *model, const char *key) {
    small_entry *const entry = small_find(model, key);
    *entry = model->entries[--model->n_entries];
}

static inline small_tensor *small_find_tensor(small_model *model, const char *name) {
    for (int i = 0; i < model->n_tensors; i++) {
        if (strcmp(model->tensors[i].name, name) == 0) return &model->tensors[i];
    }
    return NULL;
}

static inline void small_remove_tensor(small_model *model, const char *name) {
    *small_find_tensor(model, name) = model->tensors[model->n_tensors - 1];
    model->n_tensors--;
}

/* A vector of n where k is 0, else [n, k]. */
static inline void small_add_tensor(small_model *model, const char *name, uint64_t n, uint64_t k) {
    small_tensor *const tensor = &model->tensors[model->n_tensors++];
    *tensor = (small_tensor){.rank = k > 0 ? 2 : 1, .extents = {k > 0 ? k : n, n}};
    snprintf(tensor->name, sizeof tensor->name, "%s", name);
}

static inline void small_add_layer(small_model *model, int i) {
    static const struct {
        const char *name;
        uint64_t n, k;
    } weights[] = {
        {"attn_norm.weight", SMALL_EMBD, 0},
        {"attn_q.weight", SMALL_EMBD, SMALL_EMBD},
        {"attn_k.weight", SMALL_EMBD / 2, SMALL_EMBD},
        {"attn_v.weight", SMALL_EMBD / 2, SMALL_EMBD},
        {"attn_output.weight", SMALL_EMBD, SMALL_EMBD},
        {"ffn_norm.weight", SMALL_EMBD, 0},
        {"ffn_gate.weight", SMALL_FF, SMALL_EMBD},
        {"ffn_up.weight", SMALL_FF, SMALL_EMBD},
        {"ffn_down.weight", SMALL_EMBD, SMALL_FF},
    };
    for (size_t w = 0; w < sizeof weights / sizeof weights[0]; w++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%d.%s", i, weights[w].name);
        small_add_tensor(model, name, weights[w].n, weights[w].k);
    }
}

/* Two heads of 4 channels share one of keys and values; the output is tied. */
static inline small_model small_model_make(void) {
    small_model model = {.n_tokens = SMALL_VOCAB};
    small_set_text(&model, "general.architecture", "llama");
    small_set_text(&model, "general.name", "small");
    small_set_u32(&model, "llama.block_count", SMALL_LAYERS);
    small_set_u32(&model, "llama.context_length", 16);
    small_set_u32(&model, "llama.embedding_length", SMALL_EMBD);
    small_set_u32(&model, "llama.feed_forward_length", SMALL_FF);
    small_set_u32(&model, "llama.attention.head_count", 2);
    small_set_u32(&model, "llama.attention.head_count_kv", 1);
    small_set_f32(&model, "llama.attention.layer_norm_rms_epsilon", 1e-5F);
    small_set_text(&model, "tokenizer.ggml.model", "llama");
    small_set_u32(&model, "tokenizer.ggml.bos_token_id", 1);
    small_set_u32(&model, "tokenizer.ggml.eos_token_id", 2);
    small_set_u32(&model, "tokenizer.ggml.unknown_token_id", 0);
    small_add_tensor(&model, "token_embd.weight", SMALL_VOCAB, SMALL_EMBD);
    for (int i = 0; i < SMALL_LAYERS; i++) small_add_layer(&model, i);
    small_add_tensor(&model, "output_norm.weight", SMALL_EMBD, 0);
    return model;
}

/* The same of another architecture, whose keys have its name. */
static inline small_model small_model_of(const char *architecture) {
    small_model model = small_model_make();
    small_set_text(&model, "general.architecture", architecture);
    for (int i = 0; i < model.n_entries; i++) {
        char *const key = model.entries[i].key, suffix[48];
        if (strncmp(key, "llama.", 6) != 0) continue;
        snprintf(suffix, sizeof suffix, "%s", key + 6);
        snprintf(key, sizeof model.entries[i].key, "%.14s.%s", architecture, suffix);
    }
    return model;
}

static inline void small_put_entry(gguf_bytes *file, const small_entry *entry) {
    if (entry->type == WICK_VALUE_ARRAY) {
        put_array(file, entry->key, WICK_VALUE_U32, entry->n);
        for (uint64_t i = 0; i < entry->n; i++) put_u32(file, (uint32_t)entry->number);
        return;
    }
    put_key(file, entry->key, entry->type);
    switch (entry->type) {
    case WICK_VALUE_STRING: put_text(file, entry->text); break;
    case WICK_VALUE_BOOL: put_bytes(file, &entry->number, 1); break;
    case WICK_VALUE_U64:
    case WICK_VALUE_I64:
    case WICK_VALUE_F64: put_u64(file, entry->number); break;
    default: put_u32(file, (uint32_t)entry->number);
    }
}

static inline void small_put_vocabulary(gguf_bytes *file, int n_tokens, bool only_tokens) {
    static const char *const tokens[] = {"<unk>", "<s>",          "</s>", "a",
                                         "b",     "\xe2\x96\x81", "ab",   "c"};
    static const uint32_t kinds[] = {2, 3, 3, 1, 1, 1, 1, 1};
    put_array(file, "tokenizer.ggml.tokens", WICK_VALUE_STRING, (uint64_t)n_tokens);
    for (int i = 0; i < n_tokens; i++) put_text(file, tokens[i]);
    if (only_tokens) return;
    put_array(file, "tokenizer.ggml.scores", WICK_VALUE_F32, (uint64_t)n_tokens);
    for (int i = 0; i < n_tokens; i++) put_u32(file, 0);
    put_array(file, "tokenizer.ggml.token_type", WICK_VALUE_I32, (uint64_t)n_tokens);
    for (int i = 0; i < n_tokens; i++) put_u32(file, kinds[i]);
}

static inline uint64_t small_tensor_count(const small_tensor *tensor) {
    return tensor->extents[0] * (tensor->rank == 2 ? tensor->extents[1] : 1);
}

/* The header; with_data: and f32 weights of about 0.1, different everywhere. */
static inline void small_write(const small_model *model, bool with_data, gguf_bytes *file) {
    const uint64_t n_vocabulary = model->has_no_vocabulary ? 0 : model->has_only_tokens ? 1 : 3;
    put_start(file, 3, (uint64_t)model->n_tensors, (uint64_t)model->n_entries + n_vocabulary);
    for (int i = 0; i < model->n_entries; i++) small_put_entry(file, &model->entries[i]);
    if (!model->has_no_vocabulary)
        small_put_vocabulary(file, model->n_tokens, model->has_only_tokens);
    uint64_t offset = 0;
    for (int i = 0; i < model->n_tensors; i++) {
        const small_tensor *const tensor = &model->tensors[i];
        put_tensor(file, tensor->name, tensor->rank, tensor->extents, tensor->type, offset);
        offset += (small_tensor_count(tensor) * sizeof(float) + 31) / 32 * 32;
    }
    if (!with_data) return;
    uint32_t n = 0;
    for (int i = 0; i < model->n_tensors; i++) {
        put_data(file, 32, 0);
        for (uint64_t e = 0; e < small_tensor_count(&model->tensors[i]); e++) {
            const float value = 0.1F + (float)(n++ % 1009) * 1e-4F;
            put_bytes(file, &value, sizeof value);
        }
    }
}

#endif
