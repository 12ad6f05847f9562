/* llm/shortlist.c: see shortlist.h. */
#include "llm/shortlist.h"

#include <math.h>
#include <string.h>

bool wk_shortlist_fits(size_t n) { return n > WK_SHORTLIST; }

/* Values and ids lie in one tensor, so that they are one read-back. */
wick_tensor *wk_shortlist_make(wick_tensor *logits) {
    if (logits == NULL) return NULL;
    const wick_shape shape = WICK_SHAPE(1, WK_SHORTLIST_WORDS);
    wick_tensor *const list = wk_tensor_new(wick_tensor_device(logits), WICK_F32, &shape);
    if (list == NULL) return NULL;
    wk_view values = list->view, ids = list->view;
    values.extent[1] = ids.extent[1] = WK_SHORTLIST;
    ids.dtype = WICK_U32;
    ids.offset += WK_SHORTLIST * sizeof(uint32_t);
    wk_call call;
    wk_call_begin(&call, WK_OP_TOP_K, NULL);
    (void)wk_call_add(&call, list, &values);
    (void)wk_call_add(&call, list, &ids);
    (void)wk_call_add(&call, logits, NULL);
    return wk_call_queue(wick_tensor_device(logits), &call) == WICK_OK ? list : NULL;
}

bool wk_shortlist_spread(const float *list, float *row, size_t n) {
    if (!(list[0] < INFINITY)) return false; /* NaN comes first */
    for (size_t i = 0; i < n; i++) row[i] = -INFINITY;
    for (size_t i = 0; i < WK_SHORTLIST; i++) {
        uint32_t id;
        memcpy(&id, &list[WK_SHORTLIST + i], sizeof id);
        if (id >= n) return false; /* what a device says is not trusted */
        row[id] = list[i];
    }
    return true;
}

/* n words of x from `at` on. */
static wk_view words_of(const wick_tensor *x, wick_dtype dtype, uint32_t at, int64_t n) {
    return (wk_view){.buf = x->view.buf,
                     .offset = x->view.offset + at * sizeof(uint32_t),
                     .dtype = dtype,
                     .rank = 1,
                     .extent = {n},
                     .stride = {1}};
}

static wick_status copy(wick_tensor *to, const wk_view *to_view, wick_tensor *from,
                        const wk_view *from_view) {
    wk_call call;
    wk_call_begin(&call, WK_OP_COPY, NULL);
    (void)wk_call_add(&call, to, to_view);
    (void)wk_call_add(&call, from, from_view);
    return wk_call_queue(to->device, &call);
}

wick_status wk_shortlist_keep(wick_tensor *list, wick_tensor *kept, uint32_t at,
                              const wk_draw *draw) {
    const wk_view from = words_of(list, WICK_F32, 0, WK_SHORTLIST_WORDS);
    const wk_view to = words_of(kept, WICK_F32, at * WK_SHORTLIST_KEPT, WK_SHORTLIST_WORDS);
    WK_TRY(copy(kept, &to, list, &from));
    if (!draw) return WICK_OK;
    const wk_view id = words_of(kept, WICK_U32, at * WK_SHORTLIST_KEPT + WK_SHORTLIST_WORDS, 1);
    const wk_view values = words_of(list, WICK_F32, 0, WK_SHORTLIST);
    const wk_view ids = words_of(list, WICK_U32, WK_SHORTLIST, WK_SHORTLIST);
    wk_call call;
    wk_call_begin(&call, WK_OP_DRAW, NULL);
    (void)wk_call_add(&call, kept, &id);
    (void)wk_call_add(&call, list, &values);
    (void)wk_call_add(&call, list, &ids);
    call.op.p.draw = *draw;
    return wk_call_queue(list->device, &call);
}

wick_status wk_shortlist_give(wick_tensor *kept, uint32_t at, wick_tensor *words, uint32_t word) {
    const wk_view from = words_of(kept, WICK_U32, at * WK_SHORTLIST_KEPT + WK_SHORTLIST_WORDS, 1);
    const wk_view to = words_of(words, WICK_U32, word, 1);
    return copy(words, &to, kept, &from);
}
