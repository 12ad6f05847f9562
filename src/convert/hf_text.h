/* convert/hf_text.h: the text part of a model that also sees pictures. */
#ifndef WK_CONVERT_HF_TEXT_H
#define WK_CONVERT_HF_TEXT_H

#include "core/arena.h"
#include "core/json.h"

/* Replaces *config by its text_config where it describes such a model. WICK_ERR_UNSUPPORTED names a
 * key beside it that is not known. */
wick_status wk_hf_take_text(wk_json **config, wk_arena *arena, wick_error *err);

#endif
