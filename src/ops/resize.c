/* ops/resize.c: other extents by interpolation, one dim after the other: each output is a weighted
 * sum of some neighbours, whose numbers and weights are computed here in float64. */
#include <wick/nn.h>

#include "ops/compose.h"

#include <inttypes.h>
#include <math.h>

enum { DIMS = 3, MOST_TAPS = 4 };

/* For each of n outputs, number by number of its neighbours (taps): [n_taps][n]. */
typedef struct table {
    int64_t n;
    int n_taps;
    uint32_t *index;
    double *weight;
} table;

static bool check(const wick_tensor *x, int n, const int64_t *size, wick_resize_mode mode) {
    static const char name[] = "resize";
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

/* Weights of the elements before, at, after and twice after a place between the second and the
 * third one, at a distance of t from the second (Keys, 1981). */
static void cubic_weights(double t, double weight[4]) {
    static const double a = -0.75;
    const double d[4] = {1 + t, t, 1 - t, 2 - t};
    for (int i = 0; i < 4; i++) {
        const double x = d[i];
        weight[i] = i == 1 || i == 2 ? ((a + 2) * x - (a + 3)) * x * x + 1
                                     : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
    }
}

static void fill_table(const table *t, int64_t in, wick_resize_mode mode, bool align_corners) {
    for (int64_t i = 0; i < t->n; i++) {
        if (mode == WICK_RESIZE_NEAREST) {
            t->index[i] = (uint32_t)(i * in / t->n);
            continue;
        }
        double at = ((double)i + 0.5) * (double)in / (double)t->n - 0.5;
        if (align_corners) at = t->n > 1 ? (double)i * (double)(in - 1) / (double)(t->n - 1) : 0;
        if (mode == WICK_RESIZE_LINEAR && at < 0) at = 0;
        const int64_t left = (int64_t)floor(at);
        const double share = at - (double)left;
        double weight[MOST_TAPS] = {1 - share, share};
        if (mode == WICK_RESIZE_CUBIC) cubic_weights(share, weight);
        for (int k = 0; k < t->n_taps; k++) {
            const int64_t j = left + k - (mode == WICK_RESIZE_CUBIC);
            t->index[k * t->n + i] = (uint32_t)(j < 0 ? 0 : j < in ? j : in - 1);
            t->weight[k * t->n + i] = weight[k];
        }
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

static wick_tensor *resize_dim(wick_tensor *x, int dim, int64_t size, wick_resize_mode mode,
                               bool align_corners) {
    static const int n_taps[] = {1, 2, MOST_TAPS};
    if (!x || x->view.extent[dim] == size) return x;
    wk_heap *const heap = wk_device_heap(x->device);
    table t = {.n = size, .n_taps = n_taps[mode]};
    const size_t indices = (size_t)t.n_taps * sizeof *t.index; /* bytes for each output */
    const size_t weights = (size_t)t.n_taps * sizeof *t.weight;
    t.index = wk_alloc_array(heap, (size_t)t.n, indices);
    t.weight = wk_alloc_array(heap, (size_t)t.n, weights);
    wick_tensor *y = NULL;
    if (t.index && t.weight) {
        fill_table(&t, x->view.extent[dim], mode, align_corners);
        y = sum_of_taps(x, dim, &t, mode != WICK_RESIZE_NEAREST);
    } else {
        wk_device_fail(x->device, WICK_ERR_OUT_OF_MEMORY,
                       "resize: no memory for a table of %" PRId64 " places", t.n);
    }
    wk_free(heap, t.weight, (size_t)t.n * weights);
    wk_free(heap, t.index, (size_t)t.n * indices);
    return y;
}

wick_tensor *wick_resize(wick_tensor *x, int n, const int64_t *size, wick_resize_mode mode,
                         bool align_corners) {
    if (!x || !check(x, n, size, mode)) return NULL;
    const wick_scope scope = wick_scope_begin(x->device);
    const int first = x->view.rank - n;
    wick_tensor *y = mode == WICK_RESIZE_NEAREST ? x : wk_widened(x);
    for (int i = 0; i < n; i++) y = resize_dim(y, first + i, size[i], mode, align_corners);
    return wick_scope_result(scope, wk_own(wk_promoted(y, x->view.dtype), x));
}
