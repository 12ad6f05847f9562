/* Kernels of the user's on devices that cannot have any, and what a closed device says of tensors
 * that were forgotten. What they do on a GPU: tests/gpu/webgpu_custom.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backend/backend.h"

#include <wick/wick.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void test_other_devices(void **state) {
    (void)state;
    static const struct {
        wick_backend backend;
        const char *name;
    } backends[] = {{WICK_BACKEND_CPU, "cpu"}, {WICK_BACKEND_NULL, "null"}};
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
        const wick_device_desc desc = {.backend = backends[i].backend, .n_threads = 1};
        const wick_kernel_desc kernel_desc = {
            .source = "", .n_buffers = 1, .access = {WICK_KERNEL_READ_WRITE}};
        wick_device *device;
        wick_error err = {0};
        char at;
        wick_kernel *kernel = (wick_kernel *)(void *)&at;
        assert_int_equal(wick_device_open(&desc, &device, NULL), WICK_OK);
        assert_int_equal(wick_kernel_make(device, &kernel_desc, &kernel, &err),
                         WICK_ERR_UNSUPPORTED);
        assert_null(kernel);
        assert_non_null(strstr(err.message, "need a WebGPU device, this one is "));
        assert_non_null(strstr(err.message, backends[i].name));
        assert_int_equal(wick_kernel_workgroup_size(device, 1000), 0);
        wick_device_close(device);
    }
}

static void test_nothing_given(void **state) {
    (void)state;
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .n_threads = 1};
    wick_device *device;
    wick_kernel *kernel;
    uint32_t workgroups[3];
    wick_error err = {0};
    assert_int_equal(wick_device_open(&desc, &device, NULL), WICK_OK);
    assert_int_equal(wick_kernel_make(NULL, NULL, &kernel, &err), WICK_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "device is NULL"));
    assert_int_equal(wick_kernel_make(device, NULL, &kernel, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_kernel_make(device, &(wick_kernel_desc){0}, &kernel, NULL),
                     WICK_ERR_ARGUMENT);
    assert_int_equal(wick_kernel_make(device, &(wick_kernel_desc){0}, NULL, NULL),
                     WICK_ERR_ARGUMENT);
    assert_int_equal(wick_kernel_make_poll(NULL, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_kernel_run(NULL, NULL, 0, NULL, NULL, 0), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_kernel_workgroups(NULL, 1, workgroups), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_kernel_workgroup_size(NULL, 1), 0);
    wick_kernel_release(NULL);
    wick_device_close(device);
}

/* --- Tensors that were never released --- */

typedef struct listener {
    int n_lines;
    char last[600];
} listener;

static void hear(void *user, wick_log_level level, const char *message) {
    listener *const l = user;
    assert_int_equal(level, WICK_LOG_WARNING);
    l->n_lines++;
    snprintf(l->last, sizeof l->last, "%s", message);
}

/* Memory that goes back whole, with what was forgotten in it. */
enum { POOL_BYTES = 4 << 20 };
typedef struct pool {
    max_align_t memory[POOL_BYTES / sizeof(max_align_t)];
    size_t used; /* of memory */
} pool;

static void *pool_allocate(void *user, size_t size) {
    pool *const p = user;
    const size_t n = size / sizeof *p->memory + 1;
    if (n > sizeof p->memory / sizeof *p->memory - p->used) return NULL;
    p->used += n;
    return p->memory + p->used - n;
}

static void pool_release(void *user, void *memory, size_t size) {
    (void)user, (void)memory, (void)size;
}

static wick_device *open_heard(pool *p, listener *l) {
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU,
                                   .n_threads = 1,
                                   .allocator = {pool_allocate, pool_release, p},
                                   .log = hear,
                                   .log_user = l};
    wick_device *device;
    *l = (listener){0};
    p->used = 0;
    assert_int_equal(wick_device_open(&desc, &device, NULL), WICK_OK);
    return device;
}

static void test_forgotten_tensors(void **state) {
    (void)state;
    pool *const p = malloc(sizeof *p);
    listener l;
    assert_non_null(p);
    wick_device *device = open_heard(p, &l);
    wick_tensor *const a = wick_empty(device, WICK_F32, WICK_SHAPE(2, 3));
    wick_tensor *const b = wick_empty(device, WICK_U8, WICK_SHAPE(5));
    wick_tensor *const c = wick_empty(device, WICK_I32, WICK_SHAPE(7));
    wick_release(b); /* in the middle, at the end, at the beginning of the list */
    wick_release(c);
    wick_release(a);
    wick_device_close(device);
    assert_int_equal(l.n_lines, 0);

    device = open_heard(p, &l);
    wick_release(wick_empty(device, WICK_U8, WICK_SHAPE(5)));
    (void)wick_empty(device, WICK_F32, WICK_SHAPE(2, 3));
    wick_device_close(device);
    assert_int_equal(l.n_lines, 1);
    assert_non_null(strstr(l.last, "1 tensor that was never released: f32[2, 3]"));

    device = open_heard(p, &l);
    for (int i = 0; i < 20; i++) (void)wick_empty(device, WICK_F16, WICK_SHAPE(i, 9));
    wick_device_close(device);
    assert_int_equal(l.n_lines, 1);
    assert_non_null(strstr(l.last, "20 tensors that were never released: f16[19, 9], f16[18, 9]"));
    assert_non_null(strstr(l.last, "f16[12, 9] and older ones"));
    free(p);
}

/* As few rows as hold n, and none is one more than it needs. */
static void test_spread_workgroups(void **state) {
    (void)state;
    static const struct {
        uint64_t n;
        uint32_t x, y;
    } cases[] = {{1, 1, 1},   {9, 9, 1},  {10, 10, 1},  {11, 6, 2},
                 {20, 10, 2}, {21, 7, 3}, {99, 10, 10}, {100, 10, 10}};
    uint32_t x, y;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(wk_spread_workgroups(cases[i].n, 10, &x, &y));
        assert_int_equal(x, cases[i].x);
        assert_int_equal(y, cases[i].y);
    }
    assert_false(wk_spread_workgroups(101, 10, &x, &y));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spread_workgroups),
        cmocka_unit_test(test_other_devices),
        cmocka_unit_test(test_nothing_given),
        cmocka_unit_test(test_forgotten_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
