/* wick/ops.h: operations on tensors.
 *
 * Each one checks its operands, queues the operation and returns its result, a new tensor (or a
 * view where it says so) that belongs to the innermost scope or else to the caller. On failure it
 * returns NULL and the device holds the sentence; a NULL operand gives NULL. dims count from 0, or
 * from the end when negative. Operands of one operation have one dtype unless it says otherwise;
 * binary operations broadcast by NumPy's rule. */
#ifndef WICK_OPS_H
#define WICK_OPS_H

#include <wick/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- Creation --- */

WICK_API wick_tensor *wick_zeros(wick_device *device, wick_dtype dtype, wick_shape shape);
/* value is rounded to dtype. */
WICK_API wick_tensor *wick_full(wick_device *device, wick_dtype dtype, wick_shape shape,
                                double value);
/* start, start + step, ... while below end (above, for a negative step). WICK_ERR_VALUE: step is 0
 * or points away from end, or a value does not fit an integer dtype. */
WICK_API wick_tensor *wick_arange(wick_device *device, wick_dtype dtype, double start, double end,
                                  double step);

/* --- Elementwise --- */

WICK_API wick_tensor *wick_add(wick_tensor *a, wick_tensor *b);
WICK_API wick_tensor *wick_mul(wick_tensor *a, wick_tensor *b);
/* x * sigmoid(x). */
WICK_API wick_tensor *wick_silu(wick_tensor *x);
/* silu(gate) * up, one shape (Shazeer, 2020). */
WICK_API wick_tensor *wick_swiglu(wick_tensor *gate, wick_tensor *up);
/* Between all dtypes: floats round to nearest even; float to integer truncates and saturates, NaN
 * gives 0; integer to a narrower integer keeps the low bits. The source may be of a block type. */
WICK_API wick_tensor *wick_cast(wick_tensor *x, wick_dtype dtype);

/* --- In place (they return their first operand, not a new reference) --- */

/* Every element becomes value. */
WICK_API wick_tensor *wick_fill(wick_tensor *x, double value);
/* dst becomes src, broadcast to its shape and cast to its dtype. */
WICK_API wick_tensor *wick_copy(wick_tensor *dst, wick_tensor *src);
/* cache [b, h, s, d] receives fresh [b, h, t, d] at position along dim 2; position + t <= s. */
WICK_API wick_tensor *wick_kv_append(wick_tensor *cache, wick_tensor *fresh, int64_t position);

/* --- Views: no data moves (reshape and flatten copy where strides force it) --- */

WICK_API wick_tensor *wick_transpose(wick_tensor *x, int dim0, int dim1);
/* dims: each dimension of x once. */
WICK_API wick_tensor *wick_permute(wick_tensor *x, int rank, const int *dims);
/* One extent may be -1: what is left. */
WICK_API wick_tensor *wick_reshape(wick_tensor *x, wick_shape shape);
/* Dims start to end (inclusive) become one. */
WICK_API wick_tensor *wick_flatten(wick_tensor *x, int start, int end);
/* Removes dim where its extent is 1, else changes nothing. */
WICK_API wick_tensor *wick_squeeze(wick_tensor *x, int dim);
/* A new dim of extent 1 at position dim of the result. */
WICK_API wick_tensor *wick_unsqueeze(wick_tensor *x, int dim);
WICK_API wick_tensor *wick_narrow(wick_tensor *x, int dim, int64_t start, int64_t length);
/* Elements start, start + step, ... below stop of dim; step > 0. */
WICK_API wick_tensor *wick_slice(wick_tensor *x, int dim, int64_t start, int64_t stop,
                                 int64_t step);
/* Dims of extent 1, and new leading ones, are repeated without a copy. */
WICK_API wick_tensor *wick_expand(wick_tensor *x, wick_shape shape);
/* A view of x when it is dense, else a dense copy. */
WICK_API wick_tensor *wick_contiguous(wick_tensor *x);
/* count >= 1 tensors that agree in all dims but dim. */
WICK_API wick_tensor *wick_cat(wick_tensor *const *x, size_t count, int dim);

/* --- Reductions and normalisation --- */

/* u32 index of the first largest element along dim. An empty dim is WICK_ERR_SHAPE. */
WICK_API wick_tensor *wick_argmax(wick_tensor *x, int dim, bool keepdim);
WICK_API wick_tensor *wick_softmax(wick_tensor *x, int dim);
/* x / sqrt(mean(x^2) + eps) * weight (last dim); weight [n] or NULL (Zhang, Sennrich, 2019). */
WICK_API wick_tensor *wick_rms_norm(wick_tensor *x, wick_tensor *weight, float eps);

/* --- Products --- */

/* [.., m, k] x [.., k, n], leading dims broadcast; both rank >= 2 floats. */
WICK_API wick_tensor *wick_matmul(wick_tensor *a, wick_tensor *b);
/* x [.., k] weight^T + bias: weight [n, k] of any dtype, block types included, bias [n] or NULL. */
WICK_API wick_tensor *wick_linear(wick_tensor *x, wick_tensor *weight, wick_tensor *bias);
/* Rows of weight [n, k]: [ids.., k]. ids u32, i64 or u8. An index out of range is reported by the
 * next read or poll (WICK_ERR_INDEX). */
WICK_API wick_tensor *wick_embedding(wick_tensor *weight, wick_tensor *ids);

/* --- Transformers --- */

typedef enum wick_rope_layout {
    WICK_ROPE_BHTD, /* [batch, heads, time, dim] */
    WICK_ROPE_BTHD, /* [batch, time, heads, dim] */
} wick_rope_layout;

/* Rotary embedding (Su et al., 2021) of the first rotary_dim dimensions; the others pass. Pair k at
 * position p turns by p / scale_factor * theta^(-2k / rotary_dim). Zero: default. */
typedef struct wick_rope_desc {
    int rotary_dim;      /* 0: all of the last dim; even */
    double theta;        /* 0: 10000 */
    double scale_factor; /* 0: 1 */
    int64_t offset;      /* position of the first row, where positions is NULL */
    bool interleaved;    /* pairs (2k, 2k + 1), else (k, k + rotary_dim / 2) */
    wick_rope_layout layout;
} wick_rope_desc;

/* x rank 4; positions [time] or [batch, time] (u32, i64) or NULL. */
WICK_API wick_tensor *wick_rope(wick_tensor *x, wick_tensor *positions, const wick_rope_desc *desc);
/* The same with given tables: cos and sin [time, r / 2] or [batch, time, r / 2] of a float type
 * (f32 is used as it is). x rank 3 (without batch) or 4. */
WICK_API wick_tensor *wick_rope_table(wick_tensor *x, wick_tensor *cos, wick_tensor *sin,
                                      bool interleaved, wick_rope_layout layout);

/* Scaled dot-product attention (Vaswani et al., 2017). Row i of t queries over s keys stands at
 * position i + s - t. */
typedef struct wick_attention_desc {
    float scale;    /* 0: 1 / sqrt(d); FLT_MIN weighs all keys alike */
    float softcap;  /* c > 0: scores become c tanh(score / c) */
    int32_t window; /* w > 0: keys w or more positions before the query are not seen */
    bool causal;
    wick_tensor *mask;   /* u8 or bool, broadcast to [b, h, t, s]; 0: not seen */
    wick_tensor *bias;   /* added to the scores, broadcast to [b, h, t, s] */
    wick_tensor *sinks;  /* [h]: one more logit per head, without a value */
    wick_tensor *slopes; /* [h]: ALiBi, slope * (key position - query position) is added */
} wick_attention_desc;

/* q [b, h, t, d], k [b, g, s, d], v [b, g, s, e]: [b, h, t, e]; g divides h. desc may be NULL. */
WICK_API wick_tensor *wick_attention(wick_tensor *q, wick_tensor *k, wick_tensor *v,
                                     const wick_attention_desc *desc);

#ifdef __cplusplus
}
#endif

#endif
