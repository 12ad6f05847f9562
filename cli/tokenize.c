/* tokenize.c: `wick tokenize`: text to token ids and back, exact for any bytes. */
#include "cli.h"
#include "input.h"
#include "text_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct tokenize_options {
    const char *model, *text, *file;
    bool ids, no_special, decode, special;
} tokenize_options;

static const cli_option options[] = {
    {.argument = "MODEL.gguf",
     .help = "the model, or a file that holds only its vocabulary",
     .kind = &cli_model,
     .offset = offsetof(tokenize_options, model),
     .is_required = true},
    {.argument = "TEXT",
     .help = "the text; without it, standard input",
     .kind = &cli_text,
     .offset = offsetof(tokenize_options, text)},
    {.name = "file",
     .letter = 'f',
     .argument = "FILE",
     .help = "take the text from a file, every byte of it; -: standard input",
     .kind = &cli_in,
     .offset = offsetof(tokenize_options, file)},
    {.name = "ids",
     .help = "print only ids, separated by spaces",
     .kind = &cli_flag,
     .offset = offsetof(tokenize_options, ids)},
    {.name = "no-special",
     .help = "add no begin token, and treat special tokens in the text as text",
     .kind = &cli_flag,
     .offset = offsetof(tokenize_options, no_special)},
    {.name = "decode",
     .help = "the reverse: the text is token ids; print their text",
     .kind = &cli_flag,
     .offset = offsetof(tokenize_options, decode)},
    {.name = "special",
     .help = "with --decode: also print special tokens",
     .kind = &cli_flag,
     .offset = offsetof(tokenize_options, special)},
};
static const cli_group group = {"Arguments and options", options, sizeof options / sizeof *options};
static const cli_group *const groups[] = {&group, NULL};

static int read_text(const tokenize_options *o, cli_input *input) {
    if (o->text != NULL && o->file != NULL)
        return cli_usage_error(&cli_tokenize, "TEXT and --file exclude each other");
    if (o->ids && o->decode)
        return cli_usage_error(&cli_tokenize, "--ids and --decode exclude each other");
    return o->text != NULL ? cli_read_text(o->text, input) : cli_read_file(o->file, input);
}

static void print_tokens(const tokenize_options *o, const wick_tokenizer *tokenizer,
                         const uint32_t *ids, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (o->ids) {
            printf(i > 0 ? " %" PRIu32 : "%" PRIu32, ids[i]);
            continue;
        }
        size_t size = 0;
        const char *const piece = wick_token_bytes(tokenizer, ids[i], true, &size);
        printf("%6" PRIu32 "  ", ids[i]);
        cli_put_escaped(stdout, piece, size);
        putchar('\n');
    }
    if (o->ids) putchar('\n');
}

/* The ids of the text, to be freed; *n of them. Bytes that are replaced may give more ids than
 * there are bytes: then there is a second time. */
static int tokenize(const wick_tokenizer *tokenizer, const cli_input *input, uint32_t flags,
                    uint32_t **ids, size_t *n) {
    wick_error error = {0};
    size_t capacity = input->size + 4;
    for (*ids = NULL;;) {
        free(*ids);
        *ids = malloc(capacity * sizeof **ids);
        if (*ids == NULL) return cli_error("out of memory for %zu token ids", capacity);
        error.status = wick_tokenize(tokenizer, input->text, input->size, flags, *ids, capacity, n);
        if (error.status == WICK_ERR_VALUE)
            return cli_error("the text has bytes that the vocabulary has no token for");
        if (error.status != WICK_OK) return cli_report(&error, "tokenize it in smaller parts");
        if (*n <= capacity) return CLI_OK;
        capacity = *n;
    }
}

static int encode(const tokenize_options *o, const wick_tokenizer *tokenizer,
                  const cli_input *input) {
    const uint32_t flags =
        o->no_special ? 0 : (uint32_t)(WICK_TOKENIZE_ADD_SPECIAL | WICK_TOKENIZE_PARSE_SPECIAL);
    uint32_t *ids;
    size_t n;
    const int code = tokenize(tokenizer, input, flags, &ids, &n);
    if (code == CLI_OK) print_tokens(o, tokenizer, ids, n);
    free(ids);
    return code;
}

static int print_text(wick_detokenizer *detokenizer, const uint32_t *ids, size_t n, char *buf,
                      size_t capacity) {
    size_t size = 0;
    for (size_t i = 0; i < n; i++) {
        if (ids[i] >= wick_tokenizer_size(detokenizer->tokenizer))
            return cli_error("token %" PRIu32 " is not in the vocabulary of %" PRIu32, ids[i],
                             wick_tokenizer_size(detokenizer->tokenizer));
        wick_error error = {0};
        error.status = wick_detokenize(detokenizer, ids[i], buf, capacity, &size);
        if (error.status != WICK_OK) return cli_report(&error, NULL);
        fwrite(buf, 1, size, stdout);
    }
    wick_detokenize_flush(detokenizer, buf, &size);
    fwrite(buf, 1, size, stdout);
    return CLI_OK;
}

static int decode(const tokenize_options *o, const wick_tokenizer *tokenizer,
                  const cli_input *input) {
    uint32_t *ids = NULL;
    size_t n = 0;
    int code = cli_parse_ids(input, &ids, &n);
    if (code != CLI_OK) return code;
    const size_t capacity = wick_detokenize_bound(tokenizer);
    char *const buf = malloc(capacity);
    wick_detokenizer detokenizer = {.tokenizer = tokenizer, .special = o->special};
    code = buf != NULL ? print_text(&detokenizer, ids, n, buf, capacity)
                       : cli_error("out of memory for %zu bytes", capacity);
    free(buf);
    free(ids);
    return code;
}

static int with_tokenizer(const tokenize_options *o, const cli_input *input) {
    wick_error error = {0};
    wick_file *file = NULL;
    if (wick_file_open(o->model, &file, &error) != WICK_OK)
        return cli_report_file(&error, o->model, NULL);
    wick_tokenizer *tokenizer = NULL;
    int code;
    if (wick_tokenizer_open(file, &tokenizer, &error) != WICK_OK)
        code = cli_report_file(&error, o->model, NULL);
    else
        code = o->decode ? decode(o, tokenizer, input) : encode(o, tokenizer, input);
    wick_tokenizer_close(tokenizer);
    wick_file_close(file);
    return code;
}

static int run(void *given) {
    const tokenize_options *const o = given;
    cli_input input = {0};
    int code = read_text(o, &input);
    if (code == CLI_OK) code = with_tokenizer(o, &input);
    cli_input_free(&input);
    return code;
}

const cli_command cli_tokenize = {
    .name = "tokenize",
    .summary = "show the tokens of a text, or the text of tokens",
    .details =
        "Prints a line with id and text for each token; bytes that are not UTF-8 as \\xNN.\n\n"
        "  wick tokenize MODEL.gguf \"Once upon a time\"\n"
        "  wick tokenize MODEL.gguf --ids < book.txt | wick tokenize MODEL.gguf --decode\n",
    .groups = groups,
    .options_size = sizeof(tokenize_options),
    .run = run,
};
