/* convert/importance.c: see importance.h. */
#include "convert/importance.h"

#include "core/str.h"
#include "llm/llm.h"
#include "source/file.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct wk_importance {
    wk_heap *heap;
    wick_file *file;
    float *values; /* [capacity] */
    size_t capacity;
};

wick_status wk_importance_open(wk_heap *heap, const char *path, wk_importance **out,
                               wick_error *err) {
    *out = NULL;
    wick_file *file = NULL;
    wick_error why = {0};
    wick_status status = wick_file_open(path, &file, &why);
    if (status == WICK_ERR_FORMAT) /* 'PATH': where in the file */
        return wk_fail(err, status, "the importance matrix %s", why.message);
    if (status != WICK_OK) return wk_fail(err, status, "%s", why.message);
    const wick_value *const type = wick_file_find_value(file, "general.type");
    if (type == NULL || type->type != WICK_VALUE_STRING ||
        !wk_str_is((wk_str){type->string.text, type->string.size}, WK_IMATRIX_TYPE)) {
        status = wk_fail(err, WICK_ERR_FORMAT,
                         "'%s' is not an importance matrix: its general.type is"
                         " not \"" WK_IMATRIX_TYPE "\"",
                         path);
    } else {
        *out = wk_alloc_zeroed(heap, sizeof **out);
        if (*out == NULL)
            status = wk_fail_memory(err, sizeof **out, "an importance matrix");
        else
            **out = (wk_importance){.heap = heap, .file = file};
    }
    if (status != WICK_OK) wick_file_close(file);
    return status;
}

void wk_importance_close(wk_importance *importance) {
    if (importance == NULL) return;
    wick_file_close(importance->file);
    wk_heap *const heap = importance->heap;
    wk_free(heap, importance->values, importance->capacity * sizeof(float));
    wk_free(heap, importance, sizeof *importance);
}

const wick_file *wk_importance_file(const wk_importance *importance) { return importance->file; }

uint32_t wk_importance_count(const wk_importance *importance) {
    uint32_t count = 0;
    for (size_t i = 0; i < wick_file_tensor_count(importance->file); i++) {
        const wick_string name = wick_file_get_tensor(importance->file, i)->name;
        const wk_str text = {name.text, name.size};
        if (wk_str_matches(wk_str_of("*" WK_IMATRIX_SUMS), text)) count++;
    }
    return count;
}

/* NAME.suffix; NULL: there is none. */
static const wick_file_tensor *find(const wk_importance *importance, const wick_file_tensor *tensor,
                                    const char *suffix) {
    char name[320];
    const int size = snprintf(name, sizeof name, "%s%s", tensor->name.text, suffix);
    if (size < 0 || (size_t)size >= sizeof name) return NULL;
    return wk_gguf_find_tensor(wk_file_gguf(importance->file), name);
}

static int64_t count_of(const wick_file_tensor *tensor) {
    return tensor->dtype == WICK_F32 ? (int64_t)(tensor->size / sizeof(float)) : 0;
}

wick_status wk_importance_check(const wk_importance *importance, const wick_file_tensor *tensor,
                                bool *is_known, wick_error *err) {
    const wick_file_tensor *const sums = find(importance, tensor, WK_IMATRIX_SUMS);
    const wick_file_tensor *const counts = find(importance, tensor, WK_IMATRIX_COUNTS);
    *is_known = sums != NULL;
    if (!*is_known) return WICK_OK;
    const int64_t k = tensor->shape.extent[tensor->shape.rank - 1];
    const int64_t n = counts != NULL ? count_of(counts) : 0;
    const bool is_of_experts = tensor->shape.rank == 3 && n == tensor->shape.extent[0];
    if (n > 0 && (n == 1 || is_of_experts) && count_of(sums) == n * k) return WICK_OK;
    return wk_fail(err, WICK_ERR_FORMAT,
                   "the importance matrix does not fit tensor '%s': it has other channels, or is of"
                   " another model",
                   tensor->name.text);
}

static wick_status reserve(wk_importance *importance, size_t n, wick_error *err) {
    if (n <= importance->capacity) return WICK_OK;
    float *const grown = wk_realloc(importance->heap, importance->values,
                                    importance->capacity * sizeof(float), n * sizeof(float));
    if (grown == NULL) return wk_fail_memory(err, n * sizeof(float), "an importance matrix");
    importance->values = grown;
    importance->capacity = n;
    return WICK_OK;
}

wick_status wk_importance_read(wk_importance *importance, const wick_file_tensor *tensor,
                               const float **mean_squares, int64_t *n_matrices, wick_error *err) {
    const wick_file_tensor *const sums = find(importance, tensor, WK_IMATRIX_SUMS);
    const wick_file_tensor *const counts = find(importance, tensor, WK_IMATRIX_COUNTS);
    assert(sums != NULL && counts != NULL);
    const int64_t k = tensor->shape.extent[tensor->shape.rank - 1], n = count_of(counts);
    const size_t n_sums = (size_t)(n * k);
    WK_TRY(reserve(importance, n_sums + (size_t)n, err));
    float *const values = importance->values;
    WK_TRY(wick_file_read(importance->file, sums->offset, values, n_sums * sizeof(float), err));
    WK_TRY(wick_file_read(importance->file, counts->offset, values + n_sums,
                          (size_t)n * sizeof(float), err));
    for (int64_t i = 0; i < n * k; i++) {
        const float count = values[(int64_t)n_sums + i / k];
        const float mean = count > 0 ? values[i] / count : 1;
        if (!(mean >= 0) || isinf(mean))
            return wk_fail(err, WICK_ERR_FORMAT,
                           "the importance of tensor '%s', channel %" PRId64 ", is negative or not"
                           " finite",
                           tensor->name.text, i % k);
        values[i] = mean;
    }
    *mean_squares = values;
    *n_matrices = n;
    return WICK_OK;
}
