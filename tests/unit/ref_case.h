/* tests/unit/ref_case.h: one op over arrays of the test, run by its reference kernel. */
#ifndef REF_CASE_H
#define REF_CASE_H

#include "backend/cpu/cpu_kernel.h"
#include "core/dtype.h"
#include "core/shape.h"

#include <stdlib.h>
#include <string.h>

/* Views point to the buffers of the case, so a case must not be copied. */
typedef struct ref_case {
    wk_buffer buffers[WK_MAX_OPERANDS];
    int n;
    wk_op op;
} ref_case;

static inline void ref_begin(ref_case *c, wk_opcode code) {
    const wk_op_info *info = wk_op_get_info(code);
    *c = (ref_case){.op = {.code = code, .n_dst = info->n_dst, .n_src = info->n_src}};
}

/* The next operand: dense, over the array data; the strides may be changed afterwards. */
static inline wk_view *ref_add(ref_case *c, void *data, size_t size, wick_dtype dtype,
                               wick_shape shape) {
    wk_buffer *buf = &c->buffers[c->n];
    *buf = (wk_buffer){.size = size, .data = data};
    wk_view *view = &c->op.view[c->n++];
    *view = (wk_view){.buf = buf, .dtype = dtype, .rank = shape.rank};
    memcpy(view->extent, shape.extent, sizeof view->extent);
    wk_shape_dense(&shape, view->stride);
    return view;
}

/* An optional operand that is not there. */
static inline void ref_skip(ref_case *c) { c->n++; }

/* Of an array whose size is known. */
#define REF_ADD(c, array, dtype, ...)                                                              \
    ref_add(c, array, sizeof(array), dtype, WICK_SHAPE(__VA_ARGS__))

/* Runs the items one by one from the last to the first, in scratch of exactly the size asked for.
 * Returns whether an index was out of range. */
static inline bool ref_run_by(ref_case *c, const wk_cpu_kernel *kernel) {
    wick_error err = {0};
    if (wk_op_check(&c->op, &err) != WICK_OK) fail_msg("%s", err.message);
    assert_non_null(kernel);
    atomic_bool fault = false;
    wk_cpu_run run = {.op = &c->op, .fault = &fault};
    if (kernel->scratch_bytes != NULL) run.scratch = malloc(kernel->scratch_bytes(&c->op));
    if (kernel->worker_bytes != NULL) run.worker_scratch = malloc(kernel->worker_bytes(&c->op));
    for (int phase = 0; phase < kernel->n_phases; phase++) {
        const int64_t n = kernel->items(&c->op, phase);
        for (int64_t i = n; i-- > 0;) kernel->run(&run, phase, i, i + 1);
    }
    free(run.scratch);
    free(run.worker_scratch);
    return atomic_load(&fault);
}

/* The same by the reference. */
static inline bool ref_run(ref_case *c) {
    const wk_cpu_kernel *kernel = wk_cpu_find_kernel(&c->op, 0);
    assert_true(kernel != NULL && kernel->base.is_reference);
    return ref_run_by(c, kernel);
}

#define ASSERT_BYTES(actual, expected) assert_memory_equal(actual, expected, sizeof(expected))

#endif
