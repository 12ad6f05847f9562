/* test_gpu_native.c: gpu.h by a library of this machine: what it promises, and that mistakes become
 * failures. All tests run for every library found (WICK_WEBGPU_LIB, or those in deps/webgpu) with
 * the drivers that the environment names. */
#include "backend/webgpu/gpu/gpu.h"

#include "sys/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *library;
static wk_heap heap;
static wick_error err;

static wk_gpu *open_with(wick_webgpu_desc desc) {
    wk_gpu *gpu = NULL;
    err = (wick_error){0};
    desc.library = library;
    if (wk_gpu_open_start(&heap, &desc, &gpu, &err) != WICK_OK) fail_msg("%s", err.message);
    wick_status status = WICK_PENDING;
    while ((status = wk_gpu_open_poll(gpu, &err)) == WICK_PENDING) wk_gpu_pause(gpu);
    if (status != WICK_OK) fail_msg("%s", err.message);
    return gpu;
}

static int set_up(void **state) {
    wk_heap_init(&heap, NULL);
    *state = open_with((wick_webgpu_desc){0});
    return 0;
}

static int tear_down(void **state) {
    wk_gpu_close(*state);
    assert_int_equal(heap.live_bytes, 0);
    return 0;
}

static wk_gpu_buffer *make(wk_gpu *gpu, wk_gpu_usage usage, uint64_t size) {
    wk_gpu_buffer *buf = NULL;
    if (wk_gpu_buffer_make(gpu, usage, size, &buf, &err) != WICK_OK) fail_msg("%s", err.message);
    return buf;
}

static void expect_no_failure(wk_gpu *gpu) {
    uint64_t done;
    err = (wick_error){0};
    if (wk_gpu_poll(gpu, &done, &err) != WICK_OK) fail_msg("%s", err.message);
}

static const void *wait_mapped(wk_gpu *gpu, wk_gpu_buffer *buf) {
    const void *bytes;
    while (!(bytes = wk_gpu_mapped(gpu, buf))) {
        expect_no_failure(gpu);
        wk_gpu_pause(gpu);
    }
    return bytes;
}

static void submit(wk_gpu *gpu, const wk_gpu_command *commands, size_t n) {
    err = (wick_error){0};
    if (wk_gpu_submit(gpu, commands, n, &err) != WICK_OK) fail_msg("%s", err.message);
}

static wk_gpu_command copy(wk_gpu_buffer *from, wk_gpu_buffer *to, uint64_t size) {
    return (wk_gpu_command){.kind = WK_GPU_COPY, .copy = {.from = from, .to = to, .size = size}};
}

static void bytes_go_round(void **state) {
    wk_gpu *const gpu = *state;
    uint32_t words[64];
    for (uint32_t i = 0; i < 64; i++) words[i] = i * i;
    wk_gpu_buffer *const a = make(gpu, WK_GPU_STORAGE, sizeof words);
    wk_gpu_buffer *const back = make(gpu, WK_GPU_READBACK, sizeof words);
    wk_gpu_write(gpu, a, 0, words, sizeof words);
    wk_gpu_write(gpu, a, 4, words, 8);
    const wk_gpu_command clear = {.kind = WK_GPU_CLEAR,
                                  .copy = {.to = a, .to_offset = 16, .size = 8}};
    const wk_gpu_command commands[] = {clear, copy(a, back, sizeof words)};
    for (int round = 0; round < 3; round++) {
        submit(gpu, commands, 2);
        wk_gpu_map_start(gpu, back, sizeof words);
        const uint32_t *const got = wait_mapped(gpu, back);
        const uint32_t expected[8] = {0, 0, 1, 9, 0, 0, 36, 49};
        assert_memory_equal(got, expected, sizeof expected);
        assert_int_equal(got[63], 63 * 63);
        wk_gpu_unmap(gpu, back);
    }
    uint64_t done = 0;
    while (done < 3) {
        assert_int_equal(wk_gpu_poll(gpu, &done, &err), WICK_OK);
        wk_gpu_pause(gpu);
    }
    wk_gpu_buffer_release(gpu, a);
    wk_gpu_buffer_release(gpu, back);
}

/* --- Kernels --- */

/* out[i] = in[i] * factor + i */
static const char SCALE[] = "@group(0) @binding(0) var<storage, read> a: array<f32>;\n"
                            "@group(0) @binding(1) var<storage, read_write> b: array<f32>;\n"
                            "struct P { factor: f32, n: u32 }\n"
                            "@group(0) @binding(2) var<uniform> p: P;\n"
                            "@compute @workgroup_size(64)\n"
                            "fn main(@builtin(global_invocation_id) id: vec3u) {\n"
                            "    let i = id.x;\n"
                            "    if (i < p.n) { b[i] = a[i] * p.factor + f32(i); }\n"
                            "}\n";

enum { N = 1000 };

typedef struct kernel_case {
    wk_gpu *gpu;
    wk_gpu_layout *layout;
    wk_gpu_pipeline *pipeline;
    wk_gpu_buffer *in, *out, *back, *params;
    wk_gpu_group *group, *reverse;
} kernel_case;

static wick_status compile(wk_gpu *gpu, const wk_gpu_layout *layout, const char *wgsl,
                           wk_gpu_pipeline **out) {
    err = (wick_error){0};
    const wk_gpu_pipeline_desc desc = {.label = "scale", .wgsl = wgsl, .layout = layout};
    wick_status status = wk_gpu_pipeline_start(gpu, &desc, out, &err);
    if (status != WICK_OK) return status;
    while ((status = wk_gpu_pipeline_poll(gpu, *out, &err)) == WICK_PENDING) wk_gpu_pause(gpu);
    return status;
}

static wk_gpu_group *bind(kernel_case *c, wk_gpu_buffer *in, wk_gpu_buffer *out) {
    wk_gpu_group *group = NULL;
    const wk_gpu_binding bindings[] = {{in, 0, 4 * N}, {out, 0, 4 * N}};
    if (wk_gpu_group_make(c->gpu, c->layout, bindings, 2, c->params, &group, &err) != WICK_OK)
        fail_msg("%s", err.message);
    return group;
}

static kernel_case make_case(wk_gpu *gpu) {
    kernel_case c = {.gpu = gpu};
    assert_int_equal(wk_gpu_layout_make(gpu, 2, 2, WK_GPU_PARAM_BYTES, &c.layout, &err), WICK_OK);
    if (compile(gpu, c.layout, SCALE, &c.pipeline) != WICK_OK) fail_msg("%s", err.message);
    c.in = make(gpu, WK_GPU_STORAGE, 4 * N);
    c.out = make(gpu, WK_GPU_STORAGE, 4 * N);
    c.back = make(gpu, WK_GPU_READBACK, 4 * N);
    c.params = make(gpu, WK_GPU_UNIFORM, 4096);
    /* a writable binding and one that is not, of the same buffer, must not meet: two groups */
    c.group = bind(&c, c.in, c.out);
    float in[N];
    for (int i = 0; i < N; i++) in[i] = (float)(i % 7);
    wk_gpu_write(gpu, c.in, 0, in, sizeof in);
    const struct {
        float factor;
        uint32_t n;
    } params[2] = {{2, N}, {0.5F, N / 2}};
    wk_gpu_write(gpu, c.params, 0, &params[0], sizeof params[0]);
    wk_gpu_write(gpu, c.params, 2048, &params[1], sizeof params[1]);
    return c;
}

static wk_gpu_command dispatch(const kernel_case *c, uint32_t params) {
    return (wk_gpu_command){.kind = WK_GPU_DISPATCH,
                            .dispatch = {.pipeline = c->pipeline,
                                         .group = c->group,
                                         .params = params,
                                         .x = (N + 63) / 64,
                                         .y = 1,
                                         .z = 1}};
}

static void expect_scaled(kernel_case *c) {
    const wk_gpu_command read = copy(c->out, c->back, 4 * N);
    submit(c->gpu, &read, 1);
    wk_gpu_map_start(c->gpu, c->back, 4 * N);
    const float *const got = wait_mapped(c->gpu, c->back);
    for (int i = 0; i < N; i++) {
        const float factor = i < N / 2 ? 0.5F : 2.0F;
        assert_true(got[i] == (float)(i % 7) * factor + (float)i);
    }
    wk_gpu_unmap(c->gpu, c->back);
}

static void kernels_compute(void **state) {
    kernel_case c = make_case(*state);
    const wk_gpu_command commands[] = {dispatch(&c, 0), dispatch(&c, 2048)};
    submit(c.gpu, commands, 2);
    expect_scaled(&c);
}

/* Objects may be released while commands that name them run. */
static void objects_are_released_early(void **state) {
    kernel_case c = make_case(*state);
    const wk_gpu_command commands[] = {dispatch(&c, 0), dispatch(&c, 2048)};
    submit(c.gpu, commands, 2);
    wk_gpu_group_release(c.gpu, c.group);
    wk_gpu_pipeline_release(c.gpu, c.pipeline);
    wk_gpu_layout_release(c.gpu, c.layout);
    wk_gpu_buffer_release(c.gpu, c.in);
    wk_gpu_buffer_release(c.gpu, c.params);
    expect_scaled(&c);
    wk_gpu_buffer_release(c.gpu, c.out);
    wk_gpu_map_start(c.gpu, c.back, 4 * N);
    wk_gpu_buffer_release(c.gpu, c.back);
    expect_no_failure(c.gpu);
}

static void wrong_text_is_told(void **state) {
    wk_gpu *const gpu = *state;
    wk_gpu_layout *layout = NULL;
    assert_int_equal(wk_gpu_layout_make(gpu, 2, 2, WK_GPU_PARAM_BYTES, &layout, &err), WICK_OK);
    static const struct {
        const char *wgsl, *told;
    } cases[] = {
        {"@compute @workgroup_size(1)\nfn main() {\n    let a = nowhere + 1;\n}\n",
         "line 3, \"let a = nowhere + 1;\""},
        {"@compute @workgroup_size(1)\nfn main( {\n}\n", "line 2, \"fn main( {\""},
        {"@compute @workgroup_size(1)\nfn other() {}\n", "main"},
        {"", "main"},
        {"@group(0) @binding(7) var<storage, read> a: array<f32>;\n"
         "@compute @workgroup_size(1)\nfn main() { _ = a[0]; }\n",
         ""},
    };
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        wk_gpu_pipeline *pipeline = NULL;
        assert_int_equal(compile(gpu, layout, cases[i].wgsl, &pipeline), WICK_ERR_VALUE);
        if (!strstr(err.message, cases[i].told)) fail_msg("%zu: %s", i, err.message);
        if (!strstr(err.message, "kernel scale")) fail_msg("%zu: %s", i, err.message);
        /* It stays wrong, and cannot be run. */
        assert_int_equal(wk_gpu_pipeline_poll(gpu, pipeline, NULL), WICK_ERR_VALUE);
        wk_gpu_pipeline_release(gpu, pipeline);
        expect_no_failure(gpu);
    }
    kernels_compute(state);
}

static void a_kernel_not_compiled_is_not_run(void **state) {
    kernel_case c = make_case(*state);
    wk_gpu_pipeline *wrong = NULL;
    assert_int_equal(compile(c.gpu, c.layout, "nonsense", &wrong), WICK_ERR_VALUE);
    wk_gpu_command command = dispatch(&c, 0);
    command.dispatch.pipeline = wrong;
    err = (wick_error){0};
    assert_int_equal(wk_gpu_submit(c.gpu, &command, 1, &err), WICK_ERR_VALUE);
    assert_non_null(strstr(err.message, "kernel scale"));
    command = dispatch(&c, 4096); /* parameters after their buffer */
    err = (wick_error){0};
    assert_int_equal(wk_gpu_submit(c.gpu, &command, 1, &err), WICK_ERR_DEVICE);
    const wk_gpu_command commands[] = {dispatch(&c, 0), dispatch(&c, 2048)};
    submit(c.gpu, commands, 2);
    expect_scaled(&c);
}

/* --- Mistakes --- */

/* A failure of submit, or one that poll tells. */
static wick_status submit_and_poll(wk_gpu *gpu, const wk_gpu_command *command) {
    err = (wick_error){0};
    wick_status status = wk_gpu_submit(gpu, command, 1, &err);
    for (int i = 0; status == WICK_OK && i < 200; i++) {
        uint64_t done;
        status = wk_gpu_poll(gpu, &done, &err);
        wk_gpu_pause(gpu);
    }
    return status;
}

static void mistakes_are_failures(void **state) {
    kernel_case c = make_case(*state);
    const wk_gpu_command wrong[] = {
        copy(c.in, c.back, 8 * N), /* past the end */
        copy(c.params, c.back, 4), /* a uniform buffer is not read */
        copy(c.in, c.back, 2),
        {.kind = WK_GPU_CLEAR, .copy = {.to = c.out, .to_offset = 4 * N, .size = 4}},
        {.kind = WK_GPU_DISPATCH,
         .dispatch = {.pipeline = c.pipeline, .group = c.group, .x = 1U << 30, .y = 1, .z = 1}},
        {.kind = WK_GPU_DISPATCH,
         .dispatch = {.pipeline = c.pipeline, .group = c.group, .params = 4, .x = 1, .y = 1}},
    };
    for (size_t i = 0; i < WK_COUNT(wrong); i++) {
        const wick_status status = submit_and_poll(c.gpu, &wrong[i]);
        if (status != WICK_ERR_DEVICE) fail_msg("%zu: %d %s", i, status, err.message);
        expect_no_failure(c.gpu); /* told once */
    }
    wk_gpu_write(c.gpu, c.in, 4 * N, "abcd", 4);
    uint64_t done;
    assert_int_equal(wk_gpu_poll(c.gpu, &done, &err), WICK_ERR_DEVICE);
    wk_gpu_map_start(c.gpu, c.in, 4);
    assert_int_equal(wk_gpu_poll(c.gpu, &done, &err), WICK_ERR_DEVICE);
    const wk_gpu_command commands[] = {dispatch(&c, 0), dispatch(&c, 2048)};
    submit(c.gpu, commands, 2);
    expect_scaled(&c);
}

static void wrong_groups_are_refused(void **state) {
    kernel_case c = make_case(*state);
    wk_gpu_group *group = NULL;
    const wk_gpu_binding outside[] = {{c.in, 0, 8 * N}, {c.out, 0, 4 * N}};
    assert_int_equal(wk_gpu_group_make(c.gpu, c.layout, outside, 2, c.params, &group, &err),
                     WICK_ERR_DEVICE);
    assert_null(group);
    const wk_gpu_binding crooked[] = {{c.in, 4, 4}, {c.out, 0, 4 * N}};
    assert_int_equal(wk_gpu_group_make(c.gpu, c.layout, crooked, 2, c.params, &group, &err),
                     WICK_ERR_DEVICE);
    expect_no_failure(c.gpu);
}

/* The same buffer written and read in one dispatch. */
static void conflicts_are_failures(void **state) {
    kernel_case c = make_case(*state);
    wk_gpu_group *const group = bind(&c, c.in, c.in);
    wk_gpu_command command = dispatch(&c, 0);
    command.dispatch.group = group;
    assert_int_equal(submit_and_poll(c.gpu, &command), WICK_ERR_DEVICE);
}

static void mapped_buffers_are_not_written(void **state) {
    wk_gpu *const gpu = *state;
    wk_gpu_buffer *const a = make(gpu, WK_GPU_STORAGE, 64);
    wk_gpu_buffer *const back = make(gpu, WK_GPU_READBACK, 64);
    wk_gpu_map_start(gpu, back, 64);
    const wk_gpu_command command = copy(a, back, 64);
    assert_int_equal(wk_gpu_submit(gpu, &command, 1, &err), WICK_ERR_STATE);
    const uint32_t *const got = wait_mapped(gpu, back);
    assert_int_equal(got[0], 0);
    assert_int_equal(wk_gpu_submit(gpu, &command, 1, &err), WICK_ERR_STATE);
    wk_gpu_unmap(gpu, back);
    submit(gpu, &command, 1);
    assert_null(wk_gpu_mapped(gpu, back));
    wk_gpu_map_start(gpu, back, 64);
    wk_gpu_unmap(gpu, back); /* before it was mapped */
    expect_no_failure(gpu);
}

static void too_large_buffers_are_refused(void **state) {
    wk_gpu *const gpu = *state;
    const uint64_t most = wk_gpu_get_info(gpu)->limits.buffer_bytes;
    wk_gpu_buffer *buf = NULL;
    err = (wick_error){0};
    assert_int_equal(wk_gpu_buffer_make(gpu, WK_GPU_STORAGE, most + 4, &buf, &err),
                     WICK_ERR_OUT_OF_MEMORY);
    assert_int_equal(err.bytes_requested, most + 4);
    assert_int_equal(err.bytes_available, most);
    assert_null(buf);
    assert_int_equal(wk_gpu_buffer_make(gpu, WK_GPU_STORAGE, 6, &buf, NULL), WICK_ERR_VALUE);
    kernels_compute(state);
}

/* --- Opening --- */

static void limits_are_lowered(void **state) {
    (void)state;
    wk_heap_init(&heap, NULL);
    wk_gpu *gpu = open_with((wick_webgpu_desc){.max_binding_bytes = 1 << 20, .debug = true});
    assert_int_equal(wk_gpu_get_info(gpu)->limits.binding_bytes, 1 << 20);
    void *given = gpu;
    kernels_compute(&given);
    wk_gpu_close(gpu);
    gpu = open_with((wick_webgpu_desc){.default_limits = true, .without = 15});
    assert_int_equal(wk_gpu_get_info(gpu)->limits.binding_bytes, 128 << 20);
    assert_int_equal(wk_gpu_get_info(gpu)->limits.storage_bindings, 8);
    assert_int_equal(wk_gpu_get_info(gpu)->limits.workgroup_threads, 256);
    assert_int_equal(wk_gpu_get_info(gpu)->features, 0);
    given = gpu;
    kernels_compute(&given);
    wk_gpu_close(gpu);
    assert_int_equal(heap.live_bytes, 0);
}

static void adapters_are_listed_and_chosen(void **state) {
    (void)state;
    wk_heap_init(&heap, NULL);
    wick_adapter_info infos[16];
    const size_t n = wk_gpu_list(library, infos, 16);
    assert_true(n > 0 && n <= 16);
    assert_int_equal(wk_gpu_list(library, NULL, 0), n);
    wick_webgpu_desc any = {.library = library};
    assert_int_equal(wk_gpu_available(&any, false, NULL), WICK_OK);
    if (getenv("VK_DRIVER_FILES")) assert_string_equal(infos[0].api, "Vulkan");
    const bool is_software = infos[0].type == WICK_ADAPTER_SOFTWARE && n == 1;
    const wick_status hardware = is_software ? WICK_ERR_NO_DEVICE : WICK_OK;
    assert_int_equal(wk_gpu_available(&any, true, NULL), hardware);
    any.adapter = infos[0].name; /* asked for by its name, software is as good as any */
    assert_int_equal(wk_gpu_available(&any, true, NULL), WICK_OK);
    for (size_t i = 0; i < n; i++) {
        if (infos[i].unusable[0] != '\0') continue;
        char index[24];
        snprintf(index, sizeof index, "%zu", i);
        wk_gpu *gpu = open_with((wick_webgpu_desc){.adapter = index});
        assert_string_equal(wk_gpu_get_info(gpu)->name, infos[i].name);
        assert_string_equal(wk_gpu_get_info(gpu)->api, infos[i].api);
        wk_gpu_close(gpu);
    }
    wk_gpu *gpu = NULL;
    const wick_webgpu_desc wrong = {.library = library, .adapter = "no such name"};
    err = (wick_error){0};
    assert_int_equal(wk_gpu_open_start(&heap, &wrong, &gpu, &err), WICK_ERR_NO_DEVICE);
    assert_non_null(strstr(err.message, "no such name"));
    assert_null(gpu);
    assert_int_equal(heap.live_bytes, 0);
}

static void wrong_libraries_are_refused(void **state) {
    (void)state;
    wk_heap_init(&heap, NULL);
    static const char *const paths[] = {"/nowhere/libwebgpu_dawn.so", "libm.so.6", "/etc/passwd"};
    for (size_t i = 0; i < WK_COUNT(paths); i++) {
        const wick_webgpu_desc desc = {.library = paths[i]};
        wk_gpu *gpu = NULL;
        err = (wick_error){0};
        assert_int_equal(wk_gpu_open_start(&heap, &desc, &gpu, &err), WICK_ERR_NO_DEVICE);
        assert_non_null(strstr(err.message, paths[i]));
        err = (wick_error){0};
        assert_int_equal(wk_gpu_available(&desc, false, &err), WICK_ERR_NO_DEVICE);
        assert_non_null(strstr(err.message, paths[i]));
        wick_adapter_info info;
        assert_int_equal(wk_gpu_list(paths[i], &info, 1), 1);
        assert_true(info.unusable[0] != '\0');
        assert_string_equal(info.library, paths[i]);
    }
    assert_int_equal(heap.live_bytes, 0);
}

static void features_work(void **state) {
    wk_gpu *const gpu = *state;
    wk_gpu_layout *layout = NULL;
    assert_int_equal(wk_gpu_layout_make(gpu, 0, 0, WK_GPU_PARAM_BYTES, &layout, &err), WICK_OK);
    static const struct {
        uint32_t feature;
        const char *body;
    } cases[] = {
        {WICK_WEBGPU_F16, "let a = 1h; _ = a + 2h;"},
        {WICK_WEBGPU_SUBGROUPS, "let a = subgroupAdd(1u); _ = a;"},
        {WICK_WEBGPU_DOT4, "let a = dot4I8Packed(1u, 2u); _ = a;"},
    };
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        if (!(wk_gpu_get_info(gpu)->features & cases[i].feature)) continue;
        char wgsl[400];
        snprintf(wgsl, sizeof wgsl, "%s@compute @workgroup_size(64) fn main() { %s }\n",
                 wk_gpu_enables(gpu, cases[i].feature), cases[i].body);
        wk_gpu_pipeline *pipeline = NULL;
        if (compile(gpu, layout, wgsl, &pipeline) != WICK_OK) fail_msg("%s", err.message);
    }
}

/* --- The end --- */

static void time_is_told(void **state) {
    kernel_case c = make_case(*state);
    if (!(wk_gpu_get_info(c.gpu)->features & WICK_WEBGPU_TIMESTAMPS)) return;
    wk_gpu_command commands[] = {dispatch(&c, 0), dispatch(&c, 2048)};
    commands[0].timed = 1;
    commands[1].timed = 2;
    submit(c.gpu, commands, 2);
    assert_int_equal(wk_gpu_timestamps(c.gpu, 4, c.back, &err), WICK_OK);
    wk_gpu_map_start(c.gpu, c.back, 32);
    const uint64_t *const times = wait_mapped(c.gpu, c.back);
    assert_true(times[0] <= times[1] && times[1] <= times[3] && times[2] <= times[3]);
    assert_true(times[3] - times[0] < 10000000000U);
    wk_gpu_unmap(c.gpu, c.back);
    expect_scaled(&c);
}

static void work_in_flight_is_drained(void **state) {
    kernel_case c = make_case(*state);
    const wk_gpu_command commands[] = {dispatch(&c, 0), dispatch(&c, 2048)};
    for (int i = 0; i < 50; i++) submit(c.gpu, commands, 2);
    const wk_gpu_command read = copy(c.out, c.back, 4 * N);
    submit(c.gpu, &read, 1);
    wk_gpu_map_start(c.gpu, c.back, 4 * N);
    wk_gpu_pipeline *pending = NULL;
    const wk_gpu_pipeline_desc late = {.label = "late", .wgsl = SCALE, .layout = c.layout};
    assert_int_equal(wk_gpu_pipeline_start(c.gpu, &late, &pending, &err), WICK_OK);
    wk_gpu_pipeline_release(c.gpu, pending);
    assert_int_equal(wk_gpu_pipeline_start(c.gpu, &late, &pending, &err), WICK_OK);
} /* tear_down closes it */

static void a_lost_device_says_so(void **state) {
    kernel_case c = make_case(*state);
    const wk_gpu_command commands[] = {dispatch(&c, 0), dispatch(&c, 2048)};
    submit(c.gpu, commands, 2);
    wk_gpu_map_start(c.gpu, c.back, 4 * N);
    if (!wk_gpu_lose(c.gpu)) return;
    wick_status status = WICK_OK;
    uint64_t done;
    err = (wick_error){0};
    for (int i = 0; i < 5000 && status == WICK_OK; i++) {
        status = wk_gpu_poll(c.gpu, &done, &err);
        wk_gpu_pause(c.gpu);
    }
    assert_int_equal(status, WICK_ERR_DEVICE_LOST);
    assert_int_equal(wk_gpu_poll(c.gpu, &done, NULL), WICK_ERR_DEVICE_LOST);
    wk_gpu_buffer *buf = NULL;
    assert_int_equal(wk_gpu_buffer_make(c.gpu, WK_GPU_STORAGE, 64, &buf, NULL),
                     WICK_ERR_DEVICE_LOST);
    assert_int_equal(wk_gpu_submit(c.gpu, commands, 2, NULL), WICK_ERR_DEVICE_LOST);
    wk_gpu_write(c.gpu, c.in, 0, "abcd", 4);
    wk_gpu_unmap(c.gpu, c.back);
    wk_gpu_group_release(c.gpu, c.group);
}

#define WITH_GPU(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(wrong_libraries_are_refused),
    cmocka_unit_test(adapters_are_listed_and_chosen),
    cmocka_unit_test(limits_are_lowered),
    WITH_GPU(bytes_go_round),
    WITH_GPU(kernels_compute),
    WITH_GPU(objects_are_released_early),
    WITH_GPU(wrong_text_is_told),
    WITH_GPU(a_kernel_not_compiled_is_not_run),
    WITH_GPU(mistakes_are_failures),
    WITH_GPU(wrong_groups_are_refused),
    WITH_GPU(conflicts_are_failures),
    WITH_GPU(mapped_buffers_are_not_written),
    WITH_GPU(too_large_buffers_are_refused),
    WITH_GPU(features_work),
    WITH_GPU(time_is_told),
    WITH_GPU(work_in_flight_is_drained),
    WITH_GPU(a_lost_device_says_so),
};

static bool is_there(const char *path) {
    FILE *const file = fopen(path, "rb");
    if (file) fclose(file);
    return file != NULL;
}

int main(void) {
    const char *const named = getenv("WICK_WEBGPU_LIB");
    const char *const paths[] = {named, "deps/webgpu/libwebgpu_dawn.so",
                                 "deps/webgpu/libwgpu_native.so"};
    int failed = 0, n_run = 0;
    for (size_t i = 0; i < WK_COUNT(paths); i++) {
        if (!paths[i] || !is_there(paths[i]) || (named && i > 0)) continue;
        library = paths[i];
        wick_error reason = {0};
        const wick_webgpu_desc any = {.library = library};
        const wick_status status = wk_gpu_available(&any, false, &reason);
        printf("# %s\n", status == WICK_OK ? library : reason.message);
        if (status != WICK_OK) continue;
        failed += cmocka_run_group_tests_name(library, tests, NULL, NULL);
        n_run++;
    }
    if (n_run > 0) return failed > 0;
    printf("no implementation of WebGPU with an adapter (tools/fetch_webgpu)\n");
    return 77;
}
