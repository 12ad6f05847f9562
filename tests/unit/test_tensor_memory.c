/* Memory of the tensor layer: the caller's own wrapped in place, what a recording may touch, what
 * is refused, who frees what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "checked_heap.h"
#include "tensor/device.h"
#include "tensor/plan.h"
#include "tensor/tensor.h"

#include <wick/ops.h>

#include <stdlib.h>
#include <string.h>

static wick_device *open_device(const wick_device_desc *desc) {
    wick_device *device;
    wick_error error = {0};
    if (wick_device_open(desc, &device, &error) != WICK_OK) fail_msg("%s", error.message);
    return device;
}

/* One slice computes one op: commands stay waiting until they are asked for. */
static wick_device *open_slow(void) {
    return open_device(
        &(wick_device_desc){.backend = WICK_BACKEND_CPU, .n_threads = 1, .slice_us = 1});
}

static void count_release(void *user) { ++*(int *)user; }

static void test_memory_is_used_in_place(void **state) {
    (void)state;
    wick_device *const device = open_slow();
    _Alignas(8) float memory[4] = {1, 2, 3, 4};
    int released = 0;
    wick_tensor *const x = wick_tensor_from_memory(device, WICK_F32, WICK_SHAPE(4), memory,
                                                   sizeof memory, count_release, &released);
    assert_non_null(x);
    assert_ptr_equal(x->view.buf->data, memory);
    assert_ptr_equal(wick_fill(x, 7), x);
    assert_int_equal(wick_synchronize(device), WICK_OK);
    assert_float_equal(memory[3], 7, 0);
    wick_device_stats stats;
    wick_device_get_stats(device, &stats);
    assert_int_equal(stats.buffer_bytes, 0); /* not the device's */

    wick_tensor *const y = wick_add(x, x);
    wick_release(x);
    assert_int_equal(released, 0); /* the queued op reads it */
    float got[4];
    assert_int_equal(wick_read(y, got, sizeof got), WICK_OK);
    assert_float_equal(got[0], 14, 0);
    assert_int_equal(released, 1);
    wick_release(y);
    wick_device_close(device);
}

static void test_memory_is_copied_or_refused(void **state) {
    (void)state;
    const wick_device_desc desc[] = {{.backend = WICK_BACKEND_CPU, .n_threads = 1},
                                     {.backend = WICK_BACKEND_NULL, .n_threads = 1}};
    for (size_t i = 0; i < WK_COUNT(desc); i++) {
        wick_device *const device = open_device(&desc[i]);
        _Alignas(8) float memory[5] = {0, 1, 2, 3, 4};
        int released = 0;
        /* Four bytes after an aligned address: no device takes it as it is. */
        wick_tensor *const x =
            wick_tensor_from_memory(device, WICK_F32, WICK_SHAPE(4), memory + 1, 4 * sizeof *memory,
                                    count_release, &released);
        assert_int_equal(released, 1);
        memory[1] = 9;
        float got[4];
        assert_int_equal(wick_read(x, got, sizeof got), WICK_OK);
        assert_float_equal(got[0], 1, 0);
        wick_release(x);

        assert_null(wick_tensor_from_memory(device, WICK_F32, WICK_SHAPE(3), memory, sizeof memory,
                                            count_release, &released));
        assert_int_equal(released, 2);
        assert_int_equal(wick_device_error(device, NULL), WICK_ERR_ARGUMENT);
        assert_null(wick_tensor_from_memory(device, WICK_F32, WICK_SHAPE(3), NULL, 12,
                                            count_release, &released));
        assert_int_equal(released, 3);
        assert_int_equal(wick_device_error(device, NULL), WICK_ERR_ARGUMENT);
        wick_device_close(device);
    }
    int released = 0;
    float one = 1;
    assert_null(wick_tensor_from_memory(NULL, WICK_F32, WICK_SCALAR, &one, sizeof one,
                                        count_release, &released));
    assert_int_equal(released, 1);
}

/* Wherever memory ends while a tensor is read: nothing is left of it, and it can be read then. */
static void check_failed_reads(bool is_turned, uint64_t n_failures) {
    const float numbers[] = {0, 1, 2, 3, 4, 5};
    uint64_t n_failed = 0;
    wick_status status = WICK_ERR_OUT_OF_MEMORY;
    for (uint64_t n = 0; status != WICK_OK; n++) {
        checked_heap heap;
        checked_heap_init(&heap, UINT64_MAX);
        wick_device *const device = open_device(&(wick_device_desc){
            .backend = WICK_BACKEND_CPU, .n_threads = 1, .allocator = heap.heap.hook});
        wick_tensor *const x =
            wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(2, 3), numbers, sizeof numbers);
        wick_tensor *const y = is_turned ? wick_transpose(x, 0, 1) : wick_retain(x);
        float got[6] = {0};
        heap.n_allowed = n;
        status = wick_read(y, got, sizeof got);
        heap.n_allowed = UINT64_MAX;
        if (status != WICK_OK) {
            n_failed++;
            assert_int_equal(status, WICK_ERR_OUT_OF_MEMORY);
            (void)wick_device_error(device, NULL);
            assert_int_equal(wick_read(y, got, sizeof got), WICK_OK);
        }
        for (int i = 0; i < 6; i++)
            assert_true(got[i] == numbers[is_turned ? i % 2 * 3 + i / 2 : i]);
        wick_release(y);
        wick_release(x);
        wick_device_stats stats;
        wick_device_get_stats(device, &stats);
        assert_int_equal(stats.buffer_bytes, 0);
        wick_device_close(device);
        assert_true(checked_heap_is_clean(&heap));
    }
    assert_true(n_failed >= n_failures);
}

static void test_failed_reads(void **state) {
    (void)state;
    check_failed_reads(false, 2);
    check_failed_reads(true, 4);
}

/* More scopes in one another than a device begins with: each frees its own tensor. */
static void test_many_scopes(void **state) {
    enum { N = 20 };
    (void)state;
    checked_heap heap;
    checked_heap_init(&heap, UINT64_MAX);
    wick_device *const device = open_device(&(wick_device_desc){
        .backend = WICK_BACKEND_CPU, .n_threads = 1, .allocator = heap.heap.hook});
    wick_device_stats before, stats;
    wick_device_get_stats(device, &before);
    for (int round = 0; round < 2; round++) {
        wick_scope scopes[N];
        for (int i = 0; i < N; i++) {
            scopes[i] = wick_scope_begin(device);
            assert_int_equal(wick_device_error(device, NULL), WICK_OK);
            assert_non_null(wick_empty(device, WICK_U8, WICK_SHAPE(1 << 10)));
        }
        wick_device_get_stats(device, &stats);
        const uint64_t of_one = (stats.buffer_bytes - before.buffer_bytes) / N;
        assert_true(of_one >= 1 << 10);
        for (int i = N; i-- > 0;) {
            wick_scope_end(scopes[i]);
            wick_device_get_stats(device, &stats);
            assert_int_equal(stats.buffer_bytes - before.buffer_bytes, (uint64_t)i * of_one);
        }
    }
    wick_device_close(device);
    assert_true(checked_heap_is_clean(&heap));
}

/* The scope around it has its tensors then. */
static void test_no_memory_for_a_scope(void **state) {
    enum { N = 64 };
    (void)state;
    checked_heap heap;
    checked_heap_init(&heap, UINT64_MAX);
    wick_device *const device = open_device(&(wick_device_desc){
        .backend = WICK_BACKEND_CPU, .n_threads = 1, .allocator = heap.heap.hook});
    wick_scope scopes[N];
    int n = 0;
    heap.n_allowed = 0;
    do {
        assert_true(n < N);
        scopes[n] = wick_scope_begin(device);
    } while (wick_device_error(device, NULL) == WICK_OK && ++n < N);
    heap.n_allowed = UINT64_MAX;
    assert_true(n > 1 && n < N);
    wick_tensor *const x = wick_zeros(device, WICK_U8, WICK_SHAPE(4));
    wick_scope_end(scopes[n]); /* it is none */
    unsigned char got[4] = {1};
    assert_int_equal(wick_read(x, got, sizeof got), WICK_OK);
    assert_int_equal(got[0], 0);
    while (n-- > 0) wick_scope_end(scopes[n]);
    wick_device_stats stats;
    wick_device_get_stats(device, &stats);
    assert_int_equal(stats.buffer_bytes, 0);
    wick_device_close(device);
    assert_true(checked_heap_is_clean(&heap));
}

static void *allocate_if(void *user, size_t size) { return *(bool *)user ? malloc(size) : NULL; }

static void release(void *user, void *memory, size_t size) {
    (void)user, (void)size;
    free(memory);
}

/* The product finds no memory for its scratch when the queue drains; what was queued before it
 * still runs, and nothing touches the caller's memory after wick_synchronize. */
static void test_synchronize_waits_after_a_failure(void **state) {
    (void)state;
    enum { N = 256 };
    static _Alignas(8) float memory[N];
    bool has_memory = true;
    int released = 0;
    wick_device *const device = open_device(&(wick_device_desc){
        .backend = WICK_BACKEND_CPU,
        .isa = WICK_ISA_REF,
        .n_threads = 1,
        .slice_us = 1,
        .allocator = {.allocate = allocate_if, .release = release, .user = &has_memory}});
    wick_tensor *const x = wick_tensor_from_memory(device, WICK_F32, WICK_SHAPE(1, N), memory,
                                                   sizeof memory, count_release, &released);
    wick_fill(x, 0);
    assert_int_equal(wick_synchronize(device), WICK_OK); /* the list of commands exists now */
    for (int i = 0; i < 8; i++) assert_non_null(wick_fill(x, i));
    wick_tensor *const y = wick_linear(x, x, NULL);
    assert_non_null(y);
    wick_release(x);
    has_memory = false;
    assert_int_equal(wick_synchronize(device), WICK_OK);
    assert_int_equal(released, 1);
    assert_float_equal(memory[N - 1], 7, 0);
    wick_error error;
    has_memory = true;
    float got[1];
    assert_int_equal(wick_read(y, got, sizeof got), WICK_ERR_OUT_OF_MEMORY);
    assert_int_equal(wick_device_error(device, &error), WICK_ERR_OUT_OF_MEMORY);
    assert_true(error.bytes_requested >= N * sizeof(double));
    wick_release(y);
    wick_device_close(device);
}

/* What the program has released goes as soon as the ops that need it have run, and they do not wait
 * until 256 are there: that would take 800 MiB. A device that computes one op at each poll is
 * polled at every op as long as it is behind. */
static void test_released_temporaries_do_not_pile_up(void **state) {
    (void)state;
    enum { N = 1 << 20, STEPS = 200 };
    const uint64_t mib = 1 << 20;
    const wick_device_desc desc[] = {
        {.backend = WICK_BACKEND_CPU, .n_threads = 1, .fusion = WICK_FUSION_OFF},
        {.backend = WICK_BACKEND_CPU, .n_threads = 1, .fusion = WICK_FUSION_OFF, .slice_us = 1},
        {.backend = WICK_BACKEND_NULL, .n_threads = 1, .fusion = WICK_FUSION_OFF},
    };
    for (size_t i = 0; i < WK_COUNT(desc); i++) {
        wick_device *const device = open_device(&desc[i]);
        for (int k = 0; k < STEPS; k++) {
            const wick_scope scope = wick_scope_begin(device);
            wick_tensor *const x = wick_empty(device, WICK_F32, WICK_SHAPE(N));
            assert_non_null(wick_fill(wick_narrow(x, 0, k, 1), k));
            wick_scope_end(scope);
        }
        assert_int_equal(wick_synchronize(device), WICK_OK);
        wick_device_stats stats;
        wick_device_get_stats(device, &stats);
        assert_int_equal(stats.n_ops, STEPS);
        assert_int_equal(stats.buffer_bytes, 0);
        assert_true(stats.buffer_peak_bytes >= 32 * mib); /* so few are not worth a run */
        assert_true(stats.buffer_peak_bytes < 200 * mib);
        wick_device_close(device);
    }
}

/* What the program still has is no reason to compute it early: its ops stay together. */
static void test_kept_results_wait(void **state) {
    (void)state;
    enum { N = 24, BYTES = 1 << 20 };
    wick_tensor *sums[N];
    wick_device *const device = open_slow();
    wick_tensor *const x = wick_zeros(device, WICK_F32, WICK_SHAPE(1024, BYTES / 4096));
    wick_tensor *const small = wick_zeros(device, WICK_F32, WICK_SHAPE(16, 16));
    wick_tensor *const product = wick_matmul(small, small);
    wick_release(small); /* whose memory the product still needs */
    for (int i = 0; i < N; i++) sums[i] = wick_softmax(x, 1);
    assert_in_range(device->queue.count, N, N + 4);
    for (int i = 0; i < N; i++) wick_release(sums[i]);
    wick_release(product);
    wick_release(x);
    assert_int_equal(wick_device_error(device, NULL), WICK_OK);
    wick_device_close(device);
}

static void test_recording_keeps_the_order_of_writes(void **state) {
    (void)state;
    wick_device *const device = open_slow();
    const float old[4] = {1, 2, 3, 4}, fresh[4] = {100, 100, 100, 100};
    wick_tensor *const x =
        wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(2, 2), old, sizeof old);
    wick_tensor *const turned = wick_transpose(x, 0, 1);
    wick_tensor *const doubled = wick_add(x, x); /* queued before the recording begins */
    wk_plan_pool *pool;
    wk_plan *plan;
    assert_int_equal(wk_plan_pool_make(device, &pool), WICK_OK);
    assert_int_equal(wk_plan_begin(device, pool), WICK_OK);
    assert_int_equal(wick_write(x, fresh, sizeof fresh), WICK_OK);
    float got[4];
    assert_int_equal(wick_read(doubled, got, sizeof got), WICK_OK);
    assert_float_equal(got[3], 8, 0);
    /* It would need a copy, which would be recorded instead of made. */
    assert_int_equal(wick_read(turned, got, sizeof got), WICK_ERR_STATE);
    assert_int_equal(wick_device_error(device, NULL), WICK_ERR_STATE);
    wk_plan_abort(device, &plan);
    wk_plan_free(plan);
    wk_plan_pool_free(pool);
    wick_release(doubled);
    wick_release(turned);
    wick_release(x);
    wick_device_close(device);
}

/* Rows of a block type are whole blocks: kernels decode them one by one. */
static void test_rows_are_whole_blocks(void **state) {
    (void)state;
    wick_device *const device = open_slow();
    assert_null(wick_empty(device, WICK_Q4_0, WICK_SHAPE(2, 16)));
    assert_int_equal(wick_device_error(device, NULL), WICK_ERR_SHAPE);
    assert_null(wick_empty(device, WICK_Q4_0, WICK_SCALAR));
    assert_int_equal(wick_device_error(device, NULL), WICK_ERR_SHAPE);
    assert_null(wick_empty(device, (wick_dtype)-1, WICK_SHAPE(2)));
    assert_int_equal(wick_device_error(device, NULL), WICK_ERR_DTYPE);
    wick_release(wick_empty(device, WICK_Q4_0, WICK_SHAPE(2, 32)));
    wick_device_close(device);
}

static void test_versions_count_writes(void **state) {
    (void)state;
    wick_device *const device = open_slow();
    const float data[2] = {1, 2};
    wick_tensor *const x =
        wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(2), data, sizeof data);
    const uint32_t first = x->view.buf->version;
    wick_tensor *const y = wick_add(x, x);
    assert_int_equal(x->view.buf->version, first); /* read only */
    wick_fill(x, 3);
    assert_int_equal(x->view.buf->version, first + 1);
    assert_int_equal(wick_write(x, data, sizeof data), WICK_OK);
    assert_int_equal(x->view.buf->version, first + 2);
    wick_release(y);
    wick_release(x);
    wick_device_close(device);
}

static void test_scopes_end_with_the_one_around_them(void **state) {
    (void)state;
    wick_device *const device = open_slow();
    const wick_scope outer = wick_scope_begin(device);
    (void)wick_zeros(device, WICK_F32, WICK_SHAPE(4));
    const wick_scope inner = wick_scope_begin(device);
    wick_tensor *const kept = wick_retain(wick_zeros(device, WICK_F32, WICK_SHAPE(4)));
    wick_scope_end(outer);
    wick_scope_end(inner); /* has ended already */
    assert_int_equal(wick_synchronize(device), WICK_OK);
    wick_device_stats stats;
    wick_device_get_stats(device, &stats);
    assert_int_equal(stats.buffer_bytes, wick_tensor_bytes(kept));
    wick_release(kept);
    wick_device_close(device);
}

/* Its tensor goes to the scope around or to the caller; others go nowhere. */
static void test_scopes_give_a_result(void **state) {
    (void)state;
    wick_device *const device = open_slow();
    wick_device *const other = open_slow();
    wick_tensor *const elsewhere = wick_zeros(other, WICK_F32, WICK_SHAPE(4));
    const wick_scope outer = wick_scope_begin(device);
    wick_tensor *const before = wick_zeros(device, WICK_F32, WICK_SHAPE(4));
    wick_scope inner = wick_scope_begin(device);
    assert_ptr_equal(wick_scope_result(inner, before), before); /* is not of that scope */
    inner = wick_scope_begin(device);
    assert_ptr_equal(wick_scope_result(inner, elsewhere), elsewhere);
    inner = wick_scope_begin(device);
    assert_null(wick_scope_result(inner, NULL));

    inner = wick_scope_begin(device);
    (void)wick_zeros(device, WICK_F32, WICK_SHAPE(4));
    (void)wick_scope_begin(device); /* is left open */
    wick_tensor *const kept = wick_scope_result(inner, wick_zeros(device, WICK_F32, WICK_SHAPE(8)));
    wick_device_stats stats;
    assert_int_equal(wick_synchronize(device), WICK_OK);
    wick_device_get_stats(device, &stats);
    assert_int_equal(stats.buffer_bytes, wick_tensor_bytes(kept) + wick_tensor_bytes(before));
    wick_tensor *const result = wick_scope_result(outer, kept);
    assert_ptr_equal(wick_scope_result(outer, result), result); /* has ended already */
    wick_device_get_stats(device, &stats);
    assert_int_equal(stats.buffer_bytes, wick_tensor_bytes(result));
    wick_release(result);
    wick_release(elsewhere);
    wick_device_close(other);
    wick_device_close(device);
}

typedef struct last_words {
    wick_tensor *other;
    wick_scope scope;
} last_words;

static void release_and_end(void *user) {
    const last_words *const words = user;
    wick_release(words->other);
    (void)wick_zeros(words->scope.device, WICK_F32, WICK_SHAPE(4));
    wick_scope_end(words->scope);
}

/* While a scope ends, a deleter releases a tensor of it, makes one and ends the scope itself. */
static void test_deleters_run_while_a_scope_ends(void **state) {
    (void)state;
    wick_device *const device = open_slow();
    const wick_scope outer = wick_scope_begin(device);
    _Alignas(8) float memory[4] = {0};
    last_words words = {.scope = wick_scope_begin(device)};
    words.other = wick_empty(device, WICK_F32, WICK_SHAPE(4));
    assert_non_null(wick_tensor_from_memory(device, WICK_F32, WICK_SHAPE(4), memory, sizeof memory,
                                            release_and_end, &words));
    wick_scope_end(words.scope);
    wick_tensor *const kept = wick_retain(wick_zeros(device, WICK_F32, WICK_SHAPE(4)));
    wick_scope_end(outer);
    assert_int_equal(wick_synchronize(device), WICK_OK);
    wick_device_stats stats;
    wick_device_get_stats(device, &stats);
    assert_int_equal(stats.buffer_bytes, wick_tensor_bytes(kept));
    wick_release(kept);
    wick_device_close(device);
}

static void *no_memory(void *user, size_t size) {
    (void)user, (void)size;
    return NULL;
}

static void test_opening_says_what_is_wrong(void **state) {
    (void)state;
    wick_device *device;
    wick_error error = {0};
    wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .allocator.allocate = no_memory};
    assert_int_equal(wick_device_open(&desc, &device, &error), WICK_ERR_VALUE);
    assert_null(device);
    error = (wick_error){0};
    desc.allocator.release = release;
    assert_int_equal(wick_device_open(&desc, &device, &error), WICK_ERR_OUT_OF_MEMORY);
    assert_true(error.bytes_requested > 0);
}

static void test_auto_says_that_it_took_the_cpu(void **state) {
    (void)state;
    wick_device_info info;
    wick_device *const chosen = open_device(NULL);
    wick_device_get_info(chosen, &info);
    assert_true(info.is_fallback == (info.backend == WICK_BACKEND_CPU));
    wick_device_close(chosen);
    wick_device *const asked = open_slow();
    wick_device_get_info(asked, &info);
    assert_false(info.is_fallback);
    wick_device_close(asked);
}

/* Without data a reading is given up, whether it has ended or not, and nothing has failed. */
static void test_readings_given_up(void **state) {
    (void)state;
    wick_device *const device = open_slow();
    const float data[2] = {1, 2};
    wick_tensor *const x =
        wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(2), data, sizeof data);
    for (int is_done = 0; is_done < 2; is_done++) {
        wick_reading *reading;
        float got[2] = {0};
        assert_int_equal(wick_read_start(x, &reading), WICK_OK);
        while (is_done && wick_read_poll(reading) == WICK_PENDING) wick_pause(device);
        assert_int_equal(wick_read_finish(reading, NULL, is_done ? sizeof got : 0),
                         WICK_ERR_CANCELLED);
        assert_int_equal(wick_device_error(device, NULL), WICK_OK);
        assert_int_equal(wick_read(x, got, sizeof got), WICK_OK);
        assert_float_equal(got[1], 2, 0);
    }
    wick_release(x);
    wick_device_close(device);
}

/* A missing pointer is refused, never followed. */
static void missing_pointers(void **state) {
    (void)state;
    const float data[4] = {0};
    wick_device *device;
    assert_int_equal(wick_device_open(NULL, NULL, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_device_open(NULL, &device, NULL), WICK_OK);
    wick_tensor *const x =
        wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(2, 2), data, sizeof data);
    wick_error error;
    assert_int_equal(wick_write(x, data, 12), WICK_ERR_ARGUMENT);
    (void)wick_device_error(device, &error);
    assert_string_equal(error.message, "12 bytes given for a tensor of f32 [2, 2], which holds 16");
    assert_int_equal(wick_read_start(x, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_read_poll(NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_read_finish(NULL, NULL, 0), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_write(x, NULL, sizeof data), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_poll(NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_flush(NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_synchronize(NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_device_error(NULL, NULL), WICK_ERR_ARGUMENT);
    assert_null(wick_permute(x, 2, NULL));
    assert_null(wick_cat(NULL, 2, 0));
    assert_int_equal(wick_tensor_bytes(NULL), 0);
    assert_int_equal(wick_tensor_size(NULL), 0);
    assert_null(wick_tensor_device(NULL));
    assert_int_equal(wick_tensor_shape(NULL).rank, 1);
    wick_scope_end(wick_scope_begin(NULL));
    wick_release(x);
    wick_device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_readings_given_up),
        cmocka_unit_test(test_failed_reads),
        cmocka_unit_test(test_many_scopes),
        cmocka_unit_test(test_no_memory_for_a_scope),
        cmocka_unit_test(missing_pointers),
        cmocka_unit_test(test_memory_is_used_in_place),
        cmocka_unit_test(test_memory_is_copied_or_refused),
        cmocka_unit_test(test_synchronize_waits_after_a_failure),
        cmocka_unit_test(test_released_temporaries_do_not_pile_up),
        cmocka_unit_test(test_kept_results_wait),
        cmocka_unit_test(test_recording_keeps_the_order_of_writes),
        cmocka_unit_test(test_rows_are_whole_blocks),
        cmocka_unit_test(test_versions_count_writes),
        cmocka_unit_test(test_scopes_end_with_the_one_around_them),
        cmocka_unit_test(test_scopes_give_a_result),
        cmocka_unit_test(test_deleters_run_while_a_scope_ends),
        cmocka_unit_test(test_opening_says_what_is_wrong),
        cmocka_unit_test(test_auto_says_that_it_took_the_cpu),
    };
    return cmocka_run_group_tests_name("tensor_memory", tests, NULL, NULL);
}
