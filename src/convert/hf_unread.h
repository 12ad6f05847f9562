/* convert/hf_unread.h: what config.json says beyond what was converted. */
#ifndef WK_CONVERT_HF_UNREAD_H
#define WK_CONVERT_HF_UNREAD_H

#include "convert/hf_family.h"

/* After all that reads config.json (hf_config.h notes in the tree what was read): a key that was
 * not, and may change what the model computes, is WICK_ERR_UNSUPPORTED with its name and value. */
wick_status wk_hf_refuse_unread(const wk_hf_family *family, const wk_json *config, wick_error *err);

#endif
