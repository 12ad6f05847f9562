/* quant/block.h: GGML's block formats: scalar decoding of rows, the definition of every type.
 *
 * Layouts and arithmetic follow ggml's file format: fields little-endian, products and sums in
 * float32 in the order given here, so that decoding is equal to the reference bit for bit. */
#ifndef WK_QUANT_BLOCK_H
#define WK_QUANT_BLOCK_H

#include "core/dtype.h"
#include "core/status.h"

enum { WK_QK_SMALL = 32, WK_QK_K = 256 };

/* Decodes n elements (a multiple of the type's block) from src, which need not be aligned, to dst,
 * which does not overlap it. */
typedef void (*wk_decode_fn)(const void *src, float *dst, int64_t n);

/* For all block types, f32, f16 and bf16; NULL for the others. */
wk_decode_fn wk_decoder(wick_dtype dtype);

#endif
