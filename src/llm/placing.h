/* llm/placing.h: on which device a model's layers go: as many as fit on its own, those before them
 * on a CPU beside it. */
#ifndef WK_LLM_PLACING_H
#define WK_LLM_PLACING_H

#include "llm/llm.h"

typedef struct wk_placing {
    int32_t wanted; /* wick_model_desc.device_layers */
    uint32_t n_choices;
    uint32_t device_layers;       /* of the latest one */
    wick_device_opening *opening; /* of the host; NULL: not under way */
} wk_placing;

/* desc may be NULL. */
wk_placing wk_placing_of(const wick_model_desc *desc);
void wk_placing_release(wk_placing *placing);

/* From the header, what the device says of its memory, and the session that model->warm describes.
 */
void wk_placing_choose(wk_placing *placing, wick_model *model);
/* Whether the device may have fewer layers than it was given, where its memory runs out. */
bool wk_placing_is_free(const wk_placing *placing, const wick_model *model);
/* Fewer: as many as fit in budget bytes. The model has no weights. */
void wk_placing_choose_again(wk_placing *placing, wick_model *model, uint64_t budget);

/* Places the model as was chosen; opens model->host where it gets layers. WICK_PENDING: call again.
 */
wick_status wk_placing_poll(wk_placing *placing, wick_model *model, wick_error *err);

#endif
