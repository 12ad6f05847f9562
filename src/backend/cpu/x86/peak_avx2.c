/* x86/peak_avx2.c: the most products and sums per second that AVX2 with FMA gives. */
#include "backend/cpu/x86/simd_avx2.h"

#include "backend/cpu/cpu_kernel.h"

/* Chains in flight, to hide the latency; with the operands they fit 16 registers. */
enum { N_CHAINS = 10 };

/* Bytes to 16 bits to 32 bits. Each product is of the sum before, or it could leave the loop. */
static int32_t integer(int64_t n_rounds) {
    __m256i sum[N_CHAINS];
    for (int i = 0; i < N_CHAINS; i++) sum[i] = _mm256_set1_epi32(i);
    const __m256i x = _mm256_set1_epi8(3), ones = _mm256_set1_epi16(1);
    for (int64_t round = 0; round < n_rounds; round++) {
        for (int i = 0; i < N_CHAINS; i++) {
            const __m256i pairs = _mm256_madd_epi16(_mm256_maddubs_epi16(sum[i], x), ones);
            sum[i] = _mm256_add_epi32(sum[i], pairs);
        }
    }
    for (int i = 1; i < N_CHAINS; i++) sum[0] = _mm256_add_epi32(sum[0], sum[i]);
    return _mm256_extract_epi32(sum[0], 0);
}

static float f32(int64_t n_rounds) {
    __m256 sum[N_CHAINS];
    for (int i = 0; i < N_CHAINS; i++) sum[i] = _mm256_set1_ps((float)(i + 2));
    const __m256 x = _mm256_set1_ps(0.5F); /* sums near 1 in the end */
    for (int64_t round = 0; round < n_rounds; round++) {
        for (int i = 0; i < N_CHAINS; i++) sum[i] = _mm256_fmadd_ps(sum[i], x, x);
    }
    for (int i = 1; i < N_CHAINS; i++) sum[0] = _mm256_add_ps(sum[0], sum[i]);
    return _mm256_cvtss_f32(sum[0]);
}

const wk_cpu_peak wk_peak_avx2 = {
    .needs = SIMD_NEEDS,
    .integer_ops = 2 * 32 * N_CHAINS,
    .f32_ops = 2 * 8 * N_CHAINS,
    .integer = integer,
    .f32 = f32,
};
