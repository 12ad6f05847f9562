/* backend/webgpu/kernels/strided.c: see strided.h. */
#include "backend/webgpu/kernels/strided.h"

#include "core/dtype.h"

#include <assert.h>
#include <string.h>

enum { LANES = 4 };

static const uint32_t threads_of_tuning[WK_STRIDED_TUNINGS] = {64, 128, 256};

/* Of the operands, in what they are bound as: elements, words of them or four of them. */
typedef struct walk {
    int rank;
    uint32_t extent[WICK_MAX_RANK], stride[WICK_MAX_RANK][WK_STRIDED_WIDE];
} walk;

wk_view wk_view_bits(const wk_view *view) {
    wk_view bits = *view;
    switch (wk_dtype_get(view->dtype)->block_bytes) {
    case 1: bits.dtype = WICK_U8; break;
    case 2: bits.dtype = WICK_I16; break;
    case 4: bits.dtype = WICK_U32; break;
    default: break; /* words */
    }
    return bits;
}

/* Dimensions of one element go, and those that all operands walk as one become one. */
static walk collapse(const wk_strided *s) {
    walk w = {0};
    const wk_view *const y = s->views[0];
    for (int d = 0; d < y->rank; d++) {
        const int64_t extent = y->extent[d];
        if (extent == 1) continue;
        uint32_t stride[WK_STRIDED_WIDE] = {0};
        bool joins = w.rank > 0;
        for (int i = 0; i < s->n; i++) {
            stride[i] =
                (uint32_t)s->views[i]->stride[d] * (wk_is_wide(s->views[i]->dtype) ? 2U : 1U);
            joins = joins && w.stride[w.rank - 1][i] == stride[i] * (uint32_t)extent;
        }
        const int at = joins ? w.rank - 1 : w.rank++;
        w.extent[at] = (joins ? w.extent[at] : 1) * (uint32_t)extent;
        memcpy(w.stride[at], stride, sizeof stride);
    }
    return w;
}

static bool is_written(const wk_strided *s, int i) {
    return i == 0 || i < s->n_dst || i == s->fault;
}

/* Whether operand i may be read and written four elements at a time, or is one for all four. */
static bool has_lanes(const wk_strided *s, const walk *w, int i) {
    const wk_view *const view = s->views[i];
    const uint64_t bytes = (uint64_t)wk_dtype_get(view->dtype)->block_bytes;
    if (wk_is_wide(view->dtype)) return false;
    const uint32_t last = w->stride[w->rank - 1][i];
    if (last == 0) return !is_written(s, i);
    if (last != 1 || view->offset % (LANES * bytes) != 0) return false;
    for (int d = 0; d + 1 < w->rank; d++)
        if (w->stride[d][i] % LANES != 0) return false;
    return true;
}

/* Of rows that lie apart the extent is whole lanes; a single row may have a rest. */
static bool all_have_lanes(const wk_strided *s, const walk *w) {
    if (w->rank == 0 || s->fault > 0) return false;
    const uint32_t extent = w->extent[w->rank - 1];
    if (extent < LANES || (w->rank > 1 && extent % LANES != 0)) return false;
    for (int i = 0; i < s->n; i++)
        if (!has_lanes(s, w, i)) return false;
    return true;
}

/* From elements to lanes, the rest of a row left out. */
static void divide(const wk_strided *s, walk *w) {
    const int last = w->rank - 1;
    w->extent[last] /= LANES;
    for (int i = 0; i < s->n; i++) {
        if (w->stride[last][i] == 0) continue;
        for (int d = 0; d < last; d++) w->stride[d][i] /= LANES;
    }
}

/* begin: of a single row, where to begin. */
static wick_status run(wk_encoder *e, const wk_strided *s, const walk *w, uint32_t begin,
                       bool is_laned) {
    const uint32_t threads = threads_of_tuning[wk_encoder_tuning(e)];
    wk_dispatch d;
    wk_dispatch_begin(&d, s->source, 0);
    d.program.constants[0] = is_laned ? LANES : 1;
    d.program.constants[1] = (int32_t)threads;
    memcpy(&d.program.constants[WK_STRIDED_CONSTANTS], s->constants, sizeof s->constants);
    for (int i = 0; i < s->n; i++) {
        const bool is_one = w->rank > 0 && w->stride[w->rank - 1][i] == 0;
        const wk_form form = wk_is_wide(s->views[i]->dtype) ? WK_FORM_WORDS
                             : is_laned && !is_one          ? WK_FORM_LANES
                                                            : WK_FORM_ELEMENTS;
        wk_dispatch_bind(&d, i, s->views[i], form, is_written(s, i));
    }
    WK_TRY(wk_dispatch_place(e, &d));
    uint64_t count = 1;
    for (int k = 0; k < w->rank; k++) count *= w->extent[k];
    wk_dispatch_u32(&d, (uint32_t)count);
    wk_dispatch_u32(&d, (uint32_t)w->rank);
    wk_dispatch_u32(&d, s->a);
    wk_dispatch_u32(&d, s->b);
    const int width = s->is_wide ? WK_STRIDED_WIDE : WK_STRIDED_OPERANDS;
    for (int i = 0; i < width; i++)
        wk_dispatch_u32(&d, i < s->n ? d.first[i] + begin * w->stride[0][i] : 0);
    for (int k = 0; k < 8; k++) wk_dispatch_u32(&d, k < w->rank ? w->extent[k] : 1);
    for (int k = 0; k < WICK_MAX_RANK; k++)
        for (int i = 0; i < width; i++) wk_dispatch_u32(&d, w->stride[k][i]);
    for (int k = 0; k < (s->is_wide ? WK_STRIDED_OWN : 4); k++) wk_dispatch_u32(&d, s->own[k]);
    wk_dispatch_u32(&d, begin);
    return wk_dispatch_run_n(e, &d, (count + threads - 1) / threads);
}

wick_status wk_strided_run(wk_encoder *e, const wk_strided *s) {
    assert(s->n <= (s->is_wide ? WK_STRIDED_WIDE : WK_STRIDED_OPERANDS));
    if (wk_view_count(s->views[0]) == 0) return WICK_OK;
    walk w = collapse(s);
    if (!all_have_lanes(s, &w)) return run(e, s, &w, 0, false);
    walk lanes = w;
    divide(s, &lanes);
    WK_TRY(run(e, s, &lanes, 0, true));
    const uint32_t rest = w.extent[w.rank - 1] % LANES;
    if (rest == 0) return WICK_OK;
    const uint32_t begin = w.extent[0] - rest;
    w.extent[0] = rest;
    return run(e, s, &w, begin, false);
}
