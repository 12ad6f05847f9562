/* names.c: see names.h. */
#define _POSIX_C_SOURCE 200809L

#include "names.h"

#include "cli.h"
#include "text_out.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

bool cli_path_join(const char *base, const char *end, cli_path *path) {
    const int length = snprintf(path->text, sizeof path->text, "%s%s", base, end);
    if (length >= 0 && (size_t)length < sizeof path->text) return true;
    cli_error("the path '%.80s...' is too long", base);
    return false;
}

/* ---- Parts ---- */

static const char GGUF[] = ".gguf";
enum { GGUF_SIZE = sizeof GGUF - 1, DIGITS = 5, PART_SIZE = sizeof "-00001-of-00003" - 1 };

/* Five digits, as the writers of split files have them. */
static bool parse_number(const char *text, uint32_t *number) {
    *number = 0;
    for (size_t i = 0; i < DIGITS; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        *number = 10 * *number + (uint32_t)(text[i] - '0');
    }
    return true;
}

bool cli_part_parse(const char *name, cli_part *part) {
    const size_t size = strlen(name);
    if (size <= GGUF_SIZE || strcasecmp(name + size - GGUF_SIZE, GGUF) != 0) return false;
    *part = (cli_part){1, 1, size - GGUF_SIZE};
    if (part->stem <= PART_SIZE) return true;
    const char *const at = name + part->stem - PART_SIZE;
    uint32_t index = 0, count = 0;
    const bool is_part = at[0] == '-' && parse_number(at + 1, &index) &&
                         memcmp(at + 1 + DIGITS, "-of-", 4) == 0 &&
                         parse_number(at + 5 + DIGITS, &count);
    if (is_part && index >= 1 && index <= count)
        *part = (cli_part){index, count, part->stem - PART_SIZE};
    return true;
}

void cli_part_name(const char *name, const cli_part *part, uint32_t index, cli_path *out) {
    snprintf(out->text, sizeof out->text, "%s", name);
    if (part->count == 1 || part->stem + PART_SIZE >= sizeof out->text) return;
    char digits[16];
    snprintf(digits, sizeof digits, "%05" PRIu32, index);
    memcpy(out->text + part->stem + 1, digits, DIGITS);
}

/* ---- What a name may be, and says ---- */

/* A control character or a backslash. */
static bool is_odd(const char *at) {
    const size_t n = cli_utf8_size(at, at[1] != '\0' ? 2 : 1);
    return at[0] == '\\' || cli_is_control(at, n);
}

bool cli_is_safe_name(const char *name) {
    for (const char *at = name;; at++) {
        const size_t size = strcspn(at, "/");
        if (size == 0 || size > 240 || at[0] == '.') return false;
        for (; *at != '/' && *at != '\0'; at++)
            if (is_odd(at)) return false;
        if (*at == '\0') return true;
    }
}

const char *cli_find_word(const char *text, const char *word) {
    const size_t size = strlen(word);
    for (; *text != '\0'; text++)
        if (strncasecmp(text, word, size) == 0) return text;
    return NULL;
}

bool cli_has_type(const char *name, const char *type) {
    for (const char *at = name; (at = cli_find_word(at, type)) != NULL; at++) {
        const char before = at > name ? at[-1] : '/', after = at[strlen(type)];
        if (!isalnum((unsigned char)before) && !isalnum((unsigned char)after) && after != '_')
            return true;
    }
    return false;
}

/* ---- Addresses ---- */

bool cli_hub_from_url(const char *mirror, const char *url, cli_path *given) {
    static const char *const ways[] = {"/resolve/main/", "/blob/main/"};
    const char *const bases[] = {"https://huggingface.co/", mirror};
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++) {
        const size_t size = bases[i] != NULL ? strlen(bases[i]) : 0;
        if (size == 0 || strncasecmp(url, bases[i], size) != 0) continue;
        if (bases[i][size - 1] != '/' && url[size] != '/') continue; /* a longer host */
        const char *const name = url + size + strspn(url + size, "/");
        for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
            const char *const way = strstr(name, ways[k]);
            const char *const file = way != NULL ? way + strlen(ways[k]) : "";
            if (file[0] == '\0' || strchr(file, '%') != NULL) continue;
            const int length = snprintf(given->text, sizeof given->text, "hf:%.*s:%.*s",
                                        (int)(way - name), name, (int)strcspn(file, "?#"), file);
            if (length > 0 && (size_t)length < sizeof given->text) return true;
        }
    }
    return false;
}
