/* tests/unit/x86_case.h: runs one kernel alone, on operands that lie between guard values, so that
 * a read outside them shows as NaN in the result and a write shows in the guards. */
#ifndef WK_TESTS_X86_CASE_H
#define WK_TESTS_X86_CASE_H

#include "backend/cpu/cpu_kernel.h"
#include "core/rng.h"
#include "sys/cpu_features.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* test_*.c include cmocka.h first. */

enum { X86_GUARD_BYTES = 260 };

/* An operand: guard, contents, guard. The contents are aligned to 4 bytes only. */
typedef struct x86_memory {
    unsigned char *base;
    size_t size;
    wk_buffer buffer;
} x86_memory;

static inline void x86_memory_make(x86_memory *m, size_t size) {
    /* All ones is NaN in every float type. */
    *m = (x86_memory){.size = size};
    m->base = malloc(size + 2 * X86_GUARD_BYTES);
    assert_non_null(m->base);
    memset(m->base, 0xFF, size + 2 * X86_GUARD_BYTES);
    m->buffer.data = m->base;
    m->buffer.size = size + 2 * X86_GUARD_BYTES;
}

static inline void x86_memory_free(x86_memory *m) {
    for (size_t i = 0; i < X86_GUARD_BYTES; i++) {
        assert_int_equal(m->base[i], 0xFF);
        assert_int_equal(m->base[X86_GUARD_BYTES + m->size + i], 0xFF);
    }
    free(m->base);
}

static inline void *x86_contents(const x86_memory *m) { return m->base + X86_GUARD_BYTES; }

/* A dense view over the contents. */
static inline wk_view x86_view(x86_memory *m, wick_dtype dtype, int rank, const int64_t *extent) {
    wk_view view = {.buf = &m->buffer, .offset = X86_GUARD_BYTES, .dtype = dtype, .rank = rank};
    int64_t stride = 1;
    for (int d = rank - 1; d >= 0; d--) {
        view.extent[d] = extent[d];
        view.stride[d] = stride;
        stride *= extent[d];
    }
    return view;
}

/* Sum of four uniform numbers, roughly normal with standard deviation 1. */
static inline float x86_random(wk_rng *rng) {
    float sum = -2;
    for (int i = 0; i < 4; i++) sum += wk_rng_uniform(rng);
    return sum * 1.732F;
}

static inline void *x86_scratch(size_t size) {
    const size_t rounded = (size + 64) & ~(size_t)63;
    void *const memory = aligned_alloc(64, rounded);
    assert_non_null(memory);
    memset(memory, 0xFF, rounded);
    return memory;
}

/* Runs kernel on op, each phase in ranges of step * grain items, the last range first. */
static inline void x86_run(const wk_cpu_kernel *kernel, const wk_op *op, int64_t step) {
    void *const scratch = x86_scratch(kernel->scratch_bytes ? kernel->scratch_bytes(op) : 0);
    void *const worker = x86_scratch(kernel->worker_bytes ? kernel->worker_bytes(op) : 0);
    atomic_bool fault = false;
    const wk_cpu_run run = {
        .op = op, .scratch = scratch, .worker_scratch = worker, .fault = &fault};
    for (int phase = 0; phase < kernel->n_phases; phase++) {
        const int64_t n = kernel->items(op, phase);
        const int64_t length = step * (kernel->grain != NULL ? kernel->grain(op, phase) : 1);
        for (int64_t i = (n + length - 1) / length; i-- > 0;)
            kernel->run(&run, phase, i * length, i * length + length < n ? i * length + length : n);
    }
    free(scratch);
    free(worker);
}

static inline bool x86_can_run(const wk_cpu_kernel *kernel) {
    return (kernel->base.needs & ~wk_cpu_features()) == 0;
}

#endif
