/* messages.c: the messages of a conversation in files, as JSON. */
#define _POSIX_C_SOURCE 200809L

#include "chat.h"
#include "cli.h"
#include "file_out.h"
#include "input.h"
#include "json_out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

size_t cli_messages_count(const wick_chat *talk) {
    size_t n = 0;
    const wick_json *item = wick_json_first(wick_chat_messages(talk));
    for (; item != NULL; item = wick_json_next(item)) n++;
    return n;
}

size_t cli_messages_up_to(const wick_chat *talk, const char *role) {
    size_t n = 0, found = 0;
    const wick_json *item = wick_json_first(wick_chat_messages(talk));
    for (; item != NULL; item = wick_json_next(item)) {
        const char *const own = wick_json_text(wick_json_get(item, "role"), NULL);
        n++;
        if (own != NULL && strcmp(own, role) == 0) found = n;
    }
    return found;
}

int cli_messages_load(wick_chat *talk, const char *path) {
    cli_input input = {0};
    wick_json_document *json = NULL;
    wick_error error = {0};
    int code = cli_read_file(path, &input);
    if (code == CLI_OK && wick_json_parse(input.text, input.size, &json, &error) != WICK_OK)
        code = cli_report_file(&error, path, "'/save' writes such files");
    if (code == CLI_OK && wick_chat_set_messages(talk, wick_json_root(json)) != WICK_OK) {
        wick_chat_error(talk, &error);
        code = cli_error("'%s' is not a saved conversation: %s", path, error.message);
    }
    wick_json_free(json);
    cli_input_free(&input);
    return code;
}

/* NULL: it is not JSON. */
static bool is_conversation(const wick_json *list) {
    if (list == NULL || wick_json_kind_of(list) != WICK_JSON_ARRAY) return false;
    for (const wick_json *item = wick_json_first(list); item != NULL; item = wick_json_next(item))
        if (wick_json_text(wick_json_get(item, "role"), NULL) == NULL) return false;
    return true;
}

/* Only a conversation is replaced by one; pipes and devices are written to. */
static int check_target(const char *path) {
    cli_input input = {0};
    wick_json_document *json = NULL;
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode)) return CLI_OK;
    int code = cli_read_file(path, &input);
    if (code == CLI_OK) {
        (void)wick_json_parse(input.text, input.size, &json, NULL);
        if (!is_conversation(json != NULL ? wick_json_root(json) : NULL))
            code = cli_error("'%s' is not a saved conversation and is not replaced", path);
    }
    wick_json_free(json);
    cli_input_free(&input);
    return code;
}

int cli_messages_save(const wick_chat *talk, const char *path) {
    char *text = NULL;
    size_t size = 0;
    if (check_target(path) != CLI_OK) return CLI_FAILURE;
    FILE *const out = open_memstream(&text, &size);
    if (out == NULL) return cli_error("out of memory for the messages");
    cli_json json = {.out = out};
    cli_json_value(&json, wick_chat_messages(talk));
    const bool failed = ferror(out) != 0;
    const bool is_whole = fclose(out) == 0 && !failed;
    const int code =
        is_whole ? cli_write_file(path, text, size) : cli_error("out of memory for the messages");
    free(text);
    return code;
}
