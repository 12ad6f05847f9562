/* core/hash.h: a fast 64-bit hash, for maps and keys, not for security. */
#ifndef WK_CORE_HASH_H
#define WK_CORE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t wk_hash(const void *bytes, size_t size);
/* Mixes an integer key (bijective). */
uint64_t wk_hash_u64(uint64_t key);

#endif
