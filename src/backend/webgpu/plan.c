/* backend/webgpu/plan.c: replays: the commands of a plan's ops are made once, with bind groups,
 * parameters and temporary memory of their own. */
#include "backend/webgpu/table.h"

#include "backend/webgpu/pace.h"
#include "backend/webgpu/recorder.h"
#include "backend/webgpu/segment.h"
#include "backend/webgpu/submit.h"
#include "backend/webgpu/webgpu_state.h"

#include <assert.h>

enum { GROUP_ENTRIES = 256 }; /* ops in pieces find theirs again */

typedef struct wk_webgpu_plan {
    wk_recorder recorder;
    size_t n_ops;
} wk_webgpu_plan;

void wk_webgpu_plan_free(wk_backend_device *dev, void *plan) {
    wk_webgpu_plan *const p = plan;
    if (!p) return;
    /* A run of it may still be recorded. */
    if (dev->replayed_in == dev->recording) wk_webgpu_flush_untold(dev);
    wk_recorder_release(dev, &p->recorder);
    wk_free(dev->heap, p, sizeof *p);
}

wick_status wk_webgpu_plan_prepare(wk_backend_device *dev, const wk_op *ops,
                                   const wk_kernel *const *kernels, size_t n, void **out,
                                   wick_error *err) {
    wk_webgpu_plan *const plan = wk_alloc_zeroed(dev->heap, sizeof *plan);
    if (!plan) return wk_fail_memory(err, sizeof *plan, 0, "a plan");
    plan->n_ops = n;
    wick_status status = wk_recorder_make(dev, &plan->recorder, GROUP_ENTRIES, err);
    for (size_t i = 0; i < n && status == WICK_OK; i += wk_opcode_ops(kernels[i]->code))
        status = wk_segment_encode(
            dev, &plan->recorder, (const wk_webgpu_kernel *)(const void *)kernels[i], &ops[i], err);
    if (status != WICK_OK) {
        wk_webgpu_plan_free(dev, plan);
        return status;
    }
    wk_recorder_write(dev, &plan->recorder);
    *out = plan;
    return WICK_OK;
}

/* The commands of one op into the open recording. */
static wick_status replay_op(wk_backend_device *dev, const wk_gpu_command *commands, size_t n,
                             wick_error *err) {
    for (size_t i = 0; i < n; i++) {
        wk_gpu_command *const command = wk_recorder_next(dev, &dev->recorder, err);
        if (!command) return WICK_ERR_OUT_OF_MEMORY;
        *command = commands[i];
    }
    return WICK_OK;
}

wick_status wk_webgpu_plan_replay(wk_backend_device *dev, void *plan, wick_error *err) {
    const wk_webgpu_plan *const p = plan;
    const wk_recorder *const from = &p->recorder;
    size_t done = 0;
    for (size_t i = 0; i < from->n_marks; i++) {
        const wk_mark *const mark = &from->marks[i];
        assert(done <= mark->n_commands && mark->n_commands <= from->n_commands);
        if (wk_pace_is_full(dev, mark->estimate)) WK_TRY(wk_webgpu_flush(dev, err));
        dev->replayed_in = dev->recording;
        if (from->may_fault) dev->recorder.may_fault = true;
        if (dev->recorder.n_pipelines < from->n_pipelines)
            dev->recorder.n_pipelines = from->n_pipelines;
        WK_TRY(replay_op(dev, from->commands + done, mark->n_commands - done, err));
        done = mark->n_commands;
        wk_pace_add(dev, mark->estimate);
    }
    dev->stats.n_ops += p->n_ops;
    return WICK_OK;
}
