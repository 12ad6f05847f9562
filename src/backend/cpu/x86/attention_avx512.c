/* x86/attention_avx512.c: attention, dense and over the paged cache, for AVX-512. */
#include "backend/cpu/x86/linear_simd_avx512.h" /* v16_load_i8 */

#include "backend/cpu/simd/attention_kernels.h"

ATTENTION_KERNELS(avx512)
