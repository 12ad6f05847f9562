/* convert/peft.h: adapters as PEFT has them (Hugging Face): adapter_config.json and
 * adapter_model.safetensors in a folder. */
#ifndef WK_CONVERT_PEFT_H
#define WK_CONVERT_PEFT_H

#include "llm/adapter.h"

typedef struct wk_peft wk_peft;

/* Reads the settings: one that is not known, and may change what is computed, is
 * WICK_ERR_UNSUPPORTED by its name. The model is the one that the adapter is for. */
wick_status wk_peft_open(const wick_model *model, const char *folder, wk_peft **out,
                         wick_error *err);
void wk_peft_close(wk_peft *peft);
wk_adapter_file wk_peft_file(wk_peft *peft);

#endif
