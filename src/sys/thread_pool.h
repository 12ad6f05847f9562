/* sys/thread_pool.h: splits the items of one loop among threads that wait for work.
 *
 * The caller is worker 0, so a pool of one has no threads. Each worker begins with a fixed share,
 * which keeps its data in its caches from run to run, and then takes over chunks that other workers
 * did not begin. */
#ifndef WK_SYS_THREAD_POOL_H
#define WK_SYS_THREAD_POOL_H

#include "core/alloc.h"
#include "core/status.h"

typedef struct wk_pool wk_pool;

/* Items [begin, end), on worker 0 ... wk_pool_size() - 1. */
typedef void (*wk_pool_fn)(void *argument, int worker, int64_t begin, int64_t end);

/* n_threads >= 1, the caller included. */
wick_status wk_pool_make(wk_heap *heap, int n_threads, wk_pool **out, wick_error *err);
/* Ends the threads; NULL is allowed. */
void wk_pool_free(wk_pool *pool);
int wk_pool_size(const wk_pool *pool);

/* Calls fn for ranges that cover [0, n_items) once, each beginning at a multiple of grain (>= 1)
 * and, except for the last one, a multiple of grain long. Returns when all are done. */
void wk_pool_run(wk_pool *pool, wk_pool_fn fn, void *argument, int64_t n_items, int64_t grain);

/* The same, until a time has come. */
typedef struct wk_pool_loop {
    wk_pool_fn fn;
    void *argument;
    int64_t n_items, grain;
    int64_t most; /* grains that a worker takes at once, >= 1: it looks at the clock after them */
    uint64_t until_ns; /* of wk_clock_ns: nothing more is begun then, but each call does some */
} wk_pool_loop;

/* What is left of one worker's share: grains [next, end). */
typedef struct wk_pool_rest {
    int64_t next, end;
} wk_pool_rest;

/* rest [wk_pool_size()]: all of the loop. */
void wk_pool_deal(const wk_pool *pool, const wk_pool_loop *loop, wk_pool_rest *rest);
/* True: all is done, and else rest says what is left. */
bool wk_pool_go_on(wk_pool *pool, const wk_pool_loop *loop, wk_pool_rest *rest);

#endif
