/* source/split.c: names and keys of split files. */
#include "source/split.h"

#include <inttypes.h>
#include <string.h>

bool wk_split_is_key(wick_string key) {
    const wk_str name = {key.text, key.size};
    return wk_str_is(name, WK_SPLIT_NO) || wk_str_is(name, WK_SPLIT_COUNT) ||
           wk_str_is(name, WK_SPLIT_TENSORS);
}

enum { N_DIGITS = 5 };
static const char SUFFIX_SHAPE[] = "-00000-of-00000.gguf"; /* 0: any digit */
enum { SUFFIX_SIZE = sizeof SUFFIX_SHAPE - 1, COUNT_AT = 1 + N_DIGITS + 4 };

static uint32_t digits_at(const char *text) {
    uint32_t value = 0;
    for (int i = 0; i < N_DIGITS; i++) value = 10 * value + (uint32_t)(text[i] - '0');
    return value;
}

bool wk_split_parse_name(const char *path, size_t *stem, uint32_t *part, uint32_t *n_parts) {
    const size_t size = strlen(path);
    if (size < SUFFIX_SIZE) return false;
    const char *const suffix = path + size - SUFFIX_SIZE;
    for (size_t i = 0; i < SUFFIX_SIZE; i++) {
        const bool fits = SUFFIX_SHAPE[i] == '0' ? suffix[i] >= '0' && suffix[i] <= '9'
                                                 : suffix[i] == SUFFIX_SHAPE[i];
        if (!fits) return false;
    }
    *stem = size - SUFFIX_SIZE;
    *part = digits_at(suffix + 1);
    *n_parts = digits_at(suffix + COUNT_AT);
    return *part >= 1 && *part <= *n_parts;
}

void wk_split_name(wk_strbuf *name, wk_str stem, uint32_t part, uint32_t n_parts) {
    wk_strbuf_append(name, stem.text, stem.size);
    wk_strbuf_format(name, "-%05" PRIu32 "-of-%05" PRIu32 ".gguf", part, n_parts);
}

bool wk_split_number(const wk_gguf *gguf, const char *key, uint64_t *number) {
    const wick_value *const value = wk_gguf_find(gguf, key);
    if (value == NULL) return false;
    switch (value->type) {
    case WICK_VALUE_U8:
    case WICK_VALUE_U16:
    case WICK_VALUE_U32:
    case WICK_VALUE_U64: *number = value->u; return true;
    case WICK_VALUE_I8:
    case WICK_VALUE_I16:
    case WICK_VALUE_I32:
    case WICK_VALUE_I64: *number = (uint64_t)value->i; return value->i >= 0;
    default: return false;
    }
}

wick_status wk_split_check_whole(const wk_gguf *gguf, wick_error *err) {
    uint64_t no = 0, count = 0;
    if (!wk_split_number(gguf, WK_SPLIT_COUNT, &count) || count < 2) return WICK_OK;
    (void)wk_split_number(gguf, WK_SPLIT_NO, &no);
    return wk_fail(err, WICK_ERR_NOT_FOUND,
                   "this is part %" PRIu64 " of %" PRIu64 " of a model: all parts are needed, side "
                   "by side with names that end in -00001-of-%05" PRIu64 ".gguf and so on",
                   no + 1, count, count);
}
