/* backend/webgpu/rehearse.c: which programs an op will need, before its buffers have memory: it is
 * encoded on stand-ins for them, and all that is left of it is that its pipelines compile. */
#include "backend/webgpu/table.h"

#include "backend/webgpu/memory.h"
#include "backend/webgpu/recorder.h"
#include "backend/webgpu/segment.h"
#include "backend/webgpu/webgpu_state.h"

#include <assert.h>

enum { MOST_OPS = 7 };

typedef struct stand_in {
    const wk_buffer *place;
    wk_buffer *buf;
} stand_in;

/* The stand-ins of ops in a row. */
typedef struct stand_ins {
    int n;
    stand_in of[MOST_OPS * WK_MAX_OPERANDS];
} stand_ins;

/* A program depends on which operands share a buffer: those of one place share one stand-in. */
static wick_status replace_places(wk_backend_device *dev, wk_op *op, stand_ins *made,
                                  wick_error *err) {
    for (int i = 0; i < op->n_dst + op->n_src; i++) {
        const wk_buffer *const place = op->view[i].buf;
        if (!place || place->place == 0) continue;
        int at = 0;
        while (at < made->n && made->of[at].place != place) at++;
        if (at == made->n) {
            made->of[at].place = place;
            WK_TRY(wk_webgpu_stand_in(dev, place->size, place->granule, &made->of[at].buf, err));
            made->n++;
        }
        op->view[i].buf = made->of[at].buf;
    }
    return WICK_OK;
}

wick_status wk_webgpu_rehearse(wk_backend_device *dev, const wk_kernel *kernel, const wk_op *op,
                               wick_error *err) {
    wk_op on_stand_ins[MOST_OPS];
    stand_ins made = {.n = 0};
    /* Norms are mostly multiplied. */
    wk_recorder nowhere = {.makes_integers = (dev->features & WICK_WEBGPU_DOT4) != 0};
    wick_status status = WICK_OK;
    const size_t n = wk_opcode_ops(kernel->code);
    assert(n <= MOST_OPS);
    for (size_t i = 0; i < n && status == WICK_OK; i++) {
        wk_op_copy(&on_stand_ins[i], &op[i]);
        status = replace_places(dev, &on_stand_ins[i], &made, err);
    }
    dev->is_rehearsing = true;
    if (status == WICK_OK)
        status = wk_segment_encode(dev, &nowhere, (const wk_webgpu_kernel *)(const void *)kernel,
                                   on_stand_ins, err);
    dev->is_rehearsing = false;
    wk_recorder_release(dev, &nowhere);
    for (int i = 0; i < made.n; i++) wk_webgpu_free(dev, made.of[i].buf);
    if (status == WICK_ERR_DEVICE_LOST) dev->is_lost = true;
    return status;
}
