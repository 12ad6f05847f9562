/* main.c: finds the command, parses its options, runs it, and sees that the output arrived. */
#include "cli.h"

#include "interrupt.h"
#include "lora.h"
#include "manual.h"
#include "store.h"
#include "streams.h"
#include "targets.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cli_command help_command;

/* In the order of the help text. */
const cli_command *const cli_commands[] = {
    &cli_run,      &cli_chat_command_line,
    &cli_serve,    &cli_embed,
    &cli_rerank,   &cli_pull,
    &cli_models,   &cli_rm,
    &cli_info,     &cli_tokenize,
    &cli_template, &cli_logits,
    &cli_bench,    &cli_perplexity,
    &cli_compare,  &cli_gguf,
    &cli_convert,  &cli_quantize,
    &cli_imatrix,  &cli_finetune,
    &cli_devices,  &cli_verify,
    &help_command, NULL,
};

enum { N_COMMANDS = sizeof cli_commands / sizeof *cli_commands };

/* NULL when there is none; "NAME is unknown, did you mean ..." is then printed. */
static const cli_command *find_command(const char *name) {
    const char *names[N_COMMANDS] = {NULL};
    for (size_t i = 0; cli_commands[i] != NULL; i++) {
        if (strcmp(name, cli_commands[i]->name) == 0) return cli_commands[i];
        names[i] = cli_commands[i]->name;
    }
    const char *const nearest = cli_nearest(name, names);
    if (nearest != NULL)
        cli_usage_error(NULL, "unknown command '%s', did you mean '%s'?", name, nearest);
    else
        cli_usage_error(NULL, "unknown command '%s'", name);
    return NULL;
}

/* ---- wick help ---- */

typedef struct help_options {
    const char *command;
    int shell; /* cli_shell */
    bool is_manual;
} help_options;

static const cli_option help_arguments[] = {
    {.argument = "COMMAND",
     .help = "the command to explain; without it, all commands are listed",
     .kind = &cli_text,
     .offset = offsetof(help_options, command)},
};
static const cli_option help_outputs[] = {
    {.name = "man",
     .help = "print the manual page, for 'man -l -'",
     .kind = &cli_flag,
     .offset = offsetof(help_options, is_manual)},
    {.name = "completion",
     .argument = "none|bash|zsh|fish",
     .help = "print the completion script of commands and options for this shell",
     .kind = &cli_word,
     .offset = offsetof(help_options, shell)},
};
static const cli_group help_group = {"Arguments", help_arguments, 1};
static const cli_group help_output_group = {"Options", help_outputs,
                                            sizeof help_outputs / sizeof *help_outputs};
static const cli_group *const help_groups[] = {&help_group, &help_output_group, NULL};

static int run_help(void *given) {
    const help_options *const o = given;
    if (o->is_manual) cli_print_manual();
    if (o->shell != CLI_NO_SHELL) cli_print_completion((cli_shell)o->shell);
    if (o->is_manual || o->shell != CLI_NO_SHELL) return CLI_OK;
    if (o->command == NULL) {
        cli_print_overview();
        return CLI_OK;
    }
    const cli_command *const command = find_command(o->command);
    if (command == NULL) return CLI_USAGE;
    cli_print_command_help(command);
    return CLI_OK;
}

static const cli_command help_command = {
    .name = "help",
    .summary = "explain a command",
    .groups = help_groups,
    .options_size = sizeof(help_options),
    .run = run_help,
};

/* ---- Running ---- */

enum { MAX_MODELS = 4 }; /* that a command takes */

/* An argument of the kind cli_model becomes a path, which is kept in paths. */
static int find_model(const char **field, bool fetches, cli_path paths[MAX_MODELS], size_t *n) {
    assert(*n < MAX_MODELS);
    const int code = cli_find_model(*field, fetches, &paths[*n]);
    *field = paths[(*n)++].text;
    return code;
}

/* field: of an option that is a path, or a list of adapters. */
static int note_path(const cli_option *option, const void *field) {
    if (option->kind == &cli_lora) return cli_add_read_loras(field);
    const char *const path = *(const char *const *)field;
    if (strcmp(path, "-") == 0) return CLI_OK;
    return option->kind == &cli_out ? cli_check_target(path, option->name)
                                    : cli_add_read_file(path);
}

/* Options that are paths: models are found, files to write are tried. Returns an exit code. */
static int check_paths(const cli_command *command, unsigned char *options,
                       cli_path paths[MAX_MODELS]) {
    const cli_kind *const kinds[] = {&cli_model, &cli_in, &cli_lora, &cli_out}; /* targets last */
    size_t n_models = 0;
    int code = CLI_OK;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const cli_option *option;
        for (size_t i = 0; code == CLI_OK && (option = cli_option_at(command, i)) != NULL; i++) {
            const char **const field = (const char **)(void *)(options + option->offset);
            if (option->kind != kinds[k] || *field == NULL) continue; /* or an empty list */
            if (option->kind == &cli_model)
                code = find_model(field, command->fetches, paths, &n_models);
            if (code == CLI_OK) code = note_path(option, field);
        }
    }
    return code;
}

/* options: parsed. */
static int run_parsed(const cli_command *command, void *options) {
    cli_path *const paths = calloc(MAX_MODELS, sizeof *paths);
    if (paths == NULL) return cli_error("out of memory for the paths of models");
    int code = check_paths(command, options, paths);
    if (code == CLI_OK) code = command->run(options);
    free(paths);
    return code;
}

static int run_command(const cli_command *command, char *const *words, size_t n) {
    void *const options = calloc(1, command->options_size);
    if (options == NULL) return cli_error("out of memory for the options");
    if (command->defaults != NULL) command->defaults(options);
    int code = CLI_OK;
    switch (cli_parse(command, words, n, options)) {
    case CLI_PARSED: code = run_parsed(command, options); break;
    case CLI_PARSE_HELP: cli_print_command_help(command); break;
    case CLI_PARSE_FAILED: code = CLI_USAGE; break;
    }
    free(options);
    return code;
}

/* A word that stands where a command does. */
static int run_word(char *const *words, size_t n) {
    const char *const word = words[0];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        cli_print_overview();
        return CLI_OK;
    }
    if (strcmp(word, "--version") == 0) {
        printf("wick %s\n", wick_version());
        return CLI_OK;
    }
    if (strcmp(word, "--list-backends") == 0) return run_command(&cli_devices, words + 1, n - 1);
    if (word[0] == '-') return cli_usage_error(NULL, "'%s' is not a command", word);
    const cli_command *const command = find_command(word);
    return command != NULL ? run_command(command, words + 1, n - 1) : CLI_USAGE;
}

int main(int argc, char **argv) {
    cli_fill_streams();
    cli_set_signals();
    int code = argc > 1 ? run_word(argv + 1, (size_t)argc - 1)
                        : cli_usage_error(NULL, "a command is missing");
    if (code == CLI_INTERRUPTED) code = cli_interrupt_code();
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) return code;
    if (cli_has_failed() || cli_pipe_closed()) return code;
    const int lost = cli_error("cannot write standard output: %s",
                               errno != 0 ? strerror(errno) : "some of it was lost");
    return code != CLI_OK ? code : lost;
}
