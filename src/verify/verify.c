/* verify/verify.c: all kernels of a device, one after another. */
#include "verify/joint.h"

#include "tensor/device.h"

#include <wick/verify.h>

#include <string.h>

enum { CASES = 25 };

struct wick_verifying {
    wick_device *device;
    wick_verify_desc desc; /* kernels is glob */
    size_t next;           /* subject */
    wk_verify_subject subject;
    wk_verification *current; /* of the subject; NULL: none */
    wk_joint_check *joint;    /* after the kernels of single ops; NULL: not yet */
    wk_verify_report report;
    int n_run, n_wrong;
    bool is_idle; /* what was queued before has been computed */
    wick_status status;
    wick_error error;
    size_t bytes; /* of the whole struct */
    char glob[];
};

static bool ends_all(wick_status status) {
    return status == WICK_ERR_OUT_OF_MEMORY || status == WICK_ERR_DEVICE_LOST;
}

/* A kernel that is wrong is not taken any more. False: the caller does not want to go on. */
static bool tell(const wick_verifying *v, wick_status status) {
    const wk_kernel *const kernel = v->subject.kernel;
    const wk_verify_report *const report = &v->report;
    const wk_backend_kernels *const kernels = v->subject.backend->kernels;
    const bool is_wrong = status < 0 && status != WICK_ERR_NOT_FOUND && !ends_all(status);
    if (is_wrong && kernels->disable) kernels->disable(v->device->handle, kernel);
    const wick_kernel_check check = {
        .kernel = kernel->name,
        .status = status,
        .n_cases = (uint64_t)report->n_cases,
        .n_elements = (uint64_t)report->n_elements,
        .mean_error = report->mean_error,
        .rms_error = report->rms_error,
        .max_error = report->max_error,
        .worst = report->worst,
        .seed = report->seed,
        .failure = report->failure,
        .is_disabled = kernels->is_disabled && kernels->is_disabled(v->device->handle, kernel),
    };
    return !v->desc.report || v->desc.report(v->desc.user, &check);
}

/* --- Steps --- */

/* After the last kernel. */
static wick_status conclude(wick_verifying *v) {
    const wk_backend *const backend = v->device->backend;
    if (!backend->kernels)
        return wk_fail(&v->error, WICK_ERR_UNSUPPORTED, "the %s backend has no kernels of its own",
                       backend->name);
    if (v->n_wrong > 0)
        return wk_fail(&v->error, WICK_ERR_MISMATCH, "%d of %d kernels differ from cpu/ref",
                       v->n_wrong, v->n_run);
    if (v->n_run > 0) return WICK_OK;
    return wk_fail(&v->error, WICK_ERR_NOT_FOUND, "no kernel that can be run here is called %s",
                   v->glob);
}

/* A device that joins no ops has no such kernels. */
static wick_status begin_joint(wick_verifying *v) {
    const wk_backend *const backend = v->device->backend;
    if (!backend->kernels || !backend->find_joint) return conclude(v);
    v->joint = wk_joint_check_start(v->device, v->desc.seed, v->desc.n_cases);
    return v->joint ? WICK_PENDING : wk_fail_memory(&v->error, 0, "a verification");
}

static wick_status step_joint(wick_verifying *v) {
    const wk_backend *const backend = v->device->backend;
    const wk_kernel *kernel;
    v->report = (wk_verify_report){0};
    wick_error *const before = wk_device_borrow(v->device, &v->error);
    const wick_status status = wk_joint_check_step(v->joint, v->glob, &kernel, &v->report);
    wk_device_give_back(v->device, before);
    if (status == WICK_PENDING) return WICK_PENDING;
    if (status == WICK_ERR_NOT_FOUND) return conclude(v);
    if (status != WICK_OK && status != WICK_ERR_MISMATCH) return status;
    if (!kernel) return WICK_PENDING;
    v->subject = (wk_verify_subject){kernel, backend, v->device->handle};
    v->n_run++;
    v->n_wrong += status != WICK_OK;
    return tell(v, status) ? WICK_PENDING : conclude(v);
}

static wick_status begin_kernel(wick_verifying *v) {
    const wk_backend *const backend = v->device->backend;
    const wk_kernel *kernel;
    do {
        kernel = backend->kernels ? backend->kernels->at(v->device->handle, v->next++) : NULL;
        if (!kernel) return begin_joint(v);
    } while (!wk_str_matches(wk_str_of(v->glob), wk_str_of(kernel->name)));
    v->subject = (wk_verify_subject){kernel, backend, v->device->handle};
    v->current = wk_verification_start(&v->subject, v->desc.seed, v->desc.n_cases, &v->device->heap,
                                       &v->report);
    return v->current ? WICK_PENDING : wk_fail_memory(&v->error, 0, "a verification");
}

static wick_status end_kernel(wick_verifying *v, wick_status status) {
    wk_verification_end(v->current);
    v->current = NULL;
    const bool goes_on = tell(v, status);
    v->n_run++;
    v->n_wrong += status != WICK_OK && status != WICK_ERR_NOT_FOUND;
    if (ends_all(status))
        return wk_fail(&v->error, status, "%s could not be verified: %s", v->subject.kernel->name,
                       wick_status_text(status));
    return goes_on ? WICK_PENDING : conclude(v);
}

static wick_status step(wick_verifying *v) {
    if (!v->is_idle) {
        wick_error *const before = wk_device_borrow(v->device, &v->error);
        const wick_status status = wick_poll(v->device);
        wk_device_give_back(v->device, before);
        WK_TRY(status);
        v->is_idle = true;
    }
    if (v->joint) return step_joint(v);
    if (!v->current) return begin_kernel(v);
    const wick_status status = wk_verification_step(v->current);
    return status == WICK_PENDING ? WICK_PENDING : end_kernel(v, status);
}

wick_status wick_verify_start(wick_device *device, const wick_verify_desc *desc,
                              wick_verifying **verifying, wick_error *error) {
    const wick_verify_desc all = {0};
    if (!device || !verifying)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_verify_start: an argument is NULL");
    *verifying = NULL;
    if (!desc) desc = &all;
    const char *const kernels = desc->kernels ? desc->kernels : "*";
    const size_t bytes = sizeof(wick_verifying) + strlen(kernels) + 1;
    wick_verifying *const v = wk_alloc_zeroed(&device->heap, bytes);
    if (!v) return wk_fail_memory(error, bytes, "a verification");
    v->device = device;
    v->desc = *desc;
    if (v->desc.n_cases == 0) v->desc.n_cases = CASES;
    v->status = WICK_PENDING;
    v->bytes = bytes;
    memcpy(v->glob, kernels, strlen(kernels) + 1);
    *verifying = v;
    return WICK_OK;
}

wick_status wick_verify_poll(wick_verifying *verifying) {
    if (!verifying) return WICK_ERR_ARGUMENT;
    if (verifying->status == WICK_PENDING) verifying->status = step(verifying);
    return verifying->status;
}

wick_status wick_verify_finish(wick_verifying *verifying, wick_error *error) {
    if (!verifying)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_verify_finish: verifying is NULL");
    if (verifying->current) wk_verification_end(verifying->current);
    wk_joint_check_end(verifying->joint);
    if (verifying->status == WICK_PENDING)
        verifying->status =
            wk_fail(&verifying->error, WICK_ERR_CANCELLED, "the kernels were not verified yet");
    const wick_status status = verifying->status;
    if (status < 0 && error && error->status == WICK_OK) *error = verifying->error;
    wk_free(&verifying->device->heap, verifying, verifying->bytes);
    return status;
}

wick_status wick_verify(wick_device *device, const wick_verify_desc *desc, wick_error *error) {
    wick_verifying *verifying;
    WK_TRY(wick_verify_start(device, desc, &verifying, error));
    while (wick_verify_poll(verifying) == WICK_PENDING) wick_pause(device);
    return wick_verify_finish(verifying, error);
}
