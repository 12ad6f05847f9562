/* llm/adapter.c: adapters: files of low-rank changes (LoRA: Hu et al., 2021), as llama.cpp has
 * them: for a weight NAME [n, k] the tensors NAME.lora_a [rank, k] and NAME.lora_b [n, rank]. */
#include "core/checksum.h"
#include "core/dtype.h"
#include "core/half.h"
#include "core/str.h"
#include "llm/runner.h"
#include "source/file.h"

#include <inttypes.h>
#include <string.h>

static const char SUFFIX_A[] = ".lora_a", SUFFIX_B[] = ".lora_b";
enum { SUFFIX_SIZE = sizeof SUFFIX_A - 1 };

typedef struct reading {
    wick_model *model;
    wick_file *file;
    const wk_gguf *gguf;
    float alpha, scale; /* alpha 0: the file does not say */
    wk_factors **made;  /* [n_made] of [n_tensors] */
    size_t n_made;
    uint64_t checksum, bytes;
} reading;

/* ---- The header ---- */

static wick_status check_text(const reading *r, const char *key, const char *expected,
                              const char *what, wick_error *err) {
    const wick_value *const value = wk_gguf_find(r->gguf, key);
    if (value == NULL || value->type != WICK_VALUE_STRING)
        return wk_fail(err, WICK_ERR_FORMAT, "the file is no adapter: it has no text '%s'", key);
    if (wk_str_is(value->string, expected)) return WICK_OK;
    return wk_fail(err, WICK_ERR_MISMATCH, "%s is '%s', not '%s'", what,
                   wk_str_show(value->string).text, expected);
}

static wick_status read_header(reading *r, wick_error *err) {
    WK_TRY(check_text(r, "general.type", "adapter", "the type of the file", err));
    WK_TRY(check_text(r, "adapter.type", "lora", "the type of the adapter", err));
    WK_TRY(check_text(r, "general.architecture", r->model->info.architecture,
                      "the architecture that the adapter is for", err));
    const wick_value *const alpha = wk_gguf_find(r->gguf, "adapter.lora.alpha");
    if (alpha == NULL) return WICK_OK; /* as llama.cpp has it: changes are not scaled */
    if (alpha->type != WICK_VALUE_F32 && alpha->type != WICK_VALUE_F64)
        return wk_fail(err, WICK_ERR_FORMAT, "'adapter.lora.alpha' of the adapter is not a number");
    r->alpha = (float)alpha->f;
    return WICK_OK;
}

/* ---- Tensors ---- */

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

static wick_status read_values(reading *r, const wick_file_tensor *tensor, float *to,
                               wick_error *err) {
    wk_heap *const heap = r->model->heap;
    if (tensor->dtype != WICK_F32 && tensor->dtype != WICK_F16 && tensor->dtype != WICK_BF16)
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "the tensor '%s' of the adapter is %s: f32, f16 and bf16 are supported",
                       wk_str_show(tensor->name).text, wick_dtype_name(tensor->dtype));
    const size_t size = (size_t)tensor->size;
    void *const bytes = wk_alloc(heap, size);
    if (bytes == NULL) return wk_fail_memory(err, size, 0, "an adapter");
    const wick_status status = wick_file_read(r->file, tensor->offset, bytes, size, err);
    if (status == WICK_OK) {
        widen(tensor->dtype, bytes, to, tensor->shape.extent[0] * tensor->shape.extent[1]);
        r->checksum = wk_checksum(r->checksum, tensor->name.text, tensor->name.size);
        r->checksum = wk_checksum(r->checksum, bytes, size);
    }
    wk_free(heap, bytes, size);
    return status;
}

static wick_status check_shapes(const wick_file_tensor *a, const wick_file_tensor *b,
                                const wick_shape *weight, wick_error *err) {
    const int64_t *const ea = a->shape.extent, *const eb = b->shape.extent;
    if (a->shape.rank == 2 && b->shape.rank == 2 && ea[0] == eb[1] && ea[0] > 0 &&
        ea[1] == weight->extent[1] && eb[0] == weight->extent[0])
        return WICK_OK;
    return wk_fail(err, WICK_ERR_MISMATCH,
                   "the tensors '%s' and its .lora_b do not fit the model's weight of %" PRId64
                   " x %" PRId64,
                   wk_str_show(a->name).text, weight->extent[0], weight->extent[1]);
}

static wick_status add_pair(reading *r, const wick_file_tensor *a, const wick_file_tensor *b,
                            wick_error *err) {
    wk_heap *const heap = r->model->heap;
    const wick_string name = {a->name.text, a->name.size - SUFFIX_SIZE};
    wick_shape shape;
    if (wk_model_can_adapt(r->model->model, name, &shape) == 0)
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "the adapter changes '%s', which cannot be adapted", wk_str_show(name).text);
    WK_TRY(check_shapes(a, b, &shape, err));
    const int64_t rank = a->shape.extent[0], n_a = rank * shape.extent[1];
    const size_t count = (size_t)(n_a + rank * shape.extent[0]);
    float *const values = wk_alloc_array(heap, count, sizeof *values);
    if (values == NULL) return wk_fail_memory(err, count * sizeof *values, 0, "an adapter");
    wick_status status = read_values(r, a, values, err);
    if (status == WICK_OK) status = read_values(r, b, values + n_a, err);
    const wk_factors_desc desc = {.name = name,
                                  .scale =
                                      r->alpha == 0 ? r->scale : r->scale * r->alpha / (float)rank,
                                  .rank = rank,
                                  .a = values,
                                  .b = values + n_a};
    if (status == WICK_OK)
        status = wk_model_add_factors(r->model->model, &desc, &r->made[r->n_made], err);
    if (status == WICK_OK) {
        r->n_made++;
        r->bytes += count * sizeof *values;
    }
    wk_free(heap, values, count * sizeof *values);
    return status;
}

static wick_status add_pairs(reading *r, wick_error *err) {
    for (size_t i = 0; i < r->gguf->n_tensors; i++) {
        const wick_file_tensor *const tensor = &r->gguf->tensors[i];
        const bool is_a = ends_with(tensor->name, SUFFIX_A);
        if (!is_a && !ends_with(tensor->name, SUFFIX_B))
            return wk_fail(err, WICK_ERR_UNSUPPORTED,
                           "the tensor '%s' of the adapter is neither a .lora_a nor a .lora_b",
                           wk_str_show(tensor->name).text);
        const wick_file_tensor *const other =
            find_other(r, tensor->name, is_a ? SUFFIX_B : SUFFIX_A);
        if (other == NULL)
            return wk_fail(err, WICK_ERR_FORMAT,
                           "the adapter has the tensor '%s', but not the other one of the pair",
                           wk_str_show(tensor->name).text);
        if (is_a) WK_TRY(add_pair(r, tensor, other, err));
    }
    return WICK_OK;
}

/* ---- The interface ---- */

/* All of it, or nothing. */
static wick_status add_adapter(reading *r, wick_error *err) {
    wk_heap *const heap = r->model->heap;
    WK_TRY(read_header(r, err));
    const size_t n = r->gguf->n_tensors;
    if (n == 0) return wk_fail(err, WICK_ERR_FORMAT, "the adapter has no tensors");
    r->made = wk_alloc_array(heap, n, sizeof(wk_factors *));
    if (r->made == NULL) return wk_fail_memory(err, n * sizeof(wk_factors *), 0, "an adapter");
    r->checksum = wk_checksum(WK_CHECKSUM_BEGIN, &r->scale, sizeof r->scale);
    const wick_status status = add_pairs(r, err);
    for (size_t i = 0; i < r->n_made && status != WICK_OK; i++)
        wk_model_remove_factors(r->model->model, r->made[i]);
    wk_free(heap, r->made, n * sizeof(wk_factors *));
    if (status != WICK_OK) return status;
    r->model->weights_checksum += r->checksum; /* a saved session belongs to what is computed */
    r->model->info.weight_bytes += r->bytes;
    return WICK_OK;
}

static wick_status add_file(wick_model *model, wick_file *file, float scale, wick_error *err) {
    if (model->usage.n_sessions > 0)
        return wk_fail(err, WICK_ERR_STATE, "the model has open sessions");
    wk_runners_drop(model);
    reading r = {.model = model, .file = file, .gguf = wk_file_gguf(file), .scale = scale};
    return add_adapter(&r, err);
}

wick_status wick_model_add_adapter(wick_model *model, const char *path, float scale,
                                   wick_error *error) {
    if (model == NULL || path == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_model_add_adapter: an argument is NULL");
    wick_file *file;
    WK_TRY(wick_file_open(path, &file, error));
    wick_error reason = {.status = WICK_OK};
    const wick_status status = add_file(model, file, scale, &reason);
    wick_file_close(file);
    return status == WICK_OK ? WICK_OK : wk_fail_in_file(error, path, &reason);
}

wick_status wick_model_add_adapter_source(wick_model *model, wick_source source, float scale,
                                          wick_error *error) {
    if (model == NULL || source.read_at == NULL || source.poll == NULL || source.close == NULL) {
        if (source.close != NULL) source.close(&source);
        return wk_fail(error, WICK_ERR_ARGUMENT,
                       "wick_model_add_adapter_source: the model is NULL or the source incomplete");
    }
    wick_file *file;
    WK_TRY(wk_file_open_source(&source, &file, error));
    const wick_status status = add_file(model, file, scale, error);
    wick_file_close(file);
    return status;
}
