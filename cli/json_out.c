/* json_out.c: JSON to a stream, one value a line, two blanks a level. */
#define _POSIX_C_SOURCE 200809L

#include "json_out.h"

#include "text_out.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void new_line(const cli_json *json) {
    if (!json->is_line) fprintf(json->out, "\n%*s", (int)(2 * json->depth), "");
}

/* What stands before a value or a key. */
static void separate(cli_json *json) {
    if (json->after_key) {
        json->after_key = false;
        return;
    }
    if (json->needs_comma) fputs(json->is_line ? ", " : ",", json->out);
    if (json->depth > 0) new_line(json);
}

void cli_json_open(cli_json *json, char bracket) {
    separate(json);
    fputc(bracket, json->out);
    json->depth++;
    json->needs_comma = false;
}

void cli_json_close(cli_json *json, char bracket) {
    json->depth--;
    if (json->needs_comma) new_line(json);
    fputc(bracket, json->out);
    json->needs_comma = true;
    if (json->depth == 0) fputc('\n', json->out);
}

/* The letter after a backslash that stands for it; 0: there is none. */
static char letter_of(unsigned char byte) {
    static const char bytes[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *const at = memchr(bytes, byte, sizeof bytes - 1);
    return at != NULL ? letters[at - bytes] : '\0';
}

static void put_string(FILE *out, const char *text, size_t size) {
    fputc('"', out);
    for (size_t i = 0; i < size;) {
        const size_t n = cli_utf8_size(text + i, size - i);
        const unsigned char first = (unsigned char)text[i];
        if (n == 0)
            fputs("\xEF\xBF\xBD", out);
        else if (letter_of(first) != '\0')
            fprintf(out, "\\%c", letter_of(first));
        else if (cli_is_control(text + i, n))
            fprintf(out, "\\u%04x", (unsigned char)text[i + n - 1]); /* of C1 the second byte */
        else
            fwrite(text + i, 1, n, out);
        i += n > 0 ? n : 1;
    }
    fputc('"', out);
}

void cli_json_key_bytes(cli_json *json, const char *key, size_t size) {
    separate(json);
    put_string(json->out, key, size);
    fputs(": ", json->out);
    json->after_key = true;
}

void cli_json_key(cli_json *json, const char *key) { cli_json_key_bytes(json, key, strlen(key)); }

void cli_json_bytes(cli_json *json, const char *text, size_t size) {
    separate(json);
    put_string(json->out, text, size);
    json->needs_comma = true;
}

void cli_json_string(cli_json *json, const char *text) { cli_json_bytes(json, text, strlen(text)); }

void cli_json_unsigned(cli_json *json, uint64_t value) {
    separate(json);
    fprintf(json->out, "%" PRIu64, value);
    json->needs_comma = true;
}

void cli_json_signed(cli_json *json, int64_t value) {
    separate(json);
    fprintf(json->out, "%" PRId64, value);
    json->needs_comma = true;
}

void cli_json_number(cli_json *json, double value, int digits) {
    if (!isfinite(value)) {
        cli_json_null(json);
        return;
    }
    separate(json);
    fprintf(json->out, "%.*g", digits, value);
    json->needs_comma = true;
}

void cli_json_bool(cli_json *json, bool value) {
    separate(json);
    fputs(value ? "true" : "false", json->out);
    json->needs_comma = true;
}

void cli_json_null(cli_json *json) {
    separate(json);
    fputs("null", json->out);
    json->needs_comma = true;
}

void cli_json_put_unsigned(cli_json *json, const char *key, uint64_t value) {
    cli_json_key(json, key);
    cli_json_unsigned(json, value);
}

void cli_json_put_time(cli_json *json, const char *key, time_t time) {
    char text[32] = "";
    struct tm parts;
    if (gmtime_r(&time, &parts) != NULL) strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    cli_json_put_string(json, key, text);
}

void cli_json_put_number(cli_json *json, const char *key, double value) {
    enum { DIGITS = 17 };
    cli_json_key(json, key);
    cli_json_number(json, value, DIGITS);
}

void cli_json_put_string(cli_json *json, const char *key, const char *text) {
    cli_json_key(json, key);
    cli_json_string(json, text);
}

static void put_read_number(cli_json *json, const wick_json *value) {
    uint64_t whole = 0;
    double number = 0;
    if (wick_json_get_whole(value, &whole))
        cli_json_unsigned(json, whole);
    else if (wick_json_get_number(value, &number))
        cli_json_number(json, number, 17);
}

static void put_items(cli_json *json, const wick_json *value) {
    const bool is_object = wick_json_kind_of(value) == WICK_JSON_OBJECT;
    cli_json_open(json, is_object ? '{' : '[');
    for (const wick_json *item = wick_json_first(value); item != NULL;
         item = wick_json_next(item)) {
        size_t size;
        const char *const key = wick_json_key(item, &size);
        if (is_object) cli_json_key_bytes(json, key, size);
        cli_json_value(json, item);
    }
    cli_json_close(json, is_object ? '}' : ']');
}

void cli_json_value(cli_json *json, const wick_json *value) {
    size_t size;
    const char *const text = wick_json_text(value, &size);
    switch (wick_json_kind_of(value)) {
    case WICK_JSON_BOOL: cli_json_bool(json, wick_json_is_true(value)); break;
    case WICK_JSON_NUMBER: put_read_number(json, value); break;
    case WICK_JSON_STRING: cli_json_bytes(json, text, size); break;
    case WICK_JSON_ARRAY:
    case WICK_JSON_OBJECT: put_items(json, value); break;
    default: cli_json_null(json);
    }
}
