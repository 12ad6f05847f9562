/* tests/unit/nn_fixture.h: tensors of random numbers and what they hold, for tests of wick/nn.h. */
#ifndef NN_FIXTURE_H
#define NN_FIXTURE_H

#include "core/rng.h"
#include "ops_fixture.h"

#include <wick/nn.h>

#include <math.h>

/* Multiples of 1/16 from -1 to 1, exact in every float type. */
static inline wick_tensor *random_tensor(wick_device *device, wick_dtype dtype, wick_shape shape,
                                         uint64_t seed) {
    int64_t n;
    assert_true(wk_shape_count(&shape, &n));
    float *const data = malloc((size_t)n * sizeof *data + 1);
    assert_non_null(data);
    wk_rng rng = {.seed = seed};
    for (int64_t i = 0; i < n; i++) data[i] = (float)(wk_rng_u32(&rng) % 33) / 16 - 1;
    wick_tensor *const x =
        wick_tensor_from_data(device, WICK_F32, shape, data, (size_t)n * sizeof *data);
    free(data);
    return dtype == WICK_F32 ? x : wick_cast(x, dtype);
}

/* The elements as doubles; the caller frees them. */
static inline double *contents(wick_tensor *x) {
    assert_non_null(x);
    wick_tensor *const wide = wick_cast(x, WICK_F64);
    double *const data = malloc(wick_tensor_bytes(wide) + 1);
    assert_non_null(data);
    assert_int_equal(wick_read(wide, data, wick_tensor_bytes(wide)), WICK_OK);
    wick_release(wide);
    return data;
}

static inline void assert_close(wick_tensor *x, const double *wanted, double tolerance) {
    double *const got = contents(x);
    for (int64_t i = 0; i < wick_tensor_size(x); i++) {
        const double most = tolerance * (1 + fabs(wanted[i]));
        if (isnan(wanted[i]) ? isnan(got[i]) : fabs(got[i] - wanted[i]) <= most) continue;
        fail_msg("element %lld is %.9g, expected %.9g", (long long)i, got[i], wanted[i]);
    }
    free(got);
}

/* A tensor of these doubles. */
static inline wick_tensor *tensor_of(wick_device *device, wick_dtype dtype, wick_shape shape,
                                     const double *data) {
    int64_t n;
    assert_true(wk_shape_count(&shape, &n));
    return wick_cast(wick_tensor_from_data(device, WICK_F64, shape, data, (size_t)n * sizeof *data),
                     dtype);
}

#endif
