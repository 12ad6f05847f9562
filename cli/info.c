/* info.c: `wick info`: what is inside a model file, read from its header alone. */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64

#include "cli.h"
#include "file_info.h"
#include "hush.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

typedef struct info_options {
    const char *model;
    bool json, tensors;
    uint32_t context_length;
    wick_backend backend;
    const char *adapter, *webgpu_lib;
    bool as_gpu;
    uint64_t gpu_memory; /* bytes; 0: not known */
    int math, cache;     /* wick_math, wick_cache */
} info_options;

_Static_assert(WICK_MATH_EXACT == 0 && WICK_MATH_FAST == 1, "words of --math");
_Static_assert(WICK_CACHE_AUTO == 0 && WICK_CACHE_F32 == 1 && WICK_CACHE_F16 == 2 &&
                   WICK_CACHE_Q8_0 == 3 && WICK_CACHE_Q4_0 == 4,
               "words of --cache");

static void set_defaults(void *given) {
    info_options *const o = given;
    o->backend = WICK_BACKEND_CPU;
    o->math = WICK_MATH_FAST;
}

static const cli_option options[] = {
    {.argument = "MODEL.gguf",
     .help = "the file; also a safetensors, .npy, .npz or PyTorch file, or a folder with a "
             "checkpoint from Hugging Face",
     .kind = &cli_model,
     .offset = offsetof(info_options, model),
     .is_required = true},
    {.name = "json",
     .help = "print JSON; long arrays are summarised as in the text",
     .kind = &cli_flag,
     .offset = offsetof(info_options, json)},
    {.name = "tensors",
     .help = "list every tensor",
     .kind = &cli_flag,
     .offset = offsetof(info_options, tensors)},
    {.name = "context",
     .alias = "ctx",
     .letter = 'c',
     .argument = "N",
     .help = "predict memory for a context of N tokens; 0: what 'wick run' takes",
     .kind = &cli_u32,
     .offset = offsetof(info_options, context_length),
     .most = INT32_MAX},
    {.name = "backend",
     .argument = "auto|cpu|webgpu",
     .help = "predict memory for this backend",
     .kind = &cli_backend,
     .offset = offsetof(info_options, backend)},
    {.name = "adapter",
     .argument = "N|NAME|TYPE",
     .help = "the GPU of --backend webgpu, as for 'wick run'",
     .kind = &cli_text,
     .offset = offsetof(info_options, adapter)},
    {.name = "webgpu-lib",
     .argument = "PATH",
     .help = "the implementation of WebGPU: a library of Dawn or wgpu-native",
     .kind = &cli_text,
     .offset = offsetof(info_options, webgpu_lib)},
    {.name = "as-gpu",
     .help = "on a software driver, predict as on a GPU, as for 'wick run'",
     .kind = &cli_flag,
     .offset = offsetof(info_options, as_gpu)},
    {.name = "gpu-memory",
     .argument = "BYTES",
     .help = "predict which layers fit if the GPU has this much memory, such as 500M or 2G",
     .kind = &cli_size,
     .offset = offsetof(info_options, gpu_memory)},
    {.name = "math",
     .argument = "exact|fast",
     .help = "predict memory for this math",
     .kind = &cli_word,
     .offset = offsetof(info_options, math)},
    {.name = "cache",
     .argument = "auto|f32|f16|q8_0|q4_0",
     .help = "predict memory for this type of key-value cache, as for 'wick run'",
     .kind = &cli_word,
     .offset = offsetof(info_options, cache)},
};
static const cli_group group = {"Arguments and options", options, sizeof options / sizeof *options};
static const cli_group *const groups[] = {&group, NULL};

static const wick_value *find_string(const wick_file *file, const char *key) {
    const wick_value *const value = wick_file_find_value(file, key);
    return value != NULL && value->type == WICK_VALUE_STRING ? value : NULL;
}

/* A file that Wick cannot run still has contents to show: a failure here is part of the answer. */
static int predict(const info_options *o, cli_file_info *info) {
    const wick_device_desc desc = {.backend = o->backend,
                                   .math = (wick_math)o->math,
                                   .webgpu = {.library = o->webgpu_lib,
                                              .adapter = o->adapter,
                                              .as_gpu = o->as_gpu,
                                              .pool.max_bytes = o->gpu_memory}};
    wick_device *device = NULL;
    wick_error error = {0};
    if (cli_open_device(&desc, &device, &error) != WICK_OK) return cli_report(&error, NULL);
    const wick_session_desc session = {.context_length = o->context_length,
                                       .cache = (wick_cache)o->cache};
    const wick_status status =
        wick_predict(info->file, device, &session, &info->prediction, &info->unpredicted);
    if (status != WICK_OK) info->unpredicted.status = status;
    wick_device_close(device);
    return CLI_OK;
}

/* Whether the file begins as GGUF files do. */
static bool is_gguf(const char *path) {
    char magic[4] = "";
    FILE *const file = fopen(path, "rb");
    if (file == NULL) return false;
    const bool is_read = fread(magic, 1, sizeof magic, file) == sizeof magic;
    fclose(file);
    return is_read && memcmp(magic, "GGUF", sizeof magic) == 0;
}

static int show(const info_options *o, cli_file_info *info) {
    cli_count_tensors(info);
    int code = CLI_OK;
    if (info->file != NULL)
        code = predict(o, info);
    else
        info->unpredicted =
            (wick_error){.status = WICK_ERR_UNSUPPORTED,
                         .message = "only GGUF files run; 'wick convert' makes them"};
    if (code == CLI_OK && o->json) cli_print_info_json(info);
    if (code == CLI_OK && !o->json) cli_print_info_text(info);
    return code;
}

/* One of both, or NULL. hint: for cli_report_file. */
static wick_status open_any(const char *path, bool is_folder, wick_file **file,
                            wick_tensor_file **tensor_file, const char **hint, wick_error *error) {
    const wick_convert_desc as_it_is = {.type = NULL};
    *hint = "";
    if (is_folder) return wick_convert_preview(path, &as_it_is, file, error);
    const wick_status status = wick_file_open(path, file, error);
    if (status == WICK_ERR_FORMAT && !is_gguf(path)) {
        *error = (wick_error){0};
        return wick_tensor_file_open(path, tensor_file, error);
    }
    *hint = NULL;
    return status;
}

static int run(void *given) {
    const info_options *const o = given;
    wick_error error = {0};
    wick_file *file = NULL;
    wick_tensor_file *tensor_file = NULL;
    const char *hint;
    struct stat found;
    const bool is_there = stat(o->model, &found) == 0;
    const bool is_folder = cli_is_checkpoint(o->model);
    if (open_any(o->model, is_folder, &file, &tensor_file, &hint, &error) != WICK_OK)
        return cli_report_file(&error, o->model, hint);
    cli_file_info info = {.path = o->model,
                          .is_checkpoint = is_folder,
                          .file = file,
                          .tensor_file = tensor_file,
                          .size = file != NULL ? wick_file_size(file)
                                  : is_there   ? (uint64_t)found.st_size
                                               : 0,
                          .lists_tensors = o->tensors,
                          .architecture = find_string(file, "general.architecture"),
                          .name = find_string(file, "general.name")};
    const int code = show(o, &info);
    wick_tensor_file_close(tensor_file);
    wick_file_close(file);
    return code;
}

const cli_command cli_info = {
    .name = "info",
    .summary = "show what is inside a model file, and the memory it will need",
    .groups = groups,
    .options_size = sizeof(info_options),
    .defaults = set_defaults,
    .run = run,
};
