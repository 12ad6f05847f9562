/* kinds.c: what options take: numbers, words, texts. Whole arguments only, ranges checked. */
#include "options.h"

#include <wick/model.h>

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool set_flag(const cli_option *option, const char *text, void *field, char *expected,
                     size_t size) {
    (void)option, (void)text, (void)expected, (void)size;
    *(bool *)field = true;
    return true;
}

static bool set_text(const cli_option *option, const char *text, void *field, char *expected,
                     size_t size) {
    (void)option, (void)expected, (void)size;
    *(const char **)field = text;
    return true;
}

static bool is_full(const char *text, char *expected, size_t size) {
    if (text[0] == '\0') snprintf(expected, size, "a text of at least one byte");
    return text[0] != '\0';
}

static bool set_place(const cli_option *option, const char *text, void *field, char *expected,
                      size_t size) {
    return is_full(text, expected, size) && set_text(option, text, field, expected, size);
}

static bool set_list(const cli_option *option, const char *text, void *field, char *expected,
                     size_t size) {
    (void)option;
    cli_texts *const texts = field;
    if (!is_full(text, expected, size)) return false;
    if (texts->n == CLI_MAX_TEXTS) {
        snprintf(expected, size, "accepted any more: %d is the most", (int)CLI_MAX_TEXTS);
        return false;
    }
    texts->items[texts->n++] = text;
    return true;
}

/* strtoull alone would take blanks and signs. */
static bool parse_whole(const char *text, uint64_t *value) {
    if (text[0] < '0' || text[0] > '9') return false;
    char *end = NULL;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0';
}

static bool set_u32(const cli_option *option, const char *text, void *field, char *expected,
                    size_t size) {
    uint64_t value = 0;
    if (!parse_whole(text, &value) || (double)value < option->least ||
        (double)value > option->most) {
        snprintf(expected, size, "a whole number from %.0f to %.0f", option->least, option->most);
        return false;
    }
    *(uint32_t *)field = (uint32_t)value;
    return true;
}

static bool set_limit(const cli_option *option, const char *text, void *field, char *expected,
                      size_t size) {
    const cli_option numbers = {.most = UINT32_MAX};
    (void)option;
    if (set_u32(&numbers, strcmp(text, "-1") == 0 ? "0" : text, field, expected, size)) return true;
    snprintf(expected, size, "a whole number from 0 to %" PRIu32 ", nor -1 for no limit",
             UINT32_MAX);
    return false;
}

static void show_u32(const cli_option *option, const void *field, char *text, size_t size) {
    (void)option;
    snprintf(text, size, "%" PRIu32, *(const uint32_t *)field);
}

static bool set_u64(const cli_option *option, const char *text, void *field, char *expected,
                    size_t size) {
    (void)option;
    if (parse_whole(text, field)) return true;
    snprintf(expected, size, "a whole number from 0 to %" PRIu64, UINT64_MAX);
    return false;
}

static void show_u64(const cli_option *option, const void *field, char *text, size_t size) {
    (void)option;
    snprintf(text, size, "%" PRIu64, *(const uint64_t *)field);
}

static bool set_size(const cli_option *option, const char *text, void *field, char *expected,
                     size_t size) {
    (void)option;
    static const char units[] = "KMG";
    char digits[24];
    const size_t length = strlen(text);
    const char *const unit = length > 1 ? strchr(units, text[length - 1]) : NULL;
    const size_t n_digits = unit != NULL ? length - 1 : length;
    const unsigned shift = unit != NULL ? 10 * (unsigned)(unit - units + 1) : 0;
    uint64_t value = 0;
    snprintf(digits, sizeof digits, "%.*s", (int)n_digits, text);
    if (n_digits < sizeof digits && parse_whole(digits, &value) && value > 0 &&
        value <= UINT64_MAX >> shift) {
        *(uint64_t *)field = value << shift;
        return true;
    }
    snprintf(expected, size, "a number of bytes, such as 500M or 2G");
    return false;
}

/* Decimal notation alone: no blanks, no "inf", no hexadecimal. */
static bool set_f32(const cli_option *option, const char *text, void *field, char *expected,
                    size_t size) {
    const bool is_decimal = text[0] != '\0' && strspn(text, "0123456789+-.eE") == strlen(text);
    char *end = NULL;
    const double value = is_decimal ? strtod(text, &end) : 0.0;
    if (!is_decimal || *end != '\0' || !(value >= option->least && value <= option->most)) {
        snprintf(expected, size, "a number from %g to %g", option->least, option->most);
        return false;
    }
    *(float *)field = (float)value;
    return true;
}

static void show_f32(const cli_option *option, const void *field, char *text, size_t size) {
    (void)option;
    snprintf(text, size, "%g", (double)*(const float *)field);
}

/* Word number index of "a|b|c"; its length is 0 if there are fewer words. */
static const char *word_at(const char *words, int index, size_t *length) {
    for (; index > 0; index--) {
        words += strcspn(words, "|");
        if (*words == '|') words++;
    }
    *length = strcspn(words, "|");
    return words;
}

/* "one of exact|fast", and which of them may be meant. Returns false. */
static bool expect_word(const cli_option *option, const char *text, char *expected, size_t size) {
    enum { MAX_WORDS = 16, WORDS_SIZE = 192 };
    const char *words[MAX_WORDS + 1] = {NULL};
    char copy[WORDS_SIZE];
    size_t n = 0;
    snprintf(copy, sizeof copy, "%s", option->argument);
    for (char *at = copy; at != NULL && n < MAX_WORDS;) {
        char *const bar = strchr(at, '|');
        if (bar != NULL) *bar = '\0';
        words[n++] = at;
        at = bar != NULL ? bar + 1 : NULL;
    }
    const char *const nearest = cli_nearest(text, words);
    snprintf(expected, size, "one of %s%s%s%s", option->argument,
             nearest != NULL ? ", did you mean '" : "", nearest != NULL ? nearest : "",
             nearest != NULL ? "'?" : "");
    return false;
}

static bool set_word(const cli_option *option, const char *text, void *field, char *expected,
                     size_t size) {
    size_t length = 0;
    for (int i = 0;; i++) {
        const char *const word = word_at(option->argument, i, &length);
        if (length == 0) break;
        if (strlen(text) == length && memcmp(text, word, length) == 0) {
            *(int *)field = i;
            return true;
        }
    }
    return expect_word(option, text, expected, size);
}

static void show_word(const cli_option *option, const void *field, char *text, size_t size) {
    size_t length = 0;
    const char *const word = word_at(option->argument, *(const int *)field, &length);
    snprintf(text, size, "%.*s", (int)length, word);
}

static bool set_backend(const cli_option *option, const char *text, void *field, char *expected,
                        size_t size) {
    if (wick_backend_from_name(text, field)) return true;
    return expect_word(option, text, expected, size);
}

static void show_backend(const cli_option *option, const void *field, char *text, size_t size) {
    (void)option;
    snprintf(text, size, "%s", wick_backend_name(*(const wick_backend *)field));
}

static bool set_layers(const cli_option *option, const char *text, void *field, char *expected,
                       size_t size) {
    (void)option;
    uint64_t value = INT32_MAX;
    if (strcmp(text, "auto") == 0) {
        *(int32_t *)field = 0;
        return true;
    }
    if (strcmp(text, "all") == 0 || (parse_whole(text, &value) && value <= INT32_MAX)) {
        *(int32_t *)field = value > 0 ? (int32_t)value : WICK_NO_LAYERS;
        return true;
    }
    snprintf(expected, size, "auto, all or a number of layers");
    return false;
}

static void show_layers(const cli_option *option, const void *field, char *text, size_t size) {
    (void)option, (void)field;
    snprintf(text, size, "auto"); /* no command has another default */
}

const cli_kind cli_flag = {.set = set_flag};
const cli_kind cli_text = {.set = set_text};
const cli_kind cli_place = {.set = set_place};
const cli_kind cli_model = {.set = set_text};
const cli_kind cli_in = {.set = set_text};
const cli_kind cli_out = {.set = set_text};
const cli_kind cli_list = {.set = set_list};
const cli_kind cli_lora = {.set = set_list};
const cli_kind cli_u32 = {.set = set_u32, .show = show_u32};
const cli_kind cli_limit = {.set = set_limit, .show = show_u32};
const cli_kind cli_u64 = {.set = set_u64, .show = show_u64};
const cli_kind cli_size = {.set = set_size};
const cli_kind cli_f32 = {.set = set_f32, .show = show_f32};
const cli_kind cli_word = {.set = set_word, .show = show_word};
const cli_kind cli_backend = {.set = set_backend, .show = show_backend};
const cli_kind cli_layers = {.set = set_layers, .show = show_layers};
