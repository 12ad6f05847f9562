/* llm/preflight.c: what a model will need, from its header alone. */
#include "llm/llm.h"

uint32_t wk_context_length(const wk_hparams *hparams, uint32_t requested) {
    if (requested > 0) return requested;
    return hparams->context_length < WK_DEFAULT_CONTEXT ? hparams->context_length
                                                        : WK_DEFAULT_CONTEXT;
}

/* The process itself and an open device: code, stacks, the queue of operations. Measured. */
enum { PROCESS_BYTES = 3 << 20 };

static uint64_t predict_weights(const wk_model *model, const wk_gguf *gguf,
                                const wick_device *device) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < gguf->n_tensors; i++) {
        const wick_file_tensor *const tensor = &gguf->tensors[i];
        const uint32_t uses = wk_model_weight_uses(model, tensor);
        if (uses != 0) bytes += wk_weight_bytes(device, tensor->dtype, &tensor->shape, uses);
    }
    return bytes;
}

static uint32_t n_blocks_for(uint32_t context_length) {
    return (uint32_t)(((uint64_t)context_length + WK_BLOCK_SIZE - 1) / WK_BLOCK_SIZE);
}

/* A full chunk, its rotary tables on the host and on the device, and a row of logits on both. */
static uint64_t predict_activations(const wk_model *model, uint32_t context_length) {
    const wk_hparams *const hparams = wk_model_hparams(model);
    const uint32_t n_rows =
        context_length < WK_DEFAULT_CHUNK ? context_length : (uint32_t)WK_DEFAULT_CHUNK;
    uint64_t n_table = 0;
    for (uint32_t i = 0; i < hparams->n_ropes; i++)
        n_table += 2 * (uint64_t)hparams->rope[i].n_pairs * n_rows;
    return wk_model_activation_bytes(model, n_rows) +
           2 * sizeof(float) * (n_table + hparams->n_vocab);
}

/* What stays of the metadata: arrays, and for each text of the vocabulary its characters, its place
 * in two arrays, and the tokenizer's own index. */
static uint64_t predict_metadata(const wk_gguf *gguf) {
    enum { INDEX_BYTES = 22 };
    uint64_t bytes = 0;
    for (size_t i = 0; i < gguf->n_values; i++) {
        const wick_value *const value = &gguf->values[i];
        if (value->type != WICK_VALUE_ARRAY) continue;
        if (value->array.element_type != WICK_VALUE_STRING) {
            bytes += value->array.count * sizeof(uint32_t);
            continue;
        }
        const wick_string *const texts = value->array.values;
        for (uint64_t t = 0; t < value->array.count; t++)
            bytes += 2 * (texts[t].size + sizeof *texts) + INDEX_BYTES;
    }
    return bytes;
}

wick_status wick_predict(const wick_file *file, const wick_device *device, uint32_t context_length,
                         wick_prediction *prediction, wick_error *error) {
    if (file == NULL || device == NULL || prediction == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_predict: an argument is NULL");
    *prediction = (wick_prediction){0};
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    const wk_gguf *const gguf = wk_file_gguf(file);
    wk_model *model;
    WK_TRY(wk_model_make(&heap, gguf, &model, error));

    const uint32_t context = wk_context_length(wk_model_hparams(model), context_length);
    const bool is_fast = wick_device_math(device) == WICK_MATH_FAST;
    prediction->context_length = context;
    prediction->weight_bytes = predict_weights(model, gguf, device);
    prediction->cache_bytes =
        wk_state_bytes(model, n_blocks_for(context), WK_BLOCK_SIZE, is_fast ? WICK_F16 : WICK_F32);
    prediction->activation_bytes = predict_activations(model, context);
    prediction->total_bytes = prediction->weight_bytes + prediction->cache_bytes +
                              prediction->activation_bytes + predict_metadata(gguf) + PROCESS_BYTES;
    wk_model_free(model);
    return WICK_OK;
}
