/* web/glue/tensors/operation.c: doors to operations of the page's own. What a run's outputs are and
 * how its kernel is launched, JavaScript says as it begins the run. What a function in JavaScript
 * has computed by then comes as further inputs, one for each output. */
#include "../door.h"

#include <string.h>

/* Calls the gradient of an operation by its number; grads [n_inputs] receives its results, or NULL
 * for zero. */
HOST("gradient")
void host_gradient(uint32_t number, wick_tensor *const *inputs, wick_tensor *output,
                   wick_tensor *grad_output, wick_tensor **grads);

/* The pointer that functions are given: the operation's number and its counts. Memory
 * of its own could not be freed: nothing says when the last run of a released operation is over. */
enum { COUNT_BITS = 4, MOST = (1 << COUNT_BITS) - 1 };

static void *user_of(uint32_t number, int n_inputs, int n_outputs) {
    return (void *)(uintptr_t)((number << COUNT_BITS | (uint32_t)n_inputs) << COUNT_BITS |
                               (uint32_t)n_outputs);
}

static int n_outputs_of(const void *user) { return (int)((uintptr_t)user & MOST); }
static int n_inputs_of(const void *user) { return (int)((uintptr_t)user >> COUNT_BITS & MOST); }
static uint32_t number_of(const void *user) {
    return (uint32_t)((uintptr_t)user >> 2 * COUNT_BITS);
}

/* Of the run that is being begun. infos: of each output its dtype, its rank and its extents. */
static struct {
    const double *infos;
    const uint32_t *workgroups;
    const void *uniform;
    size_t uniform_bytes;
} begun;

static wick_status infer(void *user, const wick_host_view *inputs, wick_host_view *outputs,
                         wick_error *error) {
    (void)inputs, (void)error;
    const double *info = begun.infos;
    for (int i = 0; i < n_outputs_of(user); i++) {
        outputs[i].dtype = (wick_dtype)*info++;
        outputs[i].shape = (wick_shape){.rank = (int)*info++};
        for (int d = 0; d < outputs[i].shape.rank; d++, info++)
            if (d < WICK_MAX_RANK) outputs[i].shape.extent[d] = (int64_t)*info;
    }
    return WICK_OK;
}

static wick_status launch(void *user, const wick_host_view *inputs, const wick_host_view *outputs,
                          uint32_t workgroups[3], void *uniform, wick_error *error) {
    (void)user, (void)inputs, (void)outputs, (void)error;
    memcpy(workgroups, begun.workgroups, 3 * sizeof *workgroups);
    memcpy(uniform, begun.uniform, begun.uniform_bytes);
    return WICK_OK;
}

static size_t bytes_of(const wick_host_view *view) {
    size_t n = 1;
    switch (view->dtype) {
    case WICK_F64:
    case WICK_I64: n = 8; break;
    case WICK_F32:
    case WICK_I32:
    case WICK_U32: n = 4; break;
    case WICK_F16:
    case WICK_BF16:
    case WICK_I16: n = 2; break;
    default: break;
    }
    for (int d = 0; d < view->shape.rank; d++) n *= (size_t)view->shape.extent[d];
    return n;
}

/* The last inputs are the outputs. */
static wick_status take_values(void *user, const wick_host_view *inputs,
                               const wick_host_view *outputs, wick_error *error) {
    (void)error;
    const int n = n_outputs_of(user);
    for (int i = 0; i < n; i++)
        memcpy(outputs[i].data, inputs[n_inputs_of(user) - n + i].data, bytes_of(&outputs[i]));
    return WICK_OK;
}

static void gradient(void *user, wick_tensor *const *inputs, wick_tensor *output,
                     wick_tensor *grad_output, wick_tensor **grads) {
    host_gradient(number_of(user), inputs, output, grad_output, grads);
}

/* kernel NULL: values are given. n_inputs: with them. */
DOOR(wick_operation *, operation_make, wick_device *device, const char *name, wick_kernel *kernel,
     uint32_t number, int n_inputs, int n_outputs, int has_gradient) {
    const wick_operation_desc desc = {.name = name,
                                      .n_inputs = n_inputs,
                                      .n_outputs = n_outputs,
                                      .infer = infer,
                                      .compute = kernel == NULL ? take_values : NULL,
                                      .kernel = kernel,
                                      .launch = launch,
                                      .gradient = has_gradient != 0 ? gradient : NULL,
                                      .user = user_of(number, n_inputs, n_outputs)};
    wick_operation *operation = NULL;
    if (n_inputs > MOST || n_outputs > MOST)
        (void)door_refuse(WICK_ERR_VALUE, "operation %s: too many inputs or outputs", name);
    else
        (void)wick_operation_make(device, &desc, &operation, door_new_error());
    return operation;
}

DOOR(void, operation_release, wick_operation *operation) { wick_operation_release(operation); }

/* tensors: the inputs; then there is room for the outputs. */
DOOR(int, operation_run, wick_operation *operation, wick_device *device, wick_tensor **tensors,
     int n_inputs, const double *infos, const uint32_t workgroups[3], const void *uniform,
     size_t uniform_bytes) {
    if (uniform_bytes > WICK_KERNEL_MAX_UNIFORM_BYTES)
        return door_refuse(WICK_ERR_VALUE,
                           "%zu bytes of uniform, at most %d: pass more as a tensor", uniform_bytes,
                           WICK_KERNEL_MAX_UNIFORM_BYTES);
    begun.infos = infos;
    begun.workgroups = workgroups;
    begun.uniform = uniform;
    begun.uniform_bytes = uniform_bytes;
    return door_fail(wick_operation_run(operation, tensors, tensors + n_inputs), device);
}
