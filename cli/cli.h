/* cli.h: what the files of the command share: exit codes, the table of commands, messages. */
#ifndef WICK_CLI_CLI_H
#define WICK_CLI_CLI_H

#include "options.h"

#include <wick/wick.h>

enum {
    CLI_OK = 0,
    CLI_FAILURE = 1,
    CLI_USAGE = 2,
    CLI_INTERRUPTED = 130, /* by Ctrl-C; main knows the number for other signals */
};

typedef struct cli_command {
    const char *name, *summary;
    const char *details;             /* the end of its help, NULL: none */
    const cli_group *const *groups;  /* ends with NULL */
    size_t options_size;             /* of the struct that defaults and run get, zeroed before */
    void (*defaults)(void *options); /* NULL: zeros are right */
    int (*run)(void *options);       /* returns the exit code */
    bool fetches; /* opens an engine, which fetches a model that is named hf:OWNER/REPO */
} cli_command;

extern const cli_command cli_run, cli_info, cli_tokenize, cli_logits, cli_devices, cli_bench,
    cli_gguf, cli_verify, cli_pull, cli_models, cli_rm, cli_quantize, cli_imatrix, cli_template,
    cli_chat_command_line, cli_embed, cli_rerank, cli_convert, cli_perplexity, cli_compare,
    cli_finetune, cli_serve;

#define CLI_EXIT_STATUS                                                                            \
    "0 success, 1 failure, 2 wrong use, 128 + N ended by signal N (Ctrl-C: 130)."

/* An option as help texts have it: "  -n, --max-tokens N", and what it does with its default. */
typedef struct cli_option_text {
    char head[96], help[640];
} cli_option_text;
/* options: a struct of defaults. */
void cli_describe_option(const cli_option *option, const unsigned char *options,
                         cli_option_text *out);
/* "wick run [options] [MODEL]". */
enum { CLI_USAGE_SIZE = 160 };
void cli_describe_usage(const cli_command *command, char *out, size_t size);
void cli_print_command_help(const cli_command *command);
/* In the order of the help text, NULL at the end. */
extern const cli_command *const cli_commands[];
void cli_print_overview(void);

/* A sentence on standard error: of one line, on a terminal broken between words. Names from files,
 * servers and the command line may be in it. */
void cli_say(const char *format, ...);
/* "wick: warning: ...". */
void cli_warn(const char *format, ...);
/* "wick: ...". Always returns CLI_FAILURE, cli_usage_error CLI_USAGE. */
int cli_error(const char *format, ...);
/* Adds where the help is. command NULL: the overview. */
int cli_usage_error(const cli_command *command, const char *format, ...);
/* Whether one of these two has said anything so far. */
bool cli_has_failed(void);
/* A failure of the library, and what to do about it: hint, or the usual one of its status for NULL.
 * Returns CLI_FAILURE. */
int cli_report(const wick_error *error, const char *hint);
/* The same, with the file that it is about; path may be NULL. */
int cli_report_file(const wick_error *error, const char *path, const char *hint);
/* The same for the last call of a session or an embedder, whose model is on the device. */
int cli_report_step(const wick_session *session, wick_device *device, const char *hint);
int cli_report_embedder(const wick_embedder *embedder, wick_device *device, const char *hint);

/* A folder with a config.json: no command but convert and info can use it. */
bool cli_is_checkpoint(const char *path);

#endif
