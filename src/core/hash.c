/* core/hash.c: multiply and fold, eight bytes at a time. The values differ between byte orders and
 * between versions: they are for tables in memory, never for files. */
#include "core/hash.h"

#include <string.h>

/* 2^64 divided by the golden ratio, and an odd constant without visible structure. */
static const uint64_t MULTIPLIER_A = 0x9E3779B97F4A7C15U;
static const uint64_t MULTIPLIER_B = 0xD6E8FEB86659FD93U;

/* A multiplication carries only upwards; the shifts bring the mixed high half back down. Each step
 * can be undone, so that no two keys meet. */
uint64_t wk_hash_u64(uint64_t key) {
    key ^= key >> 32;
    key *= MULTIPLIER_B;
    key ^= key >> 29;
    key *= MULTIPLIER_A;
    key ^= key >> 32;
    return key;
}

/* size: 1 to 7. Fixed sizes are loads, where a copy of size bytes would be a call. */
static uint64_t last_word(const unsigned char *at, size_t size) {
    if (size < 4) {
        return at[0] | (uint64_t)at[size / 2] << 8 | (uint64_t)at[size - 1] << 16;
    }
    uint32_t low, high; /* they overlap */
    memcpy(&low, at, 4);
    memcpy(&high, at + size - 4, 4);
    return low | (uint64_t)high << 32;
}

uint64_t wk_hash(const void *bytes, size_t size) {
    const unsigned char *at = bytes;
    /* The size goes in first: without it, zero bytes at the end would not count. */
    uint64_t state = ((uint64_t)size + 1) * MULTIPLIER_A;
    size_t rest = size;
    for (; rest >= 8; at += 8, rest -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        state = (state ^ word) * MULTIPLIER_B;
        state ^= state >> 32;
    }
    if (rest > 0) state ^= last_word(at, rest);
    return wk_hash_u64(state);
}
