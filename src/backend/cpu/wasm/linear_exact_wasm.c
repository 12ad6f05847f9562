/* wasm/linear_exact_wasm.c: linear in float32 for WebAssembly's SIMD. */
#include "backend/cpu/wasm/linear_simd_wasm.h"

#define EXACT_UNPACK wk_linear_floats_wasm
#include "backend/cpu/simd/linear_exact.h"

#define KERNEL(layout, type) EXACT_KERNEL(type, wasm)
KERNEL(F32, f32)
KERNEL(F16, f16)
KERNEL(BF16, bf16)
WK_PANEL_FORMATS(KERNEL)
#undef KERNEL
