/* quant/encode.c: rows of float32 to a type: the plain types, and blocks one after the other. */
#include "quant/encode.h"

#include "quant/encode_block.h"

#include <assert.h>
#include <float.h>

typedef void (*encode_block_fn)(const float *restrict x, const float *restrict w,
                                uint8_t *restrict block);

typedef struct encoder {
    encode_block_fn encode_block; /* NULL: a plain type, or none */
    float largest;                /* magnitude; 0: there is no encoder */
} encoder;

static encoder get_encoder(wick_dtype dtype) {
#define ENTRY(dtype, name, largest)                                                                \
    [dtype] = {wk_encode_block_##name, (float)(largest) * WK_F16_MAX},
    /* The largest f16 and bf16 are what rounds to them. */
    static const encoder encoders[WICK_DTYPE_COUNT_] = {[WICK_F32] = {NULL, FLT_MAX},
                                                        [WICK_F16] = {NULL, 0x1.FFDFFEp15F},
                                                        [WICK_BF16] = {NULL, 0x1.FEFFFEp127F},
                                                        WK_BLOCK_ENCODERS(ENTRY)};
#undef ENTRY
    assert((unsigned)dtype < WICK_DTYPE_COUNT_);
    return encoders[dtype];
}

bool wk_can_encode(wick_dtype dtype) { return get_encoder(dtype).largest > 0; }

int64_t wk_find_unencodable(wick_dtype dtype, const float *src, int64_t n) {
    assert(wk_can_encode(dtype) && n >= 0);
    const float largest = get_encoder(dtype).largest;
    enum { RUN = 64 };
    int64_t i = 0;
    for (int64_t end = n / RUN * RUN; i < end; i += RUN) {
        int n_bad = 0;
        for (int j = 0; j < RUN; j++) n_bad += fabsf(src[i + j]) <= largest ? 0 : 1;
        if (n_bad > 0) break;
    }
    while (i < n && fabsf(src[i]) <= largest) i++; /* false for NaN */
    return i;
}

static void encode_plain(wick_dtype dtype, const float *src, uint8_t *dst, int64_t n) {
    if (dtype == WICK_F32) {
        if (n > 0) memcpy(dst, src, (size_t)n * sizeof *src);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        wk_store_u16(dst + 2 * i,
                     dtype == WICK_F16 ? wk_f32_to_f16(src[i]) : wk_f32_to_bf16(src[i]));
}

/* Weights of a block in [0, 1]; where its channels do not matter at all, they matter equally. */
static void scale_weights(const float *importance, int n, float *w) {
    float largest = 0;
    for (int j = 0; j < n; j++) largest = importance[j] > largest ? importance[j] : largest;
    for (int j = 0; j < n; j++) w[j] = largest > 0 ? importance[j] / largest : 1;
}

void wk_encode(wick_dtype dtype, const float *src, const float *importance, void *dst, int64_t n) {
    const wk_dtype_info *const info = wk_dtype_get(dtype);
    const encode_block_fn encode_block = get_encoder(dtype).encode_block;
    assert(wk_can_encode(dtype) && n % info->block_elements == 0);
    if (encode_block == NULL) {
        encode_plain(dtype, src, dst, n);
        return;
    }
    float w[WK_QK_K];
    for (int j = 0; j < WK_QK_K; j++) w[j] = 1;
    uint8_t *block = dst;
    for (int64_t i = 0; i < n; i += info->block_elements, block += info->block_bytes) {
        if (importance != NULL) scale_weights(importance + i, info->block_elements, w);
        encode_block(src + i, w, block);
    }
}
