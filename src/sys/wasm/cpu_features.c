/* sys/wasm/cpu_features.c: what the module was compiled for: a module that names instructions which
 * a browser lacks does not load, so there is nothing to ask. */
#include "sys/cpu_features.h"

#include <stdio.h>

uint32_t wk_cpu_features(void) { return WK_CPU_SIMD128; }

void wk_cpu_name(char *name, size_t size) { snprintf(name, size, "WebAssembly"); }
