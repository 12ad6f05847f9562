/* ops/custom.c: kernels written by the user: the checks that need no driver, and the conversion of
 * their tensors to the form that a binding has. */
#include <wick/kernel.h>

#include "core/str.h"
#include "ops/operation.h"
#include "ops/operand.h"
#include "tensor/custom.h"

#include <stdio.h>
#include <string.h>

enum {
    MAX_SOURCE = 256 << 10, /* bytes; compilers of WGSL take minutes for less */
    DEFAULT_THREADS = 64,
    MAX_THREADS = 256, /* that wick_kernel_workgroup_size gives */
    ENOUGH_GROUPS = 256,
};

/* --- Making --- */

static wick_adapter_limits limits_of(const wick_device *device) {
    wick_device_info info;
    wick_device_get_info(device, &info);
    return info.adapter.limits;
}

static wick_kernel_desc with_defaults(const wick_kernel_desc *desc) {
    wick_kernel_desc full = *desc;
    uint32_t *const size = full.workgroup;
    if (!full.entry) full.entry = "main";
    if (!full.label) full.label = full.entry;
    if (size[0] == 0 && size[1] == 0 && size[2] == 0) size[0] = DEFAULT_THREADS;
    for (size_t i = 0; i < WK_COUNT(full.workgroup); i++)
        if (size[i] == 0) size[i] = 1;
    return full;
}

static wick_status check_buffers(const wick_kernel_desc *desc, wick_error *err) {
    bool is_written = false;
    if (desc->n_buffers < 1 || desc->n_buffers > WICK_KERNEL_MAX_BUFFERS)
        return wk_fail(err, WICK_ERR_VALUE, "kernel %s: %d buffers, from 1 to %d can be bound",
                       desc->label, desc->n_buffers, WICK_KERNEL_MAX_BUFFERS);
    for (int i = 0; i < desc->n_buffers; i++) {
        if ((uint32_t)desc->access[i] > WICK_KERNEL_READ_WRITE)
            return wk_fail(err, WICK_ERR_VALUE,
                           "kernel %s: buffer %d: there is no access number %d", desc->label, i,
                           (int)desc->access[i]);
        if (desc->access[i] == WICK_KERNEL_READ_WRITE) is_written = true;
    }
    if (is_written) return WICK_OK;
    return wk_fail(err, WICK_ERR_VALUE, "kernel %s writes to none of its buffers", desc->label);
}

static wick_status check_desc(const wick_kernel_desc *desc, wick_error *err) {
    const size_t size = strlen(desc->source);
    if (size > MAX_SOURCE)
        return wk_fail(err, WICK_ERR_VALUE, "kernel %s: a source of %zu bytes, at most %d",
                       desc->label, size, (int)MAX_SOURCE);
    size_t bad;
    if (!wk_str_is_utf8(wk_str_of(desc->source), &bad))
        return wk_fail(err, WICK_ERR_VALUE, "kernel %s: byte %zu of the source is not UTF-8",
                       desc->label, bad);
    if (!wk_str_is_utf8(wk_str_of(desc->entry), &bad))
        return wk_fail(err, WICK_ERR_VALUE, "kernel %s: the entry's name is not UTF-8",
                       desc->label);
    if (desc->uniform_bytes > WICK_KERNEL_MAX_UNIFORM_BYTES)
        return wk_fail(err, WICK_ERR_VALUE,
                       "kernel %s: %u bytes of uniform, at most %d: pass more as a tensor",
                       desc->label, desc->uniform_bytes, WICK_KERNEL_MAX_UNIFORM_BYTES);
    const uint32_t known = WICK_WEBGPU_F16 | WICK_WEBGPU_SUBGROUPS | WICK_WEBGPU_DOT4;
    if ((desc->needs & ~known) != 0)
        return wk_fail(err, WICK_ERR_VALUE, "kernel %s: needs has bits (0x%x) of no feature",
                       desc->label, desc->needs & ~known);
    return check_buffers(desc, err);
}

wick_status wick_kernel_make_start(wick_device *device, const wick_kernel_desc *desc,
                                   wick_kernel **kernel, wick_error *error) {
    if (!kernel) return wk_fail(error, WICK_ERR_ARGUMENT, "a kernel needs a place to go");
    *kernel = NULL;
    if (!device || !desc || !desc->source)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_kernel_make: %s is NULL",
                       !device ? "device"
                       : !desc ? "desc"
                               : "source");
    if (!wk_custom_is_supported(device)) {
        wick_device_info info;
        wick_device_get_info(device, &info);
        return wk_fail(error, WICK_ERR_UNSUPPORTED,
                       "custom WGSL kernels need a WebGPU device, this one is %s",
                       info.backend_name);
    }
    wick_kernel_desc full = with_defaults(desc);
    const wk_shown label = wk_str_show(wk_str_of(full.label));
    full.label = label.text; /* may be cut anywhere */
    WK_TRY(check_desc(&full, error));
    return wk_custom_new(device, &full, kernel, error);
}

wick_status wick_kernel_make_poll(wick_kernel *kernel, wick_error *error) {
    if (!kernel) return wk_fail(error, WICK_ERR_ARGUMENT, "wick_kernel_make_poll: kernel is NULL");
    return wk_custom_poll(kernel, error);
}

wick_status wick_kernel_make(wick_device *device, const wick_kernel_desc *desc,
                             wick_kernel **kernel, wick_error *error) {
    WK_TRY(wick_kernel_make_start(device, desc, kernel, error));
    wick_status status;
    while ((status = wick_kernel_make_poll(*kernel, error)) == WICK_PENDING) wick_pause(device);
    if (status == WICK_OK) return WICK_OK;
    wick_kernel_release(*kernel);
    *kernel = NULL;
    return status;
}

void wick_kernel_release(wick_kernel *kernel) {
    if (kernel) wk_custom_release(kernel);
}

/* --- Sizes --- */

uint32_t wick_kernel_workgroup_size(const wick_device *device, uint64_t n) {
    if (!device || !wk_custom_is_supported(device)) return 0;
    const wick_adapter_limits limits = limits_of(device);
    uint32_t size = DEFAULT_THREADS;
    while (size > 1 && size / 2 >= n) size /= 2;
    while (2 * size <= MAX_THREADS && 2 * size <= limits.workgroup_threads &&
           2 * size <= limits.workgroup_size_x && n / (2 * size) >= ENOUGH_GROUPS)
        size *= 2;
    return size;
}

wick_status wick_kernel_workgroups(const wick_kernel *kernel, uint64_t n, uint32_t workgroups[3]) {
    if (!kernel || !workgroups) return WICK_ERR_ARGUMENT;
    const uint32_t *const size = kernel->desc.workgroup;
    const uint64_t threads = (uint64_t)size[0] * size[1] * size[2];
    const uint64_t n_groups = n / threads + (n % threads != 0);
    const uint32_t most = limits_of(kernel->device).workgroups;
    workgroups[0] = workgroups[1] = 0;
    workgroups[2] = 1;
    if (n_groups == 0 || wk_spread_workgroups(n_groups, most, &workgroups[0], &workgroups[1]))
        return WICK_OK;
    return wk_device_fail(kernel->device, WICK_ERR_VALUE,
                          "kernel %s: %llu threads are %llu workgroups, at most %u x %u can run",
                          kernel->desc.label, (unsigned long long)n, (unsigned long long)n_groups,
                          most, most);
}

/* --- Running --- */

typedef struct run {
    wick_kernel *kernel;
    wick_operation *operation;                    /* whose kernel it is, or NULL */
    wick_tensor *const *tensors;                  /* the user's */
    wick_tensor *copies[WICK_KERNEL_MAX_BUFFERS]; /* what is bound in their place, or NULL */
} run;

static bool is_written(const wick_kernel *kernel, int i) {
    return kernel->desc.access[i] == WICK_KERNEL_READ_WRITE;
}

static wick_tensor *bound(const run *r, int i) {
    return r->copies[i] ? r->copies[i] : r->tensors[i];
}

static wick_status fail_tensor(const wick_kernel *kernel, wick_status status, int i,
                               const char *what) {
    return wk_device_fail(kernel->device, status, "kernel %s: tensor %d %s", kernel->desc.label, i,
                          what);
}

static wick_status check_tensor(const wick_kernel *kernel, const wick_tensor *x, int i) {
    if (!x) return fail_tensor(kernel, WICK_ERR_ARGUMENT, i, "is NULL");
    if (x->device != kernel->device)
        return fail_tensor(kernel, WICK_ERR_ARGUMENT, i, "belongs to another device");
    if (x->view.layout != WK_LAYOUT_RAW)
        return fail_tensor(
            kernel, WICK_ERR_UNSUPPORTED, i,
            "is a weight in its compute layout, which only linear and embedding read");
    if (wk_tensor_is_empty(x)) return fail_tensor(kernel, WICK_ERR_SHAPE, i, "is empty");
    return WICK_OK;
}

static wick_status check_call(const wick_kernel *kernel, int n, const uint32_t workgroups[3],
                              const void *uniform, size_t bytes) {
    wick_device *const device = kernel->device;
    const wick_kernel_desc *const desc = &kernel->desc;
    if (n != desc->n_buffers)
        return wk_device_fail(device, WICK_ERR_ARGUMENT, "kernel %s: %d tensors, it has %d buffers",
                              desc->label, n, desc->n_buffers);
    if (bytes != desc->uniform_bytes || (bytes > 0 && !uniform))
        return wk_device_fail(device, WICK_ERR_ARGUMENT,
                              "kernel %s: %zu bytes of uniform%s, it was made for %u", desc->label,
                              bytes, bytes > 0 && !uniform ? " at NULL" : "", desc->uniform_bytes);
    const uint32_t most = limits_of(device).workgroups;
    for (int i = 0; i < 3; i++)
        if (workgroups[i] > most)
            return wk_device_fail(device, WICK_ERR_VALUE,
                                  "kernel %s: %u workgroups in dimension %d, at most %u: "
                                  "wick_kernel_workgroups spreads them over x and y",
                                  desc->label, workgroups[i], i, most);
    return WICK_OK;
}

/* What a kernel writes may be nothing else that it has; also where copies would keep them apart,
 * for which tensors are copied differs between devices. */
static wick_status check_sharing(const run *r) {
    const wick_kernel *const kernel = r->kernel;
    for (int i = 0; i < kernel->desc.n_buffers; i++) {
        const wk_view *const a = &r->tensors[i]->view;
        for (int k = 0; k < i; k++) {
            const wk_view *const b = &r->tensors[k]->view;
            if (!wk_view_overlaps(a, b) || !(is_written(kernel, i) || is_written(kernel, k)))
                continue;
            return wk_device_fail(kernel->device, WICK_ERR_ARGUMENT,
                                  "kernel %s: tensors %d and %d share memory and one of them is "
                                  "written: bind it once, as READ_WRITE, or pass a copy",
                                  kernel->desc.label, k, i);
        }
    }
    return WICK_OK;
}

/* Bindings have whole words: a kernel may write to all bytes of the last one. */
static bool ends_with_word(const wick_tensor *x) {
    uint64_t begin, end;
    wk_view_range(&x->view, &begin, &end);
    return (end - begin) % 4 == 0 || end == x->view.buf->size;
}

/* Copies of the tensors that a binding cannot show as they lie. */
static wick_status copy_crooked(run *r) {
    const wick_kernel *const kernel = r->kernel;
    const uint32_t alignment = limits_of(kernel->device).storage_alignment;
    for (int i = 0; i < kernel->desc.n_buffers; i++) {
        wick_tensor *const x = r->tensors[i];
        if (wk_view_is_dense(&x->view) && x->view.offset % alignment == 0 &&
            (!is_written(kernel, i) || ends_with_word(x)))
            continue;
        if (is_written(kernel, i) && !wk_operand_is_writable(kernel->desc.label, x))
            return wk_device_err(kernel->device)->status;
        r->copies[i] = wk_dense_copy(x, x->view.dtype);
        if (!r->copies[i]) return wk_device_err(kernel->device)->status;
    }
    return WICK_OK;
}

static wick_status queue_run(const run *r, const uint32_t workgroups[3], const void *uniform,
                             size_t bytes) {
    wick_kernel *const kernel = r->kernel;
    wk_custom_run *const params = wk_custom_run_new(kernel, workgroups, uniform, bytes);
    if (!params) return WICK_ERR_OUT_OF_MEMORY;
    if (r->operation) {
        params->operation = r->operation;
        r->operation->refs++;
    }
    wk_call call = {.op = {.code = WK_OP_CUSTOM,
                           .name = r->operation ? r->operation->desc.name : kernel->desc.label,
                           .p.custom = params}};
    int n = 0;
    for (int written = 1; written >= 0; written--) {
        for (int i = 0; i < kernel->desc.n_buffers; i++) {
            if (is_written(kernel, i) != (written == 1)) continue;
            call.operand[n] = bound(r, i);
            call.op.view[n++] = bound(r, i)->view;
        }
        if (written) call.op.n_dst = (uint8_t)n;
    }
    call.op.n_src = (uint8_t)(n - call.op.n_dst);
    const wick_status status = wk_call_queue(kernel->device, &call);
    wk_custom_run_release(params);
    return status;
}

/* Copies written tensors back from their copies. */
static wick_status copy_back(const run *r) {
    for (int i = 0; i < r->kernel->desc.n_buffers; i++) {
        wick_tensor *const x = r->tensors[i], *const copy = r->copies[i];
        if (copy && is_written(r->kernel, i)) WK_TRY(wk_queue_copy(x, &x->view, copy, &copy->view));
    }
    return WICK_OK;
}

wick_status wick_kernel_run(wick_kernel *kernel, wick_tensor *const *tensors, int n,
                            const uint32_t workgroups[3], const void *uniform, size_t bytes) {
    return wk_kernel_run(kernel, NULL, tensors, n, workgroups, uniform, bytes);
}

wick_status wk_kernel_run(wick_kernel *kernel, wick_operation *operation,
                          wick_tensor *const *tensors, int n, const uint32_t workgroups[3],
                          const void *uniform, size_t bytes) {
    if (!kernel) return WICK_ERR_ARGUMENT;
    wick_device *const device = kernel->device;
    if (!tensors || !workgroups)
        return wk_device_fail(device, WICK_ERR_ARGUMENT, "kernel %s: %s is NULL",
                              kernel->desc.label, tensors ? "workgroups" : "tensors");
    WK_TRY(check_call(kernel, n, workgroups, uniform, bytes));
    for (int i = 0; i < n; i++) WK_TRY(check_tensor(kernel, tensors[i], i));
    const wick_status compiled = wk_custom_poll(kernel, wk_device_err(device));
    if (compiled < 0) return compiled;
    if (workgroups[0] == 0 || workgroups[1] == 0 || workgroups[2] == 0) return WICK_OK;
    run r = {.kernel = kernel, .operation = operation, .tensors = tensors};
    WK_TRY(check_sharing(&r));
    wick_status status = copy_crooked(&r);
    if (status == WICK_OK) status = queue_run(&r, workgroups, uniform, bytes);
    if (status == WICK_OK) status = copy_back(&r);
    for (int i = 0; i < n; i++) wick_release(r.copies[i]);
    return status;
}
