/* tests/op_bindings_nn.h: recorded cases of wick/nn.h and of random numbers as calls; part of
 * op_bindings.h, which includes it after the helpers that read a case. */
#ifndef OP_BINDINGS_NN_H
#define OP_BINDINGS_NN_H

#include "core/rng.h"
#include "tensor/tensor.h"

#include <wick/nn.h>
#include <wick/train.h>

#include <stdlib.h>

/* --- Attributes --- */

/* A number for all dims, or a list of one for each. Where zero means the default in a desc, one
 * that a case asks for becomes -1, which is refused as well. */
static inline void numbers(const test_case *c, const char *name, bool is_zero_default,
                           int64_t out[3]) {
    const wk_json *const value = wk_json_get(c->attrs, name);
    if (value == NULL || value->kind == WK_JSON_NULL) return;
    const wk_json *e = value->kind == WK_JSON_ARRAY ? value->child : value;
    for (int i = 0; i < 3 && e != NULL; i++) {
        out[i] = e->integer == 0 && is_zero_default ? -1 : e->integer;
        if (value->kind == WK_JSON_ARRAY) e = e->next;
    }
}

static inline wick_reduction reduction(const test_case *c) {
    if (attr_is(c, "reduction", "none")) return WICK_REDUCTION_NONE;
    return attr_is(c, "reduction", "sum") ? WICK_REDUCTION_SUM : WICK_REDUCTION_MEAN;
}

/* --- Convolution --- */

static inline wick_conv_desc conv_desc(const test_case *c) {
    wick_conv_desc desc = {.groups = has_attr(c, "groups") ? integer(c, "groups") : 1};
    if (desc.groups == 0) desc.groups = -1;
    numbers(c, "stride", true, desc.stride);
    numbers(c, "padding", false, desc.padding);
    numbers(c, "dilation", true, desc.dilation);
    numbers(c, "output_padding", false, desc.output_padding);
    return desc;
}

#define CONVOLUTION(X)                                                                             \
    X(conv1d)                                                                                      \
    X(conv2d)                                                                                      \
    X(conv3d)                                                                                      \
    X(conv_transpose1d)                                                                            \
    X(conv_transpose2d)                                                                            \
    X(conv_transpose3d)
#define RUN(name)                                                                                  \
    static inline wick_tensor *run_##name(const test_case *c) {                                    \
        const wick_conv_desc desc = conv_desc(c);                                                  \
        return wick_##name(operand(c, "x", 0), operand(c, "weight", 1), operand(c, "bias", 2),     \
                           &desc);                                                                 \
    }
CONVOLUTION(RUN)
#undef RUN

/* --- Pooling and resizing --- */

static inline wick_pooling_desc pooling_desc(const test_case *c) {
    wick_pooling_desc desc = {.ceil_mode = flag(c, "ceil_mode"),
                              .excludes_padding = has_attr(c, "count_include_pad") &&
                                                  !flag(c, "count_include_pad")};
    numbers(c, has_attr(c, "kernel") ? "kernel" : "kernel_size", true, desc.kernel);
    numbers(c, "stride", true, desc.stride);
    numbers(c, "padding", false, desc.padding);
    numbers(c, "dilation", true, desc.dilation);
    return desc;
}

/* With the indices as a second output where the case asks for them. */
#define POOLING(X)                                                                                 \
    X(1)                                                                                           \
    X(2)                                                                                           \
    X(3)
#define RUN(n)                                                                                     \
    static inline wick_tensor *run_max_pool##n##d(const test_case *c) {                            \
        const wick_pooling_desc desc = pooling_desc(c);                                            \
        return wick_max_pool##n##d(c->input[0], &desc,                                             \
                                   flag(c, "return_indices") ? &c->more[0] : NULL);                \
    }                                                                                              \
    static inline wick_tensor *run_avg_pool##n##d(const test_case *c) {                            \
        const wick_pooling_desc desc = pooling_desc(c);                                            \
        return wick_avg_pool##n##d(c->input[0], &desc);                                            \
    }                                                                                              \
    static inline wick_tensor *run_adaptive_avg_pool##n##d(const test_case *c) {                   \
        int64_t size[3] = {0};                                                                     \
        numbers(c, has_attr(c, "size") ? "size" : "output_size", false, size);                     \
        return wick_adaptive_avg_pool(c->input[0], n, size);                                       \
    }                                                                                              \
    static inline wick_tensor *run_adaptive_max_pool##n##d(const test_case *c) {                   \
        int64_t size[3] = {0};                                                                     \
        numbers(c, has_attr(c, "size") ? "size" : "output_size", false, size);                     \
        return wick_adaptive_max_pool(c->input[0], n, size);                                       \
    }
POOLING(RUN)
#undef RUN

#define RESIZING(X)                                                                                \
    X(upsample_nearest1d, 1, WICK_RESIZE_NEAREST)                                                  \
    X(upsample_nearest2d, 2, WICK_RESIZE_NEAREST)                                                  \
    X(upsample_nearest3d, 3, WICK_RESIZE_NEAREST)                                                  \
    X(upsample_linear1d, 1, WICK_RESIZE_LINEAR)                                                    \
    X(upsample_bilinear2d, 2, WICK_RESIZE_LINEAR)                                                  \
    X(upsample_trilinear3d, 3, WICK_RESIZE_LINEAR)                                                 \
    X(upsample_bicubic2d, 2, WICK_RESIZE_CUBIC)
#define RUN(name, n, mode)                                                                         \
    static inline wick_tensor *run_##name(const test_case *c) {                                    \
        int64_t size[3] = {0};                                                                     \
        numbers(c, "size", false, size);                                                           \
        return wick_resize(c->input[0], n, size, mode, flag(c, "align_corners"));                  \
    }
RESIZING(RUN)
#undef RUN

static inline wick_resize_mode resize_mode(const test_case *c) {
    if (attr_is(c, "mode", "nearest")) return WICK_RESIZE_NEAREST;
    return attr_is(c, "mode", "bicubic") || attr_is(c, "mode", "cubic") ? WICK_RESIZE_CUBIC
                                                                        : WICK_RESIZE_LINEAR;
}
static inline wick_tensor *run_resize_antialiased(const test_case *c) {
    int64_t size[3] = {0};
    numbers(c, "size", false, size);
    return wick_resize_antialiased(c->input[0], (int)wk_json_get(c->attrs, "size")->count, size,
                                   resize_mode(c), attr(c, "a"), flag(c, "repeats_ends"));
}
static inline wick_tensor *run_grid_sample(const test_case *c) {
    const wick_pad_mode padding = attr_is(c, "padding", "border")       ? WICK_PAD_REPLICATE
                                  : attr_is(c, "padding", "reflection") ? WICK_PAD_REFLECT
                                                                        : WICK_PAD_CONSTANT;
    return wick_grid_sample(operand(c, "x", 0), operand(c, "grid", 1), resize_mode(c), padding,
                            flag(c, "align_corners"));
}
static inline wick_tensor *run_roi_align(const test_case *c) {
    wick_roi_align_desc desc = {.sampling_ratio = integer(c, "sampling_ratio"),
                                .scale = attr_or(c, "scale", 1),
                                .is_largest = attr_is(c, "mode", "max"),
                                .is_unaligned = !flag(c, "aligned")};
    int64_t size[3] = {0};
    numbers(c, "size", false, size);
    memcpy(desc.size, size, sizeof desc.size);
    return wick_roi_align(operand(c, "x", 0), operand(c, "boxes", 1), operand(c, "batch", 2),
                          &desc);
}
static inline wick_tensor *run_non_max_suppression(const test_case *c) {
    const wick_suppression_desc desc = {.most = integer(c, "most"),
                                        .most_overlap = attr(c, "most_overlap"),
                                        .has_least_score = has_attr(c, "least_score"),
                                        .least_score = attr(c, "least_score"),
                                        .is_centred = flag(c, "is_centred")};
    return wick_non_max_suppression(operand(c, "boxes", 0), operand(c, "scores", 1), &desc);
}

/* --- Normalisation --- */

static inline wick_tensor *run_group_norm(const test_case *c) {
    return wick_group_norm(operand(c, "x", 0),
                           integer(c, has_attr(c, "groups") ? "groups" : "num_groups"),
                           operand(c, "weight", 1), operand(c, "bias", 2), attr(c, "eps"));
}
static inline wick_tensor *run_instance_norm(const test_case *c) {
    return wick_instance_norm(operand(c, "x", 0), operand(c, "weight", 1), operand(c, "bias", 2),
                              attr_or(c, "eps", 1e-5));
}
static inline wick_tensor *run_batch_norm(const test_case *c) {
    wick_tensor *const x = operand(c, "x", 0), *const mean = operand(c, "running_mean", 1),
                       *const variance = operand(c, "running_var", 2),
                       *const weight = operand(c, "weight", 3), *const bias = operand(c, "bias", 4);
    const double eps = attr_or(c, "eps", 1e-5);
    if (!flag(c, "train")) return wick_batch_norm(x, mean, variance, weight, bias, eps);
    c->more[0] = mean;
    c->more[1] = variance;
    return wick_batch_norm_train(x, mean, variance, weight, bias, attr_or(c, "momentum", 0.1), eps);
}
static inline wick_tensor *run_local_response_norm(const test_case *c) {
    return wick_local_response_norm(c->input[0], integer(c, "size"), attr_or(c, "alpha", 1e-4),
                                    attr_or(c, "beta", 0.75),
                                    attr_or(c, has_attr(c, "bias") ? "bias" : "k", 1));
}
static inline wick_tensor *run_normalize(const test_case *c) {
    return wick_normalize(c->input[0], has_attr(c, "dim") ? dim(c, "dim") : 1,
                          attr_or(c, "eps", 1e-12));
}

/* --- Recurrent networks --- */

static inline wick_rnn_weights rnn_weights(const test_case *c) {
    return (wick_rnn_weights){.w_ih = operand(c, "w_ih", 1),
                              .w_hh = operand(c, "w_hh", 2),
                              .b_ih = operand(c, "b_ih", 3),
                              .b_hh = operand(c, "b_hh", 4),
                              .peepholes = optional(c, "peepholes"),
                              .resets_before = flag(c, "resets_before")};
}
static inline wick_tensor *run_lstm(const test_case *c) {
    const wick_rnn_weights weights = rnn_weights(c);
    return wick_lstm(operand(c, "x", 0), &weights, operand(c, "h0", 5), operand(c, "c0", 6),
                     &c->more[0], &c->more[1]);
}
static inline wick_tensor *run_gru(const test_case *c) {
    const wick_rnn_weights weights = rnn_weights(c);
    return wick_gru(operand(c, "x", 0), &weights, operand(c, "h0", 5), &c->more[0]);
}
static inline wick_tensor *run_rnn(const test_case *c) {
    const wick_rnn_weights weights = rnn_weights(c);
    return wick_rnn(operand(c, "x", 0), &weights, operand(c, "h0", 5), &c->more[0]);
}

/* --- Losses --- */

static inline wick_cross_entropy_desc class_desc(const test_case *c) {
    return (wick_cross_entropy_desc){.weight = optional(c, "weight"),
                                     .label_smoothing = attr(c, "label_smoothing"),
                                     .ignores = has_attr(c, "ignore_index"),
                                     .ignored_index = integer(c, "ignore_index"),
                                     .reduction = reduction(c)};
}
static inline wick_tensor *run_cross_entropy(const test_case *c) {
    const wick_cross_entropy_desc desc = class_desc(c);
    return wick_cross_entropy(operand(c, "logits", 0), operand(c, "target", 1), &desc);
}
static inline wick_tensor *run_nll(const test_case *c) {
    const wick_cross_entropy_desc desc = class_desc(c);
    return wick_nll(operand(c, "log_probs", 0), operand(c, "target", 1), &desc);
}
static inline wick_tensor *run_mse(const test_case *c) {
    return wick_mse(operand(c, "x", 0), operand(c, "target", 1), reduction(c));
}
static inline wick_tensor *run_l1(const test_case *c) {
    return wick_l1(operand(c, "x", 0), operand(c, "target", 1), reduction(c));
}
static inline wick_tensor *run_huber(const test_case *c) {
    return wick_huber(operand(c, "x", 0), operand(c, "target", 1), attr_or(c, "delta", 1),
                      reduction(c));
}
static inline wick_tensor *run_smooth_l1(const test_case *c) {
    return wick_smooth_l1(operand(c, "x", 0), operand(c, "target", 1),
                          attr_or(c, has_attr(c, "beta") ? "beta" : "delta", 1), reduction(c));
}
static inline wick_tensor *run_bce(const test_case *c) {
    return wick_bce(operand(c, "x", 0), operand(c, "target", 1), reduction(c));
}
static inline wick_tensor *run_bce_with_logits(const test_case *c) {
    return wick_bce_with_logits(operand(c, "logits", 0), operand(c, "target", 1),
                                optional(c, "pos_weight"), reduction(c));
}
static inline wick_tensor *run_kl_div(const test_case *c) {
    if (attr_is(c, "reduction", "batchmean")) {
        wick_tensor *const sum = wick_kl_div(operand(c, "x", 0), operand(c, "target", 1),
                                             flag(c, "log_target"), WICK_REDUCTION_SUM);
        const wick_shape shape = wick_tensor_shape(operand(c, "x", 0));
        return wick_affine(sum, shape.rank > 0 ? 1 / (double)shape.extent[0] : 1, 0);
    }
    return wick_kl_div(operand(c, "x", 0), operand(c, "target", 1), flag(c, "log_target"),
                       reduction(c));
}
static inline wick_tensor *run_cosine_similarity(const test_case *c) {
    return wick_cosine_similarity(c->input[0], c->input[1], has_attr(c, "dim") ? dim(c, "dim") : 1,
                                  attr_or(c, "eps", 1e-8));
}

/* --- Mixtures of experts --- */

static inline wick_tensor *run_moe_route(const test_case *c) {
    const double scale = attr_or(c, "scale", 1);
    const wick_moe_route_desc desc = {.top_k = integer(c, "top_k"),
                                      .is_sigmoid = attr_is(c, "score", "sigmoid"),
                                      .is_topk_first = attr_is(c, "order", "topk_first"),
                                      .renormalizes = flag(c, "renormalize"),
                                      .scale = scale};
    return wick_moe_route(operand(c, "logits", 0), optional(c, "bias"), &desc, &c->more[0]);
}
static inline wick_tensor *run_indexed_matmul(const test_case *c) {
    return wick_linear_experts(operand(c, "x", 0), operand(c, "weights", 1), NULL,
                               operand(c, "ids", 2));
}
static inline wick_tensor *run_moe_ffn(const test_case *c) {
    const wick_moe_weights weights = {.gate = operand(c, "gate", 3),
                                      .up = operand(c, "up", 4),
                                      .down = operand(c, "down", 5),
                                      .shared_gate = optional(c, "shared_gate"),
                                      .shared_up = optional(c, "shared_up"),
                                      .shared_down = optional(c, "shared_down")};
    return wick_moe_ffn(operand(c, "x", 0), operand(c, "route_weights", 1), operand(c, "ids", 2),
                        &weights);
}

/* --- Random numbers --- */

/* 64 bits, written as a decimal string. */
static inline uint64_t wide_attr(const test_case *c, const char *name) {
    const wk_json *const value = wk_json_get(c->attrs, name);
    uint64_t word = 0;
    for (size_t i = 0; value != NULL && i < value->string.size; i++)
        word = 10 * word + (uint64_t)(value->string.text[i] - '0');
    return word;
}

/* The next call takes that stream. */
static inline void choose_stream(const test_case *c) {
    wick_device_set_seed(c->device, wide_attr(c, "seed"));
    wick_device_set_stream(c->device, wide_attr(c, "stream"));
}

static inline wick_tensor *run_rand_bits(const test_case *c) {
    choose_stream(c);
    return wick_rand_bits(c->device, shape(c));
}
static inline wick_tensor *run_rand_uniform(const test_case *c) {
    choose_stream(c);
    return wick_rand(c->device, attr_dtype(c, "dtype"), shape(c), attr(c, "low"), attr(c, "high"));
}
static inline wick_tensor *run_rand_normal(const test_case *c) {
    choose_stream(c);
    return wick_randn(c->device, attr_dtype(c, "dtype"), shape(c), attr(c, "mean"), attr(c, "std"));
}
static inline wick_tensor *run_dropout(const test_case *c) {
    choose_stream(c);
    return wick_dropout(c->input[0], attr(c, "p"), flag(c, "train"));
}

/* Blocks, by the function of core/ that random tensors are specified by: their counter is made of
 * an element's number, which is a quarter of the numbers that a case may ask for. */
static inline wick_tensor *run_philox4x32_10(const test_case *c) {
    wick_tensor *const counter = operand(c, "counter", 0), *const key = operand(c, "key", 1);
    const int64_t n = wick_tensor_shape(counter).extent[0];
    const size_t size = wick_tensor_bytes(counter);
    uint32_t *const counters = malloc(size + 1), *const keys = malloc(size + 1);
    uint32_t *const words = malloc(size + 1);
    wick_tensor *y = NULL;
    if (counters && keys && words && wick_read(counter, counters, size) == WICK_OK &&
        wick_read(key, keys, size / 2) == WICK_OK) {
        for (int64_t i = 0; i < n; i++) wk_philox(&counters[4 * i], &keys[2 * i], &words[4 * i]);
        y = wick_tensor_from_data(c->device, WICK_U32, WICK_SHAPE(n, 4), words, size);
    }
    free(words);
    free(keys);
    free(counters);
    return y;
}

/* --- Optimizers --- */

/* The parameter after each step. */
static inline wick_tensor *run_optimizer(const test_case *c, const wick_optimizer_desc *desc) {
    enum { MOST_STEPS = 16 };
    wick_tensor *const grads = operand(c, "grads", 1), *after[MOST_STEPS] = {NULL};
    wick_tensor *const param = operand(c, "param", 0);
    const int64_t n = wick_tensor_shape(grads).extent[0];
    wick_optimizer *optimizer = NULL;
    bool is_sound =
        n <= MOST_STEPS && wick_optimizer_make(desc, &param, NULL, 1, &optimizer) == WICK_OK;
    for (int64_t t = 0; is_sound && t < n; t++) {
        wick_tensor *const grad = wick_squeeze(wick_narrow(grads, 0, t, 1), 0);
        is_sound = wick_optimizer_step(optimizer, &grad, attr(c, "lr")) == WICK_OK;
        after[t] = wick_cast(param, wick_tensor_dtype(param));
    }
    wick_optimizer_free(optimizer);
    return is_sound ? wick_stack(after, (size_t)n, 0) : NULL;
}
static inline wick_tensor *run_sgd(const test_case *c) {
    return run_optimizer(c, &(wick_optimizer_desc){.kind = WICK_OPTIMIZER_SGD,
                                                   .momentum = attr(c, "momentum"),
                                                   .weight_decay = attr(c, "weight_decay"),
                                                   .nesterov = flag(c, "nesterov")});
}
/* Zero that a case asks for; in a desc it means the default. */
static inline double attr_not_zero(const test_case *c, const char *name) {
    return has_attr(c, name) && attr(c, name) == 0 ? DBL_MIN : attr(c, name);
}
static inline wick_tensor *run_adamw(const test_case *c) {
    return run_optimizer(c, &(wick_optimizer_desc){.kind = WICK_OPTIMIZER_ADAMW,
                                                   .beta1 = attr_not_zero(c, "beta1"),
                                                   .beta2 = attr_not_zero(c, "beta2"),
                                                   .eps = attr_not_zero(c, "eps"),
                                                   .weight_decay = attr(c, "weight_decay")});
}
static inline wick_tensor *run_lion(const test_case *c) {
    return run_optimizer(c, &(wick_optimizer_desc){.kind = WICK_OPTIMIZER_LION,
                                                   .beta1 = attr_not_zero(c, "beta1"),
                                                   .beta2 = attr_not_zero(c, "beta2"),
                                                   .weight_decay = attr(c, "weight_decay")});
}

/* --- Rows of the table of op_bindings.h --- */

#define NN_ROW(name) {#name, run_##name},
#define NN_RESIZING(name, n, mode) NN_ROW(name)
#define NN_POOLING(n)                                                                              \
    {"max_pool" #n "d", run_max_pool##n##d}, {"avg_pool" #n "d", run_avg_pool##n##d},              \
        {"adaptive_avg_pool" #n "d", run_adaptive_avg_pool##n##d},                                 \
        {"adaptive_max_pool" #n "d", run_adaptive_max_pool##n##d},
#define NN_OTHERS(X)                                                                               \
    X(resize_antialiased)                                                                          \
    X(grid_sample)                                                                                 \
    X(roi_align)                                                                                   \
    X(non_max_suppression)                                                                         \
    X(group_norm)                                                                                  \
    X(instance_norm)                                                                               \
    X(batch_norm)                                                                                  \
    X(local_response_norm)                                                                         \
    X(normalize)                                                                                   \
    X(lstm)                                                                                        \
    X(gru)                                                                                         \
    X(rnn)                                                                                         \
    X(cross_entropy)                                                                               \
    X(nll)                                                                                         \
    X(mse)                                                                                         \
    X(l1)                                                                                          \
    X(huber)                                                                                       \
    X(smooth_l1)                                                                                   \
    X(bce)                                                                                         \
    X(bce_with_logits)                                                                             \
    X(kl_div)                                                                                      \
    X(cosine_similarity)                                                                           \
    X(moe_route)                                                                                   \
    X(indexed_matmul)                                                                              \
    X(moe_ffn)                                                                                     \
    X(dropout)                                                                                     \
    X(rand_bits)                                                                                   \
    X(rand_uniform)                                                                                \
    X(rand_normal)                                                                                 \
    X(philox4x32_10)                                                                               \
    X(sgd)                                                                                         \
    X(adamw)                                                                                       \
    X(lion)
#define NN_BINDINGS                                                                                \
    CONVOLUTION(NN_ROW)                                                                            \
    POOLING(NN_POOLING)                                                                            \
    RESIZING(NN_RESIZING)                                                                          \
    NN_OTHERS(NN_ROW){"nll_loss", run_nll}, {"mse_loss", run_mse}, {"l1_loss", run_l1},            \
        {"huber_loss", run_huber}, {"smooth_l1_loss", run_smooth_l1},                              \
        {"binary_cross_entropy", run_bce},                                                         \
        {"binary_cross_entropy_with_logits", run_bce_with_logits},

#endif
