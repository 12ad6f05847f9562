/* x86/linear_fast_levels_avx512.c: linear with activations as integers, for the block types whose
 * quants are indices into levels. */
#include "backend/cpu/x86/linear_fast_avx512.h"

#define FAST_FORMATS WK_PANEL_LEVEL_FORMATS
#include "backend/cpu/simd/linear_fast.h"

#define KERNEL(layout, type) FAST_KERNEL(type, avx512, SIMD_NEEDS)
FAST_FORMATS(KERNEL)
#undef KERNEL
