/* model/hparams.c: the numbers that every family's metadata has, checked before they are used. */
#include "model/hparams.h"

#include "core/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void copy_text(char *dst, size_t size, wk_str text) {
    size_t n = text.size < size ? text.size : size - 1;
    while (n > 0 && n < text.size && ((unsigned char)text.text[n] & 0xC0) == 0x80) n--;
    if (n > 0) memcpy(dst, text.text, n);
    dst[n] = '\0';
}

/* Every block has several tensors, so a count of blocks that is believed is bounded by the file. */
static wick_status read_layers(const wk_metadata *meta, wk_hparams *hparams) {
    WK_TRY(wk_metadata_u32(meta, "block_count", (wk_u32_rule){1, UINT32_MAX, NULL},
                           &hparams->n_layers));
    if (hparams->n_layers > meta->gguf->n_tensors)
        return wk_fail(meta->err, WICK_ERR_FORMAT,
                       "the metadata key '%s' is %" PRIu32 ", but the file has only %zu tensors",
                       wk_metadata_key(meta, "block_count").text, hparams->n_layers,
                       meta->gguf->n_tensors);
    /* The last ones predict the tokens after the next one. */
    const uint32_t none = 0;
    WK_TRY(wk_metadata_u32(meta, "nextn_predict_layers",
                           (wk_u32_rule){0, hparams->n_layers - 1, &none},
                           &hparams->n_layers_ahead));
    hparams->n_layers -= hparams->n_layers_ahead;
    return WICK_OK;
}

/* The vocabulary is as large as the embedding. */
static wick_status read_vocabulary(const wk_metadata *meta, wk_hparams *hparams) {
    const wick_file_tensor *const embedding = wk_gguf_find_tensor(meta->gguf, "token_embd.weight");
    if (embedding == NULL)
        return wk_fail(meta->err, WICK_ERR_FORMAT, "the file has no tensor 'token_embd.weight'");
    const int64_t rows = embedding->shape.extent[0];
    if (embedding->shape.rank != 2 || rows < 1 || rows > WK_MAX_VOCABULARY)
        return wk_fail(meta->err, WICK_ERR_FORMAT,
                       "the tensor 'token_embd.weight' has %" PRId64 " rows, 1 to %d are possible",
                       embedding->shape.rank == 2 ? rows : 0, WK_MAX_VOCABULARY);
    hparams->n_vocab = (uint32_t)rows;
    return WICK_OK;
}

/* Some converters write it under the other norm's name. */
static wick_status read_eps(const wk_metadata *meta, wk_hparams *hparams) {
    static const char rms[] = "attention.layer_norm_rms_epsilon",
                      layer[] = "attention.layer_norm_epsilon";
    const char *const own = hparams->norm == WK_NORM_RMS ? rms : layer;
    const char *const other = hparams->norm == WK_NORM_RMS ? layer : rms;
    const bool is_other = !wk_metadata_has(meta, own) && wk_metadata_has(meta, other);
    const char *const key = is_other ? other : own;
    double eps;
    WK_TRY(wk_metadata_f64(meta, key, NULL, &eps));
    if (eps < 0.0 || eps > 1.0)
        return wk_fail(meta->err, WICK_ERR_FORMAT,
                       "the metadata key '%s' is %g, but must be from 0 to 1",
                       wk_metadata_key(meta, key).text, eps);
    hparams->norm_eps = (float)eps;
    return WICK_OK;
}

static wick_status read_pooling(const wk_metadata *meta, wk_hparams *hparams) {
    const uint32_t unsaid = WK_POOLING_UNSAID;
    uint32_t pooling;
    WK_TRY(wk_metadata_u32(meta, "pooling_type", (wk_u32_rule){0, WK_POOLING_RANK, &unsaid},
                           &pooling));
    hparams->pooling = (wk_pooling)pooling;
    const wick_file_tensor *const labels = wk_gguf_find_tensor(meta->gguf, "cls.output.weight");
    if (pooling == WK_POOLING_RANK && labels != NULL && labels->shape.rank == 2 &&
        labels->shape.extent[0] <= WK_MAX_CHANNELS)
        hparams->n_labels = (uint32_t)labels->shape.extent[0];
    return WICK_OK;
}

wick_status wk_hparams_read(const wk_metadata *meta, wk_hparams *hparams) {
    wk_str name;
    WK_TRY(wk_metadata_general(meta->gguf, "general.name", false, &name, meta->err));
    copy_text(hparams->name, sizeof hparams->name, name);
    snprintf(hparams->architecture, sizeof hparams->architecture, "%s", meta->architecture);

    WK_TRY(read_layers(meta, hparams));
    WK_TRY(wk_metadata_u32(meta, "embedding_length", (wk_u32_rule){1, WK_MAX_CHANNELS, NULL},
                           &hparams->n_embd));
    WK_TRY(wk_metadata_u32(meta, "context_length", (wk_u32_rule){1, INT32_MAX, NULL},
                           &hparams->context_length));
    WK_TRY(read_vocabulary(meta, hparams));
    WK_TRY(read_pooling(meta, hparams));
    hparams->embedding_scale = hparams->logit_scale = 1.0F;
    hparams->output_norm = WK_OUTPUT_NORM;
    return read_eps(meta, hparams);
}
