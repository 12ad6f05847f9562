/* core/json.h: JSON (RFC 8259) read into an arena. */
#ifndef WK_CORE_JSON_H
#define WK_CORE_JSON_H

#include "core/arena.h"
#include "core/status.h"
#include "core/str.h"

typedef enum wk_json_kind {
    WK_JSON_NULL,
    WK_JSON_BOOL,
    WK_JSON_NUMBER,
    WK_JSON_STRING,
    WK_JSON_ARRAY,
    WK_JSON_OBJECT,
} wk_json_kind;

/* Items of an array or object are a list: child, then next up to last. Members carry their key; a
 * key that occurs twice is kept twice, wk_json_get finds the last one. */
typedef struct wk_json wk_json;
struct wk_json {
    wk_json_kind kind;
    bool boolean;
    bool is_integer; /* a number without fraction and exponent that fits int64_t */
    bool is_read;    /* false; who reads the tree may note what was used */
    int64_t integer;
    double number;
    wk_str string; /* decoded, UTF-8; of a number: its bytes, unless is_integer, NaN or Infinity */
    wk_str key;
    size_t count; /* items of an array or object */
    wk_json *child, *last, *next;
};

/* Parses one value that fills the text (white space around it allowed, and a byte order mark before
 * it, RFC 8259, 8.1). Nesting deeper than 128, bad UTF-8, bad escapes and trailing text are
 * WICK_ERR_FORMAT with the byte offset. A lone surrogate becomes U+FFFD. Also accepts NaN, Infinity
 * and -Infinity, which Python's json writes. */
wick_status wk_json_parse(wk_arena *arena, const char *text, size_t size, wk_json **out,
                          wick_error *err);

/* Appends item to a list that is being made. */
void wk_json_append(wk_json *list, wk_json *item);
/* Takes one of its items out. */
void wk_json_drop(wk_json *list, const wk_json *item);
/* A copy of text in the arena, terminated, as the strings of values are. False: memory is short. */
bool wk_json_copy_text(wk_arena *arena, wk_str text, wk_str *out);
/* A value with all that it holds, but without its place in a list. False: memory is short. */
bool wk_json_copy(wk_arena *arena, const wk_json *from, wk_json *to);
/* NULL when object is NULL, no object, or has no such key. */
const wk_json *wk_json_get(const wk_json *object, const char *key);
/* The same in a tree that may be changed. */
wk_json *wk_json_find(wk_json *object, const char *key);
/* Whether value is this text; false for NULL. */
bool wk_json_is(const wk_json *value, const char *text);

#endif
