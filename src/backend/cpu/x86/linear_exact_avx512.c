/* x86/linear_exact_avx512.c: linear in float32 for AVX-512. */
#include "backend/cpu/x86/linear_simd_avx512.h"

#define EXACT_UNPACK unpack_quants
#include "backend/cpu/simd/linear_exact.h"

#define KERNEL(layout, type) EXACT_KERNEL(type, avx512)
KERNEL(F32, f32)
KERNEL(F16, f16)
KERNEL(BF16, bf16)
WK_PANEL_FORMATS(KERNEL)
#undef KERNEL
