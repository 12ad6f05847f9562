/* backend/op_class.h: which ops take the same tuning of a kernel: by how many rows they have (a
 * token, some sequences, a prompt) and how their weight lies. */
#ifndef WK_BACKEND_OP_CLASS_H
#define WK_BACKEND_OP_CLASS_H

#include "backend/op.h"

typedef enum wk_rows_class {
    WK_ROWS_ONE,
    WK_ROWS_FEW, /* up to 16 */
    WK_ROWS_MANY,
    WK_ROWS_COUNT_,
} wk_rows_class;

typedef struct wk_op_class {
    wk_rows_class rows;
    uint8_t layout; /* wk_layout; raw: no weight */
} wk_op_class;

wk_op_class wk_op_class_of(const wk_op *op);

#endif
