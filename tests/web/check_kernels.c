/* check_kernels.c: a door for tests/web/test_kernels.mjs beside those of web/glue: the module's
 * kernels against the reference. */
#include <wick/wick.h>

#include <stdio.h>

/* NULL for failure: the kernel is right. */
__attribute__((import_module("test"), import_name("report"))) void
test_report(const char *kernel, const char *summary, const char *failure);

static bool report(void *user, const wick_kernel_check *check) {
    (void)user;
    char text[256];
    snprintf(text, sizeof text, "relative error rms %.2g max %.2g, %.2g of the bound, seed %llu",
             check->rms_error, check->max_error, check->worst, (unsigned long long)check->seed);
    const bool is_right = check->status == WICK_OK;
    const char *const why =
        check->failure[0] != '\0' ? check->failure : wick_status_text(check->status);
    test_report(check->kernel, text, is_right ? NULL : why);
    return true;
}

/* kernels: names, see wick_verify_desc. Gives the status. */
__attribute__((export_name("check_kernels"))) int test_check_kernels(const char *kernels,
                                                                     uint32_t n_cases);

int test_check_kernels(const char *kernels, uint32_t n_cases) {
    wick_device *device;
    const wick_device_desc on_cpu = {.backend = WICK_BACKEND_CPU};
    const wick_status opened = wick_device_open(&on_cpu, &device, NULL);
    if (opened != WICK_OK) return opened;
    const wick_verify_desc desc = {
        .kernels = kernels, .seed = 2026, .n_cases = n_cases, .report = report};
    const wick_status status = wick_verify(device, &desc, NULL);
    wick_device_close(device);
    return status;
}
