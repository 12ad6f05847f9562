/* x86/weight_layout.c: which layout the kernels of this folder read fastest. */
#include "backend/cpu/cpu_kernel.h"

#include "sys/cpu_features.h"

/* All instruction sets read the same panels. Raw rows where there is no panel for the type, or
 * where something else than linear and embedding reads the weight. */
wk_layout wk_x86_weight_layout(uint32_t features, wick_dtype dtype, int64_t n, int64_t k,
                               uint32_t uses) {
    const uint32_t avx512 = WK_CPU_AVX512 | WK_CPU_AVX512_VNNI;
    const bool has_kernels = (features & WK_CPU_AVX2) != 0 || (features & avx512) == avx512;
    if (!has_kernels || (uses & WK_USE_LINEAR) == 0 || (uses & WK_USE_OTHER) != 0)
        return WK_LAYOUT_RAW;
    for (wk_layout layout = WK_LAYOUT_PANEL_F32; layout < WK_LAYOUT_COUNT_; layout++)
        if (wk_layout_accepts(layout, dtype, n, k)) return layout;
    return WK_LAYOUT_RAW;
}
