/* convert/peft.c: see peft.h. For the module at NAME the file has NAME.lora_A.weight [r, in] and
 * NAME.lora_B.weight [out, r], after "base_model.model."; names and the order of rows become those
 * of GGUF as in a checkpoint. */
#include "convert/peft.h"

#include "convert/checkpoint.h"
#include "convert/hf_tensors.h"
#include "core/arena.h"
#include "core/dtype.h"
#include "core/str.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_NAME = 256 };

struct wk_peft {
    wk_heap *heap;
    wk_arena arena;
    wk_checkpoint *checkpoint;
    const wk_json *config;
    const wk_hf_family *family;
    wk_hf_heads heads;
    double rank, alpha; /* of all matrices, unless ranks differ */
    bool is_rank_stabilized, has_ranks;
};

/* ---- Settings ---- */

static bool is_nothing(const wk_json *item) {
    if (item == NULL || item->kind == WK_JSON_NULL) return true;
    if (item->kind == WK_JSON_BOOL) return !item->boolean;
    const bool is_list = item->kind == WK_JSON_ARRAY || item->kind == WK_JSON_OBJECT;
    return is_list && item->count == 0;
}

/* Ways to begin a training that leave the model's own weights as they are. */
static bool is_plain_start(const wk_json *item) {
    return item->kind != WK_JSON_STRING || wk_hf_is_named("gaussian|eva|orthogonal", item->string);
}

static wick_status check_setting(const wk_json *item, wick_error *err) {
    /* Read elsewhere, told by the tensors, or of training alone. */
    static const char harmless[] =
        "r|lora_alpha|use_rslora|rank_pattern|target_modules|exclude_modules|layers_to_transform|"
        "layers_pattern|fan_in_fan_out|lora_dropout|inference_mode|task_type|auto_mapping|"
        "base_model_name_or_path|revision|peft_version|megatron_c*|loftq_config|eva_config|"
        "qalora_group_size|runtime_config|ensure_weight_tying";
    if (wk_hf_is_named(harmless, item->key) || is_nothing(item)) return WICK_OK;
    const bool is_text = item->kind == WK_JSON_STRING;
    if (wk_hf_is_named("init_lora_weights", item->key) && is_plain_start(item)) return WICK_OK;
    if (wk_hf_is_named("bias", item->key) && is_text && wk_str_is(item->string, "none"))
        return WICK_OK;
    if (wk_hf_is_named("peft_type", item->key) && is_text && wk_str_is(item->string, "LORA"))
        return WICK_OK;
    const wk_json *const first = item->child != NULL ? item->child : item;
    const wk_str value = first->kind == WK_JSON_STRING  ? first->string
                         : item->kind == WK_JSON_OBJECT ? first->key
                                                        : (wk_str){0};
    if (value.size > 0)
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "adapter_config.json: '%s' with '%s' is not supported",
                       wk_str_show(item->key).text, wk_str_show(value).text);
    return wk_fail(err, WICK_ERR_UNSUPPORTED, "adapter_config.json: '%s' is not supported",
                   wk_str_show(item->key).text);
}

static wick_status read_number(const wk_peft *p, const char *key, double *out, wick_error *err) {
    const wk_json *const item = wk_json_get(p->config, key);
    if (item == NULL || item->kind != WK_JSON_NUMBER || !(fabs(item->number) < 1e6))
        return wk_fail(err, WICK_ERR_FORMAT, "adapter_config.json: '%s' is not a sensible number",
                       key);
    *out = item->number;
    return WICK_OK;
}

static wick_status read_settings(wk_peft *p, wick_error *err) {
    if (p->config->kind != WK_JSON_OBJECT || wk_json_get(p->config, "peft_type") == NULL)
        return wk_fail(err, WICK_ERR_FORMAT, "adapter_config.json has no peft_type");
    for (const wk_json *item = p->config->child; item != NULL; item = item->next)
        WK_TRY(check_setting(item, err));
    WK_TRY(read_number(p, "r", &p->rank, err));
    WK_TRY(read_number(p, "lora_alpha", &p->alpha, err));
    p->is_rank_stabilized = !is_nothing(wk_json_get(p->config, "use_rslora"));
    p->has_ranks = !is_nothing(wk_json_get(p->config, "rank_pattern"));
    return WICK_OK;
}

static wick_status find_family(wk_peft *p, const wick_model *model, wick_error *err) {
    const char *const architecture = model->info.architecture;
    p->family = wk_hf_family_of(architecture);
    const bool is_scaled = p->family != NULL && p->family->traits & WK_HF_SCALED;
    if (is_scaled) /* by multipliers that the file does not name */
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "adapters of PEFT for '%s' models are not supported", architecture);
    if (p->family == NULL)
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "PEFT's names of the matrices of '%s' models are not known: convert the "
                       "adapter to GGUF",
                       architecture);
    char key[96];
    uint32_t *const heads[] = {&p->heads.n_q, &p->heads.n_kv};
    for (int i = 0; i < 2; i++) {
        snprintf(key, sizeof key, "%s.attention.head_count%s", architecture, i > 0 ? "_kv" : "");
        const wick_value *const value = wk_gguf_find(model->gguf, key);
        *heads[i] = value != NULL && value->type == WICK_VALUE_U32 ? (uint32_t)value->u
                    : i > 0                                        ? p->heads.n_q
                                                                   : 0;
    }
    return WICK_OK;
}

/* ---- Tensors ---- */

/* The module that a tensor changes, and whether it is A or B. False: it is neither. */
static bool take_name(wick_string name, wk_str *module, bool *is_b) {
    static const char *const ends[] = {".lora_A.weight", ".lora_A.default.weight", ".lora_B.weight",
                                       ".lora_B.default.weight"};
    static const char begin[] = "base_model.model.";
    *module = (wk_str){name.text, name.size};
    for (size_t i = 0; i < 4; i++) {
        const size_t n = strlen(ends[i]);
        if (name.size <= n || memcmp(name.text + name.size - n, ends[i], n) != 0) continue;
        module->size -= n;
        *is_b = i >= 2;
        if (module->size < sizeof begin || memcmp(name.text, begin, sizeof begin - 1) != 0)
            return true;
        module->text += sizeof begin - 1;
        module->size -= sizeof begin - 1;
        return true;
    }
    return false;
}

static const wk_checkpoint_tensor *find_other(const wk_peft *p, wk_str module, bool is_b) {
    for (size_t i = 0; i < wk_checkpoint_count(p->checkpoint); i++) {
        const wk_checkpoint_tensor *const tensor = wk_checkpoint_get(p->checkpoint, i);
        wk_str other;
        bool other_is_b;
        if (take_name(tensor->name, &other, &other_is_b) && other_is_b == is_b &&
            wk_str_equal(other, module))
            return tensor;
    }
    return NULL;
}

static wick_status find_weight(const wk_peft *p, wk_str module, wk_hf_place *place,
                               wick_error *err) {
    char name[MOST_NAME];
    const int n =
        snprintf(name, sizeof name, "%.*s.weight", (int)module.size, wk_str_show(module).text);
    if (n > 0 && n < MOST_NAME && wk_hf_rename(p->family, (wk_str){name, (size_t)n}, place) &&
        place->change != WK_HF_LEFT_OUT && !place->is_part)
        return WICK_OK;
    return wk_fail(err, WICK_ERR_UNSUPPORTED, "the adapter changes '%s', which cannot be adapted",
                   wk_str_show(module).text);
}

/* Values as they are in GGUF. */
static void read_values(const wk_peft *p, const wk_checkpoint_tensor *tensor, wk_hf_change change,
                        float *to) {
    const wk_checkpoint_tensor *parts[] = {tensor};
    wk_hf_source source = {.parts = parts, .n_parts = 1, .change = change};
    const wk_hf_plan plan = {.sources = &source, .n = 1, .heads = p->heads};
    const wk_hf_rows rows = wk_hf_count_rows(&plan, 0);
    for (int64_t i = 0; i < rows.n; i++) wk_hf_read_row(&plan, 0, 0, i, to + i * rows.width);
}

static wick_status check_tensor(const wk_checkpoint_tensor *tensor, wick_error *err) {
    const wick_dtype dtype = tensor->dtype;
    if (dtype == WICK_F32 || dtype == WICK_F16 || dtype == WICK_BF16) return WICK_OK;
    return wk_fail(err, WICK_ERR_UNSUPPORTED,
                   "the tensor '%s' of the adapter is %s: f32, f16 and bf16 are supported",
                   wk_str_show((wk_str){tensor->name.text, tensor->name.size}).text,
                   wick_dtype_name(dtype));
}

static wick_status add_pair(const wk_peft *p, wk_adapting *adapting, wk_str module,
                            const wk_checkpoint_tensor *a, const wk_checkpoint_tensor *b,
                            wick_error *err) {
    wk_hf_place place;
    WK_TRY(find_weight(p, module, &place, err));
    WK_TRY(check_tensor(a, err));
    WK_TRY(check_tensor(b, err));
    const wick_string weight = {place.name, strlen(place.name)};
    WK_TRY(wk_adapting_check(adapting, weight, &a->shape, &b->shape, err));
    const int64_t rank = a->shape.extent[0], n_a = rank * a->shape.extent[1];
    if (!p->has_ranks && (double)rank != p->rank)
        return wk_fail(err, WICK_ERR_MISMATCH,
                       "the tensors for '%s' have the rank %" PRId64
                       ", in adapter_config.json r is %g",
                       wk_str_show(module).text, rank, p->rank);
    const size_t count = (size_t)(n_a + rank * b->shape.extent[0]);
    float *const values = wk_alloc_array(p->heap, count, sizeof *values);
    if (values == NULL) return wk_fail_memory(err, count * sizeof *values, "an adapter");
    /* A module that holds its matrix transposed has factors as any other. */
    const bool is_moved = place.change != WK_HF_TRANSPOSE;
    read_values(p, a, WK_HF_AS_IT_IS, values);
    read_values(p, b, is_moved ? place.change : WK_HF_AS_IT_IS, values + n_a);
    const double divisor = p->is_rank_stabilized ? sqrt((double)rank) : (double)rank;
    const wk_factors_desc desc = {.name = weight,
                                  .scale = (float)(p->alpha / divisor),
                                  .rank = rank,
                                  .a = values,
                                  .b = values + n_a};
    const wick_status status = wk_adapting_add(adapting, &desc, err);
    wk_free(p->heap, values, count * sizeof *values);
    return status;
}

static wick_status read_peft(wk_adapting *adapting, void *file, wick_error *err) {
    const wk_peft *const p = file;
    for (size_t i = 0; i < wk_checkpoint_count(p->checkpoint); i++) {
        const wk_checkpoint_tensor *const tensor = wk_checkpoint_get(p->checkpoint, i);
        const wk_str name = {tensor->name.text, tensor->name.size};
        wk_str module;
        bool is_b;
        if (!take_name(tensor->name, &module, &is_b))
            return wk_fail(err, WICK_ERR_UNSUPPORTED,
                           "the tensor '%s' of the adapter is neither a lora_A nor a lora_B",
                           wk_str_show(name).text);
        const wk_checkpoint_tensor *const other = find_other(p, module, !is_b);
        if (other == NULL)
            return wk_fail(err, WICK_ERR_FORMAT,
                           "the adapter has the tensor '%s', but not the other one of the pair",
                           wk_str_show(name).text);
        if (!is_b) WK_TRY(add_pair(p, adapting, module, tensor, other, err));
    }
    return WICK_OK;
}

/* ---- The interface ---- */

static wick_status open_all(wk_peft *p, const wick_model *model, const char *folder,
                            wick_error *err) {
    wk_json *config = NULL;
    WK_TRY(wk_checkpoint_open(p->heap, folder, "adapter_model", NULL, &p->checkpoint, err));
    WK_TRY(wk_checkpoint_json(p->checkpoint, &p->arena, "adapter_config.json", true, &config, err));
    p->config = config;
    WK_TRY(read_settings(p, err));
    return find_family(p, model, err);
}

wick_status wk_peft_open(const wick_model *model, const char *folder, wk_peft **out,
                         wick_error *err) {
    wk_peft *const p = wk_alloc_zeroed(model->heap, sizeof *p);
    if (p == NULL) return wk_fail_memory(err, sizeof *p, "an adapter");
    p->heap = model->heap;
    wk_arena_init(&p->arena, p->heap, 0);
    const wick_status status = open_all(p, model, folder, err);
    if (status == WICK_OK)
        *out = p;
    else
        wk_peft_close(p);
    return status;
}

void wk_peft_close(wk_peft *peft) {
    wk_checkpoint_close(peft->checkpoint);
    wk_arena_release(&peft->arena);
    wk_free(peft->heap, peft, sizeof *peft);
}

wk_adapter_file wk_peft_file(wk_peft *peft) {
    return (wk_adapter_file){read_peft, peft, wk_checkpoint_count(peft->checkpoint) + 1};
}
