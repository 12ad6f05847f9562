/* tensor/record.h: a plan while it is recorded; for the files of tensor/ only. */
#ifndef WK_TENSOR_RECORD_H
#define WK_TENSOR_RECORD_H

#include "backend/op.h"
#include "tensor/device.h"
#include "tensor/plan.h"

struct wk_plan {
    wick_device *device;
    wk_plan_pool *pool;
    uint32_t generation; /* of the device */
    uint32_t n_refused;  /* kernels, when it was begun */
    wk_op *ops;          /* hold references to their buffers */
    const wk_kernel **kernels;
    size_t n_ops, op_capacity, kernel_capacity;
    wk_buffer **places; /* place number p is places[p - 1] */
    size_t n_places, place_capacity;
    uint8_t fault_slot; /* of all its ops */
    void *replay;       /* of the backend, or NULL */
    bool falls_back;    /* an op has no kernel on this device */
    wick_status status; /* first failure while recording */
};

/* What stood in the buffers of its pool is of no importance: a run writes them before it reads. */
void wk_plan_heal_slots(wick_device *device, const wk_plan *plan);
/* Grows an array of elements of size bytes to hold one more than count. */
wick_status wk_grow(wick_device *device, void **array, size_t *capacity, size_t count, size_t size);

/* join.c: makes ops one where that takes fewer kernels; outputs: as for wk_plan_end. */
wick_status wk_plan_join(wk_plan *plan, wick_tensor *const *outputs, size_t n_outputs);

/* A place instead of memory; one reference. */
wick_status wk_plan_place(wk_plan *plan, uint64_t size, uint64_t granule, wk_buffer **out);
/* Adds a checked op, taken apart where the device has no kernel for it. */
wick_status wk_plan_record(wk_plan *plan, const wk_op *op);

#endif
