/* Operations on arrays that are made of others: contents, memory, ownership, refusals. */
#include "ops_fixture.h"

#include <limits.h>
#include <math.h>

#define LIST(...) ((const int64_t[]){__VA_ARGS__})
#define DIMS(...) ((const int[]){__VA_ARGS__})

/* --- Views --- */

static wk_view_step last_step;

static void keep_step(void *user, const wk_view_made *made) {
    (void)user;
    last_step = *made->step;
}

static void test_views(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = count_up(device, WICK_SHAPE(2, 3, 4));
    seen s = {0};
    wk_observer *const observer =
        wk_observer_add(device, &(wk_observer_hooks){.op = observe, .view = keep_step, .user = &s});
    wick_tensor *parts[4];
    assert_int_equal(wick_unstack(x, 1, parts), 3);
    assert_int_equal(wick_split(x, 2, LIST(1, 3), -1, parts), 2);
    assert_shape(parts[1], WICK_SHAPE(2, 3, 3));
    wick_tensor *const views[] = {
        wick_movedim(x, 1, DIMS(0), DIMS(-1)),
        wick_movedim(x, 0, NULL, NULL),
        wick_matrix_transpose(x),
        wick_squeeze_dims(x, 0, NULL),
        parts[0],
        wick_unfold(x, 2, 3, 1),
        wick_diagonal(x, 0, 1, 2),
    };
    const wick_shape shapes[] = {WICK_SHAPE(3, 4, 2), WICK_SHAPE(2, 3, 4), WICK_SHAPE(2, 4, 3),
                                 WICK_SHAPE(2, 3, 4), WICK_SHAPE(2, 3, 1), WICK_SHAPE(2, 3, 2, 3),
                                 WICK_SHAPE(2, 3)};
    for (size_t i = 0; i < WK_COUNT(views); i++) {
        assert_shape(views[i], shapes[i]);
        assert_ptr_equal(views[i]->view.buf, x->view.buf);
    }
    assert_int_equal(s.n, 0);
    assert_int_equal(last_step.kind, WK_VIEW_DIAGONAL);
    assert_int_equal(last_step.diagonal.dim[0], 1);
    assert_int_equal(last_step.diagonal.dim[1], 2);
    wick_unfold(x, -2, 2, 5);
    assert_int_equal(last_step.kind, WK_VIEW_WINDOWS);
    assert_int_equal(last_step.windows.dim, 1);
    assert_int_equal(last_step.windows.size, 2);
    assert_int_equal(last_step.windows.step, 5);
    wk_observer_remove(observer);
    wick_scope_end(scope);
}

static void test_overlapping_windows(void **state) {
    wick_tensor *const x = count_up(device_of(state), WICK_SHAPE(5));
    wick_tensor *const windows = wick_unfold(x, 0, 3, 1);
    ASSERT_FLOATS(wick_retain(windows), 0, 1, 2, 1, 2, 3, 2, 3, 4);
    ASSERT_FLOATS(wick_flatten(windows, 0, 1), 0, 1, 2, 1, 2, 3, 2, 3, 4);
    ASSERT_FLOATS(wick_fold(windows, 0, 5, 1), 0, 2, 6, 6, 4);
    ASSERT_FLOATS(wick_fold(windows, -1, 8, 2), 0, 1, 3, 2, 5, 3, 4, 0);
    wick_release(windows);
    wick_release(x);
}

/* --- Copies --- */

/* What copies never shares memory with its operand, also where nothing changes. */
static void test_copies_are_copies(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = count_up(device, WICK_SHAPE(1, 4, 2, 1));
    wick_tensor *const all = wick_ones(device, WICK_U8, WICK_SHAPE(1));
    const int64_t zeros[4] = {0}, ones[] = {1, 1, 1, 1};
    wick_tensor *const copies[] = {
        wick_repeat(x, 4, ones),
        wick_tile(x, 0, NULL),
        wick_repeat_interleave(x, 1, 0),
        wick_roll(x, 1, LIST(8), NULL),
        wick_roll(x, 0, NULL, DIMS(0)),
        wick_flip(x, 2, DIMS(0, 3)),
        wick_pad(x, zeros, zeros, WICK_PAD_CIRCULAR, 0),
        wick_diff(x, 0, 0),
        wick_im2col(x, ones, NULL, NULL, NULL),
        wick_pixel_shuffle(x, 1),
        wick_channel_shuffle(x, 4),
        wick_masked_select(x, all, 8),
        wick_slice_assign(x, zeros, ones, wick_ones(device, WICK_F32, WICK_SHAPE(1, 1, 1, 1))),
    };
    for (size_t i = 0; i < WK_COUNT(copies); i++) {
        assert_non_null(copies[i]);
        assert_int_equal(wick_tensor_size(copies[i]), 8);
        assert_ptr_not_equal(copies[i]->view.buf, x->view.buf);
        assert_non_null(wick_fill(copies[i], -1));
    }
    ASSERT_FLOATS(wick_retain(x), 0, 1, 2, 3, 4, 5, 6, 7);
    wick_scope_end(scope);
}

/* The bits of every type move as they are. */
static void test_every_dtype(void **state) {
    wick_device *const device = device_of(state);
    static const wick_dtype dtypes[] = {WICK_F32, WICK_F16, WICK_BF16, WICK_F64, WICK_I64, WICK_I32,
                                        WICK_I16, WICK_I8,  WICK_U32,  WICK_U8,  WICK_BOOL};
    for (size_t i = 0; i < WK_COUNT(dtypes); i++) {
        const wick_scope scope = wick_scope_begin(device);
        wick_tensor *const eye = wick_eye(device, dtypes[i], 3);
        wick_tensor *const x = wick_transpose(wick_narrow(eye, 0, 0, 2), 0, 1); /* [3, 2] */
        wick_tensor *const results[] = {
            wick_flip(x, 0, NULL),
            wick_flip(x, 0, DIMS(0)),
            wick_roll(x, 2, LIST(1, -1), DIMS(0, 1)),
            wick_pad(x, LIST(0, 1), LIST(-1, 0), WICK_PAD_REFLECT, 0),
            wick_repeat(x, 2, LIST(1, 2)),
            wick_one_hot(wick_arange(device, WICK_U32, 0, 2, 1), 3, dtypes[i]),
            wick_masked_select(x, wick_cast(x, WICK_BOOL), -1),
            wick_unique(x, -1, NULL, NULL, NULL),
        };
        const float *const expected[] = {
            (const float[]){0, 0, 1, 0, 0, 1},
            (const float[]){1, 0, 0, 1, 0, 0},
            (const float[]){0, 0, 0, 1, 1, 0},
            (const float[]){0, 1, 0, 1, 0, 1},
            (const float[]){1, 0, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0},
            (const float[]){1, 0, 0, 0, 1, 0},
            (const float[]){1, 1},
            (const float[]){0, 1},
        };
        for (size_t k = 0; k < WK_COUNT(results); k++) {
            assert_non_null(results[k]);
            assert_int_equal(wick_tensor_dtype(results[k]), dtypes[i]);
            assert_floats(wick_retain(wick_cast(results[k], WICK_F32)), expected[k],
                          (size_t)wick_tensor_size(results[k]) * sizeof(float));
        }
        wick_scope_end(scope);
    }
}

static void test_six_dims(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = count_up(device, WICK_SHAPE(2, 1, 2, 1, 2, 1));
    wick_tensor *const y = wick_repeat(x, 6, LIST(1, 2, 1, 1, 1, 2));
    assert_shape(y, WICK_SHAPE(2, 2, 2, 1, 2, 2));
    ASSERT_FLOATS(wick_retain(wick_narrow(y, 0, 1, 1)), 4, 4, 5, 5, 6, 6, 7, 7, 4, 4, 5, 5, 6, 6, 7,
                  7);
    const int64_t many = INT64_C(1) << 60; /* times 8 elements, of which there are none */
    assert_shape(wick_repeat(wick_reshape(x, WICK_SHAPE(4, 2)), 2, LIST(0, many)),
                 WICK_SHAPE(0, 2 * many));
    ASSERT_FLOATS(wick_retain(wick_flip(x, 3, DIMS(0, 2, -2))), 7, 6, 5, 4, 3, 2, 1, 0);
    ASSERT_FLOATS(wick_retain(wick_diagonal(x, 0, 0, 4)), 0, 5, 2, 7);
    assert_shape(wick_pad(x, LIST(0, 0, 0, 0, 0, 1), LIST(0, 0, 0, 0, 0, 1), WICK_PAD_CONSTANT, 1),
                 WICK_SHAPE(2, 1, 2, 1, 2, 3));
    assert_refused(device, wick_unfold(x, 0, 1, 1), WICK_ERR_SHAPE);
    wick_scope_end(scope);
}

/* --- Sums of 16 bits are rounded once --- */

static void test_half_sums(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const ones = wick_ones(device, WICK_F16, WICK_SHAPE(4096, 1));
    wick_tensor *const many = wick_expand(ones, WICK_SHAPE(4096, 1));
    /* 2048 + 1 is not an f16. */
    ASSERT_FLOATS(wick_retain(wick_cast(wick_vecdot(many, ones, 0), WICK_F32)), 4096);
    wick_tensor *const row = wick_reshape(ones, WICK_SHAPE(1, 4096));
    wick_tensor *const square = wick_expand(row, WICK_SHAPE(4096, 4096));
    ASSERT_FLOATS(wick_retain(wick_cast(wick_trace(square, 0), WICK_F32)), 4096);
    wick_tensor *const windows = wick_expand(ones, WICK_SHAPE(4096, 4096));
    wick_tensor *const sum = wick_fold(wick_narrow(windows, 1, 0, 4000), 0, 8095, 1);
    wick_tensor *const middle = wick_narrow(sum, 0, 4050, 1);
    ASSERT_FLOATS(wick_retain(wick_cast(middle, WICK_F32)), 4000);
    wick_scope_end(scope);
}

/* --- Searching --- */

static void test_search_boundaries(void **state) {
    wick_device *const device = device_of(state);
    for (int64_t n = 0; n < 18; n++) {
        const wick_scope scope = wick_scope_begin(device);
        wick_tensor *const sorted = count_up(device, WICK_SHAPE(n));
        wick_tensor *const values =
            wick_arange(device, WICK_F32, -1, (double)n + 1, 0.5); /* -1 -0.5 0 .. n + 0.5 */
        uint32_t left[64], right[64];
        const size_t size = (size_t)(2 * n + 4) * sizeof *left;
        assert_int_equal(wick_read(wick_searchsorted(sorted, values, false), left, size), WICK_OK);
        assert_int_equal(wick_read(wick_searchsorted(sorted, values, true), right, size), WICK_OK);
        for (int64_t i = 0; i < 2 * n + 4; i++) {
            const int64_t below = i <= 2 ? 0 : (i - 1) / 2, upto = i <= 1 ? 0 : i / 2;
            assert_int_equal(left[i], below < n ? below : n);
            assert_int_equal(right[i], upto < n ? upto : n);
        }
        wick_scope_end(scope);
    }
}

/* NaN comes after all elements, and is not found. */
static void test_search_nan(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    const float data[] = {1, NAN, NAN, NAN};
    wick_tensor *const set =
        wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(4), data, sizeof data);
    uint32_t places[4];
    assert_int_equal(wick_read(wick_searchsorted(set, set, false), places, sizeof places), WICK_OK);
    assert_memory_equal(places, ((uint32_t[]){0, 4, 4, 4}), sizeof places);
    assert_int_equal(wick_read(wick_searchsorted(set, set, true), places, sizeof places), WICK_OK);
    assert_memory_equal(places, ((uint32_t[]){1, 4, 4, 4}), sizeof places);
    unsigned char found[4];
    assert_int_equal(wick_read(wick_isin(set, set), found, sizeof found), WICK_OK);
    assert_memory_equal(found, "\1\0\0\0", sizeof found);
    wick_scope_end(scope);
}

/* With a count nothing is read, so that it can be asked for where waiting is not allowed. */
static void test_known_counts(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = wick_roll(count_up(device, WICK_SHAPE(2, 2)), 1, LIST(1), DIMS(0));
    uint32_t places[6];
    assert_int_equal(wick_read(wick_nonzero(x, 3), places, sizeof places), WICK_OK);
    assert_memory_equal(places, ((uint32_t[]){0, 0, 0, 1, 1, 1}), sizeof places);
    ASSERT_FLOATS(wick_retain(wick_masked_select(x, wick_ne(x, wick_zeros_like(x)), 3)), 2, 3, 1);
    ASSERT_FLOATS(wick_retain(wick_unique(x, 4, NULL, NULL, NULL)), 0, 1, 2, 3);

    float none[4];
    wick_tensor *const mask = wick_gt(x, wick_ones_like(x));
    assert_int_equal(wick_read(wick_masked_select(x, mask, 3), none, 3 * sizeof *none),
                     WICK_ERR_INDEX);
    (void)wick_device_error(device, NULL);
    assert_int_equal(wick_read(wick_masked_select(x, mask, 2), none, 2 * sizeof *none), WICK_OK);
    assert_shape(wick_nonzero(wick_zeros_like(x), -1), WICK_SHAPE(0, 2));
    wick_scope_end(scope);
}

static void assert_u32(wick_tensor *x, const uint32_t *expected) {
    uint32_t got[16];
    assert_non_null(x);
    const size_t size = wick_tensor_bytes(x);
    assert_true(size <= sizeof got);
    assert_int_equal(wick_read(x, got, size), WICK_OK);
    assert_memory_equal(got, expected, size);
}

static void test_matrix_transpose(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const m = count_up(device, WICK_SHAPE(2, 3));
    wick_tensor *const many = count_up(device, WICK_SHAPE(2, 1, 3));
    assert_shape(wick_matrix_transpose(many), WICK_SHAPE(2, 3, 1));
    wick_tensor *const turned = wick_contiguous(wick_matrix_transpose(m));
    assert_shape(turned, WICK_SHAPE(3, 2));
    ASSERT_FLOATS(wick_retain(turned), 0, 3, 1, 4, 2, 5);
    wick_scope_end(scope);
}

static void test_cross(void **state) {
    wick_device *const device = device_of(state);
    const float left[] = {1, 2, 3}, right[] = {4, 5, 6};
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const a =
        wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(3), left, sizeof left);
    wick_tensor *const b =
        wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(3), right, sizeof right);
    ASSERT_FLOATS(wick_retain(wick_cross(a, b, -1)), -3, 6, -3);
    ASSERT_FLOATS(wick_retain(wick_cross(b, a, 0)), 3, -6, 3);
    wick_scope_end(scope);
}

/* All results belong to the caller, and without a scope each is to be released. */
static void test_unique(void **state) {
    wick_device *const device = device_of(state);
    const float data[] = {3, 1, 3, 2, 1, 3};
    wick_tensor *const x =
        wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(2, 3), data, sizeof data);
    wick_tensor *indices, *inverse, *counts;
    wick_tensor *const y = wick_unique(x, -1, &indices, &inverse, &counts);
    ASSERT_FLOATS(y, 1, 2, 3);
    assert_u32(indices, (const uint32_t[]){1, 3, 0});
    assert_u32(counts, (const uint32_t[]){2, 1, 3});
    assert_shape(inverse, WICK_SHAPE(2, 3));
    const uint32_t which[] = {2, 0, 2, 1, 0, 2};
    assert_u32(inverse, which);
    wick_tensor *const alone = wick_unique_inverse(x);
    assert_u32(alone, which);
    wick_tensor *const made[] = {x, indices, inverse, counts, alone};
    for (size_t i = 0; i < WK_COUNT(made); i++) wick_release(made[i]);
    const uint8_t flags[] = {1, 0, 1, 1};
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const b =
        wick_tensor_from_data(device, WICK_BOOL, WICK_SHAPE(4), flags, sizeof flags);
    wick_tensor *const of_flags = wick_unique(b, -1, &indices, NULL, &counts);
    assert_int_equal(wick_tensor_dtype(of_flags), WICK_BOOL);
    ASSERT_FLOATS(wick_retain(wick_cast(of_flags, WICK_F32)), 0, 1);
    assert_u32(indices, (const uint32_t[]){1, 0});
    assert_u32(counts, (const uint32_t[]){1, 3});
    wick_scope_end(scope);
}

/* --- Products --- */

static void test_products_with_vectors(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const m = count_up(device, WICK_SHAPE(2, 3)), *const v =
                                                                   count_up(device, WICK_SHAPE(3));
    wick_tensor *const u = count_up(device, WICK_SHAPE(2));
    ASSERT_FLOATS(wick_matmul(m, v), 5, 14);
    ASSERT_FLOATS(wick_matmul(u, m), 3, 4, 5);
    wick_tensor *const scalar = wick_matmul(v, v);
    assert_shape(scalar, WICK_SCALAR);
    ASSERT_FLOATS(scalar, 5);
    assert_refused(device, wick_matmul(v, m), WICK_ERR_SHAPE);
    assert_refused(device, wick_matmul(v, u), WICK_ERR_SHAPE);
    ASSERT_FLOATS(wick_outer(u, v), 0, 0, 0, 0, 1, 2);
    ASSERT_FLOATS(wick_tensordot(m, m, 1, DIMS(0), DIMS(-2)), 9, 12, 15, 12, 17, 22, 15, 22, 29);
    wick_release(u);
    wick_release(v);
    wick_release(m);
}

/* --- Refusals: with a sentence that names the operation, and nothing is queued --- */

static void refused(wick_device *device, const wick_tensor *y, wick_status status,
                    const char *name) {
    wick_error error;
    assert_null(y);
    assert_int_equal(wick_device_error(device, &error), status);
    assert_ptr_equal(strstr(error.message, name), error.message);
}

/* Columns of windows of 4 elements, with 4 places: one too few or too many. */
static void test_columns_that_do_not_fit(void **state) {
    wick_device *const device = device_of(state);
    static const int64_t extents[][2] = {{7, 4}, {9, 4}, {8, 3}, {8, 5}};
    const wick_scope scope = wick_scope_begin(device);
    for (size_t i = 0; i < WK_COUNT(extents); i++) {
        wick_tensor *const x = count_up(device, wick_shape_of(2, extents[i]));
        refused(device, wick_col2im(x, LIST(3, 3), LIST(2, 2), NULL, NULL, NULL), WICK_ERR_SHAPE,
                "col2im:");
    }
    wick_scope_end(scope);
}

static void check_refused_lists(wick_device *device, wick_tensor *v, wick_tensor *x) {
    wick_tensor *parts[WICK_MAX_RANK + 1];
    assert_int_equal(wick_split(x, 2, LIST(1, 1), 0, NULL), 0);
    assert_int_equal(wick_device_error(device, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_split(x, 2, NULL, 0, parts), 0);
    assert_int_equal(wick_device_error(device, NULL), WICK_ERR_SHAPE);
    assert_int_equal(wick_split(x, 2, LIST(INT64_MAX, INT64_MAX), 0, parts), 0);
    assert_int_equal(wick_device_error(device, NULL), WICK_ERR_SHAPE);
    assert_int_equal(wick_meshgrid((wick_tensor *[]){v, x}, 2, WICK_MESHGRID_IJ, parts), 0);
    assert_int_equal(wick_device_error(device, NULL), WICK_ERR_SHAPE);
    wick_tensor *const seven[] = {v, v, v, v, v, v, v};
    assert_int_equal(WK_COUNT(seven), WICK_MAX_RANK + 1);
    assert_int_equal(wick_meshgrid(seven, WK_COUNT(seven), WICK_MESHGRID_IJ, parts), 0);
    assert_int_equal(wick_device_error(device, NULL), WICK_ERR_SHAPE);
}

static void test_refusals(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = count_up(device, WICK_SHAPE(2, 3)), *const v =
                                                                   count_up(device, WICK_SHAPE(3));
    wick_tensor *const flags = wick_ones(device, WICK_BOOL, WICK_SHAPE(2, 3));
    wick_tensor *const wide = wick_ones(device, WICK_F32, WICK_SHAPE(4, 3));
    wick_tensor *const none = wick_zeros(device, WICK_U32, WICK_SHAPE(3, 3));
    wick_tensor *const place = wick_zeros(device, WICK_U32, WICK_SCALAR);
    const int64_t one[2] = {1, 1};
    seen s = {0};
    wk_observer *const observer = begin_observing(device, &s);
#define REFUSED(name, status, ...) refused(device, wick_##name(__VA_ARGS__), status, #name ":")
    REFUSED(index_select, WICK_ERR_SHAPE, x, 0, none);
    REFUSED(index_select, WICK_ERR_SHAPE, x, 0, place);
    refused(device, wick_repeat(x, 2, NULL), WICK_ERR_SHAPE, "repeat: 0 repeats");
    REFUSED(repeat, WICK_ERR_SHAPE, x, 2, LIST(INT64_MAX, 2));
    REFUSED(repeat, WICK_ERR_SHAPE, x, 2, LIST(INT64_MAX / 2, 2));
    REFUSED(repeat, WICK_ERR_VALUE, x, 2, LIST(-1, 0));
    REFUSED(tile, WICK_ERR_VALUE, x, 1, LIST(-1));
    REFUSED(repeat_interleave, WICK_ERR_VALUE, x, -1, 0);
    REFUSED(roll, WICK_ERR_VALUE, x, 2, one, NULL);
    REFUSED(roll, WICK_ERR_VALUE, x, -1, one, DIMS(0));
    REFUSED(movedim, WICK_ERR_DIM, x, 2, DIMS(0, 1), DIMS(0, 0));
    REFUSED(movedim, WICK_ERR_VALUE, x, 1, NULL, NULL);
    REFUSED(matrix_transpose, WICK_ERR_SHAPE, v);
    REFUSED(squeeze_dims, WICK_ERR_DIM, x, 2, DIMS(0, -2));
    REFUSED(pad, WICK_ERR_VALUE, x, one, one, (wick_pad_mode)4, 0);
    REFUSED(pad, WICK_ERR_VALUE, x, NULL, one, WICK_PAD_CONSTANT, 0);
    REFUSED(pad, WICK_ERR_SHAPE, x, LIST(INT64_MAX, 0), one, WICK_PAD_CONSTANT, 0);
    REFUSED(pad, WICK_ERR_SHAPE, x, LIST(INT64_MIN, 0), one, WICK_PAD_CONSTANT, 0);
    REFUSED(slice_assign, WICK_ERR_VALUE, x, NULL, one, x);
    REFUSED(slice_assign, WICK_ERR_VALUE, x, LIST(0, 0), NULL, x);
    REFUSED(slice_assign, WICK_ERR_INDEX, x, LIST(-1, 0), one, x);
    REFUSED(slice_scatter, WICK_ERR_INDEX, x, x, 0, 1);
    REFUSED(slice_scatter, WICK_ERR_INDEX, x, x, 0, INT64_MAX);
    REFUSED(slice_scatter, WICK_ERR_SHAPE, x, v, 0, 0);
    REFUSED(fold, WICK_ERR_SHAPE, v, 0, 3, 1);
    REFUSED(fold, WICK_ERR_SHAPE, x, 0, 5, 1);
    REFUSED(fold, WICK_ERR_DIM, x, 1, 4, 1);
    REFUSED(fold, WICK_ERR_DIM, x, -2, 4, 1);
    REFUSED(fold, WICK_ERR_DIM, x, INT_MIN, 4, 1);
    REFUSED(fold, WICK_ERR_DTYPE, flags, 0, 4, 1);
    REFUSED(im2col, WICK_ERR_SHAPE, x, one, NULL, NULL, NULL);
    REFUSED(pixel_shuffle, WICK_ERR_VALUE, x, INT64_MAX);
    REFUSED(diag, WICK_ERR_SHAPE, v, INT64_MIN);
    REFUSED(trace, WICK_ERR_DTYPE, flags, 0);
    REFUSED(diff, WICK_ERR_DTYPE, flags, 1, 0);
    REFUSED(linspace, WICK_ERR_DTYPE, device, WICK_I32, 0, 1, 2);
    REFUSED(linspace, WICK_ERR_VALUE, device, WICK_F32, 0, 1, -1);
    REFUSED(linspace, WICK_ERR_VALUE, device, WICK_F32, 0, (double)INFINITY, 2);
    REFUSED(masked_fill, WICK_ERR_DTYPE, x, x, 0);
    REFUSED(masked_fill, WICK_ERR_SHAPE, v, wick_narrow(flags, 1, 0, 2), 0);
    REFUSED(masked_select, WICK_ERR_DTYPE, x, v, -1);
    REFUSED(searchsorted, WICK_ERR_SHAPE, x, v, false);
    REFUSED(searchsorted, WICK_ERR_DTYPE, v, flags, false);
    REFUSED(isin, WICK_ERR_DTYPE, flags, flags);
    REFUSED(take, WICK_ERR_DTYPE, x, v);
    REFUSED(take_along_dim, WICK_ERR_SHAPE, wide, 1, none);
    REFUSED(take_along_dim, WICK_ERR_SHAPE, wide, 1, wick_narrow(none, 0, 0, 2));
    REFUSED(dot, WICK_ERR_DTYPE, flags, flags);
    REFUSED(tensordot, WICK_ERR_VALUE, x, x, 1, NULL, NULL);
    REFUSED(tensordot, WICK_ERR_DIM, x, x, 2, DIMS(0, 0), DIMS(0, 1));
#undef REFUSED
    check_refused_lists(device, v, x);
    assert_int_equal(s.n, 0);
    wk_observer_remove(observer);
    wick_scope_end(scope);
}

static void test_blocks_are_refused(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const q = q8_weight(device);
    const int64_t one[2] = {1, 1};
    assert_refused(device, wick_flip(q, 0, NULL), WICK_ERR_DTYPE);
    assert_refused(device, wick_pad(q, one, one, WICK_PAD_REPLICATE, 0), WICK_ERR_DTYPE);
    assert_refused(device, wick_repeat(q, 2, one), WICK_ERR_DTYPE);
    assert_refused(device, wick_unfold(q, 0, 1, 1), WICK_ERR_DTYPE);
    assert_refused(device, wick_diag(q, 0), WICK_ERR_DTYPE);
    assert_refused(device, wick_nonzero(q, -1), WICK_ERR_DTYPE);
    assert_refused(device, wick_unique(q, -1, NULL, NULL, NULL), WICK_ERR_DTYPE);
    assert_refused(device, wick_zeros_like(q), WICK_ERR_DTYPE);
    wick_release(q);
}

static void test_null(void **state) {
    wick_tensor *indices = (wick_tensor *)state, *parts[2];
    assert_null(wick_flip(wick_roll(wick_repeat(NULL, 0, NULL), 1, LIST(1), NULL), 0, NULL));
    assert_null(wick_pad(wick_unfold(NULL, 0, 1, 1), NULL, NULL, WICK_PAD_CONSTANT, 0));
    assert_null(wick_diag(wick_diagonal(wick_fold(NULL, 0, 1, 1), 0, 0, 1), 0));
    assert_null(wick_unique(wick_nonzero(NULL, -1), -1, &indices, NULL, NULL));
    assert_null(indices);
    assert_null(wick_dot(wick_outer(wick_mv(NULL, NULL), NULL), NULL));
    assert_null(wick_zeros_like(wick_empty_like(NULL)));
    assert_int_equal(wick_split(NULL, 1, LIST(1), 0, parts), 0);
    assert_int_equal(wick_unstack(NULL, 0, parts), 0);
}

/* --- Ownership --- */

/* One of each kind; every result is released. */
static bool make_all(wick_tensor *x, wick_tensor *v) {
    wick_tensor *indices = NULL, *inverse = NULL, *counts = NULL, *parts[3] = {NULL};
    wick_tensor *const windows = wick_unfold(v, 0, 2, 1);
    wick_tensor *const made[] = {
        wick_repeat(x, 3, LIST(2, 2, 3)),
        wick_roll(x, 2, LIST(1, 1), DIMS(0, 1)),
        wick_flip(x, 0, NULL),
        wick_pad(x, LIST(1, 1), LIST(1, 0), WICK_PAD_REFLECT, 0),
        wick_pad(x, LIST(1, 1), LIST(-1, 0), WICK_PAD_CONSTANT, 0),
        wick_fold(windows, 0, 3, 1),
        wick_slice_scatter(x, x, 0, 0),
        wick_diag(v, 1),
        wick_diagonal(x, 1, 0, 1),
        wick_cross(v, v, 0),
        wick_tensordot(x, x, 1, DIMS(0), DIMS(0)),
        wick_matmul(x, v),
        wick_linspace(x->device, WICK_F32, 0, 1, 5),
        wick_nonzero(x, 2),
        wick_unique(x, 3, &indices, &inverse, &counts),
        wick_isin(x, v),
    };
    const size_t n_parts = wick_unstack(x, 1, parts);
    bool is_whole = n_parts == 3;
    for (size_t i = 0; i < WK_COUNT(made); i++) {
        is_whole &= made[i] != NULL;
        wick_release(made[i]);
    }
    wick_tensor *const others[] = {windows, indices, inverse, counts, parts[0], parts[1], parts[2]};
    for (size_t i = 0; i < WK_COUNT(others); i++) wick_release(others[i]);
    return is_whole;
}

/* Memory runs out at every place in turn: nothing is left behind (teardown). */
static void test_out_of_memory(void **state) {
    fixture *const f = *state;
    wick_tensor *const x = count_up(f->device, WICK_SHAPE(2, 3));
    wick_tensor *const v = count_up(f->device, WICK_SHAPE(3));
    assert_int_equal(wick_synchronize(f->device), WICK_OK);
    bool is_enough = false;
    for (uint64_t allowed = 0; !is_enough; allowed++) {
        assert_true(allowed < 2000);
        f->allowed = allowed;
        const bool is_whole = make_all(x, v);
        const wick_status status = wick_device_error(f->device, NULL);
        is_enough = is_whole && status == WICK_OK;
        if (!is_enough) assert_int_equal(status, WICK_ERR_OUT_OF_MEMORY);
        f->allowed = UINT64_MAX;
        (void)wick_synchronize(f->device);
        (void)wick_device_error(f->device, NULL);
    }
    wick_release(v);
    wick_release(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_views),
        TEST(test_overlapping_windows),
        TEST(test_copies_are_copies),
        TEST(test_every_dtype),
        TEST(test_six_dims),
        TEST(test_half_sums),
        TEST(test_search_boundaries),
        TEST(test_search_nan),
        TEST(test_known_counts),
        TEST(test_unique),
        TEST(test_matrix_transpose),
        TEST(test_cross),
        TEST(test_columns_that_do_not_fit),
        TEST(test_products_with_vectors),
        TEST(test_refusals),
        TEST(test_blocks_are_refused),
        TEST(test_null),
        TEST(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
