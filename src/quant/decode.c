/* quant/decode.c: rows of weights to float32: the decoder of every type, and the plain types. */
#include "quant/decode.h"

#include <assert.h>

static void decode_f32(const void *src, float *dst, int64_t n) {
    if (n > 0) memcpy(dst, src, (size_t)n * sizeof *dst);
}

/* wk_f16_to_f32 in a form that compilers vectorise. The product moves the exponent's bias from 15
 * to 127 and normalises subnormals, exactly; infinity and NaN (2^16 and more) need the top
 * exponent. */
static void decode_f16(const void *src, float *dst, int64_t n) {
    const uint8_t *from = src;
    for (int64_t i = 0; i < n; i++) {
        const uint32_t h = wk_load_u16(from + 2 * i);
        const uint32_t magnitude = wk_f32_bits(wk_f32_from_bits((h & 0x7FFF) << 13) * 0x1p112F);
        const uint32_t special = magnitude >= 0x47800000 ? 0x7F800000 : 0;
        dst[i] = wk_f32_from_bits(magnitude | special | (h & 0x8000) << 16);
    }
}

static void decode_bf16(const void *src, float *dst, int64_t n) {
    const uint8_t *from = src;
    for (int64_t i = 0; i < n; i++) dst[i] = wk_bf16_to_f32(wk_load_u16(from + 2 * i));
}

/* decode_q4_0 and its like: a row is a run of blocks. */
#define DEFINE_ROW(dtype, name, elements, bytes)                                                   \
    static void decode_##name(const void *src, float *dst, int64_t n) {                            \
        const uint8_t *block = src;                                                                \
        for (int64_t i = 0; i < n; i += (elements), block += (bytes))                              \
            wk_decode_block_##name(block, dst + i);                                                \
    }
WK_BLOCK_TYPES(DEFINE_ROW)

wk_decode_fn wk_decoder(wick_dtype dtype) {
#define ENTRY(dtype, name, elements, bytes) [dtype] = decode_##name,
    static const wk_decode_fn decoders[WICK_DTYPE_COUNT_] = {[WICK_F32] = decode_f32,
                                                             [WICK_F16] = decode_f16,
                                                             [WICK_BF16] = decode_bf16,
                                                             WK_BLOCK_TYPES(ENTRY)};
    assert((unsigned)dtype < WICK_DTYPE_COUNT_);
    return decoders[dtype];
}
