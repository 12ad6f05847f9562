/* help.c: help texts, written from the tables that also drive parsing. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MARGIN = 28, WIDTH = 80 };

/* Words of text from column MARGIN on; the line stands at column now. */
static void print_wrapped(const char *text, size_t column) {
    while (*text != '\0') {
        const size_t size = strcspn(text, " ");
        if (column + 1 + size > WIDTH || column < MARGIN) {
            if (column >= MARGIN) putchar('\n');
            printf("%*s", (int)(column < MARGIN ? MARGIN - column : MARGIN), "");
            column = MARGIN;
        } else if (column > MARGIN) {
            putchar(' ');
            column++;
        }
        fwrite(text, 1, size, stdout);
        column += size;
        text += size;
        text += strspn(text, " ");
    }
    putchar('\n');
}

static void print_entry(const char *head, const char *help) {
    printf("%s", head);
    size_t column = strlen(head);
    if (column + 2 > MARGIN) {
        putchar('\n');
        column = 0;
    }
    print_wrapped(help, column);
}

void cli_describe_option(const cli_option *option, const unsigned char *options,
                         cli_option_text *out) {
    char standard[64] = "";
    if (option->name == NULL) {
        snprintf(out->head, sizeof out->head, "  %s", option->argument);
    } else {
        const char *const gap = option->argument != NULL ? " " : "";
        const char *const argument = option->argument != NULL ? option->argument : "";
        const char letter[] = {option->letter, '\0'};
        const bool has_alias = option->alias != NULL;
        snprintf(out->head, sizeof out->head, "  %s%s%s--%s%s%s%s%s",
                 option->letter != 0 ? "-" : "  ", option->letter != 0 ? letter : "",
                 option->letter != 0 ? ", " : "  ", option->name, has_alias ? ", --" : "",
                 has_alias ? option->alias : "", gap, argument);
    }
    if (option->kind->show != NULL && !option->is_required)
        option->kind->show(option, options + option->offset, standard, sizeof standard);
    snprintf(out->help, sizeof out->help, "%s%s%s%s", option->help,
             standard[0] != '\0' ? " (default " : "", standard, standard[0] != '\0' ? ")" : "");
}

static void print_option(const cli_option *option, const unsigned char *options) {
    cli_option_text text;
    cli_describe_option(option, options, &text);
    print_entry(text.head, text.help);
}

void cli_describe_usage(const cli_command *command, char *out, size_t size) {
    const cli_option *option;
    size_t used = (size_t)snprintf(out, size, "wick %s [options]", command->name);
    for (size_t i = 0; (option = cli_option_at(command, i)) != NULL && used < size; i++)
        if (option->name == NULL)
            used += (size_t)snprintf(out + used, size - used, option->is_required ? " %s" : " [%s]",
                                     option->argument);
}

void cli_print_command_help(const cli_command *command) {
    printf("wick %s: %s\n\n", command->name, command->summary);
    char usage[CLI_USAGE_SIZE];
    cli_describe_usage(command, usage, sizeof usage);
    printf("Usage: %s\n", usage);
    unsigned char *const options = calloc(1, command->options_size);
    if (options == NULL) return;
    if (command->defaults != NULL) command->defaults(options);
    for (const cli_group *const *group = command->groups; *group != NULL; group++) {
        printf("\n%s:\n", (*group)->title);
        for (size_t i = 0; i < (*group)->n_options; i++)
            print_option(&(*group)->options[i], options);
    }
    free(options);
    printf("\n%s:\n", cli_common_group.title);
    for (size_t i = 0; i < cli_common_group.n_options; i++)
        print_option(&cli_common_group.options[i], (const unsigned char *)&cli_common);
    if (command->details != NULL) printf("\n%s", command->details);
}

void cli_print_overview(void) {
    printf("wick %s: tensors and language models in C\n\n"
           "Usage: wick COMMAND [options]\n\nCommands:\n",
           wick_version());
    for (const cli_command *const *command = cli_commands; *command != NULL; command++) {
        char head[32];
        snprintf(head, sizeof head, "  %s", (*command)->name);
        print_entry(head, (*command)->summary);
    }
    printf("\nOptions:\n");
    print_entry("  -h, --help", "this text; after a command: that command's");
    print_entry("      --version", "the version");
    print_entry("  -q, --quiet", "of every command: only warnings and errors on standard error");
    print_entry("  -v, --verbose", "of every command: print what the library logs, too");
    print_entry("  -f, --file FILE", "of every command that reads a text: take it from a file");
    print_entry("      --list-backends", "the same as 'wick devices'");
    printf("\nExit status: " CLI_EXIT_STATUS "\n"
           "\nTry:\n"
           "  wick run                                   the small model built into the command\n"
           "  wick run MODEL.gguf \"Why is the sky blue?\" your own\n"
           "  wick pull hf:OWNER/REPO                    one from huggingface.co\n"
           "  wick help run                              all that can be set\n");
}
