/* model/weights.c: the tensors of a file as weights of the model: whether they fit, and their
 * loading. */
#include "core/dtype.h"
#include "core/shape.h"
#include "model/rope.h"
#include "model/weight_table.h"
#include "quant/block.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* The kind of rotary divisors that a tensor holds; WK_ROPE_DIVISORS_COUNT: it is something else. */
static int divisors_of(const wick_file_tensor *tensor) {
    static const char *const names[WK_ROPE_DIVISORS_COUNT] = {
        [WK_ROPE_DIVISORS] = "rope_freqs.weight",
        [WK_ROPE_DIVISORS_SHORT] = "rope_factors_short.weight",
        [WK_ROPE_DIVISORS_LONG] = "rope_factors_long.weight",
    };
    int kind = 0;
    const wk_str name = {tensor->name.text, tensor->name.size};
    while (kind < WK_ROPE_DIVISORS_COUNT && !wk_str_is(name, names[kind])) kind++;
    return kind;
}

/* ---- Checks ---- */

static wick_shape without_leading_ones(const wick_shape *shape) {
    wick_shape out = {.rank = 0};
    for (int i = 0; i < shape->rank; i++)
        if (out.rank > 0 || shape->extent[i] != 1) out.extent[out.rank++] = shape->extent[i];
    return out;
}

/* Programs that rewrite files drop the slowest extents that are 1. */
static wick_status check_shape(const wick_file_tensor *tensor, const wick_shape *expected,
                               wick_error *err) {
    const wick_shape found = without_leading_ones(&tensor->shape);
    const wick_shape wanted = without_leading_ones(expected);
    if (wk_shape_equal(&found, &wanted)) return WICK_OK;
    char found_text[128], expected_text[128];
    wk_shape_text(&tensor->shape, found_text, sizeof found_text);
    wk_shape_text(expected, expected_text, sizeof expected_text);
    return wk_fail(err, WICK_ERR_FORMAT, "the tensor '%s' has the shape %s, but must have %s",
                   tensor->name.text, found_text, expected_text);
}

/* What is added and multiplied as it is must be f32, the others may have any type that can be
 * decoded. */
static wick_status check_dtype(const wick_file_tensor *tensor, bool is_vector, wick_error *err) {
    if (is_vector ? tensor->dtype == WICK_F32 : wk_decoder(tensor->dtype) != NULL) return WICK_OK;
    return wk_fail(
        err, WICK_ERR_UNSUPPORTED, "the tensor '%s' has the type %s, which is not supported yet%s",
        tensor->name.text, wick_dtype_name(tensor->dtype), is_vector ? " for vectors" : "");
}

static void note_short_context(wk_hparams *hparams) {
    for (uint32_t r = 0; r < hparams->n_ropes; r++)
        if (!hparams->rope[r].desc.is_plain)
            hparams->short_context = hparams->rope[r].original_context;
}

static wick_status check_rope_divisors(wk_model *model, const wick_file_tensor *tensor, int kind,
                                       wick_error *err) {
    const uint32_t n_pairs = wk_rope_divided_pairs(&model->hparams);
    const wick_shape expected = {.rank = 1, .extent = {n_pairs}};
    WK_TRY(check_shape(tensor, &expected, err));
    WK_TRY(check_dtype(tensor, true, err));
    float **const divisors = &model->rope_divisors[kind];
    if (kind == WK_ROPE_DIVISORS_LONG) note_short_context(&model->hparams);
    *divisors = wk_arena_array(&model->arena, n_pairs, sizeof **divisors);
    if (*divisors != NULL) return WICK_OK;
    return wk_fail_memory(err, n_pairs * sizeof **divisors, tensor->name.text);
}

/* A tensor of a prediction head that is not used, or keys and values of a layer that uses those of
 * another. */
static bool is_left_alone(const wk_model *model, const wick_file_tensor *tensor,
                          const wk_weight_place *at) {
    const wk_hparams *const hparams = &model->hparams;
    if (!at->is_in_layer) return false;
    if (at->layer < wk_model_layers(model)) return wk_weight_is_superseded(model, tensor->name);
    return at->layer - hparams->n_layers < hparams->n_layers_ahead;
}

static wick_status check_tensor(wk_model *model, const wick_file_tensor *tensor, wick_error *err) {
    const int divisors = divisors_of(tensor);
    if (divisors < WK_ROPE_DIVISORS_COUNT) return check_rope_divisors(model, tensor, divisors, err);
    const wk_weight_place at = wk_weight_find(model, tensor->name);
    if (at.id == 0 && is_left_alone(model, tensor, &at)) return WICK_OK;
    if (at.id == 0)
        return wk_fail(
            err, WICK_ERR_UNSUPPORTED,
            "the tensor '%s' is not known in a model of the architecture '%s' with %" PRIu32
            " blocks",
            wk_str_show((wk_str){tensor->name.text, tensor->name.size}).text,
            model->hparams.architecture, model->hparams.n_layers);
    const wick_shape expected = wk_weight_shape(model, &at);
    WK_TRY(check_shape(tensor, &expected, err));
    return check_dtype(tensor, wk_weight_uses(&at) == WK_USE_OTHER, err);
}

wick_status wk_model_check_weights(wk_model *model, wick_error *err) {
    for (size_t i = 0; i < model->gguf->n_tensors; i++)
        WK_TRY(check_tensor(model, &model->gguf->tensors[i], err));
    return wk_weight_check_names(model, err);
}

/* ---- Loading ---- */

void *wk_model_host_weight(wk_model *model, const wick_file_tensor *tensor) {
    const int kind = divisors_of(tensor);
    return kind < WK_ROPE_DIVISORS_COUNT ? model->rope_divisors[kind] : NULL;
}

/* Weights of a layer that multiply the same x. */
static const wk_layer_weight side_by_side[][3] = {{WK_ATTN_Q, WK_ATTN_K, WK_ATTN_V},
                                                  {WK_FFN_GATE, WK_FFN_UP},
                                                  {WK_FFN_GATE_EXPS, WK_FFN_UP_EXPS}};

static const wk_layer_weight *neighbours_of(int id) {
    for (size_t g = 0; g < WK_COUNT(side_by_side); g++)
        for (size_t i = 0; i < WK_COUNT(side_by_side[g]) && side_by_side[g][i] != 0; i++)
            if ((int)side_by_side[g][i] == id) return side_by_side[g];
    return NULL;
}

/* "blk.3." of "blk.3.attn_q.weight". */
static size_t block_prefix(wick_string name) {
    size_t n_dots = 0, i = 0;
    while (i < name.size && n_dots < 2) n_dots += name.text[i++] == '.';
    return i;
}

/* The tensor that is weight id, or its bias, of the layer that `of` belongs to; NULL: none is. */
static const wick_file_tensor *tensor_of(const wk_model *model, const wick_file_tensor *of,
                                         const wk_weight_place *at, int id) {
    const size_t n = block_prefix(of->name);
    for (size_t i = 0; i < model->gguf->n_tensors; i++) {
        const wick_file_tensor *const tensor = &model->gguf->tensors[i];
        if (tensor->name.size < n || memcmp(tensor->name.text, of->name.text, n) != 0) continue;
        const wk_weight_place found = wk_weight_find(model, tensor->name);
        if (found.is_in_layer && found.layer == at->layer && found.is_bias == at->is_bias &&
            found.id == id)
            return tensor;
    }
    return NULL;
}

/* Gives a weight its place beside the others of its type that multiply the same x, if it fills its
 * panels: they do, too. Of experts all gates come first, then all ups. */
static void put_beside(const wk_model *model, wick_device *device, const wick_file_tensor *tensor,
                       wk_weight_desc *desc) {
    const wk_weight_place at = wk_weight_find(model, tensor->name);
    const wk_layer_weight *const ids = at.is_in_layer ? neighbours_of(at.id) : NULL;
    if (ids == NULL || !wk_device_joins_products(device)) return;
    const wk_layer *const layer = &model->layers[at.layer];
    wick_tensor *const *const made = at.is_bias ? layer->bias : layer->weight;
    uint64_t room = 0, begin = 0, neighbour_begin = 0;
    for (size_t i = 0; i < WK_COUNT(side_by_side[0]) && ids[i] != 0; i++) {
        const wick_file_tensor *const other = tensor_of(model, tensor, &at, (int)ids[i]);
        if (other == NULL || other->dtype != tensor->dtype) continue;
        wk_weight_place of = at;
        of.id = (int)ids[i];
        const wick_shape shape = wk_weight_shape(model, &of);
        const int n_leading = of.id == WK_FFN_GATE_EXPS || of.id == WK_FFN_UP_EXPS; /* experts */
        const bool is_matrix = shape.rank == n_leading + 2 &&
                               !wk_weight_is_raw(device, other->dtype, &shape, desc->uses) &&
                               shape.extent[n_leading] % WK_PANEL_ROWS == 0;
        const bool is_whole = at.is_bias ? shape.rank == n_leading + 1 : is_matrix;
        if (!is_whole && of.id == at.id) return; /* no room: it lies by itself */
        if (!is_whole) continue;
        if (made[ids[i]] != NULL) {
            desc->neighbour = made[ids[i]];
            neighbour_begin = room;
        }
        if ((int)ids[i] == at.id) begin = room;
        room += wk_weight_bytes(device, other->dtype, &shape, desc->uses);
    }
    desc->room = room;
    desc->begin = begin - neighbour_begin;
}

static wk_weight_desc describe(const wk_model *model, const wick_file_tensor *tensor,
                               uint32_t stage, const void *data) {
    const uint32_t uses = wk_model_weight_uses(model, tensor, stage);
    const wk_weight_place at = wk_weight_find(model, tensor->name);
    return (wk_weight_desc){.dtype = tensor->dtype,
                            .shape = at.id != 0 ? wk_weight_shape(model, &at) : tensor->shape,
                            .uses = uses,
                            .data = data};
}

uint64_t wk_model_weight_room(const wk_model *model, uint32_t stage, bool is_mapped) {
    wick_device *const device = model->placement.stages[stage].device;
    uint64_t bytes = 0;
    for (size_t i = 0; i < model->gguf->n_tensors; i++) {
        const wk_weight_desc desc = describe(model, &model->gguf->tensors[i], stage, NULL);
        const uint64_t room = desc.uses != 0 ? wk_weight_room(device, &desc, is_mapped) : 0;
        if (room > UINT64_MAX - bytes) return UINT64_MAX;
        bytes += room;
    }
    return bytes;
}

wick_status wk_model_reserve_weights(wk_model *model, uint32_t stage, bool is_mapped) {
    wick_device *const device = model->placement.stages[stage].device;
    const uint64_t bytes = wk_model_weight_room(model, stage, is_mapped);
    if (bytes == UINT64_MAX)
        return wk_device_fail(device, WICK_ERR_SHAPE, "the weights have no size");
    return wk_weight_store_make(device, bytes, &model->stage_weights[stage].store);
}

/* Where the weight that tensor is belongs, in this stage. */
static wick_tensor **slot_of(wk_model *model, const wick_file_tensor *tensor, uint32_t stage) {
    const wk_weight_place at = wk_weight_find(model, tensor->name);
    assert(at.id != 0);
    if (at.is_in_layer) {
        wk_layer *const layer = &model->layers[at.layer];
        return at.is_bias ? &layer->bias[at.id] : &layer->weight[at.id];
    }
    wk_stage_weights *const weights = &model->stage_weights[stage];
    return at.is_bias ? &weights->bias[at.id] : &weights->weight[at.id];
}

wick_status wk_model_begin_weight(wk_model *model, uint32_t stage, const wick_file_tensor *tensor,
                                  const void *data, wick_tensor **weight, bool *in_place) {
    wick_device *const device = model->placement.stages[stage].device;
    wick_tensor **const slot = slot_of(model, tensor, stage);
    assert(*slot == NULL);
    wk_weight_desc desc = describe(model, tensor, stage, data);
    put_beside(model, device, tensor, &desc);
    *slot = wk_weight_new(device, &desc, &model->stage_weights[stage].store, in_place);
    *weight = *slot;
    return *slot != NULL ? WICK_OK : wk_device_err(device)->status;
}

const wick_tensor *wk_model_weight(wk_model *model, const wick_file_tensor *tensor,
                                   uint32_t stage) {
    return wk_model_weight_uses(model, tensor, stage) != 0 ? *slot_of(model, tensor, stage) : NULL;
}

static void drop(wick_tensor **weights, int n) {
    for (int i = 0; i < n; i++) {
        wick_release(weights[i]);
        weights[i] = NULL;
    }
}

void wk_model_drop_weights(wk_model *model, uint32_t stage) {
    wk_stage_weights *const weights = &model->stage_weights[stage];
    wk_weight_store_release(&weights->store);
    drop(weights->weight, WK_MODEL_WEIGHT_COUNT);
    drop(weights->bias, WK_MODEL_WEIGHT_COUNT);
    for (uint32_t i = model->placement.stages[stage].first; i < wk_stage_end(model, stage); i++) {
        drop(model->layers[i].weight, WK_LAYER_WEIGHT_COUNT);
        drop(model->layers[i].bias, WK_LAYER_WEIGHT_COUNT);
        wk_layer_drop_factors(&model->layers[i]);
        wk_layer_drop_stacks(&model->layers[i]);
    }
}

wick_status wk_model_place_weights(wk_model *model, uint32_t stage) {
    for (size_t i = 0; i < model->gguf->n_tensors; i++) {
        const wick_file_tensor *const tensor = &model->gguf->tensors[i];
        wick_tensor *weight;
        bool in_place;
        if (wk_model_weight_uses(model, tensor, stage) == 0) continue;
        WK_TRY(wk_model_begin_weight(model, stage, tensor, NULL, &weight, &in_place));
    }
    return WICK_OK;
}

bool wk_model_has_weights(const wk_model *model, uint32_t stage) {
    const wk_model_stage *const at = &model->placement.stages[stage];
    for (uint32_t l = at->first; l < at->first + at->count; l++)
        for (int i = 0; i < WK_LAYER_WEIGHT_COUNT; i++)
            if (model->layers[l].weight[i] != NULL) return true;
    return false;
}

wick_status wk_model_finish_weights(wk_model *model, wick_error *err) {
    for (uint32_t i = 0; i < model->placement.n_stages; i++)
        wk_weight_store_release(&model->stage_weights[i].store);
    for (int kind = 0; kind < WK_ROPE_DIVISORS_COUNT; kind++) {
        const float *const divisors = model->rope_divisors[kind];
        model->rope_divisors[kind] = NULL; /* weights that are loaded again divide nothing */
        if (divisors != NULL)
            WK_TRY(wk_rope_divide(&model->arena, &model->hparams, kind, divisors, err));
    }
    WK_TRY(wk_model_renew_factors(model));
    return wk_adapter_load(model, NULL);
}
