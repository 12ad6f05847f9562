/* llm/session_file.c: sessions to files and from them. */
#include <wick/saving.h>

#include "core/alloc.h"
#include "core/status.h"
#include "llm/session_struct.h"
#include "sys/file.h"

static wick_status write_file(void *user, const void *bytes, size_t size, wick_error *error) {
    return wk_file_write(user, bytes, size, error);
}

wick_status wick_session_save(wick_session *session, const char *path, wick_error *error) {
    if (!session || !path)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_session_save: an argument is NULL");
    wk_heap *const heap = session->model->heap;
    wk_file_writer *file;
    wick_session_saving *saving;
    WK_TRY(wk_file_write_start(heap, path, &file, error));
    wick_status status = wick_session_save_start(session, write_file, file, &saving, error);
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
