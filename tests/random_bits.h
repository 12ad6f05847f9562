/* tests/random_bits.h: the same random numbers in every run (xorshift64; Marsaglia, 2003). */
#ifndef RANDOM_BITS_H
#define RANDOM_BITS_H

#include <stdint.h>

static inline uint64_t random_bits(void) {
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

#endif
