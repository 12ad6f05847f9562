/* verify.c: `wick verify`: proves on this machine that every kernel of a device is right. */
#include "cli.h"
#include "hush.h"
#include "interrupt.h"
#include "json_out.h"
#include "tuning.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct verify_options {
    const char *kernels;
    wick_backend backend;
    const char *adapter, *webgpu_lib, *tuning;
    int isa; /* wick_isa */
    uint32_t n_cases;
    uint64_t seed;
    bool is_core, as_gpu, store, json;
} verify_options;

static const cli_option options[] = {
    {.argument = "KERNELS",
     .help = "only kernels of this name; * and ? stand for any characters",
     .kind = &cli_text,
     .offset = offsetof(verify_options, kernels)},
    {.name = "cases",
     .argument = "N",
     .help = "random operations for each kernel",
     .kind = &cli_u32,
     .offset = offsetof(verify_options, n_cases),
     .least = 1,
     .most = 1000000},
    {.name = "seed",
     .argument = "N",
     .help = "the same seed gives the same operations",
     .kind = &cli_u64,
     .offset = offsetof(verify_options, seed)},
    {.name = "store",
     .help = "remember for all commands which kernels are wrong on this GPU",
     .kind = &cli_flag,
     .offset = offsetof(verify_options, store)},
    {.name = "json",
     .help = "print JSON",
     .kind = &cli_flag,
     .offset = offsetof(verify_options, json)},
};
static const cli_group group = {"Arguments and options", options, sizeof options / sizeof *options};

static const cli_option device_options[] = {
    {.name = "backend",
     .argument = "auto|cpu|webgpu",
     .help = "the backend to check; 'wick devices' lists what is available",
     .kind = &cli_backend,
     .offset = offsetof(verify_options, backend)},
    {.name = "adapter",
     .argument = "N|NAME|TYPE",
     .help =
         "which GPU, unless --backend is cpu: its number in 'wick devices', a part of its name, "
         "or discrete, integrated, software",
     .kind = &cli_text,
     .offset = offsetof(verify_options, adapter)},
    {.name = "webgpu-lib",
     .argument = "PATH",
     .help = "the implementation of WebGPU: a library of Dawn or wgpu-native",
     .kind = &cli_text,
     .offset = offsetof(verify_options, webgpu_lib)},
    {.name = "tuning",
     .argument = "FILE|none",
     .help = "file of --store; kernels that are disabled in it already stay disabled",
     .kind = &cli_text,
     .offset = offsetof(verify_options, tuning)},
    {.name = "core",
     .help = "use only what every WebGPU device has: no f16, subgroups or packed dot products, "
             "default limits",
     .kind = &cli_flag,
     .offset = offsetof(verify_options, is_core)},
    {.name = "as-gpu",
     .help = "on a software driver, choose kernels as on a GPU",
     .kind = &cli_flag,
     .offset = offsetof(verify_options, as_gpu)},
    {.name = "isa",
     .argument = "auto|ref|avx2|avx512|neon|dotprod|i8mm",
     .help = "highest instruction set of the CPU kernels",
     .kind = &cli_word,
     .offset = offsetof(verify_options, isa)},
};
static const cli_group device_group = {"Device", device_options,
                                       sizeof device_options / sizeof *device_options};
static const cli_group *const groups[] = {&group, &device_group, NULL};

static void set_defaults(void *given) {
    verify_options *const o = given;
    o->n_cases = 25;
    o->seed = 1;
}

/* What is printed, and the counts for the last line. */
typedef struct printer {
    const wick_device_info *device;
    cli_json *json; /* NULL: a table */
    uint64_t n_kernels, n_wrong, n_not_met, n_disabled;
} printer;

static void print_row(const wick_kernel_check *check) {
    printf("%-36s %6" PRIu64 " %10" PRIu64 " %8.1e %8.1e %8.1e %7.4f  %s%s\n", check->kernel,
           check->n_cases, check->n_elements, check->mean_error, check->rms_error, check->max_error,
           check->worst,
           check->status == WICK_OK              ? "right"
           : check->status == WICK_ERR_NOT_FOUND ? "not met"
                                                 : "WRONG",
           check->is_disabled ? ", disabled" : "");
    if (check->status != WICK_OK)
        printf("    %s: %s (--seed %" PRIu64 " --cases 1)\n", wick_status_text(check->status),
               check->failure, check->seed);
    fflush(stdout);
}

static void print_json(cli_json *json, const wick_kernel_check *check) {
    cli_json_open(json, '{');
    cli_json_put_string(json, "kernel", check->kernel);
    cli_json_key(json, "is_right");
    cli_json_bool(json, check->status == WICK_OK);
    cli_json_key(json, "is_disabled");
    cli_json_bool(json, check->is_disabled);
    cli_json_put_string(json, "status", wick_status_text(check->status));
    cli_json_key(json, "cases");
    cli_json_unsigned(json, check->n_cases);
    cli_json_key(json, "elements");
    cli_json_unsigned(json, check->n_elements);
    cli_json_key(json, "mean_error");
    cli_json_number(json, check->mean_error, 4);
    cli_json_key(json, "rms_error");
    cli_json_number(json, check->rms_error, 4);
    cli_json_key(json, "max_error");
    cli_json_number(json, check->max_error, 4);
    cli_json_key(json, "of_bound");
    cli_json_number(json, check->worst, 4);
    cli_json_key(json, "seed");
    cli_json_unsigned(json, check->seed);
    cli_json_put_string(json, "failure", check->failure);
    cli_json_close(json, '}');
}

static void print_device(cli_json *json, const wick_device_info *info) {
    const wick_adapter_info *const adapter = &info->adapter;
    const bool is_webgpu = info->backend == WICK_BACKEND_WEBGPU;
    if (json == NULL) {
        printf("%s: %s, %s%s%s\n\n", info->backend_name, info->name,
               is_webgpu ? adapter->implementation : info->isa, is_webgpu ? ", " : "",
               is_webgpu ? adapter->driver : "");
        printf("%-36s %6s %10s %8s %8s %8s %7s\n", "kernel", "cases", "elements", "mean", "rms",
               "max", "bound");
        return;
    }
    cli_json_open(json, '{');
    cli_json_put_string(json, "backend", info->backend_name);
    cli_json_put_string(json, "device", info->name);
    cli_json_put_string(json, "isa", info->isa);
    cli_json_put_string(json, "implementation", adapter->implementation);
    cli_json_put_string(json, "driver", adapter->driver);
    cli_json_key(json, "kernels");
    cli_json_open(json, '[');
}

static bool report(void *user, const wick_kernel_check *check) {
    printer *const p = user;
    if (p->n_kernels++ == 0) print_device(p->json, p->device);
    p->n_disabled += check->is_disabled;
    p->n_not_met += check->status == WICK_ERR_NOT_FOUND;
    p->n_wrong += check->status != WICK_OK && check->status != WICK_ERR_NOT_FOUND;
    if (p->json != NULL)
        print_json(p->json, check);
    else
        print_row(check);
    return !cli_interrupted();
}

static void print_end(const printer *p) {
    if (p->json == NULL) {
        printf("\n%s%" PRIu64 " kernel%s: %" PRIu64 " right, %" PRIu64 " wrong",
               cli_interrupted() ? "interrupted after " : "", p->n_kernels,
               p->n_kernels == 1 ? "" : "s", p->n_kernels - p->n_wrong - p->n_not_met, p->n_wrong);
        if (p->n_not_met > 0) printf(", %" PRIu64 " not met by random operations", p->n_not_met);
        if (p->n_disabled > 0) printf(", %" PRIu64 " disabled", p->n_disabled);
        printf("\n");
        return;
    }
    cli_json_close(p->json, ']');
    cli_json_key(p->json, "is_complete");
    cli_json_bool(p->json, !cli_interrupted());
    cli_json_key(p->json, "n_kernels");
    cli_json_unsigned(p->json, p->n_kernels);
    cli_json_key(p->json, "n_wrong");
    cli_json_unsigned(p->json, p->n_wrong);
    cli_json_key(p->json, "n_disabled");
    cli_json_unsigned(p->json, p->n_disabled);
    cli_json_close(p->json, '}');
}

static int verify(wick_device *device, const verify_options *o) {
    cli_json json = {.out = stdout};
    wick_device_info info;
    wick_device_get_info(device, &info);
    printer p = {.device = &info, .json = o->json ? &json : NULL};
    const wick_verify_desc desc = {.kernels = o->kernels,
                                   .seed = o->seed,
                                   .n_cases = o->n_cases,
                                   .report = report,
                                   .user = &p};
    wick_error error = {0};
    const wick_status status = wick_verify(device, &desc, &error);
    if (p.n_kernels > 0) print_end(&p);
    if (cli_interrupted()) return CLI_INTERRUPTED;
    if (status == WICK_OK) return CLI_OK;
    return cli_report(&error, status == WICK_ERR_NOT_FOUND ? "without a name it takes all" : NULL);
}

static int run(void *given) {
    const verify_options *const o = given;
    wick_device_desc desc = {.backend = o->backend, .isa = (wick_isa)o->isa};
    desc.webgpu.library = o->webgpu_lib;
    desc.webgpu.adapter = o->adapter;
    desc.webgpu.as_gpu = o->as_gpu;
    desc.webgpu.default_limits = o->is_core;
    if (o->is_core) desc.webgpu.without = UINT32_MAX;
    wick_device *device = NULL;
    wick_error error = {0};
    cli_watch_interrupt();
    cli_keep_closed_pipe();
    if (cli_open_device(&desc, &device, &error) != WICK_OK) return cli_report(&error, NULL);
    int code = cli_tuning_load(device, o->tuning, !o->store);
    if (code == CLI_OK) code = verify(device, o);
    if (o->store && (code == CLI_OK || code == CLI_FAILURE)) {
        const int stored = cli_tuning_store(device, o->tuning);
        if (code == CLI_OK) code = stored;
    }
    wick_device_close(device);
    return code;
}

const cli_command cli_verify = {
    .name = "verify",
    .summary = "check every kernel of a device on this machine",
    .details = "Runs every kernel that the device can run, including those it would not choose, on "
               "random\noperations, and compares with plain loops on the CPU. Errors are relative "
               "to the root mean\nsquare of the results; bound: the largest error as a share of "
               "what is allowed. Exit status\n1: a kernel is wrong.\n",
    .groups = groups,
    .options_size = sizeof(verify_options),
    .defaults = set_defaults,
    .run = run,
};
