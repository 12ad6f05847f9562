/* model/families/llama.c: Llama 1 to 3, Mistral, SmolLM2 and their like (Touvron et al., 2023),
 * Mixtral (Jiang et al., 2024), InternLM2 (Cai et al., 2024), XVERSE, ERNIE 4.5 (Baidu, 2025),
 * Arcee's AFM (2025) with squared ReLU, Baichuan (2023), whose larger model has linear biases, and
 * SmolLM3, whose every fourth layer knows no positions. */
#include "core/status.h"
#include "model/families.h"

static wick_status describe_internlm2(const wk_metadata *meta, wk_hparams *hparams,
                                      wk_layer_spec *layers) {
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    wk_family_interleave_ropes(hparams, layers);
    return WICK_OK;
}

static wick_status describe_llama(const wk_metadata *meta, wk_hparams *hparams,
                                  wk_layer_spec *layers) {
    const wk_experts_desc experts = {.gating = WK_GATING_SOFTMAX, .is_normalized = true};
    WK_TRY(describe_internlm2(meta, hparams, layers));
    WK_TRY(wk_family_read_experts(meta, hparams, &experts, layers));
    return wk_family_read_windows(meta, hparams, layers, (wk_window_rule){.period = 0});
}

static wick_status describe_arcee(const wk_metadata *meta, wk_hparams *hparams,
                                  wk_layer_spec *layers) {
    WK_TRY(describe_internlm2(meta, hparams, layers));
    wk_family_drop_gates(hparams, layers, WK_ACTIVATION_RELU_SQUARED);
    return WICK_OK;
}

/* The 13B model, which uses ALiBi, is recognised by its layer count. */
static wick_status describe_baichuan(const wk_metadata *meta, wk_hparams *hparams,
                                     wk_layer_spec *layers) {
    WK_TRY(describe_internlm2(meta, hparams, layers));
    if (hparams->n_layers == 40) wk_family_use_alibi(hparams, layers, 8.0F);
    return WICK_OK;
}

static wick_status describe_smollm3(const wk_metadata *meta, wk_hparams *hparams,
                                    wk_layer_spec *layers) {
    WK_TRY(describe_internlm2(meta, hparams, layers));
    for (uint32_t i = 3; i < hparams->n_layers; i += 4) layers[i].attention.rope = WK_NO_ROPE;
    return WICK_OK;
}

const wk_family wk_family_llama = {
    .architecture = "llama", .norm = WK_NORM_RMS, .describe = describe_llama};
const wk_family wk_family_internlm2 = {
    .architecture = "internlm2", .norm = WK_NORM_RMS, .describe = describe_internlm2};
const wk_family wk_family_xverse = {
    .architecture = "xverse", .norm = WK_NORM_RMS, .describe = describe_internlm2};
const wk_family wk_family_ernie4_5 = {
    .architecture = "ernie4_5", .norm = WK_NORM_RMS, .describe = describe_internlm2};
const wk_family wk_family_arcee = {
    .architecture = "arcee", .norm = WK_NORM_RMS, .describe = describe_arcee};
const wk_family wk_family_baichuan = {
    .architecture = "baichuan", .norm = WK_NORM_RMS, .describe = describe_baichuan};
const wk_family wk_family_smollm3 = {
    .architecture = "smollm3", .norm = WK_NORM_RMS, .describe = describe_smollm3};
