/* sys/posix/thread.c: threads by pthreads, and how many of them make sense. */
#if defined(__linux__)
#define _GNU_SOURCE /* sched_getaffinity, CPU_COUNT_S */
#endif

#include "sys/thread.h"

#include "sys/posix/cgroup.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

struct wk_thread {
    pthread_t handle;
    void (*entry)(void *argument);
    void *argument;
};

struct wk_mutex {
    pthread_mutex_t handle;
};

struct wk_cond {
    pthread_cond_t handle;
};

static void *run_thread(void *user) {
    const wk_thread *const thread = user;
    thread->entry(thread->argument);
    return NULL;
}

/* Signals for the process (Ctrl-C, child exits) belong to the program's own threads: one that is
 * handled here would not wake up a main thread that waits for input. What a thread does to itself
 * and what profilers send stays open. */
static void block_process_signals(sigset_t *old) {
    static const int open_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGPROF};
    sigset_t blocked;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof open_signals / sizeof open_signals[0]; i++) {
        sigdelset(&blocked, open_signals[i]);
    }
    pthread_sigmask(SIG_SETMASK, &blocked, old);
}

wick_status wk_thread_start(wk_heap *heap, void (*entry)(void *argument), void *argument,
                            wk_thread **out) {
    *out = NULL;
    wk_thread *const thread = wk_alloc(heap, sizeof *thread);
    if (!thread) return WICK_ERR_OUT_OF_MEMORY;
    thread->entry = entry;
    thread->argument = argument;
    sigset_t old;
    block_process_signals(&old); /* a new thread starts with its maker's mask */
    const int failure = pthread_create(&thread->handle, NULL, run_thread, thread);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (failure) {
        wk_free(heap, thread, sizeof *thread);
        return WICK_ERR_OUT_OF_MEMORY; /* or a limit on threads: the same error */
    }
    *out = thread;
    return WICK_OK;
}

void wk_thread_join(wk_heap *heap, wk_thread *thread) {
    const int failure = pthread_join(thread->handle, NULL);
    assert(!failure);
    (void)failure;
    wk_free(heap, thread, sizeof *thread);
}

wick_status wk_mutex_make(wk_heap *heap, wk_mutex **out) {
    *out = NULL;
    wk_mutex *const mutex = wk_alloc(heap, sizeof *mutex);
    if (!mutex) return WICK_ERR_OUT_OF_MEMORY;
    if (pthread_mutex_init(&mutex->handle, NULL)) {
        wk_free(heap, mutex, sizeof *mutex);
        return WICK_ERR_OUT_OF_MEMORY;
    }
    *out = mutex;
    return WICK_OK;
}

void wk_mutex_free(wk_heap *heap, wk_mutex *mutex) {
    if (!mutex) return;
    pthread_mutex_destroy(&mutex->handle);
    wk_free(heap, mutex, sizeof *mutex);
}

void wk_mutex_lock(wk_mutex *mutex) {
    const int failure = pthread_mutex_lock(&mutex->handle);
    assert(!failure);
    (void)failure;
}

void wk_mutex_unlock(wk_mutex *mutex) {
    const int failure = pthread_mutex_unlock(&mutex->handle);
    assert(!failure);
    (void)failure;
}

wick_status wk_cond_make(wk_heap *heap, wk_cond **out) {
    *out = NULL;
    wk_cond *const cond = wk_alloc(heap, sizeof *cond);
    if (!cond) return WICK_ERR_OUT_OF_MEMORY;
    if (pthread_cond_init(&cond->handle, NULL)) {
        wk_free(heap, cond, sizeof *cond);
        return WICK_ERR_OUT_OF_MEMORY;
    }
    *out = cond;
    return WICK_OK;
}

void wk_cond_free(wk_heap *heap, wk_cond *cond) {
    if (!cond) return;
    pthread_cond_destroy(&cond->handle);
    wk_free(heap, cond, sizeof *cond);
}

void wk_cond_wait(wk_cond *cond, wk_mutex *mutex) {
    const int failure = pthread_cond_wait(&cond->handle, &mutex->handle);
    assert(!failure);
    (void)failure;
}

void wk_cond_broadcast(wk_cond *cond) {
    const int failure = pthread_cond_broadcast(&cond->handle);
    assert(!failure);
    (void)failure;
}

void wk_cpu_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __asm__ volatile("pause");
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#if defined(__linux__)
/* Processors in this process's affinity mask; 0 when it cannot be read. The mask has room for any
 * machine that Linux can be built for. */
static int count_affinity(void) {
    enum { MAX_PROCESSORS = 8192 };
    cpu_set_t mask[MAX_PROCESSORS / CPU_SETSIZE];
    if (sched_getaffinity(0, sizeof mask, mask) != 0) return 0;
    return CPU_COUNT_S(sizeof mask, mask);
}
#else
static int count_affinity(void) { return 0; }
#endif

int wk_cpu_count(void) {
    int count = count_affinity();
    if (count < 1) count = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (count < 1) count = 1;
    const int quota = wk_cgroup_read("/proc/self/cgroup", "/sys/fs/cgroup").cpus;
    return quota > 0 && quota < count ? quota : count;
}
