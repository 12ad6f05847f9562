/* convert/lora.c: adapters of a model from paths: GGUF files, and what PEFT has. */
#include "convert/lora.h"

#include "convert/peft.h"
#include "core/status.h"
#include "source/file.h"
#include "sys/file.h"

#include <string.h>

/* out NULL: for all sessions. is_read: the values alone. */
typedef struct target {
    wick_model *model;
    float scale;
    wick_lora **out;
    bool is_read;
} target;

static wick_status add(const target *to, const wk_adapter_file *from, wick_error *err) {
    if (to->is_read) return wk_adapter_read_file(to->model, from, to->scale, to->out, err);
    return to->out != NULL ? wk_adapter_open_file(to->model, from, to->out, err)
                           : wk_adapter_add_file(to->model, from, to->scale, err);
}

static wick_status add_gguf(const target *to, const char *path, wick_error *err) {
    wick_file *file;
    WK_TRY(wick_file_open(path, &file, err));
    const wk_adapter_file from = wk_adapter_gguf(file);
    const wick_status status = add(to, &from, err);
    wick_file_close(file);
    return status;
}

static wick_status add_folder(const target *to, const char *folder, wick_error *err) {
    wk_peft *peft;
    WK_TRY(wk_peft_open(to->model, folder, &peft, err));
    const wk_adapter_file from = wk_peft_file(peft);
    const wick_status status = add(to, &from, err);
    wk_peft_close(peft);
    return status;
}

/* A file of PEFT stands for its folder. */
static wick_status add_path(const target *to, const char *path, wick_error *err) {
    static const char *const names[] = {"adapter_config.json", "adapter_model.safetensors"};
    if (!wk_file_exists(path) && wk_file_is_same(path, path)) return add_folder(to, path, err);
    const char *const slash = strrchr(path, '/'), *const name = slash != NULL ? slash + 1 : path;
    if (strcmp(name, names[0]) != 0 && strcmp(name, names[1]) != 0) return add_gguf(to, path, err);
    if (slash == NULL) return add_folder(to, ".", err);
    const size_t size = (size_t)(slash - path) + 1;
    char *const folder = wk_alloc(to->model->heap, size + 1);
    if (folder == NULL) return wk_fail_memory(err, size, "an adapter");
    memcpy(folder, path, size);
    folder[size] = '\0';
    const wick_status status = add_folder(to, folder, err);
    wk_free(to->model->heap, folder, size + 1);
    return status;
}

static wick_status add_adapter(const target *to, const char *path, wick_error *error) {
    wick_error reason = {.status = WICK_OK};
    const wick_status status = add_path(to, path, &reason);
    return status == WICK_OK ? WICK_OK : wk_fail_in_file(error, path, &reason);
}

wick_status wk_lora_read(wick_model *model, const char *path, float scale, wick_lora **out,
                         wick_error *err) {
    const target to = {.model = model, .scale = scale, .out = out, .is_read = true};
    return add_adapter(&to, path, err);
}

wick_status wick_model_add_adapter(wick_model *model, const char *path, float scale,
                                   wick_error *error) {
    if (model == NULL || path == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_model_add_adapter: an argument is NULL");
    return add_adapter(&(target){.model = model, .scale = scale}, path, error);
}

wick_status wick_lora_open(wick_model *model, const char *path, wick_lora **lora,
                           wick_error *error) {
    if (lora != NULL) *lora = NULL;
    if (model == NULL || path == NULL || lora == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_lora_open: an argument is NULL");
    return add_adapter(&(target){.model = model, .out = lora}, path, error);
}
