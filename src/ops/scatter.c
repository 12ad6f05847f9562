/* ops/scatter.c: copies whose elements meet others by index. */
#include <wick/ops.h>

#include "core/dtype.h"
#include "core/shape.h"
#include "ops/indices.h"
#include "ops/operand.h"
#include "ops/view.h"

/* at: a view of index; src is in no dim smaller. Sums of 16 bits are rounded once. */
static wick_tensor *scatter(wick_tensor *x, int dim, wick_tensor *index, const wk_view *at,
                            wick_tensor *src, wick_scatter_fn fn) {
    const wick_dtype dtype = x->view.dtype;
    const bool is_rounded = fn == WICK_SCATTER_ADD || fn == WICK_SCATTER_MUL;
    const wick_dtype wide = is_rounded ? wk_wide_dtype(dtype) : dtype;
    const wick_scope scope = wick_scope_begin(x->device);
    wick_tensor *y = wk_dense_copy(x, wide);
    wick_tensor *const from = wk_promoted(src, wide);
    if (y && from && wk_view_count(at) > 0) {
        wk_view view[3] = {y->view, from->view, *at};
        wk_view_cut_to(&view[0], at, dim);
        wk_view_cut_to(&view[1], at, -1);
        for (int i = 0; i < 3; i++) wk_view_move_last(&view[i], dim, &view[i]);
        wk_call call;
        wk_call_begin(&call, WK_OP_SCATTER);
        wk_call_add(&call, y, &view[0]);
        wk_call_add(&call, from, &view[1]);
        wk_call_add(&call, index, &view[2]);
        call.op.p.scatter = (wk_scatter_fn)fn;
        if (wk_call_queue(x->device, &call) != WICK_OK) y = NULL;
    }
    return wick_scope_result(scope, from ? wk_promoted(y, dtype) : NULL);
}

static bool check(const char *op, const wick_tensor *x, int dim, const wick_tensor *src,
                  wick_scatter_fn fn, int *resolved) {
    if (!wk_operand_is_strided(op, x) || !wk_operand_is_strided(op, src)) return false;
    if (!wk_operands_same_dtype(op, x, src)) return false;
    if (!wk_dtype_is_writable(op, x->device, x->view.dtype)) return false;
    if ((unsigned)fn > WICK_SCATTER_MIN) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "%s: there is no function number %d", op,
                       (int)fn);
        return false;
    }
    if (fn != WICK_SCATTER_SET && !wk_operand_is_number(op, x)) return false;
    return wk_operand_dim(op, x, dim, resolved);
}

static wick_tensor *scatter_named(const char *op, wick_tensor *x, int dim, wick_tensor *index,
                                  wick_tensor *src, wick_scatter_fn fn) {
    int resolved;
    if (!wk_operands_present(op, (wick_tensor *[]){x, index, src}, 3)) return NULL;
    if (!check(op, x, dim, src, fn, &resolved) || !wk_operand_is_index(op, index)) return NULL;
    if (!wk_indexed_fits(op, x, resolved, index)) return NULL;
    bool fits = src->view.rank == index->view.rank;
    for (int i = 0; fits && i < src->view.rank; i++)
        fits = index->view.extent[i] <= src->view.extent[i];
    if (fits) return scatter(x, resolved, index, &index->view, src, fn);
    const wick_shape of_index = wk_tensor_shape_of(index), of_src = wk_tensor_shape_of(src);
    char text[2][WK_SHAPE_TEXT];
    wk_device_fail(x->device, WICK_ERR_SHAPE, "%s: index %s is larger than src %s", op,
                   wk_shape_text(&of_index, text[0], sizeof text[0]),
                   wk_shape_text(&of_src, text[1], sizeof text[1]));
    return NULL;
}

wick_tensor *wick_scatter(wick_tensor *x, int dim, wick_tensor *index, wick_tensor *src,
                          wick_scatter_fn fn) {
    return scatter_named("scatter", x, dim, index, src, fn);
}

wick_tensor *wick_scatter_add(wick_tensor *x, int dim, wick_tensor *index, wick_tensor *src) {
    return scatter_named("scatter_add", x, dim, index, src, WICK_SCATTER_ADD);
}

wick_tensor *wick_index_add(wick_tensor *x, int dim, wick_tensor *index, wick_tensor *src) {
    static const char name[] = "index_add";
    int resolved;
    if (!wk_operands_present(name, (wick_tensor *[]){x, index, src}, 3)) return NULL;
    if (!check(name, x, dim, src, WICK_SCATTER_ADD, &resolved)) return NULL;
    if (!wk_vector_is_index(name, index)) return NULL;
    wick_shape shape = wk_tensor_shape_of(x);
    shape.extent[resolved] = index->view.extent[0];
    const wick_shape of_src = wk_tensor_shape_of(src);
    bool fits = of_src.rank == shape.rank;
    for (int i = 0; fits && i < shape.rank; i++) fits = of_src.extent[i] == shape.extent[i];
    if (fits) {
        const wk_view at = wk_view_of_vector(&index->view, &shape, resolved);
        return scatter(x, resolved, index, &at, src, WICK_SCATTER_ADD);
    }
    char text[2][WK_SHAPE_TEXT];
    wk_device_fail(x->device, WICK_ERR_SHAPE, "%s: src %s, not %s", name,
                   wk_shape_text(&of_src, text[0], sizeof text[0]),
                   wk_shape_text(&shape, text[1], sizeof text[1]));
    return NULL;
}
