/* web/glue/record.c: results as the text of a JSON object. */
#include "door.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    char *text; /* [capacity], size of them used, terminated by record_end */
    size_t size, capacity;
    bool needs_comma, is_short;
} record;

static void put(const char *text, size_t size) {
    if (record.size + size + 1 > record.capacity && !record.is_short) {
        const size_t capacity = 2 * (record.size + size) + 256;
        char *const grown = realloc(record.text, capacity);
        if (grown == NULL) {
            record.is_short = true;
            return;
        }
        record.text = grown;
        record.capacity = capacity;
    }
    if (record.is_short) return;
    memcpy(record.text + record.size, text, size);
    record.size += size;
}

static void put_string(const char *text) {
    put("\"", 1);
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;
        char escaped[8];
        if (c == '"' || c == '\\')
            snprintf(escaped, sizeof escaped, "\\%c", c);
        else if (c < 0x20)
            snprintf(escaped, sizeof escaped, "\\u%04x", c);
        else
            snprintf(escaped, sizeof escaped, "%c", c);
        put(escaped, strlen(escaped));
    }
    put("\"", 1);
}

static void begin_value(const char *key) {
    if (record.needs_comma) put(",", 1);
    record.needs_comma = true;
    if (key == NULL) return;
    put_string(key);
    put(":", 1);
}

void record_begin(void) {
    record.size = 0;
    record.needs_comma = record.is_short = false;
    put("{", 1);
}

void record_number(const char *key, double value) {
    char digits[40];
    if (isfinite(value))
        snprintf(digits, sizeof digits, "%.17g", value);
    else
        snprintf(digits, sizeof digits, "null");
    begin_value(key);
    put(digits, strlen(digits));
}

void record_digits(const char *key, uint64_t value) {
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, value);
    record_text(key, digits);
}

void record_bool(const char *key, bool value) {
    begin_value(key);
    put(value ? "true" : "false", value ? 4 : 5);
}

void record_text(const char *key, const char *text) {
    begin_value(key);
    put_string(text);
}

void record_open(const char *key, char bracket) {
    begin_value(key);
    put(&bracket, 1);
    record.needs_comma = false;
}

void record_close(char bracket) {
    put(&bracket, 1);
    record.needs_comma = true;
}

const char *record_end(void) {
    put("}", 1);
    if (record.is_short) {
        (void)door_fail(WICK_ERR_OUT_OF_MEMORY, NULL);
        return NULL;
    }
    record.text[record.size] = '\0';
    return record.text;
}
