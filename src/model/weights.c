/* model/weights.c: which tensor of a file is which weight of the model, and whether it fits. */
#include "core/dtype.h"
#include "core/shape.h"
#include "model/model_struct.h"
#include "model/rope.h"
#include "quant/block.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef enum extent { NONE, VOCAB, EMBD, Q, K, V, HEAD, HEADS, FF } extent;

/* Which models have a weight: all; those whose file has it; those whose layer spec says so. */
typedef enum presence { NEEDED, OPTIONAL, QK_NORM } presence;

typedef struct weight_kind {
    const char *name;
    extent rows, channels;
    presence presence;
    uint32_t uses;
} weight_kind;

#define KIND(id, name, rows, channels, presence, uses) {name, rows, channels, presence, uses},
static const weight_kind model_kinds[] = {WK_MODEL_WEIGHTS(KIND)};
static const weight_kind layer_kinds[] = {WK_LAYER_WEIGHTS(KIND)};
#undef KIND

static const char rope_divisors_name[] = "rope_freqs.weight";

/* A weight's place in the model; kind NULL: there is none for this name. */
typedef struct place {
    const weight_kind *kind;
    bool is_in_layer;
    uint32_t layer; /* where is_in_layer */
} place;

static const weight_kind *find_kind(const weight_kind *kinds, size_t n, wk_str name) {
    for (size_t i = 0; i < n; i++) {
        if (wk_str_is(name, kinds[i].name)) return &kinds[i];
    }
    return NULL;
}

/* Splits "blk.12.attn_q.weight" into 12 and the rest. Numbers are decimal without leading zeros. */
static bool split_name(wk_str *name, uint32_t *layer) {
    static const char prefix[] = "blk.";
    const size_t length = sizeof prefix - 1;
    if (name->size < length || memcmp(name->text, prefix, length) != 0) return false;
    uint64_t number = 0;
    size_t at = length;
    for (; at < name->size && name->text[at] >= '0' && name->text[at] <= '9'; at++) {
        if (at > length && number == 0) return false;
        number = number * 10 + (uint64_t)(name->text[at] - '0');
        if (number > UINT32_MAX) return false;
    }
    if (at == length || at == name->size || name->text[at] != '.') return false;
    *name = (wk_str){name->text + at + 1, name->size - at - 1};
    *layer = (uint32_t)number;
    return true;
}

/* Whether the layers that spec describes can have a weight of this kind. */
static bool is_of_layer(const weight_kind *kind, const wk_layer_spec *spec) {
    return kind->presence != QK_NORM || spec->attention.has_qk_norm;
}

static place find_place(const wk_model *model, wick_string tensor_name) {
    wk_str name = {tensor_name.text, tensor_name.size};
    place at = {.is_in_layer = false};
    at.is_in_layer = split_name(&name, &at.layer);
    if (!at.is_in_layer)
        at.kind = find_kind(model_kinds, WK_COUNT(model_kinds), name);
    else if (at.layer < model->hparams.n_layers)
        at.kind = find_kind(layer_kinds, WK_COUNT(layer_kinds), name);
    if (at.kind != NULL && at.is_in_layer && !is_of_layer(at.kind, &model->layers[at.layer].spec))
        at.kind = NULL;
    return at;
}

static wick_tensor **weight_at(wk_model *model, const place *at) {
    return at->is_in_layer ? &model->layers[at->layer].weight[at->kind - layer_kinds]
                           : &model->weight[at->kind - model_kinds];
}

static bool is_rope_divisors(const wick_file_tensor *tensor) {
    return wk_str_is((wk_str){tensor->name.text, tensor->name.size}, rope_divisors_name);
}

/* ---- Checks ---- */

static int64_t extent_of(const wk_model *model, const place *at, extent which) {
    const wk_hparams *const hparams = &model->hparams;
    switch (which) {
    case NONE: break;
    case VOCAB: return hparams->n_vocab;
    case EMBD: return hparams->n_embd;
    case Q: return (int64_t)hparams->n_heads_q * hparams->head_dim;
    case K: return (int64_t)hparams->n_heads_kv * hparams->head_dim;
    case V: return (int64_t)hparams->n_heads_kv * hparams->head_dim_v;
    case HEAD: return hparams->head_dim;
    case HEADS: return (int64_t)hparams->n_heads_q * hparams->head_dim_v;
    case FF: return model->layers[at->layer].spec.mlp.n_ff;
    }
    return 0;
}

static wick_status check_shape(const wick_file_tensor *tensor, const wick_shape *expected,
                               wick_error *err) {
    if (wk_shape_equal(&tensor->shape, expected)) return WICK_OK;
    char found_text[128], expected_text[128];
    wk_shape_text(&tensor->shape, found_text, sizeof found_text);
    wk_shape_text(expected, expected_text, sizeof expected_text);
    return wk_fail(err, WICK_ERR_FORMAT, "the tensor '%s' has the shape %s, but must have %s",
                   tensor->name.text, found_text, expected_text);
}

/* Matrices may have any type that can be decoded; vectors are added and multiplied as they are. */
static wick_status check_dtype(const wick_file_tensor *tensor, wick_error *err) {
    const bool is_vector = tensor->shape.rank == 1;
    if (is_vector ? tensor->dtype == WICK_F32 : wk_decoder(tensor->dtype) != NULL) return WICK_OK;
    return wk_fail(
        err, WICK_ERR_UNSUPPORTED, "the tensor '%s' has the type %s, which is not supported yet%s",
        tensor->name.text, wick_dtype_name(tensor->dtype), is_vector ? " for vectors" : "");
}

static wick_status check_weight(const wk_model *model, const wick_file_tensor *tensor,
                                const place *at, wick_error *err) {
    const int64_t rows = extent_of(model, at, at->kind->rows);
    wick_shape expected = {.rank = 1, .extent = {rows}};
    if (at->kind->channels != NONE) {
        expected.rank = 2;
        expected.extent[1] = extent_of(model, at, at->kind->channels);
    }
    WK_TRY(check_shape(tensor, &expected, err));
    return check_dtype(tensor, err);
}

static wick_status check_rope_divisors(wk_model *model, const wick_file_tensor *tensor,
                                       wick_error *err) {
    const uint32_t n_pairs = model->hparams.n_ropes > 0 ? model->hparams.rope[0].n_pairs : 0;
    const wick_shape expected = {.rank = 1, .extent = {n_pairs}};
    WK_TRY(check_shape(tensor, &expected, err));
    WK_TRY(check_dtype(tensor, err));
    model->rope_divisors = wk_arena_array(&model->arena, n_pairs, sizeof(float));
    if (model->rope_divisors != NULL) return WICK_OK;
    return wk_fail_memory(err, n_pairs * sizeof(float), 0, rope_divisors_name);
}

static wick_status check_tensor(wk_model *model, const wick_file_tensor *tensor, wick_error *err) {
    if (is_rope_divisors(tensor)) return check_rope_divisors(model, tensor, err);
    const place at = find_place(model, tensor->name);
    if (at.kind != NULL) return check_weight(model, tensor, &at, err);
    return wk_fail(err, WICK_ERR_UNSUPPORTED,
                   "the tensor '%s' is not known in a model of the architecture '%s' with %" PRIu32
                   " blocks",
                   wk_str_show((wk_str){tensor->name.text, tensor->name.size}).text,
                   model->hparams.architecture, model->hparams.n_layers);
}

static wick_status check_name(const wk_model *model, const char *prefix, const weight_kind *kind,
                              wick_error *err) {
    if (kind->presence == OPTIONAL) return WICK_OK;
    char name[64];
    snprintf(name, sizeof name, "%s%s", prefix, kind->name);
    if (wk_gguf_find_tensor(model->gguf, name) != NULL) return WICK_OK;
    return wk_fail(err, WICK_ERR_FORMAT, "the file has no tensor '%s'", name);
}

static wick_status check_layer_names(const wk_model *model, uint32_t layer, wick_error *err) {
    char prefix[24];
    snprintf(prefix, sizeof prefix, "blk.%" PRIu32 ".", layer);
    for (size_t i = 0; i < WK_COUNT(layer_kinds); i++) {
        if (is_of_layer(&layer_kinds[i], &model->layers[layer].spec))
            WK_TRY(check_name(model, prefix, &layer_kinds[i], err));
    }
    return WICK_OK;
}

wick_status wk_model_check_weights(wk_model *model, wick_error *err) {
    for (size_t i = 0; i < model->gguf->n_tensors; i++)
        WK_TRY(check_tensor(model, &model->gguf->tensors[i], err));
    for (size_t i = 0; i < WK_COUNT(model_kinds); i++)
        WK_TRY(check_name(model, "", &model_kinds[i], err));
    for (uint32_t i = 0; i < model->hparams.n_layers; i++) WK_TRY(check_layer_names(model, i, err));
    return WICK_OK;
}

/* ---- Loading ---- */

/* The output matrix is the table of embeddings where the file has no other. */
static bool is_tied(const wk_model *model) {
    return wk_gguf_find_tensor(model->gguf, model_kinds[WK_OUTPUT].name) == NULL;
}

uint32_t wk_model_weight_uses(const wk_model *model, const wick_file_tensor *tensor,
                              uint32_t stage) {
    const place at = find_place(model, tensor->name);
    if (at.kind == NULL) return 0;
    const wk_model_stage *const layers = &model->placement.stages[stage];
    if (at.is_in_layer) {
        const bool is_here = at.layer >= layers->first && at.layer - layers->first < layers->count;
        return is_here ? at.kind->uses : 0;
    }
    const bool is_last = stage + 1 == model->placement.n_stages;
    if (at.kind != &model_kinds[WK_TOKEN_EMBEDDING]) return is_last ? at.kind->uses : 0;
    return (stage == 0 ? at.kind->uses : 0) |
           (is_last && is_tied(model) ? (uint32_t)WK_USE_LINEAR : 0);
}

void *wk_model_host_weight(wk_model *model, const wick_file_tensor *tensor) {
    return is_rope_divisors(tensor) ? model->rope_divisors : NULL;
}

static wk_weight_desc describe(const wk_model *model, const wick_file_tensor *tensor,
                               uint32_t stage, const void *data) {
    return (wk_weight_desc){.dtype = tensor->dtype,
                            .shape = tensor->shape,
                            .uses = wk_model_weight_uses(model, tensor, stage),
                            .data = data};
}

wick_status wk_model_reserve_weights(wk_model *model, uint32_t stage, bool is_mapped) {
    wick_device *const device = model->placement.stages[stage].device;
    uint64_t bytes = 0;
    for (size_t i = 0; i < model->gguf->n_tensors; i++) {
        const wk_weight_desc desc = describe(model, &model->gguf->tensors[i], stage, NULL);
        const uint64_t room = desc.uses != 0 ? wk_weight_room(device, &desc, is_mapped) : 0;
        if (room > UINT64_MAX - bytes)
            return wk_device_fail(device, WICK_ERR_SHAPE, "the weights have no size");
        bytes += room;
    }
    return wk_weight_store_make(device, bytes, &model->stores[stage]);
}

/* The weight that tensor is in this stage. */
static wick_tensor **slot_of(wk_model *model, const wick_file_tensor *tensor, uint32_t stage) {
    const place at = find_place(model, tensor->name);
    assert(at.kind != NULL);
    const bool is_embedding = !at.is_in_layer && at.kind == &model_kinds[WK_TOKEN_EMBEDDING];
    /* Behind the first stage the table is the output alone. */
    return is_embedding && stage > 0 ? &model->weight[WK_OUTPUT] : weight_at(model, &at);
}

wick_status wk_model_begin_weight(wk_model *model, uint32_t stage, const wick_file_tensor *tensor,
                                  const void *data, wick_tensor **weight, bool *in_place) {
    wick_device *const device = model->placement.stages[stage].device;
    wick_tensor **const slot = slot_of(model, tensor, stage);
    assert(*slot == NULL);
    const wk_weight_desc desc = describe(model, tensor, stage, data);
    *slot = wk_weight_new(device, &desc, &model->stores[stage], in_place);
    *weight = *slot;
    return *slot != NULL ? WICK_OK : wk_device_sticky(device)->status;
}

static void drop(wick_tensor **weights, int n) {
    for (int i = 0; i < n; i++) {
        wick_release(weights[i]);
        weights[i] = NULL;
    }
}

void wk_model_drop_weights(wk_model *model, uint32_t stage) {
    const wk_model_stage *const layers = &model->placement.stages[stage];
    wk_weight_store_release(&model->stores[stage]);
    if (stage == 0) drop(&model->weight[WK_TOKEN_EMBEDDING], 1);
    if (stage + 1 == model->placement.n_stages) {
        drop(&model->weight[WK_OUTPUT_NORM], 1);
        drop(&model->weight[WK_OUTPUT], 1);
    }
    for (uint32_t i = 0; i < layers->count; i++)
        drop(model->layers[layers->first + i].weight, WK_LAYER_WEIGHT_COUNT);
}

static void tie_weights(wk_model *model) {
    if (model->weight[WK_OUTPUT] == NULL)
        model->weight[WK_OUTPUT] = wick_retain(model->weight[WK_TOKEN_EMBEDDING]);
}

wick_status wk_model_place_weights(wk_model *model, uint32_t stage) {
    for (size_t i = 0; i < model->gguf->n_tensors; i++) {
        const wick_file_tensor *const tensor = &model->gguf->tensors[i];
        wick_tensor *weight;
        bool in_place;
        if (wk_model_weight_uses(model, tensor, stage) == 0) continue;
        WK_TRY(wk_model_begin_weight(model, stage, tensor, NULL, &weight, &in_place));
    }
    if (stage + 1 == model->placement.n_stages) tie_weights(model);
    return WICK_OK;
}

bool wk_model_has_weights(const wk_model *model, uint32_t stage) {
    const uint32_t first = model->placement.stages[stage].first;
    return model->layers[first].weight[WK_ATTN_NORM] != NULL;
}

wick_status wk_model_finish_weights(wk_model *model, wick_error *err) {
    for (uint32_t i = 0; i < model->placement.n_stages; i++)
        wk_weight_store_release(&model->stores[i]);
    tie_weights(model);
    if (model->rope_divisors == NULL) return WICK_OK;
    const float *const divisors = model->rope_divisors;
    model->rope_divisors = NULL; /* weights that are loaded again divide nothing */
    return wk_rope_divide(&model->arena, &model->hparams, divisors, model->hparams.rope[0].n_pairs,
                          err);
}
