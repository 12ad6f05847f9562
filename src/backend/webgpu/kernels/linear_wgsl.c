/* backend/webgpu/kernels/linear_wgsl.c: see linear_wgsl.h. */
#include "backend/webgpu/kernels/linear_wgsl.h"

#include "core/compiler.h"

enum {
    EACH_ROWS = 32,      /* at most, that are not sorted */
    MOST_EXPERTS = 1024, /* that can be */
    FAULT_CODE = WK_OP_LINEAR_EXPERTS + 1,
    TILE_WORDS = 3,
};

static bool has_experts(const wk_op *op) { return op->code == WK_OP_LINEAR_EXPERTS; }

static int64_t n_experts(const wk_op *op) { return wk_src(op, 1)->extent[0]; }

wk_linear_kind wk_linear_kind_of(const wk_op *op) {
    if (!has_experts(op)) return WK_LINEAR_ROWS;
    const bool is_sorted = wk_view_rows(wk_dst(op, 0)) > EACH_ROWS && n_experts(op) <= MOST_EXPERTS;
    return is_sorted ? WK_LINEAR_SORTED : WK_LINEAR_EACH;
}

int64_t wk_linear_columns(const wk_op *op) {
    const int64_t m = wk_view_rows(wk_dst(op, 0));
    switch (wk_linear_kind_of(op)) {
    case WK_LINEAR_EACH: return 1;
    case WK_LINEAR_SORTED: return (m + n_experts(op) - 1) / n_experts(op);
    default: return m;
    }
}

/* --- Rows of x --- */

static bool is_shared(const wk_view *x) {
    return x->rank == 2 || x->extent[1] == 1 || x->stride[1] == 0;
}

wk_linear_x wk_linear_x_of(const wk_op *op) {
    const wk_view *const x = wk_src(op, 0);
    if (is_shared(x)) return (wk_linear_x){x->extent[0], 1, x->stride[0], 0};
    return (wk_linear_x){wk_view_rows(x), x->extent[1], x->stride[0], x->stride[1]};
}

wk_view wk_linear_rows(const wk_op *op) {
    wk_view x = *wk_src(op, 0);
    if (x.rank == 2 || !is_shared(&x)) return x;
    x.rank = 2;
    x.extent[1] = x.extent[2];
    x.stride[1] = x.stride[2];
    return x;
}

wk_linear_x wk_linear_x_packed(const wk_op *op, int64_t stride) {
    const wk_linear_x x = wk_linear_x_of(op);
    return (wk_linear_x){x.n, x.u, x.u * stride, x.u > 1 ? stride : 0};
}

/* --- Tiles --- */

/* The experts of the op are these of a table. */
static void table_params(const wk_encoder *e, wk_dispatch *d, const wk_op *op) {
    uint32_t first, n;
    wk_encoder_rows(e, op, &first, &n);
    wk_dispatch_u32(d, first);
    wk_dispatch_u32(d, (uint32_t)n_experts(op));
    wk_dispatch_u32(d, n);
}

static wick_status sort(wk_encoder *e, const wk_op *op, wk_linear_tiles *tiles) {
    enum { Y, IDS, FAULT, LEAST_COUNTERS = 32 };
    static const wk_source source = {.name = "linear_sort",
                                     .parts = {wk_wgsl_linear_sort},
                                     .operands = {"y", "ids", "fault"},
                                     .constants = {"EXPERTS", "FAULT"}};
    const wk_view *const ids = wk_src(op, 3);
    const int64_t m = wk_view_rows(wk_dst(op, 0));
    int32_t counters = LEAST_COUNTERS;
    while (counters < n_experts(op)) counters *= 2;
    WK_TRY(wk_encoder_temp(e, TILE_WORDS * tiles->n + m, &tiles->index));
    wk_dispatch d;
    wk_dispatch_begin(&d, &source, 0);
    wk_dispatch_bind(&d, Y, &tiles->index, WK_FORM_WORDS, true);
    wk_dispatch_bind(&d, IDS, ids, WK_FORM_WORDS, false);
    wk_dispatch_bind(&d, FAULT, wk_encoder_fault(e), WK_FORM_WORDS, true);
    d.program.constants[0] = counters;
    d.program.constants[1] = FAULT_CODE;
    WK_TRY(wk_dispatch_place(e, &d));
    const int64_t params[] = {m, ids->extent[1], d.first[IDS], ids->stride[0], ids->stride[1]};
    for (size_t i = 0; i < WK_COUNT(params); i++) wk_dispatch_u32(&d, (uint32_t)params[i]);
    table_params(e, &d, op);
    wk_dispatch_u32(&d, (uint32_t)tiles->columns);
    wk_dispatch_u32(&d, (uint32_t)tiles->n);
    wk_dispatch_u32(&d, d.first[Y]);
    wk_dispatch_u32(&d, d.first[FAULT]);
    return wk_dispatch_run(e, &d, 1, 1, 1);
}

wick_status wk_linear_make_tiles(wk_encoder *e, const wk_op *op, int64_t columns,
                                 wk_linear_tiles *out) {
    const int64_t m = wk_view_rows(wk_dst(op, 0)), n = n_experts(op);
    *out = (wk_linear_tiles){.kind = wk_linear_kind_of(op), .columns = columns};
    out->n = (m + columns - 1) / columns;
    if (out->kind != WK_LINEAR_SORTED) return WICK_OK;
    out->n += n < m ? n : m; /* the last tile of each may not be full */
    return sort(e, op, out);
}

/* --- Gates --- */

bool wk_linear_is_gated(const wk_op *ops) {
    const wk_view *const y = wk_dst(&ops[0], 0), *const weight = wk_src(&ops[0], 1);
    const wk_view *const gate = wk_src(&ops[1], 0), *const up = wk_src(&ops[1], 1);
    const int64_t n = y->extent[1] / 2;
    if (y->rank != 2 || weight->layout == WK_LAYOUT_RAW || n % WK_PANEL_ROWS != 0) return false;
    if (y->dtype != WICK_F32 || gate->dtype != WICK_F32 || wk_dst(&ops[1], 0)->rank != 2)
        return false;
    return gate->buf == y->buf && up->buf == y->buf && gate->offset == y->offset &&
           up->offset == y->offset + (uint64_t)n * sizeof(float) && gate->extent[1] == n &&
           gate->stride[1] == y->stride[1] && gate->stride[0] == y->stride[0] &&
           up->stride[1] == y->stride[1] && up->stride[0] == y->stride[0];
}

/* Bytes of an expert's matrix, of its bias. */
static uint64_t expert_bytes(const wk_view *view) {
    if (view->layout == WK_LAYOUT_RAW) return (uint64_t)view->stride[0] * sizeof(float);
    return (uint64_t)(view->extent[1] / WK_PANEL_ROWS *
                      wk_panel_bytes((wk_layout)view->layout, view->extent[2]));
}

/* How many experts further `up` lies in the buffer of both. */
static int64_t experts_between(const wk_view *gate, const wk_view *up) {
    return (int64_t)((up->offset - gate->offset) / expert_bytes(gate));
}

static bool is_further(const wk_view *gate, const wk_view *up) {
    return gate->buf == up->buf && gate->dtype == up->dtype && gate->layout == up->layout &&
           wk_view_same_shape(gate, up) && up->offset >= gate->offset &&
           (up->offset - gate->offset) % expert_bytes(gate) == 0;
}

static bool has_further_bias(const wk_view *gate, const wk_view *up) {
    if (!gate->buf || !up->buf) return gate->buf == up->buf;
    return gate->dtype == WICK_F32 && gate->stride[1] == 1 && gate->stride[0] > 0 &&
           up->stride[1] == 1 && up->stride[0] == gate->stride[0] && is_further(gate, up);
}

bool wk_linear_are_gated_experts(const wk_op *ops) {
    const wk_op *const gate = &ops[0], *const up = &ops[1], *const gated = &ops[2];
    const wk_view *const weight = wk_src(gate, 1);
    return weight->layout != WK_LAYOUT_RAW && wk_dst(gate, 0)->dtype == WICK_F32 &&
           wk_dst(gated, 0)->dtype == WICK_F32 && gate->p.linear.fast == up->p.linear.fast &&
           wk_view_same(wk_src(gate, 0), wk_src(up, 0)) &&
           wk_view_same(wk_src(gate, 3), wk_src(up, 3)) && is_further(weight, wk_src(up, 1)) &&
           has_further_bias(wk_src(gate, 2), wk_src(up, 2)) &&
           wk_view_same(wk_src(gated, 0), wk_dst(gate, 0)) &&
           wk_view_same(wk_src(gated, 1), wk_dst(up, 0));
}

wk_linear_job wk_linear_job_of(const wk_op *ops, size_t n) {
    wk_linear_job job = {.gated = n > 1 ? &ops[n - 1] : NULL, .up = n > 2 ? &ops[1] : NULL};
    wk_op_copy(&job.op, ops);
    job.weight = *wk_src(ops, 1);
    job.bias = *wk_src(ops, 2);
    if (job.gated) job.op.view[0] = *wk_dst(job.gated, 0);
    if (!job.up) return job;
    job.weight.extent[0] += experts_between(&job.weight, wk_src(job.up, 1));
    if (job.bias.buf) job.bias.extent[0] += experts_between(&job.bias, wk_src(job.up, 2));
    return job;
}

int32_t wk_linear_gated_constant(const wk_linear_job *job) {
    return job->gated ? (int32_t)job->gated->p.gated.fn + 1 : 0;
}

void wk_linear_gated_params(wk_dispatch *d, const wk_linear_job *job) {
    const int64_t n = wk_dst(&job->op, 0)->extent[wk_dst(&job->op, 0)->rank - 1];
    int64_t panels = n / WK_PANEL_ROWS, rows = n;
    if (job->up) {
        panels *= experts_between(wk_src(&job->op, 1), wk_src(job->up, 1));
        rows = job->bias.buf
                   ? experts_between(wk_src(&job->op, 2), wk_src(job->up, 2)) * job->bias.stride[0]
                   : 0;
    }
    wk_dispatch_f32(d, job->gated ? (float)job->gated->p.gated.alpha : 0);
    wk_dispatch_f32(d, job->gated ? (float)job->gated->p.gated.limit : 0);
    wk_dispatch_u32(d, (uint32_t)panels);
    wk_dispatch_u32(d, (uint32_t)rows);
}

/* --- The product --- */

void wk_linear_bind(wk_encoder *e, wk_dispatch *d, const wk_op *op, const wk_linear_tiles *tiles) {
    if (tiles->kind == WK_LINEAR_ROWS) return;
    if (tiles->kind == WK_LINEAR_SORTED) {
        wk_dispatch_bind(d, WK_LINEAR_INDEX, &tiles->index, WK_FORM_WORDS, false);
        return;
    }
    wk_dispatch_bind(d, WK_LINEAR_INDEX, wk_src(op, 3), WK_FORM_WORDS, false);
    wk_dispatch_bind(d, WK_LINEAR_FAULT, wk_encoder_fault(e), WK_FORM_WORDS, true);
}

/* From one expert to the next, in what the weight is counted in: vectors of 16 bytes, elements. */
static int64_t expert_stride(const wk_view *weight) {
    if (weight->layout == WK_LAYOUT_RAW) return weight->stride[0];
    return weight->extent[1] / WK_PANEL_ROWS *
           (wk_panel_bytes((wk_layout)weight->layout, weight->extent[2]) / 16);
}

void wk_linear_params(const wk_encoder *e, wk_dispatch *d, const wk_op *op,
                      const wk_linear_tiles *tiles, const wk_linear_x *x) {
    if (tiles->kind == WK_LINEAR_ROWS) return;
    const wk_view *const y = wk_dst(op, 0), *const bias = wk_src(op, 2), *const ids = wk_src(op, 3);
    const int64_t index = d->first[WK_LINEAR_INDEX];
    const int64_t params[] = {y->extent[1],
                              x->step,
                              y->stride[1],
                              expert_stride(wk_src(op, 1)),
                              bias->buf ? bias->stride[0] : 0,
                              index,
                              ids->stride[0],
                              ids->stride[1],
                              index + TILE_WORDS * tiles->n};
    for (size_t i = 0; i < WK_COUNT(params); i++) wk_dispatch_u32(d, (uint32_t)params[i]);
    table_params(e, d, op);
    wk_dispatch_u32(d, tiles->kind == WK_LINEAR_EACH ? d->first[WK_LINEAR_FAULT] : 0);
}
