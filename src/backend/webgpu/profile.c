/* backend/webgpu/profile.c: what kernels take on the device, by timestamps: each dispatch is a pass
 * of its own then. Every submit is waited for; in a page, where nothing happens while somebody
 * waits, its times come with the polls that follow. */
#include "backend/webgpu/profile.h"

#include "backend/webgpu/choice.h"
#include "backend/webgpu/webgpu_state.h"

#include <assert.h>
#include <string.h>

enum { MOST_TIMED = 2048, STAMPS = 2 * MOST_TIMED };

wick_status wk_profile_open(wk_backend_device *dev, wick_error *err) {
    wk_profile *const profile = &dev->profile;
    if (!(dev->adapter.features & WICK_WEBGPU_TIMESTAMPS)) return WICK_OK; /* nothing is timed */
    profile->n_kernels = dev->n_choices;
    profile->kernels = wk_alloc_array(dev->heap, profile->n_kernels, sizeof *profile->kernels);
    profile->timed = wk_alloc_array(dev->heap, MOST_TIMED, sizeof *profile->timed);
    if (!profile->kernels || !profile->timed)
        return wk_fail_memory(err, MOST_TIMED * sizeof *profile->timed, "the profile");
    for (size_t i = 0; i < profile->n_kernels; i++)
        profile->kernels[i].name = dev->choices[i].kernel->base.name;
    return WICK_OK;
}

static wick_status timing_open(wk_backend_device *dev, wk_timing *timing, wick_error *err) {
    if (!timing->timed) /* else its buffer has failed before */
        timing->timed = wk_alloc_array(dev->heap, MOST_TIMED, sizeof *timing->timed);
    if (!timing->timed)
        return wk_fail_memory(err, MOST_TIMED * sizeof *timing->timed, "the profile");
    return wk_gpu_buffer_make(dev->gpu, WK_GPU_READBACK, STAMPS * sizeof(uint64_t), &timing->stamps,
                              err);
}

void wk_profile_release(wk_backend_device *dev) {
    wk_profile *const profile = &dev->profile;
    for (size_t i = 0; i < WK_PROFILE_TIMINGS; i++) {
        wk_timing *const timing = &profile->timings[i];
        if (timing->stamps) wk_gpu_buffer_release(dev->gpu, timing->stamps);
        wk_free(dev->heap, timing->timed, MOST_TIMED * sizeof *timing->timed);
    }
    wk_free(dev->heap, profile->kernels, profile->n_kernels * sizeof *profile->kernels);
    wk_free(dev->heap, profile->timed, MOST_TIMED * sizeof *profile->timed);
    *profile = (wk_profile){0};
}

/* NULL: it is not timed. */
static wick_kernel_stats *stats_of(const wk_backend_device *dev, const wk_webgpu_kernel *kernel) {
    const wk_choice *const choice =
        dev->profile.timed && kernel ? wk_choice_of(dev, &kernel->base) : NULL;
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

bool wk_profile_look(wk_backend_device *dev) {
    bool is_any_left = false;
    for (size_t i = 0; i < WK_PROFILE_TIMINGS; i++) {
        wk_timing *const timing = &dev->profile.timings[i];
        if (timing->n == 0) continue;
        const uint64_t *const stamps = wk_gpu_mapped(dev->gpu, timing->stamps);
        if (!stamps) {
            is_any_left = true;
            continue;
        }
        for (uint32_t k = 0; k < timing->n; k++)
            count(&timing->timed[k], 1e-9 * (double)(stamps[2 * k + 1] - stamps[2 * k]));
        wk_gpu_unmap(dev->gpu, timing->stamps);
        timing->n = 0;
    }
    return is_any_left;
}

/* NULL: all timings wait for the times of earlier submits; this submit is not timed. */
static wk_timing *free_timing(wk_profile *profile) {
    for (size_t i = 0; i < WK_PROFILE_TIMINGS; i++)
        if (profile->timings[i].n == 0) return &profile->timings[i];
    return NULL;
}

wick_status wk_profile_submitted(wk_backend_device *dev, wick_error *err) {
    wk_profile *const profile = &dev->profile;
    const uint32_t n = profile->n_timed;
    profile->n_timed = 0;
    wk_timing *const timing = n > 0 ? free_timing(profile) : NULL;
    if (!timing) return WICK_OK;
    if (!timing->stamps) WK_TRY(timing_open(dev, timing, err));
    assert(n <= MOST_TIMED && timing->n == 0);
    WK_TRY(wk_gpu_timestamps(dev->gpu, 2 * n, timing->stamps, err));
    dev->n_submitted++;
    wk_gpu_map_start(dev->gpu, timing->stamps, 2 * n * sizeof(uint64_t));
    wk_timed *const timed = timing->timed;
    timing->timed = profile->timed;
    timing->n = n;
    profile->timed = timed;
    for (;;) {
        WK_TRY(wk_gpu_poll(dev->gpu, &dev->n_done, err));
        if (!wk_profile_look(dev) || !wk_gpu_pause(dev->gpu)) return WICK_OK;
    }
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
