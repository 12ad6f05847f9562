/* The heap of web/libc over a memory of this test's: blocks keep their bytes, are aligned, are
 * reused and become one again; memory that cannot grow is a NULL. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../web/libc/heap.h"
#include "../../web/libc/include/wick_heap.h"
#include "random_bits.h"

void *web_calloc(size_t n, size_t size);
void web_free(void *memory);
void *web_malloc(size_t size);
void *web_realloc(void *memory, size_t size);

/* --- The module's memory --- */

enum { MEMORY = 64 << 20, PAGE = 65536, ALIGN = 16 };

static _Alignas(ALIGN) unsigned char memory[MEMORY];
static size_t memory_size = PAGE;
static size_t memory_limit = MEMORY;

/* Not aligned, as the linker leaves it. */
unsigned char *wick_memory_begin(void) { return memory + 5; }
unsigned char *wick_memory_end(void) { return memory + memory_size; }

int wick_memory_grow(size_t bytes) {
    if (bytes > memory_limit - memory_size) return 0;
    memory_size += (bytes + PAGE - 1) / PAGE * PAGE;
    if (memory_size > memory_limit) memory_size = memory_limit;
    return 1;
}

/* --- Random use --- */

/* Mostly small. */
static size_t random_size(void) {
    const unsigned bits = (unsigned)(random_bits() % 18);
    return (size_t)(random_bits() & (((uint64_t)1 << bits) - 1));
}

enum { N_BLOCKS = 500 };

typedef struct held {
    unsigned char *bytes;
    size_t size;
    unsigned char fill;
} held;

static void check_bytes(const held *h) {
    assert_int_equal((uintptr_t)h->bytes % ALIGN, 0);
    assert_true(h->bytes >= wick_memory_begin() && h->bytes + h->size <= wick_memory_end());
    for (size_t i = 0; i < h->size; i++) assert_true(h->bytes[i] == h->fill);
}

static void fill(held *h) {
    h->fill = (unsigned char)random_bits();
    memset(h->bytes, h->fill, h->size);
}

static void resize(held *h) {
    const size_t size = random_size();
    unsigned char *const moved = web_realloc(h->bytes, size);
    assert_non_null(moved);
    h->bytes = moved;
    if (size < h->size) h->size = size;
    check_bytes(h);
    h->size = size;
    fill(h);
}

static void begin(held *h) {
    h->size = random_size();
    const bool is_zeroed = random_bits() % 4 == 0;
    h->bytes = is_zeroed ? web_calloc(h->size, 1) : web_malloc(h->size);
    assert_non_null(h->bytes);
    h->fill = 0;
    if (is_zeroed) check_bytes(h);
    fill(h);
}

/* All that was taken from memory is one free block: nearly as much is there without growing. */
static void check_is_whole(void) {
    const size_t before = memory_size;
    void *const all = web_malloc(before - before / 16 - 256);
    assert_non_null(all);
    assert_int_equal(memory_size, before);
    web_free(all);
}

static void test_blocks_keep_their_bytes(void **state) {
    (void)state;
    static held blocks[N_BLOCKS];
    for (int i = 0; i < 60000; i++) {
        held *const h = &blocks[random_bits() % N_BLOCKS];
        if (!h->bytes) {
            begin(h);
        } else if (random_bits() % 3 == 0) {
            check_bytes(h);
            resize(h);
        } else {
            check_bytes(h);
            web_free(h->bytes);
            *h = (held){0};
        }
    }
    assert_true(memory_size < MEMORY / 2); /* some 9 MiB are in use at once */
    for (int i = 0; i < N_BLOCKS; i++) {
        if (blocks[i].bytes) check_bytes(&blocks[i]);
        web_free(blocks[i].bytes);
    }
    check_is_whole();
}

/* What is taken is missing, with its head; what is given back is there again. */
static void test_free_bytes_are_counted(void **state) {
    (void)state;
    enum { SIZE = 1 << 20, MOST_LOST = 64 };
    void *const first = web_malloc(SIZE), *const second = web_malloc(SIZE);
    assert_non_null(first);
    assert_non_null(second);
    const size_t before = wick_heap_free_bytes();
    web_free(first);
    assert_in_range(wick_heap_free_bytes() - before, SIZE, SIZE + MOST_LOST);
    web_free(second);
    const size_t all = wick_heap_free_bytes();
    assert_in_range(all - before, 2 * SIZE, 2 * (SIZE + MOST_LOST));
    assert_in_range(memory_size - all, 0, MOST_LOST); /* nothing else is in use */
}

/* A second round of the same does not need more. */
static void test_memory_does_not_creep(void **state) {
    (void)state;
    size_t after_first = 0;
    for (int round = 0; round < 5; round++) {
        void *kept[64];
        for (size_t i = 0; i < 64; i++) assert_non_null(kept[i] = web_malloc(1000 * i));
        for (size_t i = 0; i < 64; i++) web_free(kept[(i * 37) % 64]);
        if (round == 0) after_first = memory_size;
        assert_int_equal(memory_size, after_first);
    }
    check_is_whole();
}

static void test_exhaustion_is_null_and_nothing_else(void **state) {
    (void)state;
    enum { SIZE = 100000 };
    static void *kept[MEMORY / SIZE];
    memory_limit = memory_size + (4 << 20);
    size_t n = 0;
    while ((kept[n] = web_malloc(SIZE)) != NULL) memset(kept[n++], 0xAB, SIZE);
    assert_true(n * SIZE > memory_limit - memory_limit / 8);
    assert_null(web_realloc(kept[0], 2 * SIZE));
    assert_int_equal(((unsigned char *)kept[0])[SIZE - 1], 0xAB);
    web_free(kept[n / 2]);
    assert_non_null(kept[n / 2] = web_malloc(SIZE)); /* what was given back is there again */
    for (size_t i = 0; i < n; i++) web_free(kept[i]);
    check_is_whole();
    memory_limit = MEMORY;
}

static void test_sizes_that_cannot_be(void **state) {
    (void)state;
    assert_null(web_malloc(SIZE_MAX));
    assert_null(web_malloc(PTRDIFF_MAX));
    assert_null(web_malloc(MEMORY));
    assert_null(web_calloc(SIZE_MAX / 2, 3));
    void *const none = web_malloc(0);
    assert_non_null(none);
    web_free(none);
    web_free(NULL);
    void *const made = web_realloc(NULL, 10);
    assert_non_null(made);
    assert_null(web_realloc(made, SIZE_MAX));
    web_free(made);
    check_is_whole();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_keep_their_bytes),
        cmocka_unit_test(test_free_bytes_are_counted),
        cmocka_unit_test(test_memory_does_not_creep),
        cmocka_unit_test(test_exhaustion_is_null_and_nothing_else),
        cmocka_unit_test(test_sizes_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
