/* sys/wasm/host.h: what the module asks of the JavaScript around it, beside the GPU. */
#ifndef WK_SYS_WASM_HOST_H
#define WK_SYS_WASM_HOST_H

#include <stdint.h>

#define WK_HOST(name) __attribute__((import_module("wick"), import_name(name)))

/* Monotonic, nanoseconds from an arbitrary start. */
WK_HOST("clock_ns") double wk_host_clock_ns(void);
/* 52 random bits. */
WK_HOST("entropy") double wk_host_entropy(void);

#endif
