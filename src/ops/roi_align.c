/* ops/roi_align.c: boxes of images at a fixed size (He et al., 2017).
 *
 * A box of 2 x 2 outputs with 2 places in each direction of an output: y of the places depends on
 * box, row and place alone, x on box, column and place, so each has its taps, which meet in the
 * sampling.
 *
 *   . . | . .      rows of places, of all boxes: [r, oh g, 1]
 *   . . | . .      columns:                      [r, 1, ow g]
 *   ----+----
 *   . . | . .
 *   . . | . . */
#include "core/shape.h"
#include "ops/indices.h"
#include "ops/sample.h"

#include <inttypes.h>

static const char name[] = "roi_align";

static bool check_desc(const wick_tensor *x, const wick_roi_align_desc *d) {
    if (d && d->size[0] >= 0 && d->size[1] >= 0 && d->sampling_ratio >= 0) return true;
    if (d)
        wk_device_fail(x->device, WICK_ERR_VALUE,
                       "%s: a size of %" PRId64 " x %" PRId64 " with a sampling ratio of %" PRId64,
                       name, d->size[0], d->size[1], d->sampling_ratio);
    else
        wk_device_fail(x->device, WICK_ERR_ARGUMENT, "%s: there is no desc", name);
    return false;
}

static bool check(wick_tensor *x, wick_tensor *boxes, wick_tensor *batch) {
    if (!wk_operands_are_floats(name, (wick_tensor *[]){x, boxes}, 2, 2) ||
        !wk_operands_present(name, (wick_tensor *[]){x, batch}, 2) ||
        !wk_operand_rank(name, "x", x, 4, 4) || !wk_operand_rank(name, "boxes", boxes, 2, 2) ||
        !wk_vector_is_index(name, batch))
        return false;
    const int64_t *const e = x->view.extent;
    if (boxes->view.extent[1] == 4 && batch->view.extent[0] == boxes->view.extent[0] && e[2] > 0 &&
        e[3] > 0 && e[0] * e[2] * e[3] <= UINT32_MAX)
        return true;
    const wick_shape shape = wk_tensor_shape_of(x), of_boxes = wk_tensor_shape_of(boxes);
    char text[2][WK_SHAPE_TEXT];
    wk_device_fail(x->device, WICK_ERR_SHAPE,
                   "%s: boxes %s with %" PRId64 " samples do not fit x %s", name,
                   wk_shape_text(&of_boxes, text[0], sizeof text[0]), batch->view.extent[0],
                   wk_shape_text(&shape, text[1], sizeof text[1]));
    return false;
}

/* One direction of all boxes. */
typedef struct side {
    int64_t extent, size, most;  /* of x, of the result, and places of an output at most */
    wick_tensor *begin, *length; /* [r, 1, 1] */
    wick_tensor *count;          /* places of an output, whole floats */
} side;

static wick_tensor *number(const wick_tensor *like, double value) {
    return like ? wick_full(like->device, like->view.dtype, WICK_SCALAR, value) : NULL;
}

/* Numbers 0, 1, .. as [1, n, 1]. */
static wick_tensor *up_to(const wick_tensor *like, int64_t n) {
    return like ? wk_along(wick_arange(like->device, like->view.dtype, 0, (double)n, 1), 1) : NULL;
}

/* first: 0 for x, 1 for y. */
static bool make_side(const wick_roi_align_desc *d, wick_tensor *boxes, int first, side *s) {
    const double scale = d->scale != 0 ? d->scale : 1, offset = d->is_unaligned ? 0 : 0.5;
    wick_tensor *const begin = wick_narrow(boxes, 1, first, 1);
    wick_tensor *const end = wick_narrow(boxes, 1, 2 + first, 1);
    s->begin = wick_unsqueeze(wick_affine(begin, scale, -offset), 2);
    s->length = wick_unsqueeze(wick_affine(wick_sub(end, begin), scale, 0), 2);
    if (d->is_unaligned) s->length = wick_maximum(s->length, number(s->length, 1));
    s->most = d->sampling_ratio;
    s->count = number(s->length, (double)s->most);
    if (s->most > 0 || !s->length) return s->count != NULL;
    double most;
    s->count = wick_ceil(wick_affine(s->length, 1 / (double)s->size, 0));
    if (wick_read_scalar(wick_max(s->count, 0, NULL, false), &most) != WICK_OK) return false;
    if (!(most < INT32_MAX)) {
        wk_device_fail(boxes->device, WICK_ERR_VALUE, "%s: a box has a side of %g", name, most);
        return false;
    }
    s->most = most > 1 ? (int64_t)most : 1;
    return true;
}

/* The taps of all places of a side, [r, size most, 1]; those that a box does not have are its last
 * one again, which weighs nothing in a mean and changes no maximum. */
static int make_taps(const side *s, bool is_largest, wk_tap taps[WK_MOST_TAPS]) {
    wick_tensor *const bin = wick_affine(s->length, 1 / (double)s->size, 0);
    wick_tensor *const all = up_to(s->length, s->size * s->most);
    wick_tensor *const output =
        wick_floor(wick_affine(all, 1 / (double)s->most, 0.5 / (double)s->most));
    wick_tensor *const place = wick_sub(all, wick_affine(output, (double)s->most, 0));
    wick_tensor *const own = wick_minimum(place, wick_affine(s->count, 1, -1));
    wick_tensor *const share =
        wick_div(wick_affine(own, 1, 0.5), wick_maximum(s->count, number(s->count, 1)));
    wick_tensor *const at = wick_add(s->begin, wick_mul(wick_add(output, share), bin));
    const wk_tap_rule rule = {s->extent, WICK_RESIZE_LINEAR, WICK_PAD_REPLICATE, false};
    const int n = wk_make_taps(&rule, at, taps);
    wick_tensor *const is_near =
        wick_mul(wick_ge(at, number(at, -1)), wick_le(at, number(at, (double)s->extent)));
    wick_tensor *const is_there = wick_gt(s->count, is_largest ? number(s->count, 0) : place);
    wick_tensor *const counts = at ? wick_cast(wick_mul(is_near, is_there), at->view.dtype) : NULL;
    for (int k = 0; k < n; k++) taps[k].weight = wick_mul(taps[k].weight, counts);
    return n;
}

/* Places [1, c, r oh g ow g] to [r, c, oh, ow]. */
static wick_tensor *pool(const wick_roi_align_desc *d, wick_tensor *y, const side *sides,
                         int64_t r) {
    static const int places[] = {3, 5};
    const int64_t c = y ? y->view.extent[1] : 0;
    const int64_t all[] = {c, r, d->size[0], sides[1].most, d->size[1], sides[0].most};
    y = wick_reshape(y, wick_shape_of(6, all));
    if (d->is_largest) {
        y = wick_max(y, 2, places, false);
    } else {
        wick_tensor *const count = wick_mul(sides[0].count, sides[1].count);
        wick_tensor *const divisor = wick_maximum(count, number(count, 1));
        y = wick_div(wick_sum(y, 2, places, false), divisor);
    }
    return wick_contiguous(wick_transpose(y, 0, 1));
}

static wick_tensor *align(wick_tensor *x, wick_tensor *boxes, wick_tensor *batch,
                          const wick_roi_align_desc *d) {
    const int64_t *const e = x->view.extent;
    const int64_t r = boxes->view.extent[0];
    side sides[2] = {{.extent = e[3], .size = d->size[1]}, {.extent = e[2], .size = d->size[0]}};
    for (int i = 0; i < 2; i++)
        if (!make_side(d, boxes, i, &sides[i])) return NULL;
    const int64_t places = sides[0].size * sides[0].most * sides[1].size * sides[1].most;
    wk_sampling s = {
        .x = wick_reshape(wick_transpose(x, 0, 1), WICK_SHAPE(1, e[1], e[0] * e[2] * e[3])),
        .n_dims = 2,
        .extent = {e[2], e[3]},
        .first.index = wick_reshape(wick_cast(batch, WICK_U32), WICK_SHAPE(r, 1, 1)),
        .n_places = r * places,
        .is_largest = d->is_largest};
    s.n_taps = make_taps(&sides[1], d->is_largest, s.taps[0]);
    (void)make_taps(&sides[0], d->is_largest, s.taps[1]);
    for (int k = 0; k < s.n_taps; k++) {
        s.taps[1][k].index = wick_transpose(s.taps[1][k].index, 1, 2);
        s.taps[1][k].weight = wick_transpose(s.taps[1][k].weight, 1, 2);
    }
    return pool(d, wk_sample(&s), sides, r);
}

wick_tensor *wick_roi_align(wick_tensor *x, wick_tensor *boxes, wick_tensor *batch,
                            const wick_roi_align_desc *desc) {
    if (!x || !check_desc(x, desc) || !check(x, boxes, batch)) return NULL;
    const int64_t extents[] = {boxes->view.extent[0], x->view.extent[1], desc->size[0],
                               desc->size[1]};
    const wick_shape shape = wick_shape_of(4, extents);
    const wick_scope scope = wk_operation_begin(x->device, "roi_align");
    if (extents[0] == 0 || extents[2] == 0 || extents[3] == 0)
        return wick_scope_result(scope, wick_zeros(x->device, x->view.dtype, shape));
    wick_tensor *const y = align(wk_widened(x), wk_widened(boxes), batch, desc);
    return wick_scope_result(scope, wk_promoted(y, x->view.dtype));
}
