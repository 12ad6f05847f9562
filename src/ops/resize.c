/* ops/resize.c: other extents by interpolation, one dim after the other: each output is a weighted
 * sum of some neighbours, whose numbers and weights are computed here in float64. */
#include <wick/nn.h>

#include "ops/compose.h"

#include <inttypes.h>
#include <math.h>

enum { DIMS = 3 };

/* How one dim is resized. */
typedef struct rule {
    wick_resize_mode mode;
    bool align_corners;
    bool is_antialiased, repeats_ends;
    double a; /* of the cubic function */
} rule;

/* For each of n outputs, number by number of its neighbours (taps): [n_taps][n]. */
typedef struct table {
    int64_t n;
    int n_taps;
    uint32_t *index;
    double *weight;
} table;

static bool check(const char *name, const wick_tensor *x, int n, const int64_t *size,
                  wick_resize_mode mode) {
    if (!size || n < 1 || n > DIMS) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "%s: %d sizes, not 1 to %d", name, size ? n : 0,
                       DIMS);
        return false;
    }
    if ((unsigned)mode > WICK_RESIZE_CUBIC) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "%s: there is no mode %d", name, (int)mode);
        return false;
    }
    if (mode != WICK_RESIZE_NEAREST && !wk_operand_is_float(name, x)) return false;
    if (!wk_operand_is_strided(name, x) || !wk_dtype_is_writable(name, x->device, x->view.dtype) ||
        !wk_operand_rank(name, "x", x, n + 1, WICK_MAX_RANK))
        return false;
    for (int i = 0; i < n; i++) {
        const int64_t in = x->view.extent[x->view.rank - n + i];
        if (size[i] < 1 || size[i] > INT32_MAX) {
            wk_device_fail(x->device, WICK_ERR_VALUE, "%s: a size is %" PRId64, name, size[i]);
            return false;
        }
        if (in >= 1 && in <= INT32_MAX) continue;
        wk_device_fail(x->device, WICK_ERR_SHAPE, "%s: dim %d has %" PRId64 " elements", name,
                       x->view.rank - n + i, in);
        return false;
    }
    return true;
}

/* The share of an element at a distance (Keys, 1981). */
static double share_at(const rule *r, double distance) {
    const double a = r->a, x = fabs(distance);
    if (r->mode == WICK_RESIZE_LINEAR) return fmax(0, 1 - x);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static uint32_t held(int64_t i, int64_t n) { return (uint32_t)(i < 0 ? 0 : i < n ? i : n - 1); }

/* Where output i comes from. */
static double place_of(const rule *r, int64_t i, int64_t in, int64_t out) {
    if (r->align_corners) return out > 1 ? (double)i * (double)(in - 1) / (double)(out - 1) : 0;
    const double at = ((double)i + 0.5) * (double)in / (double)out - 0.5;
    return r->mode == WICK_RESIZE_LINEAR && !r->is_antialiased && at < 0 ? 0 : at;
}

/* How far taps reach to either side of a place. */
static double reach(const rule *r, int64_t in, int64_t out) {
    const double wider = r->is_antialiased && in > out ? (double)in / (double)out : 1;
    return wider * (r->mode == WICK_RESIZE_CUBIC ? 2 : 1);
}

static int taps_of(const rule *r, int64_t in, int64_t out) {
    return r->mode == WICK_RESIZE_NEAREST ? 1 : 2 * (int)ceil(reach(r, in, out));
}

/* The taps of output i; their weights add up to 1. */
static void fill_row(const table *t, int64_t i, int64_t in, const rule *r) {
    const double at = place_of(r, i, in, t->n), width = reach(r, in, t->n);
    const double narrower = (r->mode == WICK_RESIZE_CUBIC ? 2 : 1) / width;
    const int64_t first = (int64_t)floor(at) - t->n_taps / 2 + 1;
    double sum = 0;
    for (int k = 0; k < t->n_taps; k++) {
        const int64_t j = first + k;
        const bool is_left_out = r->is_antialiased && !r->repeats_ends && (j < 0 || j >= in);
        const double weight = is_left_out ? 0 : share_at(r, ((double)j - at) * narrower);
        t->index[k * t->n + i] = held(j, in);
        t->weight[k * t->n + i] = weight;
        sum += weight;
    }
    for (int k = 0; r->is_antialiased && k < t->n_taps; k++) t->weight[k * t->n + i] /= sum;
}

static void fill_table(const table *t, int64_t in, const rule *r) {
    for (int64_t i = 0; i < t->n; i++) {
        if (r->mode == WICK_RESIZE_NEAREST)
            t->index[i] = (uint32_t)(i * in / t->n);
        else
            fill_row(t, i, in, r);
    }
}

static wick_tensor *sum_of_taps(wick_tensor *x, int dim, const table *t, bool is_weighted) {
    wick_tensor *sum = NULL;
    for (int k = 0; k < t->n_taps; k++) {
        const wick_scope scope = wick_scope_begin(x->device);
        wick_tensor *const index =
            wick_tensor_from_data(x->device, WICK_U32, WICK_SHAPE(t->n), t->index + k * t->n,
                                  (size_t)t->n * sizeof *t->index);
        wick_tensor *part = wick_index_select(x, dim, index);
        if (is_weighted) {
            wick_tensor *const weight =
                wk_host_floats(x->device, x->view.dtype, t->n, t->weight + k * t->n);
            part = wick_mul(part, wk_along(weight, x->view.rank - 1 - dim));
        }
        wick_tensor *const total = sum ? wk_add_to(sum, part) : wk_scope_keep(scope, part);
        wick_scope_end(scope);
        if (!total) return NULL;
        sum = total;
    }
    return sum;
}

static wick_tensor *resize_dim(wick_tensor *x, int dim, int64_t size, const rule *r) {
    if (!x || x->view.extent[dim] == size) return x;
    wk_heap *const heap = wk_device_heap(x->device);
    table t = {.n = size, .n_taps = taps_of(r, x->view.extent[dim], size)};
    const size_t indices = (size_t)t.n_taps * sizeof *t.index; /* bytes for each output */
    const size_t weights = (size_t)t.n_taps * sizeof *t.weight;
    t.index = wk_alloc_array(heap, (size_t)t.n, indices);
    t.weight = wk_alloc_array(heap, (size_t)t.n, weights);
    wick_tensor *y = NULL;
    if (t.index && t.weight) {
        fill_table(&t, x->view.extent[dim], r);
        y = sum_of_taps(x, dim, &t, r->mode != WICK_RESIZE_NEAREST);
    } else {
        wk_device_fail(x->device, WICK_ERR_OUT_OF_MEMORY,
                       "resize: no memory for a table of %" PRId64 " places", t.n);
    }
    wk_free(heap, t.weight, (size_t)t.n * weights);
    wk_free(heap, t.index, (size_t)t.n * indices);
    return y;
}

static wick_tensor *resize(const char *op, wick_tensor *x, int n, const int64_t *size,
                           const rule *r) {
    const wick_scope scope = wk_operation_begin(x->device, op);
    const int first = x->view.rank - n;
    wick_tensor *y = r->mode == WICK_RESIZE_NEAREST ? x : wk_widened(x);
    for (int i = 0; i < n; i++) y = resize_dim(y, first + i, size[i], r);
    return wick_scope_result(scope, wk_own(wk_promoted(y, x->view.dtype), x));
}

wick_tensor *wick_resize(wick_tensor *x, int n, const int64_t *size, wick_resize_mode mode,
                         bool align_corners) {
    if (!x || !check("resize", x, n, size, mode)) return NULL;
    return resize("resize", x, n, size,
                  &(rule){.mode = mode, .align_corners = align_corners, .a = -0.75});
}

wick_tensor *wick_resize_antialiased(wick_tensor *x, int n, const int64_t *size,
                                     wick_resize_mode mode, double a, bool repeats_ends) {
    static const char name[] = "resize_antialiased";
    if (!x || !check(name, x, n, size, mode)) return NULL;
    if (mode == WICK_RESIZE_NEAREST || !isfinite(a)) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "%s: mode is %d and a %g", name, (int)mode, a);
        return NULL;
    }
    return resize(
        name, x, n, size,
        &(rule){.mode = mode, .is_antialiased = true, .repeats_ends = repeats_ends, .a = a});
}
