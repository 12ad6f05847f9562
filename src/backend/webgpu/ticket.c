/* backend/webgpu/ticket.c: what has run: a ticket is a count of submits. */
#include "backend/webgpu/ticket.h"

#include "backend/webgpu/cache.h"
#include "backend/webgpu/profile.h"
#include "backend/webgpu/read.h"
#include "backend/webgpu/submit.h"
#include "backend/webgpu/webgpu_state.h"

/* What is recorded waits for a poll or a read, which goes along with it in one submit. */
wick_status wk_webgpu_submit(wk_backend_device *dev, wk_ticket *ticket, wick_error *err) {
    (void)err;
    *ticket = dev->n_submitted + (dev->recorder.n_commands > 0 ? 1 : 0);
    return WICK_OK;
}

static wick_status tell(wk_backend_device *dev, wick_error *err) {
    const wick_error failure = dev->untold;
    if (failure.status == WICK_OK) return WICK_OK;
    dev->untold = (wick_error){.status = WICK_OK};
    return wk_fail(err, failure.status, "%s", failure.message);
}

wick_status wk_webgpu_poll(wk_backend_device *dev, wk_ticket ticket, wick_error *err) {
    /* Never blocks: what is recorded waits for its pipelines. */
    const bool is_compiling = wk_cache_poll(dev) == WICK_PENDING;
    if (ticket > dev->n_submitted && is_compiling &&
        dev->cache.n_finished < dev->recorder.n_pipelines)
        return WICK_PENDING;
    if (ticket > dev->n_submitted) WK_TRY(wk_webgpu_flush(dev, err));
    WK_TRY(tell(dev, err));
    if (ticket > dev->n_submitted) ticket = dev->n_submitted; /* its submit failed; reported */
    WK_TRY(wk_webgpu_look(dev, err));
    WK_TRY(wk_webgpu_read_poll(dev, ticket, err));
    const bool is_timed = !wk_profile_look(dev);
    return is_timed && dev->n_done >= ticket ? WICK_OK : WICK_PENDING;
}

wick_status wk_webgpu_wait(wk_backend_device *dev, wk_ticket ticket, wick_error *err) {
    wick_status status;
    while ((status = wk_webgpu_poll(dev, ticket, err)) == WICK_PENDING)
        (void)wk_gpu_pause(dev->gpu);
    return status;
}
