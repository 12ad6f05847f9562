/* backend/webgpu/rows.c: see rows.h. */
#include "backend/webgpu/rows.h"

/* Elements of a row up to which so many threads share it. */
enum {
    ONE_LANE = 16,
    SIXTEEN_LANES = 256,
    SMALL_GROUP = 1024,   /* above, 256 threads */
    ONE_LANE_COLUMNS = 32 /* above, 16 threads */
};

/* Elements of a part, and of rows that have none. */
enum { PART = 4096, WHOLE = 8192, PART_OF_COLUMN = 1024, WHOLE_COLUMN = 2048 };

/* Takes the dimensions [begin, end): those of one element go, those that both operands walk as one
 * become one. Outermost is the largest stride of x: neighbours in memory are neighbours here. */
static void walk_over(wk_rows_walk *w, const wk_view *y, const wk_view *x, int begin, int end) {
    w->rank = 0;
    for (int d = begin; d < end; d++) {
        if (x->extent[d] == 1) continue;
        const uint32_t dim[3] = {(uint32_t)x->extent[d], d < y->rank ? (uint32_t)y->stride[d] : 0,
                                 (uint32_t)x->stride[d]};
        int at = w->rank++;
        for (; at > 0 && w->dim[at - 1][2] < dim[2]; at--)
            for (int i = 0; i < 3; i++) w->dim[at][i] = w->dim[at - 1][i];
        for (int i = 0; i < 3; i++) w->dim[at][i] = dim[i];
    }
    int n = 0;
    for (int d = 0; d < w->rank; d++) {
        const uint32_t *const dim = w->dim[d];
        uint32_t *const last = w->dim[n > 0 ? n - 1 : 0];
        const bool joins = n > 0 && last[1] == dim[1] * dim[0] && last[2] == dim[2] * dim[0];
        const uint32_t extent = joins ? last[0] * dim[0] : dim[0], in_y = dim[1], in_x = dim[2];
        uint32_t *const to = w->dim[joins ? n - 1 : n++];
        to[0] = extent;
        to[1] = in_y;
        to[2] = in_x;
    }
    w->rank = n;
}

static uint32_t count_of(const wk_view *view, int begin, int end) {
    uint32_t count = 1;
    for (int d = begin; d < end; d++) count *= (uint32_t)view->extent[d];
    return count;
}

static void choose_threads(wk_rows *rows) {
    rows->threads = 64;
    if (rows->by_columns) {
        rows->lanes = rows->n <= ONE_LANE_COLUMNS ? 1 : 16;
        if (rows->lanes > 1) rows->threads = 256;
        return;
    }
    rows->lanes = rows->n <= ONE_LANE ? 1 : rows->n <= SIXTEEN_LANES ? 16 : 64;
    if (rows->n > SMALL_GROUP) rows->threads = rows->lanes = 256;
}

wk_rows wk_rows_of(const wk_view *y, const wk_view *x, int n_kept) {
    wk_rows rows = {.n_rows = count_of(x, 0, n_kept), .n = count_of(x, n_kept, x->rank)};
    rows.part = rows.n_all = rows.n;
    rows.n_parts = 1;
    walk_over(&rows.kept, y, x, 0, n_kept);
    walk_over(&rows.reduced, y, x, n_kept, x->rank);
    const wk_rows_walk *const kept = &rows.kept, *const reduced = &rows.reduced;
    rows.by_columns = kept->rank > 0 && reduced->rank > 0 &&
                      kept->dim[kept->rank - 1][2] < reduced->dim[reduced->rank - 1][2];
    choose_threads(&rows);
    return rows;
}

void wk_rows_split(wk_rows *rows) {
    if (rows->n <= (rows->by_columns ? WHOLE_COLUMN : WHOLE)) return;
    rows->part = rows->by_columns ? PART_OF_COLUMN : PART;
    rows->n_parts = (rows->n + rows->part - 1) / rows->part;
}

wk_rows wk_rows_of_parts(const wk_rows *rows) {
    wk_rows parts = *rows;
    parts.n = parts.part = rows->n_parts;
    parts.n_parts = 1;
    parts.by_columns = false;
    parts.reduced.rank = 0;
    choose_threads(&parts);
    return parts;
}

bool wk_rows_are_countable(const wk_view *x) { return wk_view_count(x) <= UINT32_MAX; }

static void put_walk(wk_dispatch *d, const wk_rows_walk *w) {
    for (int i = 0; i < WICK_MAX_RANK; i++)
        for (int k = 0; k < 4; k++) wk_dispatch_u32(d, i < w->rank && k < 3 ? w->dim[i][k] : 0);
}

wick_status wk_rows_run(wk_encoder *e, wk_dispatch *d, const wk_rows *rows, const uint32_t own[4]) {
    const uint32_t rows_of_group = rows->threads / rows->lanes;
    const uint64_t n_groups =
        ((uint64_t)rows->n_rows + rows_of_group - 1) / rows_of_group * rows->n_parts;
    if (n_groups == 0) return WICK_OK;
    d->program.constants[0] = (int32_t)rows->threads;
    d->program.constants[1] = (int32_t)rows->lanes;
    d->program.constants[2] = rows->by_columns;
    WK_TRY(wk_dispatch_place(e, d));
    wk_dispatch_u32(d, rows->n_rows);
    wk_dispatch_u32(d, rows->n);
    wk_dispatch_u32(d, rows->part);
    wk_dispatch_u32(d, rows->n_parts);
    wk_dispatch_u32(d, (uint32_t)n_groups);
    wk_dispatch_u32(d, (uint32_t)rows->kept.rank);
    wk_dispatch_u32(d, (uint32_t)rows->reduced.rank);
    wk_dispatch_u32(d, rows->n_all);
    for (int i = 0; i < 4; i++) wk_dispatch_u32(d, own[i]);
    for (int i = 0; i < 4; i++)
        wk_dispatch_u32(d, d->program.operands[i].form != WK_FORM_ABSENT ? d->first[i] : 0);
    put_walk(d, &rows->kept);
    put_walk(d, &rows->reduced);
    return wk_dispatch_run_n(e, d, n_groups);
}
