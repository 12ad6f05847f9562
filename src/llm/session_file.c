/* llm/session_file.c: sessions, and the beginnings of texts, to files and from them. */
#include <wick/saving.h>

#include "core/alloc.h"
#include "core/status.h"
#include "llm/session_struct.h"
#include "sys/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

wick_status wick_session_save(wick_session *session, const char *path, wick_error *error) {
    if (!session || !path)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_session_save: an argument is NULL");
    wk_heap *const heap = session->model->heap;
    wk_file_writer *file;
    wick_session_saving *saving;
    WK_TRY(wk_file_write_start(heap, path, &file, error));
    wick_status status = wick_session_save_start(session, wk_file_sink, file, &saving, error);
    if (status == WICK_OK) {
        while (wick_session_save_poll(saving) == WICK_PENDING) wick_pause(session->model->device);
        status = wick_session_save_finish(saving, error);
    }
    const wick_status closed = wk_file_write_finish(heap, file, status == WICK_OK, error);
    return status != WICK_OK ? status : closed;
}

wick_status wick_session_load(wick_session *session, const char *path, wick_error *error) {
    if (!session || !path)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_session_load: an argument is NULL");
    wick_source source;
    wick_session_loading *loading;
    WK_TRY(wick_source_file(path, &source, error));
    WK_TRY(wick_session_load_start(session, source, &loading, error));
    while (wick_session_load_poll(loading) == WICK_PENDING) wick_pause(session->model->device);
    return wick_session_load_finish(loading, error);
}

/* FOLDER/0123456789abcdef.prefixes, to be freed. */
static char *path_of(const wick_model *model, const char *folder, size_t *size, wick_error *error) {
    *size = strlen(folder) + sizeof "/0123456789abcdef.prefixes";
    char *const path = wk_alloc(model->heap, *size);
    if (!path) (void)wk_fail_memory(error, *size, "a path");
    if (path)
        (void)snprintf(path, *size, "%s/%016" PRIx64 ".prefixes", folder,
                       wk_gguf_checksum(model->gguf) + model->weights_checksum);
    return path;
}

static wick_status end_prefixes(wick_model *model, wick_prefixes *prefixes, wick_error *error) {
    while (wick_prefixes_poll(prefixes) == WICK_PENDING) wick_pause(model->device);
    return wick_prefixes_finish(prefixes, error);
}

static wick_status save_prefixes(wick_model *model, const char *path, wick_error *error) {
    wk_file_writer *file;
    wick_prefixes *prefixes;
    WK_TRY(wk_file_write_start(model->heap, path, &file, error));
    wick_status status = wick_prefixes_save_start(model, wk_file_sink, file, &prefixes, error);
    if (status == WICK_OK) status = end_prefixes(model, prefixes, error);
    const wick_status closed = wk_file_write_finish(model->heap, file, status == WICK_OK, error);
    return status != WICK_OK ? status : closed;
}

static wick_status load_prefixes(wick_model *model, const char *path, wick_error *error) {
    wick_source source;
    wick_prefixes *prefixes;
    if (!wk_file_exists(path))
        return wk_fail(error, WICK_ERR_NOT_FOUND, "there are no saved prefixes of '%s': '%s'",
                       model->info.name, path);
    WK_TRY(wick_source_file(path, &source, error));
    WK_TRY(wick_prefixes_load_start(model, source, &prefixes, error));
    return end_prefixes(model, prefixes, error);
}

typedef wick_status (*prefixes_fn)(wick_model *model, const char *path, wick_error *error);

static wick_status move_prefixes(wick_model *model, const char *folder, prefixes_fn move,
                                 const char *name, wick_error *error) {
    if (!model || !folder)
        return wk_fail(error, WICK_ERR_ARGUMENT, "%s: an argument is NULL", name);
    size_t size;
    char *const path = path_of(model, folder, &size, error);
    if (!path) return WICK_ERR_OUT_OF_MEMORY;
    const wick_status status = move(model, path, error);
    wk_free(model->heap, path, size);
    return status;
}

wick_status wick_model_save_prefixes(wick_model *model, const char *folder, wick_error *error) {
    return move_prefixes(model, folder, save_prefixes, "wick_model_save_prefixes", error);
}

wick_status wick_model_load_prefixes(wick_model *model, const char *folder, wick_error *error) {
    return move_prefixes(model, folder, load_prefixes, "wick_model_load_prefixes", error);
}
