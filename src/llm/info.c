/* llm/info.c: what a model says about itself. */
#include "llm/llm.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* "q4_1 210, f32 61": how many tensors have each type, most frequent first. */
static void write_types(const wk_gguf *gguf, char *text, size_t size) {
    uint32_t counts[WICK_DTYPE_COUNT_] = {0};
    for (size_t i = 0; i < gguf->n_tensors; i++) counts[gguf->tensors[i].dtype]++;
    size_t used = 0;
    text[0] = '\0';
    for (;;) {
        int most = 0;
        for (int i = 1; i < WICK_DTYPE_COUNT_; i++) {
            if (counts[i] > counts[most]) most = i;
        }
        if (counts[most] == 0 || used >= size) return;
        used += (size_t)snprintf(text + used, size - used, "%s%s %" PRIu32, used > 0 ? ", " : "",
                                 wick_dtype_name((wick_dtype)most), counts[most]);
        counts[most] = 0;
    }
}

void wk_info_fill(wick_model *model) {
    const wk_hparams *const hparams = wk_model_hparams(model->model);
    const wk_gguf *const gguf = model->gguf;
    wick_model_info *const info = &model->info;
    _Static_assert(sizeof info->name == sizeof hparams->name &&
                       sizeof info->architecture == sizeof hparams->architecture,
                   "copied whole");
    memcpy(info->name, hparams->name, sizeof info->name);
    memcpy(info->architecture, hparams->architecture, sizeof info->architecture);
    info->n_layers = hparams->n_layers;
    info->n_embd = hparams->n_embd;
    info->n_labels = hparams->n_labels;
    info->n_vocab = hparams->n_vocab;
    info->n_heads_q = hparams->n_heads_q;
    info->n_heads_kv = hparams->n_heads_kv;
    info->context_length = hparams->context_length;
    info->short_context_length =
        hparams->short_context < hparams->context_length ? hparams->short_context : 0;
    info->file_bytes = gguf->data_offset;
    for (size_t i = 0; i < gguf->n_tensors; i++) {
        const wick_file_tensor *const tensor = &gguf->tensors[i];
        uint64_t count = 1;
        for (int d = 0; d < tensor->shape.rank; d++) count *= (uint64_t)tensor->shape.extent[d];
        info->n_parameters += count;
        if (tensor->offset + tensor->size > info->file_bytes)
            info->file_bytes = tensor->offset + tensor->size;
    }
    if (model->source.size != WICK_SIZE_UNKNOWN) info->file_bytes = model->source.size;
    write_types(gguf, info->types, sizeof info->types);
}

void wk_info_note_slow_type(wick_model *model, const wick_device *device, wick_dtype dtype) {
    wick_device_info of;
    wick_device_get_info(device, &of);
    if (of.isa[0] == '\0' || strcmp(of.isa, "ref") == 0) return;
    char *const text = model->info.types_ref;
    const char *const name = wick_dtype_name(dtype);
    const size_t length = strlen(name), used = strlen(text);
    for (const char *at = strstr(text, name); at != NULL; at = strstr(at + 1, name)) {
        const bool begins = at == text || at[-1] == ' ';
        if (begins && (at[length] == '\0' || at[length] == ',')) return;
    }
    snprintf(text + used, sizeof model->info.types_ref - used, "%s%s", used > 0 ? ", " : "", name);
}
