/* backend/webgpu/dispatch.c: the table of all kernels and the choice of one. */
#include "backend/webgpu/webgpu_kernel.h"

#include "core/compiler.h"
#include "core/dtype.h"

static const wk_webgpu_kernel *const kernels[] = {
#define WK_WEBGPU_KERNEL(symbol) &symbol,
#include "backend/webgpu/kernels.def"
#undef WK_WEBGPU_KERNEL
};

bool wk_webgpu_is_float(wick_dtype dtype) { return wk_dtype_is_float(dtype) && dtype != WICK_F64; }

static bool may_run(const wk_webgpu_kernel *kernel, const wk_op *op, uint32_t features) {
    if (kernel->code != op->code || (kernel->needs & ~features) != 0) return false;
    if (kernel->base.is_fast && !(op->code == WK_OP_LINEAR && op->p.linear.fast)) return false;
    return !kernel->accepts || kernel->accepts(op);
}

const wk_webgpu_kernel *wk_webgpu_find_kernel(const wk_op *op, uint32_t features) {
    if (op->code == WK_OP_CUSTOM) return &wk_webgpu_custom;
    for (size_t i = 0; i < WK_COUNT(kernels); i++)
        if (may_run(kernels[i], op, features)) return kernels[i];
    return NULL;
}

const wk_webgpu_kernel *wk_webgpu_kernel_at(size_t index) {
    return index < WK_COUNT(kernels) ? kernels[index] : NULL;
}
