/* The heap and the arena. */
#include "core/alloc.h"
#include "core/arena.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "checked_heap.h"

#include <string.h>

static void test_default_hook(void **state) {
    (void)state;
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    char *const memory = wk_alloc(&heap, 100);
    assert_non_null(memory);
    memset(memory, 1, 100);
    wk_free(&heap, memory, 100);
    wk_heap_init(&heap, &(wick_allocator){0});
    wk_free(&heap, wk_alloc(&heap, 1), 1);
    assert_int_equal(heap.n_allocations, 1);
}

static void test_counters(void **state) {
    (void)state;
    checked_heap checked;
    checked_heap_init(&checked, 100);
    wk_heap *const heap = &checked.heap;
    void *const a = wk_alloc(heap, 100);
    void *const b = wk_alloc(heap, 50);
    wk_free(heap, a, 100);
    void *const c = wk_alloc(heap, 20);
    assert_int_equal(heap->n_allocations, 3);
    assert_int_equal(heap->live_bytes, 70);
    assert_int_equal(heap->peak_bytes, 150);
    wk_free(heap, b, 50);
    wk_free(heap, c, 20);
    wk_free(heap, NULL, 10);
    assert_null(wk_alloc(heap, 0));
    assert_true(checked_heap_is_clean(&checked));
}

static void test_arrays(void **state) {
    (void)state;
    checked_heap checked;
    checked_heap_init(&checked, 100);
    unsigned char *const array = wk_alloc_array(&checked.heap, 30, 4);
    assert_non_null(array);
    for (int i = 0; i < 120; i++) assert_int_equal(array[i], 0);
    wk_free(&checked.heap, array, 120);
    assert_null(wk_alloc_array(&checked.heap, SIZE_MAX / 2 + 1, 2));
    assert_null(wk_alloc_array(&checked.heap, 2, SIZE_MAX / 2 + 1));
    assert_null(wk_alloc_array(&checked.heap, 0, 8));
    assert_null(wk_alloc_array(&checked.heap, 8, 0));
    assert_true(checked_heap_is_clean(&checked));
}

static void test_moving(void **state) {
    (void)state;
    checked_heap checked;
    checked_heap_init(&checked, 2);
    char *const memory = wk_realloc(&checked.heap, NULL, 0, 4);
    assert_non_null(memory);
    memcpy(memory, "abc", 4);
    char *const larger = wk_realloc(&checked.heap, memory, 4, 400);
    assert_string_equal(larger, "abc");
    assert_null(wk_realloc(&checked.heap, larger, 400, 800)); /* refused: the old block stays */
    assert_string_equal(larger, "abc");
    checked.n_allowed = 1;
    char *const smaller = wk_realloc(&checked.heap, larger, 400, 2);
    assert_memory_equal(smaller, "ab", 2);
    wk_free(&checked.heap, smaller, 2);
    assert_true(checked_heap_is_clean(&checked));
}

static void test_aligned(void **state) {
    (void)state;
    checked_heap checked;
    checked_heap_init(&checked, 100);
    for (size_t size = 1; size < 300; size += 13) {
        unsigned char *const memory = wk_alloc_aligned(&checked.heap, size);
        assert_int_equal((uintptr_t)memory % WK_ALIGNMENT, 0);
        memset(memory, 0xFF, size);
        wk_free_aligned(&checked.heap, memory, size);
    }
    assert_null(wk_alloc_aligned(&checked.heap, 0));
    assert_null(wk_alloc_aligned(&checked.heap, SIZE_MAX));
    assert_null(wk_alloc_aligned(&checked.heap, SIZE_MAX - WK_ALIGNMENT + 1));
    wk_free_aligned(&checked.heap, NULL, 8);
    assert_true(checked_heap_is_clean(&checked));
}

static void test_arena(void **state) {
    (void)state;
    checked_heap checked;
    checked_heap_init(&checked, 1000);
    wk_arena arena;
    wk_arena_init(&arena, &checked.heap, 1000);
    assert_int_equal(checked.n_live, 0);
    unsigned char *blocks[200];
    for (size_t i = 0; i < 200; i++) {
        blocks[i] = wk_arena_alloc(&arena, i * 5);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % 16, 0);
        memset(blocks[i], (int)i, i * 5);
    }
    for (size_t i = 0; i < 200; i++) {
        for (size_t j = 0; j < i * 5; j++) assert_int_equal(blocks[i][j], i);
    }
    assert_true(arena.bytes >= 5 * 199 * 200 / 2);
    const uint32_t *const zeros = wk_arena_array(&arena, 1000, sizeof *zeros);
    for (size_t i = 0; i < 1000; i++) assert_int_equal(zeros[i], 0);
    wk_arena_release(&arena);
    assert_true(checked_heap_is_clean(&checked));
    assert_non_null(wk_arena_alloc(&arena, 1)); /* used again */
    wk_arena_release(&arena);
    assert_true(checked_heap_is_clean(&checked));
}

/* Large blocks have a chunk of their own and do not waste the rest of the current one. */
static void test_arena_chunks(void **state) {
    (void)state;
    checked_heap checked;
    checked_heap_init(&checked, 1000);
    wk_arena arena;
    wk_arena_init(&arena, &checked.heap, 1024);
    for (int i = 0; i < 8; i++) {
        assert_non_null(wk_arena_alloc(&arena, 64));
        assert_non_null(wk_arena_alloc(&arena, 5000));
    }
    assert_int_equal(checked.heap.n_allocations, 9);
    wk_arena_release(&arena);
    assert_true(checked_heap_is_clean(&checked));
}

static void test_arena_refusals(void **state) {
    (void)state;
    checked_heap checked;
    checked_heap_init(&checked, 1);
    wk_arena arena;
    wk_arena_init(&arena, &checked.heap, 0);
    assert_null(wk_arena_alloc(&arena, SIZE_MAX));
    assert_null(wk_arena_alloc(&arena, SIZE_MAX - 40));
    assert_null(wk_arena_array(&arena, SIZE_MAX / 8 + 1, 8));
    assert_non_null(wk_arena_alloc(&arena, 10));
    assert_null(wk_arena_alloc(&arena, 1000000));
    assert_non_null(wk_arena_alloc(&arena, 10)); /* what is there goes on working */
    wk_arena_release(&arena);
    assert_true(checked_heap_is_clean(&checked));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default_hook), cmocka_unit_test(test_counters),
        cmocka_unit_test(test_arrays),       cmocka_unit_test(test_moving),
        cmocka_unit_test(test_aligned),      cmocka_unit_test(test_arena),
        cmocka_unit_test(test_arena_chunks), cmocka_unit_test(test_arena_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
