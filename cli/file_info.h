/* file_info.h: what `wick info` found out about a file, and its two ways to print it. */
#ifndef WICK_CLI_FILE_INFO_H
#define WICK_CLI_FILE_INFO_H

#include <wick/wick.h>

typedef struct cli_type_count {
    uint64_t n_tensors, n_elements, n_bytes;
} cli_type_count;

typedef struct cli_file_info {
    const char *path;
    bool is_checkpoint;                      /* a folder; file is what 'wick convert' would make */
    const wick_file *file;                   /* NULL: not GGUF; then */
    const wick_tensor_file *tensor_file;     /* any other format */
    uint64_t size;                           /* of the file, bytes */
    bool lists_tensors;                      /* one by one */
    cli_type_count types[WICK_DTYPE_COUNT_]; /* by dtype */
    cli_type_count all;                      /* their sum */
    const wick_value *architecture, *name;   /* strings; NULL: not in the file */
    wick_prediction prediction;
    wick_error unpredicted; /* why there is no prediction; status WICK_OK: there is one */
} cli_file_info;

/* "GGUF", "checkpoint", "safetensors" or "npy". */
const char *cli_format_name(const cli_file_info *info);
/* Tensor i of the file; NULL: it has fewer. */
const wick_file_tensor *cli_tensor_at(const cli_file_info *info, size_t i);
/* Adds up the tensors of the file by type. */
void cli_count_tensors(cli_file_info *info);
/* "u32"; a value type of GGUF. */
const char *cli_value_type_name(wick_value_type type);
/* Element i of an array as a value of its own, without a key. */
wick_value cli_array_element(const wick_value *array, uint64_t i);

/* info_text.c, info_json.c */
void cli_print_info_text(const cli_file_info *info);
void cli_print_info_json(const cli_file_info *info);

#endif
