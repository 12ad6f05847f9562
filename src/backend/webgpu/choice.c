/* backend/webgpu/choice.c: the table of all kernels, and the choice of one for an op on a device:
 * which are disabled there, and which of its tunings a kernel takes.
 *
 * Tunings give the same bits, so their choice is a lookup: by the kernel and the class of the op.
 */
#include "backend/webgpu/choice.h"

#include "backend/webgpu/webgpu_state.h"
#include "core/compiler.h"

#include <assert.h>
#include <string.h>

static const wk_webgpu_kernel *const kernels[] = {
#define WK_WEBGPU_KERNEL(symbol) &symbol,
#include "backend/webgpu/kernels/kernels.def"
#undef WK_WEBGPU_KERNEL
    &wk_webgpu_custom,
};

wick_status wk_choices_open(wk_backend_device *dev, wick_error *err) {
    dev->choices = wk_alloc_array(dev->heap, WK_COUNT(kernels), sizeof *dev->choices);
    if (!dev->choices)
        return wk_fail_memory(err, sizeof kernels / sizeof *kernels * sizeof *dev->choices,
                              "the choice of kernels");
    const bool is_processor = dev->adapter.type == WICK_ADAPTER_SOFTWARE && !dev->desc.as_gpu;
    for (size_t i = 0; i < WK_COUNT(kernels); i++) {
        wk_choice *const choice = &dev->choices[i];
        choice->kernel = kernels[i];
        if (is_processor) choice->usual_tuning = kernels[i]->processor_tuning;
        memset(choice->tuning, choice->usual_tuning, sizeof choice->tuning);
    }
    dev->n_choices = WK_COUNT(kernels);
    return WICK_OK;
}

void wk_choices_release(wk_backend_device *dev) {
    wk_free(dev->heap, dev->choices, dev->n_choices * sizeof *dev->choices);
    dev->choices = NULL;
    dev->n_choices = 0;
}

/* --- Kernels --- */

static bool can_run(const wk_backend_device *dev, const wk_choice *choice) {
    return !choice->is_disabled && !choice->is_refused &&
           (choice->kernel->base.needs & ~dev->features) == 0;
}

static bool may_run(const wk_backend_device *dev, const wk_choice *choice, const wk_op *op) {
    return can_run(dev, choice) && wk_kernel_takes(&choice->kernel->base, op);
}

const wk_webgpu_kernel *wk_choice_find(const wk_backend_device *dev, const wk_op *op) {
    for (size_t i = 0; i < dev->n_choices; i++)
        if (may_run(dev, &dev->choices[i], op)) return dev->choices[i].kernel;
    return NULL;
}

const wk_webgpu_kernel *wk_choice_find_joint(const wk_backend_device *dev, wk_opcode code,
                                             const wk_op *ops) {
    for (size_t i = 0; i < dev->n_choices; i++) {
        const wk_kernel *const kernel = &dev->choices[i].kernel->base;
        if (kernel->code == code && can_run(dev, &dev->choices[i]) &&
            (!kernel->is_fast || wk_op_allows_fast(ops)) && kernel->accepts(ops))
            return dev->choices[i].kernel;
    }
    return NULL;
}

wk_choice *wk_choice_of(const wk_backend_device *dev, const wk_kernel *kernel) {
    for (size_t i = 0; i < dev->n_choices; i++)
        if (&dev->choices[i].kernel->base == kernel) return &dev->choices[i];
    return NULL;
}

/* --- Tunings --- */

uint32_t wk_choice_tunings(const wk_webgpu_kernel *kernel) {
    return kernel->base.n_tunings > 0 ? kernel->base.n_tunings : 1;
}

uint32_t wk_choice_tuning(const wk_backend_device *dev, const wk_webgpu_kernel *kernel,
                          const wk_op *op) {
    if (wk_opcode_ops(kernel->base.code) > 1) { /* the first op's, of the same form */
        const wk_webgpu_kernel *const first = wk_choice_find(dev, op);
        return first ? wk_choice_tuning(dev, first, op) : 0;
    }
    if (kernel->base.n_tunings == 0) return 0;
    if (dev->is_tuning_given) return dev->given_tuning % kernel->base.n_tunings;
    const wk_choice *const choice = wk_choice_of(dev, &kernel->base);
    assert(op->code == kernel->base.code);
    const wk_op_class c = wk_op_class_of(op);
    return choice ? choice->tuning[c.rows][c.layout] : 0;
}
