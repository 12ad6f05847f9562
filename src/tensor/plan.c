/* tensor/plan.c: see plan.h. At the end of a recording its places get buffers by liveness: each
 * buffer serves one place at a time, and the largest place chooses first. */
#include "tensor/plan.h"

#include "tensor/record.h"

#include <assert.h>
#include <string.h>

struct wk_plan_pool {
    wick_device *device;
    wk_buffer **slots; /* one reference each */
    size_t n_slots, capacity;
};

/* --- Pool --- */

wick_status wk_plan_pool_make(wick_device *device, wk_plan_pool **out) {
    *out = wk_alloc_zeroed(&device->heap, sizeof **out);
    if (!*out) return wk_fail_memory(device->err, sizeof **out, "a plan pool");
    (*out)->device = device;
    return WICK_OK;
}

void wk_plan_pool_free(wk_plan_pool *pool) {
    if (!pool) return;
    wick_device *const device = pool->device;
    for (size_t i = 0; i < pool->n_slots; i++) wk_buffer_release(device, pool->slots[i]);
    wk_free(&device->heap, pool->slots, pool->capacity * sizeof *pool->slots);
    wk_free(&device->heap, pool, sizeof *pool);
}

/* --- Begin --- */

wick_status wk_plan_begin(wick_device *device, wk_plan_pool *pool) {
    assert(!pool || pool->device == device); /* none: the recording will not run */
    if (device->recording)
        return wk_device_fail(device, WICK_ERR_STATE, "a plan is being recorded already");
    wk_plan *const plan = wk_alloc_zeroed(&device->heap, sizeof *plan);
    if (!plan) return wk_fail_memory(device->err, sizeof *plan, "a plan");
    plan->device = device;
    plan->pool = pool;
    plan->generation = device->generation;
    plan->n_refused = device->n_refused;
    device->recording = plan;
    return WICK_OK;
}

/* --- Places to buffers --- */

typedef struct life {
    const wk_buffer *place; /* NULL: no op touches it */
    size_t first, last;     /* ops of the steps that touch it first and last */
    size_t slot, next;      /* the next life in the same slot; SIZE_MAX: none */
} life;

typedef struct slot {
    uint64_t size, granule; /* of the largest place that it serves */
    size_t lives;           /* the first of them; SIZE_MAX: none */
} slot;

/* Ops that one kernel computes together are one step: what one of them needs, all do. */
typedef struct step {
    size_t first, last;
} step;

static step step_of(const wk_plan *plan, size_t i) {
    step s = {i, i};
    while (!plan->falls_back && !plan->kernels[s.first]) s.first--;
    if (plan->kernels[s.first]) s.last = s.first + wk_opcode_ops(plan->kernels[s.first]->code) - 1;
    return s;
}

static void find_lives(const wk_plan *plan, wick_tensor *const *outputs, size_t n_outputs,
                       life *lives) {
    for (size_t p = 0; p < plan->n_places; p++) lives[p] = (life){.slot = SIZE_MAX};
    for (size_t i = 0; i < plan->n_ops; i++) {
        const wk_op *const op = &plan->ops[i];
        const step s = step_of(plan, i);
        for (int k = 0; k < op->n_dst + op->n_src; k++) {
            if (!op->view[k].buf || !op->view[k].buf->place) continue;
            assert(op->view[k].buf->place <= plan->n_places);
            life *const l = &lives[op->view[k].buf->place - 1];
            if (!l->place) l->first = s.first;
            l->place = op->view[k].buf;
            l->last = s.last;
        }
    }
    for (size_t i = 0; i < n_outputs; i++)
        if (outputs[i]->view.buf->place) lives[outputs[i]->view.buf->place - 1].last = SIZE_MAX - 1;
}

/* The largest place that has no slot yet; NULL: all have. */
static life *find_largest(life *lives, size_t n) {
    life *largest = NULL;
    for (life *l = lives; l < lives + n; l++)
        if (l->place && l->slot == SIZE_MAX && (!largest || l->place->size > largest->place->size))
            largest = l;
    return largest;
}

static bool is_free(const slot *of, const life *lives, const life *wanted) {
    for (size_t l = of->lives; l != SIZE_MAX; l = lives[l].next)
        if (lives[l].first <= wanted->last && wanted->first <= lives[l].last) return false;
    return true;
}

/* Each in the tightest slot that is free while it lives, else in a new one. Small places that came
 * first would sit in the largest slots, and large ones need more of these. */
static size_t assign_slots(const wk_plan *plan, life *lives, slot *slots) {
    size_t n_slots = plan->pool->n_slots;
    for (size_t s = 0; s < n_slots; s++)
        slots[s] = (slot){.size = plan->pool->slots[s]->size, .lives = SIZE_MAX};
    for (life *l; (l = find_largest(lives, plan->n_places)) != NULL;) {
        size_t best = n_slots;
        for (size_t s = 0; s < n_slots; s++)
            if (slots[s].size >= l->place->size && is_free(&slots[s], lives, l) &&
                (best == n_slots || slots[s].size < slots[best].size))
                best = s;
        if (best == n_slots) slots[n_slots++] = (slot){l->place->size, l->place->granule, SIZE_MAX};
        l->slot = best;
        l->next = slots[best].lives;
        slots[best].lives = (size_t)(l - lives);
    }
    return n_slots;
}

static wick_status make_slots(wk_plan_pool *pool, const slot *slots, size_t n_slots) {
    wick_device *const device = pool->device;
    while (pool->n_slots < n_slots) {
        void *array = pool->slots;
        const wick_status status =
            wk_grow(device, &array, &pool->capacity, pool->n_slots, sizeof *pool->slots);
        pool->slots = array;
        if (status != WICK_OK) return status;
        const slot *const s = &slots[pool->n_slots];
        WK_TRY(wk_buffer_new(device, s->size, s->granule, &pool->slots[pool->n_slots]));
        pool->slots[pool->n_slots++]->is_slot = true;
    }
    return WICK_OK;
}

static void rebind(wk_view *view, const wk_plan *plan, const life *lives) {
    if (!view->buf || !view->buf->place) return;
    wk_buffer *const place = view->buf;
    assert(lives[place->place - 1].slot < plan->pool->n_slots && place->refs > 0);
    view->buf = plan->pool->slots[lives[place->place - 1].slot];
    wk_buffer_retain(view->buf);
    place->refs--;
}

static wick_status bind_places(wk_plan *plan, wick_tensor *const *outputs, size_t n_outputs) {
    wick_device *const device = plan->device;
    const size_t n_lives = plan->n_places, max_slots = plan->pool->n_slots + plan->n_places;
    if (n_lives == 0) return WICK_OK;
    life *const lives = wk_alloc_array(&device->heap, n_lives, sizeof *lives);
    slot *const slots = wk_alloc_array(&device->heap, max_slots, sizeof *slots);
    wick_status status = WICK_ERR_OUT_OF_MEMORY;
    if (!lives || !slots) goto done;
    find_lives(plan, outputs, n_outputs, lives);
    status = make_slots(plan->pool, slots, assign_slots(plan, lives, slots));
    if (status != WICK_OK) goto done;
    for (size_t i = 0; i < plan->n_ops; i++)
        for (int k = 0; k < plan->ops[i].n_dst + plan->ops[i].n_src; k++)
            rebind(&plan->ops[i].view[k], plan, lives);
    for (size_t i = 0; i < n_outputs; i++) {
        assert(!outputs[i]->view.buf->place ||
               lives[outputs[i]->view.buf->place - 1].slot != SIZE_MAX);
        rebind(&outputs[i]->view, plan, lives);
    }
done:
    wk_free(&device->heap, lives, n_lives * sizeof *lives);
    wk_free(&device->heap, slots, max_slots * sizeof *slots);
    if (status == WICK_ERR_OUT_OF_MEMORY)
        (void)wk_fail_memory(device->err, max_slots * sizeof *slots, "a plan");
    return status;
}

/* --- End, run, free --- */

/* Begins to compile its kernels. */
static wick_status compile_ahead(const wk_plan *plan) {
    wick_device *const device = plan->device;
    const wk_backend *const backend = device->backend;
    for (size_t i = 0; backend->rehearse && i < plan->n_ops; i++) {
        wick_error ignored = {0};
        if (!plan->kernels[i]) continue;
        const wick_status status =
            backend->rehearse(device->handle, plan->kernels[i], &plan->ops[i], &ignored);
        if (status == WICK_ERR_OUT_OF_MEMORY || status == WICK_ERR_DEVICE_LOST)
            return wk_device_fail(device, status, "%s", ignored.message);
    }
    return WICK_OK;
}

wick_status wk_plan_end(wick_device *device, wick_tensor *const *outputs, size_t n_outputs,
                        wk_plan **out) {
    wk_plan *const plan = device->recording;
    assert(plan);
    device->recording = NULL;
    *out = NULL;
    wick_status status = plan->status;
    if (status == WICK_OK) status = wk_plan_join(plan, outputs, n_outputs);
    plan->fault_slot = wk_trace_plan_slot(device);
    for (size_t i = 0; i < plan->n_ops; i++) plan->ops[i].fault_slot = plan->fault_slot;
    if (status == WICK_OK) status = bind_places(plan, outputs, n_outputs);
    if (status == WICK_OK && !plan->falls_back && device->backend->plan_prepare)
        status = device->backend->plan_prepare(device->handle, plan->ops, plan->kernels,
                                               plan->n_ops, &plan->replay, device->err);
    if (status == WICK_OK && plan->falls_back) status = compile_ahead(plan);
    if (plan->replay) device->n_held++;
    *out = plan; /* also on failure: tensors of the recording still name its places */
    return status;
}

wick_status wk_plan_rehearse(wick_device *device, wk_plan **out) {
    wk_plan *const plan = device->recording;
    assert(plan);
    wk_plan_abort(device, out);
    if (plan->status == WICK_OK) plan->status = wk_plan_join(plan, NULL, 0);
    if (plan->status == WICK_OK) plan->status = compile_ahead(plan);
    return plan->status;
}

void wk_plan_abort(wick_device *device, wk_plan **out) {
    *out = device->recording;
    device->recording = NULL;
}

bool wk_plan_is_outdated(const wk_plan *plan) { return plan->n_refused != plan->device->n_refused; }

const wk_kernel *wk_plan_joint_kernel(const wk_plan *plan, wk_opcode code) {
    for (size_t i = 0; i < plan->n_ops; i++)
        if (plan->kernels[i] && plan->kernels[i]->code == code) return plan->kernels[i];
    return NULL;
}

wick_status wk_plan_run(wk_plan *plan) {
    wick_device *const device = plan->device;
    assert(device->recording != plan && plan->status == WICK_OK);
    if (plan->generation != device->generation)
        return wk_device_fail(device, WICK_ERR_DEVICE_LOST, "the plan was lost with its device");
    WK_TRY(wk_device_usable(device)); /* what is queued meanwhile, the next device would run */
    if (device->observers.n_on == 0) return wk_queue_run(device, plan);
    wk_plan_heal_slots(device, plan);
    for (size_t i = 0; i < plan->n_ops; i++) {
        const wk_call call = {.op = plan->ops[i]};
        wk_observers_show(device, &call, NULL, NULL);
        WK_TRY(wk_queue_push(device, &plan->ops[i]));
    }
    return WICK_OK;
}

void wk_plan_free(wk_plan *plan) {
    if (!plan) return;
    wick_device *const device = plan->device;
    assert(device->recording != plan);
    wk_queue_forget(device, plan);
    wk_trace_forget(device, plan);
    if (plan->replay) {
        device->backend->plan_free(wk_handle_of(device, plan->generation), plan->replay);
        wk_handle_let_go(device, plan->generation);
    }
    for (size_t i = 0; i < plan->n_ops; i++) wk_op_release(device, &plan->ops[i]);
    for (size_t p = 0; p < plan->n_places; p++) {
        assert(plan->places[p]->refs == 0); /* a tensor of the recording is left */
        wk_free(&device->heap, plan->places[p], sizeof *plan->places[p]);
    }
    wk_free(&device->heap, plan->places, plan->place_capacity * sizeof *plan->places);
    wk_free(&device->heap, plan->ops, plan->op_capacity * sizeof *plan->ops);
    wk_free(&device->heap, plan->kernels, plan->kernel_capacity * sizeof *plan->kernels);
    wk_free(&device->heap, plan, sizeof *plan);
}
