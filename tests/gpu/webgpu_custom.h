/* tests/gpu/webgpu_custom.h: what the tests of the user's kernels share. */
#ifndef WICK_TESTS_WEBGPU_CUSTOM_H
#define WICK_TESTS_WEBGPU_CUSTOM_H

#include <wick/wick.h>

wick_device *open_with(wick_device_desc desc);
wick_device *open_plain(void);
void expect_ok(wick_device *device, wick_status status);
/* The device holds this failure, with these words in it. */
void expect_failed(wick_device *device, wick_status status, wick_status want, const char *words);
wick_kernel *make(wick_device *device, const wick_kernel_desc *desc);
/* 0, 1, 2 ... */
wick_tensor *count_up(wick_device *device, wick_shape shape);
/* Element i is start + i * step. */
void expect_line(wick_tensor *x, double start, double step);

/* y = y + a * x */
extern const wick_kernel_desc axpy_desc;
wick_status axpy(wick_kernel *kernel, float a, wick_tensor *x, wick_tensor *y);

/* webgpu_custom_wrong.c */
int run_wrong_kernels(void);

#endif
