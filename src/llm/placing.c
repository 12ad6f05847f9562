/* llm/placing.c: see placing.h. */
#include "llm/placing.h"

#include <inttypes.h>

enum { MOST_CHOICES = 4 }; /* after these all layers go to the CPU */

wk_placing wk_placing_of(const wick_model_desc *desc) {
    return (wk_placing){.wanted = desc != NULL ? desc->device_layers : 0};
}

void wk_placing_release(wk_placing *placing) {
    if (placing->opening != NULL) (void)wick_device_open_finish(placing->opening, NULL, NULL);
    placing->opening = NULL;
}

/* The last n layers are the device's, or as many of them as can do without those before. */
static void choose(wk_placing *placing, wick_model *model, uint32_t n) {
    placing->n_choices++;
    placing->device_layers = wk_model_separable_layers(model->model, n);
    model->info.host_layers = model->info.n_layers - placing->device_layers;
}

/* As many as fit in budget bytes, `most` at most. */
static void choose_fitting(wk_placing *placing, wick_model *model, uint32_t most, uint64_t budget) {
    wick_model_info *const info = &model->info;
    choose(
        placing, model,
        wk_layers_that_fit(model->model, model->gguf, model->device, most, budget, &model->warm));
    if (info->host_layers == 0) return;
    info->bytes_needed =
        wk_bytes_needed(model->model, model->gguf, model->device, info->n_layers, &model->warm);
    info->bytes_available = budget;
}

static bool is_cpu(const wick_device_info *info) { return info->backend == WICK_BACKEND_CPU; }

void wk_placing_choose(wk_placing *placing, wick_model *model) {
    const uint32_t n_layers = model->info.n_layers;
    wick_device_info info;
    wick_device_get_info(model->device, &info);
    if (is_cpu(&info) || (placing->wanted == 0 && info.memory_available == 0))
        choose(placing, model, n_layers);
    else if (placing->wanted == 0)
        choose_fitting(placing, model, n_layers, info.memory_available);
    else if (placing->wanted < 0)
        choose(placing, model, 0);
    else
        choose(placing, model,
               (uint32_t)placing->wanted < n_layers ? (uint32_t)placing->wanted : n_layers);
}

bool wk_placing_is_free(const wk_placing *placing, const wick_model *model) {
    wick_device_info info;
    wick_device_get_info(model->device, &info);
    return placing->wanted == 0 && placing->device_layers > 0 && !is_cpu(&info);
}

void wk_placing_choose_again(wk_placing *placing, wick_model *model, uint64_t budget) {
    const bool is_hopeless = placing->n_choices >= MOST_CHOICES;
    choose_fitting(placing, model, is_hopeless ? 0 : placing->device_layers - 1, budget);
}

static wick_status open_host(wk_placing *placing, wick_model *model, wick_error *err) {
    if (model->info.host_layers == 0 || model->host != NULL) return WICK_OK;
    if (placing->opening == NULL)
        WK_TRY(wk_device_open_host(model->device, &placing->opening, err));
    if (wick_device_open_poll(placing->opening) == WICK_PENDING) return WICK_PENDING;
    wick_device_opening *const opening = placing->opening;
    placing->opening = NULL;
    return wick_device_open_finish(opening, &model->host, err);
}

wick_status wk_placing_poll(wk_placing *placing, wick_model *model, wick_error *err) {
    const wick_model_info *const info = &model->info;
    WK_TRY(open_host(placing, model, err));
    const wk_placement placement =
        wk_placement_of(model->model, placing->device_layers, model->host, model->device);
    wk_model_place(model->model, &placement);
    if (info->bytes_needed > 0)
        wk_device_log(model->device, WICK_LOG_INFO,
                      "the first %" PRIu32 " of %" PRIu32 " layers run on the CPU: all would take "
                      "%s of the device's memory, it has %s",
                      info->host_layers, info->n_layers,
                      wk_show_size(info->bytes_needed, true).text,
                      wk_show_size(info->bytes_available, false).text);
    return WICK_OK;
}
