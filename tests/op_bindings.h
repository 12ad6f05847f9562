/* tests/op_bindings.h: how a recorded case becomes a call: operands by role or position, attributes
 * by name, one function for each operation. */
#ifndef OP_BINDINGS_H
#define OP_BINDINGS_H

#include "core/json.h"

#include <wick/ops.h>

#include <float.h>
#include <math.h>
#include <string.h>

enum { MAX_INPUTS = 12, MAX_OUTPUTS = 8 };

/* One case while it runs. */
typedef struct test_case {
    wk_str id, op;
    const wk_json *json, *attrs;
    wick_device *device;
    size_t n_inputs;
    wick_tensor *input[MAX_INPUTS];
    wk_str role[MAX_INPUTS];
    bool has_roles;
    wick_tensor **more; /* [MAX_OUTPUTS]: outputs after the first one; NULL: none */
} test_case;

/* --- Attributes and operands --- */

static inline double number(const wk_json *value) {
    if (value == NULL) return 0;
    return value->is_integer ? (double)value->integer : value->number;
}

static inline double attr(const test_case *c, const char *name) {
    return number(wk_json_get(c->attrs, name));
}

static inline bool has_attr(const test_case *c, const char *name) {
    const wk_json *const value = wk_json_get(c->attrs, name);
    return value != NULL && value->kind != WK_JSON_NULL;
}

static inline double attr_or(const test_case *c, const char *name, double other) {
    const wk_json *const value = wk_json_get(c->attrs, name);
    return value == NULL || value->kind != WK_JSON_NUMBER ? other : number(value);
}

static inline int64_t integer(const test_case *c, const char *name) {
    const wk_json *const value = wk_json_get(c->attrs, name);
    return value == NULL ? 0 : value->integer;
}

static inline int dim(const test_case *c, const char *name) { return (int)integer(c, name); }

static inline bool flag(const test_case *c, const char *name) {
    const wk_json *const value = wk_json_get(c->attrs, name);
    return value != NULL && value->boolean;
}

static inline bool attr_is(const test_case *c, const char *name, const char *word) {
    const wk_json *const value = wk_json_get(c->attrs, name);
    return value != NULL && wk_str_is(value->string, word);
}

static inline wick_dtype attr_dtype(const test_case *c, const char *name) {
    wick_dtype dtype = WICK_F32;
    while (dtype < WICK_DTYPE_COUNT_ && !attr_is(c, name, wick_dtype_name(dtype))) dtype++;
    return dtype;
}

/* A rank out of range stays so and is refused by the operation. */
static inline wick_shape shape_of(const wk_json *list) {
    wick_shape shape = {.rank = (int)list->count};
    int i = 0;
    for (const wk_json *e = list->child; e != NULL && i < WICK_MAX_RANK; e = e->next) {
        shape.extent[i++] = e->integer;
    }
    return shape;
}

static inline wick_shape shape(const test_case *c) {
    return shape_of(wk_json_get(c->attrs, "shape"));
}

/* An operand that a case may leave out, so it always has a role. */
static inline wick_tensor *optional(const test_case *c, const char *role) {
    for (size_t i = 0; i < c->n_inputs; i++) {
        if (wk_str_is(c->role[i], role)) return c->input[i];
    }
    return NULL;
}

/* By role where the case names roles, else by position. */
static inline wick_tensor *operand(const test_case *c, const char *role, size_t position) {
    if (c->has_roles) return optional(c, role);
    return position < c->n_inputs ? c->input[position] : NULL;
}

#include "op_bindings_nn.h"

/* --- Operations --- */

/* One operand and nothing else. */
#define OF_ONE(X)                                                                                  \
    X(silu)                                                                                        \
    X(abs)                                                                                         \
    X(neg)                                                                                         \
    X(sqr)                                                                                         \
    X(sign)                                                                                        \
    X(relu)                                                                                        \
    X(relu_squared)                                                                                \
    X(relu6)                                                                                       \
    X(exp)                                                                                         \
    X(log)                                                                                         \
    X(sin)                                                                                         \
    X(cos)                                                                                         \
    X(recip)                                                                                       \
    X(sqrt)                                                                                        \
    X(erf)                                                                                         \
    X(tanh)                                                                                        \
    X(sigmoid)                                                                                     \
    X(floor)                                                                                       \
    X(ceil)                                                                                        \
    X(round)                                                                                       \
    X(gelu)                                                                                        \
    X(gelu_erf)                                                                                    \
    X(quick_gelu)                                                                                  \
    X(softplus)                                                                                    \
    X(mish)                                                                                        \
    X(hard_sigmoid)                                                                                \
    X(hard_swish)                                                                                  \
    X(tan)                                                                                         \
    X(asin)                                                                                        \
    X(acos)                                                                                        \
    X(atan)                                                                                        \
    X(sinh)                                                                                        \
    X(cosh)                                                                                        \
    X(asinh)                                                                                       \
    X(acosh)                                                                                       \
    X(atanh)                                                                                       \
    X(expm1)                                                                                       \
    X(exp2)                                                                                        \
    X(log1p)                                                                                       \
    X(log2)                                                                                        \
    X(log10)                                                                                       \
    X(rsqrt)                                                                                       \
    X(trunc)                                                                                       \
    X(bitwise_not)                                                                                 \
    X(logical_not)                                                                                 \
    X(is_nan)                                                                                      \
    X(is_inf)                                                                                      \
    X(is_finite)                                                                                   \
    X(signbit)                                                                                     \
    X(selu)                                                                                        \
    X(softsign)                                                                                    \
    X(log_sigmoid)                                                                                 \
    X(hard_tanh)
#define RUN(name)                                                                                  \
    static inline wick_tensor *run_##name(const test_case *c) { return wick_##name(c->input[0]); }
OF_ONE(RUN)
#undef RUN

/* Two operands and nothing else. */
#define OF_TWO(X)                                                                                  \
    X(add)                                                                                         \
    X(sub)                                                                                         \
    X(mul)                                                                                         \
    X(div)                                                                                         \
    X(maximum)                                                                                     \
    X(minimum)                                                                                     \
    X(pow)                                                                                         \
    X(remainder)                                                                                   \
    X(fmod)                                                                                        \
    X(floor_divide)                                                                                \
    X(atan2)                                                                                       \
    X(hypot)                                                                                       \
    X(copysign)                                                                                    \
    X(nextafter)                                                                                   \
    X(logaddexp)                                                                                   \
    X(logical_and)                                                                                 \
    X(logical_or)                                                                                  \
    X(logical_xor)                                                                                 \
    X(bitwise_and)                                                                                 \
    X(bitwise_or)                                                                                  \
    X(bitwise_xor)                                                                                 \
    X(bitwise_left_shift)                                                                          \
    X(bitwise_right_shift)                                                                         \
    X(eq)                                                                                          \
    X(ne)                                                                                          \
    X(lt)                                                                                          \
    X(le)                                                                                          \
    X(gt)                                                                                          \
    X(ge)                                                                                          \
    X(matmul)
#define RUN(name)                                                                                  \
    static inline wick_tensor *run_##name(const test_case *c) {                                    \
        return wick_##name(c->input[0], c->input[1]);                                              \
    }
OF_TWO(RUN)
#undef RUN

/* gate and up. */
#define GATED(X)                                                                                   \
    X(swiglu)                                                                                      \
    X(geglu)                                                                                       \
    X(geglu_erf)                                                                                   \
    X(reglu)
#define RUN(name)                                                                                  \
    static inline wick_tensor *run_##name(const test_case *c) {                                    \
        return wick_##name(operand(c, "gate", 0), operand(c, "up", 1));                            \
    }
GATED(RUN)
#undef RUN

static inline wick_tensor *run_swiglu_clamped(const test_case *c) {
    return wick_swiglu_clamped(operand(c, "gate", 0), operand(c, "up", 1), attr(c, "alpha"),
                               attr(c, "limit"));
}
static inline wick_tensor *run_elu(const test_case *c) {
    return wick_elu(c->input[0], attr(c, "alpha"));
}
static inline wick_tensor *run_leaky_relu(const test_case *c) {
    return wick_leaky_relu(c->input[0], attr(c, "negative_slope"));
}
static inline wick_tensor *run_powf(const test_case *c) {
    return wick_powf(c->input[0], attr(c, "exponent"));
}
static inline wick_tensor *run_affine(const test_case *c) {
    return wick_affine(c->input[0], attr(c, "mul"), attr(c, "add"));
}
static inline wick_tensor *run_clamp(const test_case *c) {
    return wick_clamp(c->input[0], attr(c, "min"), attr(c, "max"));
}
static inline wick_tensor *run_where_cond(const test_case *c) {
    return wick_where(c->input[0], c->input[1], c->input[2]);
}

/* The attribute dims, a list or null for all of them, or dim, a single one. */
typedef struct dim_list {
    int n, named[WICK_MAX_RANK + 1];
    const int *dims; /* named, or NULL */
} dim_list;

static inline void list_dims(const test_case *c, dim_list *list) {
    const wk_json *const dims = wk_json_get(c->attrs, "dims");
    const wk_json *const one = wk_json_get(c->attrs, "dim");
    *list = (dim_list){0};
    if (one != NULL && one->kind == WK_JSON_NUMBER) {
        list->named[list->n++] = (int)one->integer;
        list->dims = list->named;
    }
    if (dims == NULL || dims->kind != WK_JSON_ARRAY) return;
    list->dims = list->named;
    for (const wk_json *e = dims->child; e != NULL && list->n <= WICK_MAX_RANK; e = e->next) {
        list->named[list->n++] = (int)e->integer;
    }
}

/* Over dims. */
#define REDUCTION(X)                                                                               \
    X(sum)                                                                                         \
    X(mean)                                                                                        \
    X(prod)                                                                                        \
    X(any)                                                                                         \
    X(all)                                                                                         \
    X(log_sum_exp)                                                                                 \
    X(count_nonzero)                                                                               \
    X(max)                                                                                         \
    X(min)
#define RUN(name)                                                                                  \
    static inline wick_tensor *run_##name(const test_case *c) {                                    \
        dim_list list;                                                                             \
        list_dims(c, &list);                                                                       \
        return wick_##name(c->input[0], list.n, list.dims, flag(c, "keepdim"));                    \
    }
REDUCTION(RUN)
#undef RUN

#define RUN(name)                                                                                  \
    static inline wick_tensor *run_##name(const test_case *c) {                                    \
        dim_list list;                                                                             \
        list_dims(c, &list);                                                                       \
        return wick_##name(c->input[0], list.n, list.dims, flag(c, "keepdim"),                     \
                           attr_or(c, "correction", 1));                                           \
    }
RUN(var)
RUN(std)
#undef RUN

static inline wick_tensor *run_norm(const test_case *c) {
    dim_list list;
    list_dims(c, &list);
    const double p = attr_is(c, "p", "inf")    ? (double)INFINITY
                     : attr_is(c, "p", "-inf") ? -(double)INFINITY
                                               : attr_or(c, "p", 2);
    return wick_norm(c->input[0], p, list.n, list.dims, flag(c, "keepdim"));
}
static inline wick_tensor *run_celu(const test_case *c) {
    return wick_celu(c->input[0], attr_or(c, "alpha", 1));
}
static inline wick_tensor *run_hardtanh(const test_case *c) {
    return wick_clamp(c->input[0], attr_or(c, "min_val", -1), attr_or(c, "max_val", 1));
}
#define RUN(name)                                                                                  \
    static inline wick_tensor *run_##name(const test_case *c) {                                    \
        return wick_##name(c->input[0], c->input[1], attr_or(c, "rtol", 1e-5),                     \
                           attr_or(c, "atol", 1e-8), flag(c, "equal_nan"));                        \
    }
RUN(is_close)
RUN(all_close)
#undef RUN
static inline wick_tensor *run_argmin(const test_case *c) {
    return wick_argmin(c->input[0], dim(c, "dim"), flag(c, "keepdim"));
}
static inline wick_tensor *run_log_softmax(const test_case *c) {
    return wick_log_softmax(c->input[0], dim(c, "dim"));
}
static inline wick_tensor *run_layer_norm(const test_case *c) {
    return wick_layer_norm(operand(c, "x", 0), operand(c, "weight", 1), operand(c, "bias", 2),
                           attr(c, "eps"));
}
static inline wick_tensor *run_stack(const test_case *c) {
    return wick_stack(c->input, c->n_inputs, dim(c, "dim"));
}
static inline wick_tensor *run_chunk(const test_case *c) {
    wick_tensor *parts[MAX_OUTPUTS + 1] = {NULL};
    const int64_t chunks = integer(c, "chunks");
    if (chunks < 0 || chunks > MAX_OUTPUTS) return NULL;
    const size_t n = wick_chunk(c->input[0], (size_t)chunks, dim(c, "dim"), parts);
    for (size_t i = 1; i < n; i++) c->more[i - 1] = parts[i];
    return parts[0];
}
static inline wick_tensor *run_ones(const test_case *c) {
    return wick_ones(c->device, attr_dtype(c, "dtype"), shape(c));
}
static inline wick_tensor *run_eye(const test_case *c) {
    return wick_eye(c->device, attr_dtype(c, "dtype"), integer(c, "n"));
}
static inline wick_tensor *run_tril(const test_case *c) {
    return wick_tril(c->input[0], integer(c, "diagonal"));
}
static inline wick_tensor *run_triu(const test_case *c) {
    return wick_triu(c->input[0], integer(c, "diagonal"));
}
static inline wick_tensor *run_softmax(const test_case *c) {
    return wick_softmax(c->input[0], dim(c, "dim"));
}
static inline wick_tensor *run_argmax(const test_case *c) {
    return wick_argmax(c->input[0], dim(c, "dim"), flag(c, "keepdim"));
}
static inline wick_tensor *run_embedding(const test_case *c) {
    return wick_embedding(operand(c, "weight", 0), operand(c, "index", 1));
}
static inline wick_tensor *run_transpose(const test_case *c) {
    return wick_transpose(c->input[0], dim(c, "dim0"), dim(c, "dim1"));
}
static inline wick_tensor *run_reshape(const test_case *c) {
    return wick_reshape(c->input[0], shape(c));
}
static inline wick_tensor *run_flatten(const test_case *c) {
    return wick_flatten(c->input[0], dim(c, "start"), dim(c, "end"));
}
static inline wick_tensor *run_squeeze(const test_case *c) {
    return wick_squeeze(c->input[0], dim(c, "dim"));
}
static inline wick_tensor *run_unsqueeze(const test_case *c) {
    return wick_unsqueeze(c->input[0], dim(c, "dim"));
}
static inline wick_tensor *run_expand(const test_case *c) {
    return wick_expand(c->input[0], shape(c));
}
static inline wick_tensor *run_contiguous(const test_case *c) {
    return wick_contiguous(c->input[0]);
}
static inline wick_tensor *run_cat(const test_case *c) {
    return wick_cat(c->input, c->n_inputs, dim(c, "dim"));
}
static inline wick_tensor *run_copy(const test_case *c) {
    return wick_copy(operand(c, "dst", 0), operand(c, "src", 1));
}
static inline wick_tensor *run_cast(const test_case *c) {
    return wick_cast(c->input[0], attr_dtype(c, "to"));
}
static inline wick_tensor *run_fill(const test_case *c) {
    return wick_fill(c->input[0], attr(c, "value"));
}
static inline wick_tensor *run_zeros(const test_case *c) {
    return wick_zeros(c->device, attr_dtype(c, "dtype"), shape(c));
}
static inline wick_tensor *run_full(const test_case *c) {
    return wick_full(c->device, attr_dtype(c, "dtype"), shape(c), attr(c, "value"));
}

static inline wick_tensor *run_rms_norm(const test_case *c) {
    return wick_rms_norm(operand(c, "x", 0), operand(c, "weight", 1), attr(c, "eps"));
}

static inline wick_tensor *run_linear(const test_case *c) {
    return wick_linear(operand(c, "x", 0), operand(c, "weight", 1), operand(c, "bias", 2));
}

static inline wick_tensor *run_narrow(const test_case *c) {
    return wick_narrow(c->input[0], dim(c, "dim"), integer(c, "start"), integer(c, "len"));
}

static inline wick_tensor *run_permute(const test_case *c) {
    const wick_shape dims = shape_of(wk_json_get(c->attrs, "dims"));
    int named[WICK_MAX_RANK];
    for (int i = 0; i < dims.rank; i++) named[i] = (int)dims.extent[i];
    return wick_permute(c->input[0], dims.rank, named);
}

static inline wick_tensor *run_arange(const test_case *c) {
    return wick_arange(c->device, attr_dtype(c, "dtype"), attr(c, "start"), attr(c, "end"),
                       attr(c, "step"));
}

static inline wick_rope_layout rope_layout(const test_case *c) {
    return attr_is(c, "layout", "bthd") ? WICK_ROPE_BTHD : WICK_ROPE_BHTD;
}

static inline wick_tensor *run_rope(const test_case *c) {
    const wick_rope_desc desc = {.rotary_dim = dim(c, "rotary_dim"),
                                 .theta = attr(c, "theta"),
                                 .scale_factor = attr(c, "scale_factor"),
                                 .offset = integer(c, "offset"),
                                 .interleaved = flag(c, "interleaved"),
                                 .layout = rope_layout(c)};
    return wick_rope(operand(c, "x", 0), operand(c, "positions", 1), &desc);
}

static inline wick_tensor *run_rope_table(const test_case *c) {
    return wick_rope_table(operand(c, "x", 0), operand(c, "cos", 1), operand(c, "sin", 2),
                           flag(c, "interleaved"), rope_layout(c));
}

static inline wick_tensor *run_attention(const test_case *c) {
    const double scale = attr(c, "scale");
    const wick_attention_desc desc = {.scale =
                                          scale == 0 ? (double)FLT_MIN : scale, /* 0: the default */
                                      .softcap = attr(c, "softcap"),
                                      .window = (int32_t)integer(c, "window"),
                                      .causal = flag(c, "causal"),
                                      .mask = optional(c, "mask"),
                                      .bias = optional(c, "bias"),
                                      .sinks = optional(c, "sinks"),
                                      .slopes = optional(c, "alibi_slopes")};
    return wick_attention(operand(c, "q", 0), operand(c, "k", 1), operand(c, "v", 2), &desc);
}

/* linear: blocks one after another into the cache. rotating: the last `capacity` rows of all
 * blocks, which is what a ring buffer holds. */
static inline wick_tensor *run_kv_append(const test_case *c) {
    if (attr_is(c, "mode", "rotating")) {
        wick_tensor *const all = wick_cat(c->input, c->n_inputs, 2);
        if (all == NULL) return NULL;
        const int64_t length = wick_tensor_shape(all).extent[2], capacity = integer(c, "capacity");
        const int64_t kept = length < capacity ? length : capacity;
        return wick_narrow(all, 2, length - kept, kept);
    }
    wick_tensor *cache = c->input[0];
    int64_t position = integer(c, "position");
    for (size_t i = 1; i < c->n_inputs; i++) {
        cache = wick_kv_append(cache, c->input[i], position);
        position += wick_tensor_shape(c->input[i]).extent[2];
    }
    return cache;
}

#include "op_bindings_array.h"

/* The operations that Wick has. */
typedef struct binding {
    const char *name;
    wick_tensor *(*run)(const test_case *c);
} binding;

#define BINDING(name) {#name, run_##name},
static const binding bindings[] = {
    OF_ONE(BINDING) OF_TWO(BINDING) GATED(BINDING) REDUCTION(BINDING){"softmax", run_softmax},
    NN_BINDINGS{"argmax", run_argmax},
    {"linear", run_linear},
    {"embedding", run_embedding},
    {"transpose", run_transpose},
    {"permute", run_permute},
    {"reshape", run_reshape},
    {"flatten", run_flatten},
    {"squeeze", run_squeeze},
    {"unsqueeze", run_unsqueeze},
    {"narrow", run_narrow},
    {"expand", run_expand},
    {"contiguous", run_contiguous},
    {"cat", run_cat},
    {"copy", run_copy},
    {"cast", run_cast},
    {"fill", run_fill},
    {"zeros", run_zeros},
    {"full", run_full},
    {"arange", run_arange},
    {"rms_norm", run_rms_norm},
    {"rope", run_rope},
    {"rope_table", run_rope_table},
    {"attention", run_attention},
    {"kv_append", run_kv_append},
    {"swiglu_clamped", run_swiglu_clamped},
    {"elu", run_elu},
    {"leaky_relu", run_leaky_relu},
    {"powf", run_powf},
    {"affine", run_affine},
    {"clamp", run_clamp},
    {"where_cond", run_where_cond},
    {"var", run_var},
    {"argmin", run_argmin},
    {"log_softmax", run_log_softmax},
    {"layer_norm", run_layer_norm},
    {"stack", run_stack},
    {"chunk", run_chunk},
    {"ones", run_ones},
    {"eye", run_eye},
    {"tril", run_tril},
    {"triu", run_triu},
    {"gather", run_gather},
    {"take_along_dim", run_take_along_dim},
    {"index_select", run_index_select},
    {"scatter", run_scatter},
    {"scatter_add", run_scatter_add},
    {"scatter_reduce", run_scatter_reduce},
    {"index_add", run_index_add},
    {"cumsum", run_cumsum},
    {"cumprod", run_cumprod},
    {"argsort", run_argsort},
    {"sort", run_sort},
    {"std", run_std},
    {"norm", run_norm},
    {"celu", run_celu},
    {"hardtanh", run_hardtanh},
    {"is_close", run_is_close},
    {"all_close", run_all_close},
    /* Other names of them. */
    {"isnan", run_is_nan},
    {"isinf", run_is_inf},
    {"isfinite", run_is_finite},
    {"logsigmoid", run_log_sigmoid},
    {"logsumexp", run_log_sum_exp},
    {"isclose", run_is_close},
    {"allclose", run_all_close},
    {"arctan2", run_atan2},
    {"mod", run_remainder},
    {"reciprocal", run_recip},
    {"square", run_sqr},
    {"linalg_vector_norm", run_norm},
    {"vector_norm", run_norm},
    {"arcsin", run_asin},
    {"arccos", run_acos},
    {"arctan", run_atan},
    {"arcsinh", run_asinh},
    {"arccosh", run_acosh},
    {"arctanh", run_atanh},
    ARRAY_BINDINGS,
};
#undef BINDING

static inline const binding *find_binding(wk_str op) {
    for (size_t i = 0; i < WK_COUNT(bindings); i++) {
        if (wk_str_is(op, bindings[i].name)) return &bindings[i];
    }
    return NULL;
}

#endif
