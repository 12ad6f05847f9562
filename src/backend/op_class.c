/* backend/op_class.c: see op_class.h. */
#include "backend/op_class.h"

enum { FEW_ROWS = 16 };

static int64_t count_rows(const wk_op *op) {
    const wk_view *const y = wk_dst(op, 0);
    switch (op->code) {
    case WK_OP_ATTENTION: return y->extent[2];
    case WK_OP_ATTENTION_CACHED:
    case WK_OP_KV_APPEND: return op->p.cached.batch.n_rows;
    case WK_OP_CAUSAL_CONV:
    case WK_OP_SCAN: return y->extent[0];
    case WK_OP_MATMUL: return y->extent[y->rank - 2];
    case WK_OP_REDUCE: return wk_view_count(y); /* a number for each row */
    default: break;
    }
    const int64_t length = y->rank > 0 ? y->extent[y->rank - 1] : 1;
    return length > 0 ? wk_view_count(y) / length : 0;
}

wk_op_class wk_op_class_of(const wk_op *op) {
    const int64_t n = count_rows(op);
    wk_op_class c = {.rows = n <= 1 ? WK_ROWS_ONE : n <= FEW_ROWS ? WK_ROWS_FEW : WK_ROWS_MANY};
    for (int i = op->n_dst; i < op->n_dst + op->n_src; i++)
        if (op->view[i].buf && op->view[i].layout != WK_LAYOUT_RAW) c.layout = op->view[i].layout;
    return c;
}
