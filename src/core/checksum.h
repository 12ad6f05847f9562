/* core/checksum.h: a checksum of bytes for files: the same on every machine, regardless of the
 * pieces in which the bytes come. Fowler, Noll and Vo's 1a in 64 bits: one byte that differs always
 * changes it. Not for security. */
#ifndef WK_CORE_CHECKSUM_H
#define WK_CORE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* Of no bytes. */
#define WK_CHECKSUM_BEGIN UINT64_C(0xCBF29CE484222325)

/* Of what sum is of, and then these. */
uint64_t wk_checksum(uint64_t sum, const void *bytes, size_t size);

/* Of a sample of something of `whole` bytes, which comes in pieces, in order; this one begins at
 * offset. The sample is 32 runs of 512 bytes at even distances, or everything up to 16 KiB:
 *
 *   whole = 1 MiB:  [512]......33 KiB......[512]......33 KiB......[512] ...
 */
uint64_t wk_checksum_sample(uint64_t sum, uint64_t whole, uint64_t offset, const void *bytes,
                            size_t size);

#endif
