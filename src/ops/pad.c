/* ops/pad.c: borders of a constant, or of a tensor's own elements. */
#include <wick/ops.h>

#include "ops/compose.h"

#include <inttypes.h>

static int64_t positive(int64_t n) { return n > 0 ? n : 0; }

/* Of both: what mode can take from a dim of n elements. */
static int64_t most_pads(wick_pad_mode mode, int64_t n) {
    switch (mode) {
    case WICK_PAD_REFLECT: return n - 1;
    case WICK_PAD_CIRCULAR: return n;
    case WICK_PAD_REPLICATE: return n > 0 ? INT64_MAX : 0;
    case WICK_PAD_CONSTANT: break;
    }
    return INT64_MAX;
}

/* Dim i, of which negative pads cut elements off, first. */
static bool check_dim(const wick_tensor *x, int i, int64_t before, int64_t after,
                      wick_pad_mode mode) {
    const int64_t extent = x->view.extent[i];
    const bool can_be_cut =
        before >= -extent && after >= -extent && extent - positive(-before) - positive(-after) >= 0;
    const int64_t n = can_be_cut ? extent - positive(-before) - positive(-after) : 0;
    const int64_t most = most_pads(mode, n);
    if (can_be_cut && (before <= 0 || before <= most) && (after <= 0 || after <= most) &&
        positive(before) <= INT64_MAX - n && positive(after) <= INT64_MAX - n - positive(before)) {
        return true;
    }
    wk_device_fail(x->device, WICK_ERR_SHAPE,
                   "pad: dim %d of %" PRId64 " cannot have %" PRId64 " before and %" PRId64
                   " after it",
                   i, extent, before, after);
    return false;
}

static wick_tensor *cut(wick_tensor *x, const int64_t *before, const int64_t *after) {
    const int rank = wick_tensor_shape(x).rank;
    for (int i = 0; x && i < rank; i++) {
        if (before[i] >= 0 && after[i] >= 0) continue;
        const int64_t first = positive(-before[i]);
        x = wick_narrow(x, i, first, x->view.extent[i] - first - positive(-after[i]));
    }
    return x;
}

static wick_tensor *pad_constant(wick_tensor *x, const int64_t *before, const int64_t *after,
                                 double value) {
    int64_t pads[2][WICK_MAX_RANK];
    for (int i = 0; i < x->view.rank; i++) {
        pads[0][i] = positive(before[i]);
        pads[1][i] = positive(after[i]);
    }
    return wk_padded(x, 0, x->view.rank, pads[0], pads[1], value);
}

/* n elements that stand before x along dim; is_after: that follow it. */
static wick_tensor *border(wick_tensor *x, int dim, int64_t n, wick_pad_mode mode, bool is_after) {
    wick_shape shape = wk_tensor_shape_of(x);
    const int64_t extent = shape.extent[dim];
    if (mode == WICK_PAD_CIRCULAR) return wick_narrow(x, dim, is_after ? 0 : extent - n, n);
    if (mode == WICK_PAD_REFLECT) {
        wick_tensor *const near = wick_narrow(x, dim, is_after ? extent - 1 - n : 1, n);
        return wick_flip(near, 1, &dim);
    }
    shape.extent[dim] = n;
    return wick_expand(wick_narrow(x, dim, is_after ? extent - 1 : 0, 1), shape);
}

static wick_tensor *pad_dim(wick_tensor *x, int dim, int64_t before, int64_t after,
                            wick_pad_mode mode) {
    if (!x || (before <= 0 && after <= 0)) return x;
    wick_tensor *parts[3];
    size_t n = 0;
    if (before > 0) parts[n++] = border(x, dim, before, mode, false);
    parts[n++] = x;
    if (after > 0) parts[n++] = border(x, dim, after, mode, true);
    return wick_cat(parts, n, dim);
}

wick_tensor *wick_pad(wick_tensor *x, const int64_t *before, const int64_t *after,
                      wick_pad_mode mode, double value) {
    if (!x || !wk_operand_is_scalars("pad", x)) return NULL;
    const int rank = x->view.rank;
    if ((unsigned)mode > WICK_PAD_CIRCULAR || (rank > 0 && (!before || !after))) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "pad: mode %d%s", (int)mode,
                       before && after ? "" : ", no pads");
        return NULL;
    }
    for (int i = 0; i < rank; i++) {
        if (!check_dim(x, i, before[i], after[i], mode)) return NULL;
    }
    const wick_scope scope = wk_operation_begin(x->device, "pad");
    wick_tensor *y = cut(x, before, after);
    if (y && mode == WICK_PAD_CONSTANT) y = pad_constant(y, before, after, value);
    for (int i = 0; mode != WICK_PAD_CONSTANT && i < rank; i++) {
        y = pad_dim(y, i, before[i], after[i], mode);
    }
    return wick_scope_result(scope, wk_fresh(y, x));
}
