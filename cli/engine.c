/* engine.c: opens devices and loads models, step by step so that Ctrl-C and a progress line work.
 */
#include "engine.h"

#include "cli.h"
#include "embedded_model.h"
#include "hush.h"
#include "interrupt.h"
#include "lora.h"
#include "memory_hint.h"
#include "progress.h"
#include "pull.h"
#include "text_out.h"
#include "tuning.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Words of the tables below are the enumerations' values. */
_Static_assert(WICK_MATH_EXACT == 0 && WICK_MATH_FAST == 1, "words of --math");
_Static_assert(WICK_CACHE_AUTO == 0 && WICK_CACHE_F32 == 1 && WICK_CACHE_F16 == 2 &&
                   WICK_CACHE_Q8_0 == 3 && WICK_CACHE_Q4_0 == 4,
               "words of --cache");
_Static_assert(WICK_SPECULATE_AUTO == 0 && WICK_SPECULATE_NONE == 1 && WICK_SPECULATE_NGRAM == 2 &&
                   WICK_SPECULATE_DRAFT == 3 && WICK_SPECULATE_HEADS == 4 &&
                   WICK_SPECULATE_AHEAD == 5,
               "words of --speculate");
_Static_assert(WICK_ISA_AUTO == 0 && WICK_ISA_REF == 1 && WICK_ISA_AVX2 == 2 &&
                   WICK_ISA_AVX512 == 3 && WICK_ISA_NEON == 4 && WICK_ISA_DOTPROD == 5 &&
                   WICK_ISA_I8MM == 6,
               "words of --isa");

static const cli_option engine_options[] = {
    /* For any device; */
    {.name = "threads",
     .letter = 't',
     .argument = "N",
     .help = "CPU threads; 0: one for each core that this process may use, which is "
             "also the maximum",
     .kind = &cli_u32,
     .offset = offsetof(cli_engine_options, n_threads),
     .most = 1024},
    {.name = "isa",
     .argument = "auto|ref|avx2|avx512|neon|dotprod|i8mm",
     .help = "highest instruction set of the CPU kernels; ref: plain loops, the specification",
     .kind = &cli_word,
     .offset = offsetof(cli_engine_options, isa)},
    {.name = "math",
     .argument = "exact|fast",
     .help = "exact: everything in float32, the same bits for any chunk; fast: activations may be "
             "quantized, the cache is float16",
     .kind = &cli_word,
     .offset = offsetof(cli_engine_options, math)},
    {.name = "chunk",
     .argument = "N",
     .help = "prompt tokens that are computed at a time",
     .kind = &cli_u32,
     .offset = offsetof(cli_engine_options, chunk_length),
     .least = 1,
     .most = 8192},
    {.name = "cache",
     .argument = "auto|f32|f16|q8_0|q4_0",
     .help = "number type of the key-value cache; auto: f32 in exact, f16 in fast "
             "math; q8_0 and q4_0 take half and a quarter of f16's memory",
     .kind = &cli_word,
     .offset = offsetof(cli_engine_options, cache)},
    {.name = "strict",
     .help = "fail where the device has no kernel for an operation, instead of running it on the "
             "CPU; plain loops (cpu/ref) count as kernels of the CPU",
     .kind = &cli_flag,
     .offset = offsetof(cli_engine_options, strict)},
    {.name = "verify",
     .help = "run every operation in plain loops as well and compare; slow",
     .kind = &cli_flag,
     .offset = offsetof(cli_engine_options, verify)},
    {.name = "profile",
     .help = "print the time of every kernel at the end, on standard error",
     .kind = &cli_flag,
     .offset = offsetof(cli_engine_options, profile)},
    {.name = "no-fusion",
     .help =
         "compute every operation by itself, without joining elementwise operations into chains",
     .kind = &cli_flag,
     .offset = offsetof(cli_engine_options, no_fusion)},
    {.name = "no-map",
     .help = "read the file into memory instead of mapping it; a mapped file must not change while "
             "in use",
     .kind = &cli_flag,
     .offset = offsetof(cli_engine_options, no_map)},
    {.name = "low-memory",
     .help = "the CPU computes with the weights in the mapped file instead of a copy: for models "
             "larger than the memory; the same results, slower",
     .kind = &cli_flag,
     .offset = offsetof(cli_engine_options, low_memory)},
    /* which device and adapters, and for a GPU. */
    {.name = "lora",
     .argument = "ADAPTER[=SCALE]",
     .help =
         "add this low-rank adapter to the model: a file of 'wick finetune' or of llama.cpp, or "
         "a folder of PEFT; may be given again",
     .kind = &cli_lora,
     .offset = offsetof(cli_engine_options, adapters)},
    {.name = "backend",
     .argument = "auto|cpu|webgpu",
     .help = "where to compute; 'wick devices' lists what is available",
     .kind = &cli_backend,
     .offset = offsetof(cli_engine_options, backend)},
    {.name = "adapter",
     .argument = "N|NAME|TYPE",
     .help =
         "which GPU, unless --backend is cpu: its number in 'wick devices', a part of its name, "
         "or discrete, integrated, software",
     .kind = &cli_text,
     .offset = offsetof(cli_engine_options, adapter)},
    {.name = "webgpu-lib",
     .argument = "PATH",
     .help = "the implementation of WebGPU: a library of Dawn or wgpu-native",
     .kind = &cli_text,
     .offset = offsetof(cli_engine_options, webgpu_lib)},
    {.name = "as-gpu",
     .help = "on a software driver, choose kernels as on a GPU, for tests",
     .kind = &cli_flag,
     .offset = offsetof(cli_engine_options, as_gpu)},
    {.name = "tuning",
     .argument = "FILE|none",
     .help = "how to choose a GPU's kernels (docs/webgpu.md); default: what 'wick "
             "bench --kernels --store' has stored for the device",
     .kind = &cli_in,
     .offset = offsetof(cli_engine_options, tuning)},
    {.name = "gpu-layers",
     .alias = "ngl",
     .argument = "N|auto|all",
     .help = "layers that the GPU keeps, the last ones; those before them run on the CPU; auto: as "
             "many as its memory has room for",
     .kind = &cli_layers,
     .offset = offsetof(cli_engine_options, device_layers)},
    {.name = "gpu-memory",
     .argument = "BYTES",
     .help = "take no more of the GPU's memory than this, such as 500M or 2G",
     .kind = &cli_size,
     .offset = offsetof(cli_engine_options, gpu_memory)},
    {.name = "debug",
     .help = "check every GPU command separately, so that errors name its kernel, and "
             "print what the library logs, on standard error; slow",
     .kind = &cli_flag,
     .offset = offsetof(cli_engine_options, debug)},
    {.name = "no-kernel-cache",
     .help = "neither keep compiled GPU kernels in ~/.cache/wick/kernels nor use "
             "those there",
     .kind = &cli_flag,
     .offset = offsetof(cli_engine_options, no_kernel_cache)},
    {.name = "no-warm-up",
     .help = "compile GPU kernels when they are first needed instead of while the "
             "model is loaded: ready sooner, but the first tokens wait",
     .kind = &cli_flag,
     .offset = offsetof(cli_engine_options, no_warm_up)},
};

static const cli_option speculation_options[] = {
    {.name = "speculate",
     .argument = "auto|none|ngram|draft|heads|ahead",
     .help = "guess tokens and compute them together, which changes no text: ngram: "
             "guess what followed the last tokens earlier in the text; draft: use "
             "--draft; heads: use the model's own prediction head; ahead: let the "
             "GPU draw tokens itself and compute on; auto: what there is, where it pays",
     .kind = &cli_word,
     .offset = offsetof(cli_engine_options, speculate)},
    {.name = "draft",
     .argument = "DRAFT.gguf",
     .help = "a smaller model of the same vocabulary that makes the guesses "
             "(docs/speculation.md)",
     .kind = &cli_model,
     .offset = offsetof(cli_engine_options, draft)},
};
const cli_group cli_speculation_group = {"Speculation", speculation_options,
                                         sizeof speculation_options / sizeof *speculation_options};

enum { KERNEL_CACHE_SIZE = 64 << 20 /* bytes */ };
enum { N_OPTIONS = sizeof engine_options / sizeof *engine_options, N_HOST_OPTIONS = 11 };
const cli_group cli_engine_group = {"Computing", engine_options, N_OPTIONS};
const cli_group cli_engine_host_group = {"Computing", engine_options, N_HOST_OPTIONS};
const cli_group cli_engine_rest_group = {"Computing", engine_options + 1, N_OPTIONS - 1};

void cli_engine_defaults(cli_engine_options *options, wick_math math) {
    options->math = (int)math;
    options->chunk_length = 512;
}

static void print_log(void *user, wick_log_level level, const char *message) {
    static const char *const levels[] = {
        [WICK_LOG_DEBUG] = "debug", [WICK_LOG_INFO] = "info", [WICK_LOG_WARNING] = "warning"};
    (void)user;
    fprintf(stderr, "wick: %s: %s\n", levels[level], message);
}

static void warn_without_effect(const wick_device *device, const cli_engine_options *options) {
    wick_device_info info;
    wick_device_get_info(device, &info);
    if (info.backend != WICK_BACKEND_CPU) return;
    if (options->n_threads > (uint32_t)info.n_threads)
        cli_warn("--threads %" PRIu32 ": this process may use %d processors, so %d threads compute",
                 options->n_threads, info.n_threads, info.n_threads);
    if (options->device_layers > 0)
        cli_warn("--gpu-layers has no effect: all layers are on the CPU");
}

static int open_device(cli_engine *engine, const cli_engine_options *options) {
    if (!options->no_kernel_cache)
        cli_kernel_cache_open(&engine->kernel_cache, (uint64_t)KERNEL_CACHE_SIZE);
    const wick_device_desc desc = {
        .backend = options->backend,
        .math = (wick_math)options->math,
        .n_threads = (int)options->n_threads,
        .isa = (wick_isa)options->isa,
        .strict = options->strict,
        .verify = options->verify,
        .profile = options->profile,
        .fusion = options->no_fusion ? WICK_FUSION_OFF : WICK_FUSION_AUTO,
        .log = options->debug || cli_common.verbose ? print_log : NULL,
        .webgpu = {.library = options->webgpu_lib,
                   .adapter = options->adapter,
                   .debug = options->debug,
                   .as_gpu = options->as_gpu,
                   .pool.max_bytes = options->gpu_memory,
                   .cache = cli_kernel_cache_functions(&engine->kernel_cache)},
    };
    wick_error error = {0};
    if (cli_open_device(&desc, &engine->device, &error) != WICK_OK) return cli_report(&error, NULL);
    warn_without_effect(engine->device, options);
    return cli_tuning_load(engine->device, options->tuning, true);
}

/* Some files hold a vocabulary for tests and nothing else. NULL: this one does not. */
static const char *vocabulary_hint(const char *path) {
    wick_file *file = NULL;
    if (path == NULL || wick_file_open(path, &file, NULL) != WICK_OK) return NULL;
    const bool is_vocabulary = wick_file_tensor_count(file) == 0 &&
                               wick_file_find_value(file, "tokenizer.ggml.tokens") != NULL;
    wick_file_close(file);
    return is_vocabulary ? "it has only a vocabulary, which 'wick tokenize' can use" : NULL;
}

/* path: for messages. */
static int load(wick_device *device, wick_source source, const wick_model_desc *desc,
                const char *path, wick_model **model) {
    wick_error error = {0};
    wick_model_loading *loading = NULL;
    if (wick_model_open_start(device, source, desc, &loading, &error) != WICK_OK)
        return cli_report_file(&error, path, NULL);
    cli_progress line = cli_progress_begin("loading", NULL);
    wick_progress progress = {0};
    while (!cli_interrupted() && wick_model_open_poll(loading, &progress) == WICK_PENDING) {
        const bool is_compiling = progress.done == progress.total;
        if (is_compiling && progress.total > 0) line.what = "compiling kernels";
        cli_progress_show(&line, is_compiling ? 0 : progress.done,
                          is_compiling ? 0 : progress.total);
        if (is_compiling) wick_pause(device);
    }
    cli_progress_clear(&line);
    const wick_status status = wick_model_open_finish(loading, model, &error);
    if (status == WICK_ERR_CANCELLED) return CLI_INTERRUPTED;
    if (status == WICK_ERR_OUT_OF_MEMORY && path != NULL) {
        const cli_memory_hint hint = cli_find_memory_hint(device, path, desc);
        return cli_report_file(&error, path, hint.text);
    }
    if (status == WICK_OK) return CLI_OK;
    const bool is_of_head = desc->prediction_head && strstr(error.message, "prediction head");
    return cli_report_file(
        &error, path, is_of_head ? "it runs without --speculate heads" : vocabulary_hint(path));
}

wick_model_desc cli_engine_model_desc(const cli_engine_options *options,
                                      const wick_session_desc *sessions) {
    return (wick_model_desc){.no_map = options->no_map,
                             .device_layers = options->device_layers,
                             .sessions = sessions,
                             .no_warm_up = options->no_warm_up,
                             .cache_limit = options->cache_limit,
                             .low_memory = options->low_memory};
}

int cli_engine_load(const cli_engine *engine, const cli_engine_options *options,
                    const wick_session_desc *sessions, const char *path, wick_model **model) {
    wick_error error = {0};
    wick_source source = {0};
    if (wick_source_files(&path, 1, &source, &error) != WICK_OK) return cli_report(&error, NULL);
    const wick_model_desc desc = cli_engine_model_desc(options, sessions);
    return load(engine->device, source, &desc, path, model);
}

static int add_adapters(const cli_engine *engine, const cli_texts *adapters) {
    if (adapters->n == 0) return CLI_OK;
    cli_loras *const loras = cli_read_loras(adapters);
    int code = loras != NULL ? CLI_OK : CLI_FAILURE;
    for (size_t i = 0; code == CLI_OK && i < loras->n; i++) {
        const wick_merge *const lora = &loras->items[i];
        wick_error error = {0};
        if (wick_model_add_adapter(engine->model, lora->path, lora->scale, &error) != WICK_OK)
            code = cli_report(&error, NULL);
    }
    free(loras);
    return code;
}

/* A remote path becomes that of the file, in fetched. */
static int fetch(const char **path, cli_path *fetched) {
    if (*path == NULL || !cli_is_remote(*path)) return CLI_OK;
    const int code = cli_pull_model(*path, fetched);
    *path = fetched->text;
    return code;
}

int cli_engine_load_draft(cli_engine *engine, const cli_engine_options *options,
                          const wick_session_desc *sessions) {
    const char *path = options->draft;
    cli_path fetched;
    if (path == NULL) return CLI_OK;
    const int code = fetch(&path, &fetched);
    return code == CLI_OK ? cli_engine_load(engine, options, sessions, path, &engine->draft) : code;
}

int cli_engine_open_device(cli_engine *engine, const cli_engine_options *options) {
    *engine = (cli_engine){0};
    cli_watch_interrupt();
    const int code = open_device(engine, options);
    if (code != CLI_OK) cli_engine_close(engine);
    return code;
}

int cli_engine_open(cli_engine *engine, const cli_engine_options *options,
                    const wick_session_desc *sessions, const char *path) {
    *engine = (cli_engine){0};
    cli_watch_interrupt();
    cli_path fetched;
    wick_error error = {0};
    wick_source source = {0};
    int code = fetch(&path, &fetched);
    if (code != CLI_OK) return code;
    if (path == NULL)
        source = wick_source_memory(wick_embedded_model, wick_embedded_model_size);
    else if (wick_source_files(&path, 1, &source, &error) != WICK_OK)
        return cli_report_file(&error, path, NULL);
    code = open_device(engine, options);
    wick_model_desc desc = cli_engine_model_desc(options, sessions);
    desc.prediction_head = options->speculate == WICK_SPECULATE_HEADS;
    if (code == CLI_OK)
        code = load(engine->device, source, &desc, path, &engine->model);
    else
        source.close(&source);
    if (code == CLI_OK) code = add_adapters(engine, &options->adapters);
    if (code == CLI_OK) code = cli_engine_load_draft(engine, options, sessions);
    if (code != CLI_OK) cli_engine_close(engine);
    return code;
}

void cli_engine_close(cli_engine *engine) {
    wick_model_close(engine->draft);
    wick_model_close(engine->model);
    wick_device_close(engine->device);
    cli_kernel_cache_close(&engine->kernel_cache);
    *engine = (cli_engine){0};
}

const char *cli_step_hint(wick_status status) {
    /* All that a loaded model needs has a kernel somewhere; --verify may find it wrong. */
    if (status == WICK_ERR_MISMATCH)
        return "please report it with the command line and 'wick devices'";
    return status == WICK_ERR_UNSUPPORTED ? "leave out --strict" : NULL;
}

void cli_warn_context(const wick_model *model, uint32_t context_length) {
    wick_model_info info;
    wick_model_get_info(model, &info);
    if (context_length <= info.context_length) return;
    cli_warn("the model was made for %" PRIu32 " tokens; in a context of %" PRIu32
             " the text beyond them may make no sense",
             info.context_length, context_length);
}

void cli_note_short_context(const wick_model *model, uint32_t context_length) {
    wick_model_info info;
    wick_model_get_info(model, &info);
    if (context_length != 0 || info.short_context_length == 0 || cli_common.quiet) return;
    cli_say("the context is %" PRIu32 " tokens at most; --context N asks for up to %" PRIu32
            ", with the model's other rotary divisors (docs/sessions.md)",
            info.short_context_length, info.context_length);
}

void cli_print_placement(const wick_model *model) {
    wick_model_info info;
    wick_device_info device;
    wick_model_get_info(model, &info);
    wick_device_get_info(wick_model_device(model), &device);
    const uint32_t n = info.host_layers;
    if (n == 0) return;
    char memory[128] = "", layers[64];
    if (info.bytes_needed > 0) {
        const cli_size_text needed = cli_bytes_text(info.bytes_needed);
        snprintf(memory, sizeof memory, ": all take %s of the GPU's memory, %s are available",
                 needed.text, cli_bytes_text(info.bytes_available).text);
    }
    if (n < info.n_layers) {
        snprintf(layers, sizeof layers, "%" PRIu32 "-%" PRIu32, n, info.n_layers - 1);
        cli_say("layers 0-%" PRIu32 " on the CPU, %s on %s%s", n - 1, layers, device.name, memory);
    } else {
        cli_say("all %" PRIu32 " layers on the CPU%s", n, memory);
    }
}

void cli_print_verified(const wick_model *model) {
    wick_device_stats stats, host;
    wick_device_get_stats(wick_model_device(model), &stats);
    wick_device_get_stats(wick_model_host(model), &host); /* zeros where there is none */
    const uint64_t n = stats.n_verified + host.n_verified;
    fprintf(stderr, "verified: %" PRIu64 " operation%s agree%s with plain loops (cpu/ref)\n", n,
            n == 1 ? "" : "s", n == 1 ? "s" : "");
}

static int by_time(const void *a, const void *b) {
    const double x = ((const wick_kernel_stats *)a)->seconds;
    const double y = ((const wick_kernel_stats *)b)->seconds;
    return (x < y) - (x > y);
}

/* Of a GPU. */
static void print_pipelines(const wick_device *device) {
    wick_device_stats stats;
    wick_device_get_stats(device, &stats);
    if (stats.n_pipelines == 0) return;
    fprintf(stderr,
            "%" PRIu64 " kernels (%s of text) compiled in %.2f s, of which %.2f s were waited for; "
            "%" PRIu64 " failed\n%" PRIu64 " bind groups made, %" PRIu64 " found again\n",
            stats.n_pipelines, cli_bytes_text(stats.shader_bytes).text, stats.compile_seconds,
            stats.compile_wait_seconds, stats.n_pipeline_failures, stats.n_bind_groups,
            stats.n_bind_group_hits);
}

/* bandwidth: bytes per second; 0: not known. */
static void print_kernel(const wick_kernel_stats *k, double total, double bandwidth) {
    const double bytes = k->bytes_read + k->bytes_written;
    char share[32] = "";
    if (bandwidth > 0 && k->seconds > 0)
        snprintf(share, sizeof share, "%.1f%%", 100 * bytes / k->seconds / bandwidth);
    fprintf(stderr, "%-32s %9" PRIu64 " %10" PRIu64 " %12.3f %6.1f%% %9.1f %9.1f %8.2f %8s\n",
            k->name, k->calls, k->n_dispatches, 1e3 * k->seconds,
            total > 0 ? 100 * k->seconds / total : 0.0, 1e-6 * k->bytes_read,
            1e-6 * k->bytes_written, k->seconds > 0 ? 1e-9 * bytes / k->seconds : 0.0, share);
}

static void print_profile(wick_device *device) {
    print_pipelines(device);
    const size_t n = wick_device_get_profile(device, NULL, 0);
    if (n == 0) {
        fputs("nothing was timed: the device has no timestamps\n", stderr);
        return;
    }
    wick_kernel_stats *const kernels = calloc(n + 1, sizeof *kernels);
    if (kernels == NULL) return;
    wick_device_get_profile(device, kernels, n);
    qsort(kernels, n, sizeof *kernels, by_time);
    double total = 0;
    for (size_t i = 0; i < n; i++) total += kernels[i].seconds;
    wick_device_limits limits = {0};
    (void)wick_device_measure(device, &limits, NULL); /* without it shares stay open */
    wick_device_info info;
    wick_device_get_info(device, &info);
    if (info.backend == WICK_BACKEND_WEBGPU)
        fputs("every dispatch was a pass of its own, and every submit was waited for\n", stderr);
    fprintf(stderr, "%-32s %9s %10s %12s %7s %9s %9s %8s %8s\n", "kernel", "calls", "dispatches",
            "ms", "share", "MB read", "written", "GB/s", "of read");
    for (size_t i = 0; i < n; i++) print_kernel(&kernels[i], total, limits.read_bytes_per_second);
    free(kernels);
}

void cli_print_profile(const wick_model *model) {
    print_profile(wick_model_device(model));
    if (wick_model_host(model) == NULL) return;
    fputs("layers on the CPU:\n", stderr);
    print_profile(wick_model_host(model));
}
