/* convert/lora.c: adapters of a model from paths. */
#include "core/status.h"
#include "llm/adapter.h"
#include "source/file.h"

/* out NULL: for all sessions. */
static wick_status add_gguf(wick_model *model, const char *path, float scale, wick_lora **out,
                            wick_error *err) {
    wick_file *file;
    WK_TRY(wick_file_open(path, &file, err));
    wick_error reason = {.status = WICK_OK};
    const wk_adapter_file from = wk_adapter_gguf(file);
    const wick_status status = out != NULL ? wk_adapter_open_file(model, &from, out, &reason)
                                           : wk_adapter_add_file(model, &from, scale, &reason);
    wick_file_close(file);
    return status == WICK_OK ? WICK_OK : wk_fail_in_file(err, path, &reason);
}

wick_status wick_model_add_adapter(wick_model *model, const char *path, float scale,
                                   wick_error *error) {
    if (model == NULL || path == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_model_add_adapter: an argument is NULL");
    return add_gguf(model, path, scale, NULL, error);
}

wick_status wick_lora_open(wick_model *model, const char *path, wick_lora **lora,
                           wick_error *error) {
    if (lora != NULL) *lora = NULL;
    if (model == NULL || path == NULL || lora == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_lora_open: an argument is NULL");
    return add_gguf(model, path, 1, lora, error);
}
