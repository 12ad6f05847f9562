/* backend/cpu/cpu_kernels.c: the device's kernels one by one. A kernel runs as the threads might
 * run it: each phase in ranges of whole grains, in any order, with scratch memory that holds
 * anything. */
#include "backend/cpu/cpu_state.h"

#include "core/rng.h"
#include "sys/clock.h"

#include <string.h>

enum { MAX_RANGES = 6, POISON = 0xFF };

static const wk_kernel *kernel_at(const wk_backend_device *dev, size_t number) {
    const wk_cpu_kernel *kernel;
    for (size_t i = 0; (kernel = wk_cpu_kernel_at(i)) != NULL; i++) {
        if ((kernel->base.needs & ~dev->features) != 0) continue;
        if (number-- == 0) return &kernel->base;
    }
    return NULL;
}

/* --- Scratch memory, followed by a guard --- */

static bool make_scratch(wk_cpu_block *s, uint64_t bytes, wk_heap *heap) {
    const size_t size = (size_t)bytes;
    if (bytes > SIZE_MAX - WK_ALIGNMENT) return false;
    s->size = size;
    s->data = wk_alloc_aligned(heap, size + WK_ALIGNMENT);
    if (s->data) memset(s->data, POISON, size + WK_ALIGNMENT);
    return s->data != NULL;
}

static void free_scratch(const wk_cpu_block *s, wk_heap *heap) {
    wk_free_aligned(heap, s->data, s->size + WK_ALIGNMENT);
}

static bool is_guard_whole(const wk_cpu_block *s) {
    const unsigned char *const guard = (const unsigned char *)s->data + s->size;
    for (size_t i = 0; i < WK_ALIGNMENT; i++)
        if (guard[i] != POISON) return false;
    return true;
}

/* --- Ranges --- */

/* Cuts n items into ranges [cuts[i], cuts[i + 1]) of whole grains; returns how many there are. */
static int cut(wk_rng *rng, int64_t n, int64_t grain, int64_t cuts[MAX_RANGES + 1]) {
    const int64_t n_grains = (n + grain - 1) / grain;
    const int wanted = rng->seed != 0 ? 1 + (int)wk_rng_below(rng, MAX_RANGES) : 1;
    int n_ranges = 0;
    cuts[0] = 0;
    for (int i = 1; i <= wanted; i++) {
        const int64_t left = n_grains - cuts[n_ranges] / grain;
        if (left == 0) break;
        const int64_t take = i == wanted ? left : 1 + wk_rng_below(rng, left);
        const int64_t end = cuts[n_ranges] + take * grain;
        cuts[++n_ranges] = end < n ? end : n;
        if (end >= n) break;
    }
    return n_ranges;
}

static void run_phase(const wk_cpu_kernel *kernel, int phase, const wk_cpu_run *run,
                      const wk_cpu_block *worker, wk_rng *rng) {
    const int64_t grain = kernel->grain ? kernel->grain(run->op, phase) : 1;
    const bool is_split = rng->seed != 0;
    int64_t cuts[MAX_RANGES + 1];
    const int n = cut(rng, kernel->items(run->op, phase), grain, cuts);
    const bool is_backward = is_split && wk_rng_below(rng, 2) == 0;
    const int first = is_split && n > 0 ? (int)wk_rng_below(rng, n) : 0;
    for (int i = 0; i < n; i++) {
        const int at = (first + (is_backward ? n - i : i)) % n;
        if (is_split) memset(worker->data, POISON, worker->size);
        kernel->run(run, phase, cuts[at], cuts[at + 1]);
    }
}

static wick_status run_alone(wk_backend_device *dev, const wk_kernel *base, const wk_op *op,
                             uint64_t seed, wk_kernel_run *out) {
    const wk_cpu_kernel *const kernel = (const wk_cpu_kernel *)base;
    wk_cpu_block shared = {0}, worker = {0};
    wick_status status = WICK_ERR_OUT_OF_MEMORY;
    if (!make_scratch(&shared, kernel->scratch_bytes ? kernel->scratch_bytes(op) : 0, dev->heap))
        goto done;
    if (!make_scratch(&worker, kernel->worker_bytes ? kernel->worker_bytes(op) : 0, dev->heap))
        goto done;
    wk_rng rng = {.seed = seed, .stream = UINT32_MAX}; /* a stream that no op has */
    atomic_bool fault = false;
    const wk_cpu_run run = {
        .op = op, .scratch = shared.data, .worker_scratch = worker.data, .fault = &fault};
    const uint64_t begin = wk_clock_ns();
    for (int phase = 0; phase < kernel->n_phases; phase++)
        run_phase(kernel, phase, &run, &worker, &rng);
    *out = (wk_kernel_run){.has_fault = atomic_load(&fault), .ns = wk_clock_ns() - begin};
    out->is_out_of_scratch = !is_guard_whole(&shared) || !is_guard_whole(&worker);
    status = WICK_OK;
done:
    free_scratch(&worker, dev->heap);
    free_scratch(&shared, dev->heap);
    return status;
}

const wk_backend_kernels wk_cpu_kernels = {.at = kernel_at, .run = run_alone};
