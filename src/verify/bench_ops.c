/* verify/bench_ops.c: operations as models have them, for timing: dense, and of these sizes. */
#include "verify/case.h"

#include <math.h>

enum { BLOCK_SIZE = 32 };

/* The rows are the last ones of k keys. */
static void describe_attention(wk_case *c, const wk_bench_sizes *s) {
    const int64_t queries[4] = {1, s->heads, s->m, s->n}, keys[4] = {1, s->key_heads, s->k, s->n};
    for (int i = 0; i < 4; i++) (void)wk_case_dense(c, i, WICK_F32, 4, i < 2 ? queries : keys);
    c->op.p.attention.scale = 1 / sqrtf((float)s->n);
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

static void describe_cached(wk_case *c, const wk_bench_sizes *s) {
    wk_batch_layout *const b = &c->op.p.cached.batch;
    *b = one_sequence(s->m, s->k);
    c->op.p.cached.scale = 1 / sqrtf((float)s->n);
    const int64_t cache[4] = {b->n_blocks, s->key_heads, BLOCK_SIZE, s->n};
    const int64_t words = b->n_words, fresh[3] = {s->m, s->key_heads, s->n};
    const int64_t queries[3] = {s->m, s->heads, s->n};
    const bool is_append = c->op.code == WK_OP_KV_APPEND;
    for (int i = 0; i < 2; i++) {
        (void)wk_case_dense(c, is_append ? i : i + 2, WICK_F16, 4, cache);
        (void)wk_case_dense(c, is_append ? i + 2 : i, WICK_F32, 3, is_append ? fresh : queries);
    }
    /* Keys lie transposed, as model/state.c lays them. */
    wk_view *const k_cache = &c->op.view[is_append ? 0 : 2];
    k_cache->stride[2] = 1;
    k_cache->stride[3] = BLOCK_SIZE;
    (void)wk_case_dense(c, 4, WICK_U32, 1, &words);
}

/* The delta rule; heads as wide as they have numbers. */
static void describe_scan(wk_case *c, const wk_bench_sizes *s) {
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

static void describe_causal_conv(wk_case *c, const wk_bench_sizes *s) {
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

static void describe_others(wk_case *c, const wk_bench_sizes *s) {
    const int64_t row[2] = {s->m, s->n}, heads[4] = {1, s->m, s->heads, s->n};
    const int64_t halves[3] = {1, s->m, s->n / 2};
    switch (c->op.code) {
    case WK_OP_REDUCE:
        (void)wk_case_dense(c, 0, WICK_U32, 1, &s->m);
        (void)wk_case_dense(c, 1, WICK_F32, 2, row);
        break;
    case WK_OP_COMPARE:
        (void)wk_case_dense(c, 0, WICK_U8, 2, row);
        for (int i = 1; i < 3; i++) (void)wk_case_dense(c, i, WICK_F32, 2, row);
        break;
    case WK_OP_WHERE:
        (void)wk_case_dense(c, 1, WICK_U8, 2, row);
        for (int i = 0; i < 4; i += i == 0 ? 2 : 1) (void)wk_case_dense(c, i, WICK_F32, 2, row);
        break;
    case WK_OP_RMS_NORM:
        for (int i = 0; i < 2; i++) (void)wk_case_dense(c, i, WICK_F32, 2, row);
        (void)wk_case_dense(c, 2, WICK_F32, 1, &s->n);
        c->op.p.norm.eps = 1e-5F;
        break;
    case WK_OP_ROPE:
    case WK_OP_ROPE_TABLE:
        for (int i = 0; i < 2; i++) (void)wk_case_dense(c, i, WICK_F32, 4, heads);
        if (c->op.code == WK_OP_ROPE) {
            (void)wk_case_dense(c, 2, WICK_U32, 2, heads);
            c->op.p.rope.theta = 10000;
            c->op.p.rope.scale_factor = 1;
            c->op.p.rope.rotary_dim = (int)s->n;
            break;
        }
        for (int i = 2; i < 4; i++) (void)wk_case_dense(c, i, WICK_F32, 3, halves);
        break;
    case WK_OP_MATMUL:
        (void)wk_case_dense(c, 0, WICK_F32, 2, row);
        (void)wk_case_dense(c, 1, WICK_F32, 2, (const int64_t[]){s->m, s->k});
        (void)wk_case_dense(c, 2, WICK_F32, 2, (const int64_t[]){s->k, s->n});
        break;
    default:
        for (int i = 0; i < c->op.n_dst + c->op.n_src; i++)
            (void)wk_case_dense(c, i, WICK_F32, 2, row);
        break;
    }
}

void wk_bench_describe(wk_case *c, wk_opcode code, const wk_bench_sizes *s) {
    const wk_op_info *const info = wk_op_get_info(code);
    *c = (wk_case){.op = {.code = code, .n_dst = info->n_dst, .n_src = info->n_src},
                   .rng = {.seed = 1}};
    switch (code) {
    case WK_OP_LINEAR:
        (void)wk_case_dense(c, 0, WICK_F32, 2, (const int64_t[]){s->m, s->n});
        (void)wk_case_dense(c, 1, WICK_F32, 2, (const int64_t[]){s->m, s->k});
        break;
    case WK_OP_ATTENTION_CACHED:
    case WK_OP_KV_APPEND: describe_cached(c, s); break;
    case WK_OP_ATTENTION: describe_attention(c, s); break;
    case WK_OP_SCAN: describe_scan(c, s); break;
    case WK_OP_CAUSAL_CONV: describe_causal_conv(c, s); break;
    default: describe_others(c, s); break;
    }
}
