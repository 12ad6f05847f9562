/* backend/webgpu/kernels/kernel_reduce.c: sums, means, variances, extremes and their indices. */
#include "backend/webgpu/kernels/rows.h"

#include "core/compiler.h"
#include "core/dtype.h"
#include "core/half.h"

#include <math.h>

/* wgsl/reduce.wgsl */
static bool accepts_reduce(const wk_op *op) {
    const wk_view *const x = wk_src(op, 0);
    const bool has_text = WK_OF_TENSORS(true ||) op->p.reduce.fn != WK_REDUCE_VAR;
    return has_text && wk_rows_kind_of(x->dtype) != WK_KIND_NONE && wk_rows_are_countable(x);
}

static const wk_source reduce_source = {
    .name = "reduce",
    .parts = {wk_wgsl_rows, wk_wgsl_reduce},
    .operands = {"y", "x"},
    .constants = {"THREADS", "LANES", "COLUMNS", "FROM_PARTS", "TO_PARTS", "FN", "KIND"}};

WK_OF_TENSORS(static const wk_source variance_source = {
                  .name = "variance",
                  .parts = {wk_wgsl_rows, wk_wgsl_lanes, wk_wgsl_variance},
                  .operands = {"y", "x"},
                  .constants = {"THREADS", "LANES", "COLUMNS", "FROM_PARTS", "TO_PARTS"}};)

void wk_rows_own(const wk_op *reduce, const wk_rows *rows, uint32_t part, uint32_t own[4]) {
    /* A mean of numbers that stand for more elements has a correction, too: see segment.c. */
    const double divisor = fmax(0, (double)rows->n_all - reduce->p.reduce.correction);
    own[0] = wk_f32_bits((float)divisor);
    own[1] = wk_f32_bits(NAN);
    own[2] = wk_f32_bits(INFINITY);
    own[3] = part;
}

/* One dispatch: of elements or of parts, to results or to parts. */
static wick_status reduce(wk_encoder *e, const wk_op *op, const wk_rows *rows, const wk_view *y,
                          const wk_view *x, bool from_parts, bool to_parts, uint32_t part) {
    const wk_reduce_fn fn = op->p.reduce.fn;
    const bool is_variance = fn == WK_REDUCE_VAR;
    uint32_t own[4];
    wk_rows_own(op, rows, part, own);
    wk_dispatch d;
    const wk_source *source = &reduce_source;
    WK_OF_TENSORS(if (is_variance) source = &variance_source;)
    wk_dispatch_begin(&d, source, 0);
    int32_t *const constants = d.program.constants + WK_ROWS_CONSTANTS;
    constants[0] = from_parts;
    constants[1] = to_parts;
    if (!is_variance) {
        constants[2] = (int32_t)fn;
        constants[3] = (int32_t)wk_rows_kind_of(wk_src(op, 0)->dtype);
    }
    wk_dispatch_bind(&d, 0, y, WK_FORM_ELEMENTS, true);
    wk_dispatch_bind(&d, 1, x, WK_FORM_ELEMENTS, false);
    return wk_rows_run(e, &d, rows, own);
}

wick_status wk_rows_join(wk_encoder *e, const wk_op *op, const wk_rows *rows, const wk_view *y,
                         const wk_view *parts, uint32_t part) {
    return reduce(e, op, rows, y, parts, true, false, part);
}

static wick_status encode_reduce(wk_encoder *e, const wk_op *op) {
    const wk_view *const y = wk_dst(op, 0), *const x = wk_src(op, 0);
    if (wk_view_count(y) == 0) return WICK_OK;
    wk_rows rows = wk_rows_of(y, x, y->rank);
    wk_rows_split(&rows);
    /* Of nothing: x has no bytes that could be bound. */
    if (rows.n == 0) return reduce(e, op, &rows, y, y, false, false, 0);
    if (rows.n_parts == 1) return reduce(e, op, &rows, y, x, false, false, 0);
    wk_view parts;
    WK_TRY(wk_encoder_temp(e, 2 * (int64_t)rows.n_rows * rows.n_parts, &parts));
    parts.dtype = WICK_U32; /* bits */
    WK_TRY(reduce(e, op, &rows, &parts, x, false, true, rows.part));
    const wk_rows of_parts = wk_rows_of_parts(&rows);
    return wk_rows_join(e, op, &of_parts, y, &parts, rows.part);
}

const wk_webgpu_kernel wk_webgpu_reduce = {
    .base.name = "reduce_wgsl",
    .base.code = WK_OP_REDUCE,
    .base.n_tunings = WK_ROWS_TUNINGS,
    .base.accepts = accepts_reduce,
    .encode = encode_reduce,
};
