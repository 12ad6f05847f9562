/* model/families/lfm2.c: LFM2 (Liquid AI, 2025): gated short convolutions, and attention in some
 * layers; with an MLP or experts. */
#include "core/status.h"
#include "model/families.h"

static wick_status describe(const wk_metadata *meta, wk_hparams *hparams, wk_layer_spec *layers) {
    wk_recurrent_spec recurrent = {.n_channels = hparams->n_embd};
    WK_TRY(wk_family_read_taps(meta, "shortconv.l_cache", &recurrent));
    wk_family_default_layers(hparams, layers);
    hparams->output_norm = WK_TOKEN_EMBEDDING_NORM; /* so it is called in the files */
    WK_TRY(wk_family_find_attention(meta, hparams, layers, WK_MIXER_CONVOLUTION));
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        layers[i].recurrent = recurrent;
        layers[i].attention.qk_norm = WK_QK_NORM_HEAD;
    }
    WK_TRY(wk_family_read_heads(meta, hparams, layers));
    WK_TRY(wk_family_read_ff(meta, hparams, layers, 1));
    WK_TRY(wk_family_read_windows(meta, hparams, layers, (wk_window_rule){.period = 0}));
    return wk_family_add_rope(meta, hparams, layers);
}

static wick_status describe_experts(const wk_metadata *meta, wk_hparams *hparams,
                                    wk_layer_spec *layers) {
    const wk_experts_desc experts = {.gating = WK_GATING_SIGMOID, .is_normalized = true};
    WK_TRY(describe(meta, hparams, layers));
    return wk_family_read_experts(meta, hparams, &experts, layers);
}

const wk_family wk_family_lfm2 = {
    .architecture = "lfm2", .norm = WK_NORM_RMS, .describe = describe};
const wk_family wk_family_lfm2moe = {
    .architecture = "lfm2moe", .norm = WK_NORM_RMS, .describe = describe_experts};
