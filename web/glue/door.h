/* web/glue/door.h: what the doors share: functions that the module exports to JavaScript
 * (web/src/module.ts), flat, over the public C API.
 *
 * A door that can fail returns a wick_status, or a pointer that is then NULL, and leaves the
 * failure in door_error. Options come as the text of a JSON object, results that are more than a
 * number go as such. */
#ifndef WICK_WEB_DOOR_H
#define WICK_WEB_DOOR_H

#include <wick/wick.h>

#define DOOR(result, name, ...)                                                                    \
    __attribute__((export_name(#name))) result wick_door_##name(__VA_ARGS__);                      \
    result wick_door_##name(__VA_ARGS__)

#define HOST(name) __attribute__((import_module("wick"), import_name(name)))

extern wick_error door_error; /* of the last call that failed */
/* The same, without what a call before left: the library keeps the first failure that it finds. */
wick_error *door_new_error(void);

/* Takes what device (may be NULL) says of a failed call. Returns status. */
int door_fail(wick_status status, wick_device *device);
/* Returns status; the sentence says of what. */
__attribute__((format(printf, 2, 3))) wick_status door_refuse(wick_status status,
                                                              const char *format, ...);

/* --- Options: options.c --- */

typedef enum option_kind {
    OPTION_BOOL,
    OPTION_INT,    /* int32_t or an enum */
    OPTION_UINT,   /* uint32_t */
    OPTION_UINT64, /* up to 2^53, as a number or as decimal digits in a text */
    OPTION_FLOAT,
    OPTION_DOUBLE,
    OPTION_TEXT,   /* const char *, of the document */
    OPTION_TEXTS,  /* const char *const *, after it the size_t of their number: options_free */
    OPTION_CHOICE, /* an enum: one of names, which are separated by spaces, from 0 on */
    OPTION_OTHER,  /* read by other code */
} option_kind;

typedef struct option_field {
    const char *key;
    option_kind kind;
    size_t offset; /* of the field in its struct */
    const char *names;
} option_field;

/* The object in text (NULL: none, all defaults); WICK_ERR_FORMAT. Free the document after use. */
wick_status options_parse(const char *text, wick_json_document **document);
/* Sets the fields of a struct from an object's members. WICK_ERR_VALUE: a member that is none of
 * them, or is of another kind. */
wick_status options_read(const wick_json *object, const option_field *fields, size_t n, void *out);
void options_free(const option_field *fields, size_t n, void *out);

/* --- Results: record.c --- */

/* The text of one JSON object, started again by each begin; keys are names of TypeScript. */
void record_begin(void);
void record_number(const char *key, double value); /* what is not finite becomes null */
/* As a text of digits: JavaScript's numbers hold 53 bits. */
void record_digits(const char *key, uint64_t value);
void record_bool(const char *key, bool value);
void record_text(const char *key, const char *text);
/* A list or object under key; NULL: an item of a list. */
void record_open(const char *key, char bracket);
void record_close(char bracket);
/* NULL: memory was short, as door_error says. Until the next begin. */
const char *record_end(void);

#endif
