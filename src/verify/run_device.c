/* verify/run_device.c: runs a kernel as a device would: its operands are uploaded, it is encoded or
 * replayed, and all of their memory is read back. */
#include "verify/case.h"

#include <string.h>

enum { ALIGNMENT = 16 }; /* what weights need; whole words */

static uint64_t padded(uint64_t size) { return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

/* The case's operands on the device. */
typedef struct placed {
    wk_case *c;
    const wk_verify_subject *subject;
    wk_op op; /* of the device's buffers */
    wk_buffer *buffer[WK_MAX_OPERANDS];
    uint64_t offset[WK_MAX_OPERANDS]; /* of the operand's memory in its buffer */
    bool is_joined;                   /* all buffers are the first one */
    unsigned char *staging;           /* room for the largest operand */
    uint64_t staging_bytes;
    bool has_fault;
    wick_error *err;
} placed;

static bool is_own(const wk_case *c, int i) {
    return c->op.view[i].buf && c->op.view[i].buf == &c->buffer[i];
}

static int n_views(const wk_case *c) { return c->op.n_dst + c->op.n_src; }

/* --- Memory --- */

static wick_status allocate(placed *p) {
    const wk_verify_subject *const s = p->subject;
    uint64_t total = 0;
    for (int i = 0; i < n_views(p->c); i++) {
        if (!is_own(p->c, i)) continue;
        const uint64_t size = padded(p->c->memory[i].size);
        p->offset[i] = p->is_joined ? total : 0;
        total += size;
        if (!p->is_joined) WK_TRY(s->backend->alloc(s->device, size, 0, &p->buffer[i], p->err));
    }
    if (p->is_joined) WK_TRY(s->backend->alloc(s->device, total, 0, &p->buffer[0], p->err));
    return WICK_OK;
}

static void release(placed *p, wk_heap *heap) {
    const wk_verify_subject *const s = p->subject;
    for (int i = 0; i < n_views(p->c); i++)
        if (p->buffer[i]) s->backend->free(s->device, p->buffer[i]);
    wk_free(heap, p->staging, (size_t)p->staging_bytes);
}

static wk_buffer *buffer_of(const placed *p, int i) { return p->buffer[p->is_joined ? 0 : i]; }

static wick_status upload(placed *p) {
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
static void aim(placed *p) {
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

/* Waits; a kernel that met a bad index is no failure here. */
static wick_status wait_for(placed *p, wk_ticket ticket) {
    const wk_verify_subject *const s = p->subject;
    wick_status status;
    while ((status = s->backend->wait(s->device, ticket, p->err)) == WICK_ERR_INDEX)
        p->has_fault = true;
    return status;
}

static wick_status submit(placed *p) {
    wk_ticket ticket;
    WK_TRY(p->subject->backend->submit(p->subject->device, &ticket, p->err));
    return wait_for(p, ticket);
}

static wick_status encode(placed *p) {
    const wk_verify_subject *const s = p->subject;
    WK_TRY(s->backend->encode(s->device, s->kernel, &p->op, p->err));
    return submit(p);
}

static wick_status replay(placed *p) {
    const wk_verify_subject *const s = p->subject;
    void *plan;
    WK_TRY(s->backend->plan_prepare(s->device, &p->op, &s->kernel, 1, &plan, p->err));
    wick_status status = s->backend->plan_replay(s->device, plan, p->err);
    if (status == WICK_OK) status = submit(p);
    s->backend->plan_free(s->device, plan);
    return status;
}

static wick_status read_back(placed *p) {
    const wk_verify_subject *const s = p->subject;
    for (int i = 0; i < n_views(p->c); i++) {
        const wk_case_memory *const m = &p->c->memory[i];
        if (!is_own(p->c, i)) continue;
        wk_ticket ticket;
        WK_TRY(s->backend->read_start(s->device, buffer_of(p, i), p->offset[i], m->size, &ticket,
                                      p->err));
        const wick_status status = wait_for(p, ticket);
        void *const to = status == WICK_OK ? m->live : NULL;
        const wick_status finished = s->backend->read_finish(s->device, ticket, to, p->err);
        if (status != WICK_OK) return status;
        WK_TRY(finished);
    }
    return WICK_OK;
}

static wick_status run(placed *p, wk_heap *heap, bool is_replayed) {
    for (int i = 0; i < n_views(p->c); i++)
        if (p->staging_bytes < padded(p->c->memory[i].size))
            p->staging_bytes = padded(p->c->memory[i].size);
    p->staging = wk_alloc(heap, (size_t)p->staging_bytes);
    if (!p->staging) return wk_fail_memory(p->err, (size_t)p->staging_bytes, 0, "an operand");
    WK_TRY(allocate(p));
    WK_TRY(upload(p));
    aim(p);
    WK_TRY(is_replayed ? replay(p) : encode(p));
    return read_back(p);
}

wick_status wk_case_compute_on(wk_case *c, const wk_verify_subject *subject, wk_case_manner manner,
                               wk_heap *heap, wk_case_run *out, wick_error *err) {
    const bool is_other = manner == WK_MANNER_OTHER;
    placed p = {.c = c, .subject = subject, .is_joined = is_other, .err = err};
    const wick_status status = run(&p, heap, is_other && subject->backend->plan_prepare);
    release(&p, heap);
    *out = (wk_case_run){.has_fault = p.has_fault};
    return status;
}
