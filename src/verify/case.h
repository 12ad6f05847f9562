/* verify/case.h: one random op with its memory, as the files of verify/ hand it on to each other.
 *
 * Made in two steps: wk_case_describe chooses code, dtypes, shapes, strides and parameters, which
 * is all that a kernel may look at to accept the op; wk_case_fill then gives the operands memory.
 */
#ifndef WK_VERIFY_CASE_H
#define WK_VERIFY_CASE_H

#include "core/alloc.h"
#include "core/rng.h"
#include "verify/verify.h"

#include <wick/verify.h>

/* Which floats the operands hold. */
typedef enum wk_case_values {
    WK_VALUES_PLAIN,
    WK_VALUES_SPECIAL,    /* and zeros of both signs, subnormals, tiny and large ones */
    WK_VALUES_NOT_FINITE, /* and infinities and NaN, for ops that define what comes of them */
} wk_case_values;

/* Memory of one operand and its copies, each of size bytes. Bytes outside elements are poison. */
typedef struct wk_case_memory {
    unsigned char *live;     /* what kernels work on */
    unsigned char *initial;  /* before anything ran */
    unsigned char *expected; /* after the reference */
    unsigned char *first;    /* after the kernel's first run */
    unsigned char *flushed;  /* after the reference, with zeros for subnormal numbers */
    size_t size;
} wk_case_memory;

/* Must not move: the op's views point to its buffers. */
typedef struct wk_case {
    wk_op op;
    wk_rng rng;
    bool is_wild;       /* layouts that few kernels take */
    bool has_bad_index; /* an index may be out of range: only the fault counts */
    wk_case_values values;
    /* Of an op with a batch descriptor: the operand whose first dimension the sequences share out,
     * caches in blocks or states in slots. */
    int places;
    bool has_states;
    wk_buffer buffer[WK_MAX_OPERANDS]; /* of view i, unless it is view 0 in place */
    wk_case_memory memory[WK_MAX_OPERANDS];
} wk_case;

/* Uniform in [0, n). */
static inline int64_t wk_case_below(wk_case *c, int64_t n) { return wk_rng_below(&c->rng, n); }
static inline bool wk_case_chance(wk_case *c, int percent) {
    return wk_case_below(c, 100) < percent;
}
/* Uniform in [-1, 1). */
static inline double wk_case_signed(wk_case *c) { return 2 * (double)wk_rng_uniform(&c->rng) - 1; }

/* The seed of the next case of a run. */
uint64_t wk_case_next_seed(uint64_t seed);

/* cases.c: an op of this code that wk_op_check lets through once it is filled. fast: whether
 * activations may be quantized. */
void wk_case_describe(wk_case *c, uint64_t seed, wk_opcode code, bool fast);
/* The same for an operand of a case that is put together by hand: dense. */
wk_view *wk_case_dense(wk_case *c, int i, wick_dtype dtype, int rank, const int64_t *extent);

/* case_batch.c: chooses the layout of a batch descriptor of n_rows rows, and writes its words. */
void wk_case_plan_batch(wk_case *c, wk_batch_layout *layout, int64_t n_rows);
/* words: n_words of poison. */
void wk_case_fill_batch(wk_case *c, const wk_batch_layout *layout, uint32_t *words);

/* case_chain.c: the chain of a case: its steps, operands and results. */
void wk_case_describe_chain(wk_case *c);

/* case_memory.c */
wick_status wk_case_fill(wk_case *c, wk_heap *heap, wick_error *err);
/* Gives the memory back. */
void wk_case_release(wk_case *c, wk_heap *heap);
/* live = initial. */
void wk_case_reset(wk_case *c);
/* Replaces subnormal f32 and bf16 by zeros in the live memory of the operands that are read. */
void wk_case_flush(wk_case *c);
/* NULL where every byte outside the elements of the destinations is as it was, else the name of an
 * operand that was written to. */
const char *wk_case_find_damage(const wk_case *c);

/* bounds.c: what the result may differ by, element by element. */
typedef struct wk_bounds {
    wk_tolerance tolerance;
    double largest;   /* magnitude in the destination */
    double *elements; /* [count], or NULL: the tolerance alone */
    int64_t count;
} wk_bounds;

/* expected: destination i as the reference gave it. */
wick_status wk_bounds_make(const wk_case *c, const wk_kernel *kernel, const wk_view *expected,
                           wk_heap *heap, wk_bounds *out);
void wk_bounds_release(wk_bounds *bounds, wk_heap *heap);
double wk_bounds_at(const wk_bounds *bounds, int64_t element, double want);

/* oracle.c: cpu/ref, by a CPU device that has no features. */
typedef struct wk_oracle {
    const wk_backend *backend;
    wk_backend_device *device;
} wk_oracle;

wick_status wk_oracle_open(wk_oracle *oracle, wk_heap *heap);
void wk_oracle_close(wk_oracle *oracle); /* also of zeros */
/* NULL: it does not know such an op. */
const wk_kernel *wk_oracle_find(const wk_oracle *oracle, const wk_op *op);
/* Computes the op, which wk_oracle_find has found a kernel for, in host memory. */
wick_status wk_oracle_run(const wk_oracle *oracle, const wk_op *op, wk_kernel_run *out);

/* bench_ops.c: an op as models have it, whose buffers have no memory yet. */
typedef struct wk_bench_sizes {
    int64_t m, n, k; /* rows, their elements (of a head), inner size of products or keys */
    int64_t heads, key_heads;
} wk_bench_sizes;
/* Of LINEAR without the weight. */
void wk_bench_describe(wk_case *c, wk_opcode code, const wk_bench_sizes *sizes);

/* How wide the rows of an op are in a model. */
typedef enum wk_bench_width {
    WK_WIDTH_NONE, /* it is not timed on its own on a device */
    WK_WIDTH_EMBD,
    WK_WIDTH_FF,
    WK_WIDTH_HEAD,
    WK_WIDTH_MATRIX,
    WK_WIDTH_WEIGHT, /* as wide as the model's weights */
} wk_bench_width;

/* Typical sizes of an op: those of a model of 135 million parameters, and its width in others. */
typedef struct wk_bench_kind {
    const wk_bench_sizes *typical;
    size_t n_typical;
    wk_bench_width width;
} wk_bench_kind;
const wk_bench_kind *wk_bench_kind_of(wk_opcode code);
/* n_rows: of a batch. Not for a width of NONE or WEIGHT. */
wk_bench_sizes wk_bench_of_model(wk_opcode code, const wick_kernel_sizes *model, int64_t n_rows);

/* run_device.c: runs a kernel by a device, in memory of its own that begins as the live memory is,
 * and is copied back. */
typedef struct wk_case_manner {
    /* All operands in one buffer, and the op replayed by a plan where there are such; else each in
     * a buffer of its own, and the op encoded. */
    bool is_other;
    uint32_t tuning; /* where there are several */
} wk_case_manner;
typedef struct wk_case_job wk_case_job;
/* Uploads the operands. Everything given must stay; *out is to be ended, also on failure. */
wick_status wk_case_job_begin(wk_case *c, const wk_verify_subject *subject, wk_case_manner manner,
                              wk_heap *heap, wk_case_job **out, wick_error *err);
/* Never blocks: WICK_PENDING until the live memory is what the device made of it. */
wick_status wk_case_job_step(wk_case_job *job);
/* NULL is allowed. */
void wk_case_job_end(wk_case_job *job, wk_kernel_run *out);

#endif
