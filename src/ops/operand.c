/* ops/operand.c: checks that operations share, and the copies and fills they are made of. */
#include "ops/operand.h"

#include "core/dtype.h"
#include "core/scalar.h"
#include "core/shape.h"

#include <string.h>

bool wk_operands_present(const char *op, wick_tensor *const *operands, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!operands[i]) return false;
    }
    for (size_t i = 1; i < n; i++) {
        if (operands[i]->device != operands[0]->device) {
            wk_device_fail(operands[0]->device, WICK_ERR_ARGUMENT,
                           "%s: the operands are on different devices", op);
            return false;
        }
    }
    return true;
}

bool wk_operand_is_float(const char *op, const wick_tensor *x) {
    if (wk_dtype_is_float(x->view.dtype)) return true;
    wk_device_fail(x->device, WICK_ERR_DTYPE, "%s: takes a float type, not %s", op,
                   wick_dtype_name(x->view.dtype));
    return false;
}

bool wk_operand_is_number(const char *op, const wick_tensor *x) {
    const wk_dtype_class class = wk_dtype_get(x->view.dtype)->dtype_class;
    if (class == WK_CLASS_FLOAT || class == WK_CLASS_INTEGER) return true;
    wk_device_fail(x->device, WICK_ERR_DTYPE, "%s: takes numbers, not %s", op,
                   wick_dtype_name(x->view.dtype));
    return false;
}

bool wk_operands_same_dtype(const char *op, const wick_tensor *a, const wick_tensor *b) {
    if (a->view.dtype == b->view.dtype) return true;
    wk_device_fail(a->device, WICK_ERR_DTYPE, "%s: the operands are %s and %s, not of one type", op,
                   wick_dtype_name(a->view.dtype), wick_dtype_name(b->view.dtype));
    return false;
}

bool wk_operands_broadcast(const char *op, const wick_tensor *a, const wick_tensor *b,
                           wick_shape *shape) {
    if (wk_view_same_shape(&a->view, &b->view)) {
        shape->rank = a->view.rank;
        memcpy(shape->extent, a->view.extent, sizeof shape->extent);
        return true;
    }
    const wick_shape shape_a = wk_tensor_shape_of(a), shape_b = wk_tensor_shape_of(b);
    if (wk_shape_broadcast(&shape_a, &shape_b, shape)) return true;
    char text[2][WK_SHAPE_TEXT];
    wk_device_fail(a->device, WICK_ERR_SHAPE, "%s: %s and %s do not broadcast", op,
                   wk_shape_text(&shape_a, text[0], sizeof text[0]),
                   wk_shape_text(&shape_b, text[1], sizeof text[1]));
    return false;
}

bool wk_operand_dim(const char *op, const wick_tensor *x, int dim, int *out) {
    if (wk_shape_dim(x->view.rank, dim, out)) return true;
    wk_device_fail(x->device, WICK_ERR_DIM, "%s: dim %d is out of range for rank %d", op, dim,
                   x->view.rank);
    return false;
}

bool wk_operand_dims(const char *op, const wick_tensor *x, int n_dims, const int *dims,
                     bool is_named[WICK_MAX_RANK]) {
    if (dims != NULL && n_dims < 0) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "%s: %d dims", op, n_dims);
        return false;
    }
    for (int i = 0; i < x->view.rank; i++) is_named[i] = dims == NULL;
    for (int i = 0; dims != NULL && i < n_dims; i++) {
        int resolved;
        if (!wk_operand_dim(op, x, dims[i], &resolved)) return false;
        if (is_named[resolved]) {
            wk_device_fail(x->device, WICK_ERR_DIM, "%s: dim %d is named twice", op, dims[i]);
            return false;
        }
        is_named[resolved] = true;
    }
    return true;
}

void wk_operand_refuse(const char *op, wick_device *device, wick_dtype dtype) {
    const bool is_stored = wk_dtype_get(dtype)->dtype_class == WK_CLASS_STORED;
    wk_device_fail(device, WICK_ERR_DTYPE, "%s: takes no %s%s", op, wick_dtype_name(dtype),
                   is_stored ? ", which is for storage only: cast it" : "");
}

bool wk_operand_is_scalars(const char *op, const wick_tensor *x) {
    if (wk_dtype_is_scalar(x->view.dtype)) return wk_operand_is_strided(op, x);
    wk_operand_refuse(op, x->device, x->view.dtype);
    return false;
}

bool wk_operand_is_strided(const char *op, const wick_tensor *x) {
    if (x->view.layout == WK_LAYOUT_RAW) return true;
    wk_device_fail(x->device, WICK_ERR_UNSUPPORTED,
                   "%s: a weight in its compute layout can be used in linear and embedding only",
                   op);
    return false;
}

bool wk_operand_is_writable(const char *op, const wick_tensor *x) {
    if (!wk_operand_is_strided(op, x)) return false;
    if (!wk_dtype_is_storable(op, x->device, x->view.dtype)) return false;
    for (int i = 0; i < x->view.rank; i++) {
        if (x->view.stride[i] == 0 && x->view.extent[i] > 1) {
            wk_device_fail(x->device, WICK_ERR_ARGUMENT,
                           "%s: cannot write to an expanded view, dim %d repeats its elements", op,
                           i);
            return false;
        }
    }
    return true;
}

bool wk_operand_is_mask(const char *op, const wick_tensor *mask) {
    if (mask->view.dtype == WICK_U8 || mask->view.dtype == WICK_BOOL) return true;
    wk_device_fail(mask->device, WICK_ERR_DTYPE, "%s: the mask is u8 or bool, not %s", op,
                   wick_dtype_name(mask->view.dtype));
    return false;
}

bool wk_operand_is_weight(const char *op, const wick_tensor *x, int rank) {
    const bool is_block = wk_dtype_is_block(x->view.dtype);
    if (!is_block && !wk_operand_is_float(op, x)) return false;
    if (x->view.rank != rank) {
        wk_device_fail(x->device, WICK_ERR_SHAPE, "%s: weight has rank %d, not %d", op,
                       x->view.rank, rank);
        return false;
    }
    /* Kernels expect rows of blocks to be contiguous. */
    if (!is_block || x->view.layout != WK_LAYOUT_RAW || wk_view_is_dense(&x->view)) return true;
    wk_device_fail(x->device, WICK_ERR_UNSUPPORTED, "%s: the rows of a weight of %s must be dense",
                   op, wick_dtype_name(x->view.dtype));
    return false;
}

bool wk_dtype_is_storable(const char *op, wick_device *device, wick_dtype dtype) {
    if ((unsigned)dtype >= WICK_DTYPE_COUNT_) {
        wk_device_fail(device, WICK_ERR_DTYPE, "%s: there is no dtype number %d", op, (int)dtype);
        return false;
    }
    if (!wk_dtype_is_block(dtype)) return true;
    wk_device_fail(device, WICK_ERR_DTYPE, "%s: cannot write to %s", op, wick_dtype_name(dtype));
    return false;
}

bool wk_dtype_is_writable(const char *op, wick_device *device, wick_dtype dtype) {
    if (!wk_dtype_is_storable(op, device, dtype)) return false;
    if (wk_dtype_is_scalar(dtype)) return true;
    wk_operand_refuse(op, device, dtype);
    return false;
}

bool wk_tensor_is_empty(const wick_tensor *x) { return wk_view_count(&x->view) == 0; }

wick_tensor *wk_queue_result(wk_call *call, wick_tensor *y) {
    if (!y || wk_tensor_is_empty(y)) return y;
    if (wk_call_queue(y->device, call) == WICK_OK) return y;
    wick_release(y);
    return NULL;
}

static wick_status queue_copy(wick_tensor *dst, const wk_view *dst_view, wick_tensor *src,
                              const wk_view *src_view) {
    wk_call call;
    wk_call_begin(&call, WK_OP_COPY, NULL);
    wk_call_add(&call, dst, dst_view);
    wk_call_add(&call, src, src_view);
    return wk_call_queue(dst->device, &call);
}

static wick_shape shape_of_view(const wk_view *view) {
    wick_shape shape = {.rank = view->rank};
    for (int i = 0; i < view->rank; i++) shape.extent[i] = view->extent[i];
    return shape;
}

/* A dense tensor with the contents of a view of x. */
static wick_tensor *copy_of_view(wick_tensor *x, const wk_view *view, wick_dtype dtype) {
    const wick_shape shape = shape_of_view(view);
    wick_tensor *y = wk_tensor_new(x->device, dtype, &shape);
    if (!y || wk_tensor_is_empty(y)) return y;
    if (queue_copy(y, NULL, x, view) == WICK_OK) return y;
    wick_release(y);
    return NULL;
}

wick_tensor *wk_dense_copy(wick_tensor *x, wick_dtype dtype) {
    return copy_of_view(x, &x->view, dtype);
}

wick_tensor *wk_fresh(wick_tensor *y, const wick_tensor *x) {
    return y && y->view.buf == x->view.buf ? wk_dense_copy(y, y->view.dtype) : y;
}

/* A kernel may not read what it writes, and whether two strided views of one buffer share elements
 * is not worth finding out. */
wick_status wk_queue_copy(wick_tensor *dst, const wk_view *dst_view, wick_tensor *src,
                          const wk_view *src_view) {
    if (wk_view_count(dst_view) == 0) return WICK_OK;
    if (dst_view->buf != src_view->buf) return queue_copy(dst, dst_view, src, src_view);
    wick_tensor *temp = copy_of_view(src, src_view, src_view->dtype);
    if (!temp) return wk_device_err(dst->device)->status;
    const wick_status status = queue_copy(dst, dst_view, temp, &temp->view);
    wick_release(temp);
    return status;
}

wick_status wk_queue_fill(wick_tensor *dst, double value) {
    wk_call call;
    wk_call_begin(&call, WK_OP_FILL, NULL);
    wk_call_add(&call, dst, NULL);
    call.op.p.fill.real = value;
    call.op.p.fill.integer = wk_integer_of(dst->view.dtype, value);
    return wk_call_queue(dst->device, &call);
}

/* Least and largest value of an integer type. */
static void integer_range(wick_dtype dtype, int64_t *least, int64_t *largest) {
    switch (dtype) {
    case WICK_I32: *least = INT32_MIN, *largest = INT32_MAX; break;
    case WICK_I16: *least = INT16_MIN, *largest = INT16_MAX; break;
    case WICK_I8: *least = INT8_MIN, *largest = INT8_MAX; break;
    case WICK_U32: *least = 0, *largest = UINT32_MAX; break;
    case WICK_U8: *least = 0, *largest = UINT8_MAX; break;
    case WICK_BOOL: *least = 0, *largest = 1; break;
    default: *least = INT64_MIN, *largest = INT64_MAX; break;
    }
}

int64_t wk_integer_of(wick_dtype dtype, double value) {
    int64_t least, largest;
    integer_range(dtype, &least, &largest);
    if (dtype == WICK_BOOL) return value != 0;
    const int64_t whole = wk_f64_to_i64(value);
    return whole < least ? least : whole > largest ? largest : whole;
}
