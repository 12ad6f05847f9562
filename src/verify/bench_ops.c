/* verify/bench_ops.c: operations as models have them, for timing: dense, and of these sizes. */
#include "verify/case.h"

#include "core/compiler.h"

#include <math.h>

enum { BLOCK_SIZE = 32 };

/* The rows are the last ones of k keys. */
static void dense_attention(wk_case *c, const wk_bench_sizes *s) {
    const int64_t queries[4] = {1, s->heads, s->m, s->n}, keys[4] = {1, s->key_heads, s->k, s->n};
    for (int i = 0; i < 4; i++) (void)wk_case_dense(c, i, WICK_F32, 4, i < 2 ? queries : keys);
    c->op.p.attention.scale = 1 / sqrt((double)s->n);
    c->op.p.attention.causal = true;
}

/* One sequence of n_keys, of which the rows are the last ones. */
static wk_batch_layout one_sequence(int64_t n_rows, int64_t n_keys) {
    const uint32_t rows = (uint32_t)n_rows;
    wk_batch_layout b = {
        .n_rows = rows,
        .n_sequences = 1,
        .n_blocks = (uint32_t)n_keys / BLOCK_SIZE,
        .block_size = BLOCK_SIZE,
        .positions = rows,
        .sequences = 2 * rows,
        .slots = 3 * rows,
        .outputs = 4 * rows,
        .lengths = 4 * rows,
        .states = 4 * rows + 1,
        .tables = 4 * rows + 2,
    };
    b.n_words = b.tables + b.n_blocks;
    return b;
}

/* The caches at operands `caches`, and as many rows of keys and values, or queries, at `rows`. */
static void dense_caches(wk_case *c, const wk_bench_sizes *s, int caches, int rows,
                         int64_t n_heads) {
    wk_batch_layout *const b = &c->op.p.cached.batch;
    *b = one_sequence(s->m, s->k);
    c->op.p.cached.scale = 1 / sqrtf((float)s->n);
    const int64_t cache[4] = {b->n_blocks, s->key_heads, BLOCK_SIZE, s->n};
    const int64_t words = b->n_words, row[3] = {s->m, n_heads, s->n};
    for (int i = 0; i < 2; i++) {
        (void)wk_case_dense(c, caches + i, WICK_F16, 4, cache);
        (void)wk_case_dense(c, rows + i, WICK_F32, 3, row);
    }
    /* Keys lie transposed, as model/state.c lays them. */
    wk_view *const k_cache = &c->op.view[caches];
    k_cache->stride[2] = 1;
    k_cache->stride[3] = BLOCK_SIZE;
    (void)wk_case_dense(c, 4, WICK_U32, 1, &words);
}

static void dense_cached(wk_case *c, const wk_bench_sizes *s) {
    dense_caches(c, s, 2, 0, s->heads);
}

static void dense_append(wk_case *c, const wk_bench_sizes *s) {
    dense_caches(c, s, 0, 2, s->key_heads);
}

/* The delta rule; heads as wide as they have numbers. */
static void dense_scan(wk_case *c, const wk_bench_sizes *s) {
    const int64_t x[3] = {s->m, s->heads, s->n}, bc[4] = {s->m, 2, s->key_heads, s->n};
    const int64_t state[4] = {1, s->heads, s->n, s->n};
    c->op.p.scan.fn = WK_SCAN_DELTA;
    c->op.p.scan.scale = 1 / sqrtf((float)s->n);
    c->op.p.scan.batch = one_sequence(s->m, s->k);
    const int64_t words = c->op.p.scan.batch.n_words;
    for (int i = 0; i < 5; i++) (void)wk_case_dense(c, i, WICK_F32, 3, x);
    (void)wk_case_dense(c, 1, WICK_F32, 4, state);
    (void)wk_case_dense(c, 5, WICK_F32, 4, bc);
    (void)wk_case_dense(c, 6, WICK_U32, 1, &words);
}

static void dense_causal_conv(wk_case *c, const wk_bench_sizes *s) {
    enum { TAPS = 4 };
    const int64_t x[2] = {s->m, s->n}, weight[2] = {s->n, TAPS}, state[3] = {1, TAPS - 1, s->n};
    c->op.p.conv.batch = one_sequence(s->m, s->k);
    const int64_t words = c->op.p.conv.batch.n_words;
    (void)wk_case_dense(c, 0, WICK_F32, 2, x);
    (void)wk_case_dense(c, 1, WICK_F32, 3, state);
    (void)wk_case_dense(c, 2, WICK_F32, 2, x);
    (void)wk_case_dense(c, 3, WICK_F32, 2, weight);
    (void)wk_case_dense(c, 5, WICK_U32, 1, &words);
}

static void rows_of(wk_case *c, int i, wick_dtype dtype, const wk_bench_sizes *s) {
    (void)wk_case_dense(c, i, dtype, 2, (const int64_t[]){s->m, s->n});
}

static void dense_alike(wk_case *c, const wk_bench_sizes *s) {
    for (int i = 0; i < c->op.n_dst + c->op.n_src; i++) rows_of(c, i, WICK_F32, s);
}

static void dense_reduce(wk_case *c, const wk_bench_sizes *s) {
    (void)wk_case_dense(c, 0, WICK_U32, 1, &s->m);
    rows_of(c, 1, WICK_F32, s);
}

static void dense_argsort(wk_case *c, const wk_bench_sizes *s) {
    rows_of(c, 0, WICK_U32, s);
    rows_of(c, 1, WICK_F32, s);
}

static void dense_compare(wk_case *c, const wk_bench_sizes *s) {
    dense_alike(c, s);
    rows_of(c, 0, WICK_U8, s);
}

static void dense_where(wk_case *c, const wk_bench_sizes *s) {
    dense_alike(c, s);
    rows_of(c, 1, WICK_U8, s);
}

/* tanh(a b + a) twice over: 8 steps. */
static void dense_chain(wk_case *c, const wk_bench_sizes *s) {
    wk_op *const op = &c->op;
    wk_op step = {.code = WK_OP_BINARY, .n_dst = 1, .n_src = 2};
    op->n_dst = 1;
    op->n_src = 2;
    dense_alike(c, s);
    for (int i = 0; i < 3; i++) step.view[i] = op->view[i];
    for (uint8_t last = 0; op->p.chain.n_steps < 8; last = (uint8_t)(1 + op->p.chain.n_steps)) {
        const uint8_t next = (uint8_t)(2 + op->p.chain.n_steps);
        step.code = WK_OP_BINARY;
        step.n_src = 2;
        step.p.binary = WK_BINARY_MUL;
        (void)wk_chain_append(&op->p.chain, &step, (const uint8_t[]){last, 1});
        step.p.binary = WK_BINARY_ADD;
        (void)wk_chain_append(&op->p.chain, &step, (const uint8_t[]){next, 0});
        step.code = WK_OP_UNARY;
        step.n_src = 1;
        step.p.unary.fn = WK_UNARY_TANH;
        (void)wk_chain_append(&op->p.chain, &step, (const uint8_t[]){(uint8_t)(next + 1)});
        step.p.unary.fn = WK_UNARY_ABS;
        (void)wk_chain_append(&op->p.chain, &step, (const uint8_t[]){(uint8_t)(next + 2)});
    }
    op->p.chain.result[0] = 7;
}

/* 3 x 3 by 1 with padding: y and x are [m, heads, 1, n, n]. */
static void dense_pool(wk_case *c, const wk_bench_sizes *s) {
    const int64_t extent[WK_WINDOW_RANK] = {s->m, s->heads, 1, s->n, s->n};
    for (int i = 0; i < 2; i++) (void)wk_case_dense(c, i, WICK_F32, WK_WINDOW_RANK, extent);
    c->op.p.pool.windows = (wk_window_shape){.kernel = {1, 3, 3},
                                             .stride = {1, 1, 1},
                                             .dilation = {1, 1, 1},
                                             .before = {0, 1, 1},
                                             .after = {0, 1, 1}};
}

/* The same with heads filters. */
static void dense_convolution(wk_case *c, const wk_bench_sizes *s) {
    const int64_t weight[WK_WINDOW_RANK] = {s->heads, s->heads, 1, 3, 3};
    dense_pool(c, s);
    c->op.p.windows = c->op.p.pool.windows;
    (void)wk_case_dense(c, 2, WICK_F32, WK_WINDOW_RANK, weight);
}

static void dense_norm(wk_case *c, const wk_bench_sizes *s) {
    dense_alike(c, s);
    for (int i = 2; i < c->op.n_dst + c->op.n_src; i++)
        (void)wk_case_dense(c, i, WICK_F32, 1, &s->n);
    c->op.p.norm.eps = 1e-5;
}

static void dense_heads(wk_case *c, const wk_bench_sizes *s) {
    for (int i = 0; i < 2; i++)
        (void)wk_case_dense(c, i, WICK_F32, 4, (const int64_t[]){1, s->m, s->heads, s->n});
}

static void dense_rope(wk_case *c, const wk_bench_sizes *s) {
    dense_heads(c, s);
    (void)wk_case_dense(c, 2, WICK_U32, 2, (const int64_t[]){1, s->m});
    c->op.p.rope.theta = 10000;
    c->op.p.rope.scale_factor = 1;
    c->op.p.rope.rotary_dim = (int)s->n;
}

static void dense_rope_table(wk_case *c, const wk_bench_sizes *s) {
    dense_heads(c, s);
    for (int i = 2; i < 4; i++)
        (void)wk_case_dense(c, i, WICK_F32, 3, (const int64_t[]){1, s->m, s->n / 2});
}

static void dense_matmul(wk_case *c, const wk_bench_sizes *s) {
    rows_of(c, 0, WICK_F32, s);
    (void)wk_case_dense(c, 1, WICK_F32, 2, (const int64_t[]){s->m, s->k});
    (void)wk_case_dense(c, 2, WICK_F32, 2, (const int64_t[]){s->k, s->n});
}

/* Without the weight, which depends on who times it. */
static void dense_linear(wk_case *c, const wk_bench_sizes *s) {
    rows_of(c, 0, WICK_F32, s);
    (void)wk_case_dense(c, 1, WICK_F32, 2, (const int64_t[]){s->m, s->k});
}

void wk_bench_describe(wk_case *c, wk_opcode code, const wk_bench_sizes *s) {
    static void (*const functions[])(wk_case *c, const wk_bench_sizes *s) = {
#define WK_TRAITS(code, rows, cost, tolerance, cuts, gradient, cases, values, fill, bounds, sizes, \
                  bench)                                                                           \
    [WK_OP_##code] = dense_##bench,
#include "backend/op_traits.def"
#undef WK_TRAITS
    };
    const wk_op_info *const info = wk_op_get_info(code);
    *c = (wk_case){.op = {.code = code, .n_dst = info->n_dst, .n_src = info->n_src},
                   .rng = {.seed = 1}};
    functions[code](c, s);
}

/* --- Sizes --- */

#define SIZES(rows, width, inner) {.m = rows, .n = width, .k = inner}
#define OF_HEADS(rows, width, inner) {.m = rows, .n = width, .k = inner, .heads = 9, .key_heads = 3}

static const wk_bench_sizes rows[] = {SIZES(1, 576, 0), SIZES(1, 1536, 0), SIZES(1, 49152, 0),
                                      SIZES(512, 576, 0), SIZES(512, 1536, 0)};
/* The last ones are for the types whose blocks do not divide 576. */
static const wk_bench_sizes weights[] = {
    SIZES(1, 576, 576),   SIZES(1, 1536, 576),   SIZES(1, 576, 1536),
    SIZES(1, 49152, 576), SIZES(512, 1536, 576), SIZES(512, 576, 1536),
    SIZES(1, 2048, 2048), SIZES(1, 32000, 2048), SIZES(128, 1024, 2048)};
static const wk_bench_sizes matrices[] = {SIZES(1, 576, 576), SIZES(512, 576, 64),
                                          SIZES(512, 64, 512)};
static const wk_bench_sizes heads[] = {OF_HEADS(1, 64, 0), OF_HEADS(512, 64, 0)};
static const wk_bench_sizes dense_keys[] = {OF_HEADS(1, 64, 512), OF_HEADS(512, 64, 512)};
static const wk_bench_sizes cached_keys[] = {OF_HEADS(1, 64, 128), OF_HEADS(1, 64, 2048),
                                             OF_HEADS(512, 64, 512)};
static const wk_bench_sizes states[] = {OF_HEADS(1, 128, 512), OF_HEADS(512, 128, 512)};
static const wk_bench_sizes channels[] = {SIZES(1, 6144, 512), SIZES(512, 6144, 512)};

static const wk_bench_kind sizes_none = {.width = WK_WIDTH_NONE};
static const wk_bench_kind sizes_rows = {rows, WK_COUNT(rows), WK_WIDTH_EMBD};
static const wk_bench_kind sizes_wide = {rows, WK_COUNT(rows), WK_WIDTH_FF};
static const wk_bench_kind sizes_linear = {weights, WK_COUNT(weights), WK_WIDTH_WEIGHT};
static const wk_bench_kind sizes_matmul = {matrices, WK_COUNT(matrices), WK_WIDTH_MATRIX};
static const wk_bench_kind sizes_heads = {heads, WK_COUNT(heads), WK_WIDTH_HEAD};
static const wk_bench_kind sizes_attention = {dense_keys, WK_COUNT(dense_keys), WK_WIDTH_HEAD};
static const wk_bench_kind sizes_cached = {cached_keys, WK_COUNT(cached_keys), WK_WIDTH_HEAD};
static const wk_bench_kind sizes_states = {states, WK_COUNT(states), WK_WIDTH_NONE};
static const wk_bench_kind sizes_channels = {channels, WK_COUNT(channels), WK_WIDTH_NONE};

const wk_bench_kind *wk_bench_kind_of(wk_opcode code) {
    static const wk_bench_kind *const kinds[] = {
#define WK_TRAITS(code, rows, cost, tolerance, cuts, gradient, cases, values, fill, bounds, sizes, \
                  bench)                                                                           \
    [WK_OP_##code] = &sizes_##sizes,
#include "backend/op_traits.def"
#undef WK_TRAITS
        [WK_OP_CUSTOM] = &sizes_none,
    };
    return kinds[code];
}

wk_bench_sizes wk_bench_of_model(wk_opcode code, const wick_kernel_sizes *model, int64_t n_rows) {
    wk_bench_sizes s = {.m = n_rows,
                        .n = model->n_embd,
                        .k = n_rows > model->n_keys ? n_rows : model->n_keys,
                        .heads = model->n_heads,
                        .key_heads = model->n_heads_kv};
    switch (wk_bench_kind_of(code)->width) {
    case WK_WIDTH_FF: s.n = model->n_ff; break;
    case WK_WIDTH_HEAD: s.n = model->head_dim; break;
    case WK_WIDTH_MATRIX: s.k = model->n_embd; break;
    default: break;
    }
    return s;
}
