/* arm/vector_neon.c: elementwise ops, reductions, norms and copies for NEON. */
#include "backend/cpu/arm/vector_simd_neon.h"

#include "backend/cpu/simd/vector_kernels.h"

#define KERNEL(...) ELEMENT_KERNEL(neon, __VA_ARGS__)
ELEMENT_KERNELS(KERNEL)
#undef KERNEL
#define KERNEL(...) VECTOR_KERNEL(neon, __VA_ARGS__)
VECTOR_KERNELS(KERNEL)
WK_OF_TENSORS(VECTOR_KERNELS_OF_TENSORS(KERNEL))
#undef KERNEL
WK_OF_TENSORS(REDUCE_LONG_KERNEL(neon))
