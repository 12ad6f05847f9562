/* x86/matmul_avx512.c: products of float matrices for AVX-512. */
#include "backend/cpu/x86/vector_simd_avx512.h"

#include "backend/cpu/simd/convolution.h"
#include "backend/cpu/simd/matmul.h"

MATMUL_KERNELS(avx512)
WK_OF_TENSORS(CONVOLUTION_KERNEL(avx512))
