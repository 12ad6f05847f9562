/* verify/verify.c: all kernels of a device, one after another. */
#include "verify/verify.h"

#include "tensor/device.h"

#include <wick/verify.h>

enum { CASES = 25 };

/* The next kernel from *index on that the device can run. */
static bool next_subject(const wick_device *device, size_t *index, wk_verify_subject *out) {
    switch (device->backend->id) {
    case WICK_BACKEND_CPU: return wk_verify_next_cpu(device->handle, index, out);
    case WICK_BACKEND_WEBGPU: return wk_verify_next_webgpu(device->handle, index, out);
    default: return false;
    }
}

static bool ends_all(wick_status status) {
    return status == WICK_ERR_OUT_OF_MEMORY || status == WICK_ERR_DEVICE_LOST;
}

/* A kernel that is wrong is not taken any more. False: the caller does not want to go on. */
static bool verify_one(wick_device *device, const wick_verify_desc *desc,
                       const wk_verify_subject *subject, wick_status *status) {
    wk_verify_report report;
    const int64_t n_cases = desc->n_cases > 0 ? desc->n_cases : CASES;
    *status = wk_verify_kernel(subject, desc->seed, n_cases, &device->heap, &report);
    const bool is_wrong = *status < 0 && *status != WICK_ERR_NOT_FOUND && !ends_all(*status);
    if (is_wrong && subject->disable) subject->disable(device->handle, subject->kernel);
    const wick_kernel_check check = {
        .kernel = subject->kernel->name,
        .status = *status,
        .n_cases = (uint64_t)report.n_cases,
        .n_elements = (uint64_t)report.n_elements,
        .mean_error = report.mean_error,
        .rms_error = report.rms_error,
        .max_error = report.max_error,
        .worst = report.worst,
        .seed = report.seed,
        .failure = report.failure,
        .is_disabled = subject->is_disabled || (is_wrong && subject->disable),
    };
    return !desc->report || desc->report(desc->user, &check);
}

wick_status wick_verify(wick_device *device, const wick_verify_desc *desc, wick_error *error) {
    const wick_verify_desc all = {0};
    const wick_verify_desc *const d = desc ? desc : &all;
    const wk_str glob = wk_str_of(d->kernels ? d->kernels : "*");
    int n_run = 0, n_wrong = 0;
    if (wick_synchronize(device) != WICK_OK) return wick_device_error(device, error);
    wk_verify_subject subject;
    for (size_t i = 0; next_subject(device, &i, &subject);) {
        if (!wk_str_matches(glob, wk_str_of(subject.kernel->name))) continue;
        wick_status status;
        const bool goes_on = verify_one(device, d, &subject, &status);
        n_run++;
        n_wrong += status != WICK_OK && status != WICK_ERR_NOT_FOUND;
        if (ends_all(status))
            return wk_fail(error, status, "%s could not be verified: %s", subject.kernel->name,
                           wick_status_text(status));
        if (!goes_on) break;
    }
    if (n_wrong > 0)
        return wk_fail(error, WICK_ERR_MISMATCH, "%d of %d kernels differ from cpu/ref", n_wrong,
                       n_run);
    if (n_run > 0) return WICK_OK;
    if (device->backend->id != WICK_BACKEND_CPU && device->backend->id != WICK_BACKEND_WEBGPU)
        return wk_fail(error, WICK_ERR_UNSUPPORTED, "the %s backend has no kernels of its own",
                       device->backend->name);
    return wk_fail(error, WICK_ERR_NOT_FOUND, "no kernel that can be run here is called %s",
                   glob.text);
}
