/* web/glue/tensors/operands.h: what an operation of tensors is given by JavaScript, and the words
 * in which ops.def takes its arguments out of that; for tensor.c. */
#ifndef WICK_WEB_OPERANDS_H
#define WICK_WEB_OPERANDS_H

#include "../door.h"

#include <stdlib.h>
#include <string.h>

/* What an operation is given: its tensors, those that are left out NULL, and its numbers. Results
 * take the places of the tensors. */
typedef struct operands {
    wick_device *device;
    wick_tensor **tensors; /* [n_tensors, or more where there are more results] */
    size_t n_tensors, n_results;
    const double *numbers;
    size_t n_numbers;
    /* What is given by a pointer: the numbers as integers, and PADDING zeros. */
    int64_t *longs;
    int *ints;
    union {
        wick_rope_desc rope;
        wick_attention_desc attention;
        wick_conv_desc conv;
        wick_pooling_desc pooling;
        wick_roi_align_desc roi_align;
        wick_rnn_weights rnn;
        wick_cross_entropy_desc classes;
        wick_moe_route_desc route;
        wick_moe_weights experts;
    } desc;
} operands;

enum { PADDING = 16 };

/* --- Numbers --- */

static int64_t whole(double x) {
    if (!(x >= -0x1p62)) return INT64_MIN;
    return x <= 0x1p62 ? (int64_t)x : INT64_MAX;
}

static int narrow(double x) {
    if (!(x >= INT32_MIN)) return INT32_MIN;
    return x <= INT32_MAX ? (int)x : INT32_MAX;
}

static double number(const operands *in, size_t i) {
    return i < in->n_numbers ? in->numbers[i] : 0;
}

/* The rest of the numbers. A rank that is too large is refused by the operation. */
static wick_shape shape(const operands *in, size_t first) {
    wick_shape shape = {.rank = (int)(in->n_numbers - first)};
    for (int i = 0; i < shape.rank && i < WICK_MAX_RANK; i++)
        shape.extent[i] = whole(in->numbers[first + (size_t)i]);
    return shape;
}

static bool integers_make(operands *in) {
    const size_t n = in->n_numbers + PADDING;
    in->longs = calloc(n, sizeof *in->longs + sizeof *in->ints);
    if (in->longs == NULL) return false;
    in->ints = (int *)(in->longs + n);
    for (size_t i = 0; i < in->n_numbers; i++) {
        in->longs[i] = whole(in->numbers[i]);
        in->ints[i] = narrow(in->numbers[i]);
    }
    return true;
}

/* --- The words of ops.def --- */

#define T(i) in->tensors[i]
#define N(i) number(in, i)
#define I(i) narrow(number(in, i))
#define L(i) whole(number(in, i))
#define B(i) (number(in, i) != 0)
#define DTYPE(i) ((wick_dtype)narrow(number(in, i)))
/* Lists that begin with number i, and how many numbers there are from it on. */
#define INTS(i) (in->ints + (i))
#define LONGS(i) (in->longs + (i))
#define REST(i) (in->n_numbers > (i) ? (int)(in->n_numbers - (i)) : 0)
/* The dims after number i, which is 0 where all are meant. */
#define DIMS(i) REST((i) + 1), B(i) ? INTS((i) + 1) : NULL
/* Number 0 as that of a list's entries, or of results: what is none is refused. */
#define COUNT count_of(in)
/* The numbers as a text. */
#define TEXT text_of(in)
#define RANK wick_tensor_shape(T(0)).rank
#define REDUCTION ((wick_reduction)I(0))
/* Where a second result goes; NULL: it is not wanted. */
#define SECOND (in->n_results > 1 ? &T(1) : NULL)

static size_t count_of(const operands *in) {
    const int64_t given = L(0);
    return given > 0 && given <= UINT16_MAX ? (size_t)given : 0;
}

/* Of ASCII codes, in place of the integers, whose padding ends it; '?' where there is no such code.
 */
static const char *text_of(const operands *in) {
    char *const text = (char *)in->longs;
    for (size_t i = 0; i < in->n_numbers; i++) {
        const double code = in->numbers[i];
        text[i] = (char)(code > 0 && code < 128 ? code : '?');
    }
    text[in->n_numbers] = '\0';
    return text;
}

/* Tensor 0, where from number first on there are two lists with an entry for each of its dims. */
static wick_tensor *each_dim(const operands *in, int first, const char *name) {
    const int rank = RANK;
    if (REST((size_t)first) == 2 * rank) return T(0);
    (void)door_refuse(WICK_ERR_SHAPE, "%s: two lists of %d numbers are wanted, one for each dim",
                      name, rank);
    return NULL;
}

static const wick_rope_desc *rope_desc(operands *in) {
    in->desc.rope = (wick_rope_desc){.rotary_dim = I(0),
                                     .theta = N(1),
                                     .scale_factor = N(2),
                                     .offset = L(3),
                                     .interleaved = B(4),
                                     .layout = (wick_rope_layout)I(5)};
    return &in->desc.rope;
}

static const wick_attention_desc *attention_desc(operands *in) {
    in->desc.attention = (wick_attention_desc){.scale = N(0),
                                               .softcap = N(1),
                                               .window = I(2),
                                               .causal = B(3),
                                               .mask = T(3),
                                               .bias = T(4),
                                               .sinks = T(5),
                                               .slopes = T(6)};
    return &in->desc.attention;
}

/* Three numbers from number first on, one for each spatial dim that there may be. */
static void spatial(const operands *in, size_t first, int64_t out[3]) {
    memcpy(out, LONGS(first), 3 * sizeof *out);
}

static const wick_conv_desc *conv_desc(operands *in) {
    wick_conv_desc *const desc = &in->desc.conv;
    *desc = (wick_conv_desc){.groups = L(12)};
    spatial(in, 0, desc->stride);
    spatial(in, 3, desc->padding);
    spatial(in, 6, desc->dilation);
    spatial(in, 9, desc->output_padding);
    return desc;
}

static const wick_pooling_desc *pooling_desc(operands *in) {
    wick_pooling_desc *const desc = &in->desc.pooling;
    *desc = (wick_pooling_desc){.ceil_mode = B(12), .excludes_padding = B(13)};
    spatial(in, 0, desc->kernel);
    spatial(in, 3, desc->stride);
    spatial(in, 6, desc->padding);
    spatial(in, 9, desc->dilation);
    return desc;
}

static const wick_roi_align_desc *roi_align_desc(operands *in) {
    in->desc.roi_align = (wick_roi_align_desc){.size = {L(0), L(1)},
                                               .sampling_ratio = L(2),
                                               .scale = N(3),
                                               .is_largest = B(4),
                                               .is_unaligned = B(5)};
    return &in->desc.roi_align;
}

static const wick_rnn_weights *rnn_weights(operands *in) {
    in->desc.rnn = (wick_rnn_weights){.w_ih = T(1),
                                      .w_hh = T(2),
                                      .b_ih = T(3),
                                      .b_hh = T(4),
                                      .peepholes = T(5),
                                      .resets_before = B(0)};
    return &in->desc.rnn;
}

static const wick_cross_entropy_desc *class_desc(operands *in) {
    in->desc.classes = (wick_cross_entropy_desc){.weight = T(2),
                                                 .reduction = REDUCTION,
                                                 .label_smoothing = N(1),
                                                 .ignores = B(2),
                                                 .ignored_index = L(3)};
    return &in->desc.classes;
}

static const wick_moe_route_desc *route_desc(operands *in) {
    in->desc.route = (wick_moe_route_desc){.top_k = L(0),
                                           .is_sigmoid = B(1),
                                           .is_topk_first = B(2),
                                           .renormalizes = B(3),
                                           .scale = N(4)};
    return &in->desc.route;
}

static const wick_moe_weights *moe_weights(operands *in) {
    in->desc.experts = (wick_moe_weights){.gate = T(3),
                                          .up = T(4),
                                          .down = T(5),
                                          .shared_gate = T(6),
                                          .shared_up = T(7),
                                          .shared_down = T(8)};
    return &in->desc.experts;
}

#endif
