/* finetune/checkpoint.c: the files of a training: the adapter that comes of it, and checkpoints,
 * GGUF files of the factors and of what AdamW keeps of each. Written to a path here, to memory by
 * saving.c. */
#include "core/checksum.h"
#include "core/str.h"
#include "finetune/finetune.h"
#include "source/file.h"

#include <inttypes.h>
#include <string.h>

static const char checkpoint_type[] = "finetune";

enum { N_SAME = 12 };
_Static_assert(N_SAME + 3 == WK_FINETUNE_VALUES, "those of a checkpoint");

/* ---- Writing ---- */

static wick_string text_of(const char *text) { return (wick_string){text, strlen(text)}; }

static wick_value text_value(const char *key, const char *text) {
    return (wick_value){.key = text_of(key), .type = WICK_VALUE_STRING, .string = text_of(text)};
}

static wick_value whole_value(const char *key, uint64_t number) {
    return (wick_value){.key = text_of(key), .type = WICK_VALUE_U64, .u = number};
}

static wick_value real_value(const char *key, double number) {
    return (wick_value){.key = text_of(key), .type = WICK_VALUE_F64, .f = number};
}

static wick_status write_tensor(wick_finetune *f, wick_file_writer *writer, wick_tensor *tensor,
                                wick_error *err) {
    const size_t size = wick_tensor_bytes(tensor);
    void *const bytes = wk_alloc(&f->heap, size);
    if (bytes == NULL) return wk_fail_memory(err, size, "a tensor to write");
    wick_error failure = {.status = WICK_OK};
    const wk_model_errors before = wk_model_borrow(f->model, &failure);
    wick_status status = wk_pass_on(err, wick_read(tensor, bytes, size), &failure);
    wk_model_give_back(f->model, before);
    if (status == WICK_OK) status = wick_file_write(writer, bytes, size, err);
    wk_free(&f->heap, bytes, size);
    return status;
}

/* The values, and the first n tensors of f->stored. */
static wick_status write_file(wick_finetune *f, const char *path, const wick_value *values,
                              size_t n_values, size_t n, wick_error *err) {
    const size_t size = n * sizeof(wick_file_tensor);
    wick_file_tensor *const tensors = wk_alloc_zeroed(&f->heap, size);
    if (tensors == NULL) return wk_fail_memory(err, size, "a file to write");
    for (size_t i = 0; i < n; i++)
        tensors[i] = (wick_file_tensor){.name = text_of(f->stored.names[i]),
                                        .dtype = WICK_F32,
                                        .shape = wick_tensor_shape(f->stored.tensors[i])};
    const wick_file_desc desc = {.values = values,
                                 .n_values = n_values,
                                 .tensors = tensors,
                                 .n_tensors = n,
                                 .replace = true};
    wick_file_writer *writer = NULL;
    wick_status status = wick_file_write_start(path, &desc, &writer, err);
    if (status == WICK_OK) {
        for (size_t i = 0; i < n && status == WICK_OK; i++)
            status = write_tensor(f, writer, f->stored.tensors[i], err);
        const wick_status finished = wick_file_write_finish(writer, status == WICK_OK, err);
        if (status == WICK_OK) status = finished;
    }
    wk_free(&f->heap, tensors, size);
    return status;
}

wick_status wk_finetune_check_present(const wick_finetune *f, wick_finetune_file file,
                                      wick_error *err) {
    if (file == WICK_FINETUNE_STATE && f->failure.status != WICK_OK)
        return wk_fail(err, WICK_ERR_STATE,
                       "the training has failed: the last checkpoint stays as it is");
    if (f->phase != WK_FINETUNE_RESTORING && wk_device_generation(f->device) == f->generation)
        return WICK_OK;
    return wk_fail(err, WICK_ERR_STATE,
                   "the device was lost, and the training is not restored yet");
}

/* What must be the same for a training to go on with the same numbers. */
static void describe(const wick_finetune *f, wick_value values[N_SAME]) {
    const wick_finetune_desc *const d = &f->desc;
    const wick_value same[N_SAME] = {
        whole_value("finetune.model", f->model->weights_checksum),
        whole_value("finetune.examples", wk_examples_checksum(f->examples)),
        whole_value("finetune.held_out", f->n_held),
        whole_value("finetune.rank", d->rank),
        real_value("finetune.alpha", (double)d->alpha),
        whole_value("finetune.targets", d->targets),
        real_value("finetune.dropout", d->dropout),
        /* of its random numbers, which are those of dropout */
        whole_value("finetune.device_seed", d->dropout > 0 ? wick_device_seed(f->device) : 0),
        real_value("finetune.decay", d->decay),
        real_value("finetune.max_norm", d->max_norm),
        whole_value("finetune.batch", d->batch),
        whole_value("finetune.seed", d->seed),
    };
    memcpy(values, same, sizeof same);
}

size_t wk_finetune_values(const wick_finetune *f, wick_finetune_file file,
                          wick_value values[WK_FINETUNE_VALUES]) {
    const bool is_state = file == WICK_FINETUNE_STATE;
    size_t n = 0;
    values[n++] = text_value("general.type", is_state ? checkpoint_type : "adapter");
    values[n++] = text_value("general.architecture", f->model->info.architecture);
    if (is_state) {
        values[n++] = whole_value("finetune.step", f->step);
        describe(f, values + n);
        return n + N_SAME;
    }
    values[n++] = text_value("adapter.type", "lora");
    values[n++] = (wick_value){
        .key = text_of("adapter.lora.alpha"), .type = WICK_VALUE_F32, .f = (double)f->desc.alpha};
    return n;
}

wick_status wick_finetune_save(wick_finetune *finetune, const char *path, wick_error *error) {
    if (finetune == NULL || path == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_finetune_save: an argument is NULL");
    wick_value values[WK_FINETUNE_VALUES];
    WK_TRY(wk_finetune_check_present(finetune, WICK_FINETUNE_ADAPTER, error));
    const size_t n = wk_finetune_values(finetune, WICK_FINETUNE_ADAPTER, values);
    return write_file(finetune, path, values, n, 2 * finetune->n_factors, error);
}

wick_status wick_finetune_checkpoint(wick_finetune *finetune, wick_error *error) {
    if (finetune == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_finetune_checkpoint: finetune is NULL");
    wick_finetune *const f = finetune;
    wick_value values[WK_FINETUNE_VALUES];
    if (f->desc.checkpoint == NULL)
        return wk_fail(error, WICK_ERR_STATE, "wick_finetune_desc names no file for checkpoints");
    WK_TRY(wk_finetune_check_present(f, WICK_FINETUNE_STATE, error));
    const size_t n = wk_finetune_values(f, WICK_FINETUNE_STATE, values);
    WK_TRY(write_file(f, f->desc.checkpoint, values, n, f->stored.n, error));
    f->has_checkpoint = true;
    wk_strbuf_release(&f->kept); /* of an earlier step */
    return WICK_OK;
}

/* ---- Reading ---- */

static wick_status check_same(const wick_finetune *f, const wick_file *file, wick_error *err) {
    const wick_value *const type = wick_file_find_value(file, "general.type");
    if (type == NULL || type->type != WICK_VALUE_STRING ||
        !wk_str_is(type->string, checkpoint_type))
        return wk_fail(err, WICK_ERR_FORMAT, "the file is not a checkpoint of a training");
    wick_value same[N_SAME];
    describe(f, same);
    for (size_t i = 0; i < N_SAME; i++) {
        const wick_value *const found = wick_file_find_value(file, same[i].key.text);
        if (found == NULL || found->type != same[i].type)
            return wk_fail(err, WICK_ERR_FORMAT, "the checkpoint does not say '%s'",
                           same[i].key.text);
        if (same[i].type == WICK_VALUE_F64 ? found->f == same[i].f : found->u == same[i].u)
            continue;
        return wk_fail(err, WICK_ERR_MISMATCH,
                       "the checkpoint is of another training: '%s' is not the same",
                       same[i].key.text);
    }
    return WICK_OK;
}

static wick_status read_tensor(wick_finetune *f, wick_file *file, const char *name,
                               wick_tensor *tensor, wick_error *err) {
    const wick_file_tensor *const found = wk_gguf_find_tensor(wk_file_gguf(file), name);
    const size_t size = wick_tensor_bytes(tensor);
    if (found == NULL || found->dtype != WICK_F32 || found->size != size)
        return wk_fail(err, WICK_ERR_FORMAT, "the checkpoint has no tensor '%s' of %zu bytes", name,
                       size);
    void *const bytes = wk_alloc(&f->heap, size);
    if (bytes == NULL) return wk_fail_memory(err, size, "a tensor to read");
    wick_status status = wick_file_read(file, found->offset, bytes, size, err);
    if (status == WICK_OK) {
        wick_error failure = {.status = WICK_OK};
        const wk_model_errors before = wk_model_borrow(f->model, &failure);
        status = wk_pass_on(err, wick_write(tensor, bytes, size), &failure);
        wk_model_give_back(f->model, before);
    }
    wk_free(&f->heap, bytes, size);
    return status;
}

static wick_status load(wick_finetune *f, wick_file *file, wick_error *err) {
    WK_TRY(check_same(f, file, err));
    const wick_value *const step = wick_file_find_value(file, "finetune.step");
    if (step == NULL || step->type != WICK_VALUE_U64)
        return wk_fail(err, WICK_ERR_FORMAT, "the checkpoint does not say its step");
    for (size_t i = 0; i < f->stored.n; i++)
        WK_TRY(read_tensor(f, file, f->stored.names[i], f->stored.tensors[i], err));
    for (size_t i = 0; i < 2 * f->n_factors; i++)
        wick_optimizer_set_steps(f->optimizer, i, step->u);
    f->step = step->u;
    return WICK_OK;
}

static wick_status open_kept(const wick_finetune *f, wick_file **file, wick_error *err) {
    wick_file_opening *opening;
    WK_TRY(wick_file_open_start(wick_source_memory(f->kept.data, f->kept.size), &opening, err));
    while (wick_file_open_poll(opening) == WICK_PENDING) {
    } /* memory answers at once */
    return wick_file_open_finish(opening, file, err);
}

wick_status wk_finetune_load(wick_finetune *f, wick_error *err) {
    wick_file *file;
    wick_error reason = {.status = WICK_OK};
    const bool is_kept = f->kept.size > 0;
    WK_TRY(is_kept ? open_kept(f, &file, err) : wick_file_open(f->desc.checkpoint, &file, err));
    const wick_status status = load(f, file, &reason);
    wick_file_close(file);
    if (status == WICK_OK) return WICK_OK;
    return is_kept ? wk_pass_on(err, status, &reason)
                   : wk_fail_in_file(err, f->desc.checkpoint, &reason);
}
