/* quant/encode.h: float32 to the types of weights: the inverse of quant/block.h.
 *
 * Encoders look for the blocks whose decoded values x' have the least error: the sum of
 * w (x - x')^2 over a block, w being the importance of an element's channel (all the same where
 * none is given). Results do not depend on threads, compiler or processor. */
#ifndef WK_QUANT_ENCODE_H
#define WK_QUANT_ENCODE_H

#include "core/dtype.h"

/* f32, f16, bf16, and the block types that have an encoder. */
bool wk_can_encode(wick_dtype dtype);

/* The first of n elements that is not finite, or larger than the type can hold; n: there is none.
 */
int64_t wk_find_unencodable(wick_dtype dtype, const float *src, int64_t n);

/* Encodes n elements, a multiple of the type's block, all of them encodable. importance: n finite
 * numbers >= 0, or NULL. dst need not be aligned and does not overlap src. */
void wk_encode(wick_dtype dtype, const float *src, const float *importance, void *dst, int64_t n);

/* Without the search, for what is written while a model runs, the cache of keys and values: the
 * extreme element of a block decides its scale. n is a multiple of 32. Of any floats come finite
 * numbers: what f16 scales cannot reach is cut off, NaN counts as the lowest level. */
static inline bool wk_can_encode_quickly(wick_dtype dtype) {
    return dtype == WICK_Q8_0 || dtype == WICK_Q4_0;
}
void wk_encode_quickly(wick_dtype dtype, const float *src, void *dst, int64_t n);

#endif
