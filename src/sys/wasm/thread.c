/* sys/wasm/thread.c: the module without threads. */
#include "sys/thread.h"

wick_status wk_thread_start(wk_heap *heap, void (*entry)(void *argument), void *argument,
                            wk_thread **out) {
    (void)heap, (void)entry, (void)argument;
    *out = NULL;
    return WICK_ERR_UNSUPPORTED;
}

void wk_thread_join(wk_heap *heap, wk_thread *thread) { (void)heap, (void)thread; }

/* A lock that one thread takes. */
struct wk_mutex {
    bool is_locked;
};

wick_status wk_mutex_make(wk_heap *heap, wk_mutex **out) {
    *out = wk_alloc_zeroed(heap, sizeof **out);
    return *out ? WICK_OK : WICK_ERR_OUT_OF_MEMORY;
}

void wk_mutex_free(wk_heap *heap, wk_mutex *mutex) { wk_free(heap, mutex, sizeof *mutex); }
void wk_mutex_lock(wk_mutex *mutex) { mutex->is_locked = true; }
void wk_mutex_unlock(wk_mutex *mutex) { mutex->is_locked = false; }

wick_status wk_cond_make(wk_heap *heap, wk_cond **out) {
    (void)heap;
    *out = NULL;
    return WICK_ERR_UNSUPPORTED; /* there is no other thread to wait for */
}

void wk_cond_free(wk_heap *heap, wk_cond *cond) { (void)heap, (void)cond; }
void wk_cond_wait(wk_cond *cond, wk_mutex *mutex) { (void)cond, (void)mutex; }
void wk_cond_broadcast(wk_cond *cond) { (void)cond; }

void wk_cpu_relax(void) {}
int wk_cpu_count(void) { return 1; }
