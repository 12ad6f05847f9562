/* tests/gpu/webgpu_ops_ordering.c: the largest elements, sorted rows and scattered sources, which
 * must be the CPU's bit by bit. */
#include "webgpu_ops.h"

#include "core/compiler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

/* --- The largest elements --- */

/* Numbers of which many are equal, made on the CPU. */
static wick_tensor *numbers(wick_device *device, wick_dtype dtype, int64_t rows, int64_t n) {
    const size_t count = (size_t)(rows * n);
    float *const values = malloc(count * sizeof *values);
    uint32_t bits = (uint32_t)count;
    assert_non_null(values);
    for (size_t i = 0; i < count; i++) {
        bits = bits * 1664525 + 1013904223;
        values[i] = i % 97 == 5 ? (float)NAN : (float)((int)(bits >> 8) % 5000 - 2500) / 8;
    }
    wick_tensor *const t = wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(rows, n), values,
                                                 count * sizeof *values);
    wick_tensor *const y = wick_cast(t, dtype);
    wick_release(t);
    free(values);
    return y;
}

/* NaN, which may be of other bits, becomes a number that is not among the others. */
static wick_tensor *without_nan(wick_tensor *x) {
    wick_tensor *const cond = wick_ne(x, x);
    wick_tensor *const other =
        wick_full(wick_tensor_device(x), wick_tensor_dtype(x), WICK_SHAPE(1), 4096);
    wick_tensor *const y = wick_where(cond, other, x);
    wick_release(cond);
    wick_release(other);
    return y;
}

/* x: the same on both devices, released here. */
static void check_largest(wick_tensor *const x[2], int64_t k) {
    wick_tensor *places[2], *values[2];
    for (int i = 0; i < 2; i++) {
        values[i] = wick_top_k(x[i], k, 1, &places[i]);
        if (!values[i]) fail_msg("there is no top-k");
    }
    assert_same(places[0], places[1]);
    wick_tensor *const v[2] = {without_nan(values[0]), without_nan(values[1])};
    assert_same(v[0], v[1]);
    for (int i = 0; i < 2; i++) {
        wick_release(x[i]);
        wick_release(v[i]);
        wick_release(places[i]);
        wick_release(values[i]);
    }
}

static void check_top_k(wick_device *gpu, wick_device *cpu, wick_dtype dtype, const int64_t *size) {
    wick_tensor *const x[2] = {numbers(gpu, dtype, size[0], size[1]),
                               numbers(cpu, dtype, size[0], size[1])};
    check_largest(x, size[2]);
}

static void the_largest_are_the_cpus(void **state) {
    static const int64_t sizes[][3] = {
        {1, 1, 1},        {300, 8, 2},     {100, 128, 8},    {70, 512, 10},
        {40, 1000, 1000}, {3, 1024, 1024}, {3, 1025, 512},   {2, 5000, 511},
        {1, 49152, 40},   {1, 262144, 1},  {1, 262144, 512}, {2, 256, 128},
        {2, 257, 128},    {2, 257, 129},   {2, 8192, 128},   {3, 8193, 127},
    };
    (void)state;
    wick_device *const gpu = open_device(&manners[0], true), *const cpu = open_device(NULL, false);
    for (size_t i = 0; i < WK_COUNT(sizes); i++)
        check_top_k(gpu, cpu, narrow_floats[i % N_NARROW_FLOATS], sizes[i]);
    wick_device_close(gpu);
    wick_device_close(cpu);
}

/* The large numbers lie in 127 of 256 columns, so that more than a tile passes the bound, and the
 * kernel sorts everything. In the second row the last part has none of them. */
static void many_large_ones_are_near_each_other(void **state) {
    enum { N = 8192 + 300, ROWS = 2, K = 128, THREADS = 256 };
    static float values[ROWS][N];
    for (int i = 0; i < ROWS * N; i++) {
        const int at = i % N, row = i / N;
        const bool is_large = at % THREADS < K - 1 && (row == 0 || at < 8192);
        values[row][at] = (float)(i * 7919 % 4999) + (is_large ? 8192.0F : 0.0F);
    }
    (void)state;
    wick_device *const gpu = open_device(&manners[0], true), *const cpu = open_device(NULL, false);
    const wick_shape shape = WICK_SHAPE(ROWS, N);
    wick_tensor *const x[2] = {wick_tensor_from_data(gpu, WICK_F32, shape, values, sizeof values),
                               wick_tensor_from_data(cpu, WICK_F32, shape, values, sizeof values)};
    check_largest(x, K);
    wick_device_close(gpu);
    wick_device_close(cpu);
}

static void the_largest_of_rows_in_pieces(void **state) {
    static const int64_t sizes[][3] = {
        {300, 211, 9}, {7, 9000, 100}, {50, 1000, 1000}, {12, 1100, 512}, /* candidates in pieces */
    };
    (void)state;
    for (size_t m = 1; m < N_MANNERS; m++) {
        wick_device *const gpu = open_device(&manners[m], true), *const cpu = open_device(NULL, 0);
        for (size_t i = 0; i < WK_COUNT(sizes); i++) check_top_k(gpu, cpu, WICK_F32, sizes[i]);
        wick_device_close(gpu);
        wick_device_close(cpu);
    }
}

/* More than the kernel keeps of long rows. */
static void many_of_a_long_row_are_found_on_the_cpu(void **state) {
    static const int64_t size[3] = {2, 3000, 513};
    (void)state;
    wick_device *const gpu = open_device(&manners[0], false), *const cpu = open_device(NULL, false);
    check_top_k(gpu, cpu, WICK_F32, size);
    assert_int_equal(fallbacks_of(gpu), 1);
    wick_device_close(gpu);
    wick_device *const strict = open_device(&manners[0], true);
    wick_tensor *const x = numbers(strict, WICK_F32, size[0], size[1]);
    wick_tensor *const y = wick_top_k(x, size[2], 1, NULL);
    float found[2 * 513];
    assert_int_equal(wick_read(y, found, sizeof found), WICK_ERR_UNSUPPORTED);
    wick_release(x);
    wick_release(y);
    wick_device_close(strict);
    wick_device_close(cpu);
}

/* --- Rows that are sorted --- */

/* Rows of more than one tile: merged once, twice and three times. */
static void long_rows_are_sorted_as_on_the_cpu(void **state) {
    static const int64_t sizes[][2] = {{3, 1500}, {1, 2049}, {2, 5000}};
    (void)state;
    wick_device *const devices[] = {open_device(&manners[0], true), open_device(NULL, false)};
    for (size_t k = 0; k < WK_COUNT(sizes); k++) {
        wick_tensor *order[2];
        for (int i = 0; i < 2; i++) {
            wick_tensor *const x = numbers(devices[i], WICK_F32, sizes[k][0], sizes[k][1]);
            order[i] = wick_argsort(x, 1, k == 1);
            wick_release(x);
        }
        assert_same(order[0], order[1]);
        wick_release(order[0]);
        wick_release(order[1]);
    }
    wick_device_close(devices[0]);
    wick_device_close(devices[1]);
}

/* n sources in each of ROWS rows, for SLOTS elements: runs of one element go on in many chunks,
 * and its source is the last of them where fn sets. Powers of two, so that the order of sums and
 * of products does not matter. */
static wick_tensor *scattered(wick_device *device, wick_dtype dtype, int64_t n, int dim,
                              wick_scatter_fn fn) {
    enum { ROWS = 2, SLOTS = 50, MOST = 5000 };
    static float values[ROWS * MOST];
    static int64_t slots[ROWS * MOST];
    assert_true(n <= MOST);
    for (int64_t i = 0; i < ROWS * n; i++) {
        const int64_t other = i * 7919 % 211;
        slots[i] = other < SLOTS - 1 ? other : 3; /* most are for one; none for the last */
        values[i] = fn == WICK_SCATTER_MUL ? (i % 2 ? 2.0F : 0.5F) : (float)(i * 31 % 101 - 50);
        if (i == n / 2 && fn == WICK_SCATTER_MAX) values[i] = (float)NAN;
    }
    const wick_scope scope = wick_scope_begin(device);
    const wick_shape shape = WICK_SHAPE(ROWS, n);
    const size_t count = (size_t)(ROWS * n);
    wick_tensor *const src =
        wick_tensor_from_data(device, WICK_F32, shape, values, count * sizeof *values);
    wick_tensor *const wide =
        wick_tensor_from_data(device, WICK_I64, shape, slots, count * sizeof *slots);
    wick_tensor *const x = wick_full(device, dtype, WICK_SHAPE(ROWS, SLOTS), 3);
    wick_tensor *const from = wick_cast(src, dtype);
    wick_tensor *const index = dim == 0 ? wick_cast(wide, WICK_I32) : wide;
    wick_tensor *const y =
        dim == 1 ? wick_scatter(x, 1, index, from, fn)
                 : wick_scatter(wick_transpose(x, 0, 1), 0, wick_transpose(index, 0, 1),
                                wick_transpose(from, 0, 1), fn);
    wick_retain(y);
    wick_scope_end(scope);
    return y;
}

/* Of many sources, which are sorted by the element that they meet: three chunks and one tile; with
 * tiles to merge. */
static void many_sources_meet_as_on_the_cpu(void **state) {
    static const struct {
        wick_dtype dtype;
        int64_t n;
        int dim;
        wick_scatter_fn fn;
    } cases[] = {
        {WICK_F32, 130, 1, WICK_SCATTER_ADD},  {WICK_F32, 5000, 1, WICK_SCATTER_ADD},
        {WICK_F32, 2500, 0, WICK_SCATTER_MAX}, {WICK_I64, 2500, 1, WICK_SCATTER_SET},
        {WICK_F16, 700, 0, WICK_SCATTER_SET},  {WICK_F32, 200, 1, WICK_SCATTER_MUL},
    };
    (void)state;
    wick_device *const gpu = open_device(&manners[0], true), *const cpu = open_device(NULL, false);
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        wick_tensor *const got =
            scattered(gpu, cases[i].dtype, cases[i].n, cases[i].dim, cases[i].fn);
        wick_tensor *const want =
            scattered(cpu, cases[i].dtype, cases[i].n, cases[i].dim, cases[i].fn);
        assert_same(got, want);
        wick_release(got);
        wick_release(want);
    }
    assert_int_equal(fallbacks_of(gpu), 0);
    wick_device_close(gpu);
    wick_device_close(cpu);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_largest_are_the_cpus),
    cmocka_unit_test(the_largest_of_rows_in_pieces),
    cmocka_unit_test(many_large_ones_are_near_each_other),
    cmocka_unit_test(many_of_a_long_row_are_found_on_the_cpu),
    cmocka_unit_test(long_rows_are_sorted_as_on_the_cpu),
    cmocka_unit_test(many_sources_meet_as_on_the_cpu),
};

int run_orderings(void) { return cmocka_run_group_tests_name("orderings", tests, NULL, NULL); }
