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
#include "core/str.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

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

static bool is_integer(wick_dtype dtype) {
    const wk_rows_kind kind = wk_rows_kind_of(dtype);
    return kind == WK_KIND_SIGNED || kind == WK_KIND_UNSIGNED;
}

static bool is_narrow(wick_dtype dtype) { return wk_rows_kind_of(dtype) != WK_KIND_NONE; }

/* Numbers of such a type are floats as well. Wider ones are rounded as copy_wgsl has it. */
static bool is_short(wick_dtype dtype) {
    return is_narrow(dtype) && wk_dtype_get(dtype)->block_bytes < 4;
}

static wick_dtype dtype_of(const wk_op *op, int reg) {
    return reg < op->n_src ? wk_src(op, reg)->dtype
                           : (wick_dtype)op->p.chain.step[reg - op->n_src].dtype;
}

/* Of step k, as bits. */
static void put_scalars(const wk_op *op, int k, uint32_t *out) {
    const wk_chain_step *const step = &op->p.chain.step[k];
    double given[2] = {0};
    uint32_t bits[2];
    int first;
    const int n = wk_chain_scalars(&op->p.chain, k, &first);
    for (int i = 0; i < n; i++) given[i] = op->p.chain.scalar[first + i];
    const wick_dtype dtype = step->code == WK_OP_UNARY ? dtype_of(op, step->in[0]) : WICK_F32;
    wk_unary_scalars(dtype, given, bits);
    for (int i = 0; i < n; i++) out[first + i] = bits[i];
}

static bool accepts_step(const wk_op *op, int k) {
    const wk_chain_step *const step = &op->p.chain.step[k];
    const wick_dtype x = dtype_of(op, step->in[0]), y = (wick_dtype)step->dtype;
    switch (step->code) {
    case WK_OP_UNARY: return wk_webgpu_is_float(x) || is_integer(x);
    case WK_OP_GATED: return wk_webgpu_is_float(x);
    case WK_OP_COMPARE: return is_narrow(x);
    case WK_OP_BINARY:
        return is_integer(x) || (wk_webgpu_is_float(x) && step->fn != WK_BINARY_NEXTAFTER);
    case WK_OP_WHERE: return is_flag(x) && is_narrow(y);
    default:
        if (wk_webgpu_is_float(y)) return wk_webgpu_is_float(x) || is_short(x);
        return !wk_webgpu_is_float(x) && is_narrow(x) && is_narrow(y);
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
    return op->n_src <= WK_CORE_BINDINGS - WK_ROWS_SOURCE && end->fn != WK_REDUCE_VAR &&
           wk_rows_are_countable(wk_src(op, 0)) && is_narrow(dtype_of(op, end->in[0])) &&
           end->in[0] + 2 == op->n_src + op->p.chain.n_steps;
}

static bool accepts(const wk_op *op) {
    const bool is_reduced = wk_chain_is_reduced(op);
    if (is_reduced && !accepts_reduced(op)) return false;
    for (int i = is_reduced ? 1 : 0; i < op->n_dst + op->n_src; i++)
        if (!is_narrow(op->view[i].dtype)) return false;
    for (int k = 0; k + is_reduced < op->p.chain.n_steps; k++)
        if (!accepts_step(op, k)) return false;
    return true;
}

/* --- The text --- */

/* What is written of a program: its steps, and operands o0, o1, .. by number. */
typedef struct text {
    const wk_program *program;
    int n_dst, n_src, first; /* operand of the first source */
    int n_steps;
    int32_t results; /* a byte for each destination */
    wk_chain_step steps[WK_CHAIN_STEPS];
    wick_dtype dtypes[WK_CHAIN_OPERANDS + WK_CHAIN_STEPS]; /* of registers */
} text;

/* most: of the words, which are 0 where there is no step. */
static void read_steps(text *t, const int32_t *words, int most) {
    for (int s = 0; s < t->n_src; s++)
        t->dtypes[s] = (wick_dtype)t->program->operands[t->first + s].dtype;
    for (; t->n_steps < most && words[t->n_steps] != 0; t->n_steps++) {
        wk_chain_step *const step = &t->steps[t->n_steps];
        *step = unpack((uint32_t)words[t->n_steps]);
        t->dtypes[t->n_src + t->n_steps] = (wick_dtype)step->dtype;
    }
}

/* The type of a register, and what makes a value what it is in memory. */
static const char *type_of(wick_dtype dtype) {
    if (wk_webgpu_is_float(dtype)) return "f32";
    return wk_rows_kind_of(dtype) == WK_KIND_SIGNED ? "i32" : "u32";
}

static const char *rounding_to(wick_dtype dtype) {
    switch (dtype) {
    case WICK_F16: return "to_f16";
    case WICK_BF16: return "to_bf16";
    case WICK_I16: return "to_i16";
    case WICK_I8: return "to_i8";
    case WICK_U8: return "to_u8";
    default: return "";
    }
}

/* What the functions of a step are made of. Those of integers each step has to itself. */
enum { UNARY = 1, UNARY_MORE = 2, BINARY = 4, BINARY_MORE = 8, COMPARE = 16, GATED = 32 };
enum { COMPARE_INTEGER = 64 };

static uint32_t parts_of(const text *t, const wk_chain_step *step) {
    const bool is_float = wk_webgpu_is_float(t->dtypes[step->in[0]]);
    switch (step->code) {
    case WK_OP_UNARY: return !is_float ? 0 : step->fn > WK_UNARY_CLAMP ? UNARY_MORE : UNARY;
    case WK_OP_BINARY: return !is_float ? 0 : step->fn > WK_BINARY_MINIMUM ? BINARY_MORE : BINARY;
    case WK_OP_COMPARE: return is_float ? COMPARE : COMPARE_INTEGER;
    case WK_OP_GATED: return GATED;
    default: return 0;
    }
}

static void write_parts(uint32_t needed, wk_strbuf *out) {
    const struct {
        uint32_t of;
        const char *text;
    } parts[] = {{~(uint32_t)COMPARE_INTEGER, wk_wgsl_functions},
                 {UNARY | UNARY_MORE | BINARY, wk_wgsl_wide},
                 {UNARY | UNARY_MORE, wk_wgsl_trigonometry},
                 {UNARY | UNARY_MORE | BINARY, wk_wgsl_power},
                 {UNARY_MORE | BINARY_MORE, wk_wgsl_arctangent},
                 {BINARY_MORE, wk_wgsl_division},
                 {UNARY, wk_wgsl_unary_power},
                 {UNARY, wk_wgsl_unary_float},
                 {UNARY_MORE, wk_wgsl_unary_more},
                 {BINARY, wk_wgsl_binary_power},
                 {BINARY, wk_wgsl_binary_float},
                 {BINARY_MORE, wk_wgsl_binary_more},
                 {COMPARE | COMPARE_INTEGER, wk_wgsl_compare},
                 {COMPARE, wk_wgsl_compare_float},
                 {GATED, wk_wgsl_gated}};
    for (size_t i = 0; i < WK_COUNT(parts); i++)
        if ((parts[i].of & needed) != 0) wk_strbuf_text(out, parts[i].text);
    wk_strbuf_text(out, "fn to_f16(v: f32) -> f32 { return unpack2x16float(f16_bits(v)).x; }\n"
                        "fn to_bf16(v: f32) -> f32 { return bitcast<f32>(bf16_bits(v) << 16u); }\n"
                        "fn to_i16(v: i32) -> i32 { return extractBits(v, 0u, 16u); }\n"
                        "fn to_i8(v: i32) -> i32 { return extractBits(v, 0u, 8u); }\n"
                        "fn to_u8(v: u32) -> u32 { return v & 0xffu; }\n"
                        "fn own(i: u32) -> f32 { return bitcast<f32>(own_bits(i)); }\n");
}

/* The number of a step's first parameter. */
static int scalar_of(const text *t, int k) {
    wk_chain chain = {.n_steps = (uint8_t)t->n_steps};
    int first;
    memcpy(chain.step, t->steps, sizeof chain.step);
    (void)wk_chain_scalars(&chain, k, &first);
    return first;
}

/* The text with other words in the places of some. */
static void write_replaced(const char *from, const char *const (*words)[2], wk_strbuf *out) {
    static const char of_words[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_.";
    while (*from != '\0') {
        const size_t between = strcspn(from, of_words);
        const wk_str word = {from + between, strspn(from + between, of_words)};
        int i = 0;
        while (words[i][0] && !wk_str_is(word, words[i][0])) i++;
        wk_strbuf_append(out, from, words[i][0] ? between : between + word.size);
        if (words[i][0]) wk_strbuf_text(out, words[i][1]);
        from += between + word.size;
    }
}

/* fn integer_K of step K: the function that the op has on its own, of one type and one FN. */
static void write_integer(const text *t, int k, wk_strbuf *out) {
    const wk_chain_step *const step = &t->steps[k];
    const int scalar = scalar_of(t, k);
    const char *const type = type_of((wick_dtype)step->dtype);
    char name[16], fn[8], scalars[2][24];
    snprintf(name, sizeof name, "integer_%d", k);
    snprintf(fn, sizeof fn, "%d", step->fn);
    for (int i = 0; i < 2; i++)
        snprintf(scalars[i], sizeof scalars[i], "own_bits(%du)", scalar + i);
    const char *const words[][2] = {{"apply", name},
                                    {"FN", fn},
                                    {"V_x", type},
                                    {"V_y", type},
                                    {"V_a", type},
                                    {"V_b", type},
                                    {"params.a", scalars[0]},
                                    {"params.b", scalars[1]},
                                    {NULL, NULL}};
    write_replaced(step->code == WK_OP_UNARY ? wk_wgsl_unary_integer : wk_wgsl_binary_integer,
                   words, out);
}

static void write_copy(const text *t, const wk_chain_step *step, wk_strbuf *out) {
    const wick_dtype from = t->dtypes[step->in[0]], to = (wick_dtype)step->dtype;
    const bool is_flag_of_number = to == WICK_BOOL && from != WICK_BOOL;
    const bool is_number_of_flag = from == WICK_BOOL && to != WICK_BOOL;
    wk_strbuf_format(out, is_flag_of_number || is_number_of_flag ? "%s(r%u != 0)" : "%s(r%u)",
                     type_of(to), step->in[0]);
}

static void write_call(const text *t, int k, wk_strbuf *out) {
    const wk_chain_step *const step = &t->steps[k];
    const int scalar = scalar_of(t, k);
    const unsigned a = step->in[0], b = step->in[1], c = step->in[2];
    char scalars[2][24];
    for (int i = 0; i < 2; i++) snprintf(scalars[i], sizeof scalars[i], "own(%du)", scalar + i);
    const bool is_float = wk_webgpu_is_float(t->dtypes[a]);
    switch (step->code) {
    case WK_OP_UNARY:
        if (is_float)
            wk_strbuf_format(out, "unary_%d(r%u, %s, %s)", step->fn, a, scalars[0], scalars[1]);
        else
            wk_strbuf_format(out, "integer_%d(r%u)", k, a);
        break;
    case WK_OP_BINARY:
        wk_strbuf_format(out, is_float ? "binary_%d(r%u, r%u)" : "integer_%d(r%u, r%u)",
                         is_float ? step->fn : k, a, b);
        break;
    case WK_OP_COMPARE:
        wk_strbuf_format(out, "compare_%d(", step->fn);
        if (is_float)
            wk_strbuf_format(out, "relation(r%u, r%u))", a, b);
        else
            wk_strbuf_format(out, "i32(r%u > r%u) - i32(r%u < r%u))", a, b, a, b);
        break;
    case WK_OP_WHERE: wk_strbuf_format(out, "select(r%u, r%u, r%u != 0u)", c, b, a); break;
    case WK_OP_GATED:
        wk_strbuf_format(out, "gated_%d(r%u, r%u, %s, %s)", step->fn, a, b, scalars[0], scalars[1]);
        break;
    default: write_copy(t, step, out);
    }
}

static void write_steps(const text *t, wk_strbuf *out) {
    for (int k = 0; k < t->n_steps; k++) {
        wk_strbuf_format(out, "let r%d = %s(", t->n_src + k,
                         rounding_to((wick_dtype)t->steps[k].dtype));
        write_call(t, k, out);
        wk_strbuf_text(out, ");\n");
    }
}

/* fn chain, of one element of each source, and what it needs. */
static void write_chain(const text *t, wk_strbuf *out) {
    uint32_t needed = 0;
    for (int k = 0; k < t->n_steps; k++) needed |= parts_of(t, &t->steps[k]);
    write_parts(needed, out);
    for (int k = 0; k < t->n_steps; k++) {
        const uint8_t code = t->steps[k].code;
        const bool is_number = code == WK_OP_UNARY || code == WK_OP_BINARY;
        if (is_number && !wk_webgpu_is_float((wick_dtype)t->steps[k].dtype))
            write_integer(t, k, out);
    }
    wk_strbuf_text(out, "struct Results {\n");
    for (int d = 0; d < t->n_dst; d++)
        wk_strbuf_format(out, "y%d: %s,\n", d,
                         type_of(t->dtypes[t->n_src + (t->results >> (8 * d) & 0xFF)]));
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
    text t = {.program = program,
              .n_dst = constants[N_DST],
              .n_src = constants[N_SRC],
              .first = constants[N_DST],
              .results = constants[RESULTS]};
    read_steps(&t, constants + STEPS, WK_CHAIN_STEPS);
    write_chain(&t, out);
    write_main(&t, out);
}

/* What reduce.wgsl takes for the elements of x: those of sources that are dense, or of one element
 * (a bit each after their number). */
static void write_reduced(const wk_program *program, wk_strbuf *out) {
    const int32_t sources = program->constants[OF_REDUCTION];
    text t = {.program = program, .n_dst = 1, .n_src = sources & 0xFF, .first = WK_ROWS_SOURCE};
    read_steps(&t, program->constants + OF_REDUCTION + 1, WK_CHAIN_STEPS - 1);
    t.results = t.n_steps - 1; /* the last one */
    wk_strbuf_format(out,
                     "alias V_x = %s;\n"
                     "fn own_bits(i: u32) -> u32 { return params.more[2u + i / 4u][i %% 4u]; }\n",
                     type_of(t.dtypes[t.n_src + t.results]));
    write_chain(&t, out);
    wk_strbuf_text(out, "fn load_x(i: u32) -> V_x {\nreturn chain(");
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
    for (int k = 0; k < chain->n_steps; k++) put_scalars(op, k, s.own);
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
    constants[KIND] = (int32_t)wk_rows_kind_of(reduce->view[1].dtype);
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
    const wk_chain_step *const end = &chain->step[chain->n_steps - 1];
    const wk_view *const y = wk_dst(op, 0);
    const wick_shape shape = wick_shape_of(wk_src(op, 0)->rank, wk_src(op, 0)->extent);
    uint32_t scalars[WK_CHAIN_SCALARS] = {0};
    uint64_t bytes;
    wk_view x, parts;
    const wk_op reduce = {.code = WK_OP_REDUCE,
                          .n_dst = 1,
                          .n_src = 1,
                          .view[1].dtype = dtype_of(op, end->in[0]),
                          .p.reduce.fn = (wk_reduce_fn)end->fn};
    if (wk_view_count(y) == 0) return WICK_OK;
    (void)wk_view_dense(WICK_F32, &shape, &x, &bytes);
    for (int k = 0; k < chain->n_steps; k++) put_scalars(op, k, scalars);
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
