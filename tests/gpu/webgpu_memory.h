/* tests/gpu/webgpu_memory.h: devices with little memory, and tensors to fill it: what the tests of
 * a WebGPU device's memory share. */
#ifndef WEBGPU_MEMORY_H
#define WEBGPU_MEMORY_H

#include <wick/ops.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *library;

static inline wick_device *open_with(wick_webgpu_desc webgpu, bool verify) {
    wick_device *device = NULL;
    wick_error err = {0};
    webgpu.library = library;
    const wick_device_desc desc = {.backend = WICK_BACKEND_WEBGPU,
                                   .strict = true,
                                   .verify = verify,
                                   .fusion = WICK_FUSION_OFF, /* dispatches are counted */
                                   .webgpu = webgpu};
    if (wick_device_open(&desc, &device, &err) != WICK_OK) fail_msg("%s", err.message);
    return device;
}

static inline wick_device_stats stats_of(const wick_device *device) {
    wick_device_stats stats;
    wick_device_get_stats(device, &stats);
    return stats;
}

static inline void expect_ok(wick_device *device, wick_status status) {
    wick_error err = {0};
    (void)wick_device_error(device, &err);
    if (status != WICK_OK || err.status != WICK_OK) fail_msg("%d: %s", (int)status, err.message);
}

static inline uint32_t random_bits(uint32_t *state) {
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

/* Numbers from -2 to 2. */
static inline wick_tensor *random_tensor(wick_device *device, wick_shape shape, uint32_t seed) {
    int64_t count = 1;
    for (int i = 0; i < shape.rank; i++) count *= shape.extent[i];
    float *const values = malloc((size_t)count * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)((int)(random_bits(&seed) % 4001) - 2000) / 1000;
    wick_tensor *const t =
        wick_tensor_from_data(device, WICK_F32, shape, values, (size_t)count * sizeof *values);
    free(values);
    if (!t) expect_ok(device, WICK_ERR_INTERNAL);
    return t;
}

/* Runs what was queued: each op is compared with cpu/ref. */
static inline void expect_right(wick_device *device, const wick_tensor *result) {
    if (!result) expect_ok(device, WICK_ERR_INTERNAL);
    expect_ok(device, wick_synchronize(device));
    assert_int_equal(stats_of(device).n_fallbacks, 0);
}

/* Whether an option names the library; else says that there is none. */
static inline bool find_library(int argc, char **argv) {
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], "--webgpu-lib") == 0) library = argv[i + 1];
    if (!library) printf("skipped: no --webgpu-lib was given\n");
    return library != NULL;
}

#endif
