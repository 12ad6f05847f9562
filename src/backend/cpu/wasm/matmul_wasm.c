/* wasm/matmul_wasm.c: products of float matrices for WebAssembly's SIMD. */
#include "backend/cpu/wasm/vector_simd_wasm.h"

#include "backend/cpu/simd/convolution.h"
#include "backend/cpu/simd/matmul.h"

MATMUL_KERNELS(wasm)
WK_OF_TENSORS(CONVOLUTION_KERNEL(wasm))
