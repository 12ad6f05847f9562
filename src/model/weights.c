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

/* What a model or a layer has by its description, see has_part. */
typedef enum part {
    ALWAYS,
    NORM, /* where a site names this weight */
    POSITIONS,
    TYPES,
    LAYER_INPUTS,
    OWN_INPUT,
    OUTPUT_SCALE,
    ATTENTION,
    FUSED_QKV,
    SEPARATE_Q,
    SEPARATE_K,
    SEPARATE_V,
    Q_NORM_WEIGHT,
    K_NORM_WEIGHT,
    SINKS,
    LATENT,
    LATENT_WHOLE_Q,
    LATENT_FACTORS,
    CONVOLUTION,
    STATE_SPACE,
    DELTA_NET,
    SCAN, /* the state space and the delta net */
    CHANNEL_STEPS,
    HEAD_STEPS,
    FUSED_GATES,
    SEPARATE_GATES,
    MLP,
    SEPARATE_GATE,
    EXPERTS,
    SEPARATE_EXPERTS,
    FUSED_EXPERTS,
    SELECTION_BIAS,
    SHARED_EXPERTS,
    SHARED_GATE,
} part;

typedef enum presence { NEEDED, OPTIONAL } presence;

/* Stages that have a weight of the model. */
typedef enum stages {
    ALL, /* of layers: the one that has the layer */
    /* the first, and each whose layers have inputs of their own; without an output matrix also the
     * last, as that matrix */
    TABLE,
    EITHER_END, /* the first or the last: where it norms */
    FIRST,
    LAST,
    EACH,
} stages;

typedef enum extent {
    END, /* of the list */
    VOCAB,
    EMBD,
    POSITION,
    TYPE,
    ONE,
    LAYER_INPUT,
    LAYERS_INPUTS, /* of all layers */
    Q,
    K,
    V,
    QKV,
    HEADS, /* all values that are attended to */
    Q_NORMS,
    Q_NORM,
    K_NORMS,
    K_NORM,
    HEADS_Q,
    HEAD,
    HEAD_V,
    Q_RANK,
    LATENT_QS, /* channels of all queries */
    LATENT_PLAIN,
    LATENT_VALUE,
    LATENT_VALUES, /* of all heads */
    CONV_INPUTS,
    CONV_CHANNELS,
    CONV_TAPS,
    SCAN_HEADS,
    INNER, /* channels of all heads */
    STEP_RANK,
    SSM_INPUTS,
    SSM_STEP_B_C,
    SSM_RATES,
    SSM_RATE,
    SSM_D,
    SSM_NORMS,
    SSM_NORM,
    SSM_GATES,
    FF,
    FF_UP,
    EXPERT,
    EXPERT_FF,
    EXPERT_GATE_UP,
    SHARED_FF,
} extent;

enum { MAX_EXTENTS = 4 };

typedef struct weight_kind {
    const char *name;
    part part;
    presence presence;
    stages stages;
    uint32_t uses;
    extent extents[MAX_EXTENTS];
} weight_kind;

/* By id: the first of each is WK_NO_..._WEIGHT. */
#define WK_MODEL_WEIGHT(id, name, part, presence, stages, uses, ...)                               \
    {name, part, presence, stages, uses, {__VA_ARGS__}},
#define WK_LAYER_WEIGHT(...)
static const weight_kind model_kinds[] = {
    {.name = NULL},
#include "model/weights.def"
};
#undef WK_MODEL_WEIGHT
#undef WK_LAYER_WEIGHT
#define WK_MODEL_WEIGHT(...)
#define WK_LAYER_WEIGHT(id, name, part, presence, uses, ...)                                       \
    {name, part, presence, ALL, uses, {__VA_ARGS__}},
static const weight_kind layer_kinds[] = {
    {.name = NULL},
#include "model/weights.def"
};
#undef WK_MODEL_WEIGHT
#undef WK_LAYER_WEIGHT

/* A weight's or bias's place in the model; id 0: there is none for this name. */
typedef struct place {
    bool is_in_layer, is_bias;
    uint32_t layer; /* where is_in_layer */
    int id;
} place;

static const weight_kind *kind_at(const place *at) {
    return at->is_in_layer ? &layer_kinds[at->id] : &model_kinds[at->id];
}

/* ---- Which weights there are ---- */

static bool names_norm(const wk_layer_spec *spec, int id) {
    for (int i = 0; i < WK_NORM_SITE_COUNT; i++) {
        if ((int)spec->norms[i] == id) return true;
    }
    return false;
}

static bool attention_has(const wk_layer_spec *spec, part wanted) {
    const wk_attention_spec *const attention = &spec->attention;
    const bool is_normed =
        attention->qk_norm != WK_QK_NORM_NONE && attention->qk_norm != WK_QK_NORM_PLAIN;
    const bool has_kv = !attention->is_kv_shared;
    if (spec->mixer != WK_MIXER_ATTENTION) return false;
    switch (wanted) {
    case ATTENTION: return true;
    case FUSED_QKV: return attention->is_fused;
    case SEPARATE_Q: return !attention->is_fused;
    case SEPARATE_K: return !attention->is_fused && has_kv;
    case SEPARATE_V: return !attention->is_fused && has_kv && !attention->is_v_k;
    case Q_NORM_WEIGHT: return is_normed;
    case K_NORM_WEIGHT: return is_normed && has_kv;
    case SINKS: return attention->has_sinks;
    default: return false;
    }
}

static bool latent_has(const wk_layer_spec *spec, part wanted) {
    if (spec->mixer != WK_MIXER_LATENT) return false;
    switch (wanted) {
    case LATENT: return true;
    case LATENT_WHOLE_Q: return spec->latent.q_rank == 0;
    case LATENT_FACTORS: return spec->latent.q_rank > 0;
    default: return false;
    }
}

static bool experts_have(const wk_layer_spec *spec, part wanted) {
    const wk_experts_spec *const experts = &spec->experts;
    if (spec->channels != WK_CHANNELS_EXPERTS) return false;
    switch (wanted) {
    case EXPERTS: return true;
    case SEPARATE_EXPERTS: return !experts->is_fused;
    case FUSED_EXPERTS: return experts->is_fused;
    case SELECTION_BIAS: return experts->has_selection_bias;
    case SHARED_EXPERTS: return experts->n_ff_shared > 0;
    case SHARED_GATE: return experts->n_ff_shared > 0 && experts->is_shared_gated;
    default: return false;
    }
}

static bool recurrent_has(const wk_layer_spec *spec, part wanted) {
    const bool is_delta = spec->mixer == WK_MIXER_DELTA_NET;
    const bool is_state_space = spec->mixer == WK_MIXER_STATE_SPACE;
    const bool has_ranks = is_state_space && spec->recurrent.step_rank > 0;
    switch (wanted) {
    case CONVOLUTION: return spec->mixer == WK_MIXER_CONVOLUTION;
    case STATE_SPACE: return is_state_space;
    case DELTA_NET: return is_delta;
    case SCAN: return is_state_space || is_delta;
    case CHANNEL_STEPS: return has_ranks;
    case HEAD_STEPS: return (is_state_space || is_delta) && !has_ranks;
    case FUSED_GATES: return is_delta && spec->recurrent.is_fused;
    case SEPARATE_GATES: return is_delta && !spec->recurrent.is_fused;
    default: return false;
    }
}

static bool layer_has(const wk_layer_spec *spec, int id) {
    const part wanted = layer_kinds[id].part;
    switch (wanted) {
    case ALWAYS: return true;
    case NORM: return names_norm(spec, id);
    case OUTPUT_SCALE: return spec->has_output_scale;
    case MLP: return spec->channels == WK_CHANNELS_MLP;
    case SEPARATE_GATE:
        return spec->channels == WK_CHANNELS_MLP && spec->mlp.is_gated && !spec->mlp.is_fused;
    case OWN_INPUT: return spec->has_own_input;
    default:
        return attention_has(spec, wanted) || latent_has(spec, wanted) ||
               recurrent_has(spec, wanted) || experts_have(spec, wanted);
    }
}

static bool model_has(const wk_hparams *hparams, int id) {
    switch (model_kinds[id].part) {
    case ALWAYS: return true;
    case NORM: return hparams->embedding_norm == id || hparams->output_norm == id;
    case POSITIONS: return hparams->n_positions > 0;
    case TYPES: return hparams->n_token_types > 0;
    case LAYER_INPUTS: return hparams->n_embd_layer > 0;
    default: return false;
    }
}

static bool has(const wk_model *model, const place *at) {
    return at->is_in_layer ? layer_has(&model->layers[at->layer].spec, at->id)
                           : model_has(&model->hparams, at->id);
}

/* RMSNorm has no bias. */
static bool may_have_bias(const wk_model *model, const weight_kind *kind) {
    return kind->uses == WK_USE_LINEAR ||
           (kind->part == NORM && model->hparams.norm == WK_NORM_LAYER);
}

static bool ends_with(wk_str text, const char *end) {
    const size_t n = strlen(end);
    return text.size >= n && memcmp(text.text + text.size - n, end, n) == 0;
}

/* Whether name is that of the weight or, where *is_bias becomes true, of its bias. */
static bool is_name_of(const weight_kind *kind, wk_str name, bool *is_bias) {
    static const char weight[] = ".weight", bias[] = ".bias";
    const wk_str own = {kind->name, strlen(kind->name)};
    *is_bias = false;
    if (wk_str_is(name, kind->name)) return true;
    if (!ends_with(own, weight) || !ends_with(name, bias)) return false;
    const size_t stem = own.size - strlen(weight);
    *is_bias = stem == name.size - strlen(bias) && memcmp(own.text, name.text, stem) == 0;
    return *is_bias;
}

static void find_id(const wk_model *model, wk_str name, place *at) {
    const int n = at->is_in_layer ? (int)WK_LAYER_WEIGHT_COUNT : (int)WK_MODEL_WEIGHT_COUNT;
    for (at->id = 1; at->id < n; at->id++) {
        const weight_kind *const kind = kind_at(at);
        if (!is_name_of(kind, name, &at->is_bias) || !has(model, at)) continue;
        if (!at->is_bias || may_have_bias(model, kind)) return;
    }
    at->id = 0;
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

static place find_place(const wk_model *model, wick_string tensor_name) {
    wk_str name = {tensor_name.text, tensor_name.size};
    place at = {.id = 0};
    at.is_in_layer = split_name(&name, &at.layer);
    if (!at.is_in_layer || at.layer < model->hparams.n_layers) find_id(model, name, &at);
    return at;
}

/* NULL: the file has no such weight. */
static const wick_file_tensor *find_tensor(const wk_model *model, uint32_t layer,
                                           wk_layer_weight id) {
    char name[64];
    snprintf(name, sizeof name, "blk.%" PRIu32 ".%s", layer, layer_kinds[id].name);
    return wk_gguf_find_tensor(model->gguf, name);
}

void wk_model_find_forms(const wk_model *model, uint32_t layer, wk_layer_spec *spec) {
    const wick_file_tensor *const up = find_tensor(model, layer, WK_FFN_UP);
    spec->attention.is_fused = find_tensor(model, layer, WK_ATTN_QKV) != NULL;
    spec->recurrent.is_fused = find_tensor(model, layer, WK_SSM_BA) != NULL;
    spec->mlp.is_fused = spec->mlp.is_gated && up != NULL &&
                         find_tensor(model, layer, WK_FFN_GATE) == NULL &&
                         up->shape.extent[0] == 2 * (int64_t)spec->mlp.n_ff;
    spec->experts.is_fused = find_tensor(model, layer, WK_FFN_GATE_UP_EXPS) != NULL;
    spec->experts.has_selection_bias = find_tensor(model, layer, WK_EXP_PROBS_BIAS) != NULL;
}

/* The kind of rotary divisors that a tensor holds; WK_ROPE_DIVISORS_COUNT: it is something else. */
static int divisors_of(const wick_file_tensor *tensor) {
    static const char *const names[WK_ROPE_DIVISORS_COUNT] = {
        [WK_ROPE_DIVISORS] = "rope_freqs.weight",
        [WK_ROPE_DIVISORS_SHORT] = "rope_factors_short.weight",
        [WK_ROPE_DIVISORS_LONG] = "rope_factors_long.weight",
    };
    int kind = 0;
    const wk_str name = {tensor->name.text, tensor->name.size};
    while (kind < WK_ROPE_DIVISORS_COUNT && !wk_str_is(name, names[kind])) kind++;
    return kind;
}

/* ---- Checks ---- */

static int64_t attention_extent(const wk_attention_spec *attention, extent which) {
    const int64_t dim = attention->head_dim, dim_v = attention->head_dim_v;
    const int64_t n_q = attention->n_heads_q, n_kv = attention->n_heads_kv;
    const bool is_own = attention->qk_norm == WK_QK_NORM_OWN;
    const bool has_all = attention->qk_norm == WK_QK_NORM_CHANNELS;
    switch (which) {
    case Q: return n_q * dim * (attention->has_output_gate ? 2 : 1);
    case K: return n_kv * dim;
    case V: return n_kv * dim_v;
    case QKV: return n_q * dim + n_kv * (dim + dim_v);
    case HEADS: return n_q * dim_v;
    case Q_NORMS: return is_own ? n_q : 0;
    case K_NORMS: return is_own ? n_kv : 0;
    case Q_NORM: return has_all ? n_q * dim : dim;
    case K_NORM: return has_all ? n_kv * dim : dim;
    case HEADS_Q: return n_q;
    case HEAD: return dim;
    case HEAD_V: return dim_v;
    default: return 0;
    }
}

static int64_t latent_extent(const wk_layer_spec *spec, extent which) {
    const wk_latent_spec *const latent = &spec->latent;
    const int64_t n_heads = spec->attention.n_heads_q;
    switch (which) {
    case Q_RANK: return latent->q_rank;
    case LATENT_QS: return n_heads * ((int64_t)latent->n_plain + latent->n_rotated);
    case LATENT_PLAIN: return latent->n_plain;
    case LATENT_VALUE: return latent->n_values;
    case LATENT_VALUES: return n_heads * latent->n_values;
    default: return attention_extent(&spec->attention, which);
    }
}

/* Of the convolution and the scan behind it; channels that each have a step are one head. */
static int64_t recurrent_extent(const wk_layer_spec *spec, extent which) {
    const wk_recurrent_spec *const recurrent = &spec->recurrent;
    const int64_t n_heads = recurrent->n_heads, inner = n_heads * recurrent->head_dim;
    const int64_t n_channels = recurrent->n_channels, rank = recurrent->step_rank;
    const bool is_delta = spec->mixer == WK_MIXER_DELTA_NET;
    switch (which) {
    case CONV_INPUTS: return 3 * n_channels;
    case CONV_CHANNELS: return n_channels;
    case CONV_TAPS: return recurrent->n_taps;
    case SCAN_HEADS: return n_heads;
    case INNER: return inner;
    case STEP_RANK: return rank;
    case SSM_INPUTS: return inner + n_channels + (rank > 0 ? 0 : n_heads);
    case SSM_STEP_B_C: return rank + 2 * (int64_t)recurrent->n_numbers;
    case SSM_RATES: return rank > 0 ? inner : n_heads;
    case SSM_RATE: return rank > 0 ? recurrent->n_numbers : is_delta ? 0 : 1;
    case SSM_D: return rank > 0 ? 0 : 1;
    case SSM_NORMS: return is_delta ? 0 : recurrent->n_groups;
    case SSM_NORM: return is_delta ? recurrent->head_dim : inner / recurrent->n_groups;
    case SSM_GATES: return 2 * n_heads;
    default: return 0;
    }
}

static int64_t extent_of(const wk_model *model, const place *at, extent which) {
    const wk_hparams *const hparams = &model->hparams;
    const wk_layer_spec *const spec = at->is_in_layer ? &model->layers[at->layer].spec : NULL;
    switch (which) {
    case VOCAB: return hparams->n_vocab;
    case EMBD: return hparams->n_embd;
    case POSITION: return hparams->n_positions;
    case TYPE: return hparams->n_token_types;
    case ONE: return 1;
    case LAYER_INPUT: return hparams->n_embd_layer;
    case LAYERS_INPUTS: return (int64_t)hparams->n_embd_layer * hparams->n_layers;
    case FF: return spec->mlp.n_ff;
    case FF_UP: return (int64_t)spec->mlp.n_ff * (spec->mlp.is_fused ? 2 : 1);
    case EXPERT: return spec->experts.n_experts;
    case EXPERT_FF: return spec->experts.n_ff;
    case EXPERT_GATE_UP: return 2 * (int64_t)spec->experts.n_ff;
    case SHARED_FF: return spec->experts.n_ff_shared;
    default:
        return which >= CONV_INPUTS && which <= SSM_GATES ? recurrent_extent(spec, which)
                                                          : latent_extent(spec, which);
    }
}

/* A matrix's bias has one number for each of its rows. */
static wick_shape shape_of(const wk_model *model, const place *at) {
    const weight_kind *const kind = kind_at(at);
    wick_shape shape = {.rank = 0};
    for (int i = 0; i < MAX_EXTENTS && kind->extents[i] != END; i++) {
        const int64_t n = extent_of(model, at, kind->extents[i]);
        if (n != 0) shape.extent[shape.rank++] = n;
    }
    if (at->is_bias && kind->uses == WK_USE_LINEAR) shape.extent[--shape.rank] = 0;
    return shape;
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

/* What is added and multiplied as it is must be f32, the others may have any type that can be
 * decoded. */
static wick_status check_dtype(const wick_file_tensor *tensor, bool is_vector, wick_error *err) {
    if (is_vector ? tensor->dtype == WICK_F32 : wk_decoder(tensor->dtype) != NULL) return WICK_OK;
    return wk_fail(
        err, WICK_ERR_UNSUPPORTED, "the tensor '%s' has the type %s, which is not supported yet%s",
        tensor->name.text, wick_dtype_name(tensor->dtype), is_vector ? " for vectors" : "");
}

static wick_status check_rope_divisors(wk_model *model, const wick_file_tensor *tensor, int kind,
                                       wick_error *err) {
    const uint32_t n_pairs = wk_rope_divided_pairs(&model->hparams);
    const wick_shape expected = {.rank = 1, .extent = {n_pairs}};
    WK_TRY(check_shape(tensor, &expected, err));
    WK_TRY(check_dtype(tensor, true, err));
    float **const divisors = &model->rope_divisors[kind];
    *divisors = wk_arena_array(&model->arena, n_pairs, sizeof **divisors);
    if (*divisors != NULL) return WICK_OK;
    return wk_fail_memory(err, n_pairs * sizeof **divisors, 0, tensor->name.text);
}

static bool is_ahead(const wk_model *model, const place *at) {
    const wk_hparams *const hparams = &model->hparams;
    return at->is_in_layer && at->layer >= hparams->n_layers &&
           at->layer - hparams->n_layers < hparams->n_layers_ahead;
}

static uint32_t uses_of(const place *at) {
    return at->is_bias ? (uint32_t)WK_USE_OTHER : kind_at(at)->uses;
}

static wick_status check_tensor(wk_model *model, const wick_file_tensor *tensor, wick_error *err) {
    const int divisors = divisors_of(tensor);
    if (divisors < WK_ROPE_DIVISORS_COUNT) return check_rope_divisors(model, tensor, divisors, err);
    const place at = find_place(model, tensor->name);
    if (is_ahead(model, &at)) return WICK_OK;
    if (at.id == 0)
        return wk_fail(
            err, WICK_ERR_UNSUPPORTED,
            "the tensor '%s' is not known in a model of the architecture '%s' with %" PRIu32
            " blocks",
            wk_str_show((wk_str){tensor->name.text, tensor->name.size}).text,
            model->hparams.architecture, model->hparams.n_layers);
    const wick_shape expected = shape_of(model, &at);
    WK_TRY(check_shape(tensor, &expected, err));
    return check_dtype(tensor, uses_of(&at) == WK_USE_OTHER, err);
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
    for (int i = 1; i < WK_LAYER_WEIGHT_COUNT; i++) {
        if (layer_has(&model->layers[layer].spec, i))
            WK_TRY(check_name(model, prefix, &layer_kinds[i], err));
    }
    return WICK_OK;
}

wick_status wk_model_check_weights(wk_model *model, wick_error *err) {
    for (size_t i = 0; i < model->gguf->n_tensors; i++)
        WK_TRY(check_tensor(model, &model->gguf->tensors[i], err));
    for (int i = 1; i < WK_MODEL_WEIGHT_COUNT; i++) {
        if (model_has(&model->hparams, i)) WK_TRY(check_name(model, "", &model_kinds[i], err));
    }
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
    if (at.id == 0) return 0;
    const wk_model_stage *const layers = &model->placement.stages[stage];
    const bool is_first = stage == 0, is_last = stage + 1 == model->placement.n_stages;
    const uint32_t uses = uses_of(&at);
    switch (kind_at(&at)->stages) {
    case ALL:
        return at.layer >= layers->first && at.layer - layers->first < layers->count ? uses : 0;
    case TABLE:
        return (is_first || model->hparams.n_embd_layer > 0 ? uses : 0) |
               (is_last && is_tied(model) ? (uint32_t)WK_USE_LINEAR : 0);
    case EITHER_END:
        return (is_first && model->hparams.embedding_norm == at.id) ||
                       (is_last && model->hparams.output_norm == at.id)
                   ? uses
                   : 0;
    case FIRST: return is_first ? uses : 0;
    case LAST: return is_last ? uses : 0;
    case EACH: return uses;
    }
    return 0;
}

void *wk_model_host_weight(wk_model *model, const wick_file_tensor *tensor) {
    const int kind = divisors_of(tensor);
    return kind < WK_ROPE_DIVISORS_COUNT ? model->rope_divisors[kind] : NULL;
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
    return wk_weight_store_make(device, bytes, &model->stage_weights[stage].store);
}

/* Where the weight that tensor is belongs, in this stage. */
static wick_tensor **slot_of(wk_model *model, const wick_file_tensor *tensor, uint32_t stage) {
    const place at = find_place(model, tensor->name);
    assert(at.id != 0);
    if (at.is_in_layer) {
        wk_layer *const layer = &model->layers[at.layer];
        return at.is_bias ? &layer->bias[at.id] : &layer->weight[at.id];
    }
    wk_stage_weights *const weights = &model->stage_weights[stage];
    return at.is_bias ? &weights->bias[at.id] : &weights->weight[at.id];
}

wick_status wk_model_begin_weight(wk_model *model, uint32_t stage, const wick_file_tensor *tensor,
                                  const void *data, wick_tensor **weight, bool *in_place) {
    wick_device *const device = model->placement.stages[stage].device;
    wick_tensor **const slot = slot_of(model, tensor, stage);
    assert(*slot == NULL);
    const wk_weight_desc desc = describe(model, tensor, stage, data);
    *slot = wk_weight_new(device, &desc, &model->stage_weights[stage].store, in_place);
    *weight = *slot;
    return *slot != NULL ? WICK_OK : wk_device_sticky(device)->status;
}

const wick_tensor *wk_model_weight(wk_model *model, const wick_file_tensor *tensor,
                                   uint32_t stage) {
    return wk_model_weight_uses(model, tensor, stage) != 0 ? *slot_of(model, tensor, stage) : NULL;
}

static void drop(wick_tensor **weights, int n) {
    for (int i = 0; i < n; i++) {
        wick_release(weights[i]);
        weights[i] = NULL;
    }
}

void wk_model_drop_weights(wk_model *model, uint32_t stage) {
    const wk_model_stage *const layers = &model->placement.stages[stage];
    wk_stage_weights *const weights = &model->stage_weights[stage];
    wk_weight_store_release(&weights->store);
    drop(weights->weight, WK_MODEL_WEIGHT_COUNT);
    drop(weights->bias, WK_MODEL_WEIGHT_COUNT);
    for (uint32_t i = 0; i < layers->count; i++) {
        drop(model->layers[layers->first + i].weight, WK_LAYER_WEIGHT_COUNT);
        drop(model->layers[layers->first + i].bias, WK_LAYER_WEIGHT_COUNT);
    }
}

wick_status wk_model_place_weights(wk_model *model, uint32_t stage) {
    for (size_t i = 0; i < model->gguf->n_tensors; i++) {
        const wick_file_tensor *const tensor = &model->gguf->tensors[i];
        wick_tensor *weight;
        bool in_place;
        if (wk_model_weight_uses(model, tensor, stage) == 0) continue;
        WK_TRY(wk_model_begin_weight(model, stage, tensor, NULL, &weight, &in_place));
    }
    return WICK_OK;
}

bool wk_model_has_weights(const wk_model *model, uint32_t stage) {
    const wk_layer *const layer = &model->layers[model->placement.stages[stage].first];
    for (int i = 0; i < WK_LAYER_WEIGHT_COUNT; i++) {
        if (layer->weight[i] != NULL) return true;
    }
    return false;
}

wick_status wk_model_finish_weights(wk_model *model, wick_error *err) {
    for (uint32_t i = 0; i < model->placement.n_stages; i++)
        wk_weight_store_release(&model->stage_weights[i].store);
    for (int kind = 0; kind < WK_ROPE_DIVISORS_COUNT; kind++) {
        const float *const divisors = model->rope_divisors[kind];
        model->rope_divisors[kind] = NULL; /* weights that are loaded again divide nothing */
        if (divisors != NULL)
            WK_TRY(wk_rope_divide(&model->arena, &model->hparams, kind, divisors, err));
    }
    return WICK_OK;
}
