/* Hash maps and their hash. */
#include "core/hash.h"
#include "core/map.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "checked_heap.h"

#include <stdio.h>
#include <string.h>

enum { N_KEYS = 20000, KEY_SIZE = 16 };

static void test_strings(void **state) {
    (void)state;
    checked_heap checked;
    checked_heap_init(&checked, 1000);
    static char keys[N_KEYS][KEY_SIZE];
    wk_map map;
    wk_map_init(&map, &checked.heap);
    uint32_t value = 77;
    assert_false(wk_map_get(&map, wk_str_of("absent"), &value));
    for (uint32_t i = 0; i < N_KEYS; i++) {
        snprintf(keys[i], KEY_SIZE, "key%u", i);
        assert_int_equal(wk_map_put(&map, wk_str_of(keys[i]), i), WICK_OK);
    }
    assert_int_equal(map.count, N_KEYS);
    assert_true(map.capacity * 3 / 4 >= N_KEYS && (map.capacity & (map.capacity - 1)) == 0);
    for (uint32_t i = 0; i < N_KEYS; i++) {
        assert_true(wk_map_get(&map, wk_str_of(keys[i]), &value));
        assert_int_equal(value, i);
    }
    value = 77;
    assert_false(wk_map_get(&map, wk_str_of("key20000"), &value));
    assert_int_equal(value, 77);
    assert_int_equal(wk_map_put(&map, wk_str_of("key5"), 500), WICK_OK); /* replaces */
    assert_true(wk_map_get(&map, wk_str_of(keys[5]), &value));
    assert_int_equal(value, 500);
    assert_int_equal(map.count, N_KEYS);
    wk_map_release(&map);
    assert_true(checked_heap_is_clean(&checked));
}

static void test_odd_keys(void **state) {
    (void)state;
    checked_heap checked;
    checked_heap_init(&checked, 10);
    wk_map map;
    wk_map_init(&map, &checked.heap);
    static const char zeros[20] = {0};
    for (uint32_t n = 0; n <= 20; n++) {
        assert_int_equal(wk_map_put(&map, (wk_str){n ? zeros : NULL, n}, n), WICK_OK);
    }
    assert_int_equal(map.count, 21);
    for (uint32_t n = 0; n <= 20; n++) {
        uint32_t value;
        assert_true(wk_map_get(&map, (wk_str){zeros, n}, &value));
        assert_int_equal(value, n);
    }
    wk_map_release(&map);
    assert_true(checked_heap_is_clean(&checked));
}

static void test_integers(void **state) {
    (void)state;
    checked_heap checked;
    checked_heap_init(&checked, 1000);
    wk_map64 map;
    wk_map64_init(&map, &checked.heap);
    uint32_t value = 77;
    assert_false(wk_map64_get(&map, 0, &value));
    /* Pairs of token ids: few low bits differ. */
    for (uint32_t i = 0; i < N_KEYS; i++) {
        const uint64_t key = (uint64_t)(i / 100) << 32 | i % 100;
        assert_int_equal(wk_map64_put(&map, key, i), WICK_OK);
    }
    assert_int_equal(wk_map64_put(&map, UINT64_MAX, 1), WICK_OK);
    assert_int_equal(map.count, N_KEYS + 1);
    for (uint32_t i = 0; i < N_KEYS; i++) {
        assert_true(wk_map64_get(&map, (uint64_t)(i / 100) << 32 | i % 100, &value));
        assert_int_equal(value, i);
    }
    assert_true(wk_map64_get(&map, UINT64_MAX, &value));
    assert_false(wk_map64_get(&map, 100, &value));
    assert_int_equal(wk_map64_put(&map, 0, 9), WICK_OK);
    assert_true(wk_map64_get(&map, 0, &value));
    assert_int_equal(value, 9);
    wk_map64_release(&map);
    assert_true(checked_heap_is_clean(&checked));
}

static void test_memory(void **state) {
    (void)state;
    checked_heap checked;
    checked_heap_init(&checked, 1);
    wk_map map;
    wk_map_init(&map, &checked.heap);
    assert_int_equal(wk_map_reserve(&map, SIZE_MAX), WICK_ERR_OUT_OF_MEMORY);
    assert_int_equal(wk_map_reserve(&map, 100), WICK_OK);
    static char keys[101][KEY_SIZE];
    int n_put = 0;
    for (; n_put < 101 * 2; n_put++) {
        snprintf(keys[n_put % 101], KEY_SIZE, "%d", n_put % 101);
        if (wk_map_put(&map, wk_str_of(keys[n_put % 101]), 0) != WICK_OK) break;
    }
    assert_true(n_put >= 100);
    assert_int_equal(checked.heap.n_allocations, 1);
    wk_map_release(&map);
    wk_map64 map64;
    wk_map64_init(&map64, &checked.heap);
    assert_int_equal(wk_map64_put(&map64, 1, 1), WICK_ERR_OUT_OF_MEMORY);
    uint32_t value;
    assert_false(wk_map64_get(&map64, 1, &value));
    wk_map64_release(&map64);
    assert_true(checked_heap_is_clean(&checked));
}

/* One changed bit of a key should change about half of the 64 bits, wherever it is. */
static void test_hash_mixes(void **state) {
    (void)state;
    for (size_t size = 1; size <= 40; size++) {
        unsigned char key[40] = "The quick brown fox jumps over the lazy";
        const uint64_t base = wk_hash(key, size);
        for (size_t bit = 0; bit < size * 8; bit++) {
            key[bit / 8] ^= (unsigned char)(1U << bit % 8);
            uint64_t difference = base ^ wk_hash(key, size);
            key[bit / 8] ^= (unsigned char)(1U << bit % 8);
            int n_changed = 0;
            for (; difference; difference &= difference - 1) n_changed++;
            assert_in_range(n_changed, 10, 54);
        }
    }
    assert_true(wk_hash("", 0) == wk_hash(NULL, 0));
}

/* Low bits of hashed small integers fill a table about as evenly as chance: of 2^16 slots, a share
 * of 1/e stays empty when 2^16 keys fall at random. */
static void test_hash_spreads(void **state) {
    (void)state;
    static unsigned char seen[1 << 16];
    for (int shift = 0; shift < 64; shift += 8) {
        memset(seen, 0, sizeof seen);
        for (uint64_t i = 0; i < 1 << 16; i++) seen[wk_hash_u64(i << shift) & 0xFFFF] = 1;
        int n_seen = 0;
        for (size_t i = 0; i < sizeof seen; i++) n_seen += seen[i];
        if (shift <= 48) assert_in_range(n_seen, 40500, 42500);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strings),    cmocka_unit_test(test_odd_keys),
        cmocka_unit_test(test_integers),   cmocka_unit_test(test_memory),
        cmocka_unit_test(test_hash_mixes), cmocka_unit_test(test_hash_spreads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
