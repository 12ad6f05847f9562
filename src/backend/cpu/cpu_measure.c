/* backend/cpu/cpu_measure.c: what the machine can do at most with the device's threads and
 * instruction set: reading memory, products of bytes and of float32. The best of several short
 * runs counts: other work of the machine can only slow a run. */
#include "backend/cpu/cpu_state.h"

#include "sys/clock.h"

#include <string.h>

enum {
    N_READS = 12,
    READ_BLOCK = 1 << 18, /* bytes: one item */
    READ_BYTES = 1 << 28, /* more than caches hold */
    N_PEAK_RUNS = 8,
    ROUND_BLOCK = 1 << 12,
    PEAK_ROUNDS = 1 << 19, /* some milliseconds for each thread */
};

typedef struct read_job {
    const uint64_t *words;
    atomic_uint_fast64_t sum; /* or the compiler would leave the reading out */
} read_job;

static void read_blocks(void *argument, int worker, int64_t begin, int64_t end) {
    (void)worker;
    enum { N_SUMS = 8, N_WORDS = READ_BLOCK / sizeof(uint64_t) };
    read_job *const job = argument;
    uint64_t sum[N_SUMS] = {0};
    for (int64_t at = begin * N_WORDS; at < end * N_WORDS; at += N_SUMS) {
        for (int i = 0; i < N_SUMS; i++) sum[i] += job->words[at + i];
    }
    for (int i = 0; i < N_SUMS; i++) {
        atomic_fetch_add_explicit(&job->sum, sum[i], memory_order_relaxed);
    }
}

/* Each worker touches the pages first that it will read. */
static void write_blocks(void *argument, int worker, int64_t begin, int64_t end) {
    (void)worker;
    memset((unsigned char *)argument + begin * READ_BLOCK, 1, (size_t)((end - begin) * READ_BLOCK));
}

typedef struct peak_job {
    const wk_cpu_peak *peak;
    bool is_integer;
    atomic_uint_fast64_t sum;
} peak_job;

static void run_rounds(void *argument, int worker, int64_t begin, int64_t end) {
    (void)worker;
    peak_job *const job = argument;
    uint64_t bits = 0;
    if (job->is_integer) {
        const int32_t result = job->peak->integer(end - begin);
        memcpy(&bits, &result, sizeof result);
    } else {
        const float result = job->peak->f32(end - begin);
        memcpy(&bits, &result, sizeof result);
    }
    atomic_fetch_add_explicit(&job->sum, bits, memory_order_relaxed);
}

/* The shortest of n runs over all items, in seconds. */
static double best_of(int n, wk_pool *pool, wk_pool_fn fn, void *job, int64_t n_items,
                      int64_t grain) {
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < n; i++) {
        const uint64_t start = wk_clock_ns();
        wk_pool_run(pool, fn, job, n_items, grain);
        const uint64_t elapsed = wk_clock_ns() - start;
        if (elapsed < best) best = elapsed;
    }
    return best > 0 ? 1e-9 * (double)best : 1e-9;
}

static double ops_per_second(wk_pool *pool, const wk_cpu_peak *peak, bool is_integer) {
    peak_job job = {.peak = peak, .is_integer = is_integer};
    const int64_t n_rounds = (int64_t)PEAK_ROUNDS * wk_pool_size(pool);
    const double seconds = best_of(N_PEAK_RUNS, pool, run_rounds, &job, n_rounds, ROUND_BLOCK);
    return (double)n_rounds * (double)(is_integer ? peak->integer_ops : peak->f32_ops) / seconds;
}

wick_status wk_cpu_measure(wk_backend_device *dev, wick_device_limits *out, wick_error *err) {
    void *const memory = wk_alloc_aligned(dev->heap, READ_BYTES);
    if (!memory) return wk_cpu_no_memory(err, READ_BYTES, "measuring how fast it can be read");
    wk_pool_run(dev->pool, write_blocks, memory, READ_BYTES / READ_BLOCK, 1);
    read_job job = {.words = memory};
    const double seconds =
        best_of(N_READS, dev->pool, read_blocks, &job, READ_BYTES / READ_BLOCK, 1);
    wk_free_aligned(dev->heap, memory, READ_BYTES);
    *out = (wick_device_limits){.read_bytes_per_second = (double)READ_BYTES / seconds};
    const wk_cpu_peak *const peak = wk_cpu_find_peak(dev->features);
    if (peak) {
        out->integer_ops_per_second = ops_per_second(dev->pool, peak, true);
        out->f32_ops_per_second = ops_per_second(dev->pool, peak, false);
    }
    return WICK_OK;
}
