/* verify/bench.c: the time of a kernel beside the reference's, on the ops of a small model. */
#include "verify/verify.h"

#include "core/compiler.h"
#include "core/dtype.h"
#include "quant/block.h"
#include "verify/case.h"

/* With the first kind of weight that the kernel takes. */
static bool describe_linear(wk_case *c, const wk_kernel *kernel, const wk_bench_sizes *s) {
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

static bool describe(wk_case *c, const wk_kernel *kernel, const wk_bench_sizes *s) {
    wk_bench_describe(c, kernel->code, s);
    if (wk_bench_kind_of(kernel->code)->width != WK_WIDTH_WEIGHT)
        return wk_kernel_takes(kernel, &c->op);
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
    const wk_bench_kind *const kind = wk_bench_kind_of(subject->kernel->code);
    if (index < 0 || (size_t)index >= kind->n_typical) return WICK_ERR_NOT_FOUND;
    wk_case *const c = wk_alloc_zeroed(heap, sizeof *c);
    if (!c) return WICK_ERR_OUT_OF_MEMORY;
    wick_status status = WICK_ERR_UNSUPPORTED;
    if (!describe(c, subject->kernel, &kind->typical[index])) goto done;
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
