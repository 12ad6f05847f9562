/* sys/wasm/thread_atomics.c: threads of the module that is compiled for shared memory.
 *
 * JavaScript (web/src/threads.ts) has workers started before a device opens, since an engine that
 * waits does not hear of them. Each runs wk_thread_serve on a wk_thread of its own, at the low end
 * of its stack. Starting a thread takes such a worker, joining gives it back.
 *
 * Workers allocate nothing: a heap belongs to one thread, and so does malloc here. */
#include "sys/thread.h"

#include "sys/wasm/host.h"

#include <limits.h>
#include <stdatomic.h>

/* Of a wk_thread; JavaScript makes it negative where a worker has failed. */
enum { IDLE, CALLED };
/* Of a wk_mutex. */
enum { FREE, LOCKED, CONTENDED };
enum { FENCES = 2 /* some 25 ns */ };

struct wk_thread {
    atomic_int state;
    void (*entry)(void *argument);
    void *argument;
};

/* Sleeps while *word is value; may return early. The engine's own thread looks at the workers now
 * and then: a wait for one that has failed would never end. Not inline: the quick compiler of V8
 * 11.3 (Node 20) loses locals that are needed after a wait whose limit was just computed. */
__attribute__((noinline)) static void sleep_while(atomic_int *word, int value) {
    const long long limit_ns = (long long)wk_host_wait_limit_ns();
    __builtin_wasm_memory_atomic_wait32((int *)word, value, limit_ns);
}

static void wake(atomic_int *word, unsigned most) {
    __builtin_wasm_memory_atomic_notify((int *)word, most);
}

/* --- Threads --- */

/* What a worker runs for as long as it lives. *thread begins as zeros. */
__attribute__((export_name("thread_serve"))) void wk_thread_serve(wk_thread *thread);

void wk_thread_serve(wk_thread *thread) {
    for (;;) {
        while (atomic_load(&thread->state) == IDLE) sleep_while(&thread->state, IDLE);
        thread->entry(thread->argument);
        atomic_store(&thread->state, IDLE);
        wake(&thread->state, 1);
    }
}

wick_status wk_thread_start(wk_heap *heap, void (*entry)(void *argument), void *argument,
                            wk_thread **out) {
    (void)heap;
    wk_thread *const thread = wk_host_thread_take();
    *out = thread;
    if (!thread) return WICK_ERR_OUT_OF_MEMORY;
    thread->entry = entry;
    thread->argument = argument;
    atomic_store(&thread->state, CALLED);
    wake(&thread->state, 1);
    return WICK_OK;
}

void wk_thread_join(wk_heap *heap, wk_thread *thread) {
    (void)heap;
    while (atomic_load(&thread->state) != IDLE) sleep_while(&thread->state, CALLED);
    wk_host_thread_return(thread);
}

/* --- Mutexes: a word to sleep on --- */

struct wk_mutex {
    atomic_int state;
};

wick_status wk_mutex_make(wk_heap *heap, wk_mutex **out) {
    *out = wk_alloc_zeroed(heap, sizeof **out);
    return *out ? WICK_OK : WICK_ERR_OUT_OF_MEMORY;
}

void wk_mutex_free(wk_heap *heap, wk_mutex *mutex) { wk_free(heap, mutex, sizeof *mutex); }

void wk_mutex_lock(wk_mutex *mutex) {
    int expected = FREE;
    if (atomic_compare_exchange_strong(&mutex->state, &expected, LOCKED)) return;
    /* Whoever has slept takes it as contended: there may be more that sleep. */
    while (atomic_exchange(&mutex->state, CONTENDED) != FREE) sleep_while(&mutex->state, CONTENDED);
}

void wk_mutex_unlock(wk_mutex *mutex) {
    if (atomic_exchange(&mutex->state, FREE) == CONTENDED) wake(&mutex->state, 1);
}

/* --- Condition variables: a count of broadcasts to sleep on --- */

struct wk_cond {
    atomic_int n_broadcasts; /* modulo 2^32 */
};

wick_status wk_cond_make(wk_heap *heap, wk_cond **out) {
    *out = wk_alloc_zeroed(heap, sizeof **out);
    return *out ? WICK_OK : WICK_ERR_OUT_OF_MEMORY;
}

void wk_cond_free(wk_heap *heap, wk_cond *cond) { wk_free(heap, cond, sizeof *cond); }

void wk_cond_wait(wk_cond *cond, wk_mutex *mutex) {
    const int seen = atomic_load(&cond->n_broadcasts);
    wk_mutex_unlock(mutex);
    sleep_while(&cond->n_broadcasts, seen);
    wk_mutex_lock(mutex);
}

void wk_cond_broadcast(wk_cond *cond) {
    atomic_fetch_add(&cond->n_broadcasts, 1);
    wake(&cond->n_broadcasts, UINT_MAX);
}

/* --- Processors --- */

/* There is no instruction for it; a fence costs the time and leaves the other threads theirs. */
void wk_cpu_relax(void) {
    for (int i = 0; i < FENCES; i++) atomic_thread_fence(memory_order_seq_cst);
}

/* Those that threads can have now, and the caller's. */
int wk_cpu_count(void) { return wk_host_threads_free() + 1; }
