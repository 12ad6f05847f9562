/* wasm/attention_wasm.c: attention, dense and over the paged cache, for WebAssembly's SIMD. */
#include "backend/cpu/wasm/linear_simd_wasm.h"

#include "backend/cpu/simd/attention_kernels.h"

ATTENTION_KERNELS(wasm)
