/* verify/run_device.c: runs a kernel as a device would: its operands are uploaded, it is encoded or
 * replayed, and all of their memory is read back. */
#include "verify/case.h"

#include <string.h>

enum { ALIGNMENT = 16 }; /* what weights need; whole words */

static uint64_t padded(uint64_t size) { return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

typedef enum phase {
    GIVE, /* the op to the device */
    RUN,
    READ, /* operand after operand */
    DONE,
} phase;

/* The case's operands on the device. */
struct wk_case_job {
    wk_case *c;
    const wk_verify_subject *subject;
    wk_case_manner manner;
    wk_heap *heap;
    wk_op op; /* of the device's buffers */
    wk_buffer *buffer[WK_MAX_OPERANDS];
    uint64_t offset[WK_MAX_OPERANDS]; /* of the operand's memory in its buffer */
    unsigned char *staging;           /* room for the largest operand */
    uint64_t staging_bytes;
    phase phase;
    void *plan; /* NULL: the op is encoded */
    wk_ticket ticket;
    int at; /* operand that is read */
    bool is_reading, has_fault;
    wick_error *err;
};

static bool is_own(const wk_case *c, int i) {
    return c->op.view[i].buf && c->op.view[i].buf == &c->buffer[i];
}

static int n_views(const wk_case *c) { return c->op.n_dst + c->op.n_src; }

/* --- Memory --- */

static wick_status allocate(wk_case_job *p) {
    const wk_verify_subject *const s = p->subject;
    uint64_t total = 0;
    for (int i = 0; i < n_views(p->c); i++) {
        if (!is_own(p->c, i)) continue;
        const uint64_t size = padded(p->c->memory[i].size);
        p->offset[i] = p->manner.is_other ? total : 0;
        total += size;
        if (!p->manner.is_other)
            WK_TRY(s->backend->alloc(s->device, size, 0, &p->buffer[i], p->err));
    }
    if (p->manner.is_other) WK_TRY(s->backend->alloc(s->device, total, 0, &p->buffer[0], p->err));
    return WICK_OK;
}

static wk_buffer *buffer_of(const wk_case_job *p, int i) {
    return p->buffer[p->manner.is_other ? 0 : i];
}

static wick_status upload(wk_case_job *p) {
    const wk_verify_subject *const s = p->subject;
    for (int i = 0; i < n_views(p->c); i++) {
        const wk_case_memory *const m = &p->c->memory[i];
        if (!is_own(p->c, i)) continue;
        memset(p->staging, 0, (size_t)padded(m->size));
        memcpy(p->staging, m->live, (size_t)m->size);
        WK_TRY(s->backend->upload(s->device, buffer_of(p, i), p->offset[i], p->staging,
                                  padded(m->size), p->err));
    }
    return WICK_OK;
}

/* Views of the device's memory; those in place are the destination's. */
static void aim(wk_case_job *p) {
    p->op = p->c->op;
    for (int i = 0; i < n_views(p->c); i++) {
        wk_view *const view = &p->op.view[i];
        if (!view->buf) continue;
        const int owner = is_own(p->c, i) ? i : 0;
        view->buf = buffer_of(p, owner);
        view->offset += p->offset[owner];
    }
}

/* --- Work --- */

static wick_status poll(wk_case_job *p) {
    const wk_verify_subject *const s = p->subject;
    const wick_status status = s->backend->poll(s->device, p->ticket, p->err);
    uint32_t slot;
    while (s->backend->take_fault(s->device, &slot)) p->has_fault = true;
    return status;
}

static wick_status encode_or_replay(wk_case_job *p) {
    const wk_verify_subject *const s = p->subject;
    if (!p->manner.is_other || !s->backend->plan_prepare)
        return s->backend->encode(s->device, s->kernel, &p->op, p->err);
    WK_TRY(s->backend->plan_prepare(s->device, &p->op, &s->kernel, 1, &p->plan, p->err));
    return s->backend->plan_replay(s->device, p->plan, p->err);
}

/* The tuning is the device's for no longer than that: others use it, too. */
static wick_status give(wk_case_job *p) {
    const wk_verify_subject *const s = p->subject;
    void (*const force)(wk_backend_device *, const uint32_t *) = s->backend->kernels->force_tuning;
    if (force) force(s->device, &p->manner.tuning);
    const wick_status status = encode_or_replay(p);
    if (force) force(s->device, NULL);
    WK_TRY(status);
    return s->backend->submit(s->device, &p->ticket, p->err);
}

static wick_status read_operand(wk_case_job *p) {
    const wk_verify_subject *const s = p->subject;
    const wk_case_memory *const m = &p->c->memory[p->at];
    if (!p->is_reading)
        WK_TRY(s->backend->read_start(s->device, buffer_of(p, p->at), p->offset[p->at], m->size,
                                      &p->ticket, p->err));
    p->is_reading = true;
    const wick_status status = poll(p);
    if (status == WICK_PENDING) return WICK_PENDING;
    p->is_reading = false;
    void *const to = status == WICK_OK ? m->live : NULL;
    const wick_status finished = s->backend->read_finish(s->device, p->ticket, to, p->err);
    return status != WICK_OK ? status : finished;
}

static wick_status read_all(wk_case_job *p) {
    for (; p->at < n_views(p->c); p->at++)
        if (is_own(p->c, p->at)) WK_TRY(read_operand(p));
    return WICK_OK;
}

wick_status wk_case_job_step(wk_case_job *p) {
    switch (p->phase) {
    case GIVE: WK_TRY(give(p)); break;
    case RUN: WK_TRY(poll(p)); break;
    case READ: WK_TRY(read_all(p)); break;
    case DONE: break;
    }
    if (p->phase < DONE) p->phase++;
    return p->phase == DONE ? WICK_OK : WICK_PENDING;
}

/* --- Begin and end --- */

static wick_status place(wk_case_job *p) {
    for (int i = 0; i < n_views(p->c); i++)
        if (p->staging_bytes < padded(p->c->memory[i].size))
            p->staging_bytes = padded(p->c->memory[i].size);
    p->staging = wk_alloc(p->heap, (size_t)p->staging_bytes);
    if (!p->staging) return wk_fail_memory(p->err, (size_t)p->staging_bytes, "an operand");
    WK_TRY(allocate(p));
    WK_TRY(upload(p));
    aim(p);
    return WICK_OK;
}

wick_status wk_case_job_begin(wk_case *c, const wk_verify_subject *subject, wk_case_manner manner,
                              wk_heap *heap, wk_case_job **out, wick_error *err) {
    wk_case_job *const job = wk_alloc_zeroed(heap, sizeof *job);
    *out = job;
    if (!job) return wk_fail_memory(err, sizeof *job, "a case on a device");
    *job = (wk_case_job){.c = c, .subject = subject, .manner = manner, .heap = heap, .err = err};
    return place(job);
}

void wk_case_job_end(wk_case_job *job, wk_kernel_run *out) {
    if (!job) return;
    const wk_verify_subject *const s = job->subject;
    *out = (wk_kernel_run){.has_fault = job->has_fault};
    if (job->is_reading) (void)s->backend->read_finish(s->device, job->ticket, NULL, NULL);
    if (job->plan) s->backend->plan_free(s->device, job->plan);
    for (int i = 0; i < n_views(job->c); i++)
        if (job->buffer[i]) s->backend->free(s->device, job->buffer[i]);
    wk_free(job->heap, job->staging, (size_t)job->staging_bytes);
    wk_free(job->heap, job, sizeof *job);
}
