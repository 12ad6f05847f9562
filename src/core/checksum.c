/* core/checksum.c: see checksum.h. */
#include "core/checksum.h"

enum { N_RUNS = 32, RUN_SIZE = 512 };

uint64_t wk_checksum(uint64_t sum, const void *bytes, size_t size) {
    static const uint64_t prime = UINT64_C(0x100000001B3);
    const unsigned char *const at = bytes;
    for (size_t i = 0; i < size; i++) sum = (sum ^ at[i]) * prime;
    return sum;
}

uint64_t wk_checksum_sample(uint64_t sum, uint64_t whole, uint64_t offset, const void *bytes,
                            size_t size) {
    if (whole <= N_RUNS * RUN_SIZE) return wk_checksum(sum, bytes, size);
    const uint64_t step = (whole - RUN_SIZE) / (N_RUNS - 1); /* at least RUN_SIZE */
    for (uint64_t i = offset / step; i < N_RUNS && i * step < offset + size; i++) {
        const uint64_t run = i * step;
        const uint64_t begin = run > offset ? run : offset;
        const uint64_t end = run + RUN_SIZE < offset + size ? run + RUN_SIZE : offset + size;
        if (begin < end)
            sum = wk_checksum(sum, (const unsigned char *)bytes + (begin - offset),
                              (size_t)(end - begin));
    }
    return sum;
}
