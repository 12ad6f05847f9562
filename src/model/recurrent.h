/* model/recurrent.h: what the mixers share that carry a state from token to token. Tensors are
 * temporaries; NULL in, NULL out. */
#ifndef WK_MODEL_RECURRENT_H
#define WK_MODEL_RECURRENT_H

#include "model/model_struct.h"

/* Causal convolution of a layer: x [rows, n_channels], weight [n_channels, n_taps], bias or NULL.
 */
wick_tensor *wk_convolve(const wk_pass *pass, uint32_t layer, wick_tensor *x, wick_tensor *weight,
                         wick_tensor *bias);

/* What the scan of a layer takes; x and the result [rows, n_heads, head_dim], bc [rows, 2,
 * n_groups, n_numbers]; step and gate as in backend/op.def, or with one number for a head's
 * channels, and for its numbers. */
typedef struct wk_scan_rows {
    wick_tensor *x, *step, *gate, *bc;
} wk_scan_rows;
wick_tensor *wk_scan_layer(const wk_pass *pass, uint32_t layer, const wk_scan_rows *rows,
                           wk_scan_fn fn, float scale);

/* Steps [rows, n_heads] of the projected x: log(1 + e^(x + bias)). */
wick_tensor *wk_head_steps(const wk_layer *layer, wick_tensor *x);

#endif
