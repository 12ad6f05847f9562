/* wick/nn.h: operations of neural networks, made of those of ops.h, whose rules hold here, too.
 *
 * Operands are floats of one dtype unless it says otherwise. Sums of 16-bit floats are computed in
 * f32 and rounded once. In descs zero means the default; a desc that is NULL is all defaults. Shape
 * letters: n batch, c channels, d h w depth, height and width. */
#ifndef WICK_NN_H
#define WICK_NN_H

#include <wick/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- Convolution --- */

/* Element i of each array: of the i-th spatial dim, 0 to 2. WICK_ERR_VALUE: a negative number, or
 * an output_padding that is neither less than the stride nor less than the dilation. */
typedef struct wick_conv_desc {
    int64_t stride[3];         /* 0: 1 */
    int64_t padding[3];        /* zeros on both sides */
    int64_t dilation[3];       /* distance of kernel elements; 0: 1 */
    int64_t output_padding[3]; /* of conv_transpose: elements more at the end */
    int64_t groups;            /* parts of the channels that do not meet; 0: 1 */
} wick_conv_desc;

/* Cross-correlation: x [n, c, w], weight [m, c / groups, kw], bias [m] or NULL: [n, m, ow] with
 * ow = (w + 2 padding - dilation (kw - 1) - 1) / stride + 1. WICK_ERR_SHAPE: the kernel is larger
 * than the padded x, or the channels do not fit. */
WICK_API wick_tensor *wick_conv1d(wick_tensor *x, wick_tensor *weight, wick_tensor *bias,
                                  const wick_conv_desc *desc);
/* x [n, c, h, w], weight [m, c / groups, kh, kw]. */
WICK_API wick_tensor *wick_conv2d(wick_tensor *x, wick_tensor *weight, wick_tensor *bias,
                                  const wick_conv_desc *desc);
/* x [n, c, d, h, w], weight [m, c / groups, kd, kh, kw]. */
WICK_API wick_tensor *wick_conv3d(wick_tensor *x, wick_tensor *weight, wick_tensor *bias,
                                  const wick_conv_desc *desc);
/* The gradient of conv1d with respect to its x: x [n, c, w], weight [c, m / groups, kw], bias [m]
 * or NULL: [n, m, ow], ow = (w - 1) stride - 2 padding + dilation (kw - 1) + output_padding + 1. */
WICK_API wick_tensor *wick_conv_transpose1d(wick_tensor *x, wick_tensor *weight, wick_tensor *bias,
                                            const wick_conv_desc *desc);
WICK_API wick_tensor *wick_conv_transpose2d(wick_tensor *x, wick_tensor *weight, wick_tensor *bias,
                                            const wick_conv_desc *desc);
WICK_API wick_tensor *wick_conv_transpose3d(wick_tensor *x, wick_tensor *weight, wick_tensor *bias,
                                            const wick_conv_desc *desc);

/* --- Pooling: over the last 1, 2 or 3 dims of x, which has at least one more --- */

/* WICK_ERR_VALUE: a negative number, a kernel of 0, padding of more than half of it. */
typedef struct wick_pooling_desc {
    int64_t kernel[3];
    int64_t stride[3];     /* 0: the kernel */
    int64_t padding[3];    /* on both sides */
    int64_t dilation[3];   /* 0: 1; of max_pool only */
    bool ceil_mode;        /* a last window may reach over the end, if it begins before */
    bool excludes_padding; /* avg_pool divides by the elements that are not padding */
} wick_pooling_desc;

/* The largest element of each window; numbers, NaN where any is. *indices (NULL: not wanted): u32,
 * where it is, counted row by row over the pooled dims, of equal ones the first; owned as the
 * result. */
WICK_API wick_tensor *wick_max_pool1d(wick_tensor *x, const wick_pooling_desc *desc,
                                      wick_tensor **indices);
WICK_API wick_tensor *wick_max_pool2d(wick_tensor *x, const wick_pooling_desc *desc,
                                      wick_tensor **indices);
WICK_API wick_tensor *wick_max_pool3d(wick_tensor *x, const wick_pooling_desc *desc,
                                      wick_tensor **indices);
WICK_API wick_tensor *wick_avg_pool1d(wick_tensor *x, const wick_pooling_desc *desc);
WICK_API wick_tensor *wick_avg_pool2d(wick_tensor *x, const wick_pooling_desc *desc);
WICK_API wick_tensor *wick_avg_pool3d(wick_tensor *x, const wick_pooling_desc *desc);
/* The last n (1 to 3) dims become size [n]: output i is the mean (largest) of the elements from
 * floor(i in / out) to ceil((i + 1) in / out) - 1. Size 1: all of them. */
WICK_API wick_tensor *wick_adaptive_avg_pool(wick_tensor *x, int n, const int64_t *size);
WICK_API wick_tensor *wick_adaptive_max_pool(wick_tensor *x, int n, const int64_t *size);

/* --- Resizing --- */

typedef enum wick_resize_mode {
    WICK_RESIZE_NEAREST, /* element floor(i in / out); any dtype */
    WICK_RESIZE_LINEAR,  /* of 2 neighbours: bilinear in two dims, trilinear in three */
    WICK_RESIZE_CUBIC,   /* of 4 neighbours (Keys, 1981; a = -0.75) */
} wick_resize_mode;

/* The last n (1 to 3) dims of x, which has at least one more, become size [n]. Output i comes from
 * place (i + 0.5) in / out - 0.5 or, with align_corners, i (in - 1) / (out - 1), so that the first
 * and last elements stay where they are. WICK_ERR_VALUE: a size below 1. */
WICK_API wick_tensor *wick_resize(wick_tensor *x, int n, const int64_t *size, wick_resize_mode mode,
                                  bool align_corners);

/* The same from places (i + 0.5) in / out - 0.5 where an output that is smaller takes in all
 * elements on its way: the triangle or the cubic function (Keys, 1981), which is that of `a`, is
 * made in / out times as wide, so that nothing is aliased; floats. repeats_ends: an element that is
 * not there is the one at the end, else the weights of those that are there are divided by their
 * sum. PyTorch: a = -0.5, ends not repeated; ONNX: a = -0.75, repeated unless exclude_outside. */
WICK_API wick_tensor *wick_resize_antialiased(wick_tensor *x, int n, const int64_t *size,
                                              wick_resize_mode mode, double a, bool repeats_ends);

/* --- Sampling --- */

/* x [n, c, h, w] or [n, c, d, h, w], grid [n, .., 2] or [n, .., 3] of the same rank: [n, c, ..],
 * elements at places (x, y) or (x, y, z) of the grid, -1 to 1: these are the ends of x or, with
 * align_corners, the middles of its first and last elements. NEAREST rounds half to even; CUBIC:
 * a = -0.75. padding, of what lies outside: CONSTANT: zeros, REPLICATE, REFLECT (at the ends or at
 * these middles). Jaderberg et al., 2015. WICK_ERR_VALUE: another padding; WICK_ERR_SHAPE: the grid
 * does not fit, or x has no elements. */
WICK_API wick_tensor *wick_grid_sample(wick_tensor *x, wick_tensor *grid, wick_resize_mode mode,
                                       wick_pad_mode padding, bool align_corners);

typedef struct wick_roi_align_desc {
    int64_t size[2];        /* of the result */
    int64_t sampling_ratio; /* places in each direction of an element of the result; 0: as many as
                               a box has elements there: this reads boxes and blocks; native only */
    double scale;           /* boxes are multiplied by it; 0: 1 */
    bool is_largest;        /* the largest of what the sum adds up, as ONNX has it; else the mean */
    bool is_unaligned;      /* a box begins half an element later, and is 1 x 1 at least */
} wick_roi_align_desc;

/* Parts of x [n, c, h, w], of samples batch [r] (integers), boxes [r, 4] (x0, y0, x1, y1):
 * [r, c, size], means of places between the elements, bilinear (He et al., 2017). Places more than
 * 1 outside are 0. WICK_ERR_VALUE: a size or ratio is negative. */
WICK_API wick_tensor *wick_roi_align(wick_tensor *x, wick_tensor *boxes, wick_tensor *batch,
                                     const wick_roi_align_desc *desc);

typedef struct wick_suppression_desc {
    int64_t most;         /* boxes of one class of a sample; 0: any number */
    double most_overlap;  /* of two boxes of a class: their common area by that of both together */
    bool has_least_score; /* boxes of a class count only where their score is above */
    double least_score;
    bool is_centred; /* boxes are x, y, width, height, else two opposite corners */
} wick_suppression_desc;

/* boxes [n, k, 4], scores [n, c, k]: u32 [m, 3], sample, class and box of those that no box with
 * a higher score overlaps too much: sample by sample, class by class, the best first, of equal
 * ones that of the lower number; scores that are NaN do not count. Reads both, on the CPU, and
 * blocks; native only. */
WICK_API wick_tensor *wick_non_max_suppression(wick_tensor *boxes, wick_tensor *scores,
                                               const wick_suppression_desc *desc);

/* --- Normalisation --- */

/* x [n, c, ..]: each of `groups` parts of the channels of one sample is normalised over all its
 * elements, then * weight + bias, [c] or NULL (Wu, He, 2018). WICK_ERR_SHAPE: groups does not
 * divide c. */
WICK_API wick_tensor *wick_group_norm(wick_tensor *x, int64_t groups, wick_tensor *weight,
                                      wick_tensor *bias, double eps);
/* group_norm where each channel is a group of its own (Ulyanov et al., 2016). */
WICK_API wick_tensor *wick_instance_norm(wick_tensor *x, wick_tensor *weight, wick_tensor *bias,
                                         double eps);
/* (x - mean) / sqrt(variance + eps) * weight + bias of each channel of x [n, c, ..]; all four [c],
 * weight and bias or NULL (Ioffe, Szegedy, 2015). */
WICK_API wick_tensor *wick_batch_norm(wick_tensor *x, wick_tensor *mean, wick_tensor *variance,
                                      wick_tensor *weight, wick_tensor *bias, double eps);
/* The same with mean and (biased) variance of this batch. running_mean and running_variance (both
 * may be NULL) are updated in place: (1 - momentum) running + momentum new, the variance unbiased.
 * WICK_ERR_VALUE: there is one element per channel only. */
WICK_API wick_tensor *wick_batch_norm_train(wick_tensor *x, wick_tensor *running_mean,
                                            wick_tensor *running_variance, wick_tensor *weight,
                                            wick_tensor *bias, double momentum, double eps);
/* x / (k + alpha / size * the sum of squares of `size` channels around)^beta, x [n, c, ..]; of an
 * even size one channel more lies after than before (Krizhevsky et al., 2012): as in ONNX, where
 * PyTorch has one more before. */
WICK_API wick_tensor *wick_local_response_norm(wick_tensor *x, int64_t size, double alpha,
                                               double beta, double k);
/* x / max(sqrt(sum of x^2 along dim), eps). */
WICK_API wick_tensor *wick_normalize(wick_tensor *x, int dim, double eps);

/* --- Recurrent networks, one layer, in one direction --- */

/* g gates: lstm 4 (i f g o; Hochreiter, Schmidhuber, 1997), gru 3 (r z n; Cho et al., 2014), rnn 1.
 */
typedef struct wick_rnn_weights {
    wick_tensor *w_ih; /* [g h, i] */
    wick_tensor *w_hh; /* [g h, h] */
    wick_tensor *b_ih; /* [g h] or NULL, as b_hh */
    wick_tensor *b_hh;
    wick_tensor *peepholes; /* of lstm, [3 h] or NULL: what gates i and f see of the last c, and o
                               of the new one, element by element (Gers, Schmidhuber, 2000) */
    bool resets_before;     /* of gru: r multiplies h and not U h + c */
} wick_rnn_weights;

/* x [b, t, i], h0 and c0 [b, h] or NULL (zeros): all h [b, t, h]; *last_h and *last_c [b, h] (NULL:
 * not wanted), owned as the result and NULL on failure. */
WICK_API wick_tensor *wick_lstm(wick_tensor *x, const wick_rnn_weights *weights, wick_tensor *h0,
                                wick_tensor *c0, wick_tensor **last_h, wick_tensor **last_c);
/* n = tanh(W x + b + r (U h + c)) or, with resets_before, tanh(W x + b + U (r h) + c);
 * h' = (1 - z) n + z h. */
WICK_API wick_tensor *wick_gru(wick_tensor *x, const wick_rnn_weights *weights, wick_tensor *h0,
                               wick_tensor **last_h);
/* h' = tanh(W x + b + U h + c). */
WICK_API wick_tensor *wick_rnn(wick_tensor *x, const wick_rnn_weights *weights, wick_tensor *h0,
                               wick_tensor **last_h);

/* --- Dropout --- */

/* While training each element becomes 0 with probability p, else x / (1 - p) (Srivastava et al.,
 * 2014); element i by number i of the next stream of the device's seed (wick_rand). Otherwise, and
 * with p = 0, a view of x. WICK_ERR_VALUE unless 0 <= p <= 1. */
WICK_API wick_tensor *wick_dropout(wick_tensor *x, double p, bool train);

/* --- Losses --- */

typedef enum wick_reduction {
    WICK_REDUCTION_MEAN, /* a scalar, as the sum */
    WICK_REDUCTION_SUM,
    WICK_REDUCTION_NONE, /* the loss of each element */
} wick_reduction;

typedef struct wick_cross_entropy_desc {
    wick_tensor *weight;    /* [c], of each class; or NULL */
    double label_smoothing; /* that share of the target is spread evenly over all classes; [0, 1] */
    bool ignores;           /* targets that are ignored_index count as nothing */
    int64_t ignored_index;
    wick_reduction reduction; /* the mean is divided by the sum of the targets' weights */
} wick_cross_entropy_desc;

/* logits [n, c, ..] or [c]. target: the index of each class, [n, ..] or a scalar, integers
 * (one out of range is reported by the next read or poll, WICK_ERR_INDEX); or probabilities, shaped
 * as logits, whose mean is divided by the number of rows, and where nothing is ignored. */
WICK_API wick_tensor *wick_cross_entropy(wick_tensor *logits, wick_tensor *target,
                                         const wick_cross_entropy_desc *desc);
/* The same of logarithms of probabilities, with indices, without smoothing. */
WICK_API wick_tensor *wick_nll(wick_tensor *log_probs, wick_tensor *target,
                               const wick_cross_entropy_desc *desc);

/* Below, x and target have one shape. (x - target)^2 and |x - target|. */
WICK_API wick_tensor *wick_mse(wick_tensor *x, wick_tensor *target, wick_reduction reduction);
WICK_API wick_tensor *wick_l1(wick_tensor *x, wick_tensor *target, wick_reduction reduction);
/* d^2 / 2 where d = |x - target| < delta, else delta (d - delta / 2); smooth_l1 is that divided by
 * delta, which may be 0 (Girshick, 2015). */
WICK_API wick_tensor *wick_huber(wick_tensor *x, wick_tensor *target, double delta,
                                 wick_reduction reduction);
WICK_API wick_tensor *wick_smooth_l1(wick_tensor *x, wick_tensor *target, double delta,
                                     wick_reduction reduction);
/* -(target log(x) + (1 - target) log(1 - x)), logarithms of at least -100. */
WICK_API wick_tensor *wick_bce(wick_tensor *x, wick_tensor *target, wick_reduction reduction);
/* The same of x = sigmoid(logits), without its overflow; pos_weight (NULL: 1), broadcast to the
 * shape, multiplies the first term. */
WICK_API wick_tensor *wick_bce_with_logits(wick_tensor *logits, wick_tensor *target,
                                           wick_tensor *pos_weight, wick_reduction reduction);
/* target (log(target) - x), x being logarithms; is_log: target is one, too. */
WICK_API wick_tensor *wick_kl_div(wick_tensor *x, wick_tensor *target, bool is_log,
                                  wick_reduction reduction);
/* a . b / (max(|a|, eps) max(|b|, eps)) along dim; a and b broadcast. */
WICK_API wick_tensor *wick_cosine_similarity(wick_tensor *a, wick_tensor *b, int dim, double eps);

/* --- Mixtures of experts (Shazeer et al., 2017) --- */

typedef struct wick_moe_route_desc {
    int64_t top_k;      /* experts of each row */
    bool is_sigmoid;    /* the score, else softmax over all experts */
    bool is_topk_first; /* softmax over the logits of the chosen experts only; no sigmoid */
    bool renormalizes;  /* weights are divided by their sum */
    double scale;       /* and multiplied by this; 0: 1 */
} wick_moe_route_desc;

/* logits [t, e]: weights [t, top_k] of the experts with the largest score + bias, [e] or NULL, the
 * largest first, and their u32 ids in *ids, owned as the result; the weight is the score without
 * the bias. WICK_ERR_VALUE unless 0 < top_k <= e. */
WICK_API wick_tensor *wick_moe_route(wick_tensor *logits, wick_tensor *bias,
                                     const wick_moe_route_desc *desc, wick_tensor **ids);

typedef struct wick_moe_weights {
    wick_tensor *gate, *up;                             /* [e, i, d] */
    wick_tensor *down;                                  /* [e, d, i] */
    wick_tensor *shared_gate, *shared_up, *shared_down; /* [s, d], [s, d], [d, s]; or all NULL */
} wick_moe_weights;

/* x [t, d], route_weights [t, u], ids [t, u] u32: the sum over j of route_weights[., j] times
 * down(silu(gate x) * up x) of expert ids[., j], plus that of the shared expert. Weights may be of
 * block types. */
WICK_API wick_tensor *wick_moe_ffn(wick_tensor *x, wick_tensor *route_weights, wick_tensor *ids,
                                   const wick_moe_weights *weights);

#ifdef __cplusplus
}
#endif

#endif
