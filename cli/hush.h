/* hush.h: calls into implementations of WebGPU, which print warnings of their own on standard error
 * while they look for drivers. What matters of it comes back as an error. */
#ifndef WICK_CLI_HUSH_H
#define WICK_CLI_HUSH_H

#include <wick/wick.h>

/* wick_device_open, wick_backends and wick_adapters with standard error closed off meanwhile. */
wick_status cli_open_device(const wick_device_desc *desc, wick_device **device, wick_error *error);
size_t cli_list_backends(wick_backend_status *out, size_t capacity);
size_t cli_list_adapters(const char *library, wick_adapter_info *out, size_t capacity);

#endif
