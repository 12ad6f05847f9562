/* backend/webgpu/plan.c: replays: the commands of a plan's ops are made once, with bind groups,
 * parameters and temporary memory of their own. */
#include "backend/webgpu/table.h"

#include "backend/webgpu/kernels/linear_wgsl.h"
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

/* --- Preparation --- */

static const wk_webgpu_kernel *as_webgpu(const wk_kernel *kernel) {
    return (const wk_webgpu_kernel *)(const void *)kernel;
}

static bool writes_over(const wk_op *op, const wk_view *x) {
    for (int d = 0; d < op->n_dst; d++)
        if (wk_view_overlaps(wk_dst(op, d), x)) return true;
    return false;
}

/* Whether a product of the last norm of what begins with ops[i] follows, by a kernel that takes
 * integers. */
static bool is_multiplied(const wk_op *ops, const wk_kernel *const *kernels, size_t n, size_t i) {
    enum { WINDOW = 24 };
    const size_t end = i + wk_opcode_ops(kernels[i]->code);
    const wk_opcode code = kernels[i]->code;
    const bool is_route = code >= WK_OPS_ROUTE && code <= WK_OPS_ROUTE_SHARES;
    const wk_view *const y = wk_dst(&ops[is_route ? i + 1 : end - 1], 0);
    for (size_t k = end; k < n && k - end < WINDOW; k++) {
        if (kernels[k] && as_webgpu(kernels[k])->takes_integers) {
            const wk_view x = wk_linear_rows(&ops[k]);
            if (wk_view_same(&x, y)) return true;
        }
        if (writes_over(&ops[k], y)) return false;
    }
    return false;
}

wick_status wk_webgpu_plan_prepare(wk_backend_device *dev, const wk_op *ops,
                                   const wk_kernel *const *kernels, size_t n, void **out,
                                   wick_error *err) {
    wk_webgpu_plan *const plan = wk_alloc_zeroed(dev->heap, sizeof *plan);
    if (!plan) return wk_fail_memory(err, sizeof *plan, "a plan");
    plan->n_ops = n;
    wk_recorder *const recorder = &plan->recorder;
    wick_status status = wk_recorder_make(dev, recorder, GROUP_ENTRIES, err);
    for (size_t i = 0; i < n && status == WICK_OK; i += wk_opcode_ops(kernels[i]->code)) {
        const wk_webgpu_kernel *const kernel = as_webgpu(kernels[i]);
        wk_recorder_spoil(recorder, &ops[i], wk_opcode_ops(kernel->base.code));
        recorder->makes_integers = kernel->makes_integers && is_multiplied(ops, kernels, n, i);
        status = wk_segment_encode(dev, recorder, kernel, &ops[i], err);
    }
    if (status != WICK_OK) {
        wk_webgpu_plan_free(dev, plan);
        return status;
    }
    wk_recorder_write(dev, recorder);
    *out = plan;
    return WICK_OK;
}

/* --- Replay --- */

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
