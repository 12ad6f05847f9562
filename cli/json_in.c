/* json_in.c: a text is checked once, and from then on only walked through: an item is found by
 * skipping those before it, which answers of some kilobytes are small enough for. */
#include "json_in.h"

#include <string.h>

enum { MAX_DEPTH = 64 };

static bool is_one_of(char c, const char *set) { return c != '\0' && strchr(set, c) != NULL; }

static const char *skip_blanks(const char *at, const char *end) {
    while (at < end && is_one_of(*at, " \t\r\n")) at++;
    return at;
}

static const char *skip_digits(const char *at, const char *end) {
    while (at < end && *at >= '0' && *at <= '9') at++;
    return at;
}

/* The functions below return what follows a value, NULL where there is none. */

static const char *skip_word(const char *at, const char *end, const char *word) {
    const size_t size = strlen(word);
    return (size_t)(end - at) >= size && memcmp(at, word, size) == 0 ? at + size : NULL;
}

static const char *skip_number(const char *at, const char *end) {
    if (at < end && *at == '-') at++;
    const char *const digits = at;
    at = skip_digits(at, end);
    if (at == digits || (*digits == '0' && at > digits + 1)) return NULL;
    if (at < end && *at == '.') {
        const char *const fraction = ++at;
        at = skip_digits(at, end);
        if (at == fraction) return NULL;
    }
    if (at < end && is_one_of(*at, "eE")) {
        at++;
        if (at < end && is_one_of(*at, "+-")) at++;
        const char *const exponent = at;
        at = skip_digits(at, end);
        if (at == exponent) return NULL;
    }
    return at;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static const char *skip_string(const char *at, const char *end) {
    for (at++; at < end && *at != '"'; at++) {
        if ((unsigned char)*at < 0x20) return NULL;
        if (*at != '\\') continue;
        if (++at == end) return NULL;
        if (*at == 'u') {
            if (end - at < 5) return NULL;
            for (int i = 0; i < 4; i++)
                if (hex_digit(*++at) < 0) return NULL;
        } else if (!is_one_of(*at, "\"\\/bfnrt")) {
            return NULL;
        }
    }
    return at < end ? at + 1 : NULL;
}

static const char *skip_value(const char *at, const char *end, int depth);

/* The items of an array or the members of an object. */
static const char *skip_items(const char *at, const char *end, int depth) {
    const bool is_object = *at == '{';
    const char closing = is_object ? '}' : ']';
    at = skip_blanks(at + 1, end);
    if (at < end && *at == closing) return at + 1;
    while (at != NULL && at < end) {
        if (is_object) {
            at = *at == '"' ? skip_string(at, end) : NULL;
            if (at != NULL) at = skip_blanks(at, end);
            if (at == NULL || at == end || *at != ':') return NULL;
            at = skip_blanks(at + 1, end);
        }
        at = skip_value(at, end, depth + 1);
        if (at == NULL) return NULL;
        at = skip_blanks(at, end);
        if (at < end && *at == closing) return at + 1;
        if (at == end || *at != ',') return NULL;
        at = skip_blanks(at + 1, end);
    }
    return NULL;
}

static const char *skip_value(const char *at, const char *end, int depth) {
    if (at == end || depth > MAX_DEPTH) return NULL;
    switch (*at) {
    case '{':
    case '[': return skip_items(at, end, depth);
    case '"': return skip_string(at, end);
    case 't': return skip_word(at, end, "true");
    case 'f': return skip_word(at, end, "false");
    case 'n': return skip_word(at, end, "null");
    default: return skip_number(at, end);
    }
}

bool cli_json_parse(const char *text, size_t size, cli_json_value *value) {
    const char *const end = text + size, *const begin = skip_blanks(text, end);
    const char *const rest = skip_value(begin, end, 0);
    const bool is_json = rest != NULL && skip_blanks(rest, end) == end;
    *value = is_json ? (cli_json_value){begin, end} : (cli_json_value){0};
    return is_json;
}

static bool begins_with(cli_json_value value, char c) { return value.at != NULL && *value.at == c; }

cli_json_value cli_json_first(cli_json_value array) {
    if (!begins_with(array, '[')) return (cli_json_value){0};
    const char *const at = skip_blanks(array.at + 1, array.end);
    return *at != ']' ? (cli_json_value){at, array.end} : (cli_json_value){0};
}

cli_json_value cli_json_next(cli_json_value item) {
    if (item.at == NULL) return item;
    const char *const at = skip_blanks(skip_value(item.at, item.end, 0), item.end);
    if (*at != ',') return (cli_json_value){0};
    return (cli_json_value){skip_blanks(at + 1, item.end), item.end};
}

cli_json_value cli_json_member(cli_json_value object, const char *key) {
    if (!begins_with(object, '{')) return (cli_json_value){0};
    const size_t size = strlen(key);
    const char *at = skip_blanks(object.at + 1, object.end);
    while (*at == '"') {
        const char *const name = at + 1;
        at = skip_string(at, object.end);
        const bool is_it = (size_t)(at - 1 - name) == size && memcmp(name, key, size) == 0;
        at = skip_blanks(skip_blanks(at, object.end) + 1, object.end); /* past the colon */
        const cli_json_value value = {at, object.end};
        if (is_it) return value;
        at = skip_blanks(skip_value(at, object.end, 0), object.end);
        at = skip_blanks(at + 1, object.end); /* past the comma, or the end of the object */
        if (at == object.end) break;
    }
    return (cli_json_value){0};
}

/* Code point of \uXXXX, or of two of them that are surrogates; at stands behind the u. */
static uint32_t read_code(const char **at) {
    uint32_t code = 0;
    for (int i = 0; i < 4; i++) code = code << 4 | (uint32_t)hex_digit(*(*at)++);
    const bool is_high = code >= 0xD800 && code < 0xDC00;
    if (!is_high || (*at)[0] != '\\' || (*at)[1] != 'u') return code;
    const char *behind = *at + 2;
    uint32_t low = 0;
    for (int i = 0; i < 4; i++) low = low << 4 | (uint32_t)hex_digit(*behind++);
    if (low < 0xDC00 || low >= 0xE000) return code;
    *at = behind;
    return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
}

/* Returns the bytes written; 0: a zero byte or a lone surrogate. */
static size_t put_code(uint32_t code, char out[4]) {
    if (code == 0 || (code >= 0xD800 && code < 0xE000)) return 0;
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    const size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = n - 1; i > 0; i--, code >>= 6) out[i] = (char)(0x80 | (code & 0x3F));
    out[0] = (char)(leads[n] | code);
    return n;
}

bool cli_json_get_text(cli_json_value value, char *text, size_t size) {
    static const char escapes[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    text[0] = '\0';
    if (!begins_with(value, '"')) return false;
    size_t used = 0;
    for (const char *at = value.at + 1; *at != '"';) {
        char bytes[4] = {*at};
        size_t n = 1;
        if (*at++ == '\\') {
            const char escape = *at++;
            if (escape == 'u')
                n = put_code(read_code(&at), bytes);
            else
                bytes[0] = meanings[strchr(escapes, escape) - escapes];
        }
        if (n == 0 || used + n >= size) {
            text[0] = '\0';
            return false;
        }
        memcpy(text + used, bytes, n);
        used += n;
    }
    text[used] = '\0';
    return true;
}

bool cli_json_get_whole(cli_json_value value, uint64_t *number) {
    *number = 0;
    if (value.at == NULL) return false;
    const char *const rest = skip_digits(value.at, value.end);
    if (rest == value.at || (rest < value.end && is_one_of(*rest, ".eE"))) return false;
    for (const char *at = value.at; at < rest; at++) {
        const unsigned digit = (unsigned)(*at - '0');
        if (*number > (UINT64_MAX - digit) / 10) return false;
        *number = 10 * *number + digit;
    }
    return true;
}
