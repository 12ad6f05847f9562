/* ops/pixels.c: channels to pixels and back: pixel_shuffle, pixel_unshuffle, channel_shuffle. */
#include <wick/ops.h>

#include "core/shape.h"
#include "ops/operand.h"

#include <inttypes.h>

/* x [.., c, h, w], the leading dims as one. */
typedef struct image {
    int64_t n, c, h, w;
} image;

static bool make_image(const char *op, const wick_tensor *x, int64_t factor, image *out) {
    if (!wk_operand_is_scalars(op, x)) return false;
    const int rank = x->view.rank;
    if (factor < 1 || factor > INT32_MAX) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "%s: factor %" PRId64, op, factor);
        return false;
    }
    if (rank < 3) {
        wk_device_fail(x->device, WICK_ERR_SHAPE, "%s: x has rank %d, not 3 or more", op, rank);
        return false;
    }
    const int64_t *const extent = &x->view.extent[rank - 3];
    *out = (image){.n = 1, .c = extent[0], .h = extent[1], .w = extent[2]};
    for (int i = 0; i < rank - 3; i++) out->n *= x->view.extent[i];
    return true;
}

/* x seen as `parts`, its dims in the order given, as [.., c, h, w]. */
static wick_tensor *rearrange(const char *op, wick_tensor *x, wick_shape parts, const int *order,
                              int64_t c, int64_t h, int64_t w) {
    wick_shape shape = wk_tensor_shape_of(x);
    shape.extent[shape.rank - 3] = c;
    shape.extent[shape.rank - 2] = h;
    shape.extent[shape.rank - 1] = w;
    const wick_scope scope = wk_operation_begin(x->device, op);
    wick_tensor *const y = wick_permute(wick_reshape(x, parts), parts.rank, order);
    return wick_scope_result(scope, wk_fresh(wick_reshape(y, shape), x));
}

wick_tensor *wick_pixel_shuffle(wick_tensor *x, int64_t factor) {
    const int64_t r = factor;
    image i;
    if (!x || !make_image("pixel_shuffle", x, r, &i)) return NULL;
    int64_t count;
    const wick_shape large = {.rank = 3, .extent = {i.h, i.w, r * r}};
    if (i.c % (r * r) != 0 || !wk_shape_count(&large, &count)) {
        wk_device_fail(x->device, WICK_ERR_SHAPE,
                       "pixel_shuffle: %" PRId64 " channels are not a multiple of %" PRId64
                       " squared",
                       i.c, r);
        return NULL;
    }
    const int64_t c = i.c / (r * r);
    return rearrange("pixel_shuffle", x, WICK_SHAPE(i.n, c, r, r, i.h, i.w),
                     (const int[]){0, 1, 4, 2, 5, 3}, c, i.h * r, i.w * r);
}

wick_tensor *wick_pixel_unshuffle(wick_tensor *x, int64_t factor) {
    const int64_t r = factor;
    image i;
    if (!x || !make_image("pixel_unshuffle", x, r, &i)) return NULL;
    int64_t count;
    const wick_shape deep = {.rank = 2, .extent = {i.c, r * r}};
    if (i.h % r != 0 || i.w % r != 0 || !wk_shape_count(&deep, &count)) {
        wk_device_fail(x->device, WICK_ERR_SHAPE,
                       "pixel_unshuffle: %" PRId64 " by %" PRId64
                       " pixels are not a multiple of %" PRId64,
                       i.h, i.w, r);
        return NULL;
    }
    const int64_t h = i.h / r, w = i.w / r;
    return rearrange("pixel_unshuffle", x, WICK_SHAPE(i.n, i.c, h, r, w, r),
                     (const int[]){0, 1, 3, 5, 2, 4}, i.c * r * r, h, w);
}

wick_tensor *wick_channel_shuffle(wick_tensor *x, int64_t groups) {
    static const char op[] = "channel_shuffle";
    if (!x || !wk_operand_is_scalars(op, x)) return NULL;
    if (groups < 1) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "%s: groups is %" PRId64, op, groups);
        return NULL;
    }
    const wick_shape shape = wk_tensor_shape_of(x);
    if (shape.rank < 3 || shape.extent[1] % groups != 0) {
        char text[WK_SHAPE_TEXT];
        wk_device_fail(x->device, WICK_ERR_SHAPE,
                       "%s: %s does not have a channel dim 1 of %" PRId64 " groups and pixels", op,
                       wk_shape_text(&shape, text, sizeof text), groups);
        return NULL;
    }
    int64_t pixels = 1;
    for (int i = 2; i < shape.rank; i++) pixels *= shape.extent[i];
    const wick_shape parts = WICK_SHAPE(shape.extent[0], groups, shape.extent[1] / groups, pixels);
    const wick_scope scope = wk_operation_begin(x->device, op);
    wick_tensor *const y = wick_transpose(wick_reshape(x, parts), 1, 2);
    return wick_scope_result(scope, wk_fresh(wick_reshape(y, shape), x));
}
