/* core/json_write.h: JSON (RFC 8259) written to the end of a buffer, on one line. Commas come by
 * themselves: a value or a key that follows one gets one. */
#ifndef WK_CORE_JSON_WRITE_H
#define WK_CORE_JSON_WRITE_H

#include "core/json.h"

void wk_write_open(wk_strbuf *to, char bracket); /* '{' or '[' */
void wk_write_close(wk_strbuf *to, char bracket);
/* Bytes of texts that are not UTF-8 become U+FFFD. */
void wk_write_key(wk_strbuf *to, const char *key);
void wk_write_key_of(wk_strbuf *to, wk_str key);
void wk_write_string(wk_strbuf *to, wk_str text);
void wk_write_whole(wk_strbuf *to, uint64_t value);
void wk_write_integer(wk_strbuf *to, int64_t value);
/* null for what JSON has no number for. To 9 digits, which tell any two floats apart, and to 17,
 * which tell doubles apart. */
void wk_write_number(wk_strbuf *to, double value);
void wk_write_double(wk_strbuf *to, double value);
/* Writes text that is already JSON, or the beginning of it, unchanged. */
void wk_write_raw(wk_strbuf *to, const char *json);
void wk_write_bool(wk_strbuf *to, bool value);
void wk_write_null(wk_strbuf *to);
/* What was read or made, with all that it holds; NULL: null. */
void wk_write_value(wk_strbuf *to, const wk_json *value);
/* The same of a text; writes nothing if it is NULL or not a text. */
void wk_write_text_of(wk_strbuf *to, const wk_json *value);
/* A key with its value; text NULL: null. */
void wk_write_put(wk_strbuf *to, const char *key, const char *text);
void wk_write_put_string(wk_strbuf *to, const char *key, wk_str text);
/* The same of a value; writes nothing if it is NULL or JSON null. */
void wk_write_put_value(wk_strbuf *to, const char *key, const wk_json *value);
void wk_write_put_whole(wk_strbuf *to, const char *key, uint64_t value);
/* What was written moves to the arena, terminated; the buffer is released. False: memory was short,
 * now or before. */
bool wk_write_keep(wk_strbuf *from, wk_arena *arena, wk_str *out);

#endif
