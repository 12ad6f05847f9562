/* model/families/gemma.c: Gemma 1 to 3 (Gemma Team, 2024 and 2025) and EmbeddingGemma (2025). */
#include "core/status.h"
#include "model/families.h"

#include <math.h>

static wick_status describe_gemma(const wk_metadata *meta, wk_hparams *hparams,
                                  wk_layer_spec *layers) {
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    hparams->embedding_scale = (float)sqrt((double)hparams->n_embd);
    for (uint32_t i = 0; i < hparams->n_layers; i++) layers[i].mlp.activation = WK_ACTIVATION_GELU;
    return wk_family_read_cap(meta, "final_logit_softcapping", 0.0, &hparams->logit_softcap);
}

/* The scale of the scores. In files without the key the largest models, recognised by their layer
 * count, take the channels that a head would have if the heads shared those of the model. */
static wick_status read_scale(const wk_metadata *meta, const wk_hparams *hparams,
                              uint32_t n_layers_of_largest, wk_attention_spec *attention) {
    const bool is_largest = hparams->n_layers == n_layers_of_largest;
    const double n_shared = (double)hparams->n_embd / attention->n_heads_q;
    const double n = is_largest ? n_shared : (double)attention->head_dim;
    const double usual = 1.0 / sqrt(n);
    double scale;
    WK_TRY(wk_metadata_f64(meta, "attention.scale", &usual, &scale));
    attention->scale = (float)scale;
    return WICK_OK;
}

/* Norms after the branches, too. */
static wick_status describe_normed(const wk_metadata *meta, wk_hparams *hparams,
                                   wk_layer_spec *layers, uint32_t n_layers_of_largest) {
    WK_TRY(describe_gemma(meta, hparams, layers));
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        wk_attention_spec *const attention = &layers[i].attention;
        layers[i].norms[WK_MIXER_OUTPUT] = WK_POST_ATTENTION_NORM;
        layers[i].norms[WK_CHANNELS_OUTPUT] = WK_POST_FFW_NORM;
        WK_TRY(read_scale(meta, hparams, n_layers_of_largest, attention));
    }
    return WICK_OK;
}

/* The first files do not say the window and the caps, which all of these models share. */
static wick_status describe_gemma2(const wk_metadata *meta, wk_hparams *hparams,
                                   wk_layer_spec *layers) {
    const wk_window_rule windows = {.period = 2, .window = 4096};
    WK_TRY(describe_normed(meta, hparams, layers, 46));
    WK_TRY(wk_family_read_windows(meta, hparams, layers, windows));
    for (uint32_t i = 0; i < hparams->n_layers; i++)
        WK_TRY(
            wk_family_read_cap(meta, "attn_logit_softcapping", 50.0, &layers[i].attention.softcap));
    return wk_family_read_cap(meta, "final_logit_softcapping", 30.0, &hparams->logit_softcap);
}

static wick_status describe_gemma3(const wk_metadata *meta, wk_hparams *hparams,
                                   wk_layer_spec *layers) {
    WK_TRY(describe_normed(meta, hparams, layers, 62));
    WK_TRY(wk_family_read_windows(meta, hparams, layers, (wk_window_rule){.period = 6}));
    wk_family_norm_heads(hparams, layers);
    return wk_family_add_window_rope(meta, hparams, layers, 10000.0);
}

/* The window counts to both sides together. */
static wick_status describe_embedding(const wk_metadata *meta, wk_hparams *hparams,
                                      wk_layer_spec *layers) {
    WK_TRY(describe_gemma3(meta, hparams, layers));
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        wk_attention_spec *const attention = &layers[i].attention;
        attention->is_bidirectional = true;
        if (attention->window > 0) attention->window = attention->window / 2 + 1;
    }
    return WICK_OK;
}

const wk_family wk_family_gemma = {
    .architecture = "gemma", .norm = WK_NORM_RMS, .describe = describe_gemma};
const wk_family wk_family_gemma2 = {
    .architecture = "gemma2", .norm = WK_NORM_RMS, .describe = describe_gemma2};
const wk_family wk_family_gemma3 = {
    .architecture = "gemma3", .norm = WK_NORM_RMS, .describe = describe_gemma3};
const wk_family wk_family_gemma_embedding = {
    .architecture = "gemma-embedding", .norm = WK_NORM_RMS, .describe = describe_embedding};
