/* tests/gpu/webgpu_ops.h: what the tests of operations on WebGPU share. */
#ifndef WICK_TESTS_WEBGPU_OPS_H
#define WICK_TESTS_WEBGPU_OPS_H

#include <wick/ops.h>

/* How the device is opened: whole, with tensors in pieces of 64 KiB, and with ops cut as well. */
typedef struct manner {
    uint64_t max_binding_bytes;
    uint32_t submit_us;
} manner;

enum { N_MANNERS = 3, N_NARROW_FLOATS = 3 };
extern const manner manners[N_MANNERS];
extern const wick_dtype narrow_floats[N_NARROW_FLOATS];

/* NULL: the CPU. */
wick_device *open_device(const manner *m, bool is_strict);
/* The contents; the caller frees them. */
void *bytes_of(wick_tensor *t);
void assert_same(wick_tensor *got, wick_tensor *want);
uint64_t fallbacks_of(const wick_device *device);

/* webgpu_ops_ordering.c */
int run_orderings(void);

#endif
