/* bench/encode.c: what a dispatch costs the CPU: microseconds of this thread's time for each one of
 * a step that is like a decoder's (30 layers of 12 operations on small tensors, so that little else
 * is measured), from the queue to the submit.
 *
 * usage: encode [--steps N] [options of webgpu_options.h]
 *
 *   recorded  every operation is checked, queued and encoded again
 *   replayed  the step is a plan, as a decoder's is
 *   added     additions of one element, recorded: the least that an operation costs */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */

#include "tensor/device.h"
#include "tensor/plan.h"
#include "webgpu_options.h"

#include <wick/ops.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LAYERS = 30, WIDTH = 64, ADDITIONS = 200, DEFAULT_STEPS = 100 };

typedef struct layer {
    wick_tensor *norm, *weights[5];
} layer;

static double thread_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static void check(wick_device *device, wick_status status) {
    wick_error err = {0};
    (void)wick_device_error(device, &err);
    if (status == WICK_OK && err.status == WICK_OK) return;
    fprintf(stderr, "encode: %s\n", err.message);
    exit(1);
}

static void make_layer(wick_device *device, layer *l) {
    l->norm = wick_ones(device, WICK_F32, WICK_SHAPE(WIDTH));
    for (size_t i = 0; i < WK_COUNT(l->weights); i++)
        l->weights[i] = wick_full(device, WICK_F32, WICK_SHAPE(WIDTH, WIDTH), 0.01);
}

static wick_tensor *run_layer(const layer *l, wick_tensor *x) {
    wick_tensor *const a = wick_rms_norm(x, l->norm, 1e-5F);
    wick_tensor *const q = wick_linear(a, l->weights[0], NULL);
    wick_tensor *const k = wick_linear(a, l->weights[1], NULL);
    wick_tensor *const v = wick_linear(a, l->weights[2], NULL);
    wick_tensor *const h = wick_add(x, wick_mul(wick_mul(q, k), v));
    wick_tensor *const b = wick_rms_norm(h, l->norm, 1e-5F);
    wick_tensor *const gate = wick_linear(b, l->weights[3], NULL);
    return wick_add(h, wick_mul(wick_linear(gate, l->weights[4], NULL), gate));
}

static wick_tensor *run_layers(const layer *layers, wick_tensor *x) {
    for (int i = 0; i < LAYERS; i++) x = run_layer(&layers[i], x);
    return x;
}

static uint64_t n_dispatches(const wick_device *device) {
    wick_device_stats stats;
    wick_device_get_stats(device, &stats);
    return stats.n_dispatches;
}

/* What a step is: a run of a plan, else layers, else additions. */
typedef struct work {
    const char *name;
    wk_plan *plan;
    const layer *layers;
    wick_tensor *x;
} work;

/* The scope keeps the results, so that they are computed. */
static void record_step(const work *w) {
    if (w->plan)
        check(wick_tensor_device(w->x), wk_plan_run(w->plan));
    else if (w->layers)
        (void)run_layers(w->layers, w->x);
    for (int i = 0; !w->plan && !w->layers && i < ADDITIONS; i++) (void)wick_add(w->x, w->x);
}

/* Prints the time of a dispatch. */
static void measure(const work *w, int n_steps) {
    wick_device *const device = wick_tensor_device(w->x);
    double us = 0;
    uint64_t before = 0;
    for (int i = -2; i < n_steps; i++) { /* two to warm up */
        if (i == 0) before = n_dispatches(device);
        const wick_scope scope = wick_scope_begin(device);
        const double begun = thread_us();
        record_step(w);
        const wick_status polled = wick_poll(device); /* what is recorded is submitted by it */
        check(device, polled == WICK_PENDING ? WICK_OK : polled);
        if (i >= 0) us += thread_us() - begun;
        check(device, wick_synchronize(device));
        wick_scope_end(scope);
    }
    const uint64_t n = n_dispatches(device) - before;
    printf("%s  %6.0f dispatches a step  %6.3f us each\n", w->name, (double)n / n_steps,
           us / (double)n);
}

static wick_device *open_device(int argc, char **argv, int *n_steps) {
    /* Fused, there would be fewer dispatches. */
    wick_device_desc desc = {
        .backend = WICK_BACKEND_WEBGPU, .strict = true, .fusion = WICK_FUSION_OFF};
    for (int i = 1; i < argc; i++) {
        const char *const steps = option_value(argc, argv, &i, "--steps");
        if (steps) *n_steps = atoi(steps);
        if (steps ? *n_steps > 0 : parse_webgpu(argc, argv, &i, &desc.webgpu)) continue;
        fprintf(stderr, "usage: encode [--steps N] " WEBGPU_USAGE "\n");
        exit(2);
    }
    desc.webgpu.submit_us = UINT32_MAX; /* one submit a step */
    wick_device *device;
    wick_error err = {0};
    if (wick_device_open(&desc, &device, &err) == WICK_OK) return device;
    fprintf(stderr, "encode: %s\n", err.message);
    exit(1);
}

int main(int argc, char **argv) {
    int n_steps = DEFAULT_STEPS;
    static layer layers[LAYERS];
    wick_device *const device = open_device(argc, argv, &n_steps);
    wick_device_info info;
    wick_device_get_info(device, &info);
    printf("%s, %s\n", info.name, info.adapter.implementation);
    const wick_scope scope = wick_scope_begin(device);
    for (int i = 0; i < LAYERS; i++) make_layer(device, &layers[i]);
    wick_tensor *const x = wick_ones(device, WICK_F32, WICK_SHAPE(1, WIDTH));
    measure(&(work){.name = "recorded", .layers = layers, .x = x}, n_steps);
    wk_plan_pool *pool;
    wk_plan *plan;
    check(device, wk_plan_pool_make(device, &pool));
    check(device, wk_plan_begin(device, pool));
    wick_tensor *y = run_layers(layers, x);
    check(device, wk_plan_end(device, &y, 1, &plan));
    measure(&(work){.name = "replayed", .plan = plan, .x = x}, n_steps);
    wick_tensor *const one = wick_ones(device, WICK_F32, WICK_SHAPE(1));
    measure(&(work){.name = "added   ", .x = one}, n_steps);
    wick_scope_end(scope);
    wk_plan_free(plan);
    wk_plan_pool_free(pool);
    wick_device_close(device);
    return 0;
}
