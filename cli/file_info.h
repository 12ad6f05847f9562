/* file_info.h: what `wick info` found out about a file, and its two ways to print it. */
#ifndef WICK_CLI_FILE_INFO_H
#define WICK_CLI_FILE_INFO_H

#include <wick/wick.h>

typedef struct cli_type_count {
    uint64_t n_tensors, n_elements, n_bytes;
} cli_type_count;

typedef struct cli_file_info {
    const char *path;
    const wick_file *file;
    bool lists_tensors;                      /* one by one */
    cli_type_count types[WICK_DTYPE_COUNT_]; /* by dtype */
    cli_type_count all;                      /* their sum */
    const wick_value *architecture, *name;   /* strings; NULL: not in the file */
    wick_prediction prediction;
    wick_error unpredicted; /* why there is no prediction; status WICK_OK: there is one */
} cli_file_info;

/* Adds up the tensors of info->file by type. */
void cli_count_tensors(cli_file_info *info);
/* "u32"; a value type of GGUF. */
const char *cli_value_type_name(wick_value_type type);
/* Element i of an array as a value of its own, without a key. */
wick_value cli_array_element(const wick_value *array, uint64_t i);

/* info_text.c, info_json.c */
void cli_print_info_text(const cli_file_info *info);
void cli_print_info_json(const cli_file_info *info);

#endif
