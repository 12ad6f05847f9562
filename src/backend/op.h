/* backend/op.h: operations as plain data: what every op.def entry has, is checked by, costs and may
 * differ by. */
#ifndef WK_BACKEND_OP_H
#define WK_BACKEND_OP_H

#include "core/alloc.h"
#include "core/status.h"
#include "quant/layout.h"

#include <wick/kernel.h>

#include <assert.h>
#include <string.h>

enum { WK_MAX_OPERANDS = 10 };

/* Of an operand. Only a view that repeats elements has as many. No op on more would ever end, and
 * kernels may add extents and multiply them by the size of a number and by that of a pool of
 * threads. */
#define WK_MOST_ELEMENTS (INT64_C(1) << 48)

/* Faults: an op that meets an index out of range writes nothing for it and sets its slot of these,
 * which tensor/ chooses. */
enum { WK_FAULT_SLOTS = 256 };

/* Device memory. A backend's own struct begins with this one; what tensor/ keeps in it is zero when
 * the backend gives it. */
typedef struct wk_buffer wk_buffer;
struct wk_buffer {
    uint64_t size;
    uint32_t refs;    /* kept by tensor/ */
    uint32_t version; /* ops that wrote to it so far, kept by tensor/ */
    uint32_t place; /* tensor/plan.c: not memory yet but this place of a plan, from 1; 0: memory */
    uint64_t granule;    /* of a place: see wk_backend.alloc */
    uint32_t n_records;  /* of refs, how many are those of the queue: kept by tensor/queue.c */
    bool is_left;        /* all of them are, or were once: kept by tensor/buffer.c */
    uint32_t generation; /* of the device that it is on, kept by tensor/: see tensor/recover.c */
    void *data;          /* host address where the device computes on host memory, else NULL */

    /* Kept by tensor/fuse.c, of the ops that wait and that it looks at: of which span of them. */
    uint64_t span;
    uint32_t n_waiting; /* of refs, how many are theirs */
    uint32_t last_read; /* number of the last one that reads it, from 1; 0: none does */
    bool is_settled;    /* what follows is known */
    bool is_outside;    /* others have references, too */
    bool is_wanted;     /* something after the op that it has come to reads it */
    bool is_foreign;    /* the caller's memory, who may look at it: kept by tensor/buffer.c */

    /* Kept by tensor/fault.c. */
    uint64_t id;              /* no other buffer of the wick_device has had it */
    struct wk_fault *fault;   /* why its contents are not what they should be; NULL: they are */
    bool is_slot;             /* of a plan's pool: each run writes it before it reads it */
    wk_buffer *older, *newer; /* all that are alive */
};

/* offset in bytes; strides in elements, never negative. Block types: extent in elements, the last
 * dimension dense, the other strides in elements too. A weight in a compute layout is a whole
 * tensor [n, k], or [experts, n, k] with whole panels for each: its strides mean nothing, layout
 * says how its rows lie. buf NULL: an optional operand that is absent. */
typedef struct wk_view {
    wk_buffer *buf;
    uint64_t offset;
    wick_dtype dtype;
    uint8_t layout; /* wk_layout */
    int rank;
    int64_t extent[WICK_MAX_RANK], stride[WICK_MAX_RANK];
} wk_view;

/* a and b are the parameters of wk_params.unary. */
typedef enum wk_unary_fn {
    WK_UNARY_SILU,
    WK_UNARY_EXP,
    WK_UNARY_LOG,
    WK_UNARY_SIN,
    WK_UNARY_COS,
    WK_UNARY_ABS,
    WK_UNARY_NEG,
    WK_UNARY_RECIP,
    WK_UNARY_SQR,
    WK_UNARY_SQRT,
    WK_UNARY_ERF,
    WK_UNARY_TANH,
    WK_UNARY_SIGMOID,
    WK_UNARY_FLOOR,
    WK_UNARY_CEIL,
    WK_UNARY_ROUND, /* half to even */
    WK_UNARY_SIGN,  /* -1, 0 or 1 */
    WK_UNARY_RELU,
    WK_UNARY_GELU,       /* by tanh */
    WK_UNARY_GELU_ERF,   /* x / 2 (1 + erf(x / sqrt 2)) */
    WK_UNARY_GELU_QUICK, /* x sigmoid(1.702 x) */
    WK_UNARY_SOFTPLUS,   /* log(1 + e^x) */
    WK_UNARY_MISH,       /* x tanh(softplus(x)) */
    WK_UNARY_HARD_SIGMOID,
    WK_UNARY_HARD_SWISH,
    WK_UNARY_ELU,        /* a (e^x - 1) below 0 */
    WK_UNARY_LEAKY_RELU, /* a x below 0 */
    WK_UNARY_POW,        /* x^a */
    WK_UNARY_AFFINE,     /* a x + b */
    WK_UNARY_CLAMP,      /* to [a, b]; of integers bounds that the type holds */
    WK_UNARY_TAN,
    WK_UNARY_ASIN,
    WK_UNARY_ACOS,
    WK_UNARY_ATAN,
    WK_UNARY_SINH,
    WK_UNARY_COSH,
    WK_UNARY_ASINH,
    WK_UNARY_ACOSH,
    WK_UNARY_ATANH,
    WK_UNARY_EXPM1,
    WK_UNARY_EXP2,
    WK_UNARY_LOG1P,
    WK_UNARY_LOG2,
    WK_UNARY_LOG10,
    WK_UNARY_RSQRT, /* 1 / sqrt x */
    WK_UNARY_TRUNC,
    WK_UNARY_NOT, /* all bits turned: integers only */
    WK_UNARY_COUNT_,
} wk_unary_fn;

typedef enum wk_binary_fn {
    WK_BINARY_ADD,
    WK_BINARY_MUL,
    WK_BINARY_SUB,
    WK_BINARY_DIV,     /* integers truncate; x / 0 and the least one / -1 are x */
    WK_BINARY_POW,     /* floats only */
    WK_BINARY_MAXIMUM, /* NaN where either operand is */
    WK_BINARY_MINIMUM,
    WK_BINARY_REMAINDER,    /* a - b floor(a / b), with the sign of b; of integers by 0: 0 */
    WK_BINARY_FMOD,         /* a - b trunc(a / b), with the sign of a; of integers by 0: 0 */
    WK_BINARY_FLOOR_DIVIDE, /* integers as DIV, but rounded down */
    WK_BINARY_ATAN2,        /* from here on floats only */
    WK_BINARY_HYPOT,
    WK_BINARY_COPYSIGN,
    WK_BINARY_NEXTAFTER, /* of the dtype's numbers */
    WK_BINARY_LOGADDEXP, /* log(e^a + e^b) */
    WK_BINARY_AND,       /* from here on integers only */
    WK_BINARY_OR,
    WK_BINARY_XOR,
    WK_BINARY_SHIFT_LEFT,  /* by a negative number, or by all bits and more: 0 */
    WK_BINARY_SHIFT_RIGHT, /* the same, but -1 of a negative number; the sign stays */
    WK_BINARY_COUNT_,
} wk_binary_fn;

/* With NaN all are false but NE. */
typedef enum wk_compare_fn {
    WK_COMPARE_EQ,
    WK_COMPARE_NE,
    WK_COMPARE_LT,
    WK_COMPARE_LE,
    WK_COMPARE_GT,
    WK_COMPARE_GE,
    WK_COMPARE_COUNT_,
} wk_compare_fn;

typedef enum wk_gated_fn {
    WK_GATED_SWIGLU,
    WK_GATED_GEGLU,
    WK_GATED_GEGLU_ERF,
    WK_GATED_REGLU,
    /* g sigmoid(alpha g) (u + 1), g = min(gate, limit), u = clamp(up, -limit, limit) */
    WK_GATED_SWIGLU_CLAMPED,
    WK_GATED_COUNT_,
} wk_gated_fn;

typedef enum wk_reduce_fn {
    WK_REDUCE_ARGMAX, /* of one dimension, the first one: so is ARGMIN */
    WK_REDUCE_ARGMIN,
    WK_REDUCE_SUM,
    WK_REDUCE_MEAN, /* floats only, as VAR */
    WK_REDUCE_MAX,  /* NaN where any element is */
    WK_REDUCE_MIN,
    WK_REDUCE_VAR, /* sum of (x - mean)^2 / max(0, n - correction) */
    WK_REDUCE_PROD,
    WK_REDUCE_COUNT_,
} wk_reduce_fn;

typedef enum wk_scatter_fn {
    WK_SCATTER_SET,
    WK_SCATTER_ADD, /* numbers, as those that follow */
    WK_SCATTER_MUL,
    WK_SCATTER_MAX, /* NaN where either is NaN */
    WK_SCATTER_MIN,
    WK_SCATTER_COUNT_,
} wk_scatter_fn;

typedef enum wk_cumulate_fn {
    WK_CUMULATE_SUM,
    WK_CUMULATE_PROD,
    WK_CUMULATE_COUNT_,
} wk_cumulate_fn;

typedef enum wk_random_fn {
    WK_RANDOM_UNIFORM, /* from a up to b, which it never is */
    WK_RANDOM_NORMAL,  /* mean a, standard deviation b */
    WK_RANDOM_BITS,    /* Philox's words as they are; y is u32 */
    WK_RANDOM_COUNT_,
} wk_random_fn;

typedef enum wk_window_fn {
    WK_WINDOW_MAX, /* NaN where any element is; of no element the least number */
    WK_WINDOW_MEAN,
    WK_WINDOW_COUNT_,
} wk_window_fn;

/* Windows along the last three dimensions of x [n, c, d, h, w]: window i begins at i stride -
 * before and has `kernel` elements, dilation apart. Around x there is padding, before and after
 * elements wide; what is left of it after the last window is not read. */
enum { WK_WINDOW_DIMS = 3, WK_WINDOW_RANK = 2 + WK_WINDOW_DIMS };
typedef struct wk_window_shape {
    int64_t kernel[WK_WINDOW_DIMS], stride[WK_WINDOW_DIMS], dilation[WK_WINDOW_DIMS];
    int64_t before[WK_WINDOW_DIMS], after[WK_WINDOW_DIMS];
} wk_window_shape;

typedef enum wk_scan_fn {
    WK_SCAN_SELECTIVE,
    WK_SCAN_DELTA,
    WK_SCAN_COUNT_,
} wk_scan_fn;

/* The batch descriptor: all integers of one step in one u32 tensor of n_words words. The members
 * are offsets of its sections, in words, constant for a plan:
 *
 *   ids[rows]        token of each row
 *   positions[rows]  position of the row's token in its sequence
 *   sequences[rows]  index of the row's sequence in this batch; WK_NO_ROW: a padding row
 *   slots[rows]      cache slot of the row's key and value (block * block_size + offset in it)
 *   outputs[n_outputs] rows whose logits are wanted
 *   lengths[n_sequences] keys of each sequence, this batch's rows included
 *   states[n_sequences] slot of each sequence's recurrent state, no two the same
 *   tables[n_sequences][n_blocks] cache blocks of each sequence, in order */
typedef struct wk_batch_layout {
    uint32_t n_rows, n_outputs, n_sequences, n_blocks, block_size;
    uint32_t ids, positions, sequences, slots, outputs, lengths, states, tables;
    uint32_t n_words;
} wk_batch_layout;

#define WK_NO_ROW UINT32_MAX

/* A kernel of the user's as a backend compiled it; each backend's own. */
typedef struct wk_custom wk_custom;

/* One run of such a kernel, what an op CUSTOM has for parameters. Kept by tensor/custom.c, for as
 * long as an op names it. */
typedef struct wk_custom_run {
    wick_kernel *kernel;              /* tensor/'s */
    wk_custom *custom;                /* NULL: a function in C, that of operation */
    struct wick_operation *operation; /* tensor/'s, or NULL: a kernel alone */
    uint32_t refs;
    uint32_t workgroups[3];
    uint32_t n_words; /* of uniform */
    uint32_t uniform[WICK_KERNEL_MAX_UNIFORM_BYTES / 4];
} wk_custom_run;

/* n > 0 workgroups as x * y, a few more where they do not divide; false: one of them would pass
 * most. */
static inline bool wk_spread_workgroups(uint64_t n, uint64_t most, uint32_t *x, uint32_t *y) {
    const uint64_t rows = n / most + (n % most != 0);
    *y = (uint32_t)rows;
    *x = (uint32_t)(n / rows + (n % rows != 0));
    return rows <= most;
}

enum {
    WK_CHAIN_STEPS = 16,
    WK_CHAIN_SCALARS = 12,
    WK_CHAIN_OPERANDS = 8, /* the storage bindings of core WebGPU */
    WK_CHAIN_RESULTS = 4,  /* destinations among them */
    WK_CHAIN_INPUTS = 3,   /* of a step */
};

/* One elementwise op of a chain. Registers: the chain's sources in their order, then the results of
 * its steps in theirs.
 *
 *   y = tanh(a * b) + a     sources a, b are registers 0 and 1
 *     step 0  binary mul   in 0, 1   register 2
 *     step 1  unary tanh   in 2      register 3
 *     step 2  binary add   in 3, 0   register 4, which result[0] = 2 stores in destination 0 */
typedef struct wk_chain_step {
    uint8_t code;  /* wk_opcode: UNARY, BINARY, COMPARE, WHERE, GATED, COPY; the last: REDUCE */
    uint8_t fn;    /* of that code, where it has functions */
    uint8_t dtype; /* that its result is rounded to */
    uint8_t in[WK_CHAIN_INPUTS];
} wk_chain_step;

typedef struct wk_chain {
    uint8_t n_steps, n_scalars;
    uint8_t result[WK_CHAIN_RESULTS]; /* the step that each destination gets, in rising order */
    wk_chain_step step[WK_CHAIN_STEPS];
    double scalar[WK_CHAIN_SCALARS]; /* parameters of the steps that have some, in their order */
} wk_chain;

/* Of elements in falling order the first k are left, of these as many of the first as make up top_p
 * of their weight at temperature 1 (from 1 on: all), of these those that are min_p times as likely
 * as the first one. */
typedef struct wk_draw {
    float temperature, top_p, min_p, u;
    uint32_t k;
} wk_draw;

/* Constant parameters. What changes from step to step is an operand instead. */
typedef union wk_params {
    struct {
        wk_unary_fn fn;
        double a, b; /* truncated where x is of an integer type */
    } unary;
    wk_binary_fn binary;
    wk_compare_fn compare;
    struct {
        wk_gated_fn fn;
        double alpha, limit; /* of SWIGLU_CLAMPED */
    } gated;
    struct {
        wk_reduce_fn fn; /* over the last dimensions of x, those that y does not have */
        double correction;
    } reduce;
    struct {
        bool is_log; /* the logarithm of it */
    } softmax;
    wk_scatter_fn scatter;
    wk_cumulate_fn cumulate;
    struct {
        bool is_descending; /* from the largest down */
    } argsort;
    wk_draw draw;
    struct {
        double real;     /* for float types */
        int64_t integer; /* for the others */
    } fill;
    struct {
        double start, step;
        int64_t integer_start, integer_step;
    } arange;
    struct {
        wk_random_fn fn;
        uint64_t first; /* number of y's first element in the stream */
        double a, b;
    } random;
    struct {
        double eps;
    } norm;
    struct {
        /* angle = position / scale_factor * theta^(-2 i / rotary_dim) */
        double theta, scale_factor;
        int rotary_dim;
        bool interleaved; /* pairs (2i, 2i + 1), else (i, i + rotary_dim / 2) */
    } rope;
    struct {
        bool interleaved;
    } rope_table;
    struct {
        bool fast;         /* activations may be quantized */
    } linear;              /* linear, linear_experts */
    wk_batch_layout batch; /* of every op that has such an operand: the others begin with it */
    struct {
        double scale, softcap; /* softcap 0: none */
        int32_t window;        /* 0: none; else query i sees keys i - window + 1 ... */
        bool causal;
    } attention;
    struct {
        wk_batch_layout batch;
        float scale, softcap;
        int32_t window;        /* as above; bidirectional: to either side, up to i + window - 1 */
        bool is_bidirectional; /* all keys of the sequence are seen, else those up to the query's */
    } cached;                  /* attention_cached, kv_append */
    struct {
        wk_batch_layout batch;
        bool is_whole; /* the rows are whole texts of n_rows / n_sequences rows each, padding at
                          their ends: what the state held does not matter */
    } conv;
    struct {
        wk_batch_layout batch;
        bool is_whole; /* likewise */
        wk_scan_fn fn;
        bool is_tiled; /* head i is of group i mod g, else of i / (h / g) */
        float scale;
    } scan;
    wk_window_shape windows; /* of convolution */
    struct {
        wk_window_shape windows;
        wk_window_fn fn;
        bool counts_padding; /* a mean counts it, as far as `before` elements on either side */
    } pool;
    wk_custom_run *custom;
    wk_chain chain;
} wk_params;

/* Bytes of the parameters of every op but a chain, for which they are far more. */
enum { WK_PLAIN_PARAMS = sizeof((wk_params *)0)->pool };
_Static_assert(sizeof((wk_params *)0)->scan <= WK_PLAIN_PARAMS &&
                   sizeof((wk_params *)0)->cached <= WK_PLAIN_PARAMS,
               "pool's are the largest ones");

/* Where element k of window i lies in x, along dimension d of the last three. */
static inline int64_t wk_window_at(const wk_window_shape *w, int d, int64_t i, int64_t k) {
    return i * w->stride[d] - w->before[d] + k * w->dilation[d];
}

/* The keys that a row of attention_cached at position sees, of `length` ones of its sequence. */
typedef struct wk_key_range {
    int64_t first, end;
} wk_key_range;
static inline wk_key_range wk_cached_keys(const wk_params *p, int64_t position, int64_t length) {
    const int64_t window = p->cached.window;
    const bool is_cut = p->cached.is_bidirectional && window > 0 && window < length - position;
    const int64_t last = p->cached.is_bidirectional && !is_cut ? length : position + 1;
    return (wk_key_range){.first = window > 0 && position >= window ? position - window + 1 : 0,
                          .end = is_cut ? position + window : last};
}

typedef enum wk_access { WK_READ = 1, WK_WRITE = 2, WK_READ_WRITE = 3 } wk_access;

typedef enum wk_opcode {
#define WK_OP(code, ...) WK_OP_##code,
#include "backend/op.def"
#undef WK_OP
    WK_OP_COUNT_,
    /* A kernel of the user's: not of op.def, for only the GPU knows what it computes. The tensors
     * that it writes are the destinations, the others the sources, both in the kernel's order. */
    WK_OP_CUSTOM = WK_OP_COUNT_,
    /* Ops of a plan in a row that some kernel computes together: tensor/join.c finds them. */
    WK_OPS_GATED,         /* LINEAR; GATED of the halves of its columns */
    WK_OPS_ADD_NORM,      /* BINARY, a sum; RMS_NORM of it */
    WK_OPS_NORM_ADD_NORM, /* RMS_NORM; a sum with that; RMS_NORM of the sum */
    WK_OPS_MIX_ADD_NORM,  /* MATMUL, a weighted sum for each row; then as WK_OPS_ADD_NORM */
    /* Those of a router, up to WK_OPS_ROUTE_SHARES: the norm is the second op. */
    WK_OPS_ROUTE,         /* as WK_OPS_ADD_NORM; LINEAR of the norm; then as WK_OPS_TOP_K_SOFTMAX */
    WK_OPS_ROUTE_ALL,     /* as WK_OPS_ADD_NORM; LINEAR of the norm; SOFTMAX; TOP_K of that */
    WK_OPS_ROUTE_SHARES,  /* as WK_OPS_ROUTE_ALL; REDUCE, the sum of the values; their quotient */
    WK_OPS_HEADS,         /* ROPE_TABLE of queries, of keys; KV_APPEND of these keys */
    WK_OPS_NORMED_HEADS,  /* RMS_NORM of queries, of keys; then the same of the results */
    WK_OPS_CONV_SILU,     /* CAUSAL_CONV; UNARY, a SiLU, of it */
    WK_OPS_SCAN_GATED,    /* SCAN; its x times something; the sum of both; GATED, which it gates */
    WK_OPS_TOP_K_SOFTMAX, /* TOP_K; SOFTMAX of its values */
    /* LINEAR_EXPERTS twice, of the same rows and ids, by matrices of one buffer; GATED of both. */
    WK_OPS_EXPERTS_GATED,
} wk_opcode;

/* How many ops a kernel of that code computes: of WK_OPS_* they follow each other in an array. */
static inline size_t wk_opcode_ops(wk_opcode code) {
    switch ((int)code) {
    case WK_OPS_GATED:
    case WK_OPS_ADD_NORM:
    case WK_OPS_CONV_SILU:
    case WK_OPS_TOP_K_SOFTMAX: return 2;
    case WK_OPS_NORM_ADD_NORM:
    case WK_OPS_MIX_ADD_NORM:
    case WK_OPS_HEADS:
    case WK_OPS_EXPERTS_GATED: return 3;
    case WK_OPS_SCAN_GATED: return 4;
    case WK_OPS_ROUTE:
    case WK_OPS_ROUTE_ALL:
    case WK_OPS_NORMED_HEADS: return 5;
    case WK_OPS_ROUTE_SHARES: return 7;
    default: return 1;
    }
}

/* Views: destinations first, then sources, in the order of op.def. Those after them mean nothing,
 * and are not copied. */
typedef struct wk_op {
    wk_opcode code;
    uint8_t n_dst, n_src;
    uint8_t fault_slot; /* that it sets where an index is out of range */
    wk_params p;
    wk_view view[WK_MAX_OPERANDS];
    const char *name; /* of the public operation that it is, or is a part of; NULL: of none */
} wk_op;

static inline void wk_op_copy(wk_op *to, const wk_op *from) {
    to->code = from->code;
    to->name = from->name;
    to->n_dst = from->n_dst;
    to->n_src = from->n_src;
    to->fault_slot = from->fault_slot;
    if (from->code == WK_OP_CHAIN)
        to->p.chain = from->p.chain;
    else
        memcpy(&to->p, &from->p, WK_PLAIN_PARAMS);
    for (int i = 0; i < from->n_dst + from->n_src; i++) to->view[i] = from->view[i];
}

/* Host address of an operand, where its buffer has one. */
static inline void *wk_view_data(const wk_view *view) {
    return (unsigned char *)view->buf->data + view->offset;
}
static inline const wk_view *wk_dst(const wk_op *op, int i) { return &op->view[i]; }
static inline const wk_view *wk_src(const wk_op *op, int i) { return &op->view[op->n_dst + i]; }

/* A product with weights. */
static inline bool wk_op_is_linear(const wk_op *op) {
    return op->code == WK_OP_LINEAR || op->code == WK_OP_LINEAR_EXPERTS;
}
/* Whether a kernel that is_fast may compute it. */
static inline bool wk_op_allows_fast(const wk_op *op) {
    return wk_op_is_linear(op) && op->p.linear.fast;
}

/* What op.def says about an opcode. */
typedef struct wk_operand_info {
    const char *name;
    uint8_t access; /* wk_access; 0 ends the list */
    bool is_optional, is_weight, is_index, is_batch;
} wk_operand_info;

/* Emits one op of a decomposition; temporaries come from temp(). */
typedef struct wk_decomposition {
    void *user;
    wick_status (*emit)(void *user, const wk_op *op);
    /* A dense buffer for extent[0..rank); lives as long as the ops that use it. */
    wick_status (*temp)(void *user, wick_dtype dtype, int rank, const int64_t *extent,
                        wk_view *out);
} wk_decomposition;

typedef struct wk_op_info {
    const char *name;
    uint8_t n_dst, n_src;
    bool is_in_place_allowed; /* a destination may be the very view of a source, not an optional */
    wk_operand_info operands[WK_MAX_OPERANDS + 1];
    /* NULL: basic op. */
    wick_status (*decompose)(const wk_op *op, const wk_decomposition *to);
} wk_op_info;

const wk_op_info *wk_op_get_info(wk_opcode code);
/* What failures call it. */
static inline const char *wk_op_name(const wk_op *op) {
    return op->name ? op->name : wk_op_get_info(op->code)->name;
}
/* Of operand i; kernels of the user's and chains have as many of each kind as they like. */
const wk_operand_info *wk_op_operand(const wk_op *op, int i);
/* It reads indices, which may be out of range. */
bool wk_op_may_fault(wk_opcode code);
/* The operand that ids look into: of an op that has such ids, its weight. */
int wk_op_table(wk_opcode code);

/* Everything that must hold before a kernel may see the op: operands present, well formed, in the
 * bounds of their buffers, no destination overlapping itself or another operand (except in place,
 * where allowed), and op.def's rule. op may hold any bits, except that its code must be an opcode
 * and its bools valid. */
wick_status wk_op_check(const wk_op *op, wick_error *err);
/* That rule alone, of shapes and dtypes. */
wick_status wk_op_check_rule(const wk_op *op, wick_error *err);

/* --- Chains (chain.c) --- */

/* Ops of this code can be steps. */
bool wk_chain_takes(wk_opcode code);
/* The last step is a reduction: its result, the only destination, has the first dimensions of the
 * sources. */
bool wk_chain_is_reduced(const wk_op *op);
/* Appends an op to a chain that has room: its inputs are these registers. False: it has none left,
 * or the op is not elementwise. */
bool wk_chain_append(wk_chain *chain, const wk_op *op, const uint8_t *in);
/* The op that a step stands for. views[r]: register r; those that later steps make are not read.
 * out: zeros, or the op of another step before. */
void wk_chain_op(const wk_op *op, int step, const wk_view *views, wk_op *out);
/* Which sources the step depends on, a bit each. */
uint32_t wk_chain_sources(const wk_op *op, int step);
/* The destination that gets the step's result, -1: none does. */
int wk_chain_destination(const wk_op *op, int step);
/* How many scalars the step has, and the number of its first one. */
int wk_chain_scalars(const wk_chain *chain, int step, int *first);
/* Its line in op.def. */
wick_status wk_chain_check(const wk_op *op, wick_error *err);

/* Functions that are defined on these types. */
bool wk_unary_takes(wk_unary_fn fn, wick_dtype dtype);
bool wk_binary_takes(wk_binary_fn fn, wick_dtype dtype);
/* Whether the function is the same with its parameters as float32: 1e-300 would become the power of
 * 0, which is whole. */
bool wk_unary_is_of_f32(const wk_op *op);
/* On integer types as well. */
bool wk_reduce_takes_integers(wk_reduce_fn fn);

/* How a random op makes an element of a number u (uniform in [0, 1) or normal): shift + scale u,
 * but a uniform one not below least nor above most, the ends of its range in dtype. */
typedef struct wk_random_scaling {
    double shift, scale, least, most;
} wk_random_scaling;
/* False: dtype, a float, has no such numbers. */
bool wk_random_scale(wick_dtype dtype, const wk_params *params, wk_random_scaling *out);

/* A dense view of shape, without a buffer, and the bytes it needs. False where no tensor of dtype
 * can have this shape. */
bool wk_view_dense(wick_dtype dtype, const wick_shape *shape, wk_view *out, uint64_t *bytes);
/* Bytes [*begin, *end) of the buffer that the view touches; empty views touch none. */
void wk_view_range(const wk_view *view, uint64_t *begin, uint64_t *end);
/* Both name bytes of one stretch of a buffer. */
bool wk_view_ranges_meet(const wk_view *a, const wk_view *b); /* of one buffer */
static inline bool wk_view_overlaps(const wk_view *a, const wk_view *b) {
    return a->buf && a->buf == b->buf && wk_view_ranges_meet(a, b);
}
/* The same rank and extents. */
bool wk_view_same_shape(const wk_view *a, const wk_view *b);
/* The same elements of the same buffer in the same order. */
bool wk_view_same(const wk_view *a, const wk_view *b);
static inline int64_t wk_view_count(const wk_view *view) {
    assert(view->rank >= 0 && view->rank <= WICK_MAX_RANK);
    int64_t count = 1;
    for (int i = 0; i < view->rank; i++) count *= view->extent[i];
    return count;
}
/* Of rank 1 or more: the product of all extents but the last. */
int64_t wk_view_rows(const wk_view *view);
bool wk_view_is_dense(const wk_view *view);
/* Bytes of a row of a tensor of shape: its last dimension; far too long: 0. */
uint64_t wk_shape_row_bytes(wick_dtype dtype, const wick_shape *shape);

/* Of views from anywhere: extents, strides and layout mean something, and no arithmetic on them
 * overflows; the others take this for granted. */
bool wk_view_is_well_formed(const wk_view *view, bool may_have_layout);
/* Blocks are whole and dense, scalars lie where their C type may. */
bool wk_view_is_aligned(const wk_view *view);
/* Each element is one of its own. */
bool wk_view_is_writable(const wk_view *view);
/* All of this, and that it lies in its buffer, at a glance: true of nearly every view for which it
 * holds. is_written: it must be writable, too. */
bool wk_view_is_plain(const wk_view *view, bool is_written);

/* Largest difference from cpu/ref that an element of a right kernel's result may show; all zeros:
 * equal. largest is the largest finite magnitude in the destination. */
typedef struct wk_tolerance {
    double relative; /* of the element's own magnitude */
    double of_largest;
    double absolute;
} wk_tolerance;

wk_tolerance wk_op_tolerance(const wk_op *op, bool is_fast);
/* NaN agrees with NaN, an infinity with the same one. */
bool wk_tolerance_accepts(const wk_tolerance *tolerance, double largest, double want, double got);

/* The layout of the batch descriptor, which is the operand of that number; NULL: the op reads none.
 */
const wk_batch_layout *wk_op_batch(const wk_op *op, int *operand);

/* What an op moves at least, each operand once, and the multiplications and additions of its
 * products; 0: it has none. */
typedef struct wk_cost {
    double bytes_read, bytes_written, flops;
} wk_cost;
/* batch: the contents of the op's batch descriptor, by which the keys in use count; NULL: all that
 * there is room for. */
wk_cost wk_op_cost(const wk_op *op, const uint32_t *batch);
/* Its rows: what kernels are tuned by. */
int64_t wk_op_rows(const wk_op *op);

/* A way to cut an op into several whose elements do not depend on each other: the dimension of each
 * operand that it goes along, or WK_UNCUT, where every piece needs the operand whole. */
typedef struct wk_cut {
    int8_t dim[WK_MAX_OPERANDS];
    bool is_of_table; /* a piece has a part of the table that ids look into */
    bool has_rows;    /* along the rows of the batch descriptor, of which a piece sees its own */
} wk_cut;
enum { WK_UNCUT = -1, WK_MAX_CUTS = WICK_MAX_RANK };
typedef struct wk_cuts {
    int n;
    wk_cut of[WK_MAX_CUTS];
} wk_cuts;
/* All ways to cut an op; none: it is whole or not at all. */
void wk_op_cuts(const wk_op *op, wk_cuts *list);

/* The decompositions of op.def. */
wick_status wk_decompose_gated(const wk_op *op, const wk_decomposition *to);
wick_status wk_decompose_chain(const wk_op *op, const wk_decomposition *to);
wick_status wk_decompose_attention(const wk_op *op, const wk_decomposition *to);

/* "linear y f32[4, 64] x f32[4, 32] weight q4_1[64, 32]" for messages; returns buf. */
char *wk_op_text(const wk_op *op, char *buf, size_t size);

#endif
