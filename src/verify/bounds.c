/* verify/bounds.c: what a result may differ by, where more is known than wk_op_tolerance says.
 *
 * A sum of products may be off by a small part of S, the sum of the magnitudes of its terms,
 * however much of it cancels. Where activations may be quantized, a block of 32 may round each of
 * them by 1/254 of its largest magnitude (8 bits), and by 1/128 of that where this stands out of
 * its row (docs/numerics.md). */
#include "verify/case.h"

#include "backend/row.h"
#include "core/dtype.h"

#include <math.h>

enum { QUANT_BLOCK = 32 };

static const double quant_step = 1.0 / 254, logit_error = 2e-7;
/* Blocks whose largest magnitude is less than this may count as zeros. */
static const double quant_least = 0x1p-80;

static double sum_error(wick_dtype dtype) { return dtype == WICK_F64 ? 1e-14 : 1e-6; }

static double largest_of(const wk_view *view) {
    double largest = 0, value;
    for (int64_t r = 0; wk_view_count(view) > 0 && r < wk_row_count(view); r++) {
        const wk_row row = wk_row_at(view, r);
        for (int64_t i = 0; i < row.n; i++) {
            wk_row_load(&row, i, 1, &value);
            if (isfinite(value)) largest = fmax(largest, fabs(value));
        }
    }
    return largest;
}

/* --- matmul --- */

static void sum_matmul(const wk_op *op, bool is_fast, double *row_a, double *row_b,
                       double *bounds) {
    (void)is_fast;
    const wk_view *const a = wk_src(op, 0), *const b = wk_src(op, 1), *const c = wk_dst(op, 0);
    const int64_t m = c->extent[c->rank - 2], n = c->extent[c->rank - 1];
    const int64_t k = a->extent[a->rank - 1];
    const double factor = sum_error(c->dtype);
    for (int64_t r = 0; r < wk_row_count(c); r++) {
        const wk_row left = wk_row_at(a, r);
        wk_row_load(&left, 0, k, row_a);
        for (int64_t l = 0; l < k; l++) {
            const wk_row right = wk_row_at(b, r / m * k + l);
            wk_row_load(&right, 0, n, row_b);
            for (int64_t j = 0; j < n; j++) bounds[r * n + j] += factor * fabs(row_a[l] * row_b[j]);
        }
    }
}

/* --- linear --- */

/* to [k], with room for k more numbers after it. */
static void load_weight(const wk_view *w, int64_t row, double *to) {
    const int64_t n = wk_view_rows(w), k = w->extent[w->rank - 1];
    if (w->layout == WK_LAYOUT_RAW && wk_dtype_is_float(w->dtype)) {
        const wk_row elements = wk_row_at(w, row);
        wk_row_load(&elements, 0, k, to);
        return;
    }
    float *const decoded = (float *)(to + k);
    wk_layout_decode_row((wk_layout)w->layout, w->dtype, n, k, row, wk_view_data(w), decoded);
    for (int64_t i = 0; i < k; i++) to[i] = (double)decoded[i];
}

static double block_largest(const double *x, int64_t begin, int64_t k) {
    double largest = 0;
    for (int64_t i = begin; i < k && i < begin + QUANT_BLOCK; i++)
        largest = fmax(largest, fabs(x[i]));
    return largest;
}

/* What may be off by the quantization of x. */
static double quantized(const double *x, const double *w, int64_t k) {
    double bound = 0, sum = 0;
    for (int64_t begin = 0; begin < k; begin += QUANT_BLOCK) sum += block_largest(x, begin, k);
    /* A little above the 1.5 of the kernels, whose sum is rounded. */
    const double fine_above = 1.500001 * sum / (double)((k + QUANT_BLOCK - 1) / QUANT_BLOCK);
    for (int64_t begin = 0; begin < k; begin += QUANT_BLOCK) {
        const double largest = block_largest(x, begin, k);
        const double step = largest > fine_above ? quant_step / 128 : quant_step;
        double weights = 0;
        for (int64_t i = begin; i < k && i < begin + QUANT_BLOCK; i++) weights += fabs(w[i]);
        bound += (largest * step + quant_least) * weights;
    }
    return bound;
}

/* Of one element; added: the bias. */
static double bound_product(const double *x, const double *w, int64_t k, double added,
                            const wk_op *op, bool is_fast) {
    double sum = fabs(added);
    for (int64_t i = 0; i < k; i++) sum += fabs(x[i] * w[i]);
    return sum_error(wk_dst(op, 0)->dtype) * sum + (is_fast ? quantized(x, w, k) : 0);
}

static double bias_at(const wk_view *bias, int64_t row, int64_t i) {
    double added = 0;
    if (!bias->buf) return 0;
    const wk_row elements = wk_row_at(bias, row);
    wk_row_load(&elements, i, 1, &added);
    return added;
}

/* x [k]; ids out of range: any bound. */
static void sum_experts(const wk_op *op, bool is_fast, double *x, double *w, double *bounds) {
    const wk_view *const weight = wk_src(op, 1), *const ids = wk_src(op, 3);
    const int64_t n = weight->extent[1], k = weight->extent[2], u = ids->extent[1];
    for (int64_t r = 0; r < wk_view_rows(wk_dst(op, 0)); r++) {
        const wk_row row = wk_row_at(wk_src(op, 0), r), id = wk_row_at(ids, r / u);
        const int64_t e = wk_row_integer_at(&id, r % u);
        wk_row_load(&row, 0, k, x);
        for (int64_t j = 0; j < n && e < weight->extent[0]; j++) {
            load_weight(weight, e * n + j, w);
            bounds[r * n + j] = bound_product(x, w, k, bias_at(wk_src(op, 2), e, j), op, is_fast);
        }
    }
}

static void sum_linear(const wk_op *op, bool is_fast, double *x, double *w, double *bounds) {
    const int64_t m = wk_dst(op, 0)->extent[0], n = wk_dst(op, 0)->extent[1];
    const int64_t k = wk_src(op, 0)->extent[1];
    for (int64_t c = 0; c < m; c++) {
        const wk_row row = wk_row_at(wk_src(op, 0), c);
        wk_row_load(&row, 0, k, x + c * k);
    }
    for (int64_t r = 0; r < n; r++) {
        const double added = bias_at(wk_src(op, 2), 0, r);
        load_weight(wk_src(op, 1), r, w);
        for (int64_t c = 0; c < m; c++)
            bounds[c * n + r] = bound_product(x + c * k, w, k, added, op, is_fast);
    }
}

/* --- attention --- */

static double largest_if_given(const wk_view *view) { return view->buf ? largest_of(view) : 0; }

/* A logit that is off by a small part of its terms' magnitudes, of which those of q.k are at most
 * |q|_1 max |k|, moves the mean of the values by as much of twice the largest one. added: the
 * largest magnitude that slopes and bias add to a logit. */
static wick_status bound_logits(const wk_op *op, double scale, double added, wk_bounds *out) {
    const wk_view *const y = wk_dst(op, 0);
    const double keys = largest_of(wk_src(op, 1)), values = largest_of(wk_src(op, 2));
    const int64_t e = y->extent[y->rank - 1];
    for (int64_t r = 0; r < out->count / e; r++) {
        const wk_row q = wk_row_at(wk_src(op, 0), r);
        double magnitude = 0;
        for (int64_t i = 0; i < q.n; i++) {
            double value;
            wk_row_load(&q, i, 1, &value);
            magnitude += fabs(value);
        }
        for (int64_t l = 0; l < e; l++)
            out->elements[r * e + l] =
                2 * logit_error * (fabs(scale) * magnitude * keys + added) * values;
    }
    return WICK_OK;
}

/* --- cumulate --- */

/* Of a sum what its terms come to; a product is rounded at each of its factors, and that of some of
 * them may be flushed to zero, where the others are large. */
static void bound_row(wk_cumulate_fn fn, const wk_row *x, double error, double *bounds) {
    double sum = 0, product = 1, largest = 1, value;
    for (int64_t i = 0; i < x->n; i++) {
        wk_row_load(x, i, 1, &value);
        sum += fabs(value);
        product *= fabs(value);
        largest = fmax(largest, product);
        bounds[i] = fn == WK_CUMULATE_SUM ? error * sum
                                          : error * product * (double)(i + 1) + 0x1p-124 * largest;
    }
}

/* --- One function for each kind of ops --- */

static wick_status take_elements(wk_heap *heap, wk_bounds *out) {
    out->elements = wk_alloc_array(heap, (size_t)out->count, sizeof *out->elements);
    return out->elements ? WICK_OK : WICK_ERR_OUT_OF_MEMORY;
}

/* Scratch memory of `first` and `second` numbers for the operands as they are read. */
static wick_status bound_sums(const wk_op *op, bool is_fast, int64_t first, int64_t second,
                              void (*sum)(const wk_op *op, bool is_fast, double *first,
                                          double *second, double *bounds),
                              wk_heap *heap, wk_bounds *out) {
    const size_t size = (size_t)(first + second + 1) * sizeof(double);
    WK_TRY(take_elements(heap, out));
    double *const memory = wk_alloc_zeroed(heap, size);
    if (!memory) return WICK_ERR_OUT_OF_MEMORY;
    out->tolerance.of_largest = 0;
    out->tolerance.relative = fmax(out->tolerance.relative, sum_error(wk_dst(op, 0)->dtype));
    sum(op, is_fast, memory, memory + first, out->elements);
    wk_free(heap, memory, size);
    return WICK_OK;
}

/* The tolerance says it all. */
static wick_status bound_alike(const wk_op *op, bool is_fast, wk_heap *heap, wk_bounds *out) {
    (void)op, (void)is_fast, (void)heap, (void)out;
    return WICK_OK;
}

/* The terms of a sum, however much of it cancels. */
static wick_status bound_reduce(const wk_op *op, bool is_fast, wk_heap *heap, wk_bounds *out) {
    (void)is_fast;
    const wk_view *const x = wk_src(op, 0);
    const bool is_mean = op->p.reduce.fn == WK_REDUCE_MEAN;
    if (!wk_dtype_is_float(x->dtype) || (!is_mean && op->p.reduce.fn != WK_REDUCE_SUM))
        return WICK_OK;
    WK_TRY(take_elements(heap, out));
    const int64_t n = wk_view_count(x) / out->count;
    const double factor = sum_error(x->dtype) / (is_mean ? (double)n : 1);
    for (int64_t r = 0; n > 0 && r < wk_row_count(x); r++) {
        const wk_row row = wk_row_at(x, r);
        for (int64_t i = 0; i < row.n; i++) {
            double value;
            wk_row_load(&row, i, 1, &value);
            out->elements[(r * row.n + i) / n] += factor * fabs(value);
        }
    }
    return WICK_OK;
}

/* The sum of the magnitudes of the terms of each element: what the reference makes of them. */
static wick_status bound_convolution(const wk_op *op, bool is_fast, wk_heap *heap, wk_bounds *out) {
    (void)is_fast;
    const wk_view *const weight = wk_src(op, 1);
    double n = 1;
    for (int d = 1; d < weight->rank; d++) n *= (double)weight->extent[d];
    const double bias = largest_if_given(wk_src(op, 2));
    WK_TRY(take_elements(heap, out));
    const double sum = n * largest_of(wk_src(op, 0)) * largest_of(weight) + bias;
    for (int64_t i = 0; i < out->count; i++)
        out->elements[i] = sum_error(wk_dst(op, 0)->dtype) * sum;
    return WICK_OK;
}

static int64_t length_of(const wk_view *x) { return x->extent[x->rank - 1]; }

static wick_status bound_matmul(const wk_op *op, bool is_fast, wk_heap *heap, wk_bounds *out) {
    return bound_sums(op, is_fast, length_of(wk_src(op, 0)), length_of(wk_src(op, 1)), sum_matmul,
                      heap, out);
}

static wick_status bound_linear(const wk_op *op, bool is_fast, wk_heap *heap, wk_bounds *out) {
    const int64_t m = wk_src(op, 0)->extent[0], k = length_of(wk_src(op, 0));
    return bound_sums(op, is_fast, m * k, 2 * k, sum_linear, heap, out);
}

static wick_status bound_experts(const wk_op *op, bool is_fast, wk_heap *heap, wk_bounds *out) {
    const int64_t k = length_of(wk_src(op, 0));
    return bound_sums(op, is_fast, k, 2 * k, sum_experts, heap, out);
}

static wick_status bound_cumulate(const wk_op *op, bool is_fast, wk_heap *heap, wk_bounds *out) {
    (void)is_fast;
    const wk_view *const x = wk_src(op, 0);
    if (!wk_dtype_is_float(x->dtype)) return WICK_OK;
    WK_TRY(take_elements(heap, out));
    out->tolerance.of_largest = 0;
    for (int64_t r = 0; r < wk_row_count(x); r++) {
        const wk_row row = wk_row_at(x, r);
        bound_row(op->p.cumulate, &row, sum_error(x->dtype), out->elements + r * row.n);
    }
    return WICK_OK;
}

static wick_status bound_attention(const wk_op *op, bool is_fast, wk_heap *heap, wk_bounds *out) {
    (void)is_fast;
    const int64_t n = wk_src(op, 0)->extent[2] + wk_src(op, 1)->extent[2];
    WK_TRY(take_elements(heap, out));
    return bound_logits(
        op, op->p.attention.scale,
        largest_if_given(wk_src(op, 4)) + largest_if_given(wk_src(op, 6)) * (double)n, out);
}

static wick_status bound_cached(const wk_op *op, bool is_fast, wk_heap *heap, wk_bounds *out) {
    (void)is_fast;
    const wk_batch_layout *const b = &op->p.cached.batch;
    WK_TRY(take_elements(heap, out));
    return bound_logits(op, (double)op->p.cached.scale,
                        largest_if_given(wk_src(op, 5)) * b->n_blocks * b->block_size, out);
}

wick_status wk_bounds_make(const wk_case *c, const wk_kernel *kernel, const wk_view *expected,
                           wk_heap *heap, wk_bounds *out) {
    static wick_status (*const functions[])(const wk_op *op, bool is_fast, wk_heap *heap,
                                            wk_bounds *out) = {
#define WK_TRAITS(code, rows, cost, tolerance, cuts, gradient, cases, values, fill, bounds, ...)   \
    [WK_OP_##code] = bound_##bounds,
#include "backend/op_traits.def"
#undef WK_TRAITS
    };
    *out = (wk_bounds){
        .tolerance = wk_op_tolerance(&c->op, kernel->is_fast),
        .largest = largest_of(expected),
        .count = wk_view_count(expected),
    };
    return out->count > 0 ? functions[c->op.code](&c->op, kernel->is_fast, heap, out) : WICK_OK;
}

void wk_bounds_release(wk_bounds *bounds, wk_heap *heap) {
    wk_free(heap, bounds->elements, (size_t)bounds->count * sizeof *bounds->elements);
    bounds->elements = NULL;
}

double wk_bounds_at(const wk_bounds *bounds, int64_t element, double want) {
    const wk_tolerance *const t = &bounds->tolerance;
    const double own = bounds->elements ? bounds->elements[element] : 0;
    return own + t->relative * fabs(want) + t->of_largest * bounds->largest + t->absolute;
}
