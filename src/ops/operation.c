/* ops/operation.c: operations of the user's: their checks, their results, and which of their two
 * ways is taken. */
#include "ops/operation.h"

#include "core/shape.h"
#include "ops/operand.h"

#include <wick/ops.h>

#include <string.h>

enum { UNSET = -1 }; /* the rank of an output before infer */

/* --- Making --- */

static wick_status check_kernel(const wick_operation_desc *desc, const char *name,
                                wick_error *err) {
    const wick_kernel_desc *const kernel = &desc->kernel->desc;
    if (!desc->launch)
        return wk_fail(err, WICK_ERR_VALUE, "operation %s: its kernel needs launch", name);
    bool fits = kernel->n_buffers == desc->n_outputs + desc->n_inputs;
    for (int i = 0; fits && i < kernel->n_buffers; i++)
        fits = (kernel->access[i] == WICK_KERNEL_READ_WRITE) == (i < desc->n_outputs);
    if (fits) return WICK_OK;
    return wk_fail(err, WICK_ERR_VALUE,
                   "operation %s: the buffers of its kernel are %d outputs (READ_WRITE), then %d "
                   "inputs (READ)",
                   name, desc->n_outputs, desc->n_inputs);
}

static wick_status check_desc(const wick_operation_desc *desc, const char *name, wick_error *err) {
    if (desc->n_inputs < 1 || desc->n_outputs < 1 || desc->n_inputs > WICK_KERNEL_MAX_BUFFERS ||
        desc->n_outputs > WICK_KERNEL_MAX_BUFFERS - desc->n_inputs)
        return wk_fail(err, WICK_ERR_VALUE,
                       "operation %s: %d inputs and %d outputs, one of each or more and %d in all "
                       "are possible",
                       name, desc->n_inputs, desc->n_outputs, WICK_KERNEL_MAX_BUFFERS);
    if (!desc->infer) return wk_fail(err, WICK_ERR_VALUE, "operation %s: infer is NULL", name);
    if (!desc->compute && !desc->kernel)
        return wk_fail(err, WICK_ERR_VALUE, "operation %s has neither compute nor kernel", name);
    if (desc->gradient && desc->n_outputs > 1)
        return wk_fail(err, WICK_ERR_VALUE,
                       "operation %s: gradients of %d outputs, one is possible", name,
                       desc->n_outputs);
    return desc->kernel ? check_kernel(desc, name, err) : WICK_OK;
}

wick_status wick_operation_make(wick_device *device, const wick_operation_desc *desc,
                                wick_operation **operation, wick_error *error) {
    if (!operation) return wk_fail(error, WICK_ERR_ARGUMENT, "an operation needs a place to go");
    *operation = NULL;
    if (!device || !desc || !desc->name)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_operation_make: %s is NULL",
                       !device ? "device"
                       : !desc ? "desc"
                               : "name");
    const wk_shown name = wk_str_show(wk_str_of(desc->name));
    WK_TRY(check_desc(desc, name.text, error));
    const size_t size = strlen(name.text) + 1, bytes = sizeof(wick_operation) + size;
    wick_operation *const made = wk_alloc(wk_device_heap(device), bytes);
    if (!made) return wk_fail_memory(error, bytes, "an operation");
    *made = (wick_operation){.device = device, .refs = 1, .desc = *desc, .bytes = bytes};
    made->desc.name = memcpy(made->name, name.text, size);
    if (desc->kernel) desc->kernel->refs++;
    *operation = made;
    return WICK_OK;
}

void wick_operation_release(wick_operation *operation) {
    if (operation) wk_operation_release(operation);
}

/* --- Running --- */

typedef struct run {
    wick_operation *operation;
    const wick_operation_desc *desc;
    wick_tensor *tensors[WICK_KERNEL_MAX_BUFFERS]; /* outputs, then inputs */
    wick_host_view views[WICK_KERNEL_MAX_BUFFERS]; /* theirs */
} run;

static wick_status fail(const run *r, wick_status status, const wick_error *reason) {
    return wk_device_fail(r->operation->device, status < 0 ? status : WICK_ERR_INTERNAL, "%s: %s",
                          r->desc->name,
                          reason->message[0] ? reason->message : wick_status_text(status));
}

static bool check_inputs(const run *r, wick_tensor *const *inputs) {
    const wick_operation_desc *const desc = r->desc;
    for (int i = 0; i < desc->n_inputs; i++) {
        if (!inputs[i]) {
            wk_device_fail(r->operation->device, WICK_ERR_ARGUMENT, "%s: input %d is NULL",
                           desc->name, i);
            return false;
        }
        if (inputs[i]->device != r->operation->device) {
            wk_device_fail(r->operation->device, WICK_ERR_ARGUMENT,
                           "%s: input %d belongs to another device", desc->name, i);
            return false;
        }
        if (!wk_operand_is_scalars(desc->name, inputs[i])) return false;
    }
    return true;
}

/* False: failed. */
static bool make_outputs(run *r) {
    wick_error reason = {.status = WICK_OK};
    const wick_operation_desc *const desc = r->desc;
    for (int i = 0; i < desc->n_outputs; i++) r->views[i].shape.rank = UNSET;
    const wick_status status =
        desc->infer(desc->user, r->views + desc->n_outputs, r->views, &reason);
    if (status != WICK_OK) {
        (void)fail(r, status, &reason);
        return false;
    }
    for (int i = 0; i < desc->n_outputs; i++) {
        if (r->views[i].shape.rank == UNSET) {
            wk_device_fail(r->operation->device, WICK_ERR_SHAPE,
                           "%s: infer did not set the shape of output %d", desc->name, i);
            return false;
        }
        if (!wk_dtype_is_writable(desc->name, r->operation->device, r->views[i].dtype))
            return false;
        r->tensors[i] = wick_empty(r->operation->device, r->views[i].dtype, r->views[i].shape);
        if (!r->tensors[i]) return false;
    }
    return true;
}

static wick_status run_kernel(const run *r) {
    const wick_operation_desc *const desc = r->desc;
    uint32_t workgroups[3] = {0};
    unsigned char uniform[WICK_KERNEL_MAX_UNIFORM_BYTES] = {0};
    wick_error reason = {.status = WICK_OK};
    const wick_status status = desc->launch(desc->user, r->views + desc->n_outputs, r->views,
                                            workgroups, uniform, &reason);
    if (status != WICK_OK) return fail(r, status, &reason);
    const uint32_t bytes = desc->kernel->desc.uniform_bytes;
    return wk_kernel_run(desc->kernel, r->operation, r->tensors, desc->n_outputs + desc->n_inputs,
                         workgroups, bytes > 0 ? uniform : NULL, bytes);
}

static wick_status queue_function(run *r) {
    const wick_operation_desc *const desc = r->desc;
    wk_custom_run *const params = wk_operation_run_new(r->operation);
    if (!params) return WICK_ERR_OUT_OF_MEMORY;
    wk_call call = {.op = {.code = WK_OP_CUSTOM,
                           .name = desc->name,
                           .n_dst = (uint8_t)desc->n_outputs,
                           .n_src = (uint8_t)desc->n_inputs,
                           .p.custom = params}};
    wick_status status = WICK_OK;
    for (int i = 0; i < desc->n_outputs + desc->n_inputs && status == WICK_OK; i++) {
        if (i >= desc->n_outputs) r->tensors[i] = wick_contiguous(r->tensors[i]);
        call.operand[i] = r->tensors[i];
        if (r->tensors[i])
            call.op.view[i] = r->tensors[i]->view;
        else
            status = WICK_ERR_OUT_OF_MEMORY;
    }
    if (status == WICK_OK) status = wk_call_queue(r->operation->device, &call);
    wk_custom_run_release(params);
    return status;
}

static wick_status compute(run *r) {
    const wick_operation_desc *const desc = r->desc;
    bool is_empty = true;
    for (int i = 0; i < desc->n_outputs; i++)
        if (!wk_tensor_is_empty(r->tensors[i])) is_empty = false;
    if (is_empty) return WICK_OK;
    const wick_device *const device = r->operation->device;
    if (desc->kernel && desc->kernel->device == device) return run_kernel(r);
    if (desc->compute) return queue_function(r);
    return wk_device_fail(r->operation->device, WICK_ERR_UNSUPPORTED,
                          "%s: its kernel is of another device, and there is no compute",
                          desc->name);
}

wick_status wick_operation_run(wick_operation *operation, wick_tensor *const *inputs,
                               wick_tensor **outputs) {
    if (!operation) {
        if (outputs) outputs[0] = NULL; /* there is one at least */
        return WICK_ERR_ARGUMENT;
    }
    run r = {.operation = operation, .desc = &operation->desc};
    const int n_outputs = r.desc->n_outputs;
    for (int i = 0; outputs && i < n_outputs; i++) outputs[i] = NULL;
    if (!inputs || !outputs)
        return wk_device_fail(operation->device, WICK_ERR_ARGUMENT, "%s: %s is NULL", r.desc->name,
                              inputs ? "outputs" : "inputs");
    if (!check_inputs(&r, inputs)) return wk_device_err(operation->device)->status;
    for (int i = 0; i < r.desc->n_inputs; i++) {
        r.tensors[n_outputs + i] = inputs[i];
        r.views[n_outputs + i] = wk_host_view_of(&inputs[i]->view);
    }
    const wick_scope scope = wick_scope_begin(operation->device);
    wick_status status = make_outputs(&r) ? compute(&r) : wk_device_err(operation->device)->status;
    for (int i = 0; i < n_outputs && status == WICK_OK; i++)
        outputs[i] = wk_scope_keep(scope, r.tensors[i]);
    wick_scope_end(scope);
    return status;
}
