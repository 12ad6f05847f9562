/* model/hparams.h: hyper-parameters that all families share, and the rotary frequencies. */
#ifndef WK_MODEL_HPARAMS_H
#define WK_MODEL_HPARAMS_H

#include "model/metadata.h"
#include "model/model.h"

/* Far above every model there is; keeps products of two extents within 64 bits. */
enum { WK_MAX_CHANNELS = 1 << 22, WK_MAX_VOCABULARY = 1 << 24 };

/* Fills everything but the ropes. meta->architecture must be hparams->architecture. */
wick_status wk_hparams_read(const wk_metadata *meta, wk_hparams *hparams);

/* Adds the rotary embedding of the rope.* keys: rope.c. */
wick_status wk_hparams_add_rope(const wk_metadata *meta, wk_hparams *hparams);
/* Divides the frequencies of every rope by divisors [n], which must all be positive. */
wick_status wk_hparams_divide_ropes(wk_arena *arena, wk_hparams *hparams, const float *divisors,
                                    uint32_t n, wick_error *err);

#endif
