/* usage: test_sequences [--backend webgpu --webgpu-lib LIBRARY]
 * Random sequences of what programs do with tensors (make, view, compute, write, read, read later,
 * release, in any order) on a device and on the CPU's plain loops: the same contents. The device is
 * the null backend, which answers late and out of order, or a WebGPU one with the drivers that the
 * environment names. */
#include "core/compiler.h"

#include <wick/ops.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *library; /* of WebGPU */

enum {
    LIVE = 24,          /* tensors that are alive at once */
    READS = 6,          /* reads that are under way */
    MOST = 4096,        /* elements of a tensor */
    STEPS_NULL = 10000, /* in one sequence: what any step leaves is where another one begins */
    STEPS_GPU = 500,
};

/* The same tensor on both devices. */
typedef struct twin {
    wick_tensor *of[2];
} twin;

typedef struct game {
    wick_device *devices[2]; /* that is tested, and the plain loops */
    twin live[LIVE];
    wick_reading *reads[READS]; /* of the first device, and what is expected */
    float *wanted[READS];
    size_t counts[READS];
    uint32_t seed;
} game;

static uint32_t pick(game *g, uint32_t n) {
    g->seed = g->seed * 1664525 + 1013904223;
    return (g->seed >> 8) % n;
}

static twin *any(game *g) { return &g->live[pick(g, LIVE)]; }

static void fail_with(wick_device *device) {
    wick_error err = {0};
    (void)wick_device_error(device, &err);
    fail_msg("%s", err.message);
}

static void put(game *g, twin *to, twin made) {
    for (int i = 0; i < 2; i++) {
        if (!made.of[i]) fail_with(g->devices[i]);
        wick_release(to->of[i]);
        to->of[i] = made.of[i];
    }
}

/* --- Steps --- */

static void fill(game *g, float *values, size_t count) {
    for (size_t i = 0; i < count; i++) values[i] = (float)((int)pick(g, 2001) - 1000) / 500;
}

static wick_shape random_shape(game *g) {
    wick_shape shape = {.rank = 1 + (int)pick(g, 3)};
    for (int i = 0; i < shape.rank; i++) shape.extent[i] = 1 + pick(g, 16);
    return shape;
}

static size_t count_of(const wick_tensor *t) { return (size_t)wick_tensor_size(t); }

static void create(game *g, twin *to) {
    float values[MOST];
    const wick_shape shape = random_shape(g);
    size_t count = 1;
    for (int i = 0; i < shape.rank; i++) count *= (size_t)shape.extent[i];
    fill(g, values, count);
    twin made;
    for (int i = 0; i < 2; i++)
        made.of[i] =
            wick_tensor_from_data(g->devices[i], WICK_F32, shape, values, count * sizeof *values);
    put(g, to, made);
}

static void view(game *g, twin *to) {
    const twin *const from = any(g);
    const wick_shape shape = wick_tensor_shape(from->of[0]);
    const int dim = (int)pick(g, (uint32_t)shape.rank);
    const int64_t extent = shape.extent[dim];
    const int64_t start = pick(g, (uint32_t)extent),
                  length = 1 + pick(g, (uint32_t)(extent - start));
    const int other = (int)pick(g, (uint32_t)shape.rank);
    const uint32_t kind = pick(g, 3);
    twin made;
    for (int i = 0; i < 2; i++) {
        wick_tensor *const x = from->of[i];
        made.of[i] = kind == 0   ? wick_narrow(x, dim, start, length)
                     : kind == 1 ? wick_transpose(x, dim, other)
                                 : wick_reshape(x, WICK_SHAPE(wick_tensor_size(x)));
    }
    put(g, to, made);
}

static wick_tensor *compute_one(uint32_t kind, wick_tensor *x) {
    static const int last[] = {-1};
    switch (kind) {
    case 0: return wick_add(x, x);
    case 1: return wick_mul(x, x);
    case 2: return wick_clamp(x, -1, 1.5);
    case 3: return wick_maximum(x, wick_neg(x));
    case 4: return wick_contiguous(x);
    case 5: return wick_sub(wick_abs(x), x);
    case 6: return wick_cat((wick_tensor *const[]){x, x}, 2, 0);
    case 7: return wick_max(x, 1, last, true);
    default: return wick_softmax(x, -1);
    }
}

/* What an operation takes on its way is the scope's; the result is kept. */
static void compute(game *g, twin *to) {
    const twin *const from = any(g);
    const bool may_grow = 2 * count_of(from->of[0]) <= MOST;
    uint32_t kind = pick(g, 9);
    if (kind == 6 && !may_grow) kind = 0;
    twin made;
    for (int i = 0; i < 2; i++) {
        const wick_scope scope = wick_scope_begin(g->devices[i]);
        wick_tensor *const y = compute_one(kind, from->of[i]);
        made.of[i] = y ? wick_clamp(wick_retain(y), -4, 4) : NULL; /* does not grow for ever */
        if (made.of[i]) (void)wick_retain(made.of[i]);
        wick_scope_end(scope);
        wick_release(y);
    }
    put(g, to, made);
}

static void write(game *g, const twin *to) {
    float values[MOST];
    const size_t count = count_of(to->of[0]);
    fill(g, values, count);
    const wick_status on_gpu = wick_write(to->of[0], values, count * sizeof *values);
    assert_int_equal(on_gpu, wick_write(to->of[1], values, count * sizeof *values));
    if (on_gpu == WICK_OK) return; /* else the view is not dense */
    for (int i = 0; i < 2; i++) (void)wick_device_error(g->devices[i], NULL);
}

static void expect_close(const float *want, const float *got, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!(fabsf(want[i] - got[i]) <= 1e-5F * (1 + fabsf(want[i]))))
            fail_msg("element %zu of %zu: %.9g, not %.9g", i, count, (double)got[i],
                     (double)want[i]);
}

static void finish_read(game *g, size_t r) {
    float got[MOST];
    if (!g->reads[r]) return;
    while (wick_read_poll(g->reads[r]) == WICK_PENDING) {
    }
    const size_t count = g->counts[r];
    if (wick_read_finish(g->reads[r], got, count * sizeof *got) != WICK_OK)
        fail_with(g->devices[0]);
    expect_close(g->wanted[r], got, count);
    free(g->wanted[r]);
    g->reads[r] = NULL;
}

static void start_read(game *g, const twin *from) {
    const size_t r = pick(g, READS), count = count_of(from->of[0]);
    finish_read(g, r);
    float *const want = malloc(count * sizeof *want);
    assert_non_null(want);
    if (wick_read(from->of[1], want, count * sizeof *want) != WICK_OK) fail_with(g->devices[1]);
    if (wick_read_start(from->of[0], &g->reads[r]) != WICK_OK) fail_with(g->devices[0]);
    if (wick_read_poll(g->reads[r]) < 0) fail_with(g->devices[0]); /* from here on it is ordered */
    g->wanted[r] = want;
    g->counts[r] = count;
}

static void step(game *g) {
    twin *const t = any(g);
    switch (pick(g, 8)) {
    case 0: create(g, t); break;
    case 1:
    case 2: view(g, t); break;
    case 3:
    case 4:
    case 5: compute(g, t); break;
    case 6: write(g, t); break;
    default: start_read(g, t); break;
    }
}

static void play(const wick_device_desc *desc, int n_steps, uint32_t seed) {
    game g = {.seed = seed};
    wick_error err = {0};
    const wick_device_desc plain = {
        .backend = WICK_BACKEND_CPU, .isa = WICK_ISA_REF, .n_threads = 1};
    if (wick_device_open(desc, &g.devices[0], &err) != WICK_OK) fail_msg("%s", err.message);
    assert_int_equal(wick_device_open(&plain, &g.devices[1], NULL), WICK_OK);
    for (size_t i = 0; i < LIVE; i++) create(&g, &g.live[i]);
    for (int i = 0; i < n_steps; i++) step(&g);
    for (size_t i = 0; i < LIVE; i++) start_read(&g, &g.live[i]);
    for (size_t i = 0; i < LIVE; i++)
        for (int k = 0; k < 2; k++) wick_release(g.live[i].of[k]);
    for (size_t i = 0; i < READS; i++) finish_read(&g, i);
    wick_device_stats stats;
    wick_device_get_stats(g.devices[0], &stats);
    assert_int_equal(stats.n_fallbacks, 0);
    assert_true(stats.buffer_bytes < 65536); /* a backend's own */
    for (int i = 0; i < 2; i++) wick_device_close(g.devices[i]);
}

static void on_the_null_backend(void **state) {
    (void)state;
    for (uint32_t flags = 0; flags < 4; flags++) {
        const wick_device_desc desc = {
            .backend = WICK_BACKEND_NULL, .isa = WICK_ISA_REF, .n_threads = 1, .null_flags = flags};
        play(&desc, STEPS_NULL, 1 + flags);
    }
}

static void on_a_gpu(void **state) {
    (void)state;
    static const wick_webgpu_desc kinds[] = {
        {0}, {.max_binding_bytes = 65536, .submit_us = 1}, {.pool = {.initial_bytes = 100000}}};
    for (size_t i = 0; i < WK_COUNT(kinds); i++) {
        wick_device_desc desc = {
            .backend = WICK_BACKEND_WEBGPU, .strict = true, .webgpu = kinds[i]};
        desc.webgpu.library = library;
        play(&desc, STEPS_GPU, 10 + (uint32_t)i);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest null_tests[] = {cmocka_unit_test(on_the_null_backend)};
    const struct CMUnitTest gpu_tests[] = {cmocka_unit_test(on_a_gpu)};
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], "--webgpu-lib") == 0) library = argv[i + 1];
    return library ? cmocka_run_group_tests(gpu_tests, NULL, NULL)
                   : cmocka_run_group_tests(null_tests, NULL, NULL);
}
