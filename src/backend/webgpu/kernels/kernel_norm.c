/* backend/webgpu/kernels/kernel_norm.c: softmax, root mean square norm and layer norm of rows. */
#include "backend/webgpu/kernels/norm_sum.h"
#include "backend/webgpu/kernels/rows.h"

#include "core/half.h"

#include <math.h>

/* Absent operands are f32. */
static bool accepts_floats(const wk_op *op) {
    for (int i = 0; i < op->n_dst + op->n_src; i++)
        if (!wk_webgpu_is_float(op->view[i].dtype)) return false;
    return wk_rows_are_countable(wk_src(op, 0));
}

/* Rows along the last dimension; a number alone is a row of one. */
static wk_rows rows_of_last(const wk_op *op) {
    const wk_view *const y = wk_dst(op, 0), *const x = wk_src(op, 0);
    return wk_rows_of(y, x, x->rank > 0 ? x->rank - 1 : 0);
}

/* Each source by lanes of threads alone, and by subgroups; the latter has a constant SUBGROUP after
 * the others. */
static const wk_source softmax[2] = {
    {.name = "softmax",
     .parts = {wk_wgsl_rows, wk_wgsl_lanes, wk_wgsl_functions, wk_wgsl_softmax},
     .operands = {"y", "x"},
     .constants = {"THREADS", "LANES", "COLUMNS", "IS_LOG"}},
    {.name = "softmax_subgroups",
     .parts = {wk_wgsl_rows, wk_wgsl_lanes_subgroups, wk_wgsl_functions, wk_wgsl_softmax},
     .operands = {"y", "x"},
     .constants = {"THREADS", "LANES", "COLUMNS", "IS_LOG", "SUBGROUP"}},
};

static wick_status encode_softmax(wk_encoder *e, const wk_op *op) {
    const uint32_t needs = wk_encoder_kernel(e)->needs;
    const bool by_subgroups = needs != 0;
    if (wk_view_count(wk_dst(op, 0)) == 0) return WICK_OK;
    const wk_rows rows = rows_of_last(op);
    const uint32_t own[4] = {wk_f32_bits(NAN)};
    wk_dispatch d;
    wk_dispatch_begin(&d, &softmax[by_subgroups], needs);
    int32_t *const constants = d.program.constants + WK_ROWS_CONSTANTS;
    constants[0] = op->p.softmax.is_log;
    if (by_subgroups) constants[1] = (int32_t)wk_encoder_subgroup(e);
    wk_dispatch_bind(&d, 0, wk_dst(op, 0), WK_FORM_ELEMENTS, true);
    wk_dispatch_bind(&d, 1, wk_src(op, 0), WK_FORM_ELEMENTS, false);
    return wk_rows_run(e, &d, &rows, own);
}

static const wk_source norm[2] = {
    {.name = "norm",
     .parts = {wk_wgsl_rows, wk_wgsl_lanes, wk_wgsl_norm},
     .operands = {"y", "x", "weight", "bias"},
     .constants = {"THREADS", "LANES", "COLUMNS", "IS_RMS", "HAS_WEIGHT", "HAS_BIAS"}},
    {.name = "norm_subgroups",
     .parts = {wk_wgsl_rows, wk_wgsl_lanes_subgroups, wk_wgsl_norm},
     .operands = {"y", "x", "weight", "bias"},
     .constants = {"THREADS", "LANES", "COLUMNS", "IS_RMS", "HAS_WEIGHT", "HAS_BIAS", "SUBGROUP"}},
};

static wick_status encode_norm(wk_encoder *e, const wk_op *op) {
    const uint32_t needs = wk_encoder_kernel(e)->needs;
    const bool by_subgroups = needs != 0;
    if (wk_view_count(wk_dst(op, 0)) == 0) return WICK_OK;
    if (wk_norm_makes_integers(e, op)) return wk_norm_encode_integers(e, op);
    const wk_rows rows = rows_of_last(op);
    uint32_t own[4] = {wk_f32_bits((float)op->p.norm.eps)};
    wk_dispatch d;
    wk_dispatch_begin(&d, &norm[by_subgroups], needs);
    int32_t *const constants = d.program.constants + WK_ROWS_CONSTANTS;
    constants[0] = op->code == WK_OP_RMS_NORM;
    if (by_subgroups) constants[3] = (int32_t)wk_encoder_subgroup(e);
    wk_dispatch_bind(&d, 0, wk_dst(op, 0), WK_FORM_ELEMENTS, true);
    wk_dispatch_bind(&d, 1, wk_src(op, 0), WK_FORM_ELEMENTS, false);
    for (int i = 1; i < 3; i++) {
        const bool is_there = i < op->n_src && wk_src(op, i)->buf;
        const wk_view *const view = wk_src(op, is_there ? i : 0); /* x: the text names all */
        constants[i] = is_there;
        if (is_there) own[i] = (uint32_t)view->stride[0];
        wk_dispatch_bind(&d, 1 + i, view, WK_FORM_ELEMENTS, false);
    }
    return wk_rows_run(e, &d, &rows, own);
}

const wk_webgpu_kernel wk_webgpu_softmax = {
    .base.name = "softmax_wgsl",
    .base.code = WK_OP_SOFTMAX,
    .base.n_tunings = WK_ROWS_TUNINGS,
    .base.accepts = accepts_floats,
    .encode = encode_softmax,
};

const wk_webgpu_kernel wk_webgpu_rms_norm = {
    .base.name = "rms_norm_wgsl",
    .base.code = WK_OP_RMS_NORM,
    .base.n_tunings = WK_ROWS_TUNINGS,
    .base.accepts = accepts_floats,
    .makes_integers = true,
    .encode = encode_norm,
};

const wk_webgpu_kernel wk_webgpu_layer_norm = {
    .base.name = "layer_norm_wgsl",
    .base.code = WK_OP_LAYER_NORM,
    .base.n_tunings = WK_ROWS_TUNINGS,
    .base.accepts = accepts_floats,
    .encode = encode_norm,
};

const wk_webgpu_kernel wk_webgpu_softmax_subgroups = {
    .base.name = "softmax_subgroups_wgsl",
    .base.code = WK_OP_SOFTMAX,
    .base.needs = WICK_WEBGPU_SUBGROUPS,
    .base.n_tunings = WK_ROWS_TUNINGS,
    .base.accepts = accepts_floats,
    .encode = encode_softmax,
};

const wk_webgpu_kernel wk_webgpu_rms_norm_subgroups = {
    .base.name = "rms_norm_subgroups_wgsl",
    .base.code = WK_OP_RMS_NORM,
    .base.needs = WICK_WEBGPU_SUBGROUPS,
    .base.n_tunings = WK_ROWS_TUNINGS,
    .base.accepts = accepts_floats,
    .makes_integers = true,
    .encode = encode_norm,
};

const wk_webgpu_kernel wk_webgpu_layer_norm_subgroups = {
    .base.name = "layer_norm_subgroups_wgsl",
    .base.code = WK_OP_LAYER_NORM,
    .base.needs = WICK_WEBGPU_SUBGROUPS,
    .base.n_tunings = WK_ROWS_TUNINGS,
    .base.accepts = accepts_floats,
    .encode = encode_norm,
};
