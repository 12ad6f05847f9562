/* core/rng.h: Philox 4x32-10 (Salmon et al., 2011): counter-based random numbers.
 *
 * Element i of a stream is word i % 4 of the block with counter (i / 4, stream), key = seed, so any
 * element can be computed alone and does not depend on threads or device. */
#ifndef WK_CORE_RNG_H
#define WK_CORE_RNG_H

#include <stdint.h>

void wk_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

typedef struct wk_rng {
    uint64_t seed, stream, next; /* next: element index */
} wk_rng;

uint32_t wk_rng_u32(wk_rng *rng);
/* Uniform in [0, 1) with 24 bits, exact in float. */
float wk_rng_uniform(wk_rng *rng);
/* Uniform in [0, n), n up to 2^32. */
int64_t wk_rng_below(wk_rng *rng, int64_t n);

#endif
