/* manual.c: the manual page, wick(1), in roff with the macros of man(7). */
#include "manual.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A line of roff may not begin with a dot or an apostrophe, - alone is a hyphen, \ a request, and
 * quotes belong to the arguments of macros. */
static void print_roff(const char *text) {
    bool begins_line = true;
    for (; *text != '\0'; text++) {
        if (begins_line && (*text == '.' || *text == '\'')) fputs("\\&", stdout);
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else if (*text == '"')
            fputs("\\(dq", stdout);
        else
            putchar(*text);
        begins_line = *text == '\n';
    }
}

static void print_line(const char *macro, const char *text) {
    printf("%s", macro);
    print_roff(text);
    putchar('\n');
}

static void print_option(const cli_option *option, const unsigned char *options) {
    cli_option_text text;
    cli_describe_option(option, options, &text);
    const char *const head = text.head + strspn(text.head, " ");
    print_line(".TP\n.B ", head);
    print_line("", text.help);
}

static void print_group(const cli_group *group, const unsigned char *options) {
    for (size_t i = 0; i < group->n_options; i++) print_option(&group->options[i], options);
}

static void print_options(const cli_command *command) {
    unsigned char *const options = calloc(1, command->options_size);
    if (options == NULL) return;
    if (command->defaults != NULL) command->defaults(options);
    for (const cli_group *const *group = command->groups; *group != NULL; group++) {
        print_line(".PP\n.I ", (*group)->title);
        print_group(*group, options);
    }
    free(options);
}

static void print_command(const cli_command *command) {
    char usage[CLI_USAGE_SIZE];
    cli_describe_usage(command, usage, sizeof usage);
    print_line(".SS ", usage);
    print_line("", command->summary);
    print_options(command);
    if (command->details == NULL) return;
    fputs(".PP\n.nf\n", stdout);
    print_roff(command->details);
    fputs(".fi\n", stdout);
}

void cli_print_manual(void) {
    printf(".TH WICK 1 \"\" \"wick %s\" \"User Commands\"\n", wick_version());
    fputs(".SH NAME\nwick \\- tensors and language models in C\n"
          ".SH SYNOPSIS\n.B wick\n.I COMMAND\n[options]\n"
          ".SH DESCRIPTION\nRuns, converts and examines language models in GGUF files, on the CPU"
          " or on a GPU by WebGPU.\n",
          stdout);
    for (const cli_command *const *command = cli_commands; *command != NULL; command++) {
        print_line(".TP\n.B ", (*command)->name);
        print_line("", (*command)->summary);
    }
    fputs(".SH COMMANDS\n", stdout);
    for (const cli_command *const *command = cli_commands; *command != NULL; command++)
        print_command(*command);
    fputs(".SH OPTIONS OF EVERY COMMAND\n", stdout);
    print_group(&cli_common_group, (const unsigned char *)&cli_common);
    fputs(".SH EXIT STATUS\n", stdout);
    print_line("", CLI_EXIT_STATUS);
}
