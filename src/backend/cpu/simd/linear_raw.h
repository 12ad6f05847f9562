/* simd/linear_raw.h: linear and linear_experts over weights that lie as in their file, such as
 * those of wick_model_desc.low_memory.
 *
 * A worker lays a few panels out in its own scratch memory, and the kernel for panels multiplies
 * them as if they were a weight of few rows. With panels of 16 rows, two of them at once:
 *
 *     file      row 0 | row 1 | ... | row 31 | row 32 | ...      raw blocks
 *     scratch   panel of rows 0 to 15, panel of rows 16 to 31
 *     op        y[:, 0 to 31] = x weight[0 to 31, :]^T
 *
 * So the results have the bits that they have with panels. Sorting by expert and packing x are left
 * to the kernel for panels, too. */
#ifndef WK_SIMD_LINEAR_RAW_H
#define WK_SIMD_LINEAR_RAW_H

#include "backend/cpu/simd/linear_groups.h"

#include "core/dtype.h"

#include <assert.h>

/* Of the panels that are laid out at once, so that they stay in a core's cache. */
enum { RAW_BYTES = 256 << 10 };

/* Which kernels for panels multiply. */
typedef struct raw_form {
    uint32_t features;
    bool is_fast;
} raw_form;

/* The op with its weight in panels, whose memory is still that of the raw blocks, and the kernel
 * for it; NULL: there is none. */
typedef struct raw_product {
    wk_op op;
    const wk_cpu_kernel *kernel;
} raw_product;

static inline raw_product raw_find(const raw_form *form, const wk_op *op) {
    raw_product product = {.op = *op};
    wk_view *const w = &product.op.view[op->n_dst + 1];
    if (w->layout != WK_LAYOUT_RAW || !wk_view_is_dense(w)) return product;
    const wk_layout layout =
        wk_layout_of_panels(w->dtype, w->extent[w->rank - 2], w->extent[w->rank - 1]);
    if (layout == WK_LAYOUT_RAW) return product;
    w->layout = (uint8_t)layout;
    product.op.p.linear.fast &= form->is_fast;
    const wk_cpu_kernel *const kernel = wk_cpu_find_kernel(&product.op, form->features);
    const bool is_fit =
        kernel != NULL && !kernel->base.is_reference && kernel->base.is_fast == form->is_fast;
    product.kernel = is_fit ? kernel : NULL;
    return product;
}

static inline int64_t raw_panel_bytes(const raw_product *product) {
    return wk_panel_bytes((wk_layout)wk_src(&product->op, 1)->layout, linear_k(&product->op));
}

/* Panels that are laid out at once. */
static inline int64_t raw_step(const raw_product *product) {
    const int64_t grain = product->kernel->grain(&product->op, LINEAR_MULTIPLY);
    const int64_t fits = RAW_BYTES / (raw_panel_bytes(product) + 1) / grain * grain;
    const int64_t all = (linear_panels(&product->op) + grain - 1) / grain * grain;
    return fits < grain ? grain : fits < all ? fits : all;
}

/* Of a worker's scratch memory what the kernel for panels has; the panels follow. */
static inline uint64_t raw_inner_bytes(const raw_product *product) {
    const uint64_t bytes =
        product->kernel->worker_bytes ? product->kernel->worker_bytes(&product->op) : 0;
    return (bytes + WK_ALIGNMENT - 1) / WK_ALIGNMENT * WK_ALIGNMENT;
}

/* Of the rows of one weight, for the columns of y that these panels are. */
typedef struct raw_panels {
    int64_t group, expert, begin, end;
} raw_panels;

/* view: whose last dimension are columns of y. */
static inline void raw_narrow(const wk_view *from, int64_t first, int64_t n, wk_view *view) {
    view->offset = from->offset + (uint64_t)first * sizeof(float);
    view->extent[view->rank - 1] = n;
}

static inline void raw_multiply(raw_product *product, const wk_cpu_run *run,
                                const raw_panels *panels) {
    wk_op *const op = &product->op;
    const wk_view *const from = wk_src(run->op, 1);
    wk_view *const w = &op->view[op->n_dst + 1], *const bias = &op->view[op->n_dst + 2];
    const int64_t n = from->extent[from->rank - 2], k = linear_k(op);
    const int64_t first = panels->begin * WK_PANEL_ROWS, end = panels->end * WK_PANEL_ROWS;
    const int64_t n_rows = (end < n ? end : n) - first;
    assert(panels->begin < panels->end && first < n);
    const wk_dtype_info *const info = wk_dtype_get(from->dtype);
    const int64_t row_bytes = k / info->block_elements * info->block_bytes;
    const uint8_t *const rows =
        (const uint8_t *)wk_view_data(from) + (panels->expert * n + first) * row_bytes;

    wk_buffer memory = {.data = (uint8_t *)run->worker_scratch + raw_inner_bytes(product)};
    wk_layout_store((wk_layout)w->layout, w->dtype, n_rows, k, 0, n_rows, rows, memory.data);
    w->buf = &memory;
    w->offset = 0;
    w->extent[w->rank - 2] = n_rows;
    raw_narrow(wk_dst(run->op, 0), first, n_rows, &op->view[0]);
    if (bias->buf != NULL) raw_narrow(wk_src(run->op, 2), first, n_rows, bias);

    wk_cpu_run inner = *run;
    inner.op = op;
    inner.first_expert = panels->expert;
    const int64_t item = panels->group * linear_group_items(op);
    product->kernel->run(&inner, LINEAR_MULTIPLY, item, item + panels->end - panels->begin);
}

static inline void raw_run(const raw_form *form, const wk_cpu_run *run, int phase, int64_t begin,
                           int64_t end) {
    raw_product product = raw_find(form, run->op);
    assert(product.kernel != NULL);
    if (phase != LINEAR_MULTIPLY) {
        wk_cpu_run inner = *run;
        inner.op = &product.op;
        product.kernel->run(&inner, phase, begin, end);
        return;
    }
    const linear_index index = linear_index_in(run->op, run->scratch);
    const int64_t step = raw_step(&product);
    while (begin < end) {
        const linear_span span = linear_span_at(run->op, begin, end);
        begin = span.next;
        raw_panels panels = {.group = span.group};
        if (linear_has_experts(run->op)) {
            if (span.group >= *index.n_groups) continue;
            panels.expert = index.experts[span.group];
        }
        for (panels.begin = span.begin; panels.begin < span.end; panels.begin = panels.end) {
            panels.end = span.end - panels.begin < step ? span.end : panels.begin + step;
            raw_multiply(&product, run, &panels);
        }
    }
}

static inline uint64_t raw_scratch_bytes(const raw_form *form, const wk_op *op) {
    const raw_product product = raw_find(form, op);
    return product.kernel->scratch_bytes ? product.kernel->scratch_bytes(&product.op) : 0;
}

static inline uint64_t raw_worker_bytes(const raw_form *form, const wk_op *op) {
    const raw_product product = raw_find(form, op);
    return raw_inner_bytes(&product) + (uint64_t)(raw_step(&product) * raw_panel_bytes(&product));
}

#define RAW_KERNEL_OF(opcode, operation, type, isa_needs, fast)                                    \
    const wk_cpu_kernel wk_##operation##_##type = {                                                \
        .base = {.name = #operation "_" #type,                                                     \
                 .code = opcode,                                                                   \
                 .needs = isa_needs,                                                               \
                 .is_fast = fast,                                                                  \
                 .accepts = accepts_##type},                                                       \
        .n_phases = LINEAR_PHASES,                                                                 \
        .items = items_##type,                                                                     \
        .grain = grain_##type,                                                                     \
        .scratch_bytes = scratch_bytes_##type,                                                     \
        .worker_bytes = worker_bytes_##type,                                                       \
        .run = run_##type,                                                                         \
    };
/* type: raw_avx2 or the like, the end of the kernels' names; isa_needs: WK_CPU_* features. */
#define RAW_KERNEL(type, isa_needs, fast)                                                          \
    static const raw_form form_##type = {.features = isa_needs, .is_fast = fast};                  \
    static bool accepts_##type(const wk_op *op) {                                                  \
        return raw_find(&form_##type, op).kernel != NULL;                                          \
    }                                                                                              \
    static int64_t items_##type(const wk_op *op, int phase) {                                      \
        const raw_product product = raw_find(&form_##type, op);                                    \
        return product.kernel->items(&product.op, phase);                                          \
    }                                                                                              \
    static int64_t grain_##type(const wk_op *op, int phase) {                                      \
        const raw_product product = raw_find(&form_##type, op);                                    \
        return product.kernel->grain(&product.op, phase);                                          \
    }                                                                                              \
    static uint64_t scratch_bytes_##type(const wk_op *op) {                                        \
        return raw_scratch_bytes(&form_##type, op);                                                \
    }                                                                                              \
    static uint64_t worker_bytes_##type(const wk_op *op) {                                         \
        return raw_worker_bytes(&form_##type, op);                                                 \
    }                                                                                              \
    static void run_##type(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {         \
        raw_run(&form_##type, run, phase, begin, end);                                             \
    }                                                                                              \
    RAW_KERNEL_OF(WK_OP_LINEAR, linear, type, isa_needs, fast)                                     \
    RAW_KERNEL_OF(WK_OP_LINEAR_EXPERTS, linear_experts, type, isa_needs, fast)

#endif
