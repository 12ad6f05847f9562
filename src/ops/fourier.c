/* ops/fourier.c: discrete Fourier transforms as products with matrices of roots of 1. A length that
 * has factors is cut into two shorter ones (Cooley, Tukey, 1965):
 *
 *   t = n2 t1 + t2, k = k1 + n1 k2:
 *   X[k] = sum over t2 of W_n2^(t2 k2) W_n^(t2 k1) (sum over t1 of W_n1^(t1 k1) x[t]) */
#include "core/shape.h"
#include "ops/compose.h"

#include <wick/array.h>
#include <wick/ops.h>

#include <inttypes.h>
#include <math.h>

static const char name[] = "dft";

enum { MOST_OF_MATRIX = 128 }; /* a matrix of this size costs less than two shorter transforms */

/* Rows [r, n]; im NULL: zeros. */
typedef struct rows {
    wick_tensor *re, *im;
} rows;

/* --- Tables --- */

/* cos and sin of 2 pi i j / n, [a, b]: a tensor of each. */
static rows roots(const wick_tensor *like, int64_t a, int64_t b, int64_t n) {
    wk_heap *const heap = wk_device_heap(like->device);
    const size_t count = (size_t)(a * b);
    double *const both = wk_alloc_array(heap, count, 2 * sizeof *both);
    rows made = {NULL, NULL};
    if (!both) {
        wk_device_fail(like->device, WICK_ERR_OUT_OF_MEMORY, "%s: no memory for %zu roots", name,
                       count);
        return made;
    }
    for (int64_t i = 0; i < a; i++) {
        for (int64_t j = 0; j < b; j++) {
            const double angle = 2 * 3.14159265358979323846 * (double)(i * j % n) / (double)n;
            both[i * b + j] = cos(angle);
            both[(int64_t)count + i * b + j] = sin(angle);
        }
    }
    const wick_shape shape = WICK_SHAPE(a, b);
    const wick_dtype dtype = like->view.dtype;
    made.re = wick_reshape(wk_host_floats(like->device, dtype, a * b, both), shape);
    made.im = wick_reshape(wk_host_floats(like->device, dtype, a * b, both + count), shape);
    wk_free(heap, both, 2 * count * sizeof *both);
    return made;
}

/* --- Transforms of rows, e^(-i ..) --- */

typedef wick_tensor *product_fn(wick_tensor *a, wick_tensor *b);

/* x (w.re - i w.im) */
static rows times_roots(rows x, rows w, product_fn *times) {
    wick_tensor *const re = times(x.re, w.re), *const im = wick_neg(times(x.re, w.im));
    if (!x.im) return (rows){re, im};
    return (rows){wick_add(re, times(x.im, w.im)), wick_add(im, times(x.im, w.re))};
}

static wick_tensor *turned(wick_tensor *x, int64_t r, int64_t a, int64_t b) {
    return wick_reshape(wick_transpose(wick_reshape(x, WICK_SHAPE(r, a, b)), 1, 2),
                        WICK_SHAPE(r * b, a));
}

/* [r, a, b] to [r b, a]. */
static rows turn(rows x, int64_t r, int64_t a, int64_t b) {
    return (rows){turned(x.re, r, a, b), x.im ? turned(x.im, r, a, b) : NULL};
}

/* The largest divisor of n that a matrix suits. */
static int64_t divisor_of(int64_t n) {
    for (int64_t d = MOST_OF_MATRIX; d > 1; d--)
        if (n % d == 0) return d;
    return 1;
}

static rows transform(rows x) {
    const int64_t n = x.re ? x.re->view.extent[1] : 0;
    if (n == 0) return x;
    const int64_t r = x.re->view.extent[0], n1 = divisor_of(n), n2 = n / n1;
    if (n <= MOST_OF_MATRIX || n1 == 1) return times_roots(x, roots(x.re, n, n, n), wick_matmul);
    /* [r, t1, t2], [r t2, k1], [r, t2, k1] times its roots, [r k1, t2], [r k1, k2], [r, k2, k1] */
    rows y = turn(x, r, n1, n2);
    y = times_roots(y, roots(x.re, n1, n1, n1), wick_matmul);
    rows w = roots(x.re, n2, n1, n);
    const wick_shape shape = WICK_SHAPE(r, n2, n1);
    y = (rows){wick_reshape(y.re, shape), wick_reshape(y.im, shape)};
    y = turn(times_roots(y, w, wick_mul), r, n2, n1);
    y = turn(transform(y), r, n1, n2);
    const wick_shape all = WICK_SHAPE(r, n);
    return (rows){wick_reshape(y.re, all), wick_reshape(y.im, all)};
}

/* --- The operation --- */

static bool check(wick_tensor *x, int dim, int *resolved, int64_t length, bool is_both) {
    if (!wk_operand_is_float(name, x) || !wk_operand_is_strided(name, x) ||
        !wk_operand_rank(name, "x", x, 2, WICK_MAX_RANK) || !wk_operand_dim(name, x, dim, resolved))
        return false;
    const int last = x->view.rank - 1;
    const int64_t n_parts = x->view.extent[last];
    if (*resolved == last || n_parts < 1 || n_parts > 2) {
        wk_device_fail(x->device, *resolved == last ? WICK_ERR_DIM : WICK_ERR_SHAPE,
                       "%s: the last dim has the real and the imaginary part, not %" PRId64
                       " elements, and is not transformed",
                       name, n_parts);
        return false;
    }
    const int64_t n = length != 0 ? length : x->view.extent[*resolved];
    if (n > 0 && n <= INT32_MAX && !is_both) return true;
    wk_device_fail(x->device, WICK_ERR_VALUE, "%s: a length of %" PRId64 "%s", name, n,
                   is_both ? " of an inverse transform of a half" : "");
    return false;
}

/* Part i of x, dim last, as rows of n elements. */
static wick_tensor *part(wick_tensor *x, int i, int dim, int64_t n) {
    const int64_t have = x->view.extent[dim], none = 0, more = n - have;
    wick_tensor *const of_x = wick_squeeze(wick_narrow(x, -1, i, 1), -1);
    wick_tensor *const cut = wick_narrow(of_x, dim, 0, have < n ? have : n);
    wick_tensor *const all = more > 0 ? wk_padded(cut, dim, 1, &none, &more, 0) : cut;
    const int from = dim, to = -1;
    int64_t count = 1;
    for (int d = 0; d < x->view.rank - 1; d++) count *= d == dim ? 1 : x->view.extent[d];
    return wick_reshape(wick_movedim(all, 1, &from, &to), WICK_SHAPE(count, n));
}

/* Rows back to the shape of x, dim again where it was; the first n_kept elements. */
static wick_tensor *as_part(wick_tensor *y, const wick_tensor *x, int dim, int64_t n_kept) {
    if (!y) return NULL;
    wick_shape shape = {.rank = x->view.rank - 1};
    int at = 0;
    for (int d = 0; d < shape.rank; d++)
        if (d != dim) shape.extent[at++] = x->view.extent[d];
    shape.extent[at] = y->view.extent[1];
    const int from = -1, to = dim;
    return wick_narrow(wick_movedim(wick_reshape(y, shape), 1, &from, &to), dim, 0, n_kept);
}

wick_tensor *wick_dft(wick_tensor *x, int dim, int64_t length, bool inverse, bool onesided) {
    if (!x || !check(x, dim, &dim, length, inverse && onesided)) return NULL;
    const int64_t n = length != 0 ? length : x->view.extent[dim];
    const bool is_complex = x->view.extent[x->view.rank - 1] == 2;
    const wick_scope scope = wk_operation_begin(x->device, "dft");
    wick_tensor *const wide = wk_widened(x);
    rows y = {NULL, NULL};
    if (wide) y.re = part(wide, 0, dim, n);
    if (wide && is_complex) y.im = part(wide, 1, dim, n);
    /* The inverse: of the conjugate, conjugated. */
    if (inverse && y.im) y.im = wick_neg(y.im);
    if (y.re && (y.im || !is_complex)) y = transform(y);
    if (inverse) {
        y.re = wick_affine(y.re, 1 / (double)n, 0);
        y.im = wick_affine(y.im, -1 / (double)n, 0);
    }
    const int64_t n_kept = onesided ? n / 2 + 1 : n;
    wick_tensor *const both[] = {as_part(y.re, x, dim, n_kept), as_part(y.im, x, dim, n_kept)};
    return wick_scope_result(scope, wk_promoted(wick_stack(both, 2, -1), x->view.dtype));
}
