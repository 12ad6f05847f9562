/* model/model.c: a model from a header: family, numbers, layers, weights; and its end. */
#include "model/model.h"

#include "core/status.h"
#include "model/families.h"
#include "model/model_struct.h"

static uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

static void summarize(wk_hparams *hparams, const wk_layer_spec *spec) {
    const wk_attention_spec *const attention = &spec->attention;
    hparams->n_heads_q = larger(hparams->n_heads_q, attention->n_heads_q);
    hparams->n_heads_kv = larger(hparams->n_heads_kv, attention->n_heads_kv);
    hparams->head_dim = larger(hparams->head_dim, attention->head_dim);
    hparams->head_dim_v = larger(hparams->head_dim_v, attention->head_dim_v);
    hparams->is_recurrent = hparams->is_recurrent || wk_layer_is_recurrent(spec);
    hparams->is_bidirectional |= spec->mixer == WK_MIXER_ATTENTION && attention->is_bidirectional;
    if (wk_layer_forgets(spec))
        hparams->window = larger(hparams->window, (uint32_t)attention->window);
}

/* A file of any family may say that tokens see later tokens. */
static wick_status read_direction(const wk_metadata *meta, const wk_hparams *hparams,
                                  wk_layer_spec *specs) {
    static const char key[] = "attention.causal";
    bool is_causal;
    WK_TRY(wk_metadata_bool(meta, key, true, &is_causal));
    for (uint32_t i = 0; i < hparams->n_layers && !is_causal; i++) {
        if (wk_layer_is_recurrent(&specs[i]) || specs[i].mixer == WK_MIXER_LATENT)
            return wk_fail(meta->err, WICK_ERR_UNSUPPORTED,
                           "the metadata key '%s' is false, but block %u looks back only",
                           wk_metadata_key(meta, key).text, (unsigned)i);
        specs[i].attention.is_bidirectional = true;
    }
    return WICK_OK;
}

/* Of mixtures of experts a file may leave out the channels of an MLP, or the experts. */
static wick_status check_channels(const wk_metadata *meta, const wk_hparams *hparams,
                                  const wk_layer_spec *specs) {
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        if (specs[i].channels != WK_CHANNELS_MLP || specs[i].mlp.n_ff > 0) continue;
        return wk_fail(meta->err, WICK_ERR_FORMAT,
                       "block %u has no experts, and its MLP has no channels: the metadata keys "
                       "'%s' and '%s' do not fit",
                       (unsigned)i, wk_metadata_key(meta, "expert_count").text,
                       wk_metadata_key(meta, "feed_forward_length").text);
    }
    return WICK_OK;
}

static wick_status describe(wk_model *model, const wk_family *family, wick_error *err) {
    const wk_metadata meta = {
        .gguf = model->gguf,
        .arena = &model->arena,
        .architecture = family->architecture,
        .err = err,
    };
    model->hparams.norm = family->norm;
    model->hparams.biases = family->biases;
    WK_TRY(wk_hparams_read(&meta, &model->hparams));
    const size_t n_layers = model->hparams.n_layers + (model->hparams.n_layers_ahead > 0);
    model->layers = wk_arena_array(&model->arena, n_layers, sizeof *model->layers);
    wk_layer_spec *const specs = wk_arena_array(&model->arena, n_layers, sizeof *specs);
    if (model->layers == NULL || specs == NULL)
        return wk_fail_memory(err, n_layers * (sizeof *model->layers + sizeof *specs),
                              "the layers of a model");
    WK_TRY(wk_family_describe(family, &meta, &model->hparams, specs));
    WK_TRY(read_direction(&meta, &model->hparams, specs));
    WK_TRY(check_channels(&meta, &model->hparams, specs));
    for (uint32_t i = 0; i < model->hparams.n_layers; i++) {
        model->layers[i].spec = specs[i];
        wk_model_find_forms(model, i, &model->layers[i].spec);
        summarize(&model->hparams, &specs[i]);
    }
    model->placement.n_stages = 1;
    model->placement.stages[0].count = model->hparams.n_layers;
    return wk_model_check_weights(model, err);
}

wick_status wk_model_make(wk_heap *heap, const wk_gguf *gguf, wk_model **out, wick_error *err) {
    *out = NULL;
    wk_str architecture;
    const wk_family *family;
    WK_TRY(wk_metadata_general(gguf, "general.architecture", true, &architecture, err));
    if (gguf->n_tensors == 0)
        return wk_fail(err, WICK_ERR_UNSUPPORTED, "the file holds no weights");
    WK_TRY(wk_family_find(architecture, &family, err));

    wk_model *const model = wk_alloc_zeroed(heap, sizeof *model);
    if (model == NULL) return wk_fail_memory(err, sizeof *model, "a model");
    model->heap = heap;
    model->gguf = gguf;
    wk_arena_init(&model->arena, heap, 0);
    const wick_status status = describe(model, family, err);
    if (status == WICK_OK) {
        *out = model;
    } else {
        wk_model_free(model);
    }
    return status;
}

void wk_model_free(wk_model *model) {
    if (model == NULL) return;
    for (uint32_t i = 0; i < model->placement.n_stages; i++) wk_model_drop_weights(model, i);
    wk_model_free_factors(model);
    wk_model_free_adapters(model);
    wk_heap *const heap = model->heap;
    wk_arena_release(&model->arena);
    wk_free(heap, model, sizeof *model);
}

const wk_hparams *wk_model_hparams(const wk_model *model) { return &model->hparams; }

uint32_t wk_model_separable_layers(const wk_model *model, uint32_t n) {
    const uint32_t n_layers = model->hparams.n_layers;
    uint32_t first = n_layers - n;
    for (uint32_t i = first; i < n_layers; i++) {
        const wk_attention_spec *const attention = &model->layers[i].spec.attention;
        if (attention->is_kv_shared && attention->kv_layer < first) first = i + 1;
    }
    return n_layers - first;
}

void wk_model_place(wk_model *model, const wk_placement *placement) {
    model->placement = *placement;
    const wk_model_stage last = placement->stages[placement->n_stages - 1];
    model->placement.stages[WK_HEAD_STAGE] =
        (wk_model_stage){last.device, model->hparams.n_layers, 1};
}

static bool can_be_head(const wk_layer_spec *spec) {
    const bool attends = spec->mixer == WK_MIXER_ATTENTION || spec->mixer == WK_MIXER_LATENT;
    return attends && !wk_layer_is_recurrent(spec);
}

/* It is like the last layer that attends and keeps nothing else. */
static wick_status describe_head(wk_model *model, wick_error *err) {
    const uint32_t index = model->hparams.n_layers;
    uint32_t like = index;
    while (like > 0 && !can_be_head(&model->layers[like - 1].spec)) like--;
    if (like == 0 || model->hparams.n_embd_layer > 0 || model->hparams.is_bidirectional)
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "prediction heads of the architecture '%s' are not supported",
                       model->hparams.architecture);
    wk_layer_spec *const spec = &model->layers[index].spec;
    *spec = model->layers[like - 1].spec;
    spec->is_head = true;
    spec->attention.is_kv_shared = false;
    spec->attention.kv_layer = index;
    wk_model_find_forms(model, index, spec);
    return WICK_OK;
}

wick_status wk_model_use_head(wk_model *model, wick_error *err) {
    if (model->hparams.n_layers_ahead == 0)
        return wk_fail(err, WICK_ERR_UNSUPPORTED, "the file has no prediction heads");
    WK_TRY(describe_head(model, err));
    model->has_head = true;
    const wk_placement placement = model->placement;
    wk_model_place(model, &placement); /* with the head's stage */
    return wk_model_check_weights(model, err);
}

bool wk_model_has_head(const wk_model *model) { return model->has_head; }

const wk_placement *wk_model_placement(const wk_model *model) { return &model->placement; }
