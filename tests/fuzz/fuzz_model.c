/* Fuzzes models by their hyper-parameters: for any metadata, the model is refused with a
 * sentence, or opens and computes a step.
 *
 * A model has the tensors that its family wants for its metadata, so that odd numbers get as far as
 * the forward pass. An input is a byte for the architecture, one for the forms of tensors and three
 * for each change: a key, what becomes of it, a number. */
#include "format/gguf_write.h"
#include "model/families.h"
#include "model/weight_table.h"

#include <wick/wick.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VOCAB = 6, MAX_VALUES = 96, MAX_TENSORS = 512, MAX_LAYERS = 8, NAME_SIZE = 64 };
enum { MAX_FILE = 1 << 20, N_STEPS = 3 };

static void require(bool is_true) {
    if (!is_true) abort();
}

static const wk_family *const families[] = {
#define WK_FAMILY_ADDRESS(name) &wk_family_##name,
    WK_FAMILIES(WK_FAMILY_ADDRESS)
#undef WK_FAMILY_ADDRESS
};

/* --- Metadata --- */

/* Keys after "ARCHITECTURE." with the value that a small model has; f: a float, b: a bool, -: not
 * there unless a change says so. */
static const struct {
    const char *key;
    char kind;
    double value;
} keys[] = {
    {"block_count", 'u', 2},
    {"context_length", 'u', 64},
    {"embedding_length", 'u', 32},
    {"feed_forward_length", 'u', 16},
    {"attention.head_count", 'u', 4},
    {"attention.head_count_kv", 'u', 1},
    {"attention.key_length", 'u', 8},
    {"attention.value_length", 'u', 8},
    {"attention.layer_norm_epsilon", 'f', 1e-5},
    {"attention.layer_norm_rms_epsilon", 'f', 1e-5},
    {"rope.dimension_count", 'u', 4},
    {"rope.freq_base", 'f', 1e4},
    {"attention.sliding_window", '-', 4},
    {"attention.sliding_window_pattern", '-', 2},
    {"attention.key_length_mla", '-', 4},
    {"attention.value_length_mla", '-', 4},
    {"attention.kv_lora_rank", '-', 4},
    {"attention.q_lora_rank", '-', 4},
    {"attention.key_length_swa", '-', 8},
    {"attention.value_length_swa", '-', 8},
    {"attention.shared_kv_layers", '-', 1},
    {"attention.causal", '-', 1},
    {"attention.chunk_size", '-', 4},
    {"attention.clamp_kqv", '-', 1},
    {"attention.max_alibi_bias", '-', 8},
    {"attention.scale", '-', 1},
    {"attention.value_scale", '-', 2},
    {"attention.rope_pattern", '-', 1},
    {"attention.temperature_length", '-', 8},
    {"attention.temperature_scale", '-', 0.1},
    {"attention.recurrent_layers", '-', 1},
    {"attn_logit_softcapping", '-', 30},
    {"final_logit_softcapping", '-', 30},
    {"embedding_length_per_layer_input", '-', 4},
    {"embedding_scale", '-', 2},
    {"residual_scale", '-', 2},
    {"logit_scale", '-', 2},
    {"expert_count", '-', 4},
    {"expert_used_count", 'u', 2},
    {"expert_feed_forward_length", 'u', 8},
    {"expert_shared_feed_forward_length", '-', 8},
    {"expert_shared_count", '-', 1},
    {"expert_gating_func", '-', 1},
    {"expert_group_count", '-', 2},
    {"expert_group_used_count", '-', 1},
    {"expert_weights_norm", '-', 1},
    {"expert_weights_scale", '-', 2},
    {"hidden_activation", '-', 1},
    {"leading_dense_block_count", '-', 1},
    {"moe_every_n_layers", '-', 2},
    {"interleave_moe_layer_step", '-', 1},
    {"full_attention_interval", '-', 2},
    {"nextn_predict_layers", '-', 1},
    {"pooling_type", '-', 1},
    {"rope.dimension_count_swa", '-', 4},
    {"rope.freq_base_swa", '-', 1e4},
    {"rope.scale_linear", '-', 2},
    {"rope.scaling.attn_factor", '-', 1},
    {"rope.scaling.factor", '-', 4},
    {"rope.scaling.finetuned", '-', 1},
    {"rope.scaling.original_context_length", '-', 16},
    {"rope.scaling.type", '-', 1},
    {"rope.scaling.yarn_attn_factor", '-', 1},
    {"rope.scaling.yarn_ext_factor", '-', 1},
    {"rope.scaling.yarn_beta_fast", '-', 32},
    {"rope.scaling.yarn_beta_slow", '-', 1},
    {"rope.scaling.yarn_log_multiplier", '-', 0.1},
    {"shortconv.l_cache", 'u', 3},
    {"ssm.conv_kernel", 'u', 3},
    {"ssm.dt_b_c_rms", '-', 1},
    {"ssm.group_count", 'u', 2},
    {"ssm.inner_size", 'u', 32},
    {"ssm.state_size", 'u', 8},
    {"ssm.time_step_rank", 'u', 4},
    {"use_parallel_residual", '-', 1},
    {"vocab_size", '-', VOCAB},
    {"xielu.alpha_n", '-', 0.8},
    {"xielu.alpha_p", '-', 0.8},
    {"xielu.beta", '-', 0.5},
};

typedef struct metadata {
    wick_value values[MAX_VALUES];
    size_t n;
    char names[MAX_VALUES][NAME_SIZE];
    uint32_t numbers[MAX_VALUES][MAX_LAYERS]; /* of arrays */
    bool flags[MAX_VALUES][MAX_LAYERS];
} metadata;

static wick_string text_of(const char *text) { return (wick_string){text, strlen(text)}; }

static wick_value *add_value(metadata *meta, const char *key, wick_value_type type) {
    require(meta->n < MAX_VALUES);
    wick_value *const value = &meta->values[meta->n];
    snprintf(meta->names[meta->n++], NAME_SIZE, "%s", key);
    *value = (wick_value){.key = text_of(meta->names[meta->n - 1]), .type = type};
    return value;
}

static void add_array(wick_value *value, wick_value_type type, const void *values, size_t n) {
    value->type = WICK_VALUE_ARRAY;
    value->array = (wick_value_array){type, n, values};
}

static void add_vocabulary(metadata *meta) {
    static const wick_string tokens[VOCAB] = {{"<unk>", 5}, {"<s>", 3}, {"</s>", 4},
                                              {"a", 1},     {"b", 1},   {"ab", 2}};
    static const float scores[VOCAB];
    static const int32_t kinds[VOCAB] = {2, 3, 3, 1, 1, 1};
    wick_value *const model = add_value(meta, "tokenizer.ggml.model", WICK_VALUE_STRING);
    model->string = text_of("llama");
    add_array(add_value(meta, "tokenizer.ggml.tokens", WICK_VALUE_ARRAY), WICK_VALUE_STRING, tokens,
              VOCAB);
    add_array(add_value(meta, "tokenizer.ggml.scores", WICK_VALUE_ARRAY), WICK_VALUE_F32, scores,
              VOCAB);
    add_array(add_value(meta, "tokenizer.ggml.token_type", WICK_VALUE_ARRAY), WICK_VALUE_I32, kinds,
              VOCAB);
}

/* how: 0 takes a key away, 1 to 3 write the usual value, the number, or an odd one; then as another
 * type. */
static void set_value(metadata *meta, wick_value *value, double usual, uint8_t how,
                      uint8_t number) {
    static const double odd[] = {0,   1,    2,     3,       7,     8,    9,   16,
                                 255, 4096, 65535, 1 << 20, 1e-30, 1e30, 4e9, 0.5};
    const size_t at = (size_t)(value - meta->values);
    const double chosen = how % 4 < 2 ? usual : how % 4 == 2 ? number : odd[number % 16];
    const uint64_t whole = chosen < 1e18 ? (uint64_t)chosen : UINT64_MAX;
    static const char *const scalings[] = {"none", "linear", "yarn", "longrope", "dynamic"};
    for (size_t i = 0; i < MAX_LAYERS; i++) {
        meta->numbers[at][i] = i % 2 ? (uint32_t)number : (uint32_t)whole;
        meta->flags[at][i] = number >> i & 1;
    }
    switch (how / 4 % 8) {
    default: value->type = WICK_VALUE_U32, value->u = whole & UINT32_MAX; break;
    case 1: value->type = WICK_VALUE_F32, value->f = (double)(float)chosen; break;
    case 2: value->type = WICK_VALUE_BOOL, value->u = whole & 1; break;
    case 3: value->type = WICK_VALUE_STRING, value->string = text_of(scalings[number % 5]); break;
    case 4: value->type = WICK_VALUE_I32, value->i = -(int64_t)number; break;
    case 5: add_array(value, WICK_VALUE_U32, meta->numbers[at], 1 + number % MAX_LAYERS); break;
    case 6: add_array(value, WICK_VALUE_BOOL, meta->flags[at], 1 + number % MAX_LAYERS); break;
    case 7: value->type = WICK_VALUE_F32, value->f = -chosen; break;
    }
}

static void make_metadata(metadata *meta, const char *architecture, const uint8_t *changes,
                          size_t n_changes) {
    meta->n = 0;
    wick_value *const named = add_value(meta, "general.architecture", WICK_VALUE_STRING);
    named->string = text_of(architecture);
    add_vocabulary(meta);
    for (size_t k = 0; k < WK_COUNT(keys); k++) {
        const uint8_t *change = NULL;
        for (size_t i = 0; i < n_changes; i++)
            if (changes[3 * i] % WK_COUNT(keys) == k) change = &changes[3 * i];
        if (change != NULL ? change[1] == 0 : keys[k].kind == '-') continue;
        char key[NAME_SIZE];
        snprintf(key, sizeof key, "%s.%s", architecture, keys[k].key);
        wick_value *const value = add_value(meta, key, WICK_VALUE_U32);
        set_value(meta, value, keys[k].value, keys[k].kind == 'f' ? 5 : 1, 0);
        if (change != NULL) set_value(meta, value, keys[k].value, change[1], change[2]);
    }
}

/* --- Tensors --- */

typedef struct tensors {
    wick_file_tensor items[MAX_TENSORS];
    size_t n;
    char names[MAX_TENSORS][NAME_SIZE];
} tensors;

/* With its bias, where it may have one. */
static void add_tensor(tensors *to, const wk_model *model, const char *name) {
    if (to->n == MAX_TENSORS) return;
    snprintf(to->names[to->n], NAME_SIZE, "%s", name);
    const wick_string text = text_of(to->names[to->n]);
    const wk_weight_place at = wk_weight_find(model, text);
    if (at.id == 0) return;
    to->items[to->n++] =
        (wick_file_tensor){.name = text, .dtype = WICK_F32, .shape = wk_weight_shape(model, &at)};
}

static void add_both(tensors *to, const wk_model *model, const char *prefix, const char *name,
                     bool has_bias) {
    char text[NAME_SIZE];
    snprintf(text, sizeof text, "%s%s", prefix, name);
    add_tensor(to, model, text);
    const size_t n = strlen(text);
    if (!has_bias || n < 6 || strcmp(text + n - 6, "weight") != 0) return;
    memcpy(text + n - 6, "bias", 5);
    add_tensor(to, model, text);
}

static void add_all(tensors *to, const wk_model *model, uint8_t forms) {
    static const char *const of_model[] = {
#define WK_MODEL_WEIGHT(id, name, ...) name,
#define WK_LAYER_WEIGHT(id, name, ...)
#include "model/weights.def"
#undef WK_MODEL_WEIGHT
#undef WK_LAYER_WEIGHT
    };
    static const char *const of_layer[] = {
#define WK_MODEL_WEIGHT(id, name, ...)
#define WK_LAYER_WEIGHT(id, name, ...) name,
#include "model/weights.def"
#undef WK_MODEL_WEIGHT
#undef WK_LAYER_WEIGHT
    };
    to->n = 0;
    for (size_t i = 0; i < WK_COUNT(of_model); i++) {
        if (forms & 1 && strcmp(of_model[i], "output.weight") == 0) continue; /* tied */
        add_both(to, model, "", of_model[i], true);
    }
    for (uint32_t layer = 0; layer < model->hparams.n_layers; layer++) {
        char prefix[24];
        snprintf(prefix, sizeof prefix, "blk.%u.", (unsigned)layer);
        for (size_t i = 0; i < WK_COUNT(of_layer); i++) {
            bool is_twice = false; /* one name may stand for several weights */
            for (size_t k = 0; k < i; k++) is_twice |= strcmp(of_layer[i], of_layer[k]) == 0;
            if (!is_twice) add_both(to, model, prefix, of_layer[i], forms & 2);
        }
    }
}

/* What the family makes of the metadata, as wk_model_make would. False: it refuses it. */
static bool describe(wk_model *model, const wk_gguf *gguf, const char *architecture,
                     uint8_t forms) {
    static wk_layer_spec specs[MAX_LAYERS];
    wick_error error = {.status = WICK_OK};
    const wk_family *family;
    require(wk_family_find(wk_str_of(architecture), &family, &error) == WICK_OK);
    const wk_metadata meta = {
        .gguf = gguf, .arena = &model->arena, .architecture = family->architecture, .err = &error};
    model->gguf = gguf;
    model->hparams.norm = family->norm;
    model->hparams.biases = family->biases;
    if (wk_hparams_read(&meta, &model->hparams) != WICK_OK) return false;
    if (model->hparams.n_layers > MAX_LAYERS) return false;
    memset(specs, 0, sizeof specs);
    if (family->describe(&meta, &model->hparams, specs) != WICK_OK) return false;
    for (uint32_t i = 0; i < model->hparams.n_layers; i++) {
        wk_layer_spec *const spec = &model->layers[i].spec;
        *spec = specs[i];
        spec->attention.is_fused = forms & 4;
        spec->recurrent.is_fused = forms & 8;
        spec->mlp.is_fused = spec->mlp.is_gated && forms & 16;
        spec->experts.is_fused = forms & 32;
        spec->experts.has_selection_bias = forms & 64;
    }
    return true;
}

/* Fills to for the metadata. */
static void fit(tensors *to, const metadata *meta, const char *architecture, uint8_t forms) {
    static wk_layer layers[MAX_LAYERS];
    wk_heap heap;
    wk_strbuf header;
    wk_gguf_parser *parser;
    wk_model model = {.heap = &heap, .layers = layers};
    wk_heap_init(&heap, NULL);
    wk_arena_init(&model.arena, &heap, 0);
    wk_strbuf_init(&header, &heap);
    /* The hyper-parameters ask for the table of embeddings, and a tensor for each layer. */
    for (to->n = 0; to->n <= MAX_LAYERS; to->n++) {
        if (to->n == 0)
            snprintf(to->names[0], NAME_SIZE, "token_embd.weight");
        else
            snprintf(to->names[to->n], NAME_SIZE, "%zu", to->n);
        to->items[to->n] = (wick_file_tensor){
            .name = text_of(to->names[to->n]), .dtype = WICK_F32, .shape = WICK_SHAPE(VOCAB, 32)};
    }
    const wk_gguf_contents contents = {meta->values, meta->n, to->items, to->n};
    if (wk_gguf_write_header(&header, &contents, &parser, NULL) == WICK_OK) {
        if (describe(&model, wk_gguf_parser_result(parser), architecture, forms))
            add_all(to, &model, forms);
        wk_gguf_parser_free(parser);
    }
    wk_strbuf_release(&header);
    wk_arena_release(&model.arena);
    require(heap.live_bytes == 0);
}

/* --- The file and a step --- */

/* Bytes of the file; 0: it would be too large, or is none. */
static size_t write_file(const metadata *meta, const tensors *of, uint8_t *file) {
    wk_heap heap;
    wk_strbuf header;
    wk_gguf_parser *parser;
    size_t size = 0;
    wk_heap_init(&heap, NULL);
    wk_strbuf_init(&header, &heap);
    const wk_gguf_contents contents = {meta->values, meta->n, of->items, of->n};
    if (wk_gguf_write_header(&header, &contents, &parser, NULL) == WICK_OK) {
        const wk_gguf *const gguf = wk_gguf_parser_result(parser);
        uint64_t end = header.size;
        for (size_t i = 0; i < gguf->n_tensors; i++) {
            const wick_file_tensor *const tensor = &gguf->tensors[i];
            if (tensor->size > MAX_FILE || tensor->offset > MAX_FILE) end = MAX_FILE + 1;
            if (end <= MAX_FILE) end = tensor->offset + tensor->size;
        }
        if (end <= MAX_FILE) {
            size = (size_t)end;
            memcpy(file, header.data, header.size);
            const size_t begin = (header.size + 3) / 4 * 4;
            memset(file + header.size, 0, size - header.size);
            for (size_t at = begin; at + 4 <= size; at += 4) {
                const float weight = (float)(at / 4 * 37 % 101) * 0.01F - 0.4F;
                memcpy(file + at, &weight, sizeof weight);
            }
        }
        wk_gguf_parser_free(parser);
    }
    wk_strbuf_release(&header);
    require(heap.live_bytes == 0);
    return size;
}

static void check_refusal(wick_status status, const wick_error *error) {
    require(status < 0 && status == error->status && error->message[0] != '\0');
    require(status != WICK_ERR_INTERNAL);
}

static void step(wick_model *model) {
    static const uint32_t ids[] = {1, 3, 5, 4};
    wick_session *session;
    wick_error error = {.status = WICK_OK};
    const wick_session_desc desc = {
        .context_length = 16, .chunk_length = 3, .max_tokens = N_STEPS, .ignore_end = true};
    const wick_status status = wick_session_open(model, &desc, &session, &error);
    if (status != WICK_OK) {
        check_refusal(status, &error);
        return;
    }
    require(wick_session_append_tokens(session, ids, WK_COUNT(ids)) == WICK_OK);
    wick_event event = {.kind = WICK_EVENT_PENDING};
    wick_status stepped = WICK_OK;
    for (int i = 0; i < 8 && stepped == WICK_OK && event.kind != WICK_EVENT_END; i++)
        stepped = wick_session_next(session, &event);
    require(stepped == WICK_OK || stepped == WICK_ERR_DEVICE); /* NaN among the logits */
    wick_session_close(session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static wick_device *device;
    static metadata meta;
    static tensors all;
    static uint8_t file[MAX_FILE];
    if (size < 2 || size > 64) return 0;
    const wick_device_desc on = {.backend = WICK_BACKEND_CPU, .n_threads = 1};
    if (device == NULL) require(wick_device_open(&on, &device, NULL) == WICK_OK);
    const char *const architecture = families[data[0] % WK_COUNT(families)]->architecture;
    make_metadata(&meta, architecture, data + 2, (size - 2) / 3);
    fit(&all, &meta, architecture, data[1]);
    const size_t n = write_file(&meta, &all, file);
    if (n == 0) return 0;

    wick_model_loading *loading;
    wick_model *model;
    wick_error error = {.status = WICK_OK};
    wick_status status =
        wick_model_open_start(device, wick_source_memory(file, n), NULL, &loading, &error);
    if (status == WICK_OK) {
        while (wick_model_open_poll(loading, NULL) == WICK_PENDING) {
        }
        status = wick_model_open_finish(loading, &model, &error);
    }
    if (status != WICK_OK) {
        check_refusal(status, &error);
        return 0;
    }
    step(model);
    wick_model_close(model);
    (void)wick_device_error(device, NULL); /* of the step */
    return 0;
}
