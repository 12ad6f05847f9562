/* Philox against the published known answers (Random123, kat_vectors, "philox4x32 10"). */
#include "core/rng.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

static void check(const uint32_t counter[4], const uint32_t key[2], const uint32_t expected[4]) {
    uint32_t out[4];
    wk_philox(counter, key, out);
    assert_memory_equal(out, expected, sizeof out);
}

static void test_known_answers(void **state) {
    (void)state;
    check((uint32_t[]){0, 0, 0, 0}, (uint32_t[]){0, 0},
          (uint32_t[]){0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    check((uint32_t[]){UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX},
          (uint32_t[]){UINT32_MAX, UINT32_MAX},
          (uint32_t[]){0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    check((uint32_t[]){0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
          (uint32_t[]){0xa4093822, 0x299f31d0},
          (uint32_t[]){0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

/* Element i is word i % 4 of block i / 4, wherever the stream is entered. */
static void test_elements(void **state) {
    (void)state;
    const uint64_t seed = 0x0123456789ABCDEF, stream = 0xFEDCBA9876543210;
    const uint32_t key[2] = {0x89ABCDEF, 0x01234567};
    const uint64_t starts[] = {0, 5, (1ULL << 34) - 3};
    for (int s = 0; s < 3; s++) {
        wk_rng rng = {.seed = seed, .stream = stream, .next = starts[s]};
        for (uint64_t i = starts[s]; i < starts[s] + 10; i++) {
            const uint32_t counter[4] = {(uint32_t)(i / 4), (uint32_t)(i / 4 >> 32), 0x76543210,
                                         0xFEDCBA98};
            uint32_t words[4];
            wk_philox(counter, key, words);
            assert_int_equal(wk_rng_u32(&rng), words[i % 4]);
        }
        assert_true(rng.next == starts[s] + 10);
    }
}

static void test_uniform(void **state) {
    (void)state;
    const int n = 100000;
    wk_rng rng = {.seed = 7}, same = {.seed = 7};
    double sum = 0.0;
    for (int i = 0; i < n; i++) {
        const float u = wk_rng_uniform(&rng);
        assert_true(u >= 0.0F && u < 1.0F);
        assert_true(u == (float)(wk_rng_u32(&same) >> 8) / 16777216.0F);
        sum += (double)u;
    }
    assert_true(sum > 0.495 * n && sum < 0.505 * n);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),
        cmocka_unit_test(test_elements),
        cmocka_unit_test(test_uniform),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
