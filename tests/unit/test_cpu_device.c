/* The CPU device: the order of commands, reads, freed buffers, plans, faults, memory. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/cpu_kernel.h"
#include "backend/kernels.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "checked_heap.h"

#include "core/shape.h"
#include "sys/cpu_features.h"
#include "sys/thread.h"

#include <string.h>

static const wk_backend *const cpu = &wk_backend_cpu;

typedef struct fixture {
    checked_heap checked;
    wk_backend_device *dev;
} fixture;

static void open_with(fixture *f, const wick_device_desc *desc) {
    checked_heap_init(&f->checked, UINT64_MAX);
    const wk_open_desc open = {.heap = &f->checked.heap, .device = desc};
    wick_error err = {0};
    if (cpu->open_start(&open, &f->dev, &err) != WICK_OK) fail_msg("%s", err.message);
    assert_int_equal(cpu->open_poll(f->dev, &err), WICK_OK);
}

static void open_ref(fixture *f, int n_threads) {
    open_with(f, &(wick_device_desc){.isa = WICK_ISA_REF, .n_threads = n_threads});
}

static void close_clean(fixture *f) {
    cpu->close(f->dev);
    assert_true(checked_heap_is_clean(&f->checked));
}

static wk_buffer *make(fixture *f, uint64_t size) {
    wk_buffer *buf;
    assert_int_equal(cpu->alloc(f->dev, size, 0, &buf, NULL), WICK_OK);
    assert_true(size == 0 || (uintptr_t)buf->data % WK_ALIGNMENT == 0);
    return buf;
}

static wk_view view_of(wk_buffer *buf, wick_dtype dtype, wick_shape shape) {
    wk_view view = {.buf = buf, .dtype = dtype, .rank = shape.rank};
    memcpy(view.extent, shape.extent, sizeof view.extent);
    wk_shape_dense(&shape, view.stride);
    return view;
}

static void give(fixture *f, const wk_op *op) {
    const wk_kernel *kernel = cpu->find_kernel(f->dev, op);
    assert_non_null(kernel);
    assert_int_equal(cpu->encode(f->dev, kernel, op, NULL), WICK_OK);
}

/* y[0..n) += by. */
static wk_op add_op(wk_buffer *y, wk_buffer *by, int64_t n) {
    wk_op op = {.code = WK_OP_BINARY, .n_dst = 1, .n_src = 2, .p.binary = WK_BINARY_ADD};
    op.view[0] = op.view[1] = view_of(y, WICK_F32, WICK_SHAPE(n));
    op.view[2] = view_of(by, WICK_F32, WICK_SHAPE(n));
    return op;
}

static void put(fixture *f, wk_buffer *buf, const float *x, size_t n) {
    assert_int_equal(cpu->upload(f->dev, buf, 0, x, n * sizeof *x, NULL), WICK_OK);
}

static wk_ticket start_read(fixture *f, wk_buffer *buf) {
    wk_ticket ticket;
    assert_int_equal(cpu->read_start(f->dev, buf, 0, buf->size, &ticket, NULL), WICK_OK);
    return ticket;
}

static wick_status wait_for(wk_backend_device *dev, wk_ticket ticket, wick_error *err) {
    wick_status status;
    while ((status = cpu->poll(dev, ticket, err)) == WICK_PENDING) continue;
    return status;
}

static float first_of(fixture *f, wk_ticket ticket) {
    float values[4];
    assert_int_equal(wait_for(f->dev, ticket, NULL), WICK_OK);
    assert_int_equal(cpu->read_finish(f->dev, ticket, values, NULL), WICK_OK);
    return values[0];
}

static void commands_keep_their_order(void **state) {
    (void)state;
    fixture f;
    open_ref(&f, 2);
    wk_buffer *y = make(&f, 16), *by = make(&f, 16);
    put(&f, y, (float[]){1, 1, 1, 1}, 4);
    put(&f, by, (float[]){10, 10, 10, 10}, 4);
    const wk_op op = add_op(y, by, 4);
    const wk_ticket before = start_read(&f, y);
    give(&f, &op);
    const wk_ticket once = start_read(&f, y);
    put(&f, by, (float[]){100, 100, 100, 100}, 4); /* must not reach the op before it */
    give(&f, &op);
    const wk_ticket twice = start_read(&f, y);
    put(&f, y, (float[]){5, 5, 5, 5}, 4);
    const wk_ticket last = start_read(&f, y);
    assert_true(first_of(&f, last) == 5);
    assert_true(first_of(&f, once) == 11);
    assert_true(first_of(&f, twice) == 111);
    assert_true(first_of(&f, before) == 1);
    cpu->free(f.dev, y);
    cpu->free(f.dev, by);
    close_clean(&f);
}

static void large_uploads_wait_their_turn(void **state) {
    (void)state;
    enum { N = 5000 };
    static float ones[N], twos[N], values[N];
    for (int i = 0; i < N; i++) ones[i] = 1, twos[i] = 2;
    fixture f;
    open_ref(&f, 1);
    wk_buffer *y = make(&f, sizeof ones), *by = make(&f, sizeof ones);
    put(&f, y, ones, N);
    put(&f, by, ones, N);
    const wk_op op = add_op(y, by, N);
    give(&f, &op);
    put(&f, by, twos, N);
    give(&f, &op);
    const wk_ticket ticket = start_read(&f, y);
    memset(twos, 0, sizeof twos);
    assert_int_equal(wait_for(f.dev, ticket, NULL), WICK_OK);
    assert_int_equal(cpu->read_finish(f.dev, ticket, values, NULL), WICK_OK);
    for (int i = 0; i < N; i++) assert_true(values[i] == 4);
    wk_backend_stats stats;
    cpu->stats(f.dev, &stats);
    assert_true(stats.bytes_uploaded == 3 * sizeof ones && stats.bytes_read == sizeof values);
    assert_true(stats.n_ops == 2 && stats.n_reads == 1 && stats.n_ops_ref == 0);
    cpu->free(f.dev, y);
    cpu->free(f.dev, by);
    close_clean(&f);
}

static void freed_buffers_live_until_used(void **state) {
    (void)state;
    fixture f;
    open_ref(&f, 1);
    wk_buffer *y = make(&f, 16), *by = make(&f, 16);
    put(&f, y, (float[]){1, 1, 1, 1}, 4);
    put(&f, by, (float[]){2, 2, 2, 2}, 4);
    const wk_op op = add_op(y, by, 4);
    give(&f, &op);
    const wk_ticket ticket = start_read(&f, y);
    cpu->free(f.dev, by);
    cpu->free(f.dev, y);
    wk_backend_stats stats;
    cpu->stats(f.dev, &stats);
    assert_true(stats.buffer_bytes == 32);
    assert_true(first_of(&f, ticket) == 3);
    cpu->stats(f.dev, &stats);
    assert_true(stats.buffer_bytes == 0 && stats.buffer_peak_bytes == 32);
    close_clean(&f);
}

static void close_discards_what_is_pending(void **state) {
    (void)state;
    fixture f;
    open_ref(&f, 2);
    static float many[1000];
    wk_buffer *y = make(&f, sizeof many), *by = make(&f, sizeof many);
    const wk_op op = add_op(y, by, 1000);
    for (int i = 0; i < 100; i++) {
        give(&f, &op);
        put(&f, y, many, 1000);
    }
    start_read(&f, y);
    cpu->free(f.dev, y);
    cpu->free(f.dev, by);
    close_clean(&f);
}

static void reads_are_finished_in_any_way(void **state) {
    (void)state;
    fixture f;
    open_ref(&f, 1);
    wk_buffer *y = make(&f, 16), *none = make(&f, 0);
    put(&f, y, (float[]){1, 2, 3, 4}, 4);
    float values[4];
    const wk_ticket thrown = start_read(&f, y), kept = start_read(&f, y),
                    empty = start_read(&f, none);
    assert_int_equal(cpu->read_finish(f.dev, kept, values, NULL), WICK_ERR_STATE);
    assert_int_equal(cpu->read_finish(f.dev, thrown, NULL, NULL), WICK_OK);
    assert_int_equal(cpu->read_finish(f.dev, 0, values, NULL), WICK_ERR_STATE);
    assert_true(first_of(&f, kept) == 1);
    assert_int_equal(cpu->read_finish(f.dev, kept, values, NULL), WICK_ERR_STATE);
    assert_int_equal(wait_for(f.dev, empty, NULL), WICK_OK);
    assert_int_equal(cpu->read_finish(f.dev, empty, values, NULL), WICK_OK);
    const wk_ticket late = start_read(&f, y);
    assert_int_equal(wait_for(f.dev, late, NULL), WICK_OK);
    assert_int_equal(cpu->read_finish(f.dev, late, NULL, NULL), WICK_OK);
    assert_int_equal(cpu->poll(f.dev, late + 1, NULL), WICK_ERR_STATE);
    assert_int_equal(cpu->poll(f.dev, 0, NULL), WICK_OK);
    cpu->free(f.dev, y);
    cpu->free(f.dev, none);
    close_clean(&f);
}

static wk_op embedding_op(wk_buffer *y, wk_buffer *weight, wk_buffer *ids) {
    wk_op op = {.code = WK_OP_EMBEDDING, .n_dst = 1, .n_src = 2, .fault_slot = 255};
    op.view[0] = view_of(y, WICK_F32, WICK_SHAPE(4, 1));
    op.view[1] = view_of(weight, WICK_F32, WICK_SHAPE(4, 1));
    op.view[2] = view_of(ids, WICK_U32, WICK_SHAPE(4));
    return op;
}

static void bad_indices_are_reported_once(void **state) {
    (void)state;
    fixture f;
    open_ref(&f, 2);
    wk_buffer *y = make(&f, 16), *weight = make(&f, 16), *ids = make(&f, 16);
    put(&f, weight, (float[]){1, 2, 3, 4}, 4);
    const wk_op op = embedding_op(y, weight, ids);
    wk_ticket good, bad;
    memset(ids->data, 0, 16);
    give(&f, &op);
    assert_int_equal(cpu->submit(f.dev, &good, NULL), WICK_OK);
    assert_int_equal(cpu->upload(f.dev, ids, 0, (uint32_t[]){0, 4, 1, 2}, 16, NULL), WICK_OK);
    give(&f, &op);
    assert_int_equal(cpu->submit(f.dev, &bad, NULL), WICK_OK);
    uint32_t slot = 0;
    assert_int_equal(wait_for(f.dev, good, NULL), WICK_OK);
    assert_false(cpu->take_fault(f.dev, &slot));
    assert_int_equal(wait_for(f.dev, bad, NULL), WICK_OK);
    assert_true(cpu->take_fault(f.dev, &slot));
    assert_int_equal(slot, op.fault_slot);
    assert_false(cpu->take_fault(f.dev, &slot));
    cpu->free(f.dev, y);
    cpu->free(f.dev, weight);
    cpu->free(f.dev, ids);
    close_clean(&f);
}

static void a_slice_computes_at_least_one_op(void **state) {
    (void)state;
    enum { N = 20000 };
    fixture f;
    open_with(&f, &(wick_device_desc){.isa = WICK_ISA_REF, .n_threads = 1, .slice_us = 1});
    wk_buffer *y = make(&f, N * 4);
    memset(y->data, 0, N * 4);
    const wk_op op = add_op(y, y, N);
    for (int i = 0; i < 3; i++) give(&f, &op);
    wk_ticket ticket;
    cpu->submit(f.dev, &ticket, NULL);
    int n_pending = 0;
    while (cpu->poll(f.dev, ticket, NULL) == WICK_PENDING) n_pending++;
    assert_int_equal(n_pending, 2);
    cpu->free(f.dev, y);
    close_clean(&f);
}

/* The list of commands holds 64 before it grows: some of them have run when it is full, so that the
 * rest moves to its beginning, of the same list or of a larger one. */
static void commands_wait_behind_finished_ones(void **state) {
    (void)state;
    static const int n_finished[] = {0, 1, 31, 32, 33, 63, 64};
    enum { FIRST = 64, MORE = 100 };
    for (size_t i = 0; i < WK_COUNT(n_finished); i++) {
        fixture f;
        open_ref(&f, 1);
        wk_buffer *y = make(&f, 4), *by = make(&f, 4);
        memset(y->data, 0, 4);
        memcpy(by->data, &(float){1}, 4);
        const wk_op op = add_op(y, by, 1);
        wk_ticket ticket = 0;
        for (int j = 0; j < FIRST; j++) {
            give(&f, &op);
            if (j + 1 == n_finished[i]) cpu->submit(f.dev, &ticket, NULL);
        }
        while (cpu->poll(f.dev, ticket, NULL) == WICK_PENDING) continue;
        assert_true(*(const float *)y->data == (float)n_finished[i]);
        for (int j = 0; j < MORE; j++) give(&f, &op);
        assert_true(first_of(&f, start_read(&f, y)) == FIRST + MORE);
        cpu->free(f.dev, y);
        cpu->free(f.dev, by);
        close_clean(&f);
    }
}

static void plans_replay_without_allocating(void **state) {
    (void)state;
    fixture f;
    open_ref(&f, 2);
    wk_buffer *y = make(&f, 16), *by = make(&f, 16);
    put(&f, y, (float[]){0, 0, 0, 0}, 4);
    wk_op ops[3];
    const wk_kernel *kernels[3];
    for (int i = 0; i < 3; i++) {
        ops[i] = add_op(y, by, 4);
        kernels[i] = cpu->find_kernel(f.dev, &ops[i]);
    }
    void *plan;
    assert_int_equal(cpu->plan_prepare(f.dev, ops, kernels, 3, &plan, NULL), WICK_OK);
    uint64_t n_allocations = 0;
    for (int step = 0; step < 20; step++) {
        if (step == 2) n_allocations = f.checked.heap.n_allocations;
        put(&f, by, (float[]){1, 1, 1, 1}, 4);
        assert_int_equal(cpu->plan_replay(f.dev, plan, NULL), WICK_OK);
        put(&f, by, (float[]){2, 2, 2, 2}, 4);
        assert_int_equal(cpu->plan_replay(f.dev, plan, NULL), WICK_OK);
        const wk_ticket ticket = start_read(&f, y);
        assert_true(first_of(&f, ticket) == (float)(9 * (step + 1)));
    }
    assert_true(f.checked.heap.n_allocations == n_allocations);
    assert_int_equal(cpu->plan_replay(f.dev, plan, NULL), WICK_OK);
    cpu->plan_free(f.dev, plan); /* what was queued of it is dropped */
    memset(ops, 0xff, sizeof ops);
    assert_true(first_of(&f, start_read(&f, y)) == 180);
    void *empty;
    assert_int_equal(cpu->plan_prepare(f.dev, ops, kernels, 0, &empty, NULL), WICK_OK);
    assert_int_equal(cpu->plan_replay(f.dev, empty, NULL), WICK_OK);
    assert_true(first_of(&f, start_read(&f, y)) == 180);
    cpu->plan_free(f.dev, empty);
    cpu->free(f.dev, y);
    cpu->free(f.dev, by);
    close_clean(&f);
}

/* Products that need scratch of both kinds give the same bits on any number of threads. */
static void threads_share_an_op(void **state) {
    (void)state;
    enum { M = 3, N = 70, K = 50 };
    static _Alignas(8) float x[M * K];
    static float weight[N * K], first[M * N], y[M * N];
    for (int i = 0; i < M * K; i++) x[i] = (float)(i * 7 % 13) / 3;
    for (int i = 0; i < N * K; i++) weight[i] = (float)(i * 5 % 17) / 7;
    static const int counts[] = {1, 2, 5};
    for (size_t i = 0; i < WK_COUNT(counts); i++) {
        fixture f;
        open_ref(&f, counts[i]);
        wk_buffer *xs = cpu->wrap(f.dev, x, sizeof x, (wk_memory_owner){0});
        wk_buffer *ys = make(&f, sizeof y);
        wk_buffer *ws = make(&f, sizeof weight);
        wk_op op = {.code = WK_OP_LINEAR, .n_dst = 1, .n_src = 3};
        op.view[0] = view_of(ys, WICK_F32, WICK_SHAPE(M, N));
        op.view[1] = view_of(xs, WICK_F32, WICK_SHAPE(M, K));
        op.view[2] = view_of(ws, WICK_F32, WICK_SHAPE(N, K));
        assert_int_equal(cpu->prepare_weight(f.dev, WICK_F32, N, K, WK_USE_LINEAR), WK_LAYOUT_RAW);
        assert_int_equal(cpu->upload_rows(f.dev, &op.view[2], 0, 64, weight, NULL), WICK_OK);
        assert_int_equal(cpu->upload_rows(f.dev, &op.view[2], 64, N - 64, weight + 64 * K, NULL),
                         WICK_OK);
        for (int repeat = 0; repeat < 20; repeat++) give(&f, &op);
        const wk_ticket ticket = start_read(&f, ys);
        assert_int_equal(wait_for(f.dev, ticket, NULL), WICK_OK);
        cpu->read_finish(f.dev, ticket, y, NULL);
        if (i == 0) memcpy(first, y, sizeof y);
        assert_memory_equal(y, first, sizeof y);
        cpu->free(f.dev, xs);
        cpu->free(f.dev, ys);
        cpu->free(f.dev, ws);
        close_clean(&f);
    }
}

static void panels_are_laid_out_on_upload(void **state) {
    (void)state;
    enum { N = 84, K = 3 };
    static float weight[N * K];
    for (int i = 0; i < N * K; i++) weight[i] = (float)i;
    uint64_t size;
    assert_true(wk_layout_bytes(WK_LAYOUT_PANEL_F32, WICK_F32, N, K, &size));
    fixture f;
    open_ref(&f, 5);
    wk_buffer *buf = make(&f, size);
    wk_view view = view_of(buf, WICK_F32, WICK_SHAPE(N, K));
    view.layout = WK_LAYOUT_PANEL_F32;
    assert_int_equal(cpu->upload_rows(f.dev, &view, 64, N - 64, weight + 64 * K, NULL), WICK_OK);
    assert_int_equal(cpu->upload_rows(f.dev, &view, 0, 64, weight, NULL), WICK_OK);
    for (int64_t row = 0; row < N; row++) {
        float decoded[K];
        wk_layout_decode_row(WK_LAYOUT_PANEL_F32, WICK_F32, N, K, row, buf->data, decoded);
        assert_memory_equal(decoded, weight + row * K, sizeof decoded);
    }
    cpu->free(f.dev, buf);
    close_clean(&f);
}

static void says_what_it_is(void **state) {
    (void)state;
    assert_null(cpu->available); /* it always is */
    fixture f;
    open_with(&f, &(wick_device_desc){.profile = true});
    wick_device_info info;
    cpu->info(f.dev, &info);
    assert_int_equal(info.backend, WICK_BACKEND_CPU);
    assert_string_equal(info.backend_name, "cpu");
    assert_int_equal(info.n_threads, wk_cpu_count());
    assert_string_equal(info.isa, (wk_cpu_features() & WK_CPU_AVX512) != 0 ? "avx512"
                                  : (wk_cpu_features() & WK_CPU_AVX2) != 0 ? "avx2"
                                                                           : "ref");
    wk_buffer *y = make(&f, 16);
    memset(y->data, 0, 16);
    const wk_op op = add_op(y, y, 4);
    const wk_kernel *kernel = cpu->find_kernel(f.dev, &op);
    assert_int_equal(cpu->profile(f.dev, NULL, 0), 0);
    give(&f, &op);
    give(&f, &op);
    first_of(&f, start_read(&f, y));
    wick_kernel_stats line;
    assert_int_equal(cpu->profile(f.dev, &line, 1), 1);
    assert_string_equal(line.name, kernel->name);
    assert_int_equal(line.calls, 2);
    assert_true(line.seconds >= 0);
    assert_null(cpu->lost);
    cpu->free(f.dev, y);
    close_clean(&f);
}

/* An instruction set that is named and that nothing uses would be a lie. */
static void every_feature_has_kernels(void **state) {
    (void)state;
    uint32_t left = wk_cpu_features();
    for (size_t i = 0; wk_cpu_kernel_at(i) != NULL; i++) left &= ~wk_cpu_kernel_at(i)->base.needs;
    assert_int_equal(left, 0);
}

/* All kernels of the instruction set and no others; and one run alone does not touch the queue. */
static void lists_and_runs_kernels_one_by_one(void **state) {
    (void)state;
    fixture f;
    size_t n = 0;
    open_ref(&f, 1);
    for (const wk_kernel *kernel; (kernel = cpu->kernels->at(f.dev, n)) != NULL; n++)
        assert_true(kernel->is_reference && kernel->needs == 0);
    assert_true(n >= WK_OP_COUNT_);
    assert_null(cpu->kernels->at(f.dev, n + 1));
    wk_buffer *const y = make(&f, 4 * sizeof(float));
    const wk_op op = add_op(y, y, 4);
    float *const values = y->data;
    for (int i = 0; i < 4; i++) values[i] = (float)i;
    for (uint64_t seed = 0; seed < 2; seed++) {
        wk_kernel_run run = {.has_fault = true};
        assert_int_equal(cpu->kernels->run(f.dev, cpu->find_kernel(f.dev, &op), &op, seed, &run),
                         WICK_OK);
        assert_true(!run.has_fault && !run.is_out_of_scratch);
        for (int i = 0; i < 4; i++) assert_true(values[i] == (float)(i << (seed + 1)));
    }
    wk_backend_stats stats;
    cpu->stats(f.dev, &stats);
    assert_int_equal(stats.n_ops, 0);
    cpu->free(f.dev, y);
    close_clean(&f);
}

static void refuses_what_it_cannot_be(void **state) {
    (void)state;
    static const wick_device_desc descs[] = {
        {.n_threads = -1}, {.n_threads = 100000}, {.isa = (wick_isa)77}};
    checked_heap checked;
    checked_heap_init(&checked, UINT64_MAX);
    for (size_t i = 0; i < WK_COUNT(descs); i++) {
        const wk_open_desc open = {.heap = &checked.heap, .device = &descs[i]};
        wk_backend_device *dev;
        wick_error err = {0};
        assert_int_equal(cpu->open_start(&open, &dev, &err), WICK_ERR_VALUE);
        assert_null(dev);
        assert_true(err.message[0] != 0);
    }
    const wk_open_desc open = {.heap = &checked.heap,
                               .device = &(wick_device_desc){.isa = WICK_ISA_AVX512}};
    wk_backend_device *dev;
    const wick_status status = cpu->open_start(&open, &dev, NULL);
    const bool has_it = (wk_cpu_features() & WK_CPU_AVX512) != 0;
    assert_int_equal(status, has_it ? WICK_OK : WICK_ERR_UNSUPPORTED);
    cpu->close(dev);
    cpu->close(NULL);
    assert_true(checked_heap_is_clean(&checked));
}

/* The same work with one allocation less each time: every failure is a status, nothing is lost. */
static wick_status work_with(checked_heap *checked) {
    const wick_device_desc desc = {.isa = WICK_ISA_REF, .n_threads = 2, .profile = true};
    const wk_open_desc open = {.heap = &checked->heap, .device = &desc};
    wk_backend_device *dev;
    WK_TRY(cpu->open_start(&open, &dev, NULL));
    wk_buffer *x = NULL, *y = NULL;
    wk_ticket ticket = 0;
    wick_status status = cpu->alloc(dev, 8000, 0, &x, NULL);
    if (status == WICK_OK) status = cpu->alloc(dev, 8000, 0, &y, NULL);
    if (status == WICK_OK) {
        wk_op op = {.code = WK_OP_SOFTMAX, .n_dst = 1, .n_src = 1};
        op.view[0] = view_of(y, WICK_F32, WICK_SHAPE(2, 1000));
        op.view[1] = view_of(x, WICK_F32, WICK_SHAPE(2, 1000));
        memset(x->data, 0, 8000);
        status = cpu->encode(dev, cpu->find_kernel(dev, &op), &op, NULL);
    }
    static const float zeros[2000];
    if (status == WICK_OK) status = cpu->upload(dev, x, 0, zeros, sizeof zeros, NULL);
    if (status == WICK_OK) status = cpu->read_start(dev, y, 0, 8000, &ticket, NULL);
    float values[2000];
    if (status == WICK_OK) status = wait_for(dev, ticket, NULL);
    if (status == WICK_OK) status = cpu->read_finish(dev, ticket, values, NULL);
    if (status == WICK_OK) assert_true(values[1999] == 0.001f);
    cpu->free(dev, x);
    cpu->free(dev, y);
    cpu->close(dev);
    return status;
}

static void short_of_memory(void **state) {
    (void)state;
    for (uint64_t n = 0;; n++) {
        checked_heap checked;
        checked_heap_init(&checked, n);
        const wick_status status = work_with(&checked);
        assert_true(checked_heap_is_clean(&checked));
        if (status == WICK_OK) {
            assert_true(n > 10);
            return;
        }
        assert_int_equal(status, WICK_ERR_OUT_OF_MEMORY);
    }
}

static void says_how_much_memory_is_missing(void **state) {
    (void)state;
    fixture f;
    open_ref(&f, 1);
    f.checked.n_allowed = 0;
    wick_error err = {0};
    wk_buffer *buf;
    assert_int_equal(cpu->alloc(f.dev, 4096, 0, &buf, &err), WICK_ERR_OUT_OF_MEMORY);
    assert_true(err.bytes_requested == 4096);
    assert_null(buf);
    close_clean(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_keep_their_order),
        cmocka_unit_test(large_uploads_wait_their_turn),
        cmocka_unit_test(freed_buffers_live_until_used),
        cmocka_unit_test(close_discards_what_is_pending),
        cmocka_unit_test(reads_are_finished_in_any_way),
        cmocka_unit_test(bad_indices_are_reported_once),
        cmocka_unit_test(a_slice_computes_at_least_one_op),
        cmocka_unit_test(commands_wait_behind_finished_ones),
        cmocka_unit_test(plans_replay_without_allocating),
        cmocka_unit_test(threads_share_an_op),
        cmocka_unit_test(panels_are_laid_out_on_upload),
        cmocka_unit_test(says_what_it_is),
        cmocka_unit_test(every_feature_has_kernels),
        cmocka_unit_test(lists_and_runs_kernels_one_by_one),
        cmocka_unit_test(refuses_what_it_cannot_be),
        cmocka_unit_test(short_of_memory),
        cmocka_unit_test(says_how_much_memory_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
