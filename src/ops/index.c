/* ops/index.c: rows by index. */
#include <wick/ops.h>

#include "core/dtype.h"
#include "ops/indices.h"
#include "ops/operand.h"
#include "ops/view.h"

static bool check_embedding(const wick_tensor *weight, const wick_tensor *ids) {
    if (!wk_operand_is_weight("embedding", weight, 2)) return false;
    if (!wk_operand_is_index("embedding", ids)) return false;
    if (ids->view.rank < WICK_MAX_RANK) return true;
    wk_device_fail(ids->device, WICK_ERR_SHAPE, "embedding: ids of rank %d", ids->view.rank);
    return false;
}

wick_tensor *wick_embedding(wick_tensor *weight, wick_tensor *ids) {
    if (!wk_operands_present("embedding", (wick_tensor *[]){weight, ids}, 2)) return NULL;
    if (!check_embedding(weight, ids)) return NULL;
    const int64_t m = wk_view_count(&ids->view), k = weight->view.extent[1];
    if (m > 0 && weight->view.extent[0] == 0) {
        wk_device_fail(ids->device, WICK_ERR_INDEX, "embedding: weight has no rows");
        return NULL;
    }
    wick_shape shape = wk_tensor_shape_of(ids);
    shape.extent[shape.rank++] = k;
    const wick_shape flat_ids = {.rank = 1, .extent = {m}}, flat = {.rank = 2, .extent = {m, k}};

    const wick_dtype dtype = weight->view.dtype;
    const wick_scope scope = wk_operation_begin(weight->device, "embedding");
    wick_tensor *const places = wick_reshape(wk_as_index(ids), flat_ids);
    wick_tensor *y =
        places ? wk_tensor_new(weight->device, wk_dtype_is_block(dtype) ? WICK_F32 : dtype, &shape)
               : NULL;
    if (y) {
        wk_view view_y;
        wk_view_reshape(&y->view, &flat, &view_y);
        wk_call call;
        wk_call_begin(&call, WK_OP_EMBEDDING, "embedding");
        wk_call_add(&call, y, &view_y);
        wk_call_add(&call, weight, NULL);
        wk_call_add(&call, places, NULL);
        y = wk_queue_result(&call, y);
    }
    return wick_scope_result(scope, y);
}
