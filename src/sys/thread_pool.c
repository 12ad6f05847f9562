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

#include "sys/clock.h"
#include "sys/thread.h"

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>

enum {
    SPINS = 4000, /* some 100 us: longer than the gap between two ops of a decode step */
    PARTS = 4,    /* a worker claims this part of the rest of a share, ... */
    PIECES = 32,  /* ... and at least this part of all of it */
    GATE_EPOCH_SHIFT = 32,
};

#define GATE_OPEN (UINT64_C(1) << 31)
#define GATE_INSIDE (GATE_OPEN - 1)

/* The unclaimed chunks [next, end) of one worker's share; a cache line of its own. */
typedef struct share {
    alignas(WK_ALIGNMENT) _Atomic int64_t next;
    int64_t end, least;
} share;

typedef struct worker {
    wk_pool *pool;
    wk_thread *thread;
    int index;
} worker;

struct wk_pool {
    wk_heap *heap;
    int n_threads, n_spins;
    worker *workers;    /* [n_threads]; the first one has no thread */
    share *shares;      /* [n_threads] */
    wk_pool_rest *rest; /* [n_threads], of wk_pool_run */
    wk_mutex *mutex;
    wk_cond *cond;
    _Atomic uint64_t gate;
    atomic_int n_sleeping;
    atomic_bool caller_waits, stop;
    wk_pool_loop loop; /* of the run */
};

static uint64_t epoch_of(uint64_t gate) { return gate >> GATE_EPOCH_SHIFT; }

/* Takes a part of the rest of a share, from *begin on; 0: nothing is left. Much at first, little at
 * the end, so that all workers end at about the same time. */
static int64_t claim(share *from, int64_t most, int64_t *begin) {
    int64_t next = atomic_load_explicit(&from->next, memory_order_relaxed), n;
    do {
        const int64_t left = from->end - next;
        if (left <= 0) return 0;
        n = left / PARTS > from->least ? left / PARTS : from->least;
        n = n < most ? n : most;
        n = n < left ? n : left;
    } while (!atomic_compare_exchange_weak_explicit(&from->next, &next, next + n,
                                                    memory_order_relaxed, memory_order_relaxed));
    *begin = next;
    return n;
}

/* Works off its own share and then the others', the caller until half a piece like the last one
 * would not be done in time, all others until the caller has closed the gate: they need no clock,
 * which threads of a page do not have. */
static void work(wk_pool *pool, int worker_index) {
    const wk_pool_loop *const loop = &pool->loop;
    const bool is_timed = loop->until_ns != UINT64_MAX, is_caller = worker_index == 0;
    uint64_t now_ns = is_timed && is_caller ? wk_clock_ns() : 0;
    for (int i = 0; i < pool->n_threads; i++) {
        share *const from = &pool->shares[(worker_index + i) % pool->n_threads];
        int64_t begin, n;
        while ((n = claim(from, loop->most, &begin)) > 0) {
            const int64_t end = (begin + n) * loop->grain;
            loop->fn(loop->argument, worker_index, begin * loop->grain,
                     end < loop->n_items ? end : loop->n_items);
            if (!is_timed) continue;
            if (!is_caller && (atomic_load(&pool->gate) & GATE_OPEN) == 0) return;
            if (!is_caller) continue;
            const uint64_t began_ns = now_ns;
            now_ns = wk_clock_ns();
            if (now_ns + (now_ns - began_ns) / 2 >= loop->until_ns) return;
        }
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

/* Goes in if a run is open that is not last_epoch's; *last_epoch becomes this run's. What the
 * caller has just written comes from its cache, all of it at once. */
static bool enter(wk_pool *pool, int worker_index, uint64_t *last_epoch) {
    uint64_t gate = atomic_load(&pool->gate);
    wk_prefetch(&pool->loop);
    wk_prefetch(&pool->shares[worker_index]);
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
        if (!enter(pool, self->index, &last_epoch)) continue;
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
    if (!pool) return wk_fail_memory(err, sizeof *pool, "the thread pool");
    pool->heap = heap;
    pool->n_threads = n_threads;
    pool->n_spins = n_threads <= wk_cpu_count() ? SPINS : 0;
    pool->workers = wk_alloc_array(heap, n, sizeof *pool->workers);
    pool->shares = wk_alloc_aligned(heap, n * sizeof *pool->shares);
    pool->rest = wk_alloc_array(heap, n, sizeof *pool->rest);
    if (!pool->workers || !pool->shares || !pool->rest) {
        wk_pool_free(pool);
        return wk_fail_memory(err, n * sizeof *pool->shares, "the thread pool");
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
    wk_free(heap, pool->rest, n * sizeof *pool->rest);
    wk_free_aligned(heap, pool->shares, n * sizeof *pool->shares);
    wk_free(heap, pool->workers, n * sizeof *pool->workers);
    wk_free(heap, pool, sizeof *pool);
}

int wk_pool_size(const wk_pool *pool) { return pool->n_threads; }

static int64_t chunks_of(int64_t n_items, int64_t grain) {
    assert(grain >= 1);
    return n_items > 0 ? (n_items - 1) / grain + 1 : 0;
}

void wk_pool_deal(const wk_pool *pool, const wk_pool_loop *loop, wk_pool_rest *rest) {
    const int64_t n = pool->n_threads, n_chunks = chunks_of(loop->n_items, loop->grain);
    int64_t begin = 0;
    for (int64_t i = 0; i < n; i++) {
        rest[i].next = begin;
        rest[i].end = begin += n_chunks / n + (i < n_chunks % n);
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

/* Works off the shares, alone or with all others. */
static void run(wk_pool *pool, const wk_pool_loop *loop, const wk_pool_rest *rest, bool is_alone) {
    assert((atomic_load(&pool->gate) & (GATE_OPEN | GATE_INSIDE)) == 0); /* all are away */
    pool->loop = *loop;
    for (int i = 0; i < pool->n_threads; i++) {
        share *const s = &pool->shares[i];
        atomic_store_explicit(&s->next, rest[i].next, memory_order_relaxed);
        s->end = rest[i].end;
        s->least = (s->end - rest[i].next) / PIECES + 1;
    }
    if (is_alone) {
        work(pool, 0);
        return;
    }
    const uint64_t epoch = epoch_of(atomic_load(&pool->gate)) + 1;
    atomic_store(&pool->gate, epoch << GATE_EPOCH_SHIFT | GATE_OPEN);
    if (atomic_load(&pool->n_sleeping) > 0) wake_all(pool);
    work(pool, 0);
    atomic_fetch_and(&pool->gate, ~GATE_OPEN);
    wait_for_workers(pool);
}

bool wk_pool_go_on(wk_pool *pool, const wk_pool_loop *loop, wk_pool_rest *rest) {
    assert(loop->most >= 1);
    int64_t left = 0;
    for (int i = 0; i < pool->n_threads; i++) left += rest[i].end - rest[i].next;
    if (left == 0) return true;
    run(pool, loop, rest, pool->n_threads == 1 || left == 1);
    bool is_done = true;
    for (int i = 0; i < pool->n_threads; i++) {
        rest[i].next = atomic_load_explicit(&pool->shares[i].next, memory_order_relaxed);
        is_done = is_done && rest[i].next == rest[i].end;
    }
    return is_done;
}

void wk_pool_run(wk_pool *pool, wk_pool_fn fn, void *argument, int64_t n_items, int64_t grain) {
    if (n_items <= 0) return;
    if (pool->n_threads == 1 || n_items <= grain) {
        fn(argument, 0, 0, n_items);
        return;
    }
    const wk_pool_loop loop = {.fn = fn,
                               .argument = argument,
                               .n_items = n_items,
                               .grain = grain,
                               .most = INT64_MAX,
                               .until_ns = UINT64_MAX};
    wk_pool_deal(pool, &loop, pool->rest);
    run(pool, &loop, pool->rest, false);
}
