/* backend/webgpu/kernels/kernel_elementwise.c: ops that compute element by element: unary, binary,
 * compare, gated. Of 64-bit elements only comparisons. */
#include "backend/webgpu/kernels/strided.h"

#include "core/compiler.h"
#include "core/dtype.h"
#include "core/half.h"
#include "core/scalar.h"

static bool is_narrow(const wk_op *op) {
    for (int i = 0; i < op->n_dst + op->n_src; i++)
        if (wk_is_wide(op->view[i].dtype)) return false;
    return true;
}

/* --- Unary --- */

void wk_unary_scalars(wick_dtype dtype, const double scalars[2], uint32_t out[2]) {
    for (int i = 0; i < 2; i++)
        out[i] = wk_dtype_is_float(dtype) ? wk_f32_bits((float)scalars[i])
                                          : (uint32_t)wk_f64_to_i64(scalars[i]);
}

/* Texts beyond are long: engines for models alone leave them out. */
static bool is_of_models(wk_unary_fn fn) {
    return fn <= WK_UNARY_CLAMP && fn != WK_UNARY_SIN && fn != WK_UNARY_COS && fn != WK_UNARY_POW;
}

static bool accepts_unary(const wk_op *op) {
    return (WK_OF_TENSORS(true ||) is_of_models(op->p.unary.fn)) && is_narrow(op) &&
           wk_unary_is_of_f32(op);
}

static int32_t function_of(const wk_program *program) {
    return program->constants[WK_STRIDED_CONSTANTS];
}

static void write_unary(const wk_program *program, wk_strbuf *out) {
    wk_strbuf_format(out,
                     "fn apply(x: f32) -> f32 {\n"
                     "    return unary_%d(x, bitcast<f32>(params.a), bitcast<f32>(params.b));\n}\n",
                     (int)function_of(program));
}

static wick_status encode_unary(wk_encoder *e, const wk_op *op) {
    static const wk_source floats = {.name = "unary",
                                     .parts = {wk_wgsl_strided, wk_wgsl_functions,
                                               WK_OF_TENSORS(wk_wgsl_wide, wk_wgsl_trigonometry,
                                                             wk_wgsl_power, wk_wgsl_unary_power, )
                                                   wk_wgsl_unary_float,
                                               wk_wgsl_unary},
                                     .operands = {"y", "x"},
                                     .constants = {"LANES", "THREADS", "FN"},
                                     .write = write_unary};
    WK_OF_TENSORS(static const wk_source more = {.name = "unary",
                                                 .parts = {wk_wgsl_strided, wk_wgsl_functions,
                                                           wk_wgsl_wide, wk_wgsl_trigonometry,
                                                           wk_wgsl_power, wk_wgsl_arctangent,
                                                           wk_wgsl_unary_more, wk_wgsl_unary},
                                                 .operands = {"y", "x"},
                                                 .constants = {"LANES", "THREADS", "FN"},
                                                 .write = write_unary};)
    static const wk_source integers = {
        .name = "unary",
        .parts = {wk_wgsl_strided, wk_wgsl_unary_integer, wk_wgsl_unary},
        .operands = {"y", "x"},
        .constants = {"LANES", "THREADS", "FN"}};
    uint32_t scalars[2];
    wk_unary_scalars(op->view[0].dtype, (const double[]){op->p.unary.a, op->p.unary.b}, scalars);
    const wk_source *of_floats = &floats;
    WK_OF_TENSORS(if (op->p.unary.fn > WK_UNARY_CLAMP) of_floats = &more;)
    const wk_strided s = {.source = wk_dtype_is_float(op->view[0].dtype) ? of_floats : &integers,
                          .views = {&op->view[0], &op->view[1]},
                          .n = 2,
                          .constants = {(int32_t)op->p.unary.fn},
                          .a = scalars[0],
                          .b = scalars[1]};
    return wk_strided_run(e, &s);
}

const wk_webgpu_kernel wk_webgpu_unary = {
    .base.name = "unary_wgsl",
    .base.code = WK_OP_UNARY,
    .base.n_tunings = WK_STRIDED_TUNINGS,
    .base.accepts = accepts_unary,
    .encode = encode_unary,
};

/* --- Binary --- */

/* The next number depends on its dtype, which shaders do not see. */
static bool accepts_binary(const wk_op *op) {
    const bool is_of_models = op->p.binary <= WK_BINARY_MINIMUM && op->p.binary != WK_BINARY_POW;
    const bool has_text = WK_OF_TENSORS(true ||) is_of_models;
    return has_text && is_narrow(op) && op->p.binary != WK_BINARY_NEXTAFTER;
}

static void write_binary(const wk_program *program, wk_strbuf *out) {
    wk_strbuf_format(out, "fn apply(a: f32, b: f32) -> f32 { return binary_%d(a, b); }\n",
                     (int)function_of(program));
}

static wick_status encode_binary(wk_encoder *e, const wk_op *op) {
    static const wk_source floats = {
        .name = "binary",
        .parts = {wk_wgsl_strided, wk_wgsl_functions,
                  WK_OF_TENSORS(wk_wgsl_wide, wk_wgsl_power, wk_wgsl_binary_power, )
                      wk_wgsl_binary_float,
                  wk_wgsl_binary},
        .operands = {"y", "a", "b"},
        .constants = {"LANES", "THREADS", "FN"},
        .write = write_binary};
    WK_OF_TENSORS(static const wk_source more = {.name = "binary",
                                                 .parts = {wk_wgsl_strided, wk_wgsl_functions,
                                                           wk_wgsl_arctangent, wk_wgsl_division,
                                                           wk_wgsl_binary_more, wk_wgsl_binary},
                                                 .operands = {"y", "a", "b"},
                                                 .constants = {"LANES", "THREADS", "FN"},
                                                 .write = write_binary};)
    static const wk_source integers = {
        .name = "binary",
        .parts = {wk_wgsl_strided, wk_wgsl_binary_integer, wk_wgsl_binary},
        .operands = {"y", "a", "b"},
        .constants = {"LANES", "THREADS", "FN"}};
    const wk_source *of_floats = &floats;
    WK_OF_TENSORS(if (op->p.binary > WK_BINARY_MINIMUM) of_floats = &more;)
    const wk_strided s = {.source = wk_dtype_is_float(op->view[0].dtype) ? of_floats : &integers,
                          .views = {&op->view[0], &op->view[1], &op->view[2]},
                          .n = 3,
                          .constants = {(int32_t)op->p.binary}};
    return wk_strided_run(e, &s);
}

const wk_webgpu_kernel wk_webgpu_binary = {
    .base.name = "binary_wgsl",
    .base.code = WK_OP_BINARY,
    .base.n_tunings = WK_STRIDED_TUNINGS,
    .base.accepts = accepts_binary,
    .encode = encode_binary,
};

/* --- Compare --- */

static void write_holds(const wk_program *program, wk_strbuf *out) {
    wk_strbuf_format(out, "fn holds(r: i32) -> u32 { return compare_%d(r); }\n",
                     (int)function_of(program));
}

static void write_compare(const wk_program *program, wk_strbuf *out) {
    write_holds(program, out);
    wk_strbuf_text(out, "fn apply(a: V_a, b: V_b) -> u32 { return holds(relation(a, b)); }\n");
}

static wick_status encode_compare(wk_encoder *e, const wk_op *op) {
    static const wk_source floats = {.name = "compare",
                                     .parts = {wk_wgsl_strided, wk_wgsl_functions, wk_wgsl_compare,
                                               wk_wgsl_compare_float, wk_wgsl_binary},
                                     .operands = {"y", "a", "b"},
                                     .constants = {"LANES", "THREADS", "FN"},
                                     .write = write_compare};
    static const wk_source integers = {
        .name = "compare",
        .parts = {wk_wgsl_strided, wk_wgsl_compare, wk_wgsl_compare_integer, wk_wgsl_binary},
        .operands = {"y", "a", "b"},
        .constants = {"LANES", "THREADS", "FN"},
        .write = write_compare};
    WK_OF_TENSORS(static const wk_source wide = {
                      .name = "compare_wide",
                      .parts = {wk_wgsl_strided, wk_wgsl_compare, wk_wgsl_compare_wide},
                      .operands = {"y", "a", "b"},
                      .constants = {"LANES", "THREADS", "FN", "IS_FLOAT"},
                      .write = write_holds};)
    const wick_dtype dtype = op->view[1].dtype;
    const bool is_float = wk_dtype_is_float(dtype);
    const wk_source *source = is_float ? &floats : &integers;
    WK_OF_TENSORS(if (wk_is_wide(dtype)) source = &wide;)
    const wk_strided s = {.source = source,
                          .views = {&op->view[0], &op->view[1], &op->view[2]},
                          .n = 3,
                          .constants = {(int32_t)op->p.compare, wk_is_wide(dtype) && is_float}};
    return wk_strided_run(e, &s);
}

static bool accepts_compare(const wk_op *op) {
    return WK_OF_TENSORS(true ||) !wk_is_wide(op->view[1].dtype);
}

const wk_webgpu_kernel wk_webgpu_compare = {
    .base.name = "compare_wgsl",
    .base.code = WK_OP_COMPARE,
    .base.n_tunings = WK_STRIDED_TUNINGS,
    .base.accepts = accepts_compare,
    .encode = encode_compare,
};

/* --- Gated --- */

static void write_gated(const wk_program *program, wk_strbuf *out) {
    wk_strbuf_format(out,
                     "fn apply(a: f32, b: f32) -> f32 {\n    return gated_%d(a, b, "
                     "bitcast<f32>(params.a), bitcast<f32>(params.b));\n}\n",
                     (int)function_of(program));
}

static wick_status encode_gated(wk_encoder *e, const wk_op *op) {
    static const wk_source source = {
        .name = "gated",
        .parts = {wk_wgsl_strided, wk_wgsl_functions, wk_wgsl_gated, wk_wgsl_binary},
        .operands = {"y", "a", "b"},
        .constants = {"LANES", "THREADS", "FN"},
        .write = write_gated};
    const wk_strided s = {.source = &source,
                          .views = {&op->view[0], &op->view[1], &op->view[2]},
                          .n = 3,
                          .constants = {(int32_t)op->p.gated.fn},
                          .a = wk_f32_bits((float)op->p.gated.alpha),
                          .b = wk_f32_bits((float)op->p.gated.limit)};
    return wk_strided_run(e, &s);
}

const wk_webgpu_kernel wk_webgpu_gated = {
    .base.name = "gated_wgsl",
    .base.code = WK_OP_GATED,
    .base.n_tunings = WK_STRIDED_TUNINGS,
    .base.accepts = is_narrow,
    .encode = encode_gated,
};
