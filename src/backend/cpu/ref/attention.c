/* backend/cpu/ref/attention.c: scaled dot-product attention on dense views.
 *
 * An item is one query row of one head. Logit of key j for the query at position i (counted from
 * the end, so that the last query stands at the last key): scale q.k, soft-capped, plus slope (j -
 * i), plus bias. Keys that a mask hides do not count at all; a row that sees none gives zeros. */
#include "backend/cpu/ref/ref.h"

#include "core/dtype.h"

#include <math.h>

enum { Q, K, V, MASK, BIAS, SINKS, SLOPES };

static int64_t largest_of(int64_t a, int64_t b) { return a > b ? a : b; }

/* Scratch of a worker: logits [s], sum [e], q [d], a key or a value [max(d, e)]. */
typedef struct attention_scratch {
    double *logits, *sum, *q, *row;
} attention_scratch;

static uint64_t attention_worker_bytes(const wk_op *op) {
    const int64_t d = wk_src(op, Q)->extent[3], e = wk_src(op, V)->extent[3];
    const int64_t s = wk_src(op, K)->extent[2];
    return (uint64_t)(s + e + d + largest_of(d, e)) * sizeof(double);
}

static attention_scratch split_scratch(const wk_op *op, double *memory) {
    const int64_t d = wk_src(op, Q)->extent[3], e = wk_src(op, V)->extent[3];
    const int64_t s = wk_src(op, K)->extent[2];
    return (attention_scratch){memory, memory + s, memory + s + e, memory + s + e + d};
}

static bool is_seen(const wk_params *p, int64_t i, int64_t j) {
    if (p->attention.causal && j > i) return false;
    return p->attention.window <= 0 || i - j < p->attention.window;
}

/* at: batch, head, query row. */
static void fill_logits(const wk_op *op, const int64_t at[3], const attention_scratch *to) {
    const wk_view *mask = wk_src(op, MASK), *bias = wk_src(op, BIAS);
    const wk_view *k = wk_src(op, K), *q = wk_src(op, Q), *slopes = wk_src(op, SLOPES);
    const int64_t i = at[2] + k->extent[2] - q->extent[2];
    const int64_t group = at[1] / (q->extent[1] / k->extent[1]);
    const double slope = slopes->buf ? wk_ref_of_head(slopes, at[1]) : 0;
    for (int64_t j = 0; j < k->extent[2]; j++) {
        to->logits[j] = -INFINITY;
        if (!is_seen(&op->p, i, j)) continue;
        if (mask->buf) {
            const wk_row row = wk_row_of(mask, at);
            if (wk_row_integer_at(&row, j) == 0) continue;
        }
        const wk_row key = wk_row_of(k, (const int64_t[3]){at[0], group, j});
        wk_row_load(&key, 0, key.n, to->row);
        double logit = op->p.attention.scale * wk_ref_dot(to->q, to->row, key.n);
        logit = wk_ref_softcap(logit, op->p.attention.softcap) + slope * (double)(j - i);
        if (bias->buf) {
            const wk_row row = wk_row_of(bias, at);
            double added;
            wk_row_load(&row, j, 1, &added);
            logit += added;
        }
        to->logits[j] = logit;
    }
}

static void attend(const wk_op *op, const int64_t at[3], const attention_scratch *to) {
    const wk_view *v = wk_src(op, V), *sinks = wk_src(op, SINKS);
    const wk_row q = wk_row_of(wk_src(op, Q), at);
    const int64_t group = at[1] / (wk_src(op, Q)->extent[1] / v->extent[1]);
    wk_row_load(&q, 0, q.n, to->q);
    fill_logits(op, at, to);
    double sink = 0;
    if (sinks->buf) sink = wk_ref_of_head(sinks, at[1]);
    wk_ref_attention_weights(to->logits, v->extent[2], sinks->buf ? &sink : NULL);
    for (int64_t l = 0; l < v->extent[3]; l++) to->sum[l] = 0;
    for (int64_t j = 0; j < v->extent[2]; j++) {
        if (to->logits[j] == 0) continue;
        const wk_row value = wk_row_of(v, (const int64_t[3]){at[0], group, j});
        wk_row_load(&value, 0, value.n, to->row);
        for (int64_t l = 0; l < value.n; l++) to->sum[l] += to->logits[j] * to->row[l];
    }
    const wk_row y = wk_row_of(wk_dst(op, 0), at);
    wk_row_store(&y, 0, y.n, to->sum);
}

static void run_attention(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_view *y = wk_dst(run->op, 0);
    const attention_scratch scratch = split_scratch(run->op, run->worker_scratch);
    for (int64_t r = begin; r < end; r++) {
        const int64_t head_row = r / y->extent[2];
        const int64_t at[3] = {head_row / y->extent[1], head_row % y->extent[1], r % y->extent[2]};
        attend(run->op, at, &scratch);
    }
}

static bool accepts_attention(const wk_op *op) {
    const wick_dtype mask = wk_src(op, MASK)->dtype;
    for (int i = 0; i < op->n_dst + op->n_src; i++) {
        const bool is_mask = i == op->n_dst + MASK;
        if (!is_mask && !wk_dtype_is_float(op->view[i].dtype)) return false;
    }
    /* Absent is all zero bytes, f32. */
    return mask == WICK_U8 || mask == WICK_BOOL || wk_src(op, MASK)->rank == 0;
}

const wk_cpu_kernel wk_attention_ref = {
    .base.name = "attention_ref",
    .base.code = WK_OP_ATTENTION,
    .base.is_reference = true,
    .base.accepts = accepts_attention,
    .n_phases = 1,
    .items = wk_ref_dst_rows,
    .worker_bytes = attention_worker_bytes,
    .run = run_attention,
};
