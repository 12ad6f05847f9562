/* names.h: paths, and the names of models' files. */
#ifndef WICK_CLI_NAMES_H
#define WICK_CLI_NAMES_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

enum { CLI_PATH_BYTES = 4096 };

typedef struct cli_path {
    char text[CLI_PATH_BYTES];
} cli_path;

/* Joins base and end. False: the path is too long, which is reported. */
bool cli_path_join(const char *base, const char *end, cli_path *path);

/* The parts of NAME-00002-of-00003.gguf are one model. */
typedef struct cli_part {
    uint32_t index, count; /* from 1; 1 of 1: not in parts */
    size_t stem;           /* bytes of the name before "-00002-of-00003.gguf" or ".gguf" */
} cli_part;
/* False: the name does not end with .gguf. */
bool cli_part_parse(const char *name, cli_part *part);
/* The name of another part of the same model. */
void cli_part_name(const char *name, const cli_part *part, uint32_t index, cli_path *out);

/* Whether a name from elsewhere stays in the folder: no "..", no empty part, nothing odd. */
bool cli_is_safe_name(const char *name);

/* Where word stands in text, in either case; NULL: nowhere. */
const char *cli_find_word(const char *text, const char *word);
/* Whether a file's name has this type; q4_k is not the beginning of q4_k_m. */
bool cli_has_type(const char *name, const char *type);

/* The hf:OWNER/REPO:FILE of an address that a browser shows for a file of the hub or of the mirror.
 * False: it is of another kind. */
bool cli_hub_from_url(const char *mirror, const char *url, cli_path *given);

#endif
