/* ops/suppress.c: boxes that overlap a better one are left out. The numbers are read, for each
 * choice depends on those before. */
#include "core/shape.h"
#include "ops/compose.h"

#include <wick/nn.h>

#include <math.h>
#include <stdlib.h>

static const char name[] = "non_max_suppression";

typedef struct candidate {
    double score;
    uint32_t box;
} candidate;

/* All that a call works on, one block of memory for each array. */
typedef struct work {
    const wick_suppression_desc *desc;
    int64_t n, c, k;
    double *boxes, *scores; /* [n, k, 4], [n, c, k] */
    candidate *sorted;      /* [k] */
    uint32_t *chosen;       /* [n_chosen, 3] */
    size_t n_chosen;
} work;

static bool check(wick_tensor *boxes, wick_tensor *scores) {
    if (!wk_operands_are_floats(name, (wick_tensor *[]){boxes, scores}, 2, 2) ||
        !wk_operand_rank(name, "boxes", boxes, 3, 3) ||
        !wk_operand_rank(name, "scores", scores, 3, 3))
        return false;
    const int64_t *const b = boxes->view.extent, *const s = scores->view.extent;
    if (b[2] == 4 && b[0] == s[0] && b[1] == s[2] && b[0] <= UINT32_MAX && b[1] <= UINT32_MAX &&
        s[1] <= UINT32_MAX)
        return true;
    const wick_shape of_boxes = wk_tensor_shape_of(boxes), of_scores = wk_tensor_shape_of(scores);
    char text[2][WK_SHAPE_TEXT];
    wk_device_fail(boxes->device, WICK_ERR_SHAPE, "%s: scores %s do not fit boxes %s", name,
                   wk_shape_text(&of_scores, text[0], sizeof text[0]),
                   wk_shape_text(&of_boxes, text[1], sizeof text[1]));
    return false;
}

/* The best first, of equal ones that of the lower number. */
static int by_score(const void *a, const void *b) {
    const candidate *const x = a, *const y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->box < y->box ? -1 : 1;
}

/* From low[d] to high[d]. */
typedef struct extents {
    double low[2], high[2];
} extents;

static extents extents_of(const work *w, const double *box) {
    extents e;
    for (int d = 0; d < 2; d++) {
        const double half = box[2 + d] / 2;
        e.low[d] = w->desc->is_centred ? box[d] - half : fmin(box[d], box[2 + d]);
        e.high[d] = w->desc->is_centred ? box[d] + half : fmax(box[d], box[2 + d]);
    }
    return e;
}

static double area(const extents *e) {
    return fmax(0, e->high[0] - e->low[0]) * fmax(0, e->high[1] - e->low[1]);
}

/* The area that both have, divided by that which either has; 0 where there is none. */
static double overlap(const work *w, const double *a, const double *b) {
    const extents x = extents_of(w, a), y = extents_of(w, b);
    extents both;
    for (int d = 0; d < 2; d++) {
        both.low[d] = fmax(x.low[d], y.low[d]);
        both.high[d] = fmin(x.high[d], y.high[d]);
    }
    const double shared = area(&both), all = area(&x) + area(&y) - shared;
    return all > 0 ? shared / all : 0;
}

/* One class of one sample. */
static void choose(work *w, int64_t sample, int64_t class) {
    const double *const scores = &w->scores[(sample * w->c + class) * w->k];
    const double *const boxes = &w->boxes[sample * w->k * 4];
    const size_t first = w->n_chosen;
    const size_t most = w->desc->most > 0 ? (size_t)w->desc->most : (size_t)w->k;
    size_t n = 0;
    for (int64_t i = 0; i < w->k; i++)
        if (!isnan(scores[i]) && (!w->desc->has_least_score || scores[i] > w->desc->least_score))
            w->sorted[n++] = (candidate){scores[i], (uint32_t)i};
    qsort(w->sorted, n, sizeof *w->sorted, by_score);
    for (size_t i = 0; i < n && w->n_chosen - first < most; i++) {
        const uint32_t box = w->sorted[i].box;
        bool is_free = true;
        for (size_t j = first; is_free && j < w->n_chosen; j++)
            is_free = !(overlap(w, &boxes[4 * box], &boxes[4 * w->chosen[3 * j + 2]]) >
                        w->desc->most_overlap);
        if (!is_free) continue;
        uint32_t *const at = &w->chosen[3 * w->n_chosen++];
        at[0] = (uint32_t)sample;
        at[1] = (uint32_t)class;
        at[2] = box;
    }
}

static bool read_all(wick_tensor *x, double *to) {
    const size_t count = (size_t)wick_tensor_size(x);
    const wick_scope scope = wick_scope_begin(x->device);
    const bool is_read = wick_read(wick_cast(x, WICK_F64), to, count * sizeof *to) == WICK_OK;
    wick_scope_end(scope);
    return is_read;
}

wick_tensor *wick_non_max_suppression(wick_tensor *boxes, wick_tensor *scores,
                                      const wick_suppression_desc *desc) {
    static const wick_suppression_desc defaults;
    if (!boxes || !scores || !check(boxes, scores)) return NULL;
    wk_heap *const heap = wk_device_heap(boxes->device);
    work w = {.desc = desc ? desc : &defaults,
              .n = boxes->view.extent[0],
              .c = scores->view.extent[1],
              .k = boxes->view.extent[1]};
    const size_t n_boxes = (size_t)wick_tensor_size(boxes), k = (size_t)w.k;
    const size_t n_scores = (size_t)wick_tensor_size(scores);
    w.boxes = wk_alloc_array(heap, n_boxes + 1, sizeof *w.boxes);
    w.scores = wk_alloc_array(heap, n_scores + 1, sizeof *w.scores);
    w.sorted = wk_alloc_array(heap, k + 1, sizeof *w.sorted);
    w.chosen = wk_alloc_array(heap, n_scores + 1, 3 * sizeof *w.chosen);
    wick_tensor *y = NULL;
    if (!w.boxes || !w.scores || !w.sorted || !w.chosen)
        wk_device_fail(boxes->device, WICK_ERR_OUT_OF_MEMORY, "%s: no memory for %zu scores", name,
                       n_scores);
    else if (read_all(boxes, w.boxes) && read_all(scores, w.scores)) {
        for (int64_t i = 0; i < w.n * w.c; i++) choose(&w, i / w.c, i % w.c);
        y = wick_tensor_from_data(boxes->device, WICK_U32, WICK_SHAPE((int64_t)w.n_chosen, 3),
                                  w.chosen, 3 * w.n_chosen * sizeof *w.chosen);
    }
    wk_free(heap, w.chosen, w.chosen ? (n_scores + 1) * 3 * sizeof *w.chosen : 0);
    wk_free(heap, w.sorted, w.sorted ? (k + 1) * sizeof *w.sorted : 0);
    wk_free(heap, w.scores, w.scores ? (n_scores + 1) * sizeof *w.scores : 0);
    wk_free(heap, w.boxes, w.boxes ? (n_boxes + 1) * sizeof *w.boxes : 0);
    return y;
}
