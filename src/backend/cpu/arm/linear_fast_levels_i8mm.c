/* arm/linear_fast_levels_i8mm.c: linear with activations as integers, for the block types whose
 * quants are indices into levels. */
#include "backend/cpu/arm/linear_fast_i8mm.h"

#define FAST_FORMATS WK_PANEL_LEVEL_FORMATS
#include "backend/cpu/simd/linear_fast.h"

#define KERNEL(layout, type) FAST_KERNEL(type, i8mm, SIMD_NEEDS | WK_CPU_I8MM)
FAST_FORMATS(KERNEL)
#undef KERNEL
