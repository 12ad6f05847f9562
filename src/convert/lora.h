/* convert/lora.h: adapters from paths. */
#ifndef WK_CONVERT_LORA_H
#define WK_CONVERT_LORA_H

#include "llm/adapter.h"

/* As wick_lora_open with its factors multiplied by scale, on no device: it is not the model's, and
 * ends with wk_lora_free. Of the model, heap, gguf, model and info.architecture are used. */
wick_status wk_lora_read(wick_model *model, const char *path, float scale, wick_lora **out,
                         wick_error *err);

#endif
