/* core/json_write.c: see json_write.h. */
#include "core/json_write.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Before a value or a key: the last byte says whether one stands there already. */
static void separate(wk_strbuf *to) {
    const char last = to->size > 0 ? to->data[to->size - 1] : '\n';
    if (!strchr("{[: \n", last)) wk_strbuf_text(to, ",");
}

void wk_write_open(wk_strbuf *to, char bracket) {
    separate(to);
    wk_strbuf_append(to, &bracket, 1);
}

void wk_write_close(wk_strbuf *to, char bracket) { wk_strbuf_append(to, &bracket, 1); }

static void put_character(wk_strbuf *to, const char *text, size_t n) {
    static const char bytes[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const unsigned char first = (unsigned char)text[0];
    const char *const at = memchr(bytes, first, sizeof bytes - 1);
    if (at)
        wk_strbuf_append(to, (const char[]){'\\', letters[at - bytes]}, 2);
    else if (first < 0x20 || first == 0x7F)
        wk_strbuf_format(to, "\\u%04x", first);
    else
        wk_strbuf_append(to, text, n);
}

static void put_text(wk_strbuf *to, wk_str text) {
    wk_strbuf_text(to, "\"");
    for (size_t i = 0; i < text.size;) {
        size_t bad = 0;
        const size_t n = wk_utf8_size(text.text + i, text.size - i, &bad);
        if (n > 0)
            put_character(to, text.text + i, n);
        else
            wk_strbuf_text(to, "\xEF\xBF\xBD");
        i += n > 0 ? n : bad;
    }
    wk_strbuf_text(to, "\"");
}

void wk_write_key_of(wk_strbuf *to, wk_str key) {
    separate(to);
    put_text(to, key);
    wk_strbuf_text(to, ":");
}

void wk_write_key(wk_strbuf *to, const char *key) { wk_write_key_of(to, wk_str_of(key)); }

void wk_write_string(wk_strbuf *to, wk_str text) {
    separate(to);
    put_text(to, text);
}

void wk_write_whole(wk_strbuf *to, uint64_t value) {
    separate(to);
    wk_strbuf_format(to, "%" PRIu64, value);
}

void wk_write_integer(wk_strbuf *to, int64_t value) {
    separate(to);
    wk_strbuf_format(to, "%" PRId64, value);
}

static void put_number(wk_strbuf *to, double value, int digits) {
    separate(to);
    if (isfinite(value))
        wk_strbuf_number(to, value, digits);
    else
        wk_strbuf_text(to, "null");
}

void wk_write_number(wk_strbuf *to, double value) { put_number(to, value, 9); }

void wk_write_double(wk_strbuf *to, double value) { put_number(to, value, 17); }

void wk_write_raw(wk_strbuf *to, const char *json) {
    separate(to);
    wk_strbuf_text(to, json);
}

void wk_write_bool(wk_strbuf *to, bool value) {
    separate(to);
    wk_strbuf_text(to, value ? "true" : "false");
}

void wk_write_null(wk_strbuf *to) {
    separate(to);
    wk_strbuf_text(to, "null");
}

static void put_read_number(wk_strbuf *to, const wk_json *value) {
    if (value->is_integer) {
        wk_write_integer(to, value->integer);
        return;
    }
    separate(to);
    if (value->string.size > 0)
        wk_strbuf_append(to, value->string.text, value->string.size);
    else
        wk_strbuf_text(to, "null");
}

static void put_items(wk_strbuf *to, const wk_json *value) {
    const bool is_object = value->kind == WK_JSON_OBJECT;
    wk_write_open(to, is_object ? '{' : '[');
    for (const wk_json *item = value->child; item; item = item->next) {
        if (is_object) wk_write_key_of(to, item->key);
        wk_write_value(to, item);
    }
    wk_write_close(to, is_object ? '}' : ']');
}

void wk_write_value(wk_strbuf *to, const wk_json *value) {
    switch (value ? value->kind : WK_JSON_NULL) {
    case WK_JSON_NULL: wk_write_null(to); break;
    case WK_JSON_BOOL: wk_write_bool(to, value->boolean); break;
    case WK_JSON_NUMBER: put_read_number(to, value); break;
    case WK_JSON_STRING: wk_write_string(to, value->string); break;
    case WK_JSON_ARRAY:
    case WK_JSON_OBJECT: put_items(to, value); break;
    }
}

void wk_write_text_of(wk_strbuf *to, const wk_json *value) {
    if (value && value->kind == WK_JSON_STRING) wk_write_string(to, value->string);
}

void wk_write_put(wk_strbuf *to, const char *key, const char *text) {
    if (text) {
        wk_write_put_string(to, key, wk_str_of(text));
    } else {
        wk_write_key(to, key);
        wk_write_null(to);
    }
}

void wk_write_put_string(wk_strbuf *to, const char *key, wk_str text) {
    wk_write_key(to, key);
    wk_write_string(to, text);
}

void wk_write_put_whole(wk_strbuf *to, const char *key, uint64_t value) {
    wk_write_key(to, key);
    wk_write_whole(to, value);
}

void wk_write_put_value(wk_strbuf *to, const char *key, const wk_json *value) {
    if (!value || value->kind == WK_JSON_NULL) return;
    wk_write_key(to, key);
    wk_write_value(to, value);
}

bool wk_write_keep(wk_strbuf *from, wk_arena *arena, wk_str *out) {
    char *const copy = from->failed ? NULL : wk_arena_alloc(arena, from->size + 1);
    *out = (wk_str){copy, copy ? from->size : 0};
    if (copy && from->size > 0) memcpy(copy, from->data, from->size);
    if (copy) copy[from->size] = '\0';
    wk_strbuf_release(from);
    return copy != NULL;
}
