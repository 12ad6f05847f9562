/* wick/json.h: JSON (RFC 8259) read into memory; NaN and Infinity, which Python writes, as well. */
#ifndef WICK_JSON_H
#define WICK_JSON_H

#include <wick/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A value of a document; lives as long as it. */
typedef struct wk_json wick_json;
typedef struct wick_json_document wick_json_document;

typedef enum wick_json_kind {
    WICK_JSON_NULL, /* also of a value that is not there */
    WICK_JSON_BOOL,
    WICK_JSON_NUMBER,
    WICK_JSON_STRING,
    WICK_JSON_ARRAY,
    WICK_JSON_OBJECT,
} wick_json_kind;

/* The text is copied. WICK_ERR_FORMAT with the byte offset; also nesting deeper than 128. */
WICK_API wick_status wick_json_parse(const char *text, size_t size, wick_json_document **out,
                                     wick_error *error);
WICK_API void wick_json_free(wick_json_document *document);
WICK_API const wick_json *wick_json_root(const wick_json_document *document);

/* All of these take NULL for a value that is not there. */
WICK_API wick_json_kind wick_json_kind_of(const wick_json *value);
/* The member of an object; where a key occurs twice, the last one. NULL: none. */
WICK_API const wick_json *wick_json_get(const wick_json *object, const char *key);
/* The items of an array or the members of an object, in order; NULL at the end. */
WICK_API const wick_json *wick_json_first(const wick_json *list);
WICK_API const wick_json *wick_json_next(const wick_json *item);
/* Of a string, or the key of a member: UTF-8, terminated; it may hold zero bytes. NULL: neither. */
WICK_API const char *wick_json_text(const wick_json *value, size_t *size);
WICK_API const char *wick_json_key(const wick_json *member, size_t *size);
/* Any number; a whole number from 0 on. False: it is none. */
WICK_API bool wick_json_get_number(const wick_json *value, double *number);
WICK_API bool wick_json_get_whole(const wick_json *value, uint64_t *number);
/* true alone is true. */
WICK_API bool wick_json_is_true(const wick_json *value);

#ifdef __cplusplus
}
#endif

#endif
