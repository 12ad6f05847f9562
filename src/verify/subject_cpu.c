/* verify/subject_cpu.c: the kernels of a CPU device. */
#include "verify/verify.h"

#include "backend/cpu/cpu_state.h"

wk_verify_subject wk_verify_on_cpu(const wk_cpu_kernel *kernel) {
    return (wk_verify_subject){.kernel = &kernel->base,
                               .code = kernel->base.code,
                               .accepts = kernel->base.accepts,
                               .cpu = kernel};
}

bool wk_verify_next_cpu(const wk_backend_device *device, size_t *index, wk_verify_subject *out) {
    const wk_cpu_kernel *kernel;
    while ((kernel = wk_cpu_kernel_at((*index)++)) != NULL) {
        if ((kernel->base.needs & ~device->features) != 0) continue;
        *out = wk_verify_on_cpu(kernel);
        return true;
    }
    return false;
}
