/* Every item is done exactly once, whatever the number of threads. */
#include "sys/thread_pool.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "checked_heap.h"

#include <stdatomic.h>
#include <string.h>

enum { MAX_ITEMS = 5000 };

typedef struct counts {
    unsigned char done[MAX_ITEMS]; /* not atomic: a second thread on an item would be a race */
    int64_t n_items, grain;
    int n_threads;
    atomic_int n_bad;
} counts;

static void count(void *argument, int worker, int64_t begin, int64_t end) {
    counts *c = argument;
    const bool is_whole = end == c->n_items || (end - begin) % c->grain == 0;
    if (begin >= end || begin % c->grain != 0 || !is_whole || worker < 0 ||
        worker >= c->n_threads) {
        atomic_fetch_add(&c->n_bad, 1);
    }
    for (int64_t i = begin; i < end; i++) c->done[i]++;
}

static void check_runs(int n_threads, int n_rounds) {
    static const int64_t sizes[] = {0, 1, 2, 3, 7, 16, 64, 1000, MAX_ITEMS};
    static const int64_t grains[] = {1, 3, 16, 4096};
    checked_heap checked;
    checked_heap_init(&checked, UINT64_MAX);
    wk_pool *pool;
    assert_int_equal(wk_pool_make(&checked.heap, n_threads, &pool, NULL), WICK_OK);
    assert_int_equal(wk_pool_size(pool), n_threads);
    const uint64_t n_allocations = checked.heap.n_allocations;
    static counts c;
    for (int round = 0; round < n_rounds; round++) {
        for (size_t i = 0; i < WK_COUNT(sizes) * WK_COUNT(grains); i++) {
            memset(c.done, 0, sizeof c.done);
            c.n_items = sizes[i / WK_COUNT(grains)];
            c.grain = grains[i % WK_COUNT(grains)];
            c.n_threads = n_threads;
            wk_pool_run(pool, count, &c, c.n_items, c.grain);
            for (int64_t j = 0; j < MAX_ITEMS; j++) assert_int_equal(c.done[j], j < c.n_items);
        }
    }
    assert_int_equal(atomic_load(&c.n_bad), 0);
    assert_int_equal(checked.heap.n_allocations, n_allocations);
    wk_pool_free(pool);
    assert_true(checked_heap_is_clean(&checked));
}

/* In slices that are over at once: every call does something, and all of them do each item once. */
static void check_slices(int n_threads, int64_t n_items, int64_t grain, int64_t most) {
    checked_heap checked;
    checked_heap_init(&checked, UINT64_MAX);
    wk_pool *pool;
    assert_int_equal(wk_pool_make(&checked.heap, n_threads, &pool, NULL), WICK_OK);
    static counts c, other;
    c = (counts){.n_items = n_items, .grain = grain, .n_threads = n_threads};
    const wk_pool_loop loop = {
        .fn = count, .argument = &c, .n_items = n_items, .grain = grain, .most = most};
    wk_pool_rest rest[8];
    wk_pool_deal(pool, &loop, rest);
    int64_t n_calls = 0, done = 0;
    for (bool is_done = false; !is_done; n_calls++) {
        const int64_t before = done;
        is_done = wk_pool_go_on(pool, &loop, rest);
        done = 0;
        for (int64_t j = 0; j < MAX_ITEMS; j++) done += c.done[j];
        assert_true(done > before);
        assert_int_equal(is_done, done == n_items);
        other = (counts){.n_items = 10, .grain = 1, .n_threads = n_threads};
        wk_pool_run(pool, count, &other, 10, 1); /* which leaves the rest alone */
    }
    for (int64_t j = 0; j < MAX_ITEMS; j++) assert_int_equal(c.done[j], j < n_items);
    assert_true(n_calls <= (n_items - 1) / grain + 1);
    /* Other threads may do all of it before the caller begins. */
    if (most == 1 && n_items > grain && n_threads == 1) assert_true(n_calls > 1);
    assert_int_equal(atomic_load(&c.n_bad), 0);
    wk_pool_free(pool);
    assert_true(checked_heap_is_clean(&checked));
}

static void in_slices(void **state) {
    (void)state;
    for (int n_threads = 1; n_threads <= 5; n_threads += 2) {
        check_slices(n_threads, 1, 1, 1);
        check_slices(n_threads, 1000, 1, 1);
        check_slices(n_threads, 1000, 7, 3);
        check_slices(n_threads, MAX_ITEMS, 16, INT64_MAX);
    }
}

static void one_thread(void **state) {
    (void)state;
    check_runs(1, 2);
}

static void two_threads(void **state) {
    (void)state;
    check_runs(2, 20);
}

static void more_threads_than_processors(void **state) {
    (void)state;
    check_runs(5, 10);
    check_runs(33, 2);
}

static void ends_without_a_run(void **state) {
    (void)state;
    for (int i = 0; i < 50; i++) check_runs(3, 0);
    wk_pool_free(NULL);
}

static void short_of_memory(void **state) {
    (void)state;
    for (uint64_t n = 0;; n++) {
        checked_heap checked;
        checked_heap_init(&checked, n);
        wk_pool *pool;
        wick_error err = {0};
        const wick_status status = wk_pool_make(&checked.heap, 3, &pool, &err);
        if (status == WICK_OK) {
            wk_pool_free(pool);
            assert_true(checked_heap_is_clean(&checked));
            assert_true(n > 0);
            return;
        }
        assert_int_equal(status, WICK_ERR_OUT_OF_MEMORY);
        assert_int_equal(err.status, status);
        assert_null(pool);
        assert_true(checked_heap_is_clean(&checked));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread),
        cmocka_unit_test(two_threads),
        cmocka_unit_test(more_threads_than_processors),
        cmocka_unit_test(in_slices),
        cmocka_unit_test(ends_without_a_run),
        cmocka_unit_test(short_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
