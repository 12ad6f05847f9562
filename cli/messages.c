/* messages.c: the messages of a conversation, and their form as JSON. */
#define _POSIX_C_SOURCE 200809L

#include "messages.h"

#include "cli.h"
#include "file_out.h"
#include "input.h"
#include "json_out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *copy_of(const char *text, size_t size) {
    char *const copy = malloc(size + 1);
    if (copy == NULL) return NULL;
    if (size > 0) memcpy(copy, text, size);
    copy[size] = '\0';
    return copy;
}

static void clear(cli_message *message) {
    free(message->role);
    free(message->content);
}

bool cli_messages_add(cli_messages *messages, const char *role, const char *content, size_t size) {
    cli_message *const items = realloc(messages->items, (messages->n + 1) * sizeof *items);
    if (items == NULL) return false;
    messages->items = items;
    cli_message made = {copy_of(role, strlen(role)), copy_of(content, size), size};
    if (made.role == NULL || made.content == NULL) {
        clear(&made);
        return false;
    }
    items[messages->n++] = made;
    return true;
}

void cli_messages_cut(cli_messages *messages, size_t n) {
    while (messages->n > n) clear(&messages->items[--messages->n]);
    if (n > 0) return;
    free(messages->items);
    messages->items = NULL;
}

bool cli_messages_set_system(cli_messages *messages, const char *content) {
    if (messages->n > 0 && strcmp(messages->items[0].role, "system") == 0) {
        clear(&messages->items[0]);
        messages->n--;
        memmove(messages->items, messages->items + 1, messages->n * sizeof *messages->items);
    }
    if (content == NULL || content[0] == '\0') return true;
    if (!cli_messages_add(messages, "system", content, strlen(content))) return false;
    const cli_message made = messages->items[messages->n - 1];
    memmove(messages->items + 1, messages->items, (messages->n - 1) * sizeof made);
    messages->items[0] = made;
    return true;
}

static void put_messages(const cli_messages *messages, FILE *out) {
    cli_json json = {.out = out};
    cli_json_open(&json, '[');
    for (size_t i = 0; i < messages->n; i++) {
        cli_json_open(&json, '{');
        cli_json_key(&json, "role");
        cli_json_string(&json, messages->items[i].role);
        cli_json_key(&json, "content");
        cli_json_bytes(&json, messages->items[i].content, messages->items[i].size);
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, ']');
}

char *cli_messages_json(const cli_messages *messages, size_t *size) {
    char *text = NULL;
    FILE *const out = open_memstream(&text, size);
    if (out == NULL) return NULL;
    put_messages(messages, out);
    const bool failed = ferror(out) != 0;
    if (fclose(out) == 0 && !failed) return text;
    free(text);
    return NULL;
}

int cli_messages_save(const cli_messages *messages, const char *path) {
    size_t size = 0;
    char *const text = cli_messages_json(messages, &size);
    if (text == NULL) return cli_error("out of memory for the messages");
    const int code = cli_write_file(path, text, size);
    free(text);
    return code;
}

/* False: it is no list of messages, or memory is short. */
static bool add_all(cli_messages *messages, const wick_json *list) {
    if (wick_json_kind_of(list) != WICK_JSON_ARRAY) return false;
    for (const wick_json *m = wick_json_first(list); m != NULL; m = wick_json_next(m)) {
        size_t size;
        const char *const role = wick_json_text(wick_json_get(m, "role"), NULL);
        const char *const content = wick_json_text(wick_json_get(m, "content"), &size);
        if (role == NULL || content == NULL || !cli_messages_add(messages, role, content, size))
            return false;
    }
    return true;
}

int cli_messages_load(cli_messages *messages, const char *path) {
    cli_input input = {0};
    wick_json_document *json = NULL;
    wick_error error = {0};
    cli_messages loaded = {0};
    int code = cli_read_file(path, &input);
    if (code == CLI_OK && wick_json_parse(input.text, input.size, &json, &error) != WICK_OK)
        code = cli_report_file(&error, path, "'/save' writes such files");
    if (code == CLI_OK && !add_all(&loaded, wick_json_root(json)))
        code = cli_error("'%s' holds no messages with role and content", path);
    if (code == CLI_OK) {
        cli_messages_cut(messages, 0);
        *messages = loaded;
    } else {
        cli_messages_cut(&loaded, 0);
    }
    wick_json_free(json);
    cli_input_free(&input);
    return code;
}
