/* devices.c: `wick devices`: what can compute here, and why the rest cannot. */
#include "adapters.h"
#include "cli.h"
#include "devices_wgsl.h"
#include "hush.h"
#include "json_out.h"
#include "text_out.h"

#include <stdio.h>

typedef struct devices_options {
    bool json, as_gpu;
    const char *webgpu_lib, *adapter, *wgsl;
} devices_options;

static const cli_option options[] = {
    {.name = "json",
     .help = "print JSON",
     .kind = &cli_flag,
     .offset = offsetof(devices_options, json)},
    {.name = "webgpu-lib",
     .argument = "PATH",
     .help = "look only at this implementation of WebGPU (Dawn, wgpu-native)",
     .kind = &cli_text,
     .offset = offsetof(devices_options, webgpu_lib)},
    {.name = "wgsl",
     .argument = "KERNEL",
     .help = "print the final WGSL of a GPU kernel instead: each program of it that a "
             "few random operations need; an unknown name lists all kernels",
     .kind = &cli_text,
     .offset = offsetof(devices_options, wgsl)},
    {.name = "adapter",
     .argument = "N|NAME|TYPE",
     .help =
         "the GPU for --wgsl: its number, a part of its name, or discrete, integrated, software",
     .kind = &cli_text,
     .offset = offsetof(devices_options, adapter)},
    {.name = "as-gpu",
     .help = "for --wgsl: on a software driver, choose kernels as on a GPU",
     .kind = &cli_flag,
     .offset = offsetof(devices_options, as_gpu)},
};
static const cli_group group = {"Options", options, sizeof options / sizeof *options};
static const cli_group *const groups[] = {&group, NULL};

enum { MAX_BACKENDS = 16 };

typedef struct found_device {
    wick_backend_status backend;
    wick_device_info info; /* where the backend is available */
} found_device;

static found_device look(const wick_backend_status *backend, const devices_options *o) {
    found_device found = {.backend = *backend};
    /* Whether it is there was asked of the implementations that are found without being named. */
    const bool is_named = backend->backend == WICK_BACKEND_WEBGPU && o->webgpu_lib != NULL;
    if (!backend->is_available && !is_named) return found;
    const wick_device_desc desc = {.backend = backend->backend,
                                   .webgpu = {.library = o->webgpu_lib}};
    wick_device *device = NULL;
    wick_error error = {0};
    found.backend.is_available = cli_open_device(&desc, &device, &error) == WICK_OK;
    if (found.backend.is_available) {
        wick_device_get_info(device, &found.info);
        wick_device_close(device);
    } else {
        snprintf(found.backend.reason, sizeof found.backend.reason, "%.150s", error.message);
    }
    return found;
}

static void print_text(const found_device *found) {
    const wick_device_info *const info = &found->info;
    printf("%-8s ", found->backend.name);
    if (!found->backend.is_available) {
        printf("not available: %s\n", found->backend.reason);
        return;
    }
    printf("%s", info->name);
    if (info->isa[0] != '\0')
        printf(", %s, %d thread%s", info->isa, info->n_threads, info->n_threads == 1 ? "" : "s");
    if (info->memory_total > 0) {
        printf(", %s of memory", cli_bytes_text(info->memory_total).text);
        if (info->memory_available > 0) /* else the system does not say */
            printf(", %s available", cli_bytes_text(info->memory_available).text);
    }
    printf("\n");
}

static void print_json(cli_json *json, const found_device *found, const devices_options *o) {
    const wick_device_info *const info = &found->info;
    cli_json_open(json, '{');
    cli_json_put_string(json, "backend", found->backend.name);
    cli_json_key(json, "is_available");
    cli_json_bool(json, found->backend.is_available);
    if (!found->backend.is_available) {
        cli_json_put_string(json, "reason", found->backend.reason);
    } else {
        cli_json_put_string(json, "name", info->name);
        cli_json_put_string(json, "isa", info->isa);
        cli_json_key(json, "n_threads");
        cli_json_signed(json, info->n_threads);
        cli_json_key(json, "memory_total");
        cli_json_unsigned(json, info->memory_total);
        cli_json_key(json, "memory_available");
        cli_json_unsigned(json, info->memory_available);
    }
    if (found->backend.backend == WICK_BACKEND_WEBGPU) {
        cli_json_key(json, "adapters");
        cli_json_adapters(json, o->webgpu_lib);
    }
    cli_json_close(json, '}');
}

static int run(void *given) {
    const devices_options *const o = given;
    if (o->wgsl != NULL)
        return cli_print_wgsl(&(wick_webgpu_desc){.library = o->webgpu_lib,
                                                  .adapter = o->adapter,
                                                  .as_gpu = o->as_gpu},
                              o->wgsl);
    wick_backend_status backends[MAX_BACKENDS];
    size_t n = cli_list_backends(backends, MAX_BACKENDS);
    if (n > MAX_BACKENDS) n = MAX_BACKENDS;
    cli_json json = {.out = stdout};
    if (o->json) cli_json_open(&json, '[');
    for (size_t i = 0; i < n; i++) {
        if (backends[i].backend == WICK_BACKEND_NULL) continue; /* for tests */
        const found_device found = look(&backends[i], o);
        if (o->json)
            print_json(&json, &found, o);
        else
            print_text(&found);
    }
    if (o->json)
        cli_json_close(&json, ']');
    else
        cli_print_adapters(o->webgpu_lib);
    return CLI_OK;
}

const cli_command cli_devices = {
    .name = "devices",
    .summary = "list the backends and GPUs of this machine",
    .details =
        "Backends come in the order in which --backend auto chooses; then every GPU that WebGPU\n"
        "shows, and why one cannot be used.\n",
    .groups = groups,
    .options_size = sizeof(devices_options),
    .run = run,
};
