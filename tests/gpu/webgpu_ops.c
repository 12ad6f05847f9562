/* usage: webgpu_ops [--backend webgpu] [options of webgpu_options.h]
 * Operations whose results on WebGPU must be those of the CPU bit by bit, whether or not tensors
 * lie in pieces: uniform random numbers; and normal numbers, nearly.
 * Chains of operations, which must be nearly what these are on their own. */
#include "webgpu_options.h"
#include "webgpu_ops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

static wick_device_desc options;

const manner manners[N_MANNERS] = {{0, 0}, {64 << 10, 0}, {64 << 10, 1}};

wick_device *open_device(const manner *m, bool is_strict) {
    wick_device_desc desc = options;
    wick_device *device;
    wick_error err = {0};
    if (m) {
        desc.webgpu.max_binding_bytes = m->max_binding_bytes;
        desc.webgpu.submit_us = m->submit_us;
    } else {
        desc = (wick_device_desc){.backend = WICK_BACKEND_CPU};
    }
    desc.strict = is_strict;
    if (wick_device_open(&desc, &device, &err) != WICK_OK) fail_msg("%s", err.message);
    return device;
}

void *bytes_of(wick_tensor *t) {
    const size_t size = wick_tensor_bytes(t);
    void *const bytes = malloc(size + 1);
    assert_non_null(bytes);
    if (!t || wick_read(t, bytes, size) != WICK_OK) {
        wick_error err = {0};
        (void)wick_device_error(t ? wick_tensor_device(t) : NULL, &err);
        fail_msg("%s", t ? err.message : "there is no tensor");
    }
    return bytes;
}

void assert_same(wick_tensor *got, wick_tensor *want) {
    void *const a = bytes_of(got), *const b = bytes_of(want);
    assert_int_equal(wick_tensor_bytes(got), wick_tensor_bytes(want));
    assert_memory_equal(a, b, wick_tensor_bytes(want));
    free(a);
    free(b);
}

uint64_t fallbacks_of(const wick_device *device) {
    wick_device_stats stats;
    wick_device_get_stats(device, &stats);
    return stats.n_fallbacks;
}

/* --- Random numbers --- */

const wick_dtype narrow_floats[N_NARROW_FLOATS] = {WICK_F32, WICK_F16, WICK_BF16};

typedef void (*draw_fn)(wick_device *gpu, wick_device *cpu, wick_dtype dtype, wick_shape shape);

static void draw_uniform(wick_device *gpu, wick_device *cpu, wick_dtype dtype, wick_shape shape) {
    static const double ranges[][2] = {{0, 1}, {-1, 1}, {0.3, 0.7}, {-3.3, 1000}};
    for (size_t i = 0; i < WK_COUNT(ranges); i++) {
        const double low = ranges[i][0], high = ranges[i][1];
        wick_tensor *const want = wick_rand(cpu, dtype, shape, low, high);
        wick_tensor *const got = wick_rand(gpu, dtype, shape, low, high);
        assert_same(got, want);
        wick_release(want);
        wick_release(got);
    }
}

/* The bound of docs/numerics.md. */
static void draw_normal(wick_device *gpu, wick_device *cpu, wick_dtype dtype, wick_shape shape) {
    if (dtype != WICK_F32) return; /* the others are rounded from it: kernel_check has them */
    wick_tensor *const a = wick_randn(cpu, dtype, shape, 0, 1);
    wick_tensor *const b = wick_randn(gpu, dtype, shape, 0, 1);
    float *const want = bytes_of(a), *const got = bytes_of(b);
    double largest = 0;
    for (int64_t i = 0; i < wick_tensor_size(a); i++)
        largest = fmax(largest, fabs((double)got[i] - (double)want[i]));
    if (!(largest <= 2e-6)) fail_msg("a normal number is off by %g", largest);
    free(want);
    free(got);
    wick_release(a);
    wick_release(b);
}

static void draw_all(draw_fn draw) {
    const wick_shape shapes[] = {WICK_SHAPE(1), WICK_SHAPE(4099), WICK_SHAPE(3, 1, 77),
                                 WICK_SHAPE(1, 2, 40001), WICK_SHAPE(300, 211)};
    for (size_t m = 0; m < N_MANNERS; m++) {
        wick_device *const gpu = open_device(&manners[m], true), *const cpu = open_device(NULL, 0);
        wick_device_set_seed(gpu, UINT64_C(0x123456789ABCDEF0));
        wick_device_set_seed(cpu, UINT64_C(0x123456789ABCDEF0));
        for (size_t d = 0; d < N_NARROW_FLOATS; d++)
            for (size_t s = 0; s < WK_COUNT(shapes); s++)
                draw(gpu, cpu, narrow_floats[d], shapes[s]);
        wick_device_close(gpu);
        wick_device_close(cpu);
    }
}

static void uniform_numbers_are_the_cpus(void **state) {
    (void)state;
    draw_all(draw_uniform);
}

static void normal_numbers_are_nearly_the_cpus(void **state) {
    (void)state;
    draw_all(draw_normal);
}

/* WebGPU has no float64: the CPU draws them, and says so. */
static void float64_is_drawn_on_the_cpu(void **state) {
    (void)state;
    wick_device *const gpu = open_device(&manners[0], false), *const cpu = open_device(NULL, false);
    draw_uniform(gpu, cpu, WICK_F64, WICK_SHAPE(100));
    assert_true(fallbacks_of(gpu) > 0);
    wick_device_close(gpu);
    wick_device_close(cpu);
}

/* --- Numbers in a row --- */

/* Beginnings and steps in both words of a wide number, and what a narrow one rounds. */
static void aranges_are_the_cpus(void **state) {
    static const struct {
        wick_dtype dtype;
        double start, step;
    } cases[] = {
        {WICK_I64, 0x1p40 + 5, 0x1p33 + 3},
        {WICK_I64, -0x1p40, 1},
        {WICK_I64, 7, -0x1p52},
        {WICK_I64, 0x1.8p31, 0x1p31},
        {WICK_I32, -0x1p31, 0x1p20},
        {WICK_U32, 0x1.8p31, 3},
        {WICK_I16, -300, 7},
        {WICK_I8, 127, -1},
        {WICK_U8, 0, 2},
        {WICK_F64, 0.1, 0x1p40},
        {WICK_F64, -0x1.23p-30, 0.7},
        {WICK_F32, 0.1, 0.1},
        {WICK_F16, -3, 0.3},
        {WICK_BF16, 1000, -0.5},
    };
    (void)state;
    wick_device *const gpu = open_device(&manners[0], true), *const cpu = open_device(NULL, false);
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        const double start = cases[i].start, step = cases[i].step;
        wick_tensor *const want = wick_arange(cpu, cases[i].dtype, start, start + 99 * step, step);
        wick_tensor *const got = wick_arange(gpu, cases[i].dtype, start, start + 99 * step, step);
        assert_same(got, want);
        wick_release(want);
        wick_release(got);
    }
    wick_device_close(gpu);
    wick_device_close(cpu);
}

/* --- Faults --- */

/* An index out of range is reported once: by the result computed with it, and by no later one, also
 * where its slot is used again (there are 256). */
static void faults_are_reported_once(void **state) {
    (void)state;
    const float rows[4] = {1, 2, 3, 4};
    wick_device *const gpu = open_device(&manners[0], true);
    wick_tensor *const weight =
        wick_tensor_from_data(gpu, WICK_F32, WICK_SHAPE(4, 1), rows, sizeof rows);
    for (uint32_t i = 0; i < 300; i++) {
        const uint32_t id = i % 5; /* of 4 rows */
        float got = 0;
        wick_tensor *const ids = wick_tensor_from_data(gpu, WICK_U32, WICK_SHAPE(1), &id, 4);
        wick_tensor *const y = wick_embedding(weight, ids);
        assert_int_equal(wick_read(y, &got, sizeof got), id < 4 ? WICK_OK : WICK_ERR_INDEX);
        assert_true(id == 4 || got == rows[id]);
        wick_release(ids);
        wick_release(y);
    }
    wick_release(weight);
    wick_device_close(gpu);
}

/* --- Casts --- */

/* Any NaN is as good as another one of its sign. */
static void check_cast(wick_tensor *on_gpu, wick_tensor *on_cpu, wick_dtype to, bool is_of_bits) {
    wick_tensor *const a = wick_cast(on_gpu, to), *const b = wick_cast(on_cpu, to);
    assert_true(a && b);
    const size_t n = wick_tensor_bytes(a);
    uint8_t *const got = bytes_of(a), *const want = bytes_of(b);
    for (size_t i = 0; i < n; i++) {
        const int mask = is_of_bits && (want[i] & 0x7F) > (to == WICK_F8_E4M3 ? 0x7E : 0x7C)
                             ? 0x80 /* NaN may have any fraction */
                             : 0xFF;
        if ((got[i] & mask) != (want[i] & mask) ||
            (mask == 0x80 && (got[i] & 0x7F) <= (to == WICK_F8_E4M3 ? 0x7E : 0x7C)))
            fail_msg("%s, byte %d: %02x, not %02x", wick_dtype_name(to), (int)i, got[i], want[i]);
    }
    free(got);
    free(want);
    wick_release(a);
    wick_release(b);
}

/* Every 4096th float32, or one of its neighbours: the middles of 8-bit floats are among them, and
 * numbers just beside. */
static void casts_of_8_bit_floats_are_the_cpus(void **state) {
    (void)state;
    enum { N = 1 << 20 };
    static uint32_t bits[N];
    uint8_t all[254];
    wick_device *const gpu = open_device(&manners[0], true), *const cpu = open_device(NULL, false);
    for (uint32_t i = 0; i < N; i++) bits[i] = (i << 12) + (i % 3) - 1;
    for (int k = 0; k < 2; k++) {
        const wick_dtype dtype = k == 0 ? WICK_F8_E4M3 : WICK_F8_E5M2;
        wick_tensor *const x = wick_tensor_from_data(gpu, WICK_F32, WICK_SHAPE(N), bits, N * 4);
        wick_tensor *const y = wick_tensor_from_data(cpu, WICK_F32, WICK_SHAPE(N), bits, N * 4);
        check_cast(x, y, dtype, true);
        wick_release(x);
        wick_release(y);
        size_t n = 0; /* all but those that are no number */
        for (int i = 0; i < 256; i++)
            if ((i & 0x7F) <= (k == 0 ? 0x7E : 0x7C)) all[n++] = (uint8_t)i;
        const wick_shape shape = WICK_SHAPE((int64_t)n);
        wick_tensor *const u = wick_tensor_from_data(gpu, dtype, shape, all, n);
        wick_tensor *const v = wick_tensor_from_data(cpu, dtype, shape, all, n);
        check_cast(u, v, WICK_F32, false);
        check_cast(u, v, WICK_F16, false);
        check_cast(u, v, WICK_I32, false);
        wick_release(u);
        wick_release(v);
    }
    wick_device_close(gpu);
    wick_device_close(cpu);
}

/* --- Chains --- */

enum { ROWS = 150, COLUMNS = 256 };

/* A chain that a reduction ends, and one of two results, with a row repeated. */
static void run_chains(wick_tensor *a, wick_tensor *b, wick_tensor *row, float *out) {
    enum { N = ROWS * COLUMNS };
    wick_device *const device = wick_tensor_device(a);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const sums = wick_sum(wick_sqr(wick_sub(a, b)), 1, (const int[]){1}, false);
    wick_tensor *const t = wick_tanh(wick_add(wick_mul(a, b), row));
    wick_tensor *const u = wick_where(wick_lt(a, row), wick_affine(t, 0.5, 1), wick_exp(t));
    wick_retain(t), wick_retain(u), wick_retain(sums);
    wick_scope_end(scope);
    assert_int_equal(wick_read(t, out, N * sizeof *out), WICK_OK);
    assert_int_equal(wick_read(u, out + N, N * sizeof *out), WICK_OK);
    assert_int_equal(wick_read(sums, out + 2 * N, ROWS * sizeof *out), WICK_OK);
    wick_release(t), wick_release(u), wick_release(sums);
}

/* From the third time on they are compiled, and from the first where that is asked for. */
static void chains_are_their_operations(void **state) {
    (void)state;
    enum { SIZE = (2 * COLUMNS + 1) * ROWS, STEPS = 10 };
    static float got[4][SIZE];
    for (size_t m = 0; m < N_MANNERS; m++) {
        for (int is_always = 0; is_always < 2; is_always++) {
            options.fusion = is_always ? WICK_FUSION_ALWAYS : WICK_FUSION_AUTO;
            wick_device *const device = open_device(&manners[m], true);
            const wick_scope scope = wick_scope_begin(device);
            const wick_shape shape = WICK_SHAPE(ROWS, COLUMNS);
            wick_tensor *const a = wick_rand(device, WICK_F32, shape, -1, 1);
            wick_tensor *const b = wick_rand(device, WICK_F32, shape, -1, 1);
            wick_tensor *const row = wick_rand(device, WICK_F32, WICK_SHAPE(COLUMNS), -1, 1);
            assert_int_equal(wick_synchronize(device), WICK_OK);
            for (int i = 0; i < 4; i++) {
                wick_device_stats stats;
                run_chains(a, b, row, got[i]);
                wick_device_get_stats(device, &stats);
                const int n_fused = is_always ? i + 1 : i < 2 ? 0 : i - 1;
                assert_int_equal(stats.n_fused, n_fused * STEPS);
                assert_int_equal(stats.n_fallbacks, 0);
                for (int k = 0; k < SIZE; k++)
                    if (!(fabsf(got[i][k] - got[0][k]) <= 1e-5F * (1 + fabsf(got[0][k]))))
                        fail_msg("run %d, element %d: %g, not %g", i, k, (double)got[i][k],
                                 (double)got[0][k]);
            }
            assert_memory_equal(got[2], got[3], sizeof got[2]);
            wick_scope_end(scope);
            wick_device_close(device);
        }
    }
    options.fusion = WICK_FUSION_AUTO;
}

/* Steps of integers, conditions and conversions of them; sums, extremes and where they are. */
static void run_integers(wick_device *device, wick_dtype dtype, wick_tensor *out[3]) {
    const wick_scope scope = wick_scope_begin(device);
    const wick_shape shape = WICK_SHAPE(ROWS, COLUMNS);
    wick_tensor *const count = wick_arange(device, WICK_I32, 0, ROWS * COLUMNS, 1);
    wick_tensor *const a = wick_cast(wick_reshape(wick_affine(count, 7919, -40000), shape), dtype);
    wick_tensor *const b = wick_cast(wick_reshape(wick_affine(count, -31, 1000), shape), dtype);
    assert_int_equal(wick_synchronize(device), WICK_OK);
    wick_tensor *const mixed = wick_bitwise_xor(wick_affine(wick_mul(a, b), -3, 7), a);
    wick_tensor *const part = wick_clamp(wick_floor_divide(mixed, b), -100, 70000);
    wick_tensor *const y = wick_where(wick_lt(part, b), part, wick_abs(wick_cast(b, dtype)));
    out[0] = wick_retain(y);
    out[1] = wick_retain(wick_sum(wick_bitwise_not(wick_sqr(a)), 1, (const int[]){1}, false));
    out[2] = wick_retain(wick_argmax(wick_sub(wick_remainder(a, b), b), 1, false));
    wick_scope_end(scope);
}

static void chains_of_integers_are_the_cpus(void **state) {
    static const wick_dtype dtypes[] = {WICK_I32, WICK_U32, WICK_I16, WICK_I8, WICK_U8};
    (void)state;
    options.fusion = WICK_FUSION_ALWAYS;
    wick_device *const gpu = open_device(&manners[0], true), *const cpu = open_device(NULL, true);
    options.fusion = WICK_FUSION_AUTO;
    for (size_t i = 0; i < WK_COUNT(dtypes); i++) {
        wick_tensor *got[3], *want[3];
        wick_device_stats before, after;
        wick_device_get_stats(gpu, &before);
        run_integers(gpu, dtypes[i], got);
        run_integers(cpu, dtypes[i], want);
        for (int k = 0; k < 3; k++) {
            assert_same(got[k], want[k]);
            wick_release(got[k]);
            wick_release(want[k]);
        }
        wick_device_get_stats(gpu, &after);
        assert_in_range(after.n_fused - before.n_fused, 14, 17);
    }
    wick_device_close(gpu);
    wick_device_close(cpu);
}

/* --- Indices of 64 bits --- */

static void slices_of_wide_indices_are_the_cpus(void **state) {
    static const int64_t places[] = {2, 3, 0, 0, 1, 4, 2, 3},
                         beyond[] = {0, 1, 1, INT64_C(1) << 32};
    (void)state;
    wick_device *const devices[] = {open_device(&manners[0], true), open_device(NULL, true)};
    wick_tensor *slices[2], *changed[2];
    for (int i = 0; i < 2; i++) {
        const wick_scope scope = wick_scope_begin(devices[i]);
        wick_tensor *const all = wick_arange(devices[i], WICK_F32, 0, 3 * 5 * 4, 1);
        wick_tensor *const x = wick_reshape(all, WICK_SHAPE(3, 5, 4));
        wick_tensor *const index =
            wick_tensor_from_data(devices[i], WICK_I64, WICK_SHAPE(2, 2, 2), places, sizeof places);
        wick_tensor *const wrong =
            wick_tensor_from_data(devices[i], WICK_I64, WICK_SHAPE(2, 2), beyond, sizeof beyond);
        float unread[8];
        slices[i] = wick_retain(wick_gather_nd(x, index));
        changed[i] = wick_retain(wick_scatter_nd(x, index, slices[i], WICK_SCATTER_ADD));
        wick_tensor *const none = wick_gather_nd(x, wrong);
        assert_int_equal(wick_read(none, unread, sizeof unread), WICK_ERR_INDEX);
        (void)wick_device_error(devices[i], NULL);
        wick_scope_end(scope);
    }
    assert_same(slices[0], slices[1]);
    assert_same(changed[0], changed[1]);
    assert_int_equal(fallbacks_of(devices[0]), 0);
    for (int i = 0; i < 2; i++) {
        wick_release(slices[i]);
        wick_release(changed[i]);
        wick_device_close(devices[i]);
    }
}

/* Whose squares overflow, and whose distances from their mean do not. */
static void variances_of_large_numbers(void **state) {
    static const float large[] = {2e19F, 2e19F, 2e19F}, far[] = {1e30F, 1};
    (void)state;
    wick_device *const gpu = open_device(&manners[0], true);
    const wick_scope scope = wick_scope_begin(gpu);
    wick_tensor *const same =
        wick_tensor_from_data(gpu, WICK_F32, WICK_SHAPE(3), large, sizeof large);
    wick_tensor *const apart = wick_tensor_from_data(gpu, WICK_F32, WICK_SHAPE(2), far, sizeof far);
    double of_same = 1, of_apart = 0;
    assert_int_equal(wick_read_scalar(wick_var(same, 0, NULL, false, 0), &of_same), WICK_OK);
    assert_int_equal(wick_read_scalar(wick_var(apart, 0, NULL, false, 0), &of_apart), WICK_OK);
    assert_true(of_same == 0 && isinf(of_apart));
    wick_scope_end(scope);
    wick_device_close(gpu);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(uniform_numbers_are_the_cpus),
    cmocka_unit_test(normal_numbers_are_nearly_the_cpus),
    cmocka_unit_test(float64_is_drawn_on_the_cpu),
    cmocka_unit_test(aranges_are_the_cpus),
    cmocka_unit_test(faults_are_reported_once),
    cmocka_unit_test(casts_of_8_bit_floats_are_the_cpus),
    cmocka_unit_test(chains_are_their_operations),
    cmocka_unit_test(chains_of_integers_are_the_cpus),
    cmocka_unit_test(slices_of_wide_indices_are_the_cpus),
    cmocka_unit_test(variances_of_large_numbers),
};

int main(int argc, char **argv) {
    if (!parse_device(argc, argv, &options)) return 2;
    if (options.backend == WICK_BACKEND_WEBGPU)
        return cmocka_run_group_tests_name("operations", tests, NULL, NULL) + run_orderings();
    printf("skipped: --backend webgpu was not given\n");
    return 77;
}
