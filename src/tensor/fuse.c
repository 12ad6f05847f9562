/* tensor/fuse.c: what waits in the queue is settled before it runs: ops whose results no one can
 * read are dropped, and elementwise ops of one shape become one chain (backend/chain.c), whose
 * results are written only where something else reads them.
 *
 *   t = a * b      t has no tensor any more, and nothing after y reads it
 *   m = p @ q      may lie between: it reads and writes nothing of the chain
 *   y = tanh(t)    y = chain(a, b), in the place of the last one
 *
 * A buffer has references by tensors and by records; where all are those of ops that wait, no
 * one else can come to see it. Uploads, reads, plans and looks end a run of ops. */
#include "core/hash.h"
#include "tensor/device.h"

#include <assert.h>
#include <string.h>

enum {
    LEAST_ELEMENTS = 4096, /* fewer stay in the caches between two ops */
    TIMES_UNTIL_COMPILED = 2,
    MOST_COMPILED = 256,
    FIRST_STEP = WK_CHAIN_OPERANDS,
};

/* Ops that wait one after the other: records [first, end). */
typedef struct span {
    wick_device *device;
    uint32_t first, end;
    int64_t least; /* elements that a chain must have */
} span;

static int n_views(const wk_op *op) { return op->n_dst + op->n_src; }

static wk_op *op_at(const span *s, uint32_t index) { return &wk_queue_at(s->device, index)->op; }

/* --- Results that no one can read --- */

static void count_references(const span *s) {
    const uint64_t number = ++s->device->n_spans;
    for (uint32_t i = s->first; i < s->end; i++) {
        const wk_op *const op = op_at(s, i);
        for (int v = 0; v < n_views(op); v++) {
            wk_buffer *const buf = op->view[v].buf;
            if (!buf) continue;
            if (buf->span != number) {
                buf->span = number;
                buf->n_waiting = buf->last_read = 0;
                buf->is_settled = false;
            }
            buf->n_waiting++;
        }
    }
}

/* Of an op's buffers, before a reference of those that wait has gone. */
static void settle(const wk_op *op) {
    for (int v = 0; v < n_views(op); v++) {
        wk_buffer *const buf = op->view[v].buf;
        if (!buf || buf->is_settled) continue;
        assert(buf->n_waiting <= buf->refs);
        buf->is_settled = true;
        buf->is_outside = buf->is_wanted = buf->is_foreign || buf->refs > buf->n_waiting;
    }
}

/* The user's own code may do anything. */
static bool is_wanted(const wk_op *op) {
    bool found = op->code == WK_OP_CUSTOM;
    for (int d = 0; d < op->n_dst && !found; d++) found = op->view[d].buf->is_wanted;
    return found;
}

static void want_operands(const wk_op *op, uint32_t number) {
    for (int d = 0; d < op->n_dst; d++) {
        wk_buffer *const buf = op->view[d].buf; /* of which others may be the producers */
        if (buf->n_waiting > 1 && buf->is_wanted && wk_op_replaces(op, d)) buf->is_wanted = false;
    }
    for (int v = 0; v < n_views(op); v++) {
        wk_buffer *const buf = op->view[v].buf;
        const bool is_read = v >= op->n_dst || (wk_op_operand(op, v)->access & WK_READ) != 0;
        if (!buf || !is_read) continue;
        buf->is_wanted = true;
        if (buf->last_read == 0) buf->last_read = number;
    }
}

/* From the last one back. */
static void drop_unread(const span *s) {
    count_references(s);
    for (uint32_t i = s->end; i-- > s->first;) {
        const wk_op *const op = op_at(s, i);
        settle(op);
        if (is_wanted(op)) {
            want_operands(op, i + 1);
            continue;
        }
        wk_queue_cancel(s->device, wk_queue_at(s->device, i));
        s->device->n_unread++;
    }
}

/* --- A chain that is being made --- */

typedef struct member {
    uint32_t index; /* of its record */
    const wk_op *op;
    int replaced_by; /* number of the member that writes over its result */
    int n_sources;   /* of the chain up to it */
} member;

/* Inputs of its steps are numbers of sources, and FIRST_STEP and more of steps. */
typedef struct forming {
    int n, n_sources;
    int n_results; /* that others read, and no member writes over */
    member members[WK_CHAIN_STEPS];
    const wk_view *sources[WK_CHAIN_OPERANDS];
    wk_chain chain;
} forming;

static const wk_view *result_of(const forming *f, int k) { return wk_dst(f->members[k].op, 0); }

/* What a step reads by this view. */
typedef enum found { FOUND, NEW, IN_THE_WAY } found;

static found find_input(const forming *f, const wk_view *view, uint8_t *in) {
    for (int k = f->n - 1; k >= 0; k--) {
        if (result_of(f, k)->buf != view->buf) continue;
        *in = (uint8_t)(FIRST_STEP + k);
        if (wk_view_same(result_of(f, k), view)) return FOUND;
        if (wk_view_overlaps(result_of(f, k), view)) return IN_THE_WAY;
    }
    for (int s = 0; s < f->n_sources; s++) {
        if (!wk_view_same(f->sources[s], view)) continue;
        *in = (uint8_t)s;
        return FOUND;
    }
    return NEW;
}

/* Elements that are read and written are the same ones, or have nothing in common. */
static bool may_write(const forming *f, const wk_op *op) {
    const wk_view *const y = wk_dst(op, 0);
    for (int s = 0; s < f->n_sources; s++)
        if (wk_view_overlaps(f->sources[s], y) && !wk_view_same(f->sources[s], y)) return false;
    for (int i = 0; i < op->n_src; i++)
        if (wk_view_overlaps(wk_src(op, i), y) && !wk_view_same(wk_src(op, i), y)) return false;
    for (int k = 0; k < f->n; k++)
        if (wk_view_overlaps(result_of(f, k), y) && !wk_view_same(result_of(f, k), y)) return false;
    return true;
}

/* Members whose result the op writes over. */
static int replace_results(forming *f, const wk_op *op) {
    int n_kept = 0;
    for (int k = 0; k < f->n; k++) {
        member *const m = &f->members[k];
        if (m->replaced_by > 0 || !wk_view_same(result_of(f, k), wk_dst(op, 0))) continue;
        m->replaced_by = f->n;
        n_kept += result_of(f, k)->buf->is_outside;
    }
    return n_kept;
}

static bool is_ended(const forming *f) {
    return f->n > 0 && f->members[f->n - 1].op->code == WK_OP_REDUCE;
}

/* A reduction of what no other step reads ends the chain. */
static bool fits_shape(const forming *f, const wk_op *op) {
    if (op->code != WK_OP_REDUCE)
        return f->n == 0 || wk_view_same_shape(wk_dst(op, 0), wk_src(f->members[0].op, 0));
    return f->n > 0 && wk_view_same_shape(wk_src(op, 0), wk_src(f->members[0].op, 0));
}

/* Whether it has to do with the others, and the chain is likely to have room for it. */
static bool belongs(const forming *f, const wk_op *op, uint32_t index, const uint8_t *in,
                    int n_sources) {
    bool reads_result = f->n == 0;
    if (op->code == WK_OP_REDUCE)
        return in[0] >= FIRST_STEP && f->n_results == 0 &&
               wk_src(op, 0)->buf->last_read == index + 1;
    for (int i = 0; i < op->n_src; i++) reads_result = reads_result || in[i] >= FIRST_STEP;
    if (!wk_dst(op, 0)->buf->is_outside) return f->n_results + n_sources < WK_CHAIN_OPERANDS;
    return reads_result && f->n_results < WK_CHAIN_RESULTS &&
           f->n_results + 1 + n_sources <= WK_CHAIN_OPERANDS;
}

/* False: it cannot be a step of this chain, which stays as it is. */
static bool join(forming *f, const wk_op *op, uint32_t index) {
    uint8_t in[WK_CHAIN_INPUTS] = {0};
    if (!fits_shape(f, op) || is_ended(f)) return false;
    if (f->n == WK_CHAIN_STEPS || op->n_src > WK_CHAIN_INPUTS || !may_write(f, op)) return false;
    int n_sources = f->n_sources;
    for (int i = 0; i < op->n_src; i++) {
        const found state = find_input(f, wk_src(op, i), &in[i]);
        if (state == IN_THE_WAY) return false;
        if (state == FOUND) continue;
        if (n_sources == WK_CHAIN_OPERANDS - 1) return false;
        in[i] = (uint8_t)n_sources;
        f->sources[n_sources++] = wk_src(op, i);
    }
    if (!belongs(f, op, index, in, n_sources) || !wk_chain_append(&f->chain, op, in)) return false;
    f->n_sources = n_sources;
    f->n_results += wk_dst(op, 0)->buf->is_outside - replace_results(f, op);
    f->members[f->n++] = (member){.index = index, .op = op, .n_sources = n_sources};
    return true;
}

/* Whether the op must not run before what is a part of the chain. */
static bool is_in_the_way(const forming *f, const wk_op *op) {
    for (int v = 0; v < n_views(op); v++) {
        const wk_view *const view = &op->view[v];
        for (int k = 0; k < f->n; k++)
            if (wk_view_overlaps(result_of(f, k), view)) return true;
        for (int s = 0; v < op->n_dst && s < f->n_sources; s++)
            if (wk_view_overlaps(f->sources[s], view)) return true;
    }
    return false;
}

/* --- The op of the first n members --- */

static bool is_read_after(const forming *f, int k, int n) {
    const wk_buffer *const buf = result_of(f, k)->buf;
    return buf->is_outside || buf->last_read > f->members[n - 1].index + 1;
}

/* A fault of a source goes to the destinations that depend on it. One that has taken the place of
 * a source is seen with all that it depends on by those after it: they must depend on that, too. */
static bool keeps_faults_apart(const wk_op *op) {
    for (int d = 0; d < op->n_dst; d++)
        for (int s = 0; s < op->n_src; s++) {
            if (!wk_view_overlaps(wk_dst(op, d), wk_src(op, s))) continue;
            const uint32_t of = wk_chain_sources(op, op->p.chain.result[d]);
            for (int e = d + 1; e < op->n_dst; e++) {
                const uint32_t later = wk_chain_sources(op, op->p.chain.result[e]);
                if ((later >> s & 1) && (of & ~later) != 0) return false;
            }
        }
    return true;
}

static void number_registers(wk_op *op) {
    wk_chain *const chain = &op->p.chain;
    for (int k = 0; k < chain->n_steps; k++)
        for (int i = 0; i < WK_CHAIN_INPUTS; i++)
            if (chain->step[k].in[i] >= FIRST_STEP)
                chain->step[k].in[i] = (uint8_t)(chain->step[k].in[i] - FIRST_STEP + op->n_src);
}

/* False: they have too many operands. */
static bool make_op(const forming *f, int n, wk_op *op) {
    const int n_sources = f->members[n - 1].n_sources;
    int first;
    *op = (wk_op){.code = WK_OP_CHAIN, .p.chain = f->chain};
    op->p.chain.n_steps = (uint8_t)n;
    const int n_last = wk_chain_scalars(&f->chain, n - 1, &first);
    op->p.chain.n_scalars = (uint8_t)(first + n_last);
    for (int k = 0; k < n; k++) {
        const int by = f->members[k].replaced_by;
        if ((by > 0 && by < n) || !is_read_after(f, k, n)) continue;
        if (op->n_dst == WK_CHAIN_RESULTS || op->n_dst + 1 + n_sources > WK_CHAIN_OPERANDS)
            return false;
        op->p.chain.result[op->n_dst] = (uint8_t)k;
        op->view[op->n_dst++] = *result_of(f, k);
    }
    for (int s = 0; s < n_sources; s++) op->view[op->n_dst + op->n_src++] = *f->sources[s];
    number_registers(op);
    const bool is_one = op->n_dst == 1 && op->p.chain.result[0] == n - 1;
    if (wk_chain_is_reduced(op) && !is_one) return false;
    return op->n_dst > 0 && keeps_faults_apart(op);
}

/* --- Whether it pays --- */

static uint64_t hash_of(const wk_op *op) {
    struct {
        wk_chain chain;
        uint8_t n_dst, n_src, dtype[WK_CHAIN_OPERANDS];
    } key;
    memset(&key, 0, sizeof key);
    memcpy(key.chain.step, op->p.chain.step, op->p.chain.n_steps * sizeof *key.chain.step);
    memcpy(key.chain.result, op->p.chain.result, op->n_dst);
    key.n_dst = op->n_dst;
    key.n_src = op->n_src;
    for (int v = 0; v < n_views(op) && v < WK_CHAIN_OPERANDS; v++)
        key.dtype[v] = (uint8_t)op->view[v].dtype;
    return wk_hash(&key, sizeof key);
}

/* A program that is used once does not pay for its compiler. What is decided depends on what came
 * before alone and never on time: the same calls compute the same bits. */
static bool may_compile(wick_device *device, const wk_kernel *kernel, const wk_op *op) {
    if (!device->backend->rehearse || device->desc.fusion == WICK_FUSION_ALWAYS) return true;
    if (!device->chains) device->chains = wk_alloc_zeroed(&device->heap, sizeof *device->chains);
    wk_chains_known *const known = device->chains;
    if (!known) return false;
    const uint64_t hash = hash_of(op);
    const size_t at = (size_t)(hash % WK_CHAINS_KNOWN);
    if (known->seen[at].hash != hash) {
        known->seen[at].hash = hash;
        known->seen[at].n_times = 0;
    }
    if (known->seen[at].n_times == TIMES_UNTIL_COMPILED) return true;
    if (++known->seen[at].n_times < TIMES_UNTIL_COMPILED) return false;
    if (known->n_compiled == MOST_COMPILED) {
        known->seen[at].n_times = 0;
        return false;
    }
    known->n_compiled++;
    wick_error ignored = {.status = WICK_OK};
    (void)device->backend->rehearse(device->handle, kernel, op, &ignored);
    return false;
}

/* Ends the chain: as many of its first members as fit become one op. Returns the record to go on
 * from: the first member that did not, else next. */
static uint32_t close_chain(const span *s, forming *f, uint32_t next) {
    wick_device *const device = s->device;
    wk_op op = {.code = WK_OP_CHAIN};
    const wk_kernel *kernel = NULL;
    int n = f->n;
    for (; n > 1; n--) {
        kernel = make_op(f, n, &op) ? device->backend->find_kernel(device->handle, &op) : NULL;
        if (kernel) break;
    }
    if (n > 0 && n < f->n) next = f->members[n].index;
    if (n > 1 && may_compile(device, kernel, &op)) {
        assert(wk_op_check(&op, NULL) == WICK_OK);
        wk_queue_replace(device, wk_queue_at(device, f->members[n - 1].index), &op);
        for (int k = 0; k < n - 1; k++)
            wk_queue_cancel(device, wk_queue_at(device, f->members[k].index));
        device->n_fused += (uint32_t)n;
    }
    f->n = f->n_sources = f->n_results = 0;
    f->chain.n_steps = f->chain.n_scalars = 0;
    return next;
}

/* Goes on with the op; false: the chain must end before it. */
static bool take(forming *f, const wk_op *op, uint32_t index, int64_t least) {
    const bool is_step = wk_chain_takes(op->code) && wk_view_count(wk_dst(op, 0)) >= least;
    /* What no later op reads does not begin a chain. */
    if (f->n == 0 && (!is_step || wk_dst(op, 0)->buf->last_read <= index + 1)) return true;
    if ((is_step || op->code == WK_OP_REDUCE) && join(f, op, index)) return true;
    return f->n == 0 || (!is_step && !is_in_the_way(f, op)); /* 0: it cannot be a step */
}

static void make_chains(const span *s) {
    forming f;
    f.n = f.n_sources = f.n_results = 0;
    f.chain = (wk_chain){.n_steps = 0};
    for (uint32_t i = s->first; i < s->end || f.n > 0;) {
        const wk_record *const record = i < s->end ? wk_queue_at(s->device, i) : NULL;
        const bool is_taken =
            record && (record->kind == WK_RECORD_NONE || take(&f, &record->op, i, s->least));
        i = is_taken ? i + 1 : close_chain(s, &f, i);
    }
}

void wk_fuse(wick_device *device) {
    wk_queue *const queue = &device->queue;
    const bool is_off = device->desc.verify || device->desc.fusion == WICK_FUSION_OFF;
    const bool is_any = device->backend->rehearse || device->desc.fusion == WICK_FUSION_ALWAYS;
    for (uint32_t i = queue->n_final; i < queue->count && !is_off; i++) {
        span s = {.device = device, .first = i, .end = i, .least = is_any ? 1 : LEAST_ELEMENTS};
        while (s.end < queue->count && wk_queue_at(device, s.end)->kind == WK_RECORD_OP) s.end++;
        if (s.end == s.first) continue;
        drop_unread(&s);
        make_chains(&s);
        i = s.end;
    }
    queue->n_final = queue->count;
}

void wk_fuse_free(wick_device *device) {
    wk_free(&device->heap, device->chains, sizeof *device->chains);
}
