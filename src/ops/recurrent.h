/* ops/recurrent.h: ops that carry a state from token to token. Not public: they read the batch
 * descriptor (backend/op.h, wk_batch_layout). Formulas and shapes: backend/op.def. On failure
 * the device holds the sentence; NULL in, NULL out as in wick/ops.h. */
#ifndef WK_OPS_RECURRENT_H
#define WK_OPS_RECURRENT_H

#include "tensor/tensor.h"

/* x [rows, c]: [rows, c], a new tensor; bias may be NULL. params->conv is read. */
wick_tensor *wk_causal_conv(wick_tensor *x, wick_tensor *weight, wick_tensor *bias,
                            wick_tensor *state, wick_tensor *descriptor, const wk_params *params);

/* Result [rows, h, p], a new tensor. params->scan is read. */
typedef struct wk_scan_inputs {
    wick_tensor *x, *step, *gate, *bc;
} wk_scan_inputs;
wick_tensor *wk_scan(const wk_scan_inputs *inputs, wick_tensor *state, wick_tensor *descriptor,
                     const wk_params *params);

#endif
