/* llm/model.c: a loaded model: what is asked of it, and its end. */
#include "llm/adapter.h"
#include "llm/runner.h"
#include "sys/clock.h"

void wick_model_trim(wick_model *model) {
    if (model != NULL) wk_runners_trim(model);
}

void wick_model_close(wick_model *model) {
    if (model == NULL) return;
    /* Work that is still queued may read weights in the mapping. */
    if (model->has_weights_in_place) {
        (void)wick_synchronize(model->device);
        if (model->host != NULL) (void)wick_synchronize(model->host);
    }
    wk_runners_drop(model);
    while (model->loras != NULL) (void)wick_lora_close(model->loras, NULL);
    wk_model_free(model->model);
    wk_token_trie_free(&model->trie);
    wk_tokenizer_free(model->heap, model->tokenizer);
    if (model->source.close != NULL) model->source.close(&model->source);
    wk_loading_free(model->loading);
    wk_gguf_parser_free(model->parser);
    wick_device_close(model->host);
    wk_free(model->heap, model, sizeof *model);
}

void wick_model_get_info(const wick_model *model, wick_model_info *info) {
    if (info != NULL) *info = model != NULL ? model->info : (wick_model_info){.file_bytes = 0};
}

wk_model_errors wk_model_borrow(const wick_model *model, wick_error *err) {
    return (wk_model_errors){
        .device = wk_device_borrow(model->device, err),
        .host = model->host ? wk_device_borrow(model->host, err) : NULL,
    };
}

/* A host that was opened meanwhile is given back to itself. */
void wk_model_give_back(const wick_model *model, wk_model_errors before) {
    wk_device_give_back(model->device, before.device);
    if (model->host) wk_device_give_back(model->host, before.host);
}

static double busy_now(const wick_model *model) {
    return (double)(wk_clock_ns() - model->busy_since) * 1e-9;
}

void wick_model_get_usage(const wick_model *model, wick_model_usage *usage) {
    if (!usage) return;
    *usage = model ? model->usage : (wick_model_usage){0};
    if (usage->n_running > 0) usage->busy_seconds += busy_now(model);
}

void wk_model_note_batch(wick_model *model, bool is_running) {
    wick_model_usage *const usage = &model->usage;
    if (is_running && usage->n_running++ == 0) model->busy_since = wk_clock_ns();
    if (!is_running && --usage->n_running == 0) usage->busy_seconds += busy_now(model);
}

const wick_tokenizer *wick_model_tokenizer(const wick_model *model) {
    return model != NULL ? model->tokenizer : NULL;
}

wick_device *wick_model_device(const wick_model *model) {
    return model != NULL ? model->device : NULL;
}

wick_device *wick_model_host(const wick_model *model) { return model != NULL ? model->host : NULL; }
