/* What wick_device_measure says about the machine: plausible figures, no memory kept. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <wick/wick.h>

#include <stdlib.h>
#include <string.h>

static wick_device *open_device(const wick_device_desc *desc) {
    wick_device *device = NULL;
    wick_error error = {0};
    if (wick_device_open(desc, &device, &error) != WICK_OK) fail_msg("%s", error.message);
    return device;
}

static void test_limits(void **state) {
    (void)state;
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .n_threads = 2};
    wick_device *const device = open_device(&desc);
    wick_device_stats before, after;
    wick_device_get_stats(device, &before);
    wick_device_limits limits;
    wick_error error = {0};
    assert_int_equal(wick_device_measure(device, &limits, &error), WICK_OK);
    wick_device_get_stats(device, &after);
    assert_true(after.live_bytes == before.live_bytes);
    assert_true(limits.read_bytes_per_second > 1e8 && limits.read_bytes_per_second < 1e13);
    wick_device_info info;
    wick_device_get_info(device, &info);
    if (strcmp(info.isa, "ref") != 0) {
        assert_true(limits.f32_ops_per_second > 1e8 && limits.f32_ops_per_second < 1e15);
        assert_true(limits.integer_ops_per_second > 1e8 && limits.integer_ops_per_second < 1e15);
    }
    wick_device_close(device);
}

static void test_plain_loops(void **state) {
    (void)state;
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .isa = WICK_ISA_REF};
    wick_device *const device = open_device(&desc);
    wick_device_limits limits;
    assert_int_equal(wick_device_measure(device, &limits, NULL), WICK_OK);
    assert_true(limits.read_bytes_per_second > 1e8);
    assert_true(limits.integer_ops_per_second == 0 && limits.f32_ops_per_second == 0);
    wick_device_close(device);
}

static void test_a_backend_that_does_not_measure(void **state) {
    (void)state;
    const wick_device_desc desc = {.backend = WICK_BACKEND_NULL};
    wick_device *const device = open_device(&desc);
    wick_device_limits limits;
    wick_error error = {0};
    assert_int_equal(wick_device_measure(device, &limits, &error), WICK_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "null"));
    assert_true(limits.read_bytes_per_second == 0);
    wick_device_close(device);
}

/* Has no room for anything large. */
static void *allocate_little(void *user, size_t size) {
    (void)user;
    return size > 1U << 24 ? NULL : malloc(size);
}

static void release(void *user, void *memory, size_t size) {
    (void)user, (void)size;
    free(memory);
}

static void test_no_memory(void **state) {
    (void)state;
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU,
                                   .n_threads = 1,
                                   .allocator = {.allocate = allocate_little, .release = release}};
    wick_device *const device = open_device(&desc);
    wick_device_limits limits;
    wick_error error = {0};
    assert_int_equal(wick_device_measure(device, &limits, &error), WICK_ERR_OUT_OF_MEMORY);
    assert_true(limits.read_bytes_per_second == 0);
    wick_device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_plain_loops),
        cmocka_unit_test(test_a_backend_that_does_not_measure),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
