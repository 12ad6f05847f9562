/* completion.c: what bash, zsh and fish need to complete commands, options and their words; all
 * else is a file. */
#include "manual.h"

#include <stdio.h>
#include <string.h>

/* The words of "exact|fast"; "" where the option takes something else. */
static const char *words_of(const cli_option *option) {
    return option->kind == &cli_word || option->kind == &cli_backend ? option->argument : "";
}

/* The words that follow the command itself; "": it takes something else. */
static const char *first_words(const cli_command *command) {
    const cli_option *option;
    for (size_t i = 0; (option = cli_option_at(command, i)) != NULL; i++)
        if (option->name == NULL) return words_of(option);
    return "";
}

static void print_words(const char *words, const char *between) {
    for (; *words != '\0'; words++)
        if (*words == '|')
            fputs(between, stdout);
        else
            putchar(*words);
}

/* The beginning of a help text, as far as a list has room for it, as can stand in '...'. */
static void print_short(const char *help) {
    size_t n = strcspn(help, ";(");
    const char *const sentence = strstr(help, ". ");
    if (sentence != NULL && (size_t)(sentence - help) < n) n = (size_t)(sentence - help);
    while (n > 0 && help[n - 1] == ' ') n--;
    for (size_t i = 0; i < n; i++)
        if (help[i] == '\'')
            fputs("'\\''", stdout);
        else if (strchr("[]\\", help[i]) == NULL)
            putchar(help[i]);
}

/* ---- bash ---- */

static void print_bash_options(const cli_command *command) {
    const cli_option *option;
    printf("    %s) options='--help", command->name);
    for (size_t i = 0; (option = cli_option_at(command, i)) != NULL; i++) {
        if (option->name != NULL) printf(" --%s", option->name);
        if (option->name != NULL && option->alias != NULL) printf(" --%s", option->alias);
    }
    printf("' ;;\n");
}

static void print_bash_values(const cli_command *command) {
    const cli_option *option;
    if (*first_words(command) != '\0') {
        printf("    '%s %s') words='", command->name, command->name);
        print_words(first_words(command), " ");
        printf("' ;;\n");
    }
    for (size_t i = 0; (option = cli_option_at(command, i)) != NULL; i++) {
        if (option->name == NULL || *words_of(option) == '\0') continue;
        printf("    '%s --%s') words='", command->name, option->name);
        print_words(words_of(option), " ");
        printf("' ;;\n");
    }
}

static void print_bash(void) {
    printf("# bash completion for wick\n_wick() {\n"
           "  local current=\"${COMP_WORDS[COMP_CWORD]}\" options='' words=''\n"
           "  COMPREPLY=()\n"
           "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    COMPREPLY=($(compgen -W '--help --version");
    for (const cli_command *const *at = cli_commands; *at != NULL; at++) printf(" %s", (*at)->name);
    printf("' -- \"$current\"))\n    return\n  fi\n"
           "  case \"${COMP_WORDS[1]} ${COMP_WORDS[COMP_CWORD - 1]}\" in\n");
    for (const cli_command *const *at = cli_commands; *at != NULL; at++) print_bash_values(*at);
    printf("    'help '*) words='");
    for (const cli_command *const *at = cli_commands; *at != NULL; at++) printf("%s ", (*at)->name);
    printf("' ;;\n  esac\n  case \"${COMP_WORDS[1]}\" in\n");
    for (const cli_command *const *at = cli_commands; *at != NULL; at++) print_bash_options(*at);
    printf("  esac\n"
           "  case \"$current\" in\n"
           "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$current\")) ;;\n"
           "    *) [ -z \"$words\" ] || COMPREPLY=($(compgen -W \"$words\" -- \"$current\")) ;;\n"
           "  esac\n}\ncomplete -o bashdefault -o default -F _wick wick\n");
}

/* ---- zsh ---- */

static void print_zsh_option(const cli_option *option, const char *name) {
    printf("        '--%s[", name);
    print_short(option->help);
    printf("]");
    if (option->argument != NULL && *words_of(option) != '\0') {
        printf(":word:(");
        print_words(words_of(option), " ");
        printf(")");
    } else if (option->argument != NULL) {
        printf(":value:_files");
    }
    printf("' \\\n");
}

/* words: what stands by its place, NULL: files. */
static void print_zsh_command(const cli_command *command, const char *words) {
    const cli_option *option;
    printf("      %s) _arguments -S \\\n", command->name);
    for (size_t i = 0; (option = cli_option_at(command, i)) != NULL; i++) {
        if (option->name != NULL) print_zsh_option(option, option->name);
        if (option->name != NULL && option->alias != NULL) print_zsh_option(option, option->alias);
    }
    printf("        '(- *)--help[explain the command]' \\\n");
    if (*first_words(command) != '\0') {
        printf("        '1:word:(");
        print_words(first_words(command), " ");
        printf(")' \\\n");
    }
    printf("        '*:%s' ;;\n", words != NULL ? words : "file:_files");
}

static void print_zsh(void) {
    printf("#compdef wick\n_wick() {\n  local -a commands\n  commands=(\n");
    for (const cli_command *const *at = cli_commands; *at != NULL; at++) {
        printf("    '%s:", (*at)->name);
        print_short((*at)->summary);
        printf("'\n");
    }
    printf("  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n"
           "  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n"
           "  case $command in\n");
    for (const cli_command *const *at = cli_commands; *at != NULL; at++)
        print_zsh_command(
            *at, strcmp((*at)->name, "help") == 0 ? "command:{_describe command commands}" : NULL);
    printf("  esac\n}\n_wick \"$@\"\n");
}

/* ---- fish ---- */

static void print_fish_option(const cli_command *command, const cli_option *option) {
    printf("complete -c wick -n '__fish_seen_subcommand_from %s' -l %s", command->name,
           option->name);
    if (option->alias != NULL) printf(" -l %s", option->alias);
    if (option->letter != 0) printf(" -s %c", option->letter);
    if (option->argument != NULL) printf(" -r");
    if (*words_of(option) != '\0') {
        printf(" -f -a '");
        print_words(words_of(option), " ");
        printf("'");
    }
    printf(" -d '");
    print_short(option->help);
    printf("'\n");
}

/* Once. */
static void print_fish_words(const char *command, const char *words) {
    printf("complete -c wick -n '__fish_seen_subcommand_from %s; and not "
           "__fish_seen_subcommand_from ",
           command);
    print_words(words, " ");
    printf("' -f -a '");
    print_words(words, " ");
    printf("'\n");
}

static void print_fish(void) {
    printf("# fish completion for wick\n"
           "complete -c wick -s h -l help -d 'explain the command'\n");
    for (const cli_command *const *at = cli_commands; *at != NULL; at++) {
        const cli_option *option;
        printf("complete -c wick -n __fish_use_subcommand -f -a %s -d '", (*at)->name);
        print_short((*at)->summary);
        printf("'\n");
        /* Words of `wick help`. */
        printf("complete -c wick -n '__fish_seen_subcommand_from help' -f -a %s\n", (*at)->name);
        if (*first_words(*at) != '\0') print_fish_words((*at)->name, first_words(*at));
        for (size_t i = 0; (option = cli_option_at(*at, i)) != NULL; i++)
            if (option->name != NULL) print_fish_option(*at, option);
    }
}

void cli_print_completion(cli_shell shell) {
    if (shell == CLI_BASH) print_bash();
    if (shell == CLI_ZSH) print_zsh();
    if (shell == CLI_FISH) print_fish();
}
