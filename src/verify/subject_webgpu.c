/* verify/subject_webgpu.c: the kernels of a WebGPU device. */
#include "verify/verify.h"

#include "backend/webgpu/webgpu.h"
#include "backend/webgpu/webgpu_state.h"

static void tune(wk_backend_device *device, const uint32_t *tuning) {
    device->is_tuning_given = tuning != NULL;
    device->given_tuning = tuning ? *tuning : 0;
}

static void disable(wk_backend_device *device, const wk_kernel *kernel) {
    wk_choice_of(device, kernel)->is_disabled = true;
}

wk_verify_subject wk_verify_on_webgpu(const wk_webgpu_kernel *kernel, wk_backend_device *device) {
    const wk_choice *const choice = wk_choice_of(device, &kernel->base);
    return (wk_verify_subject){.kernel = &kernel->base,
                               .code = kernel->base.code,
                               .accepts = kernel->base.accepts,
                               .backend = &wk_backend_webgpu,
                               .device = device,
                               .n_tunings = kernel->base.n_tunings,
                               .tune = tune,
                               .disable = choice ? disable : NULL,
                               .is_disabled = choice && choice->is_disabled};
}

bool wk_verify_next_webgpu(wk_backend_device *device, size_t *index, wk_verify_subject *out) {
    while (*index < device->n_choices) {
        const wk_webgpu_kernel *const kernel = device->choices[(*index)++].kernel;
        if (kernel->base.code == WK_OP_CUSTOM) continue; /* there is nothing to compare it with */
        if (!wk_choice_is_possible(device, kernel)) continue;
        *out = wk_verify_on_webgpu(kernel, device);
        return true;
    }
    return false;
}

uint64_t wk_verify_webgpu_programs(const wk_backend_device *device) {
    return device->cache.n_pipelines;
}
