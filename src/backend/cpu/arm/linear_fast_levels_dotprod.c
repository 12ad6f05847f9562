/* arm/linear_fast_levels_dotprod.c: linear with activations as integers, for the block types whose
 * quants are indices into levels. */
#include "backend/cpu/arm/linear_fast_dotprod.h"

#define FAST_FORMATS WK_PANEL_LEVEL_FORMATS
#include "backend/cpu/simd/linear_fast.h"

#define KERNEL(layout, type) FAST_KERNEL(type, dotprod, SIMD_NEEDS | WK_CPU_DOTPROD)
FAST_FORMATS(KERNEL)
#undef KERNEL
