/* embedding.c: see embedding.h. */
#include "embedding.h"

#include "cli.h"
#include "interrupt.h"

#include <stdlib.h>
#include <string.h>

static int reserve(cli_text_list *list, size_t n) {
    list->items = calloc(n > 0 ? n : 1, sizeof *list->items);
    list->sizes = calloc(n > 0 ? n : 1, sizeof *list->sizes);
    return list->items != NULL && list->sizes != NULL ? CLI_OK
                                                      : cli_error("out of memory for %zu texts", n);
}

static void add(cli_text_list *list, const char *text, size_t size) {
    list->items[list->n] = text;
    list->sizes[list->n++] = size;
}

int cli_list_arguments(const cli_texts *given, cli_text_list *list) {
    const int code = reserve(list, given->n);
    for (size_t i = 0; i < given->n && code == CLI_OK; i++)
        add(list, given->items[i], strlen(given->items[i]));
    return code;
}

int cli_list_lines(const char *path, cli_text_list *list) {
    int code = cli_read_file(path, &list->input);
    if (code != CLI_OK) return code;
    const char *const end = list->input.text + list->input.size;
    size_t n = 1;
    for (const char *at = list->input.text; at < end; at++) n += *at == '\n';
    code = reserve(list, n);
    for (const char *at = list->input.text; at < end && code == CLI_OK;) {
        const char *const found = memchr(at, '\n', (size_t)(end - at));
        const char *const line_end = found != NULL ? found : end;
        const bool has_return = found != NULL && found > at && found[-1] == '\r';
        add(list, at, (size_t)(line_end - at) - (has_return ? 1 : 0));
        at = line_end + 1;
    }
    if (code == CLI_OK && list->n == 0) return cli_error("%s contains no text", path);
    return code;
}

void cli_text_list_free(cli_text_list *list) {
    free(list->items);
    free(list->sizes);
    cli_input_free(&list->input);
}

wick_status cli_embedder_wait(wick_embedder *embedder, wick_device *device) {
    for (;;) {
        if (cli_interrupted()) return WICK_ERR_CANCELLED;
        const wick_status status = wick_embedder_poll(embedder);
        if (status != WICK_PENDING) return status;
        wick_pause(device);
    }
}
