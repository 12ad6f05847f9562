/* convert/hf_config.h: the numbers of config.json as GGUF metadata. */
#ifndef WK_CONVERT_HF_CONFIG_H
#define WK_CONVERT_HF_CONFIG_H

#include "convert/hf_family.h"
#include "convert/value_list.h"

/* Adds the hyper-parameters of config.json to values, whose prefix is the architecture. Numbers
 * that are missing are WICK_ERR_FORMAT (hf_defaults.h has added those that may be), settings that
 * GGUF or Wick does not know WICK_ERR_UNSUPPORTED. */
wick_status wk_hf_describe(const wk_hf_family *family, wk_json *config, wk_value_list *values,
                           wick_error *err);

#endif
