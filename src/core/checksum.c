/* core/checksum.c: see checksum.h. */
#include "core/checksum.h"

uint64_t wk_checksum(uint64_t sum, const void *bytes, size_t size) {
    static const uint64_t prime = UINT64_C(0x100000001B3);
    const unsigned char *const at = bytes;
    for (size_t i = 0; i < size; i++) sum = (sum ^ at[i]) * prime;
    return sum;
}
