/* sys/wasm/host.h: what the module asks of the JavaScript around it, beside the GPU. */
#ifndef WK_SYS_WASM_HOST_H
#define WK_SYS_WASM_HOST_H

#include "sys/thread.h"

#include <stdint.h>

#define WK_HOST(name) __attribute__((import_module("wick"), import_name(name)))

/* Monotonic, nanoseconds from an arbitrary start. */
WK_HOST("clock_ns") double wk_host_clock_ns(void);
/* 52 random bits. */
WK_HOST("entropy") double wk_host_entropy(void);
/* Bytes that the module may take of what the machine has, at most 4 GiB. */
WK_HOST("memory_limit") double wk_host_memory_limit(void);

/* --- With shared memory: workers that serve threads, see thread_atomics.c --- */

/* How many no thread has taken. */
WK_HOST("threads_free") int wk_host_threads_free(void);
/* One of them, taken; NULL: there is none. */
WK_HOST("thread_take") wk_thread *wk_host_thread_take(void);
WK_HOST("thread_return") void wk_host_thread_return(wk_thread *thread);
/* How long a wait may last before it asks again; negative: for ever. Does not return, but throws,
 * where a worker has failed. */
WK_HOST("wait_limit_ns") double wk_host_wait_limit_ns(void);

#endif
