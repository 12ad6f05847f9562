/* verify/bench.c: the time of a kernel beside the reference's, on the ops of a small model. */
#include "verify/verify.h"

#include "core/compiler.h"
#include "core/dtype.h"
#include "quant/block.h"
#include "verify/case.h"

#include <math.h>
#include <stdio.h>

enum { HEADS = 9, KEY_HEADS = 3, HEAD_DIM = 64, BLOCK_SIZE = 32 };

/* m rows of n; k: inner size of products, keys of attention. */
typedef struct sizes {
    int64_t m, n, k;
} sizes;

/* The last ones are for the types whose blocks do not divide 576. */
static const sizes linear_sizes[] = {
    {1, 576, 576},    {1, 1536, 576},  {1, 576, 1536},   {1, 49152, 576},   {512, 1536, 576},
    {512, 576, 1536}, {1, 2048, 2048}, {1, 32000, 2048}, {128, 1024, 2048},
};
static const sizes matmul_sizes[] = {{1, 576, 576}, {512, 576, 64}, {512, 64, 512}};
static const sizes row_sizes[] = {
    {1, 576, 0}, {1, 1536, 0}, {1, 49152, 0}, {512, 576, 0}, {512, 1536, 0}};
static const sizes head_sizes[] = {{1, HEAD_DIM, 0}, {512, HEAD_DIM, 0}};
static const sizes attention_sizes[] = {{1, HEAD_DIM, 512}, {512, HEAD_DIM, 512}};
static const sizes cached_sizes[] = {{1, HEAD_DIM, 128}, {1, HEAD_DIM, 2048}, {512, HEAD_DIM, 512}};

static const sizes *sizes_of(wk_opcode code, size_t *n) {
    switch (code) {
    case WK_OP_LINEAR: *n = WK_COUNT(linear_sizes); return linear_sizes;
    case WK_OP_MATMUL: *n = WK_COUNT(matmul_sizes); return matmul_sizes;
    case WK_OP_ROPE:
    case WK_OP_ROPE_TABLE: *n = WK_COUNT(head_sizes); return head_sizes;
    case WK_OP_ATTENTION: *n = WK_COUNT(attention_sizes); return attention_sizes;
    case WK_OP_ATTENTION_CACHED:
    case WK_OP_KV_APPEND: *n = WK_COUNT(cached_sizes); return cached_sizes;
    case WK_OP_UNARY:
    case WK_OP_BINARY:
    case WK_OP_COMPARE:
    case WK_OP_WHERE:
    case WK_OP_GATED:
    case WK_OP_COPY:
    case WK_OP_SOFTMAX:
    case WK_OP_REDUCE:
    case WK_OP_RMS_NORM:
    case WK_OP_LAYER_NORM: *n = WK_COUNT(row_sizes); return row_sizes;
    default: *n = 0; return NULL;
    }
}

/* --- Ops --- */

static bool accepts(const wk_cpu_kernel *kernel, const wk_op *op) {
    return !kernel->accepts || kernel->accepts(op);
}

/* With the first kind of weight that the kernel takes. */
static bool describe_linear(wk_case *c, const wk_cpu_kernel *kernel, const sizes *s) {
    static const wick_dtype dtypes[] = {WICK_F32, WICK_F16, WICK_BF16,
#define TYPE(dtype, name) WICK_##dtype,
                                        WK_PANEL_FORMATS(TYPE)
#undef TYPE
    };
    (void)wk_case_dense(c, 0, WICK_F32, 2, (const int64_t[]){s->m, s->n});
    (void)wk_case_dense(c, 1, WICK_F32, 2, (const int64_t[]){s->m, s->k});
    for (size_t i = 0; i < WK_COUNT(dtypes); i++) {
        wk_view *const w = wk_case_dense(c, 2, dtypes[i], 2, (const int64_t[]){s->n, s->k});
        for (int layout = 0; layout < WK_LAYOUT_COUNT_; layout++) {
            w->layout = (uint8_t)layout;
            if (wk_layout_accepts((wk_layout)layout, dtypes[i], s->n, s->k) &&
                accepts(kernel, &c->op))
                return true;
        }
    }
    return false;
}

/* The rows are the last ones of k keys. */
static void describe_attention(wk_case *c, const sizes *s) {
    const int64_t queries[4] = {1, HEADS, s->m, s->n}, keys[4] = {1, KEY_HEADS, s->k, s->n};
    for (int i = 0; i < 4; i++) (void)wk_case_dense(c, i, WICK_F32, 4, i < 2 ? queries : keys);
    c->op.p.attention.scale = 1 / sqrtf((float)HEAD_DIM);
    c->op.p.attention.causal = true;
}

/* One sequence of k keys, of which the rows are the last ones. */
static void describe_cached(wk_case *c, const sizes *s) {
    wk_batch_layout *const b = &c->op.p.cached.batch;
    const uint32_t rows = (uint32_t)s->m;
    *b = (wk_batch_layout){
        .n_rows = rows,
        .n_sequences = 1,
        .n_blocks = (uint32_t)s->k / BLOCK_SIZE,
        .block_size = BLOCK_SIZE,
        .positions = rows,
        .sequences = 2 * rows,
        .slots = 3 * rows,
        .outputs = 4 * rows,
        .lengths = 4 * rows,
        .tables = 4 * rows + 1,
    };
    b->n_words = b->tables + b->n_blocks;
    c->op.p.cached.scale = 1 / sqrtf((float)HEAD_DIM);
    const int64_t cache[4] = {b->n_blocks, KEY_HEADS, BLOCK_SIZE, HEAD_DIM};
    const int64_t words = b->n_words, fresh[3] = {s->m, KEY_HEADS, HEAD_DIM};
    const int64_t queries[3] = {s->m, HEADS, HEAD_DIM};
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

static void describe_others(wk_case *c, const sizes *s) {
    const int64_t row[2] = {s->m, s->n}, heads[4] = {1, s->m, HEADS, s->n};
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

static bool describe(wk_case *c, const wk_cpu_kernel *kernel, const sizes *s) {
    const wk_op_info *const info = wk_op_get_info(kernel->code);
    *c = (wk_case){
        .op = {.code = kernel->code, .n_dst = info->n_dst, .n_src = info->n_src},
        .rng = {.seed = 1},
    };
    if (kernel->code == WK_OP_LINEAR) {
        c->op.p.linear.fast = kernel->base.is_fast;
        return describe_linear(c, kernel, s);
    }
    if (kernel->code == WK_OP_ATTENTION_CACHED || kernel->code == WK_OP_KV_APPEND) {
        describe_cached(c, s);
    } else if (kernel->code == WK_OP_ATTENTION) {
        describe_attention(c, s);
    } else {
        describe_others(c, s);
    }
    return accepts(kernel, &c->op);
}

/* --- What it takes --- */

static double bytes_of(const wk_op *op) {
    double bytes = 0;
    for (int i = 0; i < op->n_dst + op->n_src; i++) {
        uint64_t begin, end;
        if (!op->view[i].buf) continue;
        wk_view_range(&op->view[i], &begin, &end);
        bytes += (double)(end - begin);
    }
    return bytes;
}

/* Additions and multiplications of products; one for each element of a result otherwise. */
static double flops_of(const wk_op *op, const sizes *s) {
    const double m = (double)s->m, n = (double)s->n, k = (double)s->k;
    switch (op->code) {
    case WK_OP_LINEAR:
    case WK_OP_MATMUL: return 2 * m * n * k;
    case WK_OP_ATTENTION:
    case WK_OP_ATTENTION_CACHED: return 4 * m * (double)HEADS * n * (k - (m - 1) / 2);
    default: return (double)wk_view_count(wk_dst(op, 0));
    }
}

/* The best of several runs, of as many as fit into the time. */
static wick_status time_kernel(wk_case *c, const wk_cpu_kernel *kernel, wk_heap *heap,
                               double *seconds) {
    enum { LEAST_RUNS = 3, MOST_RUNS = 200 };
    const uint64_t most_ns = 100000000;
    uint64_t best = UINT64_MAX, total = 0;
    for (int i = 0; i < LEAST_RUNS || (i < MOST_RUNS && total < most_ns); i++) {
        wk_case_run run;
        WK_TRY(wk_case_compute(c, kernel, false, heap, &run));
        best = run.ns < best ? run.ns : best;
        total += run.ns;
        if (run.ns > most_ns) break;
    }
    *seconds = (double)best * 1e-9;
    return WICK_OK;
}

wick_status wk_verify_time(const wk_cpu_kernel *kernel, int index, wk_heap *heap,
                           wk_verify_bench *out) {
    size_t n;
    const sizes *const list = sizes_of(kernel->code, &n);
    if (index < 0 || (size_t)index >= n) return WICK_ERR_NOT_FOUND;
    wk_case *const c = wk_alloc_zeroed(heap, sizeof *c);
    if (!c) return WICK_ERR_OUT_OF_MEMORY;
    wick_status status = WICK_ERR_UNSUPPORTED;
    if (!describe(c, kernel, &list[index])) goto done;
    *out = (wk_verify_bench){.bytes = bytes_of(&c->op), .flops = flops_of(&c->op, &list[index])};
    (void)wk_op_text(&c->op, out->op, sizeof out->op);
    const wk_cpu_kernel *const reference = wk_cpu_find_kernel(&c->op, 0);
    wick_error err = {0};
    status = wk_case_fill(c, heap, &err);
    if (status == WICK_OK) status = time_kernel(c, kernel, heap, &out->seconds);
    if (status == WICK_OK) status = time_kernel(c, reference, heap, &out->reference_seconds);
done:
    wk_case_release(c, heap);
    wk_free(heap, c, sizeof *c);
    return status;
}
