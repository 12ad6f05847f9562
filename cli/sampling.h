/* sampling.h: the options of commands that choose tokens. */
#ifndef WICK_CLI_SAMPLING_H
#define WICK_CLI_SAMPLING_H

#include "engine.h"

enum { CLI_MAX_BIASES = CLI_MAX_TEXTS };

typedef struct cli_sampling_options {
    wick_sampler_desc desc;
    cli_texts biases, dry_breakers; /* as given */
} cli_sampling_options;

/* How the options of every command that uses cli_sampling_group begin. */
typedef struct cli_sampling_place {
    cli_engine_options engine;
    cli_sampling_options sampling;
} cli_sampling_place;

extern const cli_group cli_sampling_group;

void cli_sampling_defaults(cli_sampling_options *options);

/* The desc of the options, with what biases has room for. Valid as long as both. Returns an exit
 * code; what is no bias has been told. */
struct cli_command;
int cli_sampling_desc(const struct cli_command *command, const cli_sampling_options *options,
                      wick_logit_bias biases[CLI_MAX_BIASES], wick_sampler_desc *desc);

#endif
