/* tensor/custom.c: see custom.h. */
#include "tensor/custom.h"

#include "tensor/device.h"

#include <assert.h>
#include <string.h>

bool wk_custom_is_supported(const wick_device *device) {
    return device->backend->custom_make != NULL;
}

/* --- Kernels --- */

/* Copies the text to *at and moves *at past the copy. */
static const char *keep_text(const char *text, char **at) {
    const size_t size = strlen(text) + 1;
    const char *const kept = memcpy(*at, text, size);
    *at += size;
    return kept;
}

/* Gives back what a device has of it, which may be a lost one. */
static void let_go(wick_kernel *kernel) {
    wick_device *const device = kernel->device;
    if (!kernel->custom) return;
    device->backend->custom_free(wk_handle_of(device, kernel->generation), kernel->custom);
    wk_handle_let_go(device, kernel->generation);
    kernel->custom = NULL;
}

static wick_status compile(wick_kernel *kernel, wick_error *err) {
    wick_device *const device = kernel->device;
    let_go(kernel);
    WK_TRY(device->backend->custom_make(device->handle, &kernel->desc, &kernel->custom, err));
    kernel->generation = device->generation;
    device->n_held++;
    return WICK_OK;
}

wick_status wk_custom_new(wick_device *device, const wick_kernel_desc *desc, wick_kernel **out,
                          wick_error *err) {
    const size_t bytes =
        sizeof(wick_kernel) + strlen(desc->source) + strlen(desc->entry) + strlen(desc->label) + 3;
    *out = NULL;
    wick_kernel *const kernel = wk_alloc(&device->heap, bytes);
    if (!kernel) return wk_fail_memory(err, bytes, "a kernel");
    *kernel = (wick_kernel){.device = device, .refs = 1, .desc = *desc, .bytes = bytes};
    char *at = kernel->texts;
    kernel->desc.source = keep_text(desc->source, &at);
    kernel->desc.entry = keep_text(desc->entry, &at);
    kernel->desc.label = keep_text(desc->label, &at);
    const wick_status status = compile(kernel, err);
    if (status == WICK_OK)
        *out = kernel;
    else
        wk_custom_release(kernel);
    return status;
}

wick_status wk_custom_poll(wick_kernel *kernel, wick_error *err) {
    wick_device *const device = kernel->device;
    if (wk_device_is_lost(device)) return wk_fail(err, WICK_ERR_DEVICE_LOST, "the device was lost");
    if (!kernel->custom || kernel->generation != device->generation) WK_TRY(compile(kernel, err));
    return device->backend->custom_poll(device->handle, kernel->custom, err);
}

void wk_custom_release(wick_kernel *kernel) {
    assert(kernel->refs > 0);
    if (--kernel->refs > 0) return;
    let_go(kernel);
    wk_free(&kernel->device->heap, kernel, kernel->bytes);
}

/* --- Runs --- */

wk_custom_run *wk_custom_run_new(wick_kernel *kernel, const uint32_t workgroups[3],
                                 const void *uniform, size_t bytes) {
    wick_device *const device = kernel->device;
    wk_custom_run *const run = wk_alloc_zeroed(&device->heap, sizeof *run);
    if (!run) {
        (void)wk_fail_memory(device->err, sizeof *run, "a kernel's run");
        return NULL;
    }
    assert(bytes <= sizeof run->uniform);
    assert(kernel->custom && kernel->generation == device->generation);
    run->kernel = kernel;
    run->custom = kernel->custom;
    run->refs = 1;
    memcpy(run->workgroups, workgroups, sizeof run->workgroups);
    run->n_words = (uint32_t)((bytes + 3) / 4);
    if (bytes > 0) memcpy(run->uniform, uniform, bytes);
    kernel->refs++;
    return run;
}

void wk_custom_run_release(wk_custom_run *run) {
    assert(run->refs > 0);
    if (--run->refs > 0) return;
    wick_kernel *const kernel = run->kernel;
    wick_operation *const operation = run->operation;
    wick_device *const device = kernel ? kernel->device : operation->device;
    wk_free(&device->heap, run, sizeof *run);
    if (kernel) wk_custom_release(kernel);
    if (operation) wk_operation_release(operation);
}

/* --- Operations --- */

wk_custom_run *wk_operation_run_new(wick_operation *operation) {
    wick_device *const device = operation->device;
    wk_custom_run *const run = wk_alloc_zeroed(&device->heap, sizeof *run);
    if (!run) {
        (void)wk_fail_memory(device->err, sizeof *run, "an operation's run");
        return NULL;
    }
    run->operation = operation;
    run->refs = 1;
    operation->refs++;
    return run;
}

void wk_operation_release(wick_operation *operation) {
    assert(operation->refs > 0);
    if (--operation->refs > 0) return;
    if (operation->desc.kernel) wk_custom_release(operation->desc.kernel);
    wk_free(&operation->device->heap, operation, operation->bytes);
}

wick_host_view wk_host_view_of(const wk_view *view) {
    return (wick_host_view){.dtype = view->dtype, .shape = wick_shape_of(view->rank, view->extent)};
}

wick_status wk_operation_compute(const wk_op *op, wick_error *err) {
    const wick_operation_desc *const desc = &op->p.custom->operation->desc;
    wick_host_view views[WK_MAX_OPERANDS];
    wick_error reason = {.status = WICK_OK};
    for (int i = 0; i < op->n_dst + op->n_src; i++) {
        views[i] = wk_host_view_of(&op->view[i]);
        views[i].data = wk_view_data(&op->view[i]);
    }
    const wick_status status = desc->compute(desc->user, views + op->n_dst, views, &reason);
    if (status == WICK_OK) return WICK_OK;
    return wk_fail(err, status < 0 ? status : WICK_ERR_INTERNAL, "%s: %s", desc->name,
                   reason.message[0] ? reason.message : wick_status_text(status));
}
