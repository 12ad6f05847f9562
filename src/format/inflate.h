/* format/inflate.h: unpacks DEFLATE streams (RFC 1951) held in memory, into memory. */
#ifndef WK_FORMAT_INFLATE_H
#define WK_FORMAT_INFLATE_H

#include "core/alloc.h"
#include "core/status.h"

/* No stream unpacks to more than this many times its own size: a match of 258 bytes takes at least
 * two bits. */
enum { WK_INFLATE_RATIO = 1032 };

/* Unpacks src to exactly dst_size bytes; nothing is written beyond. is_prefix: the stream may go
 * on, what follows is not looked at. The heap gives about 128 KiB of tables meanwhile.
 * WICK_ERR_FORMAT with the byte of the stream and the reason, WICK_ERR_OUT_OF_MEMORY. */
wick_status wk_inflate(wk_heap *heap, const uint8_t *src, size_t src_size, uint8_t *dst,
                       size_t dst_size, bool is_prefix, wick_error *err);

#endif
