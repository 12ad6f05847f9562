/* backend/webgpu/submit.h: gives what is recorded to the device, and waits for it. */
#ifndef WK_BACKEND_WEBGPU_SUBMIT_H
#define WK_BACKEND_WEBGPU_SUBMIT_H

#include "backend/backend.h"

/* Submits what is recorded, if anything is. */
wick_status wk_webgpu_flush(wk_backend_device *dev, wick_error *err);
/* The same for callers that cannot fail: the next poll reports the error. */
void wk_webgpu_flush_untold(wk_backend_device *dev);
/* Bytes were handed to the implementation, which holds them until it has submitted them: waits
 * where they are too many. */
wick_status wk_webgpu_written(wk_backend_device *dev, uint64_t size, wick_error *err);
/* Looks how many submits have run. */
wick_status wk_webgpu_look(wk_backend_device *dev, wick_error *err);
/* Until no more than n submits are left to run, where that can be waited for (wk_gpu_pause). */
wick_status wk_webgpu_drain(wk_backend_device *dev, uint64_t n_left, wick_error *err);

#endif
