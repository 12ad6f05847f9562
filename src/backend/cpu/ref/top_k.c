/* backend/cpu/ref/top_k.c: the k largest elements of rows, in one pass with a heap of the k that
 * are the best so far, the worst of them on top. */
#include "backend/cpu/ref/ref.h"

#include <math.h>

typedef struct candidate {
    double value;
    int64_t index;
} candidate;

/* A total order: NaN is above all, and of equals the first one comes first. */
static bool comes_before(const candidate *a, const candidate *b) {
    const bool is_a_nan = isnan(a->value), is_b_nan = isnan(b->value);
    if (is_a_nan != is_b_nan) return is_a_nan;
    if (!is_a_nan && a->value != b->value) return a->value > b->value;
    return a->index < b->index;
}

/* Puts one in place of the top of a heap of n. */
static void replace_top(candidate *heap, int64_t n, candidate c) {
    int64_t at = 0;
    for (;;) {
        int64_t below = 2 * at + 1;
        if (below >= n) break;
        if (below + 1 < n && comes_before(&heap[below], &heap[below + 1])) below++;
        if (!comes_before(&c, &heap[below])) break;
        heap[at] = heap[below];
        at = below;
    }
    heap[at] = c;
}

/* Adds one to a heap of n. */
static void push(candidate *heap, int64_t n, candidate c) {
    int64_t at = n;
    while (at > 0 && comes_before(&heap[(at - 1) / 2], &c)) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = c;
}

static void choose(const wk_row *x, candidate *heap, int64_t k) {
    double values[WK_REF_CHUNK];
    for (int64_t i = 0; i < x->n; i += WK_REF_CHUNK) {
        const int64_t n = x->n - i < WK_REF_CHUNK ? x->n - i : WK_REF_CHUNK;
        wk_row_load(x, i, n, values);
        for (int64_t j = 0; j < n; j++) {
            const candidate c = {.value = values[j], .index = i + j};
            if (c.index < k)
                push(heap, c.index, c);
            else if (comes_before(&c, &heap[0]))
                replace_top(heap, k, c);
        }
    }
}

/* The worst goes to the end, then the worst of the others before it. */
static void sort(candidate *heap, int64_t k) {
    for (int64_t n = k - 1; n > 0; n--) {
        const candidate worst = heap[0], last = heap[n];
        replace_top(heap, n, last);
        heap[n] = worst;
    }
}

static void run_top_k(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    candidate *const best = run->worker_scratch;
    for (int64_t r = begin; r < end; r++) {
        const wk_row values = wk_row_at(wk_dst(run->op, 0), r);
        const wk_row indices = wk_row_at(wk_dst(run->op, 1), r);
        const wk_row x = wk_row_at(wk_src(run->op, 0), r);
        choose(&x, best, values.n);
        sort(best, values.n);
        for (int64_t i = 0; i < values.n; i++) {
            wk_row_store(&values, i, 1, &best[i].value);
            wk_row_store_integer(&indices, i, 1, &best[i].index);
        }
    }
}

static uint64_t top_k_bytes(const wk_op *op) {
    const wk_view *const values = wk_dst(op, 0);
    return (uint64_t)values->extent[values->rank - 1] * sizeof(candidate);
}

const wk_cpu_kernel wk_top_k_ref = {
    .base.name = "top_k_ref",
    .base.code = WK_OP_TOP_K,
    .base.is_reference = true,
    .n_phases = 1,
    .items = wk_ref_dst_rows,
    .worker_bytes = top_k_bytes,
    .run = run_top_k,
};
