/* core/shape.c: extents and strides. */
#include "core/shape.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

/* A rank out of range is kept, so that the first function that checks the shape refuses it. */
wick_shape wick_shape_of(int rank, const int64_t *extent) {
    wick_shape shape = {.rank = rank};
    if (extent == NULL) return shape;
    for (int i = 0; i < rank && i < WICK_MAX_RANK; i++) shape.extent[i] = extent[i];
    return shape;
}

/* An extent 0 counts as 1 in the check for overflow: the strides of an empty shape must fit too,
 * and the answer must not depend on the order of the extents. */
bool wk_shape_count(const wick_shape *shape, int64_t *count) {
    const int64_t small = INT32_MAX; /* the product of two is not too large */
    if (shape->rank < 0 || shape->rank > WICK_MAX_RANK) return false;
    int64_t product = 1;
    bool is_empty = false;
    for (int i = 0; i < shape->rank; i++) {
        const int64_t extent = shape->extent[i];
        if (extent < 0) return false;
        if (extent == 0) {
            is_empty = true;
        } else if ((product > small || extent > small) && product > INT64_MAX / extent) {
            return false;
        } else {
            product *= extent;
        }
    }
    *count = is_empty ? 0 : product;
    return true;
}

bool wk_shape_equal(const wick_shape *a, const wick_shape *b) {
    if (a->rank != b->rank) return false;
    assert(a->rank >= 0 && a->rank <= WICK_MAX_RANK);
    for (int i = 0; i < a->rank; i++) {
        if (a->extent[i] != b->extent[i]) return false;
    }
    return true;
}

void wk_shape_dense(const wick_shape *shape, int64_t stride[WICK_MAX_RANK]) {
    assert(shape->rank >= 0 && shape->rank <= WICK_MAX_RANK);
    int64_t step = 1;
    for (int i = shape->rank - 1; i >= 0; i--) {
        stride[i] = step;
        if (shape->extent[i] > 1) step *= shape->extent[i];
    }
}

/* The stride of an extent of 1 is never used, and a shape without elements uses none. */
bool wk_shape_is_dense(int rank, const int64_t *extent, const int64_t *stride) {
    assert(rank >= 0 && rank <= WICK_MAX_RANK);
    int64_t step = 1;
    bool is_dense = true;
    for (int i = rank - 1; i >= 0; i--) {
        if (extent[i] == 0) return true;
        if (extent[i] == 1) continue;
        if (stride[i] != step) is_dense = false;
        step *= extent[i];
    }
    return is_dense;
}

bool wk_shape_broadcast(const wick_shape *a, const wick_shape *b, wick_shape *out) {
    wick_shape result = {.rank = a->rank > b->rank ? a->rank : b->rank};
    assert(result.rank >= 0 && result.rank <= WICK_MAX_RANK);
    for (int i = 1; i <= result.rank; i++) { /* dimensions from the right */
        const int64_t from_a = i <= a->rank ? a->extent[a->rank - i] : 1;
        const int64_t from_b = i <= b->rank ? b->extent[b->rank - i] : 1;
        if (from_a != from_b && from_a != 1 && from_b != 1) return false;
        result.extent[result.rank - i] = from_a == 1 ? from_b : from_a;
    }
    *out = result;
    return true;
}

bool wk_shape_dim(int rank, int dim, int *out) {
    if (dim < -rank || dim >= rank) return false;
    *out = dim < 0 ? dim + rank : dim;
    return true;
}

/* Removes extents of 1 and joins neighbours that lie as one: dimension i steps over exactly what
 * i + 1 covers. No extent may be 0. Returns the rank that is left. */
static int join_dimensions(const wick_shape *shape, const int64_t *stride, int64_t *joined,
                           int64_t *joined_stride) {
    int rank = 0;
    for (int i = 0; i < shape->rank; i++) {
        const int64_t extent = shape->extent[i];
        if (extent == 1) continue;
        assert(extent > 0);
        if (rank > 0 && joined_stride[rank - 1] == extent * stride[i]) {
            joined[rank - 1] *= extent;
        } else {
            joined[rank++] = extent;
        }
        joined_stride[rank - 1] = stride[i];
    }
    return rank;
}

/* After joining, a view exists if and only if every joined dimension is cut exactly into a run of
 * the new dimensions: going from the right, each new dimension must divide what is left. */
bool wk_shape_restride(const wick_shape *from, const int64_t *from_stride, const wick_shape *to,
                       int64_t *to_stride) {
    int64_t count, to_count;
    if (!wk_shape_count(from, &count) || !wk_shape_count(to, &to_count)) return false;
    if (count != to_count) return false;
    wk_shape_dense(to, to_stride);
    if (count == 0) return true;

    int64_t joined[WICK_MAX_RANK], joined_stride[WICK_MAX_RANK];
    int source = join_dimensions(from, from_stride, joined, joined_stride);
    int64_t left = 1, step = 1; /* of the joined dimension that is being cut */
    for (int i = to->rank - 1; i >= 0; i--) {
        if (to->extent[i] == 1) continue;
        if (left == 1) {
            assert(source > 0); /* the counts are equal */
            source--;
            left = joined[source];
            step = joined_stride[source];
        }
        if (left % to->extent[i] != 0) return false;
        to_stride[i] = step;
        step *= to->extent[i];
        left /= to->extent[i];
    }
    return true;
}

char *wk_shape_text(const wick_shape *shape, char *buf, size_t size) {
    assert(size > 0);
    const bool is_valid = shape->rank <= WICK_MAX_RANK;
    const int rank = is_valid ? shape->rank : WICK_MAX_RANK;
    size_t used = (size_t)snprintf(buf, size, "[");
    for (int i = 0; i < rank && used < size; i++) {
        used += (size_t)snprintf(buf + used, size - used, "%s%" PRId64, i > 0 ? ", " : "",
                                 shape->extent[i]);
    }
    if (used < size) snprintf(buf + used, size - used, "%s", is_valid ? "]" : ", ...]");
    return buf;
}
