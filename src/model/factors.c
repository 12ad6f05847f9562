/* model/factors.c: low-rank changes of weights, which adapters are made of. */
#include "core/status.h"
#include "core/str.h"
#include "model/model_struct.h"
#include "model/weight_table.h"

#include <wick/nn.h>
#include <wick/ops.h>

#include <string.h>

/* All go through wk_project, and mean the same in every family. 0: not one of them. */
static uint32_t parts_of(const wk_model *model, const wk_weight_place *at) {
    if (at->id == 0 || !at->is_in_layer || at->is_bias) return 0;
    const wk_layer_spec *const spec = &model->layers[at->layer].spec;
    if (spec->is_head) return 0;
    switch ((wk_layer_weight)at->id) {
    case WK_ATTN_QKV: return WK_PART_Q | WK_PART_K | WK_PART_V;
    case WK_ATTN_Q:
    case WK_LATENT_Q:
    case WK_LATENT_Q_A:
    case WK_LATENT_Q_B: return WK_PART_Q;
    case WK_ATTN_K: return WK_PART_K;
    case WK_ATTN_V: return WK_PART_V;
    case WK_LATENT_KV_A: return WK_PART_K | WK_PART_V;
    case WK_ATTN_OUTPUT:
    case WK_LATENT_OUTPUT: return WK_PART_O;
    case WK_ATTN_GATE:
    case WK_SHORTCONV_IN:
    case WK_SSM_IN:
    case WK_DELTA_QKV:
    case WK_DELTA_GATE: return WK_PART_IN;
    case WK_SHORTCONV_OUT:
    case WK_SSM_OUT: return WK_PART_OUT;
    case WK_FFN_GATE:
    case WK_FFN_GATE_SHEXP: return WK_PART_GATE;
    case WK_FFN_UP: return spec->mlp.is_fused ? WK_PART_GATE | WK_PART_UP : WK_PART_UP;
    case WK_FFN_UP_SHEXP:
        return spec->experts.is_shared_fused ? WK_PART_GATE | WK_PART_UP : WK_PART_UP;
    case WK_FFN_DOWN:
    case WK_FFN_DOWN_SHEXP: return WK_PART_DOWN;
    default: return 0;
    }
}

uint32_t wk_model_can_adapt(const wk_model *model, wick_string name, wick_shape *shape) {
    const wk_weight_place at = wk_weight_find(model, name);
    const uint32_t parts = parts_of(model, &at);
    if (parts == 0) return 0;
    *shape = wk_weight_shape(model, &at);
    return shape->rank == 2 ? parts : 0;
}

/* ---- Their memory ---- */

wick_device *wk_layer_device(const wk_model *model, uint32_t layer) {
    const wk_model_stage *stage = model->placement.stages;
    while (layer - stage->first >= stage->count) stage++;
    return stage->device;
}

static wick_tensor *make_factor(wick_device *device, wick_shape shape, const float *values) {
    wk_weight_store none = {.device = device};
    const wk_weight_desc desc = {.dtype = WICK_F32, .shape = shape, .uses = WK_USE_OTHER};
    bool in_place;
    wick_tensor *const factor = wk_weight_new(device, &desc, &none, &in_place);
    if (factor == NULL) return NULL;
    if (wk_weight_upload(factor, 0, shape.extent[0], values) == WICK_OK) return factor;
    wick_release(factor);
    return NULL;
}

static wick_status make_tensors(const wk_model *model, wk_factors *f) {
    wick_device *const device = wk_layer_device(model, f->layer);
    f->a = make_factor(device, WICK_SHAPE(f->rank, f->k), f->values);
    if (f->a != NULL)
        f->b = make_factor(device, WICK_SHAPE(f->n, f->rank), f->values + f->rank * f->k);
    return f->b != NULL ? WICK_OK : wk_device_err(device)->status;
}

static void drop_tensors(wk_factors *f) {
    wick_release(f->a);
    wick_release(f->b);
    f->a = f->b = NULL;
}

static size_t values_bytes(const wk_factors *f) {
    return (size_t)(f->rank * (f->k + f->n)) * sizeof *f->values;
}

void wk_factors_free(wk_heap *heap, wk_factors *f) {
    drop_tensors(f);
    wk_free(heap, f->values, f->values != NULL ? values_bytes(f) : 0);
    wk_free(heap, f, sizeof *f);
}

/* ---- Adding and removing ---- */

wick_status wk_factors_make(const wk_model *model, const wk_factors_desc *desc, wk_factors **out,
                            wick_error *err) {
    const wk_weight_place at = wk_weight_find(model, desc->name);
    *out = NULL;
    if (parts_of(model, &at) == 0)
        return wk_fail(err, WICK_ERR_UNSUPPORTED, "the tensor '%s' of the model cannot be adapted",
                       wk_str_show(desc->name).text);
    const wick_shape shape = wk_weight_shape(model, &at);
    wk_factors *const f = wk_alloc_zeroed(model->heap, sizeof *f);
    if (f == NULL) return wk_fail_memory(err, sizeof *f, "an adapter");
    *f = (wk_factors){.layer = at.layer,
                      .weight = at.id,
                      .scale = desc->scale,
                      .rank = desc->rank,
                      .n = shape.extent[0],
                      .k = shape.extent[1]};
    f->values = wk_alloc(model->heap, values_bytes(f));
    if (f->values == NULL) {
        const size_t size = values_bytes(f);
        wk_factors_free(model->heap, f);
        return wk_fail_memory(err, size, "an adapter");
    }
    memcpy(f->values, desc->a, (size_t)(f->rank * f->k) * sizeof *f->values);
    memcpy(f->values + f->rank * f->k, desc->b, (size_t)(f->n * f->rank) * sizeof *f->values);
    *out = f;
    return WICK_OK;
}

wick_status wk_model_add_factors(wk_model *model, const wk_factors_desc *desc, wk_factors **out,
                                 wick_error *err) {
    WK_TRY(wk_factors_make(model, desc, out, err));
    wk_factors *const f = *out;
    *out = NULL;
    wick_error failure = {.status = WICK_OK};
    wick_device *const device = wk_layer_device(model, f->layer);
    wick_error *const before = wk_device_borrow(device, &failure);
    const wick_status status = make_tensors(model, f);
    wk_device_give_back(device, before);
    if (status != WICK_OK) {
        wk_factors_free(model->heap, f);
        return wk_pass_on(err, status, &failure);
    }
    wk_factors **end = &model->layers[f->layer].factors;
    while (*end != NULL) end = &(*end)->next;
    *end = *out = f;
    return WICK_OK;
}

void wk_model_remove_factors(wk_model *model, wk_factors *factors) {
    if (factors == NULL) return;
    wk_factors **at = &model->layers[factors->layer].factors;
    while (*at != factors) at = &(*at)->next;
    *at = factors->next;
    wk_factors_free(model->heap, factors);
}

void wk_model_free_factors(wk_model *model) {
    for (uint32_t i = 0; model->layers != NULL && i < model->hparams.n_layers; i++)
        while (model->layers[i].factors != NULL)
            wk_model_remove_factors(model, model->layers[i].factors);
}

/* ---- Weights that are loaded again ---- */

void wk_layer_drop_factors(const wk_layer *layer) {
    for (wk_factors *f = layer->factors; f != NULL; f = f->next) drop_tensors(f);
}

wick_status wk_model_renew_factors(const wk_model *model) {
    for (uint32_t i = 0; i < model->hparams.n_layers; i++)
        for (wk_factors *f = model->layers[i].factors; f != NULL; f = f->next)
            if (f->a == NULL) WK_TRY(make_tensors(model, f));
    return WICK_OK;
}

/* ---- Computing ---- */

wick_tensor *wk_adapt(const wk_layer *layer, wk_layer_weight weight, wick_tensor *x,
                      wick_tensor *y) {
    for (const wk_factors *f = layer->factors; f != NULL; f = f->next) {
        if (f->weight != (int)weight) continue;
        wick_tensor *const in = f->dropout > 0 ? wick_dropout(x, (double)f->dropout, true) : x;
        wick_tensor *const low = wk_scaled(wick_linear(in, f->a, NULL), f->scale);
        y = wick_add(y, wick_linear(low, f->b, NULL));
    }
    return y;
}
