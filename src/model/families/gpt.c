/* model/families/gpt.c: GPT-2 (Radford et al., 2019) and what kept its LayerNorm and its MLP
 * without a gate: StarCoder (Li et al., 2023) and StarCoder2 (Lozhkov et al., 2024), CodeShell (Xie
 * et al., 2024), Nemotron (Parmar et al., 2024), BLOOM (Scao et al., 2022), GPT-NeoX (Black et al.,
 * 2022), MPT (MosaicML, 2023), Falcon (Almazrouei et al., 2023); beside them Jais (Sengupta et al.,
 * 2023), Orion (Chen et al., 2024) and Refact (2023), each a part of it. */
#include "core/status.h"
#include "model/families.h"

static wick_status describe_starcoder2(const wk_metadata *meta, wk_hparams *hparams,
                                       wk_layer_spec *layers) {
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    wk_family_drop_gates(hparams, layers, WK_ACTIVATION_GELU);
    return wk_family_read_windows(meta, hparams, layers, (wk_window_rule){.period = 0});
}

static wick_status describe_gpt2(const wk_metadata *meta, wk_hparams *hparams,
                                 wk_layer_spec *layers) {
    WK_TRY(describe_starcoder2(meta, hparams, layers));
    return wk_family_learn_positions(meta, hparams, layers);
}

static wick_status describe_gptneox(const wk_metadata *meta, wk_hparams *hparams,
                                    wk_layer_spec *layers) {
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    wk_family_drop_gates(hparams, layers, WK_ACTIVATION_GELU_ERF);
    for (uint32_t i = 0; i < hparams->n_layers; i++)
        WK_TRY(wk_metadata_bool(meta, "use_parallel_residual", true, &layers[i].is_parallel));
    return WICK_OK;
}

static wick_status read_alibi(const wk_metadata *meta, wk_hparams *hparams, wk_layer_spec *layers) {
    double most;
    WK_TRY(wk_metadata_f64(meta, "attention.max_alibi_bias", NULL, &most));
    wk_family_use_alibi(hparams, layers, (float)most);
    return WICK_OK;
}

static wick_status describe_mpt(const wk_metadata *meta, wk_hparams *hparams,
                                wk_layer_spec *layers) {
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    WK_TRY(wk_family_read_clamp(meta, hparams, layers));
    wk_family_drop_gates(hparams, layers, WK_ACTIVATION_GELU_ERF);
    return read_alibi(meta, hparams, layers);
}

/* Scores are divided by the channels of a head, not by their root. */
static wick_status describe_jais(const wk_metadata *meta, wk_hparams *hparams,
                                 wk_layer_spec *layers) {
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    for (uint32_t i = 0; i < hparams->n_layers; i++)
        layers[i].attention.scale = 1.0F / (float)layers[i].attention.head_dim;
    return read_alibi(meta, hparams, layers);
}

static wick_status describe_nemotron(const wk_metadata *meta, wk_hparams *hparams,
                                     wk_layer_spec *layers) {
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    wk_family_drop_gates(hparams, layers, WK_ACTIVATION_RELU_SQUARED);
    return WICK_OK;
}

static wick_status describe_bloom(const wk_metadata *meta, wk_hparams *hparams,
                                  wk_layer_spec *layers) {
    WK_TRY(describe_starcoder2(meta, hparams, layers));
    wk_family_use_alibi(hparams, layers, 8.0F);
    hparams->embedding_norm = WK_TOKEN_EMBEDDING_NORM;
    return WICK_OK;
}

static wick_status describe_refact(const wk_metadata *meta, wk_hparams *hparams,
                                   wk_layer_spec *layers) {
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    wk_family_use_alibi(hparams, layers, 8.0F);
    return WICK_OK;
}

/* The models with grouped heads have a norm for each branch. */
static wick_status describe_falcon(const wk_metadata *meta, wk_hparams *hparams,
                                   wk_layer_spec *layers) {
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    wk_family_drop_gates(hparams, layers, WK_ACTIVATION_GELU_ERF);
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        const bool has_two = wk_metadata_layer_has(meta, i, "attn_norm_2.weight");
        layers[i].is_parallel = true;
        layers[i].norms[WK_MIXER_INPUT] = has_two ? WK_ATTN_NORM_2 : WK_ATTN_NORM;
        layers[i].norms[WK_CHANNELS_INPUT] = has_two ? WK_ATTN_NORM : WK_NO_LAYER_WEIGHT;
    }
    return WICK_OK;
}

const wk_family wk_family_gpt2 = {.architecture = "gpt2",
                                  .norm = WK_NORM_LAYER,
                                  .biases = WK_BIASES_MATRICES | WK_BIASES_NORMS,
                                  .describe = describe_gpt2};
const wk_family wk_family_starcoder = {.architecture = "starcoder",
                                       .norm = WK_NORM_LAYER,
                                       .biases = WK_BIASES_MATRICES | WK_BIASES_NORMS,
                                       .describe = describe_gpt2};
const wk_family wk_family_codeshell = {.architecture = "codeshell",
                                       .norm = WK_NORM_LAYER,
                                       .biases = WK_BIASES_MATRICES | WK_BIASES_NORMS,
                                       .describe = describe_starcoder2};
const wk_family wk_family_nemotron = {.architecture = "nemotron",
                                      .norm = WK_NORM_LAYER,
                                      .biases = WK_BIASES_NORMS,
                                      .describe = describe_nemotron};
const wk_family wk_family_jais = {.architecture = "jais",
                                  .norm = WK_NORM_LAYER,
                                  .biases = WK_BIASES_MATRICES | WK_BIASES_NORMS,
                                  .describe = describe_jais};
const wk_family wk_family_jais2 = {.architecture = "jais2",
                                   .norm = WK_NORM_LAYER,
                                   .biases = WK_BIASES_MATRICES | WK_BIASES_NORMS,
                                   .describe = describe_nemotron};
const wk_family wk_family_bloom = {.architecture = "bloom",
                                   .norm = WK_NORM_LAYER,
                                   .biases = WK_BIASES_MATRICES | WK_BIASES_NORMS,
                                   .describe = describe_bloom};
const wk_family wk_family_refact = {
    .architecture = "refact", .norm = WK_NORM_RMS, .describe = describe_refact};
const wk_family wk_family_orion = {.architecture = "orion",
                                   .norm = WK_NORM_LAYER,
                                   .biases = WK_BIASES_NORMS,
                                   .describe = wk_family_describe_dense};
const wk_family wk_family_gptneox = {.architecture = "gptneox",
                                     .norm = WK_NORM_LAYER,
                                     .biases = WK_BIASES_MATRICES | WK_BIASES_NORMS,
                                     .describe = describe_gptneox};
const wk_family wk_family_mpt = {
    .architecture = "mpt", .norm = WK_NORM_LAYER, .describe = describe_mpt};
const wk_family wk_family_starcoder2 = {.architecture = "starcoder2",
                                        .norm = WK_NORM_LAYER,
                                        .biases = WK_BIASES_MATRICES | WK_BIASES_NORMS,
                                        .describe = describe_starcoder2};
const wk_family wk_family_falcon = {.architecture = "falcon",
                                    .norm = WK_NORM_LAYER,
                                    .biases = WK_BIASES_NORMS,
                                    .describe = describe_falcon};
