/* llm/adapter.c: adapters of a model (LoRA: Hu et al., 2021), and GGUF files of them as llama.cpp
 * has them: for a weight NAME [n, k] the tensors NAME.lora_a [rank, k] and NAME.lora_b [n, rank].
 */
#include "llm/adapter.h"

#include "core/checksum.h"
#include "core/dtype.h"
#include "core/half.h"
#include "core/str.h"
#include "llm/runner.h"
#include "source/file.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char SUFFIX_A[] = ".lora_a", SUFFIX_B[] = ".lora_b";
enum { SUFFIX_SIZE = sizeof SUFFIX_A - 1 };

/* ---- Pairs ---- */

wick_status wk_adapting_check(const wk_adapting *adapting, wick_string weight, const wick_shape *a,
                              const wick_shape *b, wick_error *err) {
    wick_shape shape;
    if (wk_model_can_adapt(adapting->model->model, weight, &shape) == 0)
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "the adapter changes '%s', which cannot be adapted",
                       wk_str_show(weight).text);
    const int64_t rank = a->extent[0], n = shape.extent[0], k = shape.extent[1];
    if (a->rank != 2 || b->rank != 2 || rank != b->extent[1] || rank <= 0 || a->extent[1] != k ||
        b->extent[0] != n)
        return wk_fail(err, WICK_ERR_MISMATCH,
                       "the adapter's two tensors for '%s' do not fit each other and the model's "
                       "weight of %" PRId64 " x %" PRId64,
                       wk_str_show(weight).text, n, k);
    if (rank <= n || rank <= k) return WICK_OK;
    return wk_fail(err, WICK_ERR_VALUE,
                   "the adapter's rank for '%s' is %" PRId64 ", more than the weight's %" PRId64
                   " x %" PRId64,
                   wk_str_show(weight).text, rank, n, k);
}

wick_status wk_adapting_add(wk_adapting *adapting, const wk_factors_desc *desc, wick_error *err) {
    wk_adapting *const a = adapting;
    wk_model *const model = a->model->model;
    wk_factors *made;
    wk_factors_desc scaled = *desc;
    scaled.scale *= a->scale;
    if (!isfinite(scaled.scale))
        return wk_fail(err, WICK_ERR_VALUE, "the scale of the adapter is not a finite number");
    if (a->lora != NULL)
        WK_TRY(wk_adapter_add(model, a->lora->adapter, &scaled, &made, err));
    else
        WK_TRY(wk_model_add_factors(model, &scaled, &made, err));
    if (a->lora == NULL) a->made[a->n_made] = made;
    a->n_made++;
    const size_t count = (size_t)(made->rank * (made->k + made->n));
    a->bytes += count * sizeof *made->values;
    a->checksum = wk_checksum(a->checksum, desc->name.text, desc->name.size);
    a->checksum = wk_checksum(a->checksum, &scaled.scale, sizeof scaled.scale);
    a->checksum = wk_checksum(a->checksum, made->values, count * sizeof *made->values);
    if (a->lora != NULL && made->rank > a->lora->rank) a->lora->rank = (uint32_t)made->rank;
    return WICK_OK;
}

static wick_status read_all(wk_adapting *a, const wk_adapter_file *from, wick_error *err) {
    WK_TRY(from->read(a, from->file, err));
    if (a->n_made > 0) return WICK_OK;
    return wk_fail(err, WICK_ERR_FORMAT, "the adapter has no tensors");
}

/* ---- For all sessions ---- */

wick_status wk_adapter_add_file(wick_model *model, const wk_adapter_file *from, float scale,
                                wick_error *err) {
    const size_t size = from->most * sizeof(wk_factors *);
    if (model->usage.n_sessions > 0)
        return wk_fail(err, WICK_ERR_STATE, "the model has open sessions");
    wk_runners_drop(model);
    wk_adapting a = {.model = model, .scale = scale, .checksum = WK_CHECKSUM_BEGIN};
    a.made = wk_alloc(model->heap, size);
    if (a.made == NULL) return wk_fail_memory(err, size, "an adapter");
    const wick_status status = read_all(&a, from, err);
    for (size_t i = 0; i < a.n_made && status != WICK_OK; i++)
        wk_model_remove_factors(model->model, a.made[i]);
    wk_free(model->heap, a.made, size);
    if (status != WICK_OK) return status;
    model->weights_checksum += a.checksum; /* a saved session belongs to what is computed */
    model->info.weight_bytes += a.bytes;
    return WICK_OK;
}

/* ---- For sessions that choose it ---- */

void wk_lora_free(wick_lora *lora) {
    if (lora == NULL) return;
    wick_model *const model = lora->model;
    if (lora->adapter != NULL) wk_adapter_remove(model->model, lora->adapter);
    wk_free(model->heap, lora, sizeof *lora);
}

static wick_status read_lora(wick_lora *lora, const wk_adapter_file *from, float scale,
                             wick_error *err) {
    wk_adapting a = {
        .model = lora->model, .lora = lora, .scale = scale, .checksum = WK_CHECKSUM_BEGIN};
    WK_TRY(wk_adapter_make(lora->model->model, &lora->adapter, err));
    WK_TRY(read_all(&a, from, err));
    lora->n_pairs = (uint32_t)a.n_made;
    lora->checksum = a.checksum;
    lora->bytes = a.bytes;
    return WICK_OK;
}

wick_status wk_adapter_read_file(wick_model *model, const wk_adapter_file *from, float scale,
                                 wick_lora **out, wick_error *err) {
    wick_lora *const lora = wk_alloc_zeroed(model->heap, sizeof *lora);
    if (lora == NULL) return wk_fail_memory(err, sizeof *lora, "an adapter");
    lora->model = model;
    const wick_status status = read_lora(lora, from, scale, err);
    if (status == WICK_OK)
        *out = lora;
    else
        wk_lora_free(lora);
    return status;
}

wick_status wk_adapter_open_file(wick_model *model, const wk_adapter_file *from, wick_lora **out,
                                 wick_error *err) {
    wick_lora *lora;
    WK_TRY(wk_adapter_read_file(model, from, 1, &lora, err));
    wick_error failure = {.status = WICK_OK};
    const wk_model_errors before = wk_model_borrow(model, &failure);
    const wick_status status = wk_adapter_load(model->model, lora->adapter);
    wk_model_give_back(model, before);
    if (status != WICK_OK) {
        wk_lora_free(lora);
        return wk_pass_on(err, status, &failure);
    }
    lora->next = model->loras;
    *out = model->loras = lora;
    model->info.weight_bytes += lora->bytes;
    return WICK_OK;
}

wick_status wick_lora_close(wick_lora *lora, wick_error *error) {
    if (lora == NULL) return wk_fail(error, WICK_ERR_ARGUMENT, "wick_lora_close: lora is NULL");
    if (lora->n_sessions > 0)
        return wk_fail(error, WICK_ERR_STATE, "the adapter is used by open sessions: %u",
                       lora->n_sessions);
    wick_lora **at = &lora->model->loras;
    while (*at != lora) at = &(*at)->next;
    *at = lora->next;
    lora->model->info.weight_bytes -= lora->bytes;
    wk_lora_free(lora);
    return WICK_OK;
}

void wick_lora_get_info(const wick_lora *lora, wick_lora_info *info) {
    if (info == NULL) return;
    *info = (wick_lora_info){.bytes = 0};
    if (lora == NULL) return;
    *info = (wick_lora_info){.n_matrices = lora->n_pairs,
                             .rank = lora->rank,
                             .n_sessions = lora->n_sessions,
                             .bytes = lora->bytes};
}

/* ---- GGUF: the header ---- */

typedef struct reading {
    wk_adapting *adapting;
    wick_file *file;
    const wk_gguf *gguf;
    float alpha; /* 0: the file does not say, changes are not scaled */
    bool is_rank_stabilized;
} reading;

static wick_status check_text(const reading *r, const char *key, const char *expected,
                              const char *what, wick_error *err) {
    const wick_value *const value = wk_gguf_find(r->gguf, key);
    if (value == NULL || value->type != WICK_VALUE_STRING)
        return wk_fail(err, WICK_ERR_FORMAT, "the file is not an adapter: it has no text '%s'",
                       key);
    if (wk_str_is(value->string, expected)) return WICK_OK;
    return wk_fail(err, WICK_ERR_MISMATCH, "%s is '%s', not '%s'", what,
                   wk_str_show(value->string).text, expected);
}

/* A setting that is not known may change what is computed. */
static wick_status check_key(wick_string key, wick_error *err) {
    static const char *const known[] = {"adapter.type", "adapter.lora.alpha",
                                        "adapter.lora.use_rslora", "adapter.lora.task_name",
                                        "adapter.lora.prompt_prefix"};
    if (key.size < 8 || memcmp(key.text, "adapter.", 8) != 0) return WICK_OK;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (wk_str_is(key, known[i])) return WICK_OK;
    return wk_fail(err, WICK_ERR_UNSUPPORTED, "the adapter's setting '%s' is not supported",
                   wk_str_show(key).text);
}

static wick_status read_header(reading *r, wick_error *err) {
    WK_TRY(check_text(r, "general.type", "adapter", "the type of the file", err));
    WK_TRY(check_text(r, "adapter.type", "lora", "the type of the adapter", err));
    WK_TRY(check_text(r, "general.architecture", r->adapting->model->info.architecture,
                      "the architecture that the adapter is for", err));
    for (size_t i = 0; i < r->gguf->n_values; i++) WK_TRY(check_key(r->gguf->values[i].key, err));
    const wick_value *const alpha = wk_gguf_find(r->gguf, "adapter.lora.alpha");
    const wick_value *const stabilized = wk_gguf_find(r->gguf, "adapter.lora.use_rslora");
    if (alpha != NULL && ((alpha->type != WICK_VALUE_F32 && alpha->type != WICK_VALUE_F64) ||
                          !isfinite((float)alpha->f)))
        return wk_fail(err, WICK_ERR_FORMAT,
                       "'adapter.lora.alpha' of the adapter is not a finite number");
    if (stabilized != NULL && stabilized->type != WICK_VALUE_BOOL)
        return wk_fail(err, WICK_ERR_FORMAT, "'adapter.lora.use_rslora' is not true or false");
    if (alpha != NULL) r->alpha = (float)alpha->f;
    r->is_rank_stabilized = stabilized != NULL && stabilized->u != 0;
    return WICK_OK;
}

/* ---- GGUF: tensors ---- */

static bool ends_with(wick_string name, const char *suffix) {
    return name.size > SUFFIX_SIZE &&
           memcmp(name.text + name.size - SUFFIX_SIZE, suffix, SUFFIX_SIZE) == 0;
}

/* The other one of a pair; NULL: the file has none. */
static const wick_file_tensor *find_other(const reading *r, wick_string name, const char *suffix) {
    for (size_t i = 0; i < r->gguf->n_tensors; i++) {
        const wick_string other = r->gguf->tensors[i].name;
        if (other.size == name.size && ends_with(other, suffix) &&
            memcmp(other.text, name.text, name.size - SUFFIX_SIZE) == 0)
            return &r->gguf->tensors[i];
    }
    return NULL;
}

static void widen(wick_dtype dtype, const void *from, float *to, int64_t n) {
    const uint16_t *const halves = from;
    if (dtype == WICK_F32) memcpy(to, from, (size_t)n * sizeof *to);
    for (int64_t i = 0; i < n && dtype != WICK_F32; i++)
        to[i] = dtype == WICK_F16 ? wk_f16_to_f32(halves[i]) : wk_bf16_to_f32(halves[i]);
}

static wick_status read_values(const reading *r, const wick_file_tensor *tensor, float *to,
                               wick_error *err) {
    wk_heap *const heap = r->adapting->model->heap;
    if (tensor->dtype != WICK_F32 && tensor->dtype != WICK_F16 && tensor->dtype != WICK_BF16)
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "the tensor '%s' of the adapter is %s: f32, f16 and bf16 are supported",
                       wk_str_show(tensor->name).text, wick_dtype_name(tensor->dtype));
    const size_t size = (size_t)tensor->size;
    void *const bytes = wk_alloc(heap, size);
    if (bytes == NULL) return wk_fail_memory(err, size, "an adapter");
    const wick_status status = wick_file_read(r->file, tensor->offset, bytes, size, err);
    if (status == WICK_OK)
        widen(tensor->dtype, bytes, to, tensor->shape.extent[0] * tensor->shape.extent[1]);
    wk_free(heap, bytes, size);
    return status;
}

static wick_status add_pair(const reading *r, const wick_file_tensor *a, const wick_file_tensor *b,
                            wick_error *err) {
    wk_heap *const heap = r->adapting->model->heap;
    const wick_string name = {a->name.text, a->name.size - SUFFIX_SIZE};
    WK_TRY(wk_adapting_check(r->adapting, name, &a->shape, &b->shape, err));
    const int64_t rank = a->shape.extent[0], n_a = rank * a->shape.extent[1];
    const size_t count = (size_t)(n_a + rank * b->shape.extent[0]);
    float *const values = wk_alloc_array(heap, count, sizeof *values);
    if (values == NULL) return wk_fail_memory(err, count * sizeof *values, "an adapter");
    wick_status status = read_values(r, a, values, err);
    if (status == WICK_OK) status = read_values(r, b, values + n_a, err);
    const float divisor = r->is_rank_stabilized ? sqrtf((float)rank) : (float)rank;
    const wk_factors_desc desc = {.name = name,
                                  .scale = r->alpha == 0 ? 1 : r->alpha / divisor,
                                  .rank = rank,
                                  .a = values,
                                  .b = values + n_a};
    if (status == WICK_OK) status = wk_adapting_add(r->adapting, &desc, err);
    wk_free(heap, values, count * sizeof *values);
    return status;
}

static wick_status read_gguf(wk_adapting *adapting, void *file, wick_error *err) {
    reading r = {.adapting = adapting, .file = file, .gguf = wk_file_gguf(file)};
    WK_TRY(read_header(&r, err));
    for (size_t i = 0; i < r.gguf->n_tensors; i++) {
        const wick_file_tensor *const tensor = &r.gguf->tensors[i];
        const bool is_a = ends_with(tensor->name, SUFFIX_A);
        if (!is_a && !ends_with(tensor->name, SUFFIX_B))
            return wk_fail(err, WICK_ERR_UNSUPPORTED,
                           "the tensor '%s' of the adapter is neither a .lora_a nor a .lora_b",
                           wk_str_show(tensor->name).text);
        const wick_file_tensor *const other =
            find_other(&r, tensor->name, is_a ? SUFFIX_B : SUFFIX_A);
        if (other == NULL)
            return wk_fail(err, WICK_ERR_FORMAT,
                           "the adapter has the tensor '%s', but not the other one of the pair",
                           wk_str_show(tensor->name).text);
        if (is_a) WK_TRY(add_pair(&r, tensor, other, err));
    }
    return WICK_OK;
}

wk_adapter_file wk_adapter_gguf(wick_file *file) {
    return (wk_adapter_file){read_gguf, file, wk_file_gguf(file)->n_tensors + 1};
}

/* ---- GGUF: the interface ---- */

/* lora NULL: for all sessions. */
static wick_status add_source(wick_model *model, wick_source *source, float scale, wick_lora **lora,
                              wick_error *error) {
    if (model == NULL || source->read_at == NULL || source->poll == NULL || source->close == NULL) {
        if (source->close != NULL) source->close(source);
        return wk_fail(error, WICK_ERR_ARGUMENT, "the model is NULL or the source incomplete");
    }
    wick_file *file;
    WK_TRY(wk_file_open_source(source, &file, error));
    const wk_adapter_file from = wk_adapter_gguf(file);
    const wick_status status = lora != NULL ? wk_adapter_open_file(model, &from, lora, error)
                                            : wk_adapter_add_file(model, &from, scale, error);
    wick_file_close(file);
    return status;
}

wick_status wick_model_add_adapter_source(wick_model *model, wick_source source, float scale,
                                          wick_error *error) {
    return add_source(model, &source, scale, NULL, error);
}

wick_status wick_lora_open_source(wick_model *model, wick_source source, wick_lora **lora,
                                  wick_error *error) {
    if (lora != NULL) *lora = NULL;
    return add_source(lora != NULL ? model : NULL, &source, 1, lora, error);
}
