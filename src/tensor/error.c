/* tensor/error.c: where failures go, and the log. */
#include "tensor/device.h"

#include <stdarg.h>
#include <stdio.h>

void wk_device_forget_told(wick_device *device) {
    if (!device->is_told || device->err != &device->sticky) return;
    device->sticky = (wick_error){.status = WICK_OK};
    device->is_told = false;
}

wick_status wk_device_fail(wick_device *device, wick_status status, const char *format, ...) {
    char text[sizeof device->err->message];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (device->desc.log) device->desc.log(device->desc.log_user, WICK_LOG_DEBUG, text);
    wk_device_forget_told(device);
    return wk_fail(device->err, status, "%s", text);
}

void wk_device_log(const wick_device *device, wick_log_level level, const char *format, ...) {
    if (!device->desc.log) return;
    char text[sizeof device->err->message];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    device->desc.log(device->desc.log_user, level, text);
}

wick_error *wk_device_err(wick_device *device) { return device->err; }

wick_error *wk_device_borrow(wick_device *device, wick_error *err) {
    wick_error *const before = device->err;
    device->err = err;
    return before;
}

void wk_device_give_back(wick_device *device, wick_error *before) {
    device->err = before ? before : &device->sticky; /* NULL: it was opened meanwhile */
}

wk_heap *wk_device_heap(wick_device *device) { return &device->heap; }

wick_status wick_device_error(wick_device *device, wick_error *error) {
    if (!device) return wk_fail(error, WICK_ERR_ARGUMENT, "wick_device_error: device is NULL");
    const wick_status status = device->sticky.status;
    if (error) *error = device->sticky;
    device->sticky = (wick_error){0};
    device->is_told = false;
    return status;
}
