/* tensor/recover.c: tensors, reads and plans of a device that is lost, the device in its place, and
 * backends that cannot be opened. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backend/null/null.h"
#include "checked_heap.h"
#include "tensor/device.h"
#include "tensor/plan.h"

#include <wick/ops.h>

#include <string.h>

static checked_heap heap;

static wick_device *open_null(uint32_t flags) {
    checked_heap_init(&heap, UINT64_MAX);
    const wick_device_desc desc = {.backend = WICK_BACKEND_NULL,
                                   .n_threads = 1,
                                   .null_flags = flags,
                                   .allocator = heap.heap.hook};
    wick_device *device;
    assert_int_equal(wick_device_open(&desc, &device, NULL), WICK_OK);
    return device;
}

static void close_clean(wick_device *device) {
    wick_device_close(device);
    assert_int_equal(heap.n_live, 0);
    assert_int_equal(heap.n_wrong_sizes, 0);
}

static wick_tensor *numbers(wick_device *device) {
    static const float data[4] = {1, 2, 3, 4};
    return wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(4), data, sizeof data);
}

static void expect_lost(wick_device *device, const char *text) {
    wick_error error = {.status = WICK_OK};
    assert_int_equal(wick_device_error(device, &error), WICK_ERR_DEVICE_LOST);
    if (!strstr(error.message, text)) fail_msg("'%s' is not in '%s'", text, error.message);
}

static void lose(wick_device *device) {
    wk_null_lose_after(device->handle, 1);
    assert_int_equal(wick_poll(device), WICK_ERR_DEVICE_LOST);
    expect_lost(device, "null: the device was taken away");
    assert_true(wk_device_is_lost(device));
}

static void recover(wick_device *device) {
    const uint32_t generation = wk_device_generation(device);
    wick_status status;
    uint64_t n_pending = 0;
    while ((status = wk_device_recover(device)) == WICK_PENDING) n_pending++;
    assert_int_equal(status, WICK_OK);
    assert_true(n_pending > 0); /* the delay does not block */
    assert_false(wk_device_is_lost(device));
    assert_int_equal(wk_device_generation(device), generation + 1);
    assert_int_equal(wick_device_error(device, NULL), WICK_OK);
}

/* Everything that a tensor of a lost device may be asked for. */
static void check_stale(wick_device *device, wick_tensor *tensor, const char *text) {
    float data[4];
    wick_reading *reading;
    assert_null(wick_add(tensor, tensor));
    expect_lost(device, text);
    assert_int_equal(wick_read(tensor, data, sizeof data), WICK_ERR_DEVICE_LOST);
    expect_lost(device, text);
    assert_int_equal(wick_read_start(tensor, &reading), WICK_ERR_DEVICE_LOST);
    assert_null(reading);
    expect_lost(device, text);
    assert_int_equal(wick_write(tensor, data, sizeof data), WICK_ERR_DEVICE_LOST);
    expect_lost(device, text);
    assert_int_equal(wick_tensor_size(tensor), 4);
    wick_tensor *const view = wick_narrow(tensor, 0, 1, 2); /* a view of lost memory */
    if (!view) expect_lost(device, text);
    wick_release(view);
}

static void test_tensors(void **state) {
    (void)state;
    for (uint32_t flags = 0; flags <= WICK_NULL_LATE; flags++) {
        wick_device *const device = open_null(flags);
        wick_tensor *const old = numbers(device), *const queued = wick_add(old, old);
        lose(device);
        check_stale(device, old, "the device was lost");
        assert_null(numbers(device));
        expect_lost(device, "the device was lost");
        assert_int_equal(wick_synchronize(device), WICK_ERR_DEVICE_LOST);
        expect_lost(device, "the device was lost");
        recover(device);
        check_stale(device, old, "the tensor was lost with its device");
        check_stale(device, queued, "the tensor was lost with its device");

        wick_tensor *const fresh = numbers(device), *const sum = wick_add(fresh, fresh);
        float got[4];
        assert_null(wick_add(fresh, old));
        expect_lost(device, "the tensor was lost with its device");
        assert_int_equal(wick_read(sum, got, sizeof got), WICK_OK);
        assert_float_equal(got[3], 8, 0);
        wick_device_stats stats;
        wick_device_get_stats(device, &stats);
        assert_int_equal(stats.n_losses, 1);
        assert_int_equal(stats.n_reads, 1);
        assert_int_equal(stats.bytes_uploaded, 2 * 4 * sizeof *got); /* by both devices */
        assert_int_equal(stats.buffer_bytes, 2 * 4 * sizeof *got);   /* of the one that is there */
        wick_release(old);
        wick_release(queued);
        wick_release(fresh);
        wick_release(sum);
        close_clean(device);
    }
}

/* Tensors of two generations that are gone, released in any order. */
static void test_generations(void **state) {
    (void)state;
    static const int orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        wick_device *const device = open_null(0);
        wick_tensor *tensors[3];
        for (int n = 0; n < 3; n++) {
            if (n > 0) {
                lose(device);
                recover(device);
                wk_device_settle(device);
            }
            tensors[n] = numbers(device);
            assert_non_null(tensors[n]);
        }
        for (int n = 0; n < 3; n++) wick_release(tensors[orders[i][n]]);
        close_clean(device);
    }
}

/* Reads that wait, were started, or are ready when the device goes. */
static void test_reads(void **state) {
    (void)state;
    for (int n_polls = 0; n_polls < 8; n_polls++) {
        for (int after = 0; after < 2; after++) {
            wick_device *const device = open_null(WICK_NULL_LATE);
            wick_tensor *const tensor = numbers(device);
            wick_reading *reading;
            float got[4] = {0};
            assert_int_equal(wick_read_start(tensor, &reading), WICK_OK);
            wick_status status = WICK_PENDING;
            for (int i = 0; i < n_polls; i++) status = wick_read_poll(reading);
            lose(device);
            if (after) recover(device);
            if (status == WICK_PENDING) {
                assert_int_equal(wick_read_poll(reading), WICK_ERR_DEVICE_LOST);
                status = WICK_ERR_DEVICE_LOST;
            }
            const wick_status finished = wick_read_finish(reading, got, sizeof got);
            assert_int_equal(finished, WICK_ERR_DEVICE_LOST);
            (void)wick_device_error(device, NULL);
            wick_release(tensor);
            close_clean(device);
        }
    }
}

/* Fallbacks and comparisons that are under way. */
static void test_shadow(void **state) {
    (void)state;
    for (uint64_t n = 1; n < 40; n++) {
        wick_device *const device = open_null(WICK_NULL_NO_KERNELS | (n % 2 ? WICK_NULL_LATE : 0));
        wick_tensor *const a = numbers(device), *const sum = wick_add(a, a),
                           *const b = wick_mul(sum, a);
        wk_null_lose_after(device->handle, n);
        float got[4];
        const wick_status status = wick_read(b, got, sizeof got);
        if (status != WICK_OK) {
            assert_int_equal(status, WICK_ERR_DEVICE_LOST);
            recover(device);
        }
        wick_tensor *const c = numbers(device), *const d = wick_add(c, c);
        if (status != WICK_OK) {
            assert_int_equal(wick_read(d, got, sizeof got), WICK_OK);
            assert_float_equal(got[1], 4, 0);
        }
        (void)wick_device_error(device, NULL);
        wick_release(a);
        wick_release(sum);
        wick_release(b);
        wick_release(c);
        wick_release(d);
        close_clean(device);
    }
}

/* A device that is closed at any moment of a verification leaves nothing. */
static void test_closed_while_verifying(void **state) {
    (void)state;
    bool is_done = false;
    for (int n_polls = 0; !is_done; n_polls++) {
        checked_heap_init(&heap, UINT64_MAX);
        const wick_device_desc desc = {.backend = WICK_BACKEND_NULL,
                                       .n_threads = 1,
                                       .null_flags = WICK_NULL_LATE,
                                       .verify = true,
                                       .allocator = heap.heap.hook};
        wick_device *device;
        assert_int_equal(wick_device_open(&desc, &device, NULL), WICK_OK);
        wick_tensor *const x = numbers(device), *const y = wick_neg(x);
        for (int i = 0; i < n_polls && !is_done; i++) is_done = wick_poll(device) == WICK_OK;
        wick_release(y);
        wick_release(x);
        close_clean(device);
    }
}

static void test_plans(void **state) {
    (void)state;
    wick_device *const device = open_null(0);
    wk_plan_pool *pool;
    wk_plan *plan;
    wick_tensor *const a = numbers(device);
    assert_int_equal(wk_plan_pool_make(device, &pool), WICK_OK);
    assert_int_equal(wk_plan_begin(device, pool), WICK_OK);
    wick_tensor *sum = wick_add(a, a);
    assert_int_equal(wk_plan_end(device, &sum, 1, &plan), WICK_OK);
    assert_int_equal(wk_plan_run(plan), WICK_OK);
    lose(device);
    /* Else it would wait for the next device. */
    assert_int_equal(wk_plan_run(plan), WICK_ERR_DEVICE_LOST);
    expect_lost(device, "the device was lost");
    recover(device);
    assert_int_equal(wk_plan_run(plan), WICK_ERR_DEVICE_LOST);
    expect_lost(device, "the plan was lost");
    wick_release(sum);
    wk_plan_free(plan);
    wk_plan_pool_free(pool);
    wick_release(a);
    close_clean(device);
}

/* The stream of random numbers goes on where it was; a call that fails takes nothing of it. */
static void test_random_numbers(void **state) {
    (void)state;
    float first[2][4], second[2][4];
    for (int is_lost = 0; is_lost < 2; is_lost++) {
        wick_device *const device = open_null(0);
        wick_device_set_seed(device, 99);
        wick_tensor *const a = wick_rand(device, WICK_F32, WICK_SHAPE(4), 0, 1);
        assert_int_equal(wick_read(a, first[is_lost], sizeof *first), WICK_OK);
        if (is_lost) {
            lose(device);
            assert_null(wick_rand(device, WICK_F32, WICK_SHAPE(4), 0, 1));
            expect_lost(device, "lost");
            recover(device);
        }
        wick_tensor *const b = wick_rand(device, WICK_F32, WICK_SHAPE(4), 0, 1);
        assert_int_equal(wick_read(b, second[is_lost], sizeof *second), WICK_OK);
        wick_release(a);
        wick_release(b);
        close_clean(device);
    }
    assert_memory_equal(first[0], first[1], sizeof *first);
    assert_memory_equal(second[0], second[1], sizeof *second);
}

static void test_too_often(void **state) {
    (void)state;
    wick_device *const device = open_null(0);
    for (int n = 0; n < 3; n++) {
        lose(device);
        recover(device);
    }
    lose(device);
    assert_int_equal(wk_device_recover(device), WICK_ERR_DEVICE_LOST);
    expect_lost(device, "given up after 3 attempts");
    assert_int_equal(wk_device_recover(device), WICK_ERR_DEVICE_LOST);
    expect_lost(device, "given up after 3 attempts");
    wk_device_settle(device);
    recover(device);
    close_clean(device);
}

static uint64_t set_ns;

static uint64_t read_set_clock(void) { return set_ns; }

/* The attempts come 25, 100 and 400 ms after the loss or the failure before them, not a
 * nanosecond earlier. */
static void test_delays(void **state) {
    (void)state;
    static const uint64_t delays_ms[] = {25, 100, 400};
    wick_device *const device = open_null(0);
    device->recovery.clock_ns = read_set_clock;
    set_ns = 1000;
    for (size_t i = 0; i < WK_COUNT(delays_ms); i++) {
        const uint64_t delay_ns = delays_ms[i] * 1000000;
        lose(device);
        assert_int_equal(wk_device_recover(device), WICK_PENDING); /* plans it */
        for (uint64_t early = delay_ns; early > 0; early /= 2) {
            const uint64_t due_ns = set_ns + delay_ns;
            set_ns = due_ns - early;
            assert_int_equal(wk_device_recover(device), WICK_PENDING);
            assert_true(wk_device_is_lost(device));
            set_ns = due_ns - delay_ns;
        }
        set_ns += delay_ns;
        assert_int_equal(wk_device_recover(device), WICK_OK);
        assert_false(wk_device_is_lost(device));
    }
    close_clean(device);
}

/* Closed at any point of a recovery. */
static void test_closed_on_the_way(void **state) {
    (void)state;
    for (int n = 0; n < 3; n++) {
        wick_device *const device = open_null(0);
        wick_tensor *const tensor = numbers(device);
        lose(device);
        for (int i = 0; i < n; i++) assert_int_equal(wk_device_recover(device), WICK_PENDING);
        wick_release(tensor);
        close_clean(device);
    }
}

/* --- Backends that cannot be opened --- */

static int n_opened, polls_left;
static bool fails_at_once;

static wick_status bad_start(const wk_open_desc *desc, wk_backend_device **out, wick_error *err) {
    (void)desc;
    *out = NULL;
    if (fails_at_once) return wk_fail(err, WICK_ERR_DEVICE, "it would not start");
    *out = (wk_backend_device *)(void *)&n_opened;
    n_opened++;
    polls_left = 3;
    return WICK_OK;
}

static wick_status bad_poll(wk_backend_device *dev, wick_error *err) {
    (void)dev;
    if (polls_left-- > 0) return WICK_PENDING;
    return wk_fail(err, WICK_ERR_NO_DEVICE, "it broke on the way");
}

static void bad_close(wk_backend_device *dev) {
    (void)dev;
    n_opened--;
}

static wick_status open_bad(wick_backend wanted, wick_device **device, wick_error *error) {
    static const wk_backend bad = {.id = WICK_BACKEND_WEBGPU,
                                   .name = "bad",
                                   .open_start = bad_start,
                                   .open_poll = bad_poll,
                                   .close = bad_close};
    checked_heap_init(&heap, UINT64_MAX);
    const wick_device_desc desc = {.backend = wanted, .n_threads = 1, .allocator = heap.heap.hook};
    wick_device_opening *opening;
    *device = NULL;
    const wick_status status = wk_device_open_start(&desc, &bad, "", &opening, error);
    if (status != WICK_OK) return status;
    while (wick_device_open_poll(opening) == WICK_PENDING) continue;
    return wick_device_open_finish(opening, device, error);
}

static void test_falls_back(void **state) {
    (void)state;
    for (int at_once = 0; at_once < 2; at_once++) {
        fails_at_once = at_once;
        const char *const why = at_once ? "it would not start" : "it broke on the way";
        wick_device *device;
        wick_error error = {.status = WICK_OK};
        wick_device_info info;
        assert_int_equal(open_bad(WICK_BACKEND_AUTO, &device, &error), WICK_OK);
        wick_device_get_info(device, &info);
        assert_int_equal(info.backend, WICK_BACKEND_CPU);
        assert_true(info.is_fallback);
        assert_non_null(strstr(info.fallback_reason, "backend bad cannot be opened"));
        assert_non_null(strstr(info.fallback_reason, why));
        assert_int_equal(wick_device_error(device, NULL), WICK_OK);
        wick_tensor *const tensor = numbers(device);
        assert_non_null(tensor);
        wick_release(tensor);
        close_clean(device);
        assert_int_equal(n_opened, 0);

        assert_true(open_bad(WICK_BACKEND_WEBGPU, &device, &error) < 0);
        assert_null(device);
        assert_non_null(strstr(error.message, why));
        assert_int_equal(n_opened, 0);
        assert_int_equal(heap.n_live, 0);
    }
}

static uint64_t level;

/* All members are of one type. */
enum { N_STATS = sizeof(wk_backend_stats) / sizeof(uint64_t) };
static void count_stats(const wk_backend_device *dev, wk_backend_stats *out) {
    (void)dev;
    uint64_t values[N_STATS];
    for (uint64_t i = 0; i < N_STATS; i++) values[i] = level * (i + 1);
    memcpy(out, values, sizeof values);
}

#define STAT(member) (offsetof(wk_backend_stats, member) / sizeof(uint64_t))

/* Counts add up over a loss; of peaks the largest is kept; what is there is of one device. */
static void test_statistics(void **state) {
    (void)state;
    static const size_t peaks[] = {STAT(longest_submit_ns), STAT(buffer_peak_bytes),
                                   STAT(pool_peak_bytes)};
    static const size_t present[] = {STAT(buffer_bytes), STAT(pool_bytes), STAT(pool_free_bytes),
                                     STAT(pool_largest_free_bytes)};
    wick_device *const device = open_null(0);
    wk_backend counting = *device->backend;
    counting.stats = count_stats;
    device->backend = &counting;
    level = 10;
    lose(device);
    recover(device);
    level = 7; /* less than before */
    lose(device);
    recover(device);
    for (level = 9; level <= 11; level++) {
        uint64_t expected[N_STATS], found[N_STATS];
        wk_backend_stats stats;
        for (uint64_t i = 0; i < N_STATS; i++) expected[i] = (10 + 7 + level) * (i + 1);
        for (size_t i = 0; i < WK_COUNT(peaks); i++)
            expected[peaks[i]] = (level > 10 ? level : 10) * (peaks[i] + 1);
        for (size_t i = 0; i < WK_COUNT(present); i++)
            expected[present[i]] = level * (present[i] + 1);
        count_stats(NULL, &stats);
        wk_recovery_stats(device, &stats);
        memcpy(found, &stats, sizeof found);
        for (size_t i = 0; i < N_STATS; i++) assert_int_equal(found[i], expected[i]);
    }
    close_clean(device);
}

/* Rows of a weight go up in panels of 64, the last ones as they are. */
static void test_uploaded_rows(void **state) {
    (void)state;
    static const struct {
        int64_t first, n;
        bool is_right;
    } ranges[] = {{0, 64, true},   {64, 64, true},   {64, 86, true},   {128, 22, true},
                  {0, 150, true},  {0, 63, false},   {0, 65, false},   {63, 64, false},
                  {65, 85, false}, {128, 23, false}, {-64, 64, false}, {64, -64, false}};
    static const float rows[256];
    wick_device *const device = open_null(0);
    wick_tensor *const weight = wick_zeros(device, WICK_F32, WICK_SHAPE(150, 1));
    assert_int_equal(wick_synchronize(device), WICK_OK);
    for (size_t i = 0; i < WK_COUNT(ranges); i++) {
        wick_error error = {.status = WICK_OK};
        const wick_status status = device->backend->upload_rows(
            device->handle, &weight->view, ranges[i].first, ranges[i].n, rows, &error);
        assert_int_equal(status, ranges[i].is_right ? WICK_OK : WICK_ERR_INTERNAL);
    }
    wick_release(weight);
    close_clean(device);
}

/* The public way: tensors of before are gone, new ones are on the device in its place. */
static void test_public(void **state) {
    (void)state;
    wick_device *const device = open_null(0);
    wick_tensor *const old = numbers(device);
    assert_int_equal(wick_device_recover(NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_device_recover(device), WICK_OK);
    lose(device);
    assert_int_equal(wick_flush(device), WICK_ERR_DEVICE_LOST);
    while (wick_device_recover(device) == WICK_PENDING) continue;
    assert_int_equal(wick_device_recover(device), WICK_OK);
    assert_null(wick_neg(old));
    expect_lost(device, "the tensor was lost with its device");
    wick_tensor *const x = numbers(device), *const y = wick_neg(x);
    float got[4];
    assert_int_equal(wick_flush(device), WICK_OK);
    assert_int_equal(wick_read(y, got, sizeof got), WICK_OK);
    assert_true(got[3] == -4);
    wick_release(old);
    wick_release(x);
    wick_release(y);
    close_clean(device);
}

/* What a device has counted before a loss and after it: all that counts is added up, of three the
 * largest is reported, and what there is now is the new one's alone. */
static void test_sums(void **state) {
    (void)state;
    enum { N = sizeof(wk_backend_stats) / sizeof(uint64_t) };
    uint64_t past[N], now[N], got[N];
    for (uint64_t i = 0; i < N; i++) {
        past[i] = 1000 + 10 * i;
        now[i] = 7 + i;
    }
    wick_device device = {.recovery.past = {0}};
    wk_backend_stats sum;
    memcpy(&device.recovery.past, past, sizeof past);
    memcpy(&sum, now, sizeof now);
    wk_recovery_stats(&device, &sum);
    memcpy(got, &sum, sizeof got);
#define AT(member) (offsetof(wk_backend_stats, member) / sizeof(uint64_t))
    static const size_t largest[] = {AT(longest_submit_ns), AT(buffer_peak_bytes),
                                     AT(pool_peak_bytes)};
    static const size_t present[] = {AT(buffer_bytes), AT(pool_bytes), AT(pool_free_bytes),
                                     AT(pool_largest_free_bytes)};
#undef AT
    uint64_t want[N];
    for (size_t i = 0; i < N; i++) want[i] = past[i] + now[i];
    for (size_t i = 0; i < WK_COUNT(largest); i++) want[largest[i]] = past[largest[i]];
    for (size_t i = 0; i < WK_COUNT(present); i++) want[present[i]] = now[present[i]];
    for (size_t i = 0; i < N; i++)
        if (got[i] != want[i]) fail_msg("member %zu: %llu", i, (unsigned long long)got[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_generations),
        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_shadow),
        cmocka_unit_test(test_closed_while_verifying),
        cmocka_unit_test(test_plans),
        cmocka_unit_test(test_random_numbers),
        cmocka_unit_test(test_too_often),
        cmocka_unit_test(test_closed_on_the_way),
        cmocka_unit_test(test_falls_back),
        cmocka_unit_test(test_statistics),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_uploaded_rows),
        cmocka_unit_test(test_public),
        cmocka_unit_test(test_delays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
