/* backend/cpu/chain.c: chains of elementwise ops in one pass. Blocks of elements that stay in the
 * cache go through all steps, each by the kernel that the step's op would have on its own, so that
 * the bits are those of the ops one by one.
 *
 * A block is a part of one dimension with all that follow, of every operand alike:
 *
 *   [7, 500, 300], blocks of up to 1024 elements: [3, 300] of dimension 1, so 167 blocks for each
 *   of 7, the last of them [2, 300]
 *
 * A reduction at the end has all elements of a result in one block. */
#include "backend/cpu/cpu_kernel.h"
#include "core/dtype.h"
#include "sys/cpu_features.h"

#include <assert.h>
#include <string.h>

enum {
    BLOCK = 1024,        /* elements at most, of which the first cache holds several registers, */
    LONGEST_ROW = 16384, /* but all that a reduction makes one of */
    MAX_REGISTERS = WK_CHAIN_OPERANDS + WK_CHAIN_STEPS,
    NO_SLOT = -1,
};

/* --- Blocks --- */

typedef struct blocks {
    int dim;           /* that is cut; -1: all is one block */
    int64_t part;      /* of that dimension, elements */
    int64_t per_dim;   /* parts */
    int64_t n, inside; /* blocks; elements of the dimensions after dim */
} blocks;

static int64_t row_of(const wk_op *op) {
    const wk_view *const x = wk_src(op, 0);
    int64_t n = 1;
    for (int d = wk_dst(op, 0)->rank; d < x->rank; d++) n *= x->extent[d];
    return n;
}

static blocks blocks_of(const wk_op *op) {
    const wk_view *const x = wk_src(op, 0);
    blocks b = {.dim = wk_dst(op, 0)->rank - 1, .part = 1, .per_dim = 1, .n = 1};
    if (wk_view_count(x) == 0) return (blocks){.dim = -1};
    b.inside = row_of(op);
    for (; b.dim >= 0 && b.inside * x->extent[b.dim] <= BLOCK; b.dim--)
        b.inside *= x->extent[b.dim];
    if (b.dim < 0) return b;
    b.part = BLOCK / b.inside > 0 ? BLOCK / b.inside : 1;
    b.per_dim = (x->extent[b.dim] + b.part - 1) / b.part;
    b.n = b.per_dim;
    for (int d = 0; d < b.dim; d++) b.n *= x->extent[d];
    return b;
}

/* Of the registers of a block, which lie close to each other. */
static uint64_t slot_bytes(const wk_op *op) {
    const int64_t row = row_of(op);
    int64_t size = 1;
    for (int k = 0; k < op->p.chain.n_steps; k++) {
        const int64_t of = wk_dtype_get((wick_dtype)op->p.chain.step[k].dtype)->block_bytes;
        size = of > size ? of : size;
    }
    return (uint64_t)((row > BLOCK ? row : BLOCK) * size);
}

/* Where a block lies. */
typedef struct origin {
    int64_t first[WICK_MAX_RANK]; /* its first element in the dimensions up to dim */
    int64_t length;               /* of dim */
} origin;

static origin origin_of(const blocks *b, const wk_view *whole, int64_t index) {
    origin p = {.length = b->dim < 0 ? 1 : whole->extent[b->dim]};
    if (b->dim < 0) return p;
    p.first[b->dim] = index % b->per_dim * b->part;
    p.length -= p.first[b->dim];
    if (p.length > b->part) p.length = b->part;
    index /= b->per_dim;
    for (int d = b->dim - 1; d >= 0; index /= whole->extent[d--])
        p.first[d] = index % whole->extent[d];
    return p;
}

/* The block of an operand, whose view is one of a block as long already. */
static void move(const blocks *b, const wk_view *whole, const origin *at, wk_view *out) {
    int64_t offset = 0;
    for (int d = 0; d <= b->dim; d++) offset += at->first[d] * whole->stride[d];
    out->offset =
        whole->offset + (uint64_t)offset * (uint64_t)wk_dtype_get(whole->dtype)->block_bytes;
}

/* The block of an operand. */
static void aim(const blocks *b, const wk_view *whole, const origin *at, wk_view *out) {
    *out = *whole;
    if (b->dim < 0) return;
    out->rank = whole->rank - b->dim;
    memmove(out->extent, whole->extent + b->dim, (size_t)out->rank * sizeof *out->extent);
    memmove(out->stride, whole->stride + b->dim, (size_t)out->rank * sizeof *out->stride);
    out->extent[0] = at->length;
    move(b, whole, at, out);
}

/* --- Slots: where results are that no destination gets --- */

static bool reads(const wk_op *op, int step, int reg) {
    const wk_chain_step *const s = &op->p.chain.step[step];
    for (int i = 0; i < wk_op_get_info((wk_opcode)s->code)->n_src; i++)
        if (s->in[i] == reg) return true;
    return false;
}

/* The slot of each step, which is free again after the last step that reads it; how many. */
static int share_slots(const wk_op *op, int slots[WK_CHAIN_STEPS]) {
    int n_slots = 0, free_from[WK_CHAIN_STEPS];
    for (int k = 0; k < op->p.chain.n_steps; k++) {
        slots[k] = NO_SLOT;
        if (wk_chain_destination(op, k) >= 0) continue;
        int last = k, slot = 0;
        for (int j = k + 1; j < op->p.chain.n_steps; j++)
            if (reads(op, j, op->n_src + k)) last = j;
        while (slot < n_slots && free_from[slot] > k) slot++;
        if (slot == n_slots) n_slots++;
        free_from[slot] = last + 1; /* a step does not write where it reads */
        slots[k] = slot;
    }
    return n_slots;
}

static uint64_t worker_bytes(const wk_op *op) {
    int slots[WK_CHAIN_STEPS];
    return (uint64_t)share_slots(op, slots) * slot_bytes(op);
}

/* --- Running --- */

/* What a worker has of a chain. */
typedef struct pass {
    const wk_op *op;
    uint32_t features; /* of the kernels that the steps take */
    blocks blocks;
    int slot_of[WK_CHAIN_STEPS];
    wk_buffer slots[WK_CHAIN_STEPS];
    wk_view registers[MAX_REGISTERS]; /* of the block that is computed */
    int64_t length;                   /* of the blocks that the following are for; -1: none */
    const wk_cpu_kernel *kernels[WK_CHAIN_STEPS];
    int64_t row[WK_CHAIN_STEPS]; /* floats side by side in all operands of a step; 0: others */
    wk_op step;
} pass;

static void begin_pass(pass *p, const wk_cpu_run *run, uint32_t features) {
    p->op = run->op;
    p->features = features;
    p->blocks = blocks_of(run->op);
    p->length = -1;
    const int n_slots = share_slots(run->op, p->slot_of);
    const size_t size = (size_t)slot_bytes(run->op);
    for (int i = 0; i < n_slots; i++)
        p->slots[i] = (wk_buffer){.size = size,
                                  .data = (unsigned char *)run->worker_scratch + (size_t)i * size};
    p->step = (wk_op){.fault_slot = 0};
}

static void aim_operands(pass *p, const origin *at, bool is_new) {
    const wk_op *const op = p->op;
    for (int i = 0; i < op->n_dst + op->n_src; i++) {
        const bool is_source = i < op->n_src;
        const wk_view *const whole = is_source ? wk_src(op, i) : wk_dst(op, i - op->n_src);
        wk_view *const out =
            &p->registers[is_source ? i : op->n_src + op->p.chain.result[i - op->n_src]];
        if (is_new)
            aim(&p->blocks, whole, at, out);
        else
            move(&p->blocks, whole, at, out);
    }
}

/* What is in slots is dense. */
static void aim_slots(pass *p) {
    const wk_op *const op = p->op;
    const wk_view *const block = &p->registers[0];
    const wick_shape shape = wick_shape_of(block->rank, block->extent);
    for (int k = 0; k < op->p.chain.n_steps; k++) {
        wk_view *const slot = &p->registers[op->n_src + k];
        uint64_t bytes;
        if (p->slot_of[k] == NO_SLOT) continue;
        (void)wk_view_dense((wick_dtype)op->p.chain.step[k].dtype, &shape, slot, &bytes);
        slot->buf = &p->slots[p->slot_of[k]];
    }
}

/* The floats of a step that its kernel may take as one row. */
static int64_t row_of_step(const wk_cpu_kernel *kernel, const wk_op *step) {
    const int64_t n = wk_view_count(&step->view[0]);
    for (int i = 0; i < 1 + step->n_src; i++) {
        const wk_view *const view = &step->view[i];
        if (view->dtype != WICK_F32 || !wk_view_is_dense(view) || wk_view_count(view) != n)
            return 0;
    }
    return kernel->row ? n : 0;
}

/* The kernels of the steps are those that the block's ops would have. */
static void find_kernels(pass *p) {
    for (int k = 0; k < p->op->p.chain.n_steps; k++) {
        wk_chain_op(p->op, k, p->registers, &p->step);
        const wk_cpu_kernel *const kernel = wk_cpu_find_kernel(&p->step, p->features);
        assert(kernel && kernel->n_phases == 1 && !kernel->scratch_bytes);
        assert(!kernel->worker_bytes || kernel->worker_bytes(&p->step) == 0);
        p->kernels[k] = kernel;
        p->row[k] = row_of_step(kernel, &p->step);
    }
}

/* A step is run as a row where it may be: what a kernel does before its first element would take as
 * long as hundreds of them. */
static void run_step(pass *p, const wk_cpu_run *run, int k) {
    wk_op *const step = &p->step;
    wk_chain_op(p->op, k, p->registers, step);
    const wk_cpu_kernel *const kernel = p->kernels[k];
    if (p->row[k] > 0) {
        const float *x[2] = {NULL, NULL};
        for (int i = 0; i < step->n_src; i++) x[i] = wk_view_data(wk_src(step, i));
        kernel->row(step, wk_view_data(wk_dst(step, 0)), x, p->row[k]);
        return;
    }
    const wk_cpu_run of_step = {.op = step, .fault = run->fault};
    kernel->run(&of_step, 0, 0, kernel->items(step, 0));
}

static void run_block(pass *p, const wk_cpu_run *run, int64_t index) {
    const origin at = origin_of(&p->blocks, wk_src(p->op, 0), index);
    const bool is_new = at.length != p->length;
    aim_operands(p, &at, is_new);
    if (is_new) {
        aim_slots(p);
        find_kernels(p);
        p->length = at.length;
    }
    for (int k = 0; k < p->op->p.chain.n_steps; k++) run_step(p, run, k);
}

static void run_blocks(const wk_cpu_run *run, int64_t begin, int64_t end, uint32_t features) {
    pass p;
    begin_pass(&p, run, features);
    for (int64_t index = begin; index < end; index++) run_block(&p, run, index);
}

static int64_t items(const wk_op *op, int phase) {
    (void)phase;
    return blocks_of(op).n;
}

static bool accepts(const wk_op *op) {
    return !wk_chain_is_reduced(op) || (row_of(op) > 0 && row_of(op) <= LONGEST_ROW);
}

#define CHAIN_KERNEL(isa, features)                                                                \
    static void run_##isa(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {          \
        (void)phase;                                                                               \
        run_blocks(run, begin, end, features);                                                     \
    }                                                                                              \
    const wk_cpu_kernel wk_chain_##isa = {                                                         \
        .base.name = "chain_" #isa,                                                                \
        .base.code = WK_OP_CHAIN,                                                                  \
        .base.needs = features,                                                                    \
        .base.is_reference = (features) == 0,                                                      \
        .base.accepts = accepts,                                                                   \
        .n_phases = 1,                                                                             \
        .items = items,                                                                            \
        .worker_bytes = worker_bytes,                                                              \
        .run = run_##isa,                                                                          \
    };

CHAIN_KERNEL(ref, 0)
CHAIN_KERNEL(avx2, WK_CPU_AVX2)
CHAIN_KERNEL(avx512, WK_CPU_AVX512)
CHAIN_KERNEL(neon, WK_CPU_NEON)
CHAIN_KERNEL(wasm, WK_CPU_SIMD128)
