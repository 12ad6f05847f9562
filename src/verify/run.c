/* verify/run.c: runs a kernel as the threads of the backend would: each phase in ranges of whole
 * grains, in any order, with scratch memory that holds anything. */
#include "verify/case.h"

#include "sys/clock.h"

#include <stdatomic.h>
#include <string.h>

enum { MAX_RANGES = 6, POISON = 0xFF };

/* Scratch memory, followed by a guard. */
typedef struct scratch {
    unsigned char *data;
    size_t size;
} scratch;

static bool scratch_make(scratch *s, size_t size, wk_heap *heap) {
    s->size = size;
    s->data = wk_alloc_aligned(heap, size + WK_ALIGNMENT);
    if (s->data) memset(s->data, POISON, size + WK_ALIGNMENT);
    return s->data != NULL;
}

static void scratch_free(scratch *s, wk_heap *heap) {
    wk_free_aligned(heap, s->data, s->size + WK_ALIGNMENT);
}

static bool is_guard_whole(const scratch *s) {
    for (size_t i = 0; i < WK_ALIGNMENT; i++)
        if (s->data[s->size + i] != POISON) return false;
    return true;
}

/* Cuts n items into ranges [cuts[i], cuts[i + 1]) of whole grains; how many there are. */
static int cut(wk_case *c, int64_t n, int64_t grain, bool is_split, int64_t cuts[MAX_RANGES + 1]) {
    const int64_t n_grains = (n + grain - 1) / grain;
    const int wanted = is_split ? 1 + (int)wk_case_below(c, MAX_RANGES) : 1;
    int n_ranges = 0;
    cuts[0] = 0;
    for (int i = 1; i <= wanted; i++) {
        const int64_t left = n_grains - cuts[n_ranges] / grain;
        if (left == 0) break;
        const int64_t take = i == wanted ? left : 1 + wk_case_below(c, left);
        const int64_t end = cuts[n_ranges] + take * grain;
        cuts[++n_ranges] = end < n ? end : n;
        if (end >= n) break;
    }
    return n_ranges;
}

static void run_phase(wk_case *c, const wk_cpu_kernel *kernel, int phase, bool is_split,
                      const wk_cpu_run *run, const scratch *worker) {
    const int64_t grain = kernel->grain ? kernel->grain(&c->op, phase) : 1;
    int64_t cuts[MAX_RANGES + 1];
    const int n = cut(c, kernel->items(&c->op, phase), grain, is_split, cuts);
    const bool is_backward = is_split && wk_case_chance(c, 50);
    const int first = is_split && n > 0 ? (int)wk_case_below(c, n) : 0;
    for (int i = 0; i < n; i++) {
        const int at = (first + (is_backward ? n - i : i)) % n;
        if (is_split) memset(worker->data, POISON, worker->size);
        kernel->run(run, phase, cuts[at], cuts[at + 1]);
    }
}

wick_status wk_case_compute(wk_case *c, const wk_cpu_kernel *kernel, bool is_split, wk_heap *heap,
                            wk_case_run *out) {
    scratch shared = {0}, worker = {0};
    wick_status status = WICK_ERR_OUT_OF_MEMORY;
    if (!scratch_make(&shared, kernel->scratch_bytes ? kernel->scratch_bytes(&c->op) : 0, heap))
        goto done;
    if (!scratch_make(&worker, kernel->worker_bytes ? kernel->worker_bytes(&c->op) : 0, heap))
        goto done;
    atomic_bool fault = false;
    const wk_cpu_run run = {
        .op = &c->op, .scratch = shared.data, .worker_scratch = worker.data, .fault = &fault};
    const uint64_t begin = wk_clock_ns();
    for (int phase = 0; phase < kernel->n_phases; phase++)
        run_phase(c, kernel, phase, is_split, &run, &worker);
    *out = (wk_case_run){
        .ns = wk_clock_ns() - begin,
        .has_fault = atomic_load(&fault),
        .is_out_of_scratch = !is_guard_whole(&shared) || !is_guard_whole(&worker),
    };
    status = WICK_OK;
done:
    scratch_free(&worker, heap);
    scratch_free(&shared, heap);
    return status;
}
