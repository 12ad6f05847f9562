/* examples/stream.c: text as it comes, without blocking, up to a stop string.
 *
 * Loading and generating are steps here: a program with an event loop calls one of them whenever it
 * has nothing else to do, and nothing ever waits.
 *
 *   cc stream.c $(pkg-config --cflags --libs wick) -o stream
 *   ./stream MODEL.gguf "Once upon a time" "." */
#include <wick/wick.h>

#include <stdio.h>

static wick_status load(wick_device *device, const char *path, wick_model **model,
                        wick_error *error) {
    wick_source source;
    wick_model_loading *loading = NULL;
    wick_status status = wick_source_file(path, &source, error);
    if (status == WICK_OK) status = wick_model_open_start(device, source, NULL, &loading, error);
    if (status != WICK_OK) return status;
    wick_progress progress;
    while (wick_model_open_poll(loading, &progress) == WICK_PENDING) {
        /* An event loop would return to its events here. */
    }
    return wick_model_open_finish(loading, model, error); /* frees loading in any case */
}

/* The text that is complete so far: never half a character, never the beginning of a stop string.
 */
static wick_status stream(wick_session *session, wick_end_reason *reason) {
    wick_event event = {0};
    while (event.kind != WICK_EVENT_END) {
        const wick_status status = wick_session_step(session, &event);
        if (status != WICK_OK) return status;
        if (event.kind == WICK_EVENT_PENDING || event.text_size == 0) continue;
        fwrite(event.text, 1, event.text_size, stdout);
        fflush(stdout);
    }
    *reason = event.reason;
    return WICK_OK;
}

static wick_status run(wick_device *device, char **arguments, wick_error *error) {
    const char *const stop[] = {arguments[2]};
    const wick_session_desc desc = {
        .stop = stop, .n_stop = 1, .max_tokens = 200, .sampler = {.temperature = 0.8F, .seed = 1}};
    wick_model *model = NULL;
    wick_session *session = NULL;
    wick_end_reason reason = WICK_END_NONE;
    wick_status status = load(device, arguments[0], &model, error);
    if (status == WICK_OK) status = wick_session_open(model, &desc, &session, error);
    if (status == WICK_OK) status = wick_session_append_text(session, arguments[1]);
    if (status == WICK_OK) status = stream(session, &reason);
    if (status == WICK_OK)
        printf("\n[%s]\n", reason == WICK_END_STOP_STRING ? "stop string" : "another end");
    if (status != WICK_OK && error->status == WICK_OK) wick_session_error(session, error);
    wick_session_close(session);
    wick_model_close(model);
    return status;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: %s MODEL.gguf PROMPT STOP\n", argv[0]);
        return 2;
    }
    wick_error error = {0};
    wick_device *device = NULL;
    wick_status status = wick_device_open(NULL, &device, &error);
    if (status == WICK_OK) status = run(device, argv + 1, &error);
    if (status != WICK_OK) fprintf(stderr, "%s\n", error.message);
    wick_device_close(device);
    return status == WICK_OK ? 0 : 1;
}
