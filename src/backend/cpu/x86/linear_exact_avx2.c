/* x86/linear_exact_avx2.c: linear in float32 for AVX2 with FMA and F16C. */
#include "backend/cpu/x86/linear_simd_avx2.h"

#define EXACT_UNPACK unpack_quants
#include "backend/cpu/simd/linear_exact.h"

#define KERNEL(layout, type) EXACT_KERNEL(type, avx2)
KERNEL(F32, f32)
KERNEL(F16, f16)
KERNEL(BF16, bf16)
WK_PANEL_FORMATS(KERNEL)
#undef KERNEL
