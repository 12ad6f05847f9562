/* model/families/qwen.c: Qwen (Bai et al., 2023), Qwen2 and 2.5 (Qwen Team, 2024), which add biases
 * to q, k and v, and Qwen3 (Qwen Team, 2025), which norms the heads of q and k instead; Hunyuan
 * (Tencent, 2025) norms them after the rotation. EXAONE 3 (LG AI Research, 2024) and PaddleOCR's
 * (Baidu, 2025) do neither; Pangu Embedded (Huawei, 2025) is Qwen2.
 * Models that see images, too, differ in the positions of those alone. */
#include "core/status.h"
#include "model/families.h"

/* The file counts gate and up together. */
static wick_status describe_qwen(const wk_metadata *meta, wk_hparams *hparams,
                                 wk_layer_spec *layers) {
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    for (uint32_t i = 0; i < hparams->n_layers; i++) layers[i].mlp.n_ff /= 2;
    return WICK_OK;
}

/* Seed-OSS (ByteDance, 2025) is Qwen2 with another name for the norm before the MLP. */
static wick_status describe_seed(const wk_metadata *meta, wk_hparams *hparams,
                                 wk_layer_spec *layers) {
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    for (uint32_t i = 0; i < hparams->n_layers; i++)
        layers[i].norms[WK_CHANNELS_INPUT] = WK_POST_ATTENTION_NORM;
    return WICK_OK;
}

static wick_status describe_qwen3(const wk_metadata *meta, wk_hparams *hparams,
                                  wk_layer_spec *layers) {
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    wk_family_norm_heads(hparams, layers);
    return WICK_OK;
}

static wick_status describe_hunyuan(const wk_metadata *meta, wk_hparams *hparams,
                                    wk_layer_spec *layers) {
    WK_TRY(describe_qwen3(meta, hparams, layers));
    for (uint32_t i = 0; i < hparams->n_layers; i++)
        layers[i].attention.is_normed_after_rope = true;
    return WICK_OK;
}

const wk_family wk_family_qwen = {.architecture = "qwen",
                                  .norm = WK_NORM_RMS,
                                  .biases = WK_BIASES_QKV,
                                  .describe = describe_qwen};
const wk_family wk_family_seed_oss = {
    .architecture = "seed_oss", .norm = WK_NORM_RMS, .describe = describe_seed};
/* OpenELM (Mehta et al., 2024): heads and channels of the MLP differ from layer to layer. */
const wk_family wk_family_openelm = {
    .architecture = "openelm", .norm = WK_NORM_RMS, .describe = describe_qwen3};
const wk_family wk_family_qwen2 = {.architecture = "qwen2",
                                   .norm = WK_NORM_RMS,
                                   .biases = WK_BIASES_QKV,
                                   .describe = wk_family_describe_dense};
const wk_family wk_family_qwen3 = {
    .architecture = "qwen3", .norm = WK_NORM_RMS, .describe = describe_qwen3};
const wk_family wk_family_qwen2vl = {.architecture = "qwen2vl",
                                     .norm = WK_NORM_RMS,
                                     .biases = WK_BIASES_QKV,
                                     .describe = wk_family_describe_dense};
const wk_family wk_family_qwen3vl = {
    .architecture = "qwen3vl", .norm = WK_NORM_RMS, .describe = describe_qwen3};
const wk_family wk_family_hunyuan_dense = {
    .architecture = "hunyuan-dense", .norm = WK_NORM_RMS, .describe = describe_hunyuan};
const wk_family wk_family_hunyuan_vl = {
    .architecture = "hunyuan_vl", .norm = WK_NORM_RMS, .describe = describe_hunyuan};
const wk_family wk_family_exaone = {
    .architecture = "exaone", .norm = WK_NORM_RMS, .describe = wk_family_describe_dense};
const wk_family wk_family_paddleocr = {
    .architecture = "paddleocr", .norm = WK_NORM_RMS, .describe = wk_family_describe_dense};
const wk_family wk_family_pangu_embedded = {.architecture = "pangu-embedded",
                                            .norm = WK_NORM_RMS,
                                            .biases = WK_BIASES_QKV,
                                            .describe = wk_family_describe_dense};
