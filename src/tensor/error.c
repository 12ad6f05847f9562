/* tensor/error.c: a device's sticky error, and its log. */
#include "tensor/device.h"

#include <stdarg.h>
#include <stdio.h>

wick_status wk_device_fail(wick_device *device, wick_status status, const char *format, ...) {
    char text[sizeof device->error.message];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (device->desc.log) device->desc.log(device->desc.log_user, WICK_LOG_DEBUG, text);
    return wk_fail(&device->error, status, "%s", text);
}

void wk_device_log(const wick_device *device, wick_log_level level, const char *format, ...) {
    if (!device->desc.log) return;
    char text[sizeof device->error.message];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    device->desc.log(device->desc.log_user, level, text);
}

wick_error *wk_device_sticky(wick_device *device) { return &device->error; }

wk_heap *wk_device_heap(wick_device *device) { return &device->heap; }

wick_status wick_device_error(wick_device *device, wick_error *error) {
    if (!device) return wk_fail(error, WICK_ERR_ARGUMENT, "wick_device_error: device is NULL");
    const wick_status status = device->error.status;
    if (error) *error = device->error;
    device->error = (wick_error){0};
    return status;
}
