/* backend/webgpu/kernels/kernel_heads.c: queries, keys and values of a batch as attention needs
 * them, in one dispatch: norms and rotary embedding, and what goes to the paged cache. The bits are
 * those of the ops one by one. */
#include "backend/webgpu/kernels/rows.h"

#include "core/compiler.h"

enum { THREADS = 64, ROOM_STEP = 64, MOST_ROOM = 1024, BATCH = 2 };
enum { Y, Q, K, V, K_CACHE, V_CACHE, COS, SIN, IN_BATCH, FAULT, Q_NORM, K_NORM, N_OPERANDS };

/* Those of the ops in their order (op.h). */
typedef struct heads {
    const wk_op *q_norm, *k_norm; /* or NULL */
    const wk_op *q_rope, *k_rope, *append;
    wk_view view[N_OPERANDS]; /* q, k and v [row, head, element]; those of the device are missing */
} heads;

/* [1, row, head, element] or [row, head, element] as the latter. */
static bool as_heads(const wk_view *view, wk_view *out) {
    const int skipped = view->rank - 3;
    *out = *view;
    if (skipped < 0 || skipped > 1 || (skipped == 1 && view->extent[0] != 1)) return false;
    out->rank = 3;
    for (int i = 0; i < 3; i++) {
        out->extent[i] = view->extent[i + skipped];
        out->stride[i] = view->stride[i + skipped];
    }
    return true;
}

/* The same elements, in the same order. */
static bool is_same(const wk_view *a, const wk_view *b) {
    wk_view x, y;
    return as_heads(a, &x) && as_heads(b, &y) && wk_view_same(&x, &y);
}

/* Cosines or sines [1, row, pair] as [row, pair]. */
static wk_view as_turns(const wk_view *table) {
    wk_view out = *table;
    out.rank = 2;
    for (int i = 0; i < 2; i++) {
        out.extent[i] = table->extent[i + 1];
        out.stride[i] = table->stride[i + 1];
    }
    return out;
}

static bool is_turn_of(const wk_op *rope, const wk_op *norm) {
    return !norm || is_same(wk_src(rope, 0), wk_dst(norm, 0));
}

static heads heads_of(const wk_op *ops, bool has_norm) {
    const wk_op *const ropes = has_norm ? ops + 2 : ops;
    heads h = {.q_norm = has_norm ? ops : NULL,
               .k_norm = has_norm ? ops + 1 : NULL,
               .q_rope = ropes,
               .k_rope = ropes + 1,
               .append = ropes + 2};
    h.view[V] = *wk_src(h.append, 1);
    h.view[K_CACHE] = wk_webgpu_units(wk_dst(h.append, 0));
    h.view[V_CACHE] = wk_webgpu_units(wk_dst(h.append, 1));
    h.view[COS] = as_turns(wk_src(h.q_rope, 1));
    h.view[SIN] = as_turns(wk_src(h.q_rope, 2));
    h.view[IN_BATCH] = *wk_src(h.append, BATCH);
    return h;
}

static bool find_rows(heads *h) {
    return as_heads(wk_dst(h->q_rope, 0), &h->view[Y]) &&
           as_heads(h->q_norm ? wk_src(h->q_norm, 0) : wk_src(h->q_rope, 0), &h->view[Q]) &&
           as_heads(h->k_norm ? wk_src(h->k_norm, 0) : wk_src(h->k_rope, 0), &h->view[K]);
}

static bool is_head_norm(const wk_op *norm) {
    return !norm || (wk_src(norm, 1)->buf && wk_src(norm, 1)->dtype == WICK_F32);
}

/* Buffers of the operands, and the fault slot. */
static int count_bindings(const heads *h) {
    const wk_buffer *seen[N_OPERANDS];
    int n = 0;
    for (int i = 0; i < N_OPERANDS; i++) {
        const wk_buffer *buf = h->view[i].buf;
        if (i == Q_NORM || i == K_NORM)
            buf = h->q_norm ? wk_src(i == Q_NORM ? h->q_norm : h->k_norm, 1)->buf : NULL;
        int k = 0;
        while (k < n && seen[k] != buf) k++;
        if (buf && k == n) seen[n++] = buf;
    }
    return n + 1;
}

static bool accepts(const wk_op *ops, bool has_norm) {
    heads h = heads_of(ops, has_norm);
    if (!find_rows(&h) || !is_head_norm(h.q_norm) || !is_head_norm(h.k_norm)) return false;
    if (!is_turn_of(h.q_rope, h.q_norm) || !is_turn_of(h.k_rope, h.k_norm)) return false;
    if (!is_same(wk_src(h.append, 0), wk_dst(h.k_rope, 0))) return false;
    for (int i = 1; i < 3; i++)
        if (!wk_view_same(wk_src(h.q_rope, i), wk_src(h.k_rope, i)) ||
            wk_src(h.q_rope, i)->dtype != WICK_F32 || wk_src(h.q_rope, i)->extent[2] == 0)
            return false;
    for (int i = Y; i <= V; i++)
        if (h.view[i].dtype != WICK_F32) return false;
    return h.q_rope->p.rope_table.interleaved == h.k_rope->p.rope_table.interleaved &&
           h.view[K_CACHE].dtype == h.view[V_CACHE].dtype &&
           h.view[Q].extent[0] == h.view[V].extent[0] &&
           h.view[K].extent[1] == h.view[V].extent[1] && h.view[Q].extent[2] <= MOST_ROOM &&
           h.view[V].extent[2] <= MOST_ROOM && count_bindings(&h) <= WK_CORE_BINDINGS;
}

static bool accepts_plain(const wk_op *ops) { return accepts(ops, false); }
static bool accepts_normed(const wk_op *ops) { return accepts(ops, true); }

/* Of elements, of blocks. */
#define SOURCE(items, ...)                                                                         \
    {                                                                                              \
        .name = "heads",                                                                           \
        .parts = {wk_wgsl_heads, wk_wgsl_lanes, wk_wgsl_kv_append_##items},                        \
        .operands = {"y", "q", "k", "v", "k_cache", "v_cache", "cos", "sin", "batch", "fault",     \
                     "q_norm", "k_norm"},                                                          \
        .constants = {"THREADS", "LANES", "ROOM", "HAS_NORM", "IS_INTERLEAVED", "ITEM",            \
                      __VA_ARGS__},                                                                \
    }
static const wk_source sources[2] = {SOURCE(elements, NULL), SOURCE(blocks, "UNITS")};
#undef SOURCE

static void put_strides(wk_dispatch *d, const wk_view *view, int n, uint32_t last) {
    for (int i = 0; i < n; i++) wk_dispatch_u32(d, (uint32_t)view->stride[i]);
    wk_dispatch_u32(d, last);
}

static void put_params(wk_dispatch *d, const heads *h, int64_t units, int64_t n_groups) {
    const wk_batch_layout *const batch = &h->append->p.cached.batch;
    for (int i = Y; i <= V; i++) put_strides(d, &h->view[i], 3, 0);
    for (int i = K_CACHE; i <= V_CACHE; i++)
        put_strides(d, &h->view[i], 3, (uint32_t)(units > 0 ? units : h->view[i].stride[3]));
    for (int i = COS; i <= SIN; i++) put_strides(d, &h->view[i], 1, (uint32_t)h->view[i].stride[1]);
    const uint32_t fresh[] = {0, 0, WK_QK_SMALL, 0}; /* 32 elements side by side are a block */
    for (int i = 0; i < 4; i++) wk_dispatch_u32(d, fresh[i]);
    const int order[] = {Y, Q, K, V, K_CACHE, V_CACHE, IN_BATCH, FAULT, COS, SIN, Q_NORM, K_NORM};
    for (size_t i = 0; i < WK_COUNT(order); i++) wk_dispatch_u32(d, d->first[order[i]]);
    const int64_t numbers[] = {h->view[Q_NORM].stride[0],
                               h->view[K_NORM].stride[0],
                               0,
                               0,
                               n_groups,
                               h->view[Q].extent[1],
                               h->view[K].extent[1],
                               h->view[Q].extent[2],
                               h->view[V].extent[2],
                               h->view[COS].extent[1],
                               batch->block_size,
                               h->view[K_CACHE].extent[0],
                               batch->n_sequences,
                               batch->sequences,
                               batch->slots,
                               (int64_t)h->append->code + 1};
    for (size_t i = 0; i < WK_COUNT(numbers); i++) wk_dispatch_u32(d, (uint32_t)numbers[i]);
    wk_dispatch_f32(d, h->q_norm ? (float)h->q_norm->p.norm.eps : 0);
    wk_dispatch_f32(d, h->k_norm ? (float)h->k_norm->p.norm.eps : 0);
}

static wick_status encode(wk_encoder *e, const wk_op *ops) {
    const bool has_norm = wk_encoder_kernel(e)->code == WK_OPS_NORMED_HEADS;
    heads h = heads_of(ops, has_norm);
    (void)find_rows(&h);
    h.view[FAULT] = *wk_encoder_fault(e);
    for (int i = Q_NORM; i <= K_NORM; i++) /* the text names all */
        h.view[i] = has_norm ? *wk_src(i == Q_NORM ? h.q_norm : h.k_norm, 1) : h.view[COS];
    const int64_t units = wk_webgpu_block_units(wk_dst(h.append, 0)->dtype);
    const int64_t d_most =
        h.view[Q].extent[2] > h.view[V].extent[2] ? h.view[Q].extent[2] : h.view[V].extent[2];
    wk_dispatch d;
    wk_dispatch_begin(&d, &sources[units > 0], 0);
    int32_t *const constants = d.program.constants;
    constants[0] = THREADS;
    constants[1] = has_norm ? (int32_t)wk_rows_of(wk_dst(h.q_norm, 0), &h.view[Q], 2).lanes : 1;
    constants[2] = (int32_t)((d_most + ROOM_STEP - 1) / ROOM_STEP * ROOM_STEP);
    constants[3] = has_norm;
    constants[4] = h.q_rope->p.rope_table.interleaved;
    constants[5] = units > 0 ? WK_QK_SMALL : 1;
    if (units > 0) constants[6] = (int32_t)units;
    for (int i = 0; i < N_OPERANDS; i++)
        wk_dispatch_bind(&d, i, &h.view[i],
                         i == IN_BATCH || i == FAULT ? WK_FORM_WORDS : WK_FORM_ELEMENTS,
                         i == Y || i == K_CACHE || i == V_CACHE || i == FAULT);
    WK_TRY(wk_dispatch_place(e, &d));
    const int64_t n_groups = h.view[Q].extent[0] * (h.view[Q].extent[1] + 2 * h.view[K].extent[1]);
    put_params(&d, &h, units, n_groups);
    return wk_dispatch_run_n(e, &d, (uint64_t)n_groups);
}

const wk_webgpu_kernel wk_webgpu_heads = {
    .base.name = "heads_wgsl",
    .base.code = WK_OPS_HEADS,
    .base.accepts = accepts_plain,
    .encode = encode,
};

const wk_webgpu_kernel wk_webgpu_normed_heads = {
    .base.name = "normed_heads_wgsl",
    .base.code = WK_OPS_NORMED_HEADS,
    .base.accepts = accepts_normed,
    .encode = encode,
};
