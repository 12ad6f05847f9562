/* convert/hf_xielu.h: xIELU's numbers, which a checkpoint has as tensors and GGUF as metadata. */
#ifndef WK_CONVERT_HF_XIELU_H
#define WK_CONVERT_HF_XIELU_H

#include "convert/checkpoint.h"
#include "convert/value_list.h"

/* Of each layer. WICK_ERR_FORMAT: one of them is missing, or not one number. */
wick_status wk_hf_add_xielu(const wk_checkpoint *checkpoint, uint32_t n_layers,
                            wk_value_list *values, wick_error *err);

#endif
