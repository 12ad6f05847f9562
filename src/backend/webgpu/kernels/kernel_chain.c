/* backend/webgpu/kernels/kernel_chain.c: chains of elementwise ops: the text of a program is
 * written for each, of the functions that the ops have on their own.
 *
 *   fn chain(r0: V_o1, r1: V_o2) -> Results {      y = tanh(a * b)
 *   let r2 = binary_1(r0, r1);
 *   let r3 = unary_11(r2, 0.0, 0.0);
 *   return Results(r3);
 *   } */
#include "backend/webgpu/kernels/rows.h"
#include "backend/webgpu/kernels/strided.h"

#include "core/dtype.h"
#include "core/half.h"

#include <assert.h>
#include <stdio.h>

/* Constants of a program after those of strided.h, or after those of reduce.wgsl, where the steps
 * are fewer by one. */
enum { N_DST, N_SRC, RESULTS, STEPS };
enum { OF_REDUCTION = 7, FN = 5, KIND = 6, TO_PARTS = 4 };
_Static_assert(WK_STRIDED_CONSTANTS + STEPS + WK_CHAIN_STEPS <= WK_MAX_CONSTANTS, "constants");
_Static_assert(OF_REDUCTION + 1 + WK_CHAIN_STEPS - 1 <= WK_MAX_CONSTANTS, "constants");
_Static_assert((int)WK_STRIDED_WIDE >= (int)WK_CHAIN_OPERANDS, "operands");
_Static_assert((int)WK_STRIDED_OWN >= (int)WK_CHAIN_SCALARS, "parameters");

/* --- Steps as words --- */

static const uint32_t is_step = UINT32_C(1) << 31;

static uint32_t pack(const wk_chain_step *step) {
    assert(step->code < 8 && step->fn < 64 && step->dtype < 16);
    uint32_t word = is_step | step->code | (uint32_t)step->fn << 3 | (uint32_t)step->dtype << 9;
    for (int i = 0; i < WK_CHAIN_INPUTS; i++) word |= (uint32_t)step->in[i] << (13 + 5 * i);
    return word;
}

static wk_chain_step unpack(uint32_t word) {
    wk_chain_step step = {.code = word & 7, .fn = (word >> 3) & 63, .dtype = (word >> 9) & 15};
    for (int i = 0; i < WK_CHAIN_INPUTS; i++) step.in[i] = (word >> (13 + 5 * i)) & 31;
    return step;
}

/* --- Accepting --- */

static bool is_flag(wick_dtype dtype) { return dtype == WICK_U8 || dtype == WICK_BOOL; }

static wick_dtype dtype_of(const wk_op *op, int reg) {
    return reg < op->n_src ? wk_src(op, reg)->dtype
                           : (wick_dtype)op->p.chain.step[reg - op->n_src].dtype;
}

static bool accepts_step(const wk_op *op, const wk_chain_step *step) {
    const wick_dtype x = dtype_of(op, step->in[0]), y = (wick_dtype)step->dtype;
    switch (step->code) {
    case WK_OP_UNARY:
    case WK_OP_GATED:
    case WK_OP_COMPARE: return wk_webgpu_is_float(x);
    case WK_OP_BINARY: return wk_webgpu_is_float(x) && step->fn != WK_BINARY_NEXTAFTER;
    case WK_OP_WHERE: return is_flag(x) && (wk_webgpu_is_float(y) || is_flag(y));
    default: return wk_webgpu_is_float(y) ? wk_webgpu_is_float(x) || is_flag(x) : x == y;
    }
}

static bool has_one_element(const wk_view *view) {
    for (int d = 0; d < view->rank; d++)
        if (view->extent[d] > 1 && view->stride[d] != 0) return false;
    return true;
}

/* Of sources that one number is a position in, or that are one element. */
static bool accepts_reduced(const wk_op *op) {
    const wk_chain_step *const end = &op->p.chain.step[op->p.chain.n_steps - 1];
    for (int s = 0; s < op->n_src; s++)
        if (!wk_view_is_dense(wk_src(op, s)) && !has_one_element(wk_src(op, s))) return false;
    return op->n_src <= WK_MAX_BINDINGS - WK_ROWS_SOURCE && end->fn != WK_REDUCE_VAR &&
           wk_rows_are_countable(wk_src(op, 0)) && wk_webgpu_is_float(dtype_of(op, end->in[0])) &&
           end->in[0] + 2 == op->n_src + op->p.chain.n_steps;
}

static bool accepts(const wk_op *op) {
    const bool is_reduced = wk_chain_is_reduced(op);
    if (is_reduced && !accepts_reduced(op)) return false;
    for (int i = is_reduced ? 1 : 0; i < op->n_dst + op->n_src; i++)
        if (!wk_webgpu_is_float(op->view[i].dtype) && !is_flag(op->view[i].dtype)) return false;
    for (int k = 0; k + is_reduced < op->p.chain.n_steps; k++)
        if (!accepts_step(op, &op->p.chain.step[k])) return false;
    return true;
}

/* --- The text --- */

/* What the functions of a step are made of. */
enum { UNARY = 1, UNARY_MORE = 2, BINARY = 4, BINARY_MORE = 8, COMPARE = 16, GATED = 32 };

static uint32_t parts_of(const wk_chain_step *step) {
    switch (step->code) {
    case WK_OP_UNARY: return step->fn > WK_UNARY_CLAMP ? UNARY_MORE : UNARY;
    case WK_OP_BINARY: return step->fn > WK_BINARY_MINIMUM ? BINARY_MORE : BINARY;
    case WK_OP_COMPARE: return COMPARE;
    case WK_OP_GATED: return GATED;
    default: return 0;
    }
}

static void write_parts(uint32_t needed, wk_strbuf *out) {
    const struct {
        uint32_t of;
        const char *text;
    } parts[] = {{UINT32_MAX, wk_wgsl_functions},
                 {UNARY | UNARY_MORE | BINARY, wk_wgsl_wide},
                 {UNARY | UNARY_MORE, wk_wgsl_trigonometry},
                 {UNARY | UNARY_MORE | BINARY, wk_wgsl_power},
                 {UNARY_MORE | BINARY_MORE, wk_wgsl_arctangent},
                 {BINARY_MORE, wk_wgsl_division},
                 {UNARY, wk_wgsl_unary_float},
                 {UNARY_MORE, wk_wgsl_unary_more},
                 {BINARY, wk_wgsl_binary_float},
                 {BINARY_MORE, wk_wgsl_binary_more},
                 {COMPARE, wk_wgsl_compare},
                 {COMPARE, wk_wgsl_compare_float},
                 {GATED, wk_wgsl_gated}};
    for (size_t i = 0; i < WK_COUNT(parts); i++)
        if ((parts[i].of & needed) != 0) wk_strbuf_text(out, parts[i].text);
    wk_strbuf_text(out,
                   "fn to_f16(v: f32) -> f32 { return unpack2x16float(f16_bits(v)).x; }\n"
                   "fn to_bf16(v: f32) -> f32 { return bitcast<f32>(bf16_bits(v) << 16u); }\n");
}

/* of: the dtype of its first input; scalar: number of its next parameter. */
static void write_call(const wk_chain_step *step, wick_dtype of, int *scalar, wk_strbuf *out) {
    const unsigned a = step->in[0], b = step->in[1], c = step->in[2];
    const wk_chain one = {.n_steps = 1, .step = {*step}};
    int first;
    const int n = wk_chain_scalars(&one, 0, &first);
    char scalars[2][16];
    for (int i = 0; i < 2; i++)
        snprintf(scalars[i], sizeof scalars[i], i < n ? "own(%du)" : "0.0", *scalar + i);
    *scalar += n;
    switch (step->code) {
    case WK_OP_UNARY:
        wk_strbuf_format(out, "unary_%d(r%u, %s, %s)", step->fn, a, scalars[0], scalars[1]);
        break;
    case WK_OP_BINARY: wk_strbuf_format(out, "binary_%d(r%u, r%u)", step->fn, a, b); break;
    case WK_OP_COMPARE:
        wk_strbuf_format(out, "compare_%d(relation(r%u, r%u))", step->fn, a, b);
        break;
    case WK_OP_WHERE: wk_strbuf_format(out, "select(r%u, r%u, r%u != 0u)", c, b, a); break;
    case WK_OP_GATED:
        wk_strbuf_format(out, "gated_%d(r%u, r%u, %s, %s)", step->fn, a, b, scalars[0], scalars[1]);
        break;
    default:
        wk_strbuf_format(out,
                         (wick_dtype)step->dtype == of ? "r%u"
                         : of == WICK_BOOL             ? "f32(r%u != 0u)"
                                                       : "f32(r%u)",
                         a);
    }
}

/* What is written of a program: its steps, and operands o0, o1, .. by number. */
typedef struct text {
    const wk_program *program;
    int n_dst, n_src, first; /* operand of the first source */
    int32_t results;         /* a byte for each destination */
    const int32_t *steps;
    int most;
} text;

static bool step_at(const text *t, int k, wk_chain_step *step) {
    if (k == t->most || t->steps[k] == 0) return false;
    *step = unpack((uint32_t)t->steps[k]);
    return true;
}

/* As what has its dtype in memory. */
static const char *rounding_to(wick_dtype dtype) {
    return dtype == WICK_F16 ? "to_f16" : dtype == WICK_BF16 ? "to_bf16" : "";
}

static void write_steps(const text *t, wk_strbuf *out) {
    wick_dtype dtypes[WK_CHAIN_OPERANDS + WK_CHAIN_STEPS];
    wk_chain_step step;
    int scalar = 0;
    for (int s = 0; s < t->n_src; s++)
        dtypes[s] = (wick_dtype)t->program->operands[t->first + s].dtype;
    for (int k = 0; step_at(t, k, &step); k++) {
        const int reg = t->n_src + k;
        dtypes[reg] = (wick_dtype)step.dtype;
        wk_strbuf_format(out, "let r%d = %s(", reg, rounding_to(dtypes[reg]));
        write_call(&step, dtypes[step.in[0]], &scalar, out);
        wk_strbuf_text(out, ");\n");
    }
}

/* fn chain, of one element of each source, and what it needs. */
static void write_chain(const text *t, wk_strbuf *out) {
    wk_chain_step step;
    uint32_t needed = 0;
    for (int k = 0; step_at(t, k, &step); k++) needed |= parts_of(&step);
    write_parts(needed, out);
    wk_strbuf_text(out, "struct Results {\n");
    for (int d = 0; d < t->n_dst; d++)
        wk_strbuf_format(out, t->first == t->n_dst ? "y%d: V_o%d,\n" : "y%d: f32,\n", d, d);
    wk_strbuf_text(out, "}\nfn chain(");
    for (int s = 0; s < t->n_src; s++)
        wk_strbuf_format(out, "%sr%d: V_o%d", s > 0 ? ", " : "", s, t->first + s);
    wk_strbuf_text(out, ") -> Results {\n");
    write_steps(t, out);
    wk_strbuf_text(out, "return Results(");
    for (int d = 0; d < t->n_dst; d++)
        wk_strbuf_format(out, "%sr%d", d > 0 ? ", " : "",
                         t->n_src + (t->results >> (8 * d) & 0xFF));
    wk_strbuf_text(out, ");\n}\n");
}

/* The position of an operand, as text. */
static const char *position_of(int i) {
    static const char *const positions[WK_CHAIN_OPERANDS] = {"at.low.x",  "at.low.y",  "at.low.z",
                                                             "at.low.w",  "at.high.x", "at.high.y",
                                                             "at.high.z", "at.high.w"};
    return positions[i];
}

static void write_lane(const text *t, char lane, wk_strbuf *out) {
    wk_strbuf_format(out, "let of_%c = chain(", lane);
    for (int s = 0; s < t->n_src; s++)
        wk_strbuf_format(out, "%sx%d.%c", s > 0 ? ", " : "", s, lane);
    wk_strbuf_text(out, ");\n");
    for (int d = 0; d < t->n_dst; d++)
        wk_strbuf_format(out, "y%d.%c = of_%c.y%d;\n", d, lane, lane, d);
}

static void write_main(const text *t, wk_strbuf *out) {
    wk_strbuf_text(out, "@compute @workgroup_size(THREADS)\n"
                        "fn main(@builtin(workgroup_id) group: vec3<u32>,\n"
                        "@builtin(num_workgroups) groups: vec3<u32>,\n"
                        "@builtin(local_invocation_index) local: u32) {\n"
                        "let i = (group.y * groups.x + group.x) * u32(THREADS) + local;\n"
                        "if (i >= params.count) { return; }\n"
                        "let at = positions(i);\n");
    for (int s = 0; s < t->n_src; s++)
        wk_strbuf_format(out, "let x%d = vec4<V_o%d>(load_o%d(%s));\n", s, t->first + s,
                         t->first + s, position_of(t->first + s));
    for (int d = 0; d < t->n_dst; d++) wk_strbuf_format(out, "var y%d: vec4<V_o%d>;\n", d, d);
    write_lane(t, 'x', out);
    wk_strbuf_text(out, "if (LANES == 4) {\n");
    for (const char *lane = "yzw"; *lane != '\0'; lane++) write_lane(t, *lane, out);
    wk_strbuf_text(out, "}\n");
    for (int d = 0; d < t->n_dst; d++)
        wk_strbuf_format(out, "store_lanes_o%d(%s, y%d);\n", d, position_of(d), d);
    wk_strbuf_text(out, "}\n");
}

static void write_elements(const wk_program *program, wk_strbuf *out) {
    const int32_t *const constants = program->constants + WK_STRIDED_CONSTANTS;
    const text t = {.program = program,
                    .n_dst = constants[N_DST],
                    .n_src = constants[N_SRC],
                    .first = constants[N_DST],
                    .results = constants[RESULTS],
                    .steps = constants + STEPS,
                    .most = WK_CHAIN_STEPS};
    write_chain(&t, out);
    write_main(&t, out);
}

/* What reduce.wgsl takes for the elements of x: those of sources that are dense, or of one element
 * (a bit each after their number). */
static void write_reduced(const wk_program *program, wk_strbuf *out) {
    const int32_t sources = program->constants[OF_REDUCTION];
    text t = {.program = program,
              .n_dst = 1,
              .n_src = sources & 0xFF,
              .first = WK_ROWS_SOURCE,
              .steps = program->constants + OF_REDUCTION + 1,
              .most = WK_CHAIN_STEPS - 1};
    wk_chain_step step;
    while (step_at(&t, t.results, &step)) t.results++;
    t.results--; /* the last one */
    wk_strbuf_text(out, "alias V_x = f32;\n"
                        "fn own(i: u32) -> f32 {\n"
                        "return bitcast<f32>(params.more[2u + i / 4u][i % 4u]);\n}\n");
    write_chain(&t, out);
    wk_strbuf_text(out, "fn load_x(i: u32) -> f32 {\nreturn chain(");
    for (int s = 0; s < t.n_src; s++)
        wk_strbuf_format(out, "%sload_o%d(params.more[%d][%d]%s)", s > 0 ? ", " : "", t.first + s,
                         s / 4, s % 4, (sources >> (8 + s) & 1) != 0 ? "" : " + i");
    wk_strbuf_text(out, ").y0;\n}\n");
}

/* --- The kernel --- */

static wick_status encode_elements(wk_encoder *e, const wk_op *op) {
    static const wk_source source = {.name = "chain",
                                     .parts = {wk_wgsl_strided_wide},
                                     .operands = {"o0", "o1", "o2", "o3", "o4", "o5", "o6", "o7"},
                                     .constants = {"LANES", "THREADS"},
                                     .write = write_elements};
    const wk_chain *const chain = &op->p.chain;
    wk_strided s = {.source = &source,
                    .n = op->n_dst + op->n_src,
                    .is_wide = true,
                    .n_dst = op->n_dst,
                    .constants = {[N_DST] = op->n_dst, [N_SRC] = op->n_src}};
    for (int i = 0; i < s.n; i++) s.views[i] = &op->view[i];
    for (int d = 0; d < op->n_dst; d++) s.constants[RESULTS] |= chain->result[d] << (8 * d);
    for (int k = 0; k < chain->n_steps; k++)
        s.constants[STEPS + k] = (int32_t)pack(&chain->step[k]);
    for (int i = 0; i < chain->n_scalars; i++) s.own[i] = wk_f32_bits((float)chain->scalar[i]);
    return wk_strided_run(e, &s);
}

/* One dispatch: of elements to results, or to parts. */
static wick_status reduce_elements(wk_encoder *e, const wk_op *op, const wk_op *reduce,
                                   const wk_rows *rows, const wk_view *y, bool to_parts,
                                   uint32_t part) {
    static const wk_source source = {
        .name = "chain",
        .parts = {wk_wgsl_rows, wk_wgsl_reduce},
        .operands = {"y", "x", "o2", "o3", "o4", "o5", "o6", "o7"},
        .constants = {"THREADS", "LANES", "COLUMNS", "FROM_PARTS", "TO_PARTS", "FN", "KIND"},
        .write = write_reduced};
    const wk_chain *const chain = &op->p.chain;
    uint32_t own[4];
    wk_dispatch d;
    wk_dispatch_begin(&d, &source, 0);
    int32_t *const constants = d.program.constants;
    constants[TO_PARTS] = to_parts;
    constants[FN] = (int32_t)reduce->p.reduce.fn;
    constants[KIND] = WK_KIND_FLOAT;
    constants[OF_REDUCTION] = op->n_src;
    for (int k = 0; k + 1 < chain->n_steps; k++)
        constants[OF_REDUCTION + 1 + k] = (int32_t)pack(&chain->step[k]);
    wk_dispatch_bind(&d, 0, y, WK_FORM_ELEMENTS, true);
    for (int s = 0; s < op->n_src; s++) {
        wk_dispatch_bind(&d, WK_ROWS_SOURCE + s, wk_src(op, s), WK_FORM_ELEMENTS, false);
        if (has_one_element(wk_src(op, s))) constants[OF_REDUCTION] |= 1 << (8 + s);
    }
    wk_rows_own(reduce, rows, part, own);
    return wk_rows_run(e, &d, rows, own);
}

/* As the reduction of a dense tensor that is nowhere. */
static wick_status encode_reduced(wk_encoder *e, const wk_op *op) {
    const wk_chain *const chain = &op->p.chain;
    const wk_view *const y = wk_dst(op, 0);
    const wick_shape shape = wick_shape_of(wk_src(op, 0)->rank, wk_src(op, 0)->extent);
    uint32_t scalars[WK_CHAIN_SCALARS] = {0};
    uint64_t bytes;
    wk_view x, parts;
    const wk_op reduce = {.code = WK_OP_REDUCE,
                          .n_dst = 1,
                          .n_src = 1,
                          .view[1].dtype = WICK_F32, /* of the parts */
                          .p.reduce.fn = (wk_reduce_fn)chain->step[chain->n_steps - 1].fn};
    if (wk_view_count(y) == 0) return WICK_OK;
    (void)wk_view_dense(WICK_F32, &shape, &x, &bytes);
    for (int i = 0; i < chain->n_scalars; i++) scalars[i] = wk_f32_bits((float)chain->scalar[i]);
    wk_rows rows = wk_rows_of(y, &x, y->rank);
    rows.scalars = scalars;
    wk_rows_split(&rows);
    if (rows.n_parts == 1) return reduce_elements(e, op, &reduce, &rows, y, false, 0);
    WK_TRY(wk_encoder_temp(e, 2 * (int64_t)rows.n_rows * rows.n_parts, &parts));
    parts.dtype = WICK_U32; /* bits */
    WK_TRY(reduce_elements(e, op, &reduce, &rows, &parts, true, rows.part));
    const wk_rows of_parts = wk_rows_of_parts(&rows);
    return wk_rows_join(e, &reduce, &of_parts, y, &parts, rows.part);
}

static wick_status encode(wk_encoder *e, const wk_op *op) {
    return wk_chain_is_reduced(op) ? encode_reduced(e, op) : encode_elements(e, op);
}

_Static_assert((int)WK_STRIDED_TUNINGS == (int)WK_ROWS_TUNINGS, "tunings of both");
const wk_webgpu_kernel wk_webgpu_chain = {
    .base.name = "chain_wgsl",
    .base.code = WK_OP_CHAIN,
    .base.n_tunings = WK_STRIDED_TUNINGS,
    .base.accepts = accepts,
    .encode = encode,
};
