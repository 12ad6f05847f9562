/* sys/thread.h: threads, mutexes, condition variables. */
#ifndef WK_SYS_THREAD_H
#define WK_SYS_THREAD_H

#include "core/alloc.h"

typedef struct wk_thread wk_thread;
typedef struct wk_mutex wk_mutex;
typedef struct wk_cond wk_cond;

/* Runs entry(argument) on a new thread. WICK_ERR_OUT_OF_MEMORY, also where a limit on threads is
 * reached. */
wick_status wk_thread_start(wk_heap *heap, void (*entry)(void *argument), void *argument,
                            wk_thread **out);
/* Waits for its end and frees it. */
void wk_thread_join(wk_heap *heap, wk_thread *thread);

wick_status wk_mutex_make(wk_heap *heap, wk_mutex **out);
void wk_mutex_free(wk_heap *heap, wk_mutex *mutex);
void wk_mutex_lock(wk_mutex *mutex);
void wk_mutex_unlock(wk_mutex *mutex);

wick_status wk_cond_make(wk_heap *heap, wk_cond **out);
void wk_cond_free(wk_heap *heap, wk_cond *cond);
void wk_cond_wait(wk_cond *cond, wk_mutex *mutex);
void wk_cond_broadcast(wk_cond *cond);

/* Tells the core that this is a spin loop. */
void wk_cpu_relax(void);
/* Processors this process may run on (affinity and container quota counted), at least 1. */
int wk_cpu_count(void);

#endif
