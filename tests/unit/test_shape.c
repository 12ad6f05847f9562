/* Extents and strides. */
#include "core/shape.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/rng.h"

#include <string.h>

static void test_count(void **state) {
    (void)state;
    int64_t n = -1;
    wick_shape shape = WICK_SCALAR;
    assert_true(wk_shape_count(&shape, &n) && n == 1);
    shape = WICK_SHAPE(2, 3, 4);
    assert_true(wk_shape_count(&shape, &n) && n == 24);
    shape = WICK_SHAPE(2, 0, 4);
    assert_true(wk_shape_count(&shape, &n) && n == 0);
    shape = WICK_SHAPE(2, -1);
    assert_false(wk_shape_count(&shape, &n));
    shape = WICK_SHAPE(1LL << 32, 1LL << 31);
    assert_false(wk_shape_count(&shape, &n));
    shape = WICK_SHAPE(1LL << 32, 0, 1LL << 31); /* no strides for it */
    assert_false(wk_shape_count(&shape, &n));
    shape = WICK_SHAPE(1LL << 32, (1LL << 31) - 1);
    assert_true(wk_shape_count(&shape, &n));
    shape = WICK_SHAPE(1, 1, 1, 1, 1, 1, 1);
    assert_false(wk_shape_count(&shape, &n));
    shape = wick_shape_of(-1, NULL);
    assert_false(wk_shape_count(&shape, &n));
}

static void test_equal(void **state) {
    (void)state;
    const wick_shape a = WICK_SHAPE(2, 3), b = WICK_SHAPE(2, 3), c = WICK_SHAPE(2, 3, 1);
    const wick_shape d = WICK_SHAPE(3, 2), scalar = WICK_SCALAR;
    assert_true(wk_shape_equal(&a, &b));
    assert_false(wk_shape_equal(&a, &c));
    assert_false(wk_shape_equal(&a, &d));
    assert_true(wk_shape_equal(&scalar, &scalar));
}

static void test_dense(void **state) {
    (void)state;
    const wick_shape shape = WICK_SHAPE(2, 3, 4);
    int64_t stride[WICK_MAX_RANK];
    wk_shape_dense(&shape, stride);
    assert_true(stride[0] == 12 && stride[1] == 4 && stride[2] == 1);
    assert_true(wk_shape_is_dense(shape.rank, shape.extent, stride));
    stride[0] = 24;
    assert_false(wk_shape_is_dense(shape.rank, shape.extent, stride));
    const wick_shape ones = WICK_SHAPE(1, 3, 1), empty = WICK_SHAPE(4, 0, 2);
    assert_true(wk_shape_is_dense(ones.rank, ones.extent, (int64_t[]){99, 1, 77}));
    assert_false(wk_shape_is_dense(ones.rank, ones.extent, (int64_t[]){3, 2, 1}));
    assert_true(wk_shape_is_dense(empty.rank, empty.extent, (int64_t[]){9, 9, 9}));
    const wick_shape scalar = WICK_SCALAR;
    assert_true(wk_shape_is_dense(scalar.rank, scalar.extent, stride));
}

static void test_broadcast(void **state) {
    (void)state;
    wick_shape a = WICK_SHAPE(4, 1, 3), b = WICK_SHAPE(5, 1), out;
    const wick_shape both = WICK_SHAPE(4, 5, 3);
    assert_true(wk_shape_broadcast(&a, &b, &out) && wk_shape_equal(&out, &both));
    assert_true(wk_shape_broadcast(&b, &a, &out) && wk_shape_equal(&out, &both));
    b = WICK_SCALAR;
    assert_true(wk_shape_broadcast(&a, &b, &out) && wk_shape_equal(&out, &a));
    b = WICK_SHAPE(0, 3);
    const wick_shape empty = WICK_SHAPE(4, 0, 3);
    assert_true(wk_shape_broadcast(&a, &b, &out) && wk_shape_equal(&out, &empty));
    b = WICK_SHAPE(2);
    assert_false(wk_shape_broadcast(&a, &b, &out));
    b = WICK_SHAPE(0);
    assert_false(wk_shape_broadcast(&a, &b, &out));
}

static void test_dim(void **state) {
    (void)state;
    int dim = 9;
    assert_true(wk_shape_dim(3, -1, &dim) && dim == 2);
    assert_true(wk_shape_dim(3, -3, &dim) && dim == 0);
    assert_true(wk_shape_dim(3, 2, &dim) && dim == 2);
    assert_false(wk_shape_dim(3, 3, &dim));
    assert_false(wk_shape_dim(3, -4, &dim));
    assert_false(wk_shape_dim(0, 0, &dim));
    assert_false(wk_shape_dim(0, -1, &dim));
}

/* Position in memory of element i in row-major order. */
static int64_t position(const wick_shape *shape, const int64_t *stride, int64_t i) {
    int64_t at = 0;
    for (int d = shape->rank - 1; d >= 0; d--) {
        at += i % shape->extent[d] * stride[d];
        i /= shape->extent[d];
    }
    return at;
}

/* Whether any strides at all give shape "to" the positions of "from": the stride of a dimension can
 * only be the distance of its first two elements. */
static bool view_exists(const wick_shape *from, const int64_t *from_stride, const wick_shape *to,
                        int64_t count) {
    int64_t stride[WICK_MAX_RANK] = {0};
    int64_t inner = 1;
    for (int d = to->rank - 1; d >= 0; d--) {
        if (to->extent[d] > 1) stride[d] = position(from, from_stride, inner);
        inner *= to->extent[d];
    }
    for (int64_t i = 0; i < count; i++) {
        if (position(to, stride, i) != position(from, from_stride, i)) return false;
    }
    return true;
}

/* A shape of 24 elements, in a random order of factors. */
static wick_shape random_shape(wk_rng *rng) {
    int64_t extent[WICK_MAX_RANK] = {1, 1, 1, 1, 1, 1};
    const int rank = 1 + (int)(wk_rng_u32(rng) % WICK_MAX_RANK);
    static const int64_t factors[] = {2, 2, 2, 3};
    for (int i = 0; i < 4; i++) extent[wk_rng_u32(rng) % (uint32_t)rank] *= factors[i];
    return wick_shape_of(rank, extent);
}

/* Dense strides of a permutation, some dimensions then with gaps or expanded (stride 0). */
static void random_strides(wk_rng *rng, const wick_shape *shape, int64_t *stride) {
    int order[WICK_MAX_RANK];
    const int n_swaps = (int)(wk_rng_u32(rng) % 3);
    for (int i = 0; i < shape->rank; i++) order[i] = i;
    for (int i = 0; i < n_swaps; i++) {
        const int a = (int)(wk_rng_u32(rng) % (uint32_t)shape->rank);
        const int b = (int)(wk_rng_u32(rng) % (uint32_t)shape->rank);
        const int kept = order[a];
        order[a] = order[b];
        order[b] = kept;
    }
    int64_t step = 1;
    for (int i = shape->rank - 1; i >= 0; i--) {
        const uint32_t kind = wk_rng_u32(rng) % 8;
        stride[order[i]] = kind == 0 ? 0 : step;
        step *= shape->extent[order[i]];
        if (kind == 1) step += 1;
    }
}

static void test_restride_random(void **state) {
    (void)state;
    wk_rng rng = {.seed = 3};
    int n_views = 0;
    enum { N = 50000 };
    for (int i = 0; i < N; i++) {
        const wick_shape from = random_shape(&rng), to = random_shape(&rng);
        int64_t from_stride[WICK_MAX_RANK], to_stride[WICK_MAX_RANK];
        random_strides(&rng, &from, from_stride);
        const bool found = wk_shape_restride(&from, from_stride, &to, to_stride);
        assert_int_equal(found, view_exists(&from, from_stride, &to, 24));
        for (int64_t k = 0; found && k < 24; k++) {
            assert_true(position(&to, to_stride, k) == position(&from, from_stride, k));
        }
        n_views += found;
    }
    assert_in_range(n_views, N / 10, N - N / 10);
}

static void test_restride_special(void **state) {
    (void)state;
    int64_t stride[WICK_MAX_RANK];
    const wick_shape flat = WICK_SHAPE(6), matrix = WICK_SHAPE(2, 3), scalar = WICK_SCALAR;
    const wick_shape one = WICK_SHAPE(1, 1), empty = WICK_SHAPE(0, 3), empty_too = WICK_SHAPE(5, 0);
    const wick_shape other = WICK_SHAPE(7), wrong = WICK_SHAPE(-6);
    assert_true(wk_shape_restride(&flat, (int64_t[]){2}, &matrix, stride));
    assert_true(stride[0] == 6 && stride[1] == 2);
    assert_false(wk_shape_restride(&matrix, (int64_t[]){1, 2}, &flat, stride));
    assert_true(wk_shape_restride(&matrix, (int64_t[]){0, 0}, &flat, stride) && stride[0] == 0);
    stride[0] = stride[1] = -1; /* nothing of the source says what these are */
    assert_true(wk_shape_restride(&scalar, (int64_t[]){0}, &one, stride));
    assert_true(stride[0] == 1 && stride[1] == 1);
    assert_true(wk_shape_restride(&one, (int64_t[]){5, 5}, &scalar, stride));
    stride[0] = stride[1] = -1;
    assert_true(wk_shape_restride(&empty, (int64_t[]){7, 9}, &empty_too, stride));
    int64_t dense[WICK_MAX_RANK];
    wk_shape_dense(&empty_too, dense);
    assert_true(stride[0] == dense[0] && stride[1] == dense[1]);
    assert_false(wk_shape_restride(&flat, (int64_t[]){1}, &other, stride));
    assert_false(wk_shape_restride(&flat, (int64_t[]){1}, &wrong, stride));
}

static void test_text(void **state) {
    (void)state;
    char buf[200];
    wick_shape shape = WICK_SHAPE(2, 30000000000, 4);
    assert_string_equal(wk_shape_text(&shape, buf, sizeof buf), "[2, 30000000000, 4]");
    assert_string_equal(wk_shape_text(&shape, buf, 8), "[2, 300");
    assert_string_equal(wk_shape_text(&shape, buf, 1), "");
    shape = WICK_SCALAR;
    assert_string_equal(wk_shape_text(&shape, buf, sizeof buf), "[]");
    shape = WICK_SHAPE(1, 2, 3, 4, 5, 6, 7);
    assert_string_equal(wk_shape_text(&shape, buf, sizeof buf), "[1, 2, 3, 4, 5, 6, ...]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_count),
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_dense),
        cmocka_unit_test(test_broadcast),
        cmocka_unit_test(test_dim),
        cmocka_unit_test(test_restride_random),
        cmocka_unit_test(test_restride_special),
        cmocka_unit_test(test_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
