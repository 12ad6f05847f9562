/* verify/report.c: runs cases and says what came out. */
#include "verify/verify.h"

#include "backend/row.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "verify/case.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_TRIES = 20000 };

/* Sums over all elements that were compared, of all cases. */
typedef struct errors {
    double sum, square;
    int64_t count;
} errors;

typedef enum stage {
    NEXT_CASE,
    FIRST_RUN, /* of the kernel */
    SECOND_RUN,
} stage;

/* One kernel's verification. */
struct wk_verification {
    const wk_verify_subject *subject;
    int64_t n_cases; /* wanted */
    uint64_t seed;   /* of the next case */
    stage stage;
    wk_case_job *job;   /* the run on a device; NULL: none, or not begun */
    wick_error failure; /* of that run */
    wk_kernel_run wanted, first;
    wk_oracle oracle;
    wk_heap *heap;
    wk_verify_report *report;
    wk_case c;
    bool is_flushed; /* subnormal numbers may count as zeros, and what comes of that is known */
    errors errors;
};
typedef struct wk_verification verification;

/* --- What was wrong --- */

/* Op, strides and offsets, then the sentence. */
static wick_status mismatch(verification *v, const char *sentence) {
    wk_verify_report *const report = v->report;
    char text[320], values[96];
    const wk_op *const op = &v->c.op;
    const size_t size = sizeof report->failure;
    size_t used = (size_t)snprintf(report->failure, size, "%s: %s;", sentence,
                                   wk_op_text(op, text, sizeof text));
    for (int i = 0; i < op->n_dst + op->n_src; i++) {
        const wk_view *const view = &op->view[i];
        if (!view->buf || used >= size) continue;
        const wick_shape strides = wick_shape_of(view->rank, view->stride);
        const bool is_in_place = i > 0 && view->buf == op->view[0].buf;
        used += (size_t)snprintf(report->failure + used, size - used, " %s strides %s layout %d%s",
                                 wk_op_operand(op, i)->name,
                                 wk_shape_text(&strides, values, sizeof values), view->layout,
                                 is_in_place ? " in place" : "");
    }
    return WICK_ERR_MISMATCH;
}

static wick_status wrong_element(verification *v, int64_t element, const double pair[2],
                                 double bound) {
    const wk_view *const y = &v->c.op.view[0];
    wick_shape at = {.rank = y->rank};
    for (int d = y->rank - 1; d >= 0; d--) {
        at.extent[d] = element % y->extent[d];
        element /= y->extent[d];
    }
    char index[96], sentence[256];
    snprintf(sentence, sizeof sentence, "element %s is %.9g instead of %.9g, off by %.3g of %.3g",
             wk_shape_text(&at, index, sizeof index), pair[1], pair[0], fabs(pair[1] - pair[0]),
             bound);
    return mismatch(v, sentence);
}

/* --- Comparing --- */

/* An infinity in quantized activations may end as NaN. */
static bool agrees(const verification *v, double want, double got, double bound) {
    if (want == got || (isnan(want) && isnan(got))) return true;
    if (v->subject->kernel->is_fast && !isfinite(want)) return !isfinite(got);
    return isfinite(want) && fabs(want - got) <= bound;
}

/* Adds the errors of one result to the figures; rms: of the expected values, not 0. */
static void count_errors(verification *v, const errors *own, double largest, double rms) {
    wk_verify_report *const report = v->report;
    v->errors.sum += own->sum / rms;
    v->errors.square += own->square / (rms * rms);
    v->errors.count += own->count;
    report->max_error = fmax(report->max_error, largest / rms);
}

/* FNV-1a over 64 bits at a time. */
static void add_to_digest(wk_verify_report *report, double value) {
    uint64_t bits = UINT64_MAX; /* a NaN */
    if (!isnan(value)) memcpy(&bits, &value, sizeof bits);
    report->digest = (report->digest ^ bits) * 0x100000001B3;
    report->digest ^= report->digest >> 32; /* products carry upwards only */
}

/* Destination i in three states of its memory. */
typedef struct results {
    wk_view want, flushed, got;
    wk_buffer buffers[3];
} results;

static void see(const wk_case *c, int i, results *r) {
    const wk_case_memory *const m = &c->memory[i];
    unsigned char *const data[3] = {m->expected, m->flushed, m->first};
    wk_view *const views[3] = {&r->want, &r->flushed, &r->got};
    for (int j = 0; j < 3; j++) {
        r->buffers[j] = (wk_buffer){.size = m->size, .data = data[j]};
        *views[j] = c->op.view[i];
        views[j]->buf = &r->buffers[j];
    }
}

/* Takes what the reference gives of zeros instead of subnormal numbers, where only that agrees. */
static bool agrees_flushed(const verification *v, const wk_row *flushed, int64_t i, double pair[2],
                           const wk_bounds *bounds, int64_t element) {
    double want;
    if (!v->is_flushed) return false;
    wk_row_load(flushed, i, 1, &want);
    if (!agrees(v, want, pair[1], wk_bounds_at(bounds, element, want))) return false;
    pair[0] = want;
    return true;
}

static wick_status compare_elements(verification *v, const results *all, const wk_bounds *bounds) {
    errors own = {0};
    double largest = 0, want_square = 0;
    const int64_t n_rows = bounds->count > 0 ? wk_row_count(&all->want) : 0;
    for (int64_t r = 0; r < n_rows; r++) {
        const wk_row want = wk_row_at(&all->want, r), got = wk_row_at(&all->got, r);
        const wk_row flushed = wk_row_at(&all->flushed, r);
        for (int64_t i = 0; i < want.n; i++) {
            double pair[2];
            wk_row_load(&want, i, 1, &pair[0]);
            wk_row_load(&got, i, 1, &pair[1]);
            add_to_digest(v->report, pair[1]);
            const int64_t element = r * want.n + i;
            const double bound = wk_bounds_at(bounds, element, pair[0]);
            if (!agrees(v, pair[0], pair[1], bound) &&
                !agrees_flushed(v, &flushed, i, pair, bounds, element))
                return wrong_element(v, element, pair, bound);
            if (!isfinite(pair[0])) continue;
            const double error = fabs(pair[0] - pair[1]);
            if (error > 0) v->report->worst = fmax(v->report->worst, error / bound);
            own.sum += error;
            own.square += error * error;
            own.count++;
            largest = fmax(largest, error);
            want_square += pair[0] * pair[0];
        }
    }
    v->report->n_elements += bounds->count;
    if (!(want_square > 0) || !isfinite(want_square)) return WICK_OK;
    count_errors(v, &own, largest, sqrt(want_square / (double)own.count));
    return WICK_OK;
}

/* The kernel's results are in the first copies. */
static wick_status compare(verification *v) {
    wk_case_reset(&v->c); /* bounds come from the operands as they were before the kernel */
    for (int i = 0; i < v->c.op.n_dst; i++) {
        results r;
        wk_bounds bounds;
        see(&v->c, i, &r);
        wick_status status = wk_bounds_make(&v->c, v->subject->kernel, &r.want, v->heap, &bounds);
        if (status == WICK_OK) status = compare_elements(v, &r, &bounds);
        wk_bounds_release(&bounds, v->heap);
        if (status != WICK_OK) return status;
    }
    return WICK_OK;
}

/* --- One case --- */

/* Nothing outside the destinations' elements may have changed. Ends their contents. */
static wick_status check_damage(verification *v, const wk_kernel_run *run) {
    char sentence[128];
    const char *const damaged = wk_case_find_damage(&v->c);
    if (damaged) {
        snprintf(sentence, sizeof sentence, "memory of %s outside the result was written", damaged);
        return mismatch(v, sentence);
    }
    return run->is_out_of_scratch ? mismatch(v, "scratch memory was written past its end")
                                  : WICK_OK;
}

typedef enum copy { EXPECTED, FLUSHED, FIRST } copy;

static void save(const wk_case *c, copy which) {
    for (int i = 0; i < c->op.n_dst; i++) {
        const wk_case_memory *const m = &c->memory[i];
        unsigned char *const to = which == EXPECTED  ? m->expected
                                  : which == FLUSHED ? m->flushed
                                                     : m->first;
        memcpy(to, m->live, m->size);
    }
}

/* NaN is any of its bit patterns: those of the first run take the place of others. */
static void align_nans(const wk_view *view, const wk_case_memory *m) {
    const size_t size = (size_t)wk_dtype_get(view->dtype)->block_bytes;
    for (int64_t r = 0; wk_view_count(view) > 0 && r < wk_row_count(view); r++) {
        const wk_row row = wk_row_at(view, r);
        wk_row first = row;
        first.data = m->first + (row.data - m->live);
        for (int64_t i = 0; i < row.n; i++) {
            double values[2];
            wk_row_load(&row, i, 1, &values[0]);
            wk_row_load(&first, i, 1, &values[1]);
            const size_t at = (size_t)(i * row.stride) * size;
            if (isnan(values[0]) && isnan(values[1])) memcpy(row.data + at, first.data + at, size);
        }
    }
}

static bool is_first_again(const wk_case *c) {
    for (int i = 0; i < c->op.n_dst; i++) {
        const wk_case_memory *const m = &c->memory[i];
        if (wk_dtype_is_float(c->op.view[i].dtype)) align_nans(&c->op.view[i], m);
        if (memcmp(m->live, m->first, m->size) != 0) return false;
    }
    return true;
}

/* Whether the device computes where the case's memory is. */
static bool is_on_host(const verification *v) { return v->subject->backend->kernels->run != NULL; }

/* A GPU may take subnormal numbers for zeros wherever it computes; what is only moved stays. */
static bool may_flush(const verification *v) {
    const wk_op *const op = &v->c.op;
    if (is_on_host(v) || v->c.values == WK_VALUES_PLAIN) return false;
    switch (op->code) {
    case WK_OP_WHERE: return false;
    case WK_OP_COPY:
    case WK_OP_EMBEDDING: return wk_src(op, 0)->dtype != wk_dst(op, 0)->dtype;
    default: return true;
    }
}

/* Of the operands as they are, and with zeros for subnormal numbers. */
static wick_status run_reference(verification *v, wk_kernel_run *run) {
    wk_case *const c = &v->c;
    WK_TRY(wk_oracle_run(&v->oracle, &c->op, run));
    save(c, EXPECTED);
    wk_case_reset(c);
    v->is_flushed = may_flush(v);
    if (!v->is_flushed) return WICK_OK;
    wk_kernel_run again;
    wk_case_flush(c);
    WK_TRY(wk_oracle_run(&v->oracle, &c->op, &again));
    save(c, FLUSHED);
    wk_case_reset(c);
    return WICK_OK;
}

/* Both runs of a case have different tunings, where there are several, and all come up. */
static uint32_t tuning_of(const verification *v, bool is_first) {
    const uint32_t n = v->subject->kernel->n_tunings;
    return n > 0 ? (uint32_t)((v->report->seed + (is_first ? 0 : 1)) % n) : 0;
}

/* In host memory: in random ranges, or whole. Other devices: see wk_case_manner. WICK_PENDING: call
 * again. */
static wick_status run_kernel(verification *v, bool is_first, wk_kernel_run *run) {
    const wk_verify_subject *const s = v->subject;
    if (is_on_host(v))
        return s->backend->kernels->run(s->device, s->kernel, &v->c.op,
                                        is_first ? v->report->seed | 1 : 0, run);
    const wk_case_manner manner = {.is_other = !is_first, .tuning = tuning_of(v, is_first)};
    wick_status status = WICK_OK;
    if (!v->job) {
        v->failure = (wick_error){0};
        status = wk_case_job_begin(&v->c, s, manner, v->heap, &v->job, &v->failure);
    }
    if (status == WICK_OK) status = wk_case_job_step(v->job);
    if (status == WICK_PENDING) return WICK_PENDING;
    wk_case_job_end(v->job, run);
    v->job = NULL;
    if (status != WICK_OK) (void)mismatch(v, v->failure.message);
    return status;
}

static wick_status check_first(verification *v) {
    save(&v->c, FIRST);
    WK_TRY(check_damage(v, &v->first));
    wk_case_reset(&v->c);
    return WICK_OK;
}

static wick_status check_second(verification *v, const wk_kernel_run *second) {
    char sentence[64];
    const bool has_fault = v->wanted.has_fault;
    if (v->first.has_fault != has_fault || second->has_fault != has_fault)
        return mismatch(v, has_fault ? "an index out of range was not noticed"
                                     : "an index out of range was found where there is none");
    if (!has_fault && !is_first_again(&v->c)) {
        snprintf(sentence, sizeof sentence, "another run gave other bits (tunings %u, %u)",
                 (unsigned)tuning_of(v, true), (unsigned)tuning_of(v, false));
        return mismatch(v, is_on_host(v) ? "other ranges gave other bits" : sentence);
    }
    WK_TRY(check_damage(v, second));
    return has_fault ? WICK_OK : compare(v);
}

/* The first op from this seed on that kernel and reference accept. */
static wick_status find_case(verification *v, uint64_t seed) {
    for (int i = 0; i < MAX_TRIES; i++) {
        const wk_verify_subject *const s = v->subject;
        v->report->seed = seed;
        wk_case_describe(&v->c, seed, s->kernel->code, s->kernel->is_fast);
        if (wk_oracle_find(&v->oracle, &v->c.op) && wk_kernel_takes(s->kernel, &v->c.op))
            return WICK_OK;
        seed = wk_case_next_seed(seed);
    }
    snprintf(v->report->failure, sizeof v->report->failure, "none of %d random ops is accepted",
             MAX_TRIES);
    return WICK_ERR_NOT_FOUND;
}

/* --- In steps --- */

/* Up to the first run of the kernel. */
static wick_status begin_case(verification *v) {
    WK_TRY(find_case(v, v->seed));
    wick_error err = {0};
    const wick_status status = wk_case_fill(&v->c, v->heap, &err);
    v->report->n_cases++;
    v->stage = FIRST_RUN;
    if (status == WICK_OK) return run_reference(v, &v->wanted);
    snprintf(v->report->failure, sizeof v->report->failure, "%s", err.message);
    return status;
}

static void end_case(verification *v) {
    wk_case_release(&v->c, v->heap);
    v->seed = wk_case_next_seed(v->report->seed);
    v->stage = NEXT_CASE;
}

wick_status wk_verification_step(verification *v) {
    wk_kernel_run second;
    switch (v->stage) {
    case NEXT_CASE:
        if (v->report->n_cases == v->n_cases) return WICK_OK;
        WK_TRY(begin_case(v));
        break;
    case FIRST_RUN:
        WK_TRY(run_kernel(v, true, &v->first));
        WK_TRY(check_first(v));
        v->stage = SECOND_RUN;
        break;
    case SECOND_RUN:
        WK_TRY(run_kernel(v, false, &second));
        WK_TRY(check_second(v, &second));
        end_case(v);
        break;
    }
    return WICK_PENDING;
}

verification *wk_verification_start(const wk_verify_subject *subject, uint64_t seed,
                                    int64_t n_cases, wk_heap *heap, wk_verify_report *report) {
    *report = (wk_verify_report){.seed = seed, .digest = 0xCBF29CE484222325};
    verification *const v = wk_alloc_zeroed(heap, sizeof *v);
    if (!v) return NULL;
    v->subject = subject;
    v->n_cases = n_cases;
    v->seed = seed;
    v->heap = heap;
    v->report = report;
    if (wk_oracle_open(&v->oracle, heap) == WICK_OK) return v;
    wk_verification_end(v);
    return NULL;
}

void wk_verification_end(verification *v) {
    wk_verify_report *const report = v->report;
    wk_kernel_run unused;
    wk_case_job_end(v->job, &unused);
    if (v->stage != NEXT_CASE) wk_case_release(&v->c, v->heap);
    wk_oracle_close(&v->oracle);
    if (v->errors.count > 0) {
        report->mean_error = v->errors.sum / (double)v->errors.count;
        report->rms_error = sqrt(v->errors.square / (double)v->errors.count);
    }
    wk_free(v->heap, v, sizeof *v);
}

wick_status wk_verify_kernel(const wk_verify_subject *subject, uint64_t seed, int64_t n_cases,
                             wk_heap *heap, wk_verify_report *report) {
    verification *const v = wk_verification_start(subject, seed, n_cases, heap, report);
    if (!v) return WICK_ERR_OUT_OF_MEMORY;
    wick_status status;
    while ((status = wk_verification_step(v)) == WICK_PENDING)
        if (v->job && subject->backend->pause) subject->backend->pause(subject->device);
    wk_verification_end(v);
    return status;
}
