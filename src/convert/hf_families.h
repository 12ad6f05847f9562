/* convert/hf_families.h: the table of families, for hf_family.c. */
#ifndef WK_CONVERT_HF_FAMILIES_H
#define WK_CONVERT_HF_FAMILIES_H

#include "convert/hf_family.h"

extern const wk_hf_family wk_hf_families[]; /* [wk_hf_n_families] */
extern const size_t wk_hf_n_families;

#endif
