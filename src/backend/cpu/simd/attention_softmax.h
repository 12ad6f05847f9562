/* simd/attention_softmax.h: the softmax of one query, carried along over steps of 64 keys (Milakov
 * and Gimelshein, 2018), so that no matrix of scores is kept.
 *
 * What some of its keys give is a part: its largest logit, the sum of the weights by lane and the
 * sums of the weighted values. Parts of different keys are merged. */
#ifndef WK_SIMD_ATTENTION_SOFTMAX_H
#define WK_SIMD_ATTENTION_SOFTMAX_H

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/simd/vector_math.h"
#include "core/half.h"

#include <math.h>
#include <string.h>

enum {
    STEP = 64, /* keys, counted from key 0 */
    VECTORS = STEP / 16,
    /* A part, in floats. Behind these come the sums of the values. */
    PART_LARGEST = 0,
    PART_WEIGHTS = 16, /* by lane */
    PART_SUMS = 32,
};

/* What the queries of one op have in common. */
typedef struct attention {
    const wk_view *k, *v;    /* [blocks, g, block_size, d], [.., e] */
    int64_t d, e, width;     /* width: e up to a multiple of 16 */
    int64_t heads;           /* query heads of one key head */
    float scale, softcap;    /* softcap 0: none */
    wick_dtype result_dtype; /* f32 or f16 */
} attention;

/* Operands [.., s] that change the logits of one query; data NULL: none. */
typedef struct logit_operand {
    const unsigned char *data;
    int64_t stride; /* elements */
    wick_dtype dtype;
} logit_operand;

/* One query: a row and a head. */
typedef struct query_state {
    const float *q;     /* [d] */
    unsigned char *y;   /* [e] */
    float *part;        /* what it sums up at present */
    int64_t first, end; /* keys that it sees */
    int64_t position;   /* its own */
    float slope, sink;  /* 0 and -infinity: none */
    logit_operand mask, bias;
    float scores[STEP];
} query_state;

static int64_t round_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

/* Element i of an operand that is read one by one. */
static float element_at(const unsigned char *data, wick_dtype dtype, int64_t i) {
    const uint16_t *const halves = (const uint16_t *)(const void *)data;
    if (dtype == WICK_F16) return wk_f16_to_f32(halves[i]);
    if (dtype == WICK_BF16) return wk_bf16_to_f32(halves[i]);
    return ((const float *)(const void *)data)[i];
}

/* Element head of an operand [heads]; absent: otherwise. */
static float of_head(const wk_view *view, int64_t head, float otherwise) {
    if (view->buf == NULL) return otherwise;
    return element_at(wk_view_data(view), view->dtype, head * view->stride[0]);
}

static bool is_element_dtype(wick_dtype dtype) {
    return dtype == WICK_F32 || dtype == WICK_F16 || dtype == WICK_BF16;
}

/* ---- Logits of the step that begins at key step. ---- */

/* Mask and bias. A key that the mask hides does not count, regardless of its logit. */
static void change_logits(const query_state *query, int64_t step, v16 logit[VECTORS]) {
    const logit_operand *const mask = &query->mask, *const bias = &query->bias;
    float lanes[STEP];
    for (int j = 0; j < VECTORS; j++) v16_store(lanes + 16 * j, logit[j]);
    const int64_t first = query->first > step ? query->first - step : 0;
    const int64_t end = query->end - step < STEP ? query->end - step : STEP;
    for (int64_t j = first; bias->data != NULL && j < end; j++)
        lanes[j] += element_at(bias->data, bias->dtype, (step + j) * bias->stride);
    for (int64_t j = first; mask->data != NULL && j < end; j++)
        if (mask->data[(step + j) * mask->stride] == 0) lanes[j] = -INFINITY;
    for (int j = 0; j < VECTORS; j++) logit[j] = v16_load(lanes + 16 * j);
}

/* Lanes before the n-th become -infinity. */
static v16 hide_before(v16 logit, int64_t n) {
    float lanes[16];
    v16_store(lanes, logit);
    for (int64_t i = 0; i < 16 && i < n; i++) lanes[i] = -INFINITY;
    return v16_load(lanes);
}

WK_INLINE void load_logits(const attention *a, const query_state *query, int64_t step,
                           v16 logit[VECTORS]) {
    static const float lane[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const v16 scale = v16_set(a->scale), cap = v16_set(a->softcap), slope = v16_set(query->slope);
    for (int j = 0; j < VECTORS; j++) {
        logit[j] = v16_mul(v16_load(query->scores + 16 * j), scale);
        if (a->softcap != 0) logit[j] = v16_mul(cap, v16_tanh(v16_div(logit[j], cap)));
        if (query->slope == 0) continue;
        const float distance = (float)(step + 16 * j - query->position);
        logit[j] = v16_fma(slope, v16_add(v16_load(lane), v16_set(distance)), logit[j]);
    }
    if (query->mask.data != NULL || query->bias.data != NULL) change_logits(query, step, logit);
    for (int j = 0; j < VECTORS; j++) {
        const int64_t key = step + 16 * j;
        logit[j] = v16_fill_from(logit[j], query->end - key, -INFINITY);
        if (key < query->first) logit[j] = hide_before(logit[j], query->first - key);
    }
}

/* ---- Parts. ---- */

static int64_t part_floats(const attention *a) { return PART_SUMS + a->width; }

static void clear_part(const attention *a, float *part) {
    memset(part, 0, (size_t)part_floats(a) * sizeof *part);
    part[PART_LARGEST] = -INFINITY;
}

/* What the weights are relative to. Nothing but -infinity so far: any finite number will do. */
WK_INLINE v16 base_of(float largest) { return v16_set(largest == -INFINITY ? 0 : largest); }

/* Not inlined: many keys share one call. */
static v16 factor_of(float logit, v16 base) { return v16_exp(v16_sub(v16_set(logit), base)); }

/* Turns the scores of a step into weights, and what was summed before into their scale. */
static void weigh(const attention *a, query_state *query, int64_t step) {
    float *const part = query->part;
    v16 logit[VECTORS], most = v16_set(-INFINITY);
    load_logits(a, query, step, logit);
    for (int j = 0; j < VECTORS; j++)
        most = v16_max(logit[j], most); /* in this order without NaN */
    const float before = part[PART_LARGEST], largest_here = v16_largest(most);
    const float largest = largest_here > before ? largest_here : before;
    const v16 base = base_of(largest);
    if (largest > before) { /* else the factor is 1 */
        const v16 factor = factor_of(before, base);
        part[PART_LARGEST] = largest;
        for (int64_t l = PART_WEIGHTS; l < PART_SUMS + a->width; l += 16)
            v16_store(part + l, v16_mul(v16_load(part + l), factor));
    }
    v16 weights = v16_load(part + PART_WEIGHTS);
    for (int j = 0; j < VECTORS; j++) {
        const v16 weight = v16_exp(v16_sub(logit[j], base));
        v16_store(query->scores + 16 * j, weight);
        weights = v16_add(weights, weight);
    }
    v16_store(part + PART_WEIGHTS, weights);
}

/* Adds part to total; into an empty total that is a copy. */
static void merge_part(const attention *a, float *total, const float *part) {
    const float before = total[PART_LARGEST], here = part[PART_LARGEST];
    const float largest = here > before ? here : before;
    const v16 base = base_of(largest);
    const v16 factor = factor_of(before, base);
    const v16 factor_here = factor_of(here, base);
    for (int64_t l = PART_WEIGHTS; l < PART_SUMS + a->width; l += 16) {
        const v16 scaled = v16_mul(v16_load(total + l), factor);
        v16_store(total + l, v16_fma(v16_load(part + l), factor_here, scaled));
    }
    total[PART_LARGEST] = largest;
}

/* The mean of the values by their weights and that of the sink, zeros where no weight is. */
static void write_result(const attention *a, const query_state *query, const float *total) {
    const float largest = total[PART_LARGEST], sink = query->sink;
    const v16 base = base_of(sink > largest ? sink : largest);
    const v16 factor = factor_of(largest, base);
    const float weights = v16_sum(v16_load(total + PART_WEIGHTS));
    v16 all = v16_mul(v16_set(weights), factor);
    all = v16_add(all, factor_of(sink, base));
    float sum[16];
    v16_store(sum, all);
    if (sum[0] == 0) all = v16_set(1);
    for (int64_t l = 0; l < a->e; l += 16) {
        const v16 y = v16_div(v16_mul(v16_load(total + PART_SUMS + l), factor), all);
        if (a->result_dtype == WICK_F32) {
            v16_store_rows((float *)(void *)query->y + l, y, a->e - l);
            continue;
        }
        uint16_t halves[16];
        v16_store_f16(halves, y);
        const int64_t n = a->e - l < 16 ? a->e - l : 16;
        memcpy(query->y + 2 * l, halves, (size_t)n * sizeof *halves);
    }
}

#endif
