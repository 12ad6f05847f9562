/* The free list of a cache's blocks: no block is given out twice, shared ones stay until the last
 * sequence gives them back, and a pool that grows keeps what it has. */
#include "llm/blocks.h"

#include "random_bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 64 };

static wk_heap heap;
static wk_blocks blocks;

static int setup(void **state) {
    (void)state;
    wk_heap_init(&heap, NULL);
    blocks = (wk_blocks){.n = 0};
    return 0;
}

static int teardown(void **state) {
    (void)state;
    wk_blocks_free(&heap, &blocks);
    return heap.live_bytes != 0;
}

static void grow(uint32_t n) { assert_int_equal(wk_blocks_grow(&heap, &blocks, n, NULL), WICK_OK); }

static void test_order(void **state) {
    (void)state;
    assert_int_equal(wk_blocks_take(&blocks), WK_NO_BLOCK);
    grow(3);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(wk_blocks_take(&blocks), i);
    assert_int_equal(wk_blocks_take(&blocks), WK_NO_BLOCK);
    wk_blocks_give(&blocks, 1);
    grow(5); /* the free one is taken before the new ones */
    assert_int_equal(wk_blocks_take(&blocks), 1);
    assert_int_equal(wk_blocks_take(&blocks), 3);
    assert_int_equal(wk_blocks_take(&blocks), 4);
    assert_int_equal(wk_blocks_take(&blocks), WK_NO_BLOCK);
}

static void test_shared(void **state) {
    (void)state;
    grow(1);
    const uint32_t block = wk_blocks_take(&blocks);
    assert_false(wk_blocks_is_shared(&blocks, block));
    wk_blocks_share(&blocks, block);
    assert_true(wk_blocks_is_shared(&blocks, block));
    wk_blocks_give(&blocks, block);
    assert_false(wk_blocks_is_shared(&blocks, block));
    assert_int_equal(wk_blocks_take(&blocks), WK_NO_BLOCK);
    wk_blocks_give(&blocks, block);
    assert_int_equal(wk_blocks_take(&blocks), block);
}

/* Against counts kept apart. */
static void test_random(void **state) {
    (void)state;
    uint32_t counts[MOST] = {0}, n = 0;
    for (int i = 0; i < 20000; i++) {
        const uint32_t at = (uint32_t)(random_bits() % MOST);
        const uint64_t what = random_bits() % 16;
        if (what == 0 && n < MOST) {
            n += 1 + (uint32_t)(random_bits() % (MOST - n));
            grow(n);
        } else if (what < 7) {
            const uint32_t block = wk_blocks_take(&blocks);
            uint32_t n_free = 0;
            for (uint32_t k = 0; k < n; k++) n_free += counts[k] == 0;
            assert_int_equal(block == WK_NO_BLOCK, n_free == 0);
            if (block == WK_NO_BLOCK) continue;
            assert_true(block < n && counts[block] == 0);
            counts[block] = 1;
        } else if (at < n && counts[at] > 0) {
            assert_int_equal(wk_blocks_is_shared(&blocks, at), counts[at] > 1);
            const bool is_shared = what < 10;
            (is_shared ? wk_blocks_share : wk_blocks_give)(&blocks, at);
            counts[at] += is_shared ? 1 : UINT32_MAX;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_shared, setup, teardown),
        cmocka_unit_test_setup_teardown(test_random, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
