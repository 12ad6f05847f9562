/* backend/webgpu/submit.c: gives what is recorded to the device, and waits for it. */
#include "backend/webgpu/submit.h"

#include "backend/webgpu/cache.h"
#include "backend/webgpu/pace.h"
#include "backend/webgpu/profile.h"
#include "backend/webgpu/recorder.h"
#include "backend/webgpu/webgpu_state.h"

#include <assert.h>

static wick_status submit_recorded(wk_backend_device *dev, wick_error *err) {
    wk_recorder *const recorder = &dev->recorder;
    const bool may_fault = recorder->may_fault;
    (void)wk_cache_wait(dev, recorder->n_pipelines); /* else the submit says what is missing */
    wk_recorder_write(dev, recorder);
    const wick_status status =
        wk_gpu_submit(dev->gpu, recorder->commands, recorder->n_commands, err);
    for (size_t i = 0; i < recorder->n_commands; i++)
        if (recorder->commands[i].kind == WK_GPU_DISPATCH) dev->stats.n_dispatches++;
    wk_recorder_clear(dev, recorder);
    dev->recording++;
    dev->unsubmitted_bytes = 0;
    if (status == WICK_ERR_DEVICE_LOST) dev->is_lost = true;
    if (status != WICK_OK) {
        dev->profile.n_timed = 0;
        dev->pace.idle_since = 0;
        return status;
    }
    dev->n_submitted++;
    dev->stats.n_submits++;
    if (may_fault) dev->fault_given = dev->n_submitted;
    if (may_fault && dev->fault_unseen == 0) dev->fault_unseen = dev->n_submitted;
    wk_pace_submitted(dev);
    return wk_profile_submitted(dev, err);
}

wick_status wk_webgpu_flush(wk_backend_device *dev, wick_error *err) {
    return dev->recorder.n_commands > 0 ? submit_recorded(dev, err) : WICK_OK;
}

void wk_webgpu_flush_untold(wk_backend_device *dev) {
    wick_error failure = {.status = WICK_OK};
    (void)wk_webgpu_flush(dev, &failure);
    if (dev->untold.status == WICK_OK) dev->untold = failure;
}

wick_status wk_webgpu_look(wk_backend_device *dev, wick_error *err) {
    const wick_status status = wk_gpu_poll(dev->gpu, &dev->n_done, err);
    if (status == WICK_ERR_DEVICE_LOST) dev->is_lost = true;
    wk_pace_look(dev);
    return status;
}

wick_status wk_webgpu_drain(wk_backend_device *dev, uint64_t n_left, wick_error *err) {
    WK_TRY(wk_webgpu_look(dev, err));
    assert(dev->n_done <= dev->n_submitted);
    while (dev->n_submitted - dev->n_done > n_left && wk_gpu_pause(dev->gpu))
        WK_TRY(wk_webgpu_look(dev, err));
    return WICK_OK;
}

wick_status wk_webgpu_written(wk_backend_device *dev, uint64_t size, wick_error *err) {
    enum { MOST_UNSUBMITTED = 8 << 20 };
    dev->unsubmitted_bytes += size;
    if (dev->unsubmitted_bytes < MOST_UNSUBMITTED) return WICK_OK;
    if (!wk_cache_wait(dev, dev->recorder.n_pipelines)) return WICK_OK;
    WK_TRY(submit_recorded(dev, err));
    return wk_webgpu_drain(dev, 1, err);
}
