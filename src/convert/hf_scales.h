/* convert/hf_scales.h: multipliers that become part of the weights: Falcon-H1's. */
#ifndef WK_CONVERT_HF_SCALES_H
#define WK_CONVERT_HF_SCALES_H

#include "convert/hf_tensors.h"

/* WICK_ERR_UNSUPPORTED: what cannot be part of them, like biases. */
wick_status wk_hf_add_scales(wk_json *config, wk_hf_plan *plan, wk_arena *arena, wick_error *err);

#endif
