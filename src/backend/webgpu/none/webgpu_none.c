/* webgpu/none/webgpu_none.c: in place of the backend, where a module is for the CPU alone
 * (web/CMakeLists.txt). */
#include "backend/webgpu/webgpu.h"

static wick_status refuse(const wick_device_desc *desc, wick_error *err) {
    (void)desc;
    return wk_fail(err, WICK_ERR_NO_DEVICE,
                   "libwick/cpu is for the CPU alone: import libwick for WebGPU");
}

const wk_backend wk_backend_webgpu = {
    .id = WICK_BACKEND_WEBGPU, .name = "webgpu", .available = refuse};

size_t wk_webgpu_adapters(const char *library, wick_adapter_info *out, size_t capacity) {
    (void)library, (void)out, (void)capacity;
    return 0;
}
