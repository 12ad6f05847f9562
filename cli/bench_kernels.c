/* bench_kernels.c: `wick bench --kernels`: every kernel of a GPU in all of its tunings, on the
 * operations of a model. */
#include "bench.h"

#include "cli.h"
#include "hush.h"
#include "interrupt.h"
#include "json_out.h"
#include "tuning.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WEIGHTS = 32 };

/* --- Sizes --- */

static int64_t metadata_number(const wick_file *file, const char *key) {
    char name[96];
    const wick_value *const arch = wick_file_find_value(file, "general.architecture");
    if (arch == NULL || arch->type != WICK_VALUE_STRING || arch->string.size > 32) return 0;
    snprintf(name, sizeof name, "%.*s.%s", (int)arch->string.size, arch->string.text, key);
    const wick_value *const value = wick_file_find_value(file, name);
    return value != NULL && value->type == WICK_VALUE_U32 ? (int64_t)value->u : 0;
}

/* Each kind of matrix once; of the embedding only what the output takes of it. */
static void add_weight(wick_kernel_sizes *sizes, wick_kernel_weight *weights,
                       const wick_file_tensor *tensor) {
    const wick_kernel_weight w = {
        .n = tensor->shape.extent[0], .k = tensor->shape.extent[1], .dtype = tensor->dtype};
    for (size_t i = 0; i < sizes->n_weights; i++)
        if (weights[i].n == w.n && weights[i].k == w.k && weights[i].dtype == w.dtype) return;
    if (sizes->n_weights < MAX_WEIGHTS) weights[sizes->n_weights++] = w;
}

static int read_sizes(const char *path, wick_kernel_sizes *sizes, wick_kernel_weight *weights) {
    wick_file *file = NULL;
    wick_error error = {0};
    if (path == NULL) return CLI_OK;
    if (wick_file_open(path, &file, &error) != WICK_OK) return cli_report_file(&error, path, NULL);
    sizes->n_embd = metadata_number(file, "embedding_length");
    sizes->n_ff = metadata_number(file, "feed_forward_length");
    sizes->n_heads = metadata_number(file, "attention.head_count");
    sizes->n_heads_kv = metadata_number(file, "attention.head_count_kv");
    if (sizes->n_heads > 0) sizes->head_dim = sizes->n_embd / sizes->n_heads;
    if (sizes->n_heads_kv == 0) sizes->n_heads_kv = sizes->n_heads;
    for (size_t i = 0; i < wick_file_tensor_count(file); i++) {
        const wick_file_tensor *const tensor = wick_file_get_tensor(file, i);
        if (tensor->shape.rank != 2) continue;
        if (strcmp(tensor->name.text, "token_embd.weight") == 0)
            sizes->n_vocab = tensor->shape.extent[0];
        add_weight(sizes, weights, tensor);
    }
    sizes->weights = weights;
    wick_file_close(file);
    return CLI_OK;
}

/* --- Results --- */

typedef struct timing {
    wick_kernel_time time;
    char op[200];
} timing;

typedef struct results {
    const wick_device_info *device;
    wick_device_limits limits;
    timing *rows;
    size_t n, capacity;
    bool is_table, has_failed; /* rows are printed as they come */
} results;

static double known(double value) { return value > 0 ? value : NAN; }

static double share_of_bandwidth(const results *r, const timing *row) {
    return known(row->time.bytes / row->time.seconds / r->limits.read_bytes_per_second);
}

static cli_field_list fields_of(const void *user, size_t i) {
    const results *const r = user;
    const timing *const row = &r->rows[i];
    cli_field_list list = {.n = 0};
    cli_add_text(&list, "device", r->device->name);
    cli_add_text(&list, "implementation", r->device->adapter.implementation);
    cli_add_text(&list, "driver", r->device->adapter.driver);
    cli_add_text(&list, "kernel", row->time.kernel);
    cli_add_text(&list, "op", row->op);
    cli_add_number(&list, "tuning", row->time.tuning);
    cli_add_number(&list, "n_tunings", row->time.n_tunings);
    cli_add_number(&list, "is_fastest", row->time.is_fastest);
    cli_add_text(&list, "clock", row->time.is_on_gpu ? "timestamps" : "host");
    cli_add_number(&list, "seconds", row->time.seconds);
    cli_add_number(&list, "bytes_per_second", known(row->time.bytes / row->time.seconds));
    cli_add_number(&list, "flops", known(row->time.flops / row->time.seconds));
    cli_add_number(&list, "share_of_bandwidth", share_of_bandwidth(r, row));
    cli_add_number(&list, "read_bytes_per_second", known(r->limits.read_bytes_per_second));
    return list;
}

static void print_row(const results *r, const timing *row) {
    char flops[32] = "", share[32] = "";
    if (row->time.flops > 0)
        snprintf(flops, sizeof flops, "%.1f", 1e-9 * row->time.flops / row->time.seconds);
    if (!isnan(share_of_bandwidth(r, row)))
        snprintf(share, sizeof share, "%.1f %%", 100 * share_of_bandwidth(r, row));
    printf("%-24s %4" PRIu32 "%s %11.1f %9.2f %9s %8s  %s\n", row->time.kernel, row->time.tuning,
           row->time.n_tunings > 1 && row->time.is_fastest ? "*" : " ", 1e6 * row->time.seconds,
           1e-9 * row->time.bytes / row->time.seconds, flops, share, row->op);
    fflush(stdout);
}

static bool report(void *user, const wick_kernel_time *time) {
    results *const r = user;
    if (r->n == r->capacity) {
        const size_t larger = r->capacity > 0 ? 2 * r->capacity : 64;
        timing *const moved = realloc(r->rows, larger * sizeof *moved);
        if (moved == NULL) r->has_failed = true;
        if (moved == NULL) return false;
        r->rows = moved;
        r->capacity = larger;
    }
    timing *const row = &r->rows[r->n++];
    row->time = *time;
    snprintf(row->op, sizeof row->op, "%s", time->op);
    if (r->is_table) print_row(r, row);
    return !cli_interrupted();
}

static void print_head(const results *r) {
    printf("%s, %s %s: reads %.1f GB/s, %.0f G float32 operations per second\n\n", r->device->name,
           r->device->adapter.implementation, r->device->adapter.driver,
           1e-9 * r->limits.read_bytes_per_second, 1e-9 * r->limits.f32_ops_per_second);
    printf("%-24s %5s %11s %9s %9s %8s  %s\n", "kernel", "form", "us", "GB/s", "Gflop/s", "of read",
           "operation (* the fastest form)");
}

static int time_kernels(wick_device *device, const cli_kernel_bench *o, results *r) {
    wick_kernel_weight weights[MAX_WEIGHTS];
    wick_time_desc desc = {
        .kernels = o->kernels, .choose = o->is_stored, .report = report, .user = r};
    int code = read_sizes(o->model, &desc.sizes, weights);
    if (code != CLI_OK) return code;
    desc.sizes.n_prompt = o->n_prompt;
    wick_error error = {0};
    if (wick_device_measure(device, &r->limits, &error) != WICK_OK) return cli_report(&error, NULL);
    if (r->is_table) print_head(r);
    const wick_status status = wick_time_kernels(device, &desc, &error);
    if (r->has_failed) return cli_error("out of memory for the results");
    if (cli_interrupted()) return CLI_INTERRUPTED;
    if (status != WICK_OK) return cli_report(&error, NULL);
    if (!r->is_table) cli_fields_print(fields_of, r, r->n, o->format == CLI_BENCH_JSON);
    return o->is_stored ? cli_tuning_store(device, o->tuning) : CLI_OK;
}

int cli_bench_kernels(const wick_device_desc *given, const cli_kernel_bench *options) {
    wick_device_desc desc = *given;
    wick_device *device = NULL;
    wick_error error = {0};
    desc.profile = true; /* timestamps */
    cli_watch_interrupt();
    if (cli_open_device(&desc, &device, &error) != WICK_OK) return cli_report(&error, NULL);
    wick_device_info info;
    wick_device_get_info(device, &info);
    results r = {.device = &info, .is_table = options->format == CLI_BENCH_MARKDOWN};
    int code = info.backend == WICK_BACKEND_WEBGPU
                   ? cli_tuning_load(device, options->tuning, !options->is_stored)
                   : cli_error("--kernels is for GPUs: --backend webgpu");
    if (code == CLI_OK) code = time_kernels(device, options, &r);
    free(r.rows);
    wick_device_close(device);
    return code;
}
