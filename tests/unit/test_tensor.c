/* The tensor layer: scopes, the queue, reads, fallback, decomposition, verification, plans; on the
 * CPU and on the null backend in all its moods. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tensor/device.h"
#include "tensor/plan.h"
#include "tensor/tensor.h"

#include <wick/ops.h>

#include <math.h>
#include <string.h>

static const wick_device_desc moods[] = {
    {.backend = WICK_BACKEND_CPU, .isa = WICK_ISA_REF, .n_threads = 1},
    {.backend = WICK_BACKEND_CPU, .n_threads = 2},
    {.backend = WICK_BACKEND_CPU, .n_threads = 2, .slice_us = 1},
    {.backend = WICK_BACKEND_CPU, .verify = true},
    {.backend = WICK_BACKEND_NULL},
    {.backend = WICK_BACKEND_NULL, .null_flags = WICK_NULL_LATE | WICK_NULL_OUT_OF_ORDER},
    {.backend = WICK_BACKEND_NULL, .null_flags = WICK_NULL_NO_FUSED},
    {.backend = WICK_BACKEND_NULL, .null_flags = WICK_NULL_NO_KERNELS},
    {.backend = WICK_BACKEND_NULL, .null_flags = WICK_NULL_NO_KERNELS | WICK_NULL_LATE},
    {.backend = WICK_BACKEND_NULL, .verify = true},
};

static wick_device *open_mood(size_t mood) {
    wick_device *device;
    wick_error error = {0};
    if (wick_device_open(&moods[mood], &device, &error) != WICK_OK)
        fail_msg("mood %zu: %s", mood, error.message);
    return device;
}

/* Closes the device; everything must have been given back. */
static void close_clean(wick_device *device) {
    wick_device_stats stats;
    assert_int_equal(wick_synchronize(device), WICK_OK);
    wick_device_get_stats(device, &stats);
    assert_int_equal(stats.buffer_bytes, 0);
    wick_device_close(device);
}

static wick_tensor *ramp(wick_device *device, int64_t rows, int64_t columns, float from) {
    float data[256];
    assert_true(rows * columns <= 256);
    for (int64_t i = 0; i < rows * columns; i++) data[i] = from + 0.25f * (float)i;
    wick_tensor *const tensor = wick_tensor_from_data(
        device, WICK_F32, WICK_SHAPE(rows, columns), data, (size_t)(rows * columns) * sizeof *data);
    assert_non_null(tensor);
    return tensor;
}

static void test_chain(void **state) {
    (void)state;
    for (size_t mood = 0; mood < sizeof moods / sizeof *moods; mood++) {
        wick_device *const device = open_mood(mood);
        const wick_scope scope = wick_scope_begin(device);
        wick_tensor *const a = ramp(device, 4, 8, -3), *const b = ramp(device, 4, 8, 1);
        wick_tensor *const c = wick_add(wick_swiglu(a, b), wick_mul(a, b));
        float got[32];
        assert_int_equal(wick_read(c, got, sizeof got), WICK_OK);
        for (int i = 0; i < 32; i++) {
            const double x = -3 + 0.25 * i, u = 1 + 0.25 * i;
            const double want = x / (1 + exp(-x)) * u + x * u;
            assert_float_equal(got[i], want, 1e-4);
        }
        wick_scope_end(scope);
        close_clean(device);
    }
}

static void test_counters_tell_the_truth(void **state) {
    (void)state;
    for (size_t mood = 0; mood < sizeof moods / sizeof *moods; mood++) {
        wick_device *const device = open_mood(mood);
        const wick_scope scope = wick_scope_begin(device);
        wick_tensor *const a = ramp(device, 2, 8, 0);
        float got[16];
        assert_int_equal(wick_read(wick_swiglu(a, a), got, sizeof got), WICK_OK);
        wick_device_stats stats;
        wick_device_get_stats(device, &stats);
        const uint32_t flags = moods[mood].null_flags;
        const bool fused = !(flags & (WICK_NULL_NO_FUSED | WICK_NULL_NO_KERNELS));
        assert_int_equal(stats.n_decomposed, fused ? 0 : 1);
        assert_int_equal(stats.n_fallbacks, flags & WICK_NULL_NO_KERNELS ? 2 : 0);
        wick_scope_end(scope);
        close_clean(device);
    }
}

/* The instruction set of a CPU device that the tensor layer has opened for itself. */
static void check_isa(const wk_backend_device *cpu, const char *isa) {
    wick_device_info info = {.isa = ""};
    assert_non_null(cpu);
    wk_backend_get(WICK_BACKEND_CPU)->info(cpu, &info);
    assert_string_equal(info.isa, isa);
}

/* Verification compares with cpu/ref; a fallback computes with what the device was asked for. */
static void test_shadow_kernels(void **state) {
    (void)state;
    wick_device *fastest;
    wick_device_info info;
    assert_int_equal(
        wick_device_open(&(wick_device_desc){.backend = WICK_BACKEND_CPU}, &fastest, NULL),
        WICK_OK);
    wick_device_get_info(fastest, &info);
    wick_device_close(fastest);
    if (strcmp(info.isa, "ref") == 0) skip();
    for (size_t mood = 0; mood < sizeof moods / sizeof *moods; mood++) {
        const bool has_no_kernels = (moods[mood].null_flags & WICK_NULL_NO_KERNELS) != 0;
        if (!moods[mood].verify && !has_no_kernels) continue;
        wick_device *const device = open_mood(mood);
        wick_tensor *const x = ramp(device, 3, 5, 1), *const y = wick_exp(x);
        assert_int_equal(wick_synchronize(device), WICK_OK);
        if (moods[mood].verify) check_isa(device->cpu_reference, "ref");
        if (has_no_kernels) check_isa(device->cpu_fast, info.isa);
        wick_release(y);
        wick_release(x);
        close_clean(device);
    }
}

/* A result between whose rows there is something else. */
static void test_shadows_leave_gaps(void **state) {
    (void)state;
    for (size_t mood = 0; mood < sizeof moods / sizeof *moods; mood++) {
        wick_device *const device = open_mood(mood);
        const wick_scope scope = wick_scope_begin(device);
        wick_tensor *const x = ramp(device, 3, 4, 1), *const part = wick_narrow(x, 1, 1, 2);
        float got[12];
        assert_int_equal(wick_synchronize(device), WICK_OK);
        wick_tensor *const other = ramp(device, 3, 4, 100); /* memory like its is used before */
        assert_non_null(wick_exp(wick_narrow(other, 1, 1, 2)));
        assert_int_equal(wick_synchronize(device), WICK_OK);
        assert_non_null(wick_fill(part, 7));
        assert_int_equal(wick_read(x, got, sizeof got), WICK_OK);
        for (int i = 0; i < 12; i++)
            assert_true(got[i] == (i % 4 == 1 || i % 4 == 2 ? 7 : 1 + 0.25F * (float)i));
        wick_scope_end(scope);
        close_clean(device);
    }
}

/* What the CPU computes in the device's place, or beside it, may take it many slices. */
static void test_shadows_take_their_time(void **state) {
    (void)state;
    enum { N = 1 << 16 };
    static const wick_device_desc descs[] = {
        {.backend = WICK_BACKEND_NULL, .n_threads = 1, .slice_us = 1, .verify = true},
        {.backend = WICK_BACKEND_NULL,
         .n_threads = 1,
         .slice_us = 1,
         .null_flags = WICK_NULL_NO_KERNELS},
    };
    for (size_t i = 0; i < sizeof descs / sizeof *descs; i++) {
        wick_device *device;
        static float got[N];
        assert_int_equal(wick_device_open(&descs[i], &device, NULL), WICK_OK);
        wick_tensor *const x = wick_arange(device, WICK_F32, 0, N, 1);
        wick_tensor *const y = wick_neg(x);
        assert_int_equal(wick_read(y, got, sizeof got), WICK_OK);
        for (int k = 0; k < N; k++) assert_true(got[k] == (float)-k);
        wick_release(x);
        wick_release(y);
        close_clean(device);
    }
}

static void test_strict_refuses_fallback(void **state) {
    (void)state;
    wick_device *device;
    const wick_device_desc desc = {
        .backend = WICK_BACKEND_NULL, .null_flags = WICK_NULL_NO_KERNELS, .strict = true};
    assert_int_equal(wick_device_open(&desc, &device, NULL), WICK_OK);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const a = ramp(device, 2, 2, 0);
    float got[4];
    assert_int_equal(wick_read(wick_add(a, a), got, sizeof got), WICK_ERR_UNSUPPORTED);
    wick_error error;
    assert_int_equal(wick_device_error(device, &error), WICK_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "add"));
    wick_scope_end(scope);
    close_clean(device);
}

static void test_index_fault_is_of_its_result(void **state) {
    (void)state;
    for (size_t mood = 0; mood < sizeof moods / sizeof *moods; mood++) {
        wick_device *const device = open_mood(mood);
        const wick_scope scope = wick_scope_begin(device);
        const uint32_t ids[2] = {1, 7};
        wick_tensor *const weight = ramp(device, 4, 8, 0);
        wick_tensor *const index =
            wick_tensor_from_data(device, WICK_U32, WICK_SHAPE(2), ids, sizeof ids);
        float got[16];
        assert_int_equal(wick_read(wick_embedding(weight, index), got, sizeof got), WICK_ERR_INDEX);
        assert_int_equal(wick_device_error(device, NULL), WICK_ERR_INDEX);
        assert_int_equal(wick_device_error(device, NULL), WICK_OK);
        wick_scope_end(scope);
        close_clean(device);
    }
}

static void test_a_failure_is_told_behind_other_ops(void **state) {
    (void)state;
    for (size_t mood = 0; mood < sizeof moods / sizeof *moods; mood++) {
        wick_device *const device = open_mood(mood);
        const wick_scope scope = wick_scope_begin(device);
        const uint32_t ids[1] = {4};
        wick_tensor *const weight = ramp(device, 4, 8, 0);
        wick_tensor *const index =
            wick_tensor_from_data(device, WICK_U32, WICK_SHAPE(1), ids, sizeof ids);
        wick_tensor *const bad = wick_embedding(weight, index);
        wick_tensor *const sum = wick_add(weight, weight); /* pending when the first one fails */
        wick_tensor *const spoiled = wick_mul(bad, bad);
        float got[32];
        assert_int_equal(wick_synchronize(device), WICK_OK);
        assert_int_equal(wick_device_error(device, NULL), WICK_OK);
        assert_int_equal(wick_read(sum, got, sizeof got), WICK_OK);
        assert_int_equal(wick_read(spoiled, got, 8 * sizeof *got), WICK_ERR_INDEX);
        assert_int_equal(wick_read(weight, got, sizeof got), WICK_OK); /* told already */
        assert_int_equal(wick_device_error(device, NULL), WICK_OK);
        assert_non_null(wick_fill(bad, 1));
        assert_int_equal(wick_read(bad, got, 8 * sizeof *got), WICK_OK);
        assert_true(got[7] == 1);
        assert_int_equal(wick_read(spoiled, got, 8 * sizeof *got), WICK_ERR_INDEX);
        assert_int_equal(wick_device_error(device, NULL), WICK_ERR_INDEX);
        wick_scope_end(scope);
        close_clean(device);
    }
}

static void test_reads_overlap_and_snapshot(void **state) {
    (void)state;
    for (size_t mood = 0; mood < sizeof moods / sizeof *moods; mood++) {
        wick_device *const device = open_mood(mood);
        wick_tensor *const x = ramp(device, 1, 4, 0);
        wick_reading *first, *second;
        assert_int_equal(wick_read_start(x, &first), WICK_OK);
        wick_fill(x, 9);
        assert_int_equal(wick_read_start(x, &second), WICK_OK);
        while (wick_read_poll(second) == WICK_PENDING) {
        }
        while (wick_read_poll(first) == WICK_PENDING) {
        }
        float before[4], after[4];
        assert_int_equal(wick_read_finish(second, after, sizeof after), WICK_OK);
        assert_int_equal(wick_read_finish(first, before, sizeof before), WICK_OK);
        assert_float_equal(before[1], 0.25, 0);
        assert_float_equal(after[1], 9, 0);
        wick_release(x);
        close_clean(device);
    }
}

static void test_writes_keep_their_order(void **state) {
    (void)state;
    for (size_t mood = 0; mood < sizeof moods / sizeof *moods; mood++) {
        wick_device *const device = open_mood(mood);
        const wick_scope scope = wick_scope_begin(device);
        wick_tensor *const x = ramp(device, 1, 4, 1);
        wick_tensor *const doubled = wick_add(x, x); /* queued: must see the old contents */
        const float fresh[4] = {100, 100, 100, 100};
        assert_int_equal(wick_write(x, fresh, sizeof fresh), WICK_OK);
        float got[4];
        assert_int_equal(wick_read(doubled, got, sizeof got), WICK_OK);
        assert_float_equal(got[0], 2, 0);
        wick_scope_end(scope);
        close_clean(device);
    }
}

static void test_long_queues(void **state) {
    (void)state;
    for (size_t mood = 0; mood < sizeof moods / sizeof *moods; mood++) {
        wick_device *const device = open_mood(mood);
        wick_tensor *sum = ramp(device, 1, 2, 0);
        wick_tensor *const one = ramp(device, 1, 2, 1);
        for (int i = 0; i < 1000; i++) {
            wick_tensor *const next = wick_add(sum, one);
            wick_release(sum);
            sum = next;
        }
        float got[2];
        assert_int_equal(wick_read(sum, got, sizeof got), WICK_OK);
        assert_float_equal(got[0], 1000, 0);
        wick_release(sum);
        wick_release(one);
        close_clean(device);
    }
}

/* A recorded sequence: y = swiglu(x w^T, x w^T) + x, with an intermediate that shares memory. */
static wick_tensor *network(wick_tensor *x, wick_tensor *w) {
    wick_tensor *const h = wick_linear(x, w, NULL);
    wick_tensor *const g = wick_silu(wick_linear(x, w, NULL));
    return wick_add(wick_swiglu(h, g), x);
}

static void run_plan(wick_device *device, bool is_replayed) {
    wick_tensor *const x = ramp(device, 2, 8, -1), *const w = ramp(device, 8, 8, -2);
    float want[16], got[16], input[16];
    wick_scope scope = wick_scope_begin(device);
    assert_int_equal(wick_read(network(x, w), want, sizeof want), WICK_OK);
    wick_scope_end(scope);

    wk_plan_pool *pool;
    wk_plan *plan;
    assert_int_equal(wk_plan_pool_make(device, &pool), WICK_OK);
    assert_int_equal(wk_plan_begin(device, pool), WICK_OK);
    scope = wick_scope_begin(device);
    wick_tensor *const y = wick_retain(network(x, w));
    assert_non_null(y);
    assert_int_equal(wk_plan_end(device, &y, 1, &plan), WICK_OK);
    wick_scope_end(scope);

    assert_int_equal(wick_read(x, input, sizeof input), WICK_OK);
    wick_device_stats before, after;
    for (int run = 0; run < 6; run++) {
        const float zero[16] = {0};
        if (run == 3) wick_device_get_stats(device, &before);
        assert_int_equal(wick_write(x, run % 2 ? zero : input, sizeof input), WICK_OK);
        assert_int_equal(wk_plan_run(plan), WICK_OK);
        assert_int_equal(wick_read(y, got, sizeof got), WICK_OK);
        if (run % 2 == 0) assert_memory_equal(got, want, sizeof want);
        if (run % 2 == 1) assert_memory_equal(got, zero, sizeof zero);
    }
    wick_device_get_stats(device, &after);
    if (is_replayed) assert_int_equal(after.n_allocations, before.n_allocations);
    wick_release(y);
    wk_plan_free(plan);
    wk_plan_pool_free(pool);
    wick_release(x);
    wick_release(w);
}

static void test_plan_replays(void **state) {
    (void)state;
    for (size_t mood = 0; mood < sizeof moods / sizeof *moods; mood++) {
        wick_device *const device = open_mood(mood);
        /* Nothing is allocated in the steady state where the backend replays. */
        run_plan(device, moods[mood].backend == WICK_BACKEND_CPU && !moods[mood].verify);
        close_clean(device);
    }
}

/* x is to become a row of a table that has none of this number. */
static void queue_fault(wick_device *device, wick_tensor *x) {
    const uint32_t beyond = 2;
    wick_tensor *const table = ramp(device, 2, 4, 0);
    wick_tensor *const ids =
        wick_tensor_from_data(device, WICK_U32, WICK_SHAPE(1), &beyond, sizeof beyond);
    wick_tensor *const row = wick_embedding(table, ids);
    assert_non_null(wick_copy(x, row));
    wick_release(row);
    wick_release(ids);
    wick_release(table);
}

/* A plan that doubles x, as y and in `kept` as well, which was there before. */
typedef struct doubling {
    wk_plan_pool *pool;
    wk_plan *plan;
    wick_tensor *y;
} doubling;

static doubling record_doubling(wick_device *device, wick_tensor *x, wick_tensor *kept) {
    doubling d;
    assert_int_equal(wk_plan_pool_make(device, &d.pool), WICK_OK);
    assert_int_equal(wk_plan_begin(device, d.pool), WICK_OK);
    d.y = wick_add(x, x);
    assert_non_null(wick_copy(kept, d.y));
    assert_int_equal(wk_plan_end(device, &d.y, 1, &d.plan), WICK_OK);
    return d;
}

static void free_doubling(doubling *d) {
    wick_release(d->y);
    wk_plan_free(d->plan);
    wk_plan_pool_free(d->pool);
}

static void expect_third(wick_tensor *tensor, wick_status status, float third) {
    float got[4];
    assert_int_equal(wick_read(tensor, got, sizeof got), status);
    if (status == WICK_OK) assert_float_equal(got[2], third, 0);
    (void)wick_device_error(wick_tensor_device(tensor), NULL);
}

/* An index out of range that is found when the plans after it have been given, too, is reported
 * with what a plan has made of it; not with what another plan has made, or of a later run. */
static void test_a_fault_goes_through_plans(void **state) {
    (void)state;
    for (size_t mood = 0; mood < sizeof moods / sizeof *moods; mood++) {
        wick_device *const device = open_mood(mood);
        const float good[4] = {1, 2, 3, 4};
        wick_tensor *const x = ramp(device, 1, 4, 0), *const other = ramp(device, 1, 4, 1);
        wick_tensor *const kept = ramp(device, 1, 4, 5), *const unspoiled = ramp(device, 1, 4, 5);
        doubling of_x = record_doubling(device, x, kept);
        doubling of_other = record_doubling(device, other, unspoiled);
        assert_int_equal(wick_synchronize(device), WICK_OK);

        queue_fault(device, x);
        assert_int_equal(wk_plan_run(of_x.plan), WICK_OK);
        assert_int_equal(wk_plan_run(of_other.plan), WICK_OK);
        wick_tensor *const sum = wick_add(kept, kept);
        expect_third(sum, WICK_ERR_INDEX, 0);
        expect_third(of_x.y, WICK_ERR_INDEX, 0);
        expect_third(kept, WICK_ERR_INDEX, 0);
        expect_third(of_other.y, WICK_OK, 3);
        expect_third(unspoiled, WICK_OK, 3);

        assert_int_equal(wick_write(x, good, sizeof good), WICK_OK);
        assert_int_equal(wick_write(kept, good, sizeof good), WICK_OK);
        queue_fault(device, x);
        assert_int_equal(wk_plan_run(of_x.plan), WICK_OK);
        assert_int_equal(wick_write(x, good, sizeof good), WICK_OK);
        assert_int_equal(wk_plan_run(of_x.plan), WICK_OK);
        expect_third(of_x.y, WICK_OK, 6);
        wick_release(sum);
        free_doubling(&of_x);
        free_doubling(&of_other);
        wick_release(x);
        wick_release(other);
        wick_release(kept);
        wick_release(unspoiled);
        close_clean(device);
    }
}

static void test_devices_do_not_mix(void **state) {
    (void)state;
    wick_device *const one = open_mood(0), *const other = open_mood(0);
    wick_tensor *const a = ramp(one, 1, 2, 0), *const b = ramp(other, 1, 2, 0);
    assert_null(wick_add(a, b));
    assert_int_equal(wick_device_error(one, NULL), WICK_ERR_ARGUMENT);
    wick_release(a);
    wick_release(b);
    close_clean(one);
    close_clean(other);
}

static void test_backends_are_listed(void **state) {
    (void)state;
    wick_backend_status all[16];
    const size_t n = wick_backends(all, 16);
    assert_true(n > 2 && n <= 16);
    int available = 0;
    for (size_t i = 0; i < n; i++) {
        assert_true(all[i].is_available == (all[i].reason[0] == 0));
        available += all[i].is_available;
        wick_device_desc desc = {.backend = all[i].backend};
        wick_device *device;
        wick_error error = {0};
        const wick_status status = wick_device_open(&desc, &device, &error);
        assert_int_equal(status, all[i].is_available ? WICK_OK : WICK_ERR_NO_DEVICE);
        if (status != WICK_OK) assert_non_null(strstr(error.message, all[i].name));
        wick_device_close(device);
    }
    assert_true(available >= 1);
    wick_backend backend;
    assert_true(wick_backend_from_name("gpu", &backend) && backend == WICK_BACKEND_WEBGPU);
    assert_false(wick_backend_from_name("abacus", &backend));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_counters_tell_the_truth),
        cmocka_unit_test(test_shadow_kernels),
        cmocka_unit_test(test_shadows_take_their_time),
        cmocka_unit_test(test_shadows_leave_gaps),
        cmocka_unit_test(test_strict_refuses_fallback),
        cmocka_unit_test(test_index_fault_is_of_its_result),
        cmocka_unit_test(test_a_failure_is_told_behind_other_ops),
        cmocka_unit_test(test_reads_overlap_and_snapshot),
        cmocka_unit_test(test_writes_keep_their_order),
        cmocka_unit_test(test_long_queues),
        cmocka_unit_test(test_plan_replays),
        cmocka_unit_test(test_a_fault_goes_through_plans),
        cmocka_unit_test(test_devices_do_not_mix),
        cmocka_unit_test(test_backends_are_listed),
    };
    return cmocka_run_group_tests_name("tensor", tests, NULL, NULL);
}
