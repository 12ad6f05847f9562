/* ops/nonzero.c: elements that a condition chooses, of which only the data say how many. */
#include <wick/ops.h>

#include "core/shape.h"
#include "ops/operand.h"
#include "ops/search.h"

wick_tensor *wk_first_places(wick_tensor *running, int64_t count) {
    if (!running) return NULL;
    wick_device *const device = running->device;
    const int64_t n = running->view.extent[0];
    if (n == 0) count = 0;
    if (count < 0) {
        double total;
        wick_tensor *const last = wick_narrow(running, 0, n - 1, 1);
        const bool is_read = wick_read_scalar(last, &total) == WICK_OK;
        wick_release(last);
        if (!is_read) return NULL;
        count = (int64_t)total;
    }
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const numbers = wick_arange(device, WICK_U32, 1, (double)count + 1, 1);
    return wick_scope_result(scope, wk_search_rows(running, numbers, false));
}

/* u8 [n], 1 where x is not zero. */
static wick_tensor *flat_mask(wick_tensor *x) {
    wick_tensor *const flat = wick_reshape(x, WICK_SHAPE(-1));
    if (x->view.dtype == WICK_BOOL) return wick_cast(flat, WICK_U8);
    return wick_ne(flat, wick_zeros(x->device, x->view.dtype, WICK_SCALAR));
}

static wick_tensor *places_of(wick_tensor *x, int64_t count) {
    return wk_first_places(wick_cumsum(wick_cast(flat_mask(x), WICK_U32), 0), count);
}

/* places [count] in a tensor of shape as [count, rank]. */
static wick_tensor *as_coordinates(wick_tensor *places, const wick_shape *shape) {
    if (!places) return NULL;
    wick_device *const device = places->device;
    const wick_shape none = {.rank = 2, .extent = {places->view.extent[0], 0}};
    if (shape->rank == 0) return wick_zeros(device, WICK_U32, none);
    wick_tensor *columns[WICK_MAX_RANK];
    for (int i = shape->rank - 1; i > 0; i--) {
        const double extent = (double)(shape->extent[i] > 0 ? shape->extent[i] : 1);
        wick_tensor *const rows =
            wick_div(places, wick_full(device, WICK_U32, WICK_SCALAR, extent));
        columns[i] = wick_sub(places, wick_affine(rows, extent, 0));
        places = rows;
    }
    columns[0] = places;
    return wick_stack(columns, (size_t)shape->rank, 1);
}

wick_tensor *wick_nonzero(wick_tensor *x, int64_t count) {
    if (!x || !wk_operand_is_scalars("nonzero", x)) return NULL;
    if (!wk_has_u32_places("nonzero", x, wick_tensor_size(x))) return NULL;
    const wick_shape shape = wk_tensor_shape_of(x);
    const wick_scope scope = wk_operation_begin(x->device, "nonzero");
    return wick_scope_result(scope, as_coordinates(places_of(x, count), &shape));
}

wick_tensor *wick_masked_select(wick_tensor *x, wick_tensor *mask, int64_t count) {
    static const char op[] = "masked_select";
    if (!wk_operands_present(op, (wick_tensor *[]){x, mask}, 2)) return NULL;
    if (!wk_operand_is_scalars(op, x) || !wk_operand_is_mask(op, mask)) return NULL;
    const wick_shape of_x = wk_tensor_shape_of(x), of_mask = wk_tensor_shape_of(mask);
    wick_shape shape;
    int64_t n;
    if (!wk_shape_broadcast(&of_x, &of_mask, &shape) || !wk_shape_count(&shape, &n)) {
        char text[2][WK_SHAPE_TEXT];
        wk_device_fail(x->device, WICK_ERR_SHAPE, "%s: %s and a mask of %s do not broadcast", op,
                       wk_shape_text(&of_x, text[0], sizeof text[0]),
                       wk_shape_text(&of_mask, text[1], sizeof text[1]));
        return NULL;
    }
    if (!wk_has_u32_places(op, x, n)) return NULL;
    const wick_scope scope = wk_operation_begin(x->device, op);
    wick_tensor *const chosen = wick_expand(mask, shape);
    wick_tensor *const places = chosen ? places_of(chosen, count) : NULL;
    wick_tensor *const values = wick_reshape(wick_expand(x, shape), WICK_SHAPE(-1));
    return wick_scope_result(scope, wk_fresh(wick_index_select(values, 0, places), x));
}
