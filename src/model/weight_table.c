/* model/weight_table.c: every weight that there may be (weights.def): which of them a model has, by
 * what name, shape and use, and on which stage. */
#include "model/weight_kind.h"

#include "core/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* By id: the first of each is WK_NO_..._WEIGHT. */
#define WK_MODEL_WEIGHT(id, name, part, presence, stages, uses, ...)                               \
    {name, part, presence, stages, uses, {__VA_ARGS__}},
#define WK_LAYER_WEIGHT(...)
static const wk_weight_kind model_kinds[] = {
    {.name = NULL},
#include "model/weights.def"
};
#undef WK_MODEL_WEIGHT
#undef WK_LAYER_WEIGHT
#define WK_MODEL_WEIGHT(...)
#define WK_LAYER_WEIGHT(id, name, part, presence, uses, ...)                                       \
    {name, part, presence, ALL, uses, {__VA_ARGS__}},
static const wk_weight_kind layer_kinds[] = {
    {.name = NULL},
#include "model/weights.def"
};
#undef WK_MODEL_WEIGHT
#undef WK_LAYER_WEIGHT

const wk_weight_kind *wk_weight_kind_at(const wk_weight_place *at) {
    return at->is_in_layer ? &layer_kinds[at->id] : &model_kinds[at->id];
}

/* ---- Which weights there are ---- */

static bool names_norm(const wk_layer_spec *spec, int id) {
    for (int i = 0; i < WK_NORM_SITE_COUNT; i++) {
        if ((int)spec->norms[i] == id) return true;
    }
    return false;
}

static bool attention_has(const wk_layer_spec *spec, wk_weight_part wanted) {
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
    case GATE_WEIGHT: return attention->has_gate_weight;
    default: return false;
    }
}

static bool latent_has(const wk_layer_spec *spec, wk_weight_part wanted) {
    if (spec->mixer != WK_MIXER_LATENT) return false;
    switch (wanted) {
    case LATENT: return true;
    case LATENT_WHOLE_Q: return spec->latent.q_rank == 0;
    case LATENT_FACTORS: return spec->latent.q_rank > 0;
    case LATENT_ABSORBED: return !spec->latent.is_expanded;
    case LATENT_EXPANDED: return spec->latent.is_expanded;
    default: return false;
    }
}

static bool experts_have(const wk_layer_spec *spec, wk_weight_part wanted) {
    const wk_experts_spec *const experts = &spec->experts;
    if (spec->channels != WK_CHANNELS_EXPERTS) return false;
    switch (wanted) {
    case EXPERTS: return true;
    case SEPARATE_EXPERTS: return !experts->is_fused;
    case SEPARATE_EXPERT_GATES: return !experts->is_fused && !experts->is_ungated;
    case FUSED_EXPERTS: return experts->is_fused;
    case SHARED_EXPERTS: return experts->n_ff_shared > 0;
    case SHARED_EXPERT_GATES:
        return experts->n_ff_shared > 0 && !experts->is_ungated && !experts->is_shared_fused;
    case SHARED_GATE: return experts->n_ff_shared > 0 && experts->is_shared_gated;
    default: return false;
    }
}

static bool recurrent_has(const wk_layer_spec *spec, wk_weight_part wanted) {
    const bool is_delta = spec->mixer == WK_MIXER_DELTA_NET;
    const bool is_state_space = wk_layer_has_state_space(spec);
    const bool has_ranks = is_state_space && spec->recurrent.step_rank > 0;
    switch (wanted) {
    case CONVOLUTION: return spec->mixer == WK_MIXER_CONVOLUTION;
    case STATE_SPACE: return is_state_space;
    case DELTA_NET: return is_delta;
    case SCAN: return is_state_space || is_delta;
    case CHANNEL_STEPS: return has_ranks;
    case STEP_NORMS: return has_ranks && spec->recurrent.has_norm_weights;
    case HEAD_STEPS: return (is_state_space || is_delta) && !has_ranks;
    case SCAN_NORM:
        return (is_state_space || is_delta) && !has_ranks && !spec->recurrent.is_unnormed;
    case FUSED_GATES: return is_delta && spec->recurrent.is_fused;
    case SEPARATE_GATES: return is_delta && !spec->recurrent.is_fused;
    default: return false;
    }
}

static bool layer_has(const wk_layer_spec *spec, int id) {
    const wk_weight_part wanted = layer_kinds[id].part;
    switch (wanted) {
    case ALWAYS: return true;
    case NORM: return names_norm(spec, id);
    case OUTPUT_SCALE: return spec->has_output_scale;
    case MLP: return spec->channels == WK_CHANNELS_MLP;
    case SEPARATE_GATE:
        return spec->channels == WK_CHANNELS_MLP && spec->mlp.is_gated && !spec->mlp.is_fused;
    case OWN_INPUT: return spec->has_own_input;
    case PREDICTION: return spec->is_head;
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
    case CLASSIFIER_HEAD: return hparams->n_labels > 0;
    case LAYER_INPUTS: return hparams->n_embd_layer > 0;
    default: return false;
    }
}

static bool has(const wk_model *model, const wk_weight_place *at) {
    if (wk_weight_kind_at(at)->part == NORM && model->hparams.norm == WK_NORM_LAYER_PLAIN)
        return false;
    return at->is_in_layer ? layer_has(&model->layers[at->layer].spec, at->id)
                           : model_has(&model->hparams, at->id);
}

/* RMSNorm has no bias, except in families that say so. */
static bool may_have_bias(const wk_model *model, const wk_weight_kind *kind) {
    return kind->uses == WK_USE_LINEAR ||
           (kind->part == NORM && (model->hparams.norm == WK_NORM_LAYER ||
                                   (model->hparams.biases & WK_BIASES_NORMS) != 0));
}

static bool ends_with(wk_str text, const char *end) {
    const size_t n = strlen(end);
    return text.size >= n && memcmp(text.text + text.size - n, end, n) == 0;
}

/* Whether name is that of the weight or, where *is_bias becomes true, of its bias. */
static bool is_name_of(const wk_weight_kind *kind, wk_str name, bool *is_bias) {
    static const char weight[] = ".weight", bias[] = ".bias";
    const wk_str own = {kind->name, strlen(kind->name)};
    *is_bias = false;
    if (wk_str_is(name, kind->name)) return true;
    if (!ends_with(own, weight) || !ends_with(name, bias)) return false;
    const size_t stem = own.size - strlen(weight);
    *is_bias = stem == name.size - strlen(bias) && memcmp(own.text, name.text, stem) == 0;
    return *is_bias;
}

static void find_id(const wk_model *model, wk_str name, wk_weight_place *at) {
    const int n = at->is_in_layer ? (int)WK_LAYER_WEIGHT_COUNT : (int)WK_MODEL_WEIGHT_COUNT;
    for (at->id = 1; at->id < n; at->id++) {
        const wk_weight_kind *const kind = wk_weight_kind_at(at);
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

wk_weight_place wk_weight_find(const wk_model *model, wick_string tensor_name) {
    wk_str name = {tensor_name.text, tensor_name.size};
    wk_weight_place at = {.id = 0};
    at.is_in_layer = split_name(&name, &at.layer);
    if (!at.is_in_layer || at.layer < wk_model_layers(model)) find_id(model, name, &at);
    return at;
}

bool wk_weight_is_superseded(const wk_model *model, wick_string tensor_name) {
    wk_str name = {tensor_name.text, tensor_name.size};
    uint32_t layer = UINT32_MAX;
    if (!split_name(&name, &layer) || layer >= model->hparams.n_layers) return false;
    wk_layer_spec own = model->layers[layer].spec;
    if (!own.attention.is_kv_shared) return false;
    own.attention.is_kv_shared = false;
    bool is_bias;
    for (int id = 1; id < WK_LAYER_WEIGHT_COUNT; id++)
        if (is_name_of(&layer_kinds[id], name, &is_bias) && layer_has(&own, id)) return true;
    return false;
}

typedef struct weight_name {
    char text[64];
} weight_name;

static weight_name name_of(const wk_weight_place *at) {
    weight_name name;
    char layer[24] = "";
    const char *const own = wk_weight_kind_at(at)->name;
    const size_t stem = strlen(own) - (at->is_bias ? strlen("weight") : 0);
    if (at->is_in_layer) snprintf(layer, sizeof layer, "blk.%" PRIu32 ".", at->layer);
    snprintf(name.text, sizeof name.text, "%s%.*s%s", layer, (int)stem, own,
             at->is_bias ? "bias" : "");
    return name;
}

/* NULL: the file has no such weight. */
static const wick_file_tensor *find_tensor(const wk_model *model, uint32_t layer,
                                           wk_layer_weight id) {
    const wk_weight_place at = {.is_in_layer = true, .layer = layer, .id = (int)id};
    return wk_gguf_find_tensor(model->gguf, name_of(&at).text);
}

/* Whether the rows of weight up are those of gate, then its own. */
static bool has_both(const wk_model *model, uint32_t layer, wk_layer_weight gate,
                     wk_layer_weight up, uint32_t n_ff) {
    const wick_file_tensor *const found = find_tensor(model, layer, up);
    return found != NULL && find_tensor(model, layer, gate) == NULL &&
           found->shape.extent[0] == 2 * (int64_t)n_ff;
}

void wk_model_find_forms(const wk_model *model, uint32_t layer, wk_layer_spec *spec) {
    /* No file has queries with their gates in one matrix with keys and values. */
    spec->attention.is_fused =
        !spec->attention.has_output_gate && find_tensor(model, layer, WK_ATTN_QKV) != NULL;
    spec->recurrent.is_fused = find_tensor(model, layer, WK_SSM_BA) != NULL;
    spec->recurrent.is_unnormed =
        spec->has_state_space && find_tensor(model, 0, WK_SSM_NORM) == NULL; /* as in all layers */
    spec->mlp.is_fused =
        spec->mlp.is_gated && has_both(model, layer, WK_FFN_GATE, WK_FFN_UP, spec->mlp.n_ff);
    spec->experts.is_shared_fused =
        !spec->experts.is_ungated &&
        has_both(model, layer, WK_FFN_GATE_SHEXP, WK_FFN_UP_SHEXP, spec->experts.n_ff_shared);
    spec->experts.is_fused = find_tensor(model, layer, WK_FFN_GATE_UP_EXPS) != NULL;
    spec->experts.has_selection_bias = find_tensor(model, layer, WK_EXP_PROBS_BIAS) != NULL;
}

/* ---- Names ---- */

/* What the file has of what it may lack. */
typedef struct found {
    bool weights[WK_LAYER_WEIGHT_COUNT], biases[WK_LAYER_WEIGHT_COUNT]; /* of some layer */
    bool norm_biases;                                                   /* of any norm */
} found;

static found look_at_file(const wk_model *model) {
    found f = {.norm_biases = false};
    for (size_t i = 0; i < model->gguf->n_tensors; i++) {
        const wk_weight_place at = wk_weight_find(model, model->gguf->tensors[i].name);
        if (at.id == 0) continue;
        if (at.is_in_layer) (at.is_bias ? f.biases : f.weights)[at.id] = true;
        f.norm_biases = f.norm_biases || (at.is_bias && wk_weight_kind_at(&at)->part == NORM);
    }
    return f;
}

static bool family_needs_bias(const wk_model *model, const wk_weight_place *at) {
    const uint32_t biases = model->hparams.biases;
    switch (wk_weight_kind_at(at)->part) {
    case NORM: return (biases & WK_BIASES_NORMS) != 0;
    case FUSED_QKV:
    case SEPARATE_Q:
    case SEPARATE_K:
    case SEPARATE_V: return (biases & (WK_BIASES_QKV | WK_BIASES_MATRICES)) != 0;
    default: return at->is_in_layer && (biases & WK_BIASES_MATRICES) != 0;
    }
}

/* A file that was cut short by its writer would compute something else without a word. */
static bool is_needed(const wk_model *model, const found *f, const wk_weight_place *at) {
    const wk_weight_kind *const kind = wk_weight_kind_at(at);
    if (!at->is_bias) return kind->presence == NEEDED || (at->is_in_layer && f->weights[at->id]);
    if (!may_have_bias(model, kind)) return false;
    return family_needs_bias(model, at) || (at->is_in_layer && f->biases[at->id]) ||
           (kind->part == NORM && f->norm_biases);
}

static wick_status check_names(const wk_model *model, const found *f, wk_weight_place at,
                               wick_error *err) {
    if (!has(model, &at)) return WICK_OK;
    for (int i = 0; i < 2; i++) {
        at.is_bias = i == 1;
        if (!is_needed(model, f, &at)) continue;
        const weight_name name = name_of(&at);
        if (wk_gguf_find_tensor(model->gguf, name.text) == NULL)
            return wk_fail(err, WICK_ERR_FORMAT, "the file has no tensor '%s'", name.text);
    }
    return WICK_OK;
}

wick_status wk_weight_check_names(const wk_model *model, wick_error *err) {
    const found f = look_at_file(model);
    wk_weight_place at = {.id = 1};
    for (; at.id < WK_MODEL_WEIGHT_COUNT; at.id++) WK_TRY(check_names(model, &f, at, err));
    at.is_in_layer = true;
    for (; at.layer < wk_model_layers(model); at.layer++) {
        for (at.id = 1; at.id < WK_LAYER_WEIGHT_COUNT; at.id++)
            WK_TRY(check_names(model, &f, at, err));
    }
    return WICK_OK;
}

/* ---- Uses ---- */

uint32_t wk_weight_uses(const wk_weight_place *at) {
    return at->is_bias ? (uint32_t)WK_USE_OTHER : wk_weight_kind_at(at)->uses;
}

/* The output matrix is the table of embeddings where the file has no other. */
static bool is_tied(const wk_model *model) {
    return wk_gguf_find_tensor(model->gguf, model_kinds[WK_OUTPUT].name) == NULL;
}

/* What the weight is for in a stage; 0: it is none of its weights. */
static uint32_t uses_in(const wk_model *model, const wk_weight_place *place, uint32_t stage) {
    const wk_weight_place at = *place;
    if (at.id == 0) return 0;
    const wk_model_stage *const layers = &model->placement.stages[stage];
    const bool is_first = stage == 0, is_last = stage + 1 == model->placement.n_stages;
    const uint32_t uses = wk_weight_uses(&at);
    switch (wk_weight_kind_at(&at)->stages) {
    case ALL: return at.layer >= layers->first && at.layer < wk_stage_end(model, stage) ? uses : 0;
    case TABLE:
        return (is_first || model->hparams.n_embd_layer > 0 || (is_last && model->has_head) ? uses
                                                                                            : 0) |
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

uint32_t wk_model_weight_uses(const wk_model *model, const wick_file_tensor *tensor,
                              uint32_t stage) {
    const wk_weight_place at = wk_weight_find(model, tensor->name);
    const uint32_t uses = uses_in(model, &at, stage);
    return uses != 0 && model->is_in_place ? uses | WK_USE_IN_PLACE : uses;
}

void wk_model_keep_in_place(wk_model *model, bool is_in_place) { model->is_in_place = is_in_place; }
