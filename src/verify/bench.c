/* verify/bench.c: the time of a kernel beside the reference's, on the ops of a small model. */
#include "verify/verify.h"

#include "core/compiler.h"
#include "core/dtype.h"
#include "quant/block.h"
#include "verify/case.h"

enum { HEADS = 9, KEY_HEADS = 3, HEAD_DIM = 64 };

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
static const sizes scan_sizes[] = {{1, 128, 512}, {512, 128, 512}};
static const sizes channel_sizes[] = {{1, 6144, 512}, {512, 6144, 512}};

static const sizes *sizes_of(wk_opcode code, size_t *n) {
    switch (code) {
    case WK_OP_LINEAR: *n = WK_COUNT(linear_sizes); return linear_sizes;
    case WK_OP_MATMUL: *n = WK_COUNT(matmul_sizes); return matmul_sizes;
    case WK_OP_ROPE:
    case WK_OP_ROPE_TABLE: *n = WK_COUNT(head_sizes); return head_sizes;
    case WK_OP_ATTENTION: *n = WK_COUNT(attention_sizes); return attention_sizes;
    case WK_OP_ATTENTION_CACHED:
    case WK_OP_KV_APPEND: *n = WK_COUNT(cached_sizes); return cached_sizes;
    case WK_OP_SCAN: *n = WK_COUNT(scan_sizes); return scan_sizes;
    case WK_OP_CAUSAL_CONV: *n = WK_COUNT(channel_sizes); return channel_sizes;
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

/* With the first kind of weight that the kernel takes. */
static bool describe_linear(wk_case *c, const wk_kernel *kernel, const sizes *s) {
    static const wick_dtype dtypes[] = {WICK_F32, WICK_F16, WICK_BF16,
#define TYPE(dtype, name) WICK_##dtype,
                                        WK_PANEL_FORMATS(TYPE)
#undef TYPE
    };
    for (size_t i = 0; i < WK_COUNT(dtypes); i++) {
        wk_view *const w = wk_case_dense(c, 2, dtypes[i], 2, (const int64_t[]){s->n, s->k});
        for (int layout = 0; layout < WK_LAYOUT_COUNT_; layout++) {
            w->layout = (uint8_t)layout;
            if (wk_layout_accepts((wk_layout)layout, dtypes[i], s->n, s->k) &&
                wk_kernel_takes(kernel, &c->op))
                return true;
        }
    }
    return false;
}

static bool describe(wk_case *c, const wk_kernel *kernel, const sizes *s) {
    const wk_bench_sizes of = {
        .m = s->m, .n = s->n, .k = s->k, .heads = HEADS, .key_heads = KEY_HEADS};
    wk_bench_describe(c, kernel->code, &of);
    if (kernel->code != WK_OP_LINEAR) return wk_kernel_takes(kernel, &c->op);
    c->op.p.linear.fast = kernel->is_fast;
    return describe_linear(c, kernel, s);
}

/* The best of several runs, of as many as fit into the time. */
static wick_status time_kernel(const wk_verify_subject *subject, const wk_op *op, double *seconds) {
    enum { LEAST_RUNS = 3, MOST_RUNS = 200 };
    const uint64_t most_ns = 100000000;
    uint64_t best = UINT64_MAX, total = 0;
    for (int i = 0; i < LEAST_RUNS || (i < MOST_RUNS && total < most_ns); i++) {
        wk_kernel_run run;
        WK_TRY(subject->backend->kernels->run(subject->device, subject->kernel, op, 0, &run));
        best = run.ns < best ? run.ns : best;
        total += run.ns;
        if (run.ns > most_ns) break;
    }
    *seconds = (double)best * 1e-9;
    return WICK_OK;
}

static wick_status time_both(const wk_verify_subject *subject, const wk_op *op, wk_heap *heap,
                             wk_verify_bench *out) {
    wk_oracle oracle = {0};
    wick_status status = wk_oracle_open(&oracle, heap);
    if (status == WICK_OK) {
        const wk_verify_subject reference = {wk_oracle_find(&oracle, op), oracle.backend,
                                             oracle.device};
        status = time_kernel(subject, op, &out->seconds);
        if (status == WICK_OK) status = time_kernel(&reference, op, &out->reference_seconds);
    }
    wk_oracle_close(&oracle);
    return status;
}

wick_status wk_verify_time(const wk_verify_subject *subject, int index, wk_heap *heap,
                           wk_verify_bench *out) {
    size_t n;
    const sizes *const list = sizes_of(subject->kernel->code, &n);
    if (index < 0 || (size_t)index >= n) return WICK_ERR_NOT_FOUND;
    wk_case *const c = wk_alloc_zeroed(heap, sizeof *c);
    if (!c) return WICK_ERR_OUT_OF_MEMORY;
    wick_status status = WICK_ERR_UNSUPPORTED;
    if (!describe(c, subject->kernel, &list[index])) goto done;
    const wk_cost cost = wk_op_cost(&c->op, NULL);
    *out = (wk_verify_bench){.bytes = cost.bytes_read + cost.bytes_written, .flops = cost.flops};
    (void)wk_op_text(&c->op, out->op, sizeof out->op);
    wick_error err = {0};
    status = wk_case_fill(c, heap, &err);
    if (status == WICK_OK) status = time_both(subject, &c->op, heap, out);
done:
    wk_case_release(c, heap);
    wk_free(heap, c, sizeof *c);
    return status;
}
