/* bench.h: what `wick bench` finds out, and how it is printed. */
#ifndef WICK_CLI_BENCH_H
#define WICK_CLI_BENCH_H

#include <wick/wick.h>

/* Tokens per second over the repetitions; all zeros: not measured. */
typedef struct cli_bench_speed {
    double median, least, most;
} cli_bench_speed;

/* What a generated token comes to on a GPU, on average. */
typedef struct cli_bench_counts {
    double dispatches, submits, reads;
    double encode_seconds; /* that it was idle while the host made commands for it */
} cli_bench_counts;

/* One model with one device and one pair of lengths. */
typedef struct cli_bench_row {
    const char *model; /* as given */
    wick_model_info info;
    wick_device_info device;
    wick_device_limits limits; /* zeros: not known */
    bool is_fast;              /* the device's math */
    uint32_t n_prompt, n_generated, n_repetitions;
    double load_seconds;
    double longest_submit; /* seconds, of the device up to this row; 0: it has none */
    uint64_t peak_memory;  /* bytes, of the process up to this row; 0: unknown */
    cli_bench_speed prompt, generation;
    wick_session_stats session; /* of the last run */
    cli_bench_counts counts;    /* likewise */
    /* What one token costs at least: operations of matrix products with the weights in a prompt,
     * bytes of weights and cache read in a generation. 0: not known. */
    double ops_per_token, bytes_per_token;
} cli_bench_row;

typedef enum cli_bench_format {
    CLI_BENCH_MARKDOWN,
    CLI_BENCH_CSV,
    CLI_BENCH_JSON,
} cli_bench_format;

/* A named number (NaN: not known) or text, of a row as CSV or JSON. */
typedef struct cli_field {
    const char *name;
    const char *text; /* NULL: a number */
    double number;
} cli_field;

enum { CLI_MAX_FIELDS = 40 };
typedef struct cli_field_list {
    cli_field items[CLI_MAX_FIELDS];
    size_t n;
} cli_field_list;

void cli_add_text(cli_field_list *list, const char *name, const char *text);
/* Counts below 2^53 stay exact. */
void cli_add_number(cli_field_list *list, const char *name, double number);

/* Row i of rows; all have the same names. */
typedef cli_field_list (*cli_fields_fn)(const void *rows, size_t i);
/* As JSON or CSV. */
void cli_fields_print(cli_fields_fn fields_of, const void *rows, size_t n, bool is_json);

/* `wick bench --kernels`, bench_kernels.c. Returns an exit code. */
typedef struct cli_kernel_bench {
    const char *model, *kernels, *tuning; /* may be NULL */
    uint32_t n_prompt;
    bool is_stored; /* the fastest tunings are */
    cli_bench_format format;
} cli_kernel_bench;
int cli_bench_kernels(const wick_device_desc *device, const cli_kernel_bench *options);

void cli_bench_print(const cli_bench_row *rows, size_t n, cli_bench_format format);

#endif
