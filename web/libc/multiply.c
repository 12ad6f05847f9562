/* multiply.c: what the compiler calls for a product of 128 bits: it makes one of checks whether a
 * product of 64 bits overflows. */
#include <stdint.h>

typedef union wide {
    __int128 whole;
    struct {
        uint64_t low, high;
    } half;
} wide;

__int128 __multi3(__int128 a, __int128 b);

__int128 __multi3(__int128 a, __int128 b) {
    const wide x = {.whole = a}, y = {.whole = b};
    const uint64_t x0 = (uint32_t)x.half.low, x1 = x.half.low >> 32;
    const uint64_t y0 = (uint32_t)y.half.low, y1 = y.half.low >> 32;
    const uint64_t low = x0 * y0, first = x1 * y0 + (low >> 32), second = x0 * y1 + (uint32_t)first;
    const wide product = {
        .half.low = second << 32 | (uint32_t)low,
        .half.high = x1 * y1 + (first >> 32) + (second >> 32) + x.half.low * y.half.high +
                     x.half.high * y.half.low,
    };
    return product.whole;
}
