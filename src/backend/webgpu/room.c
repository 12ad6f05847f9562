/* backend/webgpu/room.c: what makes room where memory is short. */
#include "backend/webgpu/room.h"

#include "backend/webgpu/pool.h"
#include "backend/webgpu/recorder.h"
#include "backend/webgpu/submit.h"
#include "backend/webgpu/webgpu_state.h"

/* Commands and bind groups hold on to blocks: the recorded ones are submitted, cached groups
 * forgotten, and what has been submitted runs before the implementation really has the memory. */
wick_status wk_webgpu_make_room(wk_backend_device *dev, wick_error *err) {
    WK_TRY(wk_webgpu_flush(dev, err));
    wk_recorder_forget(dev, &dev->recorder);
    (void)wk_pool_trim(dev);
    return wk_webgpu_drain(dev, 0, err);
}

wick_status wk_webgpu_trim(wk_backend_device *dev, uint64_t *freed, wick_error *err) {
    const uint64_t before = dev->pool.bytes;
    const wick_status status = wk_webgpu_make_room(dev, err);
    *freed = before - dev->pool.bytes;
    return status;
}
