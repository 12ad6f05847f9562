/* ops/scatter.c: tensors, or copies of them, whose elements meet others by index. */
#include <wick/ops.h>

#include "core/dtype.h"
#include "core/shape.h"
#include "ops/indices.h"
#include "ops/operand.h"
#include "ops/view.h"

/* y meets src at index, both views of what the kernel takes; src is in no dim smaller. */
static bool queue_scatter(wick_tensor *y, int dim, wick_tensor *index, const wk_view *at,
                          wick_tensor *src, wick_scatter_fn fn) {
    if (wk_view_count(at) == 0) return true;
    wk_view view[3] = {y->view, src->view, *at};
    wk_view_cut_to(&view[0], at, dim);
    wk_view_cut_to(&view[1], at, -1);
    for (int i = 0; i < 3; i++) wk_view_move_last(&view[i], dim, &view[i]);
    wk_call call;
    wk_call_begin(&call, WK_OP_SCATTER, NULL);
    wk_call_add(&call, y, &view[0]);
    wk_call_add(&call, src, &view[1]);
    wk_call_add(&call, index, &view[2]);
    call.op.p.scatter = (wk_scatter_fn)fn;
    return wk_call_queue(y->device, &call) == WICK_OK;
}

/* Sums and products of 16-bit floats are rounded once; narrow integers wrap when they are cast
 * back. A GPU has functions of whole words only. */
static wick_dtype dtype_of(wick_dtype dtype, wick_scatter_fn fn) {
    if (fn == WICK_SCATTER_SET) return dtype;
    const bool is_narrow = dtype == WICK_I16 || dtype == WICK_I8 || dtype == WICK_U8;
    return is_narrow ? WICK_I32 : wk_wide_dtype(dtype);
}

/* What of a scatter is to be a copy, or the memory of x itself. */
typedef struct target {
    const char *op;
    bool is_in_place;
} target;

/* x, or a copy of it, of the dtype in which is computed. */
static wick_tensor *base_of(const target *t, wick_tensor *x, wick_scatter_fn fn) {
    const wick_dtype wide = dtype_of(x->view.dtype, fn);
    return t->is_in_place ? wk_promoted(x, wide) : wk_dense_copy(x, wide);
}

/* An operand that does not lie in the memory that is written to. */
static wick_tensor *apart(wick_tensor *operand, const wick_tensor *y) {
    return operand && y && operand->view.buf == y->view.buf
               ? wk_dense_copy(operand, operand->view.dtype)
               : operand;
}

/* is_vector: index [m] stands for all other dims. */
static wick_tensor *scatter(const target *t, wick_tensor *x, int dim, wick_tensor *index,
                            bool is_vector, wick_tensor *src, wick_scatter_fn fn) {
    const wick_scope scope = wk_operation_begin(x->device, t->op);
    wick_tensor *const y = base_of(t, x, fn);
    wick_tensor *const from = apart(wk_promoted(src, dtype_of(x->view.dtype, fn)), y);
    wick_tensor *const places = apart(wk_as_index(index), y);
    bool is_done = y && from && places;
    if (is_done) {
        const wick_shape shape = wk_tensor_shape_of(src);
        const wk_view at = is_vector ? wk_view_of_vector(&places->view, &shape, dim) : places->view;
        is_done = queue_scatter(y, dim, places, &at, from, fn);
    }
    if (!t->is_in_place)
        return wick_scope_result(scope, is_done ? wk_promoted(y, x->view.dtype) : NULL);
    if (is_done && y != x) is_done = wick_copy(x, y) != NULL;
    wick_scope_end(scope);
    return is_done ? x : NULL;
}

bool wk_operands_scatter(const char *op, const wick_tensor *x, const wick_tensor *src,
                         wick_scatter_fn fn) {
    if (!wk_operand_is_strided(op, x) || !wk_operand_is_strided(op, src)) return false;
    if (!wk_operands_same_dtype(op, x, src)) return false;
    if (!wk_dtype_is_writable(op, x->device, x->view.dtype)) return false;
    if ((unsigned)fn > WICK_SCATTER_MIN) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "%s: there is no function number %d", op,
                       (int)fn);
        return false;
    }
    return fn == WICK_SCATTER_SET || wk_operand_is_number(op, x);
}

static bool check(const target *t, const wick_tensor *x, int dim, const wick_tensor *src,
                  wick_scatter_fn fn, int *resolved) {
    return (!t->is_in_place || wk_operand_is_writable(t->op, x)) &&
           wk_operands_scatter(t->op, x, src, fn) && wk_operand_dim(t->op, x, dim, resolved);
}

static wick_tensor *scatter_each(target t, wick_tensor *x, int dim, wick_tensor *index,
                                 wick_tensor *src, wick_scatter_fn fn) {
    int resolved;
    if (!wk_operands_present(t.op, (wick_tensor *[]){x, index, src}, 3)) return NULL;
    if (!check(&t, x, dim, src, fn, &resolved) || !wk_operand_is_index(t.op, index)) return NULL;
    if (!wk_indexed_fits(t.op, x, resolved, index)) return NULL;
    bool fits = src->view.rank == index->view.rank;
    for (int i = 0; fits && i < src->view.rank; i++)
        fits = index->view.extent[i] <= src->view.extent[i];
    if (fits) return scatter(&t, x, resolved, index, false, src, fn);
    const wick_shape of_index = wk_tensor_shape_of(index), of_src = wk_tensor_shape_of(src);
    char text[2][WK_SHAPE_TEXT];
    wk_device_fail(x->device, WICK_ERR_SHAPE, "%s: index %s is larger than src %s", t.op,
                   wk_shape_text(&of_index, text[0], sizeof text[0]),
                   wk_shape_text(&of_src, text[1], sizeof text[1]));
    return NULL;
}

static wick_tensor *scatter_slices(target t, wick_tensor *x, int dim, wick_tensor *index,
                                   wick_tensor *src, wick_scatter_fn fn) {
    int resolved;
    if (!wk_operands_present(t.op, (wick_tensor *[]){x, index, src}, 3)) return NULL;
    if (!check(&t, x, dim, src, fn, &resolved)) return NULL;
    if (!wk_vector_is_index(t.op, index)) return NULL;
    wick_shape shape = wk_tensor_shape_of(x);
    shape.extent[resolved] = index->view.extent[0];
    const wick_shape of_src = wk_tensor_shape_of(src);
    if (wk_shape_equal(&of_src, &shape)) return scatter(&t, x, resolved, index, true, src, fn);
    char text[2][WK_SHAPE_TEXT];
    wk_device_fail(x->device, WICK_ERR_SHAPE, "%s: src %s, not %s", t.op,
                   wk_shape_text(&of_src, text[0], sizeof text[0]),
                   wk_shape_text(&shape, text[1], sizeof text[1]));
    return NULL;
}

wick_tensor *wick_scatter(wick_tensor *x, int dim, wick_tensor *index, wick_tensor *src,
                          wick_scatter_fn fn) {
    return scatter_each((target){.op = "scatter"}, x, dim, index, src, fn);
}

wick_tensor *wick_scatter_add(wick_tensor *x, int dim, wick_tensor *index, wick_tensor *src) {
    return scatter_each((target){.op = "scatter_add"}, x, dim, index, src, WICK_SCATTER_ADD);
}

wick_tensor *wick_index_add(wick_tensor *x, int dim, wick_tensor *index, wick_tensor *src) {
    return scatter_slices((target){.op = "index_add"}, x, dim, index, src, WICK_SCATTER_ADD);
}

wick_tensor *wick_scatter_in_place(wick_tensor *x, int dim, wick_tensor *index, wick_tensor *src,
                                   wick_scatter_fn fn) {
    return scatter_each((target){"scatter_in_place", true}, x, dim, index, src, fn);
}

wick_tensor *wick_index_add_in_place(wick_tensor *x, int dim, wick_tensor *index,
                                     wick_tensor *src) {
    return scatter_slices((target){"index_add_in_place", true}, x, dim, index, src,
                          WICK_SCATTER_ADD);
}

wick_tensor *wick_index_copy_in_place(wick_tensor *x, int dim, wick_tensor *index,
                                      wick_tensor *src) {
    return scatter_slices((target){"index_copy_in_place", true}, x, dim, index, src,
                          WICK_SCATTER_SET);
}
