/* backend/webgpu/kernels/kernel_rope.c: rotary position embedding, by positions and by tables. */
#include "backend/webgpu/kernels/webgpu_kernel.h"

#include <math.h>

/* wgsl/rope.wgsl; pairs of one dispatch are their product. */
enum { N_LOW = 16, N_HIGH = 32, THREADS = 64 };

static const double whole_turn = 6.283185307179586476925;

/* Pairs that one dispatch turns. */
typedef struct span {
    int64_t first, n, n_copied; /* n_copied: elements after all pairs */
} span;

static void put_strides(wk_dispatch *d, const wk_view *view, uint32_t unit) {
    for (int i = 0; i < 4; i++)
        wk_dispatch_u32(d, i < view->rank ? (uint32_t)view->stride[i] * unit : 0);
}

static void bind_rows(wk_dispatch *d, const wk_op *op) {
    wk_dispatch_bind(d, 0, wk_dst(op, 0), WK_FORM_ELEMENTS, true);
    wk_dispatch_bind(d, 1, wk_src(op, 0), WK_FORM_ELEMENTS, false);
}

/* Threads that the span needs. */
static int64_t count_of(const wk_op *op, const span *s) {
    const int64_t *const extent = wk_dst(op, 0)->extent;
    return extent[0] * extent[1] * extent[2] * (s->n + s->n_copied);
}

/* The parameters of wgsl/turn.wgsl without those of turn_of. */
static void put_rows(wk_dispatch *d, const wk_op *op, int64_t half, const span *s) {
    const wk_view *const y = wk_dst(op, 0);
    wk_dispatch_u32(d, (uint32_t)count_of(op, s));
    wk_dispatch_u32(d, (uint32_t)(s->n + s->n_copied));
    wk_dispatch_u32(d, (uint32_t)s->n);
    wk_dispatch_u32(d, (uint32_t)s->first);
    wk_dispatch_u32(d, (uint32_t)half);
    for (int i = 0; i < 3; i++) wk_dispatch_u32(d, 0);
    for (int i = 0; i < 4; i++)
        wk_dispatch_u32(d, d->program.operands[i].form != WK_FORM_ABSENT ? d->first[i] : 0);
    for (int i = 0; i < 4; i++) wk_dispatch_u32(d, (uint32_t)y->extent[i]);
    put_strides(d, y, 1);
    put_strides(d, wk_src(op, 0), 1);
}

static wick_status run(wk_encoder *e, const wk_op *op, const wk_dispatch *d, const span *s) {
    return wk_dispatch_run_n(e, d, ((uint64_t)count_of(op, s) + THREADS - 1) / THREADS);
}

/* Elements of a row that no pair has. In place they are where they belong. */
static int64_t n_copied(const wk_op *op, int64_t half) {
    const wk_view *const y = wk_dst(op, 0), *const x = wk_src(op, 0);
    const bool is_in_place = y->buf == x->buf && y->offset == x->offset;
    return is_in_place ? 0 : y->extent[3] - 2 * half;
}

/* --- By positions --- */

/* What a position turns pair i by, relative to pair 0. */
static double power_of(const wk_op *op, int64_t i) {
    return i == 0 ? 1 : pow(op->p.rope.theta, -2.0 * (double)i / op->p.rope.rotary_dim);
}

/* What it turns pair 0 by, in whole turns. */
static double first_turn(const wk_op *op) { return 1 / (whole_turn * op->p.rope.scale_factor); }

/* Whether products of powers and the first turn are fractions, as fixed point without a whole part
 * needs them; otherwise only what is left of each turn without whole turns is. */
static bool are_fractions(const wk_op *op) {
    return op->p.rope.theta >= 1 && first_turn(op) > 0 && first_turn(op) < 1;
}

static bool accepts_rope(const wk_op *op) {
    if (!wk_webgpu_is_float(wk_src(op, 0)->dtype)) return false;
    const double first = first_turn(op);
    return isfinite(first) && isfinite(first * power_of(op, op->p.rope.rotary_dim / 2));
}

/* x without its whole part, 64 bits of it; 1 becomes the number next to it. */
static void put_fixed(wk_dispatch *d, double x) {
    if (x == 1) {
        wk_dispatch_u32(d, UINT32_MAX);
        wk_dispatch_u32(d, UINT32_MAX);
        return;
    }
    const double shifted = (x - floor(x)) * 0x1p32, upper = floor(shifted);
    /* A tiny x < 0 is rounded to 1 by x - floor(x). */
    wk_dispatch_u32(d, upper < 0x1p32 ? (uint32_t)upper : 0);
    wk_dispatch_u32(d, (uint32_t)((shifted - upper) * 0x1p32));
}

static void put_turns(wk_dispatch *d, const wk_op *op, const span *s) {
    for (int64_t i = 0; i < N_LOW; i++)
        put_fixed(d, i < s->n ? first_turn(op) * power_of(op, s->first + i) : 0);
    for (int64_t i = 0; i < N_HIGH; i++)
        put_fixed(d, i * N_LOW < s->n ? power_of(op, i * N_LOW) : 0);
}

static wick_status rotate(wk_encoder *e, const wk_op *op, const span *s) {
    static const wk_source source = {.name = "rope",
                                     .parts = {wk_wgsl_turn, wk_wgsl_wide, wk_wgsl_rope},
                                     .operands = {"y", "x", "positions"},
                                     .constants = {"IS_INTERLEAVED", "IS_WIDE"}};
    const wk_view *const positions = wk_src(op, 1);
    const bool is_wide = positions->dtype == WICK_I64;
    wk_dispatch d;
    wk_dispatch_begin(&d, &source, 0);
    d.program.constants[0] = op->p.rope.interleaved;
    d.program.constants[1] = is_wide;
    bind_rows(&d, op);
    wk_dispatch_bind(&d, 2, positions, is_wide ? WK_FORM_WORDS : WK_FORM_ELEMENTS, false);
    WK_TRY(wk_dispatch_place(e, &d));
    put_rows(&d, op, op->p.rope.rotary_dim / 2, s);
    put_strides(&d, positions, is_wide ? 2 : 1);
    put_turns(&d, op, s);
    return run(e, op, &d, s);
}

static wick_status encode_rope(wk_encoder *e, const wk_op *op) {
    const int64_t half = op->p.rope.rotary_dim / 2;
    const int64_t most = are_fractions(op) ? N_LOW * N_HIGH : N_LOW;
    span s = {0};
    do {
        s.n = half - s.first < most ? half - s.first : most;
        s.n_copied = s.first + s.n == half ? n_copied(op, half) : 0;
        if (count_of(op, &s) > 0) WK_TRY(rotate(e, op, &s));
        s.first += s.n;
    } while (s.first < half);
    return WICK_OK;
}

const wk_webgpu_kernel wk_webgpu_rope = {
    .base.name = "rope_wgsl",
    .base.code = WK_OP_ROPE,
    .base.accepts = accepts_rope,
    .encode = encode_rope,
};

/* --- By tables --- */

static bool accepts_rope_table(const wk_op *op) {
    for (int i = 0; i < op->n_dst + op->n_src; i++)
        if (!wk_webgpu_is_float(op->view[i].dtype)) return false;
    return true;
}

static wick_status encode_rope_table(wk_encoder *e, const wk_op *op) {
    static const wk_source source = {.name = "rope_table",
                                     .parts = {wk_wgsl_turn, wk_wgsl_rope_table},
                                     .operands = {"y", "x", "cos", "sin"},
                                     .constants = {"IS_INTERLEAVED"}};
    const int64_t half = wk_src(op, 1)->extent[2];
    const span s = {.n = half, .n_copied = n_copied(op, half)};
    if (count_of(op, &s) == 0) return WICK_OK;
    wk_dispatch d;
    wk_dispatch_begin(&d, &source, 0);
    d.program.constants[0] = op->p.rope_table.interleaved;
    bind_rows(&d, op);
    /* Tables of no pair have no bytes that could be bound. */
    for (int i = 1; i < 3; i++)
        wk_dispatch_bind(&d, 1 + i, wk_src(op, half > 0 ? i : 0), WK_FORM_ELEMENTS, false);
    WK_TRY(wk_dispatch_place(e, &d));
    put_rows(&d, op, half, &s);
    put_strides(&d, wk_src(op, 1), 1);
    put_strides(&d, wk_src(op, 2), 1);
    return run(e, op, &d, &s);
}

const wk_webgpu_kernel wk_webgpu_rope_table = {
    .base.name = "rope_table_wgsl",
    .base.code = WK_OP_ROPE_TABLE,
    .base.accepts = accepts_rope_table,
    .encode = encode_rope_table,
};
