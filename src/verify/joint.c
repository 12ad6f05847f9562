/* verify/joint.c: kernels for ops in a row (tensor/join.c) against the kernels of these ops. The
 * same small graph is computed twice on equal inputs: recorded as a plan, whose ops are joined, and
 * op by op. The results must be the same to the bit. */
#include "verify/joint.h"

#include "core/compiler.h"
#include "core/half.h"
#include "core/rng.h"
#include "core/shape.h"
#include "ops/cached.h"
#include "ops/recurrent.h"
#include "tensor/device.h"
#include "tensor/plan.h"

#include <wick/ops.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { MOST_OUT = 4, MOST_BYTES = 1 << 17, BLOCK = 32, PANEL = 16 };

/* A graph on random inputs. */
typedef struct graph {
    wick_device *device;
    wk_rng rng;
    wick_tensor *out[MOST_OUT]; /* what it computes or writes to */
    wick_tensor *weights[2];    /* of no scope */
    int n_out, n_weights;
} graph;

/* --- Inputs --- */

static int64_t one_of(graph *g, int64_t n) { return 1 + wk_rng_below(&g->rng, n); }

/* In [-1, 1). */
static void fill(graph *g, float *values, int64_t n) {
    for (int64_t i = 0; i < n; i++) values[i] = 2 * wk_rng_uniform(&g->rng) - 1;
}

static wick_tensor *floats(graph *g, wick_shape shape) {
    int64_t n;
    wick_tensor *x = NULL;
    if (!wk_shape_count(&shape, &n)) return NULL;
    const size_t size = (size_t)n * sizeof(float);
    float *const values = wk_alloc(&g->device->heap, size);
    if (!values) return NULL;
    fill(g, values, n);
    x = wick_tensor_from_data(g->device, WICK_F32, shape, values, size);
    wk_free(&g->device->heap, values, size);
    return x;
}

enum { Q8_0_BYTES = 34 };

/* Blocks of q8_0: weights below 1. */
static void fill_blocks(graph *g, unsigned char *blocks, int64_t n) {
    for (int64_t b = 0; b < n; b++, blocks += Q8_0_BYTES) {
        const uint16_t step = wk_f32_to_f16(wk_rng_uniform(&g->rng) / 128);
        memcpy(blocks, &step, sizeof step);
        for (int i = sizeof step; i < Q8_0_BYTES; i++)
            blocks[i] = (unsigned char)wk_rng_below(&g->rng, 256);
    }
}

/* Rows of q8_0 or f32 in the layout that the device wants, side by side with those of neighbour. */
static wick_tensor *weight_of(graph *g, wick_dtype dtype, wick_shape shape,
                              const wick_tensor *neighbour, int n_beside) {
    enum { MOST_ELEMENTS = 1 << 16 };
    wick_device *const device = g->device;
    int64_t n;
    if (!wk_shape_count(&shape, &n) || n > MOST_ELEMENTS) return NULL;
    const size_t size =
        (size_t)(dtype == WICK_F32 ? n * (int64_t)sizeof(float) : n / BLOCK * Q8_0_BYTES);
    const uint64_t room = wk_weight_bytes(device, dtype, &shape, WK_USE_LINEAR);
    const wk_weight_desc desc = {.dtype = dtype,
                                 .shape = shape,
                                 .uses = WK_USE_LINEAR,
                                 .neighbour = neighbour,
                                 .room = n_beside > 1 ? (uint64_t)n_beside * room : 0,
                                 .begin = neighbour ? room : 0};
    wk_weight_store none = {.device = device};
    bool in_place;
    void *const blocks = wk_alloc(&device->heap, size);
    wick_tensor *const w = blocks ? wk_weight_new(device, &desc, &none, &in_place) : NULL;
    if (w) {
        if (dtype == WICK_F32)
            fill(g, blocks, n);
        else
            fill_blocks(g, blocks, n / BLOCK);
        (void)wk_weight_upload(w, 0, n / shape.extent[shape.rank - 1], blocks);
    }
    wk_free(&device->heap, blocks, size);
    if (w) g->weights[g->n_weights++] = w;
    return w;
}

static wick_tensor *weight(graph *g, wick_shape shape, const wick_tensor *neighbour, int n_beside) {
    return weight_of(g, WICK_Q8_0, shape, neighbour, n_beside);
}

static wick_tensor *words(graph *g, wick_shape shape, const uint32_t *values) {
    int64_t n;
    (void)wk_shape_count(&shape, &n);
    return wick_tensor_from_data(g->device, WICK_U32, shape, values, (size_t)n * sizeof *values);
}

/* A batch descriptor of up to four rows of the only sequence. */
enum { POSITIONS = 0, SEQUENCES = 4, SLOTS = 8, STATES = 12, LENGTHS, TABLES, WORDS = 16 };

static wk_batch_layout layout_of(int64_t rows) {
    return (wk_batch_layout){.n_rows = (uint32_t)rows,
                             .n_sequences = 1,
                             .n_blocks = 1,
                             .block_size = 16,
                             .positions = POSITIONS,
                             .sequences = SEQUENCES,
                             .slots = SLOTS,
                             .states = STATES,
                             .lengths = LENGTHS,
                             .tables = TABLES,
                             .n_words = WORDS};
}

static wick_tensor *batch_of(graph *g, int64_t rows) {
    uint32_t values[WORDS] = {0};
    const uint32_t first = (uint32_t)wk_rng_below(&g->rng, 8);
    for (uint32_t i = 0; i < (uint32_t)rows; i++)
        values[POSITIONS + i] = values[SLOTS + i] = first + i;
    values[LENGTHS] = first + (uint32_t)rows;
    return words(g, WICK_SHAPE(WORDS), values);
}

static void give(graph *g, wick_tensor *y) {
    assert(g->n_out < MOST_OUT);
    g->out[g->n_out++] = y;
}

/* --- Graphs, each in two parts: inputs, and what is recorded --- */

enum { MOST_INPUTS = 10 };

/* What a graph is made of: its inputs, and sizes. */
typedef struct inputs {
    wick_tensor *of[MOST_INPUTS];
    int64_t rows;
    uint32_t fn;
} inputs;

static void make_gated(graph *g, inputs *in) {
    const int64_t n = PANEL * one_of(g, 3), k = BLOCK * one_of(g, 3);
    in->of[0] = floats(g, WICK_SHAPE(in->rows, k));
    in->of[1] = weight(g, WICK_SHAPE(2 * n, k), NULL, 1);
    in->of[2] = in->fn % 2 ? floats(g, WICK_SHAPE(2 * n)) : NULL;
}

static wick_tensor *gated(const inputs *in, wick_tensor *gate, wick_tensor *up) {
    return in->fn < 2 ? wick_swiglu(gate, up) : wick_swiglu_clamped(gate, up, 1.5, 1);
}

static void run_gated(graph *g, const inputs *in) {
    wick_tensor *const y = wick_linear(in->of[0], in->of[1], in->of[2]);
    const int64_t n = y ? wick_tensor_shape(y).extent[1] / 2 : 0;
    give(g, gated(in, wick_narrow(y, 1, 0, n), wick_narrow(y, 1, n, n)));
}

/* Of rows of n. */
static void make_sum_and_norms(graph *g, inputs *in, int64_t n) {
    for (int i = 0; i < 2; i++) in->of[i] = floats(g, WICK_SHAPE(in->rows, n));
    for (int i = 2; i < 4; i++) in->of[i] = floats(g, WICK_SHAPE(n));
}

/* A product follows the norm. */
static void make_norms(graph *g, inputs *in) {
    const int64_t n = BLOCK * one_of(g, 40);
    make_sum_and_norms(g, in, n);
    in->of[4] = weight(g, WICK_SHAPE(PANEL, n), NULL, 1);
}

/* The norm of a sum with x: the norm. */
static wick_tensor *add_and_norm(graph *g, const inputs *in, wick_tensor *x) {
    wick_tensor *const sum = wick_add(in->of[0], x);
    wick_tensor *const y = wick_rms_norm(sum, in->of[2], 1e-5);
    give(g, sum);
    give(g, y);
    return y;
}

static void run_add_norm(graph *g, const inputs *in) {
    give(g, wick_linear(add_and_norm(g, in, in->of[1]), in->of[4], NULL));
}

static void run_norm_add_norm(graph *g, const inputs *in) {
    wick_tensor *const x = wick_rms_norm(in->of[1], in->of[3], 1e-6);
    give(g, wick_linear(add_and_norm(g, in, x), in->of[4], NULL));
}

static void make_mix(graph *g, inputs *in) {
    const int64_t n = BLOCK * one_of(g, 16), k = one_of(g, 20);
    make_sum_and_norms(g, in, n);
    in->of[4] = weight(g, WICK_SHAPE(PANEL, n), NULL, 1);
    in->of[1] = floats(g, WICK_SHAPE(in->rows, k));
    in->of[3] = floats(g, WICK_SHAPE(in->rows, k, n));
}

static void run_mix_add_norm(graph *g, const inputs *in) {
    wick_tensor *const x = wick_squeeze(wick_matmul(wick_unsqueeze(in->of[1], 1), in->of[3]), 1);
    give(g, wick_linear(add_and_norm(g, in, x), in->of[4], NULL));
}

static void make_route(graph *g, inputs *in) {
    const int64_t n = in->fn == 3 ? one_of(g, 16) : BLOCK * one_of(g, 16);
    const int64_t experts = 15 + one_of(g, 113);
    make_sum_and_norms(g, in, n);
    in->of[5] = weight_of(g, WICK_F32, WICK_SHAPE(experts, n), NULL, 1);
    in->of[6] = in->fn % 2 ? floats(g, WICK_SHAPE(experts)) : NULL;
}

static wick_tensor *logits_of_norm(graph *g, const inputs *in) {
    return wick_linear(add_and_norm(g, in, in->of[1]), in->of[5], in->of[6]);
}

static void run_route(graph *g, const inputs *in) {
    wick_tensor *ids = NULL;
    wick_tensor *const chosen = wick_top_k(logits_of_norm(g, in), 1 + 5 * (int64_t)in->fn, 1, &ids);
    give(g, wick_softmax(chosen, 1));
    give(g, ids);
}

static wick_tensor *choose_of_all(graph *g, const inputs *in) {
    wick_tensor *ids = NULL;
    wick_tensor *const all = wick_softmax(logits_of_norm(g, in), 1);
    wick_tensor *const chosen = wick_top_k(all, 1 + 5 * (int64_t)in->fn, 1, &ids);
    give(g, ids);
    return chosen;
}

static void run_route_all(graph *g, const inputs *in) { give(g, choose_of_all(g, in)); }

static void run_route_shares(graph *g, const inputs *in) {
    wick_tensor *const chosen = choose_of_all(g, in);
    give(g, wick_div(chosen, wick_sum(chosen, 1, (const int[]){1}, true)));
}

/* Operands of one kind are parts of one tensor: a kernel has few bindings. */
static void make_heads(graph *g, inputs *in) {
    const int64_t heads = one_of(g, 3), keys = one_of(g, 2), dim = 8 * one_of(g, 5);
    wick_tensor *const rows = floats(g, WICK_SHAPE(in->rows, heads + 2 * keys, dim));
    wick_tensor *const turns = floats(g, WICK_SHAPE(in->rows, dim));
    wick_tensor *const norms = floats(g, WICK_SHAPE(2 * dim));
    in->of[0] = wick_narrow(rows, 1, 0, heads);
    for (int i = 1; i < 3; i++) in->of[i] = wick_narrow(rows, 1, heads + (i - 1) * keys, keys);
    for (int i = 0; i < 2; i++) in->of[3 + i] = wick_narrow(turns, 1, i * dim / 2, dim / 2);
    in->of[5] = floats(g, WICK_SHAPE(2, keys, 16, dim));
    for (int i = 0; i < 2; i++) in->of[6 + i] = wick_narrow(norms, 0, i * dim, dim);
    in->of[8] = batch_of(g, in->rows);
}

static void turn_heads(graph *g, const inputs *in, wick_tensor *q, wick_tensor *k) {
    const wk_params params = {.cached.batch = layout_of(in->rows)};
    const bool is_interleaved = in->fn % 2 != 0;
    q = wick_rope_table(q, in->of[3], in->of[4], is_interleaved, WICK_ROPE_BTHD);
    k = wick_rope_table(k, in->of[3], in->of[4], is_interleaved, WICK_ROPE_BTHD);
    wick_tensor *const k_cache = wick_narrow(in->of[5], 0, 0, 1);
    wick_tensor *const v_cache = wick_narrow(in->of[5], 0, 1, 1);
    (void)wk_kv_append_cached(k_cache, v_cache, (wk_kv_rows){k, in->of[2]}, in->of[8], &params);
    give(g, q);
    give(g, in->of[5]);
}

static void run_heads(graph *g, const inputs *in) { turn_heads(g, in, in->of[0], in->of[1]); }

static void run_normed_heads(graph *g, const inputs *in) {
    turn_heads(g, in, wick_rms_norm(in->of[0], in->of[6], 1e-5),
               wick_rms_norm(in->of[1], in->of[7], 1e-6));
}

static void make_conv(graph *g, inputs *in) {
    const int64_t n = one_of(g, 100), taps = 2 + wk_rng_below(&g->rng, 3);
    in->of[0] = floats(g, WICK_SHAPE(in->rows, n));
    in->of[1] = floats(g, WICK_SHAPE(n, taps));
    in->of[2] = in->fn % 2 ? floats(g, WICK_SHAPE(n)) : NULL;
    in->of[3] = floats(g, WICK_SHAPE(1, taps - 1, n));
    in->of[4] = batch_of(g, in->rows);
}

static void run_conv(graph *g, const inputs *in) {
    const wk_params params = {.conv.batch = layout_of(in->rows)};
    give(g,
         wick_silu(wk_causal_conv(in->of[0], in->of[1], in->of[2], in->of[3], in->of[4], &params)));
    give(g, in->of[3]);
}

/* A scan of one head as Mamba has it, or of several as Mamba 2 has. */
static void make_scan(graph *g, inputs *in) {
    const int64_t heads = in->fn % 2 ? one_of(g, 3) : 1, dim = one_of(g, 40), n = one_of(g, 40);
    const int64_t rows = in->rows;
    wick_tensor *const all = floats(g, WICK_SHAPE(rows, 2, heads, dim));
    in->of[0] = wick_squeeze(wick_narrow(all, 1, 0, 1), 1);
    in->of[1] = wick_squeeze(wick_narrow(all, 1, 1, 1), 1);
    const int64_t own = in->fn % 2 ? 1 : dim; /* or of all channels of a head */
    in->of[2] = wick_expand(floats(g, WICK_SHAPE(rows, heads, own)), WICK_SHAPE(rows, heads, dim));
    in->of[3] =
        wick_expand(floats(g, WICK_SHAPE(heads, own, own == 1 ? 1 : n)), WICK_SHAPE(heads, dim, n));
    in->of[4] = floats(g, WICK_SHAPE(rows, 2, 1, n));
    in->of[5] = floats(g, WICK_SHAPE(1, heads, n, dim));
    in->of[6] = batch_of(g, rows);
    in->of[7] = floats(g, WICK_SHAPE(heads, own));
}

static void run_scan(graph *g, const inputs *in) {
    const wk_params params = {.scan = {.scale = 1, .batch = layout_of(in->rows)}};
    const wk_scan_inputs rows = {in->of[0], in->of[2], in->of[3], in->of[4]};
    wick_tensor *const y = wk_scan(&rows, in->of[5], in->of[6], &params);
    give(g, gated(in, in->of[1], wick_add(y, wick_mul(in->of[0], in->of[7]))));
    give(g, in->of[5]);
}

static void make_router(graph *g, inputs *in) {
    in->of[0] = floats(g, WICK_SHAPE(in->rows, 16 + one_of(g, 200)));
}

static void run_router(graph *g, const inputs *in) {
    wick_tensor *ids = NULL;
    give(g, wick_softmax(wick_top_k(in->of[0], 1 + 3 * (int64_t)in->fn, 1, &ids), 1));
    give(g, ids);
}

static void make_experts(graph *g, inputs *in) {
    enum { EXPERTS = 4, USED = 2 };
    const int64_t n = PANEL * one_of(g, 2), k = BLOCK * one_of(g, 2);
    uint32_t ids[USED * 4];
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        ids[i] = (uint32_t)wk_rng_below(&g->rng, EXPERTS);
    in->of[0] = floats(g, WICK_SHAPE(in->rows, k));
    in->of[1] = weight(g, WICK_SHAPE(EXPERTS, n, k), NULL, 2);
    in->of[2] = weight(g, WICK_SHAPE(EXPERTS, n, k), in->of[1], 2);
    in->of[3] = words(g, WICK_SHAPE(in->rows, USED), ids);
}

static void run_experts(graph *g, const inputs *in) {
    wick_tensor *const gate = wick_linear_experts(in->of[0], in->of[1], NULL, in->of[3]);
    wick_tensor *const up = wick_linear_experts(in->of[0], in->of[2], NULL, in->of[3]);
    give(g, gated(in, gate, up));
}

static const struct {
    wk_opcode code;
    void (*make)(graph *g, inputs *in);
    void (*run)(graph *g, const inputs *in);
} rules[] = {
    {WK_OPS_GATED, make_gated, run_gated},
    {WK_OPS_ADD_NORM, make_norms, run_add_norm},
    {WK_OPS_NORM_ADD_NORM, make_norms, run_norm_add_norm},
    {WK_OPS_MIX_ADD_NORM, make_mix, run_mix_add_norm},
    {WK_OPS_ROUTE, make_route, run_route},
    {WK_OPS_ROUTE_ALL, make_route, run_route_all},
    {WK_OPS_ROUTE_SHARES, make_route, run_route_shares},
    {WK_OPS_HEADS, make_heads, run_heads},
    {WK_OPS_NORMED_HEADS, make_heads, run_normed_heads},
    {WK_OPS_CONV_SILU, make_conv, run_conv},
    {WK_OPS_SCAN_GATED, make_scan, run_scan},
    {WK_OPS_TOP_K_SOFTMAX, make_router, run_router},
    {WK_OPS_EXPERTS_GATED, make_experts, run_experts},
};

/* --- A check --- */

struct wk_joint_check {
    wick_device *device;
    uint64_t seed, n_cases, n_done; /* of a rule */
    size_t turn;                    /* two of each rule: of exact and of fast math */
    const wk_kernel *kernel;        /* that computes the rule's ops; NULL: none, so far */
    bool is_apart;                  /* the second computation of the case */
    wk_plan_pool *pool;
    wk_plan *plan;
    wick_reading *reading[MOST_OUT];
    size_t bytes[MOST_OUT];
    int n_out;
    unsigned char *results[2]; /* [MOST_BYTES], of both computations; n_bytes of them count */
    size_t n_bytes;
};

wk_joint_check *wk_joint_check_start(wick_device *device, uint64_t seed, uint64_t n_cases) {
    wk_joint_check *const c = wk_alloc_zeroed(&device->heap, sizeof *c);
    if (!c) return NULL;
    *c = (wk_joint_check){.device = device, .seed = seed, .n_cases = n_cases};
    for (int i = 0; i < 2; i++) c->results[i] = wk_alloc_zeroed(&device->heap, MOST_BYTES);
    if (c->results[0] && c->results[1]) return c;
    wk_joint_check_end(c);
    return NULL;
}

static void drop_plan(wk_joint_check *c) {
    wk_plan_free(c->plan);
    if (c->pool) wk_plan_pool_free(c->pool);
    c->plan = NULL;
    c->pool = NULL;
}

void wk_joint_check_end(wk_joint_check *c) {
    if (!c) return;
    for (int i = 0; i < c->n_out; i++) (void)wick_read_finish(c->reading[i], NULL, 0);
    drop_plan(c);
    for (int i = 0; i < 2; i++) wk_free(&c->device->heap, c->results[i], MOST_BYTES);
    wk_free(&c->device->heap, c, sizeof *c);
}

static wick_status run_as_plan(wk_joint_check *c, size_t rule, graph *g, const inputs *in) {
    WK_TRY(wk_plan_pool_make(c->device, &c->pool));
    WK_TRY(wk_plan_begin(c->device, c->pool));
    rules[rule].run(g, in);
    WK_TRY(wk_plan_end(c->device, g->out, (size_t)g->n_out, &c->plan));
    return wk_plan_run(c->plan);
}

/* The graph of the next case, as a plan or op by op, and what will be compared of it. */
static wick_status compute(wk_joint_check *c) {
    wick_device *const device = c->device;
    const wick_math math = device->desc.math;
    const size_t rule = c->turn / 2;
    graph g = {.device = device, .rng = {.seed = c->seed + c->n_done, .stream = rule}};
    device->desc.math = c->turn % 2 == 0 ? WICK_MATH_EXACT : WICK_MATH_FAST;
    const wick_scope scope = wick_scope_begin(device);
    inputs in = {.rows = one_of(&g, 3), .fn = (uint32_t)wk_rng_below(&g.rng, 4)};
    rules[rule].make(&g, &in);
    wick_status status = WICK_OK;
    if (c->is_apart)
        rules[rule].run(&g, &in);
    else
        status = run_as_plan(c, rule, &g, &in);
    if (c->plan && !c->kernel) c->kernel = wk_plan_joint_kernel(c->plan, rules[rule].code);
    for (int i = 0; i < g.n_out && status == WICK_OK; i++) {
        status = wick_read_start(g.out[i], &c->reading[i]);
        if (status == WICK_OK) c->bytes[c->n_out++] = wick_tensor_bytes(g.out[i]);
    }
    wick_scope_end(scope);
    device->desc.math = math;
    for (int i = 0; i < g.n_weights; i++) wick_release(g.weights[i]);
    return status;
}

/* WICK_PENDING until all has been read. */
static wick_status collect(wk_joint_check *c) {
    unsigned char *const results = c->results[c->is_apart];
    for (int i = 0; i < c->n_out; i++)
        if (wick_read_poll(c->reading[i]) == WICK_PENDING) return WICK_PENDING;
    wick_status status = WICK_OK;
    c->n_bytes = 0;
    for (int i = 0; i < c->n_out; i++) {
        assert(c->bytes[i] <= MOST_BYTES - c->n_bytes);
        const wick_status read = wick_read_finish(c->reading[i], results + c->n_bytes, c->bytes[i]);
        if (status == WICK_OK) status = read;
        c->n_bytes += c->bytes[i];
    }
    c->n_out = 0;
    drop_plan(c);
    return status;
}

static wick_status next_rule(wk_joint_check *c, wick_status status) {
    c->is_apart = false;
    c->n_done = 0;
    c->turn++;
    return status;
}

static bool is_asked_for(const wk_joint_check *c, const char *glob) {
    return c->kernel && wk_str_matches(wk_str_of(glob), wk_str_of(c->kernel->name));
}

wick_status wk_joint_check_step(wk_joint_check *c, const char *glob, const wk_kernel **kernel,
                                wk_verify_report *report) {
    *kernel = NULL;
    if (c->turn == 2 * WK_COUNT(rules)) return WICK_ERR_NOT_FOUND;
    if (c->n_out == 0) {
        if (c->n_done == 0 && !c->is_apart) c->kernel = NULL;
        const wick_status status = compute(c);
        *kernel = c->kernel;
        return status == WICK_OK ? WICK_PENDING : next_rule(c, status);
    }
    const wick_status status = collect(c);
    *kernel = is_asked_for(c, glob) ? c->kernel : NULL;
    *report = (wk_verify_report){.n_cases = (int64_t)c->n_done, .seed = c->seed + c->n_done};
    if (status != WICK_OK) return status == WICK_PENDING ? status : next_rule(c, status);
    if (!*kernel) return next_rule(c, WICK_OK);
    c->is_apart = !c->is_apart;
    if (c->is_apart) return WICK_PENDING;
    report->n_cases = (int64_t)++c->n_done;
    size_t at = 0;
    while (at < c->n_bytes && c->results[0][at] == c->results[1][at]) at++;
    if (at < c->n_bytes) {
        snprintf(report->failure, sizeof report->failure,
                 "other bits than the ops one by one, from byte %zu of %zu on", at, c->n_bytes);
        return next_rule(c, WICK_ERR_MISMATCH);
    }
    return c->n_done < c->n_cases ? WICK_PENDING : next_rule(c, WICK_OK);
}
