/* backend/cpu/cpu_kernel.h: what a CPU kernel is, and the list of them.
 *
 * A kernel is chosen by walking the architecture's list (kernels_x86.def, kernels_arm.def,
 * kernels_wasm.def) and then kernels.def (ref) from the top: the first one whose needs the
 * processor (and the mask) has and that accepts the op. */
#ifndef WK_BACKEND_CPU_KERNEL_H
#define WK_BACKEND_CPU_KERNEL_H

#include "backend/backend.h"
#include "core/compiler.h"

#include <stdatomic.h>

/* One op being run, as a worker sees it. */
typedef struct wk_cpu_run {
    const wk_op *op;
    void *scratch;        /* scratch_bytes(op), shared by all workers and phases, aligned to 64 */
    void *worker_scratch; /* worker_bytes(op), this worker's own, aligned to 64 */
    atomic_bool *fault;   /* set with wk_cpu_fault when an index is out of range */
    int64_t first_expert; /* whose weight lies first in the op's: 0, but see simd/linear_raw.h */
} wk_cpu_run;

typedef struct wk_cpu_kernel {
    wk_kernel base; /* needs: WK_CPU_* */
    /* Phases run one after another; the items of one phase in any order, on any thread, in ranges
     * whose length is a multiple of grain (the last one excepted). */
    int n_phases;
    int64_t (*items)(const wk_op *op, int phase);
    int64_t (*grain)(const wk_op *op, int phase); /* NULL: 1 */
    /* NULL: none. Of 64 bits, so that none overflows, also where there is less memory. */
    uint64_t (*scratch_bytes)(const wk_op *op);
    uint64_t (*worker_bytes)(const wk_op *op);
    void (*run)(const wk_cpu_run *run, int phase, int64_t begin, int64_t end);
    /* Elementwise ops: the same bits for n floats side by side; of op only the parameters count.
     * NULL: there is none. */
    void (*row)(const wk_op *op, float *y, const float *const x[2], int64_t n);
} wk_cpu_kernel;

/* Kernels of another architecture are declared here but neither built nor in the table. */
#define WK_CPU_KERNEL(symbol) extern const wk_cpu_kernel symbol;
#include "backend/cpu/kernels_arm.def"
#include "backend/cpu/kernels_wasm.def"
#include "backend/cpu/kernels_x86.def"
#include "backend/cpu/kernels.def"
#undef WK_CPU_KERNEL

/* cpu_command.c: marks the op's indices as out of range; any thread. */
void wk_cpu_fault(const wk_cpu_run *run);

/* dispatch.c: NULL when no kernel accepts. features: WK_CPU_* bits that may be used. Kernels marked
 * is_fast are taken for ops that allow it only (wk_op_allows_fast). */
const wk_cpu_kernel *wk_cpu_find_kernel(const wk_op *op, uint32_t features);

/* The same for a device, whose features do not change: each opcode's kernels side by side. */
enum { WK_CPU_KERNELS = 512 };
typedef struct wk_cpu_table {
    uint16_t first[WK_OP_COUNT_ + 1];
    const wk_cpu_kernel *kernels[WK_CPU_KERNELS];
} wk_cpu_table;
void wk_cpu_table_make(wk_cpu_table *table, uint32_t features);
const wk_cpu_kernel *wk_cpu_table_find(const wk_cpu_table *table, const wk_op *op);

/* Every kernel of this architecture: index counts up from 0; NULL at the end. */
const wk_cpu_kernel *wk_cpu_kernel_at(size_t index);

/* The layout that the fastest kernel for these features reads; RAW where there are none. */
wk_layout wk_cpu_weight_layout(uint32_t features, wick_dtype dtype, int64_t n, int64_t k,
                               uint32_t uses);

/* Loops that do nothing but multiply and add, as fast as an instruction set can; for cpu_measure.c.
 * What they return is there to keep the compiler from dropping them. */
typedef struct wk_cpu_peak {
    uint32_t needs;
    int64_t integer_ops, f32_ops; /* of one round: a product and a sum are two */
    int32_t (*integer)(int64_t n_rounds);
    float (*f32)(int64_t n_rounds);
} wk_cpu_peak;

/* x86/: asked for through wk_cpu_find_peak. */
extern const wk_cpu_peak wk_peak_avx2, wk_peak_avx512;

/* dispatch.c: NULL where there is none. */
const wk_cpu_peak *wk_cpu_find_peak(uint32_t features);

#endif
