/* options.c: words of the command line into a command's options, by its tables. */
#include "options.h"

#include "cli.h"

#include <stdio.h>
#include <string.h>

typedef struct parser {
    const cli_command *command;
    char *const *words;
    size_t n_words, next;
    size_t n_places; /* positional arguments that have been filled */
    unsigned char *options;
} parser;

static const cli_option common[] = {
    {.name = "quiet",
     .letter = 'q',
     .help = "only warnings and errors on standard error: no progress, notes or figures",
     .kind = &cli_flag,
     .offset = offsetof(cli_common_options, quiet)},
    {.name = "verbose",
     .letter = 'v',
     .help = "also print, on standard error, what the library logs and why no GPU is used",
     .kind = &cli_flag,
     .offset = offsetof(cli_common_options, verbose)},
};
enum { N_COMMON = sizeof common / sizeof *common };
const cli_group cli_common_group = {"Everywhere", common, N_COMMON};
cli_common_options cli_common;

const cli_option *cli_option_at(const cli_command *command, size_t i) {
    for (const cli_group *const *group = command->groups; *group != NULL; group++) {
        if (i < (*group)->n_options) return &(*group)->options[i];
        i -= (*group)->n_options;
    }
    return i < N_COMMON ? &common[i] : NULL;
}

/* Where the option's value goes. */
static void *field_of(const parser *p, const cli_option *option) {
    const bool is_common = option >= common && option < common + N_COMMON;
    unsigned char *const base = is_common ? (unsigned char *)&cli_common : p->options;
    return base + option->offset;
}

static bool is_name(const char *name, const char *text, size_t size) {
    return name != NULL && strlen(name) == size && memcmp(name, text, size) == 0;
}

static const cli_option *find_name(const cli_command *command, const char *text, size_t size) {
    const cli_option *option;
    for (size_t i = 0; (option = cli_option_at(command, i)) != NULL; i++) {
        if (is_name(option->name, text, size) || is_name(option->alias, text, size)) break;
    }
    return option;
}

static const cli_option *find_letter(const cli_command *command, char letter) {
    const cli_option *option;
    for (size_t i = 0; (option = cli_option_at(command, i)) != NULL; i++) {
        if (option->letter == letter) break;
    }
    return option;
}

/* place counts the arguments without a name from 0; a list takes all from its own on. */
static const cli_option *find_place(const cli_command *command, size_t place) {
    const cli_option *option;
    for (size_t i = 0; (option = cli_option_at(command, i)) != NULL; i++) {
        if (option->name == NULL && (option->kind == &cli_list || place-- == 0)) break;
    }
    return option;
}

static bool set_option(const parser *p, const cli_option *option, const char *text) {
    char expected[192] = "";
    if (option->kind->set(option, text, field_of(p, option), expected, sizeof expected))
        return true;
    cli_usage_error(p->command, "%s%s: '%s' is not %s", option->name != NULL ? "--" : "",
                    option->name != NULL ? option->name : option->argument, text, expected);
    return false;
}

/* value: what stands in the same word, NULL: nothing, take the next word where one is needed. */
static bool take_option(parser *p, const cli_option *option, const char *value) {
    if (option->argument == NULL) {
        if (value == NULL) return set_option(p, option, NULL);
        cli_usage_error(p->command, "--%s takes no value", option->name);
        return false;
    }
    if (value == NULL) {
        if (p->next == p->n_words) {
            cli_usage_error(p->command, "--%s needs a value: %s", option->name, option->argument);
            return false;
        }
        value = p->words[p->next++];
    }
    return set_option(p, option, value);
}

enum { MAX_NAMES = 128 };

/* The command that has an option of this name; NULL: none. */
static const cli_command *find_owner(const char *name) {
    for (const cli_command *const *at = cli_commands; *at != NULL; at++)
        if (find_name(*at, name, strlen(name)) != NULL) return *at;
    return NULL;
}

static bool fail_unknown(const parser *p, const char *word) {
    const char *names[MAX_NAMES + 1] = {NULL};
    size_t n_names = 0;
    const cli_option *option;
    for (size_t i = 0; (option = cli_option_at(p->command, i)) != NULL; i++) {
        const char *const both[] = {option->name, option->alias};
        for (size_t k = 0; k < 2; k++)
            if (both[k] != NULL && n_names < MAX_NAMES) names[n_names++] = both[k];
    }
    char bare[64];
    snprintf(bare, sizeof bare, "%s", word + strspn(word, "-"));
    bare[strcspn(bare, "=")] = '\0';
    const char *const nearest = cli_nearest(bare, names);
    const bool is_own = find_name(p->command, bare, strlen(bare)) != NULL; /* "-temp=1" */
    const cli_command *const owner = is_own ? NULL : find_owner(bare);
    if (owner != NULL)
        cli_usage_error(p->command, "'--%s' is an option of 'wick %s'", bare, owner->name);
    else if (nearest != NULL)
        cli_usage_error(p->command, "unknown option '%s', did you mean '--%s'?", word, nearest);
    else
        cli_usage_error(p->command, "unknown option '%s'", word);
    return false;
}

static bool take_long(parser *p, const char *word) {
    const char *const equals = strchr(word, '=');
    const size_t size = equals != NULL ? (size_t)(equals - word) - 2 : strlen(word) - 2;
    const cli_option *const option = find_name(p->command, word + 2, size);
    if (option == NULL) return fail_unknown(p, word);
    return take_option(p, option, equals != NULL ? equals + 1 : NULL);
}

/* A letter, with its value after it or in the next word; or a long name after a single dash. */
static bool take_short(parser *p, const char *word) {
    const cli_option *const named = find_name(p->command, word + 1, strlen(word + 1));
    if (named != NULL) return take_option(p, named, NULL);
    const cli_option *const option = find_letter(p->command, word[1]);
    if (option == NULL) return fail_unknown(p, word);
    return take_option(p, option, word[2] != '\0' ? word + 2 : NULL);
}

static bool take_place(parser *p, const char *word) {
    const cli_option *const option = find_place(p->command, p->n_places);
    if (option == NULL) {
        const cli_option *const last =
            p->n_places > 0 ? find_place(p->command, p->n_places - 1) : NULL;
        cli_usage_error(p->command, "'%s' is one argument too many%s", word,
                        last != NULL && last->kind == &cli_text
                            ? ": a text of several words needs quotation marks"
                            : "");
        return false;
    }
    p->n_places++;
    return set_option(p, option, word);
}

static bool check_places(const parser *p) {
    const cli_option *const missing = find_place(p->command, p->n_places);
    if (missing == NULL || !missing->is_required) return true;
    cli_usage_error(p->command, "%s is missing", missing->argument);
    return false;
}

cli_parse_result cli_parse(const cli_command *command, char *const *words, size_t n,
                           void *options) {
    parser p = {.command = command, .words = words, .n_words = n, .options = options};
    bool are_options = true; /* until "--" */
    while (p.next < p.n_words) {
        const char *const word = words[p.next++];
        const bool is_option = are_options && word[0] == '-' && word[1] != '\0';
        if (is_option && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0))
            return CLI_PARSE_HELP;
        if (is_option && strcmp(word, "--") == 0) {
            are_options = false;
            continue;
        }
        const bool is_long = is_option && word[1] == '-';
        const bool taken = is_long     ? take_long(&p, word)
                           : is_option ? take_short(&p, word)
                                       : take_place(&p, word);
        if (!taken) return CLI_PARSE_FAILED;
    }
    return check_places(&p) ? CLI_PARSED : CLI_PARSE_FAILED;
}
