/* bench/chains.c: what chains of operations (src/tensor/fuse.c) save: the time of the same
 * operations one by one and as chains.
 *
 * usage: chains [--millions N] [options of device_options.h]
 *
 *   elements   8 elementwise operations over N million floats (16)
 *   sums       sums of squared differences of rows of 1,000
 *   small      the 8 operations over 100 floats
 *   training   a step of a classifier (64, 256, 256, 10; batches of 64) with AdamW */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */

#include "device_options.h"

#include <wick/grad.h>
#include <wick/nn.h>
#include <wick/ops.h>
#include <wick/train.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { RUNS = 9, LAYERS = 3 };

typedef struct setup {
    wick_device *device;
    wick_tensor *a, *b, *labels, *params[2 * LAYERS];
    wick_optimizer *optimizer;
} setup;

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void check(wick_device *device, wick_status status) {
    wick_error error = {0};
    if (status != WICK_OK) (void)wick_device_error(device, &error);
    if (status == WICK_OK) return;
    fprintf(stderr, "chains: %s\n", error.message);
    exit(1);
}

static wick_tensor *elements(const setup *s) {
    wick_tensor *x = wick_relu(wick_add(wick_mul(s->a, s->b), s->a));
    x = wick_abs(wick_affine(wick_mul(x, s->b), 0.5, 0.25));
    return wick_sub(wick_sqrt(x), s->b);
}

static wick_tensor *sums(const setup *s) {
    return wick_sum(wick_sqr(wick_sub(s->a, s->b)), 1, (const int[]){1}, false);
}

static wick_tensor *training(const setup *s) {
    wick_tape *tape = NULL;
    wick_tensor *x = s->a, *grads[2 * LAYERS] = {NULL};
    check(s->device, wick_tape_begin(s->device, &tape));
    for (int i = 0; i < 2 * LAYERS; i++) check(s->device, wick_tape_watch(tape, s->params[i]));
    for (int i = 0; i < LAYERS; i++) {
        x = wick_add(wick_matmul(x, s->params[2 * i]), s->params[2 * i + 1]);
        if (i + 1 < LAYERS) x = wick_gelu(x);
    }
    wick_tensor *const loss = wick_cross_entropy(x, s->labels, NULL);
    check(s->device, wick_grad(tape, loss, NULL, s->params, 2 * LAYERS, grads));
    wick_tape_end(tape);
    check(s->device, wick_optimizer_step(s->optimizer, grads, 1e-3));
    return loss;
}

static void make_network(setup *s) {
    static const int64_t widths[] = {64, 256, 256, 10};
    for (int i = 0; i < LAYERS; i++) {
        s->params[2 * i] =
            wick_randn(s->device, WICK_F32, WICK_SHAPE(widths[i], widths[i + 1]), 0, 0.1);
        s->params[2 * i + 1] = wick_zeros(s->device, WICK_F32, WICK_SHAPE(widths[i + 1]));
    }
    check(s->device, wick_optimizer_make(&(wick_optimizer_desc){.kind = WICK_OPTIMIZER_ADAMW},
                                         s->params, NULL, 2 * LAYERS, &s->optimizer));
}

/* Milliseconds, the least of some runs; the first ones compile. */
static double least(const setup *s, wick_tensor *(*fn)(const setup *s)) {
    double best = 1e9;
    for (int i = 0; i < RUNS; i++) {
        const double begin = seconds();
        const wick_scope scope = wick_scope_begin(s->device);
        wick_tensor *const y = wick_scope_result(scope, fn(s));
        check(s->device, wick_synchronize(s->device));
        const double spent = 1e3 * (seconds() - begin);
        if (spent < best) best = spent;
        wick_release(y);
    }
    return best;
}

enum { KINDS = 4 };

static void measure(const wick_device_desc *desc, int64_t millions, double out[KINDS]) {
    wick_error error = {0};
    setup s = {0};
    if (wick_device_open(desc, &s.device, &error) != WICK_OK) {
        fprintf(stderr, "chains: %s\n", error.message);
        exit(1);
    }
    const wick_scope scope = wick_scope_begin(s.device);
    const wick_shape shapes[KINDS] = {WICK_SHAPE(millions << 20),
                                      WICK_SHAPE((millions << 20) / 1000, 1000), WICK_SHAPE(100),
                                      WICK_SHAPE(64, 64)};
    wick_tensor *(*const functions[KINDS])(const setup *s) = {elements, sums, elements, training};
    make_network(&s);
    s.labels = wick_zeros(s.device, WICK_U32, WICK_SHAPE(64));
    for (int i = 0; i < KINDS; i++) {
        const wick_scope inner = wick_scope_begin(s.device);
        s.a = wick_rand(s.device, WICK_F32, shapes[i], -1, 1);
        s.b = wick_rand(s.device, WICK_F32, shapes[i], -1, 1);
        out[i] = least(&s, functions[i]);
        wick_scope_end(inner);
    }
    wick_optimizer_free(s.optimizer);
    wick_scope_end(scope);
    wick_device_close(s.device);
}

int main(int argc, char **argv) {
    static const char *const names[KINDS] = {"elements", "sums", "small", "training"};
    wick_device_desc desc = {.backend = WICK_BACKEND_CPU};
    int64_t millions = 16;
    double apart[KINDS], fused[KINDS];
    for (int i = 1; i < argc; i++) {
        if (parse_webgpu(argc, argv, &i, &desc.webgpu)) continue;
        const bool is_pair = i + 1 < argc;
        if (is_pair && strcmp(argv[i], "--millions") == 0 && atoll(argv[i + 1]) > 0)
            millions = atoll(argv[++i]);
        else if (is_pair && parse_device_pair(&desc, argv[i], argv[i + 1]))
            i++;
        else
            return fprintf(stderr, "usage: chains [--millions N] [--backend NAME] [--isa NAME] "
                                   "[--threads N] " WEBGPU_USAGE "\n"),
                   2;
    }
    desc.fusion = WICK_FUSION_OFF;
    measure(&desc, millions, apart);
    desc.fusion = WICK_FUSION_AUTO;
    measure(&desc, millions, fused);
    for (int i = 0; i < KINDS; i++)
        printf("%-9s one by one %9.3f ms, chains %9.3f ms: %.2f times as fast\n", names[i],
               apart[i], fused[i], apart[i] / fused[i]);
    return 0;
}
