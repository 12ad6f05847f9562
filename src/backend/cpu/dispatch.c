/* backend/cpu/dispatch.c: the table of all kernels and the choice of one. The only place that asks
 * for which architecture this is compiled. */
#include "backend/cpu/cpu_kernel.h"

#if defined(__x86_64__) || defined(_M_X64)
#define HAS_X86 1
#else
#define HAS_X86 0
#endif
#if defined(__aarch64__)
#define HAS_ARM 1
#else
#define HAS_ARM 0
#endif
#if defined(__wasm_simd128__)
#define HAS_WASM 1
#else
#define HAS_WASM 0
#endif

static const wk_cpu_kernel *const kernels[] = {
#define WK_CPU_KERNEL(symbol) &symbol,
#if HAS_X86
#include "backend/cpu/kernels_x86.def"
#endif
#if HAS_ARM
#include "backend/cpu/kernels_arm.def"
#endif
#if HAS_WASM
#include "backend/cpu/kernels_wasm.def"
#endif
#include "backend/cpu/kernels.def"
#undef WK_CPU_KERNEL
};

static bool may_run(const wk_cpu_kernel *kernel, const wk_op *op, uint32_t features) {
    return (kernel->base.needs & ~features) == 0 && wk_kernel_takes(&kernel->base, op);
}

const wk_cpu_kernel *wk_cpu_find_kernel(const wk_op *op, uint32_t features) {
    for (size_t i = 0; i < WK_COUNT(kernels); i++) {
        if (may_run(kernels[i], op, features)) return kernels[i];
    }
    return NULL;
}

_Static_assert(WK_COUNT(kernels) <= WK_CPU_KERNELS, "the table has too little room");

void wk_cpu_table_make(wk_cpu_table *table, uint32_t features) {
    uint16_t n = 0;
    for (int code = 0; code < WK_OP_COUNT_; code++) {
        table->first[code] = n;
        for (size_t i = 0; i < WK_COUNT(kernels); i++)
            if (kernels[i]->base.code == (wk_opcode)code &&
                (kernels[i]->base.needs & ~features) == 0)
                table->kernels[n++] = kernels[i];
    }
    table->first[WK_OP_COUNT_] = n;
}

const wk_cpu_kernel *wk_cpu_table_find(const wk_cpu_table *table, const wk_op *op) {
    if (op->code >= WK_OP_COUNT_) return NULL; /* the user's */
    for (uint16_t i = table->first[op->code]; i < table->first[op->code + 1]; i++)
        if (wk_kernel_takes(&table->kernels[i]->base, op)) return table->kernels[i];
    return NULL;
}

const wk_cpu_kernel *wk_cpu_kernel_at(size_t index) {
    return index < WK_COUNT(kernels) ? kernels[index] : NULL;
}

/* All instruction sets read the same panels, and the lowest one has kernels for all of them. Raw
 * rows where there is no panel for the type, where something else than linear and embedding reads
 * the weight, or where it is to stay in its file. */
wk_layout wk_cpu_weight_layout(uint32_t features, wick_dtype dtype, int64_t n, int64_t k,
                               uint32_t uses) {
    const bool is_read_raw = (uses & (WK_USE_OTHER | WK_USE_IN_PLACE)) != 0;
    if (features == 0 || (uses & WK_USE_LINEAR) == 0 || is_read_raw) return WK_LAYOUT_RAW;
    return wk_layout_of_panels(dtype, n, k);
}

const wk_cpu_peak *wk_cpu_find_peak(uint32_t features) {
#if HAS_X86
    if ((wk_peak_avx512.needs & ~features) == 0) return &wk_peak_avx512;
    if ((wk_peak_avx2.needs & ~features) == 0) return &wk_peak_avx2;
#endif
    (void)features;
    return NULL;
}
