/* sampling.h: the options of commands that choose tokens. */
#ifndef WICK_CLI_SAMPLING_H
#define WICK_CLI_SAMPLING_H

#include "engine.h"
#include "input.h"

enum { CLI_MAX_BIASES = CLI_MAX_TEXTS };

typedef struct cli_sampling_options {
    wick_sampler_desc desc;
    cli_texts biases, dry_breakers; /* as given */
    const char *grammar_file, *json_schema_file;
} cli_sampling_options;

/* A desc, and what it points to. */
typedef struct cli_sampling {
    wick_sampler_desc desc;
    wick_logit_bias biases[CLI_MAX_BIASES];
    cli_input grammar; /* of a file */
} cli_sampling;

/* How the options of every command that uses cli_sampling_group begin. */
typedef struct cli_sampling_place {
    cli_engine_options engine;
    cli_sampling_options sampling;
} cli_sampling_place;

extern const cli_group cli_sampling_group;

void cli_sampling_defaults(cli_sampling_options *options);

/* Turns the options into a sampling, which is valid as long as they are and must be freed in any
 * case. Returns an exit code and reports errors. */
struct cli_command;
int cli_sampling_read(const struct cli_command *command, const cli_sampling_options *options,
                      cli_sampling *sampling);
void cli_sampling_free(cli_sampling *sampling);

/* A session that cannot be opened: reports it, with the option to change where that is known.
 * Returns CLI_FAILURE. */
int cli_report_session(const wick_error *error, const cli_sampling_options *options);
/* Whether the error is about the grammar or the schema. */
bool cli_is_of_grammar(const wick_error *error);

#endif
