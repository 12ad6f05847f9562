/* backend/webgpu/profile.c: what kernels take on the device, by timestamps: each dispatch is a pass
 * of its own then, and every submit is waited for. Native only. */
#include "backend/webgpu/webgpu_state.h"

#include <string.h>

enum { MOST_TIMED = 2048, STAMPS = 2 * MOST_TIMED };

wick_status wk_profile_open(wk_backend_device *dev, wick_error *err) {
    wk_profile *const profile = &dev->profile;
    if (!(dev->adapter.features & WICK_WEBGPU_TIMESTAMPS)) return WICK_OK; /* nothing is timed */
    while (wk_webgpu_kernel_at(profile->n_kernels)) profile->n_kernels++;
    profile->n_kernels++; /* the last one: the user's kernels */
    profile->kernels = wk_alloc_array(dev->heap, profile->n_kernels, sizeof *profile->kernels);
    profile->timed = wk_alloc_array(dev->heap, MOST_TIMED, sizeof *profile->timed);
    if (!profile->kernels || !profile->timed)
        return wk_fail_memory(err, MOST_TIMED * sizeof *profile->timed, 0, "the profile");
    for (size_t i = 0; i < profile->n_kernels; i++) {
        const wk_webgpu_kernel *const kernel = wk_webgpu_kernel_at(i);
        profile->kernels[i].name = kernel ? kernel->base.name : wk_webgpu_custom.base.name;
    }
    return wk_gpu_buffer_make(dev->gpu, WK_GPU_READBACK, STAMPS * sizeof(uint64_t),
                              &profile->stamps, err);
}

void wk_profile_release(wk_backend_device *dev) {
    wk_profile *const profile = &dev->profile;
    if (profile->stamps) wk_gpu_buffer_release(dev->gpu, profile->stamps);
    wk_free(dev->heap, profile->kernels, profile->n_kernels * sizeof *profile->kernels);
    wk_free(dev->heap, profile->timed, MOST_TIMED * sizeof *profile->timed);
    *profile = (wk_profile){0};
}

uint32_t wk_profile_dispatch(wk_backend_device *dev, const wk_webgpu_kernel *kernel) {
    wk_profile *const profile = &dev->profile;
    if (!profile->stamps || profile->n_timed == MOST_TIMED) return 0;
    size_t i = 0;
    while (wk_webgpu_kernel_at(i) && wk_webgpu_kernel_at(i) != kernel) i++;
    profile->timed[profile->n_timed++] = &profile->kernels[i];
    return profile->n_timed;
}

wick_status wk_profile_submitted(wk_backend_device *dev, wick_error *err) {
    wk_profile *const profile = &dev->profile;
    const uint32_t n = profile->n_timed;
    if (n == 0) return WICK_OK;
    profile->n_timed = 0;
    WK_TRY(wk_gpu_timestamps(dev->gpu, 2 * n, profile->stamps, err));
    dev->n_submitted++;
    wk_gpu_map_start(dev->gpu, profile->stamps, 2 * n * sizeof(uint64_t));
    const uint64_t *stamps;
    while (!(stamps = wk_gpu_mapped(dev->gpu, profile->stamps))) {
        WK_TRY(wk_gpu_poll(dev->gpu, &dev->n_done, err));
        wk_gpu_pause(dev->gpu);
    }
    for (uint32_t i = 0; i < n; i++) {
        profile->timed[i]->calls++;
        profile->timed[i]->seconds += 1e-9 * (double)(stamps[2 * i + 1] - stamps[2 * i]);
    }
    wk_gpu_unmap(dev->gpu, profile->stamps);
    return WICK_OK;
}

size_t wk_profile_get(const wk_backend_device *dev, wick_kernel_stats *out, size_t capacity) {
    size_t n = 0;
    for (size_t i = 0; i < dev->profile.n_kernels; i++) {
        if (dev->profile.kernels[i].calls == 0) continue;
        if (n < capacity) out[n] = dev->profile.kernels[i];
        n++;
    }
    return n;
}
