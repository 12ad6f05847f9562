/* sys/thread_pool.c: one gate through which workers come into a run.
 *
 * gate holds the run's number, whether it is open, and how many workers are inside. The caller
 * opens it, works itself, closes it when nothing is left to claim, and waits for those inside only:
 * a worker that the system schedules too late is not waited for, so more threads than processors
 * only cost what they use. The description of a run is written while the gate is closed and no
 * worker is inside.
 *
 * Sleeping: whoever goes to sleep says so first (n_sleeping, caller_waits) and looks at the gate
 * again; whoever changes the gate looks at these afterwards. Both are sequentially consistent, so
 * one of the two sees the other and no wake-up is lost. */
#include "sys/thread_pool.h"

#include "sys/thread.h"

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>

enum {
    SPINS = 4000, /* some 100 us: longer than the gap between two ops of a decode step */
    PIECES = 8,   /* a share is claimed in about this many pieces */
    GATE_EPOCH_SHIFT = 32,
};

#define GATE_OPEN (UINT64_C(1) << 31)
#define GATE_INSIDE (GATE_OPEN - 1)

/* The unclaimed chunks [next, end) of one worker's share; a cache line of its own. */
typedef struct share {
    alignas(WK_ALIGNMENT) _Atomic int64_t next;
    int64_t end, piece;
} share;

typedef struct worker {
    wk_pool *pool;
    wk_thread *thread;
    int index;
} worker;

struct wk_pool {
    wk_heap *heap;
    int n_threads, n_spins;
    worker *workers; /* [n_threads]; the first one has no thread */
    share *shares;   /* [n_threads] */
    wk_mutex *mutex;
    wk_cond *cond;
    _Atomic uint64_t gate;
    atomic_int n_sleeping;
    atomic_bool caller_waits, stop;
    /* The run. */
    wk_pool_fn fn;
    void *argument;
    int64_t n_items, grain;
};

static uint64_t epoch_of(uint64_t gate) { return gate >> GATE_EPOCH_SHIFT; }

/* Claims pieces of one share until it is empty. */
static void work_off(wk_pool *pool, share *from, int worker_index) {
    const int64_t piece = from->piece;
    for (;;) {
        const int64_t chunk = atomic_fetch_add_explicit(&from->next, piece, memory_order_relaxed);
        if (chunk >= from->end) return;
        const int64_t chunk_end = chunk + piece < from->end ? chunk + piece : from->end;
        const int64_t end = chunk_end * pool->grain;
        pool->fn(pool->argument, worker_index, chunk * pool->grain,
                 end < pool->n_items ? end : pool->n_items);
    }
}

static void work(wk_pool *pool, int worker_index) {
    for (int i = 0; i < pool->n_threads; i++) {
        work_off(pool, &pool->shares[(worker_index + i) % pool->n_threads], worker_index);
    }
}

static void wake_all(wk_pool *pool) {
    wk_mutex_lock(pool->mutex);
    wk_cond_broadcast(pool->cond);
    wk_mutex_unlock(pool->mutex);
}

/* A run that this worker has not been in, or the end of the pool. */
static bool is_called(wk_pool *pool, uint64_t last_epoch) {
    const uint64_t gate = atomic_load(&pool->gate);
    return ((gate & GATE_OPEN) != 0 && epoch_of(gate) != last_epoch) || atomic_load(&pool->stop);
}

static void wait_for_call(wk_pool *pool, uint64_t last_epoch) {
    for (int i = 0; i < pool->n_spins; i++) {
        if (is_called(pool, last_epoch)) return;
        wk_cpu_relax();
    }
    wk_mutex_lock(pool->mutex);
    atomic_fetch_add(&pool->n_sleeping, 1);
    while (!is_called(pool, last_epoch)) wk_cond_wait(pool->cond, pool->mutex);
    atomic_fetch_sub(&pool->n_sleeping, 1);
    wk_mutex_unlock(pool->mutex);
}

/* Goes in if a run is open that is not last_epoch's; *last_epoch becomes this run's. */
static bool enter(wk_pool *pool, uint64_t *last_epoch) {
    uint64_t gate = atomic_load(&pool->gate);
    while ((gate & GATE_OPEN) != 0 && epoch_of(gate) != *last_epoch) {
        if (atomic_compare_exchange_weak(&pool->gate, &gate, gate + 1)) {
            *last_epoch = epoch_of(gate);
            return true;
        }
    }
    return false;
}

static void worker_main(void *argument) {
    const worker *self = argument;
    wk_pool *pool = self->pool;
    uint64_t last_epoch = 0;
    while (!atomic_load(&pool->stop)) {
        wait_for_call(pool, last_epoch);
        if (!enter(pool, &last_epoch)) continue;
        work(pool, self->index);
        atomic_fetch_sub(&pool->gate, 1);
        if (atomic_load(&pool->caller_waits)) wake_all(pool);
    }
}

static wick_status start_workers(wk_pool *pool) {
    WK_TRY(wk_mutex_make(pool->heap, &pool->mutex));
    WK_TRY(wk_cond_make(pool->heap, &pool->cond));
    for (int i = 1; i < pool->n_threads; i++) {
        worker *w = &pool->workers[i];
        *w = (worker){.pool = pool, .index = i};
        WK_TRY(wk_thread_start(pool->heap, worker_main, w, &w->thread));
    }
    return WICK_OK;
}

wick_status wk_pool_make(wk_heap *heap, int n_threads, wk_pool **out, wick_error *err) {
    assert(n_threads >= 1);
    *out = NULL;
    const size_t n = (size_t)n_threads;
    wk_pool *pool = wk_alloc_zeroed(heap, sizeof *pool);
    if (!pool) return wk_fail_memory(err, sizeof *pool, 0, "the thread pool");
    pool->heap = heap;
    pool->n_threads = n_threads;
    pool->n_spins = n_threads <= wk_cpu_count() ? SPINS : 0;
    pool->workers = wk_alloc_array(heap, n, sizeof *pool->workers);
    pool->shares = wk_alloc_aligned(heap, n * sizeof *pool->shares);
    if (!pool->workers || !pool->shares) {
        wk_pool_free(pool);
        return wk_fail_memory(err, n * sizeof *pool->shares, 0, "the thread pool");
    }
    const wick_status status = n_threads > 1 ? start_workers(pool) : WICK_OK;
    if (status != WICK_OK) {
        wk_pool_free(pool);
        return wk_fail(err, status, "cannot start %d threads: %s", n_threads,
                       wick_status_text(status));
    }
    *out = pool;
    return WICK_OK;
}

void wk_pool_free(wk_pool *pool) {
    if (!pool) return;
    wk_heap *heap = pool->heap;
    const size_t n = (size_t)pool->n_threads;
    atomic_store(&pool->stop, true);
    if (pool->cond) wake_all(pool);
    for (size_t i = 1; pool->workers && i < n; i++) {
        if (pool->workers[i].thread) wk_thread_join(heap, pool->workers[i].thread);
    }
    if (pool->cond) wk_cond_free(heap, pool->cond);
    if (pool->mutex) wk_mutex_free(heap, pool->mutex);
    wk_free_aligned(heap, pool->shares, n * sizeof *pool->shares);
    wk_free(heap, pool->workers, n * sizeof *pool->workers);
    wk_free(heap, pool, sizeof *pool);
}

int wk_pool_size(const wk_pool *pool) { return pool->n_threads; }

/* Splits n_chunks into shares of about the same size. */
static void deal(wk_pool *pool, int64_t n_chunks) {
    assert((atomic_load(&pool->gate) & (GATE_OPEN | GATE_INSIDE)) == 0); /* all are away */
    const int64_t n = pool->n_threads;
    int64_t begin = 0;
    for (int64_t i = 0; i < n; i++) {
        share *s = &pool->shares[i];
        const int64_t count = n_chunks / n + (i < n_chunks % n);
        atomic_store_explicit(&s->next, begin, memory_order_relaxed);
        begin += count;
        s->end = begin;
        s->piece = count > PIECES ? (count + PIECES - 1) / PIECES : 1;
    }
}

static void wait_for_workers(wk_pool *pool) {
    for (int i = 0; i < pool->n_spins; i++) {
        if ((atomic_load(&pool->gate) & GATE_INSIDE) == 0) return;
        wk_cpu_relax();
    }
    wk_mutex_lock(pool->mutex);
    atomic_store(&pool->caller_waits, true);
    while ((atomic_load(&pool->gate) & GATE_INSIDE) != 0) wk_cond_wait(pool->cond, pool->mutex);
    atomic_store(&pool->caller_waits, false);
    wk_mutex_unlock(pool->mutex);
}

void wk_pool_run(wk_pool *pool, wk_pool_fn fn, void *argument, int64_t n_items, int64_t grain) {
    assert(grain >= 1);
    if (n_items <= 0) return;
    const int64_t n_chunks = (n_items - 1) / grain + 1;
    if (pool->n_threads == 1 || n_chunks == 1) {
        fn(argument, 0, 0, n_items);
        return;
    }
    pool->fn = fn;
    pool->argument = argument;
    pool->n_items = n_items;
    pool->grain = grain;
    deal(pool, n_chunks);
    const uint64_t epoch = epoch_of(atomic_load(&pool->gate)) + 1;
    atomic_store(&pool->gate, epoch << GATE_EPOCH_SHIFT | GATE_OPEN);
    if (atomic_load(&pool->n_sleeping) > 0) wake_all(pool);
    work(pool, 0);
    atomic_fetch_and(&pool->gate, ~GATE_OPEN);
    wait_for_workers(pool);
}
