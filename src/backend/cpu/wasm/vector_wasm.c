/* wasm/vector_wasm.c: elementwise ops, reductions, norms and copies for WebAssembly's SIMD. */
#include "backend/cpu/wasm/vector_simd_wasm.h"

#include "backend/cpu/simd/vector_kernels.h"

#define KERNEL(...) ELEMENT_KERNEL(wasm, __VA_ARGS__)
ELEMENT_KERNELS(KERNEL)
#undef KERNEL
#define KERNEL(...) VECTOR_KERNEL(wasm, __VA_ARGS__)
VECTOR_KERNELS(KERNEL)
WK_OF_TENSORS(VECTOR_KERNELS_OF_TENSORS(KERNEL))
#undef KERNEL
WK_OF_TENSORS(REDUCE_LONG_KERNEL(wasm))
