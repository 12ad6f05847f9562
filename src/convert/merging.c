/* convert/merging.c: see merging.h. */
#include "convert/merging.h"

#include "convert/lora.h"

#include <string.h>

enum { MOST_COLUMNS = 256 };

struct wk_merging {
    wk_heap *heap;
    wick_model model;           /* its header alone */
    wick_lora **loras;          /* [n] */
    const wk_factors **factors; /* [n] of the tensor; NULL: it has none */
    size_t n;
    int64_t row; /* elements */
};

static wick_status fail_memory(wick_error *err) {
    return wk_fail_memory(err, 0, "adapters to be merged");
}

static wick_status open_all(wk_merging *m, const wk_gguf *gguf, const wick_merge *adapters,
                            wick_error *err) {
    const wick_value *const name = wk_gguf_find(gguf, "general.architecture");
    m->model.heap = m->heap;
    m->model.gguf = gguf;
    WK_TRY(wk_model_make(m->heap, gguf, &m->model.model, err));
    char *const architecture = m->model.info.architecture;
    if (name != NULL && name->type == WICK_VALUE_STRING &&
        name->string.size < sizeof m->model.info.architecture)
        memcpy(architecture, name->string.text, name->string.size);
    m->loras = wk_alloc_zeroed(m->heap, m->n * sizeof(wick_lora *));
    m->factors = wk_alloc_zeroed(m->heap, m->n * sizeof(wk_factors *));
    if (m->loras == NULL || m->factors == NULL) return fail_memory(err);
    for (size_t i = 0; i < m->n; i++)
        WK_TRY(wk_lora_read(&m->model, adapters[i].path, adapters[i].scale, &m->loras[i], err));
    return WICK_OK;
}

wick_status wk_merging_open(wk_heap *heap, const wk_gguf *gguf, const wick_merge *adapters,
                            size_t n, wk_merging **out, wick_error *err) {
    wk_merging *const m = wk_alloc_zeroed(heap, sizeof *m);
    *out = NULL;
    if (m == NULL) return fail_memory(err);
    m->heap = heap;
    m->n = n;
    const wick_status status = open_all(m, gguf, adapters, err);
    if (status == WICK_OK)
        *out = m;
    else
        wk_merging_close(m);
    return status;
}

void wk_merging_close(wk_merging *merging) {
    if (merging == NULL) return;
    wk_merging *const m = merging;
    for (size_t i = 0; m->loras != NULL && i < m->n; i++) wk_lora_free(m->loras[i]);
    wk_free(m->heap, m->loras, m->loras != NULL ? m->n * sizeof(wick_lora *) : 0);
    wk_free(m->heap, m->factors, m->factors != NULL ? m->n * sizeof(wk_factors *) : 0);
    wk_model_free(m->model.model);
    wk_free(m->heap, m, sizeof *m);
}

bool wk_merging_begin(wk_merging *merging, const wick_file_tensor *tensor) {
    wk_merging *const m = merging;
    bool has_any = false;
    for (size_t i = 0; i < m->n; i++) {
        m->factors[i] = wk_adapter_find(m->model.model, m->loras[i]->adapter, tensor->name);
        has_any = has_any || m->factors[i] != NULL;
    }
    if (has_any) m->row = tensor->shape.extent[1];
    return has_any;
}

/* n columns from `column` on of a row. */
static void add_columns(const wk_factors *f, int64_t row, int64_t column, int64_t n,
                        float *values) {
    float sums[MOST_COLUMNS] = {0};
    const float *const b = f->values + f->rank * f->k + row * f->rank;
    for (int64_t r = 0; r < f->rank; r++) {
        const float *const a = f->values + r * f->k + column;
        for (int64_t i = 0; i < n; i++) sums[i] += b[r] * a[i];
    }
    for (int64_t i = 0; i < n; i++) values[i] += sums[i];
}

void wk_merging_add(const wk_merging *merging, int64_t first, int64_t n, float *values) {
    const wk_merging *const m = merging;
    for (int64_t at = first; at < first + n;) {
        const int64_t column = at % m->row, left = m->row - column;
        int64_t count = left < first + n - at ? left : first + n - at;
        if (count > MOST_COLUMNS) count = MOST_COLUMNS;
        for (size_t i = 0; i < m->n; i++)
            if (m->factors[i] != NULL)
                add_columns(m->factors[i], at / m->row, column, count, values + (at - first));
        at += count;
    }
}
