/* verify/subject_webgpu.c: the kernels of a WebGPU device. */
#include "verify/verify.h"

#include "backend/webgpu/webgpu.h"
#include "backend/webgpu/webgpu_state.h"

wk_verify_subject wk_verify_on_webgpu(const wk_webgpu_kernel *kernel, wk_backend_device *device) {
    return (wk_verify_subject){.kernel = &kernel->base,
                               .code = kernel->code,
                               .accepts = kernel->accepts,
                               .backend = &wk_backend_webgpu,
                               .device = device};
}

bool wk_verify_next_webgpu(wk_backend_device *device, size_t *index, wk_verify_subject *out) {
    const wk_webgpu_kernel *kernel;
    while ((kernel = wk_webgpu_kernel_at((*index)++)) != NULL) {
        if ((kernel->needs & ~device->adapter.features) != 0) continue;
        *out = wk_verify_on_webgpu(kernel, device);
        return true;
    }
    return false;
}

uint64_t wk_verify_webgpu_programs(const wk_backend_device *device) {
    return device->cache.n_pipelines;
}
