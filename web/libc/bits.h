/* bits.h: doubles as their bits (IEEE 754). */
#ifndef WICK_LIBC_BITS_H
#define WICK_LIBC_BITS_H

#include <stdint.h>
#include <string.h>

static inline uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline double of_bits(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#endif
