/* tests/unit/test_verify.c: the kernel harness finds what is wrong with kernels that are wrong on
 * purpose, each in its own way, and nothing wrong with a right one. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "amount.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/cpu_kernel.h"
#include "checked_heap.h"
#include "op_functions.h"
#include "verify/case.h"
#include "verify/verify.h"

#include <wick/verify.h>

#include <stdlib.h>
#include <string.h>

/* Of each kernel: enough to find every mistake below. */
static uint32_t n_cases(void) { return tests_all() ? 200 : 80; }

/* --- y = a + b on float rows whose last dimension is dense, and ways to get it wrong --- */

typedef enum mistake {
    NONE,
    LAST_COLUMN,   /* not computed */
    ONE_TOO_FAR,   /* written past the row's end */
    READS_PADDING, /* of a, past the row */
    READS_SCRATCH, /* that was never written */
    SOURCE,        /* written to */
    SOURCE_LATER,  /* the same in a second run, which has all rows in one range */
    RANGE,         /* depends on where the range begins */
    IN_PLACE,      /* wrong where y is b */
    STRIDE,        /* rows taken as dense */
    INACCURATE,    /* by 1e-5 of it */
    NAN_LOST,      /* NaN becomes 0 */
} mistake;

static int64_t length(const wk_view *view) { return view->extent[view->rank - 1]; }

static float *row_at(const wk_view *view, int64_t index, bool is_dense) {
    int64_t offset = 0;
    if (is_dense) return (float *)wk_view_data(view) + index * length(view);
    for (int d = view->rank - 2; d >= 0; d--) {
        offset += index % view->extent[d] * view->stride[d];
        index /= view->extent[d];
    }
    return (float *)wk_view_data(view) + offset;
}

/* The mistakes stay in the operand's buffer, where the harness has its guards in most cases, so
 * that they can be made under the address sanitizer. */
static bool is_in_buffer(const wk_view *view, const float *at) {
    const unsigned char *const end = (const unsigned char *)view->buf->data + view->buf->size;
    return (const unsigned char *)(at + 1) <= end;
}

static float result(mistake m, float sum) {
    if (m == INACCURATE) return sum * 1.00001F;
    return m == NAN_LOST && sum != sum ? 0 : sum;
}

static int64_t items(const wk_op *op, int phase) {
    (void)phase;
    int64_t n = length(&op->view[0]) > 0;
    for (int d = 0; d < op->view[0].rank - 1; d++) n *= op->view[0].extent[d];
    return n;
}

static void add_rows(const wk_cpu_run *run, mistake m, int64_t begin, int64_t end) {
    const wk_view *const view = run->op->view;
    const int64_t n = length(&view[0]);
    static bool was_part;
    const bool is_part = end - begin < items(run->op, 0);
    const bool is_second = was_part && !is_part;
    was_part = is_part;
    for (int64_t r = begin; r < end; r++) {
        float *const y = row_at(&view[0], r, false);
        float *const b = row_at(&view[2], r, false);
        float *a = row_at(&view[1], r, m == STRIDE);
        if (!is_in_buffer(&view[1], a + n - 1)) a = row_at(&view[1], r, false);
        for (int64_t i = 0; i < n - (m == LAST_COLUMN); i++) {
            if (m == IN_PLACE && i > 0) y[i - 1] = result(m, a[i - 1] + b[i - 1]);
            if (m != IN_PLACE || i == n - 1) y[i] = result(m, a[i] + b[i]);
        }
        if (m == IN_PLACE && y == b) y[0] += 1;
        if (m == ONE_TOO_FAR && is_in_buffer(&view[0], y + n)) y[n] = 0;
        if (m == READS_PADDING && is_in_buffer(&view[1], a + n)) y[0] += 0 * a[n];
        if (m == READS_SCRATCH) y[0] += 0 * *(const float *)run->worker_scratch;
        if (m == SOURCE || (m == SOURCE_LATER && is_second && r == end - 1)) b[0] += 1;
        if (m == RANGE && r == begin) y[0] += 1e-7F * y[0];
    }
}

static bool accepts(const wk_op *op) {
    if (op->p.binary != WK_BINARY_ADD || op->view[0].rank < 1) return false;
    for (int i = 0; i < 3; i++)
        if (op->view[i].dtype != WICK_F32 || op->view[i].stride[op->view[i].rank - 1] != 1)
            return false;
    return true;
}

/* Not in place: what lies past a row of a source is then memory that no one may look at. */
static bool accepts_alone(const wk_op *op) {
    return accepts(op) && op->view[1].buf != op->view[0].buf && op->view[2].buf != op->view[0].buf;
}

static size_t worker_bytes(const wk_op *op) {
    (void)op;
    return sizeof(float);
}

#define RUN(name, mistake)                                                                         \
    static void run_##name(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {         \
        (void)phase;                                                                               \
        add_rows(run, mistake, begin, end);                                                        \
    }
RUN(right, NONE)
RUN(last_column, LAST_COLUMN)
RUN(one_too_far, ONE_TOO_FAR)
RUN(reads_padding, READS_PADDING)
RUN(reads_scratch, READS_SCRATCH)
RUN(source, SOURCE)
RUN(source_later, SOURCE_LATER)
RUN(range, RANGE)
RUN(in_place, IN_PLACE)
RUN(stride, STRIDE)
RUN(inaccurate, INACCURATE)
RUN(nan_lost, NAN_LOST)
#undef RUN

typedef void run_fn(const wk_cpu_run *run, int phase, int64_t begin, int64_t end);

/* By a CPU device that is opened for it. */
static wick_status verify_on(const wk_backend *backend, const wk_cpu_kernel *kernel, uint64_t seed,
                             int64_t n_cases, wk_heap *heap, wk_verify_report *report) {
    const wick_device_desc desc = {.n_threads = 1};
    const wk_open_desc open = {.heap = heap, .device = &desc};
    wk_verify_subject subject = {.kernel = &kernel->base, .backend = backend};
    const wick_status opened = backend->open_start(&open, &subject.device, NULL);
    if (opened != WICK_OK) return opened;
    assert_int_equal(backend->open_poll(subject.device, NULL), WICK_OK);
    const wick_status status = wk_verify_kernel(&subject, seed, n_cases, heap, report);
    backend->close(subject.device);
    return status;
}

static wick_status verify(run_fn *run, bool is_alone, uint64_t seed, wk_verify_report *report) {
    const wk_cpu_kernel kernel = {
        .base.name = "add_of_test",
        .base.code = WK_OP_BINARY,
        .base.accepts = is_alone ? accepts_alone : accepts,
        .n_phases = 1,
        .items = items,
        .worker_bytes = worker_bytes,
        .run = run,
    };
    checked_heap heap;
    checked_heap_init(&heap, UINT64_MAX);
    const wick_status status =
        verify_on(&wk_backend_cpu, &kernel, seed, n_cases(), &heap.heap, report);
    assert_true(checked_heap_is_clean(&heap));
    return status;
}

/* Fails, says why with these words, and fails again from its seed alone. */
static void expect(run_fn *run, const char *words) {
    wk_verify_report report, again;
    assert_int_equal(verify(run, true, 1, &report), WICK_ERR_MISMATCH);
    if (!strstr(report.failure, words)) print_message("%s\n", report.failure);
    assert_non_null(strstr(report.failure, words));
    assert_int_equal(verify(run, true, report.seed, &again), WICK_ERR_MISMATCH);
    assert_int_equal(again.n_cases, 1);
    assert_int_equal(again.seed, report.seed);
    assert_string_equal(again.failure, report.failure);
}

static void test_right_kernel(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed < 4; seed++) {
        wk_verify_report report;
        assert_int_equal(verify(run_right, false, seed, &report), WICK_OK);
        assert_int_equal(report.n_cases, n_cases());
        assert_true(report.n_elements > 500 * (int64_t)n_cases());
        assert_string_equal(report.failure, "");
        assert_true(report.max_error == 0); /* one rounding, as the reference */
    }
}

static void test_wrong_memory(void **state) {
    (void)state;
    expect(run_one_too_far, "memory of y outside the result was written");
    expect(run_source, "memory of b outside the result was written");
    expect(run_source_later, "memory of b outside the result was written");
    expect(run_reads_padding, "nan instead of");
    expect(run_reads_scratch, "nan instead of");
}

static void test_wrong_results(void **state) {
    (void)state;
    expect(run_last_column, "instead of");
    expect(run_stride, "instead of");
    expect(run_inaccurate, "instead of");
    expect(run_nan_lost, "is 0 instead of");
    expect(run_range, "other ranges gave other bits");
}

static void test_wrong_in_place(void **state) {
    (void)state;
    wk_verify_report report;
    assert_int_equal(verify(run_in_place, false, 1, &report), WICK_ERR_MISMATCH);
    assert_non_null(strstr(report.failure, "b strides"));
    assert_non_null(strstr(report.failure, "in place"));
}

/* --- Scratch, indices, products --- */

static void run_past_scratch(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    run_right(run, phase, begin, end);
    ((float *)run->worker_scratch)[1] = 0;
}

static void run_nothing(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)run, (void)phase, (void)begin, (void)end;
}

static const wk_cpu_kernel *reference_of(wk_opcode code) {
    for (size_t i = 0; wk_cpu_kernel_at(i); i++) {
        const wk_cpu_kernel *const kernel = wk_cpu_kernel_at(i);
        if (kernel->base.is_reference && kernel->base.code == code) return kernel;
    }
    return NULL;
}

/* The reference, run through a table of our own, with another function for its work. */
static wick_status verify_as(wk_opcode code, run_fn *run, bool is_fast, wk_verify_report *report) {
    wk_cpu_kernel kernel = *reference_of(code);
    kernel.base.is_reference = false;
    kernel.base.is_fast = is_fast;
    kernel.run = run;
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    return verify_on(&wk_backend_cpu, &kernel, 3, n_cases(), &heap, report);
}

/* Faults are the reference's, but the operand that says so is not looked at. */
static void run_without_faults(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    atomic_bool ignored = false;
    wk_cpu_run quiet = *run;
    quiet.fault = &ignored;
    reference_of(run->op->code)->run(&quiet, phase, begin, end);
}

/* Every result of a product is off by a part of 2 %. */
static void run_off(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    reference_of(run->op->code)->run(run, phase, begin, end);
    const wk_view *const y = wk_dst(run->op, 0);
    if (phase == 0 || y->dtype != WICK_F32) return;
    for (int64_t r = 0; r < y->extent[0]; r++) {
        for (int64_t i = begin; i < end; i++)
            ((float *)wk_view_data(y))[r * y->stride[0] + i * y->stride[1]] *= 1.02F;
    }
}

/* By a part of 2,000,000, which is a few roundings. */
static void run_slightly_off(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    reference_of(run->op->code)->run(run, phase, begin, end);
    const wk_view *const y = wk_dst(run->op, 0);
    for (int64_t r = 0; phase > 0 && y->dtype == WICK_F32 && r < y->extent[0]; r++)
        for (int64_t i = begin; i < end; i++)
            ((float *)wk_view_data(y))[r * y->stride[0] + i * y->stride[1]] *= 1.0000005F;
}

static void test_scratch_and_indices(void **state) {
    (void)state;
    wk_verify_report report;
    assert_int_equal(verify(run_past_scratch, true, 1, &report), WICK_ERR_MISMATCH);
    assert_non_null(strstr(report.failure, "scratch memory"));
    static const wk_opcode codes[] = {WK_OP_EMBEDDING, WK_OP_ATTENTION_CACHED, WK_OP_KV_APPEND};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        assert_int_equal(verify_as(codes[i], run_without_faults, false, &report),
                         WICK_ERR_MISMATCH);
        assert_non_null(strstr(report.failure, "an index out of range was not noticed"));
    }
}

static void test_products(void **state) {
    (void)state;
    wk_verify_report report;
    for (int is_fast = 0; is_fast < 2; is_fast++) {
        assert_int_equal(verify_as(WK_OP_LINEAR, run_off, is_fast, &report), WICK_ERR_MISMATCH);
        assert_true(is_fast ? report.worst > 0 : report.worst < 1);
    }
    /* Errors are reported in parts of the results' root mean square. */
    if (verify_as(WK_OP_LINEAR, run_slightly_off, true, &report) != WICK_OK)
        fail_msg("%s", report.failure);
    assert_true(report.rms_error > 3e-7 && report.rms_error < 8e-7);
    assert_true(report.max_error > 5e-7 && report.max_error < 1e-5);
}

/* All that an op may compute comes up, and nothing that its rule refuses. */
static void test_case_functions(void **state) {
    (void)state;
    for (size_t i = 0; i < WK_COUNT(op_functions); i++) {
        uint64_t seen = 0, seed = 1;
        for (int n = 0; n < 500; n++, seed = wk_case_next_seed(seed)) {
            static wk_case c;
            unsigned fn;
            wick_error error = {.status = WICK_OK};
            wk_case_describe(&c, seed, op_functions[i].code, false);
            if (wk_op_check_rule(&c.op, &error) != WICK_OK) fail_msg("%s", error.message);
            memcpy(&fn, (const char *)&c.op.p + op_functions[i].at, sizeof fn);
            seen |= (uint64_t)1 << fn;
        }
        assert_int_equal(seen, ((uint64_t)1 << op_functions[i].count) - 1);
    }
}

/* A kernel that does nothing is found out for every op. */
static void test_every_op(void **state) {
    (void)state;
    for (int code = 0; code < WK_OP_COUNT_; code++) {
        wk_verify_report report;
        assert_int_equal(verify_as((wk_opcode)code, run_nothing, false, &report),
                         WICK_ERR_MISMATCH);
        assert_non_null(strstr(report.failure, wk_op_get_info((wk_opcode)code)->name));
    }
}

static bool accepts_none(const wk_op *op) {
    (void)op;
    return false;
}

static void test_nothing_accepted(void **state) {
    (void)state;
    wk_cpu_kernel kernel = *reference_of(WK_OP_UNARY);
    kernel.base.accepts = accepts_none;
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wk_verify_report report;
    assert_int_equal(verify_on(&wk_backend_cpu, &kernel, 1, 1, &heap, &report), WICK_ERR_NOT_FOUND);
    assert_non_null(strstr(report.failure, "accepted"));
}

/* --- By a device with memory of its own, as which the CPU's stands here --- */

static wick_status verify_by_device(run_fn *run, wk_verify_report *report) {
    const wk_cpu_kernel kernel = {
        .base.name = "add_of_test",
        .base.code = WK_OP_BINARY,
        .base.accepts = accepts_alone,
        .n_phases = 1,
        .items = items,
        .worker_bytes = worker_bytes,
        .run = run,
    };
    checked_heap heap;
    checked_heap_init(&heap, UINT64_MAX);
    static const wk_backend_kernels no_run;
    wk_backend backend = wk_backend_cpu;
    backend.kernels = &no_run;
    const wick_status status = verify_on(&backend, &kernel, 1, n_cases(), &heap.heap, report);
    assert_true(checked_heap_is_clean(&heap));
    return status;
}

static void expect_by_device(run_fn *run, const char *words) {
    wk_verify_report report;
    assert_int_equal(verify_by_device(run, &report), WICK_ERR_MISMATCH);
    if (!strstr(report.failure, words)) print_message("%s\n", report.failure);
    assert_non_null(strstr(report.failure, words));
}

static void test_device(void **state) {
    (void)state;
    wk_verify_report report;
    assert_int_equal(verify_by_device(run_right, &report), WICK_OK);
    assert_int_equal(report.n_cases, n_cases());
    assert_true(report.n_elements > 500 * (int64_t)n_cases() && report.max_error == 0);
    expect_by_device(run_last_column, "instead of");
    expect_by_device(run_source, "memory of b outside the result was written");
    expect_by_device(run_one_too_far, "memory of y outside the result was written");
    expect_by_device(run_reads_padding, "nan instead of");
    expect_by_device(run_inaccurate, "instead of");
}

/* --- The public function --- */

static bool count_kernel(void *user, const wick_kernel_check *check) {
    assert_int_equal(check->status, WICK_OK);
    assert_int_equal(check->n_cases, 3);
    assert_string_equal(check->failure, "");
    return ++*(int *)user < 2;
}

static void test_public(void **state) {
    (void)state;
    int n = 0;
    wick_device *device;
    wick_error error = {.status = WICK_OK};
    const wick_device_desc cpu = {.backend = WICK_BACKEND_CPU, .isa = WICK_ISA_REF};
    wick_verify_desc desc = {.kernels = "r*_ref", .n_cases = 3, .report = count_kernel, .user = &n};
    assert_int_equal(wick_device_open(&cpu, &device, NULL), WICK_OK);
    assert_int_equal(wick_verify(device, &desc, &error), WICK_OK);
    assert_int_equal(n, 2); /* it stops where it was asked to */
    desc.kernels = "nothing";
    assert_int_equal(wick_verify(device, &desc, &error), WICK_ERR_NOT_FOUND);
    assert_non_null(strstr(error.message, "nothing"));
    wick_device_close(device);
    const wick_device_desc null = {.backend = WICK_BACKEND_NULL};
    assert_int_equal(wick_device_open(&null, &device, NULL), WICK_OK);
    assert_int_equal(wick_verify(device, NULL, &error), WICK_ERR_UNSUPPORTED);
    wick_device_close(device);
}

/* In steps, also given up on the way; nothing is left on the device's heap. */
static void test_steps(void **state) {
    (void)state;
    int n = 0;
    uint64_t n_pending = 0;
    checked_heap heap;
    checked_heap_init(&heap, UINT64_MAX);
    wick_device *device;
    wick_verifying *verifying;
    wick_error error = {.status = WICK_OK};
    const wick_device_desc cpu = {
        .backend = WICK_BACKEND_CPU, .isa = WICK_ISA_REF, .allocator = heap.heap.hook};
    const wick_verify_desc desc = {
        .kernels = "r*_ref", .n_cases = 3, .report = count_kernel, .user = &n};
    assert_int_equal(wick_device_open(&cpu, &device, NULL), WICK_OK);
    assert_int_equal(wick_verify_start(device, &desc, &verifying, &error), WICK_OK);
    while (wick_verify_poll(verifying) == WICK_PENDING) n_pending++;
    assert_true(n_pending > 6 && n == 2);
    assert_int_equal(wick_verify_poll(verifying), WICK_OK);
    assert_int_equal(wick_verify_finish(verifying, &error), WICK_OK);
    for (int n_polls = 0; n_polls < 6; n_polls++) {
        error = (wick_error){.status = WICK_OK};
        n = 0;
        assert_int_equal(wick_verify_start(device, &desc, &verifying, &error), WICK_OK);
        for (int i = 0; i < n_polls; i++)
            assert_int_equal(wick_verify_poll(verifying), WICK_PENDING);
        assert_int_equal(wick_verify_finish(verifying, &error), WICK_ERR_CANCELLED);
        assert_int_equal(error.status, WICK_ERR_CANCELLED);
    }
    assert_int_equal(wick_verify_start(NULL, NULL, &verifying, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_verify_start(device, NULL, NULL, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_verify_poll(NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_verify_finish(NULL, NULL), WICK_ERR_ARGUMENT);
    wick_device_close(device);
    assert_true(checked_heap_is_clean(&heap));
}

/* Memory runs out at every allocation in turn. */
static void test_out_of_memory(void **state) {
    (void)state;
    for (uint64_t n = 0;; n++) {
        checked_heap heap;
        checked_heap_init(&heap, n);
        wk_verify_report report;
        const wick_status status =
            verify_on(&wk_backend_cpu, reference_of(WK_OP_LINEAR), 1, 2, &heap.heap, &report);
        assert_true(checked_heap_is_clean(&heap));
        if (status == WICK_OK) break;
        assert_int_equal(status, WICK_ERR_OUT_OF_MEMORY);
    }
}

static void test_bench(void **state) {
    (void)state;
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    const wick_device_desc desc = {.n_threads = 1};
    const wk_open_desc open = {.heap = &heap, .device = &desc};
    wk_verify_subject subject = {&reference_of(WK_OP_RMS_NORM)->base, &wk_backend_cpu, NULL};
    assert_int_equal(wk_backend_cpu.open_start(&open, &subject.device, NULL), WICK_OK);
    wk_verify_bench bench;
    assert_int_equal(wk_verify_time(&subject, 0, &heap, &bench), WICK_OK);
    assert_true(bench.seconds > 0 && bench.reference_seconds > 0);
    assert_true(bench.bytes == 3 * 576 * 4);
    assert_int_equal(wk_verify_time(&subject, 99, &heap, &bench), WICK_ERR_NOT_FOUND);
    assert_int_equal(wk_verify_time(&subject, -1, &heap, &bench), WICK_ERR_NOT_FOUND);
    wk_backend_cpu.close(subject.device);
}

/* Every block that a sequence's tokens take has a place of its own, and no row is anywhere else. */
static void test_batches(void **state) {
    (void)state;
    enum { N_ROWS = 20, MAX_WORDS = 8192 };
    static uint32_t words[MAX_WORDS];
    for (uint64_t seed = 1; seed <= 200; seed++) {
        wk_case c = {.rng = {.seed = seed}};
        wk_batch_layout l;
        wk_case_plan_batch(&c, &l, N_ROWS);
        assert_true(l.n_words <= MAX_WORDS);
        const uint32_t n_places = l.n_sequences * l.n_blocks;
        c.op.view[0].extent[0] = n_places;
        wk_case_fill_batch(&c, &l, words);
        for (uint32_t i = 0; i < n_places; i++) {
            const uint32_t length = words[l.lengths + i / l.n_blocks];
            assert_in_range(length, 1, (uint64_t)l.n_blocks * l.block_size);
            const bool is_used = i % l.n_blocks * l.block_size < length;
            assert_true(is_used ? words[l.tables + i] < n_places
                                : words[l.tables + i] == WK_NO_ROW);
            for (uint32_t j = 0; is_used && j < i; j++)
                assert_int_not_equal(words[l.tables + i], words[l.tables + j]);
        }
        for (uint32_t i = 0; i < l.n_rows; i++) {
            if (words[l.sequences + i] == WK_NO_ROW) continue;
            assert_true(words[l.slots + i] < n_places * l.block_size);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches),        cmocka_unit_test(test_right_kernel),
        cmocka_unit_test(test_wrong_memory),   cmocka_unit_test(test_wrong_results),
        cmocka_unit_test(test_wrong_in_place), cmocka_unit_test(test_scratch_and_indices),
        cmocka_unit_test(test_products),       cmocka_unit_test(test_case_functions),
        cmocka_unit_test(test_every_op),       cmocka_unit_test(test_nothing_accepted),
        cmocka_unit_test(test_device),         cmocka_unit_test(test_public),
        cmocka_unit_test(test_steps),          cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_bench),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
