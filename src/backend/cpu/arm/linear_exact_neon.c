/* arm/linear_exact_neon.c: linear in float32 for NEON. */
#include "backend/cpu/arm/linear_simd_neon.h"

#define EXACT_UNPACK unpack_quants
#include "backend/cpu/simd/linear_exact.h"

#define KERNEL(layout, type) EXACT_KERNEL(type, neon)
KERNEL(F32, f32)
KERNEL(F16, f16)
KERNEL(BF16, bf16)
WK_PANEL_FORMATS(KERNEL)
#undef KERNEL
