/* core/rng.c: Philox 4x32 with 10 rounds, from the paper: Salmon, Moraes, Dror, Shaw, "Parallel
 * random numbers: as easy as 1, 2, 3" (2011). */
#include "core/rng.h"

void wk_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)0xD2511F53 * c0;
        const uint64_t b = (uint64_t)0xCD9E8D57 * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

uint32_t wk_rng_u32(wk_rng *rng) {
    const uint64_t block = rng->next / 4;
    const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)rng->stream,
                                 (uint32_t)(rng->stream >> 32)};
    const uint32_t key[2] = {(uint32_t)rng->seed, (uint32_t)(rng->seed >> 32)};
    uint32_t words[4];
    wk_philox(counter, key, words);
    return words[rng->next++ % 4];
}

float wk_rng_uniform(wk_rng *rng) { return (float)(wk_rng_u32(rng) >> 8) * 0x1p-24F; }

int64_t wk_rng_below(wk_rng *rng, int64_t n) {
    return (int64_t)(((uint64_t)wk_rng_u32(rng) * (uint64_t)n) >> 32);
}
