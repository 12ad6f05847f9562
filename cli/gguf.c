/* gguf.c: `wick gguf`: splits a model file into parts, and makes one file of parts. */
#include "cli.h"
#include "interrupt.h"
#include "text_out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct gguf_options {
    int what; /* action */
    const char *in, *out;
    uint64_t max_size;
    uint32_t max_tensors;
    bool force;
} gguf_options;

typedef enum action { ACTION_SPLIT, ACTION_MERGE } action;

static const cli_option options[] = {
    {.argument = "split|merge",
     .help = "what to do",
     .kind = &cli_word,
     .offset = offsetof(gguf_options, what),
     .is_required = true},
    {.argument = "MODEL.gguf",
     .help = "the model; for a split model, the path of any part",
     .kind = &cli_model,
     .offset = offsetof(gguf_options, in),
     .is_required = true},
    {.argument = "OUT.gguf",
     .help = "the file to write; parts become OUT-00001-of-00003.gguf and so on",
     .kind = &cli_text,
     .offset = offsetof(gguf_options, out),
     .is_required = true},
    {.name = "max-size",
     .argument = "N",
     .help = "split: most bytes of a part, with K, M or G for 1024, 1024^2, 1024^3; only a part "
             "of one tensor may be larger",
     .kind = &cli_size,
     .offset = offsetof(gguf_options, max_size)},
    {.name = "max-tensors",
     .argument = "N",
     .help = "split: most tensors of a part; 0: any number",
     .kind = &cli_u32,
     .offset = offsetof(gguf_options, max_tensors),
     .most = UINT32_MAX},
    {.name = "force",
     .help = "replace existing files",
     .kind = &cli_flag,
     .offset = offsetof(gguf_options, force)},
};
static const cli_group group = {"Arguments and options", options, sizeof options / sizeof *options};
static const cli_group *const groups[] = {&group, NULL};

enum { PIECE = 4 << 20 };
static const char OUT_HINT[] = "choose another place to write to";

static int copy_tensor(wick_file *file, const wick_file_tensor *tensor, wick_file_writer *writer,
                       void *piece) {
    for (uint64_t done = 0; done < tensor->size;) {
        if (cli_interrupted()) return CLI_INTERRUPTED;
        const uint64_t left = tensor->size - done;
        const size_t n = left < PIECE ? (size_t)left : PIECE;
        wick_error error = {0};
        if (wick_file_read(file, tensor->offset + done, piece, n, &error) != WICK_OK)
            return cli_report(&error, NULL);
        if (wick_file_write(writer, piece, n, &error) != WICK_OK)
            return cli_report(&error, OUT_HINT);
        done += n;
    }
    return CLI_OK;
}

static int copy_tensors(wick_file *file, wick_file_writer *writer) {
    void *const piece = malloc(PIECE);
    if (piece == NULL) return cli_error("out of memory for %d bytes", PIECE);
    int code = CLI_OK;
    for (size_t i = 0; code == CLI_OK && i < wick_file_tensor_count(file); i++)
        code = copy_tensor(file, wick_file_get_tensor(file, i), writer, piece);
    free(piece);
    return code;
}

static const char *start_hint(wick_status status) {
    switch (status) {
    case WICK_ERR_VALUE: return "";
    case WICK_ERR_STATE: return "--force replaces it";
    default: return OUT_HINT;
    }
}

/* "wrote 2 parts, a-00001-of-00002.gguf to a-00002-of-00002.gguf: 272 tensors, 138.1 MiB". */
static void report_written(const gguf_options *o, const wick_file *file, size_t n_files) {
    static const char end[] = ".gguf";
    const size_t length = strlen(o->out), n_tensors = wick_file_tensor_count(file);
    const bool has_end = length >= sizeof end && strcmp(o->out + length - sizeof end + 1, end) == 0;
    const int stem = (int)(length - (has_end ? sizeof end - 1 : 0));
    uint64_t bytes = 0;
    char content[64];
    for (size_t i = 0; i < n_tensors; i++) bytes += wick_file_get_tensor(file, i)->size;
    snprintf(content, sizeof content, "%zu tensor%s, %s", n_tensors, n_tensors == 1 ? "" : "s",
             cli_bytes_text(bytes).text);
    if (o->what == ACTION_MERGE)
        cli_say("wrote %s: %s", o->out, content);
    else if (n_files == 1)
        cli_say("wrote 1 part, %.*s-00001-of-00001.gguf: %s", stem, o->out, content);
    else
        cli_say("wrote %zu parts, %.*s-00001-of-%05zu.gguf to %.*s-%05zu-of-%05zu.gguf: %s",
                n_files, stem, o->out, n_files, stem, o->out, n_files, n_files, content);
}

/* Memory stays the same however large the model is. */
static int copy(const gguf_options *o, wick_file *file) {
    const char *const reads[] = {o->in};
    const wick_file_desc desc = {.values = wick_file_value(file, 0),
                                 .n_values = wick_file_value_count(file),
                                 .tensors = wick_file_get_tensor(file, 0),
                                 .n_tensors = wick_file_tensor_count(file),
                                 .part_bytes = o->max_size,
                                 .part_tensors = o->max_tensors,
                                 .replace = o->force,
                                 .reads = reads,
                                 .n_reads = 1};
    wick_file_writer *writer = NULL;
    wick_error error = {0};
    if (wick_file_write_start(o->out, &desc, &writer, &error) != WICK_OK)
        return cli_report(&error, start_hint(error.status));
    const size_t n_files = wick_file_writer_count(writer);
    const int code = copy_tensors(file, writer);
    if (wick_file_write_finish(writer, code == CLI_OK, &error) != WICK_OK && code == CLI_OK)
        return cli_report(&error, OUT_HINT);
    if (code == CLI_OK && !cli_common.quiet) report_written(o, file, n_files);
    return code;
}

static int run(void *given) {
    const gguf_options *const o = given;
    const bool has_limit = o->max_size > 0 || o->max_tensors > 0;
    if (o->what == ACTION_SPLIT && !has_limit)
        return cli_usage_error(&cli_gguf, "split needs --max-size or --max-tensors");
    if (o->what == ACTION_MERGE && has_limit)
        return cli_usage_error(&cli_gguf, "--max-size and --max-tensors are for split");
    const size_t length = strlen(o->out);
    if (length == 0 || o->out[length - 1] == '/') /* parts would be called -00001-of-00003.gguf */
        return cli_usage_error(&cli_gguf, "OUT.gguf: '%s' is not the name of a file", o->out);
    wick_error error = {0};
    wick_file *file = NULL;
    if (wick_file_open(o->in, &file, &error) != WICK_OK)
        return cli_report_file(&error, o->in, NULL);
    cli_watch_interrupt(); /* temporary files must not stay */
    cli_keep_closed_pipe();
    const int code = copy(o, file);
    wick_file_close(file);
    return code;
}

const cli_command cli_gguf = {
    .name = "gguf",
    .summary = "split a model file into parts, or make one file of its parts",
    .details = "  wick gguf split MODEL.gguf PARTS.gguf --max-size 2G\n"
               "  wick gguf merge PARTS-00001-of-00003.gguf MODEL.gguf\n\n"
               "Other commands, too, accept the path of a part for the whole model.\n",
    .groups = groups,
    .options_size = sizeof(gguf_options),
    .run = run,
};
