/* tests/unit/x86_fixture.h: one op with its memory, run by cpu/ref and by every kernel that takes
 * it. */
#ifndef WK_TESTS_X86_FIXTURE_H
#define WK_TESTS_X86_FIXTURE_H

#include "x86_case.h"

#include "core/dtype.h"
#include "core/half.h"
#include "quant/block.h"
#include "quant/encode.h"

#include <math.h>

enum { FIXTURE_OPERANDS = 8 };

/* An op with its memory. */
typedef struct fixture {
    wk_op op;
    x86_memory memory[FIXTURE_OPERANDS];
    int n;
} fixture;

static inline size_t fixture_element_bytes(wick_dtype dtype) {
    if (dtype == WICK_U8 || dtype == WICK_BOOL) return 1;
    return dtype == WICK_F16 ? 2 : 4;
}

static inline size_t fixture_bytes(wick_dtype dtype, int64_t count) {
    uint64_t size;
    if (!wk_dtype_is_block(dtype)) return (size_t)count * fixture_element_bytes(dtype);
    assert_true(wk_dtype_bytes(dtype, count, &size));
    return (size_t)size;
}

static inline void fixture_fill_blocks(wk_rng *rng, wick_dtype dtype, unsigned char *to,
                                       int64_t count) {
    for (int64_t i = 0; i < count; i += WK_QK_SMALL, to += wk_dtype_get(dtype)->block_bytes) {
        float values[WK_QK_SMALL];
        for (int j = 0; j < WK_QK_SMALL; j++) values[j] = x86_random(rng);
        wk_encode_quickly(dtype, values, to, WK_QK_SMALL);
    }
}

/* Adds a dense operand, in op order, of random numbers; integers are left to the caller. */
static inline wk_view *fixture_add(fixture *f, wk_rng *rng, wick_dtype dtype, int rank,
                                   const int64_t *extent) {
    int64_t count = 1;
    for (int d = 0; d < rank; d++) count *= extent[d];
    x86_memory *const memory = &f->memory[f->n];
    x86_memory_make(memory, fixture_bytes(dtype, count));
    if (wk_dtype_is_block(dtype)) fixture_fill_blocks(rng, dtype, x86_contents(memory), count);
    for (int64_t i = 0; i < count && !wk_dtype_is_block(dtype); i++) {
        const float value = x86_random(rng);
        const uint16_t half = wk_f32_to_f16(value);
        if (dtype == WICK_F32) memcpy((float *)x86_contents(memory) + i, &value, sizeof value);
        if (dtype == WICK_F16) memcpy((uint16_t *)x86_contents(memory) + i, &half, sizeof half);
    }
    f->op.view[f->n] = x86_view(memory, dtype, rank, extent);
    return &f->op.view[f->n++];
}

static inline void fixture_free(fixture *f) {
    for (int i = 0; i < f->n; i++)
        if (f->memory[i].base != NULL) x86_memory_free(&f->memory[i]);
}

static inline const wk_cpu_kernel *fixture_reference(wk_opcode code) {
    for (size_t i = 0;; i++) {
        const wk_cpu_kernel *const kernel = wk_cpu_kernel_at(i);
        assert_non_null(kernel);
        if (kernel->base.code == code && kernel->base.is_reference) return kernel;
    }
}

static inline double fixture_element(const void *data, wick_dtype dtype, size_t i) {
    float value;
    uint16_t half;
    memcpy(&value, (const char *)data + 4 * (dtype == WICK_F16 ? 0 : i), sizeof value);
    memcpy(&half, (const char *)data + 2 * i, sizeof half);
    return (double)(dtype == WICK_F16 ? wk_f16_to_f32(half) : value);
}

static inline void fixture_compare(const fixture *f, const char *name, int operand,
                                   const void *want, double bound) {
    const x86_memory *const memory = &f->memory[operand];
    const wick_dtype dtype = f->op.view[operand].dtype;
    if (wk_dtype_is_block(dtype)) { /* all encode alike */
        assert_memory_equal(want, x86_contents(memory), memory->size);
        return;
    }
    for (size_t i = 0; i < memory->size / fixture_element_bytes(dtype); i++) {
        const double x = fixture_element(want, dtype, i),
                     y = fixture_element(x86_contents(memory), dtype, i);
        if (isnan(x) && isnan(y)) continue;
        if (!(x == y || fabs(x - y) <= bound * (1 + fabs(x)))) {
            print_message("%s: element %d is %.9g instead of %.9g\n", name, (int)i, y, x);
            fail();
        }
    }
}

/* Runs every kernel that takes the op and compares its destinations with what cpu/ref gives, and
 * with each other bit for bit. At least one must take it. */
static inline void fixture_check(fixture *f, double bound) {
    unsigned char *before[2] = {0}, *want[2] = {0}, *first[2] = {0};
    const int n = f->op.n_dst;
    for (int i = 0; i < n; i++) {
        const size_t size = f->memory[i].size;
        before[i] = malloc(size + 1), want[i] = malloc(size + 1), first[i] = malloc(size + 1);
        assert_true(before[i] != NULL && want[i] != NULL && first[i] != NULL);
        memcpy(before[i], x86_contents(&f->memory[i]), size);
    }
    x86_run(fixture_reference(f->op.code), &f->op, 1);
    for (int i = 0; i < n; i++) memcpy(want[i], x86_contents(&f->memory[i]), f->memory[i].size);
    int n_run = 0;
    for (size_t at = 0; wk_cpu_kernel_at(at) != NULL; at++) {
        const wk_cpu_kernel *const k = wk_cpu_kernel_at(at);
        if (k->base.code != f->op.code || k->base.needs == 0 || !x86_can_run(k) ||
            !k->base.accepts(&f->op))
            continue;
        for (int i = 0; i < n; i++)
            memcpy(x86_contents(&f->memory[i]), before[i], f->memory[i].size);
        x86_run(k, &f->op, 1 + n_run % 2);
        for (int i = 0; i < n; i++) {
            fixture_compare(f, k->base.name, i, want[i], bound);
            if (n_run == 0) memcpy(first[i], x86_contents(&f->memory[i]), f->memory[i].size);
            assert_memory_equal(first[i], x86_contents(&f->memory[i]), f->memory[i].size);
        }
        n_run++;
    }
    if (wk_cpu_features() & WK_CPU_AVX2) assert_true(n_run > 0);
    for (int i = 0; i < n; i++) {
        free(before[i]);
        free(want[i]);
        free(first[i]);
    }
}

/* Takes every second row of a dense operand with twice the rows. */
static inline void fixture_spread_rows(wk_view *view) {
    view->extent[0] /= 2;
    view->stride[0] *= 2;
}

#endif
