/* options.h: tables of options. One entry drives parsing, checking and the help text. */
#ifndef WICK_CLI_OPTIONS_H
#define WICK_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cli_option cli_option;

/* What an option takes and what its field is. */
typedef struct cli_kind {
    /* False: text is not acceptable; expected then says what would be ("a number from 0 to 1"). */
    bool (*set)(const cli_option *option, const char *text, void *field, char *expected,
                size_t size);
    /* Writes the field as it stands in the help text, "" for nothing. NULL: never anything. */
    void (*show)(const cli_option *option, const void *field, char *text, size_t size);
} cli_kind;

enum { CLI_MAX_TEXTS = 64 };
typedef struct cli_texts {
    const char *items[CLI_MAX_TEXTS];
    size_t n;
} cli_texts;

extern const cli_kind cli_flag;    /* bool */
extern const cli_kind cli_text;    /* const char * */
extern const cli_kind cli_place;   /* the same, not empty: a folder, or where to listen */
extern const cli_kind cli_model;   /* the same; run gets a path, also for a fetched model's name */
extern const cli_kind cli_in;      /* the same; a file that must not be written, "-" is none */
extern const cli_kind cli_out;     /* the same; a file to write, tried before run; "-" is none */
extern const cli_kind cli_list;    /* cli_texts: may be given again */
extern const cli_kind cli_lora;    /* the same; adapters, whose files must not be written */
extern const cli_kind cli_u32;     /* uint32_t, least to most */
extern const cli_kind cli_limit;   /* uint32_t; 0, also given as -1: there is none */
extern const cli_kind cli_u64;     /* uint64_t */
extern const cli_kind cli_size;    /* uint64_t, bytes: "500M" */
extern const cli_kind cli_f32;     /* float, least to most */
extern const cli_kind cli_word;    /* int: which word of argument, "exact|fast" */
extern const cli_kind cli_backend; /* wick_backend, by its name */
extern const cli_kind cli_layers;  /* int32_t, as wick_model_desc.device_layers */

struct cli_option {
    const char *name;     /* "max-tokens"; NULL: a positional argument */
    const char *argument; /* "N", "exact|fast"; NULL: a flag */
    const char *help;
    const cli_kind *kind;
    size_t offset;      /* of the field in the command's options */
    double least, most; /* numbers */
    const char *alias;  /* another long name, shown beside name; NULL: none */
    char letter;        /* 0: none */
    bool is_required;   /* positional arguments */
};

typedef struct cli_group {
    const char *title; /* of its paragraph in the help text */
    const cli_option *options;
    size_t n_options;
} cli_group;

/* What every command takes. */
typedef struct cli_common_options {
    bool quiet;   /* no progress, notes and figures on standard error; warnings and errors stay */
    bool verbose; /* what is usually left out: the library's log, every tensor, why not a GPU */
} cli_common_options;
extern cli_common_options cli_common;
extern const cli_group cli_common_group;

struct cli_command;

typedef enum cli_parse_result { CLI_PARSED, CLI_PARSE_HELP, CLI_PARSE_FAILED } cli_parse_result;

/* Option number i of the command, all groups counted, the common one last; NULL: it has fewer. */
const cli_option *cli_option_at(const struct cli_command *command, size_t i);

/* Fills options from n words after the command's name. A failure has been printed. */
cli_parse_result cli_parse(const struct cli_command *command, char *const *words, size_t n,
                           void *options);

/* The candidate (NULL at the end) nearest to word; NULL when none looks like it. */
const char *cli_nearest(const char *word, const char *const *candidates);

#endif
