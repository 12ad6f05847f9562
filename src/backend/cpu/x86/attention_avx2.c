/* x86/attention_avx2.c: attention, dense and over the paged cache, for AVX2 with FMA and F16C. */
#include "backend/cpu/x86/linear_simd_avx2.h" /* v16_load_i8 */

#include "backend/cpu/simd/attention_kernels.h"

ATTENTION_KERNELS(avx2)
