/* x86/matmul_avx2.c: products of float matrices for AVX2. */
#include "backend/cpu/x86/vector_simd_avx2.h"

#include "backend/cpu/simd/convolution.h"
#include "backend/cpu/simd/matmul.h"

MATMUL_KERNELS(avx2)
WK_OF_TENSORS(CONVOLUTION_KERNEL(avx2))
