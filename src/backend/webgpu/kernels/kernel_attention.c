/* backend/webgpu/kernels/kernel_attention.c: attention, over dense views and over the paged cache:
 * the latter is the former with blocks for batches. wgsl/attention.wgsl says how it computes. */
#include "backend/webgpu/kernels/webgpu_kernel.h"

#include "core/compiler.h"

#include <math.h>

enum { Q, K, V, MASK, BIAS, SINKS, SLOPES }; /* sources of ATTENTION */
enum { BATCH = 3, CACHED_SINKS, CACHED_SLOPES };

enum {
    /* Spans of keys, as wgsl/attention_softmax.wgsl has them. */
    SHORT_SPAN = 128,
    SHORT_SPANS = 32,
    LONG_SPAN = 512,
    SHORT_KEYS = SHORT_SPAN * SHORT_SPANS,
    UNSPLIT_KEYS = 512, /* a second dispatch takes longer than these keys one after the other */
    /* Of a key, of a value: what 16 KiB of shared memory and the registers of a thread hold. */
    MAX_KEY = 640,
    MAX_VALUE = 512,
    MAX_PARTS_BYTES = 16 * 1024 * 1024, /* each plan has its own */
};

typedef struct tuning {
    int most_quads; /* of a workgroup */
    /* Fewer of them than this leave a large GPU without work: spans become workgroups. */
    int64_t enough_workgroups;
    bool is_near; /* wgsl/attention_near.wgsl, where there are subgroups */
} tuning;

enum { ON_PROCESSORS = 0 WK_NOT_IN_PAGES(+3) };
static const tuning tunings[] = {
    {4, 512, false}, {2, 512, false}, {4, 64, false}, WK_NOT_IN_PAGES({4, 16, true})};

/* Options, as wgsl/attention_softmax.wgsl has them: not of the program, so that programs are few.
 */
enum { HAS_MASK = 1, HAS_BIAS = 2, HAS_SINKS = 4, HAS_SLOPES = 8, HAS_SOFTCAP = 16 };

/* Both ops in the same words; views that are absent have no buffer. */
typedef struct attention {
    const wk_op *op;
    wk_view y, q;  /* [batch, head, row, element] */
    wk_view k, v;  /* wk_webgpu_units */
    int64_t units; /* of a block of k and v; 0: floats */
    const wk_view *mask, *bias, *sinks, *slopes;
    const wk_batch_layout *batch; /* NULL: dense */
    float scale, softcap;
    uint32_t window;
    bool is_causal;
    int64_t n_batches, n_groups, heads, n_rows, n_keys; /* heads: of each key head */
    int64_t d, e;
    int quads;             /* of a workgroup */
    int64_t line, n_lines; /* queries of a key head that share workgroups */
    int64_t n_tiles;       /* workgroups of a line */
    int64_t n_spans;       /* 1: each workgroup has all keys */
} attention;

static const wk_view absent;

static int64_t round_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

static int64_t count_spans(int64_t n_keys) {
    if (n_keys <= SHORT_KEYS) return round_up(n_keys, SHORT_SPAN) / SHORT_SPAN;
    return SHORT_SPANS + round_up(n_keys - SHORT_KEYS, LONG_SPAN) / LONG_SPAN;
}

static attention dense_attention(const wk_op *op) {
    const wk_view *const q = wk_src(op, Q), *const k = wk_src(op, K);
    return (attention){
        .op = op,
        .y = *wk_dst(op, 0),
        .q = *q,
        .k = *k,
        .v = *wk_src(op, V),
        .mask = wk_src(op, MASK),
        .bias = wk_src(op, BIAS),
        .sinks = wk_src(op, SINKS),
        .slopes = wk_src(op, SLOPES),
        .scale = (float)op->p.attention.scale,
        .softcap = (float)op->p.attention.softcap,
        .window = op->p.attention.window > 0 ? (uint32_t)op->p.attention.window : 0,
        .is_causal = op->p.attention.causal,
        .n_batches = q->extent[0],
        .n_groups = k->extent[1],
        .heads = k->extent[1] > 0 ? q->extent[1] / k->extent[1] : 0,
        .n_rows = q->extent[2],
        .n_keys = k->extent[2],
        .d = q->extent[3],
        .e = wk_src(op, V)->extent[3],
    };
}

/* [row, head, element] as [1, head, row, element]. */
static wk_view rows_of_heads(const wk_view *view) {
    wk_view out = *view;
    out.rank = 4;
    out.extent[0] = 1;
    out.stride[0] = 0;
    out.extent[1] = view->extent[1];
    out.stride[1] = view->stride[1];
    out.extent[2] = view->extent[0];
    out.stride[2] = view->stride[0];
    out.extent[3] = view->extent[2];
    out.stride[3] = view->stride[2];
    return out;
}

static attention cached_attention(const wk_op *op) {
    const wk_view *const q = wk_src(op, Q), *const k = wk_src(op, K);
    const wk_batch_layout *const batch = &op->p.cached.batch;
    const uint64_t n_keys = (uint64_t)batch->n_blocks * batch->block_size;
    return (attention){
        .op = op,
        .y = rows_of_heads(wk_dst(op, 0)),
        .q = rows_of_heads(q),
        .k = wk_webgpu_units(k),
        .v = wk_webgpu_units(wk_src(op, V)),
        .units = wk_webgpu_block_units(k->dtype),
        .mask = &absent,
        .bias = &absent,
        .sinks = wk_src(op, CACHED_SINKS),
        .slopes = wk_src(op, CACHED_SLOPES),
        .batch = batch,
        .scale = op->p.cached.scale,
        .softcap = op->p.cached.softcap,
        .window = op->p.cached.window > 0 ? (uint32_t)op->p.cached.window : 0,
        .is_causal = !op->p.cached.is_bidirectional,
        .n_batches = 1,
        .n_groups = k->extent[1],
        .heads = q->extent[1] / k->extent[1],
        .n_rows = q->extent[0],
        .n_keys = n_keys < UINT32_MAX ? (int64_t)n_keys : UINT32_MAX,
        .d = q->extent[2],
        .e = wk_src(op, V)->extent[3],
    };
}

/* --- What a program is specialised for --- */

/* Whether elements along the last dimension can be read in fours. */
static bool lies_in_fours(const wk_view *view, int last) {
    if (view->offset % 16 != 0 || view->extent[last] % 4 != 0 || view->stride[last] != 1)
        return false;
    for (int i = 0; i < view->rank; i++)
        if (i != last && view->stride[i] % 4 != 0) return false;
    return view->dtype == WICK_F32 || view->dtype == WICK_F16;
}

/* How keys and values are read. */
typedef enum loads { BY_ELEMENTS, BY_VECTORS, BY_BLOCKS } loads;

static loads loads_of(const attention *a) {
    if (a->units > 0) return BY_BLOCKS;
    const bool has_vectors =
        (lies_in_fours(&a->k, 2) || lies_in_fours(&a->k, 3)) && lies_in_fours(&a->v, 3);
    return has_vectors ? BY_VECTORS : BY_ELEMENTS;
}

static uint32_t options_of(const attention *a) {
    return (a->mask->buf ? HAS_MASK : 0U) | (a->bias->buf ? HAS_BIAS : 0U) |
           (a->sinks->buf ? HAS_SINKS : 0U) | (a->slopes->buf ? HAS_SLOPES : 0U) |
           (a->softcap > 0 ? HAS_SOFTCAP : 0U);
}

/* Elements of a query in shared memory: few sizes, so that programs are few. */
static int64_t query_room(const attention *a) {
    int64_t room = 64;
    while (room < a->d) room *= 2;
    return room < MAX_KEY ? room : MAX_KEY;
}

/* Of the 32 threads of a quad, those that have different elements of the values. */
static int64_t element_lanes(const attention *a) { return a->e <= 64 ? 16 : 32; }

/* Bytes of shared memory of a workgroup with this number of quads. */
static int64_t shared_bytes(const attention *a, int quads) {
    return quads * 16 * (query_room(a) + 128 + 32 + 4 + 1) + 128 * 4 + 16;
}

/* A batch of rows of one sequence each shares no keys: then each row has workgroups of its own. */
static void choose_tiles(wk_encoder *e, attention *a) {
    const bool is_mixed = a->batch && a->batch->n_sequences >= a->batch->n_rows;
    const int64_t per_key_head = a->heads * a->n_rows;
    a->line = is_mixed ? a->heads : per_key_head;
    a->n_lines = is_mixed ? a->n_rows : 1;
    a->quads = tunings[wk_encoder_tuning(e)].most_quads;
    while (a->quads > 1 && (shared_bytes(a, a->quads) > wk_encoder_limits(e)->workgroup_bytes ||
                            2 * (int64_t)a->quads >= a->line))
        a->quads /= 2;
    a->n_tiles = round_up(a->line, 4 * (int64_t)a->quads) / (4 * a->quads);
}

static int64_t count_queries(const attention *a) {
    return a->n_batches * a->n_groups * a->heads * a->n_rows;
}

static int64_t count_workgroups(const attention *a) {
    return a->n_batches * a->n_groups * a->n_lines * a->n_tiles * a->n_spans;
}

/* How a query's keys are shared out does not change its result, see wgsl/attention.wgsl. */
static void choose_spans(wk_encoder *e, attention *a) {
    const uint64_t most = wk_encoder_limits(e)->binding_bytes < MAX_PARTS_BYTES
                              ? wk_encoder_limits(e)->binding_bytes
                              : MAX_PARTS_BYTES;
    a->n_spans = 1;
    if (a->n_keys <= UNSPLIT_KEYS) return;
    if (count_workgroups(a) >= tunings[wk_encoder_tuning(e)].enough_workgroups) return;
    const int64_t n_spans = count_spans(a->n_keys);
    const uint64_t of_span = (uint64_t)(count_queries(a) * (a->e + 2)) * sizeof(float);
    if (n_spans > 1 && (uint64_t)n_spans <= most / of_span) a->n_spans = n_spans;
}

/* --- Parameters --- */

static void put_strides(wk_dispatch *d, const wk_view *view) {
    for (int i = 0; i < 4; i++)
        wk_dispatch_u32(d, view->buf && view->rank == 4 ? (uint32_t)view->stride[i] : 0);
}

static uint32_t vector_stride(const wk_view *view) {
    return view->buf ? (uint32_t)view->stride[0] : 0;
}

/* struct Params; first: of operands, in its order. */
static void put_params(wk_dispatch *d, const attention *a, const uint32_t first[8],
                       int64_t n_workgroups) {
    static const wk_batch_layout none;
    const wk_batch_layout *const b = a->batch ? a->batch : &none;
    put_strides(d, &a->y);
    put_strides(d, &a->q);
    put_strides(d, &a->k);
    put_strides(d, &a->v);
    put_strides(d, a->mask);
    put_strides(d, a->bias);
    for (int i = 0; i < 8; i++) wk_dispatch_u32(d, first[i]);
    const int64_t numbers[] = {
        a->n_groups,    a->heads, a->n_rows,  a->n_keys,  a->d,       a->e,         a->k.extent[2],
        a->k.extent[0], a->line,  a->n_tiles, a->n_lines, a->n_spans, n_workgroups, 32,
    };
    for (size_t i = 0; i < WK_COUNT(numbers); i++) wk_dispatch_u32(d, (uint32_t)numbers[i]);
    wk_dispatch_u32(d, options_of(a));
    wk_dispatch_u32(d, vector_stride(a->sinks));
    wk_dispatch_u32(d, vector_stride(a->slopes));
    wk_dispatch_u32(d, a->window);
    wk_dispatch_f32(d, a->scale);
    wk_dispatch_f32(d, a->softcap);
    wk_dispatch_f32(d, -INFINITY);
    wk_dispatch_u32(d, a->is_causal);
    const uint32_t words[] = {b->positions, b->sequences,   b->lengths,
                              b->tables,    b->n_sequences, b->n_blocks};
    for (size_t i = 0; i < WK_COUNT(words); i++) wk_dispatch_u32(d, words[i]);
    wk_dispatch_u32(d, (uint32_t)a->op->code + 1);
}

/* --- Dispatches --- */

/* An operand that is absent is bound to the queries, as if it were of dtype: the program names it
 * but reads nothing. */
static void bind_optional(wk_dispatch *d, int i, const attention *a, const wk_view *view,
                          wick_dtype dtype) {
    wk_view other = a->q;
    other.dtype = dtype;
    wk_dispatch_bind(d, i, view->buf ? view : &other, WK_FORM_ELEMENTS, false);
}

/* Of dense views or of the cache, with each way to load; e and f: two operands, last: a constant.
 */
#define SOURCE_OF(where, title, rows, mask, loads, e, f, last)                                     \
    {                                                                                              \
        .name = title,                                                                             \
        .parts = {wk_wgsl_attention_softmax, wk_wgsl_attention_rows_##rows,                        \
                  wk_wgsl_attention_##mask, wk_wgsl_attention_##loads, wk_wgsl_attention,          \
                  wk_wgsl_attention_##where},                                                      \
        .operands = {"y", "q", "k", "v", e, f, "sinks", "slopes"},                                 \
        .constants = {"QUADS", "D_ROOM", "E_LANES", "E_CHUNKS", "SPLIT", "ALONG_KEYS", last,       \
                      "WIDTH"},                                                                    \
    }
/* Of neighbours not in pages, which seldom have a driver in software. */
#define SOURCE(...) {SOURCE_OF(far, __VA_ARGS__), WK_NOT_IN_PAGES(SOURCE_OF(near, __VA_ARGS__))}
static const wk_source dense_sources[][2] = {
    [BY_ELEMENTS] = SOURCE("attention", dense, masked, elements, "mask", "bias", "IS_HALF"),
    [BY_VECTORS] = SOURCE("attention", dense, masked, vectors, "mask", "bias", "IS_HALF"),
};
static const wk_source cached_sources[][2] = {
    [BY_ELEMENTS] =
        SOURCE("attention_cached", cached, plain, elements, "batch", "fault", "IS_HALF"),
    [BY_VECTORS] = SOURCE("attention_cached", cached, plain, vectors, "batch", "fault", "IS_HALF"),
    [BY_BLOCKS] = SOURCE("attention_cached", cached, plain, blocks, "batch", "fault", "UNITS"),
};
#undef SOURCE
#undef SOURCE_OF

static void begin_main(const wk_encoder *e, wk_dispatch *d, const attention *a) {
    const wk_source(*const sources)[2] = a->batch ? cached_sources : dense_sources;
    const bool is_near =
        tunings[wk_encoder_tuning(e)].is_near && wk_encoder_has(e, WICK_WEBGPU_SUBGROUPS);
    wk_dispatch_begin(d, &sources[loads_of(a)][is_near], is_near ? WICK_WEBGPU_SUBGROUPS : 0);
    const int64_t lanes = element_lanes(a);
    const int64_t constants[] = {a->quads,
                                 query_room(a),
                                 lanes,
                                 round_up(a->e, 4 * lanes) / (4 * lanes),
                                 a->n_spans > 1,
                                 lies_in_fours(&a->k, 2),
                                 a->units > 0 ? a->units : a->k.dtype == WICK_F16,
                                 !is_near                     ? 1
                                 : wk_encoder_subgroup(e) < 8 ? 4
                                                              : 8};
    for (size_t i = 0; i < WK_COUNT(constants); i++)
        d->program.constants[i] = (int32_t)constants[i];
}

/* The form in which keys and values are bound. count: elements or units in one bound item; places
 * in the source count elements or units. */
typedef struct bound_as {
    wk_form form;
    uint32_t count;
} bound_as;

static bound_as bind_form(const attention *a) {
    switch (loads_of(a)) {
    case BY_VECTORS: return (bound_as){WK_FORM_VECTORS, a->k.dtype == WICK_F16 ? 8 : 4};
    case BY_BLOCKS: return (bound_as){WK_FORM_WORDS, 2};
    default: return (bound_as){WK_FORM_ELEMENTS, 1};
    }
}

/* y: the result, or the parts. */
static wick_status run_main(wk_encoder *e, const attention *a, const wk_view *y) {
    const bound_as keys = bind_form(a);
    wk_dispatch d;
    begin_main(e, &d, a);
    wk_dispatch_bind(&d, 0, y, WK_FORM_ELEMENTS, true);
    wk_dispatch_bind(&d, 1, &a->q, WK_FORM_ELEMENTS, false);
    wk_dispatch_bind(&d, 2, &a->k, keys.form, false);
    wk_dispatch_bind(&d, 3, &a->v, keys.form, false);
    if (a->batch) {
        wk_dispatch_bind(&d, 4, wk_src(a->op, BATCH), WK_FORM_WORDS, false);
        wk_dispatch_bind(&d, 5, wk_encoder_fault(e), WK_FORM_WORDS, true);
    } else {
        bind_optional(&d, 4, a, a->mask, WICK_U8);
        bind_optional(&d, 5, a, a->bias, a->q.dtype);
    }
    bind_optional(&d, 6, a, a->sinks, a->q.dtype);
    bind_optional(&d, 7, a, a->slopes, a->q.dtype);
    WK_TRY(wk_dispatch_place(e, &d));
    uint32_t first[8];
    for (int i = 0; i < 8; i++) first[i] = d.first[i];
    for (int i = 2; i < 4; i++) first[i] *= keys.count;
    if (a->units > 0) { /* where it begins within its word */
        first[2] += (uint32_t)(a->k.offset / 2 % 2);
        first[3] += (uint32_t)(a->v.offset / 2 % 2);
    }
    put_params(&d, a, first, count_workgroups(a));
    return wk_dispatch_run_n(e, &d, (uint64_t)count_workgroups(a));
}

static wick_status run_combine(wk_encoder *e, const attention *a, const wk_view *parts) {
    static const wk_source sources[2] = {
        {.name = "attention_combine",
         .parts = {wk_wgsl_attention_softmax, wk_wgsl_attention_rows_dense,
                   wk_wgsl_attention_combine},
         .operands = {"y", "parts", "sinks"}},
        {.name = "attention_combine",
         .parts = {wk_wgsl_attention_softmax, wk_wgsl_attention_rows_cached,
                   wk_wgsl_attention_combine},
         .operands = {"y", "parts", "sinks", "batch", "fault"}}};
    wk_dispatch d;
    wk_dispatch_begin(&d, &sources[a->batch != NULL], 0);
    wk_dispatch_bind(&d, 0, &a->y, WK_FORM_ELEMENTS, true);
    wk_dispatch_bind(&d, 1, parts, WK_FORM_ELEMENTS, false);
    wk_dispatch_bind(&d, 2, a->sinks->buf ? a->sinks : parts, WK_FORM_ELEMENTS, false);
    if (a->batch) {
        wk_dispatch_bind(&d, 3, wk_src(a->op, BATCH), WK_FORM_WORDS, false);
        wk_dispatch_bind(&d, 4, wk_encoder_fault(e), WK_FORM_WORDS, true);
    }
    WK_TRY(wk_dispatch_place(e, &d));
    const uint32_t batch = a->batch ? d.first[3] : 0, fault = a->batch ? d.first[4] : 0;
    const uint32_t first[8] = {d.first[0], d.first[1], 0, 0, batch, fault, d.first[2], 0};
    put_params(&d, a, first, count_queries(a));
    return wk_dispatch_run_n(e, &d, (uint64_t)count_queries(a));
}

static wick_status encode(wk_encoder *e, attention a) {
    if (wk_view_count(&a.y) == 0) return WICK_OK;
    choose_tiles(e, &a);
    choose_spans(e, &a);
    if (a.n_spans == 1) return run_main(e, &a, &a.y);
    wk_view parts;
    WK_TRY(wk_encoder_temp(e, count_queries(&a) * a.n_spans * (a.e + 2), &parts));
    WK_TRY(run_main(e, &a, &parts));
    return run_combine(e, &a, &parts);
}

static wick_status encode_dense(wk_encoder *e, const wk_op *op) {
    return encode(e, dense_attention(op));
}

static wick_status encode_cached(wk_encoder *e, const wk_op *op) {
    return encode(e, cached_attention(op));
}

static bool is_readable(const wk_view *view) {
    return wk_webgpu_is_float(view->dtype) || wk_webgpu_block_units(view->dtype) > 0;
}

/* integers: the source that is not of floats. */
static bool accepts(const wk_op *op, int integers, int64_t d, int64_t e) {
    for (int i = 0; i < op->n_src; i++)
        if (i != integers && !is_readable(wk_src(op, i))) return false;
    return is_readable(wk_dst(op, 0)) && d <= MAX_KEY && e <= MAX_VALUE;
}

/* Where there is no key head, the zeros are left to the decomposition. */
static bool accepts_dense(const wk_op *op) {
    return wk_src(op, K)->extent[1] > 0 &&
           accepts(op, MASK, wk_src(op, Q)->extent[3], wk_src(op, V)->extent[3]);
}

static bool accepts_cached(const wk_op *op) {
    return accepts(op, BATCH, wk_src(op, Q)->extent[2], wk_dst(op, 0)->extent[2]);
}

const wk_webgpu_kernel wk_webgpu_attention = {
    .base.name = "attention_wgsl",
    .base.code = WK_OP_ATTENTION,
    .base.n_tunings = WK_COUNT(tunings),
    .processor_tuning = ON_PROCESSORS,
    .base.accepts = accepts_dense,
    .encode = encode_dense,
};

const wk_webgpu_kernel wk_webgpu_attention_cached = {
    .base.name = "attention_cached_wgsl",
    .base.code = WK_OP_ATTENTION_CACHED,
    .base.n_tunings = WK_COUNT(tunings),
    .processor_tuning = ON_PROCESSORS,
    .base.accepts = accepts_cached,
    .encode = encode_cached,
};
