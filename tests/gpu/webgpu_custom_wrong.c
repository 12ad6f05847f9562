/* tests/gpu/webgpu_custom_wrong.c: whatever is wrong with a kernel of the user's becomes a
 * sentence. */
#include "webgpu_custom.h"

#include "backend/webgpu/webgpu.h"
#include "checked_heap.h"
#include "core/compiler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define Y "@group(0) @binding(0) var<storage, read_write> y: array<f32>;\n"
#define MAIN "@compute @workgroup_size(1) fn main() "
#define FINE Y MAIN "{ y[0] = 1; }\n"

static const struct {
    const char *source, *words[3];
    const char *entry;
} sources[] = {
    {Y MAIN "{\n    y[0] = nowhere;\n}\n", {"line 3", "\"y[0] = nowhere;\"", "3:12"}, NULL},
    {Y MAIN "{ y[0] = 1u; }\n", {"line 2", "kernel main", "f32"}, NULL},
    {Y "fn main( {}\n", {"line 2", "\"fn main( {}\"", "2:10"}, NULL},
    {FINE, {"kernel other", "other", ""}, "other"},
    {FINE, {"kernel", "", ""}, "no name\n"},
    {"", {"main", "", ""}, NULL},
    {"@group(0) @binding(1) var<storage, read_write> y: array<f32>;\n" MAIN "{ y[0] = 1; }\n",
     {"binding", "", ""},
     NULL}, /* where the uniform would be */
    {"@group(0) @binding(5) var<storage, read_write> y: array<f32>;\n" MAIN "{ y[0] = 1; }\n",
     {"5", "", ""},
     NULL},
    {"@group(0) @binding(0) var<storage, read> y: array<f32>;\n" MAIN "{ _ = y[0]; }\n",
     {"0", "", ""},
     NULL},
    {Y "@compute @workgroup_size(100000) fn main() { y[0] = 1; }\n", {"kernel main", "", ""}, NULL},
    {Y "@compute @workgroup_size(0) fn main() { y[0] = 1; }\n", {"", "", ""}, NULL},
    {Y "enable nothing;\n" MAIN "{ y[0] = 1; }\n", {"line 2", "", ""}, NULL},
    {Y "@fragment fn main() { }\n", {"main", "", ""}, NULL},
    {Y MAIN "{ main(); }\n", {"main", "", ""}, NULL},
    {Y "/* no end", {"kernel main", "", ""}, NULL},
    {Y "@group(0) @binding(1) var<uniform> u: array<vec4<f32>, 2>;\n" MAIN "{ y[0] = u[1].x; }\n",
     {"kernel main", "", ""},
     NULL}, /* more than is announced */
};

static void wrong_sources_are_told(void **state) {
    (void)state;
    wick_device *const device = open_plain();
    for (size_t i = 0; i < WK_COUNT(sources); i++) {
        wick_error err = {0};
        wick_kernel *kernel;
        const wick_kernel_desc desc = {.source = sources[i].source,
                                       .entry = sources[i].entry,
                                       .n_buffers = 1,
                                       .access = {WICK_KERNEL_READ_WRITE}};
        const wick_status status = wick_kernel_make(device, &desc, &kernel, &err);
        if (status != WICK_ERR_VALUE) fail_msg("%zu: %d %s", i, (int)status, err.message);
        assert_null(kernel);
        for (size_t k = 0; k < WK_COUNT(sources[i].words); k++)
            if (!strstr(err.message, sources[i].words[k]))
                fail_msg("%zu: no '%s' in '%s'", i, sources[i].words[k], err.message);
    }
    wick_device_close(device);
}

/* Running what did not compile; and the device goes on. */
static void runs_of_a_wrong_source(void **state) {
    (void)state;
    wick_device *const device = open_plain();
    wick_kernel *wrong, *const right = make(device, &axpy_desc);
    wick_tensor *const x = count_up(device, WICK_SHAPE(10)), *const y = wick_add(x, x);
    wick_kernel_desc desc = axpy_desc;
    desc.source = "fn";
    expect_ok(device, wick_kernel_make_start(device, &desc, &wrong, NULL));
    wick_status status = WICK_OK;
    for (int i = 0; i < 2 && status == WICK_OK; i++) {
        status = axpy(wrong, 1, x, y);
        if (status == WICK_OK) status = wick_synchronize(device);
    }
    expect_failed(device, status, WICK_ERR_VALUE, "kernel axpy");
    assert_int_equal(wick_kernel_make_poll(wrong, NULL), WICK_ERR_VALUE);
    wick_kernel_release(wrong);
    expect_ok(device, axpy(right, 1, x, y));
    expect_line(y, 0, 3);
    wick_kernel_release(right);
    wick_release(x);
    wick_release(y);
    wick_device_close(device);
}

/* Text that a compiler could stumble over: a status, whatever it is, and nothing ends. */
static void hostile_sources(void **state) {
    (void)state;
    enum { DEEP = 200000, HUGE_SOURCE = 2 << 20 };
    wick_device *const device = open_plain();
    static char text[HUGE_SOURCE + 1];
    for (int i = 0; i < 6; i++) {
        int n = snprintf(text, sizeof text, "%s", Y MAIN "{ y[0] = ");
        const int depth = i == 0 ? DEEP : 100;
        if (i <= 1) {
            memset(text + n, '(', (size_t)depth);
            text[n + depth] = '\0';
        } else if (i == 2) {
            memset(text, ' ', HUGE_SOURCE);
        } else if (i == 3) {
            strcpy(text, Y MAIN "{ y[0] = 1; } // \xff\xfe\n");
        } else if (i == 4) {
            strcpy(text, Y MAIN "{ y[0] = 1; } // \xe2\x82\xac und \xf0\x9f\x90\x88\n");
        } else {
            for (int k = 0; k < DEEP; k++) text[n + k] = k % 2 ? '-' : '!';
            text[n + DEEP] = '\0';
        }
        wick_error err = {0};
        wick_kernel *kernel;
        const wick_kernel_desc desc = {
            .source = text, .n_buffers = 1, .access = {WICK_KERNEL_READ_WRITE}};
        const wick_status status = wick_kernel_make(device, &desc, &kernel, &err);
        if (i == 4)
            assert_int_equal(status, WICK_OK);
        else if (status != WICK_ERR_VALUE)
            fail_msg("%d: %d %s", i, (int)status, err.message);
        wick_kernel_release(kernel);
    }
    wick_device_close(device);
}

static void wrong_descs_are_told(void **state) {
    (void)state;
    wick_device *const device = open_with(
        (wick_device_desc){.webgpu = {.default_limits = true, .without = WICK_WEBGPU_SUBGROUPS}});
    static const struct {
        wick_kernel_desc desc;
        wick_status status;
        const char *words;
    } cases[] = {
        {{.n_buffers = 1, .access = {1}}, WICK_ERR_ARGUMENT, "source is NULL"},
        {{.source = FINE}, WICK_ERR_VALUE, "0 buffers, from 1 to 8"},
        {{.source = FINE, .n_buffers = 9}, WICK_ERR_VALUE, "9 buffers"},
        {{.source = FINE, .n_buffers = 2}, WICK_ERR_VALUE, "writes to none"},
        {{.source = FINE, .n_buffers = 1, .access = {2}}, WICK_ERR_VALUE, "no access number 2"},
        {{.source = FINE, .n_buffers = 1, .access = {1}, .uniform_bytes = 513},
         WICK_ERR_VALUE,
         "513 bytes of uniform, at most 512"},
        {{.source = FINE, .n_buffers = 1, .access = {1}, .needs = 1024}, WICK_ERR_VALUE, "0x400"},
        {{.source = FINE, .n_buffers = 1, .access = {1}, .needs = WICK_WEBGPU_SUBGROUPS},
         WICK_ERR_UNSUPPORTED,
         "(0x2)"},
        {{.source = FINE, .n_buffers = 1, .access = {1}, .workgroup = {257}},
         WICK_ERR_VALUE,
         "257 x 1 x 1 threads"},
        {{.source = FINE, .n_buffers = 1, .access = {1}, .workgroup = {32, 32}},
         WICK_ERR_VALUE,
         "256 in all"},
        {{.source = FINE, .n_buffers = 1, .access = {1}, .workgroup = {1, 1, 65}},
         WICK_ERR_VALUE,
         "1 x 1 x 65"},
        {{.source = FINE, .n_buffers = 1, .access = {1}, .entry = "\xff"}, WICK_ERR_VALUE, "UTF-8"},
    };
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        wick_error err = {0};
        wick_kernel *kernel;
        const wick_status status = wick_kernel_make(device, &cases[i].desc, &kernel, &err);
        assert_null(kernel);
        if (status != cases[i].status || !strstr(err.message, cases[i].words))
            fail_msg("%zu: %d, no '%s' in '%s'", i, (int)status, cases[i].words, err.message);
    }
    wick_device_close(device);
}

static void wrong_runs_are_told(void **state) {
    (void)state;
    wick_device *const device = open_plain(), *const other = open_plain();
    const wick_scope scope = wick_scope_begin(device);
    wick_kernel *const kernel = make(device, &axpy_desc);
    wick_tensor *const x = count_up(device, WICK_SHAPE(10)), *const y = wick_add(x, x);
    wick_tensor *const strange = count_up(other, WICK_SHAPE(10));
    wick_tensor *const empty = wick_zeros(device, WICK_F32, WICK_SHAPE(0));
    static const uint32_t one[3] = {1, 1, 1}, many[3] = {1, UINT32_MAX, 1};
    const float a = 1;
    const struct {
        wick_tensor *tensors[2];
        int n;
        const uint32_t *workgroups;
        const void *uniform;
        size_t bytes;
        wick_status status;
        const char *words;
    } cases[] = {
        {{x, y}, 1, one, &a, 4, WICK_ERR_ARGUMENT, "kernel axpy: 1 tensors, it has 2"},
        {{x, y}, 2, one, &a, 8, WICK_ERR_ARGUMENT, "8 bytes of uniform, it was made for 4"},
        {{x, y}, 2, one, NULL, 4, WICK_ERR_ARGUMENT, "at NULL"},
        {{x, y}, 2, many, &a, 4, WICK_ERR_VALUE, "4294967295 workgroups in dimension 1"},
        {{x, y}, 2, NULL, &a, 4, WICK_ERR_ARGUMENT, "workgroups is NULL"},
        {{x, NULL}, 2, one, &a, 4, WICK_ERR_ARGUMENT, "tensor 1 is NULL"},
        {{strange, y}, 2, one, &a, 4, WICK_ERR_ARGUMENT, "tensor 0 belongs to another device"},
        {{empty, y}, 2, one, &a, 4, WICK_ERR_SHAPE, "tensor 0 is empty"},
    };
    for (size_t i = 0; i < WK_COUNT(cases); i++)
        expect_failed(device,
                      wick_kernel_run(kernel, cases[i].tensors, cases[i].n, cases[i].workgroups,
                                      cases[i].uniform, cases[i].bytes),
                      cases[i].status, cases[i].words);
    expect_failed(device, wick_kernel_run(kernel, NULL, 2, one, &a, 4), WICK_ERR_ARGUMENT,
                  "tensors is NULL");
    assert_int_equal(wick_kernel_run(NULL, NULL, 0, NULL, NULL, 0), WICK_ERR_ARGUMENT);
    expect_ok(device, axpy(kernel, 1, x, y));
    expect_line(y, 0, 3);
    wick_release(strange);
    wick_scope_end(scope);
    wick_kernel_release(kernel);
    wick_device_close(device);
    wick_device_close(other);
}

/* Every allocation of making and running one fails once: it is reported, nothing is lost. */
static void memory_runs_out(void **state) {
    (void)state;
    checked_heap heap;
    checked_heap_init(&heap, UINT64_MAX);
    wick_device *const device = open_with((wick_device_desc){.allocator = heap.heap.hook});
    bool is_refused = true;
    for (uint64_t n = 0; is_refused; n++) {
        const wick_scope scope = wick_scope_begin(device);
        wick_tensor *const x = count_up(device, WICK_SHAPE(300)), *const y = wick_add(x, x);
        wick_tensor *const part = wick_narrow(y, 0, 1, 200), *const other =
                                                                 wick_narrow(x, 0, 0, 200);
        expect_ok(device, wick_synchronize(device));
        wick_error err = {0};
        wick_kernel *kernel;
        const uint64_t n_refused = heap.n_refused;
        heap.n_allowed = n;
        heap.refuses_once = true;
        wick_status status = wick_kernel_make(device, &axpy_desc, &kernel, &err);
        if (status == WICK_OK) status = axpy(kernel, 2, other, part);
        if (status == WICK_OK) status = wick_synchronize(device);
        heap.n_allowed = UINT64_MAX;
        (void)wick_device_error(device, NULL);
        is_refused = heap.n_refused > n_refused;
        if (status != WICK_OK && status != WICK_ERR_OUT_OF_MEMORY)
            fail_msg("allocation %u: %d %s", (unsigned)n, (int)status, err.message);
        wick_kernel_release(kernel);
        wick_scope_end(scope);
        if (!is_refused) assert_int_equal(status, WICK_OK);
    }
    wick_device_close(device);
    assert_int_equal(heap.n_live, 0);
    assert_int_equal(heap.n_wrong_sizes, 0);
}

/* What only the implementation finds, when it is run: a binding that is too short for its type. */
static void gpu_errors_name_the_kernel(void **state) {
    (void)state;
    static const char source[] =
        "@group(0) @binding(0) var<storage, read_write> y: array<vec4f, 4>;\n" MAIN
        "{ y[0] = vec4f(1); }\n";
    static const wick_kernel_desc desc = {
        .source = source, .label = "too_short", .n_buffers = 1, .access = {WICK_KERNEL_READ_WRITE}};
    for (int i = 0; i < 4; i++) {
        const bool debug = i % 2 == 1, is_released_early = i >= 2;
        wick_device *const device = open_with((wick_device_desc){.webgpu.debug = debug});
        wick_kernel *kernel = make(device, &desc), *const fine = make(device, &axpy_desc);
        wick_tensor *const y = wick_zeros(device, WICK_F32, WICK_SHAPE(2));
        wick_tensor *const x = count_up(device, WICK_SHAPE(10)), *const z = wick_add(x, x);
        static const uint32_t one[3] = {1, 1, 1};
        expect_ok(device, axpy(fine, 1, x, z));
        expect_ok(device, wick_kernel_run(kernel, &y, 1, one, NULL, 0));
        expect_ok(device, axpy(fine, 1, x, z));
        if (is_released_early) {
            wick_kernel_release(kernel);
            kernel = NULL;
        }
        float got[2];
        const wick_status status = wick_read(y, got, sizeof got);
        wick_error err = {0};
        (void)wick_device_error(device, &err);
        if (status != WICK_ERR_DEVICE || (debug && !strstr(err.message, "kernel too_short: ")))
            fail_msg("%d: %s", (int)status, err.message);
        wick_tensor *const again = count_up(device, WICK_SHAPE(10)); /* the device goes on */
        expect_line(again, 0, 1);
        wick_release(again);
        wick_release(y);
        wick_release(x);
        wick_release(z);
        wick_kernel_release(kernel);
        wick_kernel_release(fine);
        wick_device_close(device);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(wrong_sources_are_told),
    cmocka_unit_test(runs_of_a_wrong_source),
    cmocka_unit_test(hostile_sources),
    cmocka_unit_test(wrong_descs_are_told),
    cmocka_unit_test(wrong_runs_are_told),
    cmocka_unit_test(memory_runs_out),
    cmocka_unit_test(gpu_errors_name_the_kernel),
};

int run_wrong_kernels(void) {
    return cmocka_run_group_tests_name("wrong kernels", tests, NULL, NULL);
}
