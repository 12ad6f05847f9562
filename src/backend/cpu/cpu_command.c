/* backend/cpu/cpu_command.c: commands are given, and run in their order by whoever polls.
 *
 * Scratch of the kernels grows when a command is given, never while one runs, and is kept: a step
 * that repeats allocates nothing. */
#include "backend/cpu/cpu_state.h"

#include "sys/clock.h"

#include <assert.h>
#include <string.h>

/* --- Giving commands --- */

/* What is there stays until there is more: commands and plans given before rely on it. */
static wick_status reserve_block(wk_backend_device *dev, wk_cpu_block *block, uint64_t bytes,
                                 wick_error *err) {
    if (bytes <= block->size) return WICK_OK;
    const size_t size = (size_t)bytes;
    void *const data = bytes <= SIZE_MAX ? wk_alloc_aligned(dev->heap, size) : NULL;
    if (!data) return wk_cpu_no_memory(err, bytes, "scratch memory of a kernel");
    wk_memory_prefer_large_pages(data, size);
    /* An op that is computed in slices may have left there what its next phase reads. */
    if (block->size > 0) memcpy(data, block->data, block->size);
    wk_free_aligned(dev->heap, block->data, block->size);
    *block = (wk_cpu_block){.data = data, .size = size};
    return WICK_OK;
}

/* Nothing to compute, however large the other extents are. */
static bool is_empty(const wk_op *op) {
    for (int i = 0; i < op->n_dst; i++)
        if (wk_view_count(wk_dst(op, i)) > 0) return false;
    return true;
}

/* Also what needs nothing gets an address, so that arithmetic on it is defined. */
static wick_status reserve_scratch(wk_backend_device *dev, const wk_cpu_kernel *kernel,
                                   const wk_op *op, wick_error *err) {
    if (is_empty(op)) return WICK_OK;
    if (kernel->scratch_bytes) {
        WK_TRY(reserve_block(dev, &dev->scratch, kernel->scratch_bytes(op) + 1, err));
    }
    if (!kernel->worker_bytes) return WICK_OK;
    const uint64_t bytes = kernel->worker_bytes(op);
    if (bytes < dev->worker_bytes) return WICK_OK;
    const uint64_t each = (bytes / WK_ALIGNMENT + 1) * WK_ALIGNMENT;
    const uint64_t n = (uint64_t)wk_pool_size(dev->pool);
    WK_TRY(reserve_block(dev, &dev->worker_scratch, each * n, err));
    dev->worker_bytes = (size_t)each;
    return WICK_OK;
}

/* An op of so few elements takes far less than a slice: whatever it computes of them, 5 us for
 * each one are enough. */
static bool is_brief(const wk_backend_device *dev, const wk_op *op) {
    const uint64_t most = dev->slice_ns / 5000;
    uint64_t n = 0;
    for (int i = 0; i < op->n_dst + op->n_src; i++)
        if (op->view[i].buf) n += (uint64_t)wk_view_count(&op->view[i]);
    return n < most;
}

/* How many pieces of an op last about a slice each on all threads, by what a slow processor does in
 * a second; 0: it is brief. */
static uint32_t pieces_of(const wk_backend_device *dev, const wk_cpu_kernel *kernel,
                          const wk_op *op, const uint32_t *batch) {
    if (is_brief(dev, op)) return 0;
    const bool is_slow = kernel->base.is_reference;
    const double flops = is_slow ? 0.5e9 : 10e9, bytes = is_slow ? 0.2e9 : 5e9; /* of a thread */
    const wk_cost cost = wk_op_cost(op, batch);
    const double seconds = cost.flops / flops + (cost.bytes_read + cost.bytes_written) / bytes;
    const double slices = seconds * 1e9 / (double)wk_pool_size(dev->pool) / (double)dev->slice_ns;
    return slices < 1 ? 1 : slices > 1e6 ? 1000000 : (uint32_t)slices + 1;
}

wick_status wk_cpu_encode(wk_backend_device *dev, const wk_kernel *kernel, const wk_op *op,
                          wick_error *err) {
    const wk_cpu_kernel *cpu_kernel = (const wk_cpu_kernel *)kernel;
    WK_TRY(reserve_scratch(dev, cpu_kernel, op, err));
    wk_cpu_command *command = wk_cpu_next_command(dev, err);
    if (!command) return WICK_ERR_OUT_OF_MEMORY;
    command->kind = WK_CPU_COMMAND_OP;
    command->run.kernel = cpu_kernel;
    command->run.n_pieces = pieces_of(dev, cpu_kernel, op, NULL);
    wk_op_copy(&command->run.op, op);
    wk_cpu_push(dev);
    return WICK_OK;
}

wick_status wk_cpu_upload(wk_backend_device *dev, wk_buffer *buf, uint64_t offset,
                          const void *bytes, uint64_t size, wick_error *err) {
    assert(offset <= buf->size && size <= buf->size - offset);
    if (size == 0) return WICK_OK;
    unsigned char *to = (unsigned char *)buf->data + offset;
    if (dev->head == dev->tail) {
        memcpy(to, bytes, (size_t)size);
        dev->stats.bytes_uploaded += size;
        return WICK_OK;
    }
    wk_cpu_command *command = wk_cpu_next_command(dev, err);
    if (!command) return WICK_ERR_OUT_OF_MEMORY;
    void *copy = NULL;
    if (size > sizeof command->upload.small) {
        copy = wk_alloc(dev->heap, (size_t)size);
        if (!copy) return wk_cpu_no_memory(err, size, "bytes to upload");
    }
    memcpy(copy ? copy : command->upload.small, bytes, (size_t)size);
    command->kind = WK_CPU_COMMAND_UPLOAD;
    command->upload.to = to;
    command->upload.size = size;
    command->upload.copy = copy;
    wk_cpu_push(dev);
    dev->stats.bytes_uploaded += size;
    return WICK_OK;
}

wick_status wk_cpu_plan_prepare(wk_backend_device *dev, const wk_op *ops,
                                const wk_kernel *const *kernels, size_t n, void **plan,
                                wick_error *err) {
    for (size_t i = 0; i < n; i++) {
        WK_TRY(reserve_scratch(dev, (const wk_cpu_kernel *)kernels[i], &ops[i], err));
    }
    wk_cpu_plan *made = wk_alloc(dev->heap, sizeof *made);
    uint32_t *n_pieces = made ? wk_alloc_array(dev->heap, n, sizeof *n_pieces) : NULL;
    if (!n_pieces && n > 0) {
        wk_free(dev->heap, made, sizeof *made);
        return wk_cpu_no_memory(err, sizeof *made + n * sizeof *n_pieces, "a plan");
    }
    for (size_t i = 0; i < n; i++)
        n_pieces[i] = pieces_of(dev, (const wk_cpu_kernel *)kernels[i], &ops[i], NULL);
    *made = (wk_cpu_plan){.ops = ops, .kernels = kernels, .n_pieces = n_pieces, .n = n};
    *plan = made;
    return WICK_OK;
}

wick_status wk_cpu_plan_replay(wk_backend_device *dev, void *plan, wick_error *err) {
    wk_cpu_command *command = wk_cpu_next_command(dev, err);
    if (!command) return WICK_ERR_OUT_OF_MEMORY;
    command->kind = WK_CPU_COMMAND_PLAN;
    command->replay.plan = plan;
    command->replay.next = 0;
    wk_cpu_push(dev);
    return WICK_OK;
}

/* --- Running them --- */

typedef struct phase_run {
    wk_backend_device *dev;
    const wk_cpu_kernel *kernel;
    const wk_op *op;
    int phase;
} phase_run;

static void run_range(void *argument, int worker, int64_t begin, int64_t end) {
    const phase_run *phase = argument;
    wk_backend_device *dev = phase->dev;
    assert(worker >= 0 && worker < wk_pool_size(dev->pool) && begin < end);
    unsigned char *worker_scratch = dev->worker_scratch.data;
    if (worker_scratch) worker_scratch += (size_t)worker * dev->worker_bytes;
    const wk_cpu_run run = {
        .op = phase->op,
        .scratch = dev->scratch.data,
        .worker_scratch = worker_scratch,
        .fault = &dev->fault,
    };
    phase->kernel->run(&run, phase->phase, begin, end);
}

/* The contents of its batch descriptor; NULL: it has none. */
static const uint32_t *batch_of(const wk_op *op) {
    int operand;
    return wk_op_batch(op, &operand) ? wk_view_data(&op->view[operand]) : NULL;
}

static void count_op(wk_backend_device *dev, const wk_cpu_kernel *kernel, const wk_op *op) {
    dev->stats.n_ops++;
    /* Products with weights are what takes the time: only these are worth a remark. */
    if (kernel->base.is_reference && wk_op_is_linear(op) && dev->features != 0) {
        dev->stats.n_ops_ref++;
    }
    if (!dev->profile) return;
    const double seconds = (double)dev->at.spent_ns * 1e-9;
    const wk_cost cost = wk_op_cost(op, batch_of(op));
    size_t i = 0;
    while (wk_cpu_kernel_at(i) != kernel) i++;
    wick_kernel_stats *const stats = &dev->profile[i];
    stats->name = kernel->base.name;
    stats->calls++;
    stats->seconds += seconds;
    stats->bytes_read += cost.bytes_read;
    stats->bytes_written += cost.bytes_written;
    stats->flops += cost.flops;
}

/* One phase, or as much of it as the slice allows. True: it is done. */
static bool run_phase(wk_backend_device *dev, phase_run *phase, uint32_t n_pieces) {
    const wk_cpu_kernel *const kernel = phase->kernel;
    const int64_t n = kernel->items(phase->op, phase->phase);
    const int64_t grain = kernel->grain ? kernel->grain(phase->op, phase->phase) : 1;
    if (n_pieces <= 1) {
        wk_pool_run(dev->pool, run_range, phase, n, grain);
        return true;
    }
    const int64_t each = n / grain / n_pieces / wk_pool_size(dev->pool);
    const wk_pool_loop loop = {.fn = run_range,
                               .argument = phase,
                               .n_items = n,
                               .grain = grain,
                               .most = each > 1 ? each : 1,
                               .until_ns = dev->until_ns};
    if (!dev->at.is_begun) wk_pool_deal(dev->pool, &loop, dev->rest);
    const bool is_done = wk_pool_go_on(dev->pool, &loop, dev->rest);
    dev->at.is_begun = !is_done;
    return is_done;
}

/* True: the op is done. */
static bool run_phases(wk_backend_device *dev, const wk_cpu_kernel *kernel, const wk_op *op,
                       uint32_t n_pieces) {
    wk_cpu_progress *const at = &dev->at;
    for (; at->phase < kernel->n_phases; at->phase++) {
        phase_run phase = {.dev = dev, .kernel = kernel, .op = op, .phase = at->phase};
        if (!run_phase(dev, &phase, n_pieces)) return false;
    }
    return true;
}

void wk_cpu_fault(const wk_cpu_run *run) {
    atomic_store_explicit(run->fault, true, memory_order_relaxed);
}

static bool run_op(wk_backend_device *dev, const wk_cpu_kernel *kernel, const wk_op *op,
                   uint32_t n_pieces) {
    const uint64_t begin_ns = dev->profile ? wk_clock_ns() : 0;
    /* That was for a full context; by now it is known which keys are in use. */
    if (n_pieces > 1) n_pieces = pieces_of(dev, kernel, op, batch_of(op));
    const bool is_done = is_empty(op) || run_phases(dev, kernel, op, n_pieces);
    if (dev->profile) dev->at.spent_ns += wk_clock_ns() - begin_ns;
    if (!is_done) return false;
    count_op(dev, kernel, op);
    dev->at = (wk_cpu_progress){.phase = 0};
    if (!atomic_load_explicit(&dev->fault, memory_order_relaxed)) return true;
    atomic_store_explicit(&dev->fault, false, memory_order_relaxed);
    dev->faults[op->fault_slot] = dev->has_faults = true;
    return true;
}

static void finish_command(wk_backend_device *dev) {
    assert(dev->head < dev->tail && dev->n_done < dev->n_given && dev->at.phase == 0);
    dev->head++;
    dev->n_done++;
    if (dev->freed_first) wk_cpu_free_waiting(dev);
}

static void run_upload(wk_backend_device *dev, wk_cpu_command *command) {
    const void *bytes = command->upload.copy ? command->upload.copy : command->upload.small;
    memcpy(command->upload.to, bytes, (size_t)command->upload.size);
    wk_free(dev->heap, command->upload.copy, (size_t)command->upload.size);
}

/* Of a plan one op. True: the command is done. */
static bool run_plan(wk_backend_device *dev, wk_cpu_command *command, uint32_t *n_pieces) {
    const wk_cpu_plan *plan = command->replay.plan;
    const size_t i = command->replay.next;
    if (i < plan->n) {
        *n_pieces = plan->n_pieces[i];
        if (!run_op(dev, (const wk_cpu_kernel *)plan->kernels[i], &plan->ops[i], *n_pieces))
            return false;
    }
    command->replay.next++;
    return i + 1 >= plan->n;
}

/* Runs one command, of a plan one op, of an op that takes long a piece. False: it took far less
 * than a slice. */
static bool run_step(wk_backend_device *dev) {
    assert(dev->head < dev->tail); /* commands are left while a ticket is not done */
    wk_cpu_command *command = &dev->commands[dev->head];
    bool is_done = true;
    uint32_t n_pieces = 1;
    switch (command->kind) {
    case WK_CPU_COMMAND_OP:
        n_pieces = command->run.n_pieces;
        is_done = run_op(dev, command->run.kernel, &command->run.op, n_pieces);
        break;
    case WK_CPU_COMMAND_UPLOAD: run_upload(dev, command); break;
    case WK_CPU_COMMAND_READ: wk_cpu_read_run(dev, command->read); break;
    case WK_CPU_COMMAND_PLAN: is_done = run_plan(dev, command, &n_pieces); break;
    }
    if (is_done) finish_command(dev);
    return n_pieces > 0;
}

enum { MOST_SHORT = 16 }; /* steps between two looks at the clock */

wick_status wk_cpu_poll(wk_backend_device *dev, wk_ticket ticket, wick_error *err) {
    if (ticket > dev->n_given) return wk_fail(err, WICK_ERR_STATE, "this ticket was never given");
    if (dev->n_done < ticket) dev->until_ns = wk_clock_ns() + dev->slice_ns;
    for (int n_short = 0; dev->n_done < ticket;) {
        const bool is_long = run_step(dev);
        n_short = is_long ? 0 : n_short + 1;
        const bool is_time = is_long || n_short % MOST_SHORT == 0; /* to look at the clock */
        if (is_time && dev->n_done < ticket && wk_clock_ns() >= dev->until_ns) return WICK_PENDING;
    }
    return WICK_OK;
}

bool wk_cpu_take_fault(wk_backend_device *dev, uint32_t *slot) {
    for (uint32_t i = 0; dev->has_faults && i < WK_FAULT_SLOTS; i++) {
        if (!dev->faults[i]) continue;
        dev->faults[i] = false;
        *slot = i;
        return true;
    }
    dev->has_faults = false;
    return false;
}

/* Its arrays are the caller's again afterwards: what is queued of it becomes nothing, at once. */
void wk_cpu_plan_free(wk_backend_device *dev, void *plan) {
    static const wk_cpu_plan nothing;
    for (size_t i = dev->head; i < dev->tail; i++) {
        wk_cpu_command *const command = &dev->commands[i];
        if (command->kind != WK_CPU_COMMAND_PLAN || command->replay.plan != plan) continue;
        command->replay.plan = &nothing;
        if (i != dev->head) continue;
        dev->at = (wk_cpu_progress){.phase = 0};
        atomic_store_explicit(&dev->fault, false, memory_order_relaxed);
    }
    wk_cpu_plan *const p = plan;
    wk_free(dev->heap, p->n_pieces, p->n * sizeof *p->n_pieces);
    wk_free(dev->heap, p, sizeof *p);
}
