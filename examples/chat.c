/* examples/chat.c: a conversation, by the model's own chat template: each line is a question.
 *
 *   cc chat.c $(pkg-config --cflags --libs wick) -o chat
 *   ./chat MODEL.gguf */
#include <wick/wick.h>

#include <stdio.h>
#include <string.h>

/* A failed question is reported; the conversation goes on. */
static void converse(wick_chat *chat) {
    char question[4096];
    while (fgets(question, sizeof question, stdin) != NULL) {
        question[strcspn(question, "\n")] = '\0';
        wick_event event = {0};
        wick_status status = wick_chat_send(chat, question);
        while (status == WICK_OK && event.kind != WICK_EVENT_END) {
            status = wick_chat_next(chat, &event);
            fwrite(event.text, 1, event.text_size, stdout);
            fflush(stdout);
        }
        wick_error error = {0};
        if (wick_chat_error(chat, &error) != WICK_OK) fprintf(stderr, "%s\n", error.message);
        putchar('\n');
    }
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s MODEL.gguf\n", argv[0]);
        return 2;
    }
    wick_error error = {0};
    wick_device *device = NULL;
    wick_model *model = NULL;
    wick_chat *chat = NULL;
    const wick_chat_desc desc = {.system = "Be brief.", .session = {.max_tokens = 200}};
    wick_device_open(NULL, &device, &error);
    if (device != NULL) wick_model_open(device, argv[1], NULL, &model, &error);
    if (model != NULL) wick_chat_open(model, &desc, &chat, &error);
    if (chat != NULL) converse(chat);
    if (error.status != WICK_OK) fprintf(stderr, "%s\n", error.message);
    wick_chat_close(chat);
    wick_model_close(model);
    wick_device_close(device);
    return error.status == WICK_OK ? 0 : 1;
}
