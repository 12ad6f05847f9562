/* backend/webgpu/profile.h: times of kernels on the device. */
#ifndef WK_BACKEND_WEBGPU_PROFILE_H
#define WK_BACKEND_WEBGPU_PROFILE_H

#include "backend/webgpu/kernels/webgpu_kernel.h"

/* A dispatch whose time is taken. */
typedef struct wk_timed {
    wick_kernel_stats *stats;
    bool ends_op; /* it is the last one of an op that costs this */
    wk_cost cost;
} wk_timed;

/* The dispatches of a submit whose times are on their way. */
typedef struct wk_timing {
    wk_gpu_buffer *stamps; /* two for each; NULL: not used yet */
    wk_timed *timed;
    uint32_t n; /* 0: free */
} wk_timing;

enum { WK_PROFILE_TIMINGS = 8 };

/* Times of kernels, see profile.c. */
typedef struct wk_profile {
    wick_kernel_stats *kernels; /* [n_kernels], in the order of the device's choices */
    size_t n_kernels;
    wk_timed *timed; /* the open recording's dispatches; NULL: off */
    uint32_t n_timed;
    wk_timing timings[WK_PROFILE_TIMINGS];
} wk_profile;

/* Does nothing on an adapter without timestamps. */
wick_status wk_profile_open(wk_backend_device *dev, wick_error *err);
void wk_profile_release(wk_backend_device *dev);
/* The number of timestamps for the next dispatch (wk_gpu_command.timed); 0: it is not timed. */
uint32_t wk_profile_dispatch(wk_backend_device *dev, const wk_webgpu_kernel *kernel);
/* To be called after the dispatches of an op. */
void wk_profile_op(wk_backend_device *dev, const wk_webgpu_kernel *kernel, const wk_cost *cost);
/* To be called after a submit: asks for its times. */
wick_status wk_profile_submitted(wk_backend_device *dev, wick_error *err);
/* Counts those that have come; false: all have. */
bool wk_profile_look(wk_backend_device *dev);
size_t wk_profile_get(const wk_backend_device *dev, wick_kernel_stats *out, size_t capacity);

#endif
