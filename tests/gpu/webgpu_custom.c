/* usage: webgpu_custom [--backend webgpu] --webgpu-lib LIBRARY
 * Kernels of the user's: what they compute in the middle of other operations, on tensors that lie
 * anyhow, after a loss; and that whatever is wrong with one becomes a sentence. With the drivers
 * that the environment names. */
#include "webgpu_custom.h"

#include "backend/webgpu/webgpu.h"
#include "tensor/device.h"
#include "tensor/plan.h"

#include <wick/grad.h>
#include <wick/operation.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *library;

wick_device *open_with(wick_device_desc desc) {
    wick_device *device = NULL;
    wick_error err = {0};
    desc.backend = WICK_BACKEND_WEBGPU;
    desc.webgpu.library = library;
    if (wick_device_open(&desc, &device, &err) != WICK_OK) fail_msg("%s", err.message);
    return device;
}

wick_device *open_plain(void) { return open_with((wick_device_desc){.strict = true}); }

void expect_ok(wick_device *device, wick_status status) {
    wick_error err = {0};
    (void)wick_device_error(device, &err);
    if (status != WICK_OK || err.status != WICK_OK) fail_msg("%d: %s", (int)status, err.message);
}

void expect_failed(wick_device *device, wick_status status, wick_status want, const char *words) {
    wick_error err = {0};
    (void)wick_device_error(device, &err);
    if (status != want || err.status != want || !strstr(err.message, words))
        fail_msg("%d, %d: '%s' is not in '%s'", (int)status, (int)err.status, words, err.message);
}

wick_kernel *make(wick_device *device, const wick_kernel_desc *desc) {
    wick_kernel *kernel;
    wick_error err = {0};
    if (wick_kernel_make(device, desc, &kernel, &err) != WICK_OK) fail_msg("%s", err.message);
    return kernel;
}

wick_tensor *count_up(wick_device *device, wick_shape shape) {
    int64_t n = 1;
    for (int i = 0; i < shape.rank; i++) n *= shape.extent[i];
    wick_tensor *const flat = wick_arange(device, WICK_F32, 0, (double)n, 1);
    wick_tensor *const x = wick_reshape(flat, shape);
    wick_release(flat);
    return x;
}

void expect_line(wick_tensor *x, double start, double step) {
    const size_t bytes = wick_tensor_bytes(x), n = bytes / sizeof(float);
    float *const got = malloc(bytes);
    assert_non_null(got);
    expect_ok(wick_tensor_device(x), wick_read(x, got, bytes));
    for (size_t i = 0; i < n; i++) {
        const double want = start + (double)i * step;
        if ((double)got[i] != want) fail_msg("element %zu is %g, not %g", i, (double)got[i], want);
    }
    free(got);
}

static const char AXPY[] =
    "@group(0) @binding(0) var<storage, read> x: array<f32>;\n"
    "@group(0) @binding(1) var<storage, read_write> y: array<f32>;\n"
    "@group(0) @binding(2) var<uniform> a: f32;\n"
    "@compute @workgroup_size(WORKGROUP_X)\n"
    "fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) n_groups: vec3u,\n"
    "        @builtin(local_invocation_id) local: vec3u) {\n"
    "    let i = (group.y * n_groups.x + group.x) * WORKGROUP_X + local.x;\n"
    "    if (i < arrayLength(&y)) { y[i] = y[i] + a * x[i]; }\n"
    "}\n";
const wick_kernel_desc axpy_desc = {.source = AXPY,
                                    .label = "axpy",
                                    .n_buffers = 2,
                                    .access = {WICK_KERNEL_READ, WICK_KERNEL_READ_WRITE},
                                    .uniform_bytes = sizeof(float)};

wick_status axpy(wick_kernel *kernel, float a, wick_tensor *x, wick_tensor *y) {
    uint32_t workgroups[3];
    const uint64_t n = (uint64_t)wick_tensor_size(y);
    const wick_status status = wick_kernel_workgroups(kernel, n, workgroups);
    if (status != WICK_OK) return status;
    return wick_kernel_run(kernel, (wick_tensor *[]){x, y}, 2, workgroups, &a, sizeof a);
}

/* --- What it computes --- */

static void runs_in_order(void **state) {
    (void)state;
    wick_device *const device = open_plain();
    const wick_scope scope = wick_scope_begin(device);
    wick_kernel *const kernel = make(device, &axpy_desc);
    wick_tensor *const x = count_up(device, WICK_SHAPE(1000));
    wick_tensor *const y = wick_add(x, x); /* 2 i */
    expect_ok(device, axpy(kernel, 3, x, y));
    wick_tensor *const z = wick_add(y, x); /* 6 i */
    expect_ok(device, axpy(kernel, -1, z, y));
    expect_line(z, 0, 6);
    expect_line(y, 0, -1);
    wick_device_stats stats;
    wick_device_get_stats(device, &stats);
    assert_int_equal(stats.n_fallbacks, 0);
    wick_scope_end(scope);
    wick_kernel_release(kernel);
    wick_device_close(device);
}

/* Released, or the device closed, while its runs are queued. */
static void is_released_early(void **state) {
    (void)state;
    for (int is_read = 0; is_read < 2; is_read++) {
        wick_device *const device = open_plain();
        wick_kernel *const kernel = make(device, &axpy_desc);
        wick_tensor *const x = count_up(device, WICK_SHAPE(100));
        wick_tensor *const y = wick_add(x, x);
        expect_ok(device, axpy(kernel, 2, x, y));
        if (is_read) assert_true(wick_poll(device) >= 0); /* it is recorded, not only queued */
        expect_ok(device, axpy(kernel, 2, x, y));
        wick_kernel_release(kernel);
        if (is_read) expect_line(y, 0, 6);
        wick_release(x);
        wick_release(y);
        wick_device_close(device);
    }
}

/* More workgroups than fit one dimension; and sizes that do not divide. */
static void sizes(void **state) {
    (void)state;
    wick_device *const device = open_with((wick_device_desc){.webgpu.default_limits = true});
    static const int64_t counts[] = {1, 63, 64, 65, 70000 * 64 + 3};
    for (size_t i = 0; i < WK_COUNT(counts); i++) {
        const wick_scope scope = wick_scope_begin(device);
        wick_kernel *const kernel = make(device, &axpy_desc);
        wick_tensor *const x = wick_ones(device, WICK_F32, WICK_SHAPE(counts[i]));
        wick_tensor *const y = wick_zeros(device, WICK_F32, WICK_SHAPE(counts[i]));
        expect_ok(device, axpy(kernel, 5, x, y));
        expect_line(y, 5, 0);
        wick_scope_end(scope);
        wick_kernel_release(kernel);
    }
    wick_kernel *const kernel = make(device, &axpy_desc);
    uint32_t groups[3];
    expect_ok(device, wick_kernel_workgroups(kernel, 0, groups));
    assert_int_equal(groups[0], 0);
    expect_ok(device, wick_kernel_workgroups(kernel, UINT64_C(65535) * 65535 * 64, groups));
    assert_true(groups[0] == 65535 && groups[1] == 65535 && groups[2] == 1);
    expect_failed(device, wick_kernel_workgroups(kernel, UINT64_MAX, groups), WICK_ERR_VALUE,
                  "at most 65535 x 65535");
    assert_int_equal(wick_kernel_workgroup_size(device, 1), 1);
    assert_int_equal(wick_kernel_workgroup_size(device, 33), 64);
    assert_int_equal(wick_kernel_workgroup_size(device, UINT64_C(1) << 32), 256);
    wick_kernel_release(kernel);
    wick_device_close(device);
}

/* The size of workgroups, the entry and the feature are the desc's; words of less than four bytes.
 */
static void descs(void **state) {
    (void)state;
    static const char source[] =
        "@group(0) @binding(0) var<storage, read_write> y: array<u32>;\n"
        "@compute @workgroup_size(WORKGROUP_X, WORKGROUP_Y, WORKGROUP_Z)\n"
        "fn sizes(@builtin(local_invocation_index) i: u32) {\n"
        "    if (i == WORKGROUP_X * WORKGROUP_Y * WORKGROUP_Z - 1) { y[0] = i + 1; }\n"
        "    if (i == 0) { y[1] = arrayLength(&y); }\n"
        "}\n";
    wick_device *const device = open_plain();
    wick_kernel *const kernel = make(device, &(wick_kernel_desc){.source = source,
                                                                 .entry = "sizes",
                                                                 .workgroup = {4, 3, 2},
                                                                 .n_buffers = 1,
                                                                 .access = {1}});
    wick_tensor *const y = wick_zeros(device, WICK_U8, WICK_SHAPE(11));
    static const uint32_t one[3] = {1, 1, 1}, none[3] = {1, 0, 1};
    unsigned char got[11];
    expect_ok(device, wick_kernel_run(kernel, &y, 1, none, NULL, 0));
    expect_ok(device, wick_read(y, got, sizeof got));
    assert_int_equal(got[0], 0);
    expect_ok(device, wick_kernel_run(kernel, &y, 1, one, NULL, 0));
    expect_ok(device, wick_read(y, got, sizeof got));
    assert_int_equal(got[0], 24);
    assert_int_equal(got[4], 3);
    wick_release(y);
    wick_kernel_release(kernel);
    wick_device_close(device);
}

static void features(void **state) {
    (void)state;
    wick_device *const device = open_plain();
    wick_device_info info;
    wick_device_get_info(device, &info);
    static const wick_kernel_desc half = {
        .source = "@group(0) @binding(0) var<storage, read_write> y: array<f16>;\n"
                  "@compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {\n"
                  "    y[i] = f16(i) * 0.5h;\n"
                  "}\n",
        .n_buffers = 1,
        .access = {WICK_KERNEL_READ_WRITE},
        .needs = WICK_WEBGPU_F16,
    };
    wick_error err = {0};
    wick_kernel *kernel;
    const wick_status status = wick_kernel_make(device, &half, &kernel, &err);
    if (info.adapter.features & WICK_WEBGPU_F16) {
        wick_tensor *const y = wick_zeros(device, WICK_F16, WICK_SHAPE(4));
        static const uint32_t one[3] = {1, 1, 1};
        if (status != WICK_OK) fail_msg("%s", err.message);
        expect_ok(device, wick_kernel_run(kernel, &y, 1, one, NULL, 0));
        wick_tensor *const wide = wick_cast(y, WICK_F32);
        expect_line(wide, 0, 0.5);
        wick_release(wide);
        wick_release(y);
        wick_kernel_release(kernel);
    } else {
        assert_int_equal(status, WICK_ERR_UNSUPPORTED);
        assert_non_null(strstr(err.message, "lacks"));
    }
    wick_device_close(device);
}

/* --- How tensors lie --- */

/* Views that no binding can show are copied, and back where they were written. */
static void views(void **state) {
    (void)state;
    wick_device *const device = open_plain();
    const wick_scope scope = wick_scope_begin(device);
    wick_kernel *const kernel = make(device, &axpy_desc);
    wick_tensor *const x = count_up(device, WICK_SHAPE(300));
    wick_tensor *const y = wick_zeros(device, WICK_F32, WICK_SHAPE(300));
    wick_tensor *const x_part = wick_narrow(x, 0, 1, 99), *const y_part = wick_narrow(y, 0, 3, 99);
    expect_ok(device, axpy(kernel, 1, x_part, y_part)); /* y[3 ..] = 1, 2 .. 99 */
    expect_line(wick_narrow(y, 0, 3, 99), 1, 1);
    expect_line(wick_narrow(y, 0, 0, 3), 0, 0);
    expect_line(wick_narrow(y, 0, 102, 198), 0, 0);

    wick_tensor *const square = count_up(device, WICK_SHAPE(20, 20));
    wick_tensor *const turned = wick_transpose(square, 0, 1);
    wick_tensor *const sum = wick_zeros(device, WICK_F32, WICK_SHAPE(20, 20));
    expect_ok(device, axpy(kernel, 2, turned, wick_transpose(sum, 0, 1)));
    expect_line(sum, 0, 2);
    expect_ok(device,
              axpy(kernel, 2,
                   wick_expand(wick_ones(device, WICK_F32, WICK_SHAPE(1)), WICK_SHAPE(20, 20)),
                   sum));
    expect_line(sum, 2, 2);
    wick_tensor *const wide =
        wick_expand(wick_ones(device, WICK_F32, WICK_SHAPE(1)), WICK_SHAPE(20, 20));
    expect_failed(device, axpy(kernel, 2, sum, wide), WICK_ERR_ARGUMENT, "expanded");
    wick_scope_end(scope);
    wick_kernel_release(kernel);
    wick_device_close(device);
}

/* A part of a tensor that ends inside a word: the kernel's last word leaves the rest as it is. */
static void parts_of_words_are_kept(void **state) {
    (void)state;
    static const char source[] =
        "@group(0) @binding(0) var<storage, read_write> y: array<u32>;\n"
        "@compute @workgroup_size(1) fn main(@builtin(workgroup_id) i: vec3u) {\n"
        "    if (i.x < arrayLength(&y)) { y[i.x] = 0x07070707u; }\n"
        "}\n";
    static const wick_kernel_desc desc = {
        .source = source, .n_buffers = 1, .access = {WICK_KERNEL_READ_WRITE}};
    static const uint32_t three[3] = {3, 1, 1};
    static const uint8_t ones[8] = {1, 1, 1, 1, 1, 1, 1, 1}, want[8] = {7, 7, 7, 7, 7, 7, 1, 1};
    wick_device *const device = open_plain();
    const wick_scope scope = wick_scope_begin(device);
    wick_kernel *const kernel = make(device, &desc);
    wick_tensor *const x = wick_tensor_from_data(device, WICK_U8, WICK_SHAPE(8), ones, 8);
    wick_tensor *part = wick_narrow(x, 0, 0, 6);
    uint8_t got[8];
    expect_ok(device, wick_kernel_run(kernel, &part, 1, three, NULL, 0));
    expect_ok(device, wick_read(x, got, sizeof got));
    assert_memory_equal(got, want, sizeof want);
    wick_scope_end(scope);
    wick_kernel_release(kernel);
    wick_device_close(device);
}

/* Tensors in one buffer, one of them written: WebGPU would refuse it. */
static void buffers_are_shared(void **state) {
    (void)state;
    static const wick_pool_desc pools[] = {
        {0}, {.initial_bytes = 1 << 20}, {.initial_bytes = 1 << 20, .alignment = 16}};
    for (size_t i = 0; i < WK_COUNT(pools); i++) {
        wick_device *const device = open_with((wick_device_desc){.webgpu.pool = pools[i]});
        const wick_scope scope = wick_scope_begin(device);
        wick_kernel *const kernel = make(device, &axpy_desc);
        wick_tensor *const x = count_up(device, WICK_SHAPE(50));
        wick_tensor *const y = wick_zeros(device, WICK_F32, WICK_SHAPE(50));
        for (int k = 1; k <= 3; k++) {
            expect_ok(device, axpy(kernel, (float)k, x, y));
            expect_line(y, 0, k * (k + 1) / 2);
        }
        wick_tensor *const rows = wick_ones(device, WICK_F32, WICK_SHAPE(2, 64));
        wick_tensor *const low = wick_narrow(rows, 0, 0, 1), *const high =
                                                                 wick_narrow(rows, 0, 1, 1);
        expect_ok(device, axpy(kernel, 6, low, high));
        expect_line(wick_narrow(rows, 0, 0, 1), 1, 0);
        expect_line(high, 7, 0);
        expect_failed(device, axpy(kernel, 1, rows, rows), WICK_ERR_ARGUMENT,
                      "tensors 0 and 1 share memory");
        expect_failed(device, axpy(kernel, 1, rows, low), WICK_ERR_ARGUMENT, "bind it once");
        expect_failed(device, axpy(kernel, 1, wick_transpose(rows, 0, 1), rows), WICK_ERR_ARGUMENT,
                      "bind it once"); /* though one of them would be copied */
        wick_scope_end(scope);
        wick_kernel_release(kernel);
        wick_device_close(device);
    }
}

static void large_tensors_are_refused(void **state) {
    (void)state;
    wick_device *const device = open_with((wick_device_desc){.webgpu.max_binding_bytes = 64 << 10});
    const wick_scope scope = wick_scope_begin(device);
    wick_kernel *const kernel = make(device, &axpy_desc);
    wick_tensor *const x = wick_ones(device, WICK_F32, WICK_SHAPE(40000));
    wick_tensor *const y = wick_ones(device, WICK_F32, WICK_SHAPE(40000));
    expect_ok(device, axpy(kernel, 1, x, y));
    static float numbers[40000];
    expect_failed(device, wick_read(y, numbers, sizeof numbers), WICK_ERR_UNSUPPORTED,
                  "a tensor of 160000 bytes, which lies in pieces of at most 65536");
    wick_tensor *const z = wick_ones(device, WICK_F32, WICK_SHAPE(40000));
    wick_tensor *const part = wick_narrow(z, 0, 16384, 16384); /* in one of them */
    expect_ok(device, axpy(kernel, 1, wick_narrow(x, 0, 0, 16384), part));
    expect_line(part, 2, 0);
    wick_scope_end(scope);
    wick_kernel_release(kernel);
    wick_device_close(device);
}

/* --- As one of the device's operations --- */

static void is_part_of_a_plan(void **state) {
    (void)state;
    wick_device *const device = open_plain();
    wick_kernel *const kernel = make(device, &axpy_desc);
    wick_tensor *const x = count_up(device, WICK_SHAPE(300));
    wk_plan_pool *pool;
    wk_plan *plan;
    expect_ok(device, wk_plan_pool_make(device, &pool));
    expect_ok(device, wk_plan_begin(device, pool));
    wick_tensor *const y = wick_add(x, x), *const z = wick_affine(x, 2, 0);
    expect_ok(device, axpy(kernel, 3, y, z)); /* z = 8 i */
    wick_tensor *sum = wick_add(z, x);
    expect_ok(device, wk_plan_end(device, &sum, 1, &plan));
    wick_kernel_release(kernel); /* the plan has it */
    for (int round = 0; round < 3; round++) {
        expect_ok(device, wk_plan_run(plan));
        expect_line(sum, 0, 9);
    }
    wick_release(y);
    wick_release(z);
    wick_release(sum);
    wk_plan_free(plan);
    wk_plan_pool_free(pool);
    wick_release(x);
    wick_device_close(device);
}

static void others_are_verified_and_timed(void **state) {
    (void)state;
    wick_device *const device = open_with((wick_device_desc){.verify = true, .profile = true});
    wick_kernel *const kernel = make(device, &axpy_desc);
    wick_tensor *const x = count_up(device, WICK_SHAPE(300)), *const y = wick_add(x, x);
    expect_ok(device, axpy(kernel, 3, x, y));
    expect_line(y, 0, 5);
    wick_kernel_stats kernels[64];
    const size_t n = wick_device_get_profile(device, kernels, WK_COUNT(kernels));
    bool is_timed = n == 0; /* the device has no timestamps */
    for (size_t i = 0; i < n; i++)
        if (strcmp(kernels[i].name, "custom_wgsl") == 0) is_timed = kernels[i].calls == 1;
    assert_true(is_timed);
    wick_release(x);
    wick_release(y);
    wick_kernel_release(kernel);
    wick_device_close(device);
}

static void survives_a_loss(void **state) {
    (void)state;
    wick_device *const device = open_plain();
    wick_kernel *const kernel = make(device, &axpy_desc), *const idle = make(device, &axpy_desc);
    wick_tensor *const old = count_up(device, WICK_SHAPE(100)), *const y = wick_add(old, old);
    expect_ok(device, axpy(kernel, 1, old, y));
    if (!wk_webgpu_lose(device->handle)) {
        print_message("this library takes no device away on request\n");
        expect_line(y, 0, 3);
    } else {
        while (wick_poll(device) >= 0) continue;
        expect_failed(device, axpy(kernel, 1, old, y), WICK_ERR_DEVICE_LOST, "lost");
        wick_status status;
        while ((status = wk_device_recover(device)) == WICK_PENDING) continue;
        expect_ok(device, status);
        expect_failed(device, axpy(kernel, 1, old, y), WICK_ERR_DEVICE_LOST, "tensor was lost");
        wick_tensor *const x = count_up(device, WICK_SHAPE(100)), *const z = wick_add(x, x);
        expect_ok(device, axpy(kernel, 1, x, z));
        expect_line(z, 0, 3);
        wick_release(x);
        wick_release(z);
    }
    wick_release(old);
    wick_release(y);
    wick_kernel_release(idle);
    wick_kernel_release(kernel);
    wick_device_close(device);
}

/* --- Operations --- */

static wick_status infer_same(void *user, const wick_host_view *inputs, wick_host_view *outputs,
                              wick_error *error) {
    (void)user, (void)error;
    outputs[0] = inputs[0];
    return WICK_OK;
}

static wick_status launch_one(void *user, const wick_host_view *inputs,
                              const wick_host_view *outputs, uint32_t workgroups[3], void *uniform,
                              wick_error *error) {
    (void)user, (void)inputs, (void)outputs, (void)error;
    workgroups[0] = workgroups[1] = workgroups[2] = 1;
    *(float *)uniform = 2;
    return WICK_OK;
}

static void twice_the_gradient(void *user, wick_tensor *const *inputs, wick_tensor *output,
                               wick_tensor *grad_output, wick_tensor **grads) {
    (void)user, (void)inputs, (void)output;
    grads[0] = wick_affine(grad_output, 2, 0);
}

static void expect_no_operation(wick_device *device, wick_operation_desc desc, const char *words) {
    wick_operation *operation;
    wick_error error = {0};
    assert_int_equal(wick_operation_make(device, &desc, &operation, &error), WICK_ERR_VALUE);
    assert_null(operation);
    assert_non_null(strstr(error.message, words));
}

/* An operation whose kernel cannot be launched, or has other buffers; and on another device. */
static void check_wrong_operations(wick_device *device, wick_operation_desc desc) {
    wick_device *const other = open_plain();
    wick_operation *foreign;
    wick_operation_desc wrong = desc;
    wrong.launch = NULL;
    expect_no_operation(device, wrong, "twice: its kernel needs launch");
    wrong = desc;
    wrong.n_inputs = 2;
    expect_no_operation(device, wrong, "1 outputs (READ_WRITE), then 2 inputs (READ)");
    wrong.n_inputs = 0;
    wrong.n_outputs = 2;
    expect_no_operation(device, wrong, "0 inputs and 2 outputs");
    wick_tensor *const x = count_up(other, WICK_SHAPE(4)), *y = x;
    expect_ok(other, wick_operation_make(other, &desc, &foreign, NULL));
    expect_failed(other, wick_operation_run(foreign, &x, &y), WICK_ERR_UNSUPPORTED,
                  "its kernel is of another device");
    assert_null(y);
    wick_release(x);
    wick_operation_release(foreign);
    wick_device_close(other);
}

static void belongs_to_an_operation(void **state) {
    (void)state;
    wick_device *const device = open_plain(); /* strict: nothing falls back */
    static const wick_kernel_desc desc = {
        .source = "@group(0) @binding(0) var<storage, read_write> y: array<f32>;\n"
                  "@group(0) @binding(1) var<storage, read> x: array<f32>;\n"
                  "@group(0) @binding(2) var<uniform> factor: f32;\n"
                  "@compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {\n"
                  "    y[i] = factor * x[i];\n"
                  "}\n",
        .workgroup = {4},
        .n_buffers = 2,
        .access = {WICK_KERNEL_READ_WRITE, WICK_KERNEL_READ},
        .uniform_bytes = 4};
    wick_kernel *const kernel = make(device, &desc);
    wick_operation *twice;
    const wick_operation_desc of_kernel = {.name = "twice",
                                           .n_inputs = 1,
                                           .n_outputs = 1,
                                           .infer = infer_same,
                                           .kernel = kernel,
                                           .launch = launch_one,
                                           .gradient = twice_the_gradient};
    check_wrong_operations(device, of_kernel);
    expect_ok(device, wick_operation_make(device, &of_kernel, &twice, NULL));
    wick_kernel_release(kernel); /* the operation has it */
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = wick_transpose(count_up(device, WICK_SHAPE(2, 2)), 0, 1), *y, *grad;
    wick_tape *tape;
    float got[4];
    expect_ok(device, wick_tape_begin(device, &tape));
    expect_ok(device, wick_tape_watch(tape, x));
    expect_ok(device, wick_operation_run(twice, &x, &y));
    expect_ok(device, wick_grad(tape, y, NULL, (wick_tensor *[]){x}, 1, &grad));
    expect_ok(device, wick_read(y, got, sizeof got));
    assert_memory_equal(got, ((float[]){0, 4, 2, 6}), sizeof got);
    expect_ok(device, wick_read(grad, got, sizeof got));
    assert_memory_equal(got, ((float[]){2, 2, 2, 2}), sizeof got);
    wick_tape_end(tape);
    wick_scope_end(scope);
    wick_operation_release(twice);
    wick_device_close(device);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(belongs_to_an_operation),
    cmocka_unit_test(runs_in_order),
    cmocka_unit_test(is_released_early),
    cmocka_unit_test(sizes),
    cmocka_unit_test(descs),
    cmocka_unit_test(features),
    cmocka_unit_test(views),
    cmocka_unit_test(parts_of_words_are_kept),
    cmocka_unit_test(buffers_are_shared),
    cmocka_unit_test(large_tensors_are_refused),
    cmocka_unit_test(is_part_of_a_plan),
    cmocka_unit_test(others_are_verified_and_timed),
    cmocka_unit_test(survives_a_loss),
};

int main(int argc, char **argv) {
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], "--webgpu-lib") == 0) library = argv[i + 1];
    if (library)
        return cmocka_run_group_tests_name("custom kernels", tests, NULL, NULL) +
               run_wrong_kernels();
    printf("skipped: no --webgpu-lib was given\n");
    return 77;
}
