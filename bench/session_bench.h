/* bench/session_bench.h: what the benches of sessions have in common: their command line
 *
 *   NAME MODEL.gguf [OPTION VALUE]... [options of device_options.h]
 *
 * the model that it names, time, and medians. */
#ifndef SESSION_BENCH_H
#define SESSION_BENCH_H

#include "device_options.h"

#include <wick/wick.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* With POSIX's clock: the including file defines _POSIX_C_SOURCE. */
static inline double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline void check(wick_status status, const wick_error *error) {
    if (status >= 0) return;
    fprintf(stderr, "%s\n", error->message);
    exit(1);
}

static inline int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline double median(double *values, uint32_t n) {
    qsort(values, n, sizeof *values, by_size);
    return values[n / 2];
}

/* A whole number within bounds. */
static inline uint32_t number_in(const char *text, long least, long most) {
    const long n = atol(text);
    return (uint32_t)(n < least ? least : n > most ? most : n);
}

/* Of the bench's own options; false: there is none of this name. */
typedef bool (*parse_own_fn)(void *setup, const char *name, const char *text);

/* Opens the model on a device in fast math, or ends the program: own: how the usage text shows the
 * bench's own options. */
static inline wick_model *open_model(int argc, char **argv, parse_own_fn parse_own, void *setup,
                                     const char *own) {
    const char *path = NULL;
    wick_device_desc desc = {.math = WICK_MATH_FAST};
    for (int i = 1; i < argc; i++) {
        const bool is_pair = i + 1 < argc;
        if (parse_webgpu(argc, argv, &i, &desc.webgpu)) continue;
        if (argv[i][0] != '-' && !path)
            path = argv[i];
        else if (is_pair && (parse_own(setup, argv[i], argv[i + 1]) ||
                             parse_device_pair(&desc, argv[i], argv[i + 1])))
            i++;
        else
            path = NULL, i = argc;
    }
    if (!path) {
        fprintf(stderr,
                "usage: %s MODEL.gguf %s [--backend NAME] [--isa NAME] [--threads N] " WEBGPU_USAGE
                "\n",
                argv[0], own);
        exit(2);
    }
    wick_device *device = NULL;
    wick_model *model = NULL;
    wick_error error = {0};
    check(wick_device_open(&desc, &device, &error), &error);
    check(wick_model_open(device, path, NULL, &model, &error), &error);
    return model;
}

static inline void close_model(wick_model *model) {
    wick_device *const device = wick_model_device(model);
    wick_model_close(model);
    wick_device_close(device);
}

#endif
