/* model/weight_table.h: which weights a model has, for weights.c. */
#ifndef WK_MODEL_WEIGHT_TABLE_H
#define WK_MODEL_WEIGHT_TABLE_H

#include "model/model_struct.h"

/* A weight's or bias's place in the model; id 0: there is none for this name. */
typedef struct wk_weight_place {
    bool is_in_layer, is_bias;
    uint32_t layer; /* where is_in_layer */
    int id;
} wk_weight_place;

wk_weight_place wk_weight_find(const wk_model *model, wick_string tensor_name);
/* Whether the layer would have it, did it not see another one's keys and values. */
bool wk_weight_is_superseded(const wk_model *model, wick_string tensor_name);
wick_shape wk_weight_shape(const wk_model *model, const wk_weight_place *at);
/* On any stage: WK_USE_*. */
uint32_t wk_weight_uses(const wk_weight_place *at);
/* WICK_ERR_FORMAT: the file lacks one that is needed. */
wick_status wk_weight_check_names(const wk_model *model, wick_error *err);

#endif
