/* backend/webgpu/rehearse.c: which programs an op will need, before its buffers have memory: it is
 * encoded on stand-ins for them, and all that is left of it is that its pipelines compile. */
#include "backend/webgpu/table.h"

#include "backend/webgpu/memory.h"
#include "backend/webgpu/recorder.h"
#include "backend/webgpu/segment.h"
#include "backend/webgpu/webgpu_state.h"

/* A program depends on which operands share a buffer: those of one place share one stand-in. */
static wick_status replace_places(wk_backend_device *dev, wk_op *op, wk_buffer **stand_ins,
                                  wick_error *err) {
    const wk_op given = *op;
    for (int i = 0; i < op->n_dst + op->n_src; i++) {
        const wk_buffer *const place = given.view[i].buf;
        if (!place || place->place == 0) continue;
        int first = 0;
        while (given.view[first].buf != place) first++;
        if (first == i)
            WK_TRY(wk_webgpu_stand_in(dev, place->size, place->granule, &stand_ins[i], err));
        op->view[i].buf = stand_ins[first];
    }
    return WICK_OK;
}

wick_status wk_webgpu_rehearse(wk_backend_device *dev, const wk_kernel *kernel, const wk_op *op,
                               wick_error *err) {
    wk_op on_stand_ins = *op;
    wk_buffer *stand_ins[WK_MAX_OPERANDS] = {0};
    wk_recorder nowhere = {0};
    wick_status status = replace_places(dev, &on_stand_ins, stand_ins, err);
    dev->is_rehearsing = true;
    if (status == WICK_OK)
        status = wk_segment_encode(dev, &nowhere, (const wk_webgpu_kernel *)(const void *)kernel,
                                   &on_stand_ins, err);
    dev->is_rehearsing = false;
    wk_recorder_release(dev, &nowhere);
    for (int i = 0; i < WK_MAX_OPERANDS; i++)
        if (stand_ins[i]) wk_webgpu_free(dev, stand_ins[i]);
    if (status == WICK_ERR_DEVICE_LOST) dev->is_lost = true;
    return status;
}
