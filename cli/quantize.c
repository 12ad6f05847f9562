/* quantize.c: `wick quantize`: a model file with smaller types. */
#define _POSIX_C_SOURCE 200809L

#include "cli.h"
#include "interrupt.h"
#include "lora.h"
#include "progress.h"
#include "text_out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct quantize_options {
    const char *in, *out, *type, *imatrix;
    cli_texts adapters;
    uint32_t n_threads;
    bool force;
} quantize_options;

static const cli_option options[] = {
    {.argument = "MODEL.gguf",
     .help = "the model, preferably of f32, f16 or bf16; for a split model, any of "
             "its parts",
     .kind = &cli_model,
     .offset = offsetof(quantize_options, in),
     .is_required = true},
    {.argument = "OUT.gguf",
     .help = "the file to write: whole or not at all",
     .kind = &cli_text,
     .offset = offsetof(quantize_options, out),
     .is_required = true},
    {.argument = "TYPE",
     .help = "Q4_K_M, Q5_K_M, Q6_K, Q8_0, F16 ...: see below",
     .kind = &cli_text,
     .offset = offsetof(quantize_options, type),
     .is_required = true},
    {.name = "imatrix",
     .argument = "FILE",
     .help = "importance matrix: how much each channel matters, from 'wick imatrix'",
     .kind = &cli_in,
     .offset = offsetof(quantize_options, imatrix)},
    {.name = "lora",
     .argument = "ADAPTER[=SCALE]",
     .help = "add this low-rank adapter to the weights that are written; may be given again",
     .kind = &cli_lora,
     .offset = offsetof(quantize_options, adapters)},
    {.name = "threads",
     .letter = 't',
     .argument = "N",
     .help = "threads; 0: one for each core that this process may use",
     .kind = &cli_u32,
     .offset = offsetof(quantize_options, n_threads),
     .most = 1024},
    {.name = "force",
     .help = "replace an existing file",
     .kind = &cli_flag,
     .offset = offsetof(quantize_options, force)},
};
static const cli_group group = {"Arguments and options", options, sizeof options / sizeof *options};
static const cli_group *const groups[] = {&group, NULL};

static const char OUT_HINT[] = "choose another place to write to";

static bool is_quantized(wick_dtype dtype) {
    return dtype != WICK_F32 && dtype != WICK_F16 && dtype != WICK_BF16 && dtype != WICK_F64;
}

/* Prints, with --verbose, a line for each tensor; then the totals and warnings. */
static void print_plan(const quantize_options *o, const wick_quantize_tensor *plan, size_t n) {
    size_t n_quantized = 0, n_fallbacks = 0, n_without = 0, n_again = 0;
    uint64_t before = 0, after = 0;
    for (size_t i = 0; i < n; i++) {
        const wick_file_tensor *const tensor = plan[i].tensor;
        const bool is_changed = plan[i].dtype != tensor->dtype;
        before += tensor->size;
        after += plan[i].size;
        if (is_changed) n_quantized++;
        const bool is_encoded = is_changed || (plan[i].is_merged && is_quantized(plan[i].dtype));
        if (is_encoded && is_quantized(tensor->dtype)) n_again++;
        if (plan[i].is_fallback) n_fallbacks++;
        if (is_encoded && !plan[i].has_importance) n_without++;
        if (!cli_common.verbose) continue;
        cli_put_padded(stdout, tensor->name.text, 40);
        printf(" %-7s -> %-7s%s%s\n", wick_dtype_name(tensor->dtype),
               wick_dtype_name(plan[i].dtype), plan[i].is_fallback ? " (fallback)" : "",
               plan[i].has_importance ? " (importance)" : "");
    }
    if (!cli_common.quiet)
        cli_say("%zu of %zu tensors change their type: %s to %s", n_quantized, n,
                cli_bytes_text(before).text, cli_bytes_text(after).text);
    if (n_fallbacks > 0 && !cli_common.quiet)
        cli_say(
            "%zu tensors get another type than the one of %s: their rows do not fill its blocks",
            n_fallbacks, o->type);
    if (n_again > 0)
        cli_warn("%zu tensors are quantized already and lose precision again: begin with a file of "
                 "f16, bf16 or f32",
                 n_again);
    if (o->imatrix != NULL && n_without > 0 && !cli_common.quiet)
        cli_say("%zu tensors are not in the importance matrix", n_without);
}

/* The name of the model in a file, or of the model that an imatrix was made with; "": none. */
static wick_string name_in(const wick_file *file) {
    const wick_value *const value = wick_file_find_value(file, "general.name");
    return value != NULL && value->type == WICK_VALUE_STRING ? value->string : (wick_string){"", 0};
}

/* Shapes alone do not tell models apart. */
static void warn_other_model(const quantize_options *o) {
    wick_file *model = NULL, *imatrix = NULL;
    if (wick_file_open(o->in, &model, NULL) == WICK_OK &&
        wick_file_open(o->imatrix, &imatrix, NULL) == WICK_OK) {
        const wick_string a = name_in(model), b = name_in(imatrix);
        if (a.size > 0 && b.size > 0 && (a.size != b.size || memcmp(a.text, b.text, a.size) != 0)) {
            fputs("wick: warning: the importance matrix is of '", stderr);
            cli_put_escaped(stderr, b.text, b.size);
            fputs("', the model is '", stderr);
            cli_put_escaped(stderr, a.text, a.size);
            fputs("'\n", stderr);
        }
    }
    wick_file_close(imatrix);
    wick_file_close(model);
}

static wick_status poll(void *quantizing, wick_progress *progress, wick_error *error) {
    return wick_quantize_poll(quantizing, progress, error);
}

static int work(wick_quantizing *quantizing) {
    wick_error error = {0};
    const cli_job job = {.what = "quantizing", .poll = poll, .job = quantizing};
    const wick_status status = cli_poll_all(&job, &error);
    if (status < 0) return cli_report(&error, status == WICK_ERR_IO ? OUT_HINT : "");
    return status == WICK_OK ? CLI_OK : CLI_INTERRUPTED;
}

static const char *start_hint(wick_status status) {
    switch (status) {
    case WICK_ERR_FORMAT: return "";
    case WICK_ERR_NOT_FOUND: return "check the path";
    case WICK_ERR_ARGUMENT: return OUT_HINT;
    case WICK_ERR_STATE: return "--force replaces it";
    default: return NULL;
    }
}

static int fail_type(const quantize_options *o, const wick_error *error) {
    enum { MAX_TYPES = 64 };
    const char *types[MAX_TYPES + 1] = {NULL};
    size_t n = 0;
    while (n < MAX_TYPES && (types[n] = wick_quantize_type(n)) != NULL) n++;
    const char *const nearest = cli_nearest(o->type, types);
    if (nearest == NULL) return cli_usage_error(&cli_quantize, "%s", error->message);
    return cli_usage_error(&cli_quantize, "%s; did you mean %s?", error->message, nearest);
}

/* The same status may come of an adapter. */
static bool is_type(const char *name) {
    const char *type;
    for (size_t i = 0; (type = wick_quantize_type(i)) != NULL; i++)
        if (strcasecmp(type, name) == 0) return true;
    return false;
}

static int run(void *given) {
    const quantize_options *const o = given;
    cli_loras *const loras = cli_read_loras(&o->adapters);
    if (loras == NULL) return CLI_FAILURE;
    const wick_quantize_desc desc = {.type = o->type,
                                     .imatrix = o->imatrix,
                                     .adapters = loras->items,
                                     .n_adapters = loras->n,
                                     .n_threads = o->n_threads,
                                     .replace = o->force};
    cli_watch_interrupt(); /* the temporary file must not stay */
    cli_keep_closed_pipe();
    wick_quantizing *quantizing = NULL;
    wick_error error = {0};
    const wick_status status = wick_quantize_start(o->in, o->out, &desc, &quantizing, &error);
    const bool is_alone = loras->n == 0 && o->imatrix == NULL; /* else it may be another file's */
    free(loras);
    if (status == WICK_ERR_VALUE && !is_type(o->type)) return fail_type(o, &error);
    if (status != WICK_OK)
        return cli_report_file(&error, status == WICK_ERR_FORMAT && is_alone ? o->in : NULL,
                               start_hint(status));
    size_t n = 0;
    const wick_quantize_tensor *const plan = wick_quantize_plan(quantizing, &n);
    print_plan(o, plan, n);
    if (o->imatrix != NULL) warn_other_model(o);
    const int code = work(quantizing);
    if (wick_quantize_finish(quantizing, code == CLI_OK, &error) != WICK_OK && code == CLI_OK)
        return cli_report(&error, OUT_HINT);
    if (code == CLI_OK && !cli_common.quiet) cli_say("wrote %s", o->out);
    return code;
}

const cli_command cli_quantize = {
    .name = "quantize",
    .summary = "make a model file smaller",
    .details = "  wick quantize MODEL-F16.gguf MODEL-Q4_K_M.gguf Q4_K_M\n\n"
               "TYPE is one of these, from the most bits to the least (docs/quantize.md):\n"
               "  F32 BF16 F16 Q8_0 Q6_K Q5_K_M Q5_K_S Q5_1 Q5_0 Q4_K_M Q4_K_S Q4_1 Q4_0\n"
               "  IQ4_NL IQ4_XS Q3_K_L Q3_K_M Q3_K_S Q2_K Q2_K_S, and MXFP4_MOE (only experts)\n",
    .groups = groups,
    .options_size = sizeof(quantize_options),
    .run = run,
};
