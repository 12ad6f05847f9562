/* ops/sample.c: see sample.h. */
#include "ops/sample.h"

#include <math.h>

static wick_tensor *number(const wick_tensor *like, double value) {
    return like ? wick_full(like->device, like->view.dtype, WICK_SCALAR, value) : NULL;
}

/* --- Taps along a dim --- */

/* Mirrors at low and low + span: the distance from low goes up and down with a period of 2 span. */
static wick_tensor *reflected(const wk_tap_rule *r, wick_tensor *at) {
    const double low = r->align_corners ? 0 : -0.5;
    const double span = (double)(r->align_corners ? r->extent - 1 : r->extent);
    if (span == 0) return wick_affine(at, 0, 0);
    wick_tensor *const distance = wick_abs(wick_affine(at, 1, -low));
    wick_tensor *const period = wick_fmod(distance, number(at, 2 * span));
    return wick_affine(wick_abs(wick_affine(period, 1, -span)), -1, low + span);
}

static wick_tensor *held(const wk_tap_rule *r, wick_tensor *at) {
    return wick_clamp(at, 0, (double)(r->extent - 1));
}

/* The tap at a whole number j. */
static wk_tap tap_at(const wk_tap_rule *r, wick_tensor *j, wick_tensor *weight) {
    const bool is_mirrored = r->padding == WICK_PAD_REFLECT && r->mode == WICK_RESIZE_CUBIC;
    wick_tensor *const element = held(r, is_mirrored ? reflected(r, j) : j);
    wick_tensor *const inside = r->padding == WICK_PAD_CONSTANT ? wick_eq(j, element) : NULL;
    return (wk_tap){wick_cast(element, WICK_U32), weight, inside};
}

/* ((a t + b) t + c) t + d */
static wick_tensor *cubic(wick_tensor *t, double a, double b, double c, double d) {
    wick_tensor *const square = wick_affine(wick_mul(t, wick_affine(t, a, b)), 1, c);
    return wick_affine(wick_mul(t, square), 1, d);
}

/* The weights of resize.c, as polynomials in t, the distance from the second of four (Keys, 1981;
 * a = -0.75). */
static void weigh_cubic(wick_tensor *t, wick_tensor *weight[WK_MOST_TAPS]) {
    const double a = -0.75;
    weight[0] = cubic(t, a, -2 * a, a, 0);
    weight[1] = cubic(t, a + 2, -(a + 3), 0, 1);
    weight[2] = cubic(t, -(a + 2), 2 * a + 3, -a, 0);
    weight[3] = cubic(t, -a, a, 0, 0);
}

int wk_make_taps(const wk_tap_rule *r, wick_tensor *at, wk_tap taps[WK_MOST_TAPS]) {
    static const int counts[] = {1, 2, WK_MOST_TAPS};
    const double far = 2 * WK_MOST_TAPS; /* from there on nothing changes any more */
    if (r->padding != WICK_PAD_REFLECT) at = wick_clamp(at, -far, (double)r->extent + far);
    if (r->mode != WICK_RESIZE_CUBIC && r->padding != WICK_PAD_CONSTANT)
        at = held(r, r->padding == WICK_PAD_REFLECT ? reflected(r, at) : at);
    if (r->mode == WICK_RESIZE_NEAREST) {
        taps[0] = tap_at(r, wick_round(at), NULL);
        return 1;
    }
    wick_tensor *const left = wick_floor(at), *const share = wick_sub(at, left);
    wick_tensor *weight[WK_MOST_TAPS] = {NULL};
    if (r->mode == WICK_RESIZE_CUBIC) {
        weigh_cubic(share, weight);
    } else {
        weight[0] = wick_affine(share, -1, 1);
        weight[1] = share;
    }
    const int n = counts[r->mode], first = r->mode == WICK_RESIZE_CUBIC ? -1 : 0;
    for (int k = 0; k < n; k++) taps[k] = tap_at(r, wick_affine(left, 1, first + k), weight[k]);
    return n;
}

/* --- All dims --- */

static wick_tensor *product(wick_tensor *a, wick_tensor *b) {
    return a && b ? wick_mul(a, b) : a ? a : b;
}

/* A tap of one more dim. */
static wk_tap join(wk_tap before, wk_tap next, int64_t extent) {
    wick_tensor *const rows = before.index ? wick_affine(before.index, (double)extent, 0) : NULL;
    return (wk_tap){rows ? wick_add(rows, next.index) : next.index,
                    product(before.weight, next.weight), product(before.inside, next.inside)};
}

/* Numbers of all places as [n, c, places]. */
static wick_tensor *for_channels(const wk_sampling *s, wick_tensor *x) {
    const int64_t n = s->x->view.extent[0], c = s->x->view.extent[1];
    return wick_expand(wick_reshape(x, WICK_SHAPE(n, 1, s->n_places)),
                       WICK_SHAPE(n, c, s->n_places));
}

/* The elements of one tap times its weight. Outside is the zero after the last element. */
static wick_tensor *weighted(const wk_sampling *s, wk_tap tap) {
    if (!s->x || !tap.index) return NULL;
    wick_shape shape = wk_tensor_shape_of(tap.index);
    wick_tensor *index = tap.index;
    if (tap.inside) {
        const double zero = (double)(s->x->view.extent[2] - 1);
        index =
            wick_where(tap.inside, index, wick_full(index->device, WICK_U32, WICK_SCALAR, zero));
    }
    wick_tensor *const y = wick_gather(s->x, 2, for_channels(s, index));
    if (!tap.weight) return y;
    return wick_mul(y, for_channels(s, wick_expand(tap.weight, shape)));
}

/* The taps of corner number i: one of each dim. */
static wk_tap corner(const wk_sampling *s, int i) {
    wk_tap tap = s->first;
    for (int d = 0; d < s->n_dims; d++, i /= s->n_taps)
        tap = join(tap, s->taps[d][i % s->n_taps], s->extent[d]);
    return tap;
}

wick_tensor *wk_sample(const wk_sampling *s) {
    wk_sampling padded = *s;
    const int64_t before = 0, after = 1;
    int n_corners = 1;
    if (s->taps[0][0].inside) padded.x = wk_padded(s->x, 2, 1, &before, &after, 0);
    for (int d = 0; d < s->n_dims; d++) n_corners *= s->n_taps;
    wick_tensor *sum = weighted(&padded, corner(s, 0));
    for (int i = 1; i < n_corners; i++) {
        wick_tensor *const part = weighted(&padded, corner(s, i));
        sum = s->is_largest ? wick_maximum(sum, part) : wick_add(sum, part);
    }
    return sum;
}
