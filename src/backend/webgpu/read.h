/* backend/webgpu/read.h: reading back, and the fault slots. */
#ifndef WK_BACKEND_WEBGPU_READ_H
#define WK_BACKEND_WEBGPU_READ_H

#include "backend/backend.h"
#include "backend/webgpu/gpu/gpu.h"

/* A part of a read: bytes [at, at + size) of the requested ones. */
typedef struct wk_webgpu_read {
    wk_ticket ticket; /* 0: not in use */
    wk_gpu_buffer *staging;
    uint64_t capacity, copied; /* of staging: its size, and the bytes that arrive */
    uint64_t skip, at, size;   /* after skip others in staging */
    bool has_faults;           /* the fault slots arrive after them */
    bool is_seen;              /* it has been looked at */
} wk_webgpu_read;

typedef struct wk_webgpu_fault {
    bool is_set;       /* and has not been taken */
    wk_ticket cleared; /* reads up to this one were submitted before the slot was cleared */
} wk_webgpu_fault;

wick_status wk_webgpu_read_start(wk_backend_device *dev, wk_buffer *buf, uint64_t offset,
                                 uint64_t size, wk_ticket *ticket, wick_error *err);
wick_status wk_webgpu_read_finish(wk_backend_device *dev, wk_ticket ticket, void *dst,
                                  wick_error *err);
/* Whether the read of this ticket has arrived, and with it the fault slots. */
wick_status wk_webgpu_read_poll(wk_backend_device *dev, wk_ticket ticket, wick_error *err);
bool wk_webgpu_take_fault(wk_backend_device *dev, uint32_t *slot);
void wk_webgpu_reads_release(wk_backend_device *dev);

#endif
