/* backend/op_class.c: see op_class.h. */
#include "backend/op_class.h"

enum { FEW_ROWS = 16 };

wk_op_class wk_op_class_of(const wk_op *op) {
    const int64_t n = wk_op_rows(op);
    wk_op_class c = {.rows = n <= 1 ? WK_ROWS_ONE : n <= FEW_ROWS ? WK_ROWS_FEW : WK_ROWS_MANY};
    for (int i = op->n_dst; i < op->n_dst + op->n_src; i++)
        if (op->view[i].buf && op->view[i].layout != WK_LAYOUT_RAW) c.layout = op->view[i].layout;
    return c;
}
