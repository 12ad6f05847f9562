/* tests/kept_devices.h: devices on WebGPU that the tests of a program use one after the other, as
 * drivers in software compile the kernels of each device for seconds. Others are opened and closed
 * each time. */
#ifndef KEPT_DEVICES_H
#define KEPT_DEVICES_H

#include <wick/device.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { N_KEPT_DEVICES = 6 };

typedef struct kept_device {
    wick_device_desc desc;
    wick_device *device; /* NULL: none */
    bool is_lent;
} kept_device;

static inline kept_device *kept_devices(void) {
    static kept_device all[N_KEPT_DEVICES];
    return all;
}

static inline void close_kept_devices(void) {
    kept_device *const all = kept_devices();
    for (int i = 0; i < N_KEPT_DEVICES; i++) wick_device_close(all[i].device);
    memset(all, 0, N_KEPT_DEVICES * sizeof *all);
}

/* A device of the same description that was given back, or what wick_device_open gives. */
static inline wick_status borrow_device(const wick_device_desc *desc, wick_device **device,
                                        wick_error *error) {
    static bool will_close;
    kept_device *free_one = NULL, *const all = kept_devices();
    for (int i = 0; i < N_KEPT_DEVICES; i++) {
        if (all[i].device == NULL) {
            free_one = &all[i];
        } else if (!all[i].is_lent && memcmp(&all[i].desc, desc, sizeof *desc) == 0) {
            all[i].is_lent = true;
            *device = all[i].device;
            return WICK_OK;
        }
    }
    const wick_status status = wick_device_open(desc, device, error);
    const bool is_kept = desc->backend == WICK_BACKEND_WEBGPU && desc->webgpu.cache.load == NULL;
    if (status != WICK_OK || !is_kept || free_one == NULL) return status;
    if (!will_close) atexit(close_kept_devices);
    will_close = true;
    *free_one = (kept_device){.device = *device, .is_lent = true};
    memcpy(&free_one->desc, desc, sizeof *desc); /* with its padding */
    return WICK_OK;
}

/* One with an error is closed for good. */
static inline void give_back_device(wick_device *device) {
    kept_device *const all = kept_devices();
    for (int i = 0; device != NULL && i < N_KEPT_DEVICES; i++) {
        if (all[i].device != device) continue;
        all[i].is_lent = false;
        if (wick_device_error(device, NULL) == WICK_OK) return;
        all[i].device = NULL;
    }
    wick_device_close(device);
}

#endif
