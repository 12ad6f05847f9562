/* usage: webgpu_tuning [--backend webgpu] --webgpu-lib LIBRARY
 * Which kernels a WebGPU device takes and in which tunings: a kernel that is wrong is found and
 * disabled, its work is done otherwise and counted; choices as text, what is wrong with it too;
 * times of kernels. With the drivers that the environment names. */
#include "backend/webgpu/webgpu.h"
#include "backend/webgpu/webgpu_state.h"
#include "tensor/device.h"
#include "webgpu_options.h"

#include <wick/ops.h>
#include <wick/verify.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static wick_device_desc given; /* by the arguments */

static char logged[4096];

static void keep_log(void *user, wick_log_level level, const char *message) {
    (void)user;
    if (level != WICK_LOG_WARNING) return;
    const size_t used = strlen(logged);
    snprintf(logged + used, sizeof logged - used, "%s\n", message);
}

static wick_device *open_device(bool is_strict, bool is_profiled) {
    wick_device *device = NULL;
    wick_error err = {0};
    wick_device_desc desc = given;
    desc.strict = is_strict;
    desc.profile = is_profiled;
    desc.log = keep_log;
    if (wick_device_open(&desc, &device, &err) != WICK_OK) fail_msg("%s", err.message);
    logged[0] = '\0';
    return device;
}

static wick_device_stats stats_of(const wick_device *device) {
    wick_device_stats stats;
    wick_device_get_stats(device, &stats);
    return stats;
}

static size_t tune(wick_device *device, const char *text) {
    size_t n_ignored;
    assert_int_equal(wick_device_tune(device, text, strlen(text), &n_ignored, NULL), WICK_OK);
    return n_ignored;
}

static const char *tuning_of(wick_device *device) {
    static char text[8192];
    const size_t size = wick_device_get_tuning(device, text, sizeof text - 1);
    assert_true(size > 0 && size < sizeof text);
    text[size] = '\0';
    return text;
}

/* --- A kernel that is wrong --- */

/* Of the sine it makes the cosine. */
static wick_status encode_wrong(wk_encoder *e, const wk_op *op) {
    wk_op other = *op;
    other.p.unary.fn = op->p.unary.fn == WK_UNARY_SIN ? WK_UNARY_COS : op->p.unary.fn;
    return wk_webgpu_unary.encode(e, &other);
}

static bool is_sine(const wk_op *op) {
    return op->p.unary.fn == WK_UNARY_SIN && op->view[0].dtype == WICK_F32;
}

static const wk_webgpu_kernel wrong = {
    .base.name = "unary_wrong",
    .base.code = WK_OP_UNARY,
    .base.accepts = is_sine,
    .encode = encode_wrong,
};

/* Before all kernels that are right, in the place of one that is not needed. */
static void insert_wrong(wick_device *device) {
    wk_choice *const choices = device->handle->choices;
    size_t at = 0;
    while (choices[at].kernel != &wk_webgpu_arange) at++;
    memmove(choices + 1, choices, at * sizeof *choices);
    choices[0] = (wk_choice){.kernel = &wrong};
}

static float sine_of_one(wick_device *device) {
    float value = 1;
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x =
        wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(1), &value, sizeof value);
    assert_int_equal(wick_read(wick_sin(x), &value, sizeof value), WICK_OK);
    wick_scope_end(scope);
    return value;
}

typedef struct seen {
    int n, n_disabled;
    wick_status status;
} seen;

static bool see(void *user, const wick_kernel_check *check) {
    seen *const s = user;
    s->n++;
    s->n_disabled += check->is_disabled;
    s->status = check->status;
    return true;
}

static void wrong_kernels_are_disabled(void **state) {
    (void)state;
    seen s = {0};
    wick_error err = {0};
    const wick_verify_desc desc = {
        .kernels = "unary_w*", .n_cases = 3, .seed = 1, .report = see, .user = &s};
    wick_device *const device = open_device(false, false);
    insert_wrong(device);
    assert_true(sine_of_one(device) < 0.6F); /* 0.54 */
    assert_int_equal(wick_verify(device, &desc, &err), WICK_ERR_MISMATCH);
    assert_int_equal(s.n, 2); /* and unary_wgsl, which is right */
    assert_int_equal(s.n_disabled, 1);
    assert_non_null(strstr(tuning_of(device), "disable unary_wrong\n"));
    /* The next one takes the op. */
    assert_true(sine_of_one(device) > 0.84F);
    assert_int_equal(stats_of(device).n_fallbacks, 0);
    /* What is disabled is verified all the same, and reported. */
    s = (seen){0};
    assert_int_equal(
        wick_verify(
            device,
            &(wick_verify_desc){
                .kernels = "unary_wrong", .n_cases = 3, .seed = 1, .report = see, .user = &s},
            NULL),
        WICK_ERR_MISMATCH);
    assert_int_equal(s.n_disabled, 1);
    wick_device_close(device);
}

/* --- Others do the work --- */

static void disabled_ops_are_done_otherwise(void **state) {
    (void)state;
    wick_device *const device = open_device(false, false);
    assert_int_equal(tune(device, "disable gated_wgsl\ndisable unary*\n"), 0);
    assert_true(sine_of_one(device) > 0.84F);
    assert_int_equal(stats_of(device).n_fallbacks, 1);
    float value = 2;
    wick_tensor *const x =
        wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(1), &value, sizeof value);
    wick_tensor *const y = wick_swiglu(x, x);
    assert_int_equal(wick_read(y, &value, sizeof value), WICK_OK);
    assert_true(value > 3.52F && value < 3.53F);
    assert_int_equal(stats_of(device).n_decomposed, 1);
    assert_int_equal(stats_of(device).n_fallbacks, 2); /* silu */
    assert_int_equal(tune(device, "enable *\n"), 0);
    assert_true(sine_of_one(device) > 0.84F);
    assert_int_equal(stats_of(device).n_fallbacks, 2);
    wick_release(y);
    wick_release(x);
    wick_device_close(device);
}

static void strict_devices_refuse(void **state) {
    (void)state;
    wick_device *const device = open_device(true, false);
    assert_int_equal(tune(device, "disable unary_wgsl"), 0);
    wick_tensor *const x = wick_ones(device, WICK_F32, WICK_SHAPE(4));
    wick_tensor *const y = wick_sin(x);
    float numbers[4];
    assert_int_equal(wick_read(y, numbers, sizeof numbers), WICK_ERR_UNSUPPORTED);
    assert_int_equal(wick_device_error(device, NULL), WICK_ERR_UNSUPPORTED);
    wick_release(y);
    wick_release(x);
    wick_device_close(device);
}

/* --- Choices as text --- */

static void text_goes_round(void **state) {
    (void)state;
    wick_device *const device = open_device(true, false);
    const wk_op linear = {
        .code = WK_OP_LINEAR, .n_dst = 1, .n_src = 1, .view = {{.rank = 2, .extent = {40, 64}}}};
    assert_int_equal(tune(device, "# a remark\n\nversion 1\r\ndisable rope*\n"
                                  "tune linear_wgsl many raw 2\n  tune matmul_wgsl one  f16 1"),
                     0);
    assert_string_equal(logged, "");
    assert_int_equal(wk_choice_tuning(device->handle, &wk_webgpu_linear, &linear), 2);
    char text[8192];
    snprintf(text, sizeof text, "%s", tuning_of(device));
    assert_non_null(strstr(text, "disable rope_wgsl\n"));
    assert_non_null(strstr(text, "disable rope_table_wgsl\n"));
    assert_non_null(strstr(text, "tune linear_wgsl many raw 2\n"));
    assert_int_equal(wick_device_get_tuning(device, NULL, 0), strlen(text));
    wick_device *const other = open_device(true, false);
    assert_int_equal(tune(other, text), 0);
    assert_string_equal(tuning_of(other), text);
    wick_device_close(other);
    wick_device_close(device);
}

static void bad_lines_are_left_out(void **state) {
    (void)state;
    static const char *const lines[] = {
        "disable",
        "disable a b",
        "disable nothing*",
        "tune linear_wgsl many raw 99",
        "tune linear_wgsl many raw -1",
        "tune linear_wgsl many raw 1 1",
        "tune linear_wgsl most raw 1",
        "tune linear_wgsl many q9_9 1",
        "tune nothing_wgsl many raw 1",
        "tune linear_wgsl",
        "\x01\xff garbage",
        "version 2",
        "version",
        "device of somebody else",
    };
    wick_device *const device = open_device(true, false);
    char text[512], before[8192];
    snprintf(before, sizeof before, "%s", tuning_of(device));
    for (size_t i = 0; i < WK_COUNT(lines); i++) {
        const bool ends = i >= 11; /* nothing after these is read */
        logged[0] = '\0';
        snprintf(text, sizeof text, "%s\ndisable fill_wgsl\n", lines[i]);
        assert_int_equal(tune(device, text), 1);
        assert_non_null(strstr(logged, "line 1 of the tuning is ignored"));
        assert_true((strstr(tuning_of(device), "disable fill_wgsl") != NULL) == !ends);
        assert_int_equal(tune(device, "enable fill_wgsl"), 0);
        assert_string_equal(tuning_of(device), before);
    }
    wick_device_close(device);
}

static void wrong_use_is_told(void **state) {
    (void)state;
    wick_error err = {0};
    wick_device *device = NULL;
    const wick_device_desc cpu = {.backend = WICK_BACKEND_CPU};
    assert_int_equal(wick_device_tune(NULL, "", 0, NULL, &err), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_device_get_tuning(NULL, NULL, 0), 0);
    assert_int_equal(wick_device_open(&cpu, &device, NULL), WICK_OK);
    err = (wick_error){0};
    assert_int_equal(wick_device_tune(device, "", 0, NULL, &err), WICK_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "cpu"));
    assert_int_equal(wick_device_tune(device, NULL, 3, NULL, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_device_get_tuning(device, NULL, 0), 0);
    wick_device_close(device);
}

/* A device that is opened again takes what the lost one took. */
static void choices_outlive_a_loss(void **state) {
    (void)state;
    wick_device *const device = open_device(true, false);
    char text[8192];
    tune(device, "disable fill_wgsl\ntune linear_wgsl few q8_0 2\n");
    snprintf(text, sizeof text, "%s", tuning_of(device));
    if (!wk_webgpu_lose(device->handle)) {
        print_message("skipped: only Dawn can take a device away\n");
        wick_device_close(device);
        return;
    }
    while (wk_device_check(device) == WICK_OK) wick_pause(device);
    while (wk_device_recover(device) == WICK_PENDING) wick_pause(device);
    assert_int_equal(stats_of(device).n_losses, 1);
    assert_string_equal(tuning_of(device), text);
    wick_device_close(device);
}

/* --- Times --- */

static void limits_are_measured(void **state) {
    (void)state;
    wick_device *const device = open_device(true, false);
    wick_device_limits limits;
    wick_error err = {0};
    const uint64_t before = stats_of(device).buffer_bytes;
    if (wick_device_measure(device, &limits, &err) != WICK_OK) fail_msg("%s", err.message);
    assert_true(limits.read_bytes_per_second > 1e6 && limits.read_bytes_per_second < 1e14);
    assert_true(limits.f32_ops_per_second > 1e6 && limits.f32_ops_per_second < 1e16);
    wick_device_info info;
    wick_device_get_info(device, &info);
    const bool has_dot4 = (info.adapter.features & WICK_WEBGPU_DOT4) != 0;
    assert_true((limits.integer_ops_per_second > 0) == has_dot4);
    assert_true(limits.buffer_seconds > 0 && limits.buffer_seconds < 1);
    assert_true(limits.round_trip_seconds > 0 && limits.round_trip_seconds < 1);
    assert_true(limits.pipeline_seconds > 0 && limits.pipeline_seconds < 10);
    assert_int_equal(stats_of(device).buffer_bytes, before);
    wick_device_close(device);
}

/* Packed dot products are taken where they are twice as fast as float32, by the line or by what was
 * measured; as_gpu takes them anyway. */
static void rates_choose_dot_products(void **state) {
    (void)state;
    for (int as_gpu = 0; as_gpu < 2; as_gpu++) {
        const wick_device_desc before = given;
        given.webgpu.as_gpu = as_gpu != 0;
        wick_device *const device = open_device(true, false);
        given = before;
        wk_backend_device *const dev = device->handle;
        const uint32_t there = dev->adapter.features & WICK_WEBGPU_DOT4;
        const uint32_t otherwise = as_gpu ? there : 0;
        assert_int_equal(dev->features & WICK_WEBGPU_DOT4, otherwise); /* it is in software */
        dev->adapter.type = WICK_ADAPTER_DISCRETE;
        assert_int_equal(tune(device, "rates 1000 1999\n"), 0);
        assert_int_equal(dev->features & WICK_WEBGPU_DOT4, otherwise);
        assert_non_null(strstr(tuning_of(device), "rates 1000 1999\n"));
        assert_int_equal(tune(device, "rates 1000 2000\n"), 0);
        assert_int_equal(dev->features & WICK_WEBGPU_DOT4, there);
        assert_int_equal(tune(device, "rates 0 5\nrates 1\nrates 1 2 3\nrates a 1\n"), 4);
        assert_int_equal(dev->integer_rate, 2000);
        wick_device_limits limits;
        assert_int_equal(wick_device_measure(device, &limits, NULL), WICK_OK);
        if (there != 0) {
            const bool pays = dev->integer_rate >= 2 * dev->f32_rate;
            assert_int_equal(dev->features & WICK_WEBGPU_DOT4, pays ? there : otherwise);
            assert_true(dev->f32_rate == (uint32_t)(limits.f32_ops_per_second / 1e6));
        }
        wick_device_close(device);
    }
}

/* Names without end and twice; of a program the text that its operation needs. */
static void programs_are_shown(void **state) {
    (void)state;
    wick_device *const device = open_device(true, false);
    const char *name, *kernel = NULL;
    size_t n = 0, n_unary = 0;
    while ((name = wick_device_kernel_name(device, n)) != NULL && n < 1000) {
        n_unary += strcmp(name, "unary_wgsl") == 0;
        n++;
    }
    assert_in_range(n, 20, 200);
    assert_int_equal(n_unary, 1);
    assert_int_equal(wick_device_program(device, 0, &kernel, NULL, 0), 0);
    assert_null(kernel);
    assert_true(sine_of_one(device) > 0.84F);
    const size_t size = wick_device_program(device, 0, &kernel, NULL, 0);
    assert_string_equal(kernel, "unary_wgsl");
    static char text[1 << 16];
    assert_in_range(size, 100, sizeof text - 1);
    assert_int_equal(wick_device_program(device, 0, &kernel, text, sizeof text), size);
    assert_non_null(strstr(text, "@compute @workgroup_size"));
    assert_int_equal(wick_device_program(device, 1, &kernel, NULL, 0), 0);
    wick_device_close(device);
    assert_null(wick_device_kernel_name(NULL, 0));
    assert_int_equal(wick_device_program(NULL, 0, &kernel, NULL, 0), 0);
}

typedef struct timed {
    int n, n_fastest, most;
    bool is_on_gpu;
} timed;

static bool count_time(void *user, const wick_kernel_time *time) {
    timed *const t = user;
    assert_true(time->seconds > 0 && time->seconds < 10);
    assert_true(time->bytes > 0 && time->tuning < time->n_tunings);
    assert_true((strstr(time->kernel, "linear") != NULL) == (time->flops > 0));
    t->n_fastest += time->is_fastest;
    t->is_on_gpu = time->is_on_gpu;
    return ++t->n < t->most;
}

static void kernels_are_timed(void **state) {
    (void)state;
    static const wick_kernel_weight weight = {64, 96, WICK_Q8_0};
    timed t = {.most = 1000};
    wick_time_desc desc = {.kernels = "linear_w*",
                           .sizes = {.n_prompt = 20, .weights = &weight, .n_weights = 1},
                           .choose = true,
                           .report = count_time,
                           .user = &t};
    wick_error err = {0};
    for (int is_profiled = 0; is_profiled < 2; is_profiled++) {
        wick_device *const device = open_device(true, is_profiled != 0);
        wick_device_info info;
        wick_device_get_info(device, &info);
        t.n = t.n_fastest = 0;
        if (wick_time_kernels(device, &desc, &err) != WICK_OK) fail_msg("%s", err.message);
        assert_int_equal(t.n, 3 * wk_webgpu_linear.base.n_tunings); /* one, few and many rows */
        assert_true(t.n_fastest >= 3);
        assert_true(t.is_on_gpu ==
                    (is_profiled && (info.adapter.features & WICK_WEBGPU_TIMESTAMPS) != 0));
        assert_int_equal(tune(device, tuning_of(device)), 0);
        wick_device_close(device);
    }
    wick_device *const device = open_device(true, false);
    t = (timed){.most = 2}; /* stops where it was asked to */
    assert_int_equal(wick_time_kernels(device, &desc, NULL), WICK_OK);
    assert_int_equal(t.n, 2);
    desc.kernels = "nothing";
    assert_int_equal(wick_time_kernels(device, &desc, &err), WICK_ERR_NOT_FOUND);
    assert_int_equal(wick_time_kernels(NULL, &desc, NULL), WICK_ERR_ARGUMENT);
    wick_device_close(device);
}

/* What the profile says of one product: x [3, 64] f32, weight [32, 64] f32. */
static void profiles_count_bytes(void **state) {
    (void)state;
    wick_device *const device = open_device(true, true);
    wick_device_info info;
    wick_device_get_info(device, &info);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const a = wick_ones(device, WICK_F32, WICK_SHAPE(3, 64));
    wick_tensor *const b = wick_ones(device, WICK_F32, WICK_SHAPE(64, 32));
    float values[3 * 32];
    assert_int_equal(wick_read(wick_matmul(a, b), values, sizeof values), WICK_OK);
    assert_true(values[0] == 64);
    wick_scope_end(scope);
    wick_kernel_stats stats[64];
    const size_t n = wick_device_get_profile(device, stats, 64);
    size_t at = 0;
    while (at < n && strcmp(stats[at].name, "matmul_wgsl") != 0) at++;
    if (!(info.adapter.features & WICK_WEBGPU_TIMESTAMPS)) {
        assert_int_equal(n, 0);
    } else {
        assert_true(at < n);
        assert_int_equal(stats[at].calls, 1);
        assert_int_equal(stats[at].n_dispatches, 1);
        assert_true(stats[at].bytes_read == 4 * (3 * 64 + 64 * 32));
        assert_true(stats[at].bytes_written == 4 * 3 * 32);
        assert_true(stats[at].flops == 2 * 3 * 32 * 64);
    }
    wick_device_close(device);
}

int main(int argc, char **argv) {
    given.backend = WICK_BACKEND_WEBGPU;
    if (!parse_device(argc, argv, &given)) return 2;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_kernels_are_disabled),
        cmocka_unit_test(disabled_ops_are_done_otherwise),
        cmocka_unit_test(strict_devices_refuse),
        cmocka_unit_test(text_goes_round),
        cmocka_unit_test(bad_lines_are_left_out),
        cmocka_unit_test(wrong_use_is_told),
        cmocka_unit_test(choices_outlive_a_loss),
        cmocka_unit_test(limits_are_measured),
        cmocka_unit_test(programs_are_shown),
        cmocka_unit_test(rates_choose_dot_products),
        cmocka_unit_test(kernels_are_timed),
        cmocka_unit_test(profiles_count_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
