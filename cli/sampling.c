/* sampling.c: see sampling.h. */
#include "sampling.h"

#include "cli.h"
#include "store.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cli_sampling_defaults(cli_sampling_options *given) {
    given->desc = (wick_sampler_desc){.temperature = 0.8F,
                                      .top_k = 40,
                                      .typical_p = 1,
                                      .top_p = 0.95F,
                                      .repeat_penalty = 1,
                                      .repeat_last = 64,
                                      .dry_base = 1.75F,
                                      .dry_allowed = 2,
                                      .xtc_threshold = 0.1F,
                                      .mirostat_eta = 0.1F};
}

/* --- Biases --- */

/* "ID=B"; strtod alone would take blanks and words. */
static bool parse_bias(const char *text, wick_logit_bias *bias) {
    const size_t n_digits = strspn(text, "0123456789");
    if (n_digits == 0 || text[n_digits] != '=') return false;
    const char *const value = text + n_digits + 1;
    char *end = NULL;
    errno = 0;
    const unsigned long long id = strtoull(text, NULL, 10);
    if (errno != 0 || id > UINT32_MAX) return false;
    bias->id = (uint32_t)id;
    bias->bias = -INFINITY;
    if (strcmp(value, "never") == 0) return true;
    if (value[0] == '\0' || value[strspn(value, "0123456789+-.eE")] != '\0') return false;
    const double number = strtod(value, &end);
    bias->bias = (float)number;
    return *end == '\0' && fabs(number) <= 1e6;
}

static int read_biases(const cli_command *command, const cli_sampling_options *given,
                       cli_sampling *sampling) {
    for (size_t i = 0; i < given->biases.n; i++) {
        const char *const text = given->biases.items[i];
        if (!parse_bias(text, &sampling->biases[i]))
            return cli_usage_error(command,
                                   "--logit-bias: '%s' is not a token and a number from -1e6 to "
                                   "1e6 or 'never', like 42=-1.5",
                                   text);
    }
    sampling->desc.bias = sampling->biases;
    sampling->desc.n_bias = given->biases.n;
    return CLI_OK;
}

/* --- Grammars --- */

static int read_grammar(const cli_command *command, const cli_sampling_options *given,
                        cli_sampling *sampling) {
    const bool is_schema = given->json_schema_file != NULL;
    const char *const path = is_schema ? given->json_schema_file : given->grammar_file;
    const int n_given = (given->desc.grammar != NULL) + (given->desc.json_schema != NULL) +
                        (given->grammar_file != NULL) + (given->json_schema_file != NULL);
    if (n_given > 1)
        return cli_usage_error(command, "--grammar, --grammar-file, --json-schema and "
                                        "--json-schema-file exclude each other");
    if (path == NULL) return CLI_OK;
    const int code = cli_read_file(path, &sampling->grammar);
    if (code != CLI_OK) return code;
    if (strlen(sampling->grammar.text) != sampling->grammar.size)
        return cli_error("'%s' contains a zero byte; a grammar or schema is text", path);
    *(is_schema ? &sampling->desc.json_schema : &sampling->desc.grammar) = sampling->grammar.text;
    return CLI_OK;
}

static bool begins(const char *text, const char *beginning) {
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

bool cli_is_of_grammar(const wick_error *error) {
    return begins(error->message, "the grammar") || begins(error->message, "the JSON schema");
}

int cli_report_session(const wick_error *error, const cli_sampling_options *options) {
    char hint[CLI_PATH_BYTES + 64];
    const char *option = options->desc.grammar != NULL       ? "grammar"
                         : options->desc.json_schema != NULL ? "json-schema"
                         : options->grammar_file != NULL     ? "grammar-file"
                                                             : "json-schema-file";
    const char *path = options->grammar_file;
    if (path == NULL) path = options->json_schema_file;
    if (error->status == WICK_ERR_OUT_OF_MEMORY)
        return cli_report(error, "a smaller --context, or --cache q8_0, needs less");
    if (error->status == WICK_ERR_MISMATCH || error->status == WICK_ERR_ARGUMENT)
        return cli_report(error, "--draft takes a smaller model of the same family");
    if (!cli_is_of_grammar(error)) return cli_report(error, NULL);
    snprintf(hint, sizeof hint, "it was given with --%s%s%s", option, path != NULL ? " " : "",
             path != NULL ? path : "");
    return cli_report(error, hint);
}

/* --- Everything --- */

int cli_sampling_read(const cli_command *command, const cli_sampling_options *given,
                      cli_sampling *sampling) {
    *sampling = (cli_sampling){.desc = given->desc};
    if (given->dry_breakers.n > 0) sampling->desc.dry_breakers = given->dry_breakers.items;
    sampling->desc.n_dry_breakers = given->dry_breakers.n;
    const int code = read_biases(command, given, sampling);
    return code == CLI_OK ? read_grammar(command, given, sampling) : code;
}

void cli_sampling_free(cli_sampling *sampling) { cli_input_free(&sampling->grammar); }

/* --- Options, in the order in which they act --- */

static const cli_option table[] = {
    {.name = "temp",
     .alias = "temperature",
     .argument = "T",
     .help = "temperature: higher is more varied; 0: always the likeliest token",
     .kind = &cli_f32,
     .offset = offsetof(cli_sampling_place, sampling.desc.temperature),
     .most = 100},
    {.name = "logit-bias",
     .argument = "ID=B",
     .help = "add B to the logit of a token, 'never': forbid it; may be given again",
     .kind = &cli_list,
     .offset = offsetof(cli_sampling_place, sampling.biases)},
    {.name = "repeat-penalty",
     .argument = "F",
     .help = "divide the logits of recent tokens by F (negative ones: multiply); 1: off",
     .kind = &cli_f32,
     .offset = offsetof(cli_sampling_place, sampling.desc.repeat_penalty),
     .least = 0.01,
     .most = 100},
    {.name = "frequency-penalty",
     .argument = "F",
     .help = "subtract F from the logit of a token for each recent occurrence",
     .kind = &cli_f32,
     .offset = offsetof(cli_sampling_place, sampling.desc.frequency_penalty),
     .least = -100,
     .most = 100},
    {.name = "presence-penalty",
     .argument = "F",
     .help = "subtract F from the logits of recent tokens",
     .kind = &cli_f32,
     .offset = offsetof(cli_sampling_place, sampling.desc.presence_penalty),
     .least = -100,
     .most = 100},
    {.name = "repeat-last",
     .argument = "N",
     .help = "how many of the last tokens count as recent",
     .kind = &cli_u32,
     .offset = offsetof(cli_sampling_place, sampling.desc.repeat_last),
     .least = 1,
     .most = UINT32_MAX},
    {.name = "dry",
     .argument = "F",
     .help = "DRY: penalty for a token that continues a repetition; 0: off",
     .kind = &cli_f32,
     .offset = offsetof(cli_sampling_place, sampling.desc.dry_multiplier),
     .most = 100},
    {.name = "dry-base",
     .argument = "F",
     .help = "DRY: the penalty grows by this factor with each further token of the "
             "repetition",
     .kind = &cli_f32,
     .offset = offsetof(cli_sampling_place, sampling.desc.dry_base),
     .least = 1,
     .most = 100},
    {.name = "dry-allowed",
     .argument = "N",
     .help = "DRY: length of the shortest repetition that is penalized, in tokens",
     .kind = &cli_u32,
     .offset = offsetof(cli_sampling_place, sampling.desc.dry_allowed),
     .least = 1,
     .most = 50},
    {.name = "dry-last",
     .argument = "N",
     .help = "DRY: how many tokens it looks back at; 0: all",
     .kind = &cli_u32,
     .offset = offsetof(cli_sampling_place, sampling.desc.dry_last),
     .most = UINT32_MAX},
    {.name = "dry-breaker",
     .argument = "TEXT",
     .help = "DRY: repetitions end here; instead of newline : \" and *; may be given again",
     .kind = &cli_list,
     .offset = offsetof(cli_sampling_place, sampling.dry_breakers)},
    {.name = "grammar",
     .argument = "TEXT",
     .help = "write only text that matches this grammar, in GBNF",
     .kind = &cli_text,
     .offset = offsetof(cli_sampling_place, sampling.desc.grammar)},
    {.name = "grammar-file",
     .argument = "FILE",
     .help = "take the grammar from a file",
     .kind = &cli_in,
     .offset = offsetof(cli_sampling_place, sampling.grammar_file)},
    {.name = "json-schema",
     .argument = "TEXT",
     .help = "write only JSON that this schema accepts ({}: any JSON)",
     .kind = &cli_text,
     .offset = offsetof(cli_sampling_place, sampling.desc.json_schema)},
    {.name = "json-schema-file",
     .argument = "FILE",
     .help = "take the schema from a file",
     .kind = &cli_in,
     .offset = offsetof(cli_sampling_place, sampling.json_schema_file)},
    {.name = "top-k",
     .argument = "N",
     .help = "choose among the N likeliest tokens; 0: all",
     .kind = &cli_u32,
     .offset = offsetof(cli_sampling_place, sampling.desc.top_k),
     .most = UINT32_MAX},
    {.name = "typical-p",
     .argument = "P",
     .help = "choose among the tokens of typical surprise that make up this share; 0 or 1: all",
     .kind = &cli_f32,
     .offset = offsetof(cli_sampling_place, sampling.desc.typical_p),
     .most = 1},
    {.name = "top-p",
     .argument = "P",
     .help = "choose among the likeliest tokens that make up this share; 0 or 1: all",
     .kind = &cli_f32,
     .offset = offsetof(cli_sampling_place, sampling.desc.top_p),
     .most = 1},
    {.name = "min-p",
     .argument = "P",
     .help = "leave out tokens less likely than P times the likeliest; 0: none",
     .kind = &cli_f32,
     .offset = offsetof(cli_sampling_place, sampling.desc.min_p),
     .most = 1},
    {.name = "xtc",
     .argument = "P",
     .help = "XTC: how often the likeliest tokens are left out; 0: never",
     .kind = &cli_f32,
     .offset = offsetof(cli_sampling_place, sampling.desc.xtc_probability),
     .most = 1},
    {.name = "xtc-threshold",
     .argument = "P",
     .help = "XTC: leave out tokens of probability P or more, except for the least "
             "likely of them",
     .kind = &cli_f32,
     .offset = offsetof(cli_sampling_place, sampling.desc.xtc_threshold),
     .least = 0.0001,
     .most = 1},
    {.name = "mirostat",
     .argument = "TAU",
     .help = "keep the surprise near TAU bits, instead of top-k to XTC; 0: off",
     .kind = &cli_f32,
     .offset = offsetof(cli_sampling_place, sampling.desc.mirostat_tau),
     .most = 100},
    {.name = "mirostat-eta",
     .argument = "F",
     .help = "how fast mirostat adapts",
     .kind = &cli_f32,
     .offset = offsetof(cli_sampling_place, sampling.desc.mirostat_eta),
     .least = 0.0001,
     .most = 10},
    {.name = "seed",
     .letter = 's',
     .argument = "N",
     .help = "the same seed gives the same text; 0: a new seed each time",
     .kind = &cli_u64,
     .offset = offsetof(cli_sampling_place, sampling.desc.seed)},
};

const cli_group cli_sampling_group = {"Choosing tokens", table, sizeof table / sizeof *table};
