/* bench/gpu/gpu_bench.h: what a GPU can do and what Wick's kernels and models make of it, for
 * tools/gpu_report. One program, build/gpu_bench:
 *
 *   gpu_bench limits [--seconds S]
 *   gpu_bench kernels [--seconds S] [--rotate MIB]
 *   gpu_bench model NAME [--seconds S]           smollm2-135m, qwen3-0.6b, llama-3-8b
 *   gpu_bench ... [options of tests/device_options.h]
 *
 * Every result is an object of JSON on a line of its own, written when it is known: a driver that
 * hangs or crashes takes nothing along that was measured before. What there was no time for, or
 * what the device has no room for, is a line, too: {"left_out": what, "reason": why}. */
#ifndef GPU_BENCH_H
#define GPU_BENCH_H

#include "core/json_write.h"

#include <wick/wick.h>

typedef struct bench {
    wick_device *device;
    wick_device_info info;
    double deadline; /* wick_time() */
    uint64_t rotated_bytes;
    const char *model;
    bool is_profiled;
    wk_heap heap;
    wk_strbuf line;
} bench;

static inline bool is_late(const bench *b) { return wick_time() >= b->deadline; }

/* A line of the output: begin, wk_write_put...(&b->line), end. */
void begin_line(bench *b);
void put_number(bench *b, const char *key, double value);
void end_line(bench *b);
void leave_out(bench *b, const char *what, const char *reason);
/* Prints error and ends the program where status is a failure. */
void check(wick_status status, const wick_error *error);
/* The same for calls on tensors of the device. */
void check_device(bench *b, wick_status status);
/* Sorts values. */
double median(double *values, int n);

void measure_limits(bench *b);
void measure_kernels(bench *b);
void measure_model(bench *b);

/* random_model.c: a GGUF file of random weights in a model's real shapes, made while it is read. */
typedef struct model_shape {
    const char *name, *architecture;
    uint32_t n_embd, n_layers, n_heads, n_heads_kv, head_dim, n_ff, n_vocab;
    bool is_tied, has_head_norms;
    wick_dtype matrices, table; /* of the layers; of the embedding and the output */
} model_shape;
/* NULL: there is no such name. */
const model_shape *find_shape(const char *name);
/* Ends the program where memory is short. */
wick_source make_random_model(const model_shape *shape);

#endif
