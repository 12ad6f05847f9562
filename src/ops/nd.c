/* ops/nd.c: slices by index of several dims at once. */
#include <wick/ops.h>

#include "core/shape.h"
#include "ops/compose.h"
#include "ops/indices.h"

#include <inttypes.h>

/* index [.., k] names slices of x [e0, .., ek-1, rest..], seen as [places, slice]. */
typedef struct places {
    const char *name;
    wick_tensor *x, *index;
    int k;
    int64_t n, count, slice; /* slices of x, of the index; elements of one */
    wick_shape shape;        /* of the slices together: [.., rest..] */
} places;

static bool misfit(const places *p) {
    const wick_shape of_x = wk_tensor_shape_of(p->x), of_index = wk_tensor_shape_of(p->index);
    char text[2][WK_SHAPE_TEXT];
    wk_device_fail(p->x->device, WICK_ERR_SHAPE, "%s: index %s does not fit x %s", p->name,
                   wk_shape_text(&of_index, text[0], sizeof text[0]),
                   wk_shape_text(&of_x, text[1], sizeof text[1]));
    return false;
}

static bool find(places *p) {
    if (!wk_operands_present(p->name, (wick_tensor *[]){p->x, p->index}, 2)) return false;
    if (!wk_operand_is_scalars(p->name, p->x) || !wk_operand_is_index(p->name, p->index))
        return false;
    const wk_view *const x = &p->x->view, *const index = &p->index->view;
    const int last = index->rank - 1;
    const int64_t k = last >= 0 ? index->extent[last] : 0;
    int64_t size; /* of all slices together: products of its parts do not overflow */
    if (k < 1 || k > x->rank || last + x->rank - k > WICK_MAX_RANK) return misfit(p);
    p->k = (int)k;
    for (int d = 0; d < last; d++) p->shape.extent[p->shape.rank++] = index->extent[d];
    for (int d = p->k; d < x->rank; d++) p->shape.extent[p->shape.rank++] = x->extent[d];
    if (!wk_shape_count(&p->shape, &size)) return misfit(p);
    p->n = p->count = p->slice = 1;
    for (int d = 0; d < last; d++) p->count *= index->extent[d];
    for (int d = 0; d < x->rank; d++) *(d < p->k ? &p->n : &p->slice) *= x->extent[d];
    return true;
}

/* [count] u32: the number of each slice. One that is out of range in any dim becomes n, which is
 * out of range, too: 3 and 4 of [4, 4] are 16. Of i64 there are only comparisons, which GPUs have.
 */
static wick_tensor *numbers_of(const places *p) {
    wick_tensor *const index = wick_reshape(wk_as_index(p->index), WICK_SHAPE(p->count, p->k));
    if (!index) return NULL;
    const wick_dtype dtype = index->view.dtype == WICK_I64 ? WICK_I64 : WICK_U32;
    wick_tensor *number = NULL, *is_outside = NULL;
    for (int d = 0; d < p->k; d++) {
        const double extent = (double)p->x->view.extent[d];
        wick_tensor *const given = wick_squeeze(wick_narrow(wick_cast(index, dtype), 1, d, 1), 1);
        wick_tensor *const most = wick_full(index->device, dtype, WICK_SCALAR, extent - 1);
        wick_tensor *const zero = wick_zeros(index->device, dtype, WICK_SCALAR);
        wick_tensor *const beyond = wick_maximum(wick_gt(given, most), wick_lt(given, zero));
        wick_tensor *const at = wick_cast(given, WICK_U32);
        number = number ? wick_add(wick_affine(number, extent, 0), at) : at;
        is_outside = is_outside ? wick_maximum(is_outside, beyond) : beyond;
        if (!number || !is_outside) return NULL;
    }
    return wick_where(is_outside, wick_full(index->device, WICK_U32, WICK_SCALAR, (double)p->n),
                      number);
}

static bool can_count(const places *p) {
    if (p->n < UINT32_MAX && p->x->view.extent[0] > 0) return true;
    wk_device_fail(p->x->device, WICK_ERR_SHAPE, "%s: no indices into %" PRId64 " slices", p->name,
                   p->n);
    return false;
}

wick_tensor *wick_gather_nd(wick_tensor *x, wick_tensor *index) {
    places p = {.name = "gather_nd", .x = x, .index = index};
    if (!find(&p) || (p.count > 0 && !can_count(&p))) return NULL;
    const wick_scope scope = wk_operation_begin(x->device, p.name);
    if (p.count * p.slice == 0)
        return wick_scope_result(scope, wick_empty(x->device, x->view.dtype, p.shape));
    wick_tensor *const slices = wick_reshape(x, WICK_SHAPE(p.n, p.slice));
    wick_tensor *const y = wick_index_select(slices, 0, numbers_of(&p));
    return wick_scope_result(scope, wick_reshape(y, p.shape));
}

wick_tensor *wick_scatter_nd(wick_tensor *x, wick_tensor *index, wick_tensor *src,
                             wick_scatter_fn fn) {
    places p = {.name = "scatter_nd", .x = x, .index = index};
    if (!src || !find(&p) || (p.count > 0 && !can_count(&p))) return NULL;
    if (!wk_operands_present(p.name, (wick_tensor *[]){x, src}, 2) ||
        !wk_operands_scatter(p.name, x, src, fn))
        return NULL;
    const wick_shape got = wk_tensor_shape_of(src);
    if (!wk_shape_equal(&got, &p.shape)) {
        char text[2][WK_SHAPE_TEXT];
        wk_device_fail(x->device, WICK_ERR_SHAPE, "scatter_nd: src is %s, not %s",
                       wk_shape_text(&got, text[0], sizeof text[0]),
                       wk_shape_text(&p.shape, text[1], sizeof text[1]));
        return NULL;
    }
    const wick_scope scope = wk_operation_begin(x->device, p.name);
    if (p.count * p.slice == 0) return wick_scope_result(scope, wk_dense_copy(x, x->view.dtype));
    wick_tensor *const slices = wick_reshape(x, WICK_SHAPE(p.n, p.slice));
    wick_tensor *const from = wick_reshape(src, WICK_SHAPE(p.count, p.slice));
    wick_tensor *const at =
        wick_expand(wick_unsqueeze(numbers_of(&p), 1), WICK_SHAPE(p.count, p.slice));
    wick_tensor *const y = wick_scatter(slices, 0, at, from, fn);
    return wick_scope_result(scope, wick_reshape(y, wk_tensor_shape_of(x)));
}
