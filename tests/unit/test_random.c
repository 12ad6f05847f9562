/* Random numbers: the stream that they are words of, the same on every device, in their ranges and
 * in their distributions, which fixed seeds show once and for all. */
#include "ops_fixture.h"

#include "core/half.h"
#include "core/rng.h"
#include "ref_case.h"
#include "tensor/plan.h"

#include <math.h>

enum { SEED = 12345 };

/* --- Which numbers --- */

static void words_of_the_stream(void **state) {
    wick_device *const device = device_of(state);
    const uint64_t seed = UINT64_C(0x9876543210ABCDEF);
    wick_device_set_seed(device, seed);
    assert_true(wick_device_seed(device) == seed);
    for (uint64_t stream = 0; stream < 3; stream++) {
        float got[35];
        wick_tensor *const y = wick_rand(device, WICK_F32, WICK_SHAPE(5, 7), 0, 1);
        assert_int_equal(wick_read(y, got, sizeof got), WICK_OK);
        wk_rng rng = {.seed = seed, .stream = stream};
        for (int i = 0; i < 35; i++) assert_true(got[i] == wk_rng_uniform(&rng));
        wick_release(y);
    }
}

/* The words that the other numbers are made of. */
static void bits_of_the_stream(void **state) {
    wick_device *const device = device_of(state);
    wick_device_set_seed(device, SEED);
    for (uint64_t stream = 0; stream < 2; stream++) {
        uint32_t got[21];
        wick_tensor *const y = wick_rand_bits(device, WICK_SHAPE(3, 7));
        assert_int_equal(wick_tensor_dtype(y), WICK_U32);
        assert_int_equal(wick_read(y, got, sizeof got), WICK_OK);
        wk_rng rng = {.seed = SEED, .stream = stream};
        for (int i = 0; i < 21; i++) assert_int_equal(got[i], wk_rng_u32(&rng));
        wick_release(y);
    }
    assert_refused(device, wick_rand_bits(device, WICK_SHAPE(-1)), WICK_ERR_SHAPE);
    assert_null(wick_rand_bits(NULL, WICK_SCALAR));
}

static void a_seed_begins_again(void **state) {
    wick_device *const device = device_of(state);
    float got[5][9];
    assert_true(wick_device_seed(device) == 0);
    for (int i = 0; i < 5; i++) {
        if (i == 2) wick_device_set_seed(device, 0);
        if (i == 4) wick_device_set_stream(device, 1);
        wick_tensor *const y = wick_randn(device, WICK_F32, WICK_SHAPE(9), 0, 1);
        assert_int_equal(wick_read(y, got[i], sizeof got[i]), WICK_OK);
        wick_release(y);
    }
    assert_memory_not_equal(got[0], got[1], sizeof *got);
    assert_memory_equal(got[0], got[2], sizeof *got);
    assert_memory_equal(got[1], got[3], sizeof *got);
    assert_memory_equal(got[1], got[4], sizeof *got);
    wick_device_set_seed(NULL, 1);
    wick_device_set_stream(NULL, 1);
    assert_true(wick_device_seed(NULL) == 0);
}

/* Element i is the same one in a part of the tensor, and wherever it lies. */
static void parts_and_strides(void **state) {
    (void)state;
    float all[60], part[25], across[60];
    uint32_t seed[4] = {1, 2, 3, 4};
    for (int fn = 0; fn < WK_RANDOM_COUNT_; fn++) {
        const wick_dtype dtype = fn == WK_RANDOM_BITS ? WICK_U32 : WICK_F32;
        ref_case c;
        for (int k = 0; k < 3; k++) {
            ref_begin(&c, WK_OP_RANDOM);
            if (k == 0) REF_ADD(&c, all, dtype, 6, 10);
            if (k == 1) REF_ADD(&c, part, dtype, 25);
            if (k == 2) {
                wk_view *const y = REF_ADD(&c, across, dtype, 6, 10);
                y->stride[0] = 1;
                y->stride[1] = 6;
            }
            REF_ADD(&c, seed, WICK_U32, 4);
            c.op.p.random.fn = (wk_random_fn)fn;
            c.op.p.random.b = 1;
            c.op.p.random.first = (UINT64_C(1) << 34) - 30 + (k == 1 ? 13 : 0);
            ref_run(&c);
        }
        assert_memory_equal(part, &all[13], sizeof part);
        for (int i = 0; i < 60; i++)
            assert_memory_equal(&across[i / 10 + i % 10 * 6], &all[i], sizeof *all);
    }
}

/* --- On every device --- */

static const wick_dtype floats[] = {WICK_F32, WICK_F16, WICK_BF16, WICK_F64};

enum { N = 3001, MOST_BYTES = 2 * N * 8 };

/* A uniform tensor and a normal one after it. */
static size_t draw(const wick_device_desc *desc, wick_dtype dtype, unsigned char *to) {
    wick_device *device;
    assert_int_equal(wick_device_open(desc, &device, NULL), WICK_OK);
    wick_device_set_seed(device, SEED);
    wick_tensor *const both[] = {wick_rand(device, dtype, WICK_SHAPE(N), -3, 0.7),
                                 wick_randn(device, dtype, WICK_SHAPE(N), 0.5, 2)};
    const size_t size = wick_tensor_bytes(both[0]);
    for (int i = 0; i < 2; i++) {
        if (wick_read(both[i], to + (size_t)i * size, size) != WICK_OK) {
            wick_error err;
            (void)wick_device_error(device, &err);
            fail_msg("%s", err.message);
        }
        wick_release(both[i]);
    }
    wick_device_close(device);
    return 2 * size;
}

static void the_same_on_every_device(void **state) {
    static unsigned char want[MOST_BYTES], got[MOST_BYTES];
    static const wick_device_desc descs[] = {
        {.backend = WICK_BACKEND_CPU, .n_threads = 1},
        {.backend = WICK_BACKEND_CPU, .n_threads = 3, .slice_us = 1},
        {.backend = WICK_BACKEND_CPU, .n_threads = 2, .verify = true},
        {.backend = WICK_BACKEND_NULL, .null_flags = WICK_NULL_LATE},
        {.backend = WICK_BACKEND_NULL, .null_flags = WICK_NULL_NO_KERNELS},
    };
    (void)state;
    for (size_t d = 0; d < WK_COUNT(floats); d++) {
        const size_t size = draw(&descs[0], floats[d], want);
        for (size_t i = 1; i < WK_COUNT(descs); i++) {
            assert_int_equal(draw(&descs[i], floats[d], got), size);
            assert_memory_equal(got, want, size);
        }
    }
}

/* --- Ranges --- */

/* n numbers of a dtype as float64; the caller frees them. */
static double *values_of(wick_tensor *y, size_t n) {
    const size_t size = wick_tensor_bytes(y);
    double *const values = malloc(n * sizeof *values);
    unsigned char *const bytes = malloc(size);
    assert_true(y && values && bytes);
    assert_int_equal(wick_read(y, bytes, size), WICK_OK);
    for (size_t i = 0; i < n; i++) {
        const uint16_t half = wick_tensor_dtype(y) == WICK_F32 ? 0 : ((uint16_t *)(void *)bytes)[i];
        switch (wick_tensor_dtype(y)) {
        case WICK_F32: values[i] = (double)((float *)(void *)bytes)[i]; break;
        case WICK_F64: values[i] = ((double *)(void *)bytes)[i]; break;
        case WICK_F16: values[i] = (double)wk_f16_to_f32(half); break;
        default: values[i] = (double)wk_bf16_to_f32(half); break;
        }
    }
    free(bytes);
    wick_release(y);
    return values;
}

static void no_number_leaves_its_range(void **state) {
    enum { COUNT = 20000 };
    static const double ranges[][2] = {{0, 1},          {1, 2},         {-2, -1},  {-1, 1},
                                       {0, 1e-3},       {1000, 1009},   {-0.1, 0}, {0.3, 0.31},
                                       {-60000, 60000}, {2047.5, 2064}, {1, 1.01}};
    wick_device *const device = device_of(state);
    for (size_t d = 0; d < WK_COUNT(floats); d++) {
        for (size_t r = 0; r < WK_COUNT(ranges); r++) {
            const double low = ranges[r][0], high = ranges[r][1];
            wick_tensor *const y = wick_rand(device, floats[d], WICK_SHAPE(COUNT), low, high);
            double *const values = values_of(y, COUNT);
            double sum = 0;
            for (int i = 0; i < COUNT; i++) {
                assert_true(values[i] >= low && values[i] < high);
                sum += values[i];
            }
            if (floats[d] == WICK_F32 || floats[d] == WICK_F64) /* deviation 0.002 of the range */
                assert_true(fabs(sum / (double)COUNT - (low + high) / 2) < 0.01 * (high - low));
            free(values);
        }
    }
}

/* Where dtype has a single number between the ends, every one is that. */
static void the_only_number_there_is(void **state) {
    wick_device *const device = device_of(state);
    double *const values = values_of(wick_rand(device, WICK_F16, WICK_SHAPE(50), 2048, 2049), 50);
    for (int i = 0; i < 50; i++) assert_true(values[i] == 2048);
    free(values);
}

/* --- Distributions --- */

enum { COUNT = 1 << 18, BINS = 256 };

/* Pearson's statistic of probabilities in [0, 1) over equal bins: 255 degrees of freedom, standard
 * deviation 22.6. */
static double chi_square(const double *probabilities) {
    static int bins[BINS];
    const double expected = (double)COUNT / (double)BINS;
    double sum = 0;
    memset(bins, 0, sizeof bins);
    for (int i = 0; i < COUNT; i++) bins[(int)(probabilities[i] * (double)BINS) % BINS]++;
    for (int b = 0; b < BINS; b++) sum += (bins[b] - expected) * (bins[b] - expected) / expected;
    return sum;
}

/* The mean of (x - mean)^power. */
static double moment(const double *x, double mean, int power) {
    double sum = 0;
    for (int i = 0; i < COUNT; i++) sum += pow(x[i] - mean, power);
    return sum / (double)COUNT;
}

static void assert_near(double got, double want, double by) {
    if (!(fabs(got - want) <= by)) fail_msg("%g is not %g, within %g", got, want, by);
}

/* Of neighbours, and so of the two of a pair. */
static double correlation(const double *x, double mean, int distance) {
    double sum = 0;
    for (int i = 0; i + distance < COUNT; i++) sum += (x[i] - mean) * (x[i + distance] - mean);
    return sum / (double)COUNT / moment(x, mean, 2);
}

/* Bounds are five standard deviations. */
static void uniform_numbers_are_uniform(void **state) {
    wick_device *const device = device_of(state);
    for (int i = 0; i < 2; i++) {
        const wick_dtype dtype = i ? WICK_F64 : WICK_F32;
        wick_device_set_seed(device, SEED);
        double *const u = values_of(wick_rand(device, dtype, WICK_SHAPE(COUNT), 0, 1), COUNT);
        const double mean = moment(u, 0, 1);
        assert_near(mean, 0.5, 5 * 0.2887 / sqrt(COUNT));
        assert_near(moment(u, mean, 2), 1.0 / 12, 5 * 0.0745 / sqrt(COUNT));
        assert_near(chi_square(u), BINS - 1, 5 * 22.6);
        for (int k = 1; k < 5; k++) assert_near(correlation(u, mean, k), 0, 5 / sqrt(COUNT));
        free(u);
    }
}

static void normal_numbers_are_normal(void **state) {
    wick_device *const device = device_of(state);
    for (int i = 0; i < 2; i++) {
        const wick_dtype dtype = i ? WICK_F64 : WICK_F32;
        wick_device_set_seed(device, SEED);
        double *const z = values_of(wick_randn(device, dtype, WICK_SHAPE(COUNT), 3, 2), COUNT);
        for (int k = 0; k < COUNT; k++) z[k] = (z[k] - 3) / 2;
        assert_near(moment(z, 0, 1), 0, 5 / sqrt(COUNT));
        assert_near(moment(z, 0, 2), 1, 5 * sqrt(2.0 / (double)COUNT));
        assert_near(moment(z, 0, 3), 0, 5 * sqrt(15.0 / (double)COUNT));
        assert_near(moment(z, 0, 4), 3, 5 * sqrt(96.0 / (double)COUNT));
        for (int k = 1; k < 5; k++) assert_near(correlation(z, 0, k), 0, 5 / sqrt(COUNT));
        for (int k = 0; k < COUNT; k++) z[k] = erfc(-z[k] / sqrt(2)) / 2;
        assert_near(chi_square(z), BINS - 1, 5 * 22.6);
        free(z);
    }
}

static void a_deviation_of_nothing(void **state) {
    wick_device *const device = device_of(state);
    ASSERT_FLOATS(wick_randn(device, WICK_F32, WICK_SHAPE(3), 1.5, 0), 1.5F, 1.5F, 1.5F);
}

/* --- Plans --- */

/* Numbers of a plan follow what its state holds at each run. */
static void a_plan_draws_anew(void **state) {
    wick_device *const device = device_of(state);
    uint32_t words[4] = {7, 0, 0, 0};
    float got[3][16];
    wk_plan_pool *pool;
    wk_plan *plan;
    wick_tensor *const seed =
        wick_tensor_from_data(device, WICK_U32, WICK_SHAPE(4), words, sizeof words);
    assert_int_equal(wk_plan_pool_make(device, &pool), WICK_OK);
    assert_int_equal(wk_plan_begin(device, pool), WICK_OK);
    wick_tensor *y = wick_empty(device, WICK_F32, WICK_SHAPE(16));
    wk_call call;
    wk_call_begin(&call, WK_OP_RANDOM, NULL);
    wk_call_add(&call, y, NULL);
    wk_call_add(&call, seed, NULL);
    call.op.p.random.b = 1;
    assert_int_equal(wk_call_queue(device, &call), WICK_OK);
    assert_int_equal(wk_plan_end(device, &y, 1, &plan), WICK_OK);
    for (uint32_t run = 0; run < 3; run++) {
        words[2] = run % 2; /* the stream */
        assert_int_equal(wick_write(seed, words, sizeof words), WICK_OK);
        assert_int_equal(wk_plan_run(plan), WICK_OK);
        assert_int_equal(wick_read(y, got[run], sizeof got[run]), WICK_OK);
    }
    assert_memory_not_equal(got[0], got[1], sizeof *got);
    assert_memory_equal(got[0], got[2], sizeof *got);
    wick_release(y);
    wick_release(seed);
    wk_plan_free(plan);
    wk_plan_pool_free(pool);
}

static void not_while_recording(void **state) {
    wick_device *const device = device_of(state);
    wk_plan_pool *pool;
    wk_plan *plan;
    assert_int_equal(wk_plan_pool_make(device, &pool), WICK_OK);
    assert_int_equal(wk_plan_begin(device, pool), WICK_OK);
    assert_refused(device, wick_rand(device, WICK_F32, WICK_SHAPE(4), 0, 1), WICK_ERR_STATE);
    wk_plan_abort(device, &plan);
    wk_plan_free(plan);
    wk_plan_pool_free(pool);
}

/* --- Bad input --- */

static void impossible_ranges(void **state) {
    static const struct {
        wick_dtype dtype;
        double low, high;
    } cases[] = {
        {WICK_F32, 1, 1},
        {WICK_F32, 2, 1},
        {WICK_F32, (double)NAN, 1},
        {WICK_F32, 0, (double)NAN},
        {WICK_F32, 0, (double)INFINITY},
        {WICK_F32, -3e38, 3e38}, /* farther apart than float32 can tell */
        {WICK_F16, 0, 1e6},
        {WICK_F16, 2048.5, 2049.5}, /* nothing in between */
        {WICK_BF16, 1.001, 1.002},
        {WICK_F64, -1.7e308, 1.7e308},
    };
    wick_device *const device = device_of(state);
    for (size_t i = 0; i < WK_COUNT(cases); i++)
        assert_refused(
            device, wick_rand(device, cases[i].dtype, WICK_SHAPE(3), cases[i].low, cases[i].high),
            WICK_ERR_VALUE);
    const double deviations[] = {-1, (double)NAN, (double)INFINITY, 1e300};
    for (size_t i = 0; i < WK_COUNT(deviations); i++)
        assert_refused(device, wick_randn(device, WICK_F32, WICK_SHAPE(3), 0, deviations[i]),
                       WICK_ERR_VALUE);
    assert_refused(device, wick_randn(device, WICK_F32, WICK_SHAPE(3), (double)NAN, 1),
                   WICK_ERR_VALUE);
}

static void impossible_tensors(void **state) {
    wick_device *const device = device_of(state);
    assert_refused(device, wick_rand(device, WICK_I32, WICK_SHAPE(3), 0, 9), WICK_ERR_DTYPE);
    assert_refused(device, wick_rand(device, WICK_Q8_0, WICK_SHAPE(32), 0, 1), WICK_ERR_DTYPE);
    assert_refused(device, wick_rand(device, (wick_dtype)99, WICK_SHAPE(3), 0, 1), WICK_ERR_DTYPE);
    assert_refused(device, wick_rand(device, WICK_F32, WICK_SHAPE(-1), 0, 1), WICK_ERR_SHAPE);
    assert_null(wick_rand(NULL, WICK_F32, WICK_SHAPE(3), 0, 1));
    wick_tensor *const nothing = wick_rand(device, WICK_F32, WICK_SHAPE(0, 3), 0, 1);
    assert_int_equal(wick_tensor_size(nothing), 0);
    wick_release(nothing);
}

/* What no public function gives: the op itself says so. */
static void impossible_ops(void **state) {
    (void)state;
    float y[4];
    uint32_t words[8] = {0};
    ref_case c;
    for (int i = 0; i < 6; i++) {
        wick_error err = {0};
        ref_begin(&c, WK_OP_RANDOM);
        REF_ADD(&c, y, i == 0 ? WICK_I32 : WICK_F32, 4);
        wk_view *const seed = REF_ADD(&c, words, i == 1 ? WICK_F32 : WICK_U32, 4);
        if (i == 2) seed->extent[0] = 3;
        if (i == 3) seed->stride[0] = 2;
        c.op.p.random.b = 1;
        if (i == 4) c.op.p.random.fn = WK_RANDOM_COUNT_;
        if (i == 5) c.op.p.random.fn = WK_RANDOM_BITS; /* of f32 */
        assert_true(wk_op_check(&c.op, &err) < 0);
        assert_true(strlen(err.message) > 10);
    }
}

static void out_of_memory(void **state) {
    fixture *const f = *state;
    for (uint64_t allowed = 0;; allowed++) {
        f->allowed = allowed;
        wick_tensor *const y = wick_rand(f->device, WICK_F32, WICK_SHAPE(10), 0, 1);
        const wick_status status = y ? wick_synchronize(f->device) : WICK_ERR_OUT_OF_MEMORY;
        f->allowed = UINT64_MAX;
        (void)wick_device_error(f->device, NULL);
        wick_release(y);
        if (status == WICK_OK) break;
        assert_int_equal(status, WICK_ERR_OUT_OF_MEMORY);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(words_of_the_stream),
        TEST(bits_of_the_stream),
        TEST(a_seed_begins_again),
        TEST(parts_and_strides),
        TEST(the_same_on_every_device),
        TEST(no_number_leaves_its_range),
        TEST(the_only_number_there_is),
        TEST(uniform_numbers_are_uniform),
        TEST(normal_numbers_are_normal),
        TEST(a_deviation_of_nothing),
        TEST(a_plan_draws_anew),
        TEST(not_while_recording),
        TEST(impossible_ranges),
        TEST(impossible_tensors),
        TEST(impossible_ops),
        TEST(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
