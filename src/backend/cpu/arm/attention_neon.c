/* arm/attention_neon.c: attention, dense and over the paged cache, for NEON. */
#include "backend/cpu/arm/linear_simd_neon.h" /* v16_load_i8 */

#include "backend/cpu/simd/attention_kernels.h"

ATTENTION_KERNELS(neon)
