/* web/glue/glue.c: the module's doors: flat functions for JavaScript over the public C API. A first
 * slice: a device, a model from memory, a session. */
#include <wick/wick.h>

#include <stdlib.h>

#define DOOR(result, name, ...)                                                                    \
    __attribute__((export_name(#name))) result wick_door_##name(__VA_ARGS__);                      \
    result wick_door_##name(__VA_ARGS__)

static wick_error error; /* of the last call that failed */

DOOR(void *, alloc, size_t size) { return malloc(size); }
DOOR(void, release, void *memory) { free(memory); }
DOOR(const char *, error_text, void) { return error.message; }

/* NULL: it has failed, see error_text; likewise below. */
DOOR(wick_device_opening *, device_open, int backend, int math) {
    const wick_device_desc desc = {.backend = (wick_backend)backend, .math = (wick_math)math};
    wick_device_opening *opening = NULL;
    error = (wick_error){0};
    return wick_device_open_start(&desc, &opening, &error) == WICK_OK ? opening : NULL;
}

DOOR(int, device_poll, wick_device_opening *opening) { return wick_device_open_poll(opening); }

DOOR(wick_device *, device_finish, wick_device_opening *opening) {
    wick_device *device = NULL;
    return wick_device_open_finish(opening, &device, &error) == WICK_OK ? device : NULL;
}

DOOR(wick_model_loading *, model_open, wick_device *device, const void *data, size_t size) {
    wick_model_loading *loading = NULL;
    const wick_source source = wick_source_memory(data, size);
    error = (wick_error){0};
    const wick_status status = wick_model_open_start(device, source, NULL, &loading, &error);
    return status == WICK_OK ? loading : NULL;
}

DOOR(int, model_poll, wick_model_loading *loading) { return wick_model_open_poll(loading, NULL); }

DOOR(wick_model *, model_finish, wick_model_loading *loading) {
    wick_model *model = NULL;
    return wick_model_open_finish(loading, &model, &error) == WICK_OK ? model : NULL;
}

DOOR(wick_session *, session_open, wick_model *model) {
    wick_session *session = NULL;
    error = (wick_error){0};
    return wick_session_open(model, NULL, &session, &error) == WICK_OK ? session : NULL;
}

DOOR(int, session_append, wick_session *session, const char *text) {
    return wick_session_append_text(session, text);
}

/* out: kind, token, text, size of the text. */
DOOR(int, session_step, wick_session *session, uint32_t out[4]) {
    wick_event event;
    const int status = wick_session_step(session, &event);
    out[0] = event.kind;
    out[1] = event.token;
    out[2] = (uint32_t)(uintptr_t)event.text;
    out[3] = (uint32_t)event.text_size;
    return status;
}
