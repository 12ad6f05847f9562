/* web/glue/glue.c: the module's doors: flat functions for JavaScript over the public C API. */
#include <wick/wick.h>

#include <stdlib.h>
#include <string.h>

#define DOOR(name) __attribute__((export_name(#name)))

static wick_error error;

DOOR(alloc) void *wick_door_alloc(size_t size) { return malloc(size); }
DOOR(release) void wick_door_release(void *memory) { free(memory); }
DOOR(error_text) const char *wick_door_error_text(void) { return error.message; }

DOOR(device_open) wick_device_opening *wick_door_device_open(int backend, int math) {
    wick_device_opening *opening = NULL;
    const wick_device_desc desc = {.backend = (wick_backend)backend, .math = (wick_math)math};
    error = (wick_error){0};
    return wick_device_open_start(&desc, &opening, &error) == WICK_OK ? opening : NULL;
}
DOOR(device_poll) int wick_door_device_poll(wick_device_opening *opening) {
    return wick_device_open_poll(opening);
}
DOOR(device_finish) wick_device *wick_door_device_finish(wick_device_opening *opening) {
    wick_device *device = NULL;
    return wick_device_open_finish(opening, &device, &error) == WICK_OK ? device : NULL;
}
DOOR(model_open) wick_model_loading *wick_door_model_open(wick_device *device, const void *data, size_t size) {
    wick_model_loading *loading = NULL;
    return wick_model_open_start(device, wick_source_memory(data, size), NULL, &loading, &error) == WICK_OK ? loading : NULL;
}
DOOR(model_poll) int wick_door_model_poll(wick_model_loading *loading) {
    wick_progress progress;
    return wick_model_open_poll(loading, &progress);
}
DOOR(model_finish) wick_model *wick_door_model_finish(wick_model_loading *loading) {
    wick_model *model = NULL;
    return wick_model_open_finish(loading, &model, &error) == WICK_OK ? model : NULL;
}
DOOR(session_open) wick_session *wick_door_session_open(wick_model *model) {
    wick_session *session = NULL;
    return wick_session_open(model, NULL, &session, &error) == WICK_OK ? session : NULL;
}
DOOR(session_append) int wick_door_session_append(wick_session *session, const char *text) {
    return wick_session_append_text(session, text);
}
DOOR(session_step) int wick_door_session_step(wick_session *session, uint32_t *out) {
    wick_event event;
    const int status = wick_session_step(session, &event);
    out[0] = event.kind; out[1] = event.token; out[2] = (uint32_t)(uintptr_t)event.text; out[3] = (uint32_t)event.text_size;
    return status;
}
