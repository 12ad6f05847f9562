/* The tree of known beginnings, against a list of all texts that were added. */
#include "llm/prefix_tree.h"

#include "random_bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N_BLOCKS = 200, B = WK_BLOCK_SIZE, MOST = 5 * WK_BLOCK_SIZE };

static wk_heap heap;
static wk_blocks blocks;
static wk_prefix_tree tree;
static uint64_t key; /* of the texts that are added and looked for */

/* Memory that was used before. */
static void *allocate(void *user, size_t size) {
    (void)user;
    void *const memory = malloc(size);
    return memory ? memset(memory, 0xA5, size) : NULL;
}

static void release(void *user, void *memory, size_t size) {
    (void)user;
    (void)size;
    free(memory);
}

static int setup(void **state) {
    (void)state;
    wk_heap_init(&heap, &(wick_allocator){.allocate = allocate, .release = release});
    blocks = (wk_blocks){.n = 0};
    wk_prefix_init(&tree);
    return wk_blocks_grow(&heap, &blocks, N_BLOCKS, NULL) != WICK_OK ||
           wk_prefix_grow(&heap, &tree, N_BLOCKS, NULL) != WICK_OK;
}

static int teardown(void **state) {
    (void)state;
    wk_blocks_free(&heap, &blocks);
    wk_prefix_free(&heap, &tree);
    return heap.live_bytes != 0;
}

/* All of a text, as a sequence does that is closed at once. */
static void add(const uint32_t *ids, uint32_t n) {
    uint32_t parent = WK_NO_BLOCK;
    for (uint32_t i = 0; i < n; i += B) {
        const uint32_t count = n - i < B ? n - i : B, own = wk_blocks_take(&blocks);
        assert_true(own != WK_NO_BLOCK);
        parent = wk_prefix_add(&tree, key, parent, ids + i, count, own);
        if (parent != own) wk_blocks_give(&blocks, own);
    }
}

static void make(uint32_t *ids, uint32_t n, uint32_t differs_at) {
    for (uint32_t i = 0; i < n; i++) ids[i] = i * 7 + (i >= differs_at ? 1000 + differs_at : 0);
}

/* To the token, at every length round the ends of blocks. */
static void test_lengths(void **state) {
    (void)state;
    static const uint32_t lengths[] = {1, B - 1, B, B + 1, 2 * B - 1, 2 * B, 2 * B + 1, 3 * B + 7};
    uint32_t ids[MOST], asked[MOST], found[MOST / B + 1];
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        assert_int_equal(teardown(NULL), 0);
        assert_int_equal(setup(NULL), 0);
        make(ids, MOST, MOST);
        add(ids, lengths[l]);
        for (uint32_t n = 0; n <= 3 * B + 8; n++) {
            const uint32_t want = n < lengths[l] ? n : lengths[l];
            assert_int_equal(wk_prefix_find(&tree, key, ids, n, found), want);
            make(asked, MOST, n); /* another text from n on */
            assert_int_equal(wk_prefix_find(&tree, key, asked, MOST, found), want);
        }
    }
}

static void test_same_block(void **state) {
    (void)state;
    uint32_t ids[B], found[2];
    make(ids, B, B);
    const uint32_t a = wk_blocks_take(&blocks), b = wk_blocks_take(&blocks);
    assert_int_equal(wk_prefix_add(&tree, key, WK_NO_BLOCK, ids, 5, a), a);
    assert_int_equal(wk_prefix_add(&tree, key, WK_NO_BLOCK, ids, 3, b), a);
    assert_int_equal(wk_prefix_add(&tree, key, WK_NO_BLOCK, ids, B, b), b);
    assert_int_equal(wk_prefix_find(&tree, key, ids, B, found), B);
    assert_int_equal(found[0], b);
}

/* Nothing is written for a text that begins with none that is known. */
static void test_unknown(void **state) {
    (void)state;
    uint32_t ids[B + 1], found[2] = {7, 7};
    make(ids, B + 1, B + 1);
    add(ids, B);
    assert_int_equal(wk_prefix_find(&tree, key, ids + 1, B, found), 0);
    assert_int_equal(found[0], 7);
    ids[B] = 9999;
    assert_int_equal(wk_prefix_find(&tree, key, ids, B + 1, found), B);
    assert_int_equal(found[1], 7);
}

/* Blocks that a cache grows by hold no text. */
static void test_grow(void **state) {
    (void)state;
    for (uint32_t n = N_BLOCKS; n <= N_BLOCKS + 3; n++) {
        assert_int_equal(wk_prefix_grow(&heap, &tree, n, NULL), WICK_OK);
        assert_int_equal(wk_prefix_count(&tree), 0);
    }
}

/* To find a text is to use it: of two the one that was found last stays. */
static void test_drop_oldest(void **state) {
    (void)state;
    uint32_t texts[2][B], found[1];
    for (uint32_t kept = 0; kept < 2; kept++) {
        assert_int_equal(teardown(NULL), 0);
        assert_int_equal(setup(NULL), 0);
        for (uint32_t t = 0; t < 2; t++) {
            make(texts[t], B, 0);
            texts[t][0] = t;
            add(texts[t], B);
        }
        assert_int_equal(wk_prefix_find(&tree, key, texts[kept], B, NULL), B);
        assert_true(wk_prefix_drop(&tree, &blocks) != WK_NO_BLOCK);
        assert_int_equal(wk_prefix_find(&tree, key, texts[kept], B, found), B);
        assert_int_equal(wk_prefix_find(&tree, key, texts[1 - kept], B, found), 0);
    }
}

/* The oldest leaf that only the tree has goes first; a parent after its children. */
static void test_drop(void **state) {
    (void)state;
    uint32_t ids[MOST], other[MOST], found[MOST / B + 1];
    make(ids, MOST, MOST);
    make(other, MOST, B);
    add(ids, 3 * B);
    add(other, 2 * B);
    assert_int_equal(wk_prefix_find(&tree, key, ids, 3 * B, found), 3 * B); /* used last */
    const uint32_t last = found[2];
    wk_blocks_share(&blocks, last); /* by a sequence */
    const uint32_t first_out = wk_prefix_drop(&tree, &blocks);
    assert_true(first_out != WK_NO_BLOCK && first_out != last);
    assert_int_equal(wk_prefix_find(&tree, key, other, 2 * B, found), B);
    assert_int_equal(wk_prefix_drop(&tree, &blocks), WK_NO_BLOCK);
    wk_blocks_give(&blocks, last);
    for (uint32_t n = 3; n > 0; n--) {
        assert_true(wk_prefix_drop(&tree, &blocks) != WK_NO_BLOCK);
        assert_int_equal(wk_prefix_find(&tree, key, ids, 3 * B, found), (n - 1) * B);
    }
    assert_int_equal(wk_prefix_drop(&tree, &blocks), WK_NO_BLOCK);
}

/* Random texts of few different tokens, under two keys: what is found is the longest of all
 * beginnings under the same one. */
static void test_random(void **state) {
    (void)state;
    enum { N_TEXTS = 24 };
    static uint32_t texts[N_TEXTS][MOST], lengths[N_TEXTS];
    uint32_t found[MOST / B + 1];
    for (uint32_t t = 0; t < N_TEXTS; t++) {
        lengths[t] = 1 + (uint32_t)(random_bits() % MOST);
        const uint32_t like = t > 0 ? (uint32_t)(random_bits() % t) : 0;
        const uint32_t n_same = t > 0 ? (uint32_t)(random_bits() % (lengths[like] + 1)) : 0;
        for (uint32_t i = 0; i < MOST; i++)
            texts[t][i] = i < n_same ? texts[like][i] : (uint32_t)(random_bits() % 3);
        uint32_t want = 0;
        key = t % 2;
        for (uint32_t o = t % 2; o < t; o += 2) {
            uint32_t n = 0;
            while (n < lengths[o] && n < lengths[t] && texts[o][n] == texts[t][n]) n++;
            want = n > want ? n : want;
        }
        assert_int_equal(wk_prefix_find(&tree, key, texts[t], lengths[t], found), want);
        add(texts[t], lengths[t]);
        assert_int_equal(wk_prefix_find(&tree, key, texts[t], lengths[t], found), lengths[t]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lengths, setup, teardown),
        cmocka_unit_test_setup_teardown(test_same_block, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unknown, setup, teardown),
        cmocka_unit_test_setup_teardown(test_grow, setup, teardown),
        cmocka_unit_test_setup_teardown(test_drop_oldest, setup, teardown),
        cmocka_unit_test_setup_teardown(test_drop, setup, teardown),
        cmocka_unit_test_setup_teardown(test_random, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
