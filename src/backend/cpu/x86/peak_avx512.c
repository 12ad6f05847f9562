/* x86/peak_avx512.c: the most products and sums per second that AVX-512 with VNNI gives. */
#include "backend/cpu/x86/simd_avx512.h"

#include "backend/cpu/cpu_kernel.h"

/* Chains in flight: more than latency times throughput, few enough that gcc unrolls them. */
enum { N_CHAINS = 16 };

static int32_t integer(int64_t n_rounds) {
    __m512i sum[N_CHAINS];
    for (int i = 0; i < N_CHAINS; i++) sum[i] = _mm512_set1_epi32(i);
    const __m512i x = _mm512_set1_epi8(3);
    for (int64_t round = 0; round < n_rounds; round++) {
        for (int i = 0; i < N_CHAINS; i++) sum[i] = _mm512_dpbusd_epi32(sum[i], x, x);
    }
    for (int i = 1; i < N_CHAINS; i++) sum[0] = _mm512_add_epi32(sum[0], sum[i]);
    return _mm_cvtsi128_si32(_mm512_castsi512_si128(sum[0]));
}

static float f32(int64_t n_rounds) {
    __m512 sum[N_CHAINS];
    for (int i = 0; i < N_CHAINS; i++) sum[i] = _mm512_set1_ps((float)(i + 2));
    const __m512 x = _mm512_set1_ps(0.5F); /* sums near 1 in the end */
    for (int64_t round = 0; round < n_rounds; round++) {
        for (int i = 0; i < N_CHAINS; i++) sum[i] = _mm512_fmadd_ps(sum[i], x, x);
    }
    for (int i = 1; i < N_CHAINS; i++) sum[0] = _mm512_add_ps(sum[0], sum[i]);
    return _mm512_cvtss_f32(sum[0]);
}

const wk_cpu_peak wk_peak_avx512 = {
    .needs = SIMD_NEEDS,
    .integer_ops = 2 * 64 * N_CHAINS,
    .f32_ops = 2 * 16 * N_CHAINS,
    .integer = integer,
    .f32 = f32,
};
