/* backend/webgpu/profile.c: what kernels take on the device, by timestamps: each dispatch is a pass
 * of its own then, and every submit is waited for. Native only. */
#include "backend/webgpu/webgpu_state.h"

#include <string.h>

enum { MOST_TIMED = 2048, STAMPS = 2 * MOST_TIMED };

wick_status wk_profile_open(wk_backend_device *dev, wick_error *err) {
    wk_profile *const profile = &dev->profile;
    if (!(dev->adapter.features & WICK_WEBGPU_TIMESTAMPS)) return WICK_OK; /* nothing is timed */
    profile->n_kernels = dev->n_choices;
    profile->kernels = wk_alloc_array(dev->heap, profile->n_kernels, sizeof *profile->kernels);
    profile->timed = wk_alloc_array(dev->heap, MOST_TIMED, sizeof *profile->timed);
    if (!profile->kernels || !profile->timed)
        return wk_fail_memory(err, MOST_TIMED * sizeof *profile->timed, 0, "the profile");
    for (size_t i = 0; i < profile->n_kernels; i++)
        profile->kernels[i].name = dev->choices[i].kernel->base.name;
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

/* NULL: it is not timed. */
static wick_kernel_stats *stats_of(const wk_backend_device *dev, const wk_webgpu_kernel *kernel) {
    const wk_choice *const choice =
        dev->profile.stamps && kernel ? wk_choice_of(dev, &kernel->base) : NULL;
    return choice ? &dev->profile.kernels[choice - dev->choices] : NULL;
}

uint32_t wk_profile_dispatch(wk_backend_device *dev, const wk_webgpu_kernel *kernel) {
    wk_profile *const profile = &dev->profile;
    wick_kernel_stats *const stats = stats_of(dev, kernel);
    if (!stats || profile->n_timed == MOST_TIMED) return 0;
    profile->timed[profile->n_timed++] = (wk_timed){.stats = stats};
    return profile->n_timed;
}

void wk_profile_op(wk_backend_device *dev, const wk_webgpu_kernel *kernel, const wk_cost *cost) {
    wk_profile *const profile = &dev->profile;
    if (profile->n_timed == 0) return;
    wk_timed *const last = &profile->timed[profile->n_timed - 1];
    if (last->ends_op || last->stats != stats_of(dev, kernel)) return; /* nothing to do, or full */
    last->ends_op = true;
    last->cost = *cost;
}

static void count(const wk_timed *timed, double seconds) {
    wick_kernel_stats *const stats = timed->stats;
    stats->n_dispatches++;
    stats->seconds += seconds;
    if (!timed->ends_op) return;
    stats->calls++;
    stats->bytes_read += timed->cost.bytes_read;
    stats->bytes_written += timed->cost.bytes_written;
    stats->flops += timed->cost.flops;
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
    for (uint32_t i = 0; i < n; i++)
        count(&profile->timed[i], 1e-9 * (double)(stamps[2 * i + 1] - stamps[2 * i]));
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
