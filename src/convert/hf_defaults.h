/* convert/hf_defaults.h: what keys mean that config.json does not have. */
#ifndef WK_CONVERT_HF_DEFAULTS_H
#define WK_CONVERT_HF_DEFAULTS_H

#include "convert/hf_family.h"
#include "core/arena.h"
#include "core/status.h"

/* Adds to config, which must be an object, the values that Hugging Face's class of this model takes
 * for absent keys, in the arena and as if they had been read. A key that is null is not absent. */
wick_status wk_hf_add_defaults(const wk_hf_family *family, wk_json *config, wk_arena *arena,
                               wick_error *err);

#endif
