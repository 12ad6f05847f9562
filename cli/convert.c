/* convert.c: `wick convert`: a folder as Hugging Face has them to a GGUF file. */
#include "cli.h"
#include "interrupt.h"
#include "progress.h"

#include <sys/stat.h>

typedef struct convert_options {
    const char *folder, *out, *type;
    bool force;
} convert_options;

static const cli_option options[] = {
    {.argument = "FOLDER",
     .help = "config.json, tokenizer.model or tokenizer.json, and model.safetensors or its parts "
             "with their index",
     .kind = &cli_text,
     .offset = offsetof(convert_options, folder),
     .is_required = true},
    {.argument = "OUT.gguf",
     .help = "the file to write: whole or not at all",
     .kind = &cli_text,
     .offset = offsetof(convert_options, out),
     .is_required = true},
    {.name = "type",
     .argument = "F32|F16|BF16",
     .help = "type of the matrices; default: they keep theirs. 'wick quantize' makes "
             "smaller ones",
     .kind = &cli_text,
     .offset = offsetof(convert_options, type)},
    {.name = "force",
     .help = "replace an existing file",
     .kind = &cli_flag,
     .offset = offsetof(convert_options, force)},
};
static const cli_group group = {"Arguments and options", options, sizeof options / sizeof *options};
static const cli_group *const groups[] = {&group, NULL};

static const char OUT_HINT[] = "choose another place to write to";

static wick_status poll(void *converting, wick_progress *progress, wick_error *error) {
    return wick_convert_poll(converting, progress, error);
}

static int work(wick_converting *converting) {
    wick_error error = {0};
    const cli_job job = {.what = "converting", .poll = poll, .job = converting};
    const wick_status status = cli_poll_all(&job, &error);
    if (status < 0) return cli_report(&error, status == WICK_ERR_IO ? OUT_HINT : "");
    return status == WICK_OK ? CLI_OK : CLI_INTERRUPTED;
}

static const char *start_hint(wick_status status) {
    switch (status) {
    case WICK_ERR_STATE: return "--force replaces it";
    case WICK_ERR_NOT_FOUND: return "check the path";
    default: return "";
    }
}

static int run(void *given) {
    const convert_options *const o = given;
    const wick_convert_desc desc = {.type = o->type, .replace = o->force};
    cli_watch_interrupt(); /* the temporary file must not stay */
    cli_keep_closed_pipe();
    wick_converting *converting = NULL;
    wick_error error = {0};
    struct stat info;
    if (stat(o->folder, &info) == 0 && S_ISREG(info.st_mode))
        return cli_error("'%s' is a file, not a folder; for GGUF files there is 'wick quantize'",
                         o->folder);
    const wick_status status = wick_convert_start(o->folder, o->out, &desc, &converting, &error);
    if (status == WICK_ERR_VALUE && o->type != NULL)
        return cli_usage_error(&cli_convert, "%s", error.message);
    if (status != WICK_OK) return cli_report(&error, start_hint(status));
    const int code = work(converting);
    if (wick_convert_finish(converting, code == CLI_OK, &error) != WICK_OK && code == CLI_OK)
        return cli_report(&error, OUT_HINT);
    return code;
}

const cli_command cli_convert = {
    .name = "convert",
    .summary = "make a GGUF file of a folder from Hugging Face",
    .details = "  wick convert Qwen3-0.6B/ Qwen3-0.6B.gguf\n\n"
               "Supported: llama, mistral, mixtral, smollm3, granite, qwen2, qwen2_moe, qwen3,\n"
               "qwen3_moe, gemma, gemma2, gemma3_text, phi, phi3, olmo2, olmo3, cohere, glm4,\n"
               "stablelm, starcoder2, gpt2, gpt_neox, falcon and bert: see docs/convert.md.\n",
    .groups = groups,
    .options_size = sizeof(convert_options),
    .run = run,
};
