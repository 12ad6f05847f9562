/* bench/train_step.c: a step of training of a small transformer: forward, cross entropy, backward,
 * AdamW. train_step.py is the same step in PyTorch.
 *
 * usage: train_step [--threads N] [--steps N]
 *
 * Prints the loss of the first and of the last step, and the milliseconds of the median step. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */

#include <wick/wick.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    VOCABULARY = 512,
    WIDTH = 256,
    LAYERS = 4,
    HEADS = 4,
    BATCH = 8,
    TIME = 128,
    MOST_STEPS = 64
};
enum { SCALE1, SHIFT1, QKV, OUT, SCALE2, SHIFT2, UP, UP_BIAS, DOWN, DOWN_BIAS, N_LAYER };
enum { EMBEDDING = LAYERS * N_LAYER, POSITIONS, SCALE, SHIFT, HEAD, N_PARAMS };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static wick_shape shape_of(int i) {
    switch (i < EMBEDDING ? i % N_LAYER : i) {
    case QKV: return WICK_SHAPE(3 * WIDTH, WIDTH);
    case OUT: return WICK_SHAPE(WIDTH, WIDTH);
    case UP: return WICK_SHAPE(4 * WIDTH, WIDTH);
    case UP_BIAS: return WICK_SHAPE(4 * WIDTH);
    case DOWN: return WICK_SHAPE(WIDTH, 4 * WIDTH);
    case EMBEDDING: return WICK_SHAPE(VOCABULARY, WIDTH);
    case POSITIONS: return WICK_SHAPE(TIME, WIDTH);
    case HEAD: return WICK_SHAPE(VOCABULARY, WIDTH);
    default: return WICK_SHAPE(WIDTH);
    }
}

static void make_params(wick_device *device, wick_tensor **p) {
    for (int i = 0; i < N_PARAMS; i++) {
        const wick_shape shape = shape_of(i);
        const int kind = i < EMBEDDING ? i % N_LAYER : i;
        const bool is_scale = kind == SCALE1 || kind == SCALE2 || kind == SCALE;
        p[i] = shape.rank == 2 ? wick_randn(device, WICK_F32, shape, 0, 0.02)
               : is_scale      ? wick_ones(device, WICK_F32, shape)
                               : wick_zeros(device, WICK_F32, shape);
    }
}

static wick_tensor *attend(wick_tensor **p, wick_tensor *x) {
    const wick_attention_desc causal = {.causal = true};
    wick_tensor *const qkv = wick_reshape(wick_linear(x, p[QKV], NULL),
                                          WICK_SHAPE(BATCH, TIME, 3, HEADS, WIDTH / HEADS));
    wick_tensor *const by_head = wick_permute(qkv, 5, (const int[]){2, 0, 3, 1, 4});
    wick_tensor *part[3];
    for (int i = 0; i < 3; i++) part[i] = wick_squeeze(wick_narrow(by_head, 0, i, 1), 0);
    wick_tensor *const y = wick_attention(part[0], part[1], part[2], &causal);
    wick_tensor *const rows = wick_permute(y, 4, (const int[]){0, 2, 1, 3});
    return wick_linear(wick_reshape(rows, WICK_SHAPE(BATCH * TIME, WIDTH)), p[OUT], NULL);
}

/* ids [BATCH * TIME]: logits [BATCH * TIME, VOCABULARY]. */
static wick_tensor *forward(wick_tensor **p, wick_tensor *ids) {
    wick_tensor *const tokens =
        wick_reshape(wick_embedding(p[EMBEDDING], ids), WICK_SHAPE(BATCH, TIME, WIDTH));
    wick_tensor *x = wick_reshape(wick_add(tokens, p[POSITIONS]), WICK_SHAPE(BATCH * TIME, WIDTH));
    for (int l = 0; l < LAYERS; l++, p += N_LAYER) {
        x = wick_add(x, attend(p, wick_layer_norm(x, p[SCALE1], p[SHIFT1], 1e-5F)));
        wick_tensor *const normed = wick_layer_norm(x, p[SCALE2], p[SHIFT2], 1e-5F);
        wick_tensor *const up = wick_gelu(wick_linear(normed, p[UP], p[UP_BIAS]));
        x = wick_add(x, wick_linear(up, p[DOWN], p[DOWN_BIAS]));
    }
    p -= LAYERS * N_LAYER;
    return wick_linear(wick_layer_norm(x, p[SCALE], p[SHIFT], 1e-5F), p[HEAD], NULL);
}

static double step(wick_optimizer *optimizer, wick_tensor **p, wick_tensor *ids,
                   wick_tensor *targets) {
    wick_device *const device = wick_tensor_device(ids);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *grads[N_PARAMS];
    wick_tape *tape;
    double loss = NAN;
    if (wick_tape_begin(device, &tape) != WICK_OK) return loss;
    for (int i = 0; i < N_PARAMS; i++) (void)wick_tape_watch(tape, p[i]);
    wick_tensor *const error = wick_cross_entropy(forward(p, ids), targets, NULL);
    if (wick_grad(tape, error, NULL, p, N_PARAMS, grads) == WICK_OK)
        (void)wick_optimizer_step(optimizer, grads, 3e-4);
    wick_tape_end(tape);
    (void)wick_read_scalar(error, &loss);
    (void)wick_synchronize(device);
    wick_scope_end(scope);
    return loss;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    int n_steps = 10;
    wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .n_threads = 1};
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--threads") == 0) desc.n_threads = atoi(argv[i + 1]);
        if (strcmp(argv[i], "--steps") == 0) n_steps = atoi(argv[i + 1]);
    }
    if (n_steps < 1 || n_steps > MOST_STEPS) n_steps = MOST_STEPS;
    wick_device *device;
    wick_error err = {0};
    if (wick_device_open(&desc, &device, &err) != WICK_OK) {
        fprintf(stderr, "train_step: %s\n", err.message);
        return 1;
    }
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *p[N_PARAMS];
    make_params(device, p);
    uint32_t words[BATCH * TIME + 1];
    for (int i = 0; i <= BATCH * TIME; i++) words[i] = (uint32_t)(i * 7 % 101 + i % 3);
    const wick_shape n = WICK_SHAPE(BATCH * TIME);
    wick_tensor *const ids = wick_tensor_from_data(device, WICK_U32, n, words, sizeof words - 4);
    wick_tensor *const targets =
        wick_tensor_from_data(device, WICK_U32, n, words + 1, sizeof words - 4);
    const wick_optimizer_desc adamw = {.kind = WICK_OPTIMIZER_ADAMW, .weight_decay = 0.01};
    wick_optimizer *optimizer = NULL;
    double seconds[MOST_STEPS], first = NAN, last = NAN;
    if (wick_optimizer_make(&adamw, p, NULL, N_PARAMS, &optimizer) == WICK_OK)
        first = step(optimizer, p, ids, targets);
    for (int i = 0; optimizer && i < n_steps; i++) {
        const double begun = now();
        last = step(optimizer, p, ids, targets);
        seconds[i] = now() - begun;
    }
    const wick_status status = wick_device_error(device, &err);
    if (status != WICK_OK) fprintf(stderr, "train_step: %s\n", err.message);
    if (optimizer) qsort(seconds, (size_t)n_steps, sizeof *seconds, by_size);
    if (status == WICK_OK)
        printf("wick, %d threads: loss %.4f to %.4f, %.1f ms a step\n", desc.n_threads, first, last,
               1e3 * seconds[n_steps / 2]);
    wick_optimizer_free(optimizer);
    wick_scope_end(scope);
    wick_device_close(device);
    return status != WICK_OK;
}
