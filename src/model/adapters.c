/* model/adapters.c: adapters of which every row of a batch has its own (Punica: Chen et al., 2023;
 * S-LoRA: Sheng et al., 2023). Of a weight [n, k] that some of them change the factors of all are
 * one tensor each, a stack: a [numbers, rank, k] and b [numbers, n, rank].
 *
 *   number   0      1      2     3      rank: the largest one, a multiple of 16. Rows of smaller
 *   a        zeros  a1     a2    zeros  ranks are filled up with zeros, as is number 0, for rows
 *   b        zeros  b1     b2    zeros  without an adapter, and all numbers that are free.
 *
 * With them the products are those of experts: a row's bits do not depend on the other rows. */
#include "model/weight_table.h"

#include "core/status.h"
#include "core/str.h"

#include <wick/nn.h>
#include <wick/ops.h>

#include <string.h>

enum { RANK_STEP = WK_PANEL_ROWS };

typedef struct wk_stack {
    struct wk_stack *next; /* of the layer */
    int weight;            /* wk_layer_weight */
    int64_t n, k, rank, n_numbers;
    wick_tensor *a, *b; /* NULL: not made yet, or lost with their device */
} wk_stack;

uint32_t wk_model_adapters_version(const wk_model *model) { return model->n_stackings; }

/* ---- Adapters ---- */

static const wk_factors *find(const wk_adapter *adapter, uint32_t layer, int weight) {
    const wk_factors *f = adapter->factors;
    while (f != NULL && (f->layer != layer || f->weight != weight)) f = f->next;
    return f;
}

wick_status wk_adapter_make(wk_model *model, wk_adapter **out, wick_error *err) {
    wk_adapter *const adapter = *out = wk_alloc_zeroed(model->heap, sizeof *adapter);
    if (adapter == NULL) return wk_fail_memory(err, sizeof *adapter, "an adapter");
    /* In the order of their numbers: the first one that is free. */
    wk_adapter **at = &model->adapters;
    adapter->number = 1;
    for (; *at != NULL && (*at)->number == adapter->number; at = &(*at)->next) adapter->number++;
    adapter->next = *at;
    *at = adapter;
    return WICK_OK;
}

wick_status wk_adapter_add(const wk_model *model, wk_adapter *adapter, const wk_factors_desc *desc,
                           wk_factors **out, wick_error *err) {
    WK_TRY(wk_factors_make(model, desc, out, err));
    wk_factors *const f = *out;
    if (find(adapter, f->layer, f->weight) != NULL) {
        wk_factors_free(model->heap, f);
        return wk_fail(err, WICK_ERR_FORMAT, "the adapter changes '%s' twice",
                       wk_str_show(desc->name).text);
    }
    for (int64_t i = 0; i < f->rank * f->k; i++) f->values[i] *= f->scale;
    f->next = adapter->factors;
    adapter->factors = f;
    return WICK_OK;
}

static bool is_used(const wk_model *model, uint32_t layer, int weight) {
    const wk_adapter *adapter = model->adapters;
    while (adapter != NULL && find(adapter, layer, weight) == NULL) adapter = adapter->next;
    return adapter != NULL;
}

const wk_factors *wk_adapter_find(const wk_model *model, const wk_adapter *adapter,
                                  wick_string name) {
    const wk_weight_place at = wk_weight_find(model, name);
    return at.is_in_layer && !at.is_bias ? find(adapter, at.layer, at.id) : NULL;
}

static void drop_tensors(wk_stack *s) {
    wick_release(s->a);
    wick_release(s->b);
    s->a = s->b = NULL;
}

static void remove_stack(wk_model *model, wk_stack **at) {
    wk_stack *const s = *at;
    *at = s->next;
    drop_tensors(s);
    wk_free(model->heap, s, sizeof *s);
    model->n_stackings++;
}

void wk_adapter_remove(wk_model *model, wk_adapter *adapter) {
    wk_adapter **at = &model->adapters;
    while (*at != adapter) at = &(*at)->next;
    *at = adapter->next;
    for (wk_factors *f = adapter->factors, *next; f != NULL; f = next) {
        next = f->next;
        wk_factors_free(model->heap, f);
    }
    wk_free(model->heap, adapter, sizeof *adapter);
    for (uint32_t i = 0; i < model->hparams.n_layers; i++)
        for (wk_stack **stack = &model->layers[i].stacks; *stack != NULL;)
            if (is_used(model, i, (*stack)->weight))
                stack = &(*stack)->next;
            else
                remove_stack(model, stack);
}

void wk_model_free_adapters(wk_model *model) {
    while (model->adapters != NULL) wk_adapter_remove(model, model->adapters);
}

void wk_layer_drop_stacks(const wk_layer *layer) {
    for (wk_stack *s = layer->stacks; s != NULL; s = s->next) drop_tensors(s);
}

/* ---- Stacks ---- */

static bool has_stack(const wk_layer *layer, int weight) {
    const wk_stack *s = layer->stacks;
    while (s != NULL && s->weight != weight) s = s->next;
    return s != NULL;
}

static wick_status add_stacks(const wk_model *model, const wk_adapter *adapter) {
    for (const wk_factors *f = adapter->factors; f != NULL; f = f->next) {
        wk_layer *const layer = &model->layers[f->layer];
        if (has_stack(layer, f->weight)) continue;
        wk_stack *const s = wk_alloc_zeroed(model->heap, sizeof *s);
        if (s == NULL)
            return wk_fail_memory(wk_device_err(wk_layer_device(model, f->layer)), sizeof *s,
                                  "an adapter");
        *s = (wk_stack){.next = layer->stacks, .weight = f->weight, .n = f->n, .k = f->k};
        layer->stacks = s;
    }
    return WICK_OK;
}

/* Every adapter's part of one factor, values [numbers, rank, k] or [numbers, n, rank], zeros. */
static void gather(const wk_model *model, uint32_t layer, const wk_stack *s, bool is_b,
                   float *values) {
    for (const wk_adapter *adapter = model->adapters; adapter != NULL; adapter = adapter->next) {
        const wk_factors *const f = find(adapter, layer, s->weight);
        if (f == NULL) continue;
        const size_t row = (size_t)(is_b ? f->rank : f->rank * f->k);
        const int64_t n = is_b ? f->n : 1, stride = is_b ? s->rank : s->rank * s->k;
        for (int64_t i = 0; i < n; i++)
            memcpy(values + (adapter->number * n + i) * stride,
                   f->values + (is_b ? f->rank * f->k + i * f->rank : 0), row * sizeof *values);
    }
}

static wick_status fill(const wk_model *model, uint32_t layer, const wk_stack *s, bool is_b) {
    const int64_t n_rows = s->n_numbers * (is_b ? s->n : s->rank);
    const size_t size = (size_t)(n_rows * (is_b ? s->rank : s->k)) * sizeof(float);
    float *const values = wk_alloc_zeroed(model->heap, size);
    if (values == NULL)
        return wk_fail_memory(wk_device_err(wk_layer_device(model, layer)), size, "an adapter");
    gather(model, layer, s, is_b, values);
    const wick_status status = wk_weight_upload(is_b ? s->b : s->a, 0, n_rows, values);
    wk_free(model->heap, values, size);
    return status;
}

static wick_status make_tensors(const wk_model *model, uint32_t layer, wk_stack *s) {
    wick_device *const device = wk_layer_device(model, layer);
    wk_weight_store none = {.device = device};
    wk_weight_desc desc = {.dtype = WICK_F32, .uses = WK_USE_LINEAR};
    bool in_place;
    s->b = NULL;
    desc.shape = WICK_SHAPE(s->n_numbers, s->rank, s->k);
    s->a = wk_weight_new(device, &desc, &none, &in_place);
    desc.shape = WICK_SHAPE(s->n_numbers, s->n, s->rank);
    if (s->a != NULL) s->b = wk_weight_new(device, &desc, &none, &in_place);
    return s->b != NULL ? WICK_OK : wk_device_err(device)->status;
}

/* As large as it has to be, with all adapters. On failure it stays as it was for those before. */
static wick_status renew(wk_model *model, uint32_t layer, wk_stack *s) {
    wk_stack larger = *s;
    for (const wk_adapter *adapter = model->adapters; adapter != NULL; adapter = adapter->next) {
        const wk_factors *const f = find(adapter, layer, s->weight);
        if (f != NULL && f->rank > larger.rank)
            larger.rank = (f->rank + RANK_STEP - 1) / RANK_STEP * RANK_STEP;
        while (larger.n_numbers <= adapter->number)
            larger.n_numbers = larger.n_numbers > 0 ? 2 * larger.n_numbers : 2;
    }
    const bool is_new = s->a == NULL || larger.rank > s->rank || larger.n_numbers > s->n_numbers;
    wick_status status = is_new ? make_tensors(model, layer, &larger) : WICK_OK;
    if (status == WICK_OK) status = fill(model, layer, &larger, false);
    if (status == WICK_OK) status = fill(model, layer, &larger, true);
    if (!is_new) return status;
    drop_tensors(status == WICK_OK ? s : &larger);
    if (status != WICK_OK) return status;
    *s = larger;
    model->n_stackings++;
    return WICK_OK;
}

wick_status wk_adapter_load(wk_model *model, const wk_adapter *adapter) {
    if (adapter != NULL) WK_TRY(add_stacks(model, adapter));
    for (uint32_t i = 0; i < model->hparams.n_layers; i++)
        for (wk_stack *s = model->layers[i].stacks; s != NULL; s = s->next)
            WK_TRY(renew(model, i, s));
    return WICK_OK;
}

/* ---- Computing ---- */

wick_tensor *wk_adapt_rows(const wk_pass *pass, const wk_layer *layer, wk_layer_weight weight,
                           wick_tensor *x, wick_tensor *y) {
    const wk_stack *s = pass->adapters != NULL ? layer->stacks : NULL;
    while (s != NULL && s->weight != (int)weight) s = s->next;
    if (s == NULL) return y;
    wick_tensor *const low =
        wick_mul(wick_linear_experts(x, s->a, NULL, pass->adapters), pass->batch->scales);
    wick_tensor *const added = wick_linear_experts(low, s->b, NULL, pass->adapters);
    for (uint32_t i = 0; i < pass->batch->n_adapters; i++) /* in this order in any batch */
        y = wick_add(y, wick_squeeze(wick_narrow(added, 1, i, 1), 1));
    return y;
}
