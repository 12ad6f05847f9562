/* question.c: see question.h. */
#include "question.h"

#include <stdlib.h>
#include <string.h>

static const char quotes[] = "\"\"\"";
enum { QUOTES = sizeof quotes - 1 };

typedef struct text {
    char *bytes; /* terminated */
    size_t size;
} text;

static bool append(text *t, const char *bytes, size_t size) {
    char *const grown = realloc(t->bytes, t->size + size + 2);
    if (grown == NULL) return false;
    memcpy(grown + t->size, bytes, size);
    t->bytes = grown;
    t->size += size;
    t->bytes[t->size] = '\0';
    return true;
}

/* Without the quotes and an end of line after the first or before the last ones. */
static void strip_quotes(text *t) {
    size_t first = QUOTES, size = t->size;
    while (size > 0 && strchr(" \t", t->bytes[size - 1]) != NULL) size--;
    if (size >= 2 * QUOTES && memcmp(t->bytes + size - QUOTES, quotes, QUOTES) == 0) size -= QUOTES;
    if (first < size && t->bytes[first] == '\n') first++;
    if (size > first && t->bytes[size - 1] == '\n') size--;
    t->size = size - first;
    memmove(t->bytes, t->bytes + first, t->size);
    t->bytes[t->size] = '\0';
}

/* Whether a text that began with quotes has come to the ones at its end. */
static bool is_closed(const text *t) {
    size_t size = t->size;
    while (size > 0 && strchr(" \t\n", t->bytes[size - 1]) != NULL) size--;
    return size >= 2 * QUOTES && memcmp(t->bytes + size - QUOTES, quotes, QUOTES) == 0;
}

static void finish(text *t, bool is_quoted, cli_question *question) {
    if (is_quoted) strip_quotes(t);
    if (t->bytes[strspn(t->bytes, " \t\r\n")] == '\0') t->bytes[0] = '\0';
    question->is_command = t->bytes[0] == '/' && !is_quoted && strchr(t->bytes, '\n') == NULL;
    /* Completion adds a blank after a path. */
    if (question->is_command)
        while (strchr(" \t", t->bytes[t->size - 1]) != NULL) t->bytes[--t->size] = '\0';
    question->text = t->bytes;
}

cli_line_result cli_question_read(cli_line_reader *reader, cli_question *question) {
    text t = {.bytes = NULL};
    const char *prompt = "> ", *line = NULL;
    bool is_quoted = false, goes_on = true;
    *question = (cli_question){.text = NULL};
    while (goes_on) {
        const cli_line_result result = cli_line_read(reader, prompt, &line);
        if (result == CLI_LINE_END && t.size > 0) break; /* the end cuts the question off */
        if (result != CLI_LINE_READ) {
            free(t.bytes);
            return result;
        }
        size_t n = strlen(line);
        if (n > 0 && line[n - 1] == '\r') n--; /* of a file from Windows */
        if (t.size == 0) is_quoted = strncmp(line, quotes, QUOTES) == 0;
        if (!append(&t, line, n)) {
            free(t.bytes);
            return CLI_LINE_END;
        }
        const bool is_continued = !is_quoted && n > 0 && line[n - 1] == '\\';
        goes_on = is_quoted ? !is_closed(&t) : is_continued;
        if (is_continued) t.bytes[t.size - 1] = '\n';
        if (goes_on && is_quoted && !append(&t, "\n", 1)) break;
        prompt = ". ";
    }
    finish(&t, is_quoted, question);
    return CLI_LINE_READ;
}
