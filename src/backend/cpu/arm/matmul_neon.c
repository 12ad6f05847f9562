/* arm/matmul_neon.c: products of float matrices for NEON. */
#include "backend/cpu/arm/vector_simd_neon.h"

#include "backend/cpu/simd/convolution.h"
#include "backend/cpu/simd/matmul.h"

MATMUL_KERNELS(neon)
WK_OF_TENSORS(CONVOLUTION_KERNEL(neon))
