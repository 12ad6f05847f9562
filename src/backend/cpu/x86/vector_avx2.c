/* x86/vector_avx2.c: elementwise ops, reductions, norms and copies for AVX2 with FMA and F16C. */
#include "backend/cpu/x86/vector_simd_avx2.h"

#include "backend/cpu/simd/vector_kernels.h"

#define KERNEL(...) ELEMENT_KERNEL(avx2, __VA_ARGS__)
ELEMENT_KERNELS(KERNEL)
#undef KERNEL
#define KERNEL(...) VECTOR_KERNEL(avx2, __VA_ARGS__)
VECTOR_KERNELS(KERNEL)
WK_OF_TENSORS(VECTOR_KERNELS_OF_TENSORS(KERNEL))
#undef KERNEL
WK_OF_TENSORS(REDUCE_LONG_KERNEL(avx2))
