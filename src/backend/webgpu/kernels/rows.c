/* backend/webgpu/kernels/rows.c: see rows.h. */
#include "backend/webgpu/kernels/rows.h"

/* The longest rows, in elements, for each number of threads that share a row. */
enum {
    ONE_LANE = 16,
    SIXTEEN_LANES = 256,
    SMALL_GROUP = 1024,   /* above, 256 threads */
    ONE_LANE_COLUMNS = 32 /* above, 16 threads */
};

enum { MOST_THREADS = 256 };

/* Elements of a part, and of rows that have none. */
enum { PART = 4096, WHOLE = 8192, PART_OF_COLUMN = 1024, WHOLE_COLUMN = 2048 };

/* The outermost has the largest stride in x: neighbours in memory are to be neighbours here. */
static void insert(wk_rows_walk *w, const wk_rows_dim *dim) {
    int at = w->rank++;
    for (; at > 0 && w->dim[at - 1].in_x < dim->in_x; at--) w->dim[at] = w->dim[at - 1];
    w->dim[at] = *dim;
}

/* Dimensions that both operands walk as one become one. */
static void join(wk_rows_walk *w) {
    int n = 0;
    for (int d = 0; d < w->rank; d++) {
        wk_rows_dim dim = w->dim[d];
        const wk_rows_dim *const outer = n > 0 ? &w->dim[n - 1] : NULL;
        if (outer && outer->in_y == dim.in_y * dim.extent && outer->in_x == dim.in_x * dim.extent &&
            outer->in_z == dim.in_z * dim.extent) {
            dim.extent *= outer->extent;
            n--;
        }
        w->dim[n++] = dim;
    }
    w->rank = n;
}

static uint32_t stride_in(const wk_view *view, int d) {
    return view && d < view->rank ? (uint32_t)view->stride[d] : 0;
}

/* Dimensions [begin, end), without those of one element. */
static wk_rows_walk walk_over(const wk_view *y, const wk_view *z, const wk_view *x, int begin,
                              int end) {
    wk_rows_walk w = {0};
    for (int d = begin; d < end; d++) {
        const wk_rows_dim dim = {.extent = (uint32_t)x->extent[d],
                                 .in_y = stride_in(y, d),
                                 .in_x = stride_in(x, d),
                                 .in_z = stride_in(z, d)};
        if (dim.extent != 1) insert(&w, &dim);
    }
    join(&w);
    return w;
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
    return wk_rows_of_two(y, NULL, x, n_kept);
}

wk_rows wk_rows_of_two(const wk_view *y, const wk_view *z, const wk_view *x, int n_kept) {
    wk_rows rows = {.n_rows = count_of(x, 0, n_kept), .n = count_of(x, n_kept, x->rank)};
    rows.part = rows.n_all = rows.n;
    rows.n_parts = 1;
    rows.kept = walk_over(y, z, x, 0, n_kept);
    rows.reduced = walk_over(y, z, x, n_kept, x->rank);
    const wk_rows_walk *const kept = &rows.kept, *const reduced = &rows.reduced;
    rows.by_columns = kept->rank > 0 && reduced->rank > 0 &&
                      kept->dim[kept->rank - 1].in_x < reduced->dim[reduced->rank - 1].in_x;
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
    parts.scalars = NULL;
    choose_threads(&parts);
    return parts;
}

wk_rows_kind wk_rows_kind_of(wick_dtype dtype) {
    switch (dtype) {
    case WICK_F32:
    case WICK_F16:
    case WICK_BF16: return WK_KIND_FLOAT;
    case WICK_I32:
    case WICK_I16:
    case WICK_I8: return WK_KIND_SIGNED;
    case WICK_U32:
    case WICK_U8: return WK_KIND_UNSIGNED;
    case WICK_BOOL: return WK_KIND_BOOL;
    default: return WK_KIND_NONE;
    }
}

bool wk_rows_are_countable(const wk_view *x) { return wk_view_count(x) <= UINT32_MAX; }

static void put_walk(wk_dispatch *d, const wk_rows_walk *w) {
    for (int i = 0; i < WICK_MAX_RANK; i++) {
        const wk_rows_dim dim = i < w->rank ? w->dim[i] : (wk_rows_dim){0};
        wk_dispatch_u32(d, dim.extent);
        wk_dispatch_u32(d, dim.in_y);
        wk_dispatch_u32(d, dim.in_x);
        wk_dispatch_u32(d, dim.in_z);
    }
}

wick_status wk_rows_run(wk_encoder *e, wk_dispatch *d, const wk_rows *rows, const uint32_t own[4]) {
    /* Twice or four times the rows, as the tuning says. */
    const uint32_t wanted = rows->threads << (rows->is_alone ? 0 : wk_encoder_tuning(e));
    const uint32_t threads = wanted < MOST_THREADS ? wanted : MOST_THREADS;
    const uint32_t rows_of_group = threads / rows->lanes;
    const uint64_t n_groups =
        ((uint64_t)rows->n_rows + rows_of_group - 1) / rows_of_group * rows->n_parts;
    if (n_groups == 0) return WICK_OK;
    d->program.constants[0] = (int32_t)threads;
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
    for (int i = WK_ROWS_SOURCE; rows->scalars && i < WK_ROWS_SOURCE + 8; i++)
        wk_dispatch_u32(d, d->first[i]);
    for (int i = 0; rows->scalars && i < WK_CHAIN_SCALARS; i++)
        wk_dispatch_u32(d, rows->scalars[i]);
    return wk_dispatch_run_n(e, d, n_groups);
}
