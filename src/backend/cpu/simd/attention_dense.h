/* simd/attention_dense.h: scaled dot-product attention on dense views, by the steps of the cached
 * one. An item is some rows of all query heads of one key head. */
#ifndef WK_SIMD_ATTENTION_DENSE_H
#define WK_SIMD_ATTENTION_DENSE_H

#include "backend/cpu/simd/attention_step.h"

enum { DENSE_Q, DENSE_K, DENSE_V, DENSE_MASK, DENSE_BIAS, DENSE_SINKS, DENSE_SLOPES };

static attention dense_attention(const wk_op *op) {
    const wk_view *const k = wk_src(op, DENSE_K), *const v = wk_src(op, DENSE_V);
    const int64_t groups = k->extent[1];
    return (attention){
        .k = k,
        .v = v,
        .d = k->extent[3],
        .e = v->extent[3],
        .width = round_up(v->extent[3], 16),
        .heads = groups > 0 ? wk_src(op, DENSE_Q)->extent[1] / groups : 0,
        .scale = (float)op->p.attention.scale,
        .softcap = (float)op->p.attention.softcap,
        .result_dtype = wk_dst(op, 0)->dtype,
    };
}

/* Rows of an item: with few heads more, so that 64 queries share what is made of the keys. */
static int64_t dense_item_rows(const wk_op *op) {
    const int64_t heads = dense_attention(op).heads;
    return heads > 0 && heads * ITEM_ROWS < 64 ? 64 / heads : ITEM_ROWS;
}

static int64_t dense_queries(const wk_op *op) {
    const int64_t rows = wk_src(op, DENSE_Q)->extent[2], most = dense_item_rows(op);
    return dense_attention(op).heads * (rows < most ? rows : most);
}

/* The scratch that all attention needs, then the queries as floats, where they are halves. */
static uint64_t dense_worker_bytes(const wk_op *op) {
    const attention a = dense_attention(op);
    const bool is_half = wk_src(op, DENSE_Q)->dtype == WICK_F16;
    const int64_t floats = is_half ? dense_queries(op) * round_up(a.d, 16) : 0;
    return worker_bytes(&a, dense_queries(op)) + (uint64_t)floats * sizeof(float);
}

typedef struct dense_run {
    const wk_op *op;
    attention a;
    attention_worker w;
    float *q; /* [queries][d up to a multiple of 16] */
} dense_run;

static dense_run dense_run_get(const wk_cpu_run *run) {
    dense_run c = {.op = run->op, .a = dense_attention(run->op)};
    c.w = worker_at(&c.a, run->worker_scratch, dense_queries(run->op));
    c.q = (float *)(void *)(c.w.queries + dense_queries(run->op));
    return c;
}

/* at: batch, head, row; size: bytes of an element. */
static unsigned char *dense_row(const wk_view *view, const int64_t at[3], int64_t size) {
    const int64_t element =
        at[0] * view->stride[0] + at[1] * view->stride[1] + at[2] * view->stride[2];
    return (unsigned char *)wk_view_data(view) + element * size;
}

static logit_operand dense_logits(const wk_view *view, const int64_t at[3]) {
    if (view->buf == NULL) return (logit_operand){0};
    const bool is_byte = view->dtype == WICK_U8 || view->dtype == WICK_BOOL;
    const int64_t size = is_byte ? 1 : view->dtype == WICK_F32 ? 4 : 2;
    return (logit_operand){dense_row(view, at, size), view->stride[3], view->dtype};
}

/* Floats of the n-th query. */
static const float *dense_q(const dense_run *c, const int64_t at[3], int64_t n) {
    const wk_view *const q = wk_src(c->op, DENSE_Q);
    const unsigned char *const row = dense_row(q, at, bytes_of(q->dtype, 1));
    if (q->dtype == WICK_F32) return (const float *)(const void *)row;
    float *const to = c->q + n * round_up(c->a.d, 16);
    for (int64_t l = 0; l < c->a.d; l += 16)
        v16_store(to + l, load_elements(row, WICK_F16, l, c->a.d));
    return to;
}

/* The last query stands at the last key. */
static query_state dense_query(const dense_run *c, const int64_t at[3], int64_t n) {
    const wk_op *const op = c->op;
    const int64_t n_keys = c->a.k->extent[2], window = op->p.attention.window;
    const int64_t position = at[2] + n_keys - wk_src(op, DENSE_Q)->extent[2];
    return (query_state){
        .q = dense_q(c, at, n),
        .y = dense_row(wk_dst(op, 0), at, bytes_of(wk_dst(op, 0)->dtype, 1)),
        .first = window > 0 && position >= window ? position - window + 1 : 0,
        .end = op->p.attention.causal && position < n_keys ? position + 1 : n_keys,
        .position = position,
        .slope = of_head(wk_src(op, DENSE_SLOPES), at[1], 0),
        .sink = of_head(wk_src(op, DENSE_SINKS), at[1], -INFINITY),
        .mask = dense_logits(wk_src(op, DENSE_MASK), at),
        .bias = dense_logits(wk_src(op, DENSE_BIAS), at),
    };
}

/* Rows [rows[0], rows[1]) of the query heads of one key head. */
static void attend_dense(const dense_run *c, int64_t batch, int64_t group, const int64_t rows[2]) {
    const uint32_t block = (uint32_t)batch;
    seen_keys seen = {.table = &block, .group = group, .first = INT64_MAX};
    int64_t n = 0;
    for (int64_t row = rows[0]; row < rows[1]; row++) {
        for (int64_t i = 0; i < c->a.heads; i++, n++) {
            const int64_t at[3] = {batch, group * c->a.heads + i, row};
            query_state *const query = &c->w.queries[n];
            *query = dense_query(c, at, n);
            if (query->first >= query->end) continue;
            if (query->first < seen.first) seen.first = query->first;
            if (query->end > seen.end) seen.end = query->end;
        }
    }
    if (seen.first > seen.end) seen.first = seen.end;
    attend(&c->a, &c->w, &seen, n);
}

static int64_t dense_chunks(const wk_op *op) {
    const int64_t rows = dense_item_rows(op);
    return (wk_src(op, DENSE_Q)->extent[2] + rows - 1) / rows;
}

static int64_t dense_items(const wk_op *op, int phase) {
    (void)phase;
    const wk_view *const k = wk_src(op, DENSE_K);
    return k->extent[0] * k->extent[1] * dense_chunks(op);
}

static void run_attention_dense(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const dense_run c = dense_run_get(run);
    const int64_t n_rows = wk_src(run->op, DENSE_Q)->extent[2], n_chunks = dense_chunks(run->op);
    const int64_t groups = c.a.k->extent[1], item_rows = dense_item_rows(run->op);
    for (int64_t item = begin; item < end; item++) {
        const int64_t row = item % n_chunks * item_rows, group = item / n_chunks;
        const int64_t rows[2] = {row, row + item_rows < n_rows ? row + item_rows : n_rows};
        attend_dense(&c, group / groups, group % groups, rows);
    }
}

/* Absent operands are all zero bytes, f32. */
static bool accepts_attention_dense(const wk_op *op) {
    const wk_view *const mask = wk_src(op, DENSE_MASK);
    return is_dense_last(wk_dst(op, 0)) && is_dense_last(wk_src(op, DENSE_Q)) &&
           accepts_keys(wk_src(op, DENSE_K)) && is_dense_last(wk_src(op, DENSE_V)) &&
           (mask->dtype == WICK_U8 || mask->dtype == WICK_BOOL || mask->rank == 0) &&
           is_element_dtype(wk_src(op, DENSE_BIAS)->dtype) &&
           is_element_dtype(wk_src(op, DENSE_SINKS)->dtype) &&
           is_element_dtype(wk_src(op, DENSE_SLOPES)->dtype);
}

#endif
