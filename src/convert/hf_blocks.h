/* convert/hf_blocks.h: which layers are what, in families whose layers differ. */
#ifndef WK_CONVERT_HF_BLOCKS_H
#define WK_CONVERT_HF_BLOCKS_H

#include "convert/hf_family.h"
#include "convert/value_list.h"

/* Of Nemotron-H: M for Mamba 2, * for attention, - for an MLP, E for experts. text NULL and
 * WICK_OK: config.json does not say it. */
wick_status wk_hf_read_blocks(wk_json *config, wk_arena *arena, wk_str *out, wick_error *err);

/* Heads of keys, and channels of MLPs where they differ, as lists of all layers. */
wick_status wk_hf_add_blocks(const wk_hf_family *family, wk_json *config, wk_value_list *values,
                             wick_error *err);

#endif
