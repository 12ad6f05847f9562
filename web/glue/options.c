/* web/glue/options.c: options that JavaScript gives as the text of a JSON object.
 * web/src/options.ts tells callers what is wrong with them; nothing is relied on here. */
#include "door.h"

#include <stdlib.h>
#include <string.h>

wick_status options_parse(const char *text, wick_json_document **document) {
    if (text == NULL) text = "{}";
    return wick_json_parse(text, strlen(text), document, door_new_error());
}

static bool read_text(const wick_json *value, const char **out) {
    size_t size = 0;
    *out = wick_json_text(value, &size);
    return *out != NULL && strlen(*out) == size;
}

static bool read_texts(const wick_json *value, void *out) {
    if (wick_json_kind_of(value) != WICK_JSON_ARRAY) return false;
    size_t n = 0;
    for (const wick_json *item = wick_json_first(value); item != NULL; item = wick_json_next(item))
        n++;
    const char **texts = malloc((n > 0 ? n : 1) * sizeof *texts);
    if (texts == NULL) return false;
    memcpy(out, &texts, sizeof(void *));
    memcpy((char *)out + sizeof(void *), &n, sizeof n);
    for (const wick_json *item = wick_json_first(value); item != NULL; item = wick_json_next(item))
        if (!read_text(item, texts++)) return false;
    return true;
}

static bool read_whole(const wick_json *value, uint64_t *out) {
    const char *digits;
    if (wick_json_get_whole(value, out)) return true;
    if (!read_text(value, &digits) || *digits == '\0') return false;
    for (*out = 0; *digits >= '0' && *digits <= '9'; digits++) {
        const uint64_t digit = (uint64_t)(*digits - '0');
        if (*out > (UINT64_MAX - digit) / 10) return false;
        *out = *out * 10 + digit;
    }
    return *digits == '\0';
}

static bool read_integer(const wick_json *value, double least, double most, double *out) {
    return wick_json_get_number(value, out) && *out >= least && *out <= most &&
           *out == (double)(int64_t)*out;
}

static bool read_choice(const wick_json *value, const char *names, int32_t *out) {
    const char *text;
    if (!read_text(value, &text)) return false;
    for (*out = 0; *names != '\0'; ++*out) {
        const size_t size = strcspn(names, " ");
        if (strlen(text) == size && memcmp(text, names, size) == 0) return true;
        names += size;
        names += *names == ' ';
    }
    return false;
}

/* False: the value is of another kind. */
static bool read_field(const wick_json *value, const option_field *field, void *out) {
    double number = 0;
    switch (field->kind) {
    case OPTION_BOOL:
        *(bool *)out = wick_json_is_true(value);
        return wick_json_kind_of(value) == WICK_JSON_BOOL;
    case OPTION_INT:
        if (!read_integer(value, INT32_MIN, INT32_MAX, &number)) return false;
        *(int32_t *)out = (int32_t)number;
        return true;
    case OPTION_UINT:
        if (!read_integer(value, 0, UINT32_MAX, &number)) return false;
        *(uint32_t *)out = (uint32_t)number;
        return true;
    case OPTION_UINT64: return read_whole(value, out);
    case OPTION_FLOAT:
        if (!wick_json_get_number(value, &number)) return false;
        *(float *)out = (float)number;
        return true;
    case OPTION_DOUBLE: return wick_json_get_number(value, out);
    case OPTION_TEXT: return read_text(value, out);
    case OPTION_TEXTS: return read_texts(value, out);
    case OPTION_CHOICE: return read_choice(value, field->names, out);
    case OPTION_OTHER: return true;
    }
    return false;
}

wick_status options_read(const wick_json *object, const option_field *fields, size_t n, void *out) {
    for (const wick_json *m = wick_json_first(object); m != NULL; m = wick_json_next(m)) {
        const char *const key = wick_json_key(m, NULL);
        size_t i = 0;
        while (i < n && (key == NULL || strcmp(fields[i].key, key) != 0)) i++;
        if (i < n && wick_json_kind_of(m) == WICK_JSON_NULL) continue;
        if (i == n || !read_field(m, &fields[i], (char *)out + fields[i].offset))
            return door_refuse(WICK_ERR_VALUE, "the option '%s' cannot be read",
                               key != NULL ? key : "");
    }
    return WICK_OK;
}

void options_free(const option_field *fields, size_t n, void *out) {
    for (size_t i = 0; i < n; i++) {
        if (fields[i].kind != OPTION_TEXTS) continue;
        void *texts;
        memcpy(&texts, (char *)out + fields[i].offset, sizeof texts);
        free(texts);
    }
}
