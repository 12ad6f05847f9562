/* backend/webgpu/kernels/kernel_copy.c: ops that move bits: copy, where, fill; and what arange
 * makes. All scalar dtypes: what is not converted is moved as it is, and conversions are made from
 * bits. */
#include "backend/webgpu/kernels/strided.h"

#include "core/dtype.h"
#include "core/half.h"

#include <math.h>
#include <string.h>

/* --- Copy --- */

static bool is_scalar(const wk_view *view) {
    return view->layout == WK_LAYOUT_RAW && !wk_dtype_is_block(view->dtype);
}

/* Blocks are decoded by embedding and linear only. */
static bool accepts_copy(const wk_op *op) { return is_scalar(wk_src(op, 0)); }

static wick_status move(wk_encoder *e, const wk_view *y, const wk_view *x) {
    static const wk_source source = {.name = "move",
                                     .parts = {wk_wgsl_strided, wk_wgsl_move},
                                     .operands = {"y", "x"},
                                     .constants = {"LANES", "THREADS", "WIDE"}};
    const wk_strided s = {
        .source = &source, .views = {y, x}, .n = 2, .constants = {wk_is_wide(y->dtype)}};
    return wk_strided_run(e, &s);
}

/* Constants of wgsl/convert.wgsl. */
enum { CONSTANTS_OF_DTYPE = 6 };

static int32_t exponent_bits(wick_dtype dtype) {
    switch (dtype) {
    case WICK_F64: return 11;
    case WICK_F16:
    case WICK_F8_E5M2: return 5;
    case WICK_F8_E4M3: return 4;
    default: return 8;
    }
}

static void describe(wick_dtype dtype, int32_t *constants) {
    const int bits = 8 * wk_dtype_get(dtype)->block_bytes;
    const bool is_float = wk_dtype_is_real(dtype);
    constants[0] = is_float;
    constants[1] = !is_float && dtype != WICK_U32 && dtype != WICK_U8 && dtype != WICK_BOOL;
    constants[2] = bits;
    constants[3] = exponent_bits(dtype);
    constants[4] = is_float ? bits - 1 - constants[3] : 23; /* of the fraction */
    constants[5] = dtype == WICK_F8_E4M3;                   /* without infinities */
}

static wick_status encode_copy(wk_encoder *e, const wk_op *op) {
    static const wk_source source = {
        .name = "convert",
        .parts = {wk_wgsl_strided, wk_wgsl_number, wk_wgsl_convert},
        .operands = {"y", "x"},
        .constants = {"LANES", "THREADS", "X_IS_FLOAT", "X_IS_SIGNED", "X_BITS", "X_EXPONENT",
                      "X_FRACTION", "X_IS_FINITE", "Y_IS_FLOAT", "Y_IS_SIGNED", "Y_BITS",
                      "Y_EXPONENT", "Y_FRACTION", "Y_IS_FINITE", "Y_IS_BOOL"}};
    const wick_dtype to = wk_dst(op, 0)->dtype, from = wk_src(op, 0)->dtype;
    const wk_view y = wk_view_bits(wk_dst(op, 0)), x = wk_view_bits(wk_src(op, 0));
    if (to == from) return move(e, &y, &x);
    wk_strided s = {.source = &source, .views = {&y, &x}, .n = 2};
    describe(from, s.constants);
    describe(to, s.constants + CONSTANTS_OF_DTYPE);
    s.constants[2 * CONSTANTS_OF_DTYPE] = to == WICK_BOOL;
    return wk_strided_run(e, &s);
}

const wk_webgpu_kernel wk_webgpu_copy = {
    .base.name = "copy_wgsl",
    .base.code = WK_OP_COPY,
    .base.n_tunings = WK_STRIDED_TUNINGS,
    .base.accepts = accepts_copy,
    .encode = encode_copy,
};

/* --- Where --- */

static wick_status encode_where(wk_encoder *e, const wk_op *op) {
    static const wk_source source = {.name = "where",
                                     .parts = {wk_wgsl_strided, wk_wgsl_where},
                                     .operands = {"y", "cond", "a", "b"},
                                     .constants = {"LANES", "THREADS", "WIDE", "WIDE_COND"}};
    const wk_view y = wk_view_bits(wk_dst(op, 0)), cond = wk_view_bits(wk_src(op, 0)),
                  a = wk_view_bits(wk_src(op, 1)), b = wk_view_bits(wk_src(op, 2));
    const wk_strided s = {.source = &source,
                          .views = {&y, &cond, &a, &b},
                          .n = 4,
                          .constants = {wk_is_wide(y.dtype), wk_is_wide(cond.dtype)}};
    return wk_strided_run(e, &s);
}

const wk_webgpu_kernel wk_webgpu_where = {
    .base.name = "where_wgsl",
    .base.code = WK_OP_WHERE,
    .base.n_tunings = WK_STRIDED_TUNINGS,
    .encode = encode_where,
};

/* --- Fill --- */

static uint64_t bits_of(wick_dtype dtype, double real, int64_t integer) {
    uint64_t bits;
    switch (dtype) {
    case WICK_F64: memcpy(&bits, &real, sizeof bits); return bits;
    case WICK_F32: return wk_f32_bits((float)real);
    case WICK_F16: return wk_f64_to_f16(real);
    case WICK_BF16: return wk_f64_to_bf16(real);
    case WICK_BOOL: return integer != 0;
    default: return (uint64_t)integer; /* the low bits of it */
    }
}

static bool accepts_fill(const wk_op *op) { return is_scalar(wk_dst(op, 0)); }

static wick_status encode_fill(wk_encoder *e, const wk_op *op) {
    static const wk_source source = {.name = "fill",
                                     .parts = {wk_wgsl_strided, wk_wgsl_fill},
                                     .operands = {"y"},
                                     .constants = {"LANES", "THREADS", "WIDE"}};
    const wk_view y = wk_view_bits(wk_dst(op, 0));
    const uint64_t bits = bits_of(wk_dst(op, 0)->dtype, op->p.fill.real, op->p.fill.integer);
    const wk_strided s = {.source = &source,
                          .views = {&y},
                          .n = 1,
                          .constants = {wk_is_wide(y.dtype)},
                          .a = (uint32_t)bits,
                          .b = (uint32_t)(bits >> 32)};
    return wk_strided_run(e, &s);
}

const wk_webgpu_kernel wk_webgpu_fill = {
    .base.name = "fill_wgsl",
    .base.code = WK_OP_FILL,
    .base.n_tunings = WK_STRIDED_TUNINGS,
    .base.accepts = accepts_fill,
    .encode = encode_fill,
};

/* --- Arange --- */

/* Float64 is made of integers there, without its ends. */
static bool is_moderate(double value) {
    return value == 0 || (fabs(value) > 0x1p-400 && fabs(value) < 0x1p400);
}

static bool accepts_arange(const wk_op *op) {
    const wk_view *const y = wk_dst(op, 0);
    if (!is_scalar(y) || y->dtype == WICK_BOOL) return false;
    return !wk_dtype_is_float(y->dtype) ||
           (is_moderate(op->p.arange.start) && is_moderate(op->p.arange.step));
}

static wick_status run_arange(wk_encoder *e, const wk_view *y, const wk_source *source,
                              uint64_t start, uint64_t step) {
    enum { THREADS = 64 };
    const uint64_t count = (uint64_t)y->extent[0];
    const bool is_wide = wk_is_wide(y->dtype);
    const wk_view bits = wk_view_bits(y);
    if (count == 0) return WICK_OK;
    wk_dispatch d;
    wk_dispatch_begin(&d, source, 0);
    if (source->constants[0]) {
        describe(WICK_F64, d.program.constants);
        describe(y->dtype, d.program.constants + CONSTANTS_OF_DTYPE);
    }
    wk_dispatch_bind(&d, 0, &bits, is_wide ? WK_FORM_WORDS : WK_FORM_ELEMENTS, true);
    WK_TRY(wk_dispatch_place(e, &d));
    wk_dispatch_u32(&d, (uint32_t)count);
    wk_dispatch_u32(&d, d.first[0]);
    wk_dispatch_u32(&d, (uint32_t)y->stride[0] * (is_wide ? 2U : 1U));
    wk_dispatch_u32(&d, 0);
    wk_dispatch_u32(&d, (uint32_t)start);
    wk_dispatch_u32(&d, (uint32_t)(start >> 32));
    wk_dispatch_u32(&d, (uint32_t)step);
    wk_dispatch_u32(&d, (uint32_t)(step >> 32));
    return wk_dispatch_run_n(e, &d, (count + THREADS - 1) / THREADS);
}

static wick_status encode_arange(wk_encoder *e, const wk_op *op) {
    static const wk_source floats = {
        .name = "arange_float",
        .parts = {wk_wgsl_arange, wk_wgsl_wide, wk_wgsl_number, wk_wgsl_arange_float},
        .operands = {"y"},
        .constants = {"X_IS_FLOAT", "X_IS_SIGNED", "X_BITS", "X_EXPONENT", "X_FRACTION",
                      "X_IS_FINITE", "Y_IS_FLOAT", "Y_IS_SIGNED", "Y_BITS", "Y_EXPONENT",
                      "Y_FRACTION", "Y_IS_FINITE"}};
    static const wk_source integers = {
        .name = "arange", .parts = {wk_wgsl_arange, wk_wgsl_arange_integer}, .operands = {"y"}};
    static const wk_source wide = {.name = "arange_wide",
                                   .parts = {wk_wgsl_arange, wk_wgsl_wide, wk_wgsl_arange_wide},
                                   .operands = {"y"}};
    const wk_view *const y = wk_dst(op, 0);
    const bool is_float = wk_dtype_is_float(y->dtype);
    const wick_dtype as = is_float ? WICK_F64 : WICK_I64;
    return run_arange(e, y,
                      is_float               ? &floats
                      : wk_is_wide(y->dtype) ? &wide
                                             : &integers,
                      bits_of(as, op->p.arange.start, op->p.arange.integer_start),
                      bits_of(as, op->p.arange.step, op->p.arange.integer_step));
}

const wk_webgpu_kernel wk_webgpu_arange = {
    .base.name = "arange_wgsl",
    .base.code = WK_OP_ARANGE,
    .base.accepts = accepts_arange,
    .encode = encode_arange,
};
