/* ops/pool.c: pooling of the last dims, as that of images. */
#include <wick/nn.h>

#include "core/dtype.h"
#include "ops/compose.h"
#include "ops/windows.h"

#include <inttypes.h>
#include <math.h>

enum { DIMS = 3 };

typedef struct pool {
    const char *name;
    int n, first; /* the pooled dims: first to first + n - 1 */
    int64_t kernel[DIMS], stride[DIMS], padding[DIMS], dilation[DIMS];
    int64_t after[DIMS]; /* padding at the end that the last window needs */
    int64_t in[DIMS], out[DIMS];
} pool;

/* --- Checks --- */

/* One more than the pooled dims, so that what is not pooled can be one dim. */
static bool check_rank(const char *name, const wick_tensor *x, int n) {
    return wk_operand_rank(name, "x", x, n + 1, WICK_MAX_RANK);
}

static bool refuse(const pool *p, const wick_tensor *x, const char *what, int64_t value) {
    wk_device_fail(x->device, WICK_ERR_VALUE, "%s: %s is %" PRId64, p->name, what, value);
    return false;
}

/* The desc's numbers of dim i; bounded so that no sum overflows. */
static bool resolve(pool *p, const wick_tensor *x, const wick_pooling_desc *desc, int i) {
    const int64_t kernel = desc->kernel[i], dilation = desc->dilation[i];
    p->kernel[i] = kernel;
    p->stride[i] = desc->stride[i] != 0 ? desc->stride[i] : kernel;
    p->padding[i] = desc->padding[i];
    p->dilation[i] = dilation != 0 ? dilation : 1;
    if (kernel < 1 || kernel > INT32_MAX) return refuse(p, x, "a kernel", kernel);
    if (p->stride[i] < 1 || p->stride[i] > INT32_MAX) return refuse(p, x, "a stride", p->stride[i]);
    if (p->dilation[i] < 1 || p->dilation[i] > INT32_MAX)
        return refuse(p, x, "a dilation", dilation);
    const int64_t span = p->dilation[i] * (kernel - 1) + 1;
    if (p->padding[i] >= 0 && p->padding[i] <= span / 2 && p->padding[i] <= INT32_MAX) return true;
    wk_device_fail(x->device, WICK_ERR_VALUE,
                   "%s: padding %" PRId64 " is not from 0 to half of the kernel's %" PRId64,
                   p->name, p->padding[i], span);
    return false;
}

static bool find_extent(pool *p, const wick_tensor *x, bool is_ceil, int i) {
    const int64_t in = x->view.extent[p->first + i], s = p->stride[i];
    const int64_t span = p->dilation[i] * (p->kernel[i] - 1) + 1;
    if (in > INT64_MAX / 2) {
        wk_device_fail(x->device, WICK_ERR_SHAPE, "%s: an extent of %" PRId64 " is too large",
                       p->name, in);
        return false;
    }
    const int64_t room = in + 2 * p->padding[i] - span + (is_ceil ? s - 1 : 0);
    p->in[i] = in;
    p->out[i] = room < 0 ? 0 : room / s + 1;
    /* A window that begins in the padding at the end is none. */
    if (is_ceil && p->out[i] > 0 && (p->out[i] - 1) * s >= in + p->padding[i]) p->out[i]--;
    if (in < 1 || p->out[i] < 1) {
        wk_device_fail(x->device, WICK_ERR_SHAPE,
                       "%s: an extent of %" PRId64
                       " is less, with its padding, than the kernel's %" PRId64,
                       p->name, in, span);
        return false;
    }
    const int64_t missing = (p->out[i] - 1) * s + span - in - p->padding[i];
    p->after[i] = missing > 0 ? missing : 0;
    return true;
}

static bool check(pool *p, wick_tensor *x, const wick_pooling_desc *desc) {
    if (!wk_operand_is_strided(p->name, x) || !check_rank(p->name, x, p->n)) return false;
    if (!desc) return refuse(p, x, "a kernel", 0);
    p->first = x->view.rank - p->n;
    for (int i = 0; i < p->n; i++)
        if (!resolve(p, x, desc, i) || !find_extent(p, x, desc->ceil_mode, i)) return false;
    return true;
}

/* --- Images --- */

/* x [.., pooled dims] as [n, c, d, h, w], with extents of 1 where it has fewer. */
static wick_tensor *as_images(wick_tensor *x, int n) {
    const int outer = x->view.rank - n;
    wick_shape shape = WICK_SHAPE(1, 1, 1, 1, 1);
    for (int i = 0; i < outer - 1; i++) shape.extent[0] *= x->view.extent[i];
    shape.extent[1] = x->view.extent[outer - 1];
    for (int i = 0; i < n; i++) shape.extent[WK_WINDOW_RANK - n + i] = x->view.extent[outer + i];
    return wick_reshape(x, shape);
}

/* y [n, c, d, h, w] shaped as x in all dims before those of size [n]. */
static wick_tensor *shaped_as(wick_tensor *y, const wick_tensor *x, int n, const int64_t *size) {
    if (!y) return NULL;
    wick_shape shape = wk_tensor_shape_of(x);
    for (int i = 0; i < n; i++) shape.extent[shape.rank - n + i] = size[i];
    return wick_reshape(y, shape);
}

/* The pooled dims as the last of three. */
static wk_window_shape windows_of(const pool *p) {
    wk_window_shape w = {.kernel = {1, 1, 1}, .stride = {1, 1, 1}, .dilation = {1, 1, 1}};
    for (int i = 0; i < p->n; i++) {
        const int at = DIMS - p->n + i;
        w.kernel[at] = p->kernel[i];
        w.stride[at] = p->stride[i];
        w.dilation[at] = p->dilation[i];
        w.before[at] = p->padding[i];
        w.after[at] = p->after[i];
    }
    return w;
}

/* All windows of x, of the shape that results. */
static wick_tensor *pooled(const pool *p, wick_tensor *x, wk_window_fn fn, bool counts_padding) {
    int64_t size[DIMS] = {1, 1, 1};
    for (int i = 0; i < p->n; i++) size[DIMS - p->n + i] = p->out[i];
    const wk_params params = {
        .pool = {.windows = windows_of(p), .fn = fn, .counts_padding = counts_padding}};
    return shaped_as(wk_pooled(as_images(x, p->n), size, &params), x, p->n, p->out);
}

/* --- Maximum --- */

/* Where each element of the padded x stands in x, counted over the pooled dims; padding before x as
 * the first element of windows that begin there: of windows of -infinity the first is chosen. */
static wick_tensor *make_places(const pool *p, wick_device *device) {
    wick_tensor *places = NULL;
    double step = 1;
    for (int i = p->n - 1; i >= 0; i--) {
        wick_tensor *const line = wick_arange(device, WICK_I32, (double)-p->padding[i],
                                              (double)(p->in[i] + p->after[i]), 1);
        wick_tensor *const dilation =
            wick_full(device, WICK_I32, WICK_SCALAR, (double)p->dilation[i]);
        wick_tensor *const first = wick_maximum(line, wick_remainder(line, dilation));
        wick_tensor *const inside = wick_clamp(first, 0, (double)(p->in[i] - 1));
        wick_tensor *const scaled = wick_affine(wick_cast(inside, WICK_U32), step, 0);
        wick_tensor *const along = wk_along(scaled, p->n - 1 - i);
        places = i == p->n - 1 ? along : wick_add(along, places);
        step *= (double)p->in[i];
    }
    return places;
}

/* Which element of each window is the largest: NaN where any is, which wick_argmax leaves out. */
static wick_tensor *largest_of(wick_tensor *windows) {
    wick_tensor *const largest = wick_argmax(windows, -1, true);
    if (!windows || !wk_dtype_is_float(windows->view.dtype)) return largest;
    wick_tensor *const is_nan = wick_is_nan(windows);
    return wick_where(wick_max(is_nan, 1, (const int[]){-1}, true), wick_argmax(is_nan, -1, true),
                      largest);
}

/* The largest elements of the windows of x, and the places of these. */
static wick_tensor *largest_with_places(const pool *p, wick_tensor *x, wick_tensor **places) {
    wick_tensor *y = wk_padded(as_images(x, p->n), WK_WINDOW_RANK - p->n, p->n, p->padding,
                               p->after, -(double)INFINITY);
    if (!y) return NULL;
    const wk_window_shape w = windows_of(p);
    wick_tensor *at = wick_expand(make_places(p, x->device), wk_tensor_shape_of(y));
    for (int i = DIMS - 1; i >= DIMS - p->n; i--) {
        wick_tensor *const windows = wk_window_view(y, &w, i);
        wick_tensor *const chosen = largest_of(windows);
        at = wick_squeeze(wick_take_along_dim(wk_window_view(at, &w, i), -1, chosen), -1);
        y = wick_max(windows, 1, (const int[]){-1}, false);
    }
    *places = shaped_as(at, x, p->n, p->out);
    return *places ? shaped_as(y, x, p->n, p->out) : NULL;
}

/* u32 counts the elements of a plane. */
static bool can_count(const pool *p, const wick_tensor *x) {
    double n = 1;
    for (int i = 0; i < p->n; i++) n *= (double)p->in[i];
    if (n <= (double)INT32_MAX) return true;
    wk_device_fail(x->device, WICK_ERR_SHAPE, "%s: no indices into planes of %.0f elements",
                   p->name, n);
    return false;
}

static wick_tensor *max_pool(pool p, wick_tensor *x, const wick_pooling_desc *desc,
                             wick_tensor **indices) {
    if (indices) *indices = NULL;
    if (!x || !wk_operand_is_number(p.name, x) || !check(&p, x, desc)) return NULL;
    if (indices && !can_count(&p, x)) return NULL;
    const wick_scope scope = wk_operation_begin(x->device, p.name);
    if (!indices) return wick_scope_result(scope, pooled(&p, x, WK_WINDOW_MAX, false));
    wick_tensor *places = NULL;
    wick_tensor *const y = largest_with_places(&p, x, &places);
    if (y) *indices = wk_scope_keep(scope, places);
    return wick_scope_result(scope, y);
}

/* --- Mean --- */

static wick_tensor *avg_pool(pool p, wick_tensor *x, const wick_pooling_desc *desc) {
    if (!x || !wk_operand_is_float(p.name, x) || !check(&p, x, desc)) return NULL;
    for (int i = 0; i < p.n; i++)
        if (p.dilation[i] != 1) {
            (void)refuse(&p, x, "a dilation, which has to be 1,", p.dilation[i]);
            return NULL;
        }
    const wick_scope scope = wk_operation_begin(x->device, p.name);
    return wick_scope_result(scope, pooled(&p, x, WK_WINDOW_MEAN, !desc->excludes_padding));
}

#define DEFINE(dims)                                                                               \
    wick_tensor *wick_max_pool##dims##d(wick_tensor *x, const wick_pooling_desc *desc,             \
                                        wick_tensor **indices) {                                   \
        return max_pool((pool){.name = "max_pool" #dims "d", .n = dims}, x, desc, indices);        \
    }                                                                                              \
    wick_tensor *wick_avg_pool##dims##d(wick_tensor *x, const wick_pooling_desc *desc) {           \
        return avg_pool((pool){.name = "avg_pool" #dims "d", .n = dims}, x, desc);                 \
    }
DEFINE(1)
DEFINE(2)
DEFINE(3)
#undef DEFINE

/* --- Adaptive --- */

typedef wick_tensor *reduce_fn(wick_tensor *x, int n_dims, const int *dims, bool keepdim);

static bool check_adaptive(const char *name, const wick_tensor *x, int n, const int64_t *size) {
    if (!size || n < 1 || n > DIMS) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "%s: %d sizes, not 1 to %d", name, size ? n : 0,
                       DIMS);
        return false;
    }
    if (!wk_operand_is_strided(name, x) || !check_rank(name, x, n)) return false;
    for (int i = 0; i < n; i++) {
        if (size[i] < 1) {
            wk_device_fail(x->device, WICK_ERR_VALUE, "%s: a size is %" PRId64, name, size[i]);
            return false;
        }
        if (x->view.extent[x->view.rank - n + i] > 0) continue;
        wk_device_fail(x->device, WICK_ERR_SHAPE, "%s: nothing to choose from in dim %d", name,
                       x->view.rank - n + i);
        return false;
    }
    return true;
}

/* Windows of unequal extent: each by itself. */
static wick_tensor *reduce_parts(wick_tensor *x, int dim, int64_t out, reduce_fn *reduce) {
    wick_shape shape = wk_tensor_shape_of(x);
    const int64_t in = shape.extent[dim];
    shape.extent[dim] = out;
    wick_tensor *const y = wk_tensor_new(x->device, x->view.dtype, &shape);
    if (y && wk_tensor_is_empty(y)) return y; /* out may be any number, of nothing */
    for (int64_t i = 0; y && i < out; i++) {
        /* i in / out without its overflow */
        const int64_t begin = i * (in / out) + i * (in % out) / out;
        const int64_t next = (i + 1) * (in % out);
        const int64_t end = (i + 1) * (in / out) + next / out + (next % out != 0);
        const wick_scope scope = wick_scope_begin(x->device);
        wick_tensor *const part = reduce(wick_narrow(x, dim, begin, end - begin), 1, &dim, true);
        const bool is_done = wick_copy(wick_narrow(y, dim, i, 1), part) != NULL;
        wick_scope_end(scope);
        if (!is_done) return NULL;
    }
    return y;
}

static wick_tensor *reduce_to(wick_tensor *x, int dim, int64_t out, reduce_fn *reduce) {
    if (!x || x->view.extent[dim] == out) return x;
    const int64_t in = x->view.extent[dim];
    if (in % out != 0) return reduce_parts(x, dim, out, reduce);
    return reduce(wk_windows(x, dim, in / out, in / out, 1), 1, (const int[]){-1}, false);
}

static wick_tensor *pool_to(const char *op, wick_tensor *x, int n, const int64_t *size,
                            reduce_fn *reduce) {
    const wick_scope scope = wk_operation_begin(x->device, op);
    wick_tensor *y = as_images(reduce == wick_mean ? wk_widened(x) : x, n);
    for (int i = n - 1; i >= 0; i--) y = reduce_to(y, WK_WINDOW_RANK - n + i, size[i], reduce);
    y = wk_promoted(shaped_as(y, x, n, size), x->view.dtype);
    return wick_scope_result(scope, y);
}

wick_tensor *wick_adaptive_avg_pool(wick_tensor *x, int n, const int64_t *size) {
    static const char name[] = "adaptive_avg_pool";
    if (!x || !wk_operand_is_float(name, x) || !check_adaptive(name, x, n, size)) return NULL;
    return pool_to(name, x, n, size, wick_mean);
}

wick_tensor *wick_adaptive_max_pool(wick_tensor *x, int n, const int64_t *size) {
    static const char name[] = "adaptive_max_pool";
    if (!x || !wk_operand_is_number(name, x) || !check_adaptive(name, x, n, size)) return NULL;
    return pool_to(name, x, n, size, wick_max);
}
