/* ops/conv.c: convolutions: one op where the device has a kernel for it, else products of the
 * weights with the windows of x.
 *
 * All are seen as [n, c, d, h, w] with a kernel [kd, kh, kw], depth and height 1 where there are
 * none. The planes that meet one kd are a convolution of two dims, whose results are summed. There
 * the windows of a 3 x 3 kernel are a view [n, c, 3, 3, oh, ow], copied to columns [c 3 3, oh ow].
 */
#include <wick/nn.h>

#include "core/dtype.h"
#include "core/shape.h"
#include "ops/compose.h"
#include "ops/view.h"
#include "ops/windows.h"

#include <inttypes.h>

enum {
    DIMS = 3,
    MOST_TAPS = 64,     /* of a kernel that is done element by element */
    FEW_POSITIONS = 16, /* of a sample: fewer are too few for a product of their own */
};
/* Of columns that are there at once: they stay in the cache between their copy and the product. */
static const int64_t most_bytes = 4 << 20;

typedef struct conv {
    const char *name;
    int n; /* dims that it has */
    int64_t stride[DIMS], padding[DIMS], dilation[DIMS], output_padding[DIMS], groups;
    int64_t after[DIMS]; /* padding at the end */
    int64_t kernel[DIMS], in[DIMS], out[DIMS];
    int64_t batch, channels, filters; /* of x and of y */
} conv;

/* --- Checks --- */

/* value: of the desc's array `what`. Bounded so that no sum overflows. */
static bool check_number(const conv *c, const wick_tensor *x, const char *what, int64_t value) {
    if (value >= 0 && value <= INT32_MAX) return true;
    wk_device_fail(x->device, WICK_ERR_VALUE, "%s: %s %" PRId64 " is not from 0 to %d", c->name,
                   what, value, INT32_MAX);
    return false;
}

/* The desc's numbers, those of its first dims moved to the last ones of three. */
static bool resolve(conv *c, const wick_tensor *x, const wick_conv_desc *desc) {
    static const wick_conv_desc none = {.groups = 0};
    const wick_conv_desc *const d = desc ? desc : &none;
    for (int i = 0; i < DIMS; i++) {
        const int from = i - (DIMS - c->n);
        c->stride[i] = c->dilation[i] = 1;
        if (from < 0) continue;
        if (!check_number(c, x, "stride", d->stride[from]) ||
            !check_number(c, x, "padding", d->padding[from]) ||
            !check_number(c, x, "dilation", d->dilation[from]) ||
            !check_number(c, x, "output_padding", d->output_padding[from]))
            return false;
        if (d->stride[from] > 0) c->stride[i] = d->stride[from];
        if (d->dilation[from] > 0) c->dilation[i] = d->dilation[from];
        c->padding[i] = c->after[i] = d->padding[from];
        c->output_padding[i] = d->output_padding[from];
        if (c->output_padding[i] == 0 || c->output_padding[i] < c->stride[i] ||
            c->output_padding[i] < c->dilation[i])
            continue;
        wk_device_fail(x->device, WICK_ERR_VALUE,
                       "%s: output_padding %" PRId64 " must be less than stride or dilation",
                       c->name, c->output_padding[i]);
        return false;
    }
    c->groups = d->groups > 0 ? d->groups : 1;
    return check_number(c, x, "groups", d->groups);
}

static bool misfit(const conv *c, const wick_tensor *x, const wick_tensor *weight) {
    const wick_shape shape_x = wk_tensor_shape_of(x), shape = wk_tensor_shape_of(weight);
    char text[2][WK_SHAPE_TEXT];
    wk_device_fail(x->device, WICK_ERR_SHAPE,
                   "%s: weight %s in %" PRId64 " groups does not fit x %s", c->name,
                   wk_shape_text(&shape, text[0], sizeof text[0]), c->groups,
                   wk_shape_text(&shape_x, text[1], sizeof text[1]));
    return false;
}

static bool find_extents(conv *c, const wick_tensor *x, const wick_tensor *weight,
                         bool is_transposed) {
    for (int i = 0; i < DIMS; i++) {
        const int at = i - (DIMS - c->n) + 2;
        c->kernel[i] = at < 2 ? 1 : weight->view.extent[at];
        c->in[i] = at < 2 ? 1 : x->view.extent[at];
        if (c->kernel[i] < 1 || c->kernel[i] > INT32_MAX || c->in[i] > INT32_MAX)
            return misfit(c, x, weight);
        const int64_t span = c->dilation[i] * (c->kernel[i] - 1) + 1;
        if (is_transposed)
            c->out[i] =
                (c->in[i] - 1) * c->stride[i] - 2 * c->padding[i] + span + c->output_padding[i];
        else
            c->out[i] = c->in[i] + 2 * c->padding[i] < span
                            ? 0
                            : (c->in[i] + 2 * c->padding[i] - span) / c->stride[i] + 1;
        if (c->out[i] > 0 && (c->in[i] > 0 || !is_transposed)) continue;
        wk_device_fail(x->device, WICK_ERR_SHAPE,
                       is_transposed ? "%s: nothing is left of an extent of %" PRId64
                                       " with a kernel of %" PRId64
                                     : "%s: an extent of %" PRId64 " is less, with its padding,"
                                       " than the kernel's %" PRId64,
                       c->name, c->in[i], is_transposed ? c->kernel[i] : span);
        return false;
    }
    return true;
}

static bool check(conv *c, wick_tensor *x, wick_tensor *weight, wick_tensor *bias,
                  const wick_conv_desc *desc, bool is_transposed) {
    wick_tensor *const operands[] = {x, weight, bias};
    const int rank = c->n + 2;
    if (!wk_operands_are_floats(c->name, operands, 2, 3) || !resolve(c, x, desc)) return false;
    if (!wk_operand_rank(c->name, "x", x, rank, rank) ||
        !wk_operand_rank(c->name, "weight", weight, rank, rank))
        return false;
    c->batch = x->view.extent[0];
    c->channels = x->view.extent[1];
    const int64_t first = weight->view.extent[0], second = weight->view.extent[1];
    if (second > INT64_MAX / c->groups) return misfit(c, x, weight);
    const bool fits = is_transposed ? first == c->channels && first % c->groups == 0
                                    : second * c->groups == c->channels && first % c->groups == 0;
    if (!fits) return misfit(c, x, weight);
    c->filters = is_transposed ? second * c->groups : first;
    return wk_operand_is_vector(c->name, "bias", bias, c->filters) &&
           find_extents(c, x, weight, is_transposed);
}

/* [n, m, od, oh, ow], without the dims that the convolution does not have. */
static wick_shape shape_of_result(const conv *c) {
    wick_shape shape = {.rank = c->n + 2, .extent = {c->batch, c->filters}};
    for (int i = 0; i < c->n; i++) shape.extent[2 + i] = c->out[DIMS - c->n + i];
    return shape;
}

static wick_tensor *with_depth(wick_tensor *x, int n) {
    if (!x) return NULL;
    wick_shape shape = {.rank = 2 + DIMS, .extent = {x->view.extent[0], x->view.extent[1], 1, 1}};
    for (int i = 0; i < n; i++) shape.extent[2 + DIMS - n + i] = x->view.extent[2 + i];
    return wick_reshape(x, shape);
}

/* Adds the bias to y [n, m, ..], which is its own. */
static wick_tensor *with_bias(const conv *c, wick_tensor *y, wick_tensor *bias) {
    if (!bias || !y) return y;
    return wk_add_to(y, wk_along(wk_widened(bias), c->n));
}

/* --- One op --- */

wick_tensor *wk_convolution(wick_tensor *x, wick_tensor *weight, wick_tensor *bias,
                            const wk_window_shape *w) {
    wick_tensor *const dense = wick_contiguous(weight);
    if (!x || !dense) return NULL;
    wick_shape shape = {.rank = WK_WINDOW_RANK,
                        .extent = {x->view.extent[0], weight->view.extent[0]}};
    for (int i = 0; i < DIMS; i++) {
        const int64_t padded = w->before[i] + x->view.extent[2 + i] + w->after[i];
        const int64_t span = w->dilation[i] * (w->kernel[i] - 1) + 1;
        shape.extent[2 + i] = (padded - span) / w->stride[i] + 1;
    }
    wick_tensor *const y = wk_tensor_new(x->device, x->view.dtype, &shape);
    wk_call call;
    wk_call_begin(&call, WK_OP_CONVOLUTION, NULL);
    wk_call_add(&call, y, NULL);
    wk_call_add(&call, x, NULL);
    wk_call_add(&call, dense, NULL);
    wk_call_add(&call, bias, NULL);
    call.op.p.windows = *w;
    return wk_queue_result(&call, y);
}

static bool is_one_op(const wick_tensor *x) {
    const wk_op op = {
        .code = WK_OP_CONVOLUTION, .n_dst = 1, .n_src = 2, .view = {x->view, x->view, x->view}};
    return wk_device_computes(x->device, &op);
}

static wick_tensor *convolve_at_once(const conv *c, wick_tensor *x, wick_tensor *weight,
                                     wick_tensor *bias) {
    wk_window_shape w;
    for (int i = 0; i < DIMS; i++) {
        w.kernel[i] = c->kernel[i];
        w.stride[i] = c->stride[i];
        w.dilation[i] = c->dilation[i];
        w.before[i] = c->padding[i];
        w.after[i] = c->after[i];
    }
    wick_tensor *const y = wk_convolution(with_depth(x, c->n), with_depth(weight, c->n), bias, &w);
    return wick_reshape(y, shape_of_result(c));
}

/* --- Two dims --- */

/* The elements of x [.., h, w] that meet element (i, j) of the kernel. */
static wick_tensor *met_by(const conv *c, wick_tensor *x, int64_t i, int64_t j) {
    const int h = x ? x->view.rank - 2 : 0;
    wick_tensor *const rows = wk_every(x, h, i * c->dilation[1], c->stride[1], c->out[1]);
    return wk_every(rows, h + 1, j * c->dilation[2], c->stride[2], c->out[2]);
}

/* One channel for each group, x [n, g, h, w], padded: a sum over the kernel's elements of products
 * [n, g, m / g, oh, ow] of vectors. */
static wick_tensor *sum_of_taps(const conv *c, wick_tensor *x, wick_tensor *weight) {
    const int64_t g = c->groups;
    wick_tensor *sum = NULL;
    for (int64_t tap = 0; tap < c->kernel[1] * c->kernel[2]; tap++) {
        const int64_t i = tap / c->kernel[2], j = tap % c->kernel[2];
        const wick_scope scope = wick_scope_begin(x->device);
        wick_tensor *const rows = wick_unsqueeze(met_by(c, x, i, j), 2);
        wick_tensor *const each = wick_narrow(wick_narrow(weight, 2, i, 1), 3, j, 1);
        wick_tensor *const factors = wick_reshape(each, WICK_SHAPE(g, c->filters / g, 1, 1));
        wick_tensor *const product = wick_mul(rows, factors);
        wick_tensor *const total = sum ? wk_add_to(sum, product) : wk_scope_keep(scope, product);
        wick_scope_end(scope);
        if (!total) return NULL;
        sum = total;
    }
    return wick_reshape(sum, WICK_SHAPE(c->batch, c->filters, c->out[1], c->out[2]));
}

/* One product for all samples: windows as rows [n r ow, k] by weights [k, m]. */
static wick_tensor *product_of_rows(const conv *c, wick_tensor *weights, wick_tensor *windows) {
    const int64_t *const extent = windows->view.extent;
    const int64_t n = extent[0], rows = extent[4], ow = extent[5];
    wick_tensor *const last = wick_permute(windows, 6, (const int[]){0, 4, 5, 1, 2, 3});
    wick_tensor *const all = wick_reshape(last, WICK_SHAPE(n * rows * ow, weights->view.extent[2]));
    wick_tensor *const columns = wick_transpose(wick_squeeze(weights, 0), 0, 1);
    wick_tensor *const y = wick_matmul(all, wick_contiguous(columns));
    return wick_permute(wick_reshape(y, WICK_SHAPE(n, rows, ow, c->filters)), 4,
                        (const int[]){0, 3, 1, 2});
}

/* y [n, m, r, ow] of some samples and rows: weights [g, m / g, k], windows [n g, c / g, kh, kw, r,
 * ow]. */
static wick_tensor *product_of(const conv *c, wick_tensor *weights, wick_tensor *windows) {
    if (!weights || !windows) return NULL;
    const int64_t *const extent = windows->view.extent;
    const int64_t n = extent[0] / c->groups, rows = extent[4], ow = extent[5];
    if (n > 1 && c->groups == 1 && rows * ow < FEW_POSITIONS)
        return product_of_rows(c, weights, windows);
    wick_tensor *const columns =
        wick_reshape(windows, WICK_SHAPE(n, c->groups, weights->view.extent[2], rows * ow));
    return wick_reshape(wick_matmul(weights, columns), WICK_SHAPE(n, c->filters, rows, ow));
}

/* As many samples, and rows of each, as have columns of most_bytes. */
static void find_piece(const conv *c, wick_tensor *windows, int64_t *samples, int64_t *rows) {
    const wk_view *const view = &windows->view;
    const wick_shape flat = {.rank = 3,
                             .extent = {view->extent[0],
                                        view->extent[1] * view->extent[2] * view->extent[3],
                                        view->extent[4] * view->extent[5]}};
    wk_view unused;
    *samples = c->batch;
    *rows = c->out[1];
    if (wk_view_reshape(view, &flat, &unused)) return; /* no copy is made */
    /* As floating-point numbers: of views that repeat elements the products may be any. */
    const double row = (double)c->channels * (double)(view->extent[2] * view->extent[3]) *
                       (double)c->out[2] * (double)wk_dtype_get(view->dtype)->block_bytes;
    const int64_t fit = (int64_t)((double)most_bytes / row); /* rows */
    if (fit >= c->out[1]) {
        if (fit / c->out[1] < *samples) *samples = fit / c->out[1];
    } else {
        *samples = 1;
        *rows = fit > 1 ? fit : 1;
    }
}

/* x [n, c, h, w], padded. */
static wick_tensor *product_of_windows(const conv *c, wick_tensor *x, wick_tensor *weight) {
    const int64_t g = c->groups, k = c->channels / g * c->kernel[1] * c->kernel[2];
    const int64_t h = x->view.extent[2], w = x->view.extent[3];
    wick_tensor *const weights = wick_reshape(weight, WICK_SHAPE(g, c->filters / g, k));
    wick_tensor *const grouped = wick_reshape(x, WICK_SHAPE(c->batch * g, c->channels / g, h, w));
    wick_tensor *const tall = wk_windows(grouped, 2, c->kernel[1], c->stride[1], c->dilation[1]);
    wick_tensor *const both = wk_windows(tall, 3, c->kernel[2], c->stride[2], c->dilation[2]);
    wick_tensor *const windows = wick_permute(both, 6, (const int[]){0, 1, 4, 5, 2, 3});
    if (!windows) return NULL;
    int64_t samples, rows;
    find_piece(c, windows, &samples, &rows);
    if (samples == c->batch && rows == c->out[1]) return product_of(c, weights, windows);

    const wick_shape shape = WICK_SHAPE(c->batch, c->filters, c->out[1], c->out[2]);
    wick_tensor *const y = wk_tensor_new(x->device, x->view.dtype, &shape);
    for (int64_t n = 0; y && n < c->batch; n += samples) {
        const int64_t some = c->batch - n < samples ? c->batch - n : samples;
        for (int64_t row = 0; row < c->out[1]; row += rows) {
            const int64_t few = c->out[1] - row < rows ? c->out[1] - row : rows;
            const wick_scope scope = wick_scope_begin(x->device);
            wick_tensor *const from =
                wick_narrow(wick_narrow(windows, 0, n * g, some * g), 4, row, few);
            wick_tensor *const to = wick_narrow(wick_narrow(y, 0, n, some), 2, row, few);
            const bool is_done = wick_copy(to, product_of(c, weights, from)) != NULL;
            wick_scope_end(scope);
            if (!is_done) return NULL;
        }
    }
    return y;
}

/* --- All of them --- */

/* The plane of x [n, c, d, h, w], padded, and of weight [m, c / groups, kd, kh, kw] that meet at
 * depth kd: [n od, m, oh, ow]. */
static wick_tensor *of_plane(const conv *c, wick_tensor *x, wick_tensor *weight, int64_t kd) {
    wick_tensor *const met = wk_every(x, 2, kd * c->dilation[0], c->stride[0], c->out[0]);
    wick_tensor *const planes = wick_permute(met, 5, (const int[]){0, 2, 1, 3, 4});
    if (!planes) return NULL;
    conv flat = *c;
    flat.batch = c->batch * c->out[0];
    wick_tensor *const images =
        wick_reshape(planes, WICK_SHAPE(flat.batch, c->channels, planes->view.extent[3],
                                        planes->view.extent[4]));
    wick_tensor *const kernel = wick_squeeze(wick_narrow(weight, 2, kd, 1), 2);
    if (!images || !kernel) return NULL;
    return c->channels == c->groups && c->kernel[1] * c->kernel[2] <= MOST_TAPS
               ? sum_of_taps(&flat, images, kernel)
               : product_of_windows(&flat, images, kernel);
}

static wick_tensor *convolve(const conv *c, wick_tensor *x, wick_tensor *weight) {
    wick_tensor *const padded =
        wk_padded(with_depth(wk_widened(x), c->n), 2, DIMS, c->padding, c->after, 0);
    wick_tensor *const kernel = with_depth(wk_widened(weight), c->n);
    wick_tensor *sum = NULL;
    for (int64_t kd = 0; padded && kernel && kd < c->kernel[0]; kd++) {
        const wick_scope scope = wick_scope_begin(x->device);
        wick_tensor *const plane = of_plane(c, padded, kernel, kd);
        wick_tensor *const total = sum ? wk_add_to(sum, plane) : wk_scope_keep(scope, plane);
        wick_scope_end(scope);
        if (!total) return NULL;
        sum = total;
    }
    wick_tensor *const split =
        wick_reshape(sum, WICK_SHAPE(c->batch, c->out[0], c->filters, c->out[1], c->out[2]));
    wick_tensor *const y = wick_permute(split, 5, (const int[]){0, 2, 1, 3, 4});
    return wick_reshape(wick_contiguous(y), shape_of_result(c));
}

/* Whether nothing is multiplied. */
static bool is_trivial(const conv *c) {
    return c->batch == 0 || c->filters == 0 || c->channels == 0;
}

static wick_tensor *zeros_of(const conv *c, const wick_tensor *x) {
    return wick_zeros(x->device, wk_wide_dtype(x->view.dtype), shape_of_result(c));
}

/* --- Transposed: each element of x spreads a kernel over y --- */

/* Adds the kernels of all elements of x [n, c, h, w] to y [n, m, fh, fw]: weights [g, m / g k,
 * c / g]. */
static bool spread(const conv *c, wick_tensor *x, wick_tensor *weights, wick_tensor *y) {
    if (!x || !weights || !y) return false;
    const int64_t n = x->view.extent[0], h = c->in[1], w = c->in[2];
    wick_tensor *const grouped =
        wick_reshape(x, WICK_SHAPE(n, c->groups, c->channels / c->groups, h * w));
    wick_tensor *const columns = wick_reshape(
        wick_matmul(weights, grouped), WICK_SHAPE(n, c->filters, c->kernel[1], c->kernel[2], h, w));
    for (int64_t i = 0; i < c->kernel[1]; i++) {
        wick_tensor *const rows = wk_every(y, 2, i * c->dilation[1], c->stride[1], h);
        wick_tensor *const row = wick_squeeze(wick_narrow(columns, 2, i, 1), 2);
        for (int64_t j = 0; j < c->kernel[2]; j++) {
            wick_tensor *const to = wk_every(rows, 3, j * c->dilation[2], c->stride[2], w);
            if (!wk_add_to(to, wick_squeeze(wick_narrow(row, 2, j, 1), 2))) return false;
        }
    }
    return true;
}

/* Of the result with what padding cuts off. */
static int64_t full_extent(const conv *c, int i) { return c->padding[i] + c->out[i] + c->after[i]; }

/* x [n, c, h, w], kernel [c, m / g, kh, kw]: [n, m, fh, fw], with what padding cuts off. */
static wick_tensor *spread_plane(const conv *c, wick_tensor *x, wick_tensor *kernel) {
    const int64_t k = c->kernel[1] * c->kernel[2], g = c->groups;
    const int64_t full_h = full_extent(c, 1), full_w = full_extent(c, 2);
    wick_tensor *const weights = wick_transpose(
        wick_reshape(kernel, WICK_SHAPE(g, c->channels / g, c->filters / g * k)), 1, 2);
    if (!x || !weights) return NULL;
    const int64_t n = x->view.extent[0];
    wick_tensor *const y =
        wick_zeros(x->device, x->view.dtype, WICK_SHAPE(n, c->filters, full_h, full_w));
    const double sample = (double)(c->filters * k) * (double)(c->in[1] * c->in[2]) *
                          (double)wk_dtype_get(x->view.dtype)->block_bytes;
    const int64_t fit = (int64_t)((double)most_bytes / sample), most = fit > 1 ? fit : 1;
    for (int64_t from = 0; from < n; from += most) {
        const int64_t some = n - from < most ? n - from : most;
        const wick_scope scope = wick_scope_begin(x->device);
        const bool is_done =
            spread(c, wick_narrow(x, 0, from, some), weights, wick_narrow(y, 0, from, some));
        wick_scope_end(scope);
        if (!is_done) return NULL;
    }
    return y;
}

/* All planes of x [n, d, c, h, w] by plane kd of the kernel: [n, d, m, fh, fw]. */
static wick_tensor *spread_planes(const conv *c, wick_tensor *x, wick_tensor *kernel, int64_t kd) {
    const int64_t n = c->batch * c->in[0];
    wick_tensor *const images = wick_reshape(x, WICK_SHAPE(n, c->channels, c->in[1], c->in[2]));
    wick_tensor *const plane =
        spread_plane(c, images, wick_squeeze(wick_narrow(kernel, 2, kd, 1), 2));
    return wick_reshape(
        plane, WICK_SHAPE(c->batch, c->in[0], c->filters, full_extent(c, 1), full_extent(c, 2)));
}

/* Each plane of the kernel adds to the planes of the result, [n, fd, m, fh, fw], that it meets. */
static wick_tensor *spread_depth(const conv *c, wick_tensor *x, wick_tensor *kernel) {
    if (c->n < DIMS) return spread_planes(c, x, kernel, 0);
    wick_tensor *const y = wick_zeros(
        x->device, x->view.dtype,
        WICK_SHAPE(c->batch, full_extent(c, 0), c->filters, full_extent(c, 1), full_extent(c, 2)));
    for (int64_t kd = 0; kd < c->kernel[0]; kd++) {
        const wick_scope scope = wick_scope_begin(x->device);
        wick_tensor *const met = wk_every(y, 1, kd * c->dilation[0], c->stride[0], c->in[0]);
        const bool is_done = wk_add_to(met, spread_planes(c, x, kernel, kd)) != NULL;
        wick_scope_end(scope);
        if (!is_done) return NULL;
    }
    return y;
}

static wick_tensor *convolve_transposed(const conv *c, wick_tensor *x, wick_tensor *weight) {
    wick_tensor *const deep = with_depth(wk_widened(x), c->n);
    wick_tensor *const kernel = with_depth(wk_widened(weight), c->n);
    wick_tensor *const planes = wick_permute(deep, 5, (const int[]){0, 2, 1, 3, 4});
    if (!planes || !kernel) return NULL;
    wick_tensor *const y = spread_depth(c, planes, kernel);
    wick_tensor *inner = wick_permute(y, 5, (const int[]){0, 2, 1, 3, 4});
    for (int i = 0; i < DIMS; i++) inner = wick_narrow(inner, 2 + i, c->padding[i], c->out[i]);
    return wick_reshape(wick_contiguous(inner), shape_of_result(c));
}

wick_tensor *wk_convolution_back(wick_tensor *g, wick_tensor *weight, const wk_view *x,
                                 const wk_window_shape *w) {
    if (!g || !weight) return NULL;
    conv c = {.n = DIMS,
              .batch = x->extent[0],
              .channels = g->view.extent[1],
              .filters = x->extent[1],
              .groups = x->extent[1] / weight->view.extent[1]};
    for (int i = 0; i < DIMS; i++) {
        c.kernel[i] = w->kernel[i];
        c.stride[i] = w->stride[i];
        c.dilation[i] = w->dilation[i];
        c.padding[i] = w->before[i];
        c.after[i] = w->after[i];
        c.in[i] = g->view.extent[2 + i];
        c.out[i] = x->extent[2 + i];
    }
    return convolve_transposed(&c, g, weight);
}

/* --- The public operations --- */

static wick_tensor *run(conv c, wick_tensor *x, wick_tensor *weight, wick_tensor *bias,
                        const wick_conv_desc *desc, bool is_transposed) {
    if (!check(&c, x, weight, bias, desc, is_transposed)) return NULL;
    const wick_scope scope = wk_operation_begin(x->device, c.name);
    if (!is_transposed && !is_trivial(&c) && is_one_op(x))
        return wick_scope_result(scope, convolve_at_once(&c, x, weight, bias));
    wick_tensor *const sum = is_trivial(&c)  ? zeros_of(&c, x)
                             : is_transposed ? convolve_transposed(&c, x, weight)
                                             : convolve(&c, x, weight);
    wick_tensor *const y = with_bias(&c, sum, bias);
    return wick_scope_result(scope, wk_promoted(y, x->view.dtype));
}

wick_tensor *wick_conv1d(wick_tensor *x, wick_tensor *weight, wick_tensor *bias,
                         const wick_conv_desc *desc) {
    return run((conv){.name = "conv1d", .n = 1}, x, weight, bias, desc, false);
}

wick_tensor *wick_conv2d(wick_tensor *x, wick_tensor *weight, wick_tensor *bias,
                         const wick_conv_desc *desc) {
    return run((conv){.name = "conv2d", .n = 2}, x, weight, bias, desc, false);
}

wick_tensor *wick_conv3d(wick_tensor *x, wick_tensor *weight, wick_tensor *bias,
                         const wick_conv_desc *desc) {
    return run((conv){.name = "conv3d", .n = 3}, x, weight, bias, desc, false);
}

wick_tensor *wick_conv_transpose1d(wick_tensor *x, wick_tensor *weight, wick_tensor *bias,
                                   const wick_conv_desc *desc) {
    return run((conv){.name = "conv_transpose1d", .n = 1}, x, weight, bias, desc, true);
}

wick_tensor *wick_conv_transpose2d(wick_tensor *x, wick_tensor *weight, wick_tensor *bias,
                                   const wick_conv_desc *desc) {
    return run((conv){.name = "conv_transpose2d", .n = 2}, x, weight, bias, desc, true);
}

wick_tensor *wick_conv_transpose3d(wick_tensor *x, wick_tensor *weight, wick_tensor *bias,
                                   const wick_conv_desc *desc) {
    return run((conv){.name = "conv_transpose3d", .n = 3}, x, weight, bias, desc, true);
}
