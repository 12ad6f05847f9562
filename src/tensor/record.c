/* tensor/record.c: recording: ops instead of commands, places instead of memory. */
#include "tensor/record.h"

#include <assert.h>

/* Grows an array to hold one more element. */
wick_status wk_grow(wick_device *device, void **array, size_t *capacity, size_t count,
                    size_t size) {
    if (count < *capacity) return WICK_OK;
    const size_t larger = *capacity ? 2 * *capacity : 64;
    void *const moved = wk_realloc(&device->heap, *array, *capacity * size, larger * size);
    if (!moved) return wk_fail_memory(device->err, larger * size, "a plan");
    *array = moved;
    *capacity = larger;
    return WICK_OK;
}

wick_status wk_plan_place(wk_plan *plan, uint64_t size, uint64_t granule, wk_buffer **out) {
    wick_device *const device = plan->device;
    void *array = plan->places;
    wick_status status =
        wk_grow(device, &array, &plan->place_capacity, plan->n_places, sizeof *plan->places);
    plan->places = array;
    wk_buffer *const place =
        status == WICK_OK ? wk_alloc_zeroed(&device->heap, sizeof *place) : NULL;
    if (!place) {
        plan->status = wk_fail_memory(device->err, sizeof *place, "a plan");
        return plan->status;
    }
    plan->places[plan->n_places++] = place;
    *place = (wk_buffer){.size = size,
                         .refs = 1,
                         .place = (uint32_t)plan->n_places,
                         .generation = plan->generation,
                         .granule = granule};
    *out = place;
    return WICK_OK;
}

static wick_status record_temp(void *user, wick_dtype dtype, int rank, const int64_t *extent,
                               wk_view *out) {
    wk_plan *const plan = user;
    const wick_shape shape = wick_shape_of(rank, extent);
    uint64_t bytes;
    const bool exists = wk_view_dense(dtype, &shape, out, &bytes);
    assert(exists); /* the op that is taken apart has been checked */
    (void)exists;
    WK_TRY(wk_plan_place(plan, bytes, wk_shape_row_bytes(dtype, &shape), &out->buf));
    out->buf->refs--; /* only the ops that use it hold it */
    return WICK_OK;
}

static wick_status record_op(void *user, const wk_op *op) {
    wk_plan *const plan = user;
    wick_device *const device = plan->device;
    const wk_op_info *const info = wk_op_get_info(op->code);
    const wk_kernel *const kernel = device->backend->find_kernel(device->handle, op);
    if (!kernel && info->decompose) {
        const wk_decomposition to = {.user = plan, .emit = record_op, .temp = record_temp};
        device->n_decomposed++;
        return info->decompose(op, &to);
    }
    void *array = plan->ops;
    WK_TRY(wk_grow(device, &array, &plan->op_capacity, plan->n_ops, sizeof *plan->ops));
    plan->ops = array;
    array = plan->kernels;
    WK_TRY(wk_grow(device, &array, &plan->kernel_capacity, plan->n_ops, sizeof *plan->kernels));
    plan->kernels = array;
    wk_op_retain(op);
    wk_op_copy(&plan->ops[plan->n_ops], op);
    plan->kernels[plan->n_ops++] = kernel;
    if (!kernel) plan->falls_back = true;
    return WICK_OK;
}

wick_status wk_plan_record(wk_plan *plan, const wk_op *op) {
    assert(plan->device->recording == plan);
    const wick_status status = record_op(plan, op);
    if (plan->status == WICK_OK) plan->status = status;
    return status;
}
