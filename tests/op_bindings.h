/* tests/op_bindings.h: how a recorded case becomes a call: operands by role or position, attributes
 * by name, one function for each operation. */
#ifndef OP_BINDINGS_H
#define OP_BINDINGS_H

#include "core/json.h"

#include <wick/ops.h>

#include <float.h>

enum { MAX_INPUTS = 8 };

/* One case while it runs. */
typedef struct test_case {
    wk_str id, op;
    const wk_json *json, *attrs;
    wick_device *device;
    size_t n_inputs;
    wick_tensor *input[MAX_INPUTS];
    wk_str role[MAX_INPUTS];
    bool has_roles;
} test_case;

/* --- Attributes and operands --- */

static inline double number(const wk_json *value) {
    if (value == NULL) return 0;
    return value->is_integer ? (double)value->integer : value->number;
}

static inline double attr(const test_case *c, const char *name) {
    return number(wk_json_get(c->attrs, name));
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

/* --- Operations --- */

static inline wick_tensor *run_add(const test_case *c) {
    return wick_add(c->input[0], c->input[1]);
}
static inline wick_tensor *run_mul(const test_case *c) {
    return wick_mul(c->input[0], c->input[1]);
}
static inline wick_tensor *run_silu(const test_case *c) { return wick_silu(c->input[0]); }
static inline wick_tensor *run_swiglu(const test_case *c) {
    return wick_swiglu(operand(c, "gate", 0), operand(c, "up", 1));
}
static inline wick_tensor *run_softmax(const test_case *c) {
    return wick_softmax(c->input[0], dim(c, "dim"));
}
static inline wick_tensor *run_argmax(const test_case *c) {
    return wick_argmax(c->input[0], dim(c, "dim"), flag(c, "keepdim"));
}
static inline wick_tensor *run_matmul(const test_case *c) {
    return wick_matmul(c->input[0], c->input[1]);
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
    return wick_rms_norm(operand(c, "x", 0), operand(c, "weight", 1), (float)attr(c, "eps"));
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
    const float scale = (float)attr(c, "scale");
    const wick_attention_desc desc = {.scale = scale == 0 ? FLT_MIN : scale, /* 0: the default */
                                      .softcap = (float)attr(c, "softcap"),
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

/* The operations that Wick has. */
typedef struct binding {
    const char *name;
    wick_tensor *(*run)(const test_case *c);
} binding;

static const binding bindings[] = {
    {"add", run_add},
    {"mul", run_mul},
    {"silu", run_silu},
    {"swiglu", run_swiglu},
    {"softmax", run_softmax},
    {"argmax", run_argmax},
    {"matmul", run_matmul},
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
};

static inline const binding *find_binding(wk_str op) {
    for (size_t i = 0; i < WK_COUNT(bindings); i++) {
        if (wk_str_is(op, bindings[i].name)) return &bindings[i];
    }
    return NULL;
}

#endif
