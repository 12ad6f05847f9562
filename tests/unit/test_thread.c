/* Threads, mutexes, condition variables. */
#include "sys/thread.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "checked_heap.h"

enum { N_THREADS = 4, N_TURNS = 1000 };

typedef struct shared {
    wk_mutex *mutex;
    wk_cond *cond;
    int turn, n_done;
} shared;

typedef struct worker {
    shared *s;
    int index;
} worker;

/* Threads take turns: each waits until the counter says that it is its own. */
static void take_turns(void *argument) {
    const worker *const w = argument;
    shared *const s = w->s;
    for (int i = 0; i < N_TURNS; i++) {
        wk_mutex_lock(s->mutex);
        while (s->turn % N_THREADS != w->index) wk_cond_wait(s->cond, s->mutex);
        s->turn++;
        wk_cond_broadcast(s->cond);
        wk_mutex_unlock(s->mutex);
        wk_cpu_relax();
    }
    wk_mutex_lock(s->mutex);
    s->n_done++;
    wk_mutex_unlock(s->mutex);
}

static void test_turns(void **state) {
    (void)state;
    checked_heap checked;
    checked_heap_init(&checked, 100);
    wk_heap *const heap = &checked.heap;
    shared s = {0};
    assert_int_equal(wk_mutex_make(heap, &s.mutex), WICK_OK);
    assert_int_equal(wk_cond_make(heap, &s.cond), WICK_OK);
    worker workers[N_THREADS];
    wk_thread *threads[N_THREADS];
    for (int i = 0; i < N_THREADS; i++) {
        workers[i] = (worker){&s, i};
        assert_int_equal(wk_thread_start(heap, take_turns, &workers[i], &threads[i]), WICK_OK);
    }
    for (int i = 0; i < N_THREADS; i++) wk_thread_join(heap, threads[i]);
    assert_int_equal(s.turn, N_THREADS * N_TURNS);
    assert_int_equal(s.n_done, N_THREADS);
    wk_cond_free(heap, s.cond);
    wk_mutex_free(heap, s.mutex);
    wk_cond_free(heap, NULL);
    wk_mutex_free(heap, NULL);
    assert_true(checked_heap_is_clean(&checked));
}

static void test_memory(void **state) {
    (void)state;
    checked_heap checked;
    checked_heap_init(&checked, 0);
    wk_thread *thread;
    wk_mutex *mutex;
    wk_cond *cond;
    assert_int_equal(wk_thread_start(&checked.heap, take_turns, NULL, &thread),
                     WICK_ERR_OUT_OF_MEMORY);
    assert_int_equal(wk_mutex_make(&checked.heap, &mutex), WICK_ERR_OUT_OF_MEMORY);
    assert_int_equal(wk_cond_make(&checked.heap, &cond), WICK_ERR_OUT_OF_MEMORY);
    assert_null(thread);
    assert_null(mutex);
    assert_null(cond);
}

static void test_count(void **state) {
    (void)state;
    const int count = wk_cpu_count();
    print_message("%d processors may be used\n", count);
    assert_in_range(count, 1, 100000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
