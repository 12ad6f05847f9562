/* finetune/saving.c: the files of checkpoint.c in memory, read from the device without waiting.
 *
 *   start: the header, a reading of each tensor      poll: each goes to its place in the bytes
 *
 * The state that was saved last is kept: a training goes on from it when its device is lost. */
#include "finetune/finetune.h"
#include "format/gguf_write.h"

#include <string.h>

/* ---- Bytes ---- */

static wick_string name_of(const char *name) { return (wick_string){name, strlen(name)}; }

/* The header, and zeros where the tensors go. */
static wick_status lay_out(wick_finetune *f, const wick_value *values, size_t n_values,
                           wick_error *err) {
    wk_finetune_saving *const s = &f->saving;
    const size_t size = s->n * sizeof(wick_file_tensor);
    wick_file_tensor *const tensors = wk_alloc_zeroed(&f->heap, size);
    if (tensors == NULL) return wk_fail_memory(err, size, "a training to save");
    for (size_t i = 0; i < s->n; i++)
        tensors[i] = (wick_file_tensor){.name = name_of(f->stored.names[i]),
                                        .dtype = WICK_F32,
                                        .shape = wick_tensor_shape(f->stored.tensors[i])};
    const wk_gguf_contents contents = {values, n_values, tensors, s->n};
    wk_strbuf_init(&s->bytes, &f->heap);
    wick_status status = wk_gguf_write_header(&s->bytes, &contents, &s->header, err);
    wk_free(&f->heap, tensors, size);
    if (status != WICK_OK) return status;
    const wk_gguf *const gguf = wk_gguf_parser_result(s->header);
    const wick_file_tensor *const last = &gguf->tensors[s->n - 1];
    const uint64_t total = wk_gguf_padded(last->offset + last->size, gguf->alignment);
    const size_t more = (size_t)total - s->bytes.size;
    if (total > SIZE_MAX || !wk_strbuf_reserve(&s->bytes, more))
        return wk_fail_memory(err, total, "a training to save");
    memset(s->bytes.data + s->bytes.size, 0, more);
    s->bytes.size += more;
    return WICK_OK;
}

static wick_status start_readings(wick_finetune *f) {
    wk_finetune_saving *const s = &f->saving;
    s->readings = wk_alloc_zeroed(&f->heap, s->n * sizeof(wick_reading *));
    if (s->readings == NULL)
        return wk_fail_memory(wk_device_err(f->device), s->n * sizeof(wick_reading *),
                              "a training to save");
    for (size_t i = 0; i < s->n; i++)
        WK_TRY(wick_read_start(f->stored.tensors[i], &s->readings[i]));
    return WICK_OK;
}

static void drop_readings(wick_finetune *f) {
    wk_finetune_saving *const s = &f->saving;
    for (size_t i = s->next; s->readings != NULL && i < s->n; i++)
        if (s->readings[i] != NULL) (void)wick_read_finish(s->readings[i], NULL, 0);
    wk_free(&f->heap, s->readings, s->n * sizeof(wick_reading *));
    s->readings = NULL;
    wk_gguf_parser_free(s->header);
    s->header = NULL;
}

void wk_finetune_drop_saving(wick_finetune *f) {
    drop_readings(f);
    wk_strbuf_release(&f->saving.bytes);
    f->saving = (wk_finetune_saving){.n = 0};
}

static wick_status read_all(wick_finetune *f) {
    wk_finetune_saving *const s = &f->saving;
    const wick_file_tensor *const tensors = wk_gguf_parser_result(s->header)->tensors;
    for (; s->next < s->n; s->next++) {
        wick_reading *const reading = s->readings[s->next];
        const wick_file_tensor *const to = &tensors[s->next];
        if (wick_read_poll(reading) == WICK_PENDING) return WICK_PENDING;
        s->readings[s->next] = NULL;
        WK_TRY(wick_read_finish(reading, s->bytes.data + to->offset, (size_t)to->size));
    }
    return WICK_OK;
}

/* ---- The calls ---- */

wick_status wick_finetune_save_start(wick_finetune *finetune, wick_finetune_file file,
                                     wick_error *error) {
    if (finetune == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_finetune_save_start: finetune is NULL");
    wick_finetune *const f = finetune;
    wick_value values[WK_FINETUNE_VALUES];
    wk_finetune_drop_saving(f);
    WK_TRY(wk_finetune_check_present(f, file, error));
    f->saving.is_state = file == WICK_FINETUNE_STATE;
    f->saving.n = f->saving.is_state ? f->stored.n : 2 * f->n_factors;
    wick_error failure = {.status = WICK_OK};
    const wk_model_errors before = wk_model_borrow(f->model, &failure);
    wick_status status = lay_out(f, values, wk_finetune_values(f, file, values), &failure);
    if (status == WICK_OK) status = start_readings(f);
    wk_model_give_back(f->model, before);
    if (status != WICK_OK) wk_finetune_drop_saving(f);
    return wk_pass_on(error, status, &failure);
}

wick_status wick_finetune_save_poll(wick_finetune *finetune, const void **bytes, size_t *size,
                                    wick_error *error) {
    if (bytes != NULL) *bytes = NULL;
    if (size != NULL) *size = 0;
    if (finetune == NULL || bytes == NULL || size == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_finetune_save_poll: an argument is NULL");
    wick_finetune *const f = finetune;
    wk_finetune_saving *const s = &f->saving;
    if (s->readings == NULL)
        return wk_fail(error, WICK_ERR_STATE, "the training is not being saved");
    wick_error failure = {.status = WICK_OK};
    const wk_model_errors before = wk_model_borrow(f->model, &failure);
    const wick_status status = read_all(f);
    wk_model_give_back(f->model, before);
    if (status == WICK_PENDING) return WICK_PENDING;
    if (status != WICK_OK) {
        wk_finetune_drop_saving(f);
        return wk_pass_on(error, status, &failure);
    }
    drop_readings(f);
    if (s->is_state) {
        wk_strbuf_release(&f->kept);
        f->kept = s->bytes;
        wk_strbuf_init(&s->bytes, &f->heap);
    }
    const wk_strbuf *const saved = s->is_state ? &f->kept : &s->bytes;
    *bytes = saved->data;
    *size = saved->size;
    return WICK_OK;
}
