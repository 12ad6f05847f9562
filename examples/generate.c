/* examples/generate.c: continues a text with a model.
 *
 *   cc generate.c $(pkg-config --cflags --libs wick) -o generate
 *   ./generate MODEL.gguf "Once upon a time" */
#include <wick/wick.h>

#include <stdio.h>

static wick_status generate(wick_device *device, const char *path, const char *prompt,
                            wick_error *error) {
    wick_model *model = NULL;
    wick_session *session = NULL;
    const wick_session_desc desc = {.max_tokens = 100};
    wick_status status = wick_model_open(device, path, NULL, &model, error);
    if (status == WICK_OK) status = wick_session_open(model, &desc, &session, error);
    if (status == WICK_OK) status = wick_session_append_text(session, prompt);

    wick_event event = {0};
    while (status == WICK_OK && event.kind != WICK_EVENT_END) {
        status = wick_session_next(session, &event);
        if (status == WICK_OK) fwrite(event.text, 1, event.text_size, stdout);
    }
    if (status != WICK_OK && error->status == WICK_OK) wick_session_error(session, error);
    wick_session_close(session);
    wick_model_close(model);
    return status;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s MODEL.gguf PROMPT\n", argv[0]);
        return 2;
    }
    wick_error error = {0};
    wick_device *device = NULL;
    wick_status status = wick_device_open(NULL, &device, &error);
    if (status == WICK_OK) status = generate(device, argv[1], argv[2], &error);
    if (status != WICK_OK) fprintf(stderr, "%s\n", error.message);
    wick_device_close(device);
    return status == WICK_OK ? 0 : 1;
}
