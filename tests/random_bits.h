/* tests/random_bits.h: the same random numbers in every run (xorshift64; Marsaglia, 2003). */
#ifndef RANDOM_BITS_H
#define RANDOM_BITS_H

#include <stdint.h>

static uint64_t random_state = 88172645463325252u;

/* Another sequence of numbers for each seed. */
static inline void seed_random(uint64_t seed) {
    random_state = 88172645463325252u ^ (seed * 0x9e3779b97f4a7c15u);
    if (random_state == 0) random_state = 1;
}

static inline uint64_t random_bits(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

#endif
