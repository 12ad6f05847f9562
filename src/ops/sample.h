/* ops/sample.h: elements between those of a tensor, as sums of some of its elements (taps), at
 * places that are tensors themselves. NULL in, NULL out; temporaries. */
#ifndef WK_OPS_SAMPLE_H
#define WK_OPS_SAMPLE_H

#include "ops/compose.h"

#include <wick/nn.h>

enum { WK_MOST_TAPS = 4, WK_SAMPLE_DIMS = 3 };

/* Of each place, or of all taps of some dims together; all broadcast. */
typedef struct wk_tap {
    wick_tensor *index;  /* u32 */
    wick_tensor *weight; /* NULL: 1 */
    wick_tensor *inside; /* u8, 0: where there is nothing; NULL: it is everywhere */
} wk_tap;

/* The taps along a dim of `extent` elements around places at, floats from 0 on; how many. Places
 * and taps outside: padding CONSTANT: zeros; REPLICATE: the element at the end; REFLECT: as in a
 * mirror, which with align_corners stands at the middle of the last element, else at its end. */
typedef struct wk_tap_rule {
    int64_t extent;
    wick_resize_mode mode;
    wick_pad_mode padding;
    bool align_corners;
} wk_tap_rule;
int wk_make_taps(const wk_tap_rule *rule, wick_tensor *at, wk_tap taps[WK_MOST_TAPS]);

/* x [n, c, extents multiplied] widened, and the taps along each of n_dims dims. `first` is what
 * all taps have in common, its index that of an element before the extents of dim 0 count. The sum
 * of the taps' elements, or the largest of them, each times its weight: [n, c, places]. */
typedef struct wk_sampling {
    wick_tensor *x;
    int n_dims;
    int64_t extent[WK_SAMPLE_DIMS];
    int n_taps;
    wk_tap taps[WK_SAMPLE_DIMS][WK_MOST_TAPS];
    wk_tap first;
    int64_t n_places; /* of each sample */
    bool is_largest;
} wk_sampling;
wick_tensor *wk_sample(const wk_sampling *s);

#endif
