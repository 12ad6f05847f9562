/* hush.c: standard error closed off while a driver is looked for. */
#define _POSIX_C_SOURCE 200809L

#include "hush.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* A copy of standard error, which goes nowhere from now on; -1: nothing was changed. */
static int hush(void) {
    fflush(stderr);
    const int saved = dup(STDERR_FILENO), nowhere = open("/dev/null", O_WRONLY);
    if (saved >= 0 && nowhere >= 0) dup2(nowhere, STDERR_FILENO);
    if (nowhere >= 0) close(nowhere);
    return saved;
}

static void speak(int saved) {
    fflush(stderr);
    if (saved < 0) return;
    dup2(saved, STDERR_FILENO);
    close(saved);
}

wick_status cli_open_device(const wick_device_desc *desc, wick_device **device, wick_error *error) {
    const int saved = hush();
    const wick_status status = wick_device_open(desc, device, error);
    speak(saved);
    return status;
}

size_t cli_list_backends(wick_backend_status *out, size_t capacity) {
    const int saved = hush();
    const size_t n = wick_backends(out, capacity);
    speak(saved);
    return n;
}

size_t cli_list_adapters(const char *library, wick_adapter_info *out, size_t capacity) {
    const int saved = hush();
    const size_t n = wick_adapters(library, out, capacity);
    speak(saved);
    return n;
}
