/* input.c: reads files and standard input whole, and numbers from texts. */
#include "input.h"

#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 16 << 10, MOST = 1 << 30 }; /* bytes; no text can be longer to tokenize */

static bool grow(cli_input *input, size_t *capacity) {
    const size_t wanted = *capacity == 0 ? FIRST_CAPACITY : 2 * *capacity;
    char *const text = realloc(input->text, wanted);
    if (text == NULL) return false;
    input->text = text;
    *capacity = wanted;
    return true;
}

/* path NULL: standard input. */
static int fail_read(const char *path, int error) {
    if (path == NULL) return cli_error("cannot read standard input: %s", strerror(error));
    return cli_error("cannot read '%s': %s; check the path", path, strerror(error));
}

static int read_stream(FILE *stream, const char *path, cli_input *input) {
    size_t capacity = 0;
    do {
        if (input->size + 1 >= capacity && !grow(input, &capacity))
            return cli_error("out of memory after %zu bytes of %s", input->size,
                             path != NULL ? path : "standard input");
        errno = 0;
        input->size += fread(input->text + input->size, 1, capacity - 1 - input->size, stream);
        if (ferror(stream)) return fail_read(path, errno);
        if (input->size > MOST)
            return cli_error("%s is larger than 1 GiB, too large for a text",
                             path != NULL ? path : "standard input");
    } while (!feof(stream));
    input->text[input->size] = '\0';
    return CLI_OK;
}

int cli_read_file(const char *path, cli_input *input) {
    *input = (cli_input){0};
    if (path != NULL && strcmp(path, "-") == 0) path = NULL;
    FILE *const stream = path != NULL ? fopen(path, "rb") : stdin;
    if (stream == NULL)
        return cli_error("cannot open '%s': %s; check the path", path, strerror(errno));
    const int code = read_stream(stream, path, input);
    if (path != NULL) fclose(stream);
    if (code != CLI_OK) cli_input_free(input);
    return code;
}

int cli_read_text(const char *text, cli_input *input) {
    *input = (cli_input){.text = malloc(strlen(text) + 1), .size = strlen(text)};
    if (input->text == NULL) return cli_error("out of memory for %zu bytes", input->size);
    memcpy(input->text, text, input->size + 1);
    return CLI_OK;
}

int cli_read_given(const char *path, cli_input *input, const char **text) {
    if (path == NULL) return CLI_OK;
    const int code = cli_read_file(path, input);
    if (code != CLI_OK) return code;
    *text = input->text;
    return strlen(input->text) == input->size ? CLI_OK
                                              : cli_error("'%s' contains a zero byte", path);
}

int cli_read_template(const char *path, cli_input *input, const char **text) {
    const int code = cli_read_given(path, input, text);
    if (code != CLI_OK || path == NULL || !cli_is_blank(*text)) return code;
    return cli_error("the template '%s' is empty", path);
}

void cli_input_free(cli_input *input) {
    free(input->text);
    *input = (cli_input){0};
}

static const char separators[] = " \t\r\n,";

bool cli_is_blank(const char *text) {
    /* No-break and ideographic space, and those of U+2000 to U+200B. */
    static const char *const wide[] = {"\u00a0", "\u3000"};
    for (;;) {
        text += strspn(text, " \t\r\n\v\f");
        size_t size = 0;
        for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
            if (strncmp(text, wide[i], strlen(wide[i])) == 0) size = strlen(wide[i]);
        const unsigned char *const bytes = (const unsigned char *)text;
        if (strncmp(text, "\xe2\x80", 2) == 0 && bytes[2] >= 0x80 && bytes[2] <= 0x8b) size = 3;
        if (size == 0) return *text == '\0';
        text += size;
    }
}

int cli_parse_ids(const cli_input *input, uint32_t **ids, size_t *n) {
    *n = 0;
    if (strlen(input->text) != input->size)
        return cli_error("the token ids contain a zero byte; give numbers like \"1 403 407\"");
    *ids = malloc((input->size / 2 + 1) * sizeof **ids); /* a digit and a blank each */
    if (*ids == NULL) return cli_error("out of memory for the token ids");
    const char *at = input->text + strspn(input->text, separators);
    while (*at != '\0') {
        const size_t size = strcspn(at, separators);
        errno = 0;
        const unsigned long long id = strtoull(at, NULL, 10);
        if (strspn(at, "0123456789") != size || errno != 0 || id >= UINT32_MAX) {
            free(*ids);
            *ids = NULL;
            return cli_error("'%.*s' is not a token id; give numbers like \"1 403 407\"",
                             size < 64 ? (int)size : 64, at);
        }
        (*ids)[(*n)++] = (uint32_t)id;
        at += size;
        at += strspn(at, separators);
    }
    return CLI_OK;
}

int cli_read_tokens(const wick_tokenizer *tokenizer, const char *path, uint32_t **ids, size_t *n) {
    cli_input input = {0};
    int code = cli_read_file(path, &input);
    if (code != CLI_OK) return code;
    wick_error error = {0};
    for (int pass = 0; pass < 2 && error.status == WICK_OK; pass++) {
        const size_t room = *n;
        if (pass == 1 && (*ids = malloc((room + 1) * sizeof **ids)) == NULL) break;
        error.status = wick_tokenize(tokenizer, input.text, input.size, WICK_TOKENIZE_ADD_BEGIN,
                                     *ids, room, n);
    }
    cli_input_free(&input);
    if (error.status != WICK_OK) return cli_report(&error, "a shorter text needs less");
    return *ids != NULL ? CLI_OK : cli_error("out of memory for %zu token ids", *n);
}
