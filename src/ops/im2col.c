/* ops/im2col.c: the windows of images as columns, and their sum back into images. */
#include <wick/ops.h>

#include "ops/operand.h"
#include "ops/windows.h"

#include <inttypes.h>

/* One of the two dims of an image. */
typedef struct axis {
    int64_t size, kernel, padding, stride, dilation;
    int64_t padded, reach; /* extents of the image with padding, and of a window */
    int64_t count;         /* of windows */
} axis;

/* Two axes from the lists of a caller, the last three of which may be NULL: defaults. */
static bool make_axes(const char *op, const wick_tensor *x, const int64_t size[2],
                      const int64_t kernel[2], const int64_t *padding, const int64_t *stride,
                      const int64_t *dilation, axis axes[2]) {
    const int64_t most = INT64_C(1) << 31; /* products of two stay in range */
    if (!size || !kernel) {
        wk_device_fail(x->device, WICK_ERR_ARGUMENT, "%s: the size of the %s is NULL", op,
                       kernel ? "image" : "windows");
        return false;
    }
    for (int i = 0; i < 2; i++) {
        axis *const a = &axes[i];
        *a = (axis){.size = size[i],
                    .kernel = kernel[i],
                    .padding = padding ? padding[i] : 0,
                    .stride = stride ? stride[i] : 1,
                    .dilation = dilation ? dilation[i] : 1};
        if (a->size < 0 || a->kernel < 1 || a->kernel > most || a->padding < 0 ||
            a->padding > most || a->stride < 1 || a->dilation < 1 || a->dilation > most) {
            wk_device_fail(x->device, WICK_ERR_VALUE,
                           "%s: kernel %" PRId64 ", padding %" PRId64 ", stride %" PRId64
                           ", dilation %" PRId64,
                           op, a->kernel, a->padding, a->stride, a->dilation);
            return false;
        }
        a->padded = a->size <= INT64_MAX / 2 ? a->size + 2 * a->padding : -1;
        a->reach = (a->kernel - 1) * a->dilation + 1;
        if (a->reach > a->padded) {
            wk_device_fail(x->device, WICK_ERR_SHAPE,
                           "%s: windows of %" PRId64 " elements do not fit an image of %" PRId64
                           " with padding",
                           op, a->reach, a->padded);
            return false;
        }
        a->count = (a->padded - a->reach) / a->stride + 1;
    }
    return true;
}

/* Windows along dim, of every dilation-th element, in a new last dim. */
static wick_tensor *windows(wick_tensor *x, int dim, const axis *a) {
    wick_tensor *const all = wick_unfold(x, dim, a->reach, a->stride);
    return wick_slice(all, -1, 0, a->reach, a->dilation);
}

wick_tensor *wick_im2col(wick_tensor *x, const int64_t kernel[2], const int64_t *padding,
                         const int64_t *stride, const int64_t *dilation) {
    if (!x || !wk_operand_is_scalars("im2col", x)) return NULL;
    const int rank = x->view.rank;
    if (rank != 3 && rank != 4) {
        wk_device_fail(x->device, WICK_ERR_SHAPE, "im2col: x has rank %d, not 3 or 4", rank);
        return NULL;
    }
    const int64_t *const extent = x->view.extent;
    const int64_t n = rank == 4 ? extent[0] : 1, c = extent[rank - 3];
    axis a[2];
    if (!make_axes("im2col", x, &extent[rank - 2], kernel, padding, stride, dilation, a)) {
        return NULL;
    }
    const int64_t pads[] = {0, 0, a[0].padding, a[1].padding};
    const wick_scope scope = wk_operation_begin(x->device, "im2col");
    wick_tensor *y = wick_reshape(x, WICK_SHAPE(n, c, a[0].size, a[1].size));
    if (a[0].padding + a[1].padding > 0) y = wick_pad(y, pads, pads, WICK_PAD_CONSTANT, 0);
    y = windows(windows(y, 2, &a[0]), 3, &a[1]); /* [n, c, rows, columns, kh, kw] */
    y = wick_permute(y, 6, (const int[]){0, 1, 4, 5, 2, 3});
    const wick_shape shape = {
        .rank = 3, .extent = {n, c * a[0].kernel * a[1].kernel, a[0].count * a[1].count}};
    y = wick_reshape(y, shape);
    if (rank == 3) y = wick_squeeze(y, 0);
    return wick_scope_result(scope, wk_fresh(y, x));
}

/* The shape [n, c kh kw, positions] (rank 2: without n) fits; *c is set. */
static bool check_columns(const wick_tensor *x, const axis a[2], int64_t *c) {
    const int64_t *const extent = &x->view.extent[x->view.rank - 2];
    const int64_t window = a[0].kernel * a[1].kernel;
    *c = extent[0] / window;
    if (extent[0] % window == 0 && a[0].count <= INT64_MAX / a[1].count &&
        extent[1] == a[0].count * a[1].count) {
        return true;
    }
    wk_device_fail(x->device, WICK_ERR_SHAPE,
                   "col2im: columns [%" PRId64 ", %" PRId64 "], where windows have %" PRId64
                   " elements and %" PRId64 " by %" PRId64 " places",
                   extent[0], extent[1], window, a[0].count, a[1].count);
    return false;
}

wick_tensor *wick_col2im(wick_tensor *x, const int64_t size[2], const int64_t kernel[2],
                         const int64_t *padding, const int64_t *stride, const int64_t *dilation) {
    if (!x || !wk_operand_is_scalars("col2im", x) || !wk_operand_is_number("col2im", x)) {
        return NULL;
    }
    const int rank = x->view.rank;
    if (rank != 2 && rank != 3) {
        wk_device_fail(x->device, WICK_ERR_SHAPE, "col2im: x has rank %d, not 2 or 3", rank);
        return NULL;
    }
    axis a[2];
    int64_t c;
    if (!make_axes("col2im", x, size, kernel, padding, stride, dilation, a)) return NULL;
    if (!check_columns(x, a, &c)) return NULL;
    const wick_shape shape = {.rank = 6,
                              .extent = {rank == 3 ? x->view.extent[0] : 1, c, a[0].kernel,
                                         a[1].kernel, a[0].count, a[1].count}};
    const wick_scope scope = wk_operation_begin(x->device, "col2im");
    wick_tensor *y = wick_reshape(wk_widened(x), shape);
    y = wick_permute(y, 6, (const int[]){0, 1, 4, 5, 2, 3}); /* as im2col had them */
    y = wk_fold(y, 3, a[1].padded, a[1].stride, a[1].dilation);
    y = wk_fold(y, 2, a[0].padded, a[0].stride, a[0].dilation);
    y = wick_narrow(y, 2, a[0].padding, a[0].size);
    y = wick_narrow(y, 3, a[1].padding, a[1].size);
    if (rank == 2) y = wick_squeeze(y, 0);
    y = wick_contiguous(wk_promoted(y, x->view.dtype));
    return wick_scope_result(scope, y);
}
