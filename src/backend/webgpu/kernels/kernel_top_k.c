/* backend/webgpu/kernels/kernel_top_k.c: the k largest elements of rows: parts are sorted, and what
 * they keep, until one part is left. */
#include "backend/webgpu/kernels/norm_sum.h"
#include "backend/webgpu/kernels/rows.h"

#include "core/half.h"

#include <math.h>

/* Elements of the largest tile: 8 bytes each in shared memory. Half of them at most are kept, where
 * there are several parts: each dispatch leaves half of its candidates or fewer. Where few are
 * kept, a part is sieved before it is sorted, and may be longer than a tile. */
enum {
    MOST_TILE = 1024,
    LEAST_TILE = 64,
    MOST_KEPT = MOST_TILE / 2,
    MOST_THREADS = 256,
    MOST_SIEVED = MOST_THREADS / 2, /* the bound lies among the better half of the maxima */
    SIEVED_PART = 8 * MOST_TILE,
    MOST_SOFTMAX = 16
};

static bool accepts_top_k(const wk_op *op) {
    const wk_view *const x = wk_src(op, 0), *const values = wk_dst(op, 0);
    const int64_t n = x->extent[x->rank - 1], k = values->extent[x->rank - 1];
    return wk_webgpu_is_float(x->dtype) && wk_rows_are_countable(x) &&
           (n <= MOST_TILE || k <= MOST_KEPT);
}

static uint32_t tile_of(uint32_t n) {
    uint32_t tile = LEAST_TILE;
    while (tile < n && tile < MOST_TILE) tile *= 4;
    return tile;
}

/* What one dispatch reads and writes: elements of x or candidates, results or candidates. */
typedef struct pass {
    wk_rows rows;
    const wk_view *from, *to; /* candidates, or NULL */
    const wk_op *softmax;     /* of the values, or NULL */
    bool is_sieved;
} pass;

static wick_status run(wk_encoder *e, const wk_op *op, const pass *p) {
#define SOURCE(...)                                                                                \
    {.name = "top_k",                                                                              \
     .parts = {wk_wgsl_rows, wk_wgsl_bitonic, wk_wgsl_top_k, __VA_ARGS__},                         \
     .operands = {"y", "x", "z", "c"},                                                             \
     .constants = {"THREADS", "LANES", "COLUMNS", "FROM_PARTS", "TO_PARTS", "TILE", "SIEVE"}}
    static const wk_source sources[2] = {
        SOURCE(wk_wgsl_top_k_values),
        SOURCE(wk_wgsl_functions, wk_wgsl_softmax_of_kept, wk_wgsl_top_k_softmax)};
#undef SOURCE
    const wk_view *const values = wk_dst(p->softmax ? p->softmax : op, 0),
                         *const indices = wk_dst(op, 1), *const x = wk_src(op, 0);
    const int last = x->rank - 1;
    wk_dispatch d;
    wk_dispatch_begin(&d, &sources[p->softmax != NULL], 0);
    int32_t *const constants = d.program.constants + WK_ROWS_CONSTANTS;
    constants[0] = p->from != NULL;
    constants[1] = p->to != NULL;
    constants[2] = (int32_t)(p->rows.part < MOST_TILE ? p->rows.part : MOST_TILE);
    constants[3] = p->is_sieved;
    /* A program names all four: what a pass does not have is another one, and not looked at. */
    wk_dispatch_bind(&d, 0, p->to ? p->to : values, WK_FORM_ELEMENTS, true);
    wk_dispatch_bind(&d, 1, x, WK_FORM_ELEMENTS, false);
    wk_dispatch_bind(&d, 2, p->to ? p->to : indices, WK_FORM_ELEMENTS, true);
    wk_dispatch_bind(&d, 3, p->from ? p->from : x, WK_FORM_ELEMENTS, false);
    const uint32_t own[] = {(uint32_t)values->extent[last], (uint32_t)values->stride[last],
                            (uint32_t)indices->stride[last], wk_f32_bits(NAN)};
    return wk_rows_run(e, &d, &p->rows, own);
}

/* Rows of n elements in parts, each of which has a workgroup and keeps k. */
static void set_parts(pass *p, uint32_t n, uint32_t k) {
    wk_rows *const rows = &p->rows;
    const uint32_t tile = tile_of(n);
    p->is_sieved = tile == MOST_TILE && k <= MOST_SIEVED;
    rows->n = n;
    rows->part = p->is_sieved ? SIEVED_PART : tile;
    rows->n_parts = (n + rows->part - 1) / rows->part;
    rows->threads = tile / 2 < MOST_THREADS ? tile / 2 : MOST_THREADS;
    rows->lanes = rows->threads;
    rows->by_columns = false;
}

/* Of the candidates that the first dispatch leaves: k of each part. */
static uint64_t candidate_bytes(const wk_op *op) {
    const wk_view *const x = wk_src(op, 0), *const values = wk_dst(op, 0);
    pass first;
    set_parts(&first, (uint32_t)x->extent[x->rank - 1], (uint32_t)values->extent[x->rank - 1]);
    const uint64_t n_parts = first.rows.n_parts;
    return n_parts > 1 ? 8 * n_parts * (uint64_t)wk_view_count(values) : 0;
}

static wick_status encode_top_k(wk_encoder *e, const wk_op *op) {
    const wk_view *const values = wk_dst(op, 0), *const x = wk_src(op, 0);
    const int last = x->rank - 1;
    const uint32_t k = (uint32_t)values->extent[last];
    if (wk_view_count(values) == 0) return WICK_OK;
    wk_view candidates[2] = {{0}}; /* read and written alternately */
    pass p = {.rows = wk_rows_of_two(values, wk_dst(op, 1), x, last)};
    set_parts(&p, p.rows.n, k);
    for (int turn = 0; p.rows.n_parts > 1; turn = !turn) {
        wk_view *const to = &candidates[turn];
        const uint32_t n = p.rows.n_parts * k;
        if (!to->buf) WK_TRY(wk_encoder_temp(e, 2 * (int64_t)p.rows.n_rows * n, to));
        to->dtype = WICK_U32;
        p.to = to;
        WK_TRY(run(e, op, &p));
        p.from = to;
        set_parts(&p, n, k);
    }
    p.to = NULL;
    return run(e, op, &p);
}

/* A row in one tile; of values that one thread would sum. */
bool wk_is_top_k_softmax(const wk_op *ops) {
    const wk_view *const x = wk_src(ops, 0), *const kept = wk_dst(ops, 0);
    const wk_view *const y = wk_dst(&ops[1], 0);
    return accepts_top_k(ops) && x->dtype == WICK_F32 && x->extent[x->rank - 1] <= MOST_TILE &&
           kept->extent[kept->rank - 1] <= MOST_SOFTMAX && wk_view_same(kept, wk_src(&ops[1], 0)) &&
           kept->dtype == WICK_F32 && y->dtype == WICK_F32 && !ops[1].p.softmax.is_log;
}

static wick_status encode_softmax(wk_encoder *e, const wk_op *ops) {
    const wk_view *const y = wk_dst(&ops[1], 0), *const x = wk_src(ops, 0);
    pass p = {.rows = wk_rows_of_two(y, wk_dst(ops, 1), x, x->rank - 1), .softmax = &ops[1]};
    set_parts(&p, p.rows.n, (uint32_t)y->extent[y->rank - 1]);
    return run(e, ops, &p);
}

const wk_webgpu_kernel wk_webgpu_top_k_softmax = {
    .base.name = "top_k_softmax_wgsl",
    .base.code = WK_OPS_TOP_K_SOFTMAX,
    .base.accepts = wk_is_top_k_softmax,
    .encode = encode_softmax,
};

const wk_webgpu_kernel wk_webgpu_top_k = {
    .base.name = "top_k_wgsl",
    .base.code = WK_OP_TOP_K,
    .base.accepts = accepts_top_k,
    .temp_bytes = candidate_bytes,
    .encode = encode_top_k,
};
