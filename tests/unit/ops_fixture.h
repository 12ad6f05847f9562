/* tests/unit/ops_fixture.h: a device for each test, of which nothing may be left after it; tensors
 * to work on, and what is expected of results. */
#ifndef OPS_FIXTURE_H
#define OPS_FIXTURE_H

#include "core/shape.h"
#include "tensor/observe.h"

#include <wick/ops.h>

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

typedef struct fixture {
    wick_device *device;
    uint64_t allowed, live, buffer_bytes; /* allocations before the hook refuses; blocks out */
} fixture;

static inline void *allocate(void *user, size_t size) {
    fixture *const f = user;
    if (f->allowed == 0) return NULL;
    f->allowed--;
    f->live++;
    return malloc(size);
}

static inline void release(void *user, void *memory, size_t size) {
    fixture *const f = user;
    (void)size;
    f->live--;
    free(memory);
}

static inline uint64_t buffer_bytes(const fixture *f) {
    wick_device_stats stats;
    wick_device_get_stats(f->device, &stats);
    return stats.buffer_bytes;
}

static inline int setup(void **state) {
    fixture *const f = calloc(1, sizeof *f);
    if (f == NULL) return -1;
    *state = f;
    f->allowed = UINT64_MAX;
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU,
                                   .n_threads = 1,
                                   .isa = WICK_ISA_REF,
                                   .allocator = {allocate, release, f}};
    if (wick_device_open(&desc, &f->device, NULL) != WICK_OK) return -1;
    f->buffer_bytes = buffer_bytes(f);
    return 0;
}

static inline int teardown(void **state) {
    fixture *const f = *state;
    (void)wick_synchronize(f->device);
    const bool is_clean = buffer_bytes(f) == f->buffer_bytes;
    wick_device_close(f->device);
    const bool is_empty = f->live == 0;
    free(f);
    return is_clean && is_empty ? 0 : -1;
}

static inline wick_device *device_of(void **state) { return ((fixture *)*state)->device; }

/* 0, 1, 2, ... in a tensor of shape. */
static inline wick_tensor *count_up(wick_device *device, wick_shape shape) {
    int64_t n;
    assert_true(wk_shape_count(&shape, &n));
    wick_tensor *const flat = wick_arange(device, WICK_F32, 0, (double)n, 1);
    wick_tensor *const x = wick_reshape(flat, shape);
    wick_release(flat);
    assert_non_null(x);
    return x;
}

static inline void assert_shape(const wick_tensor *x, wick_shape shape) {
    const wick_shape got = wick_tensor_shape(x);
    char text[2][64];
    if (!wk_shape_equal(&got, &shape)) {
        fail_msg("shape is %s, expected %s", wk_shape_text(&got, text[0], sizeof text[0]),
                 wk_shape_text(&shape, text[1], sizeof text[1]));
    }
}

/* x holds exactly these floats; gives x back. */
#define ASSERT_FLOATS(x, ...)                                                                      \
    assert_floats(x, (const float[]){__VA_ARGS__}, sizeof((const float[]){__VA_ARGS__}))

static inline void assert_floats(wick_tensor *x, const float *expected, size_t size) {
    assert_non_null(x);
    assert_int_equal(wick_tensor_bytes(x), size);
    float *const got = malloc(size);
    assert_non_null(got);
    assert_int_equal(wick_read(x, got, size), WICK_OK);
    for (size_t i = 0; i < size / sizeof *got; i++) assert_float_equal(got[i], expected[i], 1e-6);
    free(got);
    wick_release(x);
}

/* The call gave NULL and left this status and a sentence. */
static inline void assert_refused(wick_device *device, const wick_tensor *result,
                                  wick_status status) {
    wick_error error;
    assert_null(result);
    assert_int_equal(wick_device_error(device, &error), status);
    assert_true(strlen(error.message) > 0);
}

/* What the device was asked to compute. */
typedef struct seen {
    int n;
    wk_op last;
} seen;

static inline void observe(void *user, const wk_call *call) {
    seen *const s = user;
    s->n++;
    s->last = call->op;
}

static inline wk_observer *begin_observing(wick_device *device, seen *s) {
    return wk_observer_add(device, &(wk_observer_hooks){.op = observe, .user = s});
}

/* --- A weight of blocks --- */

enum { BLOCK = 32, BLOCK_BYTES = 34, ROWS = 3 };

/* q8_0 [3, 64]: row r has the scale 1 and the numbers r + 1 everywhere. */
static inline void q8_rows(unsigned char blocks[ROWS * 2 * BLOCK_BYTES]) {
    for (int b = 0; b < ROWS * 2; b++) {
        unsigned char *const block = blocks + b * BLOCK_BYTES;
        block[0] = 0x00;
        block[1] = 0x3c; /* 1 in binary16 */
        memset(block + 2, b / 2 + 1, BLOCK);
    }
}

static inline wick_tensor *q8_weight(wick_device *device) {
    unsigned char blocks[ROWS * 2 * BLOCK_BYTES];
    q8_rows(blocks);
    return wick_tensor_from_data(device, WICK_Q8_0, WICK_SHAPE(ROWS, 2 * BLOCK), blocks,
                                 sizeof blocks);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
