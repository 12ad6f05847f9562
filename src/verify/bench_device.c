/* verify/bench_device.c: times the kernels of a device on the operations of a model, in each of
 * their tunings, and chooses the fastest. The contents of the memory do not matter, except for the
 * integers of a batch. */
#include "verify/case.h"

#include "core/compiler.h"
#include "core/dtype.h"
#include "tensor/device.h"

#include <wick/verify.h>

enum { FEW = 8, MAX_TUNINGS = 8, BATCHES = 3, MOST_RUNS = 64 };

static const double long_enough = 0.005, too_long = 0.1; /* seconds, of a batch of runs */
static const double least_gain = 0.03; /* of the time: less is not worth another choice */

typedef struct bench {
    wick_device *device;
    const wick_time_desc *desc;
    wk_verify_subject subject;
    wick_kernel_sizes sizes;
    bool is_stopped;
    wick_error *err;
    /* Seconds of all ops of a class, of the kernel that is timed. */
    double total[WK_ROWS_COUNT_][WK_LAYOUT_COUNT_][MAX_TUNINGS];
} bench;

/* --- Memory --- */

static wick_status place(const bench *b, wk_case *c) {
    for (int i = 0; i < c->op.n_dst + c->op.n_src; i++) {
        wk_view *const view = &c->op.view[i];
        if (!view->buf) continue;
        uint64_t begin, end;
        wk_view_range(view, &begin, &end);
        view->buf = NULL;
        WK_TRY(b->subject.backend->alloc(b->subject.device, (end + 15) / 16 * 16, 0, &view->buf,
                                         b->err));
    }
    return WICK_OK;
}

/* Operands whose memory was not taken have the case's own buffers still. */
static void displace(const bench *b, wk_case *c) {
    for (int i = 0; i < c->op.n_dst + c->op.n_src; i++)
        if (c->op.view[i].buf && c->op.view[i].buf != &c->buffer[i])
            b->subject.backend->free(b->subject.device, c->op.view[i].buf);
}

/* One sequence, whose rows are its last tokens, with its blocks in order. */
static wick_status upload_batch(const bench *b, const wk_case *c, int operand) {
    const wk_batch_layout *const l = &c->op.p.batch;
    const uint32_t n_keys = l->n_blocks * l->block_size;
    wk_heap *const heap = &b->device->heap;
    uint32_t *const words = wk_alloc_array(heap, l->n_words, sizeof *words);
    if (!words) return wk_fail_memory(b->err, l->n_words * sizeof *words, "a batch");
    for (uint32_t i = 0; i < l->n_rows; i++)
        words[l->positions + i] = words[l->slots + i] = n_keys - l->n_rows + i;
    words[l->lengths] = n_keys;
    for (uint32_t i = 0; i < l->n_blocks; i++) words[l->tables + i] = i;
    const wick_status status = b->subject.backend->upload(
        b->subject.device, c->op.view[operand].buf, 0, words, l->n_words * sizeof *words, b->err);
    wk_free(heap, words, l->n_words * sizeof *words);
    return status;
}

/* --- Time --- */

static wick_status run_batch(const bench *b, const wk_op *op, int n_runs, double *seconds) {
    const wk_verify_subject *const s = &b->subject;
    return s->backend->kernels->time(s->device, s->kernel, op, n_runs, seconds, b->err);
}

/* Of one run: the best of several batches that take long enough to be timed. */
static wick_status time_op(const bench *b, const wk_op *op, double *seconds) {
    double of_batch;
    int n_runs = 1;
    WK_TRY(run_batch(b, op, 1, &of_batch)); /* compiles, and warms up */
    WK_TRY(run_batch(b, op, 1, &of_batch));
    while (of_batch < long_enough && n_runs < MOST_RUNS) {
        n_runs *= 2;
        WK_TRY(run_batch(b, op, n_runs, &of_batch));
    }
    *seconds = of_batch / n_runs;
    for (int i = 1; i < BATCHES && of_batch < too_long; i++) {
        WK_TRY(run_batch(b, op, n_runs, &of_batch));
        if (of_batch / n_runs < *seconds) *seconds = of_batch / n_runs;
    }
    return WICK_OK;
}

static void report(bench *b, const wk_op *op, const double *seconds, uint32_t n) {
    char text[320];
    const wk_cost cost = wk_op_cost(op, NULL);
    const wk_verify_subject *const s = &b->subject;
    double best = seconds[0];
    for (uint32_t t = 1; t < n; t++)
        if (seconds[t] < best) best = seconds[t];
    (void)wk_op_text(op, text, sizeof text);
    for (uint32_t t = 0; t < n && b->desc->report && !b->is_stopped; t++) {
        const wick_kernel_time time = {.kernel = s->kernel->name,
                                       .op = text,
                                       .tuning = t,
                                       .n_tunings = n,
                                       .is_fastest = seconds[t] <= best,
                                       .is_on_gpu = s->backend->kernels->has_timestamps(s->device),
                                       .seconds = seconds[t],
                                       .bytes = cost.bytes_read + cost.bytes_written,
                                       .flops = cost.flops};
        b->is_stopped = !b->desc->report(b->desc->user, &time);
    }
}

static uint32_t n_tunings(const wk_kernel *kernel) {
    if (kernel->n_tunings == 0) return 1;
    return kernel->n_tunings < MAX_TUNINGS ? kernel->n_tunings : MAX_TUNINGS;
}

static wick_status time_tunings(bench *b, const wk_op *op) {
    double seconds[MAX_TUNINGS] = {0};
    const wk_verify_subject *const s = &b->subject;
    const uint32_t n = n_tunings(s->kernel);
    const wk_op_class c = wk_op_class_of(op);
    wick_status status = WICK_OK;
    for (uint32_t t = 0; t < n && status == WICK_OK; t++) {
        s->backend->kernels->force_tuning(s->device, &t);
        status = time_op(b, op, &seconds[t]);
        b->total[c.rows][c.layout][t] += seconds[t];
    }
    s->backend->kernels->force_tuning(s->device, NULL);
    if (status == WICK_OK) report(b, op, seconds, n);
    return status;
}

/* An op that the kernel does not take is left out. */
static wick_status time_case(bench *b, wk_opcode code, const wk_bench_sizes *sizes,
                             const wick_kernel_weight *weight) {
    wk_heap *const heap = &b->device->heap;
    const wk_verify_subject *const s = &b->subject;
    if (b->is_stopped) return WICK_OK;
    wk_case *const c = wk_alloc_zeroed(heap, sizeof *c);
    if (!c) return wk_fail_memory(b->err, sizeof *c, "an operation");
    wk_bench_describe(c, code, sizes);
    if (weight) {
        const int64_t extent[2] = {weight->n, weight->k};
        wk_view *const w = wk_case_dense(c, 2, weight->dtype, 2, extent);
        w->layout = (uint8_t)s->backend->prepare_weight(s->device, weight->dtype, weight->n,
                                                        weight->k, WK_USE_LINEAR);
        c->op.p.linear.fast = s->kernel->is_fast;
    }
    wick_status status = WICK_OK;
    if (wk_kernel_takes(s->kernel, &c->op)) {
        int batch;
        const bool has_batch = wk_op_batch(&c->op, &batch) != NULL;
        status = place(b, c);
        if (status == WICK_OK && has_batch) status = upload_batch(b, c, batch);
        if (status == WICK_OK) status = time_tunings(b, &c->op);
        displace(b, c);
    }
    wk_free(heap, c, sizeof *c);
    return status;
}

/* --- Operations of a model --- */

static wick_status time_linear(bench *b) {
    const wick_kernel_sizes *const of = &b->sizes;
    for (size_t i = 0; i < of->n_weights; i++) {
        const wick_kernel_weight *const w = &of->weights[i];
        const int64_t rows[] = {1, FEW, of->n_prompt};
        /* Of a prompt only the last token's logits are wanted. */
        const size_t n = w->n == of->n_vocab ? 2 : WK_COUNT(rows);
        for (size_t r = 0; r < n; r++) {
            const wk_bench_sizes sizes = {.m = rows[r], .n = w->n, .k = w->k};
            WK_TRY(time_case(b, WK_OP_LINEAR, &sizes, w));
        }
    }
    return WICK_OK;
}

static wick_status time_others(bench *b, wk_opcode code) {
    const int64_t rows[] = {1, FEW, b->sizes.n_prompt};
    for (size_t r = 0; r < WK_COUNT(rows); r++) {
        const wk_bench_sizes sizes = wk_bench_of_model(code, &b->sizes, rows[r]);
        WK_TRY(time_case(b, code, &sizes, NULL));
    }
    return WICK_OK;
}

static void choose(const bench *b) {
    const wk_verify_subject *const s = &b->subject;
    for (int rows = 0; rows < WK_ROWS_COUNT_; rows++) {
        for (int layout = 0; layout < WK_LAYOUT_COUNT_; layout++) {
            const double *const total = b->total[rows][layout];
            uint32_t best = 0;
            for (uint32_t t = 1; t < n_tunings(s->kernel); t++)
                if (total[t] < total[best] && total[t] < (1 - least_gain) * total[0]) best = t;
            const wk_op_class c = {(wk_rows_class)rows, (uint8_t)layout};
            if (total[0] > 0) s->backend->kernels->keep_tuning(s->device, s->kernel, c, best);
        }
    }
}

static wick_status time_kernel(bench *b) {
    for (int rows = 0; rows < WK_ROWS_COUNT_; rows++)
        for (int layout = 0; layout < WK_LAYOUT_COUNT_; layout++)
            for (int t = 0; t < MAX_TUNINGS; t++) b->total[rows][layout][t] = 0;
    switch (wk_bench_kind_of(b->subject.kernel->code)->width) {
    case WK_WIDTH_NONE: break;
    case WK_WIDTH_WEIGHT: WK_TRY(time_linear(b)); break;
    default: WK_TRY(time_others(b, b->subject.kernel->code)); break;
    }
    if (b->desc->choose && !b->is_stopped) choose(b);
    return WICK_OK;
}

static wick_kernel_sizes with_defaults(const wick_kernel_sizes *given) {
    static const wick_kernel_weight weights[] = {{576, 576, WICK_Q4_0},   {1536, 576, WICK_Q4_0},
                                                 {576, 1536, WICK_Q4_0},  {576, 576, WICK_Q8_0},
                                                 {1536, 576, WICK_Q8_0},  {576, 1536, WICK_Q8_0},
                                                 {49152, 576, WICK_Q8_0}, {1536, 576, WICK_F16}};
    wick_kernel_sizes s = *given;
    if (s.n_weights == 0) {
        s.weights = weights;
        s.n_weights = WK_COUNT(weights);
    }
    int64_t *const fields[] = {&s.n_embd,     &s.n_ff,     &s.n_vocab,  &s.n_heads,
                               &s.n_heads_kv, &s.head_dim, &s.n_prompt, &s.n_keys};
    static const int64_t defaults[] = {576, 1536, 49152, 9, 3, 64, 256, 1024};
    for (size_t i = 0; i < WK_COUNT(fields); i++)
        if (*fields[i] <= 0) *fields[i] = defaults[i];
    return s;
}

wick_status wick_time_kernels(wick_device *device, const wick_time_desc *desc, wick_error *error) {
    static const wick_time_desc all;
    if (!device) return wk_fail(error, WICK_ERR_ARGUMENT, "wick_time_kernels: device is NULL");
    if (!desc) desc = &all;
    const wk_backend_kernels *const kernels = device->backend->kernels;
    if (!kernels || !kernels->time)
        return wk_fail(error, WICK_ERR_UNSUPPORTED,
                       "the kernels of backend %s cannot be timed one by one",
                       device->backend->name);
    wick_error failure = {.status = WICK_OK};
    wick_error *const before = wk_device_borrow(device, &failure);
    const wick_status idle = wick_synchronize(device);
    wk_device_give_back(device, before);
    if (idle != WICK_OK) return wk_pass_on(error, idle, &failure);
    const wk_str glob = wk_str_of(desc->kernels ? desc->kernels : "*");
    bench *const b = wk_alloc_zeroed(&device->heap, sizeof *b);
    if (!b) return wk_fail_memory(error, sizeof *b, "the times of kernels");
    *b =
        (bench){.device = device, .desc = desc, .sizes = with_defaults(&desc->sizes), .err = error};
    int n_timed = 0;
    wick_status status = WICK_OK;
    const wk_kernel *kernel;
    for (size_t i = 0;
         status == WICK_OK && !b->is_stopped && (kernel = kernels->at(device->handle, i)) != NULL;
         i++) {
        if (!wk_str_matches(glob, wk_str_of(kernel->name))) continue;
        if (kernels->is_disabled(device->handle, kernel)) continue;
        b->subject = (wk_verify_subject){kernel, device->backend, device->handle};
        status = time_kernel(b);
        n_timed++;
    }
    wk_free(&device->heap, b, sizeof *b);
    if (status != WICK_OK || n_timed > 0) return status;
    return wk_fail(error, WICK_ERR_NOT_FOUND, "no kernel that can be run here is called %s",
                   glob.text);
}
