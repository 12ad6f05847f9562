/* x86/vector_avx512.c: elementwise ops, reductions, norms and copies for AVX-512. */
#include "backend/cpu/x86/vector_simd_avx512.h"

#include "backend/cpu/simd/vector_kernels.h"

#define KERNEL(...) ELEMENT_KERNEL(avx512, __VA_ARGS__)
ELEMENT_KERNELS(KERNEL)
#undef KERNEL
#define KERNEL(...) VECTOR_KERNEL(avx512, __VA_ARGS__)
VECTOR_KERNELS(KERNEL)
WK_OF_TENSORS(VECTOR_KERNELS_OF_TENSORS(KERNEL))
#undef KERNEL
WK_OF_TENSORS(REDUCE_LONG_KERNEL(avx512))
