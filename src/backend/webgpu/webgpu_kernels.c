/* backend/webgpu/webgpu_kernels.c: the device's kernels one by one. */
#include "backend/webgpu/table.h"

#include "backend/webgpu/choice.h"
#include "backend/webgpu/segment.h"
#include "backend/webgpu/submit.h"
#include "backend/webgpu/webgpu_state.h"
#include "sys/clock.h"

/* Whether the device has what the kernel needs; there is nothing to compare the user's with, and
 * those of ops in a row are compared with the kernels of these. */
static bool can_run(const wk_backend_device *dev, const wk_kernel *kernel) {
    return kernel->code < WK_OP_COUNT_ && (kernel->needs & ~dev->adapter.features) == 0;
}

static const wk_kernel *kernel_at(const wk_backend_device *dev, size_t number) {
    for (size_t i = 0; i < dev->n_choices; i++) {
        const wk_kernel *const kernel = &dev->choices[i].kernel->base;
        if (can_run(dev, kernel) && number-- == 0) return kernel;
    }
    return NULL;
}

static void disable(wk_backend_device *dev, const wk_kernel *kernel) {
    wk_choice_of(dev, kernel)->is_disabled = true;
}

static bool is_disabled(const wk_backend_device *dev, const wk_kernel *kernel) {
    return wk_choice_of(dev, kernel)->is_disabled;
}

static void force_tuning(wk_backend_device *dev, const uint32_t *tuning) {
    dev->is_tuning_given = tuning != NULL;
    dev->given_tuning = tuning ? *tuning : 0;
}

static void keep_tuning(wk_backend_device *dev, const wk_kernel *kernel, wk_op_class class,
                        uint32_t tuning) {
    wk_choice_of(dev, kernel)->tuning[class.rows][class.layout] = (uint8_t)tuning;
}

static bool has_timestamps(const wk_backend_device *dev) { return dev->profile.timed != NULL; }

static double timed_seconds(const wk_backend_device *dev) {
    double sum = 0;
    for (size_t i = 0; i < dev->profile.n_kernels; i++) sum += dev->profile.kernels[i].seconds;
    return sum;
}

static wick_status time_runs(wk_backend_device *dev, const wk_kernel *kernel, const wk_op *op,
                             int n, double *seconds, wick_error *err) {
    const double timed_before = timed_seconds(dev);
    const uint64_t begin = wk_clock_ns();
    for (int i = 0; i < n; i++) WK_TRY(wk_webgpu_encode(dev, kernel, op, err));
    WK_TRY(wk_webgpu_flush(dev, err));
    WK_TRY(wk_webgpu_drain(dev, 0, err));
    *seconds = has_timestamps(dev) ? timed_seconds(dev) - timed_before
                                   : 1e-9 * (double)(wk_clock_ns() - begin);
    return WICK_OK;
}

const wk_backend_kernels wk_webgpu_kernels = {
    .at = kernel_at,
    .disable = disable,
    .is_disabled = is_disabled,
    .force_tuning = force_tuning,
    .keep_tuning = keep_tuning,
    .time = time_runs,
    .has_timestamps = has_timestamps,
};
