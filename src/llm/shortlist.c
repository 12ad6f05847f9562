/* llm/shortlist.c: see shortlist.h. */
#include "llm/shortlist.h"

#include "tensor/tensor.h"

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

static uint32_t id_at(const float *list, size_t i) {
    uint32_t id;
    memcpy(&id, &list[WK_SHORTLIST + i], sizeof id);
    return id;
}

bool wk_shortlist_spread(const float *list, float *row, size_t n) {
    if (!(list[0] < INFINITY)) return false; /* NaN comes first */
    for (size_t i = 0; i < n; i++) row[i] = -INFINITY;
    for (size_t i = 0; i < WK_SHORTLIST; i++) {
        const uint32_t id = id_at(list, i);
        if (id >= n) return false; /* what a device says is not trusted */
        row[id] = list[i];
    }
    return true;
}

uint32_t wk_shortlist_best(const float *list) { return id_at(list, 0); }

static wick_status copy(wick_tensor *to, const wk_view *to_view, wick_tensor *from,
                        const wk_view *from_view) {
    wk_call call;
    wk_call_begin(&call, WK_OP_COPY, NULL);
    (void)wk_call_add(&call, to, to_view);
    (void)wk_call_add(&call, from, from_view);
    return wk_call_queue(wick_tensor_device(to), &call);
}

wick_status wk_shortlist_give_best(wick_tensor *list, wick_tensor *words, uint32_t at) {
    wk_view to = words->view;
    to.extent[0] = 1;
    to.offset += at * sizeof(uint32_t);
    wk_view from = to;
    from.buf = list->view.buf;
    from.offset = list->view.offset + WK_SHORTLIST * sizeof(uint32_t);
    return copy(words, &to, list, &from);
}

wick_status wk_shortlist_keep(wick_tensor *list, wick_tensor *lists, uint32_t row) {
    wk_view to = lists->view;
    to.extent[0] = 1;
    to.offset += row * WK_SHORTLIST_WORDS * sizeof(float);
    return copy(lists, &to, list, NULL);
}
