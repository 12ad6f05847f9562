/* ops/split.c: several views at once: split, unstack, meshgrid; and squeeze of several dims. */
#include <wick/ops.h>

#include "core/shape.h"
#include "ops/operand.h"

#include <inttypes.h>

/* All of out [n], or none. */
static size_t complete(wick_tensor **out, size_t n) {
    bool is_complete = true;
    for (size_t i = 0; i < n; i++) is_complete &= out[i] != NULL;
    for (size_t i = 0; !is_complete && i < n; i++) {
        wick_release(out[i]);
        out[i] = NULL;
    }
    return is_complete ? n : 0;
}

static bool has_room(const char *op, const wick_tensor *x, wick_tensor *const *out) {
    if (out) return true;
    wk_device_fail(x->device, WICK_ERR_ARGUMENT, "%s: out is NULL", op);
    return false;
}

size_t wick_split(wick_tensor *x, size_t count, const int64_t *sizes, int dim, wick_tensor **out) {
    if (!x) return 0;
    int d;
    if (!wk_operand_dim("split", x, dim, &d) || !has_room("split", x, out)) return 0;
    if (!sizes) count = 0;
    int64_t left = x->view.extent[d];
    for (size_t i = 0; i < count; i++) {
        if (sizes[i] < 0) {
            wk_device_fail(x->device, WICK_ERR_VALUE, "split: part %zu has size %" PRId64, i,
                           sizes[i]);
            return 0;
        }
        left = left >= sizes[i] ? left - sizes[i] : -1;
    }
    if (left != 0 || count == 0) {
        wk_device_fail(x->device, WICK_ERR_SHAPE,
                       "split: the sizes do not add up to dim %d of %" PRId64, dim,
                       x->view.extent[d]);
        return 0;
    }
    int64_t start = 0;
    for (size_t i = 0; i < count; i++) {
        out[i] = wick_narrow(x, d, start, sizes[i]);
        start += sizes[i];
    }
    return complete(out, count);
}

size_t wick_unstack(wick_tensor *x, int dim, wick_tensor **out) {
    if (!x) return 0;
    int d;
    if (!wk_operand_dim("unstack", x, dim, &d) || !has_room("unstack", x, out)) return 0;
    const size_t count = (size_t)x->view.extent[d];
    for (size_t i = 0; i < count; i++) {
        wick_tensor *const part = wick_narrow(x, d, (int64_t)i, 1);
        out[i] = wick_squeeze(part, d);
        wick_release(part);
    }
    return complete(out, count);
}

static bool check_meshgrid(wick_tensor *const *x, size_t count, wick_tensor *const *out) {
    if (!has_room("meshgrid", x[0], out)) return false;
    if (count > WICK_MAX_RANK) {
        wk_device_fail(x[0]->device, WICK_ERR_SHAPE, "meshgrid: the rank cannot exceed %d",
                       WICK_MAX_RANK);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!wk_operand_is_scalars("meshgrid", x[i])) return false;
        if (!wk_operands_same_dtype("meshgrid", x[0], x[i])) return false;
        if (x[i]->view.rank <= 1) continue;
        wk_device_fail(x[0]->device, WICK_ERR_SHAPE, "meshgrid: operand %zu has rank %d, not 1", i,
                       x[i]->view.rank);
        return false;
    }
    return true;
}

size_t wick_meshgrid(wick_tensor *const *x, size_t count, wick_meshgrid_indexing indexing,
                     wick_tensor **out) {
    if (!x || count == 0 || !wk_operands_present("meshgrid", x, count)) return 0;
    if (!check_meshgrid(x, count, out)) return 0;
    /* In the order xy the first two dims change places. */
    const bool is_swapped = indexing == WICK_MESHGRID_XY && count > 1;
    int at[WICK_MAX_RANK];
    wick_shape shape = {.rank = (int)count};
    for (int i = 0; i < shape.rank; i++) {
        at[i] = is_swapped && i < 2 ? 1 - i : i;
        shape.extent[at[i]] = wick_tensor_size(x[i]);
    }
    for (int i = 0; i < shape.rank; i++) {
        wick_shape alone = {.rank = shape.rank};
        for (int j = 0; j < shape.rank; j++) alone.extent[j] = j == at[i] ? shape.extent[j] : 1;
        wick_tensor *const column = wick_reshape(x[i], alone);
        out[i] = wick_expand(column, shape);
        wick_release(column);
    }
    return complete(out, count);
}

wick_tensor *wick_squeeze_dims(wick_tensor *x, int n_dims, const int *dims) {
    if (!x) return NULL;
    bool named[WICK_MAX_RANK];
    if (!wk_operand_dims("squeeze_dims", x, n_dims, dims, named)) return NULL;
    wick_shape shape = {0};
    for (int i = 0; i < x->view.rank; i++) {
        if (!named[i] || x->view.extent[i] != 1) shape.extent[shape.rank++] = x->view.extent[i];
    }
    return wick_reshape(x, shape);
}
