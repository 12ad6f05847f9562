/* verify/oracle.c: what results are compared with. */
#include "verify/case.h"

#include "tensor/device.h"

wick_status wk_oracle_open(wk_oracle *oracle, wk_heap *heap) {
    const wick_device_desc desc = {.isa = WICK_ISA_REF, .n_threads = 1};
    const wk_open_desc open = {.heap = heap, .device = &desc};
    oracle->backend = wk_backend_get(WICK_BACKEND_CPU);
    WK_TRY(oracle->backend->open_start(&open, &oracle->device, NULL));
    return oracle->backend->open_poll(oracle->device, NULL); /* the CPU is there at once */
}

void wk_oracle_close(wk_oracle *oracle) {
    if (oracle->device) oracle->backend->close(oracle->device);
    oracle->device = NULL;
}

const wk_kernel *wk_oracle_find(const wk_oracle *oracle, const wk_op *op) {
    return oracle->backend->find_kernel(oracle->device, op);
}

wick_status wk_oracle_run(const wk_oracle *oracle, const wk_op *op, wk_kernel_run *out) {
    const wk_kernel *const kernel = wk_oracle_find(oracle, op);
    return oracle->backend->kernels->run(oracle->device, kernel, op, 0, out);
}
