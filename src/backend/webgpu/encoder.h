/* backend/webgpu/encoder.h: what a kernel encodes with. */
#ifndef WK_BACKEND_WEBGPU_ENCODER_H
#define WK_BACKEND_WEBGPU_ENCODER_H

#include "backend/webgpu/cache.h"

enum { WK_MAX_TEMPS = WK_MAX_BINDINGS };

struct wk_encoder {
    wk_backend_device *dev;
    wk_recorder *recorder;
    const wk_webgpu_kernel *kernel;
    wk_opcode code; /* of the op that is encoded */
    uint32_t tuning;
    bool may_fault; /* it may set its fault slot */
    wk_view fault;  /* that slot */
    /* The op's table is rows [first_row, first_row + its extent) of this many; 0: of its own. */
    uint32_t first_row, n_rows;
    int n_temps;
    wk_buffer *temps[WK_MAX_TEMPS];
    wick_error *err;
};

/* size bytes in a block that no other buffer has, for as long as the op's commands need them. */
wick_status wk_encoder_block(wk_encoder *e, uint64_t size, wk_buffer **out);
/* A command of a pipeline on the windows of d's slots, with its parameters. */
wick_status wk_dispatch_record(wk_encoder *e, const wk_dispatch *d, wk_gpu_pipeline *pipeline,
                               const wk_gpu_layout *layout, const uint32_t workgroups[3]);

/* Behind an op that was encoded with this status: its temporaries may serve for others, or are the
 * plan's whose recorder it has. */
wick_status wk_encoder_end(wk_encoder *e, wick_status status);

#endif
