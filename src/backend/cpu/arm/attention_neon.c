/* arm/attention_neon.c: attention, dense and over the paged cache, for NEON. */
#include "backend/cpu/arm/simd_neon.h"

#include "backend/cpu/simd/attention_kernels.h"

ATTENTION_KERNELS(neon)
