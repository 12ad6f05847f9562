/* bench_out.c: the results of `wick bench` as a table, as CSV or as JSON. */
#include "bench.h"

#include "bar.h"
#include "json_out.h"
#include "text_out.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* NaN where a part is not known. */
static double share(double used, double limit) {
    return used > 0 && limit > 0 ? used / limit : NAN;
}

static double known(double value) { return value > 0 ? value : NAN; }

/* The arithmetic that a prompt is mostly made of. */
static double peak_of(const cli_bench_row *row) {
    return row->is_fast ? row->limits.integer_ops_per_second : row->limits.f32_ops_per_second;
}

static double prompt_share(const cli_bench_row *row) {
    return share(row->prompt.median * row->ops_per_token, peak_of(row));
}

static double generation_share(const cli_bench_row *row) {
    return share(row->generation.median * row->bytes_per_token, row->limits.read_bytes_per_second);
}

/* ---- CSV and JSON: the same fields ---- */

void cli_add_text(cli_field_list *list, const char *name, const char *text) {
    list->items[list->n++] = (cli_field){.name = name, .text = text};
}

void cli_add_number(cli_field_list *list, const char *name, double number) {
    list->items[list->n++] = (cli_field){.name = name, .number = number};
}

static void add_setting(cli_field_list *list, const cli_bench_row *row) {
    cli_add_text(list, "model", row->model);
    cli_add_text(list, "architecture", row->info.architecture);
    cli_add_text(list, "types", row->info.types);
    cli_add_number(list, "file_bytes", (double)row->info.file_bytes);
    cli_add_number(list, "weight_bytes", (double)row->info.weight_bytes);
    cli_add_number(list, "n_parameters", (double)row->info.n_parameters);
    cli_add_text(list, "backend", row->device.backend_name);
    cli_add_text(list, "device", row->device.name);
    cli_add_text(list, "isa", row->device.isa);
    cli_add_number(list, "threads", row->device.n_threads);
    cli_add_text(list, "math", row->is_fast ? "fast" : "exact");
    cli_add_number(list, "n_prompt", row->n_prompt);
    cli_add_number(list, "n_generated", row->n_generated);
    cli_add_number(list, "n_repetitions", row->n_repetitions);
}

/* Of a device without dispatches none is known. */
static void add_counts(cli_field_list *list, const cli_bench_row *row) {
    const cli_bench_counts *const counts = &row->counts;
    const bool is_gpu = counts->dispatches > 0;
    cli_add_number(list, "dispatches_per_token", is_gpu ? counts->dispatches : NAN);
    cli_add_number(list, "submits_per_token", is_gpu ? counts->submits : NAN);
    cli_add_number(list, "reads_per_token", is_gpu ? counts->reads : NAN);
    cli_add_number(list, "bytes_per_token", known(row->bytes_per_token));
    cli_add_number(list, "encode_us_on_critical_path", is_gpu ? 1e6 * counts->encode_seconds : NAN);
}

static void add_result(cli_field_list *list, const cli_bench_row *row) {
    cli_add_number(list, "load_seconds", row->load_seconds);
    cli_add_number(list, "peak_memory_bytes", known((double)row->peak_memory));
    cli_add_number(list, "prefill_tokens_per_second", known(row->prompt.median));
    cli_add_number(list, "prefill_least", known(row->prompt.least));
    cli_add_number(list, "prefill_most", known(row->prompt.most));
    cli_add_number(list, "decode_tokens_per_second", known(row->generation.median));
    cli_add_number(list, "decode_least", known(row->generation.least));
    cli_add_number(list, "decode_most", known(row->generation.most));
    cli_add_number(list, "n_drafted", row->session.n_drafted);
    cli_add_number(list, "n_accepted", row->session.n_accepted);
    add_counts(list, row);
    cli_add_number(list, "longest_submit_seconds", known(row->longest_submit));
    cli_add_text(list, "prefill_arithmetic", row->is_fast ? "integer" : "f32");
    cli_add_number(list, "prefill_share_of_peak", prompt_share(row));
    cli_add_number(list, "decode_share_of_bandwidth", generation_share(row));
    cli_add_number(list, "read_bytes_per_second", known(row->limits.read_bytes_per_second));
    cli_add_number(list, "integer_ops_per_second", known(row->limits.integer_ops_per_second));
    cli_add_number(list, "f32_ops_per_second", known(row->limits.f32_ops_per_second));
    cli_add_number(list, "buffer_seconds", known(row->limits.buffer_seconds));
    cli_add_number(list, "round_trip_seconds", known(row->limits.round_trip_seconds));
    cli_add_number(list, "pipeline_seconds", known(row->limits.pipeline_seconds));
}

static cli_field_list fields_of(const void *rows, size_t i) {
    const cli_bench_row *const row = (const cli_bench_row *)rows + i;
    cli_field_list list = {.n = 0};
    add_setting(&list, row);
    add_result(&list, row);
    return list;
}

static void print_json(cli_fields_fn fields, const void *rows, size_t n) {
    cli_json json = {.out = stdout};
    cli_json_open(&json, '[');
    for (size_t i = 0; i < n; i++) {
        const cli_field_list list = fields(rows, i);
        cli_json_open(&json, '{');
        for (size_t f = 0; f < list.n; f++) {
            const cli_field *const item = &list.items[f];
            cli_json_key(&json, item->name);
            if (item->text != NULL)
                cli_json_string(&json, item->text);
            else
                cli_json_number(&json, item->number, 15);
        }
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, ']');
}

/* Quoted as RFC 4180 says. */
static void put_csv_text(const char *text) {
    putchar('"');
    for (; *text != '\0'; text++) {
        if (*text == '"') putchar('"');
        putchar(*text);
    }
    putchar('"');
}

static void print_csv(cli_fields_fn fields, const void *rows, size_t n) {
    if (n == 0) return;
    const cli_field_list names = fields(rows, 0);
    for (size_t f = 0; f < names.n; f++) printf("%s%s", f > 0 ? "," : "", names.items[f].name);
    putchar('\n');
    for (size_t i = 0; i < n; i++) {
        const cli_field_list list = fields(rows, i);
        for (size_t f = 0; f < list.n; f++) {
            const cli_field *const item = &list.items[f];
            if (f > 0) putchar(',');
            if (item->text != NULL)
                put_csv_text(item->text);
            else if (!isnan(item->number))
                printf("%.15g", item->number);
        }
        putchar('\n');
    }
}

void cli_fields_print(cli_fields_fn fields, const void *rows, size_t n, bool is_json) {
    if (is_json)
        print_json(fields, rows, n);
    else
        print_csv(fields, rows, n);
}

/* ---- Markdown ---- */

static const char *file_name(const char *path) {
    const char *const slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static void print_test(const cli_bench_row *row, bool is_prompt) {
    enum { BAR = 10 };
    const cli_bench_speed *const speed = is_prompt ? &row->prompt : &row->generation;
    if (!(speed->median > 0)) return;
    const double part = is_prompt ? prompt_share(row) : generation_share(row);
    const char *const limit = !is_prompt     ? "of bandwidth"
                              : row->is_fast ? "of integer peak"
                                             : "of f32 peak";
    char test[32], spread[48], used[48] = "";
    snprintf(test, sizeof test, "%s %" PRIu32, is_prompt ? "prefill" : "decode",
             is_prompt ? row->n_prompt : row->n_generated);
    snprintf(spread, sizeof spread, "%.1f to %.1f", speed->least, speed->most);
    if (!is_prompt && row->session.n_drafted > 0)
        snprintf(used, sizeof used, "%" PRIu32 " of %" PRIu32 " guesses right",
                 row->session.n_accepted, row->session.n_drafted);
    else if (!isnan(part))
        snprintf(used, sizeof used, "%.0f %% %s", 100 * part, limit);
    printf("| %s | %s | %d | %s | %.1f | %s | %s | %s |\n", file_name(row->model), test,
           row->device.n_threads, row->is_fast ? "fast" : "exact", speed->median, spread,
           cli_bar_of(part, BAR).text, used);
}

static void print_machine(const cli_bench_row *row) {
    const wick_device_limits *const limits = &row->limits;
    if (!(limits->read_bytes_per_second > 0)) return;
    printf("%d thread%s: reads %.1f GB/s", row->device.n_threads,
           row->device.n_threads == 1 ? "" : "s", 1e-9 * limits->read_bytes_per_second);
    if (limits->f32_ops_per_second > 0)
        printf(", %.0f G integer and %.0f G float32 operations per second",
               1e-9 * limits->integer_ops_per_second, 1e-9 * limits->f32_ops_per_second);
    if (limits->round_trip_seconds > 0)
        printf("; a buffer takes %.0f us, a word there and back %.0f us, a pipeline %.1f ms",
               1e6 * limits->buffer_seconds, 1e6 * limits->round_trip_seconds,
               1e3 * limits->pipeline_seconds);
    printf("\n");
}

static void print_markdown(const cli_bench_row *rows, size_t n) {
    const cli_bench_row *const first = &rows[0];
    printf("%s: tensors %s; %s, %.1f M parameters, loaded in %.2f s\n", file_name(first->model),
           first->info.types, cli_bytes_text(first->info.file_bytes).text,
           1e-6 * (double)first->info.n_parameters, first->load_seconds);
    printf("%s: %s%s%s; median of %" PRIu32 "; peak memory %s\n\n", first->device.backend_name,
           first->device.name, first->device.isa[0] != '\0' ? ", " : "", first->device.isa,
           first->n_repetitions, cli_bytes_text(rows[n - 1].peak_memory).text);
    puts("| model | test | threads | math | tokens/s | least to most | of the limit | share |");
    puts("|---|---|---:|---|---:|---:|---|---:|");
    for (size_t i = 0; i < n; i++) {
        print_test(&rows[i], true);
        print_test(&rows[i], false);
    }
    putchar('\n');
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || rows[i].device.n_threads != rows[i - 1].device.n_threads)
            print_machine(&rows[i]);
    }
    if (rows[n - 1].longest_submit > 0)
        printf("longest submit: %.1f ms\n", 1e3 * rows[n - 1].longest_submit);
}

void cli_bench_print(const cli_bench_row *rows, size_t n, cli_bench_format format) {
    switch (format) {
    case CLI_BENCH_MARKDOWN: print_markdown(rows, n); break;
    case CLI_BENCH_CSV: print_csv(fields_of, rows, n); break;
    case CLI_BENCH_JSON: print_json(fields_of, rows, n); break;
    }
}
