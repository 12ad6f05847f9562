/* model/families/glm.c: ChatGLM3 and GLM-4 of 2024 (GLM Team, 2024), and GLM-4 of 2025, which norms
 * before and after each branch. */
#include "core/status.h"
#include "model/families.h"

static wick_status describe_chatglm(const wk_metadata *meta, wk_hparams *hparams,
                                    wk_layer_spec *layers) {
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    wk_family_interleave_ropes(hparams, layers);
    return WICK_OK;
}

/* Files of models that see images have sections of the rotation, and its pairs as halves. */
static wick_status describe_glm4(const wk_metadata *meta, wk_hparams *hparams,
                                 wk_layer_spec *layers) {
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    if (!wk_metadata_has(meta, "rope.dimension_sections"))
        wk_family_interleave_ropes(hparams, layers);
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        layers[i].norms[WK_MIXER_OUTPUT] = WK_POST_ATTENTION_NORM;
        layers[i].norms[WK_CHANNELS_OUTPUT] = WK_POST_FFW_NORM;
    }
    return WICK_OK;
}

const wk_family wk_family_glm4 = {
    .architecture = "glm4", .norm = WK_NORM_RMS, .describe = describe_glm4};
const wk_family wk_family_chatglm = {
    .architecture = "chatglm", .norm = WK_NORM_RMS, .describe = describe_chatglm};
