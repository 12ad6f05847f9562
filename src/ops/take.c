/* ops/take.c: elements by their place in row-major order. */
#include <wick/ops.h>

#include "ops/indices.h"
#include "ops/operand.h"

wick_tensor *wick_take(wick_tensor *x, wick_tensor *index) {
    if (!wk_operands_present("take", (wick_tensor *[]){x, index}, 2)) return NULL;
    if (!wk_operand_is_scalars("take", x) || !wk_operand_is_index("take", index)) return NULL;
    const wick_scope scope = wk_operation_begin(x->device, "take");
    wick_tensor *const flat = wick_reshape(x, WICK_SHAPE(-1));
    wick_tensor *const y = wick_index_select(flat, 0, wick_reshape(index, WICK_SHAPE(-1)));
    return wick_scope_result(scope, wick_reshape(y, wk_tensor_shape_of(index)));
}
