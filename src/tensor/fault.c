/* tensor/fault.c: who hears of an operation that failed: whoever reads what it wrote, or what was
 * computed from that, and no other caller.
 *
 * A buffer whose contents are not what they should be has a fault. One that is known before an op
 * is given to the backend is passed on from what it reads to what it writes. An index out of range
 * is found while a kernel runs, when later ops have been given, too: so the ops that may still be
 * running are traced, and the fault is passed on along the trace.
 *
 *   trace:  1 embedding(table, ids) -> a   sets its slot: an index is out of range
 *           2 add(b, c) -> d
 *           3 mul(a, d) -> e               reads a, so e has the fault of 1, too
 *           4 fill() -> a                  writes all of a, so it is sound again
 *
 *   reads of e fail, those of a, b, c and d do not. */
#include "tensor/record.h"

#include <assert.h>
#include <string.h>

enum { N_PLAN_SLOTS = 64, FIRST_ENTRIES = 64 };

/* An op, or a run of a plan. Buffers are named by their ids: they may be gone by now. */
struct wk_trace_entry {
    wk_ticket ticket;    /* 0: not submitted yet */
    const wk_plan *plan; /* NULL: an op, or a plan that was freed */
    wk_fault *fault;  /* it failed, or read something that is spoiled; NULL: as far as is known */
    const char *name; /* of the op where it has a slot */
    bool has_slot;
    uint8_t slot, n_dst, n_src;
    uint16_t replaced; /* bit i: destination i is written whole, and not read */
    uint64_t ids[WK_MAX_OPERANDS];
};

/* --- Faults of buffers --- */

/* One reference. Without memory there is one place for a reason, which the first one takes. */
static wk_fault *make_fault(wick_device *device, const wick_error *reason) {
    assert(reason->status < 0); /* else a read of a spoiled buffer would succeed */
    wk_fault *const fault = wk_alloc(&device->heap, sizeof *fault);
    if (!fault) {
        if (device->unallocated.refs++ == 1) device->unallocated.error = *reason;
        return &device->unallocated;
    }
    *fault = (wk_fault){.refs = 1, .error = *reason};
    return fault;
}

static void release_fault(wick_device *device, wk_fault *fault) {
    assert(!fault || fault->refs > 0);
    if (fault && --fault->refs == 0) wk_free(&device->heap, fault, sizeof *fault);
    assert(device->unallocated.refs > 0);
}

static void set_fault(wick_device *device, wk_buffer *buf, wk_fault *fault) {
    if (buf->fault) return; /* the first reason stays */
    buf->fault = fault;
    fault->refs++;
    device->n_spoiled++;
}

void wk_fault_heal(wick_device *device, wk_buffer *buf) {
    if (!buf->fault) return;
    assert(device->n_spoiled > 0);
    release_fault(device, buf->fault);
    buf->fault = NULL;
    device->n_spoiled--;
}

void wk_tensor_forget_fault(wick_tensor *tensor) {
    wk_fault_heal(tensor->device, tensor->view.buf);
}

void wk_fault_pass(wick_device *device, const wk_buffer *from, wk_buffer *to) {
    assert(from->fault);
    set_fault(device, to, from->fault);
}

void wk_fault_spoil_buffer(wick_device *device, wk_buffer *buf, const wick_error *reason) {
    wk_fault *const fault = make_fault(device, reason);
    set_fault(device, buf, fault);
    release_fault(device, fault);
}

void wk_fault_spoil(wick_device *device, const wk_op *op, const wick_error *reason) {
    wk_fault *const fault = make_fault(device, reason);
    for (int i = 0; i < op->n_dst; i++)
        if (op->view[i].buf) set_fault(device, op->view[i].buf, fault);
    release_fault(device, fault);
}

wick_status wk_fault_tell(wick_device *device, const wk_buffer *buf) {
    if (!buf->fault) return WICK_OK;
    if (device->err->status == WICK_OK) *device->err = buf->fault->error;
    return buf->fault->error.status;
}

static bool is_read(const wk_op *op, int i) {
    return i >= op->n_dst || (wk_op_operand(op, i)->access & WK_READ) != 0;
}

wick_status wk_fault_check(wick_device *device, const wk_op *op) {
    for (int i = 0; device->n_spoiled > 0 && i < op->n_dst + op->n_src; i++) {
        const wk_buffer *const buf = op->view[i].buf;
        if (buf && buf->fault && is_read(op, i)) return wk_fault_tell(device, buf);
    }
    return WICK_OK;
}

/* It is all of its buffer. */
static bool covers(const wk_view *view) {
    uint64_t begin, end;
    if (view->offset > 0 || !wk_view_is_dense(view)) return false;
    wk_view_range(view, &begin, &end);
    return begin == 0 && end == view->buf->size;
}

bool wk_op_replaces(const wk_op *op, int i) { return !is_read(op, i) && covers(&op->view[i]); }

void wk_fault_heal_written(wick_device *device, const wk_op *op) {
    for (int i = 0; device->n_spoiled > 0 && i < op->n_dst; i++)
        if (op->view[i].buf->fault && wk_op_replaces(op, i)) wk_fault_heal(device, op->view[i].buf);
}

/* --- The trace --- */

wick_status wk_trace_reserve(wick_device *device) {
    wk_trace *const trace = &device->trace;
    if (trace->n + WK_CHAIN_RESULTS <= trace->capacity) return WICK_OK;
    const size_t capacity = trace->capacity > 0 ? 2 * trace->capacity : FIRST_ENTRIES;
    wk_trace_entry *const moved = wk_realloc(
        &device->heap, trace->entries, trace->capacity * sizeof *moved, capacity * sizeof *moved);
    if (!moved) return wk_fail_memory(device->err, capacity * sizeof *moved, "operations");
    trace->entries = moved;
    trace->capacity = capacity;
    return WICK_OK;
}

uint8_t wk_trace_op_slot(const wick_device *device) {
    return (uint8_t)(N_PLAN_SLOTS + device->trace.next_slot % (WK_FAULT_SLOTS - N_PLAN_SLOTS));
}

uint8_t wk_trace_plan_slot(wick_device *device) {
    return (uint8_t)(device->trace.next_plan_slot++ % N_PLAN_SLOTS);
}

bool wk_trace_is_claimed(const wick_device *device, uint8_t slot, const wk_plan *plan,
                         wk_ticket *ticket) {
    const wk_trace *const trace = &device->trace;
    for (size_t i = trace->n; i-- > 0;) {
        const wk_trace_entry *const entry = &trace->entries[i];
        if (!entry->has_slot || entry->slot != slot || (plan && entry->plan == plan)) continue;
        *ticket = entry->ticket;
        return true;
    }
    return false;
}

static wk_trace_entry *add_entry(wick_device *device) {
    wk_trace *const trace = &device->trace;
    assert(trace->n < trace->capacity);
    wk_trace_entry *const entry = &trace->entries[trace->n++];
    memset(entry, 0, offsetof(wk_trace_entry, ids)); /* of these, those that it has */
    return entry;
}

/* Each destination of a chain depends on its own sources. */
static void trace_chain(wick_device *device, const wk_op *op) {
    for (int d = 0; d < op->n_dst; d++) {
        const uint32_t sources = wk_chain_sources(op, op->p.chain.result[d]);
        wk_trace_entry *const entry = add_entry(device);
        entry->n_dst = 1;
        entry->ids[0] = wk_dst(op, d)->buf->id;
        entry->replaced = wk_op_replaces(op, d);
        for (int s = 0; s < op->n_src; s++)
            if (sources >> s & 1) entry->ids[1 + entry->n_src++] = wk_src(op, s)->buf->id;
    }
}

void wk_trace_op(wick_device *device, const wk_op *op) {
    if (op->code == WK_OP_CHAIN) {
        trace_chain(device, op);
        return;
    }
    assert(!wk_op_may_fault(op->code) || op->fault_slot >= N_PLAN_SLOTS);
    wk_trace_entry *const entry = add_entry(device);
    entry->name = wk_op_name(op);
    entry->has_slot = wk_op_may_fault(op->code);
    entry->slot = op->fault_slot;
    device->trace.next_slot += entry->has_slot;
    entry->n_dst = op->n_dst;
    entry->n_src = op->n_src;
    for (int i = 0; i < op->n_dst + op->n_src; i++)
        entry->ids[i] = op->view[i].buf ? op->view[i].buf->id : 0;
    for (int i = 0; i < op->n_dst; i++)
        if (wk_op_replaces(op, i)) entry->replaced |= (uint16_t)(1U << i);
}

void wk_trace_plan(wick_device *device, const wk_plan *plan) {
    assert(plan->fault_slot < N_PLAN_SLOTS);
    wk_trace_entry *const entry = add_entry(device);
    entry->plan = plan;
    entry->has_slot = true;
    entry->slot = plan->fault_slot;
}

void wk_trace_upload(wick_device *device, const wk_buffer *buf, bool is_whole) {
    if (device->trace.n == 0) return;
    wk_trace_entry *const entry = add_entry(device);
    entry->n_dst = 1;
    entry->ids[0] = buf->id;
    entry->replaced = is_whole;
}

void wk_trace_read(wick_device *device, const wk_buffer *from, const wk_buffer *to) {
    if (device->trace.n == 0) return;
    wk_trace_entry *const entry = add_entry(device);
    entry->n_dst = entry->n_src = 1;
    entry->ids[0] = to->id;
    entry->ids[1] = from->id;
    entry->replaced = 1;
}

void wk_trace_submitted(wick_device *device) {
    wk_trace *const trace = &device->trace;
    for (size_t i = trace->n; i > 0 && trace->entries[i - 1].ticket == 0; i--)
        trace->entries[i - 1].ticket = device->submitted;
}

static void drop_first(wick_device *device, size_t n) {
    wk_trace *const trace = &device->trace;
    assert(n <= trace->n);
    if (n == 0) return;
    for (size_t i = 0; i < n; i++) release_fault(device, trace->entries[i].fault);
    memmove(trace->entries, trace->entries + n, (trace->n - n) * sizeof *trace->entries);
    trace->n -= n;
}

void wk_trace_settle(wick_device *device, wk_ticket ticket) {
    const wk_trace *const trace = &device->trace;
    size_t n = 0;
    while (n < trace->n && trace->entries[n].ticket != 0 && trace->entries[n].ticket <= ticket) n++;
    drop_first(device, n);
}

/* What it wrote goes with it. */
void wk_trace_forget(wick_device *device, const wk_plan *plan) {
    for (size_t i = 0; i < device->trace.n; i++)
        if (device->trace.entries[i].plan == plan) device->trace.entries[i].plan = NULL;
}

void wk_trace_free(wick_device *device) {
    drop_first(device, device->trace.n);
    wk_free(&device->heap, device->trace.entries,
            device->trace.capacity * sizeof *device->trace.entries);
    device->trace = (wk_trace){.entries = NULL};
}

/* --- Passing a fault on --- */

typedef enum touch { UNTOUCHED, WRITES, REPLACES } touch;

static touch plan_touches(const wk_plan *plan, uint64_t id) {
    for (size_t i = 0; i < plan->n_ops; i++)
        for (int d = 0; d < plan->ops[i].n_dst; d++)
            if (plan->ops[i].view[d].buf->id == id)
                return plan->ops[i].view[d].buf->is_slot ? REPLACES : WRITES;
    return UNTOUCHED;
}

static touch touches(const wk_trace_entry *entry, uint64_t id) {
    touch found = UNTOUCHED;
    if (entry->plan) return plan_touches(entry->plan, id);
    for (int i = 0; i < entry->n_dst; i++)
        if (entry->ids[i] == id) {
            if (!(entry->replaced & 1U << i)) return WRITES;
            found = REPLACES;
        }
    return found;
}

/* The fault that the buffer has after the first n entries by their doing, NULL: none. */
static wk_fault *fault_after(const wk_trace *trace, size_t n, uint64_t id) {
    assert(n <= trace->n);
    while (id != 0 && n-- > 0) {
        const wk_trace_entry *const entry = &trace->entries[n];
        const touch done = touches(entry, id);
        if (done != UNTOUCHED && entry->fault) return entry->fault;
        if (done == REPLACES) return NULL;
    }
    return NULL;
}

static wk_fault *fault_that_plan_reads(const wk_trace *trace, size_t n, const wk_plan *plan) {
    wk_fault *found = NULL;
    for (size_t i = 0; i < plan->n_ops && !found; i++) {
        const wk_op *const op = &plan->ops[i];
        for (int k = 0; k < op->n_dst + op->n_src && !found; k++) {
            const wk_buffer *const buf = op->view[k].buf;
            if (buf && !buf->is_slot && is_read(op, k)) found = fault_after(trace, n, buf->id);
        }
    }
    return found;
}

static wk_fault *fault_that_is_read(const wk_trace *trace, size_t n) {
    const wk_trace_entry *const entry = &trace->entries[n];
    if (entry->plan) return fault_that_plan_reads(trace, n, entry->plan);
    wk_fault *found = NULL;
    for (int i = 0; i < entry->n_dst + entry->n_src && !found; i++)
        if (i >= entry->n_dst || !(entry->replaced & 1U << i))
            found = fault_after(trace, n, entry->ids[i]);
    return found;
}

/* From entry `first` on, and from the trace to the buffers that are alive. */
static void pass_on(wick_device *device, size_t first) {
    const wk_trace *const trace = &device->trace;
    for (size_t i = first; i < trace->n; i++) {
        wk_trace_entry *const entry = &trace->entries[i];
        if (entry->fault) continue;
        entry->fault = fault_that_is_read(trace, i);
        if (entry->fault) entry->fault->refs++;
    }
    for (wk_buffer *buf = device->buffers; buf; buf = buf->older) {
        wk_fault *const fault = fault_after(trace, trace->n, buf->id);
        if (fault) set_fault(device, buf, fault);
    }
}

static void begin_fault(wick_device *device, wk_trace_entry *entry, const wick_error *reason) {
    if (!entry->fault) entry->fault = make_fault(device, reason);
}

void wk_fault_collect(wick_device *device) {
    const wk_trace *const trace = &device->trace;
    uint32_t slot;
    while (device->backend->take_fault(device->handle, &slot)) {
        assert(slot < WK_FAULT_SLOTS);
        size_t first = trace->n;
        for (size_t i = trace->n; i-- > 0;) {
            wk_trace_entry *const entry = &trace->entries[i];
            if (!entry->has_slot || entry->slot != slot) continue;
            wick_error reason = {.status = WICK_OK};
            (void)wk_fail(&reason, WICK_ERR_INDEX, "%s: an index is out of range",
                          entry->name ? entry->name : "a recorded step");
            wk_device_log(device, WICK_LOG_DEBUG, "%s", reason.message);
            begin_fault(device, entry, &reason);
            first = i;
        }
        pass_on(device, first);
    }
}

bool wk_fault_spoil_unfinished(wick_device *device, const wick_error *reason) {
    const wk_trace *const trace = &device->trace;
    if (trace->n == 0) return false;
    wk_device_log(device, WICK_LOG_DEBUG, "%s", reason->message);
    for (size_t i = 0; i < trace->n; i++) begin_fault(device, &trace->entries[i], reason);
    pass_on(device, 0);
    drop_first(device, trace->n);
    return true;
}
