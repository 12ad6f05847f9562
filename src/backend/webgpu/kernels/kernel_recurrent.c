/* backend/webgpu/kernels/kernel_recurrent.c: ops that carry a state from token to token:
 * causal_conv and scan. */
#include "backend/webgpu/kernels/webgpu_kernel.h"

enum {
    THREADS = 64,
    MAX_BEFORE = 15, /* inputs that a thread of causal_conv keeps */
    MAX_PER = 16,    /* numbers that a thread of scan keeps */
};

/* Strides of dimensions 0 to n - 1, then the index of the first element. */
static void add_strides(wk_dispatch *d, const wk_view *view, int n, uint32_t first) {
    for (int k = 0; k < 4; k++)
        wk_dispatch_u32(d, k < n ? (uint32_t)view->stride[k] : k == n ? first : 0);
}

static void add_batch(wk_dispatch *d, const wk_batch_layout *batch, uint32_t first) {
    wk_dispatch_u32(d, first);
    wk_dispatch_u32(d, batch->positions);
    wk_dispatch_u32(d, batch->sequences);
    wk_dispatch_u32(d, batch->states);
}

/* --- causal_conv --- */

enum { CONV_BATCH = 5, CONV_FAULT };
enum { CONV_SILU = 2 }; /* constant */

static bool accepts_conv(const wk_op *op) { return wk_dst(op, 1)->extent[1] <= MAX_BEFORE; }

static void write_finished(const wk_program *program, wk_strbuf *out) {
    const bool is_silu = program->constants[CONV_SILU] != 0;
    wk_strbuf_format(out, "fn finished(x: f32) -> f32 { return %s; }\n",
                     is_silu ? "or_nan(x, silu(x))" : "x");
}

static wick_status encode_conv(wk_encoder *e, const wk_op *op) {
    const wk_op *const silu = wk_encoder_kernel(e)->code == WK_OPS_CONV_SILU ? &op[1] : NULL;
#define SOURCE(...)                                                                                \
    {.name = "causal_conv",                                                                        \
     .parts = {wk_wgsl_causal_conv, __VA_ARGS__},                                                  \
     .operands = {"y", "state", "x", "weight", "bias", "batch", "fault"},                          \
     .constants = {"BEFORE", "HAS_BIAS", "IS_SILU"},                                               \
     .write = write_finished}
    static const wk_source sources[2] = {SOURCE(NULL), SOURCE(wk_wgsl_functions)};
#undef SOURCE
    const wk_view *const y = wk_dst(silu ? silu : op, 0), *const state = wk_dst(op, 1),
                         *const bias = wk_src(op, 2);
    const wk_batch_layout *const batch = &op->p.conv.batch;
    if (wk_view_count(y) == 0) return WICK_OK;
    const uint64_t n_blocks = ((uint64_t)y->extent[1] + THREADS - 1) / THREADS;
    const uint64_t n_groups = n_blocks * (batch->n_sequences + UINT64_C(1));
    wk_dispatch d;
    wk_dispatch_begin(&d, &sources[silu != NULL], 0);
    d.program.constants[0] = (int32_t)state->extent[1];
    d.program.constants[1] = bias->buf != NULL;
    d.program.constants[CONV_SILU] = silu != NULL;
    for (int i = 0; i < CONV_BATCH; i++)
        wk_dispatch_bind(&d, i, i == 0 ? y : &op->view[i], WK_FORM_ELEMENTS, i < op->n_dst);
    if (!bias->buf) wk_dispatch_bind(&d, 4, wk_src(op, 0), WK_FORM_ELEMENTS, false); /* is named */
    wk_dispatch_bind(&d, CONV_BATCH, wk_src(op, 3), WK_FORM_WORDS, false);
    wk_dispatch_bind(&d, CONV_FAULT, wk_encoder_fault(e), WK_FORM_WORDS, true);
    WK_TRY(wk_dispatch_place(e, &d));
    add_strides(&d, y, 2, d.first[0]);
    add_strides(&d, wk_src(op, 0), 2, d.first[2]);
    add_strides(&d, state, 3, d.first[1]);
    add_strides(&d, wk_src(op, 1), 2, d.first[3]);
    add_strides(&d, bias, 1, d.first[4]);
    add_batch(&d, batch, d.first[CONV_BATCH]);
    wk_dispatch_u32(&d, (uint32_t)n_groups);
    wk_dispatch_u32(&d, (uint32_t)n_blocks);
    wk_dispatch_u32(&d, (uint32_t)y->extent[1]);
    wk_dispatch_u32(&d, batch->n_rows);
    wk_dispatch_u32(&d, batch->n_sequences);
    wk_dispatch_u32(&d, (uint32_t)state->extent[0]);
    wk_dispatch_u32(&d, d.first[CONV_FAULT]);
    wk_dispatch_u32(&d, (uint32_t)op->code + 1);
    return wk_dispatch_run_n(e, &d, n_groups);
}

static bool accepts_conv_silu(const wk_op *ops) {
    return accepts_conv(ops) && ops[1].p.unary.fn == WK_UNARY_SILU &&
           wk_view_same(wk_src(&ops[1], 0), wk_dst(&ops[0], 0)) &&
           wk_dst(&ops[0], 0)->dtype == WICK_F32 && wk_dst(&ops[1], 0)->dtype == WICK_F32;
}

const wk_webgpu_kernel wk_webgpu_conv_silu = {
    .base.name = "conv_silu_wgsl",
    .base.code = WK_OPS_CONV_SILU,
    .base.accepts = accepts_conv_silu,
    .encode = encode_conv,
};

const wk_webgpu_kernel wk_webgpu_causal_conv = {
    .base.name = "causal_conv_wgsl",
    .base.code = WK_OP_CAUSAL_CONV,
    .base.accepts = accepts_conv,
    .encode = encode_conv,
};

/* --- scan --- */

enum { SCAN_X = 2, SCAN_GATE = 4, SCAN_BC, SCAN_BATCH, SCAN_FAULT, SCAN_D, SCAN_Z };
enum { SCAN_FN = 4 }; /* constant: 1 + wk_gated_fn, 0: none */

static bool accepts_scan(const wk_op *op) {
    const int64_t n = wk_src(op, 3)->extent[3];
    return n > 0 && n <= (int64_t)MAX_PER * THREADS;
}

/* Threads that share a channel's n numbers. */
static uint32_t lanes_of(int64_t n) {
    uint32_t lanes = 1;
    while ((int64_t)lanes * MAX_PER < n) lanes *= 2;
    return lanes;
}

static void add_scan_counts(wk_dispatch *d, const wk_op *op, uint32_t n_groups, uint32_t n_blocks) {
    const wk_view *const y = wk_dst(op, 0), *const bc = wk_src(op, 3);
    const wk_batch_layout *const batch = &op->p.scan.batch;
    wk_dispatch_u32(d, n_groups);
    wk_dispatch_u32(d, n_blocks);
    wk_dispatch_u32(d, (uint32_t)y->extent[1]);
    wk_dispatch_u32(d, (uint32_t)y->extent[2]);
    wk_dispatch_u32(d, (uint32_t)bc->extent[3]);
    wk_dispatch_u32(d, (uint32_t)bc->extent[2]);
    wk_dispatch_u32(d, op->p.scan.is_tiled);
    wk_dispatch_u32(d, batch->n_rows);
    wk_dispatch_u32(d, batch->n_sequences);
    wk_dispatch_u32(d, (uint32_t)wk_dst(op, 1)->extent[0]);
    wk_dispatch_f32(d, op->p.scan.scale);
    wk_dispatch_u32(d, (uint32_t)op->code + 1);
}

/* A view of all rows and channels of a scan as [row, head, channel]; false: it is none. */
static bool as_channels(const wk_view *view, const wk_op *scan, wk_view *out) {
    const int64_t *const extent = wk_dst(scan, 0)->extent;
    *out = *view;
    if (view->dtype != WICK_F32) return false;
    if (view->rank == 3) return view->extent[1] == extent[1] && view->extent[2] == extent[2];
    if (view->rank != 2 || view->extent[1] != extent[1] * extent[2]) return false;
    out->rank = 3;
    out->extent[1] = extent[1];
    out->stride[1] = extent[2] * view->stride[1];
    out->extent[2] = extent[2];
    out->stride[2] = view->stride[1];
    return true;
}

/* The same elements as [row, head, channel]. */
static bool are_same_channels(const wk_view *a, const wk_view *b, const wk_op *scan) {
    wk_view x, y;
    if (!as_channels(a, scan, &x) || !as_channels(b, scan, &y)) return false;
    for (int i = 0; i < 3; i++)
        if (x.extent[i] == 1) x.stride[i] = y.stride[i];
    return wk_view_same(&x, &y);
}

/* What becomes of a scan's y: fn(z, y + d x), d and z [row, head, channel]. */
typedef struct scan_gating {
    const wk_op *gated;
    wk_view y, d, z;
} scan_gating;

static bool find_gating(const wk_op *ops, scan_gating *out) {
    const wk_op *const scan = ops, *const share = ops + 1, *const sum = ops + 2;
    out->gated = ops + 3;
    return share->p.binary == WK_BINARY_MUL && sum->p.binary == WK_BINARY_ADD &&
           are_same_channels(wk_src(share, 0), wk_src(scan, 0), scan) &&
           are_same_channels(wk_src(sum, 0), wk_dst(scan, 0), scan) &&
           are_same_channels(wk_src(sum, 1), wk_dst(share, 0), scan) &&
           are_same_channels(wk_src(out->gated, 1), wk_dst(sum, 0), scan) &&
           as_channels(wk_src(share, 1), scan, &out->d) &&
           as_channels(wk_src(out->gated, 0), scan, &out->z) &&
           as_channels(wk_dst(out->gated, 0), scan, &out->y);
}

static void write_finished_scan(const wk_program *program, wk_strbuf *out) {
    const int fn = program->constants[SCAN_FN];
    wk_strbuf_format(out, "fn finished(p: Place, row: u32, x: f32, y: f32) -> f32 {\n");
    if (fn == 0)
        wk_strbuf_format(out, "return y;\n}\n");
    else
        wk_strbuf_format(out,
                         "let d = load_d(offset(params.d, row, p.head, p.channel));\n"
                         "let z = load_z(offset(params.z, row, p.head, p.channel));\n"
                         "return gated_%d(z, y + times(x, d), params.alpha, params.limit);\n}\n",
                         fn - 1);
}

static wick_status encode_scan(wk_encoder *e, const wk_op *op) {
    static const wk_source source = {
        .name = "scan",
        .parts = {wk_wgsl_functions, wk_wgsl_gated, wk_wgsl_scan},
        .operands = {"y", "state", "x", "step", "gate", "bc", "batch", "fault", "d", "z"},
        .constants = {"LANES", "PER", "IS_DELTA", "IS_PLAIN", "FN"},
        .write = write_finished_scan};
    scan_gating gating;
    const bool is_gated = wk_encoder_kernel(e)->code == WK_OPS_SCAN_GATED;
    if (is_gated) (void)find_gating(op, &gating);
    const wk_view *const y = is_gated ? &gating.y : wk_dst(op, 0), *const gate = wk_src(op, 2);
    const wk_batch_layout *const batch = &op->p.scan.batch;
    const int64_t n = wk_src(op, 3)->extent[3];
    const bool is_delta = op->p.scan.fn == WK_SCAN_DELTA;
    if (wk_view_count(y) == 0) return WICK_OK;
    const uint32_t lanes = lanes_of(n), columns = THREADS / lanes;
    const uint64_t n_blocks = ((uint64_t)y->extent[2] + columns - 1) / columns;
    const uint64_t n_groups =
        n_blocks * (uint64_t)y->extent[1] * (batch->n_sequences + UINT64_C(1));
    wk_dispatch d;
    wk_dispatch_begin(&d, &source, 0);
    d.program.constants[0] = (int32_t)lanes;
    d.program.constants[1] = (int32_t)((n + lanes - 1) / lanes);
    d.program.constants[2] = is_delta;
    d.program.constants[3] = is_delta || gate->stride[2] == 0;
    d.program.constants[SCAN_FN] = is_gated ? 1 + (int32_t)gating.gated->p.gated.fn : 0;
    for (int i = 0; i < SCAN_BATCH; i++)
        wk_dispatch_bind(&d, i, i == 0 ? y : &op->view[i], WK_FORM_ELEMENTS, i < op->n_dst);
    wk_dispatch_bind(&d, SCAN_BATCH, wk_src(op, 4), WK_FORM_WORDS, false);
    wk_dispatch_bind(&d, SCAN_FAULT, wk_encoder_fault(e), WK_FORM_WORDS, true);
    if (is_gated) {
        wk_dispatch_bind(&d, SCAN_D, &gating.d, WK_FORM_ELEMENTS, false);
        wk_dispatch_bind(&d, SCAN_Z, &gating.z, WK_FORM_ELEMENTS, false);
    }
    WK_TRY(wk_dispatch_place(e, &d));
    add_strides(&d, y, 3, d.first[0]);
    for (int i = SCAN_X; i <= SCAN_GATE; i++) add_strides(&d, &op->view[i], 3, d.first[i]);
    add_strides(&d, wk_dst(op, 1), 4, 0);
    add_strides(&d, wk_src(op, 3), 4, 0);
    add_batch(&d, batch, d.first[SCAN_BATCH]);
    wk_dispatch_u32(&d, d.first[1]);
    wk_dispatch_u32(&d, d.first[SCAN_BC]);
    wk_dispatch_u32(&d, d.first[SCAN_FAULT]);
    wk_dispatch_u32(&d, 0);
    add_scan_counts(&d, op, (uint32_t)n_groups, (uint32_t)n_blocks);
    if (is_gated) {
        add_strides(&d, &gating.d, 3, d.first[SCAN_D]);
        add_strides(&d, &gating.z, 3, d.first[SCAN_Z]);
        wk_dispatch_f32(&d, (float)gating.gated->p.gated.alpha);
        wk_dispatch_f32(&d, (float)gating.gated->p.gated.limit);
    }
    return wk_dispatch_run_n(e, &d, n_groups);
}

static bool accepts_scan_gated(const wk_op *ops) {
    scan_gating with;
    return accepts_scan(ops) && find_gating(ops, &with);
}

const wk_webgpu_kernel wk_webgpu_scan_gated = {
    .base.name = "scan_gated_wgsl",
    .base.code = WK_OPS_SCAN_GATED,
    .base.accepts = accepts_scan_gated,
    .encode = encode_scan,
};

const wk_webgpu_kernel wk_webgpu_scan = {
    .base.name = "scan_wgsl",
    .base.code = WK_OP_SCAN,
    .base.accepts = accepts_scan,
    .encode = encode_scan,
};
