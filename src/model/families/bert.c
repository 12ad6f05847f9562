/* model/families/bert.c: encoders: BERT (Devlin et al., 2019), Nomic Embed (Nussbaum et al., 2024),
 * with experts in version 2 (2025), Jina Embeddings 3 (Sturua et al., 2024), ModernBERT (Warner et
 * al., 2024), EuroBERT (Boizard et al., 2025) and Llama's network where it sees all of a text. */
#include "core/status.h"
#include "model/families.h"

static void see_all(const wk_hparams *hparams, wk_layer_spec *layers) {
    for (uint32_t i = 0; i < hparams->n_layers; i++) layers[i].attention.is_bidirectional = true;
}

/* The sum is normed after each branch; no norm comes before the first layer or after the last. */
static wick_status describe_stream(const wk_metadata *meta, wk_hparams *hparams,
                                   wk_layer_spec *layers) {
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    see_all(hparams, layers);
    hparams->n_token_types = wk_family_table_rows(meta, "token_types.weight");
    hparams->embedding_norm = WK_TOKEN_EMBEDDING_NORM;
    hparams->output_norm = WK_NO_MODEL_WEIGHT;
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        layers[i].norms[WK_MIXER_INPUT] = layers[i].norms[WK_CHANNELS_INPUT] = WK_NO_LAYER_WEIGHT;
        layers[i].norms[WK_MIXER_RESIDUAL] = WK_ATTN_OUTPUT_NORM;
        layers[i].norms[WK_CHANNELS_RESIDUAL] = WK_LAYER_OUTPUT_NORM;
    }
    return WICK_OK;
}

static wick_status describe_bert(const wk_metadata *meta, wk_hparams *hparams,
                                 wk_layer_spec *layers) {
    WK_TRY(describe_stream(meta, hparams, layers));
    wk_family_drop_gates(hparams, layers, WK_ACTIVATION_GELU_ERF);
    return wk_family_learn_positions(meta, hparams, layers);
}

/* Rotated, else as BERT. */
static wick_status describe_jina3(const wk_metadata *meta, wk_hparams *hparams,
                                  wk_layer_spec *layers) {
    WK_TRY(describe_stream(meta, hparams, layers));
    wk_family_drop_gates(hparams, layers, WK_ACTIVATION_GELU_ERF);
    return WICK_OK;
}

/* Of every n layers the second has experts; 0: none has. */
static wick_status describe_nomic2(const wk_metadata *meta, wk_hparams *hparams,
                                   wk_layer_spec *layers) {
    const wk_experts_desc experts = {
        .gating = WK_GATING_SOFTMAX, .activation = WK_ACTIVATION_GELU_ERF, .is_ungated = true};
    const uint32_t none = 0;
    uint32_t n;
    WK_TRY(describe_jina3(meta, hparams, layers));
    WK_TRY(wk_family_read_experts(meta, hparams, &experts, layers));
    WK_TRY(wk_metadata_u32(meta, "moe_every_n_layers", (wk_u32_rule){0, UINT32_MAX, &none}, &n));
    for (uint32_t i = 0; i < hparams->n_layers; i++)
        if (n == 0 || i % n != 1) layers[i].channels = WK_CHANNELS_MLP;
    return WICK_OK;
}

/* By the name that the model's own configuration has for it. */
static wick_status read_activation(const wk_metadata *meta, wk_activation *out) {
    static const char key[] = "hidden_activation";
    static const struct {
        const char *name;
        wk_activation activation;
    } known[] = {{"", WK_ACTIVATION_GELU_ERF}, /* there is no key */
                 {"gelu", WK_ACTIVATION_GELU_ERF},
                 {"gelu_pytorch_tanh", WK_ACTIVATION_GELU},
                 {"silu", WK_ACTIVATION_SILU},
                 {"relu", WK_ACTIVATION_RELU}};
    wk_str name;
    WK_TRY(wk_metadata_string(meta, key, &name));
    for (size_t i = 0; i < WK_COUNT(known); i++) {
        *out = known[i].activation;
        if (wk_str_is(name, known[i].name)) return WICK_OK;
    }
    return wk_fail(meta->err, WICK_ERR_UNSUPPORTED, "the metadata key '%s' is '%s', not supported",
                   wk_metadata_key(meta, key).text, wk_str_show(name).text);
}

/* The window counts to both sides together; its first layer takes the embedding's norm. */
static wick_status describe_modern(const wk_metadata *meta, wk_hparams *hparams,
                                   wk_layer_spec *layers) {
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    see_all(hparams, layers);
    hparams->n_labels = 0; /* its classifier has another activation, and a norm */
    hparams->embedding_norm = WK_TOKEN_EMBEDDING_NORM;
    layers[0].norms[WK_MIXER_INPUT] = WK_NO_LAYER_WEIGHT;
    WK_TRY(wk_family_read_windows(meta, hparams, layers,
                                  (wk_window_rule){.period = 3, .is_first_global = true}));
    for (uint32_t i = 0; i < hparams->n_layers; i++) {
        wk_attention_spec *const attention = &layers[i].attention;
        WK_TRY(read_activation(meta, &layers[i].mlp.activation));
        if (attention->window > 0) attention->window = attention->window / 2 + 1;
    }
    return wk_family_add_window_rope(meta, hparams, layers, 10000.0);
}

static wick_status describe_eurobert(const wk_metadata *meta, wk_hparams *hparams,
                                     wk_layer_spec *layers) {
    WK_TRY(wk_family_describe_dense(meta, hparams, layers));
    see_all(hparams, layers);
    return WICK_OK;
}

static wick_status describe_llama(const wk_metadata *meta, wk_hparams *hparams,
                                  wk_layer_spec *layers) {
    WK_TRY(describe_eurobert(meta, hparams, layers));
    wk_family_interleave_ropes(hparams, layers);
    return WICK_OK;
}

const wk_family wk_family_bert = {.architecture = "bert",
                                  .norm = WK_NORM_LAYER,
                                  .biases = WK_BIASES_MATRICES | WK_BIASES_NORMS,
                                  .describe = describe_bert};
const wk_family wk_family_nomic_bert = {.architecture = "nomic-bert",
                                        .norm = WK_NORM_LAYER,
                                        .biases = WK_BIASES_NORMS,
                                        .describe = describe_stream};
const wk_family wk_family_modern_bert = {
    .architecture = "modern-bert", .norm = WK_NORM_LAYER, .describe = describe_modern};
const wk_family wk_family_eurobert = {
    .architecture = "eurobert", .norm = WK_NORM_RMS, .describe = describe_eurobert};
const wk_family wk_family_llama_embed = {
    .architecture = "llama-embed", .norm = WK_NORM_RMS, .describe = describe_llama};
const wk_family wk_family_jina_bert_v3 = {.architecture = "jina-bert-v3",
                                          .norm = WK_NORM_LAYER,
                                          .biases = WK_BIASES_NORMS,
                                          .describe = describe_jina3};
const wk_family wk_family_nomic_bert_moe = {.architecture = "nomic-bert-moe",
                                            .norm = WK_NORM_LAYER,
                                            .biases = WK_BIASES_NORMS,
                                            .describe = describe_nomic2};
