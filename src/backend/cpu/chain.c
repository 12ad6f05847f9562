/* backend/cpu/chain.c: chains of elementwise ops in one pass. Blocks of elements that stay in the
 * cache go through all steps, each by the kernel that the step's op would have on its own, so that
 * the bits are those of the ops one by one.
 *
 * A block is a part of one dimension with all that follow, of every operand alike:
 *
 *   [7, 500, 300], blocks of up to 2048 elements: [6, 300] of dimension 1, so 84 blocks for each
 *   of 7, the last of them [2, 300]
 *
 * A reduction at the end has all elements of a result in one block. */
#include "backend/cpu/cpu_kernel.h"
#include "core/dtype.h"
#include "sys/cpu_features.h"

#include <assert.h>
#include <string.h>

enum {
    BLOCK = 2048,        /* elements at most, */
    LONGEST_ROW = 16384, /* but all that a reduction makes one of */
    ELEMENT_BYTES = 8,
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

/* Of the registers of a block. */
static size_t slot_bytes(const wk_op *op) {
    const int64_t row = row_of(op);
    return (size_t)(row > BLOCK ? row : BLOCK) * ELEMENT_BYTES;
}

/* The view of block `index` of an operand. */
static void aim(const blocks *b, const wk_view *whole, int64_t index, wk_view *out) {
    if (b->dim < 0) {
        *out = *whole;
        return;
    }
    const int64_t first = index % b->per_dim * b->part, left = whole->extent[b->dim] - first;
    int64_t offset = first * whole->stride[b->dim];
    index /= b->per_dim;
    for (int d = b->dim - 1; d >= 0; d--) {
        offset += index % whole->extent[d] * whole->stride[d];
        index /= whole->extent[d];
    }
    out->buf = whole->buf;
    out->dtype = whole->dtype;
    out->layout = whole->layout;
    out->offset =
        whole->offset + (uint64_t)offset * (uint64_t)wk_dtype_get(whole->dtype)->block_bytes;
    out->rank = whole->rank - b->dim;
    memcpy(out->extent, whole->extent + b->dim, (size_t)out->rank * sizeof *out->extent);
    memcpy(out->stride, whole->stride + b->dim, (size_t)out->rank * sizeof *out->stride);
    out->extent[0] = left < b->part ? left : b->part;
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

static size_t worker_bytes(const wk_op *op) {
    int slots[WK_CHAIN_STEPS];
    return (size_t)share_slots(op, slots) * slot_bytes(op);
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
    int64_t length;                   /* of the blocks that these kernels accept, along dim */
    const wk_cpu_kernel *kernels[WK_CHAIN_STEPS];
    wk_op step;
} pass;

static void begin_pass(pass *p, const wk_cpu_run *run, uint32_t features) {
    p->op = run->op;
    p->features = features;
    p->blocks = blocks_of(run->op);
    p->length = -1;
    const int n_slots = share_slots(run->op, p->slot_of);
    const size_t size = slot_bytes(run->op);
    for (int i = 0; i < n_slots; i++)
        p->slots[i] = (wk_buffer){.size = size,
                                  .data = (unsigned char *)run->worker_scratch + (size_t)i * size};
    p->step = (wk_op){.fault_slot = 0};
}

/* What is in slots is dense. */
static void aim_registers(pass *p, int64_t index) {
    const wk_op *const op = p->op;
    const wk_view *const block = &p->registers[0];
    for (int s = 0; s < op->n_src; s++) aim(&p->blocks, wk_src(op, s), index, &p->registers[s]);
    for (int d = 0; d < op->n_dst; d++)
        aim(&p->blocks, wk_dst(op, d), index, &p->registers[op->n_src + op->p.chain.result[d]]);
    const wick_shape shape = wick_shape_of(block->rank, block->extent);
    for (int k = 0; k < op->p.chain.n_steps; k++) {
        wk_view *const slot = &p->registers[op->n_src + k];
        uint64_t bytes;
        if (p->slot_of[k] == NO_SLOT) continue;
        (void)wk_view_dense((wick_dtype)op->p.chain.step[k].dtype, &shape, slot, &bytes);
        slot->buf = &p->slots[p->slot_of[k]];
    }
}

/* Whether the kernels are those that the block's ops would have. */
static bool has_kernels(pass *p) {
    const wk_view *const block = &p->registers[0];
    const int64_t length = block->rank > 0 ? block->extent[0] : 1;
    const bool has = length == p->length;
    p->length = length;
    return has;
}

static void run_block(pass *p, const wk_cpu_run *run, int64_t index) {
    aim_registers(p, index);
    const bool is_known = has_kernels(p);
    for (int k = 0; k < p->op->p.chain.n_steps; k++) {
        wk_chain_op(p->op, k, p->registers, &p->step);
        if (!is_known) p->kernels[k] = wk_cpu_find_kernel(&p->step, p->features);
        const wk_cpu_kernel *const kernel = p->kernels[k];
        assert(kernel && kernel->n_phases == 1 && !kernel->scratch_bytes);
        assert(!kernel->worker_bytes || kernel->worker_bytes(&p->step) == 0);
        const wk_cpu_run of_step = {.op = &p->step, .fault = run->fault};
        kernel->run(&of_step, 0, 0, kernel->items(&p->step, 0));
    }
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
